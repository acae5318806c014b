//! Stops an experiment that does harm.

use crate::evidence::Evidence;
use crate::power::smallest_effect;
use serde::{Deserialize, Serialize};

/// Probability that a guard stops an experiment without harm beyond its margin.
pub const GUARD_LEVEL: f64 = 0.01;

/// Consecutive windows required for a hard stop: a single one may be a burst of other traffic.
const IN_A_ROW: u8 = 2;

/// Permitted increase of the retransmission ratio: absolute, and as a part of A's; the larger
/// applies.
const RETRANSMITTED: (f64, f64) = (0.005, 0.5);
/// Permitted increase of the 95th percentile of the queueing delay, as a part of A's.
const DELAY: f64 = 0.2;
/// Permitted increase of the 95th percentile of the completion time of small transfers, as a part
/// of A's.
const COMPLETION: f64 = 0.05;
/// Permitted increase of the share of transfers that do not finish: absolute, and as a part of A's;
/// the larger applies. The absolute one is also the least noise that is assumed: pairs of blocks in
/// which every transfer finishes do not show that all others do.
const UNFINISHED: (f64, f64) = (0.01, 0.5);
/// Added to a queueing delay, microseconds, so that a large part of next to nothing is no harm.
const DELAY_FLOOR_US: f64 = 1000.0;

/// A harm that a guard looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guarded {
    /// More transfers that do not finish.
    #[serde(rename = "unfinished-transfers")]
    Unfinished,
    /// More retransmissions.
    #[serde(rename = "retransmissions")]
    Retransmissions,
    /// A longer queueing delay, 95th percentile.
    #[serde(rename = "queueing-delay")]
    Delay,
    /// Longer completion of small transfers, 95th percentile.
    #[serde(rename = "small-transfers")]
    Completion,
}

impl Guarded {
    /// All of them, in the order in which they are checked.
    pub const ALL: [Guarded; 4] =
        [Guarded::Unfinished, Guarded::Retransmissions, Guarded::Delay, Guarded::Completion];
    /// What an experiment may accept for a gain: harm that others on the path pay for, or whoever
    /// pays for the bytes. The clients whose transfers are compared pay for the other harms, which
    /// no gain is worth to them.
    pub const ACCEPTABLE: [Guarded; 2] = [Guarded::Retransmissions, Guarded::Delay];

    /// Its name, as written in files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Guarded::Unfinished => "unfinished-transfers",
            Guarded::Retransmissions => "retransmissions",
            Guarded::Delay => "queueing-delay",
            Guarded::Completion => "small-transfers",
        }
    }

    /// The acceptable harm of this name.
    pub fn acceptable(name: &str) -> Option<Guarded> {
        Guarded::ACCEPTABLE.into_iter().find(|harm| harm.name() == name)
    }
}

/// What a controller costs in a block, for guards; `None` where it was not measured. One value for
/// each of [`Guarded::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs([Option<f64>; Guarded::ALL.len()]);

impl Costs {
    /// Creates the costs of a block: the share of transfers that do not finish, the ratio of
    /// retransmitted to sent bytes, the 95th percentile of the queueing delay, and that of the
    /// completion time of small transfers, both in microseconds. The percentiles are compared by
    /// their logarithms, the delay with 1 ms added.
    pub fn new(
        unfinished: Option<f64>,
        retransmitted: Option<f64>,
        delay_p95_us: Option<f64>,
        completion_p95_us: Option<f64>,
    ) -> Costs {
        let delay = delay_p95_us.map(|delay| (delay.max(0.0) / DELAY_FLOOR_US).ln_1p());
        let completion = completion_p95_us.filter(|time| *time > 0.0).map(f64::ln);
        Costs([unfinished, retransmitted, delay, completion])
    }

    /// Means of two compared blocks over several hosts, each with a weight. A value counts for the
    /// hosts that have it in both blocks.
    pub fn mean(hosts: &[(f64, [Costs; 2])]) -> [Costs; 2] {
        let over = |side: usize, index: usize| {
            let both = |(weight, pair): &(f64, [Costs; 2])| {
                let [one, other] = [pair[0].0[index]?, pair[1].0[index]?];
                Some((*weight, [one, other][side]))
            };
            let all: f64 = hosts.iter().filter_map(both).map(|(weight, _)| weight).sum();
            let each = hosts.iter().filter_map(both).map(|(weight, value)| weight / all * value);
            (all > 0.0).then(|| each.sum())
        };
        [0, 1].map(|side| Costs(std::array::from_fn(|index| over(side, index))))
    }

    /// Returns by how much these costs exceed those of a block under A.
    pub fn worse_than(&self, control: &Costs) -> Worse {
        std::array::from_fn(|index| Some(self.0[index]? - control.0[index]?))
    }
}

