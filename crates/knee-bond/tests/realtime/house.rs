//! What the transparent mode takes besides the TCP of its host: UDP and pings, and what it forwards
//! for a house, which is a network namespace behind the client's host. These tests need root and
//! /dev/net/tun, as those of `links.rs` do. `main` lists them.

#![allow(clippy::print_stdout, reason = "how long it took is worth a look")]

use crate::lab::{BOTH, FILES, Lab, SERVER, TWO, on, take};
use crate::targets::there;
use knee_host::{
    Diversion, DiversionSettings, HostError, Impersonator, Namespace, echo_header, ping_socket,
    read_reply, receive_datagram, report_tos, set_sysctl,
};
use knee_trials::{Skipped, Trial, trials};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, setsockopt, sockopt,
};
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Port of the mirror.
const MIRROR: u16 = 7000;
/// The server's address over IPv6, and what the tests' servers allow.
const SERVER_6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);
const ALLOW: &str = "[egress]\nallow = [\"10.99.0.0/16\", \"2001:db8:99::/48\"]\n";
/// The client's host and a machine of the house, on the link between them.
const ROUTER: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 1);
const MACHINE: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 2);
/// DSCP EF and ECT(0) (RFC 3246, RFC 3168).
const TOS: u8 = 0xba;
const LAN: &str = "transparent = { lan = [\"lan0\"] }\n";

fn within<T: Send>(host: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    host.within(|| Ok::<_, HostError>(work())).unwrap()
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let done = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
}

/// Starts a service on the server's host that returns each datagram after a line with the address and
/// the type of service that it came with; both directions have that type.
fn mirror(lab: &Lab, at: IpAddr) -> UdpSocket {
    let socket = within(&there(lab), || {
        if at.is_ipv6() {
            run(&format!("ip address add {at}/128 dev lo nodad"));
        }
        UdpSocket::bind((at, MIRROR)).unwrap()
    });
    report_tos(&socket, at.is_ipv6()).unwrap();
    let kept = socket.try_clone().unwrap();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match receive_datagram(&socket, &mut buffer) {
                Ok(datagram) => {
                    if at.is_ipv4() {
                        setsockopt(&socket, sockopt::Ipv4Tos, &datagram.tos.into()).unwrap();
                    }
                    let line = format!("{} {}\n", datagram.from, datagram.tos);
                    let answer = [line.as_bytes(), &buffer[..datagram.len]].concat();
                    let _ = socket.send_to(&answer, datagram.from);
                }
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    });
    kept
}

/// What the mirror saw and what of it came back.
struct Mirrored {
    from: SocketAddr,
    tos: u8,
    answer_tos: u8,
}

