//! The plan of an experiment. By routes, each part of a group's clients has a route of its own, so
//! that parts can change their controller one by one.

use crate::plan::{best, lead, longest_match, part_length, ports, rules, tables};
use crate::{Applied, Means, PROTOCOL, Placed, Plan, Planned, Policy, PolicyError, What};
use ipnet::IpNet;
use knee_host::Route;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of routes: the host has them in its tables, and each block replaces half of them.
const ROUTES_MAX: usize = 100_000;
/// Minimum number of parts of a group: halves of fewer are rarely alike.
const PARTS_MIN: usize = 20;

impl Plan {
    /// Plans an experiment with the given mechanism on a host with this main table. All clients are
    /// under the control; nobody is held out.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Experiment`], if it needs too many routes.
    pub fn for_experiment(
        means: Means,
        policy: &Policy,
        main: &[Route],
    ) -> Result<Plan, PolicyError> {
        let mut policy = policy.clone();
        let mut others = Vec::new();
        for group in &mut policy.groups {
            group.hold_out = 0.0;
            let control = group.control.clone().unwrap_or_else(|| group.controller.clone());
            others.push(std::mem::replace(&mut group.controller, control));
            (group.initial_window, group.paces, group.ecn) = (None, false, false);
        }
        match means {
            Means::Programs => Ok(Plan::for_programs(&policy, main)),
            Means::Routes => Ok(Plan { others, ..by_parts(&policy, main)? }),
        }
    }

    /// Plans an experiment and refuses one that this host cannot carry out.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Experiment`], if it needs too many routes, or if they cannot cut each group in
    /// halves.
    pub fn for_experiment_checked(
        means: Means,
        policy: &Policy,
        main: &[Route],
    ) -> Result<Plan, PolicyError> {
        let plan = Plan::for_experiment(means, policy, main)?;
        if means == Means::Routes {
            plan.check_halves(policy)?;
        }
        Ok(plan)
    }

    /// Checks that routes can cut each group in halves.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Experiment`], with the first group that they cannot.
    pub fn check_halves(&self, policy: &Policy) -> Result<(), PolicyError> {
        for (index, group) in policy.groups.iter().enumerate() {
            let parts: BTreeSet<IpNet> = self
                .routes
                .iter()
                .filter(|planned| planned.group == index)
                .filter_map(|planned| planned.part)
                .collect();
            if parts.len() < PARTS_MIN {
                return Err(too_few(self, index, &group.name, parts.len()));
            }
        }
        Ok(())
    }

    /// Leaves alone what an actuator has left alone or what the kernel has refused. Routes to more
    /// than a part have no effect beside those to parts.
    pub fn leave(&mut self, applied: &Applied) {
        let left = applied.left.iter().map(|(_, prefix)| *prefix);
        for prefix in left.chain(applied.refused.iter().map(|(prefix, _)| *prefix)) {
            let of = self.places.iter().filter(|placed| {
                placed.prefix.contains(&prefix) && placed.part <= prefix.prefix_len()
            });
            let of: Vec<Placed> = of.cloned().collect();
            let kept = |placed| Placed { prefix, what: What::Kept, ..placed };
            self.places.extend(of.into_iter().map(kept));
        }
    }

    /// Clients that an experiment leaves alone: those whose longest prefix in the plan is kept.
    pub fn left_alone(&self) -> Vec<IpNet> {
        let mut nets = BTreeMap::new();
        for placed in &self.places {
            *nets.entry(placed.prefix).or_insert(false) |= placed.what == What::Kept;
        }
        let mut alone = Vec::new();
        let mut end = None;
        for (net, is_kept) in &nets {
            // Networks are ordered so that those within another follow it.
            if end.is_none_or(|outer: IpNet| !outer.contains(net)) {
                end = Some(*net);
                collect(&nets, *net, *is_kept, &mut alone);
            }
        }
        alone
    }
}

/// Adds what is kept of a network. Those within it take precedence.
fn collect(nets: &BTreeMap<IpNet, bool>, net: IpNet, is_kept: bool, kept: &mut Vec<IpNet>) {
    let next = nets.range(net..).find(|(inner, _)| **inner != net);
    if next.is_none_or(|(inner, _)| !net.contains(inner)) {
        kept.extend(is_kept.then_some(net));
        return;
    }
    for half in net.subnets(net.prefix_len() + 1).into_iter().flatten() {
        let is_kept = nets.get(&half).copied().unwrap_or(is_kept);
        collect(nets, half, is_kept, kept);
    }
}

