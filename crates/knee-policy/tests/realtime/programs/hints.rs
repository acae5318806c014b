//! Groups by the application's hint: the mark of a socket, and the control group of its process.

use super::host::{Server, alone, controller, default, other, ready};
use super::{apply, policy};
use knee_host::{TcpInfo, each_connection};
use knee_policy::{Actuator, GroupOf, Host, Policy, cgroup_root};
use knee_trials::Skipped;
use nix::sys::socket::{setsockopt, sockopt};
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// What a connection got: its controller, and the initial window, which differs from group to group.
fn got(far: &TcpStream) -> (String, u32) {
    (controller(far), TcpInfo::of(far).unwrap().window)
}

fn group(name: &str, window: u32, keys: &str) -> String {
    format!(
        "[[group]]\nname = \"{name}\"\ncontroller = \"{}\"\ninitial_window = {window}\n\
         hold_out = \"0%\"\n{keys}\n",
        other()
    )
}

/// The group of the connection with this server's end, as `steer plan` counts it.
fn counted(policy: &Policy, far: &TcpStream) -> Option<String> {
    let groups = GroupOf::new(policy);
    let ends: [SocketAddr; 2] = [far.local_addr().unwrap(), far.peer_addr().unwrap()];
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let mut found = None;
    each_connection(|socket| {
        if [socket.local, socket.remote] == ends.map(plain) {
            found = groups.of(&socket).map(|index| policy.groups[index].name.clone());
        }
    })
    .unwrap();
    found
}

/// A mark on the listening socket, or on a socket before it connects, puts its connections into the
/// group of the mark, whatever other group has their clients. Other marks and ports do not.
pub fn programs_marks_choose_the_group() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let marked = |mark: u32| {
            let server = Server::on("[::]:0");
            setsockopt(&server.0, sockopt::Mark, &mark).unwrap();
            server
        };
        let (large, unknown, plain) = (marked(7), marked(8), Server::on("[::]:0"));
        let (of_port, push) = (marked(9), Server::on("127.0.7.1:0"));
        let folder = tempfile::tempdir().unwrap();
        let keys = format!("mark = 9\nports = [{}]", of_port.port());
        let text = [
            group("large", 21, "mark = 7"),
            group("port", 22, &keys),
            group("web", 23, "prefixes = [\"127.0.1.0/24\"]"),
        ];
        let policy = policy(&text.concat());
        let mut applied = apply(&policy, &folder.path().join("journal"));
        let none = (default(), 10);
        for (server, client, group) in [
            (&large, "127.0.1.1", Some((21, "large"))),
            (&large, "127.0.2.1", Some((21, "large"))),
            (&large, "2001:db8:5::1", Some((21, "large"))),
            (&unknown, "127.0.1.1", Some((23, "web"))),
            (&unknown, "127.0.2.1", None),
            (&plain, "127.0.1.1", Some((23, "web"))),
            (&plain, "127.0.2.1", None),
            (&of_port, "127.0.1.1", Some((22, "port"))),
            (&of_port, "127.0.2.1", Some((22, "port"))),
        ] {
            let to = if client.contains(':') { "2001:db8::1" } else { "127.0.0.1" };
            let (near, far) = server.from(client, to);
            let expected = group.map_or(none.clone(), |(window, _)| (other().to_string(), window));
            assert_eq!(got(&far), expected, "{client}");
            assert_eq!(counted(&policy, &far).as_deref(), group.map(|(_, name)| name));
            assert_eq!(controller(&near), default(), "the client's end, which has no mark");
        }
        // A mark of another port's group.
        let other_port = marked(9);
        assert_eq!(got(&other_port.from("127.0.2.1", "127.0.0.1").1), none);
        // The opening end says it before it connects.
        let open = |mark: u32| {
            let prepare = |socket: &OwnedFd| setsockopt(socket, sockopt::Mark, &mark).unwrap();
            push.prepared("127.0.2.1", "127.0.7.1", prepare).0
        };
        assert_eq!(got(&open(7)), (other().to_string(), 21));
        assert_eq!(got(&open(0)), none);
        applied.actuator.stop();
        assert_eq!(got(&large.from("127.0.1.1", "127.0.0.1").1), none);
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
    });
    Ok(())
}

