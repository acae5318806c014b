//! Names, targets and addresses of a client and a server over emulated links, between namespaces.
//! These tests need root and /dev/net/tun, as those of `links.rs` do. `main` lists them.

#![allow(clippy::print_stdout, reason = "how long it took is worth a look")]

use crate::lab::{ALLOW, BOTH, ECHO, FILES, SERVER, TWO, on};
#[allow(dead_code, reason = "the bench uses the rest")]
use knee_bond::key;
use knee_bond::status::Status;
use knee_host::{HostError, Namespace};
use knee_trials::{Skipped, Trial, trials};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// No host has this address; SYNs to it are lost.
const SILENT: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
/// An address of the client's host that the server reaches.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 3);
/// A port of the tests' own services.
const PORT: u16 = 8000;

/// Opens the network namespace of the server's host.
pub fn there(lab: &crate::lab::Lab) -> Namespace {
    let mut child = lab.start_there(&["sleep".to_owned(), "60".to_owned()]);
    let file = format!("/proc/{}/ns/net", child.id());
    let opened = Namespace::open(Path::new(&file)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    opened
}

/// Returns the address of the nameserver that programs of this host ask (resolv.conf(5)).
fn nameserver() -> IpAddr {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("nameserver")?.trim().parse().ok());
    named.unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// Starts the nameserver that the programs of the server's host ask. It does not answer for `slow.`
/// names, and for `late.` names only after a second. Returns the ports that asked for `slow.` names.
fn serve_names(lab: &crate::lab::Lab) -> Arc<Mutex<BTreeSet<u16>>> {
    let at = nameserver();
    let bind = || {
        if !at.is_loopback() {
            let add = ["addr", "add", &at.to_string(), "dev", "lo"];
            assert!(Command::new("ip").args(add).status().unwrap().success());
        }
        Ok::<_, HostError>(UdpSocket::bind((at, 53)).unwrap())
    };
    let socket = there(lab).within(bind).unwrap();
    let unanswered = Arc::<Mutex<BTreeSet<u16>>>::default();
    let asked = unanswered.clone();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let question = buffer[..count].to_vec();
            let socket = socket.try_clone().unwrap();
            let name = &question[13..];
            if name.starts_with(b"slow") {
                asked.lock().unwrap().insert(from.port());
                continue;
            }
            let delay = Duration::from_secs(name.starts_with(b"late").into());
            thread::spawn(move || {
                thread::sleep(delay);
                let _ = socket.send_to(&resolved(&question), from);
            });
        }
    });
    unanswered
}

/// Asks the proxy for a connection to a port of a name.
fn ask_for(lab: &crate::lab::Lab, name: &str) -> TcpStream {
    let mut connection = lab.local(1080);
    connection.write_all(&[5, 1, 0]).unwrap();
    connection.read_exact(&mut [0; 2]).unwrap();
    connection.write_all(&[&[5, 1], &to_name(name, PORT)[2..]].concat()).unwrap();
    connection
}

/// Makes an answer with the server's address, or for `two.` with one that does not answer and one
/// on the client's host (RFC 1035, section 4.1).
fn resolved(question: &[u8]) -> Vec<u8> {
    let name = question[12..].iter().position(|byte| *byte == 0).unwrap();
    let end = 12 + name + 5;
    let mut answer = question[..end].to_vec();
    let addresses = match (question[end - 3], &question[13..16]) {
        (1, b"two") => vec![SILENT, HERE],
        (1, _) => vec![SERVER],
        // There is no IPv6.
        _ => Vec::new(),
    };
    answer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
    for address in addresses {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address.octets());
    }
    answer
}

/// The header of a SOCKS5 datagram to a name.
fn to_name(name: &str, port: u16) -> Vec<u8> {
    let length = [0, 0, 0, 3, name.len() as u8];
    [&length[..], name.as_bytes(), &port.to_be_bytes()].concat()
}

