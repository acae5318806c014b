//! What a path's congestion control shows to records and schedulers.

use knee_cc::{Decision, State};
use knee_units::{Rate, Time};

/// Counters and current state of a path, for records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// Ack-eliciting packets sent.
    pub sent_packets: u64,
    /// Bytes of packets sent.
    pub sent: u64,
    /// Bytes acknowledged.
    pub delivered: u64,
    /// Packets acknowledged.
    pub delivered_packets: u64,
    /// Bytes lost.
    pub lost: u64,
    /// Packets lost.
    pub lost_packets: u64,
    /// Recoveries begun.
    pub recoveries: u64,
    /// Recoveries undone.
    pub spurious_recoveries: u64,
    /// Periods of persistent congestion.
    pub timeouts: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Window in force, bytes.
    pub window: u64,
    /// Last decision of the controller.
    pub decision: Decision,
    /// Latest RTT.
    pub rtt: Time,
    /// Smoothed RTT.
    pub srtt: Time,
    /// Mean deviation of the RTT.
    pub rtt_variation: Time,
    /// Lowest RTT within 300 s.
    pub min_rtt: Time,
    /// Lowest and highest RTT.
    pub rtt_range: Option<(Time, Time)>,
    /// Delivery rate of the last sample.
    pub rate: Option<Rate>,
    /// Estimated capacity of the path.
    pub capacity: Option<Rate>,
    /// State that the controller reports.
    pub state: State,
}

impl Observed {
    /// Returns the counters alone, as of a path that is gone.
    pub fn past(&self) -> Observed {
        Observed {
            in_flight: 0,
            window: 0,
            decision: Decision::default(),
            rtt: Time::ZERO,
            srtt: Time::ZERO,
            rtt_variation: Time::ZERO,
            min_rtt: Time::ZERO,
            rate: None,
            capacity: None,
            state: State::default(),
            ..*self
        }
    }
}
