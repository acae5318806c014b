//! What paths are like when their queues are empty.

use crate::check::nominal_rate;
use crate::model::{Path, Reverse, Scenario};
use knee_link::{Config, RateModel, Steps};
use knee_units::{Rate, Time};

impl Scenario {
    /// Round-trip time over empty queues: of a full segment of the flow with
    /// the smallest on the path (of the default's, 1500 bytes, if there is
    /// none) and its ACK, with the time that each link with a constant or
    /// stepped rate needs to send them. A trace adds none. Where rates or
    /// delays change, the best that the run holds, so that no RTT is below it.
    pub fn base_rtt(&self, path: usize) -> Time {
        let flows = self.flows.iter().filter(|flow| flow.paths.contains(&path));
        let transports = flows.map(|flow| flow.transport);
        let smallest = transports.min_by_key(|one| (one.mss + one.header, one.header));
        self.round_trip(path, &smallest.unwrap_or_default(), (Time::ZERO, self.duration))
    }

    /// The same for the segments of one flow, over the fastest of its paths,
    /// while the flow may last.
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

    /// Propagation delay from sender to receiver at the start of the run.
    pub fn one_way_delay(&self, path: usize) -> Time {
        self.first_delays(&self.paths[path].forward)
    }

    /// Propagation delay from receiver to sender at the start of the run.
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

    /// The smallest rate of the links from sender to receiver: at the start
    /// of the run, or the mean of a whole trace; none when no link has a
    /// rate. A size to plan with: measures integrate what the links allow.
    pub fn path_rate(&self, path: usize) -> Option<Rate> {
        let rates = self.paths[path].forward.iter();
        rates.filter_map(|link| nominal_rate(&self.links[*link].config.rate)).min()
    }

    /// Names of a flow's paths: `fibre+cellular`.
    pub fn flow_path_names(&self, flow: usize) -> String {
        let paths = self.flows[flow].paths.iter();
        paths.map(|path| self.paths[*path].name.as_str()).collect::<Vec<_>>().join("+")
    }
}

/// The least time that a packet of so many bytes takes over a link within a
/// span of time: its rate and its delay each at their best.
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

/// The steps whose values hold at some time of a span.
fn in_force<T>(steps: &Steps<T>, (begin, end): (Time, Time)) -> impl Iterator<Item = &(Time, T)> {
    let begun = steps.0.partition_point(|(from, _)| *from <= begin).saturating_sub(1);
    steps.0[begun..].iter().take_while(move |(from, _)| *from <= begin.max(end))
}

fn sum(times: impl Iterator<Item = Time>) -> Time {
    times.fold(Time::ZERO, Time::saturating_add)
}
