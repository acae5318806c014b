//! Flows that send for many timeouts while nothing arrives in order.
//!
//! Records do not have the timeout in force, so it is taken from their RTTs as RFC 6298 does: the
//! smoothed RTT and four mean deviations, at least `min_rto`; doubled with each timeout (section
//! 5.5) until the next RTT is measured, up to 120 s, as Linux does. Where the records have the
//! smoothed RTT only (`kernel`), deviations below an eighth of the real ones are seen, which matters
//! if they are above 50 ms. QUIC's probe timeouts are shorter by default (RFC 9002, section 6.2.1).

use crate::FlowSample;
use crate::summary::micros;
use crate::view::FlowView;
use knee_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Timeouts after which a flow counts as stalled.
const TIMEOUTS: f64 = 10.0;

/// Initial timeout, seconds (RFC 6298, section 2.1).
const INITIAL: f64 = 1.0;

/// Largest timeout, seconds (Linux: `TCP_RTO_MAX`).
const LARGEST: f64 = 120.0;

/// The longest span in which a flow sent and nothing arrived in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stalled {
    /// The flow: `bbr[1]`.
    pub flow: String,
    /// When it began to send in vain, microseconds since the start of the run.
    pub from_us: f64,
    /// When it last sent in vain.
    pub until_us: f64,
    /// Timeouts that passed meanwhile, each as long as it was in force; at least
    /// ten.
    pub timeouts: f64,
}

impl Stalled {
    /// Returns the longest such span of a flow, measured in timeouts; `None` if it had fewer than
    /// ten.
    pub(crate) fn of(flow: &FlowView<'_>, min_rto: Time) -> Option<Stalled> {
        let mut progress = Progress::new(min_rto);
        flow.samples.iter().for_each(|row| progress.note(&row));
        let Span { from_ns, until_ns, timeouts } = progress.longest;
        (timeouts >= TIMEOUTS).then(|| Stalled {
            flow: flow.record.label(),
            from_us: micros(from_ns),
            until_us: micros(until_ns),
            timeouts: (10.0 * timeouts).round() / 10.0,
        })
    }

    /// Says it in a sentence.
    pub fn in_words(&self) -> String {
        let time = |us: f64| crate::Unit::Seconds.show(us / 1e6);
        format!(
            "flow {} sent for {:.0} timeouts, from {} to {}, and nothing arrived in order",
            self.flow,
            self.timeouts,
            time(self.from_us),
            time(self.until_us)
        )
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    from_ns: u64,
    until_ns: u64,
    timeouts: f64,
}

/// What a flow has achieved, row by row.
#[derive(Clone, Debug)]
struct Progress {
    timeout: Timeout,
    last: Option<FlowSample>,
    /// From the first transmission since something arrived to the last one.
    vain: Option<Span>,
    /// Timeouts since the last transmission.
    silent: f64,
    longest: Span,
}

impl Progress {
    fn new(min_rto: Time) -> Progress {
        let timeout = Timeout::new(min_rto.as_secs_f64());
        let longest = Span::default();
        Progress { timeout, last: None, vain: None, silent: 0.0, longest }
    }

    fn note(&mut self, row: &FlowSample) {
        let Some(last) = self.last.replace(*row) else {
            self.timeout.heard(row);
            return;
        };
        self.silent += self.timeout.passed((row.time_ns - last.time_ns) as f64 / 1e9);
        if (row.rtt_ns, row.srtt_ns) != (last.rtt_ns, last.srtt_ns) {
            self.timeout.heard(row);
        }
        if row.delivered_bytes > last.delivered_bytes {
            self.vain = None;
        } else if row.sent_bytes > last.sent_bytes {
            let begun = Span { from_ns: row.time_ns, ..Span::default() };
            let vain = match self.vain {
                None => begun,
                Some(span) => Span { timeouts: span.timeouts + self.silent, ..span },
            };
            let vain = Span { until_ns: row.time_ns, ..vain };
            self.vain = Some(vain);
            self.silent = 0.0;
            if vain.timeouts > self.longest.timeouts {
                self.longest = vain;
            }
        }
    }
}

/// The retransmission timeout in force, seconds.
#[derive(Clone, Debug)]
struct Timeout {
    min_rto: f64,
    smoothed: Option<f64>,
    variation: f64,
    /// Time since an RTT was measured.
    quiet: f64,
}

impl Timeout {
    fn new(min_rto: f64) -> Timeout {
        Timeout { min_rto, smoothed: None, variation: 0.0, quiet: 0.0 }
    }

