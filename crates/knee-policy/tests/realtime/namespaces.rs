//! Policies applied to real routes, in separate namespaces: controllers of the kernel's sockets,
//! and what remains afterwards.

use crate::wire::ip;
use ipnet::IpNet;
use knee_host::{Route, Routes, TABLE_MAIN, sysctl};
use knee_policy::{
    Actuator, Entry, Host, Journal, Means, Plan, Policy, PolicyError, Recorded, RouteActuator,
    TABLE, What, Why,
};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A wired host with a default route for IPv6 as well.
fn wired<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    crate::wire::wired(|| {
        ip("route add default via 2001:db8::fe");
        work()
    })
}

fn controller(to: &str, port: u16) -> String {
    crate::wire::controller(to.parse().unwrap(), port)
}

/// A controller other than the default.
fn other() -> String {
    let default = sysctl("net.ipv4.tcp_congestion_control").unwrap();
    if default == "reno" { "cubic" } else { "reno" }.to_string()
}

fn policy(text: &str) -> Policy {
    Policy::parse(&format!("name = \"test\"\n{text}")).unwrap()
}

/// A policy of one group, a share of which is held out.
fn one_group(prefix: &str, controller: &str, hold_out: &str) -> Policy {
    policy(&format!(
        "[[group]]\nname = \"all\"\nprefixes = [\"{prefix}\"]\n\
         controller = \"{controller}\"\nhold_out = \"{hold_out}\"\n"
    ))
}

/// Applies a policy to the host.
fn applied(policy: &Policy, path: &Path) -> Plan {
    let (mut actuator, mut host) = (RouteActuator::open().unwrap(), Host::open().unwrap());
    let plan = Plan::of(policy, &host.main_table().unwrap());
    let (mut journal, before) = Journal::hold(path).unwrap();
    assert_eq!(before, Recorded::default());
    journal.write(&[Journal::begin(&policy.name, 0).unwrap()]).unwrap();
    let applied = actuator.apply(&plan, &mut journal).unwrap();
    assert!(applied.refused.is_empty(), "{applied:?}");
    assert_eq!(applied.added, plan.routes.len());
    plan
}

/// All output of ip-route(8) and ip-rule(8).
fn everything() -> Vec<String> {
    ["route show table all", "-6 route show table all", "rule", "-6 rule"].map(ip).to_vec()
}

/// New connections of the group's clients and ports have the controller; others, including those
/// of held-out clients, have the default, and all have it after the rollback.
fn new_connections_get_the_controller() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let (other, default) = (other(), sysctl("net.ipv4.tcp_congestion_control").unwrap());
        let before = everything();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/steer.journal");
        let plan = applied(
            &policy(&format!(
                "[[group]]\nname = \"all\"\nprefixes = [\"198.51.100.0/24\", \
                 \"2001:db8:5::/48\"]\ncontroller = \"{other}\"\nhold_out = \"10%\"\n\
                 [[group]]\nname = \"web\"\nprefixes = [\"203.0.113.0/24\"]\nports = [443]\n\
                 controller = \"{other}\"\nhold_out = \"0%\"\n"
            )),
            &path,
        );
        assert_eq!(plan.kept, []);
        let held: Vec<IpNet> = plan
            .routes
            .iter()
            .filter(|planned| planned.held_out)
            .map(|planned| planned.route.destination())
            .collect();
        let out = |address: &str| {
            held.iter().any(|net| net.contains(&address.parse::<std::net::IpAddr>().unwrap()))
        };
        let (mut steered, mut kept) = (0, 0);
        for last in 1..=254u16 {
            let address = format!("198.51.100.{last}");
            let expected = if out(&address) { &default } else { &other };
            assert_eq!(&controller(&format!("{address}:80"), 0), expected, "{address}");
            *(if out(&address) { &mut kept } else { &mut steered }) += 1;
        }
        // 10 % of 254, within four standard deviations.
        assert!((7..=45).contains(&kept) && steered > 200, "{kept} of 254 held out");
        let six = "2001:db8:5:1:2::3";
        let expected = if out(six) { &default } else { &other };
        assert_eq!(&controller(&format!("[{six}]:80"), 0), expected);
        assert_eq!(controller("203.0.113.7:5000", 443), other);
        assert_eq!(controller("203.0.113.7:5000", 444), default);
        assert_eq!(controller("198.18.0.1:80", 0), default);

        let (mut journal, recorded) = Journal::hold(&path).unwrap();
        let mut host = Host::open().unwrap();
        let state = host.state(&recorded).unwrap();
        assert_eq!((state.missing, state.foreign.len(), state.throwing), (0, 0, held.len()));
        let returned = host.roll_back(&recorded).unwrap();
        journal.clear().unwrap();
        assert_eq!((returned.routes, returned.rules), (plan.routes.len(), plan.rules.len()));
        assert_eq!(controller("198.51.100.1:80", 0), default);
        assert_eq!(everything(), before);
        assert_eq!(host.roll_back(&recorded).unwrap(), Default::default());
        assert_eq!(Journal::read(&path).unwrap(), Recorded::default());
    });
    Ok(())
}

