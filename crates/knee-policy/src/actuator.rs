//! Carries a plan out, takes it back, and says what of it is there.

use crate::journal::namespace;
use crate::{Entry, Journal, Plan, PolicyError, Recorded};
use ipnet::IpNet;
use knee_host::{HostError, Route, Routes, Rule, TABLE_MAIN};
use std::collections::{BTreeMap, BTreeSet};

/// Marks the routes and rules that Knee makes (`rtm_protocol`; one that
/// linux/rtnetlink.h leaves to programs).
pub const PROTOCOL: u8 = 222;

/// What was done.
#[derive(Debug, Default)]
pub struct Applied {
    /// Routes made.
    pub added: usize,
    /// Routes that are no longer asked for.
    pub removed: usize,
    /// Routes that the kernel refused, with what it said.
    pub refused: Vec<(IpNet, String)>,
    /// Routes that stay, since somebody has changed or added them, by table.
    pub left: Vec<(u32, IpNet)>,
}

/// What was taken back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Routes removed.
    pub routes: usize,
    /// Rules removed.
    pub rules: usize,
    /// Routes that stay, since somebody has changed them, by table.
    pub left: Vec<(u32, IpNet)>,
}

/// What there is of what the journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Routes with a controller that are as they were made.
    pub steering: usize,
    /// Routes to the main table that are as they were made.
    pub throwing: usize,
    /// Rules that are there.
    pub rules: usize,
    /// Routes and rules of the journal that are not there.
    pub missing: usize,
    /// Routes that somebody has changed or added, by table.
    pub foreign: Vec<(u32, IpNet)>,
}

/// Steers by routes, in the network namespace of the thread that opened it.
pub struct Actuator {
    routes: Routes,
}

impl Actuator {
    /// Changes nothing yet.
    ///
    /// # Errors
    ///
    /// Where the host is out of sockets.
    pub fn open() -> Result<Actuator, PolicyError> {
        Ok(Actuator { routes: Routes::open()? })
    }

    /// The routes of the main table.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn main_table(&mut self) -> Result<Vec<Route>, PolicyError> {
        Ok(self.routes.table(TABLE_MAIN)?)
    }

    /// The first line of a journal: this process begins to apply a policy.
    ///
    /// # Errors
    ///
    /// Without `/proc`.
    pub fn begin(policy: &str, at: u64) -> Result<Entry, PolicyError> {
        let namespace = namespace().map_err(|source| {
            HostError::refused("read the network namespace", source, "mount /proc")
        })?;
        Ok(Entry::Begin { policy: policy.to_string(), process: std::process::id(), at, namespace })
    }

    /// Makes the tables what the plan says: what is missing is added, what was made by the
    /// journal and is not asked for removed; what somebody has changed since stays. Routes
    /// first, then the rules that lead to them.
    ///
    /// # Errors
    ///
    /// [`PolicyError::TableInUse`], and where the journal cannot be written: then
    /// nothing was done. Where a rule is refused. A route that is refused is told in
    /// [`Applied`].
    pub fn apply(&mut self, plan: &Plan, journal: &mut Journal) -> Result<Applied, PolicyError> {
        let recorded = journal.recorded()?;
        let made = made(&recorded);
        let used: BTreeSet<u32> = tables(&recorded).collect();
        let mut there = self.tables(plan.rules.iter().map(|rule| rule.table))?;
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

    /// Takes back what a journal says: the rules, then the routes that are as they were
    /// made. Doing it twice does no harm.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn roll_back(&mut self, recorded: &Recorded) -> Result<Returned, PolicyError> {
        let mut returned = Returned::default();
        for rule in self.own_rules(recorded)? {
            returned.rules += usize::from(self.routes.remove_rule(&rule)?);
        }
        let made = made(recorded);
        for route in self.tables(tables(recorded))?.values() {
            if is_as_made(route, &made) {
                returned.routes += usize::from(self.routes.remove(route)?);
            } else {
                returned.left.push((route.table(), route.destination()));
            }
        }
        Ok(returned)
    }

    /// What is there of what a journal says.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn state(&mut self, recorded: &Recorded) -> Result<State, PolicyError> {
        let mut state = State { rules: self.own_rules(recorded)?.len(), ..State::default() };
        let made = made(recorded);
        for route in self.tables(tables(recorded))?.values() {
            if !is_as_made(route, &made) {
                state.foreign.push((route.table(), route.destination()));
            } else if route.is_throw() {
                state.throwing += 1;
            } else {
                state.steering += 1;
            }
        }
        let rules: BTreeSet<_> = rules(recorded).collect();
        let wanted = made.len() + rules.len();
        state.missing = wanted.saturating_sub(state.steering + state.throwing + state.rules);
        Ok(state)
    }

    /// Rules with Knee's mark, whoever made them.
    ///
    /// # Errors
    ///
    /// What the kernel says.
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

    fn tables(
        &mut self,
        tables: impl Iterator<Item = u32>,
    ) -> Result<BTreeMap<(u32, IpNet), Route>, PolicyError> {
        let mut found = BTreeMap::new();
        for table in tables.collect::<BTreeSet<_>>() {
            let routes = self.routes.table(table)?;
            found.extend(routes.into_iter().map(|route| (key(&route), route)));
        }
        Ok(found)
    }
}

fn key(route: &Route) -> (u32, IpNet) {
    (route.table(), route.destination())
}

/// Whether two routes lead the same way with the same controller.
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

/// The controllers that routes were made with; the last line on a route counts.
fn made(recorded: &Recorded) -> BTreeMap<(u32, IpNet), Option<&str>> {
    let mut made = BTreeMap::new();
    for entry in &recorded.entries {
        match entry {
            Entry::Route { table, to, controller } => {
                made.insert((*table, *to), controller.as_deref());
            }
            Entry::Gone { table, to } => {
                made.remove(&(*table, *to));
            }
            Entry::Begin { .. } | Entry::Rule { .. } => {}
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
fn tables(recorded: &Recorded) -> impl Iterator<Item = u32> {
    recorded.entries.iter().filter_map(|entry| match entry {
        Entry::Route { table, .. } | Entry::Rule { table, .. } => Some(*table),
        Entry::Begin { .. } | Entry::Gone { .. } => None,
    })
}

fn is_as_made(route: &Route, made: &BTreeMap<(u32, IpNet), Option<&str>>) -> bool {
    route.protocol() == PROTOCOL
        && made.get(&key(route)).is_some_and(|controller| match controller {
            None => route.is_throw(),
            Some(name) => route.controller() == Some(name),
        })
}
