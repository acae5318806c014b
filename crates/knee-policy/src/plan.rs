//! The changes that a policy requires on a host with given routes.

use crate::place::{Placed, What, places};
use crate::{Means, PROTOCOL, Policy, PolicyGroup};
use ipnet::IpNet;
use knee_host::{Arm, Route, Rule};
use knee_steer::Design;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Priority of the rules, lower ones first. The main table has 32766; rules of an administrator
/// precede it unless numbered otherwise.
const PRIORITY: u32 = 32_700;
/// Minimum number of parts into which a group's prefixes are divided for the hold-out.
const PARTS_MIN: usize = 1024;
/// Longest prefix of a part, that of one client, for IPv4 and IPv6.
const CLIENT_BITS: (u8, u8) = (32, 64);

/// Required changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Rules that send connections to the tables.
    pub rules: Vec<Rule>,
    /// Routes of these tables.
    pub routes: Vec<Planned>,
    /// Prefixes for BPF programs, instead of rules and routes; in an experiment by routes, the
    /// prefixes of which those are parts.
    pub places: Vec<Placed>,
    /// What the groups get, for BPF programs.
    pub arms: Vec<Arm>,
    /// The other controllers of the groups, which the routes of an experiment may get.
    pub others: Vec<String>,
    /// What the policy names but leaves alone.
    pub kept: Vec<Kept>,
}

/// A planned route.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// Index of the group.
    pub group: usize,
    /// The route: with a controller, or a throw route that defers to the main table.
    pub route: Route,
    /// Whether it holds clients out.
    pub held_out: bool,
    /// The part of the group's clients that it is for, in an experiment: its controller is drawn.
    pub part: Option<IpNet>,
}

/// Clients that are left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Index of the group.
    pub group: usize,
    /// The clients.
    pub prefix: IpNet,
    /// The reason.
    pub why: Why,
}

/// Why connections are left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No route leads there.
    NoRoute,
    /// The route rejects packets.
    Refused,
    /// An administrator chose a controller on the route.
    Chosen(String),
    /// The route has several next hops.
    SeveralWays,
    /// A routing daemon made the route.
    Daemon,
    /// The route matches on more than the destination.
    AsksForMore,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::NoRoute => f.write_str("there is no route to it"),
            Why::Refused => f.write_str("the route refuses packets"),
            Why::Chosen(name) => write!(f, "its route already has the controller {name}"),
            Why::SeveralWays => f.write_str("its route has several next hops"),
            Why::Daemon => f.write_str("its route belongs to a routing daemon"),
            Why::AsksForMore => {
                f.write_str("its route depends on the source or the type of service")
            }
        }
    }
}

impl Plan {
    /// Plans a policy with the given mechanism on a host with this main table.
    pub fn by(means: Means, policy: &Policy, main: &[Route]) -> Plan {
        match means {
            Means::Routes => Plan::of(policy, main),
            Means::Programs => Plan::for_programs(policy, main),
        }
    }

    /// Plans for BPF programs, for which only routes with an administrator's controller matter.
    pub fn for_programs(policy: &Policy, main: &[Route]) -> Plan {
        let (places, kept) = places(policy, main);
        let arms = policy.groups.iter().map(PolicyGroup::arm).collect();
        Plan { places, arms, kept, ..Plan::default() }
    }

    /// Whether the plan steers nothing.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.places.iter().any(|placed| placed.what == What::Steered)
    }

    /// Plans routes on a host with this main table.
    pub fn of(policy: &Policy, main: &[Route]) -> Plan {
        let main = best(main);
        let mut plan = Plan::default();
        let tables = tables(policy);
        for (index, group) in policy.groups.iter().enumerate() {
            for prefix in &group.prefixes {
                let (routes, kept) = lead(&main, *prefix);
                plan.kept.extend(kept.into_iter().map(|(prefix, why)| Kept {
                    group: index,
                    prefix,
                    why,
                }));
                // Nothing is steered, so there is nothing to hold out.
                if !routes.iter().any(|(_, way)| way.is_some()) {
                    continue;
                }
                let ways: BTreeMap<IpNet, Option<&Route>> = routes.iter().copied().collect();
                let within = routes.iter().map(|(net, way)| (*net, way.is_some()));
                let parts = held_out(policy, group, prefix);
                for (destination, what) in hold_out(within, &parts) {
                    let way = ways.get(&destination).copied().flatten();
                    let way = way.filter(|_| what == What::Steered);
                    for port in ports(group) {
                        let table = tables[&port];
                        let route = match way {
                            Some(way) => {
                                way.with_controller(destination, table, PROTOCOL, &group.controller)
                            }
                            None => Route::throw(destination, table, PROTOCOL),
                        };
                        let held_out = what == What::HeldOut;
                        plan.routes.push(Planned { group: index, route, held_out, part: None });
                    }
                }
            }
        }
        plan.rules = rules(&plan.routes, &tables);
        plan
    }

    /// Fraction of the addresses that a group would steer that are held out, 0 to 1.
    pub fn share_held_out(&self, policy: &Policy, group: usize) -> f64 {
        let port = ports(&policy.groups[group])[0];
        let table = tables(policy)[&port];
        let placed = self.places.iter().filter(|one| one.group == group && one.port == port);
        let placed = placed.map(|placed| (placed.prefix, placed.what));
        let routes = self.routes.iter().filter(|one| one.group == group);
        let routes = routes.filter(|one| one.route.table() == table).map(|planned| {
            let what = match (planned.held_out, planned.route.is_throw()) {
                (true, _) => What::HeldOut,
                (false, true) => What::Kept,
                (false, false) => What::Steered,
            };
            (planned.route.destination(), what)
        });
        let all: BTreeMap<IpNet, What> = placed.chain(routes).collect();
        let size = |net: &IpNet| 0.5f64.powi(i32::from(net.prefix_len()));
        let weight = |net: &IpNet| if net.addr().is_ipv4() { size(net) } else { size(net) * 1e-9 };
        let (mut held, mut steered) = (0.0, 0.0);
        for (net, what) in &all {
            // What is within another prefix is not of that one.
            let outer = net.supernet().and_then(|outer| longest_match(&all, &outer)).copied();
            for (what, sign) in [(Some(*what), 1.0), (outer, -1.0)] {
                match what {
                    Some(What::HeldOut) => held += sign * weight(net),
                    Some(What::Steered) => steered += sign * weight(net),
                    Some(What::Kept) | None => {}
                }
            }
        }
        if held == 0.0 { 0.0 } else { held / (held + steered) }
    }
}

