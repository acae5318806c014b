//! A discipline for tests: two classes by flow hash, and a draw from its own
//! stream that decides which of them may send next. It exercises what a queue
//! with several classes requires of the link.

use super::discipline::{ClassState, Held, Ledger, Queue, Waiting, is_within};
use super::registry::{AqmEntry, Build, Marks};
use super::{Aqm, Settings};
use crate::Packet;
use crate::config::{Buffer, RateModel};
use knee_units::random::chance;
use knee_units::registry::{Kind, Parameter};
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "lottery",
    summary: "Two classes, drawn.",
    source: "this file",
    parameters: &[Parameter {
        name: "first",
        kind: Kind::Part,
        default: "50 %",
        summary: "how often the first class sends where both wait",
    }],
    presets: &[],
    build: Build {
        marks: Marks::Never,
        make: |settings, _| Ok(Aqm::Lottery(Lottery { first: settings.part("first").get() })),
    },
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lottery {
    /// Probability that the first class sends, if both wait.
    pub first: f64,
}

impl Settings for Lottery {
    fn log(&self) -> String {
        ",aqm=lottery".to_owned()
    }
}

pub(crate) struct LotteryQueue<P> {
    settings: Lottery,
    own: Box<ChaCha8Rng>,
    classes: [Waiting<P>; 2],
}

impl<P: Packet> Queue<P> for LotteryQueue<P> {
    type Settings = Lottery;

    fn new(
        settings: &Lottery,
        _: &RateModel,
        own_stream: impl FnOnce() -> ChaCha8Rng,
    ) -> LotteryQueue<P> {
        let classes = [Waiting::default(), Waiting::default()];
        LotteryQueue { settings: *settings, own: Box::new(own_stream()), classes }
    }

    fn enqueue(&mut self, held: Held<P>, buffer: Buffer, _: &mut Ledger<'_, P>) -> Result<(), P> {
        let size = u64::from(held.packet.size());
        if !is_within(buffer, self.bytes() + size, self.packets() + 1) {
            return Err(held.packet);
        }
        self.classes[usize::from(held.packet.flow_hash() % 2 == 1)].push(held);
        Ok(())
    }

    fn dequeue(&mut self, _: &mut Ledger<'_, P>) -> Option<Held<P>> {
        let first = chance(&mut self.own, self.settings.first);
        let [one, other] = &mut self.classes;
        let (drawn, spare) = if first { (one, other) } else { (other, one) };
        drawn.pop().or_else(|| spare.pop())
    }

    fn remove(&mut self) -> Option<P> {
        self.classes.iter_mut().find_map(Waiting::pop).map(|held| held.packet)
    }

    fn bytes(&self) -> u64 {
        self.classes.iter().map(Waiting::bytes).sum()
    }

    fn packets(&self) -> u64 {
        self.classes.iter().map(Waiting::packets).sum()
    }

    fn classes(&self, _: knee_units::Time) -> Vec<ClassState> {
        let named = ["first", "second"].into_iter().zip(&self.classes);
        let state = |(name, class): (_, &Waiting<P>)| ClassState {
            name,
            bytes: class.bytes(),
            packets: class.packets(),
            ..ClassState::default()
        };
        named.map(state).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Delay, Jitter, Link, Loss, Place, Steps, aqms};
    use knee_units::registry::Settings as Given;
    use knee_units::{Ecn, Rate, Time};
    use rand_core::SeedableRng;

    struct Numbered(u64);

    impl Packet for Numbered {
        fn size(&self) -> u32 {
            1000
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotCapable
        }
        fn mark(&mut self) {}
        fn clear_ecn(&mut self) {}
        fn flow_hash(&self) -> u64 {
            self.0
        }
    }

