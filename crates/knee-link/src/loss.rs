//! Loss that is independent of the queue.

use crate::config::{Loss, Steps};
use knee_units::Time;
use knee_units::random::chance;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// IP bytes of a super-packet at most: Linux's `GSO_LEGACY_MAX_SIZE`.
const SUPER_PACKET_MAX: u32 = 1 << 16;

/// A loss process: called once for each packet that enters while the link is up.
pub(crate) enum LossProcess {
    None,
    Independent(f64),
    SuperPackets {
        probability: f64,
        last: Box<SuperPacket>,
    },
    /// Every `period`-th packet; `count` have passed since the last loss.
    Periodic {
        period: u64,
        count: u64,
    },
    /// The state applies to the packet, then it may change.
    GilbertElliott {
        bad: bool,
        leave: [f64; 2],
        loss: [f64; 2],
    },
    Recorded {
        lost: Arc<[bool]>,
        next: usize,
    },
    /// Other processes from given times; `next` counts those that have begun.
    Steps {
        steps: Box<[(Time, LossProcess)]>,
        next: usize,
    },
}

/// The super-packet of which packets have entered last, and its fate.
#[derive(Default)]
pub(crate) struct SuperPacket {
    time: Time,
    sender: u64,
    /// Zero before the first.
    bytes: u32,
    lost: bool,
}

impl SuperPacket {
    /// Whether a packet that enters now belongs to it, and counts it if so.
    fn takes(&mut self, now: Time, size: u32, sender: u64) -> bool {
        let bytes = self.bytes.saturating_add(size);
        let belongs = self.bytes > 0
            && (self.time, self.sender) == (now, sender)
            && bytes <= SUPER_PACKET_MAX;
        if belongs {
            self.bytes = bytes;
        }
        belongs
    }

    /// Whether the packet entering is lost, with this probability if it begins one.
    #[inline(never)]
    fn loses(
        &mut self,
        now: Time,
        size: u32,
        sender: u64,
        probability: f64,
        rng: &mut ChaCha8Rng,
    ) -> bool {
        if !self.takes(now, size, sender) {
            let lost = chance(rng, probability);
            *self = SuperPacket { time: now, sender, bytes: size, lost };
        }
        self.lost
    }
}

