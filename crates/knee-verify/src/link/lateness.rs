//! Packets that jitter lets overtake each other: how late those are that are late
//! at all, and how many they are.

use super::books::Finding;
use crate::parse;
use crate::report::Rule;

/// Standard deviations of the binomial distribution within which the number of
/// late packets stays: beyond it is one log in five hundred million.
const DEVIATIONS: f64 = 6.0;

/// Counts them.
#[derive(Debug, Default)]
pub struct Lateness {
    packets: u64,
    late: u64,
}

impl Lateness {
    /// Takes a packet that arrived so much later than without jitter, which may
    /// have added up to `most`.
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

    /// At the end: as many were late as the share says.
    pub fn judge(&self, head: &parse::Link) -> Option<Finding> {
        let (share, packets) = (head.jitter_share, self.packets as f64);
        // Without a least addition some are late by nothing, to the nanosecond.
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