/// The limit is that of the configuration, higher or lower than the usual one; what ended makes room
/// at once.
fn as_many_connections_are_open_as_the_server_allows() -> Result<(), Skipped> {
    const MANY: usize = 300;
    on(TWO, 2, |lab| {
        let limits = format!("limits = {{ streams = {MANY}, new_streams_per_second = 1000 }}\n");
        let (_server, client) = lab.pair(&format!("{limits}{ALLOW}"), BOTH);
        client.wait_for_links(2);
        for _ in 0..2 {
            let open = || lab.connect(SERVER, FILES);
            let all: Vec<TcpStream> = (0..MANY)
                .map(|number| open().unwrap_or_else(|code| panic!("{number}: {code}")))
                .collect();
            assert_eq!(open().unwrap_err(), 1);
            drop(all);
            thread::sleep(Duration::from_millis(500));
        }
    })
}

/// Beyond the limit of bytes open connections and UDP flows end, and new ones are refused. What is
/// below it arrives whole.
fn a_client_carries_no_more_bytes_than_it_may() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let limits = "limits = { bytes_per_day = \"1 MB\" }\n";
        let (server, client) = lab.pair(&format!("{limits}{ALLOW}"), BOTH);
        client.wait_for_links(2);
        lab.load(600_000);
        let (mut control, relay) = lab.associate();
        let mut connection = lab.connect(SERVER, FILES).unwrap();
        connection.write_all(&600_000_u64.to_be_bytes()).unwrap();
        let mut came = 0;
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count) = connection.read(&mut buffer)
            && count > 0
        {
            came += count;
        }
        // What was on its way is lost with the connection.
        println!("{came} bytes of the second load");
        assert!(came < 400_000);
        let mut refused = lab.local(1080);
        write!(refused, "CONNECT {SERVER}:{FILES} HTTP/1.1\r\n\r\n").unwrap();
        let mut reason = String::new();
        refused.read_to_string(&mut reason).unwrap();
        assert!(reason.contains("carried all that it may in a day: wait 24 h"), "{reason}");
        let carried = &server.status().carried[0];
        assert_eq!((carried.used_bytes, carried.limit_bytes), (1_000_000, 1_000_000));
        let [a, b, c, d] = SERVER.octets();
        let datagram = [0, 0, 0, 1, a, b, c, d, 0, ECHO as u8, 1];
        lab.datagrams().send_to(&datagram, relay).unwrap();
        control.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(control.read(&mut buffer).unwrap(), 0, "the flow ended");
    })
}

/// What a client sends counts as what it loads, and so does each answer by UDP.
fn uploads_and_answers_count() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let limits = "limits = { bytes_per_day = \"10 kB\" }\n";
        let (server, client) = lab.pair(&format!("{limits}{ALLOW}"), BOTH);
        client.wait_for_links(2);
        // Eight bytes before them, and eight in return.
        lab.send(9_000);
        assert_eq!(server.status().carried[0].used_bytes, 9_016);
        let (mut control, relay) = lab.associate();
        let [a, b, c, d] = SERVER.octets();
        let datagram = [&[0, 0, 0, 1, a, b, c, d, 0, ECHO as u8][..], &[7; 600]].concat();
        let socket = lab.datagrams();
        socket.send_to(&datagram, relay).unwrap();
        // The datagram is below the limit, its echo beyond it.
        control.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(control.read(&mut [0; 1]).unwrap(), 0, "the flow ended");
        socket.set_nonblocking(true).unwrap();
        let came = socket.recv(&mut [0; 2048]).map_err(|error| error.kind());
        assert_eq!(came, Err(ErrorKind::WouldBlock));
        let line = "has carried all that it may in a day, and waits 24 h.";
        server.wait("the limit is logged", |_| server.said().iter().any(|it| it.ends_with(line)));
    })
}

