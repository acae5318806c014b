//! Input and output of controllers in Python.

use knee_cc::{Event, Recovery, Sample};
use knee_units::{NANOS_PER_SECOND, Rate};
use pyo3::prelude::*;

/// Arguments for making a controller.
#[pyclass(frozen, get_all, module = "knee")]
pub struct Init {
    /// Payload bytes of a full segment.
    mss_bytes: u32,
    /// IP bytes of a full segment.
    mtu_bytes: u32,
    /// Initial window, bytes.
    initial_window_bytes: u64,
    /// A `random.Random` for the flow, seeded from the run's seed. With any other source of
    /// randomness, the same seed no longer gives the same bytes.
    random: Py<PyAny>,
}

impl Init {
    /// Makes the arguments for a controller with this seed.
    pub fn new(py: Python<'_>, init: &knee_cc::Init, seed: u64) -> PyResult<Init> {
        Ok(Init {
            mss_bytes: init.mss,
            mtu_bytes: init.mtu,
            initial_window_bytes: init.initial_window,
            random: py.import("random")?.call_method1("Random", (seed,))?.unbind(),
        })
    }
}

/// An acknowledgement, or with `per_round` the sums over a round trip, and the state of the
/// connection after it. The same object is refilled for each call: copy what you want to keep.
#[pyclass(get_all, module = "knee")]
#[derive(Default)]
pub struct Ack {
    /// Time since the start of the run, nanoseconds.
    now_ns: u64,
    /// Payload bytes of a full segment.
    mss_bytes: u32,
    /// Bytes newly acknowledged, cumulatively or selectively.
    newly_acked_bytes: u64,
    /// Bytes that this acknowledgement showed to be lost.
    newly_lost_bytes: u64,
    /// Bytes newly reported as marked with Congestion Experienced.
    newly_marked_bytes: u64,
    /// Round-trip time of the most recently sent segment among those acknowledged, nanoseconds;
    /// with `per_round` the minimum over the round trip. `None` if only retransmitted segments were
    /// acknowledged (Karn's rule).
    rtt_ns: Option<u64>,
    /// Bytes delivered over `interval_ns`.
    delivered_over_interval_bytes: u64,
    /// Longer of the send and the ACK interval, nanoseconds; 0 if there is no valid rate sample.
    interval_ns: u64,
    /// `delivered_bytes` when the sampled segment was sent.
    prior_delivered_bytes: u64,
    /// Bytes in flight before this acknowledgement.
    prior_in_flight_bytes: u64,
    /// Bytes in flight right after the sampled segment was sent.
    in_flight_at_send_bytes: u64,
    /// Bytes marked lost since the sampled segment was sent.
    lost_since_send_bytes: u64,
    /// Whether the sampled segment was sent while the application limited the rate.
    sample_app_limited: bool,
    /// Bytes sent and neither acknowledged nor marked lost.
    in_flight_bytes: u64,
    /// Bytes delivered in all.
    delivered_bytes: u64,
    /// Bytes marked lost in all.
    lost_bytes: u64,
    /// Bytes acknowledged cumulatively.
    acknowledged_bytes: u64,
    /// Highest byte sent.
    sent_bytes: u64,
    /// Smoothed RTT (RFC 6298), nanoseconds; 0 before the first sample.
    srtt_ns: u64,
    /// Minimum RTT over the transport's own window, nanoseconds.
    min_rtt_ns: u64,
    /// Loss recovery: `open`, `disorder`, `window_reduced`, `recovery`, `loss`.
    recovery: &'static str,
    /// Whether the window, not the application, limited sending in the last round.
    window_limited: bool,
    /// Whether the application limits the rate now.
    app_limited: bool,
}

#[pymethods]
impl Ack {
    /// Delivery rate of the sample, bits per second; `None` if there is no valid sample.
    #[getter]
    fn delivery_rate_bps(&self) -> Option<u64> {
        let bits =
            u128::from(self.delivered_over_interval_bytes) * 8 * u128::from(NANOS_PER_SECOND);
        (self.interval_ns > 0).then(|| (bits / u128::from(self.interval_ns)) as u64)
    }
}

impl Ack {
    /// Fills in an acknowledgement.
    pub fn fill(&mut self, sample: &Sample, connection: &knee_cc::Connection) {
        *self = Ack {
            now_ns: connection.now.as_nanos(),
            mss_bytes: connection.mss,
            newly_acked_bytes: sample.newly_acked,
            newly_lost_bytes: sample.newly_lost,
            newly_marked_bytes: sample.newly_marked,
            rtt_ns: sample.rtt.map(|rtt| rtt.as_nanos()),
            delivered_over_interval_bytes: sample.delivered,
            interval_ns: sample.interval.as_nanos(),
            prior_delivered_bytes: sample.prior_delivered,
            prior_in_flight_bytes: sample.prior_in_flight,
            in_flight_at_send_bytes: sample.in_flight_at_send,
            lost_since_send_bytes: sample.lost_since_send,
            sample_app_limited: sample.app_limited,
            in_flight_bytes: connection.in_flight,
            delivered_bytes: connection.delivered,
            lost_bytes: connection.lost,
            acknowledged_bytes: connection.acknowledged,
            sent_bytes: connection.sent,
            srtt_ns: connection.srtt.as_nanos(),
            min_rtt_ns: connection.min_rtt.as_nanos(),
            recovery: recovery(connection.recovery),
            window_limited: connection.window_limited,
            app_limited: connection.app_limited,
        };
    }
}

