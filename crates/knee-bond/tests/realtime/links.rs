//! A client and a server over emulated links, between namespaces. These tests need root and
//! /dev/net/tun; on a host without them they count as ignored, or fail when
//! `KNEE_REQUIRE_ROOT_TESTS` is set, as in CI. `main` lists them.

#![allow(clippy::print_stdout, reason = "how long it took is worth a look")]

use crate::lab::{ALLOW, BOTH, ECHO, FILES, SERVER, TWO, on, take};
#[allow(dead_code, reason = "the bench uses the rest")]
use knee_bond::record::{DECISIONS, RecordSettings, record};
use knee_host::{Diversion, DiversionSettings};
use knee_trials::{Skipped, Trial, trials};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

fn one_connection_uses_both_links() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let took = lab.load(3_000_000);
        let shares =
            server.status().bundles[0].links.iter().map(|l| l.sent_bytes).collect::<Vec<_>>();
        println!("3 MB down in {took:?}, shares {shares:?}");
        assert!(shares.iter().all(|share| *share > 500_000), "{shares:?}");
        let took = lab.send(3_000_000);
        let shares =
            client.status().bundles[0].links.iter().map(|l| l.sent_bytes).collect::<Vec<_>>();
        println!("3 MB up in {took:?}, shares {shares:?}");
        assert!(shares.iter().all(|share| *share > 500_000), "{shares:?}");
    })
}

fn a_link_that_dies_and_returns_is_left_and_used_again() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        thread::scope(|scope| {
            let load = scope.spawn(|| lab.load(4_000_000));
            thread::sleep(Duration::from_millis(700));
            lab.ip(&["addr", "del", "10.64.0.1/24", "dev", "knee0"]);
            client.wait_for_links(1);
            let why = client.status().unused;
            assert!(why.iter().any(|link| link.why.contains("no address")), "{why:?}");
            thread::sleep(Duration::from_millis(500));
            lab.ip(&["addr", "add", "10.64.0.1/24", "dev", "knee0"]);
            lab.ip(&["route", "append", "10.99.0.1/32", "dev", "knee0"]);
            client.wait_for_links(2);
            println!("4 MB with a link away: {:?}", load.join().unwrap());
        });
    })
}

fn what_is_not_the_open_internet_is_denied() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair("", BOTH);
        client.wait_for_links(2);
        for (address, port) in [
            (SERVER, FILES),
            (Ipv4Addr::LOCALHOST, FILES),
            (Ipv4Addr::new(10, 64, 0, 1), FILES),
            (Ipv4Addr::new(169, 254, 169, 254), 80),
            (Ipv4Addr::new(192, 168, 0, 1), 80),
            (Ipv4Addr::new(8, 8, 8, 8), 25),
        ] {
            assert_eq!(lab.connect(address, port).unwrap_err(), 2, "{address}:{port}");
        }
        // The server has no route to this address.
        assert_eq!(lab.connect(Ipv4Addr::new(8, 8, 8, 8), 80).unwrap_err(), 3);
    })
}

fn who_has_another_key_is_refused_and_told_why() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (theirs, _ours) = (lab.key("server.key"), lab.key("client.key"));
        let stranger = lab.key("stranger.key");
        // The server knows a different client.
        let server = lab.server(&stranger, ALLOW);
        let client = lab.client(&theirs, BOTH);
        let told = |s: &knee_bond::status::Status| {
            s.unused.iter().any(|l| l.why.contains("keys do not match"))
        };
        client.wait("a reason", told);
        assert!(server.status().bundles.is_empty());
        drop(client);
        // The client expects a different server.
        let client = lab.client(&stranger, BOTH);
        client.wait("a reason", told);
        assert!(server.status().bundles.is_empty());
    })
}

