//! The change `window_machine`: BBR's model with the window as the control
//! variable, TCP D* (Lynn and Ghosal, "TCP D*: A Low Latency First Congestion
//! Control Algorithm", arXiv 2012.14996, 2020; the authors' module for Linux,
//! on GitHub as lambda-11235/tcp_davis).
//!
//! ```text
//!   GAIN_1 --- a round trip ---> GAIN_2 --- a round trip: measure ---+
//!     ^   window = BDP + gain                                        |
//!     +---------------------------------------------------- new BDP -+
//!     ^                                                              |
//!     +--- two round trips --- DRAIN (4 packets) <--- min_rtt 10 s old
//!
//!   BDP  = delivered in GAIN_2 / its time x min_rtt
//!   gain = 1 MiB/s x min_rtt, at most BDP / 16, at least four packets
//! ```
//! The BDP is rounded up to whole packets, and two leave at once. An acknowledgement
//! covers two, so that the RTT of data is above the minimum by the time that the link
//! takes for them: each measurement is two packets below the window. With a gain of
//! one packet (the module's value for a day in April 2020), or of four and bursts of
//! as many, a flow would settle where these cancel: at half of any link on whose path
//! a sixteenth of the BDP is less.
//!
//! There is no maximum filter: each BDP is one measurement with `gain` packets more
//! than the last BDP in flight, so that the queue is `gain` long. In slow start the
//! window is 3/2 of each new BDP, as long as the BDP grows. Losses have no effect.
//!
//! Our choices where the module differs or is silent:
//! - The minimum RTT is taken over samples rather than the smoothed RTT, which
//!   would count the queue of slow start as part of the path.
//! - A round trip is the smoothed RTT. The module compares with the kernel's
//!   value in eighths, that is with eight round trips.
//! - After a timeout slow start begins again. The module continues with a BDP
//!   measured from one packet, and adds one packet every other round trip.
//! - An application-limited measurement counts only if it is larger.
//! - It starts from the initial window, not from four packets.

use crate::pacing::{FASTER, rate_of_window};
use crate::{Connection, Controller, Decision, Event, Init, Needs, Sample, State};
use knee_units::{Rate, Time};

/// Window in DRAIN, and the minimum elsewhere, in packets.
const LEAST: u64 = 4;

/// Rate that determines `gain`, in bytes per second.
const GAIN_RATE: u64 = 1 << 20;

/// Divisor of the BDP for the largest `gain`.
const LARGEST_GAIN: u64 = 16;

/// Smallest `gain` in packets (`MIN_GAIN_CWND`).
const LEAST_GAIN: u64 = 4;

/// Packets that leave at once: the module leaves `sk_pacing_rate` at zero, so that
/// `tcp_tso_autosize` gives its minimum, `tcp_min_tso_segs`.
const BURST: u64 = 2;

/// Duration of DRAIN, in round trips.
const DRAIN_ROUNDS: u64 = 2;

/// Age at which the minimum RTT is measured again.
const MIN_RTT_AGE: Time = Time::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Gain1,
    Gain2,
    Drain,
}

/// Controller that keeps one BDP in the window, and slightly more to probe.
#[derive(Clone, Debug)]
pub(super) struct WindowMachine {
    mode: Mode,
    since: Time,
    /// The largest BDP of slow start; `None` once it is over.
    slow_start: Option<u64>,
    mss: u64,
    /// In bytes.
    bdp: u64,
    window: u64,
    min_rtt: Option<Time>,
    min_rtt_at: Time,
    /// Bytes delivered when GAIN_2 began.
    delivered: u64,
    /// Whether the application limited the rate in GAIN_2.
    app_limited: bool,
    decision: Decision,
}

impl WindowMachine {
    pub(super) fn new(init: &Init) -> WindowMachine {
        let mss = u64::from(init.mss.max(1));
        let window = init.initial_window.max(LEAST * mss);
        let mut machine = WindowMachine {
            mode: Mode::Gain1,
            since: Time::ZERO,
            slow_start: Some(0),
            mss,
            bdp: window,
            window,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            delivered: 0,
            app_limited: false,
            decision: Decision::default(),
        };
        machine.decide(&Connection::default());
        machine
    }