/// The state of the connection at an event. The same object is refilled for each call.
#[pyclass(get_all, module = "knee")]
#[derive(Default)]
pub struct Connection {
    /// Time since the start of the run, nanoseconds.
    now_ns: u64,
    /// Payload bytes of a full segment.
    mss_bytes: u32,
    /// Bytes sent and neither acknowledged nor marked lost.
    in_flight_bytes: u64,
    /// Bytes delivered in all.
    delivered_bytes: u64,
    /// Bytes marked lost in all.
    lost_bytes: u64,
    /// Bytes acknowledged cumulatively.
    acknowledged_bytes: u64,
    /// Highest byte sent.
    sent_bytes: u64,
    /// Smoothed RTT (RFC 6298), nanoseconds; 0 before the first sample.
    srtt_ns: u64,
    /// Minimum RTT over the transport's own window, nanoseconds.
    min_rtt_ns: u64,
    /// Loss recovery: `open`, `disorder`, `window_reduced`, `recovery`, `loss`.
    recovery: &'static str,
    /// Whether the window, not the application, limited sending in the last round.
    window_limited: bool,
    /// Whether the application limits the rate now.
    app_limited: bool,
}

impl Connection {
    /// Fills in the state.
    pub fn fill(&mut self, connection: &knee_cc::Connection) {
        *self = Connection {
            now_ns: connection.now.as_nanos(),
            mss_bytes: connection.mss,
            in_flight_bytes: connection.in_flight,
            delivered_bytes: connection.delivered,
            lost_bytes: connection.lost,
            acknowledged_bytes: connection.acknowledged,
            sent_bytes: connection.sent,
            srtt_ns: connection.srtt.as_nanos(),
            min_rtt_ns: connection.min_rtt.as_nanos(),
            recovery: recovery(connection.recovery),
            window_limited: connection.window_limited,
            app_limited: connection.app_limited,
        };
    }
}

fn recovery(state: Recovery) -> &'static str {
    match state {
        Recovery::Open => "open",
        Recovery::Disorder => "disorder",
        Recovery::WindowReduced => "window_reduced",
        Recovery::Recovery => "recovery",
        Recovery::Loss => "loss",
    }
}

/// Returns the name of an event for `on_event`.
pub fn event(event: Event) -> &'static str {
    match event {
        Event::Established => "established",
        Event::SentAfterIdle => "sent_after_idle",
        Event::RecoveryStart => "recovery_start",
        Event::CongestionEcho => "congestion_echo",
        Event::RecoveryEnd => "recovery_end",
        Event::Timeout => "timeout",
        Event::SpuriousRecovery => "spurious_recovery",
        Event::Penalised => "penalised",
    }
}

/// A controller's decision: a congestion window in bytes, at least one segment; a pacing rate in
/// bits per second of payload, `None` to not pace; and the maximum burst in bytes, `None` for two
/// segments.
#[pyclass(frozen, module = "knee")]
pub struct Decision {
    /// `None` means two segments.
    pub quantum: Option<u64>,
    /// The other fields.
    pub inner: knee_cc::Decision,
}

#[pymethods]
impl Decision {
    #[new]
    #[pyo3(signature = (window_bytes, pacing_rate_bps = None, send_quantum_bytes = None))]
    fn new(
        window_bytes: u64,
        pacing_rate_bps: Option<u64>,
        send_quantum_bytes: Option<u64>,
    ) -> Decision {
        let inner = knee_cc::Decision {
            window: window_bytes,
            pacing_rate: pacing_rate_bps.map(Rate::from_bits_per_second),
            ..knee_cc::Decision::default()
        };
        Decision { quantum: send_quantum_bytes, inner }
    }

    /// Congestion window, bytes.
    #[getter]
    fn window_bytes(&self) -> u64 {
        self.inner.window
    }

    /// Pacing rate, bits per second of payload; `None` if not paced.
    #[getter]
    fn pacing_rate_bps(&self) -> Option<u64> {
        self.inner.pacing_rate.map(|rate| rate.as_bits_per_second())
    }

    /// Maximum burst, bytes; `None` means two segments.
    #[getter]
    fn send_quantum_bytes(&self) -> Option<u64> {
        self.quantum
    }

    fn __repr__(&self) -> String {
        format!("Decision(window_bytes={})", self.inner.window)
    }
}
