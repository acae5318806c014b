//! `knee steer plan`, `apply`, `status` and `rollback` as processes, in their own network
//! namespaces.

#![expect(clippy::disallowed_methods, reason = "processes are waited for and killed")]

use crate::common::complaint;
use knee_host::{Namespace, Routing, sysctl};
use knee_policy::PolicyError;
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use nix::sys::signal::{Signal, kill};
#[cfg(feature = "bpf")]
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use serde_json::Value;
#[cfg(feature = "bpf")]
use std::cell::RefCell;
#[cfg(feature = "bpf")]
use std::collections::BTreeMap;
use std::fs;
#[cfg(feature = "bpf")]
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLICY: &str = "name = \"edge\"\nactuator = \"route\"\n[[group]]\nname = \"all\"\n\
    prefixes = [\"198.51.100.0/24\"]\nports = [443]\ncontroller = \"reno\"\n";
/// Longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A namespace with a route to other hosts, and a folder with a policy.
fn host(work: impl FnOnce(&Path) + Send) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policy.toml"), POLICY).unwrap();
    let namespace = Namespace::create().unwrap();
    let done = namespace.within(|| -> Result<(), PolicyError> {
        Routing::open()?.bring_up_loopback()?;
        ip("tuntap add dev wire mode tun");
        ip("link set wire up");
        ip("address add 192.0.2.1/24 dev wire");
        ip("route add default via 192.0.2.254");
        work(folder.path());
        Ok(())
    });
    done.unwrap();
}

fn ip(line: &str) -> String {
    let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Number of rules and routes with the mark documented in docs/policy.md.
fn marked() -> usize {
    let all = ip("rule") + &ip("-6 rule") + &ip("route show table all");
    all.lines().filter(|line| line.contains("proto 222")).count()
}

fn knee(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(folder: &Path, line: &str) -> Output {
    knee(folder, line).output().unwrap()
}

fn json(folder: &Path, line: &str, code: i32) -> Value {
    let output = done(folder, &format!("{line} --format json"));
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        sleep(Duration::from_millis(10));
    }
}

fn apply(folder: &Path) -> Child {
    let line = "steer apply policy.toml --journal own/journal --assignment assignment.json";
    knee(folder, line).spawn().unwrap()
}

/// Errors are reported before anything is changed.
fn wrong_policies() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    let second = |prefix: &str, controller: &str| {
        format!(
            "{POLICY}[[group]]\nname = \"b\"\nprefixes = [\"{prefix}\"]\n\
             controller = \"{controller}\"\n"
        )
    };
    for (text, part) in [
        (POLICY.replace("ports", "port"), "did you mean ports"),
        (format!("{POLICY}hold_out = \"5\"\n"), "not a valid share to hold out"),
        (second("198.51.100.0/25", "reno"), "overlaps"),
        (second("192.0.2.0/24", "hasty"), "this kernel has no controller hasty"),
    ] {
        fs::write(folder.path().join("policy.toml"), &text).unwrap();
        let said = complaint(folder.path(), "steer plan policy.toml", 2);
        assert!(said.contains(part) && said.contains("policy.toml"), "{text}\n{said}");
    }
    let said = complaint(folder.path(), "steer plan nothing.toml", 2);
    assert!(said.contains("nothing.toml"), "{said}");
    Ok(())
}

