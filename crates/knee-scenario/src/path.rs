//! What paths are like when their queues are empty.

use crate::check::nominal_rate;
use crate::model::{Path, Reverse, Scenario};
use knee_link::RateModel;
use knee_units::{Rate, Time};

impl Scenario {
    /// Round-trip time over empty queues at the start of the run: of a full
    /// segment of the first flow on the path (of the default's, 1500 bytes,
    /// if there is none) and its ACK, with the time that each link with a
    /// constant or stepped rate needs to send them. A trace adds none.
    pub fn base_rtt(&self, path: usize) -> Time {
        let flow = self.flows.iter().find(|flow| flow.path == path);
        self.round_trip(path, &flow.map_or_else(Default::default, |flow| flow.transport))
    }

    /// The same for the segments of one flow.
    pub fn flow_base_rtt(&self, flow: usize) -> Time {
        self.round_trip(self.flows[flow].path, &self.flows[flow].transport)
    }

    fn round_trip(&self, path: usize, transport: &knee_transport::Config) -> Time {
        let Path { forward, reverse, .. } = &self.paths[path];
        let segment = u64::from(transport.mss + transport.header);
        let there = self.crossing(forward, segment);
        let back = match reverse {
            Reverse::Delay(delay) => *delay,
            Reverse::Links(links) => self.crossing(links, u64::from(transport.header)),
        };
        there.saturating_add(back)
    }

    /// Time over links for a packet of so many bytes.
    fn crossing(&self, links: &[usize], bytes: u64) -> Time {
        let one = |link: &usize| {
            let config = &self.links[*link].config;
            let delay = config.delay.base.0.first().map_or(Time::ZERO, |(_, delay)| *delay);
            let serialisation = match &config.rate {
                RateModel::Unlimited | RateModel::Trace(_) => Time::ZERO,
                RateModel::Constant(rate) => rate.time_for(bytes),
                RateModel::Steps(steps) => {
                    steps.0.first().map_or(Time::ZERO, |(_, rate)| rate.time_for(bytes))
                }
            };
            delay.saturating_add(serialisation)
        };
        links.iter().map(one).fold(Time::ZERO, Time::saturating_add)
    }

    /// The smallest rate of the links from sender to receiver: at the start
    /// of the run, or the mean of a trace; none when no link has a rate.
    pub fn path_rate(&self, path: usize) -> Option<Rate> {
        let rates = self.paths[path].forward.iter();
        rates.filter_map(|link| nominal_rate(&self.links[*link].config.rate)).min()
    }
}