fn datagrams_come_back() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let (_control, relay) = lab.associate();
        let socket = lab.datagrams();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let [a, b, c, d] = SERVER.octets();
        let head = [0, 0, 0, 1, a, b, c, d, 0, ECHO as u8];
        for number in 0..50_u8 {
            let datagram = [&head[..], &[number; 1000]].concat();
            socket.send_to(&datagram, relay).unwrap();
            let mut buffer = [0; 2048];
            let (count, _) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..count], datagram[..], "datagram {number}");
        }
    })
}

/// Each of two links loses every tenth packet: over one link a round trip fails one time in five,
/// over both one time in fifty.
fn a_call_over_both_links_bears_loss() -> Result<(), Skipped> {
    let lossy = TWO.replace("buffer =", "loss = \"10 %\"\nbuffer =");
    on(&lossy, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, &format!("duplicate_udp = true\n{BOTH}"));
        client.wait_for_links(2);
        let came = lab.call(150).len();
        println!("{came} of 150 datagrams came back");
        assert!(came >= 138, "{came} of 150");
    })
}

fn connect_of_http_wants_the_password() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let login = "login = { user = \"ann\", password = \"b:c\" }\n";
        let forward = "forward = [{ listen = \"127.0.0.1:8080\", to = \"10.99.0.1:80\" }]\n";
        let (_server, client) = lab.pair(ALLOW, &format!("{login}{forward}{BOTH}"));
        client.wait_for_links(2);
        let ask = |credentials: &str| {
            let mut connection = lab.local(1080);
            let request = format!("CONNECT 10.99.0.1:80 HTTP/1.1\r\nHost: x\r\n{credentials}\r\n");
            connection.write_all(request.as_bytes()).unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                connection.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            (String::from_utf8(head).unwrap(), connection)
        };
        assert!(ask("").0.starts_with("HTTP/1.1 407 "));
        assert!(ask("Proxy-Authorization: Basic YW5uOmI6ZA==\r\n").0.starts_with("HTTP/1.1 407 "));
        // ann:b:c
        let (head, connection) = ask("Proxy-Authorization: Basic YW5uOmI6Yw==\r\n");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        take(connection, 10_000);
        take(lab.local(8080), 10_000);
        // SOCKS5 without a password is refused.
        let mut connection = lab.local(1080);
        connection.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        connection.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [5, 0xff]);
    })
}

fn a_server_that_was_restarted_is_found_again() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (theirs, ours) = (lab.key("server.key"), lab.key("client.key"));
        let server = lab.server(&ours, ALLOW);
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        lab.load(100_000);
        drop(server);
        let server = lab.server(&ours, ALLOW);
        client.wait_for_links(2);
        lab.load(100_000);
        server.wait_for_links(2);
    })
}

/// The holder of the socket also holds the packets while no server runs.
fn a_socket_outlives_its_server() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (theirs, ours) = (lab.key("server.key"), lab.key("client.key"));
        let socket = lab.handed();
        let handed = || Some(socket.try_clone().unwrap());
        let server = lab.server_with(&ours, ALLOW, handed());
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        lab.load(100_000);
        drop(server);
        thread::sleep(Duration::from_millis(1500));
        let server = lab.server_with(&ours, ALLOW, handed());
        lab.load(100_000);
        client.wait_for_links(2);
        server.wait_for_links(2);
    })
}

/// What is open ends in peace, and the server then stops at once; new connections are told why they
/// are refused.
fn a_server_that_stops_waits_only_for_what_is_open() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        thread::scope(|scope| {
            let load = scope.spawn(|| lab.load(4_000_000));
            thread::sleep(Duration::from_millis(500));
            let began = Instant::now();
            let stop = scope.spawn(move || drop(server));
            let is_told = || client.said().iter().any(|line| line.contains("server is stopping"));
            while !is_told() {
                assert!(began.elapsed() < Duration::from_secs(2), "{:?}", client.said());
                thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(lab.connect(SERVER, FILES).unwrap_err(), 3);
            load.join().unwrap();
            let loaded = began.elapsed();
            stop.join().unwrap();
            println!("the load ended after {loaded:?}, the server after {:?}", began.elapsed());
            assert!(began.elapsed() < loaded + Duration::from_secs(1));
        });
    })
}

