//! The links that a run needs: those of the scenario, and a pure delay for
//! each path whose way back is one.

use crate::packet::Routes;
use knee_link::{Aqm, Buffer, Config, RateModel};
use knee_scenario::{Reverse, Scenario};
use std::io::{self, Write};

/// Where a path begins in the routes.
#[derive(Clone, Copy, Debug)]
pub struct PathRoute {
    pub forward: u32,
    pub reverse: u32,
}

/// Links and routes of a scenario. The scenario's links come first.
pub struct Topology {
    pub links: Vec<Config>,
    pub routes: Routes,
    pub paths: Vec<PathRoute>,
}

impl Topology {
    pub fn new(scenario: &Scenario) -> Topology {
        let mut links: Vec<Config> =
            scenario.links.iter().map(|link| link.config.clone()).collect();
        let mut routes = Routes::default();
        let paths = (0..scenario.paths.len())
            .map(|index| {
                let reverse = reverse_links(scenario, index, &mut links);
                PathRoute {
                    forward: routes.add(&scenario.paths[index].forward, true),
                    reverse: routes.add(&reverse, false),
                }
            })
            .collect();
        Topology { links, routes, paths }
    }
}

fn reverse_links(scenario: &Scenario, path: usize, links: &mut Vec<Config>) -> Vec<usize> {
    match &scenario.paths[path].reverse {
        Reverse::Links(reverse) => reverse.clone(),
        Reverse::Delay(delay) => {
            links.push(Config::pure_delay(*delay));
            vec![links.len() - 1]
        }
    }
}

/// Writes the topology as the head of a packet log.
pub fn describe(out: &mut impl Write, scenario: &Scenario) -> io::Result<()> {
    writeln!(out, "# knee-packet-log/1")?;
    let mut links: Vec<Config> = scenario.links.iter().map(|link| link.config.clone()).collect();
    let reverse: Vec<Vec<usize>> =
        (0..scenario.paths.len()).map(|path| reverse_links(scenario, path, &mut links)).collect();
    for (index, config) in links.iter().enumerate() {
        let name = scenario.links.get(index).map_or("reverse", |link| link.name.as_str());
        describe_link(out, index, name, config)?;
    }
    for (index, path) in scenario.paths.iter().enumerate() {
        let (forward, reverse) = (join(&path.forward), join(&reverse[index]));
        writeln!(out, "# path,{index},forward={forward},reverse={reverse}")?;
    }
    Ok(())
}

fn describe_link(
    out: &mut impl Write,
    index: usize,
    name: &str,
    config: &Config,
) -> io::Result<()> {
    let rate = match config.rate {
        RateModel::Constant(rate) => rate.as_bits_per_second().to_string(),
        _ => String::new(),
    };
    let delays = config.delay.base.0.iter().map(|(_, delay)| delay.as_nanos());
    let jitter = config.delay.jitter.map_or(0, |jitter| jitter.amount.as_nanos());
    let delay = delays.clone().min().unwrap_or(0);
    let delay_max = delays.max().unwrap_or(0) + jitter;
    let separates_flows = matches!(config.aqm, Aqm::FqCodel(_));
    let reorders = config.delay.jitter.is_some_and(|jitter| jitter.reorder);
    let fifo = u8::from(!reorders && !separates_flows);
    // With a variable delay a checker cannot tell departure from arrival.
    let fixed_delay = delay == delay_max;
    let buffer = match config.buffer {
        Buffer::Bytes(bytes) if fixed_delay => bytes.to_string(),
        _ => String::new(),
    };
    let name = name.replace([',', '\n'], " ");
    writeln!(
        out,
        "# link,{index},{name},rate_bps={rate},delay_ns={delay},{}fifo={fifo},buffer_bytes={buffer}",
        if fixed_delay { String::new() } else { format!("delay_max_ns={delay_max},") }
    )
}

fn join(links: &[usize]) -> String {
    let links: Vec<String> = links.iter().map(usize::to_string).collect();
    links.join(";")
}
