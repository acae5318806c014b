//! The policy file.

mod providers;
mod written;

pub use providers::PrefixesOf;

use self::providers::{OfProviders, of_providers};
use crate::{Hint, Means, Problem};
use ipnet::IpNet;
use knee_host::Arm;
use knee_steer::Guarded;
use knee_units::registry::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use toml::Spanned;
use toml::value::Datetime;

/// Default of the first routing table.
pub const TABLE: u32 = 7222;
/// Lowest permitted table. Those below belong to the kernel or distributions (`local`, `main`,
/// `default`), or are numbered by hand.
const TABLE_MIN: u32 = 256;
/// Highest permitted first table: there is one for each port, and one for all.
const TABLE_MAX: u32 = u32::MAX - (1 << 16);
/// Maximum length of a controller's name in the kernel (`TCP_CA_NAME_MAX`).
const NAME_MAX: usize = 15;

/// A policy as written in a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Knee policy")]
pub struct PolicyFile {
    /// A name for reports.
    #[schemars(with = "String")]
    name: Spanned<String>,
    /// Version number, which increases with each change; a host that accepts only
    /// signed policies rejects lower ones.
    version: Option<u64>,
    /// Time at which it expires, in UTC: `2027-01-31T00:00:00Z`.
    #[schemars(with = "Option<String>")]
    expires: Option<Spanned<Datetime>>,
    /// Seed of the random choice of the held-out prefixes; hosts with the same seed hold
    /// out the same ones. Default: 1.
    #[serde(default = "one")]
    seed: u64,
    /// First of the routing tables to use; each port needs one more. Default:
    /// 7222.
    #[schemars(with = "Option<u32>")]
    table: Option<Spanned<u32>>,
    /// Mechanism that carries out the policy: "route" or "bpf". Default: "bpf", if the host
    /// supports it.
    actuator: Option<ActuatorName>,
    /// Whether open connections get the controller too, which only BPF programs can do.
    /// Default: false.
    #[schemars(with = "Option<bool>")]
    open_connections: Option<Spanned<bool>>,
    /// Stage of an experiment by `knee steer run`: "observe" changes nothing and checks the
    /// method on this traffic, "canary" tries the controller in one group and looks for harm
    /// only, "host" compares, "site" compares on several hosts at the same time. Default: "host".
    #[schemars(with = "Option<Stage>")]
    stage: Option<Spanned<Stage>>,
    /// Time at which the first block begins on all hosts of a site, in UTC:
    /// `2027-01-31T18:00:00Z`. Only the stage "site" has it, and needs it.
    #[schemars(with = "Option<String>")]
    begins: Option<Spanned<Datetime>>,
    /// Harm to others that an experiment accepts for a gain: "queueing-delay", "retransmissions".
    /// It is measured, and its guard stops nothing. Default: none.
    #[schemars(with = "Option<Vec<String>>")]
    #[serde(default)]
    accepts: Vec<Spanned<String>>,
    /// Table of networks for `providers`, a CSV file with the columns prefix, asn and name; relative
    /// to the policy's folder.
    #[schemars(with = "Option<String>")]
    networks: Option<Spanned<String>>,
    /// Groups of traffic with their controllers.
    #[serde(default, rename = "group")]
    groups: Vec<GroupFile>,
}

/// Stage of an experiment: how much of the traffic it changes, and what it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// All connections keep their controller. Blocks and clients only have labels, so any effect is
    /// a false one.
    Observe,
    /// One group gets the controller on trial; only guards and alarms decide.
    Canary,
    /// All groups get it, block by block; the effect is judged.
    #[default]
    Host,
    /// The same on several hosts at the same time; the effect on all of them together is judged.
    Site,
}

/// Mechanism that carries out a policy.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ActuatorName {
    /// Knee's own routes.
    Route,
    /// BPF programs.
    Bpf,
}

