//! The data of a connection over several paths, in its own sequence space.

use crate::flow::Fault;
use crate::parse::{self, DataAck};
use crate::ranges::Ranges;
use crate::report::Rule;

/// The books of a connection.
pub struct Connection {
    /// What subflows delivered in their order.
    received: Ranges,
    delivered: u64,
    /// First byte that the shared window does not let through, as the sender
    /// knows it.
    window_end: u64,
}

impl Connection {
    pub fn new(head: &parse::Connection) -> Connection {
        Connection {
            received: Ranges::default(),
            delivered: 0,
            window_end: head.receive_window.unwrap_or(u64::MAX),
        }
    }

    /// A subflow sends data.
    pub fn send(&self, offset: u64, bytes: u64, faults: &mut Vec<Fault>) {
        let end = offset.saturating_add(bytes);
        if end > self.window_end {
            let text =
                format!("data up to {end} is sent, the shared window ends at {}", self.window_end);
            faults.push((Rule::Window, text));
        }
    }

    /// A subflow delivered data in its order.
    pub fn receive(&mut self, from: u64, until: u64) {
        self.received.add(from, until);
    }

    /// The connection handed data to its application.
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

    /// Before time moves on, nothing that is in order is held back.
    pub fn check_delivered(&mut self, faults: &mut Vec<Fault>) {
        let received = self.received.next();
        if self.delivered < received {
            let text = format!("data {}..{received} is in order and not delivered", self.delivered);
            faults.push((Rule::Delivery, text));
            self.delivered = received;
        }
    }

    /// An ACK says where the data stands.
    pub fn ack_send(&self, data: DataAck, faults: &mut Vec<Fault>) {
        if data.next != self.delivered {
            let text =
                format!("data {} is acknowledged, {} is delivered", data.next, self.delivered);
            faults.push((Rule::Acknowledgement, text));
        }
    }

    /// It reaches the sender.
    pub fn ack_receive(&mut self, data: DataAck) {
        let window = data.window.unwrap_or(u64::MAX);
        self.window_end = self.window_end.max(data.next.saturating_add(window));
    }

    /// All that was written is said to be acknowledged.
    pub fn complete(&self, bytes: u64, faults: &mut Vec<Fault>) {
        if self.delivered != bytes {
            let text =
                format!("complete with {bytes} bytes of data, delivered are {}", self.delivered);
            faults.push((Rule::Delivery, text));
        }
    }
}
