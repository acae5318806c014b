//! `knee shell`: any program over the links of a scenario. These tests need root and /dev/net/tun,
//! as those of the kernel ground.

use crate::common::{folder_with, json};
use knee_trials::namespaces::{Leftovers, namespaces_in_use, namespaces_of, soon};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// 10 ms each way, and a queue that loses nothing of what these programs send.
const SCENARIO: &str = r#"
name = "A shell"
duration = "1 s"
[link.wire]
rate = "50 Mbit/s"
delay = "10 ms"
buffer = "1 MB"
[path.main]
forward = ["wire"]
reverse_delay = "10 ms"
[[flow]]
name = "unused"
path = "main"
cc = "cubic"
"#;

/// Sends 300,000 bytes over TCP to the other host, which the first connection of a listener there
/// reads.
const TRANSFER: &str = "import socket, subprocess, sys, time
if sys.argv[1] == 'serve':
    listener = socket.create_server(('receiver.knee', 5000))
    open(sys.argv[2], 'w').close()
    connection, _ = listener.accept()
    total = 0
    while data := connection.recv(65536):
        total += len(data)
    sys.exit(0 if total == 300000 else 1)
client = socket.create_connection(('receiver.knee', 5000))
client.sendall(b'x' * 300000)
client.close()
";

/// From 3 s on, round trips take eight times as long, but less than the smallest retransmission
/// timeout (200 ms). Nothing is lost.
const SLOWER: &str = r#"
name = "Slower"
duration = "1 s"
[link.wire]
delay = [{ at = "0 s", delay = "10 ms" }, { at = "3 s", delay = "150 ms" }]
[path.main]
forward = ["wire"]
reverse_delay = "10 ms"
[[flow]]
name = "unused"
path = "main"
cc = "cubic"
"#;

/// Sends three segments of 100 bytes at a time for five seconds, and prints what the kernel has
/// counted: `tcpi_total_retrans`, `tcpi_bytes_retrans`, `tcpi_dsack_dups` (linux/tcp.h).
const BURSTS: &str = "import socket, struct, sys, time
if sys.argv[1] == 'serve':
    listener = socket.create_server(('receiver.knee', 5000))
    open(sys.argv[2], 'w').close()
    connection, _ = listener.accept()
    while connection.recv(65536):
        pass
    sys.exit()
client = socket.create_connection(('receiver.knee', 5000))
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(10):
    for _ in range(3):
        client.sendall(b'x' * 100)
    time.sleep(0.5)
info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 220)
print(struct.unpack_from('I', info, 100)[0], *struct.unpack_from('QI', info, 208))
";

fn knee(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.current_dir(folder).args(arguments);
    command
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    knee(folder, arguments).output().unwrap()
}

/// A command's exit code is Knee's, and Knee's own failures are told apart from it.
fn the_exit_code_is_the_command_s() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SCENARIO);
    let code = |arguments: &[&str]| output(folder.path(), arguments).status.code();
    assert_eq!(code(&["shell", "a.toml", "--", "true"]), Some(0));
    assert_eq!(code(&["shell", "a.toml", "--", "sh", "-c", "exit 3"]), Some(3));
    assert_eq!(code(&["shell", "a.toml", "--", "sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["shell", "a.toml", "--", "no-such-program"]), Some(127));
    assert_eq!(code(&["shell", "none.toml", "--", "true"]), Some(125));
    assert_eq!(code(&["shell", "--no-such-option"]), Some(125));
    assert_eq!(code(&["shell", "--join", ".", "--", "true"]), Some(125));
    Ok(())
}

/// Two programs on both hosts find each other by name; the records have what they sent, found by
/// its five-tuple; nothing else can be reached, and the first process of the host is not Knee's.
fn programs_reach_each_other_and_nothing_else() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SCENARIO);
    fs::write(folder.path().join("transfer.py"), TRANSFER).unwrap();
    let serve = ["shell", "a.toml", "--out", "run", "--", "python3", "transfer.py", "serve", "up"];
    let mut server = knee(folder.path(), &serve).stderr(Stdio::piped()).spawn().unwrap();
    assert!(soon(|| folder.path().join("up").exists()));
    let join = |words: &[&str]| {
        output(folder.path(), &[&["shell", "--join", "run", "--"], words].concat())
    };
    let outside = join(&["python3", "-c", "import socket; socket.getaddrinfo('example.org', 80)"]);
    assert_eq!(outside.status.code(), Some(1), "{outside:?}");
    let script = "cat /proc/1/cmdline; echo; echo $KNEE_AT $KNEE_HERE $KNEE_PEER $KNEE_PATHS; \
        openssl verify -CAfile \"$SSL_CERT_FILE\" -verify_hostname server.knee \"$KNEE_CERT\"";
    let processes = join(&["sh", "-c", script]);
    let told = String::from_utf8_lossy(&processes.stdout).into_owned();
    let own = "sender 10.64.0.1 10.64.0.2 main=10.64.0.1=10.64.0.2\n";
    assert!(told.starts_with("knee-first") && told.contains(own), "{processes:?}");
    assert!(told.ends_with("cert.pem: OK\n"), "{processes:?}");
    let client = join(&["python3", "transfer.py", "send"]);
    assert!(client.status.success(), "{client:?}");
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let run = folder.path().join("run");
    let traffic = json(&run.join("traffic.json"));
    let flows = traffic["flows"].as_array().unwrap();
    let sent = flows.iter().find(|flow| flow["destination"] == "10.64.0.2:5000").unwrap();
    assert_eq!((&sent["protocol"], &sent["payload_bytes"]), (&"tcp".into(), &300_000.into()));
    assert_eq!((&sent["retransmitted_bytes"], &sent["dropped_packets"]), (&0.into(), &0.into()));
    assert!(run.join("links.parquet").exists() && run.join("report.html").exists());
    for gone in ["shell.json", "etc"] {
        assert!(!run.join(gone).exists(), "{gone}");
    }
    Ok(())
}

