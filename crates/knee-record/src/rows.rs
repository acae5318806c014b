//! The rows of the tables, as grounds write them.

use knee_units::Time;

/// A row of a flow's time series. Counters count from the flow's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSample {
    /// Flow, by its index in the scenario.
    pub flow: u32,
    /// Path of the flow, by its index in the scenario.
    pub path: u16,
    /// Time since the start of the run, nanoseconds.
    pub time_ns: u64,
    /// Payload bytes delivered in order to the receiver's application.
    pub delivered_bytes: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Segments (data packets) sent, retransmissions included.
    pub sent_packets: u64,
    /// Payload bytes marked lost.
    pub lost_bytes: u64,
    /// Payload bytes in flight.
    pub in_flight_bytes: u64,
    /// Congestion window.
    pub window_bytes: u64,
    /// Pacing rate; zero if not paced.
    pub pacing_rate_bps: u64,
    /// Last RTT measured; zero before the first measurement.
    pub rtt_ns: u64,
    /// Smoothed RTT; zero before the first measurement.
    pub srtt_ns: u64,
    /// Base RTT of the path, and what the last packets in both directions waited in its queues, where
    /// the network is asked instead of the sender; zero if no packet has passed or nobody asks.
    pub path_rtt_ns: u64,
    /// Controller's estimate of the bandwidth; zero if there is none.
    pub bandwidth_estimate_bps: u64,
    /// Controller's estimate of the minimum RTT; zero if there is none.
    pub min_rtt_estimate_ns: u64,
    /// Slow-start threshold; zero if not set.
    pub slow_start_threshold_bytes: u64,
    /// Bytes that the controller has removed from the window because they only queue (BBR's
    /// `shrink_window`); `None` with other controllers, and on grounds that do not know.
    pub shrink_bytes: Option<u64>,
    /// Payload bytes that the receiver holds because preceding data is missing on another path; for
    /// connections over several paths.
    pub reassembly_bytes: u64,
    /// Controller's phase.
    pub phase: &'static str,
}

impl FlowSample {
    /// Adds the counters, windows, rates and bytes in flight of another sample.
    #[inline]
    pub fn add(&mut self, other: &FlowSample) {
        self.each(other, |one, other| *one += other);
    }

    /// Subtracts what [`FlowSample::add`] added.
    #[inline]
    pub fn take_away(&mut self, other: &FlowSample) {
        self.each(other, |one, other| *one -= other);
    }

    #[inline]
    fn each(&mut self, other: &FlowSample, change: impl Fn(&mut u64, u64)) {
        change(&mut self.delivered_bytes, other.delivered_bytes);
        change(&mut self.sent_bytes, other.sent_bytes);
        change(&mut self.retransmitted_bytes, other.retransmitted_bytes);
        change(&mut self.sent_packets, other.sent_packets);
        change(&mut self.lost_bytes, other.lost_bytes);
        change(&mut self.in_flight_bytes, other.in_flight_bytes);
        change(&mut self.window_bytes, other.window_bytes);
        change(&mut self.pacing_rate_bps, other.pacing_rate_bps);
        change(&mut self.bandwidth_estimate_bps, other.bandwidth_estimate_bps);
        change(&mut self.slow_start_threshold_bytes, other.slow_start_threshold_bytes);
        change(&mut self.reassembly_bytes, other.reassembly_bytes);
        if let Some(bytes) = other.shrink_bytes {
            change(self.shrink_bytes.get_or_insert(0), bytes);
        }
    }

    /// Copies the values that have no sum: RTTs and the phase.
    #[inline]
    pub fn show(&mut self, later: &FlowSample) {
        self.rtt_ns = later.rtt_ns;
        self.srtt_ns = later.srtt_ns;
        self.path_rtt_ns = later.path_rtt_ns;
        self.min_rtt_estimate_ns = later.min_rtt_estimate_ns;
        self.phase = later.phase;
    }

    /// Combines this sample with another connection of the flow: counters, windows, rates and bytes
    /// in flight are summed; path and delivered bytes are kept; RTT and phase are those of `later`.
    pub fn with(self, later: FlowSample) -> FlowSample {
        FlowSample {
            path: self.path,
            delivered_bytes: self.delivered_bytes,
            sent_bytes: self.sent_bytes + later.sent_bytes,
            retransmitted_bytes: self.retransmitted_bytes + later.retransmitted_bytes,
            sent_packets: self.sent_packets + later.sent_packets,
            lost_bytes: self.lost_bytes + later.lost_bytes,
            in_flight_bytes: self.in_flight_bytes + later.in_flight_bytes,
            window_bytes: self.window_bytes + later.window_bytes,
            pacing_rate_bps: self.pacing_rate_bps + later.pacing_rate_bps,
            bandwidth_estimate_bps: self.bandwidth_estimate_bps + later.bandwidth_estimate_bps,
            slow_start_threshold_bytes: self.slow_start_threshold_bytes
                + later.slow_start_threshold_bytes,
            shrink_bytes: [self.shrink_bytes, later.shrink_bytes]
                .into_iter()
                .flatten()
                .reduce(u64::saturating_add),
            ..later
        }
    }
}

