//! When a packet that others overtook counts as lost (RFC 9002, section 6.1; RFC 8985).
//!
//! Until the path was seen to reorder, a packet is lost once three later ones have arrived, or one
//! has and 9/8 of an RTT has passed since it was sent. From then on only time counts: the RTT of
//! the latest packet that arrived, and a reordering window (RFC 8985, section 6.2, steps 4 and 5).
//!
//! The window is a number of quarters of the minimum RTT, at most a probe timeout, after which the path
//! is asked anyway. That timeout is the one of all packets that arrive, however late: an RTT measured by
//! the largest number of each ACK is that of packets that overtook others, and much too short. (The RFC
//! has the smoothed RTT: where delays vary by more than their mean, half of all packets would count as
//! lost, since those that arrive first are the luckiest.) A packet that was declared lost and arrives
//! late shows how wide it should have been, so the window takes that width at once; the RFC adds one
//! quarter per round trip, because a D-SACK does not tell how late the original was. After sixteen round
//! trips with losses in which the window was never too narrow it becomes as narrow as they allowed.

use super::rtt::Rtt;
use knee_units::Time;

/// Later packets that must arrive before an earlier one is lost (RFC 9002, section 6.1.1).
const THRESHOLD: u64 = 3;
/// Time threshold in eighths of an RTT, 9/8 (RFC 9002, section 6.1.2).
const EIGHTHS: u64 = 9;
/// Packets that must be overtaken by a quarter of the RTT until the path reorders widely.
const WIDELY: u8 = 16;
/// Packets over which the RTT is smoothed.
const GAIN: u64 = 64;
/// Round trips with losses for which a window persists (RFC 8985, section 6.2, step 4).
const PERSIST: u8 = 16;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    number: u64,
    rtt: Time,
}

/// Loss detection of a path, without its packets.
///
/// Packets are known by a number that grows in the order of sending. Those of one ACK are passed to
/// [`on_arrived`](Self::on_arrived), then [`on_ack_end`](Self::on_ack_end) is called: what one ACK
/// reports arrived in an unknown order.
#[derive(Clone, Copy, Debug)]
pub struct LossRule {
    /// The latest packet that arrived, before this ACK and with it.
    latest: Option<Arrived>,
    coming: Option<Arrived>,
    reorders: bool,
    window: Time,
    /// RTT of all packets that arrive, smoothed, and its mean deviation.
    smoothed: Time,
    deviation: Time,
    /// How far a packet came behind the latest one, at most.
    behind: u64,
    /// Packets so far that were overtaken by a quarter of the RTT, up to [`WIDELY`].
    wide: u8,
    /// Width that would have sufficed since the last look.
    needed: Time,
    /// Round trips with losses until the next look.
    left: u8,
    /// Number of the first packet of the next round trip.
    round_end: u64,
}

impl Default for LossRule {
    fn default() -> LossRule {
        LossRule {
            latest: None,
            coming: None,
            reorders: false,
            window: Time::ZERO,
            smoothed: Time::ZERO,
            deviation: Time::ZERO,
            behind: 0,
            wide: 0,
            needed: Time::ZERO,
            left: PERSIST,
            round_end: 0,
        }
    }
}

impl LossRule {
    /// Notes that a packet arrived, which may have been declared lost before.
    pub fn on_arrived(&mut self, now: Time, number: u64, sent_at: Time, was_lost: bool, rtt: &Rtt) {
        let own = now - sent_at;
        self.smooth(own);
        if let Some(latest) = self.latest.filter(|latest| number < latest.number) {
            self.reorders = true;
            self.behind = self.behind.max(latest.number - number);
            let late = own.saturating_sub(latest.rtt);
            self.needed = self.needed.max(late);
            if late > self.smoothed / 4 && self.wide < WIDELY {
                self.wide += 1;
            }
            if was_lost {
                self.left = PERSIST;
                self.widen(rtt);
            }
        }
        if self.coming.is_none_or(|coming| number > coming.number) {
            self.coming = Some(Arrived { number, rtt: own });
        }
    }

    /// Notes the end of an ACK.
    pub fn on_ack_end(&mut self) {
        let coming = self.coming.take();
        let is_later = |coming: &Arrived| self.latest.is_none_or(|l| coming.number > l.number);
        if let Some(coming) = coming.filter(is_later) {
            self.latest = Some(coming);
        }
    }

    /// Returns whether the path was seen to reorder.
    pub fn reorders(&self) -> bool {
        self.reorders
    }

    /// Returns whether packets were overtaken by a quarter of the RTT so often that the path must be
    /// expected to do so.
    pub fn reorders_widely(&self) -> bool {
        self.wide == WIDELY
    }

    /// Returns how many packets were sent between one that arrived and the latest before it, at most.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Returns when an unacknowledged packet is lost: [`Time::ZERO`] if three others overtook it on a
    /// path that was not seen to reorder, [`Time::MAX`] if none did.
    pub fn lost_at(&self, number: u64, sent_at: Time, rtt: &Rtt) -> Time {
        let Some(latest) = self.latest.filter(|latest| number < latest.number) else {
            return Time::MAX;
        };
        if self.reorders {
            let window = self.window.max(rtt.min / 4).min(self.timeout(rtt));
            return sent_at + latest.rtt + window;
        }
        let is_overtaken = latest.number - number >= THRESHOLD;
        if is_overtaken { Time::ZERO } else { sent_at + rtt.loss_delay(EIGHTHS) }
    }

    /// Returns the longest time for which a packet may be late: a probe timeout (RFC 9002, section
    /// 6.2.1), by the RTT of all packets.
    pub fn timeout(&self, rtt: &Rtt) -> Time {
        rtt.probe_timeout(Time::ZERO).max(self.smoothed + self.deviation * 4)
    }

    fn smooth(&mut self, own: Time) {
        if self.smoothed == Time::ZERO {
            (self.smoothed, self.deviation) = (own, own / 2);
            return;
        }
        let deviation = own.max(self.smoothed) - own.min(self.smoothed);
        self.deviation = (self.deviation * (GAIN - 1) + deviation) / GAIN;
        self.smoothed = (self.smoothed * (GAIN - 1) + own) / GAIN;
    }

    /// Notes that a packet was declared lost; `next` is sent next.
    pub fn on_lost(&mut self, number: u64, next: u64, rtt: &Rtt) {
        if number < self.round_end {
            return;
        }
        self.round_end = next;
        self.left -= 1;
        if self.left == 0 {
            self.window = Time::ZERO;
            self.widen(rtt);
            (self.left, self.needed) = (PERSIST, Time::ZERO);
        }
    }

    /// Widens the window to what was needed, in whole quarters of the minimum RTT.
    fn widen(&mut self, rtt: &Rtt) {
        let quarter = (rtt.min / 4).max(Time::from_nanos(1));
        let quarters = self.needed.as_nanos().div_ceil(quarter.as_nanos());
        self.window = self.window.max(quarter * quarters);
    }
}