    fn take_rtt(&mut self, rtt: Time, now: Time) {
        if self.min_rtt.is_none_or(|least| rtt < least) {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
    }

    fn enter(&mut self, mode: Mode, connection: &Connection) {
        self.mode = mode;
        self.since = connection.now;
        self.delivered = connection.delivered;
        self.app_limited = connection.app_limited;
    }

    /// Returns the excess over the BDP, in bytes.
    fn gain(&self) -> u64 {
        let min_rtt_us = self.min_rtt.unwrap_or_default().as_micros();
        let gain = GAIN_RATE.saturating_mul(min_rtt_us) / 1_000_000;
        gain.min(self.bdp / LARGEST_GAIN).max(LEAST_GAIN * self.mss)
    }

    fn advance(&mut self, connection: &Connection) {
        let elapsed = connection.now.saturating_sub(self.since);
        let round = connection.srtt.max(Time::from_micros(1));
        match self.mode {
            Mode::Gain1 if elapsed > round => self.enter(Mode::Gain2, connection),
            Mode::Gain2 if elapsed > round => self.end_measurement(elapsed, connection),
            Mode::Drain if elapsed > round * DRAIN_ROUNDS => self.resume(connection),
            _ => {}
        }
    }

    fn end_measurement(&mut self, elapsed: Time, connection: &Connection) {
        let delivered = connection.delivered.saturating_sub(self.delivered);
        let min_rtt = self.min_rtt.unwrap_or(connection.srtt);
        let bdp = u128::from(delivered) * u128::from(min_rtt.as_nanos())
            / u128::from(elapsed.as_nanos().max(1));
        let bdp = (bdp.min(u128::from(u64::MAX >> 8)) as u64).next_multiple_of(self.mss);
        if !self.app_limited || bdp > self.bdp {
            self.bdp = bdp;
        }
        if let Some(largest) = self.slow_start
            && bdp > largest
        {
            self.slow_start = Some(bdp);
            self.window = bdp / 2 * 3;
            self.enter(Mode::Gain1, connection);
        } else if connection.now > self.min_rtt_at + MIN_RTT_AGE {
            self.slow_start = None;
            self.min_rtt = None;
            self.window = LEAST * self.mss;
            self.enter(Mode::Drain, connection);
        } else {
            self.slow_start = None;
            self.resume(connection);
        }
    }

    fn resume(&mut self, connection: &Connection) {
        self.window = self.bdp + self.gain();
        self.enter(Mode::Gain1, connection);
    }

    fn on_timeout(&mut self, connection: &Connection) {
        self.window = connection.in_flight + self.mss;
        self.bdp = LEAST * self.mss;
        self.slow_start = Some(0);
        self.enter(Mode::Gain1, connection);
    }

    fn decide(&mut self, connection: &Connection) -> Decision {
        self.window = self.window.max(LEAST * self.mss);
        let mss = self.mss as u32;
        let rate = rate_of_window(self.window / self.mss, FASTER, mss, connection.srtt);
        self.decision = Decision {
            window: self.window,
            pacing_rate: rate,
            send_quantum: BURST * self.mss,
            holds_back: self.mode == Mode::Drain,
            ..Decision::default()
        };
        self.decision
    }
}

impl Controller for WindowMachine {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.mss = u64::from(connection.mss.max(1));
        if let Some(rtt) = sample.rtt {
            self.take_rtt(rtt, connection.now);
        }
        self.app_limited |= sample.app_limited;
        self.advance(connection);
        self.decide(connection)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => {
                if connection.min_rtt > Time::ZERO {
                    self.take_rtt(connection.min_rtt, connection.now);
                }
                self.enter(Mode::Gain1, connection);
            }
            Event::Timeout => self.on_timeout(connection),
            Event::Penalised => self.window /= 2,
            Event::SentAfterIdle
            | Event::RecoveryStart
            | Event::CongestionEcho
            | Event::RecoveryEnd
            | Event::SpuriousRecovery => {}
        }
        self.decide(connection)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let phase = match (self.mode, self.slow_start) {
            (Mode::Drain, _) => "drain",
            (_, Some(_)) => "slow_start",
            (Mode::Gain1, None) => "gain_1",
            (Mode::Gain2, None) => "gain_2",
        };
        let bandwidth = self.min_rtt.map(|rtt| {
            let bits = u128::from(self.bdp) * 8_000_000_000 / u128::from(rtt.as_nanos().max(1));
            Rate::from_bits_per_second(bits.min(u128::from(u64::MAX)) as u64)
        });
        State { phase, bandwidth, min_rtt: self.min_rtt, ..State::default() }
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    const MSS: u64 = 1000;