/// With `open_connections`, a mark that an open connection gets or loses counts at the next renewal;
/// in the end all have the controller that they had.
pub fn programs_a_mark_of_an_open_connection_counts() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = Server::on("127.0.0.1:0");
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "open_connections = true\n[[group]]\nname = \"large\"\nmark = 7\n\
             controller = \"{}\"\nhold_out = \"0%\"\n",
            other()
        );
        let mut applied = apply(&policy(&text), &folder.path().join("journal"));
        let open: Vec<_> =
            (1..=4).map(|last| server.from(&format!("127.0.1.{last}"), "127.0.0.1")).collect();
        let all = || open.iter().map(|(_, far)| controller(far)).collect::<Vec<_>>();
        assert_eq!(applied.actuator.renew().unwrap().changed, 0);
        for (mark, (_, far)) in [7, 8, 0, 7].into_iter().zip(&open) {
            setsockopt(far, sockopt::Mark, &mark).unwrap();
        }
        assert_eq!(applied.actuator.renew().unwrap().changed, 2);
        let (default, other) = (default(), other().to_string());
        assert_eq!(all(), [other.clone(), default.clone(), default.clone(), other]);
        applied.actuator.stop();
        let recorded = applied.journal.recorded().unwrap();
        assert_eq!(Host::open().unwrap().roll_back(&recorded).unwrap().connections, 2);
        assert_eq!(all(), [(); 4].map(|()| default.clone()));
    });
    Ok(())
}

/// A control group of this test, which is removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn create(name: &str) -> Cgroup {
        let path = cgroup_root().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Cgroup(path)
    }

    /// Runs `work` with this process in the control group.
    fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let of_process = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = of_process.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
        let own = cgroup_root().unwrap().join(own).join("cgroup.procs");
        fs::write(self.0.join("cgroup.procs"), "0").unwrap();
        let done = work();
        fs::write(own, "0").unwrap();
        done
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The control group of the process that opened the listening socket chooses the group, the innermost
/// that the policy names; others and none do not. One that is made anew, as when a service begins
/// again, is found at the next renewal.
pub fn programs_control_groups_choose_the_group() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let own = format!("knee-test-{}", std::process::id());
        let outer = Cgroup::create(&own);
        let inner = Cgroup::create(&format!("{own}/inner"));
        let unnamed = Cgroup::create(&format!("{own}/unnamed"));
        let beside = Cgroup::create(&format!("{own}-beside"));
        let listen = || Server::on("127.0.0.1:0");
        let servers = [&outer, &inner, &unnamed, &beside].map(|cgroup| cgroup.within(listen));
        let [of_outer, of_inner, of_unnamed, of_beside] = servers;
        let marked = inner.within(listen);
        setsockopt(&marked.0, sockopt::Mark, &7).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let text = [
            group("outer", 21, &format!("cgroup = \"/{own}\"\nprefixes = [\"127.0.0.0/16\"]")),
            group(
                "inner",
                22,
                &format!("cgroup = \"/{own}/inner\"\nprefixes = [\"127.0.1.0/24\"]"),
            ),
            group("mark", 23, "mark = 7"),
            group("absent", 24, &format!("cgroup = \"/{own}-absent\"")),
            group("rest", 25, "prefixes = [\"127.0.3.0/24\"]"),
        ];
        let policy = policy(&text.concat());
        let mut applied = apply(&policy, &folder.path().join("journal"));
        let given = |window| (other().to_string(), window);
        let none = (default(), 10);
        for (server, client, expected) in [
            (&of_outer, "127.0.1.1", Some((21, "outer"))),
            (&of_inner, "127.0.1.1", Some((22, "inner"))),
            // A client that the innermost group has not.
            (&of_inner, "127.0.2.1", Some((21, "outer"))),
            (&of_unnamed, "127.0.1.1", Some((21, "outer"))),
            (&of_beside, "127.0.1.1", None),
            (&of_beside, "127.0.3.1", Some((25, "rest"))),
            (&of_outer, "127.0.3.1", Some((21, "outer"))),
            (&marked, "127.0.1.1", Some((23, "mark"))),
        ] {
            let (_near, far) = server.from(client, "127.0.0.1");
            let window = expected.map_or(none.clone(), |(window, _)| given(window));
            assert_eq!(got(&far), window, "{client} {expected:?}");
            assert_eq!(counted(&policy, &far).as_deref(), expected.map(|(_, name)| name));
        }
        let groups = GroupOf::new(&policy);
        let missing: Vec<String> = groups.missing().map(ToString::to_string).collect();
        assert_eq!(missing, [format!("control group /{own}-absent")]);

        let absent = Cgroup::create(&format!("{own}-absent"));
        let first = absent.within(listen);
        applied.actuator.renew().unwrap();
        assert_eq!(got(&first.from("127.0.9.1", "127.0.0.1").1), given(24));
        drop((absent, first));
        let absent = Cgroup::create(&format!("{own}-absent"));
        let next = absent.within(listen);
        assert_eq!(got(&next.from("127.0.9.1", "127.0.0.1").1), none, "a new control group");
        applied.actuator.renew().unwrap();
        assert_eq!(got(&next.from("127.0.9.1", "127.0.0.1").1), given(24));
        applied.actuator.stop();
        let recorded = applied.journal.recorded().unwrap();
        Host::open().unwrap().roll_back(&recorded).unwrap();
    });
    Ok(())
}
