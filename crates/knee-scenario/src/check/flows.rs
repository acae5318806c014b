//! Flows: expands groups, draws start times, checks controllers.

use super::inputs::Inputs;
use super::paths::CheckedPath;
use super::{after, check_name, in_range, multipath, programs, transport};
use crate::algorithms::{Algorithms, class_file};
use crate::file::{Choice, ControllerFile, FLOWS_MAX, FlowFile, ScenarioFile, SelectionFile};
use crate::model::Flow;
use crate::read::{At, Optional, Whole};
use crate::source::{Reading, file_name};
use crate::streams::jitter_stream;
use crate::tree::Span;
use crate::workload;
use knee_transport::Config;
use knee_units::Time;
use knee_units::random::up_to;
use knee_units::registry::{Kind, Selection, SelectionError, Value};
use knee_workload::{Arrivals, Mix, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// Transport settings of flows that do not give their own.
pub(super) struct Transports {
    /// For flows over one path.
    pub single: Config,
    /// For flows over several paths.
    pub several: Config,
}

/// Data against which groups of flows are checked.
pub(super) struct Context<'p> {
    pub ways: &'p [CheckedPath],
    pub duration: Time,
    pub seed: u64,
    pub transport: Transports,
    /// Random delay of hosts.
    pub send_jitter: Time,
}

/// Values that all groups share.
struct Common<'p> {
    context: Context<'p>,
    start_jitter: Time,
}

pub(super) fn check(
    file: &mut ScenarioFile,
    context: Context<'_>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Flow> {
    in_range(&file.start_jitter, "the start jitter", Time::ZERO, context.duration, reading);
    let start_jitter = file.start_jitter.fill(Time::ZERO);
    let common = Common { context, start_jitter };
    let mut flows = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut total = 0u64;
    for entry in &mut file.flow.0 {
        let Optional::Given(At { value: flow, span }) = entry else { continue };
        name(flow, *span, &mut known, reading);
        let count = count(flow, &mut total, reading);
        let group = Group { span: *span, count };
        flows.extend(expand(flow, &group, &common, inputs, reading).unwrap_or_default());
    }
    if file.flow.0.is_empty() {
        let help = "add [[flow]] with cc = \"cubic\"";
        reading.problem(Span::default(), "the scenario has no flow", help);
    }
    deal(&mut flows, inputs);
    after::check(&file.flow, &mut flows, reading);
    flows
}

/// Deals the arrivals of a log among the flows of one process over the same paths: together they
/// have one transfer for each line.
fn deal(flows: &mut [Flow], inputs: &mut Inputs<'_>) {
    let mut of_log: BTreeMap<(String, Vec<usize>), Vec<usize>> = BTreeMap::new();
    for (at, flow) in flows.iter().enumerate() {
        if let Workload::Mix(Mix { arrivals: Arrivals::Recorded(_), process: Some(name), .. }) =
            &flow.workload
        {
            of_log.entry((name.clone(), flow.paths.clone())).or_default().push(at);
        }
    }
    for ((process, _), members) in of_log.into_iter().filter(|(_, members)| members.len() > 1) {
        let Workload::Mix(Mix { arrivals: Arrivals::Recorded(all), .. }) =
            &flows[members[0]].workload
        else {
            continue;
        };
        let parts = all.dealt(&process, members.len());
        let count = members.len();
        inputs.note_followed(&process, &format!("dealt at random among {count} flows"));
        for (member, part) in members.into_iter().zip(parts) {
            if let Workload::Mix(mix) = &mut flows[member].workload {
                mix.arrivals = Arrivals::Recorded(part.into());
            }
        }
    }
}

/// Checks the group's name, by default its controller's; it must be unique.
fn name(flow: &mut FlowFile, span: Span, known: &mut BTreeSet<String>, reading: &mut Reading<'_>) {
    let place = flow.name.span().unwrap_or(span);
    let controller = flow.cc.get().map(|cc| controller_name(&cc.name.value).to_string());
    if flow.name.get().is_none() && controller.is_none() {
        return;
    }
    let given = flow.name.is_given();
    let name = flow.name.fill(controller.unwrap_or_default());
    check_name(&name, place, reading);
    if known.contains(&name) {
        let (message, help) = if given {
            (format!("two flows are named \"{name}\""), "write another name")
        } else {
            (
                format!(
                    "a flow without a name is named \"{name}\", which another flow already has"
                ),
                "add a name",
            )
        };
        reading.problem(place, message, help);
    }
    known.insert(name);
}