/// Plan changes nothing; apply steers once; rollback reverts it, and a second rollback is harmless.
fn there_and_back() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    host(|folder| {
        let before = ip("route show table all") + &ip("rule");
        let plan = json(folder, "steer plan policy.toml", 0);
        assert_eq!(plan["schema"], "knee-steer-plan/1");
        let routes = plan["routes"].as_array().unwrap().len();
        assert!(routes > 1 && plan["rules"].as_array().unwrap().len() == 1, "{plan}");
        assert_eq!(marked(), 0);
        let status = json(folder, "steer status --journal own/journal", 0);
        assert_eq!((&status["policy"], &status["marked_rules"]), (&Value::Null, &0.into()));

        let mut first = apply(folder);
        until("it is applied", || marked() == routes + 1);
        let status = json(folder, "steer status --journal own/journal", 0);
        assert_eq!((&status["running"], &status["missing"]), (&true.into(), &0.into()));
        let second = apply(folder).wait_with_output().unwrap();
        assert_eq!(second.status.code(), Some(3), "{second:?}");
        assert!(String::from_utf8_lossy(&second.stderr).contains("already applies a policy"));
        // What is published is what the kernel's table has.
        let path = folder.join("assignment.json");
        until("it is published", || path.exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        let published: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let places = published["places"].as_array().unwrap();
        let table = ip("route show table 7222");
        let thrown = table.lines().filter(|line| line.starts_with("throw")).count();
        let without = places.iter().filter(|place| !place["arm"].is_null()).count();
        assert!(places.len() == routes && without == thrown && thrown > 0, "{table}\n{published}");

        // A change elsewhere is none for the policy, and what is published remains.
        ip("route add 203.0.113.0/24 via 192.0.2.7");
        sleep(Duration::from_secs(2));
        ip("route del 203.0.113.0/24");
        let now: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(now, published);

        // A route changed by somebody else is left alone and reported, even after other routes have
        // followed a change of the main table.
        ip("route replace 198.51.100.0/24 via 192.0.2.9 table 7222 congctl cubic proto 222");
        ip("route add 198.51.100.8/30 via 192.0.2.7");
        let follows = || ip("route show table 7222").contains("192.0.2.7");
        until("it follows", follows);
        ip("route del 198.51.100.8/30");
        until("it follows again", || !follows());
        let status = json(folder, "steer status --journal own/journal", 1);
        assert_eq!(status["foreign"], serde_json::json!(["198.51.100.0/24 in table 7222"]));
        let back = json(folder, "steer rollback --journal own/journal", 0);
        assert_eq!(first.wait().unwrap().code(), Some(0));
        assert!(!path.exists());
        assert_eq!((&back["routes"], &back["rules"]), (&(routes - 1).into(), &1.into()));
        ip("route flush table 7222");
        assert_eq!(ip("route show table all") + &ip("rule"), before);
        let back = json(folder, "steer rollback --journal own/journal", 0);
        assert_eq!(back["routes"], 0);
    });
    Ok(())
}

/// If it is killed at any moment, its guard reverts everything. If the guard is killed too, the
/// next process does.
fn kills_leave_nothing() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    host(|folder| {
        let all = json(folder, "steer plan policy.toml", 0)["routes"].as_array().unwrap().len() + 1;
        let empty =
            || fs::metadata(folder.join("own/journal")).map_or(true, |about| about.len() == 0);
        let apply_and_kill = |when: &str| {
            let mut process = apply(folder);
            until("it is applied", || marked() == all);
            kill_with_guard(&mut process);
            assert_eq!(marked(), all, "{when}");
        };
        for kill_after in 0..12u64 {
            let mut process = apply(folder);
            sleep(Duration::from_millis(5 * kill_after));
            process.kill().unwrap();
            process.wait().unwrap();
            until("nothing is left", || marked() == 0 && empty());
        }
        // A guard that started late would revert what is applied next, once that process is killed.
        until("no guard is left", || guards(folder) == 0);
        apply_and_kill("with its journal");
        let status = json(folder, "steer status --journal own/journal", 1);
        assert_eq!((&status["running"], &status["missing"]), (&false.into(), &0.into()));
        let line = "steer apply policy.toml --journal own/journal --duration 100ms";
        let next = done(folder, line);
        assert_eq!(next.status.code(), Some(0), "{next:?}");
        assert!(String::from_utf8_lossy(&next.stderr).contains("ended without reverting"));
        assert_eq!(marked(), 0);
        assert!(empty());
        // Without a journal, the rules say what to remove.
        apply_and_kill("without its journal");
        fs::remove_file(folder.join("own/journal")).unwrap();
        json(folder, "steer status --journal own/journal", 1);
        let back = done(folder, "steer rollback --journal own/journal");
        assert_eq!(back.status.code(), Some(1), "{back:?}");
        let said = String::from_utf8_lossy(&back.stdout).into_owned();
        let commands: Vec<&str> =
            said.lines().filter_map(|line| line.strip_prefix("ip ")).collect();
        assert!(commands.len() >= 2, "{said}");
        commands.into_iter().for_each(|command| drop(ip(command)));
        assert_eq!(marked(), 0);
        json(folder, "steer status --journal own/journal", 0);
    });
    Ok(())
}

