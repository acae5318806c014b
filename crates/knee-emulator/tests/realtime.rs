//! The emulator between two hosts, without a ground: other users need no more than this.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use knee_emulator::{Clock, Emulation, Emulator, IpPacket, Outcome, Routes, Tun, Volume, observe};
use knee_host::{HostError, Namespace, Routing};
use knee_link::{Config, Link, Loss};
use knee_trials::{Pauses, Skipped, trials, turn};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const DEVICE: &str = "knee0";
const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const PORT: u16 = 7;

/// Makes a host with a device and a socket at its address.
fn host(address: Ipv4Addr) -> (Namespace, Tun, UdpSocket) {
    let namespace = Namespace::create().unwrap();
    let made: Result<_, HostError> = namespace.within(|| {
        let tun = Tun::create(DEVICE)?;
        let mut routing = Routing::open()?;
        let interface = routing.find(DEVICE)?;
        routing.bring_up(interface, 1500, 1000)?;
        routing.add_address(interface, address.into(), 24)?;
        let socket = UdpSocket::bind((address, PORT));
        Ok((tun, socket.map_err(|source| HostError::call("open a socket", source))?))
    });
    let (tun, socket) = made.unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    (namespace, tun, socket)
}

/// Returns the first byte of each datagram that arrives, until none does for a second, and when the
/// first arrived.
fn arrivals(socket: &UdpSocket, clock: Clock) -> (Vec<u8>, Time) {
    let (mut numbers, mut first) = (Vec::new(), Time::MAX);
    let mut bytes = [0; 16];
    while socket.recv(&mut bytes).is_ok() {
        first = first.min(clock.now());
        numbers.push(bytes[0]);
    }
    (numbers, first)
}

fn dropped_packets(namespace: &Namespace) -> Result<u64, HostError> {
    namespace.within(|| Routing::open()?.dropped_packets(DEVICE))
}

/// Twenty datagrams over two links of 20 and 10 ms, of which the first loses every fifth packet;
/// what arrives comes back over a link of 15 ms. An observer sees it as it was.
fn datagrams_take_the_links_of_their_route() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let (near, near_tun, near_socket) = host(HERE);
    let (_far, far_tun, far_socket) = host(THERE);
    let delay = |millis| Config::pure_delay(Time::from_millis(millis));
    let lossy = Config { loss: Loss::Periodic(5), ..delay(20) };
    let links = [lossy, delay(10), delay(15)];
    let mut routes = Routes::default();
    routes.add(&[0, 1], 1);
    routes.add(&[2], 0);
    let plan = Emulation {
        links: links.map(|config| (config, ChaCha8Rng::seed_from_u64(1))).into(),
        routes,
        sample_interval: Time::from_millis(10),
        duration: Time::MAX,
    };
    let stop = AtomicBool::new(false);
    let clock = Clock::start();
    let mut samples: Vec<(Time, Vec<u64>)> = Vec::new();
    let mut sample = |now: Time, links: &mut [Link<IpPacket>]| {
        samples.push((now, links.iter().map(|link| link.counters().lost_packets).collect()));
    };
    let (observer, watcher) = observe(&plan, None);
    let (outcome, observed) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watcher.run());
        let emulator = Emulator::new(plan, vec![near_tun, far_tun], clock, &mut sample);
        let emulator = emulator.observed(observer);
        let emulator = scope.spawn(|| emulator.run(&stop));
        let sent_at = clock.now();
        for number in 1..=20 {
            near_socket.send_to(&[number], (THERE, PORT)).unwrap();
        }
        let (numbers, first) = arrivals(&far_socket, clock);
        let expected: Vec<u8> = (1..=20).filter(|number| number % 5 != 0).collect();
        assert_eq!(numbers, expected);
        assert!(first - sent_at >= Time::from_millis(30), "{}", first - sent_at);
        let returned_at = clock.now();
        for number in &numbers {
            far_socket.send_to(&[*number], (HERE, PORT)).unwrap();
        }
        let (returned, first) = arrivals(&near_socket, clock);
        assert_eq!(returned, expected);
        assert!(first - returned_at >= Time::from_millis(15), "{}", first - returned_at);
        stop.store(true, Ordering::Relaxed);
        (emulator.join().unwrap().unwrap(), watcher.join().unwrap())
    });
    let Outcome { tally, devices } = outcome;
    assert_eq!((tally.packets, tally.refused_packets), (20 + 16, 0));
    assert_eq!(tally.lateness.packets(), 16 + 16);
    assert_eq!(samples[0], (Time::ZERO, vec![0, 0, 0]));
    assert_eq!(samples[1].0, Time::from_millis(10));
    assert_eq!(samples.last().unwrap().1, [4, 0, 0]);
    let flows: Vec<_> = observed.flows.iter().collect();
    let [(there, first), (back, second)] = flows[..] else { panic!("{flows:?}") };
    assert_eq!(there.source, (HERE, PORT).into());
    assert_eq!((there.destination, back), ((THERE, PORT).into(), &there.reversed()));
    // 28 bytes of headers and one of payload.
    let volume = |packets| Volume { packets, bytes: packets * 29 };
    assert_eq!([first.entered, first.left, first.dropped], [20, 16, 4].map(volume));
    assert_eq!([second.entered, second.left, second.dropped], [16, 16, 0].map(volume));
    assert_eq!((first.payload_bytes, first.dropped_packets_at.get(&0)), (20, Some(&4)));
    assert_eq!((first.queueing.max(), second.queueing.max()), (Time::ZERO, Time::ZERO));
    assert_eq!((observed.flows.dropped_packets(0), observed.missed_events), ((0, 4), 0));
    // Dropping the value removes the device and the kernel's counters.
    assert_eq!(dropped_packets(&near).unwrap(), 0);
    drop(devices);
    assert!(matches!(dropped_packets(&near), Err(HostError::Refused { .. })));
    Ok(())
}

fn main() -> ExitCode {
    knee_trials::run(trials![datagrams_take_the_links_of_their_route])
}