/// By how much B was worse than A, for each of [`Guarded::ALL`]: a difference of ratios, or of
/// logarithms of times. `None` if one of the blocks lacks the value.
pub type Worse = [Option<f64>; Guarded::ALL.len()];

/// Stops an experiment once it is certain that B is worse than A by more than a margin: an
/// e-process on the excess, checked after every triple. Since the order of the blocks is drawn, a
/// percentile of a block under B is as likely to be above that of A as below it without an effect,
/// whatever the distribution; see [`Evidence`].
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    margin: f64,
    scale: f64,
    beyond: Evidence,
    sum: f64,
    squares: f64,
    count: u64,
    has_stopped: bool,
    is_accepted: bool,
}

impl Guard {
    /// `margin` is the permitted harm of B; `scale` as in [`Evidence::new`].
    pub fn new(margin: f64, scale: f64) -> Guard {
        let beyond = Evidence::new(scale);
        let (sum, squares, count, has_stopped, is_accepted) = (0.0, 0.0, 0, false, false);
        Guard { margin, scale, beyond, sum, squares, count, has_stopped, is_accepted }
    }

    /// Whether the harm is accepted: it is measured, and never stops the experiment.
    pub fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    /// Adds the amount by which B was worse. Returns whether to stop.
    pub fn push(&mut self, worse: f64) -> bool {
        self.beyond.push(worse - self.margin);
        self.sum += worse;
        self.squares += worse * worse;
        self.count += 1;
        self.has_stopped |= !self.is_accepted && self.evidence() >= 1.0 / GUARD_LEVEL;
        self.has_stopped
    }

    /// Whether it has stopped the experiment, now or after an earlier triple.
    pub fn has_stopped(&self) -> bool {
        self.has_stopped
    }

    /// Whether it has seen enough triples to stop at all: each at most doubles the evidence.
    pub fn is_able(&self) -> bool {
        (self.count as f64).exp2() >= 1.0 / GUARD_LEVEL
    }

    /// Permitted harm, in the unit of [`Worse`].
    pub fn margin(&self) -> f64 {
        self.margin
    }

    /// Returns the mean harm so far; `None` before the first triple.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Returns the smallest harm that stops an experiment of this many triples with a probability of
    /// 0.8 or more, in the unit of [`Worse`], if triples vary as the blocks under A do; see
    /// [`smallest_effect`].
    pub fn smallest_in(&self, triples: usize) -> Option<f64> {
        self.smallest(self.scale, triples)
    }

    /// The same for the triples so far, by their own variation.
    pub fn smallest_so_far(&self) -> Option<f64> {
        let count = self.count as f64;
        let mean = self.mean()?;
        let variance = (self.squares - count * mean * mean).max(0.0) / (count - 1.0).max(1.0);
        self.smallest(variance.sqrt(), self.count as usize)
    }

    fn smallest(&self, deviation: f64, triples: usize) -> Option<f64> {
        let beyond = smallest_effect(self.scale, deviation, triples, 1.0 / GUARD_LEVEL)?;
        Some(self.margin + beyond)
    }

    /// Returns the e-value that B is worse by more than the margin; it stops from
    /// 1 / [`GUARD_LEVEL`] on.
    pub fn evidence(&self) -> f64 {
        self.beyond.values()[0]
    }
}

/// The guards of an experiment, each at [`GUARD_LEVEL`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guards([Option<Guard>; Guarded::ALL.len()]);

impl Guards {
    /// Creates guards from pairs of blocks under A, which give the noise and A's ratios. A harm that
    /// no pair measured is not guarded.
    ///
    /// The margins: one percentage point of unfinished transfers or half of A's share, whichever is
    /// more; half a point of retransmissions or half of A's ratio; 20 % of the delay; 5 % of the
    /// completion time. What is `accepted` stops nothing.
    pub fn new(pairs: &[[Costs; 2]], accepted: &[Guarded]) -> Guards {
        let guard = |index: usize| {
            let values = pairs.iter().filter_map(|[one, other]| {
                one.0[index].zip(other.0[index]).map(|(one, other)| [one, other])
            });
            let values: Vec<[f64; 2]> = values.collect();
            let count = (!values.is_empty()).then_some(values.len() as f64)?;
            let squares: f64 = values.iter().map(|[one, other]| (one - other).powi(2)).sum();
            let mean = values.iter().flatten().sum::<f64>() / (2.0 * count);
            let scale = (squares / count).sqrt();
            let (margin, least) = match Guarded::ALL[index] {
                Guarded::Unfinished => (UNFINISHED.0.max(UNFINISHED.1 * mean), UNFINISHED.0),
                Guarded::Retransmissions => (RETRANSMITTED.0.max(RETRANSMITTED.1 * mean), 0.0),
                Guarded::Delay => (DELAY.ln_1p(), 0.0),
                Guarded::Completion => (COMPLETION.ln_1p(), 0.0),
            };
            let is_accepted = accepted.contains(&Guarded::ALL[index]);
            Some(Guard { is_accepted, ..Guard::new(margin, scale.max(least)) })
        };
        Guards(std::array::from_fn(guard))
    }

