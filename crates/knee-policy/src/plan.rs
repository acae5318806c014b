//! What a policy asks for on a host with these routes.

use crate::place::{Placed, What, places};
use crate::{Means, PROTOCOL, Policy, PolicyGroup};
use ipnet::IpNet;
use knee_host::{Route, Rule};
use knee_steer::Design;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Rules are asked in the order of their priority; 32766 is that of the main table, and
/// what an administrator has added stands before it unless a number says otherwise.
const PRIORITY: u32 = 32_700;
/// The prefixes of a group are cut into at least this many parts, of which some are held
/// out.
const PARTS_MIN: usize = 1024;
/// A part is not smaller than one client.
const CLIENT_BITS: (u8, u8) = (32, 64);

/// What is to be done.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Rules that send connections to the tables.
    pub rules: Vec<Rule>,
    /// Routes of these tables.
    pub routes: Vec<Planned>,
    /// What BPF programs are told, instead of rules and routes.
    pub places: Vec<Placed>,
    /// The controllers of the groups, for BPF programs.
    pub controllers: Vec<String>,
    /// What stays as it is though the policy names it.
    pub kept: Vec<Kept>,
}

/// A route to make.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Index of the group.
    pub group: usize,
    /// The route: with a controller, or one that sends what it fits to the main table.
    pub route: Route,
    /// Whether it holds clients out.
    pub held_out: bool,
}

/// Something that is not steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Index of the group.
    pub group: usize,
    /// The clients.
    pub prefix: IpNet,
    /// Why.
    pub why: Why,
}

/// Why connections are not steered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No route leads there.
    NoRoute,
    /// The route refuses packets.
    Refused,
    /// An administrator chose a controller on the route.
    Chosen(String),
    /// The route has several next hops.
    SeveralWays,
    /// A routing daemon made the route.
    Daemon,
    /// The route asks for more than the destination.
    AsksForMore,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::NoRoute => f.write_str("no route leads there"),
            Why::Refused => f.write_str("the route refuses packets"),
            Why::Chosen(name) => write!(f, "its route has the controller {name} already"),
            Why::SeveralWays => f.write_str("its route has several next hops"),
            Why::Daemon => f.write_str("its route is a routing daemon's"),
            Why::AsksForMore => f.write_str("its route asks for a source or a type of service"),
        }
    }
}

impl Plan {
    /// For a policy on a host whose main table has these routes, by these means.
    pub fn by(means: Means, policy: &Policy, main: &[Route]) -> Plan {
        match means {
            Means::Routes => Plan::of(policy, main),
            Means::Programs => Plan::for_programs(policy, main),
        }
    }

    /// For BPF programs. Only where an administrator has named a controller on a route do
    /// these matter.
    pub fn for_programs(policy: &Policy, main: &[Route]) -> Plan {
        let (places, kept) = places(policy, main);
        let controllers = policy.groups.iter().map(|group| group.controller.clone()).collect();
        Plan { places, controllers, kept, ..Plan::default() }
    }

    /// Whether nothing of the policy can be carried out.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.places.iter().any(|placed| placed.what == What::Steered)
    }

    /// By routes, for a policy on a host whose main table has these routes.
    pub fn of(policy: &Policy, main: &[Route]) -> Plan {
        let main = best(main);
        let mut plan = Plan::default();
        let tables = tables(policy);
        for (index, group) in policy.groups.iter().enumerate() {
            for prefix in &group.prefixes {
                let own = held_out(policy, group, prefix);
                let (mut routes, kept) = lead(&main, *prefix, &own);
                plan.kept.extend(kept.into_iter().map(|(prefix, why)| Kept {
                    group: index,
                    prefix,
                    why,
                }));
                // Nothing to be held out of.
                if !routes.iter().any(|(_, way)| way.is_some()) {
                    continue;
                }
                routes.retain(|(destination, _)| !own.contains(destination));
                let each = routes.iter().map(|(destination, way)| (*destination, *way, false));
                let each = each.chain(own.iter().map(|part| (*part, None, true)));
                for (destination, way, held_out) in each {
                    for port in ports(group) {
                        let table = tables[&port];
                        let route = match way {
                            Some(way) => {
                                way.with_controller(destination, table, PROTOCOL, &group.controller)
                            }
                            None => Route::throw(destination, table, PROTOCOL),
                        };
                        plan.routes.push(Planned { group: index, route, held_out });
                    }
                }
            }
        }
        plan.rules = rules(&plan.routes, &tables);
        plan
    }

    /// How many addresses of a group are steered and how many held out, in parts of 1.
    pub fn share_held_out(&self, policy: &Policy, group: usize) -> f64 {
        let size = |net: &IpNet| 0.5f64.powi(i32::from(net.prefix_len()));
        let weight = |net: &IpNet| if net.addr().is_ipv4() { size(net) } else { size(net) * 1e-9 };
        let all: f64 = policy.groups[group].prefixes.iter().map(weight).sum();
        let placed = self.places.iter().filter(|placed| placed.group == group);
        let first = placed.clone().next().map(|placed| placed.port);
        if let Some(port) = first {
            let held = placed.filter(|placed| placed.what == What::HeldOut && placed.port == port);
            return held.map(|placed| weight(&placed.prefix)).sum::<f64>() / all;
        }
        let table = self.routes.iter().find(|planned| planned.group == group);
        let Some(table) = table.map(|planned| planned.route.table()) else { return 0.0 };
        let held = self.routes.iter().filter(|planned| {
            planned.group == group && planned.held_out && planned.route.table() == table
        });
        held.map(|planned| weight(&planned.route.destination())).sum::<f64>() / all
    }
}

