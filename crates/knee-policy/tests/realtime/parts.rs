//! Experiments by routes, in separate namespaces: which route an address has, and which controller.

use crate::wire::{ip, wired};
use ipnet::IpNet;
use knee_host::{Route, Routes, TABLE_MAIN, sysctl};
use knee_policy::{
    Actuator, Arm, Choice, Host, Journal, Means, Plan, Planned, Policy, PolicyError, Recorded,
    RouteActuator, TABLE, What,
};
use knee_steer::{Arms, AssignedGroup, Assignment, Design, in_half};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs many of its commands at once.
fn ip_batch(lines: &str) {
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    ip.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(ip.wait().unwrap().success(), "{lines}");
}

fn controller(to: IpAddr, port: u16) -> String {
    crate::wire::controller(SocketAddr::new(to, 80), port)
}

fn policy(groups: &str) -> Policy {
    Policy::parse(&format!("name = \"test\"\nactuator = \"route\"\n{groups}")).unwrap()
}

/// A group that compares the default of the kernel, A, with another controller.
fn group(name: &str, keys: &str) -> String {
    let [a, b] = pair();
    format!("[[group]]\nname = \"{name}\"\n{keys}\ncontroller = \"{b}\"\ncontrol = \"{a}\"\n")
}

fn pair() -> [String; 2] {
    let a = sysctl("net.ipv4.tcp_congestion_control").unwrap();
    let b = if a == "reno" { "cubic" } else { "reno" }.to_string();
    [a, b]
}

/// Choices as those of an experiment: all A, all B, or half and half.
fn choices(policy: &Policy, treatment: knee_steer::Treatment, triple: u64) -> Vec<Choice> {
    use knee_steer::Treatment::{Control, Half, Test};
    let [a, b] = pair();
    let choice = |group: &knee_policy::PolicyGroup| {
        let [a, b] = [&a, &b].map(|name| Arm::of(name));
        Choice {
            arms: if treatment == Test { [b, a] } else { [a, b] },
            key: Design::new(policy.seed).half_key(&group.name, triple),
            share: match treatment {
                Half => 1 << 31,
                Control | Test => 0,
            },
        }
    };
    policy.groups.iter().map(choice).collect()
}

/// An experiment that is applied.
struct Applied {
    actuator: RouteActuator,
    journal: Journal,
    plan: Plan,
    host: Host,
}

fn applied(policy: &Policy, path: &Path) -> Applied {
    let (mut actuator, mut host) = (RouteActuator::open().unwrap(), Host::open().unwrap());
    let main = host.main_table().unwrap();
    let plan = Plan::for_experiment(Means::Routes, policy, &main).unwrap();
    plan.check_halves(policy).unwrap();
    let (mut journal, before) = Journal::hold(path).unwrap();
    assert_eq!(before, Recorded::default());
    journal.write(&[Journal::begin(&policy.name, 0).unwrap()]).unwrap();
    let applied = actuator.apply(&plan, &mut journal).unwrap();
    assert!(applied.refused.is_empty(), "{applied:?}");
    assert_eq!(applied.added, plan.routes.len());
    Applied { actuator, journal, plan, host }
}

impl Applied {
    /// Removes everything; returns the routes that were left.
    fn back(mut self) -> Vec<(u32, IpNet)> {
        let recorded = self.journal.recorded().unwrap();
        self.host.roll_back(&recorded).unwrap().left
    }
}

/// All output of ip-route(8) and ip-rule(8).
fn everything() -> Vec<String> {
    ["route show table all", "-6 route show table all", "rule", "-6 rule"].map(ip).to_vec()
}

