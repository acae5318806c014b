//! One direction of one hop as a state machine: loss, policer, queue, rate, delay.
pub fn placeholder() {}