    /// A link that sends one packet per millisecond.
    fn link(aqm: Aqm, loss: Loss) -> Link<Numbered> {
        let config = Config {
            rate: RateModel::Constant(Rate::from_bits_per_second(8_000_000)),
            delay: Delay {
                base: Steps(vec![(Time::ZERO, Time::ZERO)]),
                reorder: false,
                jitter: Some(Jitter {
                    least: Time::ZERO,
                    share: 1.0,
                    amount: Steps(vec![(Time::ZERO, Time::from_micros(1))]),
                    normal: None,
                    reorder: false,
                }),
            },
            aqm,
            loss,
            ..Config::pure_delay(Time::ZERO)
        };
        Link::new(config, ChaCha8Rng::seed_from_u64(7))
    }

    /// Creates the discipline through the registry, as a scenario would.
    fn drawn(first: &str) -> Aqm {
        let entry = aqms().iter().find(|entry| entry.name == "lottery").expect("it is a test");
        let mut settings = Given::defaults(entry.parameters);
        let value = knee_units::registry::Value::Text(first.to_owned());
        settings.set(entry.name, "first", &value).expect("it is a part");
        let place = Place { buffer: Buffer::Unlimited, mtu: 1500, ecn: false };
        (entry.build.make)(&mut settings, &place).expect("it fits anywhere")
    }

    /// Returns the arrivals of a hundred packets, with their times.
    fn arrivals(link: &mut Link<Numbered>) -> Vec<(u64, Time)> {
        for number in 0..100 {
            let _ = link.send(Time::ZERO, Numbered(number));
        }
        let mut arrived = Vec::new();
        while link.next_time() < Time::MAX {
            let now = link.next_time();
            while let Some(packet) = link.poll(now) {
                arrived.push((packet.0, now));
            }
        }
        arrived
    }

    /// The classes of a queue add up to the queue, and one that always sends
    /// first empties first.
    #[test]
    fn classes_are_told_apart() {
        let mut link = link(drawn("100 %"), Loss::None);
        for number in 0..20 {
            assert!(link.send(Time::ZERO, Numbered(number)).is_ok());
        }
        let at = |ms| Time::from_millis(ms);
        let waiting = |link: &mut Link<Numbered>, now| -> Vec<u64> {
            link.classes(now).iter().map(|class| class.packets).collect()
        };
        // The first packet is in transmission.
        assert_eq!(waiting(&mut link, Time::ZERO), [9, 10]);
        assert_eq!(waiting(&mut link, at(5)), [4, 10]);
        assert_eq!(waiting(&mut link, at(12)), [0, 7]);
        let (classes, queue) = (link.classes(at(12)), link.queue(at(12)));
        assert_eq!(classes.iter().map(|class| class.bytes).sum::<u64>() + 1000, queue.bytes);
        assert_eq!(classes[1].name, "second");
        let mut plain = super::tests::link(Aqm::DropTail, Loss::None);
        assert!(plain.classes(at(12)).is_empty());
    }

    /// Draws of a discipline do not affect loss or jitter: the same packets
    /// arrive at the same times, whichever goes first.
    #[test]
    fn a_discipline_draws_from_its_own_stream() {
        let run = |first: &str| arrivals(&mut link(drawn(first), Loss::Independent(0.2)));
        let (certain, even) = (run("100 %"), run("50 %"));
        let times = |run: &[(u64, Time)]| run.iter().map(|(_, at)| *at).collect::<Vec<_>>();
        let sorted = |run: &[(u64, Time)]| {
            let mut numbers: Vec<u64> = run.iter().map(|(number, _)| *number).collect();
            numbers.sort_unstable();
            numbers
        };
        assert!((60..100).contains(&certain.len()), "{}", certain.len());
        assert_eq!(times(&certain), times(&even));
        assert_eq!(sorted(&certain), sorted(&even));
        let order = |run: &[(u64, Time)]| run.iter().map(|(n, _)| *n).collect::<Vec<_>>();
        assert_ne!(order(&certain), order(&even), "it draws");
        assert_eq!(order(&even), order(&run("50 %")), "the same from the same seed");
    }
}