/// In blocks of each kind, connections of clients, of IPv4 and IPv6, within and outside of more
/// specific routes, have the drawn controller; the journal is written once and knows every state.
fn parts_get_what_is_drawn() -> Result<(), Skipped> {
    use knee_steer::Treatment::{Control, Half, Test};
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        ip("route add default via 2001:db8::fe");
        ip("route add 198.51.100.64/26 via 192.0.2.7");
        ip("route add 203.0.113.64/30 via 192.0.2.8");
        ip("route add 203.0.113.88/30 via 192.0.2.8 proto bgp");
        let before = everything();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let near = "prefixes = [\"198.51.100.0/24\", \"2001:db8:5::/48\"]";
        // Of parts of 8 clients, with routes within two of them.
        let wide = "prefixes = [\"203.0.112.0/20\", \"198.18.0.0/16\"]\nports = [5001, 5002]";
        let policy = policy(&(group("near", near) + &group("wide", wide)));
        let mut applied = applied(&policy, &path);
        let [a, b] = pair();
        let clients: Vec<(usize, u8, IpAddr)> = (1..=120u8)
            .map(|last| (0, 32, IpAddr::from([198, 51, 100, last * 2])))
            .chain(
                (0..40u16)
                    .map(|net| (0, 57, IpAddr::from([0x2001, 0xdb8, 5, net * 1000, 0, 0, 0, 9]))),
            )
            .chain((48..112u8).map(|last| (1, 29, IpAddr::from([203, 0, 113, last]))))
            .collect();
        let lengths: Vec<u8> =
            policy.groups[0].prefixes.iter().map(|net| net.prefix_len()).collect();
        assert_eq!(lengths, [24, 48]);
        let length = std::fs::metadata(&path).unwrap().len();
        let mut seen = BTreeMap::new();
        for (triple, treatment) in
            [Control, Test, Half, Control, Half, Half, Test].iter().enumerate()
        {
            let choices = choices(&policy, *treatment, triple as u64);
            applied.actuator.choose(choices.clone()).unwrap();
            for (group, part, client) in &clients {
                let alone = IpAddr::from([203, 0, 113, 88])..=IpAddr::from([203, 0, 113, 91]);
                let part = IpNet::new(*client, *part).unwrap().trunc();
                let expected = match treatment {
                    _ if alone.contains(client) => {
                        sysctl("net.ipv4.tcp_congestion_control").unwrap()
                    }
                    Control => a.clone(),
                    Test => b.clone(),
                    Half if in_half(&choices[*group].key, part) => b.clone(),
                    Half => a.clone(),
                };
                let port = if *group == 0 { 0 } else { 5001 + triple as u16 % 2 };
                assert_eq!(controller(*client, port), expected, "{client} {treatment:?}");
                *seen.entry((*treatment, *group, expected)).or_insert(0) += 1;
            }
            let state = applied.host.state(&Journal::read(&path).unwrap()).unwrap();
            assert_eq!((state.missing, state.foreign.len()), (0, 0));
            assert_eq!(state.steering + state.throwing, applied.plan.routes.len());
        }
        // Of 160 and 56 clients, three times.
        for (group, least) in [(0, 150), (1, 10)] {
            assert!(
                seen[&(Half, group, a.clone())] > least && seen[&(Half, group, b.clone())] > least
            );
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
        let way = |client: &str| ip(&format!("route get {client} ipproto tcp sport 5001"));
        assert!(
            way("203.0.113.65").contains("via 192.0.2.8") && way("203.0.113.65").contains("table")
        );
        assert!(way("203.0.113.68").contains("via 192.0.2.254"));
        assert!(!way("203.0.113.89").contains("table"));
        assert!(way("198.51.100.65").contains("via 192.0.2.7"));

        ip("route replace default via 2001:db8::fd");
        let main = applied.host.main_table().unwrap();
        applied.plan = Plan::for_experiment(Means::Routes, &policy, &main).unwrap();
        let done = applied.actuator.apply(&applied.plan, &mut applied.journal).unwrap();
        assert_eq!((done.added, done.removed, done.left), (512, 512, vec![]));
        assert!(ip("route get 2001:db8:5::9 ipproto tcp").contains("via 2001:db8::fd"));
        assert_eq!(ip("-6 route show table 7222").matches("via 2001:db8::fd").count(), 512);
        ip("route replace default via 2001:db8::fe");
        assert_eq!(applied.back(), []);
        assert_eq!(everything(), before);
    });
    Ok(())
}

