//! The state of a policy on this host, and its reversal, independent of process and mechanism.

use crate::actuator::{PROTOCOL, Returned, State};
use crate::{Entry, PolicyError, Recorded};
use ipnet::IpNet;
use knee_host::{Marked, Route, Routes, Rule, TABLE_MAIN, marked, return_marked, unpin_marks};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Routes, rules and connections of the network namespace of the thread that opened it.
pub struct Host {
    routes: Routes,
}

impl Host {
    /// Opens the host without changing anything.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn open() -> Result<Host, PolicyError> {
        Ok(Host { routes: Routes::open()? })
    }

    /// The routes of the main table.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub fn main_table(&mut self) -> Result<Vec<Route>, PolicyError> {
        Ok(self.routes.table(TABLE_MAIN)?)
    }

    /// Reverts a journal's changes: rules, then unchanged routes, then connections that still have
    /// the given controller. Repeating it is harmless.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub fn roll_back(&mut self, recorded: &Recorded) -> Result<Returned, PolicyError> {
        let mut returned = Returned::default();
        for rule in self.own_rules(recorded)? {
            returned.rules += usize::from(self.routes.remove_rule(&rule)?);
        }
        let made = made(recorded);
        for route in routes_of(&mut self.routes, tables(recorded))?.values() {
            if is_as_made(route, &made) {
                returned.routes += usize::from(self.routes.remove(route)?);
            } else if is_unlisted(route, &made) {
                returned.unlisted.push(key(route));
            } else {
                returned.left.push(key(route));
            }
        }
        for folder in folders(recorded) {
            let connections = return_marked(folder)?;
            returned.connections += connections.count();
            returned.chosen += connections.changed;
            // Marks remain on the connections whose previous controller was refused.
            returned.stuck += marked(folder)?.count();
            unpin_marks(folder)?;
        }
        Ok(returned)
    }

    /// Current state of a journal's entries.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub fn state(&mut self, recorded: &Recorded) -> Result<State, PolicyError> {
        let mut state = State { rules: self.own_rules(recorded)?.len(), ..State::default() };
        let made = made(recorded);
        for route in routes_of(&mut self.routes, tables(recorded))?.values() {
            if is_unlisted(route, &made) {
                state.unlisted.push(key(route));
            } else if !is_as_made(route, &made) {
                state.foreign.push(key(route));
            } else if route.is_throw() {
                state.throwing += 1;
            } else {
                state.steering += 1;
            }
        }
        let rules: BTreeSet<_> = rules(recorded).collect();
        let wanted = made.len() + rules.len();
        state.missing = wanted.saturating_sub(state.steering + state.throwing + state.rules);
        for folder in folders(recorded) {
            let Marked { steered, changed } = marked(folder)?;
            state.connections.changed += changed;
            for (names, count) in steered {
                *state.connections.steered.entry(names).or_default() += count;
            }
        }
        Ok(state)
    }

    /// Rules with Knee's mark, by any process.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub fn marked_rules(&mut self) -> Result<Vec<Rule>, PolicyError> {
        let mut rules = self.routes.rules()?;
        rules.retain(|rule| rule.protocol == PROTOCOL);
        Ok(rules)
    }

    fn own_rules(&mut self, recorded: &Recorded) -> Result<Vec<Rule>, PolicyError> {
        let known: BTreeSet<_> = rules(recorded).collect();
        let mut rules = self.marked_rules()?;
        rules.retain(|rule| known.contains(&(rule.ipv6, rule.table, rule.local_port)));
        Ok(rules)
    }
}

/// Controllers of routes, by table and destination; `None` for a throw route.
pub(crate) type RecordedRoutes<'a> = BTreeMap<(u32, IpNet), BTreeSet<Option<&'a str>>>;

/// The routes of these tables.
pub(crate) fn routes_of(
    routes: &mut Routes,
    tables: impl Iterator<Item = u32>,
) -> Result<BTreeMap<(u32, IpNet), Route>, PolicyError> {
    let mut found = BTreeMap::new();
    for table in tables.collect::<BTreeSet<_>>() {
        let routes = routes.table(table)?;
        found.extend(routes.into_iter().map(|route| (key(&route), route)));
    }
    Ok(found)
}

pub(crate) fn key(route: &Route) -> (u32, IpNet) {
    (route.table(), route.destination())
}

/// Recorded controllers of routes. A route may have any of them: the process may have been killed
/// before it carried out the last line.
pub(crate) fn made(recorded: &Recorded) -> RecordedRoutes<'_> {
    let mut made = RecordedRoutes::new();
    for entry in &recorded.entries {
        match entry {
            Entry::Route { table, to, controller } => {
                made.entry((*table, *to)).or_default().insert(controller.as_deref());
            }
            Entry::Gone { table, to } => {
                made.remove(&(*table, *to));
            }
            Entry::Begin { .. } | Entry::Rule { .. } | Entry::Programs { .. } => {}
        }
    }
    made
}

fn rules(recorded: &Recorded) -> impl Iterator<Item = (bool, u32, Option<u16>)> {
    recorded.entries.iter().filter_map(|entry| match entry {
        Entry::Rule { ipv6, table, port } => Some((*ipv6, *table, *port)),
        _ => None,
    })
}

/// The tables that a journal names.
pub(crate) fn tables(recorded: &Recorded) -> impl Iterator<Item = u32> {
    recorded.entries.iter().filter_map(|entry| match entry {
        Entry::Route { table, .. } | Entry::Rule { table, .. } => Some(*table),
        Entry::Begin { .. } | Entry::Gone { .. } | Entry::Programs { .. } => None,
    })
}

pub(crate) fn is_as_made(route: &Route, made: &RecordedRoutes<'_>) -> bool {
    let is = |controller: &Option<&str>| match controller {
        None => route.is_throw(),
        Some(_) => route.controller() == *controller && !route.is_locked(),
    };
    route.protocol() == PROTOCOL && made.get(&key(route)).is_some_and(|each| each.iter().any(is))
}

/// Whether a route has Knee's mark, but no line of the journal.
fn is_unlisted(route: &Route, made: &RecordedRoutes<'_>) -> bool {
    route.protocol() == PROTOCOL && !made.contains_key(&key(route))
}

/// Folders of the BPF file system that a journal names.
fn folders(recorded: &Recorded) -> impl Iterator<Item = &Path> {
    recorded.entries.iter().filter_map(|entry| match entry {
        Entry::Programs { folder } => Some(folder.as_path()),
        _ => None,
    })
}
