//! `--on programs`: flows that are programs. These tests need root and /dev/net/tun, as those of the
//! kernel ground.

use crate::common::{self, folder_with};
use knee_trials::namespaces::{Leftovers, namespaces_in_use, namespaces_of, soon};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// 10 ms each way, and a queue that loses nothing of what these programs send.
const NETWORK: &str = r#"
name = "Programs"
duration = "3 s"
sample_interval = "50 ms"
[link.wire]
rate = "50 Mbit/s"
delay = "10 ms"
buffer = "2 MB"
[path.main]
forward = ["wire"]
reverse_delay = "10 ms"
"#;

/// Sends over TCP, with Reno, to the first that connects, or over UDP to the first that asks; the
/// other end prints how much has come. Over TCP the sender prints what its kernel has counted once all
/// is acknowledged: `tcpi_bytes_retrans` (linux/tcp.h).
const TRANSFER: &str = "import os, socket, struct, sys, time
role, kind, address, port, size = sys.argv[1:]
at, size = (address, int(port)), int(size)
if kind == 'tcp' and role == 'serve':
    listener = socket.create_server(at)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'reno')
    connection, _ = listener.accept()
    connection.sendall(b'x' * size)
    unacknowledged = 1
    while unacknowledged:
        time.sleep(0.01)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 216)
        unacknowledged, = struct.unpack_from('I', info, 24)
    print(struct.unpack_from('Q', info, 208)[0], flush=True)
elif kind == 'tcp':
    assert (os.environ['KNEE_PEER'], os.environ['KNEE_PORT']) == at[:1] + (port,)
    time.sleep(0.2)
    total, connection = 0, socket.create_connection(at)
    while data := connection.recv(65536):
        total += len(data)
    print(total)
