//! Datagrams sent on a path: acknowledged, or lost (RFC 9002, section 6.1), as [`LossRule`] says. Left
//! out: the persistent congestion of section 7.6.

use super::rtt::Rtt;
use super::rule::LossRule;
use crate::frame::AckRanges;
use knee_units::Time;
use std::collections::VecDeque;

/// Maximum distance of the next number from the largest acknowledged one, so that two bytes
/// identify a number.
pub const AHEAD_MAX: u64 = 1 << 15;

/// The same distance from which on acknowledgements ask for one themselves: a path that carries
/// nothing else would reach the maximum.
const AHEAD_ASKED: u64 = AHEAD_MAX / 8;

/// Maximum time for which a lost datagram is remembered, whatever RTT the peer feigns.
const LATE_MAX: Time = Time::from_secs(3);

/// State of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Acknowledged,
    /// Declared lost at this time.
    Lost(Time),
    /// Sent without asking for an acknowledgement.
    Unasked,
}

#[derive(Clone, Copy, Debug)]
struct Sent<C> {
    at: Time,
    bytes: u16,
    state: State,
    content: C,
}

/// Result for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Acknowledged,
    /// It was declared lost.
    Lost,
    /// It was declared lost, and arrived later.
    Late,
}

/// An ACK of a number that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeverSent;

impl std::fmt::Display for NeverSent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the peer acknowledges a datagram that was never sent")
    }
}

impl std::error::Error for NeverSent {}

/// Sending end of a path.
#[derive(Clone, Debug)]
pub struct Outstanding<C> {
    /// Datagrams from number `base` on.
    sent: VecDeque<Sent<C>>,
    base: u64,
    /// No datagram before this number is in flight.
    in_flight_from: u64,
    /// Successor of the largest acknowledged number.
    acknowledged_end: u64,
    in_flight: u64,
    in_flight_count: u64,
    rule: LossRule,
    /// When the next datagram is declared lost.
    loss_at: Time,
    /// When the last datagram that asks for an acknowledgement was sent.
    asked_at: Time,
    /// Probe timeouts since the last acknowledgement.
    timeouts: u32,
}

/// Maximum interval between two probes, unless the timeout itself is longer, so that a path that
/// comes back is found soon.
const PROBE_INTERVAL_MAX: Time = Time::from_secs(1);

impl<C> Default for Outstanding<C> {
    fn default() -> Outstanding<C> {
        Outstanding {
            sent: VecDeque::new(),
            base: 0,
            in_flight_from: 0,
            acknowledged_end: 0,
            in_flight: 0,
            in_flight_count: 0,
            rule: LossRule::default(),
            loss_at: Time::MAX,
            asked_at: Time::ZERO,
            timeouts: 0,
        }
    }
}