/// Routes that somebody has changed or locked in the middle of an experiment keep what they got and
/// are excluded; a new next hop of the main table is followed, in the current block.
fn changes_of_others_stay() -> Result<(), Skipped> {
    use knee_steer::Treatment::{Control, Half, Test};
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let before = everything();
        let folder = tempfile::tempdir().unwrap();
        let policy = policy(&group("near", "prefixes = [\"198.51.100.0/24\"]"));
        let mut applied = applied(&policy, &folder.path().join("journal"));
        let [a, b] = pair();
        applied.actuator.choose(choices(&policy, Test, 0)).unwrap();
        let table = format!("table {TABLE}");
        ip(&format!("route replace 198.51.100.7/32 via 192.0.2.254 {table} congctl bbr"));
        ip(&format!("route replace 198.51.100.8/32 via 192.0.2.9 {table} congctl {b} proto 222"));
        ip(&format!(
            "route replace 198.51.100.9/32 via 192.0.2.254 {table} congctl lock {b} proto 222"
        ));
        ip(&format!("route del 198.51.100.10/32 {table}"));
        let others =
            || ["7", "8", "9"].map(|last| ip(&format!("route show 198.51.100.{last}/32 {table}")));
        let changed = others();
        applied.actuator.choose(choices(&policy, Control, 0)).unwrap();
        assert_eq!(others(), changed);
        assert_eq!(controller("198.51.100.6".parse().unwrap(), 0), a);
        assert_eq!(controller("198.51.100.9".parse().unwrap(), 0), b);

        let follow = |applied: &mut Applied| {
            let main = applied.host.main_table().unwrap();
            applied.plan = Plan::for_experiment(Means::Routes, &policy, &main).unwrap();
            let done = applied.actuator.apply(&applied.plan, &mut applied.journal).unwrap();
            applied.plan.leave(&done);
            done
        };
        let done = follow(&mut applied);
        let left = [7, 8, 9].map(|last| (TABLE, IpNet::from(IpAddr::from([198, 51, 100, last]))));
        assert_eq!((done.added, done.removed, done.left), (1, 0, left.to_vec()));
        assert_eq!(applied.plan.left_alone(), left.map(|(_, net)| net));
        assert_eq!(others(), changed);

        ip("route replace default via 192.0.2.77");
        ip(&format!("route add 198.51.100.128/25 via 192.0.2.9 {table}"));
        let choices = choices(&policy, Half, 5);
        applied.actuator.choose(choices.clone()).unwrap();
        let done = follow(&mut applied);
        assert_eq!((done.added, done.removed, done.left.len()), (253, 253, 4));
        assert_eq!(others(), changed);
        assert_eq!(applied.plan.left_alone(), left.map(|(_, net)| net));
        for last in [1, 2, 3, 10, 11, 12, 13, 14, 15, 160u8] {
            let client = IpAddr::from([198, 51, 100, last]);
            let expected = if in_half(&choices[0].key, client.into()) { &b } else { &a };
            assert_eq!(&controller(client, 0), expected);
            assert!(ip(&format!("route get {client} ipproto tcp")).contains("via 192.0.2.77"));
        }
        // The rollback cannot tell the one with another gateway from Knee's.
        let wide = (TABLE, "198.51.100.128/25".parse().unwrap());
        assert_eq!(applied.back(), [left[0], left[2], wide]);
        ip(&format!("route flush {table}"));
        ip("route replace default via 192.0.2.254");
        assert_eq!(everything(), before);
    });
    Ok(())
}

