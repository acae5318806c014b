//! Policies carried out by BPF programs, in separate namespaces: controllers of new and open
//! connections, and what remains afterwards.

#![expect(clippy::disallowed_methods, reason = "connections are given time to be accepted")]

mod hints;
mod host;
mod marks;

use host::{Server, alone, controller, default, ip, other, ready};
use knee_host::bpf::{Place, Steering};
use knee_host::{Arm, Choice, Marked, Route, Routes, TABLE_MAIN, TcpInfo, set_sysctl, since_boot};
use knee_live::{Groups, Live, Observer, Reports, Settings};
use knee_policy::{
    Actuator, Announcing, Block, Experiment, Host, Journal, Plan, Policy, ProgramActuator,
    Publication, Slot, Step, Timeline, What, cgroup_root, judge, treated,
};
use knee_record::ConnectionRecord;
use knee_steer::Treatment;
use knee_trials::{Skipped, Trial, trials};
use nix::sys::socket::{setsockopt, sockopt};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn policy(text: &str) -> Policy {
    Policy::parse(&format!("name = \"test\"\nactuator = \"bpf\"\n{text}")).unwrap()
}

fn main_table() -> Vec<Route> {
    Routes::open().unwrap().table(TABLE_MAIN).unwrap()
}

/// An applied policy.
struct Applied {
    actuator: ProgramActuator,
    journal: Journal,
    plan: Plan,
}

fn apply(policy: &Policy, path: &Path) -> Applied {
    let (mut journal, before) = Journal::hold(path).unwrap();
    assert!(before.entries.is_empty(), "{before:?}");
    journal.write(&[Journal::begin(&policy.name, 0).unwrap()]).unwrap();
    let mut actuator =
        ProgramActuator::attach(policy, &cgroup_root().unwrap(), &mut journal).unwrap();
    let plan = Plan::for_programs(policy, &main_table());
    let applied = actuator.apply(&plan, &mut journal).unwrap();
    assert_eq!(applied.added, plan.places.len());
    Applied { actuator, journal, plan }
}

/// Both ends over IPv4, IPv6 and IPv4-mapped IPv6 get it; other ports, other clients, held-out
/// clients and other namespaces do not.
fn programs_new_connections_get_the_controller() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let (default, other) = (default(), other());
        let (four, six) = (Server::on("127.0.0.1:0"), Server::on("[::]:0"));
        let open = Server::on("127.0.0.1:0");
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[[group]]\nname = \"web\"\nprefixes = [\"127.0.1.0/24\", \"2001:db8:5::/48\"]\n\
             ports = [{}, {}]\ncontroller = \"{other}\"\nhold_out = \"20%\"\n\
             [[group]]\nname = \"away\"\nprefixes = [\"127.0.7.0/24\"]\n\
             controller = \"{other}\"\nhold_out = \"0%\"\n",
            four.port(),
            six.port()
        );
        let mut applied = apply(&policy(&text), &folder.path().join("journal"));
        let held: Vec<_> =
            applied.plan.places.iter().filter(|placed| placed.what == What::HeldOut).collect();
        let expected = |client: &str| {
            let client: IpAddr = client.parse().unwrap();
            let out = held.iter().any(|placed| placed.prefix.contains(&client));
            if out { default.as_str() } else { other }
        };
        let mut kept = 0;
        for last in 1..=99 {
            let client = format!("127.0.1.{last}");
            let (near, far) = four.from(&client, "127.0.0.1");
            assert_eq!(controller(&far), expected(&client), "{client}");
            kept += usize::from(expected(&client) == default);
            // Seen from the client, the server is not a client of the policy.
            assert_eq!(controller(&near), default);
            let (_near, far) = six.from(&client, "127.0.0.1");
            assert_eq!(controller(&far), expected(&client), "mapped {client}");
        }
        // A fifth of 99, within four standard deviations.
        assert!((4..=36).contains(&kept), "{kept} of 99 held out");
        for last in 1..=9 {
            let client = format!("2001:db8:5::{last}");
            assert_eq!(controller(&six.from(&client, "2001:db8::1").1), expected(&client));
        }
        assert_eq!(controller(&open.from("127.0.1.1", "127.0.0.1").1), default, "another port");
        assert_eq!(controller(&four.from("127.0.2.1", "127.0.0.1").1), default, "another client");
        // Here the opening end has its server among the policy's clients.
        let away = Server::on("127.0.7.1:0");
        assert_eq!(controller(&away.from("127.0.2.1", "127.0.7.1").0), other);
        alone(|| {
            let four = Server(TcpListener::bind(("127.0.0.1", four.port())).unwrap());
            assert_eq!(controller(&four.from("127.0.1.1", "127.0.0.1").1), default);
        });
        applied.actuator.stop();
        assert_eq!(controller(&away.from("127.0.2.1", "127.0.7.1").0), default);
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
    });
    Ok(())
}

