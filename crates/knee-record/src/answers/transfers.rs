//! The transfers of a mix in runs with the same arrivals and sizes, some of which the end of a run
//! cuts off.
//!
//! A mean over finished transfers alone favours the run in which the long ones do not finish. A
//! transfer that finishes in any of the runs therefore counts in all of them: where it was cut off,
//! with the time until the end, a lower bound of its completion time. Transfers that finish in none
//! show no difference and do not count.

use super::judged;
use crate::measures::TransferValue;
use crate::view::{RunView, Window};
use knee_units::statistics::{Better, Judgement, Paired, simultaneous};
use std::collections::BTreeMap;

/// A transfer in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferTime {
    /// Whether it finished.
    pub finished: bool,
    /// Its completion time; if it did not finish, the time from its start to the end of its flow.
    pub seconds: f64,
}

/// The transfers of a group, by flow of the group and number.
pub type TransferTimes = BTreeMap<(u32, u32), TransferTime>;

/// Returns the transfers that began within their flow's span.
pub(super) fn times(run: &RunView<'_>, group: &str) -> TransferTimes {
    let mut found = BTreeMap::new();
    for flow in run.flows.iter().filter(|flow| flow.record.name == group) {
        let Some(span) = run.flow_span(flow, Window::default()) else { continue };
        let began = flow.transfers.iter();
        let began = began.filter(|row| (span.begin..span.end).contains(&row.start_ns));
        found.extend(began.map(|row| {
            let completion = TransferValue::Completion.of(row);
            let until_end = (span.end - row.start_ns) as f64 / 1e9;
            let time = TransferTime {
                finished: completion.is_some(),
                seconds: completion.unwrap_or(until_end),
            };
            ((flow.record.index, row.number), time)
        }));
    }
    found
}

/// Mean times of the runs of one seed, and the number of transfers behind them.
pub(super) struct Means {
    /// Mean of each run, in their order, seconds; infinite if no transfer finished in any.
    pub seconds: Vec<f64>,
    /// Transfers that finished in at least one run.
    pub count: u64,
}

/// Averages the transfers that finished in at least one of `runs`.
pub(super) fn means(runs: &[&TransferTimes]) -> Means {
    let mut sums = vec![0.0; runs.len()];
    let mut count = 0;
    for key in runs.first().into_iter().flat_map(|first| first.keys()) {
        let each: Option<Vec<&TransferTime>> = runs.iter().map(|run| run.get(key)).collect();
        let Some(each) = each.filter(|each| each.iter().any(|time| time.finished)) else {
            continue;
        };
        count += 1;
        sums.iter_mut().zip(each).for_each(|(sum, time)| *sum += time.seconds);
    }
    let seconds = sums.into_iter().map(|sum| match count {
        0 => f64::INFINITY,
        _ => sum / count as f64,
    });
    Means { seconds: seconds.collect(), count }
}

/// Counts the transfers that finished.
pub(super) fn finished(times: &TransferTimes) -> u64 {
    times.values().filter(|time| time.finished).count() as u64
}

/// Compares the numbers of finished transfers of several pairs of alternatives; each list has
/// `(first, second)` of every seed. More is better.
pub(super) fn effects(counts: &[Vec<(u64, u64)>]) -> Vec<Judgement> {
    let mut compared: Vec<Option<Paired>> = counts
        .iter()
        .map(|seeds| {
            let pairs = seeds.iter().map(|(first, second)| (*first as f64, *second as f64));
            Paired::new(&pairs.collect::<Vec<_>>())
        })
        .collect();
    simultaneous(compared.iter_mut().flatten());
    let effect = |compared: &Option<Paired>| {
        compared.as_ref().map_or(Judgement::TooShort, |compared| judged(compared, Better::More))
    };
    compared.iter().map(effect).collect()
}

/// Joins the effect on time with that on the number of finished transfers: neither decides against
/// the other.
pub(super) fn joined(time: Judgement, finished: Judgement) -> Judgement {
    match (time.differs(), finished.differs()) {
        (true, true) if time != finished => Judgement::Undecided,
        (false, true) => finished,
        _ => time,
    }
}
