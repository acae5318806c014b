//! `knee steer run` by routes, as a process, between two network namespaces: clients with an address
//! each, and the host of their server.

#![expect(clippy::disallowed_methods, reason = "processes are waited for and killed")]

use crate::common::complaint;
use knee_host::{Namespace, Routing};
use knee_policy::PolicyError;
use knee_steer::{Arms, Assignment};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, getsockopt, setsockopt, socket,
    sockopt,
};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any step takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 5001);
const POLICY: &str = "name = \"edge\"\nactuator = \"route\"\n[[group]]\nname = \"all\"\n\
    prefixes = [\"198.51.100.0/24\"]\nports = [5001]\ncontroller = \"cubic\"\n\
    control = \"reno\"\n";
const RUN: &str = "steer run policy.toml --blocks blocks --journal own/journal \
    --assignment assignment.json --calibration 2 --triples 2 --allow short-block \
    --allow short-burn-in --allow few-triples";

fn ip(line: &str) -> String {
    let output = Command::new("ip").args(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Number of rules and routes with the mark documented in docs/policy.md.
pub fn marked() -> usize {
    let all = ip("rule") + &ip("route show table all");
    all.lines().filter(|line| line.contains("proto 222")).count()
}

pub fn is_reverted(folder: &Path) -> bool {
    fs::metadata(folder.join("own/journal")).is_ok_and(|about| about.len() == 0) && marked() == 0
}

pub fn knee(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.args(line.split_whitespace()).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// A server on a host of its own, and the hosts of its clients.
pub struct World<'w> {
    pub folder: &'w Path,
    pub clients: &'w Namespace,
    pub server: TcpListener,
    /// Open connections, the oldest first.
    open: VecDeque<(Instant, TcpStream, TcpStream)>,
    pub turn: u8,
}

pub fn world(work: impl FnOnce(&mut World<'_>) + Send) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policy.toml"), POLICY).unwrap();
    let (host, clients) = (Namespace::create().unwrap(), Namespace::create().unwrap());
    let done = host.within(|| -> Result<(), PolicyError> {
        Routing::open()?.bring_up_loopback()?;
        let here = fs::read_link("/proc/thread-self").unwrap();
        clients.within(|| -> Result<(), PolicyError> {
            Routing::open()?.bring_up_loopback()?;
            ip(&format!(
                "link add wire type veth peer name wire netns /proc/{}/ns/net",
                here.display()
            ));
            ip("link set wire up");
            ip("address add 192.0.2.2/24 dev wire");
            ip("address add 192.0.2.3/24 dev wire");
            ip("route add local 198.51.100.0/24 dev lo");
            Ok(())
        })?;
        ip("link set wire up");
        ip("address add 192.0.2.1/24 dev wire");
        ip("route add 198.51.100.0/24 via 192.0.2.2");
        let server = TcpListener::bind(SERVER).unwrap();
        let (folder, clients) = (folder.path(), &clients);
        work(&mut World { folder, clients, server, open: VecDeque::new(), turn: 0 });
        Ok(())
    });
    done.unwrap();
}

impl World<'_> {
    /// Opens a connection from the next client; `change` is what the server does with its end.
    /// Closes those that are half a second old. Returns client and controller.
    fn connection(&mut self, change: impl FnOnce(u8, &TcpStream)) -> (IpAddr, String) {
        self.turn = self.turn % 250 + 1;
        let from = Ipv4Addr::new(198, 51, 100, self.turn);
        let near = self.clients.within(|| -> Result<TcpStream, PolicyError> {
            let kind = (AddressFamily::Inet, SockType::Stream);
            let near = socket(kind.0, kind.1, SockFlag::empty(), None).unwrap();
            bind(near.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0))).unwrap();
            connect(near.as_raw_fd(), &SockaddrIn::from(SERVER)).unwrap();
            Ok(near.into())
        });
        let (mut far, peer) = self.server.accept().unwrap();
        assert_eq!(peer.ip(), IpAddr::from(from));
        let name = getsockopt(&far, sockopt::TcpCongestion).unwrap();
        change(self.turn, &far);
        far.write_all(&[0; 3000]).unwrap();
        self.open.push_back((Instant::now(), near.unwrap(), far));
        while self.open.front().is_some_and(|(at, ..)| at.elapsed() > Duration::from_millis(500)) {
            self.open.pop_front();
        }
        (peer.ip(), name.to_string_lossy().trim_end_matches('\0').to_string())
    }

    /// What is published now.
    fn assignment(&self) -> Option<Assignment> {
        serde_json::from_slice(&fs::read(self.folder.join("assignment.json")).ok()?).ok()
    }

    /// Finished blocks.
    fn blocks(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join("blocks")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line.get("number").is_some()).collect()
    }
}

