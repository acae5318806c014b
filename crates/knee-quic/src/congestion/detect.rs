//! Losses of a path, and recoveries that were needless.

use super::Inner;
use crate::ring::Taken;
use knee_bundle::Rtt;
use knee_cc::{Event, Recovery};
use knee_transport::Sent;
use knee_units::Time;

/// How long a packet declared lost is kept for the library to tell its fate, beyond eight RTTs.
const KEPT: Time = Time::from_secs(1);

/// Whether the last recovery was needless: all its losses were of packets that arrived late (RFC
/// 3522 and RFC 5682 do the same with timestamps and without).
///
/// On a path that reorders, packets that overtake the end of the handshake cannot be decrypted, and
/// the library drops them. Such losses do not count (RFC 9002, section 7.4): once the path was seen to
/// reorder they are no losses, and before that they do not keep a recovery from being needless.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Whether the recovery may be undone.
    possible: bool,
    /// Count of losses before those of the recovery.
    from: u64,
    /// Its losses that have not arrived, and whether any has.
    left: u64,
    any_late: bool,
    last: Found,
}

/// Losses found at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Count of losses before.
    before: u64,
    /// Number, and that without those of the first flight.
    all: u64,
    later: u64,
}

impl Undo {
    fn on_losses(&mut self, found: Found) {
        self.left += found.later;
        self.last = found;
    }

    /// Notes that the losses found last begin a recovery.
    pub fn begin(&mut self) {
        let Found { before, all, later } = self.last;
        (self.from, self.left) = (before, later);
        (self.possible, self.any_late) = (all > 0, false);
    }

    /// Notes that a packet arrived that was declared lost after so many others.
    pub fn on_late(&mut self, count: u64, is_of_first_flight: bool) {
        if count >= self.from {
            self.any_late = true;
            self.left = self.left.saturating_sub(u64::from(!is_of_first_flight));
        }
    }
}

impl Inner {
    pub(super) fn rtts(&self) -> Rtt {
        Rtt {
            latest: self.rtt.latest(),
            smoothed: self.rtt.smoothed(),
            variation: self.rtt.deviation(),
            min: self.rtt.minimum(),
        }
    }

    /// Returns the order of the packet in flight that was sent first.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        let sent = self.oldest_sent()?;
        Some(self.order(&sent))
    }

    /// Returns whether a packet left before the peer had surely completed the handshake, which it
    /// has once it acknowledges such a packet.
    pub(super) fn is_of_first_flight(&self, sent: &Sent) -> bool {
        self.order(sent) < self.first_flight_end
    }

    /// Notes that a packet arrived. Those of the handshake have spaces of their own, whose ACKs say
    /// nothing about the order of arrival.
    pub(super) fn note_arrival(&mut self, now: Time, taken: &Taken) {
        let order = self.order(&taken.sent);
        if taken.is_aside || !self.established || order < self.first_of_data {
            return;
        }
        let (rtts, was_lost) = (self.rtts(), taken.lost.is_some());
        self.rule.on_arrived(now, order, taken.sent.sent_at, was_lost, &rtts);
        if let Some(count) = taken.lost {
            self.undo.on_late(count, self.is_of_first_flight(&taken.sent));
        }
    }

    /// Adds the packets that are lost by now to `losses`.
    pub(super) fn detect(&mut self, now: Time) {
        self.loss_at = Time::MAX;
        if !self.established {
            return;
        }
        let (before, next, rtts) =
            (self.counted.lost_packets, self.counted.sent_packets, self.rtts());
        while let Some(sent) = self.oldest_sent() {
            let order = self.order(&sent);
            let lost_at = self.rule.lost_at(order, sent.sent_at, &rtts);
            if lost_at > now {
                self.loss_at = lost_at;
                break;
            }
            self.rule.on_lost(order, next, &rtts);
            if let Some(lost) = self.lose_oldest(before + self.losses.len() as u64) {
                self.in_flight = self.in_flight.saturating_sub(lost.len.into());
                if !(self.is_of_first_flight(&lost) && self.rule.reorders()) {
                    self.losses.push(lost);
                }
            }
        }
        self.forget_lost(now.saturating_sub(rtts.smoothed * 8 + KEPT));
        let later = self.losses.iter().filter(|sent| !self.is_of_first_flight(sent)).count() as u64;
        self.undo.on_losses(Found { before, all: self.losses.len() as u64, later });
    }

    /// Undoes the last recovery if it was needless.
    pub(super) fn undo(&mut self, now: Time) {
        let Undo { possible, left, any_late, .. } = self.undo;
        // All losses were of the first flight, and meanwhile others were overtaken too.
        let shows = self.rule.reorders() && self.episode.state() == Recovery::Recovery;
        if possible && left == 0 && (any_late || shows) {
            self.undo.possible = false;
            self.episode.undo();
            self.reduction = None;
            self.counted.spurious_recoveries += 1;
            self.tell(now, Event::SpuriousRecovery);
        }
    }
}
