//! Rate, RTT and queue over time, of both runs over one axis.

use super::PlayRun;
use crate::chart::{Chart, Columns, Horizontal, Kind, SIZE, Source, Vertical};
use crate::series::{full_bps, usual_gap};
use knee_record::{FlowSample, LinkSample};
use std::collections::BTreeMap;

/// Colours of the groups of A, which are cool, and of B, which are warm.
const COLOURS: [[&str; super::GROUPS_MAX]; 2] =
    [["c0", "c5", "c2", "c7"], ["c1", "c4", "c3", "c6"]];

/// The columns of the charts, by name.
#[derive(Default)]
struct Table(BTreeMap<String, Vec<u64>>);

impl Columns for Table {
    fn column(&self, place: &str) -> Option<&[u64]> {
        self.0.get(place).map(Vec::as_slice)
    }

    fn picked(&self) -> usize {
        0
    }

    fn tints(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

/// A curve of each chart.
struct Curve {
    label: String,
    class: &'static str,
    source: Source,
}

/// Returns the charts as SVG: goodput, RTT, queueing delay.
pub(super) fn charts(runs: &[PlayRun<'_>]) -> Vec<String> {
    let mut table = Table::default();
    let (mut rates, mut rtts, mut queues) = (Vec::new(), Vec::new(), Vec::new());
    let mut interval_ns = 1;
    for (run, colours) in runs.iter().zip(COLOURS) {
        for (group, class) in run.groups().into_iter().zip(colours) {
            let name = format!("{} {}", run.name, group.name);
            let [of, rtt] = flows(run, &name, &group.flows, &mut table, &mut interval_ns);
            rates.push(Curve { label: group.label.clone(), class, source: of });
            rtts.push(Curve { label: group.label, class, source: rtt });
        }
        if let Some(source) = queue(run, &mut table) {
            queues.push(Curve { label: run.name.to_string(), class: colours[0], source });
        }
    }
    let whole = runs.iter().map(|run| run.path.duration_ns).max().unwrap_or(0);
    let time = Horizontal::time(0, whole);
    let full = common(runs, |run| run.records.flows.first().map_or(0, full_bps));
    let empty = common(runs, |run| run.records.flows.first().map_or(0, |flow| flow.base_rtt_ns));
    let rate = chart(&table, &time, interval_ns, ("rate", "goodput", Kind::Rate), rates);
    let rtt = chart(&table, &time, interval_ns, ("rtt", "RTT", Kind::Time), rtts);
    let queue = chart(&table, &time, interval_ns, ("queue", "queueing delay", Kind::Time), queues);
    [(rate, "path full", full), (rtt, "empty path", empty), (queue, "", 0)]
        .map(|(mut chart, level, value)| {
            chart.level(level, vec![value as f64]);
            chart.finished().svg(&table, true)
        })
        .into()
}

/// Returns the value that all runs have; zero if they differ.
fn common(runs: &[PlayRun<'_>], value: impl Fn(&PlayRun<'_>) -> u64) -> u64 {
    let mut values = runs.iter().map(value);
    let first = values.next().unwrap_or(0);
    if values.all(|other| other == first) { first } else { 0 }
}

fn chart(
    table: &Table,
    time: &Horizontal,
    interval_ns: u64,
    (name, title, kind): (&str, &str, Kind),
    curves: Vec<Curve>,
) -> Chart {
    let plain = Vertical { divisor: 1.0, unit: "", title: String::new(), from_zero: true };
    let mut probe = Chart::new("", SIZE.0, time.clone(), plain);
    probe.interval_ns = interval_ns;
    let largest = curves.iter().map(|curve| probe.largest(table, &curve.source));
    let mut y = Vertical::of(title, kind, largest.fold(0.0, f64::max));
    // The axis does not jump while a slider moves.
    y.from_zero = true;
    let mut chart = Chart::new(name, SIZE.0, time.clone(), y);
    chart.interval_ns = interval_ns;
    curves.into_iter().for_each(|curve| chart.curve(&curve.label, curve.class, curve.source));
    chart
}

/// Adds the columns of a group: what each flow delivered, and the median of their RTTs.
fn flows(
    run: &PlayRun<'_>,
    name: &str,
    flows: &[u32],
    table: &mut Table,
    interval_ns: &mut u64,
) -> [Source; 2] {
    let fields = FlowSample::FIELDS;
    let mut delivered = Vec::new();
    let mut rtts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for flow in flows {
        let tracks = run.records.samples.tracks();
        for ((_, path), rows) in tracks.range((*flow, 0)..=(*flow, u16::MAX)) {
            let times = rows.times(0);
            *interval_ns = usual_gap(&times).max(*interval_ns);
            for (time, rtt) in times.iter().zip(rows.column(fields.rtt_ns, 0)) {
                let known = rtts.entry(*time).or_default();
                known.extend(Some(rtt).filter(|rtt| *rtt > 0));
            }
            let place = |what: &str| format!("{name} {flow} {path} {what}");
            delivered.push([place("time"), place("delivered")]);
            table.0.insert(place("time"), times);
            table.0.insert(place("delivered"), rows.column(fields.delivered_bytes, 0));
        }
    }
    let (time, rtt) = (format!("{name} time"), format!("{name} rtt"));
    table.0.insert(time.clone(), rtts.keys().copied().collect());
    let median = |mut rtts: Vec<u64>| match rtts.len() {
        0 => 0,
        count => *rtts.select_nth_unstable(count / 2).1,
    };
    table.0.insert(rtt.clone(), rtts.into_values().map(median).collect());
    [Source::Rate { of: delivered }, Source::Gauge { x: time, y: rtt, zero: false }]
}

/// Adds the columns of the path's slowest link; `None` if it has no samples.
fn queue(run: &PlayRun<'_>, table: &mut Table) -> Option<Source> {
    let number = run.records.link_names.iter().position(|name| *name == run.path.link)?;
    let rows = run.records.links.tracks().get(&(number as u32, 0))?;
    let (time, delay) = (format!("{} time", run.name), format!("{} queue", run.name));
    table.0.insert(time.clone(), rows.times(0));
    table.0.insert(delay.clone(), rows.column(LinkSample::FIELDS.queue_delay_ns, 0));
    Some(Source::Gauge { x: time, y: delay, zero: true })
}
