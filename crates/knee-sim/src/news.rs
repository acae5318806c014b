//! What links report besides the packets that leave them: packets that they dropped, and requests to
//! the links before them to pause.

use crate::log::{Event, PacketLog};
use crate::packet::Packet;
use crate::simulation::Simulation;
use knee_link::DropReason;

impl<L: PacketLog> Simulation<'_, L> {
    /// Accounts for a packet that a link did not accept.
    #[cold]
    pub(crate) fn refuse(&mut self, link: usize, packet: &Packet, reason: DropReason) {
        self.discard(link, packet, reason);
        self.collect_news(link);
    }

    /// Accounts for packets that the link dropped after they had entered, and passes on what it asks
    /// of the links before it.
    #[cold]
    pub(crate) fn collect_news(&mut self, link: usize) {
        while let Some((_, reason, packet)) = self.links[link].link.take_dropped() {
            self.discard(link, &packet, reason);
        }
        while let Some((_, pause)) = self.links[link].link.take_request() {
            self.pass_back(link, pause);
        }
    }

    /// Lets the links before a link pause or go on.
    fn pass_back(&mut self, link: usize, pause: bool) {
        if L::WRITES {
            // It is no event of a flow.
            self.log.event(self.now, 0, Event::Pause { link, pause });
        }
        for place in 0..self.topology.before[link].len() {
            let before = self.topology.before[link][place];
            let state = &mut self.links[before];
            state.link.pause(self.now, pause);
            state.arm(&mut self.queue, before);
            if self.links[before].link.has_news() {
                self.collect_news(before);
            }
        }
    }

    #[cold]
    fn discard(&mut self, link: usize, packet: &Packet, reason: DropReason) {
        self.note(packet.flow, Event::Drop { link, packet, reason });
        if let Some(slot) = packet.extra() {
            self.extras.take(slot);
        }
        self.leave_network(packet.flow as usize);
    }
}
