//! Flows: groups expanded, starts drawn, controllers checked.

use super::paths::Way;
use super::{check_name, in_range, transport};
use crate::file::{ControllerFile, FlowFile, ScenarioFile, WorkloadFile};
use crate::model::{Flow, Workload};
use crate::read::{At, Entry};
use crate::source::Reading;
use crate::suggest;
use crate::tree::Span;
use knee_cc::Selection;
use knee_transport::Config;
use knee_units::{Bytes, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const FLOWS_MAX: u64 = 100_000;
const FILE_BYTES_MAX: Bytes = Bytes::new(1_000_000_000_000_000);
/// Random streams of the start jitter, one per group; the simulator's own
/// streams are numbered far below.
const JITTER_STREAMS: u64 = 1 << 62;

/// What all groups share.
struct Common<'c> {
    ways: &'c [Way],
    duration: Time,
    seed: u64,
    start_jitter: Time,
    transport: Config,
}

pub(super) fn check(
    file: &mut ScenarioFile,
    ways: &[Way],
    duration: Time,
    seed: u64,
    transport: Config,
    reading: &mut Reading<'_>,
) -> Vec<Flow> {
    in_range(&file.start_jitter, "the start jitter", Time::ZERO, duration, reading);
    let start_jitter = file.start_jitter.fill(Time::ZERO);
    let common = Common { ways, duration, seed, start_jitter, transport };
    let mut flows = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut total = 0u64;
    for (number, entry) in file.flow.0.iter_mut().enumerate() {
        let Entry::Given(At { value: flow, span }) = entry else { continue };
        name(flow, *span, &mut known, reading);
        let count = count(flow, &mut total, reading);
        flows.extend(group(flow, *span, number, count, &common, reading).unwrap_or_default());
    }
    if file.flow.0.is_empty() {
        let help = "add [[flow]] with cc = \"cubic\"";
        reading.problem(Span::default(), "the scenario has no flow", help);
    }
    flows
}

/// The group's name: unlike every other's, by default its controller's.
fn name(flow: &mut FlowFile, span: Span, known: &mut Vec<String>, reading: &mut Reading<'_>) {
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
    known.push(name);
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

fn group(
    flow: &mut FlowFile,
    span: Span,
    number: usize,
    count: u64,
    common: &Common<'_>,
    reading: &mut Reading<'_>,
) -> Option<Vec<Flow>> {
    let path = path(flow, span, common.ways, reading);
    let controller = flow.cc.get().and_then(|cc| controller(cc, reading));
    let transport = transport::check(&flow.transport, common.transport, reading);
    let workload = workload(flow, reading);
    let starts = starts(flow, span, number, count, common, reading);
    let stop = flow.stop.get().copied();
    let first = Flow {
        name: flow.name.get()?.clone(),
        index: 0,
        path: path?,
        controller: controller?,
        transport,
        workload,
        start: Time::ZERO,
        stop,
    };
    let one = |(index, start)| Flow { index, start, ..first.clone() };
    Some(starts.into_iter().enumerate().map(one).collect())
}

fn path(flow: &mut FlowFile, span: Span, ways: &[Way], reading: &mut Reading<'_>) -> Option<usize> {
    let known = || ways.iter().map(|way| way.name.as_str());
    match &flow.path {
        Entry::Broken => None,
        Entry::Given(At { value, span }) => {
            let index = known().position(|name| name == value);
            if index.is_none() {
                let message = format!("there is no path \"{value}\"");
                reading.problem(*span, message, suggest::instead(value, known()));
            }
            index
        }
        Entry::Absent => match ways {
            [only] => {
                flow.path.fill(only.name.clone());
                Some(0)
            }
            [] => {
                let help = "add [path.main] with forward = [\"name of a link\"]";
                reading.problem(span, "there is no path for this flow", help);
                None
            }
            _ => {
                let help = suggest::instead("", known());
                reading.problem(span, "this flow does not say which path it takes", help);
                None
            }
        },
    }
}

fn controller(file: &ControllerFile, reading: &mut Reading<'_>) -> Option<Selection> {
    let parameters = file.parameters.iter();
    let selection = Selection {
        name: file.name.value.clone(),
        parameters: parameters.map(|(name, at)| (name.value.clone(), at.value.clone())).collect(),
    };
    let Err(error) = knee_cc::check(&selection) else { return Some(selection) };
    let at_fault = |(name, _): &&(At<String>, _)| Some(&name.value) == error.parameter.as_ref();
    let span = file.parameters.iter().find(at_fault).map_or(file.name.span, |(name, _)| name.span);
    reading.problem(span, error.problem, error.advice);
    None
}

fn workload(flow: &mut FlowFile, reading: &mut Reading<'_>) -> Workload {
    let span = flow.workload.span().unwrap_or_default();
    match flow.workload.fill(WorkloadFile::Bulk) {
        WorkloadFile::Bulk => Workload::Bulk,
        WorkloadFile::File(size) => {
            let entry = Entry::Given(At { value: size, span });
            in_range(&entry, "the file", Bytes::new(1), FILE_BYTES_MAX, reading);
            Workload::File(size.get())
        }
    }
}

/// When each flow of a group starts.
fn starts(
    flow: &mut FlowFile,
    span: Span,
    number: usize,
    count: u64,
    common: &Common<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Time> {
    in_range(&flow.start, "the start", Time::ZERO, common.duration, reading);
    in_range(&flow.start_interval, "the start interval", Time::ZERO, common.duration, reading);
    in_range(&flow.start_jitter, "the start jitter", Time::ZERO, common.duration, reading);
    let places = [flow.start_interval.span(), flow.start.span(), flow.start_jitter.span()];
    let place = places.into_iter().flatten().next().unwrap_or(span);
    let start = flow.start.fill(Time::ZERO);
    let interval = flow.start_interval.fill(Time::ZERO);
    let jitter = flow.start_jitter.fill(common.start_jitter);

    let mut rng = ChaCha8Rng::seed_from_u64(common.seed);
    rng.set_stream(JITTER_STREAMS + number as u64);
    let one = |index: u64| {
        let planned = u128::from(start.as_nanos())
            + u128::from(interval.as_nanos()) * u128::from(index)
            + u128::from(below(&mut rng, jitter.as_nanos()));
        Time::from_nanos(u64::try_from(planned).unwrap_or(u64::MAX))
    };
    let starts: Vec<Time> = (0..count).map(one).collect();
    let last = starts.iter().max().copied().unwrap_or(Time::ZERO);
    if last >= common.duration {
        let message =
            format!("the last flow starts at {last}, the run ends at {}", common.duration);
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
