//! Properties of paths with empty queues.

use crate::model::{Path, Reverse, Scenario};
use knee_link::{Config, RateModel, Steps};
use knee_units::{Rate, Time};

impl Scenario {
    /// Returns the round-trip time over empty queues of a full segment and its ACK, for the flow
    /// with the smallest segments on the path (1500 bytes, the default, if there is none). It
    /// includes the serialisation time of each link with a constant or stepped rate; a trace adds
    /// none. If rates or delays change, the best values of the run are used, so that no RTT is
    /// below it.
    pub fn base_rtt(&self, path: usize) -> Time {
        let flows = self.flows.iter().filter(|flow| flow.paths.contains(&path));
        let transports = flows.map(|flow| flow.transport);
        let smallest = transports.min_by_key(|one| (one.mss + one.header, one.header));
        self.round_trip(path, &smallest.unwrap_or_default(), (Time::ZERO, self.duration))
    }

    /// Returns the base RTT for the segments of one flow, over the fastest of its paths. Rates and
    /// delays before the flow's start do not count.
    pub fn flow_base_rtt(&self, flow: usize) -> Time {
        let flow = &self.flows[flow];
        let life = (flow.start, self.duration);
        let over = |path: &usize| self.round_trip(*path, &flow.transport, life);
        flow.paths.iter().map(over).min().unwrap_or(Time::ZERO)
    }

    fn round_trip(
        &self,
        path: usize,
        transport: &knee_transport::Config,
        life: (Time, Time),
    ) -> Time {
        let Path { forward, reverse, .. } = &self.paths[path];
        let segment = u64::from(transport.mss + transport.header);
        let crossing = |links: &[usize], bytes: u64| {
            sum(links.iter().map(|link| least_time(&self.links[*link].config, bytes, life)))
        };
        let back = match reverse {
            Reverse::Delay(delay) => *delay,
            Reverse::Links(links) => crossing(links, u64::from(transport.header)),
        };
        crossing(forward, segment).saturating_add(back)
    }

    /// Returns the propagation delay from sender to receiver at the start of the run.
    pub fn one_way_delay(&self, path: usize) -> Time {
        self.first_delays(&self.paths[path].forward)
    }

    /// Returns the propagation delay from receiver to sender at the start of the run.
    pub fn way_back(&self, path: usize) -> Time {
        match &self.paths[path].reverse {
            Reverse::Delay(delay) => *delay,
            Reverse::Links(links) => self.first_delays(links),
        }
    }

    fn first_delays(&self, links: &[usize]) -> Time {
        let delays = links.iter().map(|link| self.links[*link].config.delay.base.0.first());
        sum(delays.map(|first| first.map_or(Time::ZERO, |(_, delay)| *delay)))
    }

    /// Returns the smallest rate of the links from sender to receiver, at the start of the run, or
    /// the mean of a whole trace or table; `None` if no link has a rate. Use it only for planning:
    /// measures integrate what the links allow.
    pub fn path_rate(&self, path: usize) -> Option<Rate> {
        let rates = self.paths[path].forward.iter();
        rates.filter_map(|link| self.links[*link].nominal_rate).min()
    }

    /// Returns the names of a flow's paths: `fibre+cellular`.
    pub fn flow_path_names(&self, flow: usize) -> String {
        let paths = self.flows[flow].paths.iter();
        paths.map(|path| self.paths[*path].name.as_str()).collect::<Vec<_>>().join("+")
    }
}

/// Returns the shortest time that a packet of `bytes` takes over a link within a span: with the
/// best rate and the best delay in it.
fn least_time(config: &Config, bytes: u64, span: (Time, Time)) -> Time {
    let serialisation = match &config.rate {
        RateModel::Unlimited | RateModel::Trace(_) => Time::ZERO,
        RateModel::Constant(rate) => rate.time_for(bytes),
        RateModel::Steps(steps) => {
            let rate = in_force(steps, span).map(|(_, rate)| *rate).max();
            rate.map_or(Time::ZERO, |rate| rate.time_for(bytes))
        }
    };
    let delay = in_force(&config.delay.base, span).map(|(_, delay)| *delay).min();
    delay.unwrap_or(Time::ZERO).saturating_add(serialisation)
}

/// Returns the steps that apply at some time within a span.
fn in_force<T>(steps: &Steps<T>, (begin, end): (Time, Time)) -> impl Iterator<Item = &(Time, T)> {
    let begun = steps.0.partition_point(|(from, _)| *from <= begin).saturating_sub(1);
    steps.0[begun..].iter().take_while(move |(from, _)| *from <= begin.max(end))
}

fn sum(times: impl Iterator<Item = Time>) -> Time {
    times.fold(Time::ZERO, Time::saturating_add)
}
