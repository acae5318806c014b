//! Which block is when.

use std::time::Duration;

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// One of a pair before the first triple, with all under the controller in use.
    Calibration {
        /// From 0.
        pair: u64,
    },
    /// One of a triple.
    Triple {
        /// From 0.
        triple: u64,
        /// 0 to 2.
        place: usize,
    },
}

/// Blocks of one length, one after the other: pairs, then triples. All groups have theirs
/// at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Length of a block.
    pub block: Duration,
    /// From the start of a block, how long connections that begin do not count.
    pub burn_in: Duration,
    /// Pairs of blocks before the first triple.
    pub calibration: u64,
    /// Triples.
    pub triples: u64,
}

impl Timeline {
    /// Number of the block at a time since the first one began.
    pub fn number_at(&self, since: Duration) -> u64 {
        u64::try_from(since.as_nanos() / self.block.as_nanos().max(1)).unwrap_or(u64::MAX)
    }

    /// When a block begins.
    pub fn begin(&self, number: u64) -> Duration {
        self.block.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// What a block is for; none after the last.
    pub fn slot(&self, number: u64) -> Option<Slot> {
        let before = 2 * self.calibration;
        if number < before {
            return Some(Slot::Calibration { pair: number / 2 });
        }
        let (triple, place) = ((number - before) / 3, ((number - before) % 3) as usize);
        (triple < self.triples).then_some(Slot::Triple { triple, place })
    }

    /// The first block that has to be done, where all before this one are: pairs and
    /// triples are whole or not at all.
    pub fn resumed(&self, done: u64) -> u64 {
        let before = 2 * self.calibration;
        if done < before { done / 2 * 2 } else { before + (done - before) / 3 * 3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_by_hand() {
        let seconds = Duration::from_secs;
        let timeline =
            Timeline { block: seconds(600), burn_in: seconds(60), calibration: 2, triples: 2 };
        let slots: Vec<Option<Slot>> = (0..11).map(|number| timeline.slot(number)).collect();
        let pair = |pair| Some(Slot::Calibration { pair });
        let one = |triple, place| Some(Slot::Triple { triple, place });
        let all = [
            pair(0),
            pair(0),
            pair(1),
            pair(1),
            one(0, 0),
            one(0, 1),
            one(0, 2),
            one(1, 0),
            one(1, 1),
            one(1, 2),
            None,
        ];
        assert_eq!(slots, all);
        assert_eq!((timeline.number_at(seconds(599)), timeline.number_at(seconds(600))), (0, 1));
        assert_eq!(timeline.begin(3), seconds(1800));
        assert_eq!(
            [0, 1, 3, 4, 5, 6, 7, 9].map(|done| timeline.resumed(done)),
            [0, 0, 2, 4, 4, 4, 7, 7]
        );
    }
}