elif role == 'serve':
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(at)
    _, client = server.recvfrom(1500)
    for _ in range(size // 1000):
        server.sendto(b'x' * 1000, client)
else:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.sendto(b'?', at)
    print(sum(len(client.recv(1500)) for _ in range(size // 1000)))
";

/// A flow with these lines below `[flow.program]`.
fn flow(name: &str, program: &str) -> String {
    let head = format!("[[flow]]\nname = \"{name}\"\npath = \"main\"\ncc = \"cubic\"\n");
    format!("{head}[flow.program]\n{program}\n")
}

/// A transfer between two ends of `TRANSFER`.
fn transfer(kind: &str, bytes: u64) -> String {
    let words = |role: &str, at: &str| {
        format!(
            "[\"python3\", \"transfer.py\", \"{role}\", \"{kind}\", \"{{{at}}}\", \"{{port}}\", \"{{bytes}}\"]"
        )
    };
    let (server, client) = (words("serve", "here"), words("fetch", "peer"));
    format!("server = {server}\nclient = {client}\nbytes = \"{bytes} B\"\nready = \"{kind}\"")
}

/// A client in place of whatever the server is, which is ready at once.
fn client(words: &str) -> String {
    format!("server = [\"sleep\", \"1000\"]\nclient = {words}\nready = \"after 0 s\"")
}

fn knee(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.current_dir(folder).args(["run", "a.toml", "--on", "programs", "--out", "run"]);
    command
}

/// Runs flows, and returns the run's summary.
fn run(folder: &Path) -> (Output, Value) {
    fs::write(folder.join("transfer.py"), TRANSFER).unwrap();
    let output = knee(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary = common::json(&folder.join("run/summary.json"));
    (output, summary)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the records have of a flow is what its client counted itself; for UDP as well, whose payload
/// is known.
fn records_are_what_the_programs_counted() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let flows = [flow("tcp", &transfer("tcp", 1_500_000)), flow("udp", &transfer("udp", 300_000))];
    let folder = folder_with("a.toml", &(NETWORK.to_owned() + &flows.concat()));
    let (_, summary) = run(folder.path());
    let run = folder.path().join("run");
    for (name, bytes) in [("tcp", 1_500_000), ("udp", 300_000)] {
        assert_eq!(text(&run.join(format!("output/{name}.client.out"))), format!("{bytes}\n"));
        let found = summary["flows"].as_array().unwrap().iter();
        let flow = found.clone().find(|flow| flow["name"] == name).unwrap();
        assert_eq!(flow["delivered_bytes"], bytes, "{flow}");
        // A sender on a busy host repeats what it takes for lost.
        let count = |key: &str| flow[key].as_u64().unwrap();
        assert_eq!(count("sent_bytes") - count("retransmitted_bytes"), bytes, "{flow}");
        // At 50 Mbit/s, and after two round trips of 20 ms for TCP.
        let completion_s = flow["completion_us"].as_f64().unwrap() / 1e6;
        assert!(completion_s > 8.0 * bytes as f64 / 50e6, "{completion_s}");
        // The first waits for 0.2 s before it connects, which is no part of its transfer.
        assert!(name == "udp" || flow["start_us"].as_f64() >= Some(200_000.0), "{flow}");
    }
    let traffic = common::json(&run.join("traffic.json"));
    let sent = |port: u64| {
        let source = format!("10.64.0.1:{port}");
        let flows = traffic["flows"].as_array().unwrap().iter();
        flows
            .filter(|flow| flow["source"] == *source)
            .map(|flow| flow["payload_bytes"].as_u64())
            .sum::<Option<u64>>()
    };
    assert!(sent(5201) >= Some(1_500_000), "{traffic}");
    assert_eq!(sent(5202), Some(300_000));
    Ok(())
}

/// Retransmissions are those that the sender's kernel has counted, byte for byte; RTT and window are
/// its own as well.
fn retransmissions_and_rtt_are_the_kernel_s() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let network = NETWORK.replace("buffer =", "loss = \"1 %\"\nbuffer =");
    let folder = folder_with("a.toml", &(network + &flow("lossy", &transfer("tcp", 1_500_000))));
    let (_, summary) = run(folder.path());
    let flow = &summary["flows"][0];
    let counted = text(&folder.path().join("run/output/lossy.server.out"));
    let counted: u64 = counted.trim().parse().unwrap();
    assert!(counted > 0, "{summary}");
    assert_eq!(flow["retransmitted_bytes"], counted, "{flow}");
    assert_eq!(flow["delivered_bytes"], 1_500_000, "{flow}");
    // Propagation alone is 20 ms.
    assert!(flow["rtt_us"]["p50"].as_f64().unwrap() > 20_000.0, "{flow}");
    let reason = summary["verdict_reason"].as_str().unwrap();
    let other = "flow lossy: said to use cubic, but its connection has reno";
    assert!(reason.contains(other), "{reason}");
    Ok(())
}

/// Sends over TLS with the certificate of the run, which a client with the system's defaults accepts
/// by the server's name.
const TLS: &str = "import socket, ssl, sys
role, port, size, cert, key = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
if role == 'serve':
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(('server.knee', port))
    connection = context.wrap_socket(listener.accept()[0], server_side=True)
    connection.sendall(b'x' * size)
    connection.close()
else:
    context = ssl.create_default_context()
    connection = socket.create_connection(('server.knee', port))
    connection = context.wrap_socket(connection, server_hostname='server.knee')
    total = 0
    while data := connection.recv(65536):
        total += len(data)
    print(total)
";

/// A flow of Knee's own shares the path with programs: one over TLS, whose controller Knee does not
/// know, and one over UDP, of which the path tells the delay that its sender does not.
fn own_flows_run_beside_programs() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let words = |role: &str| {
        format!(
            "[\"python3\", \"tls.py\", \"{role}\", \"{{port}}\", \"{{bytes}}\", \"{{cert}}\", \"{{key}}\"]"
        )
    };
    let (server, client) = (words("serve"), words("fetch"));
    let tls = format!("server = {server}\nclient = {client}\nbytes = \"500 kB\"");
    let own = "[[flow]]\nname = \"own\"\npath = \"main\"\ncc = \"reno\"\n\
               workload = { file = \"1 MB\" }\n";
    let flows = flow("tls", &tls).replace("\"cubic\"", "\"rainbow-2\"")
        + own
        + &flow("udp", &transfer("udp", 300_000));
    let folder = folder_with("a.toml", &(NETWORK.to_owned() + &flows));
    fs::write(folder.path().join("tls.py"), TLS).unwrap();
    let (_, summary) = run(folder.path());
    let reason = summary["verdict_reason"].as_str().unwrap_or_default();
    assert!(!reason.contains("failed"), "{summary}");
    let run = folder.path().join("run");
    assert_eq!(text(&run.join("output/tls.client.out")), "500000\n");
    assert!(text(&run.join("output/secrets.log")).contains("CLIENT_"));
    let flows = summary["flows"].as_array().unwrap();
    let names: Vec<_> = flows.iter().map(|flow| (&flow["name"], &flow["cc"])).collect();
    let expected = [("tls", "rainbow-2"), ("own", "reno"), ("udp", "cubic")];
    assert_eq!(format!("{names:?}"), format!("{:?}", expected.map(|(n, c)| (json!(n), json!(c)))));
    let delivered = [1, 2].map(|at| flows[at]["delivered_bytes"].as_u64());
    assert_eq!(delivered, [Some(1_000_000), Some(300_000)]);
    assert!(flows[1]["rtt_us"]["p50"].as_f64().unwrap() > 20_000.0, "{}", flows[1]);
    // Propagation takes 20 ms, and a full queue of 2 MB 320 ms more.
    let path_rtt = &flows[2]["path_rtt_us"];
    let [p50, p95] = ["p50", "p95"].map(|name| path_rtt[name].as_f64().unwrap());
    assert!(20_000.0 < p50 && p50 <= p95 && p95 < 345_000.0, "{}", flows[2]);
    assert!(flows[2]["rtt_us"].is_null() && flows[1]["path_rtt_us"].is_null(), "{summary}");
    Ok(())
}

/// Programs that fail in all ways are named as what they are, with the reason that they gave; the
/// flow beside them is complete, and nothing is left of them.
fn failures_are_named_and_other_flows_complete() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let before = Leftovers::now();
    let word = format!("97{}.5", std::process::id());
    let script = |script: &str| client(&format!("[\"sh\", \"-c\", {script:?}]"));
    let deaf = "server = [\"sleep\", \"1000\"]\nclient = [\"true\"]\ntimeout = \"500 ms\"";
    let ends = "server = [\"sh\", \"-c\", \"echo no port >&2; exit 4\"]\nclient = [\"true\"]";
    let missing = "server = [\"no-such-program\"]\nclient = [\"true\"]";
    let stubborn = "server = [\"sh\", \"-c\", \"trap '' TERM; while :; do sleep 0.1; done\"]\n\
                    client = [\"true\"]\nready = \"after 100 ms\"";
    let flows = [
        ("good", transfer("tcp", 200_000)),
        ("deaf", deaf.to_owned()),
        ("ends", ends.to_owned()),
        ("missing", missing.to_owned()),
        ("absent", script("exit 127")),
        ("broken", script("echo first; echo the reason >&2; exit 3")),
        ("killed", script("kill -9 $$")),
        ("slow", client("[\"sleep\", \"1000\"]") + "\ntimeout = \"500 ms\""),
        ("flood", script("head -c 5000000 /dev/zero")),
        ("fork", script(&format!("setsid sleep {word} & sleep 0.3"))),
        ("stubborn", stubborn.to_owned()),
        ("busy", script("while :; do :; done") + "\ntimeout = \"1 s\""),
        ("short", format!("{}\n", transfer("tcp", 1000).replace("\"{bytes}\"]", "\"500\"]"))),
    ];
    let flows: String = flows.iter().map(|(name, program)| flow(name, program)).collect();
    let folder = folder_with("a.toml", &(NETWORK.to_owned() + &flows));
    let (output, summary) = run(folder.path());
    assert_eq!(summary["verdict"], "invalid");
    let reason = summary["verdict_reason"].as_str().unwrap();
    for expected in [
        "flow deaf: failed: the server did not listen on TCP port 5202 within 500 ms",
        "flow ends: failed: the server ended before it was ready, exit 4: no port",
        "flow missing: could not be tried: the server no-such-program cannot be started: No such",
        "flow absent: could not be tried: client exit 127",
        "flow broken: failed: client exit 3: the reason",
        "flow killed: failed: client ended by signal 9",
        "flow slow: failed: the client did not end within 500 ms",
        "flow flood: client wrote 4.0 MB more than are kept",
        "flow fork: client left a process, which was killed",
        "flow stubborn: server ignored SIGTERM and was killed",
        "flow busy: client lacked the processor",
        "flow short: failed: the client ended after 500 of 1000 bytes",
    ] {
        assert!(reason.contains(expected), "{expected} is not in {reason}");
    }
    // On a busy host, every program may lack the processor.
    assert!(!reason.contains("flow good: failed"), "{reason}");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("flow broken: failed: client exit 3"), "{shown}");
    let flows = summary["flows"].as_array().unwrap();
    let good = flows.iter().find(|flow| flow["name"] == "good").unwrap();
    assert_eq!(good["delivered_bytes"], 200_000);
    assert!(good["completion_us"].is_number(), "{good}");
    let kept = folder.path().join("run/output/flood.client.out");
    assert_eq!(fs::metadata(kept).unwrap().len(), 1 << 20);
    assert!(soon(|| running(&word).is_empty()), "{:?}", running(&word));
    assert_eq!(Leftovers::now(), before);
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

/// Kills Knee, a program of it, or both, at some moment of a run whose programs have children in
/// sessions of their own.
fn leaves_nothing(number: u32) {
    let before = Leftovers::now();
    // Names the sleeps, and nothing else on this host.
    let word = format!("96{}.{number}", std::process::id());
    let words = format!("[\"sh\", \"-c\", \"setsid sleep {word} & sleep {word}\"]");
    let program = format!("server = {words}\nclient = {words}\nready = \"after 0 s\"");
    let folder = folder_with("a.toml", &(NETWORK.to_owned() + &flow("sleeps", &program)));
    let mut knee = knee(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let process = PathBuf::from(format!("/proc/{}", knee.id()));
    // Both programs run from about one second on, after the self-check; some are killed before.
    let is_late = number.is_multiple_of(2);
    if is_late {
        assert!(soon(|| running(&word).len() == 4), "the programs did not start");
    } else {
        thread::park_timeout(Duration::from_millis(u64::from(number) * 67 % 2500));
    }
    let made = namespaces_of(&process);
    if number % 4 == 2 {
        let one = running(&word).pop().unwrap();
        let one: i32 = one.file_name().unwrap().to_str().unwrap().parse().unwrap();
        kill(Pid::from_raw(one), Signal::SIGKILL).unwrap();
    }
    kill(Pid::from_raw(knee.id() as i32), Signal::SIGKILL).unwrap();
    knee.wait().unwrap();
    assert!(soon(|| running(&word).is_empty()), "{:?}", running(&word));
    let output = fs::canonicalize(folder.path()).unwrap().join("run/output");
    assert!(soon(|| running(output.to_str().unwrap()).is_empty()), "a first process is left");
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

/// Container engines mount `/proc/sys` read-only; the namespaces of a run have settings of their own.
fn settings_of_a_container_are_no_obstacle() -> Result<(), Skipped> {
    let _turn = turn(Pauses::Any)?;
    let flows = flow("done", &client("[\"true\"]"));
    let folder = folder_with("a.toml", &(NETWORK.to_owned() + &flows));
    let read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys \
        && ! sysctl -qw net.core.somaxconn=4096 2>/dev/null && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", read_only, "sh", env!("CARGO_BIN_EXE_knee"), "run", "a.toml"])
        .args(["--set", "duration=1 s", "--on", "programs", "--out", "run"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Ok(())
}

/// The other grounds refuse a program, and this one refuses Knee's own flows, each with what to write.
fn grounds_refuse_what_they_cannot_run() -> Result<(), Skipped> {
    let program = NETWORK.to_owned() + &flow("stack", &client("[\"true\"]"));
    let folder = folder_with("a.toml", &program);
    let own = format!("{NETWORK}[[flow]]\nname = \"own\"\npath = \"main\"\ncc = \"cubic\"\n");
    fs::write(folder.path().join("own.toml"), own).unwrap();
    for (arguments, expected) in [
        (["run", "a.toml", "--on", "sim"], "flow \"stack\" is a program"),
        (["run", "a.toml", "--on", "kernel"], "it runs on the ground programs alone"),
        (["run", "own.toml", "--on", "programs"], "add [flow.program] with server and client"),
    ] {
        let mut knee = Command::new(env!("CARGO_BIN_EXE_knee"));
        let output = knee.current_dir(folder.path()).args(arguments).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(expected), "{told}");
        assert_eq!(output.status.code(), Some(2));
    }
    Ok(())
}

pub fn all() -> Vec<Trial> {
    trials![
        records_are_what_the_programs_counted,
        retransmissions_and_rtt_are_the_kernel_s,
        own_flows_run_beside_programs,
        failures_are_named_and_other_flows_complete,
        nothing_is_left_after_a_kill,
        settings_of_a_container_are_no_obstacle,
        grounds_refuse_what_they_cannot_run;
        nightly:
        nothing_is_left_after_a_hundred_kills,
    ]
}
