//! `knee steer plan`, `apply`, `status`, `rollback`: a policy on this host.

mod read;

pub use read::{networks, problems, read};

use crate::arguments::{Applied, Apply, PolicyPlan};
use crate::failure::{Ending, Failure};
use crate::print::Print;
use crate::{experiment, guard, interrupt, screen};
use ipnet::IpNet;
use knee_host::{HostError, Rule, TcpSocket, each_connection, sysctl};
use knee_lab::Handle;
use knee_policy::{
    ApplySettings, Event, GroupOf, Hint, Host, Journal, LiveEnvironment, Means, Plan, Policy,
    PolicyError, PolicyGroup, Returned, What, programs_lack, since_1970,
};
use knee_present::{Cell, Document, Table, Tone, number, text};
use knee_record::Unit;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::Duration;

/// Maximum number of prefixes listed in text output; JSON contains all.
const NAMED: usize = 8;

/// Reports what applying the policy would change.
pub fn plan(arguments: &PolicyPlan) -> Result<Ending, Failure> {
    let policy = read(&arguments.policy, &arguments.trust, false)?;
    let means = Means::of(&policy);
    let plan = Plan::by(means, &policy, &Host::open()?.main_table()?);
    let mut document = document(&policy, means, &plan, "Nothing was changed.")?;
    if let Some(words) = experiment::planned(&policy, means)? {
        document = document.said(words);
    }
    document.print(arguments.print.format(), &plan_json(&policy, means, &plan))?;
    Ok(Ending::Done)
}

/// Applies a policy until it is stopped, then reverts it.
pub fn apply(arguments: &Apply) -> Result<Ending, Failure> {
    let policy = read(&arguments.policy, &arguments.trust, true)?;
    let handle = Handle::default();
    interrupt::stops_with(handle.clone(), "Stopping; reverting all changes.")?;
    steer(&policy, arguments, &handle)
}

/// Applies a policy, which was read, until `handle` is stopped; then reverts it.
pub fn steer(policy: &Policy, arguments: &Apply, handle: &Handle) -> Result<Ending, Failure> {
    let publication = arguments.published.assignment.as_deref();
    if publication.is_some() {
        without_hints(policy, "an observer cannot tell", "remove --assignment, or the key")?;
    }
    let duration = arguments.duration.map(|time| Duration::from_nanos(time.as_nanos()));
    let settings = ApplySettings { journal: &arguments.journal.path, publication, duration };
    let is_stopped = || handle.is_stopped();
    let mut environment = LiveEnvironment::open(&is_stopped, &guard::command)?;
    let means = Means::of(policy);
    let print = |plan: &Plan, words: &str, refused: &[(IpNet, String)]| {
        let document = document(policy, means, plan, words)?;
        let document = refused.iter().fold(document, |all, (_, words)| all.said(words.clone()));
        document.print(arguments.print.format(), &plan_json(policy, means, plan))
    };
    let until = match arguments.duration {
        Some(duration) => format!("for {duration}"),
        None => "until Ctrl-C".to_string(),
    };
    let unsteerable = knee_policy::apply(policy, &settings, &mut environment, &mut |event| {
        if let Event::Applied { plan, refused } = event {
            return print(plan, &format!("Applied {until}; then everything is reverted."), refused);
        }
        tell(means, &event);
        Ok(())
    })?;
    let Some(plan) = unsteerable else { return Ok(Ending::Done) };
    print(&plan, "", &[])?;
    let what = "none of the policy's traffic can be steered".to_string();
    Err(Failure::Host(what, "the table above says why".to_string()))
}

