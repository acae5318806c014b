//! CoDel, RFC 8289: drops from the head while packets have waited longer than
//! `target` for at least an `interval`, at intervals that shrink with the
//! square root of the number of drops.

use super::discipline::{Held, Ledger, Queue, Waiting, is_within};
use super::registry::{AqmEntry, Build, Marks, Place, time};
use super::{Aqm, Settings};
use crate::Packet;
use crate::config::{Buffer, RateModel};
use knee_units::Time;
use knee_units::registry::Parameter;
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "codel",
    summary: "RFC 8289: drops from the head while the delay stays above a target.",
    source: "RFC 8289",
    parameters: &[TARGET, INTERVAL],
    presets: &[],
    build: Build {
        marks: Marks::WhereAsked,
        make: |settings, place| Ok(Aqm::Codel(Codel::of(settings, place))),
    },
};

pub(super) const TARGET: Parameter = time("target", "5 ms", "acceptable standing delay");
pub(super) const INTERVAL: Parameter =
    time("interval", "100 ms", "time in which the target must be reached");

/// CoDel (RFC 8289).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codel {
    /// Acceptable standing delay, 5 ms.
    pub target: Time,
    /// Time within which it must be reached, 100 ms.
    pub interval: Time,
    /// Whether to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Codel {
    pub(super) fn of(settings: &knee_units::registry::Settings, place: &Place) -> Codel {
        Codel {
            target: settings.time("target"),
            interval: settings.time("interval"),
            ecn: place.ecn,
        }
    }

    /// Returns the packet log's description of a CoDel with this name.
    pub(super) fn log_as(&self, name: &str) -> String {
        let (target, interval) = (self.target.as_nanos(), self.interval.as_nanos());
        let ecn = u8::from(self.ecn);
        format!(",aqm={name},target_ns={target},interval_ns={interval},ecn={ecn}")
    }
}

impl Settings for Codel {
    fn log(&self) -> String {
        self.log_as("codel")
    }
}

/// A queue with a single CoDel.
pub(crate) struct CodelQueue<P> {
    settings: Codel,
    state: CodelState,
    queue: Waiting<P>,
}

impl<P: Packet> Queue<P> for CodelQueue<P> {
    type Settings = Codel;

    fn new(settings: &Codel, _: &RateModel, _: impl FnOnce() -> ChaCha8Rng) -> CodelQueue<P> {
        CodelQueue { settings: *settings, state: CodelState::default(), queue: Waiting::default() }
    }

    fn enqueue(&mut self, held: Held<P>, buffer: Buffer, _: &mut Ledger<'_, P>) -> Result<(), P> {
        let size = u64::from(held.packet.size());
        if !is_within(buffer, self.queue.bytes() + size, self.queue.packets() + 1) {
            return Err(held.packet);
        }
        self.queue.push(held);
        Ok(())
    }

    fn dequeue(&mut self, ledger: &mut Ledger<'_, P>) -> Option<Held<P>> {
        self.state.dequeue(&self.settings, &mut self.queue, ledger)
    }

    fn remove(&mut self) -> Option<P> {
        self.queue.pop().map(|held| held.packet)
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }
}

/// A queue of up to this many bytes does not count as standing (the RFC's MAXPACKET), or of
/// the largest packet so far, if that is larger.
const MAX_PACKET: u32 = 1500;

/// State of one CoDel; names as in section 5 of the RFC.
#[derive(Default)]
pub(crate) struct CodelState {
    /// When the sojourn time will have been above target for an interval.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Drops (or marks) since dropping began.
    count: u32,
    /// `count` when dropping began the last time.
    last_count: u32,
    /// Bytes of the largest packet so far.
    largest: u32,
}

impl CodelState {
    /// Section 5.5, `dequeue`. A packet that may be marked is marked instead of
    /// being dropped.
    pub fn dequeue<P: Packet>(
        &mut self,
        settings: &Codel,
        queue: &mut Waiting<P>,
        ledger: &mut Ledger<P>,
    ) -> Option<Held<P>> {
        let now = ledger.now;
        let (mut head, mut above) = self.take(settings, queue, now);
        if self.dropping {
            self.dropping = above;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if ledger.signal(&mut head, settings.ecn) {
                    self.drop_next = control_law(self.drop_next, settings.interval, self.count);
                    break;
                }
                (head, above) = self.take(settings, queue, now);
                self.dropping = above;
                if above {
                    self.drop_next = control_law(self.drop_next, settings.interval, self.count);
                }
            }
        } else if above {
            if !ledger.signal(&mut head, settings.ecn) {
                (head, _) = self.take(settings, queue, now);
            }
            self.begin_dropping(settings, now);
        }
        head
    }

    /// Section 5.5: resumes near the last drop rate if dropping ended recently.
    fn begin_dropping(&mut self, settings: &Codel, now: Time) {
        self.dropping = true;
        let before = self.count - self.last_count;
        let recent = now.saturating_sub(self.drop_next) < settings.interval * 16;
        self.count = if before > 1 && recent { before } else { 1 };
        self.last_count = self.count;
        self.drop_next = control_law(now, settings.interval, self.count);
    }

    /// Section 5.6, `dodequeue`: the next packet, and whether the sojourn time
    /// has been above target for an interval.
    fn take<P: Packet>(
        &mut self,
        settings: &Codel,
        queue: &mut Waiting<P>,
        now: Time,
    ) -> (Option<Held<P>>, bool) {
        let head = queue.pop();
        let size = head.as_ref().map_or(0, |held| held.packet.size());
        self.largest = self.largest.max(size);
        let standing = queue.bytes() > u64::from(self.largest.max(MAX_PACKET));
        let sojourn = head.as_ref().map_or(Time::ZERO, |held| now.saturating_sub(held.entered));
        if sojourn < settings.target || !standing {
            self.first_above = None;
            return (head, false);
        }
        let first_above = *self.first_above.get_or_insert(now + settings.interval);
        (head, now >= first_above)
    }
}