/// Number of guards that run in a folder.
fn guards(folder: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_guard = |process: &PathBuf| {
        let line = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        line.contains("guard") && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    processes.filter(is_guard).count()
}

/// Kills the guard of a process, and the process, so that neither can revert.
fn kill_with_guard(process: &mut Child) {
    let pid = i32::try_from(process.id()).unwrap();
    let children = format!("/proc/{pid}/task/{pid}/children");
    let guard: i32 = fs::read_to_string(children).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
}

/// The host's default can be shown, set in a file and reverted; an administrator's settings stay. A
/// mount namespace protects the files of this host.
fn the_default_and_back() -> Result<(), Skipped> {
    const SCRIPT: &str = "set -e
        mount -t tmpfs none /etc/sysctl.d
        default=/proc/sys/net/ipv4/tcp_congestion_control
        echo reno > $default
        host() { $KNEE steer host \"$@\" --format json || echo \"exit $?\"; }
        host $OTHER
        cat $default; ls /etc/sysctl.d
        host $OTHER --apply
        cat $default; grep -h -v '^#' /etc/sysctl.d/98-knee*
        host reno --apply
        host --undo
        cat $default; ls /etc/sysctl.d
        host --undo
        host $OTHER --apply
        echo reno > $default
        host --undo
        cat $default; ls /etc/sysctl.d
        echo net.ipv4.tcp_congestion_control=reno > /etc/sysctl.d/10-own.conf
        host $OTHER --apply
        host hasty";
    let _turn = turn(Pauses::Any)?;
    let other = sysctl("net.ipv4.tcp_congestion_control").unwrap();
    if other == "reno" {
        return Err(Skipped(
            "a namespace may only have the default of its host, or reno".to_string(),
        ));
    }
    host(|_| {
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", SCRIPT]).env("KNEE", env!("CARGO_BIN_EXE_knee"));
        shell.env("OTHER", &other);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let (said, complaints) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // The documents have one line for each key; the other lines come from the script.
        let told: Vec<&str> = said
            .lines()
            .filter(|line| !line.starts_with([' ', '{', '}']) || line.starts_with("  \"said\""))
            .map(|line| line.trim().trim_start_matches("\"said\": \"").trim_end_matches("\","))
            .collect();
        let begins = [
            "OTHER can be set",
            "reno",
            "OTHER is set, in place of reno",
            "OTHER",
            "net.ipv4.tcp_congestion_control = OTHER",
            "reno is set, in place of OTHER",
            "Knee's setting was removed; the previous one",
            "reno",
            "There is no setting",
            "OTHER is set",
            "Knee's setting was removed. Another",
            "reno",
            "exit 3",
            "exit 3",
        ];
        assert_eq!(told.len(), begins.len(), "{told:#?}\n{complaints}");
        for (told, begins) in told.iter().zip(begins) {
            let begins = begins.replace("OTHER", &other);
            assert!(told.starts_with(&begins), "{told}: {begins}");
        }
        for part in ["10-own.conf:1 sets reno as the default", "no controller hasty"] {
            assert!(complaints.contains(part), "{complaints}");
        }
    });
    Ok(())
}

/// Runs a test on a host of its own with a server, whose connections get another controller than
/// the default from a policy with these keys, by BPF programs.
#[cfg(feature = "bpf")]
fn under_programs(
    keys: &str,
    work: impl FnOnce(&Path, &TcpListener, &str, &str) + Send,
) -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    if let Some(lack) = knee_policy::programs_lack() {
        return Err(Skipped::lack(lack));
    }
    let default = sysctl("net.ipv4.tcp_congestion_control").unwrap();
    let other = if default == "reno" { "cubic" } else { "reno" };
    host(|folder| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = format!(
            "name = \"edge\"\nactuator = \"bpf\"\n{keys}[[group]]\nname = \"all\"\n\
             prefixes = [\"127.0.0.0/24\"]\nports = [{}]\ncontroller = \"{other}\"\n\
             hold_out = \"0%\"\n",
            server.local_addr().unwrap().port()
        );
        fs::write(folder.join("policy.toml"), text).unwrap();
        work(folder, &server, &default, other);
    });
    Ok(())
}