/// Open connections are changed a thousand at a time. All marked ones return to their previous
/// controller, except those whose programs have set another since. Repeating it is harmless.
fn programs_open_connections_change_and_return() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let (default, other) = (default(), other());
        let server = Server::on("[::]:0");
        let mut open: Vec<(TcpStream, TcpStream)> = (0..1200)
            .map(|n| server.from(&format!("127.0.1.{}", n % 250 + 1), "127.0.0.1"))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "open_connections = true\n[[group]]\nname = \"web\"\nprefixes = [\"127.0.1.0/24\"]\n\
             ports = [{}]\ncontroller = \"{other}\"\nhold_out = \"0%\"\n",
            server.port()
        );
        let mut applied = apply(&policy(&text), &folder.path().join("journal"));
        let with = |open: &[(TcpStream, TcpStream)], name: &str| {
            open.iter().filter(|(_, far)| controller(far) == name).count()
        };
        assert_eq!(with(&open, &default), 1200, "nothing at once");
        assert_eq!(applied.actuator.renew().unwrap().changed, 1000);
        assert_eq!(with(&open, other), 1000);
        assert_eq!(applied.actuator.renew().unwrap().changed, 200);
        assert_eq!(applied.actuator.renew().unwrap().changed, 0);
        assert_eq!(with(&open, other), 1200);
        open.extend((0..100).map(|_| server.from("127.0.1.9", "127.0.0.1")));
        assert_eq!(with(&open, other), 1300);

        let third = OsString::from(if default == "cubic" { "reno" } else { "cubic" });
        let third = if third == other { OsString::from(&default) } else { third };
        for (_, far) in &open[..3] {
            setsockopt(far, sockopt::TcpCongestion, &third).unwrap();
        }
        drop(open.pop());
        let recorded = applied.journal.recorded().unwrap();
        let mut host = Host::open().unwrap();
        let state = host.state(&recorded).unwrap();
        assert_eq!((state.connections.count(), state.connections.changed), (1296, 3));
        applied.actuator.stop();
        let returned = host.roll_back(&recorded).unwrap();
        assert_eq!((returned.connections, returned.chosen), (1296, 3));
        assert_eq!(with(&open[3..], &default), 1296);
        assert_eq!(with(&open[..3], &third.to_string_lossy()), 3);
        assert_eq!(host.state(&recorded).unwrap().connections, Marked::default());
        assert_eq!(host.roll_back(&recorded).unwrap().connections, 0);
    });
    Ok(())
}

