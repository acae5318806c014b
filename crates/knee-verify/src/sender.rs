//! When a sender may send: window, pacing, timers.

use crate::flow::Fault;
use crate::liveness::Liveness;
use crate::parse::{self, Repeat, Send, Timeout};
use crate::report::Rule;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Number of first segments that Linux sends without pacing.
const UNPACED_SEGMENTS: u64 = 10;
/// Timeout before the first RTT sample (RFC 6298, section 2.1).
const INITIAL_TIMEOUT: u64 = NANOS_PER_SECOND;
/// Maximum timeout, Linux's `TCP_RTO_MAX`.
const TIMEOUT_MAX: u64 = 120 * NANOS_PER_SECOND;
/// Granularity of an RTT measured by timestamps, which may be one tick short.
const TIMESTAMP_TICK: u64 = 1_000_000;

/// Timing of a sender.
pub struct Sender {
    pub liveness: Liveness,
    /// Whether its receiver is honest, so that what it acknowledges has arrived.
    honest: bool,
    /// Minimum RTT: the delays of both directions.
    rtt_min: u64,
    rto_min: u64,
    burst_max: Option<u64>,
    segments: u64,
    /// Earliest beginning of the next burst.
    next: u64,
    /// Latest beginning of it, of a sender that was forgiven nothing.
    next_max: u64,
    burst_at: u64,
    burst_left: u64,
    /// Lateness of the burst that has not been credited yet.
    credit: u64,
    /// When the SYN was last sent, and whether another may follow.
    syn_at: u64,
    syn_due: bool,
    /// Timeouts since an ACK made progress.
    timeouts: u32,
    /// Latest time at which the retransmission timer was restarted.
    restarted: u64,
    /// When it last expired.
    timed_out: u64,
    /// When a new segment was last sent.
    sent_at: u64,
    /// When the first segment outstanding at that time had been sent.
    first_sent_at: u64,
    /// Whether a probe timer expired and no probe was sent since.
    probe_due: bool,
    /// Whether a retransmission timer expired and the first segment was not sent since.
    first_due: bool,
}

impl Sender {
    /// `delay` is the minimum delay of both directions together.
    pub fn new(head: &parse::Flow, delay: u64) -> Sender {
        // An ACK that is sent before its segment arrives makes the RTT look shorter.
        let delay = if head.ack_ahead > 0 { 0 } else { delay };
        Sender {
            liveness: Liveness::new(head.rto_min),
            honest: head.ack_ahead == 0 && !head.conceals,
            rtt_min: delay.saturating_sub(TIMESTAMP_TICK),
            rto_min: head.rto_min,
            burst_max: head.burst.map(|bytes| (bytes / head.mss).max(1)),
            segments: 0,
            next: 0,
            next_max: 0,
            burst_at: 0,
            burst_left: 0,
            credit: 0,
            syn_at: 0,
            syn_due: true,
            timeouts: 0,
            restarted: 0,
            timed_out: 0,
            sent_at: 0,
            first_sent_at: 0,
            probe_due: false,
            first_due: false,
        }
    }

    /// Checks, before an event, that no timeout passed unnoticed.
    pub fn check_alive(&mut self, time: u64, faults: &mut Vec<Fault>) {
        if self.honest {
            self.liveness.check(time, faults);
        }
    }

    /// Checks a segment that is sent. `first` is when the first outstanding segment was last sent,
    /// if there is one.
    pub fn send(&mut self, time: u64, send: &Send, first: Option<u64>, faults: &mut Vec<Fault>) {
        if send.repeat == Repeat::Syn {
            self.syn_at = time;
            if !std::mem::take(&mut self.syn_due) {
                faults.push((Rule::Timeout, "a second handshake without a timeout".to_string()));
            }
            return;
        }
        if first.is_none() {
            self.restarted = self.restarted.max(time);
        }
        if send.repeat == Repeat::Probe {
            if !std::mem::take(&mut self.probe_due) {
                faults.push((Rule::Timeout, "a probe without a timeout".to_string()));
            }
        } else if send.repeat == Repeat::Again && std::mem::take(&mut self.first_due) {
            // RFC 6298, section 5.4: the segment that timed out is sent at once.
        } else {
            check_window(send, faults);
            self.pace(time, send, faults);
        }
        if send.repeat == Repeat::New {
            self.sent_at = time;
            self.first_sent_at = first.unwrap_or(time);
        }
        self.charge(time, send);
        self.liveness.pace(self.next_max - time);
    }

