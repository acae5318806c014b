//! How streams share memory so that none of them, however many stop, keeps another one from going
//! on.
//!
//! Each stream that may be open has a part of its own, used or not, and what is beyond all of these
//! parts is shared. As in switches that share their memory (Choudhury and Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998), a stream may take twice what is
//! left of it: one alone has two thirds, two have 2/5 each, and however many stop, something is
//! left. The last of the shared part only brings streams up to a window that suffices for most
//! transfers. What all streams take together never exceeds the whole.

/// Smallest part that a stream has of its own, bytes: a request or an answer of `knee bond` fits.
const OWN_MIN: u64 = 1 << 10;
/// Largest part that it has of its own, and up to which the last of the shared part serves it.
const FIRST: u64 = 1 << 16;

/// Returns the part that each of so many streams has of its own: a sixteenth of all, within limits.
pub fn own_part(whole: u64, streams: u64) -> u64 {
    (whole / 16 / streams.max(1)).clamp(OWN_MIN, FIRST)
}

/// Parts of the streams that share memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Part that each stream has of its own.
    own: u64,
    /// Bytes beyond all of these parts.
    shared: u64,
    /// The last of `shared`, which brings streams up to `FIRST`.
    spare: u64,
}

impl Shares {
    /// Divides `whole` among `streams` streams with parts of `own` bytes.
    pub fn within(whole: u64, own: u64, streams: u64) -> Shares {
        Shares::beside(whole.saturating_sub(own.saturating_mul(streams)), own)
    }

    /// Gives streams `shared` bytes beyond the `own` bytes of each.
    pub fn beside(shared: u64, own: u64) -> Shares {
        Shares { own, shared, spare: shared / 6 }
    }

    /// Returns the part that each stream has of its own.
    pub fn own(&self) -> u64 {
        self.own
    }

    /// Returns what a stream with so many bytes takes of the shared part.
    pub fn beyond(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.own)
    }

    /// Returns the bytes that a stream may have while others take `others` of the shared part.
    pub fn most(&self, others: u64) -> u64 {
        let left = self.shared.saturating_sub(others);
        let twice = left.saturating_sub(self.spare) / 3 * 2;
        self.own + twice.max(self.first_of(left))
    }

    /// Returns the bytes that a new stream may have while others take `others` of the shared part.
    pub fn first(&self, others: u64) -> u64 {
        self.own + self.first_of(self.shared.saturating_sub(others))
    }

    fn first_of(&self, left: u64) -> u64 {
        left.min(FIRST.saturating_sub(self.own))
    }

    /// Returns the bytes beyond the streams' own parts.
    pub fn shared(&self) -> u64 {
        self.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One stream alone has about half of the window of a bundle; each that stops leaves a third.
    #[test]
    fn each_that_stops_leaves_a_third() {
        let window = 16 << 20;
        let shares = Shares::within(window, own_part(window, 342), 342);
        let (mut taken, mut all) = (0, Vec::new());
        for _ in 0..4 {
            let most = shares.most(taken);
            taken += shares.beyond(most);
            all.push(most as f64 / window as f64);
        }
        for (share, right) in all.iter().zip([0.52, 0.174, 0.058, 0.0193]) {
            assert!((share / right - 1.0).abs() < 0.1, "{all:?}");
        }
    }

    proptest! {
        /// Whatever streams take and give back, each has its own part, and all have the whole at most.
        #[test]
        fn all_together_never_have_more_than_the_whole(
            whole in 0..1_u64 << 25,
            streams in 1..400_u64,
            steps in prop::collection::vec((0..400_usize, any::<bool>(), 0..1_u64 << 24), 1..400),
        ) {
            let own = own_part(whole, streams);
            let shares = Shares::within(whole, own, streams);
            let mut has = vec![own; streams as usize];
            for (at, grows, less) in steps {
                let at = at % has.len();
                let others = has.iter().enumerate().filter(|(other, _)| *other != at);
                let taken = others.map(|(_, bytes)| shares.beyond(*bytes)).sum();
                has[at] = if grows { has[at].max(shares.most(taken)) } else { own + less % (1 + has[at] - own) };
                prop_assert!(shares.most(taken) >= shares.first(taken) && shares.first(taken) >= own);
                prop_assert!(has.iter().sum::<u64>() <= whole.max(own * streams));
            }
        }
    }
}