/// The kernel refuses a controller on a route that locks another; this is counted, and the
/// connection keeps its own. Where the main table names a controller, none is tried.
fn programs_locked_routes_are_counted() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let (default, other) = (default(), other());
        let server = Server::on("127.0.0.1:0");
        ip("address add 198.51.100.7/32 dev lo");
        ip("route del local 198.51.100.7 dev lo table local");
        ip(&format!("route add local 198.51.100.7 dev lo table local congctl lock {default}"));
        ip("route add 198.51.100.8/32 dev lo congctl cubic");
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[[group]]\nname = \"web\"\nprefixes = [\"198.51.100.0/24\"]\n\
             controller = \"{other}\"\nhold_out = \"0%\"\n"
        );
        let mut applied = apply(&policy(&text), &folder.path().join("journal"));
        let [kept] = applied.plan.kept.as_slice() else { panic!("{:?}", applied.plan.kept) };
        assert_eq!(kept.prefix.to_string(), "198.51.100.8/32");
        let (_near, far) = server.from("198.51.100.7", "127.0.0.1");
        assert_eq!(controller(&far), default);
        let renewed = applied.actuator.renew().unwrap();
        assert_eq!(renewed.refused, 1);
        applied.actuator.stop();
        let recorded = applied.journal.recorded().unwrap();
        assert_eq!(Host::open().unwrap().roll_back(&recorded).unwrap().connections, 0);
    });
    Ok(())
}

/// New connections of the group begin with its window and are paced, also if they have its controller
/// anyway; others begin with the kernel's ten segments (RFC 6928) and are not.
fn programs_set_the_initial_window_and_pacing() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = Server::on("127.0.0.1:0");
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[[group]]\nname = \"other\"\nprefixes = [\"127.0.1.0/24\"]\nhold_out = \"0%\"\n\
             controller = \"{}\"\ninitial_window = 32\npacing = true\n\
             [[group]]\nname = \"same\"\nprefixes = [\"127.0.2.0/24\"]\nhold_out = \"0%\"\n\
             controller = \"{}\"\ninitial_window = 20\n",
            other(),
            default()
        );
        let before = server.from("127.0.1.9", "127.0.0.1").1;
        let mut applied = apply(&policy(&text), &folder.path().join("journal"));
        let window = |far: &TcpStream| TcpInfo::of(far).unwrap().window;
        // ss shows a limit of the pacing rate behind a stroke, where there is one.
        let is_paced = |far: &TcpStream| {
            let client = far.peer_addr().unwrap();
            let filter = ["-tinH", "dst", &client.to_string()];
            let shown = Command::new("ss").args(filter).output().unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            let mut words = shown.split_whitespace().skip_while(|word| *word != "pacing_rate");
            words.nth(1).unwrap_or_else(|| panic!("{shown}")).contains('/')
        };
        for (client, segments, paced) in
            [("127.0.1.1", 32, true), ("127.0.2.1", 20, false), ("127.0.3.1", 10, false)]
        {
            let (_near, far) = server.from(client, "127.0.0.1");
            assert_eq!((window(&far), is_paced(&far)), (segments, paced), "{client}");
        }
        assert_eq!((window(&before), is_paced(&before)), (10, false), "what was open");
        let renewed = applied.actuator.renew().unwrap();
        assert_eq!(renewed.refused, 0);
        applied.actuator.stop();
        let (_near, far) = server.from("127.0.1.2", "127.0.0.1");
        assert_eq!((window(&far), is_paced(&far)), (10, false), "after the policy");
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
    });
    Ok(())
}

