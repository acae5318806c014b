//! A web page: objects over connections kept open, some discovered only after others have arrived.
//!
//! What passes between an arrival and the requests that follow from it, because the browser computes
//! or because the server does, is a delay of the object; it ends before the request is sent.
//!
//! Not modelled: priorities of objects, connections opened in advance, names (DNS), and handshakes of
//! TLS.

use crate::answers::Answers;
use crate::{Action, Application, Object, Properties};
use knee_units::Time;
use std::collections::{BTreeSet, VecDeque};

pub(crate) const PROPERTIES: Properties =
    Properties { pushes: false, single: false, transient: false, ends: true, bytes: None };

/// A web page: objects that depend on others.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The objects; those without dependencies are requested at once.
    pub objects: Vec<PageObject>,
    /// Protocol by which the objects of each origin are fetched.
    pub origins: Vec<Http>,
}

/// An object of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageObject {
    /// Name of the object.
    pub name: String,
    /// Size including headers.
    pub bytes: u64,
    /// Indexes of the objects that must have arrived before it is discovered.
    pub after: Vec<usize>,
    /// Time from then to its request.
    pub delay: Time,
    /// Index of its origin; each origin has connections of its own.
    pub origin: usize,
}

/// How the objects of an origin are fetched.
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
    /// Objects whose dependencies have arrived, by the time of their request; of equal times by their
    /// place in the order of arrivals.
    due: BTreeSet<(Time, usize, usize)>,
    /// For each origin, objects to be requested, in order of discovery, with their place in the
    /// order of all.
    known: Vec<VecDeque<(usize, usize)>>,
    /// How many were due, and known, so far.
    places: [usize; 2],
    /// Connections, each with its origin.
    connections: Vec<(usize, Answers)>,
    connections_closed: u32,
    /// Objects requested so far, by number.
    objects: Vec<Object>,
    stopped: bool,
}

/// Where the next object can be requested.
enum Room {
    /// On this connection.
    Connection(usize),
    /// On a new one.
    New,
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
        let first = (0..missing.len()).filter(|&number| missing[number] == 0);
        let due = first.map(|number| (page.objects[number].delay, number, number)).collect();
        WebPage {
            places: [missing.len(), 0],
            missing,
            dependants,
            due,
            known: vec![VecDeque::new(); page.origins.len()],
            page,
            connections: Vec::new(),
            connections_closed: 0,
            objects: Vec::new(),
            stopped: false,
        }
    }

    fn all_is_asked_for(&self) -> bool {
        self.stopped || self.objects.len() == self.page.objects.len()
    }

    /// Discovers what is due.
    fn discover(&mut self, now: Time) {
        while let Some((_, _, number)) = self.due.first().copied().filter(|(at, ..)| *at <= now) {
            self.due.pop_first();
            let origin = self.page.objects[number].origin;
            self.known[origin].push_back((self.places[1], number));
            self.places[1] += 1;
        }
    }

    /// Returns where an object of an origin can be requested: over HTTP/1.1 on a connection without
    /// a pending request (no browser pipelines), otherwise on the only one.
    fn room(&self, origin: usize) -> Option<Room> {
        let mut of_origin =
            self.connections.iter().enumerate().filter(|(_, (of, _))| *of == origin);
        let most = match self.page.origins[origin] {
            Http::Multiplexed => {
                let only = of_origin.next();
                return Some(only.map_or(Room::New, |(number, _)| Room::Connection(number)));
            }
            Http::Version1 { connections } => connections.max(1) as usize,
        };
        let count = of_origin.clone().count();
        match of_origin.find(|(_, (_, answers))| answers.is_idle()) {
            Some((number, _)) => Some(Room::Connection(number)),
            None => (count < most).then_some(Room::New),
        }
    }

    /// Returns the origin of the object that was discovered first of those that can be requested,
    /// and where.
    fn next(&self) -> Option<(usize, Room)> {
        let fronts = self.known.iter().enumerate();
        let fronts = fronts.filter_map(|(origin, known)| Some((known.front()?.0, origin)));
        let mut fronts: Vec<(usize, usize)> = fronts.collect();
        fronts.sort_unstable();
        fronts.into_iter().find_map(|(_, origin)| Some((origin, self.room(origin)?)))
    }

    fn open(&mut self, origin: usize) -> Action {
        let connection = self.connections.len() as u32;
        self.connections.push((origin, Answers::default()));
        Action::Open { connection }
    }

    fn request(&mut self, now: Time, number: usize, connection: usize) -> Action {
        let object = &self.page.objects[number];
        // An answer without a body still has a header.
        let bytes = object.bytes.max(1);
        self.connections[connection].1.ask(number, bytes);
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

    fn arrived(&mut self, now: Time, number: usize) {
        for &dependant in &self.dependants[number] {
            self.missing[dependant] -= 1;
            if self.missing[dependant] == 0 {
                let at = now.saturating_add(self.page.objects[dependant].delay);
                self.due.insert((at, self.places[0], dependant));
                self.places[0] += 1;
            }
        }
    }
}

impl Application for WebPage {
    fn poll(&mut self, now: Time) -> Option<Action> {
        if self.all_is_asked_for() {
            return self.close();
        }
        self.discover(now);
        match self.next()? {
            (origin, Room::New) => Some(self.open(origin)),
            (origin, Room::Connection(connection)) => {
                let (_, number) = self.known[origin].pop_front()?;
                Some(self.request(now, number, connection))
            }
        }
    }

    fn timer(&self) -> Time {
        let due = self.due.first().filter(|_| !self.stopped);
        due.map_or(Time::MAX, |(at, ..)| *at)
    }

    fn on_delivered(&mut self, now: Time, connection: u32, bytes: u64) {
        let mut left = bytes;
        while let Some(part) = self.connections[connection as usize].1.take(&mut left) {
            let object = self.asked(part.object);
            if part.first {
                object.first_byte = Some(now);
            }
            if part.last {
                object.completed = Some(now);
                self.arrived(now, part.object);
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
        self.all_is_asked_for() && self.connections.iter().all(|(_, answers)| answers.is_idle())
    }

    fn objects(&self) -> &[Object] {
        &self.objects
    }
}
