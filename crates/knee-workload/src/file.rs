//! One transfer of a given size.

use crate::{Action, Application, Properties};
use knee_units::Time;

pub(crate) fn properties(bytes: u64) -> Properties {
    Properties { pushes: true, single: true, transient: false, ends: true, bytes: Some(bytes) }
}

/// One connection that carries this many bytes and ends.
pub(crate) struct File {
    bytes: u64,
    step: Step,
    stopped: bool,
}

#[derive(PartialEq)]
enum Step {
    Start,
    Opened,
    Pushed,
    Closing,
    Delivered,
}

impl File {
    pub fn new(bytes: u64) -> File {
        File { bytes, step: Step::Start, stopped: false }
    }
}

impl Application for File {
    fn poll(&mut self, _now: Time) -> Option<Action> {
        let connection = 0;
        let (next, action) = match self.step {
            Step::Start if !self.stopped => (Step::Opened, Action::Open { connection }),
            Step::Opened => (Step::Pushed, Action::Push { connection, bytes: self.bytes }),
            Step::Pushed => (Step::Closing, Action::Close { connection }),
            _ => return None,
        };
        self.step = next;
        Some(action)
    }

    fn timer(&self) -> Time {
        Time::MAX
    }

    fn on_delivered(&mut self, _now: Time, _connection: u32, _bytes: u64) {}

    fn on_closed(&mut self, _now: Time, _connection: u32) {
        self.step = Step::Delivered;
    }

    fn stop(&mut self, _now: Time) {
        self.stopped = true;
    }

    fn wants_deliveries(&self) -> bool {
        false
    }

    fn is_complete(&self) -> bool {
        self.step == Step::Delivered || (self.stopped && self.step == Step::Start)
    }
}