/// A client that was killed and started again has its limits back once its old bundle does not
/// answer. A bundle that answers stays, whoever uses its key.
fn a_client_that_was_killed_does_not_keep_its_limits() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let limits = "limits = { streams = 4 }\n";
        let (server, client) = lab.pair(&format!("{limits}{ALLOW}"), BOTH);
        client.wait_for_links(2);
        let key = key::to_text(&key::read(&lab.path("server.key")).unwrap().public());
        let _open: Vec<TcpStream> = (0..4).map(|_| lab.connect(SERVER, FILES).unwrap()).collect();
        // Its end does not reach the server, whose address is gone meanwhile.
        let namespace = there(lab);
        let address = |what: &str| {
            let change = || {
                let at = format!("{SERVER}/32");
                let changed = Command::new("ip").args(["addr", what, &at, "dev", "lo"]).status();
                assert!(changed.unwrap().success());
                Ok::<_, HostError>(())
            };
            namespace.within(change).unwrap();
        };
        address("del");
        drop(client);
        address("add");
        let began = Instant::now();
        let client = lab.client(&key, BOTH);
        client.wait_for_links(2);
        assert_eq!(lab.connect(SERVER, FILES).unwrap_err(), 1);
        let numbers = |status: &Status| -> BTreeSet<u32> {
            status.bundles.iter().map(|bundle| bundle.number).collect()
        };
        assert_eq!(numbers(&server.status()), BTreeSet::from([0, 1]));
        while server.status().bundles.len() > 1 {
            assert!(began.elapsed() < Duration::from_secs(25), "{:?}", server.status());
            thread::sleep(Duration::from_millis(100));
        }
        println!("its old bundle ended after {:?}", began.elapsed());
        assert_eq!(numbers(&server.status()), BTreeSet::from([1]));
        let mut open = lab.connect(SERVER, FILES).unwrap();
        let more = format!("listen = \"127.0.0.1:1081\"\n{BOTH}");
        let other = lab.client_with("other.sock", &format!("{SERVER}:4433"), &key, &more);
        other.wait_for_links(2);
        thread::sleep(Duration::from_secs(17));
        assert_eq!(numbers(&server.status()), BTreeSet::from([0, 1]));
        open.write_all(&10_u64.to_be_bytes()).unwrap();
        open.read_exact(&mut [0; 10]).unwrap();
    })
}

/// An address of the server is denied although it did not have it when it started.
fn an_address_that_the_server_gets_later_is_denied() -> Result<(), Skipped> {
    const LATER: Ipv4Addr = Ipv4Addr::new(198, 41, 0, 4);
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair("", BOTH);
        client.wait_for_links(2);
        assert_eq!(lab.connect(LATER, FILES).unwrap_err(), 3, "there is no route to it");
        lab.add_there(LATER);
        let denied = || {
            thread::sleep(Duration::from_millis(20));
            lab.connect(LATER, FILES).unwrap_err() == 2
        };
        assert!((0..100).any(|_| denied()));
    })
}

/// A nameserver that does not answer takes half a minute. The client is not kept waiting: it ends
/// before the question is repeated.
fn a_silent_nameserver_keeps_nothing_waiting() -> Result<(), Skipped> {
    let nameserver = nameserver();
    on(TWO, 2, |lab| {
        if !nameserver.is_loopback() {
            lab.ip(&["addr", "add", &nameserver.to_string(), "dev", "lo"]);
        }
        let silent = lab.here(|| UdpSocket::bind((nameserver, 53)).unwrap());
        let (theirs, _) = (lab.key("server.key"), lab.key("client.key"));
        let client = lab.client_of("server.example:4433", &theirs, BOTH);
        let mut question = [0; 512];
        silent.recv(&mut question).unwrap();
        drop(client);
        silent.set_nonblocking(true).unwrap();
        let asked = 1 + std::iter::from_fn(|| silent.recv(&mut question).ok()).count();
        assert!(asked <= 4, "{asked} questions: two of each link");
    })
}

/// The limit is one connection; targets do nothing that would end theirs.
fn a_silent_target_does_not_use_up_a_limit() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let bind = || Ok::<_, HostError>(TcpListener::bind((SERVER, PORT)).unwrap());
        let listener = there(lab).within(bind).unwrap();
        let (theirs, ours) = (lab.key("server.key"), lab.key("client.key"));
        let _server = lab.server(&ours, &format!("[limits]\nstreams = 1\n{ALLOW}"));
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        let connect = |after: &str| {
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(5) {
                if let Ok(connection) = lab.connect(SERVER, PORT) {
                    println!("connected {:?} after {after}", began.elapsed());
                    return connection;
                }
                thread::sleep(Duration::from_millis(100));
            }
            panic!("still at the limit after {after}");
        };
        let half_closed = |after: &str| {
            let connection = connect(after);
            connection.shutdown(Shutdown::Write).unwrap();
            let mut target = listener.accept().unwrap().0;
            assert_eq!(target.read(&mut [0]).unwrap(), 0);
            (connection, target)
        };
        let (connection, mut target) = half_closed("the start");
        assert_eq!(lab.connect(SERVER, PORT).unwrap_err(), 1);
        // The client learns from the first byte that its application is gone, and stops the stream.
        drop(connection);
        target.write_all(&[0]).unwrap();
        wait_for_reset(&target, "the application is gone");
        let _stopped = half_closed("the stream was stopped");
        drop(client);
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        let (connection, target) = half_closed("the bundle ended");
        drop((target, connection));
        // A target that has ended, and reads nothing.
        let mut connection = connect("the target ended");
        let target = listener.accept().unwrap().0;
        target.shutdown(Shutdown::Write).unwrap();
        assert_eq!(connection.read(&mut [0]).unwrap(), 0);
        connection.write_all(&vec![0; 4_000_000]).unwrap();
        thread::sleep(Duration::from_secs(3));
        drop(client);
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        connect("the bundle ended with a full target");
    })
}