/// For each destination the route that counts: that with the least metric.
pub(crate) fn best(routes: &[Route]) -> BTreeMap<IpNet, &Route> {
    let mut best: BTreeMap<IpNet, &Route> = BTreeMap::new();
    for route in routes {
        let kept = best.entry(route.destination()).or_insert(route);
        if route.metric() < kept.metric() {
            *kept = route;
        }
    }
    best
}

/// The ports of a group; none: all.
fn ports(group: &PolicyGroup) -> Vec<Option<u16>> {
    match group.ports.as_slice() {
        [] => vec![None],
        ports => ports.iter().copied().map(Some).collect(),
    }
}

/// A table for each port.
fn tables(policy: &Policy) -> BTreeMap<Option<u16>, u32> {
    let all: std::collections::BTreeSet<_> = policy.groups.iter().flat_map(ports).collect();
    all.into_iter().zip(policy.table..).collect()
}

/// A rule for each table and family that has a route.
fn rules(routes: &[Planned], tables: &BTreeMap<Option<u16>, u32>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (port, table) in tables {
        for ipv6 in [false, true] {
            let fits = |planned: &Planned| {
                planned.route.table() == *table
                    && planned.route.destination().addr().is_ipv6() == ipv6
            };
            if routes.iter().any(fits) {
                rules.push(Rule {
                    ipv6,
                    priority: PRIORITY,
                    table: *table,
                    protocol: PROTOCOL,
                    local_port: *port,
                });
            }
        }
    }
    rules
}

/// Where the main table leads within a prefix: a way for each destination, none where
/// the main table is to be asked; and what is not steered.
type Led<'a> = (Vec<(IpNet, Option<&'a Route>)>, Vec<(IpNet, Why)>);

fn lead<'a>(main: &BTreeMap<IpNet, &'a Route>, prefix: IpNet, held_out: &[IpNet]) -> Led<'a> {
    let mut routes = Vec::new();
    let mut kept = Vec::new();
    let around = (0..=prefix.prefix_len()).rev().find_map(|length| {
        let net = IpNet::new(prefix.network(), length).ok()?.trunc();
        main.get(&net).copied()
    });
    match around.map_or(Err(Why::NoRoute), usable) {
        Ok(route) => routes.push((prefix, Some(route))),
        Err(why) => kept.push((prefix, why)),
    }
    // Routes within the prefix follow it in the order of networks.
    let within = main.range(prefix..).skip_while(|(net, _)| **net == prefix);
    for (net, route) in within.take_while(|(net, _)| prefix.contains(*net)) {
        if held_out.iter().any(|part| part.contains(net)) {
            continue;
        }
        match usable(route) {
            Ok(route) => routes.push((*net, Some(route))),
            Err(why) => {
                routes.push((*net, None));
                kept.push((*net, why));
            }
        }
    }
    (routes, kept)
}

/// A route that may be copied with a controller.
fn usable(route: &Route) -> Result<&Route, Why> {
    if !route.is_unicast() {
        Err(Why::Refused)
    } else if let Some(name) = route.controller() {
        Err(Why::Chosen(name.to_string()))
    } else if route.has_several_ways() {
        Err(Why::SeveralWays)
    } else if route.is_of_a_daemon() {
        Err(Why::Daemon)
    } else if route.asks_for_more() {
        Err(Why::AsksForMore)
    } else {
        Ok(route)
    }
}

/// The parts of one of a group's prefixes that are held out.
pub(crate) fn held_out(policy: &Policy, group: &PolicyGroup, prefix: &IpNet) -> Vec<IpNet> {
    if group.hold_out == 0.0 {
        return Vec::new();
    }
    let design = Design::new(policy.seed);
    let parts = prefix.subnets(part_length(group, prefix)).into_iter().flatten();
    let drawn = |part: &IpNet| design.is_held_out(&group.name, &bytes(part), group.hold_out);
    parts.filter(drawn).collect()
}

/// Length of the parts of one of a group's prefixes that are drawn for.
pub(crate) fn part_length(group: &PolicyGroup, prefix: &IpNet) -> u8 {
    let bits = PARTS_MIN.div_ceil(group.prefixes.len()).next_power_of_two().ilog2() as u8;
    let most = if prefix.addr().is_ipv4() { CLIENT_BITS.0 } else { CLIENT_BITS.1 };
    (prefix.prefix_len() + bits).min(most).max(prefix.prefix_len())
}

/// What is drawn for: the network's address and its length.
fn bytes(net: &IpNet) -> Vec<u8> {
    let mut bytes = match net.network() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes.push(net.prefix_len());
    bytes
}
