//! Estimates what a path can carry, from trains of acknowledgements.
//!
//! A delivery rate reflects what a path was given; a window that is not full
//! keeps it below what the path could carry. But the acknowledgements of
//! packets sent in a burst return at the pace of the bottleneck (Jain and
//! Routhier, "Packet trains", 1986; Dovrolis et al., "Packet-dispersion
//! techniques", 2004): the fastest recent train gives its rate.
//!
//! As in BBR's rate samples the duration of a train is the longer of its send
//! time and its acknowledgement time: acknowledgements that were held up and
//! return all at once do not look like a fast path.
//!
//! A host that acts once per tick of its timers sends a tick's packets together
//! and reads a tick's acknowledgements together, so both times may be too short
//! by a tick. There, the acknowledgements of a tick count as one, a train lasts
//! for several ticks, and one more is added to its duration: it may look slower
//! by an eighth, but not faster. Until there was such a train, shorter ones give
//! a rough value.

use knee_units::{Rate, Time};

/// Packets of a train after its first: fewer would measure the granularity of a
/// clock or one delayed ACK, more are rarely sent in a row.
const TRAIN: u64 = 8;
/// Number of acknowledgements remembered. Each is for at least one packet; only
/// short packets make a train longer, which is then not measured.
const NOTES: usize = 16;
/// Shortest duration of a train in ticks.
const TRAIN_TICKS: u64 = 8;
/// Shortest time in round trips for which a train counts; at most twice as long.
const EPOCH_RTTS: u64 = 10;

/// An acknowledgement that made progress.
#[derive(Clone, Copy, Debug, Default)]
struct Note {
    at: Time,
    /// Bytes delivered by then.
    delivered: u64,
    /// Send time of the packet that it acknowledged last.
    sent_at: Time,
}

/// Measures the capacity of one path.
#[derive(Clone, Debug, Default)]
pub struct CapacityMeter {
    /// Interval at which the host acts; zero if it acts at once.
    tick: Time,
    /// Notes a tick apart or more: of the first acknowledgement of each, with what
    /// was delivered by the last one.
    notes: [Note; NOTES],
    /// Notes recorded so far.
    count: usize,
    /// Time of the last acknowledgement.
    last_at: Time,
    /// Highest rate of this epoch and of the previous one, bit/s; zero without a train.
    best: [u64; 2],
    epoch_end: Time,
    /// Highest rate of a shorter train, until the first full one, bit/s.
    provisional: u64,
}

impl CapacityMeter {
    /// Makes a meter for a host that sends and reads once per `tick`.
    pub fn ticking(tick: Time) -> CapacityMeter {
        CapacityMeter { tick, ..CapacityMeter::default() }
    }

    /// Processes an acknowledgement, after which `delivered` bytes are
    /// delivered in total; the data that it acknowledged was sent at `sent_at`.
    #[inline]
    pub fn on_ack(&mut self, now: Time, delivered: u64, sent_at: Time, srtt: Time, mss: u64) {
        if delivered == 0 || self.count > 0 && self.note(1).delivered == delivered {
            return;
        }
        if self.count > 0 && sent_at > self.last_at {
            // Nothing was in flight: a train does not extend over a pause.
            self.count = 0;
        }
        self.last_at = now;
        let mut note = Note { at: now, delivered, sent_at };
        if self.count > 0 && now < self.note(1).at + self.tick {
            note.at = self.note(1).at;
            self.count -= 1;
        }
        self.notes[self.count % NOTES] = note;
        self.count += 1;
        if now >= self.epoch_end {
            self.best = [0, self.best[0]];
            self.epoch_end = now + srtt * EPOCH_RTTS;
        }
        if let Some(rate) = self.train(TRAIN * mss, self.tick * TRAIN_TICKS) {
            self.best[0] = self.best[0].max(rate);
            self.provisional = 0;
        } else if self.best == [0, 0]
            && let Some(rate) = self.train(1, Time::ZERO)
        {
            self.provisional = self.provisional.max(rate);
        }
    }

    /// Returns the note `back` places before the next one.
    fn note(&self, back: usize) -> &Note {
        &self.notes[(self.count - back) % NOTES]
    }

    /// Returns the rate of the shortest train that ends now and has at least so many bytes and so
    /// long a duration, bit/s.
    fn train(&self, bytes: u64, duration: Time) -> Option<u64> {
        let last = self.note(1);
        let known = self.count.min(NOTES);
        let first = (2..=known).map(|back| self.note(back));
        let span =
            |first: &Note| (last.at - first.at).max(last.sent_at.saturating_sub(first.sent_at));
        let suffices =
            |note: &&Note| last.delivered - note.delivered >= bytes && span(note) >= duration;
        let first = first.into_iter().find(suffices)?;
        let span = span(first) + self.tick;
        let rate = Rate::over(last.delivered - first.delivered, span);
        (span > Time::ZERO).then(|| rate.as_bits_per_second())
    }

    /// Returns the highest recent rate of a train; `None` before the first train.
    #[inline]
    pub fn capacity(&self) -> Option<Rate> {
        let best = self.best[0].max(self.best[1]).max(self.provisional);
        (best > 0).then(|| Rate::from_bits_per_second(best))
    }
}
