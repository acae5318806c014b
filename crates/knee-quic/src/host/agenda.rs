//! Which connections and bundles of a host may have something to do. A server may have thousands of
//! them, and a packet concerns one.

use super::{BundleId, Host, HostEvent, SEGMENTS_MAX};
use crate::Addresses;
use crate::link::Link;
use knee_bundle::Event;
use knee_units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// What may have something to do now, and when the rest will.
#[derive(Debug)]
pub(super) struct Agenda<K> {
    /// Those that something happened to since the last round of work.
    awake: BTreeSet<K>,
    /// Those that the last round visited, and whose timers are not known yet.
    visited: BTreeSet<K>,
    /// Timers of the others, by key and in order.
    due: BTreeMap<K, Time>,
    order: BTreeSet<(Time, K)>,
}

impl<K: Copy + Ord> Agenda<K> {
    pub fn new() -> Agenda<K> {
        let (awake, visited, order) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Agenda { awake, visited, due: BTreeMap::new(), order }
    }

    /// Notes that something happened.
    pub fn wake(&mut self, key: K) {
        self.awake.insert(key);
    }

    /// Begins a round of work: wakes those that are due, and those without a timer.
    fn begin(&mut self, now: Time) {
        self.awake.append(&mut self.visited);
        while let Some((at, key)) = self.order.first().copied().filter(|(at, _)| *at <= now) {
            self.order.remove(&(at, key));
            self.due.remove(&key);
            self.awake.insert(key);
        }
    }

    /// Returns those to visit in this round.
    fn keys(&self) -> Vec<K> {
        self.awake.iter().copied().collect()
    }

    /// Ends a round.
    fn finish(&mut self) {
        self.visited.append(&mut self.awake);
    }

    /// Sets the timers of those that were visited, and returns the earliest of all. `timer` returns
    /// `None` for what is gone.
    fn timer(&mut self, mut timer: impl FnMut(&K) -> Option<Time>) -> Time {
        for key in std::mem::take(&mut self.visited) {
            if let Some(before) = self.due.remove(&key) {
                self.order.remove(&(before, key));
            }
            if let Some(at) = timer(&key).filter(|at| *at < Time::MAX) {
                self.due.insert(key, at);
                self.order.insert((at, key));
            }
        }
        let awake = self.awake.iter().filter_map(timer).min();
        let asleep = self.order.first().map(|(at, _)| *at);
        awake.unwrap_or(Time::MAX).min(asleep.unwrap_or(Time::MAX))
    }
}

impl Host {
    /// Returns when [`work`](Self::work) is due if nothing arrives before; [`Time::MAX`] means
    /// never.
    pub fn timer(&mut self, now: Time) -> Time {
        let mut links = std::mem::replace(&mut self.links_at_work, Agenda::new());
        let at = links.timer(|key| {
            let link = self.links.get(key)?;
            let at = link.connection.poll_timeout().map_or(Time::MAX, |at| self.time(at));
            Some(at.min(link.control.timer(now)).min(link.deadline()))
        });
        self.links_at_work = links;
        let mut bonds = std::mem::replace(&mut self.bonds_at_work, Agenda::new());
        let of_bonds = bonds.timer(|id| {
            let paths = self.views(now, id);
            // One that is closing sends nothing more.
            let bond = self.bonds.get(id).filter(|bond| !bond.closing)?;
            Some(bond.bundle.timer(&paths).min(bond.alone_since.saturating_add(bond.linger)))
        });
        self.bonds_at_work = bonds;
        at.min(of_bonds)
    }