/// Routes within a prefix keep their next hop; routes of administrators and daemons, rejecting
/// routes and multipath routes are not copied.
fn what_is_somebody_else_s_stays() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let other = other();
        ip("route add 198.51.0.0/20 via 192.0.2.7");
        ip(&format!("route add 198.51.16.0/20 via 192.0.2.254 congctl lock {other}"));
        ip("route add blackhole 198.51.32.0/20");
        ip("route add 198.51.48.0/20 via 192.0.2.254 proto bird");
        ip("route add 198.51.64.0/20 nexthop via 192.0.2.3 nexthop via 192.0.2.4");
        let before = everything();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steer.journal");
        let policy = policy(&format!(
            "[[group]]\nname = \"all\"\nprefixes = [\"198.51.0.0/16\"]\n\
             controller = \"{other}\"\nhold_out = \"0%\"\n"
        ));
        let plan = applied(&policy, &path);
        let whys: Vec<&Why> = plan.kept.iter().map(|kept| &kept.why).collect();
        assert_eq!(
            whys,
            [&Why::Chosen(other.clone()), &Why::Refused, &Why::Daemon, &Why::SeveralWays]
        );
        let way = |address: &str| ip(&format!("route get {address} ipproto tcp"));
        assert!(
            way("198.51.0.1").contains("via 192.0.2.7")
                && way("198.51.0.1").contains(&format!("table {TABLE}"))
        );
        assert!(way("198.51.240.1").contains("via 192.0.2.254"));
        assert!(!way("198.51.16.1").contains("table"), "{}", way("198.51.16.1"));
        assert!(!way("198.51.64.1").contains("table"));
        let refused = Command::new("ip").args(["route", "get", "198.51.32.1"]).output().unwrap();
        assert!(!refused.status.success());
        // UDP routes are unchanged.
        assert!(!ip("route get 198.51.0.1 ipproto udp").contains("table"));

        // An administrator's controller takes precedence.
        ip(&format!(
            "route replace 198.51.0.0/20 via 192.0.2.7 table {TABLE} congctl bbr proto 222"
        ));
        let (_journal, recorded) = Journal::hold(&path).unwrap();
        let mut host = Host::open().unwrap();
        assert_eq!(host.state(&recorded).unwrap().foreign.len(), 1);
        let returned = host.roll_back(&recorded).unwrap();
        assert_eq!(returned.left, [(TABLE, "198.51.0.0/20".parse().unwrap())]);
        ip(&format!("route flush table {TABLE}"));
        assert_eq!(everything(), before);
    });
    Ok(())
}