/// In blocks of each kind connections have the controller of the arm that is published for them;
/// none has another one, and nothing is left at the end.
fn connections_get_what_is_drawn() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        let before = ip("-4 route show table all") + &ip("rule");
        let plan = knee(world.folder, "steer plan policy.toml").output().unwrap();
        let said = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert!(said.contains("As an experiment (knee steer run): 256 routes."), "{said}");
        let mut run = knee(world.folder, &format!("{RUN} --block 2s --burn-in 500ms"));
        let mut run = run.spawn().unwrap();
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        until("it is published", || world.assignment().is_some());
        // Both controllers of each route are in the journal.
        let status = knee(world.folder, "steer status --journal own/journal").output().unwrap();
        assert_eq!(status.status.code(), Some(0), "{status:?}");
        while run.try_wait().unwrap().is_none() {
            let first = world.assignment();
            let (client, controller) = world.connection(|_, _| {});
            sleep(Duration::from_millis(2));
            // Only what was published before and after is certain.
            let Some(first) = first.filter(|first| Some(first) == world.assignment().as_ref())
            else {
                continue;
            };
            let arm = Arms::new(&first).unwrap().of(5001, client).unwrap().arm;
            let expected = if arm.ends_with('A') { "reno" } else { "cubic" };
            assert_eq!(controller, expected, "{client} is in {arm}");
            *seen.entry(arm.to_string()).or_insert(0) += 1;
        }
        let ended = run.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        // On a busy machine a block may look harmful.
        let is_whole = told.contains("edge: 2 of 2 triples");
        assert!(is_whole || told.contains("stopped in all"), "{told}");
        let arms: Vec<&str> = seen.keys().map(String::as_str).collect();
        assert!(!is_whole || arms == ["A", "B", "half A", "half B"], "{seen:?}");
        let blocks = world.blocks();
        let sum = |key: &str| blocks.iter().map(|block| block[key].as_u64().unwrap()).sum::<u64>();
        assert!(sum("given") > 0 && sum("refused") == 0, "{blocks:?}");
        assert!(is_reverted(world.folder));
        assert_eq!(ip("-4 route show table all") + &ip("rule"), before);
    });
    Ok(())
}

/// If it is killed while blocks change, its guard reverts everything.
fn kills_leave_nothing() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        let line = format!("{RUN} --block 400ms --burn-in 100ms");
        for after in 0..6u64 {
            let _ = fs::remove_file(world.folder.join("blocks"));
            let mut run = knee(world.folder, &line).spawn().unwrap();
            until("it is applied", || marked() == 257);
            sleep(Duration::from_millis(150 * after));
            run.kill().unwrap();
            run.wait().unwrap();
            until("nothing is left", || is_reverted(world.folder));
        }
    });
    Ok(())
}

/// A server that chooses its own controller makes blocks void. A client whose route somebody has
/// changed is in no arm any more, and the route stays.
fn what_others_choose_counts() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        // Longer than the test needs.
        let line = format!("{RUN} --block 2s --burn-in 500ms").replace("triples 2", "triples 15");
        let run = knee(world.folder, &line).spawn().unwrap();
        let lasting = |voids: &[Value], part: &str| {
            voids.iter().any(|block| block["void"].as_str().is_some_and(|why| why.contains(part)))
        };
        let own = |client: u8, far: &TcpStream| {
            if client.is_multiple_of(2) {
                let name = getsockopt(far, sockopt::TcpCongestion).unwrap();
                let is_reno = name.to_string_lossy().starts_with("reno");
                let other = if is_reno { "cubic" } else { "reno" };
                setsockopt(far, sockopt::TcpCongestion, &other.into()).unwrap();
            }
        };
        until("a block is void", || {
            world.connection(own);
            lasting(&world.blocks(), "had another controller than chosen")
        });
        let refused =
            world.blocks().iter().map(|one| one["refused"].as_u64().unwrap()).sum::<u64>();
        assert!(refused >= 5, "{refused}");

        let changed = "198.51.100.7/32 via 192.0.2.2 table 7222 congctl lock reno proto 222";
        ip(&format!("route replace {changed}"));
        let table = ip("route show 198.51.100.7 table 7222");
        until("its client is in no arm", || {
            world.assignment().is_some_and(|published| {
                let arms = Arms::new(&published).unwrap();
                let arm = |client: &str| arms.of(5001, client.parse().unwrap()).unwrap().arm;
                arm("198.51.100.7").is_empty() && !arm("198.51.100.8").is_empty()
            })
        });
        until("its block is void", || {
            world.connection(|_, _| {});
            lasting(&world.blocks(), "somebody changed a route")
        });
        ip("route replace 198.51.100.0/24 via 192.0.2.3");
        let way = |last: u8| ip(&format!("route get 198.51.100.{last} ipproto tcp sport 5001"));
        until("new next hops are followed", || way(20).contains("via 192.0.2.3"));
        assert!(way(20).contains("table 7222") && way(7).contains("via 192.0.2.2"));
        until("that block is void", || {
            world.connection(|_, _| {});
            lasting(&world.blocks(), "the host's routes have changed")
        });
        kill(Pid::from_raw(i32::try_from(run.id()).unwrap()), Signal::SIGTERM).unwrap();
        let ended = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("Changed by others, so left as they are: 198.51.100.7/32"), "{said}");
        assert_eq!(ip("route show table 7222"), table, "{said}");
        ip("route flush table 7222");
        assert!(is_reverted(world.folder));
    });
    Ok(())
}

