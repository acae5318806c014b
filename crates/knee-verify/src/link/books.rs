//! The packets of a link that are not settled.

use crate::parse::{Kind, Reason};
use crate::report::Rule;
use std::collections::VecDeque;

/// What a rule found wrong; the place is that of the packet's entry or drop
/// when it is known only later.
pub struct Finding {
    pub rule: Rule,
    pub text: String,
    /// Line and time of the row at fault; none: the row at hand.
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

/// A packet as it is offered to a link.
#[derive(Clone, Copy)]
pub struct Offered {
    pub line: u64,
    pub time: u64,
    pub bytes: u64,
    pub owner: (u64, Kind),
    pub ecn_capable: bool,
    pub marked: bool,
}

/// Row that drops a packet.
#[derive(Clone, Copy)]
pub struct Drop {
    pub line: u64,
    pub time: u64,
    pub reason: Reason,
}

/// Where the model has a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Offered,
    Waiting,
    /// Its departure, and the earliest arrival where packets overtake.
    Served {
        departure: u64,
        earliest: u64,
    },
    Gone,
}

/// A packet between its entry and the moment when all about it is known.
pub struct Offer {
    pub line: u64,
    pub time: u64,
    pub bytes: u64,
    pub owner: (u64, Kind),
    pub ecn_capable: bool,
    pub marked: bool,
    pub dropped: Option<Drop>,
    pub has_left: bool,
    /// Another overtook it where that is forbidden; that was reported.
    pub excused: bool,
    pub may_mark: bool,
    pub must_mark: bool,
    stage: Stage,
}

impl Offer {
    pub fn new(offered: Offered) -> Offer {
        let Offered { line, time, bytes, owner, ecn_capable, marked } = offered;
        Offer {
            line,
            time,
            bytes,
            owner,
            ecn_capable,
            marked,
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

    /// Departure and earliest arrival, once it is served.
    pub fn served(&self) -> Option<(u64, u64)> {
        match self.stage {
            Stage::Served { departure, earliest } => Some((departure, earliest)),
            _ => None,
        }
    }

    pub fn is_inside(&self) -> bool {
        self.dropped.is_none() && !self.has_left
    }

    /// It left or was dropped, for the model too.
    fn is_settled(&self) -> bool {
        match self.stage {
            Stage::Waiting => false,
            Stage::Gone => !self.is_inside(),
            Stage::Offered | Stage::Served { .. } => self.has_left,
        }
    }

    /// Dropped at this time for this reason.
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

    /// A packet that entered before `time` waits and was not dropped.
    pub fn any_stays(&self, time: u64) -> bool {
        let early = self.list.iter().take_while(|offer| offer.time < time);
        early.into_iter().any(|offer| {
            offer.is_inside() && matches!(offer.stage, Stage::Offered | Stage::Waiting)
        })
    }

    /// Drops the oldest packets as far as nothing more will be asked of them;
    /// those from `judged` on were not judged yet.
    pub fn forget(&mut self, judged: u64) {
        while self.first < judged && self.list.front().is_some_and(Offer::is_settled) {
            self.list.pop_front();
            self.first += 1;
        }
    }
}