/// Reads until the connection ends; returns how, or `TimedOut` or `WouldBlock` if it does not.
fn end_of(connection: &mut TcpStream) -> Result<(), ErrorKind> {
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match connection.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => (),
            Err(error) => return Err(error.kind()),
        }
    }
}

/// Waits until a connection was reset, without reading it.
fn wait_for_reset(connection: &TcpStream, after: &str) {
    let began = Instant::now();
    while connection.take_error().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "no reset: {after}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Neither end reads while an upload or a download is blocked, so only the other side's reset says
/// that it is over.
fn who_aborts_while_blocked_is_noticed() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let bind = || Ok::<_, HostError>(TcpListener::bind((SERVER, PORT)).unwrap());
        let listener = there(lab).within(bind).unwrap();
        let (server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        for uploads in [true, false] {
            let connection = lab.connect(SERVER, PORT).unwrap();
            let target = listener.accept().unwrap().0;
            let (mut full, other) =
                if uploads { (connection, target) } else { (target, connection) };
            full.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
            let block = [7; 1 << 16];
            while full.write(&block).is_ok() {}
            let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            nix::sys::socket::setsockopt(&full, nix::sys::socket::sockopt::Linger, &linger)
                .unwrap();
            drop(full);
            wait_for_reset(&other, if uploads { "upload" } else { "download" });
        }
        drop((server, client));
    })
}

/// Who relies on the end of a connection must not take a part for the whole.
fn what_is_cut_off_ends_with_a_reset() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let bind = || Ok::<_, HostError>(TcpListener::bind((SERVER, PORT)).unwrap());
        let listener = there(lab).within(bind).unwrap();
        let (theirs, ours) = (lab.key("server.key"), lab.key("client.key"));
        let server = lab.server(&ours, ALLOW);
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        let opened = || (lab.connect(SERVER, PORT).unwrap(), listener.accept().unwrap().0);
        let (mut downloads, mut gives) = opened();
        gives.write_all(&[7; 100_000]).unwrap();
        downloads.read_exact(&mut [0; 1000]).unwrap();
        let (mut uploads, mut takes) = opened();
        uploads.write_all(&[7; 100_000]).unwrap();
        takes.read_exact(&mut [0; 1000]).unwrap();
        drop(client);
        assert_eq!(end_of(&mut downloads), Err(ErrorKind::ConnectionReset));
        assert_eq!(end_of(&mut takes), Err(ErrorKind::ConnectionReset));
        let client = lab.client(&theirs, BOTH);
        client.wait_for_links(2);
        let (mut uploads, mut takes) = opened();
        uploads.write_all(&[7; 100_000]).unwrap();
        takes.read_exact(&mut [0; 1000]).unwrap();
        drop(server);
        assert_eq!(end_of(&mut takes), Err(ErrorKind::ConnectionReset));
    })
}

fn a_forwarded_port_without_a_target_is_reset() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let forward =
            format!("forward = [{{ listen = \"127.0.0.1:8080\", to = \"{SERVER}:{PORT}\" }}]");
        let (_server, client) = lab.pair(ALLOW, &format!("{forward}\n{BOTH}"));
        client.wait_for_links(2);
        assert_eq!(end_of(&mut lab.local(8080)), Err(ErrorKind::ConnectionReset));
    })
}

