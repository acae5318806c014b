//! A receiver as naive as the scoreboard: it keeps arrived segments in a set.

use super::naive::Acknowledgement;
use std::collections::BTreeMap;

/// Acknowledges every n-th segment in order, and every other one at once.
#[derive(Debug, Default)]
pub struct Receiver {
    pub next: u32,
    /// ACKs so far.
    pub acks: u64,
    every: u32,
    pending: u32,
    duplicate: Option<u32>,
    /// Segments above `next`, with the arrival number of the latest arrival of each.
    held: BTreeMap<u32, u64>,
    arrivals: u64,
    acknowledged: u32,
    recent_timestamp: u64,
}

impl Receiver {
    pub fn new(every: u32) -> Receiver {
        Receiver { every, ..Receiver::default() }
    }

    /// Returns whether an ACK is due at once (RFC 5681, section 4.2).
    pub fn on_segment(&mut self, number: u32, timestamp: u64) -> bool {
        self.arrivals += 1;
        // RFC 7323, section 4.3.
        if number <= self.acknowledged {
            self.recent_timestamp = self.recent_timestamp.max(timestamp);
        }
        let in_order = number == self.next && self.held.is_empty();
        if number < self.next || self.held.contains_key(&number) {
            self.duplicate = Some(number);
        }
        if number >= self.next {
            self.held.insert(number, self.arrivals);
        }
        while self.held.remove(&self.next).is_some() {
            self.next += 1;
        }
        self.pending += 1;
        !in_order || self.pending >= self.every
    }

    pub fn make_ack(&mut self) -> Acknowledgement {
        self.acks += 1;
        self.pending = 0;
        self.acknowledged = self.next;
        let duplicate = self.duplicate.take();
        let mut blocks = self.blocks();
        blocks.truncate(if duplicate.is_some() { 2 } else { 3 });
        Acknowledgement { number: self.next, blocks, duplicate, echo: self.recent_timestamp }
    }

    /// Returns runs of held segments, the one with the latest arrival first (RFC 2018).
    fn blocks(&self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u64, u32, u32)> = Vec::new();
        for (&number, &arrival) in &self.held {
            match runs.last_mut() {
                Some((latest, _, to)) if *to == number => {
                    (*latest, *to) = ((*latest).max(arrival), number + 1);
                }
                _ => runs.push((arrival, number, number + 1)),
            }
        }
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs.into_iter().map(|(_, from, to)| (from, to)).collect()
    }
}