/// Connections of a group with ECN ask for it and are granted it, although the host does neither;
/// with only one such end there is none (RFC 3168, section 6.1.1).
fn programs_negotiate_ecn() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        set_sysctl("net.ipv4.tcp_ecn", "0").unwrap();
        let (four, six) = (Server::on("127.0.0.1:0"), Server::on("[::]:0"));
        let folder = tempfile::tempdir().unwrap();
        // The opening end has its server among the policy's clients, the other end its client.
        let group = |name: &str, prefix: &str| {
            format!(
                "[[group]]\nname = \"{name}\"\nprefixes = [\"{prefix}\"]\nhold_out = \"0%\"\n\
                 controller = \"{}\"\necn = true\n",
                default()
            )
        };
        let text = group("asks", "127.0.0.1/32") + &group("grants", "127.0.1.0/24");
        let has_ecn = |server: &Server, client: &str| {
            let (near, far) = server.from(client, "127.0.0.1");
            let ends = [near, far].map(|end| TcpInfo::of(&end).unwrap().has_ecn);
            assert_eq!(ends[0], ends[1], "{client}");
            ends[0]
        };
        assert!(!has_ecn(&four, "127.0.1.1"), "before the policy");
        let mut applied = apply(&policy(&text), &folder.path().join("journal"));
        for server in [&four, &six] {
            assert!(has_ecn(server, "127.0.1.1"));
            assert!(!has_ecn(server, "127.0.3.1"), "asked for, but not granted");
        }
        let counted = applied.actuator.renew().unwrap();
        assert_eq!(counted.refused, 0);
        applied.actuator.stop();
        assert!(!has_ecn(&four, "127.0.1.2"), "after the policy");
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
        // Only granted: nobody asks.
        let mut applied =
            apply(&policy(&group("grants", "127.0.1.0/24")), &folder.path().join("other"));
        assert!(!has_ecn(&four, "127.0.1.1"));
        applied.actuator.stop();
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
    });
    Ok(())
}

/// An expired lease stops steering although the programs are attached; renewing it resumes.
fn programs_a_lease_runs_out() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let (default, other) = (default(), other());
        let server = Server::on("127.0.0.1:0");
        let lease = Duration::from_secs(2);
        let mut steering = Steering::attach(&cgroup_root().unwrap(), lease).unwrap();
        let prefix = "127.0.1.0/24".parse().unwrap();
        steering
            .add(&Place { prefix, port: None, hint: 0, group: 0, kept: false, part: 32 })
            .unwrap();
        let arms = [Arm::of(other), Arm::default()];
        steering.choose(0, &Choice { arms, ..Choice::default() }).unwrap();
        let got = || controller(&server.from("127.0.1.1", "127.0.0.1").1);
        assert_eq!(got(), default, "before the first renewal");
        let began = Instant::now();
        steering.renew().unwrap();
        let first = got();
        assert!(first == other || began.elapsed() > lease, "{first}");
        std::thread::sleep(lease + Duration::from_millis(100));
        assert_eq!(got(), default);
        steering.renew().unwrap();
        let done = steering.done(0).unwrap();
        assert!(done.given >= 1 && done.refused == 0, "{done:?}");
    });
    Ok(())
}

/// Halves follow SipHash-2-4 of the client's part, as `knee_steer` computes it.
fn programs_halves_are_those_of_the_hash() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = Server::on("[::]:0");
        let design = knee_steer::Design::new(7);
        let key = design.half_key("web", 3);
        let mut steering =
            Steering::attach(&cgroup_root().unwrap(), Duration::from_secs(60)).unwrap();
        for (prefix, part) in [("127.0.0.0/16", 28), ("2001:db8:5::/48", 128)] {
            let prefix = prefix.parse().unwrap();
            steering
                .add(&Place { prefix, port: None, hint: 0, group: 5, kept: false, part })
                .unwrap();
        }
        let arms = ["reno", "cubic"].map(Arm::of);
        steering.choose(5, &Choice { arms, key, share: 1 << 31 }).unwrap();
        steering.renew().unwrap();
        let mut tested = 0;
        for last in 1..=250 {
            let client = format!("127.0.1.{last}");
            let part = format!("127.0.1.{}/28", last / 16 * 16);
            let second = knee_steer::in_half(&key, part.parse().unwrap());
            let expected = if second { "cubic" } else { "reno" };
            assert_eq!(controller(&server.from(&client, "127.0.0.1").1), expected, "{client}");
            tested += usize::from(second);
        }
        assert!((32..=224).contains(&tested), "{tested}");
        for last in 1..=9 {
            let client = format!("2001:db8:5::{last}");
            let second = knee_steer::in_half(&key, format!("{client}/128").parse().unwrap());
            let expected = if second { "cubic" } else { "reno" };
            assert_eq!(controller(&server.from(&client, "2001:db8::1").1), expected, "{client}");
        }
    });
    Ok(())
}