impl LossProcess {
    pub fn new(loss: &Loss) -> LossProcess {
        match *loss {
            Loss::None => LossProcess::None,
            Loss::Independent(probability) => LossProcess::Independent(probability),
            Loss::SuperPackets(probability) => {
                LossProcess::SuperPackets { probability, last: Box::default() }
            }
            Loss::Periodic(period) => LossProcess::Periodic { period, count: 0 },
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let (leave, loss) = ([good_to_bad, bad_to_good], [loss_good, loss_bad]);
                LossProcess::GilbertElliott { bad: false, leave, loss }
            }
            Loss::Recorded(ref lost) => LossProcess::Recorded { lost: lost.clone(), next: 0 },
            Loss::Steps(Steps(ref steps)) => {
                let steps = steps.iter().map(|(from, loss)| (*from, LossProcess::new(loss)));
                LossProcess::Steps { steps: steps.collect(), next: 1 }
            }
        }
    }

    /// Whether a packet of a sender entering at `now` is lost; times never decrease.
    #[inline]
    pub fn loses(&mut self, now: Time, size: u32, sender: u64, rng: &mut ChaCha8Rng) -> bool {
        match self {
            LossProcess::Steps { steps, next } => {
                while steps.get(*next).is_some_and(|(from, _)| *from <= now) {
                    *next += 1;
                }
                steps[*next - 1].1.loses(now, size, sender, rng)
            }
            LossProcess::SuperPackets { probability, last } => {
                last.loses(now, size, sender, *probability, rng)
            }
            process => process.loses_next(rng),
        }
    }

    /// Whether the next packet is lost, whatever it is and whenever it enters.
    fn loses_next(&mut self, rng: &mut ChaCha8Rng) -> bool {
        match self {
            LossProcess::None | LossProcess::Steps { .. } | LossProcess::SuperPackets { .. } => {
                false
            }
            LossProcess::Independent(probability) => chance(rng, *probability),
            LossProcess::Periodic { period, count } => {
                *count = (*count + 1) % *period;
                *count == 0
            }
            LossProcess::GilbertElliott { bad, leave, loss } => {
                let lost = chance(rng, loss[usize::from(*bad)]);
                *bad ^= chance(rng, leave[usize::from(*bad)]);
                lost
            }
            LossProcess::Recorded { lost, next } => {
                let outcome = lost[*next];
                *next = (*next + 1) % lost.len();
                outcome
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    /// Whether a packet of 1500 bytes of one flow is lost.
    fn loses(process: &mut LossProcess, now: Time, rng: &mut ChaCha8Rng) -> bool {
        process.loses(now, 1500, 0, rng)
    }

    /// Returns the losses among `packets`, and how many loss bursts they form.
    fn run(loss: Loss, packets: usize) -> (f64, f64) {
        let mut process = LossProcess::new(&loss);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let lost: Vec<bool> =
            (0..packets).map(|_| loses(&mut process, Time::ZERO, &mut rng)).collect();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        (lost.iter().filter(|lost| **lost).count() as f64, bursts as f64)
    }

    #[test]
    fn independent_losses_follow_the_binomial_distribution() {
        let (n, p) = (1_000_000.0, 0.013);
        let (lost, bursts) = run(Loss::Independent(p), n as usize);
        let deviation = (n * p * (1.0 - p)).sqrt();
        assert!((lost - n * p).abs() < 4.0 * deviation, "{lost} lost");
        // A burst begins with a loss that follows a survivor.
        assert!((bursts - n * p * (1.0 - p)).abs() < 4.0 * deviation, "{bursts} bursts");
    }

    /// Packets of one flow that enter together share their fate; another time, another flow between
    /// them or more than 64 KiB begin another super-packet. As many packets are lost as if each were
    /// alone, within four deviations of the number of super-packets.
    #[test]
    fn packets_of_a_super_packet_are_lost_together() {
        let mut process = LossProcess::new(&Loss::SuperPackets(0.3));
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut lost = |ms: u64, (size, flow): (u32, u64)| {
            process.loses(Time::from_millis(ms), size, flow, &mut rng)
        };
        let mut apart = [0_u32; 3];
        let (count, mut all, mut of_44) = (20_000, 0, 0);
        for ms in 0..count {
            let [first, second, other, third] = [(1, 1500), (1, 700), (2, 1500), (1, 1500)]
                .map(|(flow, size)| lost(3 * ms, (size, flow)));
            assert_eq!(first, second);
            apart[0] += u32::from(second != other);
            apart[1] += u32::from(other != third);
            let later = lost(3 * ms + 1, (1500, 1));
            apart[2] += u32::from(third != later);
            all += u32::from(first);
            let run: Vec<bool> = (0..44).map(|_| lost(3 * ms + 2, (1500, 1))).collect();
            assert!(run[..43].iter().all(|lost| *lost == run[0]));
            of_44 += u32::from(run[43] != run[42]);
        }
        let near = |number: u32, part: f64| {
            let (n, deviation) = (count as f64, (count as f64 * part * (1.0 - part)).sqrt());
            assert!((f64::from(number) - n * part).abs() < 4.0 * deviation, "{number}, not {part}");
        };
        near(all, 0.3);
        // Of two that are independent one is lost and one is not: 2 p (1 - p).
        for number in apart.into_iter().chain([of_44]) {
            near(number, 2.0 * 0.3 * 0.7);
        }
    }

    #[test]
    fn certain_outcomes_need_no_luck() {
        assert_eq!(run(Loss::Independent(0.0), 1000).0, 0.0);
        assert_eq!(run(Loss::Independent(1.0), 1000).0, 1000.0);
        assert_eq!(run(Loss::None, 1000).0, 0.0);
    }

    /// Stationary share of the bad state: good_to_bad over the sum of both
    /// (Elliott 1963); mean duration of the state: 1 / bad_to_good.
    #[test]
    fn gilbert_elliott_has_its_stationary_loss_and_burst_length() {
        let (p, r, good, bad) = (0.01, 0.2, 0.002, 0.5);
        let n = 2_000_000;
        let model = |loss_good, loss_bad| Loss::GilbertElliott {
            good_to_bad: p,
            bad_to_good: r,
            loss_good,
            loss_bad,
        };
        let share = p / (p + r);
        let expected = share * bad + (1.0 - share) * good;
        let rate = run(model(good, bad), n).0 / n as f64;
        assert!((rate / expected - 1.0).abs() < 0.03, "{rate} against {expected}");

        let (lost, bursts) = run(model(0.0, 1.0), n);
        assert!((lost / n as f64 / share - 1.0).abs() < 0.03);
        assert!((lost / bursts * r - 1.0).abs() < 0.03, "bursts of {}", lost / bursts);
    }

    #[test]
    fn periodic_and_recorded_losses_hit_named_packets() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut hits = |loss: Loss| {
            let mut process = LossProcess::new(&loss);
            (1..=10).filter(|_| loses(&mut process, Time::ZERO, &mut rng)).collect::<Vec<u32>>()
        };
        assert_eq!(hits(Loss::Periodic(4)), [4, 8]);
        let record: Arc<[bool]> = [true, false, false, true, false].into();
        assert_eq!(hits(Loss::Recorded(record)), [1, 4, 6, 9]);
    }

    /// From 5 s each process starts fresh: the count of the first one is not continued.
    #[test]
    fn steps_begin_with_the_time_of_entry() {
        let steps = [(0, Loss::Periodic(4)), (5, Loss::None), (9, Loss::Periodic(3))];
        let steps = steps.map(|(at, loss)| (Time::from_secs(at), loss)).to_vec();
        let mut process = LossProcess::new(&Loss::Steps(Steps(steps)));
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        // Two packets a second: at 0.0, 0.5, 1.0, … s.
        let mut lost = |half: u64| loses(&mut process, Time::from_millis(half * 500), &mut rng);
        let hits: Vec<u64> = (0..26).filter(|half| lost(*half)).collect();
        assert_eq!(hits, [3, 7, 20, 23]);
    }
}