/// A new next hop in the main table is followed.
fn changes_are_followed() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steer.journal");
        let policy = one_group("198.51.0.0/16", &other(), "1%");
        let first = applied(&policy, &path);
        ip("route replace default via 192.0.2.9");
        ip("route add 198.51.7.0/24 via 192.0.2.8");
        let (mut journal, _) = Journal::hold(&path).unwrap();
        let (mut actuator, mut host) = (RouteActuator::open().unwrap(), Host::open().unwrap());
        let plan = Plan::of(&policy, &host.main_table().unwrap());
        let applied = actuator.apply(&plan, &mut journal).unwrap();
        assert_eq!((applied.added, applied.removed), (2, 1));
        assert!(ip("route get 198.51.200.1 ipproto tcp").contains("192.0.2.9"));
        ip("route del 198.51.7.0/24");
        let again = Plan::of(&policy, &host.main_table().unwrap());
        let applied = actuator.apply(&again, &mut journal).unwrap();
        assert_eq!((applied.added, applied.removed), (0, 1));
        let recorded = Journal::read(&path).unwrap();
        let state = host.state(&recorded).unwrap();
        assert_eq!((state.missing, state.steering + state.throwing), (0, first.routes.len()));
        assert_eq!(actuator.apply(&again, &mut journal).unwrap().added, 0);
        // Without a way to other hosts there is none through Knee's table either.
        ip("route del default");
        let none = Plan::of(&policy, &host.main_table().unwrap());
        let applied = actuator.apply(&none, &mut journal).unwrap();
        assert_eq!((applied.added, applied.removed), (0, first.routes.len()));
        assert_eq!(ip(&format!("route show table {TABLE}")), "");
        ip("route add default via 192.0.2.9");
        assert_eq!(actuator.apply(&again, &mut journal).unwrap().added, first.routes.len());
        let state = host.state(&Journal::read(&path).unwrap()).unwrap();
        assert_eq!((state.missing, state.rules), (0, 1));
    });
    Ok(())
}

/// Held-out clients are drawn from those that are steered: where an administrator has chosen a
/// controller, or no route leads, nobody is held out, so both arms have the same ways.
fn who_is_not_steered_is_not_held_out() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        ip("route add 198.51.128.0/17 via 192.0.2.7 congctl reno");
        // Within the other half, one of a few parts, and in it one that is steered.
        ip("route add 198.51.16.0/20 via 192.0.2.7 congctl reno");
        ip("route add 198.51.20.0/22 via 192.0.2.8");
        let policy = one_group("198.51.0.0/16", "cubic", "20%");
        let main = Host::open().unwrap().main_table().unwrap();
        let nets = ["198.51.128.0/17", "198.51.16.0/20", "198.51.20.0/22"];
        let [chosen, inner, back]: [IpNet; 3] = nets.map(|net| net.parse().unwrap());
        let is_chosen =
            |net: &IpNet| chosen.contains(net) || inner.contains(net) && !back.contains(net);
        for means in [Means::Routes, Means::Programs] {
            let plan = Plan::by(means, &policy, &main);
            let held = held_out(&plan);
            assert!(!held.iter().any(is_chosen), "{means:?} {held:?}");
            // Of 464 parts 20 % within four standard deviations.
            assert!((58..=128).contains(&held.len()), "{}", held.len());
            let share = plan.share_held_out(&policy, 0);
            assert!((share - held.len() as f64 / 464.0).abs() < 1e-9, "{share}");
        }
    });
    Ok(())
}

/// A part in which an administrator has chosen a controller for some clients is held out without
/// them.
fn the_chosen_part_of_a_held_out_one() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let policy = one_group("198.51.0.0/16", "cubic", "20%");
        let main = || Host::open().unwrap().main_table().unwrap();
        let before = Plan::for_programs(&policy, &main());
        let held = before.places.iter().find(|placed| placed.what == What::HeldOut).unwrap();
        let part = held.prefix.network().to_string();
        assert_eq!(held.prefix.prefix_len(), 26);
        ip(&format!("route add {part}/28 via 192.0.2.7 congctl reno"));
        ip(&format!("route add {part}/30 via 192.0.2.8"));
        let nets = [26, 28, 30].map(|length| format!("{part}/{length}").parse().unwrap());
        let expected = [Some(What::HeldOut), Some(What::Kept), Some(What::HeldOut)];
        let plan = Plan::for_programs(&policy, &main());
        let of = |net: &IpNet| plan.places.iter().find(|placed| placed.prefix == *net);
        assert_eq!(nets.map(|net: IpNet| of(&net).map(|placed| placed.what)), expected);
        let plan = Plan::of(&policy, &main());
        let of = |net: &IpNet| {
            let route = plan.routes.iter().find(|planned| planned.route.destination() == *net)?;
            assert!(route.route.is_throw());
            Some(if route.held_out { What::HeldOut } else { What::Kept })
        };
        assert_eq!(nets.map(|net| of(&net)), expected);
        let share = plan.share_held_out(&policy, 0);
        let left = before.share_held_out(&policy, 0) * 1024.0 - 12.0 / 64.0;
        assert!((share - left / (1024.0 - 12.0 / 64.0)).abs() < 1e-9, "{share}");
    });
    Ok(())
}