/// Returns the controller of an end of a connection.
#[cfg(feature = "bpf")]
fn controller_of(end: &TcpStream) -> String {
    let name = getsockopt(end, sockopt::TcpCongestion).unwrap();
    name.to_string_lossy().trim_end_matches('\0').to_string()
}

/// With BPF programs: after a kill, new connections get the default and changed ones get their
/// previous controller back; after both processes are killed, a rollback does this. Nothing remains
/// in the BPF file system.
#[cfg(feature = "bpf")]
fn programs_go_with_their_process() -> Result<(), Skipped> {
    under_programs("open_connections = true\n", |folder, server, default, other| {
        let place = server.local_addr().unwrap();
        let connection = || (TcpStream::connect(place).unwrap(), server.accept().unwrap().0);
        let controller = |(_, far): &(TcpStream, TcpStream)| controller_of(far);
        let plan = json(folder, "steer plan policy.toml", 0);
        assert_eq!((&plan["actuator"], &plan["routes"]), (&"bpf".into(), &serde_json::json!([])));
        let open: Vec<_> = (0..50).map(|_| connection()).collect();
        let with = |name: &str| open.iter().filter(|one| controller(one) == name).count();
        let pins = || {
            let name = fs::read_link("/proc/thread-self/ns/net").unwrap();
            let number =
                name.to_string_lossy().replace(|letter: char| !letter.is_ascii_digit(), "");
            Path::new("/sys/fs/bpf/knee-steer").join(number).exists()
        };
        let empty = || fs::metadata(folder.join("own/journal")).unwrap().len() == 0;

        let mut process = apply(folder);
        until("open ones are changed", || with(other) == 50);
        assert_eq!(controller(&connection()), other);
        let status = json(folder, "steer status --journal own/journal", 0);
        // Possibly including a connection that has just closed.
        assert!(status["given_connections"].as_u64().unwrap() >= 50, "{status}");
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(controller(&connection()), default, "right after the kill");
        until("the second process returns them", || with(default) == 50 && empty());
        assert!(!pins());

        let mut process = apply(folder);
        until("they are changed again", || with(other) == 50);
        kill_with_guard(&mut process);
        assert_eq!((with(other), controller(&connection())), (50, default.to_string()));
        let back = json(folder, "steer rollback --journal own/journal", 0);
        assert!(back["connections"].as_u64().unwrap() >= 50, "{back}");
        assert_eq!(with(default), 50);
        assert!(!pins() && empty());
    })
}

