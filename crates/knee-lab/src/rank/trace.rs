//! Capacity and throughput of a recorded link, in bins.

use super::LinkThroughput;
use knee_link::RateModel;
use knee_record::{LinkSample, Records};
use knee_scenario::Scenario;

/// Maximum number of bins that a figure can show.
const BINS_MAX: usize = 150;

/// Series of the first recorded link on the first flow's path; `None` if it has none.
pub(super) fn carried(scenario: &Scenario, records: &Records) -> Option<LinkThroughput> {
    let path = *scenario.flows.first()?.paths.first()?;
    let mut forward = scenario.paths[path].forward.iter().copied();
    let recorded =
        |index: &usize| matches!(scenario.links[*index].config.rate, RateModel::Trace(_));
    let index = forward.find(recorded)?;
    let rows = records.links.tracks().get(&(index as u32, 0))?;
    let step = (rows.len().saturating_sub(1)).div_ceil(BINS_MAX).max(1);
    let ends: Vec<LinkSample> = rows.iter().step_by(step).collect();
    let bin_ns = ends.get(1)?.time_ns - ends[0].time_ns;
    // Skips partial bins, whose rates are not comparable.
    let whole = || ends.windows(2).filter(|pair| pair[1].time_ns - pair[0].time_ns == bin_ns);
    let rates = |bytes: fn(&LinkSample) -> u64| -> Vec<u64> {
        let rate = |more: u64| (more as f64 * 8e9 / bin_ns as f64).round() as u64;
        whole().map(|pair| rate(bytes(&pair[1]).saturating_sub(bytes(&pair[0])))).collect()
    };
    Some(LinkThroughput {
        link: scenario.links[index].name.clone(),
        bin_s: bin_ns as f64 / 1e9,
        capacity_bps: rates(|row| row.capacity_bytes),
        throughput_bps: rates(|row| row.used_bytes),
    })
}
