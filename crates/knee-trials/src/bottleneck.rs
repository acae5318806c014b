//! One connection over one bottleneck in a minimal event loop: the next due event happens next.
//! Shares no code with the simulator.

use knee_cc::{Controller, Ecn};
use knee_link::Link;
use knee_transport::{Ack, AckDetails, Config, Receiver, Segment, Sender, Transmit};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// IP and TCP headers with timestamps, bytes.
const HEADER: u32 = 52;

/// A packet in either direction.
#[derive(Debug)]
pub enum Packet {
    /// A segment with its ECN codepoint.
    Data {
        /// The segment.
        segment: Segment,
        /// The codepoint.
        ecn: Ecn,
    },
    /// An acknowledgement.
    Ack(Ack, Option<AckDetails>),
}

impl knee_link::Packet for Packet {
    fn size(&self) -> u32 {
        match self {
            Packet::Data { segment, .. } => u32::from(segment.len) + HEADER,
            Packet::Ack(..) => HEADER,
        }
    }
    fn ecn(&self) -> Ecn {
        match self {
            Packet::Data { ecn, .. } => *ecn,
            Packet::Ack(..) => Ecn::NotCapable,
        }
    }
    fn mark(&mut self) {
        if let Packet::Data { ecn, .. } = self {
            *ecn = Ecn::Ce;
        }
    }
    fn clear_ecn(&mut self) {
        if let Packet::Data { ecn, .. } = self {
            *ecn = Ecn::NotCapable;
        }
    }
    fn flow_hash(&self) -> u64 {
        0
    }
}

/// A connection over the bottleneck, with a lossless reverse path.
pub struct Bottleneck {
    /// Sends the test's data.
    pub sender: Sender,
    /// Delivers the data.
    pub receiver: Receiver,
    /// Forward link.
    pub forward: Link<Packet>,
    back: Link<Packet>,
    /// Time at which the sender is polled again: after a pause of the application, the time of the
    /// next write.
    pub pacing: Time,
}

impl Bottleneck {
    /// Creates a connection with no data to send.
    pub fn new(
        settings: &Config,
        controller: Box<dyn Controller>,
        forward: knee_link::Config,
        way_back: Time,
    ) -> Bottleneck {
        let link = |config| Link::new(config, ChaCha8Rng::seed_from_u64(1));
        Bottleneck {
            sender: Sender::new(settings, controller),
            receiver: Receiver::new(settings),
            forward: link(forward),
            back: link(knee_link::Config::pure_delay(way_back)),
            pacing: Time::ZERO,
        }
    }

    /// Processes all events up to a time.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let links = self.forward.next_time().min(self.back.next_time());
            let timers = self.sender.timer().min(self.receiver.timer());
            let now = links.min(timers).min(self.pacing);
            if now > end {
                return;
            }
            self.step(now);
        }
    }

    fn step(&mut self, now: Time) {
        if let Some(Packet::Data { segment, ecn }) = self.forward.poll(now)
            && self.receiver.on_segment(now, &segment, ecn).ack_now
        {
            self.acknowledge(now);
        }
        if self.receiver.timer() <= now {
            self.acknowledge(now);
        }
        if let Some(Packet::Ack(ack, details)) = self.back.poll(now) {
            self.sender.on_ack(now, &ack, details.as_ref());
        }
        if self.sender.timer() <= now {
            self.sender.on_timer(now);
        }
        self.transmit(now);
    }

    fn acknowledge(&mut self, now: Time) {
        let mut details = AckDetails::default();
        let (ack, detailed) = self.receiver.make_ack(&mut details);
        let sent = self.back.send(now, Packet::Ack(ack, detailed.then_some(details)));
        assert!(sent.is_ok(), "the way back drops nothing");
    }

    fn transmit(&mut self, now: Time) {
        self.pacing = loop {
            match self.sender.poll_transmit(now) {
                Transmit::Segment(segment) => {
                    let ecn = self.sender.ecn();
                    // The link counts its drops.
                    let _ = self.forward.send(now, Packet::Data { segment, ecn });
                }
                Transmit::At(time) => break time,
                Transmit::Nothing => break Time::MAX,
            }
        };
    }
}
