//! Active queue management: who decides on entry, and who decides when a
//! packet leaves the queue.

mod codel;
mod discipline;
mod fq_codel;
mod pie;
mod red;

pub(crate) use discipline::{Discipline, Ledger};

use crate::config::{Aqm, RateModel};
use knee_units::{Ecn, Time};
use pie::PieState;
use rand_chacha::ChaCha8Rng;
use red::RedState;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// Congestion is signalled: mark the packet.
    Mark,
    /// Congestion is signalled: drop the packet.
    Drop,
}

impl Verdict {
    /// Signals by a mark where the packet and the settings allow it.
    fn signal(may_mark: bool) -> Verdict {
        if may_mark { Verdict::Mark } else { Verdict::Drop }
    }
}

/// The queue that a packet finds on entry.
pub(crate) struct Found {
    pub now: Time,
    /// Codepoint of the packet that asks.
    pub ecn: Ecn,
    /// Bytes waiting, the packet in transmission not counted.
    pub waiting_bytes: u64,
    /// Nothing waits and nothing is in transmission.
    pub idle: bool,
}

/// Decides about each packet when it enters.
pub(crate) enum EntryAqm {
    None,
    Red(RedState),
    Pie(PieState),
    Threshold(Time),
}

impl EntryAqm {
    pub fn new(aqm: &Aqm, rate: &RateModel) -> EntryAqm {
        if *rate == RateModel::Unlimited {
            return EntryAqm::None;
        }
        match aqm {
            Aqm::DropTail | Aqm::Codel(_) | Aqm::FqCodel(_) => EntryAqm::None,
            Aqm::Red(red) => EntryAqm::Red(RedState::new(*red, rate.clone())),
            Aqm::Pie(pie) => EntryAqm::Pie(PieState::new(*pie)),
            Aqm::Threshold(threshold) => EntryAqm::Threshold(threshold.delay),
        }
    }

    /// `start(t)` is when the service of a packet that entered at `t` would
    /// begin.
    pub fn decide(
        &mut self,
        found: &Found,
        start: impl Fn(Time) -> Time,
        rng: &mut ChaCha8Rng,
    ) -> Verdict {
        match self {
            EntryAqm::None => Verdict::Pass,
            EntryAqm::Red(red) => red.decide(found, rng),
            EntryAqm::Pie(pie) => {
                pie.update_until(found.now, |at| start(at).saturating_sub(at));
                pie.decide(found, rng)
            }
            EntryAqm::Threshold(delay) => {
                let sojourn = start(found.now).saturating_sub(found.now);
                let marks = found.ecn.is_capable() && sojourn > *delay;
                if marks { Verdict::Mark } else { Verdict::Pass }
            }
        }
    }

    /// The link has work until `end`.
    pub fn busy_until(&mut self, end: Time) {
        if let EntryAqm::Red(red) = self {
            red.busy_until(end);
        }
    }

    /// The link loses its work at `start`; it may have been idle before.
    pub fn cut_off(&mut self, start: Time) {
        if let EntryAqm::Red(red) = self {
            red.cut_off(start);
        }
    }
}