/// Traffic of an experiment: a server sends `bytes` to clients in 127.0.1.0/24. `check` is called with
/// the server's end of each connection before it sends.
fn traffic(
    server: &TcpListener,
    bytes: usize,
    clients: usize,
    stop: &AtomicBool,
    check: impl Fn(&TcpStream) + Copy + Send,
) {
    let place = server.local_addr().unwrap();
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let server = Server(server.try_clone().unwrap());
                let data = vec![0; bytes];
                for turn in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let from = format!("127.0.1.{}", (turn * 7 + client * 13) % 250 + 1);
                    let (mut near, mut far) = server.from(&from, &place.ip().to_string());
                    check(&far);
                    // Any client may be at the other end, since all behave alike.
                    let sends = std::thread::spawn({
                        let data = data.clone();
                        move || far.write_all(&data).is_ok()
                    });
                    let mut got = Vec::new();
                    let _ = near.read_to_end(&mut got);
                    assert!(sends.join().unwrap() && got.len() == data.len());
                }
            });
        }
    });
}

/// Runs an experiment over this traffic; returns its blocks and steps.
fn experiment(
    policy: &Policy,
    timeline: Timeline,
    until: impl Fn(&Step) -> bool,
) -> (Vec<Block>, Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let mut applied = apply(policy, &folder.path().join("journal"));
    let mut experiment = Experiment::begin(policy, timeline, Vec::new(), &[], 0).unwrap();
    let (began, mut blocks, mut steps) = (Instant::now(), Vec::new(), Vec::new());
    loop {
        let mut step = experiment.step(began.elapsed(), &mut applied.actuator).unwrap();
        blocks.extend(step.block.take());
        let ends = step.done || until(&step);
        steps.push(step);
        if ends {
            break;
        }
    }
    applied.actuator.stop();
    let recorded = applied.journal.recorded().unwrap();
    Host::open().unwrap().roll_back(&recorded).unwrap();
    (blocks, steps)
}

fn compared(server: &TcpListener, tried: &str, control: &str) -> Policy {
    policy(&format!(
        "[[group]]\nname = \"web\"\nprefixes = [\"127.0.1.0/24\"]\nports = [{}]\n\
         controller = \"{tried}\"\ncontrol = \"{control}\"\nhold_out = \"0%\"\n",
        server.local_addr().unwrap().port()
    ))
}

/// Connections of each block count under the drawn controllers, and pairs and triples are judged.
/// Those under the arm on trial begin with its window, the others with the kernel's.
fn programs_carry_an_experiment_out() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut policy = compared(&server, "reno", "cubic");
        policy.groups[0].initial_window = Some(32);
        let has_its_window = |far: &TcpStream| {
            let window = TcpInfo::of(far).unwrap().window;
            assert_eq!(window, if controller(far) == "reno" { 32 } else { 10 });
        };
        let (block, stop) = (Duration::from_secs(3), AtomicBool::new(false));
        let timeline = Timeline { block, burn_in: block / 6, calibration: 1, triples: 2 };
        let blocks = std::thread::scope(|scope| {
            scope.spawn(|| traffic(&server, 20_000, 4, &stop, has_its_window));
            let (blocks, _) = experiment(&policy, timeline, |_| false);
            stop.store(true, Ordering::Relaxed);
            blocks
        });
        let design = knee_steer::Design::new(policy.seed);
        assert_eq!(blocks.len(), 8);
        for block in &blocks {
            let [a, b] = block.groups[0].classes[0].map(|sums| sums.count);
            let treatment = match timeline.slot(block.number) {
                Some(Slot::Triple { triple, place }) => design.order("web", triple)[place],
                _ => Treatment::Control,
            };
            let expected = match treatment {
                Treatment::Control => a > 0 && b == 0,
                Treatment::Test => a == 0 && b > 0,
                Treatment::Half => a > 0 && b > 0,
            };
            assert!(expected || block.void.is_some(), "{treatment:?} {block:?}");
            assert!(block.given > 0 && block.refused == 0, "{block:?}");
            assert_eq!(block.lost, 0);
        }
        let judged = judge(&[&blocks], &timeline, &design, &["web".to_string()], &[]).unwrap();
        if blocks.iter().all(|block| block.void.is_none()) {
            let [judged] = judged.as_slice() else { panic!("{judged:?}") };
            assert_eq!((judged.class, judged.left_out, &judged.stopped), (0, 0, &None));
            assert!(judged.trial.total().is_some() && judged.connections >= 5.0);
        }
        assert!(judge(&[&blocks[..1]], &timeline, &design, &["web".to_string()], &[]).is_none());
    });
    Ok(())
}

