//! Bands for runs with many flows: for each group, the median over its flows and the 5th and 95th
//! percentile, in each interval of time.

use crate::encode::Column;
use crate::series::{ByFlow, FLOWS_MAX, Key, usual_gap};
use knee_record::{FlowSample, Records, Track};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of intervals into which the time is divided.
const PIECES: u64 = 500;
/// Smallest number of flows in a band; fewer are drawn one by one.
pub(crate) const BAND_MIN: usize = 3;
/// Percentiles of a band: its edges, and the line between.
const EDGES: [f64; 3] = [0.05, 0.5, 0.95];

/// A group over time.
#[derive(Debug, Serialize)]
pub(crate) struct GroupSeries {
    /// Name in the legend.
    pub label: String,
    /// End of each interval, nanoseconds.
    pub time_ns: Column,
    /// Payload delivered, bit/s.
    pub rate_bps: Option<Edges>,
    /// Last RTT measured.
    pub rtt_ns: Option<Edges>,
    /// Congestion window.
    pub window_bytes: Option<Edges>,
    /// Bytes in flight.
    pub in_flight_bytes: Option<Edges>,
}

/// The lines of a band.
#[derive(Debug, Serialize)]
pub(crate) struct Edges {
    pub low: Column,
    pub median: Column,
    pub high: Column,
}

/// Values of the flows in one interval, one for each flow that has any.
#[derive(Default)]
struct Piece {
    rate: Vec<u64>,
    rtt: Vec<u64>,
    window: Vec<u64>,
    in_flight: Vec<u64>,
}

/// Returns the bands of a run, and the flows that are in none. There are no bands if the flows are
/// few enough to be drawn one by one.
pub(crate) fn bands(records: &Records, by_flow: &ByFlow) -> (Vec<GroupSeries>, Vec<Key>) {
    if by_flow.len() <= FLOWS_MAX {
        return (Vec::new(), by_flow.keys().copied().collect());
    }
    let names: BTreeMap<u32, &str> =
        records.flows.iter().map(|flow| (flow.flow, flow.name.as_str())).collect();
    // Groups in the order of the scenario.
    let mut groups: Vec<(&str, Vec<Key>)> = Vec::new();
    for key in by_flow.keys() {
        let name = names.get(&key.0).copied().unwrap_or("flows");
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, keys)) => keys.push(*key),
            None => groups.push((name, vec![*key])),
        }
    }
    let (large, small): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(_, keys)| keys.len() >= BAND_MIN);
    let band = |(name, keys): &(&str, Vec<Key>)| band(name, keys, by_flow, records.end_ns);
    let single = small.into_iter().flat_map(|(_, keys)| keys);
    (large.iter().take(FLOWS_MAX).map(band).collect(), single.take(FLOWS_MAX).collect())
}

/// Builds one band of some flows.
pub(crate) fn band(name: &str, keys: &[Key], by_flow: &ByFlow, end_ns: u64) -> GroupSeries {
    let width = end_ns.div_ceil(PIECES).max(interval(keys, by_flow)).max(1);
    let mut pieces: BTreeMap<u64, Piece> = BTreeMap::new();
    for key in keys {
        add(&mut pieces, &by_flow[key], width);
    }
    let times: Vec<u64> = pieces.keys().map(|piece| ((piece + 1) * width).min(end_ns)).collect();
    let edges = |values: fn(&mut Piece) -> &mut Vec<u64>, pieces: &mut BTreeMap<u64, Piece>| {
        let mut lines = [const { Vec::new() }; 3];
        for piece in pieces.values_mut() {
            let values = values(piece);
            values.sort_unstable();
            for (line, part) in lines.iter_mut().zip(EDGES) {
                line.push(percentile(values, part));
            }
        }
        let any = lines[2].iter().any(|value| *value > 0);
        let [low, median, high] = lines.map(|line| Column::known(&line));
        any.then_some(Edges { low, median, high })
    };
    GroupSeries {
        label: format!("{name}: {} flows", keys.len()),
        rate_bps: edges(|piece| &mut piece.rate, &mut pieces),
        rtt_ns: edges(|piece| &mut piece.rtt, &mut pieces),
        window_bytes: edges(|piece| &mut piece.window, &mut pieces),
        in_flight_bytes: edges(|piece| &mut piece.in_flight, &mut pieces),
        time_ns: Column::times(&times),
    }
}

/// Returns the longest of the flows' median sampling intervals, so that an interval of the band has
/// at least one sample of each flow.
fn interval(keys: &[Key], by_flow: &ByFlow) -> u64 {
    keys.iter().map(|key| usual_gap(&by_flow[key].times(0))).max().unwrap_or(0)
}

/// Adds one flow to the intervals: its last values in each, and its mean rate since the previous
/// value.
fn add(pieces: &mut BTreeMap<u64, Piece>, rows: &Track<FlowSample>, width: u64) {
    let fields = FlowSample::FIELDS;
    let times = rows.times(0);
    let [delivered, rtts, windows, in_flight] =
        [fields.delivered_bytes, fields.rtt_ns, fields.window_bytes, fields.in_flight_bytes]
            .map(|field| rows.column(field, 0));
    let mut before: Option<(u64, u64)> = None;
    let mut first = 0;
    while first < times.len() {
        // The end of an interval belongs to it.
        let at = times[first].saturating_sub(1) / width;
        let end = (at + 1).saturating_mul(width);
        let row = first + times[first..].partition_point(|time| *time <= end) - 1;
        first = row + 1;
        let (time, bytes) = (times[row], delivered[row]);
        let piece = pieces.entry(at).or_default();
        if let Some((before_ns, before)) = before.filter(|(before_ns, _)| time > *before_ns) {
            let bits = 8 * u128::from(bytes.saturating_sub(before));
            let rate = bits * 1_000_000_000 / u128::from(time - before_ns);
            piece.rate.push(rate as u64);
        }
        piece.rtt.extend((rtts[row] > 0).then_some(rtts[row]));
        piece.window.extend((windows[row] > 0).then_some(windows[row]));
        piece.in_flight.push(in_flight[row]);
        before = Some((time, bytes));
    }
}

/// Returns a percentile of sorted values, interpolated linearly; zero if there are none.
fn percentile(sorted: &[u64], part: f64) -> u64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0 };
    let place = part * last as f64;
    let (low, high) = (sorted[place as usize], sorted[(place.ceil() as usize).min(last)]);
    low + ((high - low) as f64 * place.fract()).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For 0 to 100, the percentiles equal the values.
    #[test]
    fn percentiles_of_a_uniform_distribution() {
        let values: Vec<u64> = (0..=100).collect();
        assert_eq!(EDGES.map(|part| percentile(&values, part)), [5, 50, 95]);
        assert_eq!(percentile(&[10, 20], 0.5), 15);
        assert_eq!(percentile(&[], 0.5), 0);
    }
}