fn by_parts(policy: &Policy, main: &[Route]) -> Result<Plan, PolicyError> {
    let main = best(main);
    let mut plan = Plan::default();
    let tables = tables(policy);
    for (index, group) in policy.groups.iter().enumerate() {
        for prefix in &group.prefixes {
            let (routes, kept) = lead(&main, *prefix);
            let kept =
                kept.into_iter().map(|(prefix, why)| crate::Kept { group: index, prefix, why });
            plan.kept.extend(kept);
            let length = part_length(group, prefix);
            for port in ports(group) {
                let places = placed(*prefix, &routes).map(|(prefix, what)| Placed {
                    group: index,
                    prefix,
                    port,
                    part: length,
                    what,
                });
                plan.places.extend(places);
            }
            for (to, part, way) in divided(*prefix, length, &routes) {
                for port in ports(group) {
                    let table = tables[&port];
                    let route = match way {
                        Some(way) => way.with_controller(to, table, PROTOCOL, &group.controller),
                        None => Route::throw(to, table, PROTOCOL),
                    };
                    let part = way.map(|_| part);
                    plan.routes.push(Planned { group: index, route, held_out: false, part });
                }
                if plan.routes.len() > ROUTES_MAX {
                    return Err(too_many());
                }
            }
        }
    }
    plan.rules = rules(&plan.routes, &tables);
    Ok(plan)
}

/// Treatment of a prefix and of the routes within it.
fn placed(
    prefix: IpNet,
    routes: &[(IpNet, Option<&Route>)],
) -> impl Iterator<Item = (IpNet, What)> {
    let within = routes
        .iter()
        .map(|(net, way)| (*net, if way.is_some() { What::Steered } else { What::Kept }));
    let is_kept = !routes.iter().any(|(net, way)| *net == prefix && way.is_some());
    is_kept.then_some((prefix, What::Kept)).into_iter().chain(within)
}

/// A destination, the part that it is in, and the route to copy; `None` to defer to the main table.
type Divided<'a> = (IpNet, IpNet, Option<&'a Route>);

/// Destinations for the parts of a prefix, and for the routes of the main table within a part. A
/// part without a way needs none.
fn divided<'a>(
    prefix: IpNet,
    length: u8,
    routes: &[(IpNet, Option<&'a Route>)],
) -> Vec<Divided<'a>> {
    let ways: BTreeMap<IpNet, Option<&Route>> = routes.iter().copied().collect();
    let way = |part: &IpNet| longest_match(&ways, part).copied().flatten();
    let parts = prefix.subnets(length).into_iter().flatten();
    let mut divided: Vec<Divided<'a>> =
        parts.filter_map(|part| way(&part).map(|way| (part, part, Some(way)))).collect();
    let within = ways.iter().filter(|(net, _)| net.prefix_len() > length);
    divided.extend(within.filter_map(|(net, way)| {
        let part = IpNet::new(net.network(), length).ok()?.trunc();
        Some((*net, part, *way))
    }));
    divided
}

fn too_many() -> PolicyError {
    PolicyError::Experiment {
        problem: format!("an experiment by routes needs over {ROUTES_MAX} of them for this policy"),
        advice: "name fewer groups with --group, or ports, or use BPF programs: knee steer plan \
                 says what they lack"
            .to_string(),
    }
}

fn too_few(plan: &Plan, index: usize, group: &str, parts: usize) -> PolicyError {
    let kept = plan.kept.iter().find(|kept| kept.group == index);
    if let Some(kept) = kept.filter(|_| parts == 0) {
        return PolicyError::Experiment {
            problem: format!(
                "no clients of {group} can be steered by routes: {}: {}",
                kept.prefix, kept.why
            ),
            advice: "name other groups with --group, or use BPF programs".to_string(),
        };
    }
    PolicyError::Experiment {
        problem: format!(
            "{group} has {parts} clients or parts that can be steered, too few for halves that are \
             alike"
        ),
        advice: format!(
            "give it prefixes of at least {PARTS_MIN}, such as a /27 (of IPv6 a /59), or name \
             other groups with --group"
        ),
    }
}
