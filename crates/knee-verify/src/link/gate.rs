//! What a packet passes before the queue: outages, loss, policer.

use super::books::Offer;
use super::service::WORK_PER_BYTE;
use crate::parse::{Kind, Link, Loss, Policer, Reason};

/// What must happen to a packet before it reaches the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Passes,
    Goes(Reason),
    /// It passes or is lost, at random.
    MayBeLost,
}

/// IP bytes that are lost together at most.
const SUPER_PACKET_MAX: u64 = 65_536;

/// State of a link's gate.
pub struct Gate {
    down: Vec<(u64, u64)>,
    loss: Loss,
    /// Packets that the loss model has processed.
    seen: u64,
    /// Loss steps that had begun at the last of them.
    begun: usize,
    /// The packets of one super-packet that the loss model has processed last.
    last: Option<Together>,
    bucket: Option<Bucket>,
}

/// Packets of one sender that have entered at one time, one after another.
struct Together {
    time: u64,
    sender: (u64, Kind),
    bytes: u64,
    lost: bool,
}

/// A token bucket in bit/s x ns.
struct Bucket {
    policer: Policer,
    level: u128,
    updated: u64,
}

impl Bucket {
    fn depth(&self) -> u128 {
        u128::from(self.policer.burst) * WORK_PER_BYTE
    }

    /// Takes tokens for a packet. Returns whether there were enough.
    fn takes(&mut self, time: u64, bytes: u64) -> bool {
        let earned = u128::from(time - self.updated) * u128::from(self.policer.rate);
        self.level = self.depth().min(self.level + earned);
        self.updated = time;
        let cost = u128::from(bytes) * WORK_PER_BYTE;
        let enough = cost <= self.level;
        self.level -= if enough { cost } else { 0 };
        enough
    }
}

impl Gate {
    pub fn new(head: &Link) -> Gate {
        let bucket = head.policer.map(|policer| {
            let mut bucket = Bucket { policer, level: 0, updated: 0 };
            bucket.level = bucket.depth();
            bucket
        });
        Gate {
            down: head.down.clone(),
            loss: head.loss.clone(),
            seen: 0,
            begun: 0,
            last: None,
            bucket,
        }
    }

    /// Returns what must happen to a packet; `lost` says whether it was lost at random.
    pub fn judge(&mut self, offer: &Offer, lost: bool) -> Fate {
        let (time, bytes) = (offer.time, offer.bytes);
        if self.is_down(time) {
            return Fate::Goes(Reason::Down);
        }
        self.begin_step(time);
        let before = self.seen;
        self.seen += 1;
        let by_chance = match self.loss_in_force() {
            Loss::None | Loss::Steps(_) => false,
            Loss::Every(n) if self.seen.is_multiple_of(*n) => return Fate::Goes(Reason::Loss),
            Loss::Every(_) => false,
            Loss::Recorded(record) if record[(before % record.len() as u64) as usize] => {
                return Fate::Goes(Reason::Loss);
            }
            Loss::Recorded(_) => false,
            Loss::Random => true,
            Loss::SuperPackets => match self.together(offer, lost) {
                Some(true) => return Fate::Goes(Reason::Loss),
                Some(false) => false,
                None => true,
            },
        };
        if by_chance && lost {
            return Fate::MayBeLost;
        }
        let enough = self.bucket.as_mut().is_none_or(|bucket| bucket.takes(time, bytes));
        if enough { Fate::Passes } else { Fate::Goes(Reason::Policer) }
    }

    /// Returns the fate of the super-packet to which a packet belongs, unless it is the first of one:
    /// then that is `lost`.
    fn together(&mut self, offer: &Offer, lost: bool) -> Option<bool> {
        let (time, sender, bytes) = (offer.time, offer.sender, offer.bytes);
        let same = |last: &&mut Together| {
            last.time == time && last.sender == sender && last.bytes + bytes <= SUPER_PACKET_MAX
        };
        if let Some(last) = self.last.as_mut().filter(same) {
            last.bytes += bytes;
            return Some(last.lost);
        }
        self.last = Some(Together { time, sender, bytes, lost });
        None
    }

    /// Restarts the packet count when a loss step has begun since the last packet.
    fn begin_step(&mut self, time: u64) {
        let Loss::Steps(steps) = &self.loss else { return };
        let begun = steps.partition_point(|(from, _)| *from <= time);
        if begun != self.begun {
            (self.begun, self.seen, self.last) = (begun, 0, None);
        }
    }

    fn loss_in_force(&self) -> &Loss {
        match &self.loss {
            Loss::Steps(steps) => &steps[self.begun - 1].1,
            steady => steady,
        }
    }

    fn is_down(&self, time: u64) -> bool {
        let begun = self.down.partition_point(|(from, _)| *from <= time);
        begun > 0 && time < self.down[begun - 1].1
    }

    /// Returns whether an outage begins at this time.
    pub fn goes_down_at(&self, time: u64) -> bool {
        self.down.binary_search_by_key(&time, |(from, _)| *from).is_ok()
    }

    /// Returns when an outage begins, by its number; [`u64::MAX`] if there is none.
    pub fn outage(&self, number: usize) -> u64 {
        self.down.get(number).map_or(u64::MAX, |(from, _)| *from)
    }
}