/// A clearly worse controller, with one packet in flight, is stopped within three windows of its
/// first block, and connections get the other controller again.
fn programs_stop_a_bad_arm() -> Result<(), Skipped> {
    let _turn = ready()?;
    let window = knee_cc::Value::Text("1 packets".to_string());
    let crawl = knee_cc::Selection::named("fixed").with("window", window);
    let registered = knee_host::bpf::register("knee_crawl", &crawl);
    let _registered = match registered {
        Ok(registered) => registered,
        Err(error) => return Err(Skipped::lack(error)),
    };
    alone(|| {
        ip("link set lo mtu 1500");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let policy = compared(&server, "knee_crawl", "cubic");
        let (block, stop) = (Duration::from_secs(12), AtomicBool::new(false));
        let timeline = Timeline { block, burn_in: block / 8, calibration: 1, triples: 1 };
        let (blocks, steps) = std::thread::scope(|scope| {
            scope.spawn(|| traffic(&server, 60_000, 40, &stop, |_| {}));
            let ended = experiment(&policy, timeline, |step| !step.stopped.is_empty());
            stop.store(true, Ordering::Relaxed);
            ended
        });
        let (group, why) = &steps.last().unwrap().stopped[0];
        assert!(group == "web" && why.contains("twice as long"), "{why}");
        // The first block that contains B is the second one if A is first.
        let order = knee_steer::Design::new(policy.seed).order("web", 0);
        let first = order.iter().position(|one| *one != Treatment::Control).unwrap();
        assert_eq!(blocks.len(), 2 + first, "not in the first block of B");
    });
    Ok(())
}

/// Observes this namespace, and what is published at `path`, during `work`; returns the rows.
fn observed(path: &Path, work: impl FnOnce(&Live)) -> Vec<ConnectionRecord> {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        reports: Reports::SockDiag,
        directory: folder.path().to_path_buf(),
        groups: Groups::default(),
        sample_one_of: 1,
        assignment: Some(path.to_path_buf()),
        keep_addresses: true,
        bytes_max: u64::MAX,
    };
    let (live, is_over) = (Live::default(), AtomicBool::new(false));
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    let observed = std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut observer = Observer::begin(settings).unwrap();
            observer.show_on(live.clone(), nowhere);
            while !is_over.load(Ordering::Relaxed) {
                observer.step().unwrap();
            }
            observer.finish().unwrap()
        });
        work(&live);
        // Sockets are destroyed a little after they are closed.
        std::thread::sleep(Duration::from_secs(1));
        is_over.store(true, Ordering::Relaxed);
        observer.join().unwrap()
    });
    assert_eq!(observed.lost, 0);
    let files = observed.written.files.iter();
    let files = files.filter(|file| file.to_string_lossy().contains("connections-"));
    files.flat_map(|file| knee_record::read_connections(file).unwrap()).collect()
}

/// A publication that does not end by itself.
fn published(path: &Path) -> Publication {
    let mut published = Publication::at(path).unwrap();
    published.renew(since_boot().unwrap() + Duration::from_secs(3600)).unwrap();
    published
}

/// The controllers that the server's ends had, by client.
type Truth = Mutex<BTreeMap<SocketAddr, Vec<String>>>;