/// Section 5.4: the next drop comes interval / sqrt(count) after the last.
fn control_law(last: Time, interval: Time, count: u32) -> Time {
    last + interval.scale(1.0 / f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;
    use knee_units::Ecn;
    use std::collections::VecDeque;

    /// Whether it may be marked, whether it was, and its size.
    struct Bytes(bool, bool, u32);
    impl Packet for Bytes {
        fn size(&self) -> u32 {
            self.2
        }
        fn ecn(&self) -> Ecn {
            if self.0 { Ecn::Ect1 } else { Ecn::NotCapable }
        }
        fn mark(&mut self) {
            self.1 = true;
        }
        fn clear_ecn(&mut self) {
            self.1 = false;
        }
        fn flow_hash(&self) -> u64 {
            0
        }
    }

    const CODEL: Codel =
        Codel { target: Time::from_millis(5), interval: Time::from_millis(100), ecn: true };

    /// Returns the times of signals from 1 s on, if a queue is emptied by one
    /// packet per millisecond and each has waited for `delay(ms since 1 s)`.
    fn signals(delay: impl Fn(u64) -> Time, ecn_capable: bool, seconds: u64) -> Vec<Time> {
        signals_of((10, 1500), delay, ecn_capable, seconds)
    }

    /// Does the same for a queue of `waiting` packets of `size` bytes.
    fn signals_of(
        (waiting, size): (u32, u32),
        delay: impl Fn(u64) -> Time,
        ecn_capable: bool,
        seconds: u64,
    ) -> Vec<Time> {
        let mut codel = CodelState::default();
        let (mut dropped, mut counters) = (VecDeque::new(), Counters::default());
        let mut times = Vec::new();
        for ms in 0..seconds * 1000 {
            let now = Time::from_secs(1) + Time::from_millis(ms);
            let mut queue = Waiting::default();
            for _ in 0..waiting {
                let packet = Bytes(ecn_capable, false, size);
                queue.push(Held { entered: now.saturating_sub(delay(ms)), packet });
            }
            let mut ledger = Ledger { now, dropped: &mut dropped, counters: &mut counters };
            let packet = codel.dequeue(&CODEL, &mut queue, &mut ledger).expect("some wait").packet;
            times.extend(packet.1.then_some(now));
            times.extend(dropped.drain(..).map(|(at, _, _)| at));
        }
        times
    }

    /// The n-th drop occurs at the start of dropping plus the sum of interval /
    /// sqrt(k) (section 5.4), observed to the millisecond.
    #[test]
    fn drops_follow_the_control_law() {
        for ecn_capable in [false, true] {
            let times = signals(|_| Time::from_millis(20), ecn_capable, 3);
            let mut ideal = 1100.0;
            assert_eq!(times[0], Time::from_millis(1100), "one interval after the first sight");
            for (k, time) in times.iter().enumerate() {
                let late = time.as_millis_f64() - ideal;
                assert!((0.0..=1.0).contains(&late), "drop {k} at {time:?}, due at {ideal} ms");
                ideal += 100.0 / ((k + 1) as f64).sqrt();
            }
            // The sum of 1/sqrt(k) up to n is about 2 sqrt(n) - 1.46; 29
            // intervals remain, so n = (30.46 / 2)^2 = 232.
            assert!((231..=233).contains(&times.len()), "{} drops", times.len());
        }
    }

    /// Section 5.6: a queue of no more than the largest packet does not stand, of whatever size.
    #[test]
    fn a_single_packet_is_left_alone() {
        let late = |_| Time::from_millis(20);
        for size in [500, 1500, 9000] {
            let alone = if size == 500 { 4 } else { 2 };
            assert!(signals_of((alone, size), late, false, 3).is_empty(), "{size} bytes");
            assert!(!signals_of((alone + 1, size), late, false, 3).is_empty(), "{size} bytes");
        }
    }

    #[test]
    fn a_delay_below_target_is_left_alone() {
        assert!(signals(|_| Time::from_micros(4_999), false, 3).is_empty());
    }

    /// Section 5.5: after a pause of less than 16 intervals dropping continues
    /// at its earlier pace, after a longer one it starts over.
    #[test]
    fn a_short_pause_is_remembered() {
        let gap_after_pause = |pause_ms| {
            let pause = 3_000..3_000 + pause_ms;
            let delay = |ms| Time::from_millis(if pause.contains(&ms) { 1 } else { 20 });
            let times = signals(delay, false, 8);
            let end = Time::from_secs(4) + Time::from_millis(pause_ms);
            let after: Vec<_> = times.into_iter().filter(|at| *at >= end).collect();
            assert_eq!(after[0], end + Time::from_millis(100));
            (after[1] - after[0]).as_millis_f64()
        };
        // 232 drops in the first phase (see above), 231 since its first:
        // 100 ms / sqrt(231) = 6.6 ms.
        assert_eq!(gap_after_pause(50), 7.0);
        assert_eq!(gap_after_pause(1_700), 100.0);
    }
}
