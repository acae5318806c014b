//! Position of each packet between its sender and its receiver.

use crate::parse::{DataAck, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// Position of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the beginning, between two links, or after the last one; only for the current time.
    Between,
    /// In a link, under this name.
    Inside { link: usize, name: u64 },
    /// It should have moved on and did not, which was reported.
    Stranded,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub flow: u64,
    pub kind: Kind,
    pub number: u64,
    /// Payload bytes; zero for an ACK and for a handshake.
    pub payload: u64,
    /// IP bytes, once it has entered a link.
    pub bytes: Option<u64>,
    /// Links entered so far.
    pub hops: usize,
    pub place: Place,
    /// When it must have left its host, at the latest.
    pub leaves_by: u64,
    pub ecn_capable: bool,
    /// Whether it carries Congestion Experienced.
    pub marked: bool,
    /// Whether it is an ACK with SACK blocks.
    pub selective: bool,
    /// Data acknowledgement of an ACK, for its connection.
    pub data: Option<DataAck>,
}

/// All packets in flight.
#[derive(Default)]
pub struct Journeys {
    packets: BTreeMap<u64, Packet>,
    /// Packets that must move on before time does.
    between: BTreeSet<u64>,
    last_id: Option<u64>,
}

impl Journeys {
    /// Begins a journey. Returns false if the id is not above all earlier ones.
    pub fn begin(&mut self, id: u64, packet: Packet) -> bool {
        let ascends = self.last_id.is_none_or(|last| id > last);
        self.last_id = self.last_id.max(Some(id));
        self.packets.insert(id, packet);
        self.between.insert(id);
        ascends
    }

    pub fn get(&self, id: u64) -> Option<Packet> {
        self.packets.get(&id).copied()
    }

    /// Returns whether a packet with this id may have been sent before.
    pub fn is_past(&self, id: u64) -> bool {
        self.last_id.is_some_and(|last| id <= last)
    }

    pub fn put(&mut self, id: u64, packet: Packet) {
        if packet.place == Place::Between {
            self.between.insert(id);
        } else {
            self.between.remove(&id);
        }
        self.packets.insert(id, packet);
    }

    /// Ends a journey.
    pub fn end(&mut self, id: u64) {
        self.between.remove(&id);
        self.packets.remove(&id);
    }

    /// Returns the packets between two links that have not moved on when time does, to `time`.
    pub fn strand(&mut self, time: u64) -> BTreeSet<u64> {
        let between = std::mem::take(&mut self.between);
        let may_wait =
            |id: &u64| self.packets.get(id).is_some_and(|at| at.hops == 0 && time <= at.leaves_by);
        let (waiting, stranded) = between.into_iter().partition(may_wait);
        self.between = waiting;
        for id in &stranded {
            if let Some(packet) = self.packets.get_mut(id) {
                packet.place = Place::Stranded;
            }
        }
        stranded
    }
}