fn note(truth: &Truth, far: &TcpStream) {
    let (client, name) = (far.peer_addr().unwrap(), controller(far));
    truth.lock().unwrap().entry(client).or_default().push(name);
}

/// The arm of each row of the server's ends, with the controller that the kernel gave.
fn arms(
    rows: &[ConnectionRecord],
    truth: Truth,
    port: u16,
) -> BTreeMap<(String, String), BTreeSet<Option<u64>>> {
    let truth = truth.into_inner().unwrap();
    let mut found: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.local_port == Some(port)) {
        let client: ipnet::IpNet = row.prefix.parse().unwrap();
        let given = truth.get(&SocketAddr::new(client.addr(), row.remote_port.unwrap()));
        // The port of a client may have been used twice.
        if let Some([given]) = given.map(Vec::as_slice) {
            let known = !row.arm.is_empty();
            assert_eq!(&*row.group, if known || row.block.is_some() { "web" } else { "" });
            found.entry((row.arm.to_string(), given.clone())).or_default().insert(row.block);
        }
    }
    found
}

/// Connections of a policy's clients are recorded as treated or held out, those of others as
/// neither, exactly as the kernel gave the controller.
fn programs_an_observer_learns_who_is_held_out() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let (default, other) = (default(), other());
        let server = Server::on("127.0.0.1:0");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("assignment");
        let policy = policy(&format!(
            "[[group]]\nname = \"web\"\nprefixes = [\"127.0.1.0/24\"]\nports = [{}]\n\
             controller = \"{other}\"\nhold_out = \"20%\"\n",
            server.port()
        ));
        let truth = Truth::default();
        let one = |client: &str| note(&truth, &server.from(client, "127.0.0.1").1);
        let rows = observed(&path, |live| {
            one("127.0.1.1");
            let mut applied = apply(&policy, &folder.path().join("journal"));
            let mut published = published(&path);
            let groups = treated(&policy);
            published.publish(&policy, &applied.plan, None, groups).unwrap();
            // Until the observer knows that a connection began under the policy.
            let learnt = || live.totals().1.keys().any(|kind| !kind.arm.is_empty());
            for round in 0..300 {
                if learnt() {
                    break;
                }
                assert!(round < 299, "the observer does not learn the arm");
                one("127.0.1.2");
                std::thread::sleep(Duration::from_millis(100));
            }
            for last in 1..=99 {
                one(&format!("127.0.1.{last}"));
                one(&format!("127.0.2.{last}"));
            }
            // Until they are reported.
            std::thread::sleep(Duration::from_secs(1));
            drop(published);
            assert!(!path.exists());
            applied.actuator.stop();
            let recorded = applied.journal.recorded().unwrap();
            Host::open().unwrap().roll_back(&recorded).unwrap();
            // Long enough for the observer to see the end.
            std::thread::sleep(Duration::from_secs(1));
            one("127.0.1.3");
        });
        let found = arms(&rows, truth, server.port());
        let kinds: Vec<(&str, &str)> =
            found.keys().map(|(arm, given)| (arm.as_str(), given.as_str())).collect();
        // Those that may have begun before the policy, or whose client it does not name, have no
        // arm.
        assert!(kinds.contains(&("", &default)), "{kinds:?}");
        let with_arm: Vec<_> = kinds.into_iter().filter(|(arm, _)| !arm.is_empty()).collect();
        assert_eq!(with_arm, [("held out", default.as_str()), ("treated", other)]);
        let arms_of = |last: u32| {
            let net: ipnet::IpNet = format!("127.0.{last}.0/24").parse().unwrap();
            let is_of = |row: &&ConnectionRecord| {
                net.contains(&row.prefix.parse::<ipnet::IpNet>().unwrap()) && !row.arm.is_empty()
            };
            let own = rows.iter().filter(|row| row.local_port == Some(server.port()));
            own.filter(is_of).count()
        };
        assert!(arms_of(1) >= 99 && arms_of(2) == 0, "{} {}", arms_of(1), arms_of(2));
    });
    Ok(())
}

