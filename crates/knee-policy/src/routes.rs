//! Actuator that uses a separate routing table.

use crate::actuator::{Actuator, Applied, PROTOCOL, Renewed};
use crate::host::{is_as_made, key, made, tables};
use crate::{Choice, Entry, Journal, Plan, PolicyError};
use knee_host::{Route, Routes, Rule};
use std::collections::BTreeSet;

/// Steers with routes in the network namespace of the thread that opened it.
pub struct RouteActuator {
    routes: Routes,
}

impl RouteActuator {
    /// Opens the actuator without changing anything.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn open() -> Result<RouteActuator, PolicyError> {
        Ok(RouteActuator { routes: Routes::open()? })
    }
}

impl Actuator for RouteActuator {
    /// Applies routes first, then the rules that lead to them. Adds missing routes and removes
    /// those of the journal that the plan no longer has; leaves alone what somebody has changed.
    fn apply(&mut self, plan: &Plan, journal: &mut Journal) -> Result<Applied, PolicyError> {
        let recorded = journal.recorded()?;
        let made = made(&recorded);
        let used: BTreeSet<u32> = tables(&recorded).collect();
        let mut there =
            crate::host::routes_of(&mut self.routes, plan.rules.iter().map(|rule| rule.table))?;
        let foreign = |route: &&Route| route.protocol() != PROTOCOL;
        let mut unused = there.values().filter(|route| !used.contains(&route.table()));
        if let Some(route) = unused.find(foreign) {
            return Err(PolicyError::TableInUse {
                table: route.table(),
                destination: route.destination(),
            });
        }
        let mut applied = Applied::default();
        let (mut missing, mut outdated) = (Vec::new(), Vec::new());
        for planned in &plan.routes {
            let route = &planned.route;
            match there.remove(&key(route)) {
                Some(other) if same(&other, route) => {}
                Some(other) if !is_as_made(&other, &made) => applied.left.push(key(&other)),
                other => {
                    missing.push(route);
                    outdated.extend(other);
                }
            }
        }
        let (unasked, foreign): (Vec<Route>, Vec<Route>) =
            there.into_values().partition(|route| is_as_made(route, &made));
        applied.left.extend(foreign.iter().map(key));
        let known = self.routes.rules()?;
        let rules: Vec<&Rule> = plan.rules.iter().filter(|rule| !known.contains(rule)).collect();
        let entries: Vec<Entry> = missing.iter().map(entry).collect();
        journal.write(entries.iter().chain(&rules.iter().map(rule_entry).collect::<Vec<_>>()))?;

        for route in outdated.iter().chain(&unasked) {
            applied.removed += usize::from(self.routes.remove(route)?);
        }
        let gone = |route: &Route| Entry::Gone { table: route.table(), to: route.destination() };
        journal.write(&unasked.iter().map(gone).collect::<Vec<_>>())?;
        for route in missing {
            match self.routes.add(route) {
                Ok(()) => applied.added += 1,
                Err(error) => applied.refused.push((route.destination(), error.to_string())),
            }
        }
        for rule in rules {
            self.routes.add_rule(rule)?;
        }
        Ok(applied)
    }

    fn choose(&mut self, _: Vec<Choice>) -> Result<(), PolicyError> {
        Err(PolicyError::Programs {
            problem: "an experiment needs BPF programs".to_string(),
            advice: "run knee steer plan to see what this host lacks".to_string(),
        })
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        Ok(Renewed::default())
    }

    fn stop(&mut self) {}
}

/// Whether two routes have the same next hop and controller.
fn same(one: &Route, other: &Route) -> bool {
    if one.is_throw() || other.is_throw() {
        return one.is_throw() && other.is_throw();
    }
    one.controller() == other.controller() && one.way() == other.way()
}

fn entry(route: &&Route) -> Entry {
    Entry::Route {
        table: route.table(),
        to: route.destination(),
        controller: route.controller().map(str::to_string),
    }
}

fn rule_entry(rule: &&Rule) -> Entry {
    Entry::Rule { ipv6: rule.ipv6, table: rule.table, port: rule.local_port }
}
