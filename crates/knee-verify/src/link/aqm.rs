//! What each discipline allows, according to its RFC or paper alone.

use super::books::Owner;
use crate::parse::Aqm;
use std::collections::BTreeMap;

/// Bytes that CoDel leaves alone in a queue, one packet (RFC 8289, section 5.6, MAXPACKET).
const MAX_PACKET: u64 = 1500;
/// Tolerance, two decimal digits above the rounding error of a run.
const SLACK: f64 = 1e-9;

/// What the discipline may or must do to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub may_drop: bool,
    pub must_drop: bool,
    pub may_mark: bool,
    pub must_mark: bool,
}

/// A packet that enters the queue, and the state of the queue.
pub struct Found {
    pub time: u64,
    pub ecn_capable: bool,
    /// Bytes waiting, without the packet in transmission.
    pub waiting: u64,
    /// Whether nothing waits and nothing is in transmission.
    pub idle: bool,
    /// Packets of 1500 bytes that the link could have sent while it was idle.
    pub missed: u64,
}

/// A packet that is taken from the queue, to be sent or dropped.
pub struct Taken {
    pub time: u64,
    pub sojourn: u64,
    pub bytes: u64,
    /// Bytes waiting behind it.
    pub left: u64,
    pub ecn_capable: bool,
    pub owner: Owner,
}

/// State of a link's discipline.
pub enum Watch {
    DropTail,
    Codel {
        settings: Codel,
        above_since: Option<u64>,
        /// Size of the largest packet so far.
        largest: u64,
    },
    FqCodel {
        settings: Codel,
        first_above: Option<u64>,
        last_below: BTreeMap<Owner, u64>,
    },
    /// Whether anything has waited so far.
    DualPi2 {
        waited: bool,
    },
    Pie(Pie),
    Red(Red),
    Threshold(u64),
}

#[derive(Clone, Copy)]
pub struct Codel {
    target: u64,
    interval: u64,
    ecn: bool,
}

impl Watch {
    pub fn new(aqm: &Aqm) -> Watch {
        match *aqm {
            Aqm::DropTail => Watch::DropTail,
            Aqm::Codel { target, interval, ecn } => {
                let settings = Codel { target, interval, ecn };
                Watch::Codel { settings, above_since: None, largest: MAX_PACKET }
            }
            Aqm::DualPi2 => Watch::DualPi2 { waited: false },
            Aqm::FqCodel { target, interval, ecn } => Watch::FqCodel {
                settings: Codel { target, interval, ecn },
                first_above: None,
                last_below: BTreeMap::new(),
            },
            Aqm::Pie { target, update, burst, ecn } => {
                Watch::Pie(Pie::new(target, update, burst, ecn))
            }
            Aqm::Red { min, max, weight, ecn } => {
                Watch::Red(Red { min, max, weight, ecn, average: 0.0 })
            }
            Aqm::Threshold(delay) => Watch::Threshold(delay),
        }
    }

    /// Returns whether it decides when a packet leaves the queue, not when it enters.
    pub fn decides_late(&self) -> bool {
        matches!(self, Watch::Codel { .. } | Watch::FqCodel { .. } | Watch::DualPi2 { .. })
    }

    /// Processes a packet that enters the queue. `delay` returns the queueing delay of a packet
    /// that enters at a given time.
    pub fn on_enter(&mut self, found: &Found, delay: impl Fn(u64) -> u64) -> Verdict {
        match self {
            Watch::DropTail
            | Watch::Codel { .. }
            | Watch::FqCodel { .. }
            | Watch::DualPi2 { .. } => Verdict::default(),
            Watch::Pie(pie) => pie.on_enter(found, delay),
            Watch::Red(red) => red.on_enter(found),
            Watch::Threshold(limit) => {
                let mark = found.ecn_capable && delay(found.time) > *limit;
                Verdict { may_mark: mark, must_mark: mark, ..Verdict::default() }
            }
        }
    }

    /// Processes an outage that cut off packets which had waited and will not be taken.
    pub fn on_waiting_lost(&mut self) {
        if let Watch::DualPi2 { waited } = self {
            *waited = true;
        }
    }

    /// Processes a packet that is taken from the queue.
    pub fn on_taken(&mut self, taken: &Taken) -> Verdict {
        let (settings, standing) = match self {
            Watch::Codel { settings, above_since, largest } => {
                *largest = (*largest).max(taken.bytes);
                (*settings, stands(settings, above_since, *largest, taken))
            }
            Watch::FqCodel { settings, first_above, last_below } => {
                (*settings, stands_apart(settings, first_above, last_below, taken))
            }
            Watch::DualPi2 { waited } => {
                // RFC 9332, appendix A: without a queue the probability stays zero. Its later value
                // is not visible here.
                *waited |= taken.sojourn > 0 || taken.left > 0;
                let may_mark = *waited && taken.ecn_capable;
                return Verdict { may_drop: *waited, may_mark, ..Verdict::default() };
            }
            _ => return Verdict::default(),
        };
        let marks = settings.ecn && taken.ecn_capable;
        Verdict { may_drop: standing && !marks, may_mark: standing && marks, ..Verdict::default() }
    }
}

