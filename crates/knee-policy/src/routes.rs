//! Actuator that uses a separate routing table.

use crate::actuator::{Actuator, Applied, PROTOCOL, Renewed};
use crate::host::{is_as_made, key, made, tables};
use crate::{Choice, Entry, Journal, Plan, Planned, PolicyError};
use ipnet::IpNet;
use knee_host::{HostError, Route, Routes, Rule};
use knee_steer::is_second;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Steers with routes in the network namespace of the thread that opened it.
pub struct RouteActuator {
    routes: Routes,
    /// Routes of an experiment, as they were made last.
    drawn: BTreeMap<(u32, IpNet), Planned>,
    /// Controllers of the current block.
    choices: Vec<Choice>,
}

impl RouteActuator {
    /// Opens the actuator without changing anything.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn open() -> Result<RouteActuator, PolicyError> {
        let routes = Routes::open()?;
        Ok(RouteActuator { routes, drawn: BTreeMap::new(), choices: Vec::new() })
    }

    /// Adds a route in place of an outdated one.
    fn put(&mut self, route: &Route, outdated: Option<&Route>) -> Result<(), HostError> {
        if let Some(outdated) = outdated {
            // If possible without a moment in which there is none.
            let is_possible = !outdated.is_throw() && !route.is_throw();
            if is_possible && matches!(self.routes.replace(route), Ok(true)) {
                return Ok(());
            }
            self.routes.remove(outdated)?;
        }
        self.routes.add(route)
    }
}

impl Actuator for RouteActuator {
    /// Applies routes first, then the rules that lead to them. Adds missing routes and removes
    /// those of the journal that the plan no longer has; leaves alone what somebody has changed.
    fn apply(&mut self, plan: &Plan, journal: &mut Journal) -> Result<Applied, PolicyError> {
        let recorded = journal.recorded()?;
        let made = made(&recorded);
        let used: BTreeSet<u32> = tables(&recorded).collect();
        // Also those in which nothing is left to steer.
        let all = plan.rules.iter().map(|rule| rule.table).chain(used.iter().copied());
        let mut there = crate::host::routes_of(&mut self.routes, all)?;
        let foreign = |route: &&Route| route.protocol() != PROTOCOL;
        let mut unused = there.values().filter(|route| !used.contains(&route.table()));
        if let Some(route) = unused.find(foreign) {
            return Err(PolicyError::TableInUse {
                table: route.table(),
                destination: route.destination(),
            });
        }
        let mut applied = Applied::default();
        let mut missing = Vec::new();
        let former = std::mem::take(&mut self.drawn);
        for planned in &plan.routes {
            let route = chosen(planned, &self.choices);
            if planned.part.is_some() {
                let route = route.clone().into_owned();
                self.drawn.insert(key(&route), Planned { route, ..planned.clone() });
            }
            let is_changed = |other: &Route| {
                !is_as_made(other, &made)
                    || former.get(&key(other)).is_some_and(|own| !same(other, &own.route))
            };
            match there.remove(&key(&route)) {
                // Somebody else's would not change with the next block.
                Some(other)
                    if same(&other, &route)
                        && (planned.part.is_none() || other.protocol() == PROTOCOL) => {}
                Some(other) if is_changed(&other) => applied.left.push(key(&other)),
                outdated => missing.push((planned, route, outdated)),
            }
        }
        let (unasked, foreign): (Vec<Route>, Vec<Route>) =
            there.into_values().partition(|route| is_as_made(route, &made));
        applied.left.extend(foreign.iter().map(key));
        let known = self.routes.rules()?;
        let rules: Vec<&Rule> = plan.rules.iter().filter(|rule| !known.contains(rule)).collect();
        let entries = missing.iter().flat_map(|(planned, ..)| {
            // From block to block the route has either controller.
            let other = planned.part.and_then(|_| plan.others.get(planned.group));
            let route = &planned.route;
            let names = [Some(route.controller()), other.map(|name| Some(name.as_str()))];
            // The journal need not say again what was made and has gone since, as with its device.
            let known = made.get(&key(route));
            let names = names.into_iter().flatten();
            let new = names.filter(move |name| known.is_none_or(|known| !known.contains(name)));
            new.map(|name| entry(route, name))
        });
        let entries: Vec<Entry> = entries.collect();
        journal.write(entries.iter().chain(&rules.iter().map(rule_entry).collect::<Vec<_>>()))?;

        for route in &unasked {
            applied.removed += usize::from(self.routes.remove(route)?);
        }
        let gone = |route: &Route| Entry::Gone { table: route.table(), to: route.destination() };
        journal.write(&unasked.iter().map(gone).collect::<Vec<_>>())?;
        for (_, route, outdated) in missing {
            applied.removed += usize::from(outdated.is_some());
            match self.put(&route, outdated.as_ref()) {
                Ok(()) => applied.added += 1,
                Err(error) => applied.refused.push((route.destination(), error.to_string())),
            }
        }
        for rule in rules {
            self.routes.add_rule(rule)?;
        }
        Ok(applied)
    }