    /// Does everything that is due, and sends what may leave. `send` receives the path, the
    /// addresses, the bytes, and the size of each packet in them.
    pub fn work(&mut self, now: Time, mut send: impl FnMut(usize, Addresses, &[u8], usize)) {
        self.links_at_work.begin(now);
        self.bonds_at_work.begin(now);
        self.wake_members();
        for key in self.links_at_work.keys() {
            self.process_connection(now, key);
        }
        for (path, transmit, bytes) in std::mem::take(&mut self.answers) {
            let size = transmit.size.min(bytes.len());
            send(path, Addresses::of(&transmit), &bytes[..size], size);
        }
        self.wake_members();
        self.forget(now);
        for id in self.bonds_at_work.keys() {
            let paths = self.views(now, &id);
            if let Some(bond) = self.bonds.get_mut(&id) {
                bond.bundle.on_timer(now, &paths);
            }
        }
        loop {
            let mut moved = false;
            for id in self.bonds_at_work.keys() {
                moved |= self.pump(now, &id);
            }
            self.transmit(now, &mut send);
            if !moved {
                break;
            }
        }
        self.links_at_work.finish();
        self.bonds_at_work.finish();
    }

    /// Wakes the bundles of the connections that are awake, and all connections of these bundles.
    fn wake_members(&mut self) {
        for key in &self.links_at_work.awake {
            if let Some((id, _)) = self.links.get(key).and_then(Link::place) {
                self.bonds_at_work.wake(id);
            }
        }
        for id in &self.bonds_at_work.awake {
            let links = self.bonds.get(id).into_iter().flat_map(|bond| &bond.links);
            links.flatten().for_each(|key| self.links_at_work.wake(*key));
        }
    }

    /// Wakes the connections of a bundle, joined or not, and the bundle.
    pub(super) fn wake_all_of(&mut self, id: &BundleId) {
        self.bonds_at_work.wake(*id);
        for (key, link) in &self.links {
            if link.place().is_some_and(|(of, _)| of == *id) {
                self.links_at_work.wake(*key);
            }
        }
    }

    fn transmit(&mut self, now: Time, send: &mut impl FnMut(usize, Addresses, &[u8], usize)) {
        let at = self.instant(now);
        for key in self.links_at_work.keys() {
            let Some(link) = self.links.get_mut(&key) else { continue };
            // NumberSpaces in a row that had nothing to send.
            let mut idle = 0;
            loop {
                self.buffer.clear();
                let transmit = link.connection.poll_transmit(at, SEGMENTS_MAX, &mut self.buffer);
                let spaces = link.control.next_number_space();
                let Some(transmit) = transmit else {
                    idle += 1;
                    if idle >= spaces || link.waiting() == 0 {
                        break;
                    }
                    continue;
                };
                idle = 0;
                let packet = transmit.segment_size.unwrap_or(transmit.size);
                send(key.0, Addresses::of(&transmit), &self.buffer[..transmit.size], packet);
            }
        }
    }

    /// Drops connections that are over, and bundles that are over or had no connection for too
    /// long.
    fn forget(&mut self, now: Time) {
        for key in self.links_at_work.keys() {
            if self.links.get(&key).is_some_and(|link| link.connection.is_drained()) {
                self.links.remove(&key);
            }
        }
        for id in self.bonds_at_work.keys() {
            let Some(bond) = self.bonds.get_mut(&id) else { continue };
            for key in &mut bond.links {
                *key = key.filter(|key| self.links.contains_key(key));
            }
            let is_over = bond.closing && bond.links.iter().all(Option::is_none);
            let is_alone = bond.alone_since.saturating_add(bond.linger) <= now;
            if is_alone && !is_over {
                self.events.push_back(HostEvent::Ended(id));
            }
            if is_over || is_alone {
                self.bonds.remove(&id);
            }
        }
    }

    /// Returns the events of bundles since the last call.
    pub fn take_bundle_events(&mut self) -> Vec<(BundleId, Event)> {
        let mut events = Vec::new();
        for id in self.bonds_at_work.visited.iter().chain(&self.bonds_at_work.awake) {
            let Some(bond) = self.bonds.get_mut(id) else { continue };
            events
                .extend(std::iter::from_fn(|| bond.bundle.poll_event()).map(|event| (*id, event)));
        }
        events
    }
}
