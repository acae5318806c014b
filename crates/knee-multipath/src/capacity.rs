//! What a path carries, from trains of acknowledgements.
//!
//! A delivery rate is what a path was given; a window that is not full keeps
//! it below what the path would carry. But packets that leave in a burst come
//! back at the pace of the bottleneck (Jain and Routhier, "Packet trains",
//! 1986; Dovrolis et al., "Packet-dispersion techniques", 2004): the fastest
//! train of late tells its rate.
//!
//! As in BBR's rate samples a train takes the longer of the times in which it
//! was sent and in which it was acknowledged: acknowledgements that were held
//! up somewhere and come back at once do not look like a fast path.

use knee_units::{Rate, Time};

/// Packets of a train after its first: fewer measure the grain of a clock or
/// one delayed ACK, more are rarely sent in a row.
const TRAIN: u64 = 8;
/// Acknowledgements that are remembered. Each tells of a packet or more; only
/// short packets make a train longer, which is then not measured.
const NOTES: usize = 16;
/// Round trips for which a train counts at least; twice as many at most.
const EPOCH_RTTS: u64 = 10;

/// An acknowledgement that made progress.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    at: Time,
    /// Bytes delivered by then.
    delivered: u64,
    /// When the packet was sent that it acknowledged last.
    sent_at: Time,
}

/// Measures one path.
#[derive(Clone, Debug, Default)]
pub struct CapacityMeter {
    notes: [Note; NOTES],
    /// Acknowledgements noted so far.
    count: usize,
    /// Highest rate of this epoch and of the last, bit/s; zero: no train.
    best: [u64; 2],
    epoch_end: Time,
    /// Highest rate of a shorter train, until the first one is complete, bit/s.
    provisional: u64,
}

impl CapacityMeter {
    /// An acknowledgement came, after which `delivered` bytes are delivered in
    /// all; what it acknowledged was sent at `sent_at`.
    #[inline]
    pub fn on_ack(&mut self, now: Time, delivered: u64, sent_at: Time, srtt: Time, mss: u64) {
        if delivered == 0 || self.count > 0 && self.note(1).delivered == delivered {
            return;
        }
        if self.count > 0 && sent_at > self.note(1).at {
            // Nothing was under way: no train goes on over a pause.
            self.count = 0;
        }
        self.notes[self.count % NOTES] = Note { at: now, delivered, sent_at };
        self.count += 1;
        if now >= self.epoch_end {
            self.best = [0, self.best[0]];
            self.epoch_end = now + srtt * EPOCH_RTTS;
        }
        if let Some(rate) = self.train(TRAIN * mss) {
            self.best[0] = self.best[0].max(rate);
            self.provisional = 0;
        } else if self.best == [0, 0]
            && let Some(rate) = self.train(1)
        {
            self.provisional = self.provisional.max(rate);
        }
    }

    /// The note so many before the next.
    fn note(&self, back: usize) -> &Note {
        &self.notes[(self.count - back) % NOTES]
    }

    /// Rate of the train that ends now, bit/s.
    fn train(&self, bytes: u64) -> Option<u64> {
        let last = self.note(1);
        let known = self.count.min(NOTES);
        let first = (2..=known).map(|back| self.note(back));
        let first = first.into_iter().find(|note| last.delivered - note.delivered >= bytes)?;
        let span = (last.at - first.at).max(last.sent_at.saturating_sub(first.sent_at));
        let rate = Rate::over(last.delivered - first.delivered, span);
        (span > Time::ZERO).then(|| rate.as_bits_per_second())
    }

    /// The highest rate of a train lately; none: no train is complete.
    #[inline]
    pub fn capacity(&self) -> Option<Rate> {
        let best = self.best[0].max(self.best[1]).max(self.provisional);
        (best > 0).then(|| Rate::from_bits_per_second(best))
    }
}