/// What a process publishes ends before its guard reverts what a stopped one has applied: of the
/// connections from then on none is recorded with an arm, also when the process continues. It then
/// ends.
#[cfg(feature = "bpf")]
fn programs_of_a_stopped_process_give_no_arms() -> Result<(), Skipped> {
    under_programs("", |folder, server, _, other| {
        let place = server.local_addr().unwrap();
        let (given, kept) = (RefCell::default(), RefCell::default());
        let connect = || {
            let near = TcpStream::connect(place).unwrap();
            let is_given = controller_of(&server.accept().unwrap().0) == other;
            let port = near.local_addr().unwrap().port();
            let ports: &RefCell<BTreeMap<u16, u32>> = if is_given { &given } else { &kept };
            *ports.borrow_mut().entry(port).or_insert(0) += 1;
            is_given
        };
        let line = "observe --bpf --assignment assignment.json --addresses --out observed";
        let observer = knee(folder, line).spawn().unwrap();
        until("it observes", || {
            connect();
            fs::read_dir(folder.join("observed")).is_ok_and(|files| files.count() > 0)
        });
        let process = RefCell::new(apply(folder));
        until("it is published", || folder.join("assignment.json").exists());
        assert!((0..20).all(|_| connect()));
        let pid = Pid::from_raw(i32::try_from(process.borrow().id()).unwrap());
        kill(pid, Signal::SIGSTOP).unwrap();
        // Twice the lease of both the programs and the guard.
        for _ in 0..2 * 120 {
            sleep(Duration::from_millis(500));
            if !connect() {
                break;
            }
        }
        assert!(!(0..20).any(|_| connect()), "the lease has expired");
        // Long enough for the observer to record them before it sees an end of the file.
        sleep(Duration::from_secs(2));
        kill(pid, Signal::SIGCONT).unwrap();
        until("it ends", || {
            connect();
            process.borrow_mut().try_wait().unwrap().is_some()
        });
        assert_eq!(process.borrow_mut().wait().unwrap().code(), Some(3));
        assert!(!(0..20).any(|_| connect()) && !folder.join("assignment.json").exists());
        sleep(Duration::from_secs(1));
        kill(Pid::from_raw(i32::try_from(observer.id()).unwrap()), Signal::SIGTERM).unwrap();
        let observed = observer.wait_with_output().unwrap();
        assert!(observed.status.success(), "{observed:?}");
        let files = fs::read_dir(folder.join("observed")).unwrap().map(|file| file.unwrap().path());
        let rows: Vec<_> = files
            .filter(|file| file.to_string_lossy().contains("connections-"))
            .flat_map(|file| knee_record::read_connections(&file).unwrap())
            .filter(|row| row.local_port == Some(place.port()))
            .collect();
        // A port that was used twice says nothing.
        let (given, kept) = (given.into_inner(), kept.into_inner());
        let is_of = |ports: &BTreeMap<u16, u32>, others: &BTreeMap<u16, u32>, port: Option<u16>| {
            port.is_some_and(|port| ports.contains_key(&port) && !others.contains_key(&port))
        };
        let with_arm = || rows.iter().filter(|row| !row.arm.is_empty());
        let treated = with_arm().filter(|row| is_of(&given, &kept, row.remote_port)).count();
        let wrong = with_arm().filter(|row| is_of(&kept, &given, row.remote_port)).count();
        assert!(treated >= 20 && wrong == 0, "{treated} {wrong} of {}", rows.len());
    })
}

/// An experiment killed within a block leaves nothing behind and can be continued; its limits apply
/// unless overridden.
#[cfg(feature = "bpf")]
fn programs_go_on_with_an_experiment() -> Result<(), Skipped> {
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicBool, Ordering};
    let _turn = turn(Pauses::Any)?;
    if let Some(lack) = knee_policy::programs_lack() {
        return Err(Skipped::lack(lack));
    }
    host(|folder| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = server.local_addr().unwrap();
        let policy = |control: &str| {
            format!(
                "name = \"edge\"\n[[group]]\nname = \"all\"\nprefixes = [\"127.0.0.0/24\"]\n\
                 ports = [{}]\ncontroller = \"reno\"\n{control}",
                place.port()
            )
        };
        let run = "steer run policy.toml --blocks blocks --journal own/journal";
        fs::write(folder.join("policy.toml"), policy("")).unwrap();
        assert!(complaint(folder, run, 2).contains("all has one controller, reno"));
        fs::write(folder.join("policy.toml"), policy("control = \"cubic\"\n")).unwrap();
        for (with, part) in [
            ("--block 9min", "short-block"),
            ("--burn-in 59s", "short-burn-in"),
            ("--triples 15", "few-triples"),
            ("--group none", "no group none"),
        ] {
            assert!(complaint(folder, &format!("{run} {with}"), 2).contains(part), "{part}");
        }
        let run = format!(
            "{run} --block 2s --burn-in 300ms --calibration 2 --triples 2 --allow short-block \
             --allow short-burn-in --allow few-triples"
        );
        let stop = AtomicBool::new(false);
        let lines =
            || fs::read_to_string(folder.join("blocks")).unwrap_or_default().lines().count();
        let empty = || fs::metadata(folder.join("own/journal")).unwrap().len() == 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut near = TcpStream::connect(place).unwrap();
                    let (mut far, _) = server.accept().unwrap();
                    far.write_all(&[0; 9000]).unwrap();
                    drop(far);
                    near.read_to_end(&mut Vec::new()).unwrap();
                }
            });
            let mut first = knee(folder, &run).spawn().unwrap();
            // A header line, and four blocks before the first triple.
            until("a triple has begun", || lines() >= 6);
            first.kill().unwrap();
            first.wait().unwrap();
            until("all is taken back", empty);
            let second = done(folder, &run);
            stop.store(true, Ordering::Relaxed);
            let (said, told) = (
                String::from_utf8_lossy(&second.stderr).into_owned(),
                String::from_utf8_lossy(&second.stdout).into_owned(),
            );
            assert_eq!(second.status.code(), Some(0), "{said}{told}");
            assert!(said.contains("blocks of an earlier process count"), "{said}");
            // On a busy machine a block may look harmful.
            let whole = told.contains("edge: 2 of 2 triples");
            assert!(whole || told.contains("stopped in all"), "{told}");
        });
        let blocks = fs::read_to_string(folder.join("blocks")).unwrap();
        // The header has no number, nor a note that B was stopped.
        let numbers: Vec<u64> = blocks
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64())
            .collect();
        assert!((7..=10).contains(&numbers.len()), "{numbers:?}");
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{numbers:?}");
        assert!(empty());
        let other = format!("{run} --calibration 3").replace("--calibration 2 ", "");
        assert!(complaint(folder, &other, 3).contains("another experiment"));
    });
    Ok(())
}