/// Returns the name of a controller; for a class in a file that of the class or, without one, the
/// file's without its folder and ending.
fn controller_name(name: &str) -> &str {
    let Some((file, class)) = class_file(name) else { return name };
    class.unwrap_or_else(|| file_name(file).trim_end_matches(".py"))
}

/// Returns the number of flows; zero if the scenario has too many.
fn count(flow: &mut FlowFile, total: &mut u64, reading: &mut Reading<'_>) -> u64 {
    in_range(&flow.count, "the number of flows", Whole(1), Whole(FLOWS_MAX), reading);
    let span = flow.count.span().unwrap_or_default();
    let Whole(count) = flow.count.fill(Whole(1));
    let before = *total;
    *total = total.saturating_add(count);
    if *total > FLOWS_MAX {
        if before <= FLOWS_MAX && count <= FLOWS_MAX {
            let message = format!("{} flows are too many", *total);
            reading.problem(span, message, format!("write at most {FLOWS_MAX} in all"));
        }
        return 0;
    }
    count
}

/// A group of flows in the file.
struct Group {
    span: Span,
    count: u64,
}

fn expand(
    flow: &mut FlowFile,
    group: &Group,
    common: &Common<'_>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Vec<Flow>> {
    let route = multipath::check(flow, group.span, common.context.ways, reading);
    let Algorithms { controllers, .. } = reading.algorithms;
    let is_program = flow.program.is_given();
    let known = |chosen: &Selection| match controllers.check(chosen) {
        // What a program has may be unknown here.
        Err(_) if is_program && programs::is_label(chosen) => Ok(()),
        checked => checked,
    };
    let controller = match &mut flow.cc.0 {
        Optional::Given(At { value: cc, .. }) => import(cc, inputs, reading)
            .and_then(|()| files(cc, inputs, reading))
            .and_then(|files| selection(cc, files, known, reading)),
        _ => None,
    };
    let transport = transport(flow, &common.context.transport, reading);
    let starts = starts(flow, group, common, reading);
    let stop = flow.stop.get().copied();
    let span = flow.workload.span().unwrap_or(group.span);
    let first = starts.first().copied().unwrap_or(Time::ZERO);
    let life = stop.unwrap_or(common.context.duration).saturating_sub(first);
    let is_after = flow.after.is_given();
    let room = workload::Room { span, life, flows: group.count, is_after };
    let program = programs::check(flow, common.context.duration, reading);
    let workload = match &program {
        None => None,
        Some(None) => workload::check(&mut flow.workload, &room, inputs, reading),
        Some(Some(program)) => Some(program.bytes.map_or(Workload::Bulk, Workload::File)),
    };
    if !transport.lies.is_honest() {
        let liar = flow.transport.receiver.span().unwrap_or(group.span);
        check_liar(liar, flow.paths.is_given(), workload.as_ref(), reading);
    }
    let send_jitter = flow.transport.send_jitter.get().copied();
    let send_jitter = send_jitter.unwrap_or(common.context.send_jitter);
    let (paths, multipath) = route?;
    let first = Flow {
        name: flow.name.get()?.clone(),
        index: 0,
        paths,
        multipath,
        controller: controller?,
        transport,
        send_jitter,
        workload: workload?,
        program: program?,
        after: None,
        start: Time::ZERO,
        stop,
    };
    let one = |(index, start)| Flow { index, start, ..first.clone() };
    Some(starts.into_iter().enumerate().map(one).collect())
}

fn transport(flow: &mut FlowFile, bases: &Transports, reading: &mut Reading<'_>) -> Config {
    let several = flow.paths.is_given();
    let base = if several { bases.several } else { bases.single };
    let mut config = transport::check(&flow.transport, base, several, reading);
    transport::bound(&mut config, &flow.transport, reading);
    if several {
        transport::fill_several(&mut flow.transport, &config);
    }
    config
}

/// Checks a misbehaving receiver. It does not deliver everything that it acknowledges, so only bulk
/// works with it.
fn check_liar(span: Span, several: bool, workload: Option<&Workload>, reading: &mut Reading<'_>) {
    if several {
        let message = "a misbehaving receiver needs a single path";
        reading.problem(span, message, "write path in place of paths, or remove receiver");
    }
    if workload.is_some_and(|workload| *workload != Workload::Bulk) {
        let message = "a misbehaving receiver works only with bulk: other workloads would wait \
                       for the lost data";
        reading.problem(span, message, "write workload = \"bulk\", or remove receiver");
    }
}

