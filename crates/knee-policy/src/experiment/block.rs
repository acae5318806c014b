//! Results of an experiment's blocks.

use knee_steer::{Costs, Guarded, Harm, Window};
use knee_units::statistics::Sketch;
use serde::{Deserialize, Serialize};

/// Size classes by delivered bytes: upper limit and name.
pub const CLASSES: [(u64, &str); 4] = [
    (100_000, "under 100 kB"),
    (1_000_000, "100 kB to 1 MB"),
    (10_000_000, "1 to 10 MB"),
    (u64::MAX, "10 MB and more"),
];
/// Percentile that guards compare, and the minimum number of connections in a block for it: with
/// fewer than 20 it would be the largest value.
const TAIL: f64 = 0.95;
const TAIL_MIN: u64 = 20;

/// Sums over connections of a class under one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Number of connections.
    pub count: u64,
    /// Those of them that ended, or were open at the end of the block, with data that the other end
    /// had not acknowledged. Blocks written before this was counted have none.
    #[serde(default)]
    pub unfinished: u64,
    /// Sum of the logarithms of their rates (bit/s).
    pub ln_bps: f64,
}

impl Sums {
    /// Adds the sums of other connections.
    pub(super) fn merge(&mut self, other: Sums) {
        self.count += other.count;
        self.unfinished += other.unfinished;
        self.ln_bps += other.ln_bps;
    }

    pub(super) fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.ln_bps / self.count as f64)
    }
}

/// Times of connections that count, under both controllers together, for guards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Smallest RTT of any of the group's connections, microseconds: its path without a queue. A
    /// connection's own smallest RTT would not do, since some controllers (BBR) empty the queue to
    /// measure it, and others never see it empty.
    pub rtt_min_us: Option<u32>,
    /// Final smoothed RTTs, microseconds.
    #[serde(with = "as_text")]
    pub rtt_us: Sketch,
    /// Busy times of the connections of the smallest class, microseconds.
    #[serde(with = "as_text")]
    pub small_us: Sketch,
}

/// Sketches as text: `k:count`, separated by spaces.
mod as_text {
    use knee_units::statistics::Sketch;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(sketch: &Sketch, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&sketch.text())
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Sketch, D::Error> {
        let text = String::deserialize(from)?;
        Sketch::parse(&text).ok_or_else(|| D::Error::custom("not the counts of a sketch"))
    }
}

/// The percentile of a block's times; `None` with too few.
fn tail(times: &Sketch) -> Option<f64> {
    times.interpolated(TAIL).filter(|_| times.count() >= TAIL_MIN)
}

/// Results of a block for one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupBlock {
    /// By class: connections under A and under B.
    pub classes: [[Sums; 2]; CLASSES.len()],
    /// Number of prefixes from which clients came, under A and under B.
    pub parts: [u64; 2],
    /// Bytes retransmitted and sent, both controllers together.
    pub bytes: [u64; 2],
    /// Their times. Blocks written before there were any have none, and are guarded by
    /// retransmissions alone.
    #[serde(default)]
    pub times: Times,
    /// Why B was stopped during the block.
    pub stopped: Option<String>,
}

/// Results of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Number from 0, including the pairs before the first triple.
    pub number: u64,
    /// Results by group, in the order of the policy.
    pub groups: Vec<GroupBlock>,
    /// Reports of connections that arrived; lost ones are in `lost`.
    pub reports: u64,
    /// Lost reports.
    pub lost: u64,
    /// Connections that got a controller, or by routes were seen with it; refused ones are in
    /// `refused`.
    pub given: u64,
    /// Connections whose controller the kernel refused, or that were seen with another one.
    pub refused: u64,
    /// Why the block is void.
    pub void: Option<String>,
}

impl Block {
    /// Share of lost reports.
    pub(super) fn lost_share(&self) -> f64 {
        let all = self.reports + self.lost;
        if all == 0 { 0.0 } else { self.lost as f64 / all as f64 }
    }
}

impl GroupBlock {
    fn retransmitted(&self) -> f64 {
        let [again, sent] = self.bytes;
        if sent == 0 { 0.0 } else { again as f64 / sent as f64 }
    }

    /// The sums that alarms compare, of all connections together.
    pub(super) fn window(&self) -> Window {
        let [again, sent] = self.bytes;
        Window {
            sent_bytes: sent,
            retransmitted_bytes: again,
            connections: self.times.rtt_us.count(),
            unfinished: self.classes.as_flattened().iter().map(|sums| sums.unfinished).sum(),
            rtt_us: self.times.rtt_us.sum(),
            small: self.times.small_us.count(),
            small_ln_us: self.times.small_us.sum_of_logarithms(),
        }
    }

    /// Costs for guards, with the path's RTT without a queue, microseconds: the unfinished
    /// connections of a class, the others of the whole group.
    pub(super) fn costs(&self, class: usize, rtt_min_us: Option<u32>) -> Costs {
        let queue = tail(&self.times.rtt_us).zip(rtt_min_us);
        let queue = queue.map(|(rtt, rtt_min)| rtt - f64::from(rtt_min));
        let sent = (self.bytes[1] > 0).then(|| self.retransmitted());
        let Sums { count, unfinished, .. } = self.whole(class);
        let unfinished = (count > 0).then(|| unfinished as f64 / count as f64);
        Costs::new(unfinished, sent, queue, tail(&self.times.small_us))
    }

    /// Both controllers together.
    fn whole(&self, class: usize) -> Sums {
        let mut whole = Sums::default();
        self.classes[class].iter().for_each(|sums| whole.merge(*sums));
        whole
    }

    pub(super) fn mean(&self, class: usize) -> Option<f64> {
        self.whole(class).mean()
    }

    pub(super) fn count(&self, class: usize) -> u64 {
        self.whole(class).count
    }
}

/// Describes a harm.
pub(crate) fn name(harm: Harm) -> String {
    match harm {
        Harm::Unfinished => {
            "over 5 % of its connections, and three times A's share, end with data undelivered"
        }
        Harm::Retransmissions => "it retransmits over 2 % and three times as much as A",
        Harm::Delay => "its round trips are twice as long as A's, and 20 ms longer",
        Harm::Completion => "its small transfers take twice as long as A's, and 20 ms longer",
    }
    .to_string()
}

/// Describes a harm of which a guard is certain.
pub(crate) fn guarded(harm: Guarded) -> String {
    match harm {
        Guarded::Unfinished => {
            "it is certain that it leaves more transfers unfinished than the margin allows"
        }
        Guarded::Retransmissions => "it is certain that it retransmits more than the margin allows",
        Guarded::Delay => {
            "it is certain that its queueing delay (95th percentile) is longer than the margin \
             allows"
        }
        Guarded::Completion => {
            "it is certain that its small transfers (95th percentile) take longer than the margin \
             allows"
        }
    }
    .to_string()
}
