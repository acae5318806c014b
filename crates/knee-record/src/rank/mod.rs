//! Rankings of controllers: every candidate runs over the same scenarios, alone, beside itself and
//! beside rivals. Defines the figures kept of each run, the table of all runs, and the result of
//! each candidate.

mod gather;
mod summary;
mod table;
mod words;
mod worst;

pub use summary::{RankEntry, RankPlace, RankScenario, RankSummary, RankTrace, Ranking, read_rank};
pub use table::write_rank;
pub use worst::{RankFigure, RankWorst};

use crate::Summary;

/// What shares the path with a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Competition {
    /// No other flow.
    Alone,
    /// A second flow with the same controller.
    Itself,
    /// A flow with a rival's controller, by its number.
    Rival(usize),
}

/// The figures of one run of a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct RankRun {
    /// Number of the scenario.
    pub scenario: usize,
    /// Number of the candidate.
    pub candidate: usize,
    /// What shared the path.
    pub company: Competition,
    /// Number of the repeat, from one.
    pub repeat: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// What was measured.
    pub figures: RankFigures,
}

/// Figures of the candidate's flow in one run, after the warm-up unless stated otherwise. `None` if
/// the run has no such value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankFigures {
    /// Payload delivered over time, bit/s.
    pub goodput_bps: Option<f64>,
    /// Payload rate that the path allowed, bit/s.
    pub capacity_bps: Option<f64>,
    /// Fraction of the possible delivery that was delivered in the span, all flows together,
    /// `0..=1`. Possible includes data that waited at the start of the span, behind a gap or in a
    /// queue.
    pub capacity_share: Option<f64>,
    /// Median RTT, seconds.
    pub rtt_p50_s: Option<f64>,
    /// 95th percentile of the RTT, seconds.
    pub rtt_p95_s: Option<f64>,
    /// RTT of a full segment over empty queues, seconds.
    pub base_rtt_s: f64,
    /// Kleinrock's power; 1 at the knee.
    pub power: Option<f64>,
    /// Bytes retransmitted over bytes sent.
    pub retransmit_ratio: Option<f64>,
    /// Its fraction of the bytes that both flows delivered, `0..=1`.
    pub share: Option<f64>,
    /// Jain's index of both flows.
    pub jain: Option<f64>,
}

impl RankFigures {
    /// Measures a run in which the candidate's flow is the first, alone or beside one other flow.
    pub fn of(summary: &Summary) -> RankFigures {
        let Some(flow) = summary.flows.first() else { return RankFigures::default() };
        let both: Option<f64> = summary.flows.iter().map(|flow| flow.goodput_bps).sum();
        let two = summary.flows.len() > 1;
        // Of a program that does not tell its own.
        let rtt_us = flow.rtt_us.or(flow.path_rtt_us);
        let share = flow.goodput_bps.zip(both).filter(|(_, both)| two && *both > 0.0);
        RankFigures {
            goodput_bps: flow.goodput_bps,
            capacity_bps: flow.capacity_bps,
            capacity_share: summary.measures.capacity_share,
            rtt_p50_s: rtt_us.map(|rtt| rtt.p50 / 1e6),
            rtt_p95_s: rtt_us.map(|rtt| rtt.p95 / 1e6),
            base_rtt_s: flow.base_rtt_us / 1e6,
            power: flow.power,
            retransmit_ratio: flow.retransmit_ratio,
            share: share.map(|(own, both)| own / both),
            jain: summary.measures.jain.filter(|_| two),
        }
    }

    /// Returns the mean RTT over that of the empty path, which power divides by.
    pub(crate) fn delay(&self) -> Option<f64> {
        Some(self.capacity_share? / self.power.filter(|power| *power > 0.0)?)
    }

    /// Returns the 95th percentile of the RTT over the RTT of the empty path.
    pub(crate) fn stretch(&self) -> Option<f64> {
        self.rtt_p95_s.filter(|_| self.base_rtt_s > 0.0).map(|rtt| rtt / self.base_rtt_s)
    }
}
