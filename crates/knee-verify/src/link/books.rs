//! Packets of a link that are not settled.

use crate::parse::{Kind, Reason};
use crate::report::Rule;
use std::collections::VecDeque;

/// A violation; its place is that of the packet's entry or drop if it is found only later.
pub struct Finding {
    pub rule: Rule,
    pub text: String,
    /// Line and time of the row at fault, or `None` for the current row.
    pub place: Option<(u64, u64)>,
}

impl Finding {
    pub fn new(rule: Rule, text: String) -> Finding {
        Finding { rule, text, place: None }
    }

    pub fn drop(text: &str) -> Finding {
        Finding::new(Rule::Drop, text.to_string())
    }

    pub fn at(self, line: u64, time: u64) -> Finding {
        Finding { place: Some((line, time)), ..self }
    }
}

/// A packet that is offered to a link.
#[derive(Clone, Copy)]
pub struct Offered {
    pub line: u64,
    pub time: u64,
    pub bytes: u64,
    pub owner: (u64, Kind),
    /// The tunnel that carries it.
    pub tunnel: Option<u64>,
    pub ecn_capable: bool,
    pub marked: bool,
}

/// Whose a packet is to a queue that separates flows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Flow(u64, Kind),
    Tunnel(u64, Kind),
}

/// The row that drops a packet.
#[derive(Clone, Copy)]
pub struct Drop {
    pub line: u64,
    pub time: u64,
    pub reason: Reason,
}

/// State of a packet in the model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Offered,
    Waiting,
    /// Served: its departure, and its earliest arrival where packets may overtake.
    Served {
        departure: u64,
        earliest: u64,
    },
    Gone,
}

/// A packet between its entry and the time when everything about it is known.
pub struct Offer {
    pub line: u64,
    pub time: u64,
    pub bytes: u64,
    /// The end of a connection that sent it, and what it is.
    pub sender: (u64, Kind),
    /// To whom it belongs for the queue.
    pub owner: Owner,
    pub ecn_capable: bool,
    pub marked: bool,
    /// The circuit breaker has tripped.
    pub is_shut_out: bool,
    pub dropped: Option<Drop>,
    pub has_left: bool,
    /// Whether another packet overtook it where that is not allowed; it is already reported.
    pub excused: bool,
    pub may_mark: bool,
    pub must_mark: bool,
    stage: Stage,
}

impl Offer {
    pub fn new(offered: Offered) -> Offer {
        let Offered { line, time, bytes, owner: sender, ecn_capable, marked, .. } = offered;
        Offer {
            line,
            time,
            bytes,
            sender,
            owner: Owner::Flow(sender.0, sender.1),
            ecn_capable,
            marked,
            is_shut_out: false,
            dropped: None,
            has_left: false,
            excused: false,
            may_mark: false,
            must_mark: false,
            stage: Stage::Offered,
        }
    }

    pub fn waits(&self) -> bool {
        self.stage == Stage::Waiting
    }

    /// Returns departure and earliest arrival, once it is served.
    pub fn served(&self) -> Option<(u64, u64)> {
        match self.stage {
            Stage::Served { departure, earliest } => Some((departure, earliest)),
            _ => None,
        }
    }

    pub fn is_inside(&self) -> bool {
        self.dropped.is_none() && !self.has_left
    }

    /// Returns whether it left or was dropped, in the model too.
    fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Waiting => false,
            Stage::Gone => !self.is_inside(),
            Stage::Offered | Stage::Served { .. } => self.has_left,
        }
    }

    /// Returns whether it was dropped at this time for this reason.
    pub fn was_dropped(&self, time: u64, reason: Reason) -> bool {
        self.dropped.is_some_and(|drop| drop.time == time && drop.reason == reason)
    }

    pub fn wait(&mut self) {
        self.stage = Stage::Waiting;
    }

    pub fn serve(&mut self, departure: u64, earliest: u64) {
        self.stage = Stage::Served { departure, earliest };
    }

    pub fn go(&mut self) {
        self.stage = Stage::Gone;
    }
}

/// Packets by their number at the link.
#[derive(Default)]
pub struct Offers {
    list: VecDeque<Offer>,
    first: u64,
}

impl Offers {
    pub fn push(&mut self, offer: Offer) -> u64 {
        self.list.push_back(offer);
        self.end() - 1
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn end(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    pub fn get(&self, name: u64) -> &Offer {
        &self.list[(name - self.first) as usize]
    }

    pub fn get_mut(&mut self, name: u64) -> &mut Offer {
        &mut self.list[(name - self.first) as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Offer> {
        self.list.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Offer> {
        self.list.iter_mut()
    }

    /// Returns whether a packet that entered before `time` waits and was not dropped.
    pub fn any_stays(&self, time: u64) -> bool {
        let early = self.list.iter().take_while(|offer| offer.time < time);
        early.into_iter().any(|offer| {
            offer.is_inside() && matches!(offer.stage, Stage::Offered | Stage::Waiting)
        })
    }

    /// Forgets the oldest packets that are no longer needed; those from `judged` on have not been
    /// judged yet.
    pub fn forget(&mut self, judged: u64) {
        while self.first < judged && self.list.front().is_some_and(Offer::is_settled) {
            self.list.pop_front();
            self.first += 1;
        }
    }
}
