//! Marks of connections: which are returned, and which are left alone.

use super::host::{Server, alone, controller, default, other, ready};
use knee_host::bpf::{Place, Steering};
use knee_host::{Arm, Choice, Marked, marked, return_marked, unpin_marks};
use knee_policy::cgroup_root;
use knee_trials::Skipped;
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

const CLIENT: &str = "127.0.1.1";

/// Steers all connections from 127.0.1.0/24, and pins the way back.
struct Steered {
    /// `None` after its process has been killed.
    steering: Option<Steering>,
    folder: PathBuf,
}

impl Steered {
    fn with_seats(seats: u32) -> Steered {
        let (root, lease) = (cgroup_root().unwrap(), Duration::from_secs(600));
        let mut steering = Steering::attach_with_seats(&root, lease, seats).unwrap();
        let prefix = "127.0.1.0/24".parse().unwrap();
        steering
            .add(&Place { prefix, port: None, hint: 0, group: 0, kept: false, part: 32 })
            .unwrap();
        let folder = PathBuf::from(format!("/sys/fs/bpf/knee-test-{}", std::process::id()));
        unpin_marks(&folder).unwrap();
        steering.pin(&folder).unwrap();
        let mut steered = Steered { steering: Some(steering), folder };
        steered.choose(other());
        steered.steering().renew().unwrap();
        steered
    }

    fn new() -> Steered {
        Steered::with_seats(1000)
    }

    fn steering(&mut self) -> &mut Steering {
        self.steering.as_mut().unwrap()
    }

    fn choose(&mut self, name: &str) {
        let arms = [Arm::of(name), Arm::default()];
        self.steering().choose(0, &Choice { arms, ..Choice::default() }).unwrap();
    }

    fn marked(&self) -> (u64, u64) {
        let marked = marked(&self.folder).unwrap();
        (marked.count(), marked.changed)
    }

    fn return_all(&self) -> (u64, u64) {
        let marked = return_marked(&self.folder).unwrap();
        (marked.count(), marked.changed)
    }

    /// The links of a process end with it; what is pinned remains.
    fn kill(&mut self) {
        self.steering = None;
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        unpin_marks(&self.folder).unwrap();
    }
}

type Connection = (TcpStream, TcpStream);

fn opened(server: &Server, count: usize) -> Vec<Connection> {
    (0..count).map(|_| server.from(CLIENT, "127.0.0.1")).collect()
}

fn set(connections: &[Connection], name: &str) {
    for (_, far) in connections {
        setsockopt(far, sockopt::TcpCongestion, &OsString::from(name)).unwrap();
    }
}

fn with(connections: &[Connection], name: &str) -> usize {
    connections.iter().filter(|(_, far)| controller(far) == name).count()
}

/// Neither the default nor what is given, if the host has three controllers.
fn third() -> String {
    let name = if default() == "cubic" { "reno" } else { "cubic" };
    if name == other() { default() } else { name.to_string() }
}

/// Sockets at the addresses of marked ones that have ended are not taken for them: neither while
/// the programs run nor after their process was killed.
pub fn programs_marks_end_with_their_connections() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = Server::on("127.0.0.1:0");
        let mut steered = Steered::new();
        let given = opened(&server, 300);
        assert_eq!((with(&given, other()), steered.marked()), (300, (300, 0)));
        drop(given);
        assert_eq!(steered.marked(), (0, 0));

        steered.choose("");
        let own = opened(&server, 300);
        set(&own, other());
        assert_eq!((steered.marked(), steered.return_all()), ((0, 0), (0, 0)));
        assert_eq!(with(&own, other()), 300);
        drop(own);

        steered.choose(other());
        let given = opened(&server, 300);
        set(&given[..10], &third());
        assert_eq!(steered.marked(), (290, 10));
        drop(given);
        let stays = opened(&server, 20);
        steered.kill();
        let own = opened(&server, 300);
        assert_eq!(with(&own, &default()), 300);
        set(&own, other());
        assert_eq!((steered.marked(), steered.return_all()), ((20, 0), (20, 0)));
        assert_eq!((with(&stays, &default()), with(&own, other())), (20, 300));
        assert_eq!(steered.return_all(), (0, 0));
    });
    Ok(())
}

/// A connection that has the controller of its application's choice keeps it.
pub fn programs_had_is_not_returned() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = Server::on("127.0.0.1:0");
        let mut steered = Steered::new();
        let given = opened(&server, 50);
        drop(given);
        // Accepted connections have the controller of their listener.
        setsockopt(&server.0, sockopt::TcpCongestion, &OsString::from(other())).unwrap();
        let had = opened(&server, 50);
        let done = steered.steering().done(0).unwrap();
        assert_eq!((done.given, done.had, done.refused), (50, 50, 0));
        assert_eq!((with(&had, other()), steered.marked()), (50, (0, 0)));
        steered.kill();
        assert_eq!((steered.return_all(), with(&had, other())), ((0, 0), 50));
    });
    Ok(())
}

/// Connections for whose marks there is no seat are returned as well, and counted.
pub fn programs_without_seats_return_all() -> Result<(), Skipped> {
    let _turn = ready()?;
    alone(|| {
        let server = Server::on("127.0.0.1:0");
        let mut steered = Steered::with_seats(3);
        let before = opened(&server, 20);
        drop(before);
        let given = opened(&server, 20);
        assert_eq!((with(&given, other()), steered.marked()), (20, (20, 0)));
        set(&given[..5], &third());
        steered.steering().change_open(0).unwrap();
        assert_eq!(steered.marked(), (15, 5));
        steered.kill();
        assert_eq!(steered.return_all(), (15, 5));
        assert_eq!((with(&given[..5], &third()), with(&given[5..], &default())), (5, 15));
        assert_eq!(marked(&steered.folder).unwrap(), Marked::default());
    });
    Ok(())
}

/// After several changes, of which the kernel refuses one, connections return to the controller
/// that they had first; those changed when they were open as well.
pub fn programs_the_first_controller_returns() -> Result<(), Skipped> {
    let _turn = ready()?;
    for seats in [3, 1000] {
        alone(|| {
            let server = Server::on("127.0.0.1:0");
            let before = opened(&server, 10);
            let mut steered = Steered::with_seats(seats);
            let given = opened(&server, 10);
            assert_eq!(steered.steering().change_open(1000).unwrap(), 10);
            assert_eq!(steered.marked(), (20, 0));
            steered.choose("no-such-one");
            assert_eq!(steered.steering().change_open(1000).unwrap(), 0);
            let kept = opened(&server, 10);
            assert_eq!(steered.steering().done(0).unwrap().refused, 30);
            assert_eq!((with(&kept, &default()), steered.marked()), (10, (20, 0)));
            drop(kept);
            steered.choose(&third());
            assert_eq!(steered.steering().change_open(1000).unwrap(), 20);
            assert_eq!(with(&before, &third()) + with(&given, &third()), 20);
            steered.kill();
            assert_eq!(steered.return_all(), (20, 0));
            assert_eq!(with(&before, &default()) + with(&given, &default()), 20);
        });
    }
    Ok(())
}