/// What a plan holds out, in order.
fn held_out(plan: &Plan) -> Vec<IpNet> {
    let routes = plan.routes.iter().filter(|planned| planned.held_out);
    let places = plan.places.iter().filter(|placed| placed.what == What::HeldOut);
    let held = routes.map(|planned| planned.route.destination());
    let mut held: Vec<IpNet> = held.chain(places.map(|placed| placed.prefix)).collect();
    held.sort();
    held
}

/// Where a prefix is not steered, but routes within it are, with longer prefixes than the parts, those
/// within a drawn part are held out, by either means.
fn steered_routes_within_parts_are_held_out() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        ip("route replace default via 192.0.2.254 congctl reno");
        // Each in a part of its own, and one with a route within it.
        let nets = (0..=255).map(|net| format!("10.{net}.0.0/24"));
        for net in nets.chain(["10.7.0.16/28".to_string()]) {
            ip(&format!("route add {net} via 192.0.2.7"));
        }
        let folder = tempfile::tempdir().unwrap();
        let policy = one_group("10.0.0.0/8", "cubic", "20%");
        let by_routes = applied(&policy, &folder.path().join("journal"));
        let main = Host::open().unwrap().main_table().unwrap();
        let by_programs = Plan::for_programs(&policy, &main);
        let held = held_out(&by_routes);
        assert_eq!(held, held_out(&by_programs));
        // Of 256, within four standard deviations.
        assert!((26..=77).contains(&held.len()), "{}", held.len());
        for plan in [by_routes, by_programs] {
            let share = plan.share_held_out(&policy, 0);
            assert!((share - held.len() as f64 / 256.0).abs() < 1e-9, "{share}");
        }
        for net in 0..=255u8 {
            let is_held = held.contains(&format!("10.{net}.0.0/24").parse().unwrap());
            let way = ip(&format!("route get 10.{net}.0.20 ipproto tcp"));
            assert_eq!(way.contains("congctl cubic"), !is_held, "{way}");
        }
    });
    Ok(())
}

/// A held-out part with a route of its own, within a route whose controller an administrator has
/// chosen, is planned once.
fn a_part_with_a_route_is_planned_once() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let policy = one_group("10.0.0.0/22", "cubic", "20%");
        let main = || Host::open().unwrap().main_table().unwrap();
        let chosen: IpNet = "10.0.1.0/24".parse().unwrap();
        let drawn = held_out(&Plan::of(&policy, &main()));
        let part = *drawn.iter().find(|net| chosen.contains(*net)).unwrap();
        assert_eq!(part.prefix_len(), 32);
        ip(&format!("route add {chosen} via 192.0.2.7 congctl reno"));
        ip(&format!("route add {part} via 192.0.2.8"));
        for means in [Means::Routes, Means::Programs] {
            let held = held_out(&Plan::by(means, &policy, &main()));
            let within: Vec<&IpNet> = held.iter().filter(|net| chosen.contains(*net)).collect();
            assert_eq!(within, [&part], "{means:?}");
            assert!(held.len() > 100);
        }
        let folder = tempfile::tempdir().unwrap();
        applied(&policy, &folder.path().join("journal"));
    });
    Ok(())
}

/// A device that goes and comes takes its routes with it each time; the journal says once that they
/// were made.
fn the_journal_does_not_grow_with_flaps() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steer.journal");
        let policy = one_group("198.51.0.0/16", &other(), "0%");
        let first = applied(&policy, &path);
        let (mut journal, _) = Journal::hold(&path).unwrap();
        let (mut actuator, mut host) = (RouteActuator::open().unwrap(), Host::open().unwrap());
        let length = std::fs::metadata(&path).unwrap().len();
        for _ in 0..3 {
            ip("link set wire down");
            let plan = Plan::of(&policy, &host.main_table().unwrap());
            actuator.apply(&plan, &mut journal).unwrap();
            ip("link set wire up");
            ip("route add default via 192.0.2.254");
            let plan = Plan::of(&policy, &host.main_table().unwrap());
            let applied = actuator.apply(&plan, &mut journal).unwrap();
            assert_eq!(applied.added, first.routes.len());
            assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
        }
        let recorded = journal.recorded().unwrap();
        assert_eq!(host.state(&recorded).unwrap().missing, 0);
        let returned = host.roll_back(&recorded).unwrap();
        assert_eq!((returned.routes, returned.left), (first.routes.len(), vec![]));
    });
    Ok(())
}