    /// Adds a triple of a group. Returns the first harm that is certain.
    pub fn push(&mut self, worse: &Worse) -> Option<Guarded> {
        let mut found = None;
        for ((guard, worse), harm) in self.0.iter_mut().zip(worse).zip(Guarded::ALL) {
            let stops = guard.as_mut().zip(*worse).is_some_and(|(guard, worse)| guard.push(worse));
            found = found.or(stops.then_some(harm));
        }
        found
    }

    /// Returns the guards that have a noise to compare with.
    pub fn each(&self) -> impl Iterator<Item = (Guarded, &Guard)> {
        let all = Guarded::ALL.into_iter().zip(&self.0);
        all.filter_map(|(harm, guard)| Some((harm, guard.as_ref()?)))
    }
}

/// Stops a block at once if retransmissions in one-minute windows indicate a defect: above a limit
/// and several times A's ratio, twice in a row. So a bad arm is stopped within three minutes of its
/// first packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HardStop {
    limit: f64,
    in_a_row: u8,
}

impl HardStop {
    /// Limits the retransmission ratio to 2 %, or to three times that of A if it is higher.
    pub fn new(ratio_of_control: f64) -> HardStop {
        HardStop { limit: (3.0 * ratio_of_control).max(0.02), in_a_row: 0 }
    }

