//! Schedule of the blocks.

use std::time::Duration;

/// Purpose of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Part of a pair before the first triple, all under the controller in use.
    Calibration {
        /// Index of the pair.
        pair: u64,
    },
    /// Part of a triple.
    Triple {
        /// Index of the triple.
        triple: u64,
        /// Position in it, 0 to 2.
        place: usize,
    },
}

/// Consecutive blocks of equal length: pairs, then triples, at the same time for all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Length of a block.
    pub block: Duration,
    /// Initial part of a block in which new connections do not count.
    pub burn_in: Duration,
    /// Number of pairs before the first triple.
    pub calibration: u64,
    /// Number of triples.
    pub triples: u64,
}

impl Timeline {
    /// Number of the block at a time since the start of the first.
    pub fn number_at(&self, since: Duration) -> u64 {
        u64::try_from(since.as_nanos() / self.block.as_nanos().max(1)).unwrap_or(u64::MAX)
    }

    /// Start of a block.
    pub fn begin(&self, number: u64) -> Duration {
        self.block.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Purpose of a block; `None` after the last.
    pub fn slot(&self, number: u64) -> Option<Slot> {
        let before = 2 * self.calibration;
        if number < before {
            return Some(Slot::Calibration { pair: number / 2 });
        }
        let (triple, place) = ((number - before) / 3, ((number - before) % 3) as usize);
        (triple < self.triples).then_some(Slot::Triple { triple, place })
    }

    /// The first block of a site's experiment that begins `since` its begin or later and is the
    /// first of its pair or triple; `None` after the last.
    pub fn joined(&self, since: Duration) -> Option<u64> {
        let next = u64::try_from(since.as_nanos().div_ceil(self.block.as_nanos().max(1))).ok()?;
        let first =
            (next..next.saturating_add(3)).find(|number| self.resumed(*number) == *number)?;
        self.slot(first).map(|_| first)
    }

    /// The first block to run when all blocks before `done` are complete: pairs and triples are
    /// repeated as a whole.
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
        // Pairs begin at 0 and 1200 s, triples at 2400 and 4200 s.
        let joined = |since| timeline.joined(Duration::from_millis(since));
        assert_eq!([0, 1, 1_200_000, 1_200_001].map(joined), [Some(0), Some(2), Some(2), Some(4)]);
        assert_eq!([2_400_000, 2_400_001, 4_200_000].map(joined), [Some(4), Some(7), Some(7)]);
        assert_eq!([4_200_001, u64::MAX].map(joined), [None, None]);
    }
}
