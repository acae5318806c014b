//! Each side over time: all flows of one run together.

use crate::aggregate::distribution_of;
use crate::bands::band;
use crate::chart::Chart;
use crate::chart::{Columns, Horizontal, Kind, SIZE, Vertical};
use crate::charts::{distribution, gauge, rate, rate_axis};
use crate::encode::Column;
use crate::series::{Embedded, FlowSeries, Key, Shown};
use knee_record::{FlowSample, Records, Track};

const COLOURS: usize = 8;

/// A run over time: joint goodput of its flows, and the median of their RTTs.
#[derive(Debug)]
pub struct ComparedSeries {
    /// Side to which it belongs, from zero.
    side: usize,
    flow: FlowSeries,
    end_ns: u64,
    /// All sampled RTTs.
    rtts_ns: Vec<u64>,
}

impl ComparedSeries {
    /// Takes the series from the records of a side's first run.
    pub fn new(side: usize, name: &str, records: &Records) -> ComparedSeries {
        let by_flow = records.samples.tracks();
        let keys: Vec<Key> = by_flow.keys().copied().collect();
        let together = band(name, &keys, by_flow, records.end_ns);
        let times = together.time_ns.numbers().to_vec();
        let delivered: Vec<u64> = times
            .iter()
            .map(|at| by_flow.values().map(|rows| delivered(rows, *at)).sum())
            .collect();
        let rtts = records.samples.iter().map(|row| row.rtt_ns).filter(|rtt| *rtt > 0);
        let full = records.flows.first().map_or(0, crate::series::full_bps);
        let base = records.flows.first().map_or(0, |flow| flow.base_rtt_ns);
        ComparedSeries {
            side,
            end_ns: records.end_ns,
            rtts_ns: rtts.collect(),
            flow: FlowSeries {
                label: name.to_string(),
                delivered_bytes: Column::values(&delivered),
                rtt_ns: together.rtt_ns.map(|edges| edges.median),
                window_bytes: None,
                in_flight_bytes: None,
                slow_start_threshold_bytes: None,
                bandwidth_estimate_bps: None,
                min_rtt_estimate_ns: None,
                phases: None,
                base_rtt_ns: base,
                full_bps: full,
                bdp_bytes: 0,
                interval_ns: times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1),
                time_ns: together.time_ns,
            },
        }
    }
}

/// Returns the counter at a time, interpolated between two samples.
fn delivered(rows: &Track<FlowSample>, at: u64) -> u64 {
    let (before, after) = rows.around(at + 1);
    let (t0, d0) = before.map_or((0, 0), |row| (row.time_ns, row.delivered_bytes));
    let Some(next) = after else { return d0 };
    let part = (at - t0) as f64 / (next.time_ns - t0).max(1) as f64;
    d0 + (next.delivered_bytes.saturating_sub(d0) as f64 * part) as u64
}

/// Returns the columns of all sides and their charts; both are empty if no side has samples.
pub(super) fn drawn(series: &[ComparedSeries]) -> (Embedded, Vec<Chart>) {
    let distributions = series.iter().map(|one| (one.flow.label.clone(), one.rtts_ns.clone()));
    let embedded = Embedded {
        end_ns: series.iter().map(|one| one.end_ns).max().unwrap_or(0),
        rates_vary: false,
        picked: 0,
        rtt_distribution: distribution_of(distributions.collect()),
        flows: series.iter().map(|one| one.flow.clone()).collect(),
        groups: Vec::new(),
        phases: Vec::new(),
        multipath: Vec::new(),
        links: Vec::new(),
    };
    let shown = Shown {
        alone: (0..embedded.flows.len()).collect(),
        flows_sampled: embedded.flows.len(),
        bucket: 1,
        links_left_out: Vec::new(),
        embedded,
    };
    let mut charts = Vec::new();
    charts.extend(goodput(&shown.embedded));
    charts.extend(rtt(&shown.embedded));
    charts.extend(distribution(&shown));
    let number = |chart: &mut Chart| {
        for (curve, one) in chart.curves.iter_mut().zip(series) {
            curve.class = format!("c{}", one.side % COLOURS);
        }
    };
    charts.iter_mut().for_each(number);
    (shown.embedded, charts)
}

fn owners(of: &Embedded) -> Vec<(String, &FlowSeries)> {
    of.flows.iter().enumerate().map(|(at, flow)| (format!("flows.{at}"), flow)).collect()
}

fn goodput(of: &Embedded) -> Option<Chart> {
    let time = Horizontal::time(0, of.end_ns);
    let owners = owners(of);
    if owners.iter().all(|(_, flow)| flow.delivered_bytes.is_none()) {
        return None;
    }
    let interval = of.flows.iter().map(|flow| flow.interval_ns).max().unwrap_or(1).max(1);
    let source = |owner: &String| rate(std::slice::from_ref(owner));
    let curves: Vec<_> = owners.iter().map(|(owner, _)| (owner.clone(), source(owner))).collect();
    let y = rate_axis("goodput", &time, of, &curves, interval);
    let mut chart = Chart::new("rate", SIZE.0, time, y);
    chart.interval_ns = interval;
    for (owner, flow) in &owners {
        chart.curve(&flow.label, "c0", source(owner));
    }
    Some(chart.finished())
}

fn rtt(of: &Embedded) -> Option<Chart> {
    let owners = owners(of);
    let columns = owners.iter().filter_map(|(owner, _)| of.column(&format!("{owner}.rtt_ns")));
    let largest = columns.flatten().copied().max().filter(|largest| *largest > 0)?;
    let y = Vertical::of("RTT", Kind::Time, largest as f64);
    let mut chart = Chart::new("rtt", SIZE.0, Horizontal::time(0, of.end_ns), y);
    for (owner, flow) in &owners {
        chart.curve(&flow.label, "c0", gauge(owner, "rtt_ns", false));
    }
    Some(chart.finished())
}