/// A group as written in a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    /// A name for reports.
    #[schemars(with = "String")]
    name: Spanned<String>,
    /// Prefixes of its clients: `203.0.113.0/24`, `2001:db8::/32`. Default with `mark` or `cgroup`:
    /// all.
    #[schemars(with = "Option<Vec<String>>")]
    #[serde(default)]
    prefixes: Vec<Spanned<String>>,
    /// Providers of its clients, by the name in the table of `networks`, or as `AS64496`: all of
    /// their prefixes in it. A group has prefixes, providers or both.
    #[schemars(with = "Option<Vec<String>>")]
    #[serde(default)]
    providers: Vec<Spanned<String>>,
    /// Local ports. Default: all.
    #[schemars(with = "Option<Vec<u16>>")]
    #[serde(default)]
    ports: Vec<Spanned<u16>>,
    /// Mark that the application has set on its socket, 1 to 4294967295; such connections are in no
    /// group without it. Only BPF programs see it.
    #[schemars(with = "Option<u32>")]
    mark: Option<Spanned<u32>>,
    /// Control group of the process that opened the socket, from the root:
    /// `/system.slice/nginx.service`; such connections are in no group without a hint. Only BPF
    /// programs see it.
    #[schemars(with = "Option<String>")]
    cgroup: Option<Spanned<String>>,
    /// The kernel's name of a congestion controller: `bbr`.
    #[schemars(with = "String")]
    controller: Spanned<String>,
    /// Segments that connections may have in flight before the first acknowledgement, 1 to 1000;
    /// only BPF programs set it. Default: as many as without the policy, usually 10.
    #[schemars(with = "Option<u16>")]
    initial_window: Option<Spanned<u16>>,
    /// Whether the segments of connections are paced, whatever the controller, which only BPF
    /// programs can do. Default: false.
    #[schemars(with = "Option<bool>")]
    pacing: Option<Spanned<bool>>,
    /// Whether connections negotiate explicit congestion notification if the peer does, whatever the
    /// host's `net.ipv4.tcp_ecn` says, which only BPF programs can do. Default: false, as the host
    /// says.
    #[schemars(with = "Option<bool>")]
    ecn: Option<Spanned<bool>>,
    /// The controller that an experiment compares with: the one in use. Only `knee steer
    /// run` needs it.
    #[schemars(with = "Option<String>")]
    control: Option<Spanned<String>>,
    /// Share of the addresses that permanently keep the controller that they have:
    /// `5%`. Default: 5%.
    #[schemars(with = "Option<String>")]
    hold_out: Option<Spanned<String>>,
}

fn one() -> u64 {
    1
}

/// A policy: which controller for which traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// A name for reports.
    pub name: String,
    /// Version, which increases with each change.
    pub version: Option<u64>,
    /// Expiry, seconds since 1970 (Unix time).
    pub expires_unix: Option<u64>,
    /// Seed of the hold-out's random draw.
    pub seed: u64,
    /// First of the routing tables to use.
    pub table: u32,
    /// Mechanism; `None`: whatever the host supports.
    pub actuator: Option<Means>,
    /// Whether open connections get the controller too.
    pub open_connections: bool,
    /// Stage of an experiment; `apply` does not ask for it.
    pub stage: Stage,
    /// Begin of the first block of the stage [`Stage::Site`], seconds since 1970 (Unix time).
    pub begins_unix: Option<u64>,
    /// Harm that an experiment accepts, of [`Guarded::ACCEPTABLE`].
    pub accepts: Vec<Guarded>,
    /// At least one group; no connection belongs to two.
    pub groups: Vec<PolicyGroup>,
}

/// Traffic with a common controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyGroup {
    /// Unique name for reports.
    pub name: String,
    /// Prefixes of the clients, those of its providers included.
    pub prefixes: Vec<IpNet>,
    /// Local ports; empty: all.
    pub ports: Vec<u16>,
    /// The application's hint that its connections have; `None`: those that no hint takes.
    pub hint: Option<Hint>,
    /// Name of the controller in the kernel.
    pub controller: String,
    /// Initial window of connections that begin, segments; `None`: unchanged.
    pub initial_window: Option<u16>,
    /// Whether connections that begin are paced.
    pub paces: bool,
    /// Whether connections that begin negotiate ECN.
    pub ecn: bool,
    /// The controller with which an experiment compares.
    pub control: Option<String>,
    /// Share of the addresses that are held out, 0 to 0.5.
    pub hold_out: f64,
    /// Position of the controller in the file.
    pub controller_span: Range<usize>,
}

impl PolicyGroup {
    /// What its connections get.
    pub fn arm(&self) -> Arm {
        let PolicyGroup { initial_window, paces, ecn, .. } = *self;
        Arm { controller: self.controller.clone(), initial_window, paces, ecn }
    }
}

/// Largest initial window, segments; a larger one is a mistake.
const WINDOW_MAX: u16 = 1000;
/// Default and maximum hold-out share.
const HOLD_OUT: f64 = 0.05;
const HOLD_OUT_MAX: f64 = 0.5;