/// Says what happened while a policy is applied or tried.
pub fn tell(means: Means, event: &Event<'_>) {
    match event {
        Event::EarlierReverted(returned) => screen::say(&format!(
            "An earlier process ended without reverting its changes. {}",
            taken(returned)
        )),
        Event::RoutesChanged { added, removed } => {
            let what = if means == Means::Routes { "made" } else { "added" };
            screen::say(&format!(
                "The host's routes have changed: {added} {what}, {removed} removed."
            ));
        }
        Event::RouteRefused(words) => screen::complain(words),
        Event::LeftAlone(routes) => {
            let routes: Vec<String> = routes.iter().map(place).collect();
            screen::complain(&format!(
                "Changed by others, so left as they are: {}.",
                routes.join(", ")
            ));
        }
        Event::ControllersRefused(count) => screen::complain(&format!(
            "The kernel refused the controller for {count} connections, which keep their own: a \
             route locks a controller, or the kernel no longer has the policy's."
        )),
        Event::OpenConnectionsChanged(count) => {
            screen::say(&format!("{count} open connections were given their controller."));
        }
        Event::Expired => screen::complain("The policy has expired: reverting all changes."),
        Event::Reverted(returned) => screen::say(&taken(returned)),
        Event::Applied { .. }
        | Event::EarlierBlocks(_)
        | Event::Waits { .. }
        | Event::Begins { .. }
        | Event::Stopped { .. }
        | Event::BlockEnded(_) => {}
    }
}

/// Refuses a policy with hints: the kernel's report of a connection that ends has none.
pub fn without_hints(policy: &Policy, who: &str, help: &str) -> Result<(), Failure> {
    let hint = |group: &PolicyGroup| Some((group.name.clone(), group.hint.clone()?));
    match policy.groups.iter().find_map(hint) {
        None => Ok(()),
        Some((name, hint)) => {
            let what = format!("{who} which connections that ended are in {name}: they had {hint}");
            Err(Failure::Usage(what, help.to_string()))
        }
    }
}

/// Shows what is applied.
pub fn status(arguments: &Applied) -> Result<Ending, Failure> {
    let recorded = Journal::read(&arguments.journal.path)?;
    let mut host = Host::open()?;
    let state = host.state(&recorded)?;
    let rules = host.marked_rules()?;
    let marked = rules.len();
    let open = open_connections(|_| Some(()))?;
    let open: BTreeMap<&str, u64> =
        open.iter().map(|((_, name), count)| (name.as_str(), *count)).collect();
    let now = since_1970().as_secs();
    let held = matches!(Journal::hold(&arguments.journal.path), Err(PolicyError::Held { .. }));
    let default = sysctl("net.ipv4.tcp_congestion_control").unwrap_or_default();
    let mut words = match recorded.begun() {
        None => "No policy is applied.".to_string(),
        Some((policy, process, at)) if held => format!(
            "{policy} is applied by process {process}, since {}.",
            knee_present::words::time_us(Some(now.saturating_sub(at) as f64 * 1e6))
        ),
        Some((policy, process, _)) => format!(
            "{policy} was applied by process {process}, which has ended: knee steer rollback."
        ),
    };
    words += &format!(
        " {} Knee's mark. New connections get {default} by default.",
        match marked {
            1 => "1 rule has".to_string(),
            marked => format!("{marked} rules have"),
        }
    );
    let mut table = Table::new([text("in the journal"), number("number")]).called("state");
    table.row_with(0, Tone::Neutral, ["routes with a controller".into(), count(state.steering)]);
    table.row_with(0, Tone::Neutral, ["routes to the main table".into(), count(state.throwing)]);
    table.row_with(0, Tone::Neutral, ["rules".into(), count(state.rules)]);
    let given: Vec<String> = state
        .connections
        .steered
        .iter()
        .map(|((had, given), count)| format!("{count} from {had} to {given}"))
        .collect();
    let programs = ["given by programs".into(), Cell::count(state.connections.count())];
    table.row_with(0, Tone::Neutral, programs);
    let chosen = [
        "of these, since changed by their programs".into(),
        Cell::count(state.connections.changed),
    ];
    table.row_with(0, Tone::Neutral, chosen);
    let whole = state.missing == 0 && state.foreign.is_empty() && state.unlisted.is_empty();
    table.row_with(
        0,
        if state.missing == 0 { Tone::Neutral } else { Tone::Bad },
        ["missing".into(), count(state.missing)],
    );
    table.row_with(
        0,
        if state.foreign.is_empty() { Tone::Neutral } else { Tone::Bad },
        ["changed by others".into(), count(state.foreign.len())],
    );
    let document = Document::default().said(words);
    let document = if recorded.entries.is_empty() { document } else { document.table(table) };
    let each: Vec<String> = open.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let each = if each.is_empty() { "none".to_string() } else { each.join(", ") };
    let document = document.said(format!("Open connections by controller: {each}."));
    let document = match given.is_empty() {
        true => document,
        false => document.said(format!("Given by programs: {}.", given.join(", "))),
    };
    let foreign: Vec<String> = state.foreign.iter().map(place).collect();
    let document = match foreign.is_empty() {
        true => document,
        false => document
            .said(format!("Changed by others, so left as they are: {}.", foreign.join(", "))),
    };
    let document = match state.unlisted.is_empty() {
        true => document,
        false => document.said(unlisted(&state.unlisted)),
    };
    let begun = recorded.begun();
    let unrecorded = if begun.is_none() { unrecorded(&rules) } else { Vec::new() };
    let is_unrecorded = !unrecorded.is_empty();
    let document = unrecorded.into_iter().fold(document, Document::said);
    document.print(
        arguments.print.format(),
        &json!({
            "schema": "knee-steer-status/1",
            "policy": begun.map(|(policy, ..)| policy),
            "process": begun.map(|(_, process, _)| process),
            "since_unix": begun.map(|(.., at)| at),
            "running": held,
            "steering_routes": state.steering,
            "throwing_routes": state.throwing,
            "rules": state.rules,
            "missing": state.missing,
            "foreign": foreign,
            "unlisted": state.unlisted.iter().map(place).collect::<Vec<_>>(),
            "given_connections": state.connections.count(),
            "chosen_since": state.connections.changed,
            "marked_rules": marked,
            "default": default,
            "open_connections": open,
        }),
    )?;
    let left = begun.is_some() && !held || is_unrecorded;
    Ok(if whole && !left { Ending::Done } else { Ending::Differs })
}