impl<C: Copy> Outstanding<C> {
    /// Returns the number of the next datagram.
    pub fn next(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// Returns the number below which all are settled.
    pub fn settled(&self) -> u64 {
        self.base
    }

    /// Returns whether the peer could mistake the next number for another one.
    pub fn is_too_far_ahead(&self) -> bool {
        self.next() - self.acknowledged_end >= AHEAD_MAX
    }

    /// Returns whether an acknowledgement is needed before that.
    pub fn is_far_ahead(&self) -> bool {
        self.next() - self.acknowledged_end >= AHEAD_ASKED
    }

    /// Returns the bytes of datagrams in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns whether datagrams overtake others by a large part of an RTT.
    pub fn reorders_widely(&self) -> bool {
        self.rule.reorders_widely()
    }

    /// Returns how many datagrams were sent between one that arrived and the latest before it, at most.
    pub fn behind(&self) -> u64 {
        self.rule.behind()
    }

    /// Notes a datagram that was sent, and returns its number. `asks` says whether it asks for an
    /// acknowledgement.
    pub fn push(&mut self, now: Time, bytes: u16, asks: bool, content: C) -> u64 {
        let number = self.next();
        let state = if asks { State::InFlight } else { State::Unasked };
        self.sent.push_back(Sent { at: now, bytes, state, content });
        if asks {
            self.in_flight += u64::from(bytes);
            self.in_flight_count += 1;
            self.asked_at = now;
        } else {
            self.forget(now, Time::ZERO);
        }
        number
    }

    /// Processes an ACK. Calls `on_fate` first for datagrams that arrived, then for those that are
    /// lost. `delay` is how long the peer held the ACK back.
    ///
    /// # Errors
    /// [`NeverSent`]; nothing has changed then.
    pub fn on_ack(
        &mut self,
        now: Time,
        ranges: &AckRanges,
        rtt: &mut Rtt,
        delay: Time,
        mut on_fate: impl FnMut(u64, Fate, C),
    ) -> Result<(), NeverSent> {
        if ranges.largest() >= self.next() {
            return Err(NeverSent);
        }
        let mut newest = None;
        let mut progress = false;
        for (first, last) in ranges.iter() {
            for number in first.max(self.base)..=last {
                let Some(sent) = self.sent.get_mut((number - self.base) as usize) else { break };
                let fate = match sent.state {
                    State::InFlight => Fate::Acknowledged,
                    State::Lost(_) => Fate::Late,
                    State::Acknowledged => continue,
                    State::Unasked => {
                        sent.state = State::Acknowledged;
                        self.rule.on_arrived(now, number, sent.at, false, rtt);
                        continue;
                    }
                };
                sent.state = State::Acknowledged;
                self.rule.on_arrived(now, number, sent.at, fate == Fate::Late, rtt);
                // The RTT of a late one is that of a path that reorders.
                if number == ranges.largest() && fate == Fate::Acknowledged {
                    newest = Some(sent.at);
                }
                let (bytes, content) = (sent.bytes, sent.content);
                if fate == Fate::Acknowledged {
                    self.land(bytes);
                }
                progress = true;
                on_fate(number, fate, content);
            }
        }
        self.rule.on_ack_end();
        self.acknowledged_end = self.acknowledged_end.max(ranges.largest() + 1);
        if let Some(at) = newest {
            rtt.update(now - at, delay);
        }
        if progress {
            self.timeouts = 0;
        }
        self.find_lost(now, rtt, &mut on_fate);
        self.forget(now, (self.rule.timeout(rtt) * 2).min(LATE_MAX));
        Ok(())
    }

    /// Processes the loss timer.
    pub fn on_loss_timer(&mut self, now: Time, rtt: &Rtt, mut on_fate: impl FnMut(u64, Fate, C)) {
        if self.loss_at <= now {
            self.find_lost(now, rtt, &mut on_fate);
        }
    }

    fn find_lost(&mut self, now: Time, rtt: &Rtt, on_fate: &mut impl FnMut(u64, Fate, C)) {
        self.loss_at = Time::MAX;
        let next = self.next();
        let mut settled = true;
        for number in self.in_flight_from.max(self.base)..self.acknowledged_end {
            let Some(sent) = self.sent.get_mut((number - self.base) as usize) else { break };
            if sent.state != State::InFlight {
                if settled {
                    self.in_flight_from = number + 1;
                }
                continue;
            }
            let lost_at = self.rule.lost_at(number, sent.at, rtt);
            if lost_at > now {
                // All later datagrams were sent later.
                self.loss_at = lost_at;
                break;
            }
            self.rule.on_lost(number, next, rtt);
            settled = false;
            sent.state = State::Lost(now);
            let (bytes, content) = (sent.bytes, sent.content);
            self.land(bytes);
            on_fate(number, Fate::Lost, content);
        }
    }

    fn land(&mut self, bytes: u16) {
        self.in_flight -= u64::from(bytes);
        self.in_flight_count -= 1;
    }

    /// Forgets settled datagrams from the front; a lost one may still arrive within `late`.
    fn forget(&mut self, now: Time, late: Time) {
        while let Some(first) = self.sent.front() {
            let is_settled = match first.state {
                State::Acknowledged | State::Unasked => true,
                State::Lost(since) => late > Time::ZERO && since + late <= now,
                State::InFlight => false,
            };
            if !is_settled {
                break;
            }
            self.sent.pop_front();
            self.base += 1;
        }
    }

    /// Returns the contents in flight.
    pub fn held(&self) -> impl Iterator<Item = C> {
        self.sent.iter().filter(|sent| sent.state == State::InFlight).map(|sent| sent.content)
    }

    /// Calls `on_fate` for everything in flight and forgets it, because the path is gone. The numbers
    /// continue, so that a later ACK of these is ignored.
    pub fn abandon(&mut self, mut on_fate: impl FnMut(C)) {
        self.base = self.next();
        for sent in self.sent.drain(..) {
            if sent.state == State::InFlight {
                on_fate(sent.content);
            }
        }
        (self.in_flight, self.in_flight_count, self.timeouts) = (0, 0, 0);
        self.loss_at = Time::MAX;
        self.rule = LossRule::default();
    }

    /// Returns when [`on_loss_timer`](Self::on_loss_timer) is due.
    pub fn loss_at(&self) -> Time {
        self.loss_at
    }

    /// Returns when a probe is due, after no acknowledgement for too long (RFC 9002, section 6.2).
    pub fn probe_at(&self, rtt: &Rtt, ack_delay: Time) -> Time {
        if self.in_flight_count == 0 {
            return Time::MAX;
        }
        let timeout = rtt.probe_timeout(ack_delay);
        let backed_off = timeout * (1 << self.timeouts.min(10));
        self.asked_at + backed_off.min(timeout.max(PROBE_INTERVAL_MAX))
    }

    /// Notes that a probe is sent.
    pub fn on_probe(&mut self) {
        self.timeouts += 1;
    }
}
