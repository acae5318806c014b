//! All flows of a run by their five-tuple.

use super::flow::{FiveTuple, Flow, Parsed};
use super::{Event, Happened};
use crate::emulator::Emulation;
use crate::routes::Step;
use knee_link::{Config, DropReason, RateModel};
use knee_units::{Rate, Time};
use std::collections::BTreeMap;

/// Maximum number of flows in the table. Packets of further ones count in one flow together.
const FLOWS_MAX: usize = 1 << 16;

/// The shortest time that a route allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Floor {
    delay: Time,
    rates: Vec<Rate>,
}

impl Floor {
    /// Returns the floor of the route from each device.
    pub fn of(plan: &Emulation) -> Vec<Floor> {
        let from = |entry: &u32| {
            let steps = plan.routes.steps[*entry as usize..].iter();
            let links = steps.map_while(|step| match step {
                Step::Link(link) => Some(&plan.links[*link].0),
                Step::Device(_) => None,
            });
            links.fold(Floor::default(), Floor::with)
        };
        plan.routes.entries.iter().map(from).collect()
    }

    fn with(mut self, link: &Config) -> Floor {
        let delays = link.delay.base.0.iter().map(|(_, delay)| *delay);
        self.delay = self.delay.saturating_add(delays.min().unwrap_or_default());
        match &link.rate {
            RateModel::Constant(rate) => self.rates.push(*rate),
            RateModel::Steps(steps) => {
                self.rates.extend(steps.0.iter().map(|(_, rate)| *rate).max())
            }
            // A trace does not say how long a packet takes.
            RateModel::Unlimited | RateModel::Trace(_) => {}
        }
        self
    }

    fn time(&self, size: u32) -> Time {
        let rates = self.rates.iter().map(|rate| rate.time_for(u64::from(size)));
        rates.fold(self.delay, Time::saturating_add)
    }
}

/// The flows of a run, each direction of a connection for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    flows: BTreeMap<FiveTuple, Flow>,
    others: Flow,
    /// Dropped packets by link and by whether the link's counters call them lost.
    dropped: BTreeMap<(usize, bool), u64>,
    floors: Vec<Floor>,
}

impl FlowTable {
    pub(crate) fn new(floors: Vec<Floor>) -> FlowTable {
        FlowTable { floors, ..FlowTable::default() }
    }

    /// Iterates over the flows, in the order of their five-tuples.
    pub fn iter(&self) -> impl Iterator<Item = (&FiveTuple, &Flow)> {
        self.flows.iter()
    }

    /// Returns the flow with this five-tuple.
    pub fn get(&self, five: &FiveTuple) -> Option<&Flow> {
        self.flows.get(five)
    }

    /// Returns the median RTT that a QUIC connection shows by its spin bit (RFC 9000, section 17.4),
    /// where the packets of this direction enter; up to 3 % too large. `None` for other protocols, and
    /// for connections that do not spin.
    pub fn spin_rtt(&self, five: &FiveTuple) -> Option<Time> {
        let (flow, back) = (self.get(five)?, self.get(&five.reversed())?);
        let delay = |flow: &Flow| self.floors.get(flow.device).map_or(Time::ZERO, |it| it.delay);
        flow.spin.rtt(delay(flow) + delay(back))
    }

    /// Returns the sum of all flows after the first 65,536, without retransmissions.
    pub fn others(&self) -> &Flow {
        &self.others
    }

    /// Returns how many packets a link dropped: at its policer, queue, AQM or circuit breaker, and
    /// by loss or because it was down, as [`Counters`](knee_link::Counters) tell them apart.
    pub fn dropped_packets(&self, link: usize) -> (u64, u64) {
        let count = |lost: bool| self.dropped.get(&(link, lost)).copied().unwrap_or(0);
        (count(false), count(true))
    }

