//! Jitter that lets packets overtake each other: the delay of late packets, and their share.

use super::books::Finding;
use crate::parse;
use crate::report::Rule;

/// Allowed deviation of the number of late packets, in standard deviations of the binomial
/// distribution; one log in five hundred million exceeds it.
const DEVIATIONS: f64 = 6.0;

/// Counts late packets.
#[derive(Debug, Default)]
pub struct Lateness {
    packets: u64,
    late: u64,
}

impl Lateness {
    /// Adds a packet that arrived `by` later than without jitter, which may add at most `most`.
    pub fn take(&mut self, by: u64, most: u64, head: &parse::Link) -> Option<Finding> {
        if most == 0 {
            return None;
        }
        self.packets += 1;
        self.late += u64::from(by > 0);
        let least = head.jitter_least;
        let impossible = by < least && (by > 0 || head.jitter_share == 1.0);
        impossible.then(|| {
            let text = format!("is late by {by} ns, what is late is so by {least} ns at least");
            Finding::new(Rule::Early, text)
        })
    }

    /// Checks at the end that the share of late packets is as configured.
    pub fn judge(&self, head: &parse::Link) -> Option<Finding> {
        let (share, packets) = (head.jitter_share, self.packets as f64);
        // Without a minimum addition, some packets are late by zero nanoseconds.
        if share == 1.0 {
            return None;
        }
        let (expected, late) = (share * packets, self.late as f64);
        let allowed = DEVIATIONS * (expected * (1.0 - share)).sqrt() + DEVIATIONS;
        ((late - expected).abs() > allowed).then(|| {
            let text =
                format!("{} of {} packets are late, the share is {share}", self.late, self.packets);
            Finding::new(Rule::Late, text)
        })
    }
}
