//! `knee observe` as a process.

use crate::common::{complaint, expect};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use serde_json::Value;
use std::fs::{self, Permissions};
#[cfg(feature = "live")]
use std::io::Lines;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
#[cfg(feature = "live")]
use std::process::{Child, ChildStderr};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Errors are reported before anything is written.
fn wrong_arguments() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    for (line, part) in [
        ("observe --sample 2", "1/100 for one of a hundred"),
        ("observe --sample 1/0", "1/100 for one of a hundred"),
        ("observe --group 192.0.2.0/24", "office=192.0.2.0/24"),
        ("observe --group a=192.0.2.1/24", "unlike 192.0.2.0/24"),
        ("observe --group a=::/0 --group b=::/0", "in two groups, a and b"),
        ("observe --duration 5", "bare number"),
        ("observe --limit 5", "bare number"),
        ("observe --open --interval 5ms", "write 100 ms or more"),
        ("observe --open --format csv", "write --json"),
        ("observe --open --sample 1/10", "cannot be used with"),
        ("observe --interval 5s", "--open"),
        ("observe --hops 192.0.2.1:80", "--open"),
        ("observe --open --hops 192.0.2.1", "invalid IPv4 socket address"),
        ("observe --open --hops [2001:db8::1]:80", "invalid IPv4 socket address"),
        ("observe --page 127.0.0.1", "invalid socket address"),
        #[cfg(feature = "live")]
        ("observe --page 0.0.0.0:80", "write --page 127.0.0.1:80"),
        #[cfg(not(feature = "live"))]
        ("observe --page", "--features live"),
        #[cfg(feature = "upload")]
        ("observe --upload bucket/observed", "write s3://BUCKET/PATH"),
        #[cfg(feature = "upload")]
        ("observe --upload s3://key:secret@bucket/observed", "belong into the environment"),
        #[cfg(not(feature = "upload"))]
        ("observe --upload s3://bucket/observed", "--features upload"),
    ] {
        let said = complaint(folder.path(), line, 2);
        assert!(said.contains(part), "{line}: {said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    Ok(())
}

/// On a terminal of 60 columns the tables of open connections have the columns that fit, side by side.
#[expect(clippy::disallowed_methods, reason = "a connection sends as time passes")]
fn open_connections_fit_a_narrow_terminal() -> Result<(), Skipped> {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut far = listener.accept().unwrap().0;
    let program = env!("CARGO_BIN_EXE_knee");
    let line = format!(
        "stty cols 60 rows 30; {program} observe --open --addresses --group own=127.0.0.0/8 \
         --interval '300 ms' --duration 2s"
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).current_dir(folder.path());
    let terminal = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let ended = thread::spawn(move || terminal.wait_with_output().unwrap());
    let mut buffer = [0; 1000];
    while !ended.is_finished() {
        near.write_all(&buffer).unwrap();
        far.read_exact(&mut buffer).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let shown = String::from_utf8(ended.join().unwrap().stdout).unwrap();
    // Each screen begins with the upper left corner (ECMA-48).
    let last = shown.rsplit("\u{1b}[H").next().unwrap();
    let mut parts = last.split('\u{1b}');
    let plain: String = parts
        .next()
        .into_iter()
        .chain(parts.map(|part| part.split_once(|end: char| end.is_ascii_alphabetic()).unwrap().1))
        .collect();
    // The list of files is not of the screen.
    let plain = plain.split("file  ").next().unwrap();
    let lines: Vec<&str> = plain.lines().map(str::trim_end).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 60), "{plain}");
    for (head, columns) in [("client", "sent retransmitted"), ("interface", "sent")] {
        let heads = lines.iter().filter(|line| line.starts_with(head));
        let heads: Vec<Vec<&str>> = heads.map(|line| line.split_whitespace().collect()).collect();
        let [only] = heads.as_slice() else { panic!("{head}: {plain}") };
        assert!(columns.split(' ').all(|column| only.contains(&column)), "{only:?} {plain}");
    }
    assert!(plain.contains("127.0.0.1") && plain.contains("own"), "{plain}");
    Ok(())
}