    /// An ACK for `packets` packets every 10 ms; an RTT of 40 ms.
    struct ByHand {
        machine: WindowMachine,
        connection: Connection,
    }

    impl ByHand {
        fn new() -> ByHand {
            let rng = ChaCha8Rng::seed_from_u64(1);
            let init = Init { mss: MSS as u32, mtu: 1052, initial_window: 10 * MSS, rng };
            let rtt = Time::from_millis(40);
            let connection =
                Connection { mss: MSS as u32, srtt: rtt, min_rtt: rtt, ..Connection::default() };
            let mut machine = WindowMachine::new(&init);
            machine.on_event(Event::Established, &connection);
            ByHand { machine, connection }
        }

        /// Runs until `ms`, including the last ACK.
        fn until(&mut self, ms: u64, packets: u64) -> &mut ByHand {
            while self.connection.now < Time::from_millis(ms) {
                self.connection.now += Time::from_millis(10);
                self.connection.delivered += packets * MSS;
                let sample = Sample { rtt: Some(Time::from_millis(40)), ..Sample::default() };
                self.machine.on_ack(&sample, &self.connection);
            }
            self
        }

        #[track_caller]
        fn is(&self, phase: &str, window: u64) {
            assert_eq!(
                (self.machine.state().phase, self.machine.decision().window),
                (phase, window)
            );
        }
    }

    /// One packet per millisecond over 40 ms is a BDP of 40,000 bytes. A round trip
    /// ends with the first ACK after 40 ms, the fifth: 50 packets in 50 ms. Slow
    /// start goes to 3/2 of the first BDP; the second is no larger. 1 MiB/s for 40
    /// ms would be 41,943 bytes, and a sixteenth of the BDP 2,500: the gain is the
    /// smallest, four packets.
    #[test]
    fn the_published_steps() {
        let mut by_hand = ByHand::new();
        by_hand.is("slow_start", 10_000);
        assert_eq!(by_hand.machine.decision().send_quantum, 2 * MSS);
        by_hand.until(90, 10).is("slow_start", 10_000);
        by_hand.until(100, 10).is("slow_start", 60_000);
        by_hand.until(200, 10).is("gain_1", 44_000);
        by_hand.until(250, 10).is("gain_2", 44_000);
        // Twice the rate: twice the BDP, plus a sixteenth.
        by_hand.until(300, 20).is("gain_1", 85_000);
        // 0.4 packets per millisecond: 16,000 bytes, and four packets.
        by_hand.until(400, 4).is("gain_1", 20_000);
        by_hand.until(500, 1).is("gain_1", 8_000);
        by_hand.until(600, 0).is("gain_1", 4_000);
    }

    /// The minimum was measured at 0 s: DRAIN begins with the first measurement
    /// after 10 s and lasts two round trips; the earlier estimate stays in force.
    #[test]
    fn the_minimum_is_renewed() {
        let mut by_hand = ByHand::new();
        by_hand.until(10_000, 10).is("gain_1", 44_000);
        by_hand.until(10_100, 10).is("drain", 4_000);
        assert!(by_hand.machine.decision().holds_back);
        by_hand.until(10_180, 1).is("drain", 4_000);
        by_hand.until(10_190, 1).is("gain_1", 44_000);
    }

    #[test]
    fn a_timeout_begins_again() {
        let mut by_hand = ByHand::new();
        by_hand.until(200, 10);
        by_hand.machine.on_event(Event::Timeout, &by_hand.connection);
        by_hand.is("slow_start", 4_000);
        by_hand.until(300, 10).is("slow_start", 60_000);
    }

    /// An application-limited sample says nothing about the path, unless it
    /// exceeds the estimate.
    #[test]
    fn what_the_application_limits_does_not_shrink_it() {
        let mut by_hand = ByHand::new();
        by_hand.until(200, 10);
        by_hand.connection.app_limited = true;
        by_hand.until(300, 1).is("gain_1", 44_000);
        by_hand.until(400, 20).is("gain_1", 85_000);
    }
}