/// A table in use is left alone.
fn a_foreign_table_is_refused() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        ip(&format!("route add 198.51.100.0/24 via 192.0.2.5 table {TABLE}"));
        let before = everything();
        let folder = tempfile::tempdir().unwrap();
        let policy = policy(
            "[[group]]\nname = \"all\"\nprefixes = [\"198.51.0.0/16\"]\ncontroller = \"reno\"\n",
        );
        let (mut actuator, mut host) = (RouteActuator::open().unwrap(), Host::open().unwrap());
        let plan = Plan::of(&policy, &host.main_table().unwrap());
        let (mut journal, _) = Journal::hold(&folder.path().join("journal")).unwrap();
        let error = actuator.apply(&plan, &mut journal).unwrap_err();
        assert!(matches!(error, PolicyError::TableInUse { .. }), "{error}");
        assert_eq!(everything(), before);
    });
    Ok(())
}

/// A process may be killed when it has recorded a route but has not replaced the earlier one yet:
/// either of them is removed.
fn a_route_about_to_be_replaced_is_removed() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    wired(|| {
        let other = other();
        ip(&format!("route add 198.51.100.8/30 via 192.0.2.7 congctl {other}"));
        let before = everything();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let policy = policy(&format!(
            "[[group]]\nname = \"all\"\nprefixes = [\"198.51.100.0/24\"]\n\
             controller = \"{other}\"\nhold_out = \"0%\"\n"
        ));
        let plan = applied(&policy, &path);
        let (mut journal, _) = Journal::hold(&path).unwrap();
        let replaced = plan.routes.iter().map(|planned| Entry::Route {
            table: planned.route.table(),
            to: planned.route.destination(),
            controller: planned.route.is_throw().then(|| other.clone()),
        });
        journal.write(&replaced.collect::<Vec<_>>()).unwrap();
        let recorded = journal.recorded().unwrap();
        let returned = Host::open().unwrap().roll_back(&recorded).unwrap();
        assert_eq!((returned.routes, returned.left), (2, vec![]));
        assert_eq!(everything(), before);
    });
    Ok(())
}