/// Checks that no thread of a process has capabilities other than that of writing files.
fn has_given_up_capabilities(process: u32) {
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for name in ["CapPrm:", "CapEff:", "CapInh:", "CapAmb:"] {
            let has = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            // Bit 1 is CAP_DAC_OVERRIDE (capability.h).
            assert_eq!(u64::from_str_radix(has, 16).unwrap() & !2, 0, "{status}");
        }
    }
}

/// Checks that a process has never had as much memory as its program's file is large.
fn has_not_read_itself(process: u32, program: &Path) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kb * 1024 < fs::metadata(program).unwrap().len(), "{status}");
}

/// A transfer over loopback appears in the table, and the files are complete.
#[expect(clippy::disallowed_methods, reason = "the host is observed as time passes")]
fn a_transfer_is_seen() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let transfer = thread::spawn(|| {
        // Wait until it listens.
        thread::sleep(Duration::from_secs(1));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let sender = thread::spawn(move || {
            server.write_all(&vec![1; 5_000_000]).unwrap();
        });
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        sender.join().unwrap();
    });
    let line = "observe --duration 3s --group here=127.0.0.0/8 --out live --format json";
    let told: Value = serde_json::from_str(&expect(folder.path(), line, 0)).unwrap();
    transfer.join().unwrap();
    assert_eq!((&told["schema"], &told["verdict"]), (&"knee-observed/1".into(), &"valid".into()));
    let cells = told["cells"].as_array().unwrap();
    let ours = |cell: &&Value| cell["class"] == "3 to 30 MB" && cell["group"] == "here";
    let acked: u64 =
        cells.iter().filter(ours).filter_map(|cell| cell["acked_bytes"].as_u64()).sum();
    assert!(acked >= 5_000_000, "{told}");
    let files: Vec<String> = fs::read_dir(folder.path().join("live"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.iter().all(|file| file.ends_with(".parquet")), "{files:?}");
    its_report(folder.path());
    // A second observation adds files and prints a table.
    let said = expect(folder.path(), "observe --duration 1s --out live", 0);
    assert!(said.contains("lost     0 reports"), "{said}");
    // The fifth is the page.
    assert_eq!(fs::read_dir(folder.path().join("live")).unwrap().count(), 5);
    Ok(())
}

