//! Flows: groups expanded, starts drawn, controllers checked.

use super::inputs::Inputs;
use super::paths::Way;
use super::{check_name, in_range, multipath, transport, workload};
use crate::algorithms::Algorithms;
use crate::file::{Choice, FlowFile, ScenarioFile, SelectionFile};
use crate::model::Flow;
use crate::read::{At, Entry};
use crate::source::Reading;
use crate::streams::jitter_stream;
use crate::tree::Span;
use knee_registry::{Selection, SelectionError};
use knee_transport::Config;
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::collections::BTreeSet;

const FLOWS_MAX: u64 = 100_000;

/// What flows begin with that say nothing of their transport.
pub(super) struct Transports {
    /// Over one path.
    pub single: Config,
    /// Over several.
    pub several: Config,
}

/// What groups of flows are checked against.
pub(super) struct Plan<'p> {
    pub ways: &'p [Way],
    pub duration: Time,
    pub seed: u64,
    pub transport: Transports,
}

/// What all groups share.
struct Common<'p> {
    plan: Plan<'p>,
    start_jitter: Time,
}

pub(super) fn check(
    file: &mut ScenarioFile,
    plan: Plan<'_>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Flow> {
    in_range(&file.start_jitter, "the start jitter", Time::ZERO, plan.duration, reading);
    let start_jitter = file.start_jitter.fill(Time::ZERO);
    let common = Common { plan, start_jitter };
    let mut flows = Vec::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut total = 0u64;
    for entry in &mut file.flow.0 {
        let Entry::Given(At { value: flow, span }) = entry else { continue };
        name(flow, *span, &mut known, reading);
        let count = count(flow, &mut total, reading);
        let group = Group { span: *span, count };
        flows.extend(expand(flow, &group, &common, inputs, reading).unwrap_or_default());
    }
    if file.flow.0.is_empty() {
        let help = "add [[flow]] with cc = \"cubic\"";
        reading.problem(Span::default(), "the scenario has no flow", help);
    }
    flows
}

/// The group's name: unlike every other's, by default its controller's.
fn name(flow: &mut FlowFile, span: Span, known: &mut BTreeSet<String>, reading: &mut Reading<'_>) {
    let place = flow.name.span().unwrap_or(span);
    let controller = flow.cc.get().map(|cc| cc.name.value.clone());
    if flow.name.get().is_none() && controller.is_none() {
        return;
    }
    let given = flow.name.is_given();
    let name = flow.name.fill(controller.unwrap_or_default());
    check_name(&name, place, reading);
    if known.contains(&name) {
        let (message, help) = if given {
            (format!("two flows are called \"{name}\""), "write another name")
        } else {
            (
                format!("a flow without a name is called \"{name}\", another one is, too"),
                "add a name",
            )
        };
        reading.problem(place, message, help);
    }
    known.insert(name);
}

/// How many flows; none of them when the scenario has too many.
fn count(flow: &mut FlowFile, total: &mut u64, reading: &mut Reading<'_>) -> u64 {
    in_range(&flow.count, "the number of flows", 1, FLOWS_MAX, reading);
    let span = flow.count.span().unwrap_or_default();
    let count = flow.count.fill(1);
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
    let route = multipath::check(flow, group.span, common.plan.ways, reading);
    let Algorithms { controllers, .. } = reading.algorithms;
    let known = |chosen: &Selection| controllers.check(chosen);
    let controller = flow.cc.get().and_then(|cc| selection(cc, known, reading));
    let transport = transport(flow, &common.plan.transport, reading);
    let starts = starts(flow, group, common, reading);
    let stop = flow.stop.get().copied();
    let span = flow.workload.span().unwrap_or(group.span);
    let first = starts.first().copied().unwrap_or(Time::ZERO);
    let life = stop.unwrap_or(common.plan.duration).saturating_sub(first);
    let room = workload::Room { span, life, flows: group.count };
    let workload = workload::check(&mut flow.workload, &room, inputs, reading);
    let (paths, multipath) = route?;
    let first = Flow {
        name: flow.name.get()?.clone(),
        index: 0,
        paths,
        multipath,
        controller: controller?,
        transport,
        workload: workload?,
        start: Time::ZERO,
        stop,
    };
    let one = |(index, start)| Flow { index, start, ..first.clone() };
    Some(starts.into_iter().enumerate().map(one).collect())
}

fn transport(flow: &mut FlowFile, bases: &Transports, reading: &mut Reading<'_>) -> Config {
    let several = flow.paths.is_given();
    let base = if several { bases.several } else { bases.single };
    let config = transport::check(&flow.transport, base, several, reading);
    if several {
        transport::fill_several(&mut flow.transport, &config);
    }
    config
}

/// What a registry knows, with parameters that it takes.
pub(super) fn selection<C: Choice>(
    file: &SelectionFile<C>,
    check: impl Fn(&Selection) -> Result<(), SelectionError>,
    reading: &mut Reading<'_>,
) -> Option<Selection> {
    let parameters = file.parameters.iter();
    let selection = Selection {
        name: file.name.value.clone(),
        parameters: parameters.map(|(name, at)| (name.value.clone(), at.value.clone())).collect(),
    };
    let Err(error) = check(&selection) else { return Some(selection) };
    let at_fault = |(name, _): &&(At<String>, _)| Some(&name.value) == error.parameter.as_ref();
    let span = file.parameters.iter().find(at_fault).map_or(file.name.span, |(name, _)| name.span);
    reading.problem(span, error.problem, error.advice);
    None
}

/// When each flow of a group starts.
fn starts(
    flow: &mut FlowFile,
    group: &Group,
    common: &Common<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Time> {
    let duration = common.plan.duration;
    in_range(&flow.start, "the start", Time::ZERO, duration, reading);
    in_range(&flow.start_interval, "the start interval", Time::ZERO, duration, reading);
    in_range(&flow.start_jitter, "the start jitter", Time::ZERO, duration, reading);
    let places = [flow.start_interval.span(), flow.start.span(), flow.start_jitter.span()];
    let place = places.into_iter().flatten().next().unwrap_or(group.span);
    let start = flow.start.fill(Time::ZERO);
    let interval = flow.start_interval.fill(Time::ZERO);
    let jitter = flow.start_jitter.fill(common.start_jitter);

    let name = flow.name.get().map_or("", String::as_str);
    let mut rng = jitter_stream(common.plan.seed, name);
    let one = |index: u64| {
        let planned = u128::from(start.as_nanos())
            + u128::from(interval.as_nanos()) * u128::from(index)
            + u128::from(below(&mut rng, jitter.as_nanos()));
        Time::from_nanos(u64::try_from(planned).unwrap_or(u64::MAX))
    };
    let starts: Vec<Time> = (0..group.count).map(one).collect();
    let last = starts.iter().max().copied().unwrap_or(Time::ZERO);
    if last >= duration {
        let message = format!("the last flow starts at {last}, the run ends at {}", duration);
        reading.problem(place, message, "write an earlier start, or a longer duration");
    } else if let Some(stop) = flow.stop.at()
        && stop.value <= last
    {
        let message = format!("the flow stops at {}, but starts at {last}", stop.value);
        reading.problem(stop.span, message, format!("write a time after {last}"));
    }
    starts
}

/// A number from zero to `max`, evenly: the upper half of a product (Lemire
/// 2019, without rejection; the bias is below 2^-20 for any jitter).
fn below(rng: &mut ChaCha8Rng, max: u64) -> u64 {
    ((u128::from(rng.next_u64()) * (u128::from(max) + 1)) >> 64) as u64
}