/// What an experiment cannot do is refused with the remedy: too many routes, halves of few clients,
/// clients without a usable route. A controller that is gone is an error.
fn impossible_experiments_are_refused() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let main = Host::open().unwrap().main_table().unwrap();
        let refused = |groups: &str| {
            let policy = policy(groups);
            let plan = Plan::for_experiment(Means::Routes, &policy, &main);
            let error = plan.and_then(|plan| plan.check_halves(&policy)).unwrap_err();
            let PolicyError::Experiment { problem, advice } = error else { panic!("{error}") };
            format!("{problem}; {advice}")
        };
        let few = refused(&group("few", "prefixes = [\"198.51.100.0/29\", \"192.0.2.7\"]"));
        assert!(few.contains("few has 9 clients") && few.contains("/27"), "{few}");
        let none = refused(&group("six", "prefixes = [\"2001:db8:7::/48\"]"));
        assert!(none.contains("of six") && none.contains("no route"), "{none}");
        let ports: Vec<String> = (1..=98).map(|port| port.to_string()).collect();
        let ports = format!("prefixes = [\"10.0.0.0/8\"]\nports = [{}]", ports.join(","));
        let many = refused(&group("many", &ports));
        assert!(many.contains("100000") && many.contains("--group"), "{many}");
        let folder = tempfile::tempdir().unwrap();
        let policy = policy(&group("near", "prefixes = [\"198.51.100.0/24\"]"));
        let mut applied = applied(&policy, &folder.path().join("journal"));
        let mut choices = choices(&policy, knee_steer::Treatment::Test, 0);
        choices[0].arms[0] = Arm::of("gone");
        let error = applied.actuator.choose(choices).unwrap_err();
        assert!(matches!(error, PolicyError::Host(_)), "{error}");
        assert_eq!(applied.back(), []);
    });
    Ok(())
}

/// Thousands of routes are replaced and are then as planned; prints how long it takes.
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "--nocapture shows it")]
fn replacing_many() -> Result<(), Skipped> {
    use knee_steer::Treatment::{Control, Half, Test};
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let folder = tempfile::tempdir().unwrap();
        let groups: String = (0..4)
            .map(|of| group(&of.to_string(), &format!("prefixes = [\"10.{of}.0.0/16\"]")))
            .collect();
        let policy = policy(&groups);
        let began = Instant::now();
        let mut applied = applied(&policy, &folder.path().join("journal"));
        println!("{} routes applied in {:?}", applied.plan.routes.len(), began.elapsed());
        for treatment in [Test, Control, Half] {
            let began = Instant::now();
            applied.actuator.choose(choices(&policy, treatment, 1)).unwrap();
            println!("{treatment:?} in {:?}", began.elapsed());
        }
        let began = Instant::now();
        let again = applied.actuator.apply(&applied.plan, &mut applied.journal).unwrap();
        assert_eq!((again.added, again.removed, again.left), (0, 0, vec![]));
        println!("compared in {:?}", began.elapsed());
        assert_eq!(applied.back(), []);
    });
    Ok(())
}

/// The most specific route to an address.
fn found<'p>(routes: &'p BTreeMap<IpNet, &'p Planned>, address: IpAddr) -> Option<&'p Planned> {
    (0..=32)
        .rev()
        .find_map(|length| routes.get(&IpNet::new(address, length).unwrap().trunc()).copied())
}