/// Says how to remove rules with Knee's mark that are not in the journal, because it was damaged or
/// removed, or because they are of another one. Returns lines; none if there are no such rules.
fn unrecorded(rules: &[Rule]) -> Vec<String> {
    let commands = rules.iter().flat_map(|Rule { ipv6, priority, table, .. }| {
        let family = if *ipv6 { "-6 " } else { "" };
        [
            format!("ip {family}rule del priority {priority} table {table}"),
            format!("ip {family}route flush table {table} proto 222"),
        ]
    });
    // Each once: several rules share a table.
    let commands: BTreeSet<String> = commands.collect();
    let mut lines: Vec<String> = commands.into_iter().collect();
    if !lines.is_empty() {
        let words = "Rules with Knee's mark are in force, but not in this journal: name theirs with \
                     --journal, or remove them:";
        lines.insert(0, words.to_string());
    }
    lines
}

/// Says how to remove routes with Knee's mark that the journal does not list.
fn unlisted(routes: &[(u32, IpNet)]) -> String {
    let commands: BTreeSet<String> = routes
        .iter()
        .map(|(table, net)| {
            let family = if net.addr().is_ipv6() { "-6 " } else { "" };
            format!("ip {family}route flush table {table} proto 222")
        })
        .collect();
    let named: Vec<String> = routes.iter().take(NAMED).map(place).collect();
    let more = routes.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!(
        "With Knee's mark, but not in the journal, which was cut off or damaged, so left as they \
         are: {}{more}. They can be removed by: {}.",
        named.join(", "),
        commands.into_iter().collect::<Vec<_>>().join("; ")
    )
}

