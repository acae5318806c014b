//! Random delays of a sending host, which keep equal senders from moving in lockstep: Floyd and
//! Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and
//! Experience 3 (3), 1992, section 4. The packets of a flow stay in order.

use crate::log::PacketLog;
use crate::packet::Packet;
use crate::queue::{Armed, Event};
use crate::simulation::Simulation;
use knee_scenario::{Flow, Scenario, send_stream};
use knee_units::Time;
use knee_units::random::unit;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// Packets that a host has sent and that have not entered their first link.
pub(crate) struct Departures {
    jitter: Time,
    rng: ChaCha8Rng,
    waiting: VecDeque<(Time, Packet)>,
    armed: Armed,
}

impl Departures {
    /// Creates the departures of all flows; none if no flow has a jitter.
    pub fn of(scenario: &Scenario) -> Vec<Departures> {
        let of_flow = |flow: &Flow| Departures {
            jitter: flow.send_jitter,
            rng: send_stream(scenario.seed, flow),
            waiting: VecDeque::new(),
            armed: Armed::NOTHING,
        };
        match scenario.flows.iter().any(|flow| flow.send_jitter > Time::ZERO) {
            true => scenario.flows.iter().map(of_flow).collect(),
            false => Vec::new(),
        }
    }

    /// Returns when the next packet may enter its link: no earlier than the one before.
    fn time(&mut self, now: Time) -> Time {
        let delay = Time::from_secs_f64(unit(&mut self.rng) * self.jitter.as_secs_f64());
        let last = self.waiting.back().map_or(Time::ZERO, |(at, _)| *at);
        (now + delay).max(last)
    }
}

impl<L: PacketLog> Simulation<'_, L> {
    /// Sends a packet off after the delay of its host.
    pub(crate) fn depart(&mut self, packet: Packet) {
        let connection = self.slots[packet.flow as usize].connection as usize;
        let flow = self.connections[connection].flow as usize;
        let departures = &mut self.departures[flow];
        if departures.jitter == Time::ZERO {
            return self.set_out(packet);
        }
        let at = departures.time(self.now);
        departures.waiting.push_back((at, packet));
        self.arm_departure(flow);
    }

    fn arm_departure(&mut self, flow: usize) {
        let source = self.slot_sources_end() + self.flows.len() + self.scenario.paths.len() + flow;
        let departures = &mut self.departures[flow];
        if let Some((at, _)) = departures.waiting.front()
            && *at < departures.armed.time
        {
            departures.armed = self.queue.push(*at, source);
        }
    }

    /// Lets the packets that are due enter their links.
    pub(crate) fn on_departure(&mut self, flow: usize, event: Event) {
        if !self.departures[flow].armed.take(event) {
            return;
        }
        let now = self.now;
        while self.departures[flow].waiting.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, packet)) = self.departures[flow].waiting.pop_front() {
                self.set_out(packet);
            }
        }
        self.arm_departure(flow);
    }
}