/// Random main tables: an address is steered in an experiment exactly if it is under a policy, with
/// the same next hop, and it is in the experiment exactly if it is steered. Its part is the one from
/// which the experiment and observers draw its arm. The same holds for BPF programs, but that they
/// only leave alone what an administrator has chosen. `PROPTEST_CASES=500` tries that many.
fn random_tables_are_divided() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    let route = (0u32..1 << 12, 14u8..=32, 2u8..250, 0u8..9);
    let tables = proptest::collection::vec(route, 0..24);
    let prefixes = proptest::collection::vec((0u32..1 << 8, 18u8..=27), 1..4);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(20),
        failure_persistence: None,
        ..Default::default()
    });
    let net = |bits: u32, length: u8| {
        IpNet::new(Ipv4Addr::from(0xc610_0000 | bits << 6).into(), length).unwrap().trunc()
    };
    let result = runner.run(&(tables, prefixes, any::<bool>()), |(table, prefixes, default)| {
        let lines = table.iter().map(|(bits, length, hop, kind)| {
            let to = net(*bits, *length);
            match kind {
                0 => format!("route replace blackhole {to}\n"),
                1 => format!("route replace {to} via 192.0.2.{hop} congctl lock cubic\n"),
                2 => format!("route replace {to} via 192.0.2.{hop} proto bgp\n"),
                3 => format!("route replace {to} via 192.0.2.{hop} metric {hop}\n"),
                _ => format!("route replace {to} via 192.0.2.{hop}\n"),
            }
        });
        let lines: String =
            lines.chain((!default).then(|| "route del default\n".to_string())).collect();
        let main: Vec<Route> = wired(|| {
            ip_batch(&lines);
            Routes::open().unwrap().table(TABLE_MAIN).unwrap()
        });
        let mut own: Vec<IpNet> = Vec::new();
        for (bits, length) in &prefixes {
            let to = net(bits << 4, *length);
            if !own.iter().any(|net| net.contains(&to) || to.contains(net)) {
                own.push(to);
            }
        }
        let names: Vec<String> = own.iter().map(|net| format!("\"{net}\"")).collect();
        let keys = format!("prefixes = [{}]\nhold_out = \"0%\"", names.join(","));
        let policy = policy(&group("all", &keys));
        let whole = Plan::of(&policy, &main);
        let plan = Plan::for_experiment(Means::Routes, &policy, &main).unwrap();
        let one: BTreeMap<IpNet, &Planned> =
            whole.routes.iter().map(|planned| (planned.route.destination(), planned)).collect();
        let all: BTreeMap<IpNet, &Planned> =
            plan.routes.iter().map(|planned| (planned.route.destination(), planned)).collect();
        prop_assert_eq!(all.len(), plan.routes.len());
        let alone = plan.left_alone();
        let key = Design::new(policy.seed).half_key("all", 3);
        let arms = arms(&plan, key);
        let by_programs = Plan::for_experiment(Means::Programs, &policy, &main).unwrap();
        let alone_by_programs = by_programs.left_alone();
        let arms_by_programs = self::arms(&by_programs, key);
        let ways: BTreeMap<IpNet, &Route> = main.iter().fold(BTreeMap::new(), |mut ways, route| {
            let way = ways.entry(route.destination()).or_insert(route);
            *way = if route.metric() < way.metric() { route } else { *way };
            ways
        });
        let bits = 1024usize.div_ceil(own.len()).next_power_of_two().ilog2() as u8;
        let borders = main.iter().map(Route::destination).chain(own.iter().copied());
        let borders = borders.filter_map(|net| match net {
            IpNet::V4(net) => Some([u32::from(net.network()), u32::from(net.broadcast())]),
            IpNet::V6(_) => None,
        });
        for address in borders.flatten().flat_map(|at| [at.wrapping_sub(1), at, at.wrapping_add(1)])
        {
            let address = IpAddr::V4(Ipv4Addr::from(address));
            let Some(prefix) = own.iter().find(|net| net.contains(&address)) else {
                prop_assert!(found(&all, address).is_none());
                continue;
            };
            let led = found(&one, address).filter(|planned| !planned.route.is_throw());
            let now = found(&all, address).filter(|planned| !planned.route.is_throw());
            prop_assert_eq!(led.map(|one| one.route.way()), now.map(|one| one.route.way()));
            let is_alone = alone.iter().any(|net| net.contains(&address));
            prop_assert_eq!(is_alone, led.is_none(), "{}", address);
            // The part as the experiment counts it.
            let length = (prefix.prefix_len() + bits).min(32);
            let part = IpNet::new(address, length).unwrap().trunc();
            prop_assert!(now.is_none_or(|now| now.part == Some(part)), "{} {}", address, part);
            let expected = match now {
                None => "",
                Some(_) if in_half(&key, part) => "B",
                Some(_) => "A",
            };
            prop_assert_eq!(&*arms.of(443, address).unwrap().arm, expected);
            let way = (0..=32)
                .rev()
                .find_map(|length| ways.get(&IpNet::new(address, length).unwrap().trunc()));
            let is_chosen = way.is_some_and(|route| route.controller().is_some());
            let is_alone = alone_by_programs.iter().any(|net| net.contains(&address));
            prop_assert_eq!(is_alone, is_chosen, "{}", address);
            let drawn = if in_half(&key, part) { "B" } else { "A" };
            let expected = if is_chosen { "" } else { drawn };
            prop_assert_eq!(&*arms_by_programs.of(443, address).unwrap().arm, expected);
        }
        Ok(())
    });
    result.unwrap();
    Ok(())
}