/// Sends a datagram to the mirror until it comes back. Datagrams may be lost, above all the first,
/// before the server has opened a socket.
fn reflect(socket: &UdpSocket, mirror: SocketAddr, bytes: &[u8]) -> Mirrored {
    report_tos(socket, mirror.is_ipv6()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let mut buffer = vec![0; 1 << 16];
    for _ in 0..10 {
        socket.send_to(bytes, mirror).unwrap();
        let sent = Instant::now();
        while sent.elapsed() < Duration::from_secs(1) {
            let Ok(datagram) = receive_datagram(socket, &mut buffer) else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            assert_eq!(datagram.from, mirror);
            let answer = &buffer[..datagram.len];
            let line = answer.iter().position(|byte| *byte == b'\n').unwrap();
            if answer[line + 1..] != *bytes {
                continue;
            }
            let line = std::str::from_utf8(&answer[..line]).unwrap();
            let (from, tos) = line.split_once(' ').unwrap();
            let (from, tos) = (from.parse().unwrap(), tos.parse().unwrap());
            return Mirrored { from, tos, answer_tos: datagram.tos };
        }
    }
    panic!("{} bytes to {mirror} did not come back", bytes.len());
}

/// Makes a house: a machine behind the client's host, with addresses of both families.
fn house(lab: &Lab) -> Namespace {
    let house = Namespace::create().unwrap();
    let mut inside = within(&house, || Command::new("sleep").arg("60").spawn().unwrap());
    let there = inside.id();
    lab.here(|| {
        run(&format!("ip link add lan0 type veth peer name eth0 netns {there}"));
        run(&format!("ip address add {ROUTER}/24 dev lan0"));
        run("ip address add fd00:7::1/64 dev lan0 nodad");
        run("ip link set lan0 up");
    });
    within(&house, || {
        run("ip link set lo up");
        run(&format!("ip address add {MACHINE}/24 dev eth0"));
        run("ip address add fd00:7::2/64 dev eth0 nodad");
        run("ip link set eth0 up");
        run(&format!("ip route add default via {ROUTER}"));
        run("ip route add default via fd00:7::1");
    });
    inside.kill().unwrap();
    inside.wait().unwrap();
    house
}

/// UDP of programs leaves by the server, whatever its size; DSCP and ECN arrive at both ends. Without
/// links it waits for none, and none of it leaves directly.
fn udp_of_programs_goes_over_the_links_or_nowhere() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        lab.ip(&["route", "add", "default", "dev", "knee0"]);
        mirror(lab, SERVER.into());
        let to = SocketAddr::from((SERVER, MIRROR));
        let socket = lab.here(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        let direct = reflect(&socket, to, b"directly").from;
        assert_ne!(direct.ip(), SERVER, "without the mode");
        let (server, client) = lab.pair(ALLOW, &format!("transparent = {{}}\n{BOTH}"));
        client.wait_for_links(2);
        setsockopt(&socket, sockopt::Ipv4Tos, &TOS.into()).unwrap();
        let first = reflect(&socket, to, b"first");
        assert_eq!(first.from.ip(), SERVER);
        for size in [1, 1200, 1472, 9000, 60_000] {
            let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
            let seen = reflect(&socket, to, &bytes);
            assert_eq!((seen.tos, seen.answer_tos, seen.from), (TOS, TOS, first.from), "{size}");
        }
        // A second client of the host is refused, and takes nothing away from the first.
        let second = DiversionSettings { ping: true, ..DiversionSettings::default() };
        assert!(lab.here(|| Diversion::begin(&second)).is_err());
        assert_eq!(reflect(&socket, to, b"still").from, first.from);
        assert!(lab.run(&["ip", "rule"]).contains("fwmark"));
        (0..2).for_each(|link| lab.cut(link));
        socket.send_to(b"lost", to).unwrap();
        thread::sleep(Duration::from_millis(500));
        assert_eq!(
            receive_datagram(&socket, &mut [0; 99]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        (0..2).for_each(|link| lab.mend(link));
        drop((client, server));
        // The rules are gone.
        assert_eq!(reflect(&socket, to, b"directly").from, direct);
        assert!(!lab.run(&["ip", "rule"]).contains("fwmark"));
    })
}

/// TCP and UDP of the house, over IPv4 and IPv6, leave by the server, and its machines may be reached
/// by whoever learns the address of a flow. What is for the router itself stays there.
fn the_house_is_carried_too() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let house = house(lab);
        let mirrors = [mirror(lab, SERVER.into()), mirror(lab, SERVER_6.into())];
        let (_server, client) = lab.pair(ALLOW, &format!("{LAN}{BOTH}"));
        client.wait_for_links(2);
        for (any, mirror) in [("0.0.0.0:0", &mirrors[0]), ("[::]:0", &mirrors[1])] {
            let to = mirror.local_addr().unwrap();
            let socket = within(&house, || UdpSocket::bind(any)).unwrap();
            let seen = reflect(&socket, to, b"from the house");
            assert_eq!(seen.from.ip(), to.ip());
            assert_eq!(reflect(&socket, to, &[7; 3000]).from, seen.from);
            // Another host than the one that was written to.
            let stranger = within(&there(lab), || UdpSocket::bind((to.ip(), 0))).unwrap();
            stranger.send_to(b"from a stranger", seen.from).unwrap();
            let mut buffer = [0; 99];
            socket.set_nonblocking(false).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let (count, from) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(
                (&buffer[..count], from),
                (&b"from a stranger"[..], stranger.local_addr().unwrap())
            );
        }
        take(within(&house, || TcpStream::connect((SERVER, FILES))).unwrap(), 3_000_000);
        // Its own services, and those of other machines of the house.
        let own = lab.here(|| TcpListener::bind((ROUTER, 8080))).unwrap();
        let asked = thread::spawn(move || own.accept().unwrap().1.ip());
        within(&house, || TcpStream::connect((ROUTER, 8080))).unwrap();
        assert_eq!(asked.join().unwrap(), MACHINE);
        let theirs = within(&house, || TcpListener::bind((MACHINE, 8080))).unwrap();
        let mut to_them = lab.here(|| TcpStream::connect((MACHINE, 8080))).unwrap();
        to_them.write_all(b"x").unwrap();
        let (mut accepted, from) = theirs.accept().unwrap();
        accepted.read_exact(&mut [0]).unwrap();
        assert_eq!(from.ip(), ROUTER);
    })
}