/// The effective route of each destination: the one with the lowest metric.
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

/// Ports of a group; `None`: all.
pub(crate) fn ports(group: &PolicyGroup) -> Vec<Option<u16>> {
    match group.ports.as_slice() {
        [] => vec![None],
        ports => ports.iter().copied().map(Some).collect(),
    }
}

/// Assigns a table to each port.
pub(crate) fn tables(policy: &Policy) -> BTreeMap<Option<u16>, u32> {
    let all: std::collections::BTreeSet<_> = policy.groups.iter().flat_map(ports).collect();
    all.into_iter().zip(policy.table..).collect()
}

/// One rule for each table and family with a route.
pub(crate) fn rules(routes: &[Planned], tables: &BTreeMap<Option<u16>, u32>) -> Vec<Rule> {
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

/// Routes of the main table within a prefix: the route to copy for each destination, `None` to
/// defer to the main table; and what is left alone.
type RoutesWithin<'a> = (Vec<(IpNet, Option<&'a Route>)>, Vec<(IpNet, Why)>);

pub(crate) fn lead<'a>(main: &BTreeMap<IpNet, &'a Route>, prefix: IpNet) -> RoutesWithin<'a> {
    let mut routes = Vec::new();
    let mut kept = Vec::new();
    match longest_match(main, &prefix).map_or(Err(Why::NoRoute), |route| usable(route)) {
        Ok(route) => routes.push((prefix, Some(route))),
        Err(why) => kept.push((prefix, why)),
    }
    // Networks are ordered so that those within the prefix follow it.
    let within = main.range(prefix..).skip_while(|(net, _)| **net == prefix);
    for (net, route) in within.take_while(|(net, _)| prefix.contains(*net)) {
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

/// What belongs to the longest prefix that contains this one or is the same.
pub(crate) fn longest_match<'m, T>(all: &'m BTreeMap<IpNet, T>, net: &IpNet) -> Option<&'m T> {
    (0..=net.prefix_len()).rev().find_map(|length| {
        let outer = IpNet::new(net.network(), length).ok()?.trunc();
        all.get(&outer)
    })
}

/// Treatment of the prefixes within a policy's prefix, of which some are steered (longer ones take
/// precedence) and others are not Knee's to change, once these parts are held out. What is not
/// steered is not held out either: held-out clients are those that would be steered but for the draw.
pub(crate) fn hold_out(
    within: impl IntoIterator<Item = (IpNet, bool)>,
    parts: &[IpNet],
) -> BTreeMap<IpNet, What> {
    let all: BTreeMap<IpNet, bool> = within.into_iter().collect();
    let drawn: BTreeMap<IpNet, ()> = parts.iter().map(|part| (*part, ())).collect();
    let treatment = |(net, is_steered): (&IpNet, &bool)| {
        let outer = || net.supernet().and_then(|outer| longest_match(&all, &outer));
        match (is_steered, longest_match(&drawn, net)) {
            (false, _) => Some((*net, What::Kept)),
            (true, None) => Some((*net, What::Steered)),
            // What is around it is either held out as well or wider than the part, which is named.
            (true, Some(())) if outer() == Some(&true) => None,
            (true, Some(())) => Some((*net, What::HeldOut)),
        }
    };
    // Of a part that is not steered as a whole, only what is steered within it is held out.
    let whole = drawn.keys().filter(|part| longest_match(&all, part) == Some(&true));
    let whole = whole.map(|part| (*part, What::HeldOut));
    all.iter().filter_map(treatment).chain(whole).collect()
}

/// Checks that a route may be copied with a controller.
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

/// The held-out parts of a prefix.
pub(crate) fn held_out(policy: &Policy, group: &PolicyGroup, prefix: &IpNet) -> Vec<IpNet> {
    if group.hold_out == 0.0 {
        return Vec::new();
    }
    let design = Design::new(policy.seed);
    let parts = prefix.subnets(part_length(group, prefix)).into_iter().flatten();
    let drawn = |part: &IpNet| design.is_held_out(&group.name, &bytes(part), group.hold_out);
    parts.filter(drawn).collect()
}

/// Length of the parts into which a prefix is divided.
pub(crate) fn part_length(group: &PolicyGroup, prefix: &IpNet) -> u8 {
    let bits = PARTS_MIN.div_ceil(group.prefixes.len()).next_power_of_two().ilog2() as u8;
    let most = if prefix.addr().is_ipv4() { CLIENT_BITS.0 } else { CLIENT_BITS.1 };
    (prefix.prefix_len() + bits).min(most).max(prefix.prefix_len())
}

/// Identity of a part in the random draw: network address and length.
fn bytes(net: &IpNet) -> Vec<u8> {
    let mut bytes = match net.network() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes.push(net.prefix_len());
    bytes
}