/// Within a route whose controller an administrator has chosen, another one has none: by programs its
/// clients are in the experiment, in the part that the experiment counts, though it is shorter than
/// the longest prefixes.
fn what_is_within_a_chosen_route() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    let (main, later) = wired(|| {
        ip("route add 198.51.100.0/24 via 192.0.2.7 congctl cubic");
        ip("route add 198.51.100.128/28 via 192.0.2.8");
        let main = || -> Vec<Route> { Routes::open().unwrap().table(TABLE_MAIN).unwrap() };
        let before = main();
        ip("route add 198.51.200.0/24 via 192.0.2.8");
        (before, main())
    });
    let policy = policy(&group("all", "prefixes = [\"198.51.0.0/16\"]"));
    let plan = Plan::for_experiment(Means::Programs, &policy, &main).unwrap();
    let alone = plan.left_alone();
    let is_alone = |last: u8| alone.iter().any(|net| net.contains(&ipv4(last)));
    assert_eq!([1, 127, 128, 143, 144, 255].map(is_alone), [true, true, false, false, true, true]);
    // Another route that nobody chose changes the treatment of no client.
    let with_another = Plan::for_experiment(Means::Programs, &policy, &later).unwrap();
    assert_eq!(with_another.left_alone(), alone);
    let (mut seen, size) = ([0, 0], 26);
    for triple in 0..20 {
        let key = Design::new(policy.seed).half_key("all", triple);
        let part = IpNet::new(ipv4(135), size).unwrap().trunc();
        let is_tested = in_half(&key, part);
        let arm = arms(&plan, key).of(443, ipv4(135)).unwrap().arm;
        assert_eq!(&*arm, if is_tested { "B" } else { "A" });
        seen[usize::from(is_tested)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    Ok(())
}

fn ipv4(last: u8) -> IpAddr {
    IpAddr::from([198, 51, 100, last])
}

/// The arms of a plan's places, drawn with this key.
fn arms(plan: &Plan, key: [u8; 16]) -> Arms {
    let place = |placed: &knee_policy::Placed| knee_steer::AssignedPlace {
        group: placed.group,
        prefix: placed.prefix,
        port: placed.port,
        part: placed.part,
        arm: (placed.what != What::Steered).then(|| knee_steer::KEPT.to_string()),
    };
    let group = AssignedGroup {
        name: "all".to_string(),
        arms: ["A", "B"].map(String::from),
        key,
        share: 1 << 31,
    };
    let assignment = Assignment {
        schema: String::new(),
        policy: String::new(),
        since_boot_ns: 0,
        block: None,
        groups: vec![group],
        places: plan.places.iter().map(place).collect(),
    };
    Arms::new(&assignment).unwrap()
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        parts_get_what_is_drawn,
        changes_of_others_stay,
        impossible_experiments_are_refused,
        replacing_many,
        random_tables_are_divided,
        what_is_within_a_chosen_route,
    ]
}