/// Reverts what was applied.
pub fn roll_back(arguments: &Applied) -> Result<Ending, Failure> {
    let path = &arguments.journal.path;
    let before = Journal::read(path)?;
    if before.entries.is_empty() {
        let unrecorded = unrecorded(&Host::open()?.marked_rules()?);
        let (lines, ending) = match unrecorded.is_empty() {
            true => {
                let words = "No policy is applied: there is nothing to revert.".to_string();
                (vec![words], Ending::Done)
            }
            false => (unrecorded, Ending::Differs),
        };
        let document = lines.into_iter().fold(Document::default(), Document::said);
        document.print(arguments.print.format(), &returned(&Returned::default()))?;
        return Ok(ending);
    }
    let mut host = Host::open()?;
    let had = host.state(&before)?;
    // Makes a process that still steers revert everything and end.
    let (mut journal, recorded) = Journal::take_over(path)?;
    let mut all = host.roll_back(&recorded)?;
    journal.clear()?;
    let after = host.state(&before)?;
    all.connections = had.connections.count() - after.connections.count();
    all.chosen = had.connections.changed;
    all.routes = had.steering + had.throwing - after.steering - after.throwing;
    all.rules = had.rules - after.rules;
    let document = Document::default().said(taken(&all));
    document.print(arguments.print.format(), &returned(&all))?;
    let is_whole = all.left.is_empty() && all.unlisted.is_empty();
    Ok(if is_whole { Ending::Done } else { Ending::Differs })
}

fn returned(returned: &Returned) -> serde_json::Value {
    json!({
        "schema": "knee-steer-rollback/1",
        "routes": returned.routes,
        "rules": returned.rules,
        "connections": returned.connections,
        "chosen_since": returned.chosen,
        "left": returned.left.iter().map(place).collect::<Vec<_>>(),
        "unlisted": returned.unlisted.iter().map(place).collect::<Vec<_>>(),
    })
}

/// Describes what was reverted.
pub fn taken(returned: &Returned) -> String {
    let Returned { routes, rules, left, unlisted: others, connections, chosen, stuck } = returned;
    let left: Vec<String> = left.iter().map(place).collect();
    let mut words = match (*connections, routes + rules) {
        (0, _) => format!("Removed: {}.", routes_and_rules(*routes, *rules)),
        (_, 0) => format!("{connections} connections were returned to their previous controller."),
        _ => format!(
            "Removed: {}; {connections} connections were returned to their previous controller.",
            routes_and_rules(*routes, *rules)
        ),
    };
    if *stuck > 0 {
        words += &format!(" The kernel refused the previous controller for {stuck} connections.");
    }
    if *chosen > 0 {
        words += &format!(
            " {chosen} connections keep the controller that their programs have chosen since."
        );
    }
    if !left.is_empty() {
        words += &format!(" Changed by others, so left as they are: {}.", left.join(", "));
    } else if *connections == 0 && *routes > 0 {
        words += " Open connections keep their controller.";
    }
    if !others.is_empty() {
        words += &format!(" {}", unlisted(others));
    }
    words
}

fn routes_and_rules(routes: usize, rules: usize) -> String {
    let plural = |number: usize, noun: &str| {
        let end = if number == 1 { "" } else { "s" };
        format!("{number} {noun}{end}")
    };
    format!("{} and {}", plural(routes, "route"), plural(rules, "rule"))
}

/// A route by its destination and table.
pub fn place((table, prefix): &(u32, IpNet)) -> String {
    format!("{prefix} in table {table}")
}

