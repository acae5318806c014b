//! The rows of the three tables, as a ground writes them.

/// A row of a flow's time series. Counters count from the flow's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSample {
    /// Flow, by its index in the scenario.
    pub flow: u32,
    /// Path of the flow, by its index in the scenario.
    pub path: u16,
    /// Time since the start of the run, nanoseconds.
    pub time_ns: u64,
    /// Payload bytes that the receiver's application got, in order.
    pub delivered_bytes: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Segments (data packets) sent, retransmissions included.
    pub sent_packets: u64,
    /// Payload bytes marked lost.
    pub lost_bytes: u64,
    /// Payload bytes in flight.
    pub in_flight_bytes: u64,
    /// Congestion window.
    pub window_bytes: u64,
    /// Pacing rate; zero: not paced.
    pub pacing_rate_bps: u64,
    /// Last RTT measured; zero before the first.
    pub rtt_ns: u64,
    /// Smoothed RTT; zero before the first.
    pub srtt_ns: u64,
    /// Controller's estimate of the bandwidth; zero: none.
    pub bandwidth_estimate_bps: u64,
    /// Controller's estimate of the minimum RTT; zero: none.
    pub min_rtt_estimate_ns: u64,
    /// Slow-start threshold; zero: none.
    pub slow_start_threshold_bytes: u64,
    /// Controller's phase.
    pub phase: &'static str,
}

/// A row of a link's time series. Counters count from the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSample {
    /// Link, by its index in the scenario.
    pub link: u32,
    /// Time since the start of the run, nanoseconds.
    pub time_ns: u64,
    /// IP bytes waiting, the packet in transmission included.
    pub queue_bytes: u64,
    /// Packets waiting, the packet in transmission included.
    pub queue_packets: u64,
    /// Time that a packet entering now would wait.
    pub queue_delay_ns: u64,
    /// IP bytes that left the queue.
    pub departed_bytes: u64,
    /// IP bytes that the link's rate would have allowed so far.
    pub capacity_bytes: u64,
    /// Packets that came in.
    pub entered_packets: u64,
    /// Packets dropped by queue, AQM or policer.
    pub dropped_packets: u64,
    /// Packets lost at random, by record, or because the link was down.
    pub lost_packets: u64,
    /// Packets marked with Congestion Experienced.
    pub marked_packets: u64,
}

/// One row per flow, written when it ends or is cut off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRecord {
    /// Flow, by its index in the scenario.
    pub flow: u32,
    /// Name of its group.
    pub name: String,
    /// Number within the group.
    pub index: u32,
    /// Controller or preset, as written in the scenario.
    pub cc: String,
    /// Name of its path.
    pub path: String,
    /// When it started, nanoseconds since the start of the run.
    pub start_ns: u64,
    /// When it ended or was cut off.
    pub end_ns: u64,
    /// Bytes to transfer; zero: no end.
    pub size_bytes: u64,
    /// From start to the acknowledgement of the last byte; none: cut off.
    pub completion_ns: Option<u64>,
    /// Payload bytes that the receiver's application got, in order.
    pub delivered_bytes: u64,
    /// Segments that the receiver's application got, in order.
    pub delivered_packets: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Smallest RTT measured; zero: none was.
    pub rtt_min_ns: u64,
    /// Largest RTT measured; zero: none was.
    pub rtt_max_ns: u64,
    /// RTT of a full segment and its ACK over empty queues.
    pub base_rtt_ns: u64,
    /// Rate of the slowest link on the path; zero: unlimited.
    pub path_rate_bps: u64,
    /// IP bytes of a full segment over its payload bytes.
    pub header_overhead: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Recoveries and timeouts undone as spurious.
    pub spurious_recoveries: u64,
    /// Payload bytes reported as marked.
    pub marked_bytes: u64,
}

impl FlowRecord {
    /// The flow as a claim or a table names it: `bbr[1]`.
    pub fn label(&self) -> String {
        format!("{}[{}]", self.name, self.index)
    }
}
