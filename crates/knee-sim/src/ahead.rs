//! Looking ahead in a run of many connections: the state of one has left the
//! processor's cache when its next event is due, and is loaded again while
//! earlier events are handled. This affects time alone.

use crate::connections::MULTIPATH;
use crate::log::PacketLog;
use crate::simulation::{ACKNOWLEDGEMENT, Simulation, TIMERS};
use knee_transport::prefetch;

/// Number of slots from which on it pays: with fewer, everything stays in the cache.
pub const MANY_SLOTS: usize = 2048;
/// Places ahead at which a link's packet is loaded, then its slot, then the end
/// that gets it, then what a sender refers to.
const PACKET: usize = 32;
const SLOT: usize = 20;
const ENDS: usize = 12;
const PARTS: usize = 6;
/// Events that the queue has to know in advance for that.
const EVENTS_AHEAD: usize = SLOT + 1;

impl<L: PacketLog> Simulation<'_, L> {
    pub(crate) fn begin_to_look_ahead(&mut self) {
        self.looks_ahead = true;
        self.queue.know_ahead(EVENTS_AHEAD);
    }

    /// Loads what events after one of `source` need.
    #[inline(never)]
    pub(crate) fn look_ahead(&mut self, source: usize) {
        if source < self.links.len() {
            self.look_ahead_on_link(source);
        } else {
            self.look_ahead_at_timers();
        }
        self.queue.prefetch();
    }

    /// Loads what the next packets of a link refer to.
    fn look_ahead_on_link(&self, link: usize) {
        let link = &self.links[link].link;
        prefetch(link.upcoming(PACKET));
        if let Some(packet) = link.upcoming(SLOT) {
            prefetch(&self.slots[packet.flow as usize]);
        }
        if let Some(packet) = link.upcoming(ENDS) {
            self.load_end(packet.flow as usize, packet.is_ack());
        }
        if let Some(packet) = link.upcoming(PARTS)
            && packet.is_ack()
        {
            self.load_parts(packet.flow as usize);
        }
    }

    /// Loads what the next timers refer to.
    fn look_ahead_at_timers(&self) {
        if let Some((slot, _)) = self.upcoming_timer(SLOT) {
            prefetch(&self.slots[slot]);
        }
        if let Some((slot, timer)) = self.upcoming_timer(ENDS) {
            self.load_end(slot, timer != ACKNOWLEDGEMENT);
        }
        if let Some((slot, timer)) = self.upcoming_timer(PARTS)
            && timer != ACKNOWLEDGEMENT
        {
            self.load_parts(slot);
        }
    }

    /// Returns slot and timer of the event `ahead` places behind the next.
    fn upcoming_timer(&self, ahead: usize) -> Option<(usize, usize)> {
        let source = self.queue.upcoming(ahead)?;
        let number = source.checked_sub(self.links.len())?;
        (source < self.slot_sources_end()).then_some((number / TIMERS, number % TIMERS))
    }

    fn load_end(&self, slot: usize, sends: bool) {
        match self.slots[slot].ends {
            MULTIPATH => {}
            ends if sends => prefetch(&self.senders[ends as usize]),
            ends => prefetch(&self.receivers[ends as usize]),
        }
    }

    fn load_parts(&self, slot: usize) {
        let ends = self.slots[slot].ends;
        if ends != MULTIPATH {
            self.senders[ends as usize].prefetch_parts();
        }
    }
}
