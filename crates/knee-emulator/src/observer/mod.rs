//! The observer: what happens to each packet, told to another thread.
//!
//! The emulator makes one call when a packet enters from a device, when a link drops it, and when
//! it leaves into a device. A call copies a time and the first bytes of the packet into a bounded
//! [ring](ring). A [`Watcher`] reads them on a thread of its own, keeps a [table of
//! flows](FlowTable) and writes a [capture](Capture) on request. An emulator without an observer
//! pays one comparison for each packet.
//!
//! Super-packets are seen as the packets into which the emulator splits them, unlike in a capture at
//! a device.

mod capture;
mod delays;
mod flow;
mod ring;
mod spin;
mod table;

pub use capture::{Capture, add_secrets};
pub use delays::Delays;
pub use flow::{FiveTuple, Flow, Volume};
pub use table::FlowTable;

use crate::arena::Arena;
use crate::emulator::Emulation;
use crate::packet::{HEADERS_MAX, IpPacket};
use knee_link::{DropReason, Packet as _};
use knee_units::Time;
use ring::{Block, Reader, Writer, ring};
use std::io;
use std::thread;
use std::time::Duration;
use table::Floor;

/// Bytes kept of each packet: the longest IP and transport headers, and at least the first 92 bytes
/// of a datagram.
const START_BYTES: usize = HEADERS_MAX;
/// Bytes kept of each packet for a capture: all of it.
const WHOLE_BYTES: usize = 65_535;
/// Sleep of the watcher when the ring is empty. It polls, so that the emulator never has to wake it.
const POLL: Duration = Duration::from_millis(5);

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// It entered from this device.
    Entered(usize),
    /// This link dropped it.
    Dropped(usize, DropReason),
    /// It left into this device.
    Left(usize),
}

/// One event of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub happened: Happened,
    pub at: Time,
    /// When the packet entered.
    pub entered: Time,
    /// IP bytes of the packet.
    pub size: u32,
    /// Bytes of it that were kept.
    pub kept: u32,
}

/// The emulator's end of an observation.
#[derive(Debug)]
pub struct Observer {
    writer: Writer,
    keep: usize,
}

/// Returns both ends of an observation of this emulation: pass the first to
/// [`Emulator::observed`](crate::Emulator::observed), and run the second on a thread of its own.
pub fn observe(plan: &Emulation, capture: Option<Capture>) -> (Observer, Watcher) {
    let (writer, reader) = ring();
    let keep = if capture.is_some() { WHOLE_BYTES } else { START_BYTES };
    let table = FlowTable::new(Floor::of(plan));
    (Observer { writer, keep }, Watcher { reader, table, capture, sampler: None })
}

impl Observer {
    /// Notes when a super-packet, of which `packet` is a part, entered.
    pub(crate) fn stamp(packet: &IpPacket, at: Time, arena: &mut Arena) {
        arena.put(packet.stamp_place(), &at.as_nanos().to_ne_bytes());
    }

    /// Tells what happened to a packet.
    #[inline(never)]
    pub(crate) fn tell(&mut self, happened: Happened, at: Time, packet: &IpPacket, arena: &Arena) {
        let mut stamp = [0; 8];
        stamp.copy_from_slice(arena.bytes(packet.stamp_place(), 8));
        let keep = self.keep.min(packet.size() as usize);
        let Some(block) = self.writer.room(keep) else { return };
        block.events.push(Event {
            happened,
            at,
            entered: Time::from_nanos(u64::from_ne_bytes(stamp)),
            size: packet.size(),
            kept: keep as u32,
        });
        packet.copy_start(arena, keep, &mut block.bytes);
    }

    /// Hands over what has waited for long enough.
    pub(crate) fn hand_over(&mut self, now: Time) {
        self.writer.hand_over(now);
    }
}

/// Takes the table of flows as it is at a time.
pub type TakeFlows = Box<dyn FnMut(Time, &FlowTable) + Send>;

/// The reading end of an observation.
pub struct Watcher {
    reader: Reader,
    table: FlowTable,
    capture: Option<Capture>,
    sampler: Option<Sampler>,
}

/// Passes on the table at intervals, by the times of events.
struct Sampler {
    interval: Time,
    next: Time,
    /// Time of the last event.
    last: Time,
    take: TakeFlows,
}

impl Sampler {
    /// Passes on the table for each time that an event shows to be over.
    fn pass_on(&mut self, now: Time, table: &FlowTable) {
        while self.next < now {
            (self.take)(self.next, table);
            self.next += self.interval;
        }
        self.last = self.last.max(now);
    }

    /// Passes on the table as it is after the last event.
    fn finish(&mut self, table: &FlowTable) {
        if self.last > Time::ZERO {
            (self.take)(self.last, table);
        }
    }
}

/// What an observation has seen.
#[derive(Debug, Default)]
pub struct Observed {
    /// The flows.
    pub flows: FlowTable,
    /// Events that found the ring full: the table and the capture lack them.
    pub missed_events: u64,
    /// Why the capture is incomplete, if it is.
    pub capture_error: Option<io::Error>,
}

impl Watcher {
    /// Passes the table on at each multiple of `interval`, which must be positive, with all events up
    /// to then, and once more at the time of the last event.
    #[must_use]
    pub fn sampled(self, interval: Time, take: TakeFlows) -> Watcher {
        Watcher {
            sampler: Some(Sampler { interval, next: Time::ZERO, last: Time::ZERO, take }),
            ..self
        }
    }

    /// Reads until the emulator has ended. An error of the capture ends the capture alone.
    pub fn run(mut self) -> Observed {
        let mut capture_error = None;
        loop {
            match self.reader.next() {
                Ok(Some(block)) => {
                    if let Err(error) = self.take(&block) {
                        (self.capture, capture_error) = (None, Some(error));
                    }
                    self.reader.give_back(block);
                }
                Ok(None) => thread::park_timeout(POLL),
                Err(ring::Closed) => break,
            }
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.finish(&self.table);
        }
        if let Some(Err(error)) = self.capture.take().map(Capture::finish) {
            capture_error = Some(error);
        }
        Observed { flows: self.table, missed_events: self.reader.missed(), capture_error }
    }

    fn take(&mut self, block: &Block) -> io::Result<()> {
        for (event, bytes) in block.iter() {
            if let Some(sampler) = &mut self.sampler {
                sampler.pass_on(event.at, &self.table);
            }
            self.table.take(event, bytes);
        }
        let Some(capture) = &mut self.capture else { return Ok(()) };
        block.iter().try_for_each(|(event, bytes)| capture.write(event, bytes))
    }
}
