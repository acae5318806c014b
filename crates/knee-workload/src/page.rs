//! A web page: objects over connections kept open, some discovered only after others have arrived.
//!
//! Not modelled: computation between an arrival and the requests that follow from it, priorities of
//! objects, and connections opened in advance.

use crate::answers::Answers;
use crate::{Action, Application, Object, Properties};
use knee_units::Time;
use std::collections::VecDeque;

pub(crate) const PROPERTIES: Properties =
    Properties { pushes: false, single: false, transient: false, ends: true, bytes: None };

/// A web page: objects that depend on others.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The objects; those without dependencies are requested at once.
    pub objects: Vec<PageObject>,
    /// Protocol by which they are fetched.
    pub http: Http,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageObject {
    /// Name of the object.
    pub name: String,
    /// Size including headers.
    pub bytes: u64,
    /// Indexes of the objects that must have arrived before it is discovered.
    pub after: Vec<usize>,
}

/// How the objects of a page are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// One request at a time on each of up to this many connections kept open (browsers: 6).
    Version1 {
        /// Maximum number of connections.
        connections: u32,
    },
    /// All requests at once on one connection, answered in the order of the requests.
    Multiplexed,
}

pub(crate) struct WebPage {
    page: Page,
    /// For each object, the number of objects that it still waits for.
    missing: Vec<usize>,
    /// For each object, the objects that wait for it.
    dependants: Vec<Vec<usize>>,
    /// Objects that are discovered and not requested, in order of discovery.
    known: VecDeque<usize>,
    connections: Vec<Answers>,
    connections_closed: u32,
    /// Objects requested so far, by number.
    objects: Vec<Object>,
    stopped: bool,
}

impl WebPage {
    pub fn new(page: Page) -> WebPage {
        let mut dependants = vec![Vec::new(); page.objects.len()];
        for (number, object) in page.objects.iter().enumerate() {
            for &needed in &object.after {
                dependants[needed].push(number);
            }
        }
        let missing: Vec<usize> = page.objects.iter().map(|object| object.after.len()).collect();
        let known = (0..missing.len()).filter(|&number| missing[number] == 0).collect();
        WebPage {
            page,
            missing,
            dependants,
            known,
            connections: Vec::new(),
            connections_closed: 0,
            objects: Vec::new(),
            stopped: false,
        }
    }

    fn all_is_asked_for(&self) -> bool {
        self.stopped || self.objects.len() == self.page.objects.len()
    }

    /// Returns a connection that can take a request: over HTTP/1.1 one without a pending request
    /// (no browser pipelines), otherwise the only one.
    fn ready(&self) -> Option<usize> {
        match self.page.http {
            Http::Version1 { .. } => self.connections.iter().position(Answers::is_idle),
            Http::Multiplexed => (!self.connections.is_empty()).then_some(0),
        }
    }

    fn open(&mut self) -> Option<Action> {
        let most = match self.page.http {
            Http::Version1 { connections } => connections.max(1) as usize,
            Http::Multiplexed => 1,
        };
        let connection = self.connections.len();
        (connection < most).then(|| {
            self.connections.push(Answers::default());
            Action::Open { connection: connection as u32 }
        })
    }

    fn request(&mut self, now: Time, number: usize, connection: usize) -> Action {
        let object = &self.page.objects[number];
        // An answer without a body still has a header.
        let bytes = object.bytes.max(1);
        self.connections[connection].ask(number, bytes);
        let connection = connection as u32;
        let asked = Object {
            number: number as u32,
            name: object.name.clone(),
            connection,
            bytes,
            requested: now,
            ..Object::default()
        };
        let place = self.objects.partition_point(|other| other.number < asked.number);
        self.objects.insert(place, asked);
        Action::Request { connection, bytes }
    }

    fn close(&mut self) -> Option<Action> {
        let connection = self.connections_closed;
        ((connection as usize) < self.connections.len()).then(|| {
            self.connections_closed += 1;
            Action::Close { connection }
        })
    }

    fn asked(&mut self, number: usize) -> &mut Object {
        let place = self.objects.partition_point(|object| (object.number as usize) < number);
        &mut self.objects[place]
    }

    fn arrived(&mut self, number: usize) {
        for &dependant in &self.dependants[number] {
            self.missing[dependant] -= 1;
            if self.missing[dependant] == 0 {
                self.known.push_back(dependant);
            }
        }
    }
}

impl Application for WebPage {
    fn poll(&mut self, now: Time) -> Option<Action> {
        if self.all_is_asked_for() {
            return self.close();
        }
        let number = *self.known.front()?;
        let Some(connection) = self.ready() else { return self.open() };
        self.known.pop_front();
        Some(self.request(now, number, connection))
    }

    fn timer(&self) -> Time {
        Time::MAX
    }

    fn on_delivered(&mut self, now: Time, connection: u32, bytes: u64) {
        let mut left = bytes;
        while let Some(part) = self.connections[connection as usize].take(&mut left) {
            let object = self.asked(part.object);
            if part.first {
                object.first_byte = Some(now);
            }
            if part.last {
                object.completed = Some(now);
                self.arrived(part.object);
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
        self.all_is_asked_for() && self.connections.iter().all(Answers::is_idle)
    }

    fn objects(&self) -> &[Object] {
        &self.objects
    }
}
