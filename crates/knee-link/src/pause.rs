//! Back-pressure, as Ethernet's flow control has it (IEEE 802.3, annex 31B; with priorities IEEE
//! 802.1Q, clause 36): a link whose queue fills asks the links before it to pause. A packet in
//! transmission there goes on; what has left arrives.

use crate::config::{Config, Pause, Steps};
use knee_units::Time;
use std::collections::VecDeque;

/// The side whose queue fills.
pub(crate) struct Asking {
    limits: Pause,
    in_packets: bool,
    asks: bool,
    requests: VecDeque<(Time, bool)>,
}

impl Asking {
    pub fn new(limits: Pause, in_packets: bool) -> Asking {
        Asking { limits, in_packets, asks: false, requests: VecDeque::new() }
    }

    /// Notes the queue's length; the packet in transmission does not count.
    pub fn note(&mut self, now: Time, bytes: u64, packets: u64) {
        let length = if self.in_packets { packets } else { bytes };
        let turns = match self.asks {
            false => length >= self.limits.at,
            true => length <= self.limits.until,
        };
        if turns {
            self.asks = !self.asks;
            self.requests.push_back((now, self.asks));
        }
    }

    pub fn has_request(&self) -> bool {
        !self.requests.is_empty()
    }

    pub fn take_request(&mut self) -> Option<(Time, bool)> {
        self.requests.pop_front()
    }
}

/// The side that is asked.
pub(crate) struct Pauses {
    /// Propagation delay, which a request takes as well.
    delay: Steps<Time>,
    /// Spans in which no transmission begins: after the first time and before the second, which is
    /// [`Time::MAX`] as long as the end is unknown. In order.
    spans: VecDeque<(Time, Time)>,
    /// End of the last span that is over.
    resumed: Time,
}

impl Pauses {
    pub fn new(config: &Config) -> Pauses {
        Pauses { delay: config.delay.base.clone(), spans: VecDeque::new(), resumed: Time::ZERO }
    }

    /// Takes a request made at `asked`. Returns when it arrives: no earlier than the one before.
    pub fn ask(&mut self, asked: Time, pause: bool) -> Time {
        let step = self.delay.0.partition_point(|(from, _)| *from <= asked).saturating_sub(1);
        let arrival = asked.saturating_add(self.delay.0[step].1);
        let last = self
            .spans
            .back()
            .map_or(self.resumed, |(from, until)| if *until == Time::MAX { *from } else { *until });
        let arrival = arrival.max(last);
        match (pause, self.spans.back_mut()) {
            (true, _) => self.spans.push_back((arrival, Time::MAX)),
            (false, Some((_, until))) => *until = arrival,
            (false, None) => {}
        }
        arrival
    }

    /// Returns when a transmission begins that could at `start`; `again` returns when one could that
    /// is ready at a time.
    pub fn start(&self, start: Time, again: impl Fn(Time) -> Time) -> Time {
        self.spans.iter().fold(start, |start, (from, until)| {
            match *from < start && start < *until {
                true if *until == Time::MAX => Time::MAX,
                true => again(*until),
                false => start,
            }
        })
    }

    /// Forgets the spans that are over, and returns the end of the last one.
    pub fn resumed(&mut self, now: Time) -> Time {
        while let Some((_, until)) = self.spans.front().filter(|(_, until)| *until <= now) {
            self.resumed = *until;
            self.spans.pop_front();
        }
        self.resumed
    }
}
