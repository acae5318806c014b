//! Requests with pauses in between, over one connection that stays open: what a chat, an API client
//! or a person turning pages does to a controller that has to restart each time.

use crate::answers::Answers;
use crate::{Action, Application, BURST, Object, Properties};
use knee_units::Time;

pub(crate) fn properties(bursts: &Bursts) -> Properties {
    let bytes = bursts.count.map(|count| count.saturating_mul(bursts.size_bytes));
    Properties { pushes: false, single: false, transient: false, ends: bytes.is_some(), bytes }
}

/// Requests with pauses in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Size of each answer, bytes.
    pub size_bytes: u64,
    /// Time from the last byte of an answer to the next request.
    pub pause: Time,
    /// Number of bursts; `None` continues until the application is stopped.
    pub count: Option<u64>,
}

/// All bursts use one connection.
const CONNECTION: u32 = 0;

pub(crate) struct Requests {
    bursts: Bursts,
    answers: Answers,
    objects: Vec<Object>,
    /// When the next request is due.
    next: Time,
    opened: bool,
    closed: bool,
    stopped: bool,
}

impl Requests {
    pub fn new(bursts: Bursts) -> Requests {
        Requests {
            bursts,
            answers: Answers::default(),
            objects: Vec::new(),
            next: Time::ZERO,
            opened: false,
            closed: false,
            stopped: false,
        }
    }

    fn all_is_asked_for(&self) -> bool {
        let asked = self.objects.len() as u64;
        self.stopped || asked >= self.bursts.count.unwrap_or(u64::MAX)
    }

    fn ask(&mut self, now: Time) -> Action {
        let (number, bytes) = (self.objects.len(), self.bursts.size_bytes);
        self.answers.ask(number, bytes);
        self.objects.push(Object {
            number: number as u32,
            name: format!("{BURST}{number}"),
            connection: CONNECTION,
            bytes,
            requested: now,
            ..Object::default()
        });
        Action::Request { connection: CONNECTION, bytes }
    }
}

impl Application for Requests {
    fn poll(&mut self, now: Time) -> Option<Action> {
        if self.all_is_asked_for() {
            let closes = self.opened && !self.closed;
            self.closed = true;
            return closes.then_some(Action::Close { connection: CONNECTION });
        }
        if !self.opened {
            self.opened = true;
            return Some(Action::Open { connection: CONNECTION });
        }
        (self.answers.is_idle() && now >= self.next).then(|| self.ask(now))
    }

    fn timer(&self) -> Time {
        let waits = self.answers.is_idle() && !self.all_is_asked_for();
        if waits { self.next } else { Time::MAX }
    }

    fn on_delivered(&mut self, now: Time, _connection: u32, bytes: u64) {
        let mut left = bytes;
        while let Some(part) = self.answers.take(&mut left) {
            let object = &mut self.objects[part.object];
            if part.first {
                object.first_byte = Some(now);
            }
            if part.last {
                object.completed = Some(now);
                self.next = now.saturating_add(self.bursts.pause);
            }
        }
    }

    fn stop(&mut self, _now: Time) {
        self.stopped = true;
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    fn is_complete(&self) -> bool {
        self.all_is_asked_for() && self.answers.is_idle()
    }

    fn objects(&self) -> &[Object] {
        &self.objects
    }
}