impl Policy {
    /// Parses a policy that stands alone, as a signed one does: it names no providers.
    ///
    /// # Errors
    ///
    /// All errors in it.
    pub fn parse(text: &str) -> Result<Policy, Vec<Problem>> {
        Policy::parse_with(text, |table| {
            let what =
                format!("{table} is another file: a policy that stands alone has no providers");
            Err([what, "write the prefixes of its clients".to_string()])
        })
    }

    /// Parses a policy; `networks` reads the table of networks at a path, or says why it cannot and
    /// what to write instead.
    ///
    /// # Errors
    ///
    /// All errors in it.
    pub fn parse_with(
        text: &str,
        networks: impl FnOnce(&str) -> Result<Box<PrefixesOf>, [String; 2]>,
    ) -> Result<Policy, Vec<Problem>> {
        let file: PolicyFile = toml::from_str(text)
            .map_err(|error| vec![refused(text, error.span().unwrap_or(0..0), error.message())])?;
        let mut problems = Vec::new();
        let of_providers = of_providers(&file, networks, &mut problems);
        let policy = checked(file, of_providers, &mut problems);
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }
}

/// Says in plain words what the TOML reader refuses.
fn refused(text: &str, span: Range<usize>, said: &str) -> Problem {
    let said = said.trim_end();
    let quoted = |part: &str| -> Vec<String> {
        part.split('`').skip(1).step_by(2).map(str::to_string).collect()
    };
    let (first, rest) = said.split_once(", expected ").unwrap_or((said, ""));
    let wrong = quoted(first).into_iter().next();
    let known = quoted(rest);
    let near = wrong.as_deref().and_then(|wrong| nearest(wrong, known.iter().map(String::as_str)));
    let is_name = first.starts_with("unknown field") || first.starts_with("unknown variant");
    let value = text.get(span.clone()).unwrap_or_default();
    let key = text[..span.start.min(text.len())].rsplit('\n').next().unwrap_or_default();
    let key = key.split('=').next().unwrap_or_default().trim();
    let example = EXAMPLES.iter().find(|(name, _)| *name == key).map(|(_, example)| *example);
    let (message, help) = if is_name {
        let noun = if first.starts_with("unknown field") { "key" } else { "word" };
        let help = match near {
            Some(near) => format!("did you mean {near}?"),
            None => format!("write one of {}", known.join(", ")),
        };
        (format!("there is no {noun} {}", wrong.unwrap_or_default()), help)
    } else if first.starts_with("invalid") && !rest.is_empty() {
        // `integer 70000, expected u16`: names of types mean nothing here.
        let number = |low: u64, high: u64| {
            format!("{key}: {value} is not a whole number from {low} to {high}")
        };
        let message = match (key, rest) {
            ("", _) => said.to_string(),
            (_, "u16") => number(1, u64::from(u16::MAX)),
            ("mark", "u32") => number(1, u64::from(u32::MAX)),
            (_, "u32") => number(u64::from(TABLE_MIN), u64::from(TABLE_MAX)),
            // TOML has no larger ones.
            (_, "u64") => number(0, i64::MAX.unsigned_abs()),
            (_, "a sequence") => format!("{key} is a list, and {value} is none"),
            _ => format!("{key} cannot be {value}"),
        };
        let help = example.map(|example| format!("such as {key} = {example}"));
        (message, help.unwrap_or_else(|| ALL_KEYS.to_string()))
    } else {
        (said.to_string(), ALL_KEYS.to_string())
    };
    Problem { span, message, help }
}

/// Where all keys are.
const ALL_KEYS: &str = "knee schema policy lists all keys with what they mean";
/// A value of each key.
const EXAMPLES: [(&str, &str); 22] = [
    ("name", "\"edge\""),
    ("version", "2"),
    ("expires", "2027-01-31T00:00:00Z"),
    ("seed", "1"),
    ("table", "7222"),
    ("actuator", "\"bpf\""),
    ("open_connections", "false"),
    ("stage", "\"host\""),
    ("begins", "2027-01-31T18:00:00Z"),
    ("accepts", "[\"queueing-delay\"]"),
    ("networks", "\"networks.csv\""),
    ("providers", "[\"Example Net\"]"),
    ("prefixes", "[\"203.0.113.0/24\"]"),
    ("ports", "[443]"),
    ("mark", "7"),
    ("cgroup", "\"/system.slice/nginx.service\""),
    ("controller", "\"bbr\""),
    ("initial_window", "32"),
    ("pacing", "true"),
    ("ecn", "true"),
    ("control", "\"cubic\""),
    ("hold_out", "\"5%\""),
];