/// Returns what a link has carried, as the kernel counts it.
fn passed(lab: &crate::lab::Lab, device: &str) -> u64 {
    let shown = lab.run(&["ip", "-json", "-statistics", "link", "show", "dev", device]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let count = |way: &str| shown[0]["stats64"][way]["bytes"].as_u64().unwrap();
    count("rx") + count("tx")
}

/// Returns the most bytes that pass over an idle link since a time: the emulator's probes, some
/// 4,400 a second, and keep-alives.
fn idle_bytes(since: Instant) -> u64 {
    3_000 + (4_600.0 * since.elapsed().as_secs_f64()) as u64
}

fn at_its_cap_a_link_carries_nothing_more() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (theirs, ours) = (lab.key("server.key"), lab.key("client.key"));
        let _server = lab.server(&ours, ALLOW);
        let links = "caps = \"caps.json\"\nlink = [{ interface = \"knee0\", cap = \"3 MB\" }, \
                     { interface = \"knee1\" }]\n";
        let client = lab.client(&theirs, links);
        client.wait_for_links(2);
        let before = passed(lab, "knee0");
        // Both links carry the load until the first one reaches its cap.
        lab.load(4_000_000);
        client.wait_for_links(1);
        let status = client.status();
        let why = &status.unused[0];
        assert!(why.name == "knee0" && why.why.contains("of its cap of 3 MB"), "{why:?}");
        thread::sleep(Duration::from_secs(1));
        let used = passed(lab, "knee0") - before;
        let counted = client.status().caps[0].used_bytes;
        let since = Instant::now();
        println!("cap 3 MB, the kernel counts {used} bytes, Knee {counted}");
        assert!((1_500_000..=3_000_000).contains(&used), "{used}");
        assert!(counted.abs_diff(used) < used / 100 + 20_000, "{counted} {used}");
        lab.load(1_000_000);
        let more = passed(lab, "knee0") - before - used;
        assert!(more < idle_bytes(since), "{more} in {:?}", since.elapsed());
        // A restarted client remembers the count; one whose file is gone does not.
        drop(client);
        let client = lab.client(&theirs, links);
        client.wait("a cap", |status| status.caps[0].used_bytes >= counted);
        lab.load(1_000_000);
        assert!(passed(lab, "knee0") - before <= 3_000_000);
    })
}

fn dearer_links_wait_until_no_cheaper_one_works() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let links = "link = [{ interface = \"knee0\", cost = 1 }, { interface = \"knee1\" }]\n";
        let (_server, client) = lab.pair(ALLOW, links);
        client.wait_for_links(2);
        // Path MTU discovery runs at the start.
        thread::sleep(Duration::from_secs(1));
        let (before, since) = (passed(lab, "knee0"), Instant::now());
        lab.load(500_000);
        lab.send(500_000);
        let idle = passed(lab, "knee0") - before;
        println!("the dearer link carried {idle} bytes in {:?}", since.elapsed());
        assert!(idle < idle_bytes(since), "the dearer link carried {idle} bytes");
        lab.cut(1);
        lab.load(500_000);
        let used = passed(lab, "knee0") - before;
        assert!(used > 500_000, "the dearer link carried {used} bytes alone");
        lab.mend(1);
    })
}

/// Of a download the server must know as well.
fn a_dearer_link_helps_when_the_cheaper_one_is_full() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let links = "link = [{ interface = \"knee0\", cost = 1, overflow = true }, \
                     { interface = \"knee1\" }]\n";
        let (_server, client) = lab.pair(ALLOW, links);
        client.wait_for_links(2);
        // Path MTU discovery runs at the start.
        thread::sleep(Duration::from_secs(1));
        let (before, since) = (passed(lab, "knee0"), Instant::now());
        lab.load(300_000);
        let idle = passed(lab, "knee0") - before;
        assert!(idle < idle_bytes(since), "the dearer link carried {idle} bytes of a short load");
        lab.load(5_000_000);
        let used = passed(lab, "knee0") - before;
        println!("the dearer link carried {used} bytes");
        assert!(used > 1_000_000, "the dearer link carried {used} bytes of a long load");
    })
}