/// A sender that hears nothing for two round trips repeats its last segment, lost or not: a tail loss
/// probe (RFC 8985, section 7). So it counts retransmissions where no link drops anything, and what
/// entered again is as many bytes as its kernel says, of segments that are not full.
fn probes_of_a_tail_are_retransmissions_without_a_drop() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SLOWER);
    fs::write(folder.path().join("bursts.py"), BURSTS).unwrap();
    let serve = ["shell", "a.toml", "--out", "run", "--", "python3", "bursts.py", "serve", "up"];
    let mut server = knee(folder.path(), &serve).stderr(Stdio::null()).spawn().unwrap();
    assert!(soon(|| folder.path().join("up").exists()));
    let send = ["shell", "--join", "run", "--", "python3", "bursts.py", "send"];
    let client = output(folder.path(), &send);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let counted = String::from_utf8(client.stdout).unwrap();
    let counted: Vec<u64> = counted.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [segments, bytes, unneeded] = counted[..] else { panic!("{counted:?}") };
    assert!(segments > 0 && unneeded > 0, "{counted:?}");
    let traffic = json(&folder.path().join("run/traffic.json"));
    assert_eq!(traffic["missed_events"], 0);
    let flows = traffic["flows"].as_array().unwrap();
    let sent = flows.iter().find(|flow| flow["destination"] == "10.64.0.2:5000").unwrap();
    assert_eq!(
        (&sent["retransmitted_bytes"], &sent["dropped_packets"]),
        (&bytes.into(), &0.into())
    );
    assert!(bytes <= 300 * segments, "{counted:?}");
    Ok(())
}

/// Processes of any namespace whose command line has this word.
fn running(word: &str) -> Vec<PathBuf> {
    let has = |process: &PathBuf| {
        fs::read(process.join("cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|one| one == word.as_bytes()))
    };
    knee_trials::namespaces::entries(Path::new("/proc")).into_iter().filter(has).collect()
}

/// Kills Knee at some moment of a shell whose command has a child in a session of its own.
fn leaves_nothing(number: u32) {
    let folder = folder_with("a.toml", SCENARIO);
    let before = Leftovers::now();
    // Names both sleeps, and nothing else on this host.
    let word = format!("98{}.{number}", std::process::id());
    let script = format!("setsid sleep {word} & touch up; sleep {word}");
    let arguments = ["shell", "a.toml", "--out", "run", "--", "sh", "-c", &script];
    let mut knee = knee(folder.path(), &arguments).stderr(Stdio::null()).spawn().unwrap();
    let process = PathBuf::from(format!("/proc/{}", knee.id()));
    // At first at moments of the start, then while both sleep.
    let delay = Duration::from_millis(u64::from(number) * 7 % 200);
    if number.is_multiple_of(2) {
        assert!(soon(|| running(&word).len() == 2), "the command did not start");
    } else {
        thread::park_timeout(delay);
    }
    let made = namespaces_of(&process);
    // The first processes have the folder as their argument.
    let run = fs::canonicalize(folder.path()).unwrap().join("run");
    kill(Pid::from_raw(knee.id() as i32), Signal::SIGKILL).unwrap();
    knee.wait().unwrap();
    assert!(soon(|| running(&word).is_empty()), "{:?}", running(&word));
    assert!(soon(|| running(run.to_str().unwrap()).is_empty()), "a first process is left");
    assert!(soon(|| namespaces_in_use().is_disjoint(&made)), "{made:?}");
    assert_eq!(Leftovers::now(), before);
}

fn nothing_is_left_after_a_kill() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    (0..4).for_each(leaves_nothing);
    Ok(())
}

fn nothing_is_left_after_a_hundred_kills() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    (0..100).for_each(leaves_nothing);
    Ok(())
}

/// A command that ignores the request to end is killed after its time of grace.
fn a_stop_ends_a_command_that_ignores_it() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SCENARIO);
    let script = "trap '' TERM; touch up; while true; do sleep 0.1; done";
    let arguments = ["shell", "a.toml", "--out", "run", "--", "sh", "-c", script];
    let mut knee = knee(folder.path(), &arguments).stderr(Stdio::null()).spawn().unwrap();
    assert!(soon(|| folder.path().join("up").exists()));
    kill(Pid::from_raw(knee.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(knee.wait().unwrap().code(), Some(137));
    assert!(folder.path().join("run/summary.json").exists());
    Ok(())
}

pub fn all() -> Vec<Trial> {
    trials![
        the_exit_code_is_the_command_s,
        programs_reach_each_other_and_nothing_else,
        probes_of_a_tail_are_retransmissions_without_a_drop,
        nothing_is_left_after_a_kill,
        a_stop_ends_a_command_that_ignores_it;
        nightly:
        nothing_is_left_after_a_hundred_kills,
    ]
}