fn checked(file: PolicyFile, of_providers: OfProviders, problems: &mut Vec<Problem>) -> Policy {
    let mut say = |span: Range<usize>, message: String, help: &str| {
        problems.push(Problem { span, message, help: help.to_string() });
    };
    if file.name.get_ref().trim().is_empty() {
        say(file.name.span(), "the policy has no name".into(), "such as \"edge\"");
    }
    let mut unix = |time: Option<&Spanned<Datetime>>| {
        let time = time?;
        let unix = unix_time(time.get_ref());
        if unix.is_none() {
            let message = format!("{} is not a time in UTC", time.get_ref());
            say(time.span(), message, "a date, T, a time, Z: 2027-01-31T00:00:00Z");
        }
        unix
    };
    let expires_unix = unix(file.expires.as_ref());
    let begins_unix = unix(file.begins.as_ref());
    let stage = file.stage.as_ref().map_or(Stage::default(), |stage| *stage.get_ref());
    match (&file.begins, &file.stage) {
        (None, Some(named)) if stage == Stage::Site => {
            let message = "the hosts of a site need the same first block".to_string();
            say(named.span(), message, "add when it begins: begins = 2027-01-31T18:00:00Z");
        }
        (Some(begins), _) if expires_unix.is_some_and(|expires| begins_unix >= Some(expires)) => {
            let message = "the first block begins when the policy has expired".to_string();
            say(begins.span(), message, "choose an earlier begin, or a later end in expires");
        }
        (Some(begins), _) if stage != Stage::Site => {
            let message = "only the stage site begins at a given time".to_string();
            say(begins.span(), message, "remove the key, or write stage = \"site\"");
        }
        _ => {}
    }
    let accepts = file.accepts.iter().filter_map(|name| {
        let harm = Guarded::acceptable(name.get_ref());
        if harm.is_none() {
            let message = format!("{} is no harm that can be accepted", name.get_ref());
            let help = format!("write {}", Guarded::ACCEPTABLE.map(Guarded::name).join(" or "));
            say(name.span(), message, &help);
        }
        harm
    });
    let accepts = accepts.collect();
    let table = file.table.map_or(TABLE, |table| {
        if *table.get_ref() < TABLE_MIN {
            let message = format!("table {} is below {TABLE_MIN}", table.get_ref());
            say(table.span(), message, "remove the key, or use a number such as 7222");
        }
        if *table.get_ref() > TABLE_MAX {
            let message = format!("after table {} there is none for each port", table.get_ref());
            say(table.span(), message, "remove the key, or use a number such as 7222");
        }
        table.into_inner()
    });
    let actuator = file.actuator.map(|name| match name {
        ActuatorName::Route => Means::Routes,
        ActuatorName::Bpf => Means::Programs,
    });
    let open_connections = file.open_connections.is_some_and(|open| {
        if *open.get_ref() && actuator != Some(Means::Programs) {
            let message = "routes cannot change connections that are open".to_string();
            say(open.span(), message, "write actuator = \"bpf\" as well");
        }
        open.into_inner()
    });
    if file.groups.is_empty() {
        let help = "[[group]] with name, prefixes and controller";
        say(file.name.span(), "the policy has no group".into(), help);
    }
    let mut names = BTreeSet::new();
    let mut groups = Vec::new();
    let mut holders = Vec::new();
    let mut of_providers = of_providers.into_iter();
    let has_hints = file.groups.iter().any(|group| group.mark.is_some() || group.cgroup.is_some());
    for group in file.groups {
        let of_providers = of_providers.next().unwrap_or_default();
        let name = group.name.get_ref().clone();
        if name.trim().is_empty() || name == "others" {
            let help = "any name except `others`, which stands for connections in no group";
            say(group.name.span(), "the group needs a name".into(), help);
        }
        if !names.insert(name.clone()) {
            let message = format!("two groups are called {name}");
            say(group.name.span(), message, "give each its own name");
        }
        let hint_spans =
            [group.mark.as_ref().map(Spanned::span), group.cgroup.as_ref().map(Spanned::span)];
        let hint_span = hint_spans.into_iter().flatten().next();
        let hint = hint(group.mark.as_ref(), group.cgroup.as_ref(), &mut say);
        let is_of_all = group.prefixes.is_empty() && group.providers.is_empty();
        if is_of_all && hint_span.is_none() {
            let message = format!("{name} has no prefix");
            say(group.name.span(), message, "prefixes = [\"203.0.113.0/24\"]");
        }
        let mut ports = BTreeSet::new();
        for port in &group.ports {
            let number = *port.get_ref();
            if number == 0 || !ports.insert(number) {
                let message = match number {
                    0 => "ports: 0 is not a whole number from 1 to 65535".to_string(),
                    _ => format!("port {number} is named twice"),
                };
                say(port.span(), message, "write each port once, such as ports = [80, 443]");
            }
        }
        let mut clients: Vec<(Range<usize>, IpNet)> = Vec::new();
        for prefix in &group.prefixes {
            match prefix_of(prefix.get_ref()) {
                Err((message, help)) => say(prefix.span(), message, &help),
                Ok(net) => clients.push((prefix.span(), net)),
            }
        }
        for (span, prefixes) in of_providers {
            clients.extend(prefixes.into_iter().map(|net| (span.clone(), net)));
        }
        if let Some(span) = hint_span.clone().filter(|_| is_of_all) {
            clients.extend(everyone().map(|net| (span.clone(), net)));
        }
        let prefixes = clients.iter().map(|(_, net)| *net).collect();
        holders.extend(clients.into_iter().map(|(span, net)| Holder {
            net,
            ports: ports.clone(),
            hint: hint.clone(),
            group: name.clone(),
            span,
        }));
        let controller = group.controller.get_ref().clone();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        for controller in [Some(&group.controller), group.control.as_ref()].into_iter().flatten() {
            let name = controller.get_ref();
            if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(plain) {
                let message = format!("`{name}` is not a valid name of a controller in the kernel");
                let help = "one of: sysctl net.ipv4.tcp_available_congestion_control";
                say(controller.span(), message, help);
            }
        }
        let (window, pacing, ecn) = (&group.initial_window, &group.pacing, &group.ecn);
        let wrong = window.as_ref().filter(|one| !(1..=WINDOW_MAX).contains(one.get_ref()));
        if let Some(wrong) = wrong {
            let message = format!("an initial window of {} segments", wrong.get_ref());
            say(wrong.span(), message, "write 1 to 1000, such as 32; the kernel's is 10");
        }
        let span = |one: &Option<Spanned<bool>>| one.as_ref().map(Spanned::span);
        let spans = [window.as_ref().map(Spanned::span), span(pacing), span(ecn)];
        if let (Some(span), Some(ActuatorName::Route)) =
            (spans.into_iter().flatten().next(), file.actuator)
        {
            let message = "routes set neither the initial window nor pacing or ECN".to_string();
            say(span, message, "remove actuator = \"route\", or the key");
        }
        if let (Some(span), Some(ActuatorName::Route)) = (hint_span, file.actuator) {
            let message = "routes see neither marks nor control groups".to_string();
            say(span, message, "remove actuator = \"route\", or the key");
        }
        if let Some(ecn) = ecn.as_ref().filter(|one| *one.get_ref() && has_hints) {
            let message =
                "ECN is negotiated before a connection has a mark or a control group".to_string();
            let help = "remove ecn, or the groups with `mark` or `cgroup`";
            say(ecn.span(), message, help);
        }
        let initial_window = window.as_ref().map(|one| *one.get_ref());
        let [paces, ecn] = [pacing, ecn].map(|one| one.as_ref().is_some_and(|one| *one.get_ref()));
        let is_alike = initial_window.is_none() && !paces && !ecn;
        let same = group.control.as_ref().filter(|one| *one.get_ref() == controller && is_alike);
        if let Some(control) = same {
            let message = format!("{name} compares {controller} with itself");
            let help = "name the controller in use, or change more: initial_window = 32";
            say(control.span(), message, help);
        }
        let hold_out = group.hold_out.map_or(HOLD_OUT, |share| {
            share_of(share.get_ref()).unwrap_or_else(|| {
                let message = format!("`{}` is not a valid share to hold out", share.get_ref());
                say(share.span(), message, "0% to 50%, such as \"5%\"");
                0.0
            })
        });
        groups.push(PolicyGroup {
            name,
            prefixes,
            ports: ports.into_iter().collect(),
            hint,
            controller,
            initial_window,
            paces,
            ecn,
            control: group.control.map(Spanned::into_inner),
            hold_out,
            controller_span: group.controller.span(),
        });
    }
    for (inner, outer) in overlaps(&mut holders) {
        let message = format!("{} overlaps {} of {}", inner.net, outer.net, outer.group);
        let help = "connections must be in one group: cut one of the prefixes, or give the \
            groups different ports";
        say(inner.span.clone(), message, help);
    }
    Policy {
        name: file.name.into_inner(),
        version: file.version,
        expires_unix,
        seed: file.seed,
        table,
        actuator,
        open_connections,
        stage,
        begins_unix,
        accepts,
        groups,
    }
}