    /// Adds a window's retransmitted and sent bytes. Returns whether to stop. Windows without
    /// traffic are ignored.
    pub fn push(&mut self, retransmitted_bytes: u64, sent_bytes: u64) -> bool {
        if sent_bytes > 0 {
            let over = retransmitted_bytes as f64 > self.limit * sent_bytes as f64;
            self.in_a_row = if over { self.in_a_row + 1 } else { 0 };
        }
        self.in_a_row >= IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Harm of exactly the margin gives no reason to stop after any number of triples; three
    /// deviations more stop it within ten.
    #[test]
    fn a_guard_stops_what_is_beyond_its_margin() {
        let mut guard = Guard::new(0.005, 0.001);
        assert!((0..1000).all(|_| !guard.push(0.005)));
        let mut guard = Guard::new(0.005, 0.001);
        let stopped = (1..=10).find(|_| guard.push(0.008)).unwrap();
        assert!(stopped <= 10, "{stopped}");
        // The greatest harm stops it after seven: 2^7 is over 100.
        let mut guard = Guard::new(0.0, 1e-9);
        let stopped = (1..=10).find(|_| guard.is_able() || guard.push(1.0) || guard.is_able());
        assert_eq!((stopped, guard.is_able()), (Some(7), true));
    }

    /// Computed by hand: from 9 to 11 ms of queueing is ln(12 / 10) = ln 1.2, exactly the margin;
    /// from 100 to 105 ms of completion is ln 1.05. A retransmits 2 %, so its margin is a point, and
    /// leaves 4 % unfinished, so that is two points.
    #[test]
    fn margins_by_hand() {
        let all =
            |cut, again, delay, took| Costs::new(Some(cut), Some(again), Some(delay), Some(took));
        let costs = |again, delay, took| all(0.04, again, delay, took);
        let usual = costs(0.02, 9e3, 100e3);
        let guards = Guards::new(&[[usual, usual], [usual, usual]], &[]);
        let margins: Vec<f64> = guards.each().map(|(_, guard)| guard.margin()).collect();
        let at = all(0.06, 0.03, 11e3, 105e3).worse_than(&usual);
        for (margin, at) in margins.iter().zip(at) {
            assert!((margin - at.unwrap()).abs() < 1e-12, "{margin} {at:?}");
        }
        let first = |worse: Costs| {
            let mut guards = guards.clone();
            (0..100).find_map(|_| guards.push(&worse.worse_than(&usual)))
        };
        for (above, within, harm) in [
            (all(0.061, 0.0, 0.0, 0.1), all(0.059, 0.0, 0.0, 0.1), Guarded::Unfinished),
            (costs(0.031, 0.0, 0.1), costs(0.029, 0.0, 0.1), Guarded::Retransmissions),
            (costs(0.0, 11.1e3, 0.1), costs(0.0, 10.9e3, 0.1), Guarded::Delay),
            (costs(0.0, 0.0, 106e3), costs(0.0, 0.0, 104e3), Guarded::Completion),
        ] {
            assert_eq!((first(above), first(within)), (Some(harm), None));
        }
        // A millisecond of queue instead of a tenth: ten times as much, but no harm.
        let tiny = Guards::new(&[[costs(0.0, 100.0, 1e3); 2]], &[]);
        let worse = costs(0.0, 300.0, 1e3).worse_than(&costs(0.0, 100.0, 1e3));
        assert!((0..100).all(|_| tiny.clone().push(&worse).is_none()));
    }

    /// In the pairs every transfer finished, so the least noise is assumed: the quarter that does not
    /// under B stops it within eight triples, a hundredth never, and a triple without any harm does
    /// not end all evidence.
    #[test]
    fn unfinished_transfers_stop_though_none_was_seen_before() {
        let cut = |share| Costs::new(Some(share), None, None, None);
        let guards = Guards::new(&[[cut(0.0); 2]; 4], &[]);
        let after = |shares: &mut dyn Iterator<Item = f64>| {
            let mut guards = guards.clone();
            (1..).zip(shares).find_map(|(triple, share)| {
                guards.push(&cut(share).worse_than(&cut(0.0))).map(|harm| (triple, harm))
            })
        };
        assert_eq!(after(&mut [0.25; 8].into_iter()), Some((7, Guarded::Unfinished)));
        assert_eq!(after(&mut [0.01; 1000].into_iter()), None);
        let mixed = &mut [0.25, 0.0, 0.25, 0.25].into_iter().cycle().take(40);
        assert!(after(mixed).is_some_and(|(triple, _)| triple <= 16));
    }

    /// Four triples of 1 % and 3 % in turn: the deviation is 1.1547 points, and nothing can be seen
    /// in so few.
    #[test]
    fn a_guard_says_what_it_could_have_seen() {
        let mut guard = Guard::new(0.005, 0.01);
        let few = guard.smallest_in(24).unwrap();
        let many = guard.smallest_in(96).unwrap();
        assert!(0.005 < many && many < few && few < 0.03, "{many} {few}");
        assert_eq!((guard.smallest_in(6), guard.smallest_so_far()), (None, None));
        for at in 0..24 {
            guard.push(if at % 2 == 0 { -0.01 } else { 0.01 });
            assert_eq!(guard.smallest_so_far().is_some(), at >= 6, "{at}");
        }
        let seen = guard.smallest_so_far().unwrap();
        assert!((seen / few - 1.0).abs() < 0.05, "{seen} {few}");
    }

    #[test]
    fn what_was_not_measured_is_not_guarded() {
        let blind = Costs::new(None, Some(0.01), None, None);
        let mut guards = Guards::new(&[[blind, blind]], &[]);
        assert_eq!(guards.each().count(), 1);
        let slow = Costs::new(Some(1.0), Some(0.01), Some(1e6), Some(1e6));
        assert!((0..100).all(|_| guards.push(&slow.worse_than(&blind)).is_none()));
        assert_eq!(Guards::new(&[], &[]).each().count(), 0);
    }

    /// Ten times the queue and the retransmissions stop at the first that is not accepted, and all
    /// is measured.
    #[test]
    fn accepted_harm_is_measured_and_stops_nothing() {
        let costs = |times: f64| Costs::new(None, Some(times * 0.01), Some(times * 1e4), None);
        let worse = costs(10.0).worse_than(&costs(1.0));
        for (accepted, stops) in [
            (&[][..], Some(Guarded::Retransmissions)),
            (&[Guarded::Retransmissions], Some(Guarded::Delay)),
            (&[Guarded::Delay], Some(Guarded::Retransmissions)),
            (&Guarded::ACCEPTABLE, None),
        ] {
            let mut guards = Guards::new(&[[costs(1.0); 2]], accepted);
            assert_eq!((0..100).find_map(|_| guards.push(&worse)), stops, "{accepted:?}");
            assert!(guards.each().all(|(_, guard)| guard.mean().is_some_and(|mean| mean > 0.0)));
            assert!(guards.each().all(|(harm, one)| one.is_accepted() == accepted.contains(&harm)));
        }
        for harm in Guarded::ALL {
            let is_acceptable = Guarded::ACCEPTABLE.contains(&harm);
            assert_eq!(Guarded::acceptable(harm.name()), is_acceptable.then_some(harm));
        }
    }

    #[test]
    fn two_bad_windows_in_a_row_stop() {
        let mut stop = HardStop::new(0.001);
        assert!(!stop.push(300, 10_000));
        assert!(!stop.push(100, 10_000));
        assert!(!stop.push(300, 10_000));
        assert!(!stop.push(0, 0));
        assert!(stop.push(300, 10_000));
        // Three times 1 % is allowed.
        let mut stop = HardStop::new(0.01);
        assert!((0..10).all(|_| !stop.push(300, 10_000)));
        assert!(!stop.push(301, 10_000));
        assert!(stop.push(301, 10_000));
    }
}