/// Requests the page at an address, with a host name.
#[cfg(feature = "live")]
fn asked(address: &str, place: &str, host: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {place} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Begins `knee observe` with a page; returns the process, the address of the page, and what was said
/// before it and is said after it.
#[cfg(feature = "live")]
fn begin_page(
    folder: &Path,
    further: &str,
    said_before: &str,
) -> (Child, String, String, Lines<BufReader<ChildStderr>>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.args(["observe", "--page=127.0.0.1:0", "--group", "here=127.0.0.0/8"]);
    command.args(["--out", "live", "--format", "json"]).args(further.split_whitespace());
    let command = command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut observer = command.spawn().unwrap();
    let mut words = BufReader::new(observer.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let address = words.find_map(|line| {
        let line = line.unwrap();
        said += &line;
        Some(line.strip_prefix(said_before)?.to_string())
    });
    (observer, address.unwrap(), said, words)
}

#[cfg(feature = "live")]
fn ended(mut observer: Child) {
    kill(Pid::from_raw(observer.id() as i32), Signal::SIGTERM).unwrap();
    assert!(observer.wait().unwrap().success());
}

/// The page of open connections shows each that is active, with its group, and the host's counters;
/// sums since the start add up to what the connection sent; the page's own connections are on none.
#[cfg(feature = "live")]
#[expect(clippy::disallowed_methods, reason = "the host is observed as time passes")]
fn live_page_shows_open_connections() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let open = "--open --interval 100ms --addresses";
    let (mut observer, address, ..) = begin_page(folder.path(), open, "Open connections: http://");
    // Nobody waits for lines that nobody reads.
    let lines = observer.stdout.take().unwrap();
    thread::spawn(move || BufReader::new(lines).lines().for_each(drop));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut looking = TcpStream::connect(&address).unwrap();
    looking.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    looking.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut news = BufReader::new(looking).lines().map(Result::unwrap);
    let mut bytes = vec![7; 10_000];
    let mut send = || {
        client.write_all(&bytes).unwrap();
        server.read_exact(&mut bytes).unwrap();
    };
    (0..20).for_each(|_| send());
    let sent = || {
        let text = asked(&address, "/metrics", "localhost");
        let own = text.lines().filter(|line| line.starts_with("knee_open_sent_bytes_total{"));
        own.filter(|line| line.contains("group=\"here\""))
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap() as u64)
            .sum::<u64>()
    };
    let mut rounds = 0;
    while sent() < 200_000 {
        rounds += 1;
        assert!(rounds < 300, "{} of 200000", sent());
        thread::sleep(Duration::from_millis(100));
    }
    // The end that sends has the other as its client.
    let row = format!("<td>127.0.0.1</td><td>{port}</td>");
    let mut shown = false;
    for _ in 0..300 {
        send();
        let page = asked(&address, "/", "127.0.0.1");
        shown |= page.contains(&row) && page.contains("By group") && page.contains(" lost ");
        let own = address.rsplit_once(':').unwrap().1;
        assert!(!page.contains(&format!("<td>{own}</td>")), "{page}");
        if shown {
            break;
        }
    }
    assert!(shown, "{}", asked(&address, "/", "127.0.0.1"));
    assert!(news.any(|line| line.contains("Open connections of this host")));
    let report = asked(&address, "/report", "localhost");
    let report: Value = serde_json::from_str(report.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(report["schema"], "knee-open-interval/1");
    ended(observer);
    Ok(())
}

/// The page shows connections as they end, sends events to open pages, and after a restart
/// continues with the last hour.
#[cfg(feature = "live")]
#[expect(clippy::disallowed_methods, reason = "the host is observed as time passes")]
fn live_page_shows_the_last_hour() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let begin = || begin_page(folder.path(), "", "The last hour: http://");
    let (observer, address, _, _words) = begin();
    // A client listens from the start.
    let mut looking = TcpStream::connect(&address).unwrap();
    looking.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    looking.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut news = BufReader::new(looking).lines().map(Result::unwrap);
    connections();
    let counted = |text: &str| -> u64 {
        let own = text.lines().filter(|line| line.starts_with("knee_connections_total{"));
        own.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap() as u64).sum()
    };
    let all = || counted(&asked(&address, "/metrics", "localhost"));
    // Both ends of each connection are local. Requests add none.
    let mut rounds = 0;
    while all() < 2000 {
        rounds += 1;
        assert!(rounds < 300, "{} of 2000", all());
        thread::sleep(Duration::from_millis(100));
    }
    let is_told = |line: String| {
        let digits = line.split(" connections ended").next().unwrap().rsplit('>').next().unwrap();
        let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
        line.contains(" connections ended") && digits.parse::<u64>().is_ok_and(|all| all >= 2000)
    };
    assert!(news.any(is_told));
    has_given_up_capabilities(observer.id());
    let page = asked(&address, "/", "127.0.0.1");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("page.js"), "{page}");
    assert!(asked(&address, "/", "evil.example").starts_with("HTTP/1.1 403"));
    assert!(asked(&address, "/page.css", "[::1]").contains(".observed"));
    let report = |address: &str| -> Value {
        let answer = asked(address, "/report", "localhost");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let first = report(&address);
    let schema = serde_json::from_str(&expect(folder.path(), "schema observed", 0)).unwrap();
    jsonschema::validate(&schema, &first).unwrap_or_else(|error| panic!("{error}"));
    let number = |report: &Value| report["connections"].as_u64().unwrap();
    assert!(number(&first) >= 2000, "{first}");
    ended(observer);
    let (observer, address, said, _words) = begin();
    let second = report(&address);
    assert!(number(&second) >= number(&first) && !said.contains("Not shown on the page"), "{said}");
    assert!(second["rows"].as_u64() >= Some(2000), "{second}");
    ended(observer);
    // A damaged file does not prevent observing.
    let files = fs::read_dir(folder.path().join("live")).unwrap().map(|file| file.unwrap().path());
    let minutes = files.filter(|file| file.to_string_lossy().contains("minutes-")).max().unwrap();
    fs::write(&minutes, "PAR1").unwrap();
    let (observer, address, said, _words) = begin();
    assert!(said.contains("Not shown on the page: ") && said.contains("is damaged"), "{said}");
    assert!(number(&report(&address)) >= number(&first), "the newest was of the second run");
    ended(observer);
    Ok(())
}