fn a_target_is_reached_at_its_second_address() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        serve_names(lab);
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        lab.ip(&["addr", "add", &format!("{HERE}/32"), "dev", "lo"]);
        let route = ["ip", "route", "add", "10.99.0.2/31", "dev", "knee0"].map(str::to_owned);
        assert!(lab.start_there(&route).wait().unwrap().success());
        let _listener = lab.here(|| TcpListener::bind((HERE, PORT)).unwrap());
        let began = Instant::now();
        let mut connection = ask_for(lab, "two.knee.test");
        let mut reply = [0; 10];
        connection.read_exact(&mut reply).unwrap();
        println!("code {} after {:?}", reply[1], began.elapsed());
        assert_eq!(reply[1], 0);
    })
}

fn a_slow_name_delays_no_other_datagram() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        serve_names(lab);
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let (_control, relay) = lab.associate();
        let socket = lab.datagrams();
        socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let began = Instant::now();
        // What waits for a name arrives once it is known; the rest goes before.
        for (name, content) in [
            ("slow.knee.test", 0),
            ("late.knee.test", 1),
            ("late.knee.test", 2),
            ("echo.knee.test", 3),
            ("10.99.0.1", 4),
        ] {
            socket.send_to(&[to_name(name, ECHO), vec![content]].concat(), relay).unwrap();
        }
        let mut came = Vec::new();
        let mut buffer = [0; 64];
        while came.len() < 4
            && let Ok((count, _)) = socket.recv_from(&mut buffer)
        {
            println!("datagram {} after {:?}", buffer[count - 1], began.elapsed());
            came.push(buffer[count - 1]);
        }
        // Two links may swap datagrams.
        came.chunks_mut(2).for_each(<[_]>::sort_unstable);
        assert_eq!(came, [3, 4, 1, 2]);
        // The name is known by now.
        socket.send_to(&[&to_name("late.knee.test", ECHO)[..], &[5]].concat(), relay).unwrap();
        let (count, _) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[count - 1], 5);
    })
}

/// Only the address that an application declared may send, if it declared one (RFC 1928, section 7);
/// without an address, that of its connection.
fn datagrams_of_others_are_not_relayed() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let [a, b, c, d] = SERVER.octets();
        let datagram = |byte| [0, 0, 0, 1, a, b, c, d, 0, ECHO as u8, byte];
        for declared in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let (other, own) = (lab.datagrams(), lab.datagrams());
            let port = own.local_addr().unwrap().port();
            let (_control, relay) = lab.associate_from(declared, port);
            for socket in [&other, &own] {
                socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            }
            other.send_to(&datagram(1), relay).unwrap();
            let mut buffer = [0; 64];
            assert!(other.recv_from(&mut buffer).is_err(), "{declared}");
            own.send_to(&datagram(2), relay).unwrap();
            let (count, _) = own.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..count], datagram(2), "{declared}");
        }
    })
}

/// Each name that is looked up holds a thread of the server, and so a socket from which it asks: a
/// client gets 64 of them, and the rest of its names wait. The system repeats a question after 5 s.
fn names_of_one_client_do_not_hold_all_threads() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let unanswered = serve_names(lab);
        let (_server, client) = lab.pair(ALLOW, BOTH);
        client.wait_for_links(2);
        let mut waiting: Vec<TcpStream> =
            (0..100).map(|_| ask_for(lab, "slow.knee.test")).collect();
        thread::sleep(Duration::from_secs(2));
        let asked = unanswered.lock().unwrap().len();
        assert_eq!(asked, 64);
        // A name that did not get its turn is no silent target, which would be code 6.
        let mut reply = [0; 2];
        waiting[99].set_read_timeout(Some(Duration::from_secs(8))).unwrap();
        waiting[99].read_exact(&mut reply).unwrap();
        assert_eq!(reply, [5, 1]);
    })
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        a_client_carries_no_more_bytes_than_it_may,
        an_address_that_the_server_gets_later_is_denied,
        a_silent_nameserver_keeps_nothing_waiting,
        a_silent_target_does_not_use_up_a_limit,
        a_target_is_reached_at_its_second_address,
        a_slow_name_delays_no_other_datagram,
        datagrams_of_others_are_not_relayed,
        uploads_and_answers_count,
        a_forwarded_port_without_a_target_is_reset;
        nightly:
        who_aborts_while_blocked_is_noticed,
        a_client_that_was_killed_does_not_keep_its_limits,
        as_many_connections_are_open_as_the_server_allows,
        names_of_one_client_do_not_hold_all_threads,
        what_is_cut_off_ends_with_a_reset
    ]
}