/// Clients whose controller an administrator sets during an experiment are in no arm from then on, and
/// the block is void.
#[cfg(feature = "bpf")]
fn programs_follow_what_others_choose() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    if let Some(lack) = knee_policy::programs_lack() {
        return Err(Skipped::lack(lack));
    }
    host(|folder| {
        let policy = POLICY.replace("\"reno\"", "\"reno\"\ncontrol = \"cubic\"");
        fs::write(folder.join("policy.toml"), policy.replace("\"route\"", "\"bpf\"")).unwrap();
        let run = "steer run policy.toml --blocks blocks --journal own/journal --block 4s \
                   --burn-in 500ms --calibration 2 --triples 15 --assignment assignment.json \
                   --allow short-block --allow short-burn-in --allow few-triples";
        let run = knee(folder, run).spawn().unwrap();
        let places = || -> Option<Vec<Value>> {
            let text = fs::read(folder.join("assignment.json")).ok()?;
            let published: Value = serde_json::from_slice(&text).ok()?;
            published["places"].as_array().cloned()
        };
        until("it is published", || places().is_some_and(|places| places.len() == 1));
        ip("route add 198.51.100.128/25 via 192.0.2.254 congctl cubic");
        until("they are in no arm", || {
            let is_theirs =
                |place: &Value| place["prefix"] == "198.51.100.128/25" && place["arm"] == "kept";
            places().is_some_and(|places| places.iter().any(is_theirs))
        });
        let blocks = || fs::read_to_string(folder.join("blocks")).unwrap();
        until("the block is void", || blocks().contains("the host's routes have changed"));
        kill(Pid::from_raw(i32::try_from(run.id()).unwrap()), Signal::SIGTERM).unwrap();
        assert_eq!(run.wait_with_output().unwrap().status.code(), Some(130));
    });
    Ok(())
}

/// Without BPF programs in this build there is nothing to follow.
#[cfg(not(feature = "bpf"))]
fn programs_follow_what_others_choose() -> Result<(), Skipped> {
    Err(Skipped("this build of Knee has no BPF programs".to_string()))
}

/// Without BPF programs in this build, experiments that name them are refused.
#[cfg(not(feature = "bpf"))]
fn programs_go_on_with_an_experiment() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    let text = POLICY.replace("\"reno\"", "\"reno\"\ncontrol = \"cubic\"");
    let text = text.replace("\"route\"", "\"bpf\"");
    fs::write(folder.path().join("policy.toml"), text).unwrap();
    let line = "steer run policy.toml --blocks blocks --journal own/journal";
    assert!(complaint(folder.path(), line, 3).contains("has no BPF programs"));
    Ok(())
}

/// Without BPF programs in this build there is nothing to see.
#[cfg(not(feature = "bpf"))]
fn programs_of_a_stopped_process_give_no_arms() -> Result<(), Skipped> {
    Err(Skipped("this build of Knee has no BPF programs".to_string()))
}