/// A row of a link's time series. Counters count from the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkSample {
    /// Link, by its index in the scenario.
    pub link: u32,
    /// Time since the start of the run, nanoseconds.
    pub time_ns: u64,
    /// IP bytes in the queue, including the packet in transmission.
    pub queue_bytes: u64,
    /// Packets in the queue, including the packet in transmission.
    pub queue_packets: u64,
    /// Time that a packet arriving now would wait.
    pub queue_delay_ns: u64,
    /// IP bytes that left the queue.
    pub departed_bytes: u64,
    /// IP bytes of the capacity that were used: bytes that left, and the transmitted part of the
    /// packet in transmission.
    pub used_bytes: u64,
    /// IP bytes that the link's rate has allowed so far.
    pub capacity_bytes: u64,
    /// Packets that arrived.
    pub entered_packets: u64,
    /// Packets dropped by queue, AQM or policer.
    pub dropped_packets: u64,
    /// Packets lost at random, by a loss record, or because the link was down.
    pub lost_packets: u64,
    /// Packets marked with Congestion Experienced.
    pub marked_packets: u64,
}

impl LinkSample {
    /// Samples the state of link `index` now.
    pub fn of<P: knee_link::Packet>(
        link: &mut knee_link::Link<P>,
        index: usize,
        now: Time,
    ) -> LinkSample {
        let (counters, queue) = (link.counters(), link.queue(now));
        LinkSample {
            link: index as u32,
            time_ns: now.as_nanos(),
            queue_bytes: queue.bytes,
            queue_packets: queue.packets,
            queue_delay_ns: queue.delay.as_nanos(),
            departed_bytes: queue.departed_bytes,
            used_bytes: queue.used_bytes,
            capacity_bytes: queue.capacity_bytes,
            entered_packets: counters.entered_packets,
            dropped_packets: counters.dropped_packets,
            lost_packets: counters.lost_packets,
            marked_packets: counters.marked_packets,
        }
    }
}

/// A row of the time series of a traffic class of a link. Counters count from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassSample {
    /// Link, by its index in the scenario.
    pub link: u32,
    /// Class, by its number at the link.
    pub class: u16,
    /// Its name, one of [`knee_link::CLASS_NAMES`].
    pub name: &'static str,
    /// Time since the start of the run, nanoseconds.
    pub time_ns: u64,
    /// IP bytes in the queue, without the packet in transmission.
    pub queue_bytes: u64,
    /// Packets in the queue.
    pub queue_packets: u64,
    /// Time that the oldest of them has waited; zero if the queue is empty.
    pub queue_delay_ns: u64,
    /// IP bytes that left the queue.
    pub departed_bytes: u64,
    /// Packets that the AQM dropped.
    pub dropped_packets: u64,
    /// Packets that the AQM marked with Congestion Experienced.
    pub marked_packets: u64,
}

impl ClassSample {
    /// Samples the classes of link `index` now; empty if its queue has a single class.
    pub fn of<P: knee_link::Packet>(
        link: &mut knee_link::Link<P>,
        index: usize,
        now: Time,
    ) -> impl Iterator<Item = ClassSample> + use<P> {
        let classes = link.classes(now).into_iter().enumerate();
        classes.map(move |(class, state)| ClassSample {
            link: index as u32,
            class: class as u16,
            name: state.name,
            time_ns: now.as_nanos(),
            queue_bytes: state.bytes,
            queue_packets: state.packets,
            queue_delay_ns: state.delay.as_nanos(),
            departed_bytes: state.departed_bytes,
            dropped_packets: state.dropped_packets,
            marked_packets: state.marked_packets,
        })
    }
}

/// One row per flow, written when it ends or is cut off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRecord {
    /// Flow, by its index in the scenario.
    pub flow: u32,
    /// Name of the group.
    pub name: String,
    /// Number within the group.
    pub index: u32,
    /// Controller or preset, as written in the scenario.
    pub cc: String,
    /// Name of the path; several are joined by `+`.
    pub path: String,
    /// Scheduler, as written in the scenario; empty for one path.
    pub scheduler: String,
    /// Start, nanoseconds since the start of the run.
    pub start_ns: u64,
    /// End, or when it was cut off, nanoseconds since the start of the run.
    pub end_ns: u64,
    /// Bytes to transfer; zero if the flow has no end.
    pub size_bytes: u64,
    /// Time from the start to the acknowledgement of the last byte; `None` if cut off.
    pub completion_ns: Option<u64>,
    /// Completion time of a perfect scheduler with the same controllers, since the start; `None` if
    /// not computed.
    pub perfect_completion_ns: Option<u64>,
    /// Payload bytes delivered in order to the receiver's application.
    pub delivered_bytes: u64,
    /// Segments delivered in order to the receiver's application.
    pub delivered_packets: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Smallest RTT measured; zero if none was.
    pub rtt_min_ns: u64,
    /// Largest RTT measured; zero if none was.
    pub rtt_max_ns: u64,
    /// RTT of a full segment and its ACK over empty queues.
    pub base_rtt_ns: u64,
    /// Mean rate that its paths allowed from start to end, each limited by its slowest link; zero
    /// if unlimited.
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
    /// Payload bytes assigned to a path that had already been assigned to another.
    pub reinjected_bytes: u64,
    /// Payload bytes that the receiver got more than once, over different paths; `None` if the
    /// ground does not know.
    pub duplicate_bytes: Option<u64>,
    /// Time that bytes waited at the receiver for preceding data on another path, mean over all
    /// bytes, nanoseconds; `None` if the ground does not know.
    pub head_of_line_ns: Option<u64>,
    /// Largest number of bytes that waited in this way at one time; `None` if the ground does not
    /// know.
    pub reassembly_peak_bytes: Option<u64>,
    /// Times that a path was found silent.
    pub suspicions: u64,
}