    /// Replaces the routes whose controller changes; leaves alone what somebody has changed.
    fn choose(&mut self, choices: Vec<Choice>) -> Result<(), PolicyError> {
        self.choices = choices;
        let next = |planned: &Planned| {
            let route = chosen(planned, &self.choices);
            let is_new = route.controller() != planned.route.controller();
            is_new.then(|| Planned { route: route.into_owned(), ..planned.clone() })
        };
        let changed: Vec<Planned> = self.drawn.values().filter_map(next).collect();
        let tables = changed.iter().map(|next| next.route.table());
        let there = crate::host::routes_of(&mut self.routes, tables)?;
        let (mut replaced, mut refused) = (0, None);
        for next in changed {
            let at = key(&next.route);
            let Some(former) = self.drawn.get_mut(&at) else { continue };
            let is_ours =
                |route: &Route| route.protocol() == PROTOCOL && same(route, &former.route);
            if !there.get(&at).is_some_and(is_ours) {
                continue;
            }
            match self.routes.replace(&next.route) {
                Ok(true) => {
                    *former = next;
                    replaced += 1;
                }
                Ok(false) => {}
                Err(error) => refused = Some(error),
            }
        }
        // The next [`Actuator::apply`] tries single ones again.
        match refused {
            Some(error) if replaced == 0 => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        Ok(Renewed::default())
    }

    fn stop(&mut self) {}
}

/// Whether two routes have the same next hop and controller, which programs may change alike.
fn same(one: &Route, other: &Route) -> bool {
    if one.is_throw() || other.is_throw() {
        return one.is_throw() && other.is_throw();
    }
    one.controller() == other.controller()
        && one.is_locked() == other.is_locked()
        && one.leads_as(other)
}

/// The route with the controller that is chosen for its part.
fn chosen<'a>(planned: &'a Planned, choices: &[Choice]) -> Cow<'a, Route> {
    let route = &planned.route;
    let (Some(part), Some(choice)) = (planned.part, choices.get(planned.group)) else {
        return Cow::Borrowed(route);
    };
    let arm = &choice.arms[usize::from(is_second(&choice.key, part, choice.share))];
    let name = &arm.controller;
    if route.controller() == Some(name.as_str()) {
        return Cow::Borrowed(route);
    }
    Cow::Owned(route.with_controller(route.destination(), route.table(), PROTOCOL, name))
}

fn entry(route: &Route, controller: Option<&str>) -> Entry {
    let controller = controller.map(str::to_string);
    Entry::Route { table: route.table(), to: route.destination(), controller }
}

fn rule_entry(rule: &&Rule) -> Entry {
    Entry::Rule { ipv6: rule.ipv6, table: rule.table, port: rule.local_port }
}
