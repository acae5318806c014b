//! Which request on a connection the delivered bytes answer.

use std::collections::VecDeque;

/// The requests of one connection that are not fully answered, oldest first.
/// Answers come in the order of the requests, so bytes belong to the oldest
/// until it is full, however they are cut into deliveries.
#[derive(Default)]
pub(crate) struct Answers(VecDeque<Answer>);

struct Answer {
    object: usize,
    begun: bool,
    bytes_left: u64,
}

/// What a delivery brought of one object.
pub(crate) struct Part {
    pub object: usize,
    /// Its first byte is among it.
    pub first: bool,
    /// Its last byte is among it.
    pub last: bool,
}

impl Answers {
    /// A request for at least one byte.
    pub fn ask(&mut self, object: usize, bytes: u64) {
        self.0.push_back(Answer { object, begun: false, bytes_left: bytes });
    }

    pub fn is_idle(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes from the delivered bytes what belongs to the oldest request;
    /// none when nothing is left of them.
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