/// Counts open connections by `of` and by controller.
fn open_connections<K: Ord>(
    of: impl Fn(&TcpSocket<'_>) -> Option<K>,
) -> Result<BTreeMap<(K, String), u64>, HostError> {
    let mut open = BTreeMap::new();
    each_connection(|socket| {
        if let Some(key) = of(&socket) {
            let name = socket.controller.unwrap_or_default().to_string();
            *open.entry((key, name)).or_insert(0) += 1;
        }
    })?;
    Ok(open)
}

fn document(policy: &Policy, means: Means, plan: &Plan, words: &str) -> Result<Document, Failure> {
    let group_of = GroupOf::new(policy);
    let open = open_connections(|socket| group_of.of(socket))?;
    let by = if means == Means::Routes { "routes" } else { "prefixes" };
    let figures = [by, "held out", "open now"].map(number);
    let compares = policy.groups.iter().any(|group| group.control.is_some());
    let heads = ["group", "clients", "ports", "controller"].map(text).into_iter();
    let heads = heads.chain(compares.then(|| text("in use (A)"))).chain(figures);
    let mut table = Table::new(heads).called("groups");
    for (index, group) in policy.groups.iter().enumerate() {
        let own = plan.routes.iter().filter(|planned| planned.group == index).count();
        let placed = plan.places.iter().filter(|placed| placed.group == index).count();
        let open: Vec<String> = open
            .iter()
            .filter(|((of, _), _)| *of == index)
            .map(|((_, name), count)| format!("{count} {name}"))
            .collect();
        let held = plan.share_held_out(policy, index);
        let control = compares.then(|| group.control.as_deref().unwrap_or("none").into());
        let open = if open.is_empty() { "none".to_string() } else { open.join(", ") };
        let first = [
            Cell::from(group.name.as_str()),
            clients(group).into(),
            ports(group).into(),
            group.arm().to_string().into(),
        ];
        let last = [count(own + placed), Cell::figure(Unit::Fraction, Some(held)), open.into()];
        table.row(first.into_iter().chain(control).chain(last));
    }
    let routes = plan.routes.len();
    let tables: std::collections::BTreeSet<u32> =
        plan.rules.iter().map(|rule| rule.table).collect();
    let tables: Vec<String> = tables.iter().map(u32::to_string).collect();
    let said = format!(
        "{}: {} for TCP, in table {}. {words}",
        policy.name,
        routes_and_rules(routes, plan.rules.len()),
        if tables.is_empty() { "none".to_string() } else { tables.join(", ") },
    );
    let said = match means {
        Means::Routes => said,
        Means::Programs => {
            let open = if policy.open_connections { " and open ones" } else { "" };
            let begin = "new connections";
            format!("{}: BPF programs set the controller of {begin}{open}. {words}", policy.name)
        }
    };
    let mut document = Document::default().said(said.trim_end()).table(table);
    for hint in group_of.missing() {
        document =
            document.said(format!("There is no {hint} at present; the policy waits for it."));
    }
    if let (None, Some(lack)) = (policy.actuator, programs_lack()) {
        document = document.said(format!("By routes, and only for new connections: {lack}."));
    }
    let default = sysctl("net.ipv4.tcp_congestion_control").unwrap_or_default();
    for group in &policy.groups {
        if let Some(control) = group.control.as_ref().filter(|one| **one != default) {
            document = document.said(format!(
                "In {}, an experiment compares with {control}, but the host's default is \
                 {default}: it would give these connections {control} in its blocks under A.",
                group.name
            ));
        }
    }
    for (index, group) in policy.groups.iter().enumerate() {
        let kept: Vec<String> = plan
            .kept
            .iter()
            .filter(|kept| kept.group == index)
            .map(|kept| format!("{} ({})", kept.prefix, kept.why))
            .collect();
        if !kept.is_empty() {
            let more = kept.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!("; and {more} more") };
            let named = kept[..kept.len().min(NAMED)].join("; ");
            document = document.said(format!("Not steered in {}: {named}{more}.", group.name));
        }
    }
    Ok(document)
}

fn clients(group: &PolicyGroup) -> String {
    let names: Vec<String> = group.prefixes.iter().take(2).map(IpNet::to_string).collect();
    let clients = match group.prefixes.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    group.hint.as_ref().map_or(clients.clone(), |hint| format!("{clients}, {hint}"))
}

fn ports(group: &PolicyGroup) -> String {
    let names: Vec<String> = group.ports.iter().map(u16::to_string).collect();
    if names.is_empty() { "all".to_string() } else { names.join(", ") }
}

fn count(number: usize) -> Cell {
    Cell::count(number as u64)
}