/// Pings of this host and of the house, over IPv4 and IPv6, are answered by their destination, which
/// is asked by a ping socket of the server. Without links nothing answers.
fn pings_are_answered_by_their_destination() -> Result<(), Skipped> {
    let permit = || set_sysctl("net.ipv4.ping_group_range", "0 2147483647").unwrap();
    on(TWO, 2, |lab| {
        let house = house(lab);
        within(&there(lab), permit);
        within(&there(lab), || run(&format!("ip address add {SERVER_6}/128 dev lo nodad")));
        let (_server, client) = lab.pair(ALLOW, &format!("{LAN}{BOTH}"));
        client.wait_for_links(2);
        let open = |is_v6| {
            permit();
            ping_socket(is_v6).unwrap()
        };
        for (is_v6, to) in [(false, IpAddr::from(SERVER)), (true, SERVER_6.into())] {
            // This host has no route for IPv6 by itself.
            let own = (!is_v6).then(|| lab.here(|| open(is_v6)));
            for socket in own.into_iter().chain([within(&house, || open(is_v6))]) {
                assert!(echoes(&socket, to, 7, &[3; 56]), "{to}");
                assert!(echoes(&socket, to, 8, &[4; 2000]), "{to}");
            }
        }
        // The router answers for itself.
        let socket = within(&house, || open(false));
        assert!(echoes(&socket, ROUTER.into(), 1, b"router"));
        (0..2).for_each(|link| lab.cut(link));
        assert!(!echoes(&socket, SERVER.into(), 9, b"nobody"));
    })
}

/// Sends a few echo requests until one is answered with its sequence number and data; false if none
/// is.
fn echoes(socket: &UdpSocket, to: IpAddr, sequence: u16, data: &[u8]) -> bool {
    let mut buffer = vec![0; 1 << 16];
    for _ in 0..3 {
        let request = [&echo_header(to.is_ipv6(), sequence), data].concat();
        socket.send_to(&request, (to, 0)).unwrap();
        let sent = Instant::now();
        while sent.elapsed() < Duration::from_secs(1) {
            let Ok((count, from)) = socket.recv_from(&mut buffer) else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            if read_reply(to.is_ipv6(), &buffer[..count]) == Some((sequence, data)) {
                assert_eq!(from.ip(), to);
                return true;
            }
        }
    }
    false
}

