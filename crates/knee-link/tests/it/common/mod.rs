//! Helpers shared by the tests: a packet, a plain configuration, and a driver
//! that records everything that a link does.
pub mod source;

use knee_link::{Config, DropReason, Ecn, Link, Packet, RateModel, Steps};
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// A packet with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    pub number: usize,
    pub size: u32,
    pub flow: u64,
    pub ecn_capable: bool,
    pub marked: bool,
}

impl Packet for Named {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        match (self.marked, self.ecn_capable) {
            (true, _) => Ecn::Ce,
            (false, true) => Ecn::Ect0,
            (false, false) => Ecn::NotCapable,
        }
    }
    fn mark(&mut self) {
        assert!(self.ecn_capable, "only ECN-capable packets may be marked");
        self.marked = true;
    }
    fn clear_ecn(&mut self) {
        (self.ecn_capable, self.marked) = (false, false);
    }
    fn flow_hash(&self) -> u64 {
        self.flow
    }
}

/// When a packet is offered, its size, and its flow.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub at: Time,
    pub size: u32,
    pub flow: u64,
}

/// Outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Inside,
    Delivered { at: Time, marked: bool },
    Dropped { at: Time, reason: DropReason },
}

/// Results of a run: the fate of each packet offered, and the order of deliveries.
#[derive(Debug, PartialEq, Eq)]
pub struct Log {
    pub fates: Vec<Fate>,
    pub order: Vec<usize>,
}

impl Log {
    pub fn delivered_at(&self, number: usize) -> Option<Time> {
        match self.fates[number] {
            Fate::Delivered { at, .. } => Some(at),
            _ => None,
        }
    }

    pub fn count(&self, of: impl Fn(&Fate) -> bool) -> usize {
        self.fates.iter().filter(|fate| of(fate)).count()
    }
}

pub fn bits(rate: u64) -> RateModel {
    RateModel::Constant(Rate::from_bits_per_second(rate))
}

pub fn constant<T>(value: T) -> Steps<T> {
    Steps(vec![(Time::ZERO, value)])
}

/// 10 Mbit/s, 20 ms, no limit: a packet of 1500 bytes takes 1.2 ms.
pub fn plain() -> Config {
    Config { rate: bits(10_000_000), ..Config::pure_delay(Time::from_millis(20)) }
}

pub fn link(config: Config) -> Link<Named> {
    Link::new(config, ChaCha8Rng::seed_from_u64(42))
}

/// `count` packets of 1500 bytes offered at once.
pub fn burst(at: Time, count: usize) -> Vec<Offer> {
    vec![Offer { at, size: 1500, flow: 0 }; count]
}

/// Offers all packets and runs the link until nothing moves any more.
pub fn run(config: Config, offers: &[Offer]) -> Log {
    drive(&mut link(config), offers, true)
}

/// With `punctual`, polls whenever the link requests it; otherwise only once at
/// the end, so that the link has to catch up.
pub fn drive(link: &mut Link<Named>, offers: &[Offer], punctual: bool) -> Log {
    let mut log = Log { fates: vec![Fate::Inside; offers.len()], order: vec![] };
    for (number, offer) in offers.iter().enumerate() {
        if punctual {
            deliver_until(link, offer.at, &mut log);
        }
        let packet = Named {
            number,
            size: offer.size,
            flow: offer.flow,
            ecn_capable: number % 2 == 1,
            marked: false,
        };
        if let Err((reason, packet)) = link.send(offer.at, packet) {
            settle(&mut log, packet.number, Fate::Dropped { at: offer.at, reason });
        }
        collect_dropped(link, &mut log);
    }
    deliver_until(link, Time::from_nanos(u64::MAX - 1), &mut log);
    log
}

fn deliver_until(link: &mut Link<Named>, until: Time, log: &mut Log) {
    let mut idle_polls = 0;
    while link.next_time() <= until {
        let at = link.next_time();
        match link.poll(at) {
            Some(packet) => {
                idle_polls = 0;
                log.order.push(packet.number);
                settle(log, packet.number, Fate::Delivered { at, marked: packet.marked });
            }
            None => idle_polls += 1,
        }
        collect_dropped(link, log);
        assert!(idle_polls < 100_000, "the link asks for polls at {at:?} and does nothing");
    }
}

fn collect_dropped(link: &mut Link<Named>, log: &mut Log) {
    while let Some((at, reason, packet)) = link.take_dropped() {
        settle(log, packet.number, Fate::Dropped { at, reason });
    }
}

fn settle(log: &mut Log, number: usize, fate: Fate) {
    assert_eq!(log.fates[number], Fate::Inside, "packet {number} comes out twice");
    log.fates[number] = fate;
}