/// Imports a controller that is a class in a file. In the resolved scenario it is called by its
/// name in records, and the file is beside it.
fn import(
    cc: &mut ControllerFile,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<()> {
    let Some((file, class)) = class_file(&cc.name.value) else { return Some(()) };
    match inputs.class(file, class, reading) {
        Ok(name) => cc.name.value = name,
        Err(error) => {
            reading.problem(cc.name.span, error.problem, error.advice);
            return None;
        }
    }
    Some(())
}

/// Reads the files that a controller's parameters name. Returns the parameters with the files'
/// contents; `None` if one cannot be read.
fn files(
    cc: &mut ControllerFile,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Vec<(String, Value)>> {
    let Algorithms { controllers, .. } = reading.algorithms;
    let Ok((entry, _)) = controllers.resolve(&Selection::named(&cc.name.value)) else {
        return Some(Vec::new());
    };
    let mut texts = Vec::new();
    for parameter in entry.parameters.iter().filter(|it| it.kind == Kind::File) {
        let given = cc.parameters.iter_mut().find(|(name, _)| name.value == parameter.name);
        let Some((_, At { value, span })) = given else { continue };
        let Value::Text(name) = value else { continue };
        if name == parameter.default {
            continue;
        }
        let written = At { value: name.clone(), span: *span };
        let text = inputs.file(&written, parameter.name, reading)?;
        *value = Value::Text(inputs.resolved(&written.value));
        texts.push((parameter.name.to_string(), Value::Text(text)));
    }
    Some(texts)
}

/// Checks a selection from a registry and its parameters. Parameters that name files hold the
/// files' contents.
pub(super) fn selection<C: Choice>(
    file: &SelectionFile<C>,
    files: Vec<(String, Value)>,
    check: impl Fn(&Selection) -> Result<(), SelectionError>,
    reading: &mut Reading<'_>,
) -> Option<Selection> {
    let parameters = file.parameters.iter();
    let mut selection = Selection {
        name: file.name.value.clone(),
        parameters: parameters.map(|(name, at)| (name.value.clone(), at.value.clone())).collect(),
    };
    selection.parameters.extend(files);
    let Err(error) = check(&selection) else { return Some(selection) };
    let at_fault = |(name, _): &&(At<String>, _)| Some(&name.value) == error.parameter.as_ref();
    let span = file.parameters.iter().find(at_fault).map_or(file.name.span, |(name, _)| name.span);
    reading.problem(span, error.problem, error.advice);
    None
}

/// Returns the start time of each flow of a group.
fn starts(
    flow: &mut FlowFile,
    group: &Group,
    common: &Common<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Time> {
    let duration = common.context.duration;
    in_range(&flow.start, "the start", Time::ZERO, duration, reading);
    in_range(&flow.start_interval, "the start interval", Time::ZERO, duration, reading);
    in_range(&flow.start_jitter, "the start jitter", Time::ZERO, duration, reading);
    let places = [flow.start_interval.span(), flow.start.span(), flow.start_jitter.span()];
    let place = places.into_iter().flatten().next().unwrap_or(group.span);
    let start = flow.start.fill(Time::ZERO);
    let interval = flow.start_interval.fill(Time::ZERO);
    let jitter = flow.start_jitter.fill(common.start_jitter);

    let name = flow.name.get().map_or("", String::as_str);
    let mut rng = jitter_stream(common.context.seed, name);
    let one = |index: u64| {
        let planned = u128::from(start.as_nanos())
            + u128::from(interval.as_nanos()) * u128::from(index)
            + u128::from(up_to(&mut rng, jitter.as_nanos()));
        Time::from_nanos(u64::try_from(planned).unwrap_or(u64::MAX))
    };
    let starts: Vec<Time> = (0..group.count).map(one).collect();
    let last = starts.iter().max().copied().unwrap_or(Time::ZERO);
    if last >= duration {
        let message = format!("the last flow starts at {last}, but the run ends at {}", duration);
        reading.problem(place, message, "write an earlier start, or a longer duration");
    } else if let Some(stop) = flow.stop.at()
        && stop.value <= last
    {
        let message = format!("the flow stops at {}, but starts at {last}", stop.value);
        reading.problem(stop.span, message, format!("write a time after {last}"));
    }
    starts
}
