//! Computes the pacing rate, the burst and the window from the model and the
//! phase (section 5.6).

use super::config::StartupLoss;
use super::{Bbr3, MIN_WINDOW_PACKETS, NONE, Phase, UNIT};
use crate::{Connection, Recovery, Sample};
use knee_units::{Rate, Time};

/// Pacing rate as a percentage of the estimate: on average slightly below the
/// bottleneck, so that queues drain rather than grow.
const MARGIN_PERCENT: u64 = 99;

/// RTT assumed until the first sample: 1 ms.
const ASSUMED_RTT: Time = Time::from_millis(1);

/// Largest burst, bytes.
const LARGEST_BURST: u64 = 65_536;

/// Window gain while going up: leaves room to exceed the earlier rate even if
/// the window was the limit. In other phases it is [`WINDOW_GAIN`].
const WINDOW_GAIN_UP: u32 = 2_250;
const WINDOW_GAIN: u32 = 2_000;
const WINDOW_GAIN_PROBE_RTT: u32 = UNIT / 2;

/// The current pacing rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// Bytes per second.
    pub(super) rate: u64,
    /// Whether the initial rate is based on an RTT.
    has_rtt: bool,
    /// Bytes that may be sent at once, in whole packets; and the rate and
    /// packet size for which this was computed.
    quantum: u64,
    quantum_for: (u64, u32),
}

impl Bbr3 {
    /// Pacing gain of the phase (section 5.6.1).
    pub(super) fn pacing_gain(&self) -> u32 {
        match self.phase {
            Phase::Startup => self.config.startup_gain,
            Phase::Drain => self.config.drain_gain,
            Phase::Down => self.config.gain_down,
            Phase::Up => self.config.gain_up,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => UNIT,
        }
    }

    fn window_gain(&self) -> u32 {
        match self.phase {
            Phase::Startup => self.config.startup_window_gain,
            Phase::Up => WINDOW_GAIN_UP,
            Phase::ProbeRtt => WINDOW_GAIN_PROBE_RTT,
            _ => WINDOW_GAIN,
        }
    }

    /// `InitPacingRate`: start-up's gain times the initial window over the RTT.
    pub(super) fn init_pacing_rate(&mut self, srtt: Time) {
        self.pacing.has_rtt = srtt > Time::ZERO;
        let rtt = if self.pacing.has_rtt { srtt } else { ASSUMED_RTT };
        let nominal = self.initial_window.saturating_mul(1_000_000) / rtt.as_micros().max(1);
        self.put_rate(nominal.saturating_mul(u64::from(self.config.startup_gain)) / 1000);
    }

    /// `SetPacingRateWithGain`. Before the pipe is full the rate only rises: an
    /// application-limited estimate must not slow start-up down.
    #[inline]
    pub(super) fn set_pacing_rate(&mut self, gain: u32, srtt: Time) {
        if !self.pacing.has_rtt && srtt > Time::ZERO {
            self.init_pacing_rate(srtt);
        }
        let scaled = self.bw.saturating_mul(u64::from(gain) * MARGIN_PERCENT);
        let rate = scaled / (u64::from(UNIT) * 100);
        if self.full_pipe.reached || rate > self.pacing.rate {
            self.put_rate(rate);
        }
    }

    /// Sets the rate, at least one packet per second: at a rate of zero the
    /// packet that shows a better one would never be sent.
    #[inline]
    fn put_rate(&mut self, rate: u64) {
        self.pacing.rate = rate.max(u64::from(self.mss));
    }

    /// `SetSendQuantum`: data of one millisecond at the pacing rate, between
    /// two packets and 64 KiB.
    #[inline]
    pub(super) fn update_quantum(&mut self) {
        let key = (self.pacing.rate, self.mss);
        if self.pacing.quantum_for == key {
            return;
        }
        let mss = u64::from(self.mss);
        let packets = (self.pacing.rate / 1000).min(LARGEST_BURST) / mss;
        self.pacing.quantum = packets.max(2) * mss;
        self.pacing.quantum_for = key;
    }