impl World<'_> {
    /// Connects the next client, and writes `bytes` to it, more than it takes at once. Returns both
    /// ends, and the controller.
    pub fn connected(&mut self, bytes: usize) -> (TcpStream, TcpStream, String) {
        self.turn = self.turn % 250 + 1;
        let from = Ipv4Addr::new(198, 51, 100, self.turn);
        let near = self.clients.within(|| -> Result<TcpStream, PolicyError> {
            let kind = (AddressFamily::Inet, SockType::Stream);
            let near = socket(kind.0, kind.1, SockFlag::empty(), None).unwrap();
            // Less than the transfer, so that the rest waits in the server's kernel.
            setsockopt(&near, sockopt::RcvBuf, &8192).unwrap();
            bind(near.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0))).unwrap();
            connect(near.as_raw_fd(), &SockaddrIn::from(SERVER)).unwrap();
            Ok(near.into())
        });
        let (near, (mut far, _)) = (near.unwrap(), self.server.accept().unwrap());
        let name = getsockopt(&far, sockopt::TcpCongestion).unwrap();
        setsockopt(&far, sockopt::SndBuf, &400_000).unwrap();
        far.write_all(&vec![0; bytes]).unwrap();
        (near, far, name.to_string_lossy().trim_end_matches('\0').to_string())
    }

    /// Serves 60 kB to the next client, which under CUBIC goes away in a quarter of the cases when it
    /// has read a part of it.
    fn transfer(&mut self) {
        const BYTES: usize = 60_000;
        let (mut near, _far, name) = self.connected(BYTES);
        let dies = name == "cubic" && self.turn.is_multiple_of(4);
        if !dies {
            near.read_exact(&mut [0; BYTES]).unwrap();
        }
        drop(near);
        sleep(Duration::from_millis(1));
    }
}

/// Under B a quarter of the transfers do not finish. Those that do are as fast as under A: the
/// experiment ends at once, and its result is that B is worse.
fn unfinished_transfers_stop_it() -> Result<(), Skipped> {
    are_stopped(&[1])
}

fn unfinished_transfers_stop_it_whatever_the_seed() -> Result<(), Skipped> {
    are_stopped(&[2, 3])
}

fn are_stopped(seeds: &[u64]) -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    world(|world| {
        for seed in seeds {
            let policy = POLICY.replacen('\n', &format!("\nseed = {seed}\n"), 1);
            fs::write(world.folder.join("policy.toml"), policy).unwrap();
            let _ = fs::remove_file(world.folder.join("blocks"));
            let run = knee(world.folder, &format!("{RUN} --block 2s --burn-in 200ms"));
            let mut run = { run }.spawn().unwrap();
            while run.try_wait().unwrap().is_none() {
                world.transfer();
            }
            let ended = run.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&ended.stdout).into_owned();
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(said.contains("end with data undelivered"), "seed {seed}: {said}{told}");
            // On a busy machine too many blocks may be void for a table.
            let is_worse = |told: &str| {
                told.contains("worse: stopped at once") || told.contains("B is worse in all")
            };
            assert!(is_worse(&told), "seed {seed}: {said}{told}");
            assert!(is_reverted(world.folder));
            let judged = knee(world.folder, "steer judge blocks").output().unwrap();
            let judged = String::from_utf8_lossy(&judged.stdout).into_owned();
            assert!(is_worse(&judged), "seed {seed}: {judged}");
        }
    });
    Ok(())
}

/// A group of few clients has no halves; nothing is made.
fn few_clients_are_refused() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    world(|world| {
        let few = POLICY.replace("198.51.100.0/24", "198.51.100.0/29");
        fs::write(world.folder.join("policy.toml"), few).unwrap();
        let said = complaint(world.folder, &RUN.replace("--allow short-block", ""), 3);
        assert!(said.contains("all has 8 clients") && said.contains("a /27"), "{said}");
        assert!(!world.folder.join("blocks").exists() && marked() == 0);
        let plan = knee(world.folder, "steer plan policy.toml").output().unwrap();
        let told = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert!(told.contains("Not as an experiment: all has 8 clients"), "{told}");
    });
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        kills_leave_nothing,
        few_clients_are_refused;
        nightly:
        unfinished_transfers_stop_it,
        unfinished_transfers_stop_it_whatever_the_seed,
        connections_get_what_is_drawn,
        what_others_choose_counts
    ]
}