/// Records a triple of blocks of this length. Each connection that is recorded with an arm has the
/// controller of this arm, in blocks of one controller and in halves, and if no block is void, all
/// arms are there. `false` if a block is.
fn arms_of_blocks(block: Duration) -> bool {
    let server = Server::on("127.0.0.1:0");
    let policy = compared(&server.0, "reno", "cubic");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("assignment");
    let timeline = Timeline { block, burn_in: block / 6, calibration: 0, triples: 1 };
    let (truth, mut void) = (Truth::default(), false);
    let rows = observed(&path, |_| {
        let mut applied = apply(&policy, &folder.path().join("journal"));
        let mut experiment = Experiment::begin(&policy, timeline, Vec::new(), &[], 0).unwrap();
        let mut published = published(&path);
        let began = Instant::now();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0u32.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let client = format!("127.0.1.{}", turn * 7 % 250 + 1);
                    note(&truth, &server.from(&client, "127.0.0.1").1);
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            loop {
                let mut announcing = Announcing::new(&mut applied.actuator, Some(&mut published));
                let step = experiment.step(began.elapsed(), &mut announcing).unwrap();
                assert!(step.stopped.is_empty(), "{:?}", step.stopped);
                void |= step.block.is_some_and(|block| block.void.is_some());
                if !published.is_published() {
                    let (number, groups) = experiment.assigned();
                    published.publish(&policy, &applied.plan, Some(number), groups).unwrap();
                }
                if step.done {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        drop(published);
        applied.actuator.stop();
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
    });
    let found = arms(&rows, truth, server.port());
    let order = knee_steer::Design::new(policy.seed).order("web", 0);
    let number = |treatment| {
        let place = order.iter().position(|one| *one == treatment).unwrap() as u64;
        BTreeSet::from([Some(place)])
    };
    let [control, test, half] = [Treatment::Control, Treatment::Test, Treatment::Half].map(number);
    let of = |arm: &str, given: &str, blocks: &BTreeSet<Option<u64>>| {
        ((arm.to_string(), given.to_string()), blocks.clone())
    };
    let expected = BTreeMap::from([
        of("A", "cubic", &control),
        of("B", "reno", &test),
        of("half A", "cubic", &half),
        of("half B", "reno", &half),
    ]);
    let with_arm: BTreeMap<_, _> =
        found.into_iter().filter(|((arm, _), _)| !arm.is_empty()).collect();
    let is_expected = |(one, blocks)| expected.get(one) == Some(blocks);
    assert!(with_arm.iter().all(is_expected), "{with_arm:?}");
    assert!(void || with_arm == expected, "{with_arm:?}");
    !void
}

/// The arms of connections are learnt, of all blocks of an experiment. On a busy host blocks are
/// void, so longer ones are tried.
fn programs_an_observer_learns_the_arms() -> Result<(), Skipped> {
    let _turn = ready()?;
    let lengths = [5, 10, 20, 40].map(Duration::from_secs);
    if lengths.into_iter().any(|block| alone(|| arms_of_blocks(block))) {
        return Ok(());
    }
    Err(Skipped("this host is too busy: of four experiments each has a void block".to_string()))
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        programs_new_connections_get_the_controller,
        programs_open_connections_change_and_return,
        programs_locked_routes_are_counted,
        programs_a_lease_runs_out,
        programs_set_the_initial_window_and_pacing,
        programs_negotiate_ecn,
        programs_halves_are_those_of_the_hash,
        programs_an_observer_learns_who_is_held_out,
        hints::programs_marks_choose_the_group,
        hints::programs_a_mark_of_an_open_connection_counts,
        hints::programs_control_groups_choose_the_group,
        marks::programs_marks_end_with_their_connections,
        marks::programs_had_is_not_returned,
        marks::programs_without_seats_return_all,
        marks::programs_the_first_controller_returns;
        nightly:
        programs_stop_a_bad_arm,
        programs_carry_an_experiment_out,
        programs_an_observer_learns_the_arms
    ]
}