/// One row per path of a flow over several paths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathRecord {
    /// Flow, by its index in the scenario.
    pub flow: u32,
    /// Path, by its index in the scenario.
    pub path: u16,
    /// Name of the path.
    pub name: String,
    /// Whether it is used only while no other path is active.
    pub backup: bool,
    /// Payload bytes sent on it, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted on it.
    pub retransmitted_bytes: u64,
    /// Payload bytes that its subflows delivered.
    pub delivered_bytes: u64,
    /// Smallest RTT measured; zero if none was.
    pub rtt_min_ns: u64,
    /// Largest RTT measured; zero if none was.
    pub rtt_max_ns: u64,
    /// RTT of a full segment and its ACK over empty queues.
    pub base_rtt_ns: u64,
    /// Propagation delay from sender to receiver.
    pub one_way_delay_ns: u64,
    /// Mean rate that it allowed during the flow, limited by its slowest link; zero if unlimited.
    pub rate_bps: u64,
    /// When payload sent on it was last acknowledged, since the start of the run; `None` if none
    /// was, or if the ground did not note it.
    pub finished_ns: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
}

/// One row per object of a page or segment of a video. Times are since the
/// start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectRecord {
    /// Flow, by its index in the scenario.
    pub flow: u32,
    /// Number within the flow's application, from zero.
    pub number: u32,
    /// Name: `html`, `css`, `segment 12` …
    pub name: String,
    /// Connection of the application that carried it, from zero.
    pub connection: u32,
    /// Size.
    pub size_bytes: u64,
    /// When it was requested.
    pub requested_ns: u64,
    /// When its first byte arrived; `None` if it did not.
    pub first_byte_ns: Option<u64>,
    /// When its last byte arrived; `None` if it did not.
    pub completed_ns: Option<u64>,
    /// Video: number of its quality, zero is the lowest.
    pub quality: Option<u32>,
    /// Video: bitrate of its quality; otherwise zero.
    pub bitrate_bps: u64,
    /// Video: media in the player's buffer when the segment had arrived.
    pub buffer_ns: u64,
    /// Video: time that playback stood still waiting for it; for the first segment, the start-up
    /// time.
    pub stalled_ns: u64,
}

impl ObjectRecord {
    /// Builds the row of an object of a flow's application that began at `start`.
    pub fn of(flow: usize, start: Time, object: &knee_workload::Object) -> ObjectRecord {
        let at = |time: Time| (start + time).as_nanos();
        ObjectRecord {
            flow: flow as u32,
            number: object.number,
            name: object.name.clone(),
            connection: object.connection,
            size_bytes: object.bytes,
            requested_ns: at(object.requested),
            first_byte_ns: object.first_byte.map(at),
            completed_ns: object.completed.map(at),
            quality: object.quality,
            bitrate_bps: object.bitrate_bps,
            buffer_ns: object.buffer.as_nanos(),
            stalled_ns: object.stalled.as_nanos(),
        }
    }
}

/// The fields of a transfer's [`ConnectionRecord`](crate::ConnectionRecord) that measures need.
/// Each transfer of a mix has a connection of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TransferRecord {
    /// Flow (class), by its index in the scenario.
    pub flow: u32,
    /// Number within the class, in order of arrival, from zero.
    pub number: u32,
    /// Start, since the start of the run.
    pub start_ns: u64,
    /// Time from the start to the acknowledgement of the last byte; `None` if cut off.
    pub completion_ns: Option<u64>,
    /// Size.
    pub size_bytes: u64,
    /// Payload bytes delivered in order to the receiver's application.
    pub delivered_bytes: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Smallest RTT measured; zero if none was.
    pub rtt_min_ns: u64,
}

impl FlowRecord {
    /// Returns the name of the flow in claims and tables: `bbr[1]`.
    pub fn label(&self) -> String {
        label(&self.name, self.index)
    }
}

/// Returns the name of a flow of a group in claims and tables.
pub(crate) fn label(name: &str, index: u32) -> String {
    format!("{name}[{index}]")
}