/// All clients, IPv4 and IPv6.
fn everyone() -> impl Iterator<Item = IpNet> {
    let all = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    all.into_iter().filter_map(|any| IpNet::new(any, 0).ok())
}

/// The hint of a group, which has one at most.
fn hint(
    mark: Option<&Spanned<u32>>,
    cgroup: Option<&Spanned<String>>,
    say: &mut impl FnMut(Range<usize>, String, &str),
) -> Option<Hint> {
    if let (Some(_), Some(cgroup)) = (mark, cgroup) {
        let message = "a group has a mark or a control group, not both".to_string();
        say(cgroup.span(), message, "remove one of them, or write two groups");
    }
    if let Some(mark) = mark.filter(|mark| *mark.get_ref() == 0) {
        let message = "mark: 0 is what a socket without a mark has".to_string();
        say(mark.span(), message, "write another one, 1 to 4294967295, or remove the key");
    }
    let wrong = cgroup.and_then(|one| Some((one.span(), Hint::wrong(one.get_ref())?)));
    if let Some((span, (message, help))) = wrong {
        say(span, message, &help);
    }
    let of_mark = mark.map(|mark| Hint::Mark(*mark.get_ref()));
    of_mark.or_else(|| Some(Hint::Cgroup(cgroup?.get_ref().clone())))
}