fn plan_json(policy: &Policy, means: Means, plan: &Plan) -> serde_json::Value {
    let routes = plan.routes.iter().map(|planned| {
        json!({
            "group": policy.groups[planned.group].name,
            "to": planned.route.destination().to_string(),
            "table": planned.route.table(),
            "way": planned.route.way(),
            "controller": planned.route.controller(),
            "held_out": planned.held_out,
        })
    });
    let rules = plan.rules.iter().map(|rule| {
        let family = if rule.ipv6 { 6 } else { 4 };
        json!({ "ip": family, "port": rule.local_port, "table": rule.table })
    });
    let kept = plan.kept.iter().map(|kept| {
        json!({
            "group": policy.groups[kept.group].name,
            "prefix": kept.prefix.to_string(),
            "why": kept.why.to_string(),
        })
    });
    let places = plan.places.iter().map(|placed| {
        let group = &policy.groups[placed.group];
        let mut json = json!({
            "group": group.name,
            "prefix": placed.prefix.to_string(),
            "port": placed.port,
            "controller": (placed.what == What::Steered).then_some(group.controller.as_str()),
            "held_out": placed.what == What::HeldOut,
        });
        match &group.hint {
            Some(Hint::Mark(mark)) => json["mark"] = json!(mark),
            Some(Hint::Cgroup(name)) => json["cgroup"] = json!(name),
            None => {}
        }
        if placed.what == What::Steered {
            group
                .initial_window
                .into_iter()
                .for_each(|window| json["initial_window"] = json!(window));
            for (key, is_set) in [("pacing", group.paces), ("ecn", group.ecn)] {
                if is_set {
                    json[key] = json!(true);
                }
            }
        }
        json
    });
    json!({
        "schema": "knee-steer-plan/1",
        "policy": policy.name,
        "actuator": if means == Means::Routes { "route" } else { "bpf" },
        "prefixes": places.collect::<Vec<_>>(),
        "rules": rules.collect::<Vec<_>>(),
        "routes": routes.collect::<Vec<_>>(),
        "not_steered": kept.collect::<Vec<_>>(),
    })
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        match error {
            HostError::Refused { what, source, advice } => {
                Failure::Host(format!("cannot {what}: {source}"), advice.to_string())
            }
            HostError::Panicked => Failure::Internal(error.to_string()),
        }
    }
}

impl From<PolicyError> for Failure {
    fn from(error: PolicyError) -> Failure {
        let what = error.to_string();
        let advice = match error {
            PolicyError::Host(error) => return error.into(),
            PolicyError::Programs { advice, .. } | PolicyError::Experiment { advice, .. } => {
                return Failure::Host(what, advice);
            }
            PolicyError::Lost { advice, .. } => advice,
            PolicyError::TooLate => {
                let advice = "knee steer judge FILES prints the result; a new experiment needs a later \
                              begins";
                return Failure::Usage(what, advice.to_string());
            }
            PolicyError::Journal { source, .. } if source.kind() == ErrorKind::StorageFull => {
                "make room on that disk, or name another with --journal"
            }
            PolicyError::Journal { .. } => "run as root, or name another with --journal",
            PolicyError::Unsafe { .. } => "name one in a folder that only you can write to",
            PolicyError::Foreign { .. } => {
                "use the version that wrote it; if it is damaged, remove it, and knee steer status \
                 says what to remove with it"
            }
            PolicyError::Held { .. } => "stop that one first: knee steer rollback",
            PolicyError::Elsewhere { .. } => "enter it with nsenter, or name another journal",
            PolicyError::TableInUse { .. } => "write another number after table in the policy",
            PolicyError::Records { .. } => "check the free space, and name a file of your own",
            PolicyError::OtherExperiment { .. } => "name another file with --blocks",
            PolicyError::NotAssignment { .. } => "name another file with --assignment",
            PolicyError::Setting { .. } => "run as root",
            PolicyError::Decided(_) => "change or remove that line, if you want another default",
            PolicyError::Lacking { .. } => "name one of them",
        };
        Failure::Host(what, advice.to_string())
    }
}