/// RFC 8289, section 5.6: for an interval, every packet waited for at least the target, and more
/// than the largest packet's worth stayed behind it.
fn stands(codel: &Codel, above_since: &mut Option<u64>, largest: u64, taken: &Taken) -> bool {
    if taken.sojourn < codel.target || taken.left <= largest {
        *above_since = None;
        return false;
    }
    let since = *above_since.get_or_insert(taken.time);
    taken.time - since >= codel.interval
}

/// The condition of [`stands`], as far as it can be judged without knowing which flows share a
/// queue: the packet waited for at least the target, for an interval no packet of its flow waited
/// less, and the link's first long wait is at least an interval ago.
fn stands_apart(
    codel: &Codel,
    first_above: &mut Option<u64>,
    last_below: &mut BTreeMap<Owner, u64>,
    taken: &Taken,
) -> bool {
    let over = |since: u64| taken.time - since >= codel.interval;
    if taken.sojourn < codel.target {
        const KEPT: usize = 1024;
        if last_below.len() > KEPT {
            last_below.retain(|_, at| !over(*at));
        }
        last_below.insert(taken.owner, taken.time);
        return false;
    }
    let first = *first_above.get_or_insert(taken.time);
    over(first) && last_below.get(&taken.owner).is_none_or(|at| over(*at))
}

/// RED (Floyd and Jacobson 1993) with the gentle ramp: never below the lower threshold of the
/// average queue, always beyond twice the upper one.
pub struct Red {
    min: f64,
    max: f64,
    weight: f64,
    ecn: bool,
    average: f64,
}

impl Red {
    fn on_enter(&mut self, found: &Found) -> Verdict {
        if found.idle {
            let missed = i32::try_from(found.missed).unwrap_or(i32::MAX);
            self.average *= (1.0 - self.weight).powi(missed);
        } else {
            self.average += self.weight * (found.waiting as f64 - self.average);
        }
        let signals = self.average > self.min * (1.0 - SLACK);
        let end = 2.0 * self.max;
        let marks = self.ecn && found.ecn_capable;
        Verdict {
            may_drop: signals && !(marks && self.average < end * (1.0 - SLACK)),
            must_drop: self.average > end * (1.0 + SLACK),
            may_mark: signals && marks && self.average < end * (1.0 + SLACK),
            must_mark: false,
        }
    }
}

/// PIE (RFC 8033): the probability follows the queueing delay. The random draws are unknown, but
/// not whether the probability was above zero.
pub struct Pie {
    target: u64,
    update: u64,
    burst: u64,
    ecn: bool,
    probability: f64,
    burst_left: u64,
    old_delay: u64,
    next_update: u64,
}

impl Pie {
    fn new(target: u64, update: u64, burst: u64, ecn: bool) -> Pie {
        Pie {
            target,
            update,
            burst,
            ecn,
            probability: 0.0,
            burst_left: burst,
            old_delay: 0,
            next_update: update,
        }
    }

    /// Section 4.1, and 5.1 for marks.
    fn on_enter(&mut self, found: &Found, delay: impl Fn(u64) -> u64) -> Verdict {
        self.catch_up(found.time, delay);
        let low = self.old_delay < self.target / 2 && self.probability < 0.2 - SLACK;
        let signals = self.burst_left == 0
            && self.probability > 0.0
            && !low
            && found.waiting > 2 * MAX_PACKET;
        let marks = self.ecn && found.ecn_capable;
        Verdict {
            may_drop: signals && !(marks && self.probability < 0.1 - SLACK),
            may_mark: signals && marks && self.probability < 0.1 + SLACK,
            ..Verdict::default()
        }
    }

    fn catch_up(&mut self, time: u64, delay: impl Fn(u64) -> u64) {
        while self.next_update <= time {
            let now = delay(self.next_update);
            let rests = self.probability == 0.0
                && (self.old_delay, now, self.burst_left) == (0, 0, self.burst);
            if rests {
                // Nothing changes until a packet enters.
                self.next_update += (time - self.next_update) / self.update * self.update;
            }
            self.step(now);
            self.next_update += self.update;
        }
    }

    /// Section 4.2. Times are in seconds there.
    fn step(&mut self, delay: u64) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        // The constants are for an update interval of 15 ms.
        let alpha = 0.125 * seconds(self.update) / 0.015;
        let beta = (1.25 + (0.125 - alpha) / 2.0).max(0.0);
        let error = seconds(delay) - seconds(self.target);
        let change = alpha * error + beta * (seconds(delay) - seconds(self.old_delay));
        let mut change = change * self.scale();
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        let decay = if delay == 0 && self.old_delay == 0 { 0.98 } else { 1.0 };
        self.probability = ((self.probability + change) * decay).clamp(0.0, 1.0);
        self.burst_left = self.burst_left.saturating_sub(self.update);
        let calm = delay < self.target / 2 && self.old_delay < self.target / 2;
        if self.probability == 0.0 && calm {
            self.burst_left = self.burst;
        }
        self.old_delay = delay;
    }

    /// The table of section 4.2.
    fn scale(&self) -> f64 {
        const TABLE: [(f64, f64); 6] = [
            (0.000_001, 2048.0),
            (0.000_01, 512.0),
            (0.000_1, 128.0),
            (0.001, 32.0),
            (0.01, 8.0),
            (0.1, 2.0),
        ];
        let row = TABLE.iter().find(|(below, _)| self.probability < *below);
        row.map_or(1.0, |(_, divisor)| 1.0 / divisor)
    }
}
