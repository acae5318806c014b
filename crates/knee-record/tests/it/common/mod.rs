//! Records small enough to calculate by hand.

// Each test binary uses only part of this module.
use knee_record::{
    FlowRecord, FlowSample, LinkSample, ObjectRecord, Rates, Records, Rows, Timed, TransferRecord,
};
use knee_scenario::{Claim, Embedded, Measure, Source, parse};

pub const MILLISECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
/// Time between two samples.
pub const INTERVAL: u64 = 100 * MILLISECOND;

/// A flow that runs from `start_s` to `end_s` and has delivered `delivered(t)` bytes t seconds
/// after its start. The bytes sent are those delivered.
pub struct Flow {
    pub name: &'static str,
    pub index: u32,
    pub start_s: f64,
    pub end_s: f64,
    pub delivered: fn(f64) -> f64,
}

/// Returns flow `index` of group `name`, from 0 s to 10 s.
pub fn flow(name: &'static str, index: u32, delivered: fn(f64) -> f64) -> Flow {
    Flow { name, index, start_s: 0.0, end_s: 10.0, delivered }
}

/// Builds records of some flows, sampled every 100 ms from their start: base RTT 60 ms, path rate
/// 10 Mbit/s, 1448 payload bytes in 1500.
pub fn records(flows: &[Flow]) -> Records {
    let mut records = Records { end_ns: 10 * SECOND, ..Records::default() };
    for (number, flow) in flows.iter().enumerate() {
        let number = number as u32;
        records.flows.push(flow_record(number, flow));
        records.samples.extend(flow_samples(number, flow));
        records.end_ns = records.end_ns.max(nanos(flow.end_s));
    }
    let over: Vec<&[usize]> = flows.iter().map(|_| [0].as_slice()).collect();
    if !over.is_empty() {
        records.rates = rates(&["rate = \"10 Mbit/s\""], &over);
    }
    records
}

fn flow_record(number: u32, flow: &Flow) -> FlowRecord {
    let bytes = (flow.delivered)(flow.end_s - flow.start_s) as u64;
    FlowRecord {
        flow: number,
        name: flow.name.to_string(),
        index: flow.index,
        cc: "reno".to_string(),
        path: "main".to_string(),
        start_ns: nanos(flow.start_s),
        end_ns: nanos(flow.end_s),
        delivered_bytes: bytes,
        delivered_packets: bytes / 1448,
        sent_bytes: bytes,
        rtt_min_ns: 60 * MILLISECOND,
        rtt_max_ns: 200 * MILLISECOND,
        base_rtt_ns: 60 * MILLISECOND,
        path_rate_bps: 10_000_000,
        header_overhead: 1500.0 / 1448.0,
        ..FlowRecord::default()
    }
}

fn flow_samples(number: u32, flow: &Flow) -> Vec<FlowSample> {
    let (start, end) = (nanos(flow.start_s), nanos(flow.end_s));
    let count = (end - start) / INTERVAL;
    let times = (1..=count).map(|step| step * INTERVAL);
    let sample = |time: u64| {
        let bytes = (flow.delivered)(time as f64 / 1e9) as u64;
        FlowSample {
            flow: number,
            time_ns: start + time,
            delivered_bytes: bytes,
            sent_bytes: bytes,
            rtt_ns: 60 * MILLISECOND,
            srtt_ns: 60 * MILLISECOND,
            phase: "congestion_avoidance",
            ..FlowSample::default()
        }
    };
    times.map(sample).collect()
}

/// Changes each row.
pub fn change<R: Timed>(rows: &mut Rows<R>, mut change: impl FnMut(&mut R)) {
    let changed = rows.iter().map(|mut row| {
        change(&mut row);
        row
    });
    *rows = changed.collect();
}

/// Adds one link, sampled every 100 ms for 10 s; `row(t)` returns the sample at t seconds.
pub fn with_link(mut records: Records, row: impl Fn(f64) -> LinkSample) -> Records {
    records.link_names = vec!["bottleneck".to_string()];
    let times = (1..=100).map(|step| step * INTERVAL);
    let rows = times.map(|time| LinkSample { time_ns: time, ..row(time as f64 / 1e9) });
    records.links = rows.collect();
    records
}

/// Builds the rates of paths that each have one link, given as lines of TOML, and the paths of each
/// flow.
pub fn rates(links: &[&str], flows: &[&[usize]]) -> Rates {
    let mut text = "duration = \"100 s\"\n".to_string();
    for (number, link) in links.iter().enumerate() {
        text += &format!(
            "[link.l{number}]\n{link}\n[path.p{number}]\nforward = [\"l{number}\"]\n\
             reverse_delay = \"1 ms\"\n"
        );
    }
    for (number, paths) in flows.iter().enumerate() {
        let names: Vec<String> = paths.iter().map(|path| format!("\"p{path}\"")).collect();
        let over = match names.as_slice() {
            [one] => format!("path = {one}"),
            several => format!("scheduler = \"minrtt\"\npaths = [{}]", several.join(", ")),
        };
        text += &format!("[[flow]]\nname = \"f{number}\"\ncc = \"reno\"\n{over}\n");
    }
    let source = Source { name: "rates.toml", loader: &Embedded(&[]) };
    Rates::of(&parse(&text, &source, &[]).expect("it is a scenario"))
}

pub fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// An object that arrived `completed_ms` after 0 s, if it did.
pub fn object(number: u32, completed_ms: Option<u64>) -> ObjectRecord {
    let completed_ns = completed_ms.map(|at| at * MILLISECOND);
    ObjectRecord { number, completed_ns, size_bytes: 1000, ..ObjectRecord::default() }
}

/// A transfer of the first flow, with its start and its duration.
pub fn transfer(number: u32, size_bytes: u64, start_ms: u64, took: Option<u64>) -> TransferRecord {
    TransferRecord {
        number,
        start_ns: start_ms * MILLISECOND,
        size_bytes,
        completion_ns: took,
        ..TransferRecord::default()
    }
}

/// A claim without bounds, recorded as holding.
pub fn claim(measure: Measure, of: &str) -> Claim {
    Claim {
        id: String::new(),
        says: "a sentence".to_string(),
        measure,
        of: of.to_string(),
        relative_to: None,
        at_least: None,
        at_most: None,
        from: None,
        until: None,
        source: "a study".to_string(),
        source_figure: None,
        recorded: knee_scenario::Outcome::Holds,
        on_record: None,
        finding: None,
    }
}

/// Asserts that two values are equal except for rounding.
#[track_caller]
pub fn close(value: impl Into<Option<f64>>, expected: f64) {
    let value = value.into().expect("it is measurable");
    assert!((value - expected).abs() <= 1e-6 * expected.abs(), "{value} is not {expected}");
}
