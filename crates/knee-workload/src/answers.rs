//! Assigns delivered bytes to the requests of a connection.

use std::collections::VecDeque;

/// Requests of one connection that are not fully answered, oldest first. Answers come in the order
/// of the requests, so bytes belong to the oldest request until it is complete, however they are
/// split into deliveries.
#[derive(Default)]
pub(crate) struct Answers(VecDeque<Answer>);

struct Answer {
    object: usize,
    begun: bool,
    bytes_left: u64,
}

/// Part of a delivery that belongs to one object.
pub(crate) struct Part {
    pub object: usize,
    /// Whether it contains the first byte of the object.
    pub first: bool,
    /// Whether it contains the last byte of the object.
    pub last: bool,
}

impl Answers {
    /// Adds a request for at least one byte.
    pub fn ask(&mut self, object: usize, bytes: u64) {
        self.0.push_back(Answer { object, begun: false, bytes_left: bytes });
    }

    pub fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the part of the delivered bytes that belongs to the oldest request, or returns `None`
    /// if no bytes are left.
    pub fn take(&mut self, delivered: &mut u64) -> Option<Part> {
        if *delivered == 0 {
            return None;
        }
        let answer = self.0.front_mut();
        debug_assert!(answer.is_some(), "{delivered} bytes that nobody asked for");
        let answer = answer?;
        let taken = answer.bytes_left.min(*delivered);
        *delivered -= taken;
        answer.bytes_left -= taken;
        let first = !std::mem::replace(&mut answer.begun, true);
        let part = Part { object: answer.object, first, last: answer.bytes_left == 0 };
        if part.last {
            self.0.pop_front();
        }
        Some(part)
    }
}