/// The report of that folder in each format.
fn its_report(folder: &Path) {
    let report: Value =
        serde_json::from_str(&expect(folder, "report live --format json", 0)).unwrap();
    let schema = serde_json::from_str(&expect(folder, "schema observed", 0)).unwrap();
    jsonschema::validate(&schema, &report).unwrap_or_else(|error| panic!("{error}"));
    assert!(report["large"]["acked_bytes"].as_u64() >= Some(5_000_000), "{report}");
    assert_eq!((&report["valid"], &report["lost_reports"]), (&true.into(), &0.into()));
    assert_eq!(report["connections"], report["rows"]);
    let said = expect(folder, "report live", 0);
    assert!(said.contains("Throughput of connections of 3 MB and more, by group"), "{said}");
    let page = fs::read_to_string(folder.join("live/report.html")).unwrap();
    assert!(page.contains("<td>here</td>") && page.contains("knee report live"), "{page}");
    let csv = expect(folder, "report live --format csv", 0);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert!(reader.headers().unwrap().iter().any(|head| head == "throughput_5_bps"), "{csv}");
    assert!(reader.records().all(|record| record.is_ok()), "{csv}");
    for (line, part) in [
        ("report live --period 2026-11-24", "it needs a begin and an end"),
        ("report live --controllers bbr", "cubic,bbr"),
        ("report live --period 1990-01-01/1990-01-02", "nothing in live was observed"),
        ("report live --providers nothing.csv", "cannot read nothing.csv"),
        ("report . --controllers cubic,bbr", "requires a folder of knee observe"),
    ] {
        let said = complaint(folder, line, 2);
        assert!(said.contains(part), "{line}: {said}");
    }
}

/// Opens and closes a thousand connections to many addresses, so that ports suffice.
fn connections() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for number in 0..1000 {
        let to = Ipv4Addr::new(127, 0, 1, 1 + number as u8 % 200);
        let client = TcpStream::connect((to, port)).unwrap();
        let server = listener.accept().unwrap();
        drop((client, server));
    }
}

/// Bytes of reports that wait for an observer, and number of reports dropped, as published by the
/// kernel.
fn waiting_and_lost(process: u32) -> [u64; 2] {
    let sockets = fs::read_to_string("/proc/net/netlink").unwrap();
    let mut found = sockets.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Protocol (4: sock_diag) and port (the process); bytes and drops.
        let is_its = fields[1] == "4" && fields[2] == process.to_string();
        is_its.then(|| [4, 8].map(|at| fields[at].parse().unwrap()))
    });
    found.next().unwrap()
}

/// While the observer is paused, more connections end than its buffer can hold: it counts the
/// kernel's drops and calls the figures invalid.
#[expect(clippy::disallowed_methods, reason = "the host is observed as time passes")]
fn lost_reports_are_counted() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("knee");
    fs::copy(env!("CARGO_BIN_EXE_knee"), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["observe", "--out", "live", "--format", "json"]).current_dir(folder.path());
    if geteuid().is_root() {
        // As `nobody`: without CAP_NET_ADMIN the buffer is limited by the host.
        command.uid(65_534).gid(65_534);
    }
    let mut observer = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its first message says that it listens.
    let mut words = BufReader::new(observer.stderr.take().unwrap());
    words.read_line(&mut String::new()).unwrap();
    let process = observer.id();
    has_given_up_capabilities(process);
    has_not_read_itself(process, &program);
    let tell = |signal| kill(Pid::from_raw(process as i32), signal).unwrap();
    tell(Signal::SIGSTOP);
    // A thousand drops exceed the limit of one per cent. The kernel reports from a work queue,
    // which a busy host delays; a host may also permit too large a buffer.
    for round in 0..300 {
        match waiting_and_lost(process)[1] {
            lost if lost >= 1000 => break,
            _ if round < 20 => connections(),
            _ => thread::sleep(Duration::from_millis(200)),
        }
    }
    let is_lost = waiting_and_lost(process)[1] >= 1000;
    tell(Signal::SIGCONT);
    while is_lost && waiting_and_lost(process)[0] > 0 {
        thread::sleep(Duration::from_millis(50));
    }
    let [_, dropped] = waiting_and_lost(process);
    tell(Signal::SIGTERM);
    let output = observer.wait_with_output().unwrap();
    if !is_lost {
        return Err(Skipped("20,000 connections found room in the buffer".to_string()));
    }
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lost = told["lost_reports"].as_u64().unwrap();
    assert!(lost >= dropped && told["verdict"] == "invalid", "{dropped} {told}");
    let report = expect(folder.path(), "report live --format json", 0);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["valid"], &report["lost_reports"]), (&false.into(), &lost.into()));
    let said = expect(folder.path(), "report live", 0);
    assert!(said.starts_with("Invalid: "), "{said}");
    Ok(())
}

