//! The strips of a flow over several paths: one per path, and the data waiting at the receiver for
//! another path.

use crate::encode::Column;
use crate::phases::Phases;
use crate::series::{Detail, FlowSeries, flow_series};
use knee_present::words::{percent, rate, time_us};
use knee_record::{FlowRecord, FlowSample, FlowView, PathView, Records, RunView, Summary};
use knee_units::Time;
use knee_units::statistics::Thinning;
use serde::Serialize;

/// Largest number of flows over several paths, and of paths of each, that are drawn.
const FLOWS_MAX: usize = 4;
const DRAWN_MAX: usize = 8;

/// What the page embeds of such a flow.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    /// A series for each path.
    pub paths: Vec<FlowSeries>,
    /// Sampling times of the connection.
    pub time_ns: Column,
    /// Data waiting at the receiver; `None` if there never was any.
    pub reassembly_bytes: Option<Column>,
}

/// Text around its plots.
#[derive(Debug, Serialize)]
pub(crate) struct Strips {
    pub title: String,
    pub facts: String,
    pub paths: Vec<Strip>,
    /// Whether data ever waited at the receiver.
    pub reassembly: bool,
}

/// One path.
#[derive(Debug, Serialize)]
pub(crate) struct Strip {
    pub name: String,
    pub facts: String,
    /// Whether it has samples.
    pub drawn: bool,
}

/// Returns the flows over several paths, in the order of the scenario, and the labels of those beyond
/// the limit.
pub(crate) fn shown(
    summary: &Summary,
    records: &Records,
    detail: Detail,
) -> (Vec<Series>, Vec<Strips>, Vec<String>) {
    let run = RunView::new(records, Time::from_micros(summary.warmup_us as u64));
    let flows = run.flows.iter().zip(&summary.flows).filter(|(flow, _)| !flow.paths.is_empty());
    let left_out = flows.clone().skip(FLOWS_MAX).map(|(flow, _)| flow.record.label()).collect();
    let drawn = flows.take(FLOWS_MAX);
    let (series, strips) =
        drawn.map(|(flow, said)| (series(flow, detail), strips(flow, said))).unzip();
    (series, strips, left_out)
}

fn series(flow: &FlowView<'_>, detail: Detail) -> Series {
    let (all_times, bytes) =
        (flow.samples.times(0), flow.samples.column(FlowSample::FIELDS.reassembly_bytes, 0));
    let thinning = Thinning::new(all_times.len(), detail.rows_max);
    let times = thinning.counter(&all_times);
    let waiting = thinning.gauge(&bytes);
    Series {
        paths: flow
            .paths
            .iter()
            .take(DRAWN_MAX)
            .map(|path| of_path(flow.record, path, detail))
            .collect(),
        time_ns: Column::times(&times),
        reassembly_bytes: Column::values(&waiting),
    }
}

fn of_path(flow: &FlowRecord, path: &PathView<'_>, detail: Detail) -> FlowSeries {
    let thinning = Thinning::new(path.samples.len(), detail.rows_max);
    // Treated as a separate flow.
    let alone = FlowRecord {
        base_rtt_ns: path.record.base_rtt_ns,
        path_rate_bps: path.record.rate_bps,
        header_overhead: flow.header_overhead,
        ..FlowRecord::default()
    };
    let name = path.record.name.clone();
    flow_series(&path.samples, name, Some(&alone), &thinning, &mut Phases::default())
}

fn strips(flow: &FlowView<'_>, said: &knee_record::FlowSummary) -> Strips {
    let mut facts = vec![format!("scheduler {}", flow.record.scheduler)];
    let times = |value: Option<f64>| value.map(|value| format!("{value:.2}"));
    if let Some(over) = times(said.completion_over_bound) {
        facts.push(format!("finished in {over} times the shortest possible time"));
    }
    if let Some(over) = times(said.completion_over_best_path) {
        facts.push(format!("{over} times that of the best single path"));
    }
    if let Some(over) = times(said.completion_over_perfect) {
        facts.push(format!("{over} times that of a perfect scheduler with the same controllers"));
    }
    if let Some(ratio) = said.aggregation_ratio {
        facts
            .push(format!("delivered {} of what the paths allowed together", percent(Some(ratio))));
    }
    if let Some(waited) = said.head_of_line_blocking_us {
        facts.push(format!("a byte waited {} for data of another path", time_us(Some(waited))));
    }
    if flow.paths.len() > DRAWN_MAX {
        facts.push(format!("the first {DRAWN_MAX} of {} paths are drawn", flow.paths.len()));
    }
    if let Some(ratio) = said.duplicate_ratio.filter(|ratio| *ratio > 0.0) {
        facts.push(format!("{} arrived repeatedly", percent(Some(ratio))));
    }
    let said_of = said.paths.iter().flatten();
    Strips {
        title: flow.record.label(),
        facts: facts.join(" · "),
        paths: flow
            .paths
            .iter()
            .zip(said_of)
            .take(DRAWN_MAX)
            .map(|(path, said)| strip(path, said))
            .collect(),
        reassembly: flow.samples.iter().any(|row| row.reassembly_bytes > 0),
    }
}

fn strip(path: &PathView<'_>, said: &knee_record::PathSummary) -> Strip {
    let backup = if said.backup { " · backup" } else { "" };
    let finish = match said.finish_us {
        Some(_) => format!(" · done after {}", time_us(said.finish_us)),
        None => String::new(),
    };
    let limit = match said.rate_bps {
        None => "no rate limit".to_string(),
        limit => rate(limit),
    };
    Strip {
        name: said.name.clone(),
        facts: format!(
            "{} of the payload · {limit}, {} one way{finish}{backup}",
            percent(said.share),
            time_us(Some(said.one_way_delay_us))
        ),
        drawn: !path.samples.is_empty(),
    }
}
