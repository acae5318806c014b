//! Measures of BBR's STARTUP, round by round.
//!
//! A round ends when the first segment sent after its start is acknowledged (draft-ietf-ccwg-bbr,
//! section 5.5.1): once one byte more than was in flight at its start has been delivered. The bytes
//! that the sender knows to be delivered are `sent - lost - in flight`. The end of a round is only
//! seen at a sample, so the sampling interval should be short compared with the RTT.

use super::{Flows, NotMeasurable, because};
use crate::FlowSample;
use crate::view::{FlowView, Span};

/// Name of the phase.
const STARTUP: &str = "startup";

/// Growth of the bandwidth estimate below which BBR considers a round flat.
const GROWTH_MIN: f64 = 1.25;

impl Flows<'_, '_> {
    /// Growth of the bandwidth estimate per round of STARTUP before the path is full: geometric
    /// mean over the rounds that grew by 25 % or more, without the last of them, in which the path
    /// fills; mean over the flows.
    pub(crate) fn startup_growth(&self) -> Result<f64, NotMeasurable> {
        self.mean_of_startups(|estimates| {
            let growing = growths(estimates).take_while(|growth| *growth >= GROWTH_MIN);
            let growing: Vec<f64> = growing.collect();
            let (_, before_full) = growing.split_last()?;
            let count = before_full.len() as f64;
            (count > 0.0)
                .then(|| (before_full.iter().map(|one| one.ln()).sum::<f64>() / count).exp())
        })
    }

    /// Number of rounds at the end of STARTUP that grew by less than 25 % over the estimate of the
    /// last round that grew; mean over the flows.
    pub(crate) fn startup_flat_rounds(&self) -> Result<f64, NotMeasurable> {
        self.mean_of_startups(|estimates| {
            let (mut full, mut flat) = (*estimates.first()?, 0);
            for estimate in &estimates[1..] {
                flat += 1;
                if *estimate >= GROWTH_MIN * full {
                    (full, flat) = (*estimate, 0);
                }
            }
            Some(f64::from(flat))
        })
    }

    /// Returns the mean of `value` of the estimates at the ends of each flow's rounds in STARTUP.
    fn mean_of_startups(
        &self,
        value: impl Fn(&[f64]) -> Option<f64>,
    ) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let values = active.iter().map(|(flow, span)| value(&estimates(flow, *span)));
        match values.collect::<Option<Vec<f64>>>() {
            Some(values) => Ok(values.iter().sum::<f64>() / values.len() as f64),
            None => because(format!("{} shows too few rounds of STARTUP", self.target)),
        }
    }
}

/// Returns the bandwidth estimate at the end of each round of the first STARTUP, bit/s. BBR leaves
/// STARTUP at the end of a round, but samples lag: the current round counts if more than half of it
/// is over.
fn estimates(flow: &FlowView<'_>, span: Span) -> Vec<f64> {
    let (mut estimates, mut round): (_, Option<(u64, u64)>) = (Vec::new(), None);
    let inside = |row: &FlowSample| span.begin <= row.time_ns && row.time_ns <= span.end;
    for row in flow.samples.iter().filter(inside) {
        let (now, left) = (acknowledged(&row), row.phase != STARTUP);
        match round {
            None if row.in_flight_bytes > 0 => round = Some((now, row.in_flight_bytes)),
            Some((begin, bytes)) if now > begin + bytes || (left && now > begin + bytes / 2) => {
                round = Some((now, row.in_flight_bytes));
                estimates.push(row.bandwidth_estimate_bps as f64);
            }
            _ => {}
        }
        if left {
            break;
        }
    }
    estimates
}

fn acknowledged(row: &FlowSample) -> u64 {
    row.sent_bytes.saturating_sub(row.lost_bytes + row.in_flight_bytes)
}

fn growths(estimates: &[f64]) -> impl Iterator<Item = f64> {
    estimates.windows(2).filter(|pair| pair[0] > 0.0).map(|pair| pair[1] / pair[0])
}