/// Random main tables and policies: connections keep their routes, and a rollback restores
/// everything. `PROPTEST_CASES=500` tries that many cases.
fn random_tables_keep_their_ways() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    let route = (0u32..1 << 12, 18u8..=30, 2u8..250, 0u8..8);
    let tables = proptest::collection::vec(route, 0..12);
    let prefixes = proptest::collection::vec((0u32..1 << 8, 18u8..=24), 1..4);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(10),
        failure_persistence: None,
        ..Default::default()
    });
    // 198.16.0.0/14, half of it reserved for tests (RFC 2544); the namespace has no way out.
    let net = |bits: u32, length: u8| {
        let address = 0xc610_0000 | bits << 6;
        IpNet::new(std::net::Ipv4Addr::from(address).into(), length).unwrap().trunc()
    };
    let result = runner.run(&(tables, prefixes, 0u64..100), |(table, prefixes, seed)| {
        wired(|| {
            for (bits, length, hop, kind) in &table {
                let to = net(*bits, *length);
                let line = match kind {
                    0 => format!("route replace blackhole {to}"),
                    1 => format!("route replace {to} via 192.0.2.{hop} congctl cubic"),
                    2 => format!("route replace {to} via 192.0.2.{hop} congctl lock cubic"),
                    3 => format!("route replace {to} via 192.0.2.{hop} proto bgp"),
                    4 => format!("route append {to} via 192.0.2.{hop} metric {hop}"),
                    _ => format!("route replace {to} via 192.0.2.{hop}"),
                };
                ip(&line);
            }
            let mut own: Vec<IpNet> = Vec::new();
            for (bits, length) in &prefixes {
                let to = net(bits << 4, *length);
                if !own.iter().any(|net| net.contains(&to) || to.contains(net)) {
                    own.push(to);
                }
            }
            let names: Vec<String> = own.iter().map(|net| format!("\"{net}\"")).collect();
            let policy = policy(&format!(
                "seed = {seed}\n[[group]]\nname = \"all\"\nprefixes = [{}]\n\
                 controller = \"reno\"\nhold_out = \"20%\"\n",
                names.join(",")
            ));
            let asked: BTreeSet<String> = table
                .iter()
                .flat_map(|(bits, length, ..)| {
                    let to = net(*bits, *length);
                    [to.network().to_string(), to.broadcast().to_string()]
                })
                .chain(own.iter().map(|net| net.network().to_string()))
                .collect();
            let ways = || -> Vec<Option<String>> {
                let way = |address: &String| {
                    let line = ["route", "get", address, "ipproto", "tcp"];
                    let output = Command::new("ip").args(line).output().unwrap();
                    let text = String::from_utf8(output.stdout).unwrap();
                    // Ignores the table number, which does change.
                    let words: Vec<&str> = text.split_whitespace().collect();
                    let table = words.iter().position(|word| *word == "table");
                    let rest = words.iter().enumerate().filter(|(index, _)| {
                        table.is_none_or(|at| *index != at && *index != at + 1)
                    });
                    let rest: Vec<&str> = rest.map(|(_, word)| *word).collect();
                    output.status.success().then(|| rest.join(" "))
                };
                asked.iter().map(way).collect()
            };
            let (before, led) = (everything(), ways());
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal");
            applied(&policy, &path);
            for ((address, led), now) in asked.iter().zip(&led).zip(ways()) {
                let steered = led.as_ref().map(|way| format!("{way} congctl reno"));
                let inside = own
                    .iter()
                    .any(|net| net.contains(&address.parse::<std::net::IpAddr>().unwrap()));
                assert!(now == *led || inside && now == steered, "{address}: {led:?}, {now:?}");
            }
            let main = Routes::open().unwrap().table(TABLE_MAIN).unwrap();
            let locked = |route: &&Route| route.is_locked();
            assert_eq!(
                main.iter().filter(locked).count(),
                ip("route show").matches("congctl lock").count()
            );
            let recorded = Journal::read(&path).unwrap();
            let returned = Host::open().unwrap().roll_back(&recorded).unwrap();
            assert_eq!(returned.left, []);
            assert_eq!(everything(), before);
        });
        Ok(())
    });
    result.unwrap();
    Ok(())
}

/// A journal that other users could have written is rejected, and only one process can write it.
fn the_journal_is_safe() -> Result<(), Skipped> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own/journal");
    let (mut journal, _) = Journal::hold(&path).unwrap();
    let begin = Journal::begin("p", 7).unwrap();
    journal.write(std::slice::from_ref(&begin)).unwrap();
    let error = Journal::hold(&path).unwrap_err();
    let held = matches!(error, PolicyError::Held { process, .. } if process == std::process::id());
    assert!(held, "{error}");
    assert_eq!(Journal::read(&path).unwrap().entries, [begin]);
    drop(journal);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // A truncated line announces nothing; a foreign one is reported.
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"route\"")).unwrap();
    assert_eq!(Journal::read(&path).unwrap().entries.len(), 1);
    std::fs::write(&path, format!("{whole}{{\"rout\":1}}\n")).unwrap();
    let error = Journal::read(&path).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");

    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(matches!(Journal::read(&path), Err(PolicyError::Unsafe { .. })));
    let link = folder.path().join("own/link");
    symlink(&path, &link).unwrap();
    assert!(Journal::hold(&link).unwrap_err().to_string().contains("symbolic link"));
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(matches!(Journal::hold(&open.join("journal")), Err(PolicyError::Unsafe { .. })));
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        new_connections_get_the_controller,
        what_is_somebody_else_s_stays,
        who_is_not_steered_is_not_held_out,
        the_chosen_part_of_a_held_out_one,
        steered_routes_within_parts_are_held_out,
        a_part_with_a_route_is_planned_once,
        changes_are_followed,
        the_journal_does_not_grow_with_flaps,
        a_foreign_table_is_refused,
        a_route_about_to_be_replaced_is_removed,
        random_tables_keep_their_ways,
        the_journal_is_safe,
    ]
}
