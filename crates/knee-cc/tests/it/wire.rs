//! A controller and the connection that it controls, acknowledged by hand: without a network, so
//! that each number is that of a formula.
use crate::pipe::{MSS, MTU, init};
use knee_cc::{Connection, Controller, Event, Recovery, Sample, Selection, build};
use knee_units::Time;

pub struct Wire {
    pub controller: Box<dyn Controller>,
    pub connection: Connection,
    pub rtt: Time,
}

impl Wire {
    /// Creates an established connection that the window limits.
    pub fn new(selection: &Selection, rtt_ms: u64) -> Wire {
        Wire::with(selection, rtt_ms, |_| {})
    }

    /// Creates one whose connection is changed before it is established.
    pub fn with(selection: &Selection, rtt_ms: u64, change: impl Fn(&mut Connection)) -> Wire {
        let rtt = Time::from_millis(rtt_ms);
        let mut connection = Connection {
            now: Time::from_secs(1),
            mss: MSS as u32,
            mtu: MTU as u32,
            srtt: rtt,
            min_rtt: rtt,
            window_limited: true,
            ..Connection::default()
        };
        change(&mut connection);
        let mut controller = build(selection, init(1)).unwrap();
        controller.on_event(Event::Established, &connection);
        Wire { controller, connection, rtt }
    }

    pub fn named(name: &str, rtt_ms: u64) -> Wire {
        Wire::new(&Selection::named(name), rtt_ms)
    }

    pub fn window(&self) -> f64 {
        self.controller.decision().window as f64 / MSS as f64
    }

    pub fn threshold(&self) -> f64 {
        self.controller.state().slow_start_threshold.unwrap() as f64 / MSS as f64
    }

    pub fn phase(&self) -> &'static str {
        self.controller.state().phase
    }

    pub fn ack(&mut self, segments: u64) {
        let bytes = segments * MSS;
        self.connection.acknowledged += bytes;
        self.connection.delivered += bytes;
        self.connection.sent = self.connection.acknowledged + self.connection.in_flight;
        let sample = Sample { newly_acked: bytes, rtt: Some(self.rtt), ..Sample::default() };
        self.controller.on_ack(&sample, &self.connection);
    }

    /// One round trip: acknowledgements for one window, evenly spaced.
    pub fn round(&mut self) {
        let gap = self.rtt / self.window() as u64;
        self.round_with_gap(gap);
    }

    /// Acknowledgements for one window, with this distance.
    pub fn round_with_gap(&mut self, gap: Time) {
        let segments = self.window() as u64;
        self.connection.in_flight = segments * MSS;
        for _ in 0..segments {
            self.connection.now += gap;
            self.ack(1);
        }
    }

    /// Tells the controller that a recovery begins.
    pub fn begin_recovery(&mut self) {
        self.connection.recovery = Recovery::Recovery;
        self.controller.on_event(Event::RecoveryStart, &self.connection);
    }

    pub fn end_recovery(&mut self) {
        self.connection.recovery = Recovery::Open;
        self.controller.on_event(Event::RecoveryEnd, &self.connection);
    }

    /// A loss with recovery one round later, without growth.
    pub fn lose(&mut self) {
        self.begin_recovery();
        let reduced = self.window();
        self.connection.now += self.rtt;
        self.ack(1);
        assert_eq!(self.window(), reduced, "the window grew in recovery");
        self.end_recovery();
    }

    /// Grows to `segments` in standard slow start.
    pub fn slow_start_to(&mut self, segments: u64) {
        self.connection.in_flight = segments * MSS;
        while self.window() < segments as f64 {
            self.connection.now += Time::from_micros(100);
            self.ack(1);
        }
    }
}
