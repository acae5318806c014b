//! How long a video stands still. A player can have a high bitrate by standing still, so stalls
//! come before the bitrate.

use super::judged;
use crate::ObjectRecord;
use crate::measures::is_segment;
use crate::view::{FlowView, RunView};
use knee_units::statistics::{Better, Judgement, Paired, simultaneous};

/// Difference between two parts of the time that counts as none.
pub(super) const NEGLIGIBLE: f64 = 0.01;

/// Stalls of a video in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stalls {
    /// How long playback stood still, seconds: as `video_stall_time`, and also the wait for a
    /// segment that did not arrive; mean over the flows.
    pub seconds: f64,
    /// Its part of the time that the flow lasted; mean over the flows.
    pub share: f64,
}

/// Returns the stalls of a group of videos; `None` if the group has no flow that lasted.
pub(super) fn stalls(run: &RunView<'_>, group: &str) -> Option<Stalls> {
    let flows = run.flows.iter().filter(|flow| flow.record.name == group);
    let each: Vec<(f64, f64)> = flows
        .filter_map(|flow| {
            let lasted = flow.life()?.seconds();
            let stalled = stalled_s(flow);
            Some((stalled, stalled / lasted))
        })
        .collect();
    let count = each.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| each.iter().map(value).sum::<f64>() / count;
    (!each.is_empty()).then(|| Stalls { seconds: mean(|one| one.0), share: mean(|one| one.1) })
}

fn stalled_s(flow: &FlowView<'_>) -> f64 {
    let segments = || flow.objects.iter().copied().filter(|object| is_segment(object));
    let arrived = || segments().filter(|segment| segment.completed_ns.is_some());
    let waited: u64 = arrived().filter(|row| row.number > 0).map(|row| row.stalled_ns).sum();
    let open = segments().any(|segment| segment.completed_ns.is_none());
    // The buffer of the last segment that arrived plays out, then playback waits for the next.
    let played_until =
        |row: &ObjectRecord| row.completed_ns.unwrap_or_default().saturating_add(row.buffer_ns);
    let last = arrived().max_by_key(|segment| segment.number);
    let dry = last.map_or(flow.record.start_ns, played_until);
    let at_end = if open { flow.record.end_ns.saturating_sub(dry) } else { 0 };
    (waited + at_end) as f64 / 1e9
}

/// Compares the stalls of several pairs of alternatives; each list has `(first, second)` of every
/// seed. A difference of less than 1 % of the time is none.
pub(super) fn effects(stalls: &[Vec<(Stalls, Stalls)>]) -> Vec<Judgement> {
    let shares = stalls.iter().map(|seeds| {
        seeds.iter().map(|(first, second)| (first.share, second.share)).collect::<Vec<_>>()
    });
    let shares: Vec<Vec<(f64, f64)>> = shares.collect();
    let mut compared: Vec<Option<Paired>> = shares.iter().map(|pairs| Paired::new(pairs)).collect();
    simultaneous(compared.iter_mut().flatten());
    let effect = |(compared, pairs): (&Option<Paired>, &Vec<(f64, f64)>)| {
        let difference = pairs.iter().map(|(first, second)| first - second).sum::<f64>();
        let small = difference.abs() < NEGLIGIBLE * pairs.len() as f64;
        compared
            .as_ref()
            .filter(|_| !small)
            .map_or(Judgement::Alike, |compared| judged(compared, Better::Less))
    };
    compared.iter().zip(&shares).map(effect).collect()
}
