//! A link of a run, with its pending event.

use crate::packet::Packet;
use crate::queue::{Armed, EventQueue};
use knee_link::{DropReason, Link};
use knee_units::Time;

/// A link of the run.
pub struct LinkState {
    pub link: Link<Packet>,
    /// Its pending event.
    pub armed: Armed,
}

impl LinkState {
    /// Offers a packet to the link with number `link`.
    #[inline(always)]
    pub fn offer(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        link: usize,
        packet: Packet,
    ) -> Result<(), (DropReason, Packet)> {
        self.link.send(now, packet)?;
        let next = self.link.next_time();
        if next < self.armed.time {
            self.armed = queue.push_soon(next, link);
        }
        Ok(())
    }

    /// Schedules its event, unless an earlier one is already queued.
    pub fn arm(&mut self, queue: &mut EventQueue, link: usize) {
        let next = self.link.next_time();
        if next < self.armed.time {
            self.armed = queue.push_soon(next, link);
        }
    }

    /// Offers packets of one size that enter one after another, as many of
    /// `count` as are certain to be accepted. Returns how many that is.
    #[inline(always)]
    pub fn offer_run(
        &mut self,
        queue: &mut EventQueue,
        now: Time,
        link: usize,
        (size, count): (u32, u32),
        packet: impl Fn(u32) -> Packet,
    ) -> u32 {
        let taken = self.link.send_run(now, size, count, packet);
        let next = self.link.next_time();
        if next < self.armed.time {
            self.armed = queue.push_soon(next, link);
        }
        taken
    }
}
