//! A client and a server over emulated links, between namespaces. These tests need root and
//! /dev/net/tun; where the host lacks one, they say so and count as ignored, or fail when
//! `KNEE_REQUIRE_ROOT_TESTS` is set, as in CI. `main` lists them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "real time passes here")]
#![allow(clippy::print_stdout, reason = "how long it took is worth a look")]

#[allow(dead_code, reason = "the bench uses the rest")]
mod lab;

use knee_trials::{Skipped, trials};
use lab::{ECHO, FILES, SERVER, on, take};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// 10 and 5 Mbit/s, 10 ms each way.
const TWO: &str = r#"
[link.a0]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
[link.b0]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
[link.a1]
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
[link.b1]
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
"#;
/// Both links by name.
const BOTH: &str = "link = [{ interface = \"knee0\" }, { interface = \"knee1\" }]\n";
/// The lab's addresses are private ones.
const ALLOW: &str = "[egress]\nallow = [\"10.99.0.0/16\"]\n";

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
        // Nobody answers there: the server has no way to it.
        assert_eq!(lab.connect(Ipv4Addr::new(8, 8, 8, 8), 80).unwrap_err(), 3);
    })
}

fn who_has_another_key_is_refused_and_told_why() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (theirs, _ours) = (lab.key("server.key"), lab.key("client.key"));
        let stranger = lab.key("stranger.key");
        // The server knows another client.
        let server = lab.server(&stranger, ALLOW);
        let client = lab.client(&theirs, BOTH);
        let told = |s: &knee_bond::status::Status| {
            s.unused.iter().any(|l| l.why.contains("keys do not match"))
        };
        client.wait("a reason", told);
        assert!(server.status().bundles.is_empty());
        drop(client);
        // The client expects another server.
        let client = lab.client(&stranger, BOTH);
        client.wait("a reason", told);
        assert!(server.status().bundles.is_empty());
    })
}

fn datagrams_come_back() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let mut control = lab.local(1080);
        control.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        control.read_exact(&mut answer).unwrap();
        control.write_all(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        let mut reply = [0; 10];
        control.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..2], [5, 0]);
        let relay = SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes([reply[8], reply[9]])));
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

/// Each of two links loses every tenth packet: with one link at a time a round trip fails one
/// time in five, with both one time in fifty.
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
        // SOCKS5 without a password is not offered.
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

/// Who holds the socket holds the packets too while no server is there.
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

/// What a link has carried, as the kernel counts it.
fn passed(lab: &lab::Lab, device: &str) -> u64 {
    let shown = lab.run(&["ip", "-json", "-statistics", "link", "show", "dev", device]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let count = |way: &str| shown[0]["stats64"][way]["bytes"].as_u64().unwrap();
    count("rx") + count("tx")
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
        // Both links carry it until the first one may not.
        lab.load(4_000_000);
        client.wait_for_links(1);
        let status = client.status();
        let why = &status.unused[0];
        assert!(why.name == "knee0" && why.why.contains("of its cap of 3 MB"), "{why:?}");
        thread::sleep(Duration::from_secs(1));
        let used = passed(lab, "knee0") - before;
        let counted = client.status().caps[0].used_bytes;
        println!("cap 3 MB, the kernel counts {used} bytes, Knee {counted}");
        assert!((1_500_000..=3_000_000).contains(&used), "{used}");
        assert!(counted.abs_diff(used) < used / 100 + 20_000, "{counted} {used}");
        lab.load(1_000_000);
        // The emulator's own probes pass, some 4 kB a second.
        let more = passed(lab, "knee0") - before - used;
        assert!(more < 12_000, "{more}");
        // A client that is started anew knows of it; one whose count is gone does not.
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
        // How large packets may be is tried at the start.
        thread::sleep(Duration::from_secs(1));
        let before = passed(lab, "knee0");
        lab.load(500_000);
        lab.send(500_000);
        let idle = passed(lab, "knee0") - before;
        println!("the dearer link carried {idle} bytes");
        // The emulator's own probes pass, some 4 kB a second.
        assert!(idle < 12_000, "the dearer link carried {idle} bytes");
        lab.cut(1);
        lab.load(500_000);
        let used = passed(lab, "knee0") - before;
        assert!(used > 500_000, "the dearer link carried {used} bytes alone");
        lab.mend(1);
    })
}

fn main() -> ExitCode {
    knee_trials::run(trials![
        one_connection_uses_both_links,
        a_link_that_dies_and_returns_is_left_and_used_again,
        what_is_not_the_open_internet_is_denied,
        who_has_another_key_is_refused_and_told_why,
        datagrams_come_back,
        a_call_over_both_links_bears_loss,
        connect_of_http_wants_the_password,
        a_server_that_was_restarted_is_found_again,
        a_socket_outlives_its_server,
        at_its_cap_a_link_carries_nothing_more,
        dearer_links_wait_until_no_cheaper_one_works,
    ])
}