    /// As in Linux (`tcp_update_skb_after_send`): a burst, then nothing until its time at the
    /// pacing rate has passed.
    fn pace(&mut self, time: u64, send: &Send, faults: &mut Vec<Fault>) {
        if self.burst_left > 0 && self.burst_at == time {
            return;
        }
        if time < self.next {
            let text = format!("sent at {time} ns, pacing allows it from {} ns on", self.next);
            faults.push((Rule::Pacing, text));
        }
        if self.burst_max.is_some_and(|most| send.burst > most) {
            let text = format!("a burst of {} segments", send.burst);
            faults.push((Rule::Pacing, text));
        }
        self.burst_at = time;
        self.burst_left = send.burst.max(1);
        self.credit = time.saturating_sub(self.next);
        self.next = time;
        self.next_max = time;
    }

    fn charge(&mut self, time: u64, send: &Send) {
        self.burst_left = self.burst_left.saturating_sub(1);
        self.next_max = self.next_max.max(time);
        self.segments += 1;
        let Some(rate) = send.pacing.filter(|_| self.segments > UNPACED_SEGMENTS) else { return };
        let work = u128::from(send.bytes) * u128::from(8 * NANOS_PER_SECOND);
        let takes = u64::try_from(work / u128::from(rate.max(1))).unwrap_or(u64::MAX);
        self.next_max = self.next_max.saturating_add(takes);
        // A burst that began late recovers up to half its time.
        let forgiven = self.credit.min(takes / 2);
        self.credit -= forgiven;
        self.next = self.next.saturating_add(takes - forgiven);
    }

    /// Notes an ACK that acknowledged something new.
    pub fn on_progress(&mut self, time: u64) {
        self.restarted = time;
        self.timeouts = 0;
    }

    /// Notes an ACK that reports data beyond a gap: it may measure the RTT, which ends the backoff
    /// (RFC 6298, section 5, last paragraph).
    pub fn on_report(&mut self) {
        self.timeouts = 0;
    }

    /// Notes that the handshake is complete.
    pub fn on_established(&mut self) {
        self.timeouts = 0;
    }

    /// Two RTTs after the last new segment or progress, but no later than the retransmission
    /// timeout (RFC 8985, section 7.2). That timeout counts from the progress or, if a segment was
    /// sent since, from when the first outstanding one was sent (Linux's `tcp_rto_delta_us`).
    fn probe_due_min(&self, timeout_min: u64) -> u64 {
        let sent_since = self.sent_at >= self.restarted;
        let counted_from = if sent_since { self.first_sent_at } else { self.restarted };
        let two_round_trips = self.restarted.max(self.sent_at) + 2 * self.rtt_min;
        two_round_trips.min(counted_from + timeout_min)
    }

    /// Checks a timer that expired. `first` is when the first outstanding segment was last sent if
    /// a reordering timer may have run since the last progress: then the timeout counts from there
    /// (RFC 6298, section 5.1; Linux's `tcp_rto_delta_us`).
    pub fn on_timeout(
        &mut self,
        time: u64,
        what: Timeout,
        first: Option<u64>,
        faults: &mut Vec<Fault>,
    ) {
        let backed_off =
            |first: u64| first.saturating_mul(1 << self.timeouts.min(10)).min(TIMEOUT_MAX);
        let least = self.rto_min + self.rtt_min;
        let due = match what {
            Timeout::Syn => self.syn_at + backed_off(INITIAL_TIMEOUT),
            Timeout::Retransmission => {
                let since = match first {
                    None => self.restarted,
                    // The next segment after the one that timed out may be older than the timeout.
                    Some(first) if self.restarted > self.timed_out => first,
                    Some(first) => first.max(self.timed_out),
                };
                since + backed_off(least)
            }
            Timeout::Probe => self.probe_due_min(least),
        };
        if time < due {
            let text =
                format!("a timeout at {time} ns, which could come at {due} ns at the earliest");
            faults.push((Rule::Timeout, text));
        }
        self.liveness.on_timeout(time, what == Timeout::Retransmission);
        if what == Timeout::Probe {
            self.probe_due = true;
        } else {
            self.timeouts += 1;
            self.restarted = time;
            self.timed_out = time;
            self.first_due = what == Timeout::Retransmission;
            self.syn_due = what == Timeout::Syn;
        }
    }
}

/// Checks that the bytes in flight, with the segment, fit the congestion window.
fn check_window(send: &Send, faults: &mut Vec<Fault>) {
    if send.in_flight > i128::from(send.window) {
        let text = format!("{} bytes in flight in a window of {}", send.in_flight, send.window);
        faults.push((Rule::Window, text));
    }
}