/// Without BPF programs in this build, a policy that requires them is refused with the reason.
#[cfg(not(feature = "bpf"))]
fn programs_go_with_their_process() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    let text = POLICY.replace("\"route\"", "\"bpf\"");
    fs::write(folder.path().join("policy.toml"), text).unwrap();
    let line = "steer apply policy.toml --journal own/journal";
    let said = complaint(folder.path(), line, 3);
    assert!(said.contains("has no BPF programs") && said.contains("features bpf"), "{said}");
    Ok(())
}

/// The stage observe changes nothing, needs no BPF programs and keeps no journal; a canary is one
/// group.
fn an_experiment_in_stages() -> Result<(), Skipped> {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering};
    let _turn = turn(Pauses::Any)?;
    host(|folder| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = server.local_addr().unwrap();
        let policy = |stage: &str| {
            let group = |name: &str, net: &str| {
                format!(
                    "[[group]]\nname = \"{name}\"\nprefixes = [\"{net}\"]\nports = [{}]\n\
                     controller = \"reno\"\ncontrol = \"cubic\"\n",
                    place.port()
                )
            };
            let groups = group("near", "127.0.0.0/24") + &group("far", "192.0.2.0/24");
            fs::write(
                folder.join("policy.toml"),
                format!("name = \"edge\"\nstage = \"{stage}\"\n{groups}"),
            )
            .unwrap();
        };
        let run = "steer run policy.toml --blocks blocks --journal own/journal";
        policy("canary");
        let said = complaint(folder, run, 2);
        assert!(said.contains("near, far") && said.contains("--group near"), "{said}");
        policy("observe");
        let said = complaint(folder, &format!("{run} --assignment assignment"), 2);
        assert!(said.contains("stage observe") && said.contains("remove --assignment"), "{said}");
        assert!(!folder.join("blocks").exists());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut near = TcpStream::connect(place).unwrap();
                    let (mut far, _) = server.accept().unwrap();
                    far.write_all(&[0; 9000]).unwrap();
                    drop(far);
                    near.read_to_end(&mut Vec::new()).unwrap();
                }
            });
            let run = format!(
                "{run} --block 700ms --burn-in 100ms --calibration 2 --triples 2 \
                 --allow short-block --allow short-burn-in --allow few-triples"
            );
            let ended = done(folder, &run);
            stop.store(true, Ordering::Relaxed);
            let told = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert_eq!(ended.status.code(), Some(0), "{ended:?}");
            assert!(told.contains("edge, observed: 2 of 2 triples"), "{told}");
            // Two triples at most quadruple the evidence. On a busy machine all blocks may be void.
            let unchecked = told.contains("No check for false effects");
            assert!(unchecked || told.contains("There is no result"), "{told}");
        });
        assert!(!folder.join("own/journal").exists());
    });
    Ok(())
}

/// If the policy expires while blocks are observed, the exit code and a message say so.
fn an_observation_ends_with_its_policy() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    host(|folder| {
        let ends = ["--utc", "--date", "3 seconds", "+%Y-%m-%dT%H:%M:%SZ"];
        let ends = Command::new("date").args(ends).output().unwrap().stdout;
        let policy = format!(
            "name = \"edge\"\nstage = \"observe\"\nexpires = {}\n[[group]]\nname = \"near\"\n\
             prefixes = [\"127.0.0.0/24\"]\ncontroller = \"reno\"\ncontrol = \"cubic\"\n",
            String::from_utf8(ends).unwrap().trim()
        );
        fs::write(folder.join("policy.toml"), policy).unwrap();
        let said = complaint(folder, "steer run policy.toml --blocks blocks", 3);
        assert!(said.contains("the policy has expired"), "{said}");
    });
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        programs_go_with_their_process,
        programs_follow_what_others_choose,
        an_experiment_in_stages,
        wrong_policies,
        there_and_back,
        kills_leave_nothing,
        the_default_and_back;
        nightly:
        programs_of_a_stopped_process_give_no_arms,
        programs_go_on_with_an_experiment,
        an_observation_ends_with_its_policy
    ]
}