/// Makes a question for the address of `name`.
fn question(number: u16, name: &str) -> Vec<u8> {
    let mut question = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.len() as u8];
    question[..2].copy_from_slice(&number.to_be_bytes());
    question.extend(name.bytes());
    question.extend([0, 0, 1, 0, 1]);
    question
}

/// Sends a datagram, and returns the answer that comes within two seconds.
fn exchange(to: SocketAddr, datagram: &[u8]) -> std::io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    socket.connect(to)?;
    socket.send(datagram)?;
    let mut buffer = [0; 2048];
    let count = socket.recv(&mut buffer)?;
    Ok(buffer[..count].to_vec())
}

fn all_that_programs_send_goes_over_the_links_or_nowhere() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        lab.ip(&["route", "add", "default", "dev", "knee0"]);
        lab.name();
        let echo = SocketAddr::from((SERVER, ECHO));
        // The programs' nameserver does not exist; the server's answers instead.
        let nameserver = SocketAddr::from(([192, 0, 2, 53], 53));
        let direct = || lab.here(|| exchange(echo, b"direct"));
        assert_eq!(direct().unwrap(), b"direct");
        let (theirs, ours) = (lab.key("server.key"), lab.key("client.key"));
        let server = lab.server(&ours, &format!("nameserver = \"{SERVER}\"\n{ALLOW}"));
        let client = lab.client(&theirs, &format!("transparent = {{}}\n{BOTH}"));
        client.wait_for_links(2);
        assert!(client.status().transparent);
        // A program that knows of no proxy.
        let bytes = |end: &crate::lab::End| -> Vec<u64> {
            end.status().bundles[0].links.iter().map(|link| link.sent_bytes).collect()
        };
        let before = bytes(&server);
        take(lab.here(|| TcpStream::connect((SERVER, FILES))).unwrap(), 3_000_000);
        let shares = bytes(&server);
        assert!(shares.iter().zip(&before).all(|(now, old)| now - old > 500_000), "{shares:?}");
        // A destination that the server denies is reset.
        let mut denied = lab.here(|| TcpStream::connect("169.254.169.254:80")).unwrap();
        let error = denied.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        // Names: one with a short answer, one with an answer too long for UDP.
        let asked = question(7, "short");
        let answer = lab.here(|| exchange(nameserver, &asked)).unwrap();
        assert_eq!((&answer[..2], answer[7]), (&asked[..2], 1));
        assert!(answer.ends_with(&SERVER.octets()));
        let asked = question(8, "long");
        let cut = lab.here(|| exchange(nameserver, &asked)).unwrap();
        assert!(cut.len() <= 512 && cut[2] & 2 == 2 && cut[7] == 0, "{cut:?}");
        let mut connection = lab.here(|| TcpStream::connect(nameserver)).unwrap();
        connection.write_all(&[&(asked.len() as u16).to_be_bytes()[..], &asked].concat()).unwrap();
        let mut length = [0; 2];
        connection.read_exact(&mut length).unwrap();
        let mut answer = vec![0; u16::from_be_bytes(length).into()];
        connection.read_exact(&mut answer).unwrap();
        assert_eq!((answer.len(), answer[7]), (asked.len() + 60 * 16, 60));
        // A second client is refused.
        let settings = DiversionSettings {
            server: Some(echo),
            tcp: [Some(1), None],
            ..DiversionSettings::default()
        };
        let second = lab.here(|| Diversion::begin(&settings)).unwrap_err().to_string();
        assert!(second.contains("another process"), "{second}");
        // Without links programs wait, and nothing bypasses them.
        (0..2).for_each(|link| lab.cut(link));
        let waits = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(direct().is_err_and(waits));
        (0..2).for_each(|link| lab.mend(link));
        drop(client);
        assert_eq!(direct().unwrap(), b"direct");
        // Excepted destinations pass, but not DNS.
        let except = format!("transparent = {{ except = [\"{SERVER}\"] }}\n{BOTH}");
        let client = lab.client(&theirs, &except);
        client.wait_for_links(2);
        assert_eq!(direct().unwrap(), b"direct");
        let before: u64 = bytes(&server).iter().sum();
        take(lab.here(|| TcpStream::connect((SERVER, FILES))).unwrap(), 1_000_000);
        assert!(bytes(&server).iter().sum::<u64>() - before < 100_000);
        let asked = question(9, "short");
        let answer = lab.here(|| exchange(SocketAddr::from((SERVER, 53)), &asked)).unwrap();
        assert_eq!(answer[7], 1);
    })
}

