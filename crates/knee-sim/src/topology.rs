//! The links that a run needs: those of the scenario, and a pure delay for each
//! path whose return direction is one.

use crate::packet::Routes;
use knee_scenario::{Link, Reverse, Scenario};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Start of a path in the routes, for each direction.
#[derive(Clone, Copy, Debug)]
pub struct PathRoute {
    pub forward: u32,
    pub reverse: u32,
}

/// Links and routes of a scenario. The scenario's links come first.
pub struct Topology {
    pub links: Vec<Link>,
    pub routes: Routes,
    pub paths: Vec<PathRoute>,
    /// The links just before each link on some path, which it may ask to pause.
    pub before: Vec<Vec<usize>>,
}

impl Topology {
    pub fn new(scenario: &Scenario) -> Topology {
        let mut links = scenario.links.clone();
        let mut routes = Routes::default();
        let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
        let paths = (0..scenario.paths.len())
            .map(|index| {
                let reverse = reverse_links(scenario, index, &mut links);
                for row in [&scenario.paths[index].forward, &reverse] {
                    pairs.extend(row.windows(2).map(|pair| (pair[1], pair[0])));
                }
                PathRoute {
                    forward: routes.add(&scenario.paths[index].forward, true),
                    reverse: routes.add(&reverse, false),
                }
            })
            .collect();
        let mut before = vec![Vec::new(); links.len()];
        pairs.into_iter().for_each(|(link, first)| before[link].push(first));
        Topology { links, routes, paths, before }
    }
}

fn reverse_links(scenario: &Scenario, path: usize, links: &mut Vec<Link>) -> Vec<usize> {
    let path = &scenario.paths[path];
    match &path.reverse {
        Reverse::Links(reverse) => reverse.clone(),
        Reverse::Delay(delay) => {
            links.push(Link::reverse_delay(&path.name, *delay));
            vec![links.len() - 1]
        }
    }
}

/// Writes the topology as the header of a packet log.
pub fn describe(out: &mut impl Write, scenario: &Scenario) -> io::Result<()> {
    writeln!(out, "# knee-packet-log/3")?;
    let mut links = scenario.links.clone();
    let reverse: Vec<Vec<usize>> =
        (0..scenario.paths.len()).map(|path| reverse_links(scenario, path, &mut links)).collect();
    for (index, link) in links.iter().enumerate() {
        let name = scenario.links.get(index).map_or("reverse", |link| link.name.as_str());
        crate::log::describe_link(out, index, name, &link.config)?;
    }
    for (index, path) in scenario.paths.iter().enumerate() {
        let (forward, reverse) = (join(&path.forward), join(&reverse[index]));
        let tunnel = path.tunnel.as_ref().map_or_else(String::new, |name| {
            let first = scenario.paths.iter().position(|other| other.tunnel.as_ref() == Some(name));
            format!(",tunnel={}", first.unwrap_or(index))
        });
        writeln!(out, "# path,{index},forward={forward},reverse={reverse}{tunnel}")?;
    }
    Ok(())
}

fn join(links: &[usize]) -> String {
    let links: Vec<String> = links.iter().map(usize::to_string).collect();
    links.join(";")
}