    /// Takes the RTT of a row (RFC 6298, sections 2.2 and 2.3).
    fn heard(&mut self, row: &FlowSample) {
        if row.srtt_ns == 0 {
            return;
        }
        let [rtt, smoothed] = [row.rtt_ns, row.srtt_ns].map(|ns| ns as f64 / 1e9);
        self.variation = match self.smoothed.replace(smoothed) {
            None => rtt / 2.0,
            Some(before) => 0.75 * self.variation + 0.25 * (before - rtt).abs(),
        };
        self.quiet = 0.0;
    }

    /// Returns how many timeouts pass in this time if no RTT is measured.
    fn passed(&mut self, seconds: f64) -> f64 {
        let before = self.since_heard();
        self.quiet += seconds;
        self.since_heard() - before
    }

    /// Returns how many timeouts have passed since an RTT was measured: each lasts twice as long as
    /// the one before.
    fn since_heard(&self) -> f64 {
        let mut timeout =
            self.smoothed.map_or(INITIAL, |rtt| rtt + self.min_rto.max(4.0 * self.variation));
        let (mut passed, mut left) = (0.0, self.quiet);
        while left >= timeout {
            left -= timeout;
            passed += 1.0;
            timeout = (2.0 * timeout).min(LARGEST);
        }
        passed + left / timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the longest span over rows each 100 ms: time in tenths of a second gives bytes
    /// delivered, bytes sent, and the RTT in ms.
    fn longest(tenths: u64, row: impl Fn(u64) -> (u64, u64, u64)) -> Span {
        let mut progress = Progress::new(Time::from_millis(200));
        for at in 0..tenths {
            let (delivered_bytes, sent_bytes, rtt_ms) = row(at);
            progress.note(&FlowSample {
                time_ns: at * 100_000_000,
                delivered_bytes,
                sent_bytes,
                rtt_ns: rtt_ms * 1_000_000,
                srtt_ns: 20_000_000 + at,
                ..FlowSample::default()
            });
        }
        progress.longest
    }

    /// RTTs around 20 ms make a timeout of 220 ms, of which 45 pass in ten seconds.
    #[test]
    fn sending_on_while_nothing_arrives_in_order_is_a_stall() {
        let span = longest(200, |at| (at.min(100), at, 19 + at % 3));
        assert!((44.0..=46.0).contains(&span.timeouts), "{span:?}");
        assert!(span.from_ns <= 10_200_000_000 && span.until_ns == 19_900_000_000, "{span:?}");
    }

    /// Nothing is heard for a minute and each timeout is twice as long: 0.22 s, 0.44 s, …; the
    /// eighth ends after 56.1 s, the ninth after 112 s. The span begins with the row after the last
    /// RTT, which is 0.1 s or 0.45 timeouts later.
    #[test]
    fn a_timeout_is_backed_off_in_an_outage() {
        let mut progress = Progress::new(Time::from_millis(200));
        for at in 0..700 {
            progress.note(&FlowSample {
                time_ns: at * 100_000_000,
                delivered_bytes: at.min(100),
                sent_bytes: at,
                rtt_ns: 20_000_000 + at.min(100),
                srtt_ns: 20_000_000 + at.min(100),
                ..FlowSample::default()
            });
        }
        assert!((7.6..7.7).contains(&progress.longest.timeouts), "{:?}", progress.longest);
    }

    #[test]
    fn an_application_that_pauses_is_no_stall() {
        let span = longest(1000, |at| if at < 990 { (5, 5, 20) } else { (at, at, 20) });
        assert_eq!(span.timeouts, 0.0);
        // Sent at the end of the pause, and delivered in the next interval.
        let span = longest(1000, |at| ((at.max(990) - 990) * 9, at.max(989), 20));
        assert!(span.timeouts < 1.0, "{span:?}");
    }

    #[test]
    fn slow_progress_is_no_stall() {
        let span = longest(1000, |at| (at / 20, at, 19 + at % 3));
        assert!(span.timeouts < TIMEOUTS, "{span:?}");
    }
}
