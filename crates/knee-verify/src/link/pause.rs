//! Back-pressure: what a link asks of those before it, and what it is asked by those behind it.

use super::Link;
use super::books::Finding;
use super::leave::at;
use crate::parse::Buffer;
use crate::report::Rule;
use std::collections::VecDeque;

/// What a link must ask, by the model of its queue, and what it asked by the log.
pub struct Asking {
    at: u64,
    until: u64,
    in_packets: bool,
    asks: bool,
    expected: VecDeque<(u64, bool)>,
    /// Line, time, and whether it asked to pause.
    logged: VecDeque<(u64, u64, bool)>,
}

impl Asking {
    pub fn new((at, until): (u64, u64), buffer: Buffer) -> Asking {
        Asking {
            at,
            until,
            in_packets: matches!(buffer, Buffer::Packets(_)),
            asks: false,
            expected: VecDeque::new(),
            logged: VecDeque::new(),
        }
    }

    fn note(&mut self, time: u64, bytes: u64, packets: u64) {
        let length = if self.in_packets { packets } else { bytes };
        if if self.asks { length <= self.until } else { length >= self.at } {
            self.asks = !self.asks;
            self.expected.push_back((time, self.asks));
        }
    }

    fn compare(&mut self, findings: &mut Vec<Finding>) {
        while let (Some(&(due, asks)), Some(&(line, time, pause))) =
            (self.expected.front(), self.logged.front())
        {
            if (due, asks) != (time, pause) {
                let text = format!(
                    "asked for a {} at {time} ns; its queue calls for a {} at {due} ns",
                    word(pause),
                    word(asks)
                );
                findings.push(Finding::new(Rule::Pause, text).at(line, time));
            }
            self.expected.pop_front();
            self.logged.pop_front();
        }
    }

    /// Reports what is left over at the end of the log.
    fn finish(&mut self, findings: &mut Vec<Finding>) {
        for (time, pause) in self.expected.drain(..) {
            let text = format!("did not ask for a {} at {time} ns", word(pause));
            findings.push(Finding::new(Rule::Pause, text));
        }
        for (line, time, pause) in self.logged.drain(..) {
            let text = format!("asked for a {} without a cause", word(pause));
            findings.push(Finding::new(Rule::Pause, text).at(line, time));
        }
    }
}

fn word(pause: bool) -> &'static str {
    if pause { "pause" } else { "resumption" }
}

/// Spans in which a link begins no transmission: after the first time and before the second, which
/// is [`u64::MAX`] as long as the end is unknown.
#[derive(Default)]
pub struct Pauses {
    spans: Vec<(u64, u64)>,
}

impl Pauses {
    /// Adds a request that arrives now, but not before the last one.
    fn ask(&mut self, arrival: u64, pause: bool) {
        let last = self.spans.last().map_or(
            0,
            |&(from, until)| {
                if until == u64::MAX { from } else { until }
            },
        );
        let arrival = arrival.max(last);
        match (pause, self.spans.last_mut()) {
            (true, _) => self.spans.push((arrival, u64::MAX)),
            (false, Some((_, until))) => *until = arrival,
            (false, None) => {}
        }
    }

    /// Returns the end of the span in which `time` lies.
    pub fn end(&self, time: u64) -> Option<u64> {
        let begun = self.spans.partition_point(|(from, _)| *from < time);
        let (_, until) = self.spans[..begun].last()?;
        (time < *until).then_some(*until)
    }

    /// Returns when the last span ended that is over at `time`; zero if there is none.
    pub fn resumed(&self, time: u64) -> u64 {
        let over = self.spans.partition_point(|(_, until)| *until <= time);
        self.spans[..over].last().map_or(0, |(_, until)| *until)
    }
}

impl Link {
    /// Processes a request that this link makes.
    pub fn asks(&mut self, line: u64, time: u64, pause: bool, findings: &mut Vec<Finding>) {
        match &mut self.asking {
            Some(asking) => {
                asking.logged.push_back((line, time, pause));
                asking.compare(findings);
            }
            None => {
                let text = format!("asked for a {}, which it never does", word(pause));
                findings.push(Finding::new(Rule::Pause, text));
            }
        }
    }

    /// Processes a request to this link: it takes the propagation delay.
    pub fn is_asked(&mut self, time: u64, pause: bool) {
        self.pauses.ask(time + at(&self.head.delay, time), pause);
    }

    /// Notes that the length of the queue has changed.
    pub(super) fn note_length(&mut self, time: u64, findings: &mut Vec<Finding>) {
        if let Some(asking) = &mut self.asking {
            asking.note(time, self.waiting_bytes, self.waiting_packets);
            asking.compare(findings);
        }
    }

    pub(super) fn finish_asking(&mut self, findings: &mut Vec<Finding>) {
        if let Some(asking) = &mut self.asking {
            asking.finish(findings);
        }
    }
}
