//! What must happen: outstanding data is acknowledged, sent again or times out.
//!
//! The log does not show the timeout in force, so it is bounded from above by what the sender can
//! have measured: the largest RTT, and four times the largest deviation, which is no larger (RFC
//! 6298, section 2). A report of data that was sent before the first outstanding segment last was
//! restarts the timeout, as in Linux; RFC 6298, section 5.3, asks for new data acknowledged.

use crate::flow::Fault;
use crate::report::Rule;

/// Maximum timeout, Linux's `TCP_RTO_MAX`.
const TIMEOUT_MAX: u64 = 120 * 1_000_000_000;
/// Granularity of timestamps, in which an RTT may be measured.
const TIMESTAMP_TICK: u64 = 1_000_000;

/// Bound on the time in which nothing happens to the first outstanding segment of a flow.
#[derive(Default)]
pub struct Liveness {
    rto_min: u64,
    /// Largest RTT that may have been measured; zero before the first, when nothing is checked.
    rtt_max: u64,
    /// Timeouts since the last measurement.
    timeouts: u32,
    /// Latest time at which the timeout was started.
    started: u64,
    /// When it was due before an RTT was measured: that makes the next timeout shorter, not the one
    /// in force.
    armed: u64,
    /// Longest time for which pacing held back the next burst since then, and the last such time.
    paced: u64,
    last_paced: u64,
    /// Whether anything was outstanding after the last event.
    waiting: bool,
}

impl Liveness {
    pub fn new(rto_min: u64) -> Liveness {
        Liveness { rto_min, ..Liveness::default() }
    }

    /// Checks, before an event is processed, that the timeout has not passed unnoticed.
    pub fn check(&mut self, time: u64, faults: &mut Vec<Fault>) {
        let due = self.due();
        if self.waiting && self.rtt_max > 0 && time > due {
            let text = format!(
                "nothing happened to the first outstanding segment since {} ns, although its \
                 timeout was due at {due} ns at the latest",
                self.started
            );
            faults.push((Rule::Liveness, text));
            self.restart(time);
        }
    }

    /// Returns when the timeout comes at the latest.
    fn due(&self) -> u64 {
        // A retransmission that was due waits for pacing first (Linux's `tcp_pacing_delay`).
        self.armed.max(self.started + self.longest_timeout() + self.paced)
    }

    fn longest_timeout(&self) -> u64 {
        let first = self.rtt_max + self.rto_min.max(4 * self.rtt_max);
        first.saturating_mul(1 << self.timeouts.min(10)).min(TIMEOUT_MAX)
    }

    /// Notes that the RTT may have been measured.
    pub fn measure(&mut self, rtt: u64) {
        self.armed = if self.timeouts > 0 { self.due() } else { self.armed };
        self.rtt_max = self.rtt_max.max(rtt + TIMESTAMP_TICK);
        self.timeouts = 0;
    }

    /// Whether the RTT was ever measured.
    pub fn has_measured(&self) -> bool {
        self.rtt_max > 0
    }

    /// Notes that the timeout counts from now.
    pub fn restart(&mut self, time: u64) {
        self.started = time;
        self.armed = 0;
        self.paced = self.last_paced;
    }

    /// Notes for how long pacing holds back the next burst.
    pub fn pace(&mut self, time: u64) {
        self.last_paced = time;
        self.paced = self.paced.max(time);
    }

    /// Notes a timeout, of the retransmission timer or of a probe's.
    pub fn on_timeout(&mut self, time: u64, backs_off: bool) {
        self.restart(time);
        self.timeouts += u32::from(backs_off);
    }

    /// Notes whether anything is outstanding.
    pub fn set_waiting(&mut self, waiting: bool) {
        self.waiting = waiting;
    }
}
