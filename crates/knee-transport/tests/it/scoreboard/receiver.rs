//! A receiver as naive as the scoreboard: it keeps arrived segments in a set.

use super::naive::{Acknowledgement, Micros};
use std::collections::BTreeMap;

/// Acknowledges every segment at once.
#[derive(Debug, Default)]
pub struct Receiver {
    pub next: u32,
    /// Segments above `next`, with the arrival number of the latest arrival of each.
    held: BTreeMap<u32, u64>,
    arrivals: u64,
    recent_timestamp: Micros,
}

impl Receiver {
    pub fn on_segment(&mut self, number: u32, timestamp: Micros) -> Acknowledgement {
        self.arrivals += 1;
        // RFC 7323, section 4.3.
        if number <= self.next {
            self.recent_timestamp = self.recent_timestamp.max(timestamp);
        }
        let duplicate = number < self.next || self.held.contains_key(&number);
        if number >= self.next {
            self.held.insert(number, self.arrivals);
        }
        while self.held.remove(&self.next).is_some() {
            self.next += 1;
        }
        let mut blocks = self.blocks();
        blocks.truncate(if duplicate { 2 } else { 3 });
        Acknowledgement {
            number: self.next,
            blocks,
            duplicate: duplicate.then_some(number),
            echo: self.recent_timestamp,
        }
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