/// Other protocols of programs are refused at once.
fn what_is_not_carried_is_refused() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        lab.ip(&["route", "add", "default", "dev", "knee0"]);
        let (_server, client) = lab.pair(ALLOW, &format!("{LAN}{BOTH}"));
        client.wait_for_links(2);
        let raw = lab.here(|| {
            let flags = SockFlag::empty();
            nix::sys::socket::socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)
        });
        let (raw, to) = (raw.unwrap(), SockaddrIn::from(SocketAddrV4::new(SERVER, 0)));
        // A timestamp request (RFC 792).
        let message = [13, 0, 0xf2, 0xff, 0, 0, 0, 0];
        let sent = sendto(raw.as_raw_fd(), &message, &to, nix::sys::socket::MsgFlags::empty());
        assert_eq!(sent, Err(nix::errno::Errno::EPERM));
    })
}

/// A client has as many UDP flows as the server allows; those beyond are not answered.
fn a_client_has_as_many_flows_as_it_may() -> Result<(), Skipped> {
    on(TWO, 2, |lab| {
        let house = house(lab);
        mirror(lab, SERVER.into());
        let limits = format!("limits = {{ udp_flows = 3 }}\n{ALLOW}");
        let (_server, client) = lab.pair(&limits, &format!("{LAN}{BOTH}"));
        client.wait_for_links(2);
        let to = SocketAddr::from((SERVER, MIRROR));
        let sockets: Vec<UdpSocket> =
            within(&house, || (0..4).map(|_| UdpSocket::bind("0.0.0.0:0").unwrap()).collect());
        let ports: std::collections::BTreeSet<SocketAddr> =
            sockets[..3].iter().map(|socket| reflect(socket, to, b"within").from).collect();
        assert_eq!(ports.len(), 3, "a socket for each");
        sockets[3].send_to(b"beyond", to).unwrap();
        thread::sleep(Duration::from_millis(500));
        let answer = receive_datagram(&sockets[3], &mut [0; 99]);
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::WouldBlock);
    })
}

/// Ten thousand flows of four machines are open at a time, each by a socket of its own.
fn ten_thousand_flows_are_open_at_a_time() -> Result<(), Skipped> {
    const EACH: u16 = 2500;
    on(TWO, 2, |lab| {
        let house = house(lab);
        let heard = within(&there(lab), || UdpSocket::bind((SERVER, MIRROR)).unwrap());
        let (_server, client) = lab.pair(ALLOW, &format!("{LAN}{BOTH}"));
        client.wait_for_links(2);
        // One socket sends for all of them, which would otherwise use up this process's descriptors.
        let sender = within(&house, || Impersonator::open().unwrap());
        let machines = [2, 3, 4, 5].map(|last| Ipv4Addr::new(192, 168, 7, last));
        let to = SocketAddr::from((SERVER, MIRROR));
        let mut flows = std::collections::BTreeMap::new();
        let (began, mut buffer) = (Instant::now(), [0; 99]);
        heard.set_nonblocking(true).unwrap();
        while flows.len() < machines.len() * usize::from(EACH) {
            assert!(began.elapsed() < Duration::from_secs(25), "{} flows", flows.len());
            for machine in machines {
                for port in 10_000..10_000 + EACH {
                    let from = SocketAddr::from((machine, port));
                    // About as many a second as the links carry.
                    if port % 50 == 0 {
                        thread::sleep(Duration::from_millis(10));
                    }
                    let _ = sender.send(from, to, 0, from.to_string().as_bytes());
                    while let Ok((count, seen)) = heard.recv_from(&mut buffer) {
                        let said = std::str::from_utf8(&buffer[..count]).unwrap();
                        let from: SocketAddr = said.parse().unwrap();
                        let known = *flows.entry(seen).or_insert(from);
                        assert_eq!(known, from, "two senders have one socket");
                    }
                }
            }
        }
        println!("{} flows in {:?}", flows.len(), began.elapsed());
    })
}

/// All tests.
pub fn all() -> Vec<Trial> {
    trials![
        udp_of_programs_goes_over_the_links_or_nowhere,
        the_house_is_carried_too,
        pings_are_answered_by_their_destination,
        what_is_not_carried_is_refused,
        a_client_has_as_many_flows_as_it_may,
        ; nightly: ten_thousand_flows_are_open_at_a_time,
    ]
}
