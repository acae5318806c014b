//! Measures of BBR's STARTUP, round by round.
//!
//! A round ends when the first segment sent after its start is acknowledged
//! (draft-ietf-ccwg-bbr, section 5.5.1): once as many bytes as were in flight
//! at its start, and one more, have been delivered since. What the sender knows
//! to be delivered is `sent - lost - in flight`. A round is seen at a sample:
//! the sampling interval should be short against the RTT.

use super::{Flows, NotMeasurable, because};
use crate::FlowSample;
use crate::view::{FlowView, Span};

/// The phase that is looked at.
const STARTUP: &str = "startup";

/// Growth of the bandwidth estimate below which BBR takes a round for flat.
const GROWTH_MIN: f64 = 1.25;

impl Flows<'_, '_> {
    /// Growth of the bandwidth estimate in a round of STARTUP while the path
    /// is not full: geometric mean over the rounds that grew by 25 % or more,
    /// but for the last of them, in which the path fills; mean over the flows.
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

    /// Rounds at the end of STARTUP that brought less than 25 % of growth over
    /// the estimate of the last that did; mean over the flows.
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

    /// `value` of the estimates at the ends of each flow's rounds in STARTUP.
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

/// Bandwidth estimate at the end of each round of the first STARTUP, bit/s.
/// It is left at the end of a round: of the one under way then more than half
/// must be over, the rest is what the samples came late.
fn estimates(flow: &FlowView<'_>, span: Span) -> Vec<f64> {
    let (mut estimates, mut round): (_, Option<(u64, u64)>) = (Vec::new(), None);
    let inside = |row: &&&FlowSample| span.begin <= row.time_ns && row.time_ns <= span.end;
    for row in flow.samples.iter().filter(inside) {
        let (now, left) = (acknowledged(row), row.phase != STARTUP);
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
