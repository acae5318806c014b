//! Google Congestion Control (draft-ietf-rmcat-gcc-02): the rate of a video call, from how
//! the delay varies and from loss.
//!
//! ```text
//!   d = difference of delay of two groups of packets -- Kalman filter --> m
//!   over-use:   60 m > threshold for 10 ms     A = 0.85 R, at once
//!   normal:     A x 1.08 per second, or half a packet per response time near
//!               the rates R that were over-use;  under-use: A as it is
//!   threshold:  follows |60 m|, up fast and down slowly, from 6 to 600 ms
//!   loss p:     As x (1 - p / 2) above 10 %, As x 1.05 below 2 %
//!   rate      = min(A, As)
//! ```
//! R is the rate that arrived in the last half second. Only the rate limits sending; a window
//! of four round trips bounds it if acknowledgements stop or the scenario does not pace.
//!
//! The delay is the RTT of the acknowledged segment, not the one-way delay: a queue in the
//! reverse direction counts too. Samples of delayed acknowledgements are ignored if the
//! transport knows of the delay. A receiver that acknowledges every segment (`ack_every = 1`)
//! comes closest to feedback for each packet.
//!
//! Differences from a call over RTP: the transport is reliable and retransmits within the
//! rate; if data is always waiting, the flow is an encoder that fills its rate at any time;
//! feedback is every acknowledgement instead of a packet every 30 to 100 ms (section 3), and
//! the state machine and the loss-based part run every 100 ms; a timeout, which the draft
//! does not mention, halves both estimates. Left out: padding and probes, so it starts more
//! slowly than a browser, and later changes in libwebrtc (the trendline filter, the second
//! version of loss-based estimation). Where the draft is open, or does not work as written,
//! this follows the libwebrtc of its time; each such place is named.

mod arrival;
mod detector;
mod incoming;
mod loss;
mod rate_control;

use crate::registry::{Build, Entry};
use crate::{Connection, Controller, Decision, Event, Init, Needs, Sample, State};
use arrival::{BURST_TIME, Filter, Groups};
use detector::{Detector, Signal};
use knee_units::registry::{Kind, Parameter, SelectionError, Settings};
use knee_units::{Rate, Time};
use loss::LossControl;
use rate_control::{RateControl, Stage};

/// Bounds of all three parameters: a packet of 1250 bytes a second, and the range of a
/// counter.
const RATE: Kind = Kind::Rate {
    min: Rate::from_bits_per_second(10_000),
    max: Rate::from_bits_per_second(1_000_000_000_000),
};

pub(crate) const ENTRY: Entry = Entry {
    name: "gcc",
    summary: "the rate of a video call by variation of delay and by loss: Google Congestion Control",
    source: "draft-ietf-rmcat-gcc-02",
    parameters: &[
        Parameter {
            name: "start_rate",
            kind: RATE,
            // As in libwebrtc.
            default: "300 kbit/s",
            summary: "rate at the start, payload, brought within the bounds",
        },
        Parameter {
            name: "min_rate",
            kind: RATE,
            // Four packets of 1500 bytes a second; libwebrtc has 30 kbit/s and smaller ones.
            default: "50 kbit/s",
            summary: "least rate, payload",
        },
        Parameter {
            name: "max_rate",
            kind: RATE,
            // About what browsers send of a picture of 720 lines (2 to 2.5 Mbit/s).
            default: "2 Mbit/s",
            summary: "greatest rate, payload; one rate for all three is a flow that never reacts",
        },
    ],
    presets: &[],
    build: Build::Checked(check, build),
};

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let [start, least, most] = ["start_rate", "min_rate", "max_rate"]
        .map(|name| settings.rate(name).as_bits_per_second() as f64);
    Box::new(Gcc::new(start.clamp(least, most), (least, most), &init))
}

/// Refuses bounds that exclude each other.
fn check(settings: &Settings) -> Result<(), SelectionError> {
    let (least, most) = (settings.rate("min_rate"), settings.rate("max_rate"));
    if least <= most {
        return Ok(());
    }
    Err(SelectionError {
        parameter: Some("min_rate".to_owned()),
        problem: format!("min_rate of gcc is {least}, above its max_rate of {most}"),
        advice: "set min_rate to max_rate or less".to_owned(),
    })
}

/// Time between two updates: the longest interval of feedback in section 3, and below the
/// response time at any RTT, as section 5.5 recommends.
const PERIOD: Time = Time::from_millis(100);
/// Part of both estimates that is left after a timeout.
const AFTER_TIMEOUT: f64 = 0.5;
/// Round trips of the rate that the window holds: the RTT may become four times as long at
/// once before it binds.
const WINDOW_ROUNDS: u64 = 4;
/// Largest burst, in bytes.
const LARGEST_BURST: u64 = 65_536;