/// A disk that fills up while files are written ends the observation with the reason. What was
/// complete before stays, and nothing incomplete looks like a file.
#[expect(clippy::disallowed_methods, reason = "the host is observed as time passes")]
fn a_full_disk_is_said() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("live")).unwrap();
    // The disk is in a mount namespace, which ends with the command; its contents are listed there.
    let script = "mount -t tmpfs -o size=32k none live && echo before > live/report.html || exit 9
        \"$0\" observe --out live --duration 4s; code=$?; ls live; exit $code";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_knee")]);
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let observer = command.spawn().unwrap();
    thread::sleep(Duration::from_secs(2));
    // More than 32 kB of rows.
    (0..3).for_each(|_| connections());
    let output = observer.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(9) || said.contains("Operation not permitted") {
        return Err(Skipped::lack("this host permits no mounts"));
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    let left = String::from_utf8_lossy(&output.stdout);
    assert!(left.contains("report.html") && !left.contains(".parquet\n"), "{left}");
    Ok(())
}

/// A line of JSON for each interval, with the connections that are open, their totals and what they
/// did. The files appear when it ends, and a killed observer's do not stay in the way.
fn open_connections_are_told_at_intervals() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let port = u64::from(client.local_addr().unwrap().port());
    let mut command = Command::new(env!("CARGO_BIN_EXE_knee"));
    command.args(["observe", "--open", "--interval", "100ms", "--json", "--out", "live"]);
    command.args(["--group", "here=127.0.0.0/8"]).current_dir(folder.path());
    let mut observer = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(observer.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    next();
    let mut read = vec![0; 1000];
    let (mut sent, mut total) = (0, 0);
    for _ in 0..4 {
        client.write_all(&read).unwrap();
        server.read_exact(&mut read).unwrap();
        let told = next();
        assert_eq!(told["schema"], "knee-open-interval/1");
        assert!(told["lost"]["sentence"].as_str().unwrap().contains(" lost "), "{told}");
        let rows = told["rows"].as_array().unwrap();
        let own = rows.iter().find(|row| row["local_port"] == port);
        let Some(own) = own else { continue };
        assert_eq!((&own["state"], &own["group"]), (&"ESTAB".into(), &"here".into()), "{own}");
        assert_eq!(own["prefix"], "127.0.0.0/24");
        sent += own["interval"]["sent_bytes"].as_u64().unwrap();
        total = own["sent_bytes"].as_u64().unwrap();
    }
    // Whatever an interval has, the totals are the sums.
    assert!(sent == total && total >= 2000, "{sent} of {total}");
    let files = || {
        let names = fs::read_dir(folder.path().join("live")).unwrap();
        let mut names: Vec<String> =
            names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    kill(Pid::from_raw(observer.id() as i32), Signal::SIGKILL).unwrap();
    observer.wait().unwrap();
    assert!(files().len() == 2 && files().iter().all(|name| name.ends_with(".parquet.part")));
    expect(folder.path(), "observe --open --interval 100ms --duration 100ms --out live", 0);
    let files = files();
    assert!(files[0].starts_with("counters-") && files[1].starts_with("open-"), "{files:?}");
    assert!(files.len() == 2 && files.iter().all(|name| name.ends_with("Z.parquet")), "{files:?}");
    let said = complaint(folder.path(), "report live", 2);
    assert!(said.contains("has open connections only"), "{said}");
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    let all = trials![
        wrong_arguments,
        a_transfer_is_seen,
        open_connections_are_told_at_intervals,
        open_connections_fit_a_narrow_terminal,
        lost_reports_are_counted;
        nightly:
        a_full_disk_is_said
    ];
    #[cfg(feature = "live")]
    let all = all
        .into_iter()
        .chain(trials![live_page_shows_the_last_hour, live_page_shows_open_connections])
        .collect();
    all
}
