//! The data of a connection over several paths, in its own sequence space.

use crate::flow::Fault;
use crate::parse::{self, DataAck};
use crate::ranges::Ranges;
use crate::report::Rule;
use std::collections::BTreeMap;

/// State of a connection.
pub struct Connection {
    /// Data that subflows delivered in order.
    received: Ranges,
    delivered: u64,
    /// Whether all data was said to be acknowledged.
    is_complete: bool,
    /// End of the acknowledged data, as the sender knows it.
    acknowledged: u64,
    /// First byte and length of what one segment carried, unless it is acknowledged.
    pieces: BTreeMap<u64, u64>,
    /// End of the shared window, as the sender knows it.
    window_end: u64,
}

impl Connection {
    pub fn new(head: &parse::Connection) -> Connection {
        Connection {
            received: Ranges::default(),
            delivered: 0,
            is_complete: false,
            acknowledged: 0,
            pieces: BTreeMap::new(),
            window_end: head.receive_window.unwrap_or(u64::MAX),
        }
    }

    /// Checks data that a subflow sends, for the first time on this subflow if `is_new`.
    pub fn send(&mut self, offset: u64, bytes: u64, is_new: bool, faults: &mut Vec<Fault>) {
        if is_new {
            self.map(offset, bytes, faults);
        }
        let end = offset.saturating_add(bytes);
        if end > self.window_end {
            let text =
                format!("data up to {end} is sent, the shared window ends at {}", self.window_end);
            faults.push((Rule::Window, text));
        }
    }

    /// Checks that a segment carries data that no other did, or all that one did; and not what is
    /// acknowledged.
    fn map(&mut self, offset: u64, bytes: u64, faults: &mut Vec<Fault>) {
        let end = offset.saturating_add(bytes);
        let last = self.pieces.range(..end).next_back().map(|(at, bytes)| (*at, *bytes));
        let overlaps = last.is_some_and(|(at, bytes)| at + bytes > offset);
        if offset < self.acknowledged || (overlaps && last != Some((offset, bytes))) {
            let text = format!(
                "data {offset}..{end} is sent, of which another segment carried a part, or which \
                 is acknowledged"
            );
            faults.push((Rule::Mapping, text));
        }
        self.pieces.insert(offset, bytes);
    }

    /// Notes data that a subflow delivered in order.
    pub fn receive(&mut self, from: u64, until: u64) {
        self.received.add(from, until);
    }

    /// Checks data that the connection delivers to its application.
    pub fn deliver(&mut self, offset: u64, bytes: u64, faults: &mut Vec<Fault>) {
        let end = offset.saturating_add(bytes);
        if bytes == 0 || offset != self.delivered {
            let text =
                format!("{bytes} bytes of data from {offset}, the next is {}", self.delivered);
            faults.push((Rule::Delivery, text));
        } else if end > self.received.next() {
            let text = format!("data up to {end}, there is all below {}", self.received.next());
            faults.push((Rule::Delivery, text));
        }
        self.delivered = self.delivered.max(end.min(self.received.next()));
    }

    /// Checks, before time moves on, that no data in order is held back.
    pub fn check_delivered(&mut self, faults: &mut Vec<Fault>) {
        let received = self.received.next();
        if self.delivered < received {
            let text = format!("data {}..{received} is in order and not delivered", self.delivered);
            faults.push((Rule::Delivery, text));
            self.delivered = received;
        }
    }

    /// Checks the data acknowledgement of an ACK that is sent.
    pub fn ack_send(&self, data: DataAck, faults: &mut Vec<Fault>) {
        if data.next != self.delivered {
            let text =
                format!("data {} is acknowledged, {} is delivered", data.next, self.delivered);
            faults.push((Rule::Acknowledgement, text));
        }
    }

    /// Notes a data acknowledgement that reached the sender.
    pub fn ack_receive(&mut self, data: DataAck) {
        let window = data.window.unwrap_or(u64::MAX);
        self.window_end = self.window_end.max(data.next.saturating_add(window));
        self.acknowledged = self.acknowledged.max(data.next);
        while self.pieces.first_key_value().is_some_and(|(at, bytes)| at + bytes <= data.next) {
            self.pieces.pop_first();
        }
    }

    /// Checks the end of a connection whose data is said to be acknowledged.
    pub fn complete(&mut self, bytes: u64, faults: &mut Vec<Fault>) {
        self.is_complete = true;
        if self.delivered != bytes {
            let text =
                format!("complete with {bytes} bytes of data, delivered are {}", self.delivered);
            faults.push((Rule::Delivery, text));
        }
    }

    /// Checks a connection that ends.
    pub fn check_complete(&self, faults: &mut Vec<Fault>) {
        if !self.is_complete {
            faults.push((Rule::Completion, "it ends and is not complete".to_string()));
        }
    }
}