    #[inline]
    pub(super) fn quantum(&self) -> u64 {
        self.pacing.quantum
    }

    #[inline]
    pub(super) fn pacing_rate(&self) -> Rate {
        Rate::from_bytes_per_second(self.pacing.rate)
    }

    /// Returns `rate` times the minimum RTT, bytes.
    #[inline]
    pub(super) fn bdp(&self, rate: u64) -> u64 {
        self.bdp_multiple(rate, UNIT)
    }

    /// `BDPMultiple`.
    #[inline]
    pub(super) fn bdp_multiple(&self, rate: u64, gain: u32) -> u64 {
        self.bdp_multiple_of(rate, self.min_rtt.us, gain)
    }

    /// The same for another minimum RTT.
    #[inline]
    pub(super) fn bdp_multiple_of(&self, rate: u64, min_rtt_us: u64, gain: u32) -> u64 {
        if min_rtt_us == 0 {
            return self.initial_window; // no RTT is known
        }
        let bdp = rate.saturating_mul(min_rtt_us) / 1_000_000;
        bdp.saturating_mul(u64::from(gain)) / u64::from(UNIT)
    }

    /// `QuantizationBudget`: adds room for bursts at both ends, for delayed
    /// acknowledgements, and, while going up, for exceeding small pipes.
    #[inline]
    fn with_budget(&self, bytes: u64) -> u64 {
        let mss = u64::from(self.mss);
        let bursts = u64::from(self.config.offload_quanta) * self.quantum();
        let roomy = bytes.max(bursts).max(MIN_WINDOW_PACKETS * mss);
        if self.phase == Phase::Up { roomy.saturating_add(2 * mss) } else { roomy }
    }

    /// `Inflight(rate, 1.0)`: bytes in flight without a queue.
    #[inline]
    pub(super) fn in_flight_target(&self, rate: u64) -> u64 {
        self.with_budget(self.bdp(rate))
    }

    /// `TargetInflight`: the BDP, unless loss cut the window.
    #[inline]
    pub(super) fn target_in_flight(&self) -> u64 {
        self.bdp(self.bw).min(self.window)
    }

    /// `SetCwnd`.
    #[inline]
    pub(super) fn set_window(&mut self, sample: &Sample, connection: &Connection) {
        let acked = sample.newly_acked;
        if acked > 0 {
            let bdp = self.bdp_multiple(self.bw, self.window_gain());
            let most = self.with_budget(bdp.saturating_add(self.extra_acked()));
            if self.full_pipe.reached {
                self.window = (self.window + acked).min(most);
            } else if self.window < most || connection.delivered < self.initial_window {
                self.window += acked;
            }
            if self.conserves(connection) {
                self.window = self.window.min(connection.in_flight.saturating_add(acked));
            }
            self.window = self.window.max(MIN_WINDOW_PACKETS * u64::from(self.mss));
        }
        if self.phase == Phase::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// Whether what is sent is no more than what is delivered: while start-up repairs losses, with
    /// `startup_loss = "conserve"`.
    #[inline]
    fn conserves(&self, connection: &Connection) -> bool {
        self.phase == Phase::Startup
            && self.config.startup_loss == StartupLoss::Conserve
            && connection.recovery == Recovery::Recovery
    }

    /// `BoundCwndForModel`.
    #[inline]
    fn bound_window(&mut self) {
        let cap = match self.phase {
            Phase::Down | Phase::Refill | Phase::Up => self.in_flight_long,
            Phase::Cruise | Phase::ProbeRtt => self.in_flight_with_headroom(),
            Phase::Startup | Phase::Drain => NONE,
        };
        let floor = MIN_WINDOW_PACKETS * u64::from(self.mss);
        self.window = self.window.min(cap.min(self.in_flight_short).max(floor));
    }
}