/// The first link carries the load; the second, once it is up, loses half of what it is given, and
/// is left out. From the start, a handshake in eight would take longer than `wait` does.
fn a_link_that_harms_is_left_out() -> Result<(), Skipped> {
    let loss = "loss = [{ at = \"0 s\", loss = \"0 %\" }, { at = \"5 s\", loss = \"45 %\" }]\n";
    let lossy = TWO.replace("rate = \"5", &format!("{loss}rate = \"5"));
    on(&lossy, 2, |lab| {
        let (server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let began = Instant::now();
        let left_out = |status: &knee_bond::status::Status| {
            let mut links = status.bundles.iter().flat_map(|bundle| &bundle.links);
            links.any(|link| link.name == "knee1" && link.left_out.is_some())
        };
        while !left_out(&server.status()) {
            assert!(began.elapsed() < Duration::from_secs(40), "{:?}", server.status());
            lab.load(1_000_000);
        }
        println!("left out after {:?}: {:?}", began.elapsed(), server.status().bundles[0].links[1]);
        // Both ends report it, and the link carries only keep-alives.
        client.wait("the other end to hear of it", left_out);
        let before = passed(lab, "knee1");
        lab.load(2_000_000);
        let after = passed(lab, "knee1") - before;
        println!("the link carried {after} bytes since");
        assert!(after < 100_000, "{after}");
    })
}

/// The recording matches what was carried, its decisions are the scheduler's, and the laboratory
/// has the same links.
fn a_recorded_evening_is_replayed_in_the_laboratory() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let settings = RecordSettings {
            socket: Some(lab.path("server.sock")),
            peer: "laptop".to_owned(),
            out: lab.path("evening"),
            ..RecordSettings::default()
        };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let out = settings.out.clone();
        let recorder = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stop = async {
                let _ = stopped.await;
            };
            runtime.unwrap().block_on(record(&settings, stop)).unwrap()
        });
        thread::sleep(Duration::from_millis(300));
        lab.load(10_000_000);
        thread::sleep(Duration::from_millis(300));
        stop.send(()).unwrap();
        let recorded = recorder.join().unwrap();
        println!("{recorded:?}");
        assert_eq!((recorded.links, recorded.decisions_lost), (2, 0));
        let run = knee_record::read_run(&out).unwrap();
        let carried = run.records.flows[0].delivered_bytes;
        assert!((10_000_000..11_000_000).contains(&carried), "{carried}");
        let last = |path| {
            let rows = run.records.path_samples.iter().filter(|row| row.path == path);
            rows.map(|row| row.delivered_bytes).max().unwrap()
        };
        assert_eq!(last(0) + last(1), carried);
        let decisions = std::fs::read_to_string(out.join(DECISIONS)).unwrap();
        let trace: knee_multipath::sched::record::Trace = decisions.parse().unwrap();
        assert!(trace.decisions().count() > 1000);
        let mut scheduler =
            knee_multipath::sched::build(&knee_cc::Selection::named("just-in-time")).unwrap();
        assert_eq!(knee_multipath::sched::record::replay(&trace, &mut *scheduler), None);
        // The files contain no names and no addresses.
        for file in ["scenario.toml", "manifest.json", "summary.json", "decisions.txt"] {
            let text = std::fs::read_to_string(out.join(file)).unwrap();
            for told in ["knee0", "knee1", "laptop", "10.99.", "10.64."] {
                assert!(!text.contains(told), "{told} in {file}");
            }
        }
        let scenario = knee_scenario::read(&out.join("scenario.toml"), &[]).unwrap();
        let text = std::fs::read_to_string(out.join("scenario.toml")).unwrap();
        println!("{text}");
        for transport in ["\nacks = \"quic\"\n", "\nreceive_window = \"16 MiB\"\n"] {
            assert!(text.contains(transport), "{transport}");
        }
        // With the parameters that the links have, and not with those of their names.
        let tuning = knee_bond::config::Tuning::default();
        assert_eq!(scenario.flows[0].controller, tuning.controller);
        assert!(!tuning.controller.parameters.is_empty());
        assert_eq!(run.records.flows[0].scheduler, "just-in-time");
        let replayed = knee_sim::run(&scenario, &knee_record::Control::default()).unwrap();
        let rate = |bytes: u64, ns: u64| bytes as f64 * 8e3 / ns as f64;
        let there = rate(carried, run.records.end_ns);
        let here = rate(replayed.flows[0].delivered_bytes, replayed.end_ns);
        println!("{there:.2} Mbit/s recorded, {here:.2} in the simulator");
        assert!(here > 0.75 * there && here < 1.4 * there);
    })
}

