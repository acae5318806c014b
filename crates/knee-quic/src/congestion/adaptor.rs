//! The interface that the QUIC library has for controllers.

use super::CongestionControl;
use knee_cc::Event;
use noq_proto::congestion::{self, ControllerMetrics};
use std::any::Any;
use std::time::Instant;

/// Window reported to the library: it never limits, and above four gigabytes the library does not
/// pace. So packets beyond our window are those that the bundle sends without asking for room: its
/// acknowledgements, and its probes of a silent path, which would otherwise wait behind a window
/// full of lost packets.
const UNLIMITED: u64 = 1 << 40;

/// A [`CongestionControl`] with the interface of the QUIC library, for one of the connection's
/// [number spaces](super::number_spaces).
#[derive(Debug)]
pub(super) struct Adaptor(pub(super) CongestionControl, pub(super) usize);

impl congestion::Controller for Adaptor {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        let mut inner = self.0.inner();
        if inner.disorder.is_none() {
            let now = inner.time(now);
            inner.on_sent(now, bytes, number);
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        number: u64,
        _app_limited: bool,
        _rtt: &noq_proto::RttEstimator,
    ) {
        let mut inner = self.0.inner();
        let (now, sent) = (inner.time(now), inner.time(sent));
        inner.on_acknowledged(now, sent, number);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        let mut inner = self.0.inner();
        let now = inner.time(now);
        if inner.disorder.is_none() {
            inner.in_flight = in_flight.saturating_sub(inner.ring.lost());
        }
        if let Some(batch) = &mut inner.batch {
            (batch.at, batch.complete) = (now, true);
        }
    }

    fn on_packet_lost(&mut self, _bytes: u16, number: u64, now: Instant) {
        let mut inner = self.0.inner();
        let now = inner.time(now);
        inner.on_lost(now, number);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost: u64,
    ) {
        let mut inner = self.0.inner();
        let now = inner.time(now);
        if is_ecn {
            inner.flush();
            inner.tell(now, Event::CongestionEcho);
            return;
        }
        let batch = inner.batch.take_if(|batch| batch.complete);
        let is_persistent = is_persistent_congestion && inner.disorder.is_none();
        inner.settle(now, batch, is_persistent);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        let mut inner = self.0.inner();
        if inner.disorder.is_none() || self.1 == 0 {
            inner.mss = mtu.into();
        }
    }

    fn window(&self) -> u64 {
        // Called before anything is sent, when all losses of an ACK are known.
        let mut inner = self.0.inner();
        inner.flush();
        if inner.spaces.is_turn_of(self.1) { UNLIMITED } else { 0 }
    }

    /// The library's pacer asks for a window here, also when another number space has the turn.
    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = UNLIMITED;
        metrics
    }

    /// For a path that moves to another address, which keeps its congestion control.
    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        self.0.on_address_changed();
        Box::new(Adaptor(self.0.clone(), self.1))
    }

    fn initial_window(&self) -> u64 {
        self.0.inner().initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