#[derive(Clone, Debug)]
struct Gcc {
    mss: u32,
    /// Least window, in bytes, and the window until there is an RTT.
    initial_window: u64,
    /// Least and greatest rate, in bit/s.
    bounds: (f64, f64),
    groups: Groups,
    filter: Filter,
    detector: Detector,
    delay: RateControl,
    loss: LossControl,
    /// Latest signal of the detector since the last update.
    signal: Option<Signal>,
    updated: Time,
    decision: Decision,
}

impl Gcc {
    fn new(start: f64, bounds: (f64, f64), init: &Init) -> Gcc {
        let mut gcc = Gcc {
            mss: init.mss.max(1),
            initial_window: init.initial_window,
            bounds,
            groups: Groups::default(),
            filter: Filter::default(),
            detector: Detector::default(),
            delay: RateControl::new(start),
            loss: LossControl::new(start),
            signal: None,
            updated: Time::ZERO,
            decision: Decision::default(),
        };
        gcc.decide(Time::ZERO);
        gcc
    }

    /// Sections 5.1 to 5.4, and the decrease of section 5.5.
    fn take_delay(&mut self, rtt: Time, connection: &Connection) {
        let now = connection.now;
        let Some(variation) = self.groups.take(now.saturating_sub(rtt), now) else { return };
        let mean = self.filter.update(&variation);
        let Some(signal) = self.detector.detect(mean, variation.arrival_ms) else { return };
        self.signal = Some(signal);
        if signal == Signal::Over {
            let incoming = self.delay.incoming.rate(now, connection.delivered);
            self.delay.over_use(incoming);
        }
    }

    fn update(&mut self, connection: &Connection) {
        let since = connection.now.saturating_sub(self.updated);
        if since < PERIOD {
            return;
        }
        self.updated = connection.now;
        let incoming = self.delay.incoming.rate(connection.now, connection.delivered);
        self.delay.update(self.signal.take(), incoming, since, connection.srtt);
        self.loss.update(connection.delivered, connection.lost, self.mss);
    }

    fn scale(&mut self, factor: f64) {
        self.delay.estimate *= factor;
        self.loss.estimate *= factor;
    }

    /// Section 6: the smaller one; section 4: groups of what it sends in 5 ms.
    fn decide(&mut self, srtt: Time) -> Decision {
        let (least, most) = self.bounds;
        for estimate in [&mut self.delay.estimate, &mut self.loss.estimate] {
            *estimate = estimate.clamp(least, most);
        }
        let bits = self.delay.estimate.min(self.loss.estimate);
        let rate = Rate::from_bits_per_second(bits as u64);
        let mss = u64::from(self.mss);
        let group = rate.bytes_in(BURST_TIME).min(LARGEST_BURST) / mss;
        self.decision = Decision {
            window: rate.bytes_in(srtt * WINDOW_ROUNDS).max(self.initial_window).max(mss),
            pacing_rate: Some(rate),
            send_quantum: group.max(1) * mss,
            ..Decision::default()
        };
        self.decision
    }
}

impl Controller for Gcc {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.mss = connection.mss.max(1);
        if let Some(rtt) = sample.rtt.filter(|_| !sample.ack_delayed) {
            self.take_delay(rtt, connection);
        }
        self.update(connection);
        self.delay.incoming.take(connection.now, connection.delivered);
        self.decide(connection.srtt)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => self.updated = connection.now,
            Event::Timeout => self.scale(AFTER_TIMEOUT),
            Event::Penalised => self.scale(0.5),
            // Arrivals before a pause of the application do not tell the rate after it.
            Event::SentAfterIdle if connection.app_limited => {
                self.delay.incoming.pause(connection.now);
            }
            Event::SentAfterIdle
            | Event::RecoveryStart
            | Event::CongestionEcho
            | Event::RecoveryEnd
            | Event::SpuriousRecovery => {}
        }
        self.decide(connection.srtt)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let phase = match (self.delay.stage, self.delay.additive) {
            (Stage::Hold, _) => "hold",
            (Stage::Decrease, _) => "decrease",
            (Stage::Increase, false) => "increase_multiplicative",
            (Stage::Increase, true) => "increase_additive",
        };
        let bandwidth = Some(Rate::from_bits_per_second(self.delay.estimate as u64));
        State { phase, bandwidth, ..State::default() }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, ..Needs::default() }
    }
}