/// Unix time of a UTC time; `None` for other time zones and before 1970.
fn unix_time(time: &Datetime) -> Option<u64> {
    let (date, clock) = (time.date?, time.time?);
    if time.offset != Some(toml::value::Offset::Z) {
        return None;
    }
    // Days of the proleptic Gregorian calendar, in years that begin with March.
    let (month, day) = (i64::from(date.month), i64::from(date.day));
    let year = i64::from(date.year) - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    let [hour, minute, second] =
        [i64::from(clock.hour), i64::from(clock.minute), i64::from(clock.second.unwrap_or(0))];
    u64::try_from(86_400 * days + 3600 * hour + 60 * minute + second).ok()
}

/// A prefix of a group.
struct Holder {
    net: IpNet,
    ports: BTreeSet<u16>,
    hint: Option<Hint>,
    group: String,
    span: Range<usize>,
}

/// Pairs of prefixes that match the same connection, the later one in the file first.
fn overlaps(holders: &mut [Holder]) -> Vec<(&Holder, &Holder)> {
    holders.sort_by_key(|holder| (holder.net.network(), holder.net.prefix_len()));
    let mut around: Vec<&Holder> = Vec::new();
    let mut found = Vec::new();
    for holder in &*holders {
        while around.last().is_some_and(|outer| !outer.net.contains(&holder.net)) {
            around.pop();
        }
        for outer in around.iter().filter(|outer| outer.hint == holder.hint) {
            let all = holder.ports.is_empty() || outer.ports.is_empty();
            if all || !holder.ports.is_disjoint(&outer.ports) {
                let later = holder.span.start > outer.span.start;
                found.push(if later { (holder, *outer) } else { (*outer, holder) });
            }
        }
        around.push(holder);
    }
    found
}

/// Parses a prefix without host bits; the error contains the correction.
fn prefix_of(text: &str) -> Result<IpNet, (String, String)> {
    let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let net = net.map_err(|_| {
        let help = "an address, / and a length: 203.0.113.0/24, 2001:db8::/32";
        (format!("`{text}` is not a valid prefix"), help.to_string())
    })?;
    if net != net.trunc() {
        let help = format!("write {}", net.trunc());
        return Err((format!("{net} has bits beyond its length"), help));
    }
    Ok(net)
}

fn share_of(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    Some(number / 100.0).filter(|share| (0.0..=HOLD_OUT_MAX).contains(share))
}

#[cfg(test)]
mod tests;
