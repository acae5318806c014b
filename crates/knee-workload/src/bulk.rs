//! A sender that always has data.

use crate::{Action, Application, Properties};
use knee_units::Time;

pub(crate) const PROPERTIES: Properties =
    Properties { pushes: true, single: true, transient: false, ends: false, bytes: None };

/// One connection whose sending end never runs out of data.
#[derive(Default)]
pub(crate) struct Bulk {
    step: Step,
    stopped: bool,
}

#[derive(Default, PartialEq)]
enum Step {
    #[default]
    Start,
    Opened,
    Sending,
    Closed,
}

impl Application for Bulk {
    fn poll(&mut self, _now: Time) -> Option<Action> {
        let connection = 0;
        let (next, action) = match self.step {
            Step::Start if !self.stopped => (Step::Opened, Action::Open { connection }),
            Step::Opened => (Step::Sending, Action::Push { connection, bytes: u64::MAX }),
            Step::Sending if self.stopped => (Step::Closed, Action::Close { connection }),
            _ => return None,
        };
        self.step = next;
        Some(action)
    }

    fn timer(&self) -> Time {
        Time::MAX
    }

    fn on_delivered(&mut self, _now: Time, _connection: u32, _bytes: u64) {}

    fn stop(&mut self, _now: Time) {
        self.stopped = true;
    }

    fn wants_deliveries(&self) -> bool {
        false
    }

    /// An endless push has no last byte, so it is complete when stopped.
    fn is_complete(&self) -> bool {
        self.stopped
    }
}