/// A recording that fails says why and leaves no folder. One that is under way keeps its decisions.
fn a_recording_that_cannot_be_made_is_refused() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let recorded = |peer: &str, out: &str, time: u64| {
            let settings = RecordSettings {
                socket: Some(lab.path("server.sock")),
                peer: peer.to_owned(),
                out: lab.path(out),
                ..RecordSettings::default()
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let recorded = runtime.unwrap().block_on(async {
                record(&settings, tokio::time::sleep(Duration::from_millis(time))).await
            });
            recorded.map_err(|error| (error.to_string(), settings.out.exists()))
        };
        let (said, stays) = recorded("laptpo", "none", 60_000).unwrap_err();
        assert!(said.contains("\"laptpo\"") && said.contains("names are laptop"), "{said}");
        assert!(!stays);
        let (said, stays) = recorded("laptop", "short", 300).unwrap_err();
        assert!(said.contains("nothing was recorded") && !stays, "{said}");
        thread::scope(|scope| {
            let first = scope.spawn(|| recorded("laptop", "first", 4000));
            thread::sleep(Duration::from_millis(700));
            let (said, stays) = recorded("", "second", 60_000).unwrap_err();
            assert!(said.contains("another recording is under way") && !stays, "{said}");
            lab.load(1_000_000);
            assert!(first.join().unwrap().unwrap().decisions > 100);
        });
        // The first one is over.
        recorded("", "third", 1500).unwrap();
    })
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        one_connection_uses_both_links,
        a_link_that_dies_and_returns_is_left_and_used_again,
        what_is_not_the_open_internet_is_denied,
        who_has_another_key_is_refused_and_told_why,
        datagrams_come_back,
        connect_of_http_wants_the_password,
        a_server_that_was_restarted_is_found_again,
        a_server_that_stops_waits_only_for_what_is_open,
        at_its_cap_a_link_carries_nothing_more,
        dearer_links_wait_until_no_cheaper_one_works,
        all_that_programs_send_goes_over_the_links_or_nowhere,
        a_recording_that_cannot_be_made_is_refused;
        nightly:
        a_link_that_harms_is_left_out,
        a_recorded_evening_is_replayed_in_the_laboratory,
        a_dearer_link_helps_when_the_cheaper_one_is_full,
        a_call_over_both_links_bears_loss,
        a_socket_outlives_its_server
    ]
}
