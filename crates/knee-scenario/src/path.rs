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
        let flow = self.flows.iter().find(|flow| flow.paths.contains(&path));
        self.round_trip(path, &flow.map_or_else(Default::default, |flow| flow.transport))
    }

    /// The same for the segments of one flow, over the fastest of its paths.
    pub fn flow_base_rtt(&self, flow: usize) -> Time {
        let flow = &self.flows[flow];
        let over = |path: &usize| self.round_trip(*path, &flow.transport);
        flow.paths.iter().map(over).min().unwrap_or(Time::ZERO)
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

    /// Propagation delay from sender to receiver at the start of the run.
    pub fn one_way_delay(&self, path: usize) -> Time {
        self.crossing(&self.paths[path].forward, 0)
    }

    /// Propagation delay from receiver to sender at the start of the run.
    pub fn way_back(&self, path: usize) -> Time {
        match &self.paths[path].reverse {
            Reverse::Delay(delay) => *delay,
            Reverse::Links(links) => self.crossing(links, 0),
        }
    }

    /// The smallest rate of the links from sender to receiver: at the start
    /// of the run, or the mean of a trace; none when no link has a rate.
    pub fn path_rate(&self, path: usize) -> Option<Rate> {
        let rates = self.paths[path].forward.iter();
        rates.filter_map(|link| nominal_rate(&self.links[*link].config.rate)).min()
    }

    /// Rates of all paths of a flow together; none: one of them has none.
    pub fn flow_rate(&self, flow: usize) -> Option<Rate> {
        let paths = self.flows[flow].paths.iter();
        let rates = paths.map(|path| Some(self.path_rate(*path)?.as_bits_per_second()));
        rates.sum::<Option<u64>>().map(Rate::from_bits_per_second)
    }

    /// Names of a flow's paths: `fibre+cellular`.
    pub fn flow_path_names(&self, flow: usize) -> String {
        let paths = self.flows[flow].paths.iter();
        paths.map(|path| self.paths[*path].name.as_str()).collect::<Vec<_>>().join("+")
    }
}