    pub(super) fn take(&mut self, event: &Event, bytes: &[u8]) {
        if let Happened::Dropped(link, reason) = event.happened {
            let lost = matches!(reason, DropReason::Loss | DropReason::Down);
            *self.dropped.entry((link, lost)).or_default() += 1;
        }
        // The emulator carries nothing that cannot be parsed.
        let Some(parsed) = Parsed::new(bytes) else { return };
        let is_listed = self.flows.len() < FLOWS_MAX || self.flows.contains_key(&parsed.five);
        let flow = match is_listed {
            true => self.flows.entry(parsed.five).or_default(),
            false => &mut self.others,
        };
        if flow.entered.packets == 0 {
            flow.first = event.entered;
        }
        flow.last = flow.last.max(event.at);
        match event.happened {
            Happened::Entered(device) => {
                flow.device = device;
                flow.entered.add(event.size);
                if is_listed {
                    flow.take_payload(&parsed, bytes, event.size, event.at);
                }
            }
            Happened::Dropped(link, _) => {
                flow.dropped.add(event.size);
                *flow.dropped_packets_at.entry(link).or_default() += 1;
            }
            Happened::Left(_) => {
                flow.left.add(event.size);
                flow.marked_packets += u64::from(parsed.is_marked());
                let floor = self.floors.get(flow.device).map(|floor| floor.time(event.size));
                let way = event.at.saturating_sub(event.entered);
                let queueing = way.saturating_sub(floor.unwrap_or_default());
                flow.queueing.record(queueing);
                flow.queueing_last = Some(queueing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// An IPv4 datagram of 28 bytes of headers from this port.
    fn datagram(port: u16) -> Vec<u8> {
        let mut bytes = vec![0; 28];
        bytes[0] = 0x45;
        bytes[9] = 17;
        bytes[12..20].copy_from_slice(&[10, 64, 0, 1, 10, 64, 0, 2]);
        bytes[20..22].copy_from_slice(&port.to_be_bytes());
        bytes[23] = 53;
        bytes
    }

    fn event(happened: Happened, at: u64, entered: u64) -> Event {
        let [at, entered] = [at, entered].map(Time::from_micros);
        Event { happened, at, entered, size: 1028, kept: 28 }
    }

    /// 20 ms of propagation, and 1028 bytes at 8.224 Mbit/s are 1 ms: what remains is queueing.
    #[test]
    fn queueing_is_what_exceeds_delay_and_transmission() {
        let rate = Rate::from_bits_per_second(8_224_000);
        let floor = Floor { delay: Time::from_millis(20), rates: vec![rate] };
        let mut table = FlowTable::new(vec![floor]);
        let bytes = datagram(1000);
        table.take(&event(Happened::Entered(0), 500, 500), &bytes);
        table.take(&event(Happened::Left(1), 26_500, 500), &bytes);
        let (five, flow) = table.iter().next().unwrap();
        assert_eq!(five.source, SocketAddr::from(([10, 64, 0, 1], 1000)));
        assert_eq!(five.destination, SocketAddr::from(([10, 64, 0, 2], 53)));
        assert_eq!((five.protocol, flow.retransmitted_bytes), (17, None));
        assert_eq!((flow.payload_bytes, flow.left), (1000, Volume { packets: 1, bytes: 1028 }));
        assert_eq!(flow.queueing.max(), Time::from_millis(5));
        assert_eq!(flow.queueing_last, Some(Time::from_millis(5)));
        assert_eq!((flow.first, flow.last), (Time::from_micros(500), Time::from_micros(26_500)));
        assert_eq!(table.get(&five.reversed()), None);
    }

    /// Drops count for their flow, their link and their reason.
    #[test]
    fn drops_are_told_apart_by_link_and_reason() {
        let mut table = FlowTable::default();
        for (port, link, reason) in
            [(1, 0, DropReason::Queue), (1, 1, DropReason::Loss), (2, 0, DropReason::Aqm)]
        {
            let bytes = datagram(port);
            table.take(&event(Happened::Entered(0), 1, 1), &bytes);
            table.take(&event(Happened::Dropped(link, reason), 2, 1), &bytes);
        }
        assert_eq!([0, 1, 2].map(|link| table.dropped_packets(link)), [(2, 0), (0, 1), (0, 0)]);
        let dropped: Vec<_> = table.iter().map(|(_, flow)| flow.dropped.packets).collect();
        assert_eq!(dropped, [2, 1]);
    }

    /// However many flows there are, memory is bounded and no packet is forgotten.
    #[test]
    fn flows_beyond_the_limit_count_together() {
        let mut table = FlowTable::default();
        for number in 0..FLOWS_MAX as u32 + 10 {
            let mut bytes = datagram(number as u16);
            bytes[15] = (number >> 16) as u8;
            table.take(&event(Happened::Entered(0), 1, 1), &bytes);
        }
        assert_eq!((table.iter().count(), table.others().entered.packets), (FLOWS_MAX, 10));
    }

    use super::super::Volume;
}
