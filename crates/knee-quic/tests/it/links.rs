//! Two hosts with real QUIC connections over links of `knee-link`, under a virtual clock.

use crate::world::{
    ID, REBOUND, Way, World, address, address_v6, patient, patient_host, settings, way,
};
use knee_bundle::{Class, PathUse};
use knee_cc::Value;
use knee_quic::{ConnectionSettings, Host, HostSettings, KeyPair, Member};
use knee_scenario::{Embedded, Source, parse};
use knee_sim::Control;
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;
use std::time::Instant;

/// A file in the simulator, and over real QUIC connections on the same link.
struct Cell {
    mbit: f64,
    one_way_ms: u64,
    buffer: u64,
    loss: f64,
    megabytes: f64,
    cc: &'static str,
}

impl Cell {
    fn simulated(&self) -> (f64, f64, f64) {
        let Cell { mbit, one_way_ms, buffer, loss, megabytes, cc } = self;
        let text = format!(
            "name = \"cell\"\nduration = \"120 s\"\n\
             [transport]\nmss = \"1424 B\"\nheader = \"76 B\"\nreceive_window = \"16 MiB\"\n\
             [link.l]\nrate = \"{mbit} Mbit/s\"\ndelay = \"{one_way_ms} ms\"\n\
             buffer = \"{buffer} B\"\nloss = \"{} %\"\n\
             [path.p]\nforward = [\"l\"]\nreverse_delay = \"{one_way_ms} ms\"\n\
             [[flow]]\nname = \"f\"\ncc = \"{cc}\"\n\
             workload = {{ file = \"{megabytes} MB\" }}\n",
            loss * 100.0
        );
        let source = Source { name: "cell.toml", loader: &Embedded(&[]) };
        let scenario = parse(&text, &source, &[]).unwrap_or_else(|e| panic!("{:?}", e.problems));
        let records = knee_sim::run(&scenario, &Control::default()).unwrap();
        let flow = &records.flows[0];
        let took = flow.completion_ns.unwrap() as f64 / 1e9;
        (took, flow.retransmitted_bytes as f64 / 1424.0, flow.recoveries as f64)
    }

    fn over_quic(&self) -> (f64, f64, f64) {
        let way = Way { loss: self.loss, ..way(self.mbit, self.one_way_ms, self.buffer) };
        let world = World::new(&[way], self.cc, "minrtt", 1 << 24);
        let (took, world) = world.file((self.megabytes * 1e6) as u64);
        let seen = world.observe(0);
        (took.as_secs_f64(), seen.lost_packets as f64, seen.recoveries as f64)
    }
}

/// Without randomness, the simulator's TCP and a real QUIC connection with the same controller take
/// the same time and lose the same: the adaptor gives what TCP gives. (Of the 76 bytes of headers
/// configured in the simulator, QUIC needs 73 to 76.)
#[test]
fn quic_is_beside_the_simulator() {
    let cell = |mbit, one_way_ms, buffer, megabytes, cc| Cell {
        mbit,
        one_way_ms,
        buffer,
        loss: 0.0,
        megabytes,
        cc,
    };
    for cell in [
        cell(20.0, 20, 64_000, 20.0, "cubic"),
        cell(20.0, 20, 64_000, 20.0, "bbr"),
        cell(20.0, 20, 64_000, 20.0, "reno"),
        cell(20.0, 20, 80_000, 20.0, "reno"),
        cell(10.0, 20, 50_000, 20.0, "reno"),
        cell(50.0, 50, 625_000, 50.0, "cubic"),
        cell(50.0, 50, 625_000, 50.0, "bbr"),
        cell(50.0, 50, 625_000, 50.0, "reno"),
        cell(10.0, 40, 200_000, 10.0, "vegas"),
        cell(10.0, 40, 200_000, 10.0, "bbr3"),
    ] {
        let (ours, theirs) = (cell.over_quic(), cell.simulated());
        let told = format!(
            "{:5} {:2} Mbit/s {:2} ms {:3} kB: {:6.3} s over QUIC {:6.3} simulated {:+4.1} %, \
             lost {} {}, recoveries {} {}",
            cell.cc,
            cell.mbit,
            cell.one_way_ms,
            cell.buffer / 1000,
            ours.0,
            theirs.0,
            100.0 * (ours.0 / theirs.0 - 1.0),
            ours.1,
            theirs.1.round(),
            ours.2,
            theirs.2,
        );
        println!("{told}");
        assert!((ours.0 / theirs.0 - 1.0).abs() < 0.015, "{told}");
        assert!((ours.1 - theirs.1).abs() < 5.0 + 0.1 * theirs.1, "{told}");
    }
}

/// A NAT that forgets a flow assigns it a different port in the middle of a transfer: the server
/// follows (RFC 9000, section 9.3), and loses no path and little time, whichever end sends. The
/// library keeps the congestion control of a path only over IPv4, and a socket for both versions
/// shows IPv4 addresses as those of IPv6.
#[test]
fn a_nat_that_rebinds_costs_no_path() {
    let mapped = |end, path| {
        let SocketAddr::V4(address) = address(end, path) else { unreachable!() };
        SocketAddr::from((address.ip().to_ipv6_mapped(), address.port()))
    };
    let ways = [way(10.0, 10, 64_000), way(10.0, 20, 64_000)];
    let settings = |cc: &str| {
        let cc = cc.to_owned();
        move |is_server| settings(is_server, 2, &cc, "just-in-time", 1 << 22)
    };
    for (sender, cc) in [(0, "bbr"), (1, "bbr"), (1, "cubic")] {
        for address in [address, address_v6, mapped] {
            let world = |rebinding| {
                let mut world = World::over(address, &ways, settings(cc));
                (world.sender, world.rebinding) = (sender, rebinding);
                world
            };
            let (usual, _) = world(Time::MAX).file(4_000_000);
            let (took, world) = world(Time::from_millis(700)).file(4_000_000);
            let peers: Vec<u16> =
                world.hosts[1].paths(&ID).iter().flatten().map(|path| path.peer.port()).collect();
            println!("{} sends by {cc}: {took:?}, usually {usual:?}", address(sender, 0));
            assert_eq!(peers, [REBOUND, REBOUND]);
            assert!(!world.told.iter().any(|told| told.contains("Lost")), "{:?}", world.told);
            assert!(took < usual + Time::from_millis(500));
            // The congestion controls know of all of it.
            let sent: u64 = (0..2).map(|path| world.observe(path).sent).sum();
            assert!(sent > 4_000_000, "{sent}");
        }
    }
}

/// Of paths with a cost, the cheapest that works is used, at both ends.
#[test]
fn the_cheapest_path_that_works_is_used() {
    let mut ways = vec![way(10.0, 5, 64_000), way(10.0, 20, 64_000), way(10.0, 10, 64_000)];
    for (way, cost) in ways.iter_mut().zip([2, 0, 1]) {
        way.cost = cost;
    }
    ways[1].down = vec![(Time::from_secs(1), Time::from_secs(1000))];
    let mut world = World::new(&ways, "cubic", "just-in-time", 1 << 22);
    // Until all have joined.
    while world.now < Time::from_millis(200) {
        world.step_to(Time::from_millis(200));
    }
    let (_, world) = world.file(3_000_000);
    let paths = world.hosts[0].paths(&ID);
    let waits = |end: usize| -> Vec<bool> {
        world.hosts[end].paths(&ID).iter().flatten().map(|path| path.is_backup).collect()
    };
    // The free one is silent by now, but that is not a reason to wait for the others.
    assert!(paths[1].as_ref().unwrap().is_suspect);
    assert_eq!(waits(0), [true, false, false]);
    let sent: Vec<u64> = (0..3).map(|path| world.observe(path).delivered).collect();
    assert!(sent[0] < 10_000, "{sent:?}");
    assert!(sent[1] > 800_000 && sent[2] > 1_000_000, "{sent:?}");
    assert_eq!(world.hosts[1].paths(&ID)[2].as_ref().unwrap().path_use.cost, 1);
}

/// A link with a cost that is not needed, with the settings of `knee bond`: its keep-alives add up
/// to at most 2 MB a day, whatever the other link carries.
#[test]
fn an_idle_metered_link_carries_two_megabytes_a_day_at_most() {
    const HALF_AN_HOUR: Time = Time::from_secs(1800);
    let ways = [way(20.0, 10, 64_000), way(20.0, 30, 64_000)];
    let mut world = World::new(&ways, "bbr", "just-in-time", 1 << 20);
    let keys = [(); 2].map(|()| KeyPair::generate().unwrap());
    for end in 0..2 {
        let path = ConnectionSettings {
            packet: 1200,
            packet_max: Some(1452),
            keep_alive: (end == 0).then_some(Time::from_secs(25)),
            idle: Some(Time::from_secs(40)),
            more_number_spaces: true,
        };
        let settings = HostSettings {
            eager: false,
            linger: Time::from_secs(60),
            paths: vec![path; 2],
            ..settings(end == 1, 2, "bbr", "just-in-time", 1 << 20)
        };
        let rng = ChaCha8Rng::seed_from_u64(end as u64);
        let [own, other] = [&keys[end], &keys[1 - end]];
        world.hosts[end] =
            Host::new(settings, own, &[other.public()], Instant::now(), &rng).unwrap();
    }
    for number in 0..2 {
        let cost = number as u8;
        let path_use = PathUse { quiet: cost > 0, cost, overflows: false };
        let label = format!("link{number}");
        let member = Member { bundle: ID, number, label, path_use };
        world.hosts[0].connect(Time::ZERO, number, address(1, number), member).unwrap();
    }
    world.for_a_while(Time::from_secs(10));
    let bytes = |world: &World| world.carried[0][1] + world.carried[1][1];
    let before = bytes(&world);
    let id = world.hosts[0].bundle(&ID).unwrap().open(Class::Normal).unwrap();
    let until = world.now + HALF_AN_HOUR;
    while world.now < until {
        // Interactive input.
        assert_eq!(world.hosts[0].bundle(&ID).unwrap().write(id, &[0; 500]), 500);
        world.for_a_while(Time::from_secs(1));
    }
    assert!(world.received >= 1799 * 500, "{}", world.received);
    assert!(world.told.iter().all(|told| !told.contains("Lost")), "{:?}", world.told);
    let daily = (bytes(&world) - before) * 48;
    println!("an idle metered link carries {daily} bytes a day");
    assert!(daily > 0 && daily <= 2_000_000, "{daily}");
}

/// The two dozen cells of `benches/quic.py`, in virtual time: completion within 3 %, packets lost
/// within a factor of 1.5 unless they are a handful.
#[test]
fn a_grid_is_beside_the_simulator() {
    let mut number = 0;
    for mbit in [5.0, 20.0, 50.0] {
        for rtt_ms in [20_u64, 80] {
            for cc in ["reno", "cubic", "bbr", "bbr3"] {
                let bdp = (mbit * 125.0 * rtt_ms as f64) as u64;
                let buffer = bdp * [1, 3][(number + number / 4) % 2];
                number += 1;
                let (one_way_ms, megabytes) = (rtt_ms / 2, mbit * 6.0 / 8.0);
                let cell = Cell { mbit, one_way_ms, buffer, loss: 0.0, megabytes, cc };
                let (ours, theirs) = (cell.over_quic(), cell.simulated());
                let told = format!("{cc} {mbit} Mbit/s {rtt_ms} ms: {ours:?} beside {theirs:?}");
                println!("{told}");
                assert!((ours.0 / theirs.0 - 1.0).abs() < 0.03, "{told}");
                let few = (ours.1 - theirs.1).abs() <= 5.0;
                assert!(few || (0.667..=1.5).contains(&(ours.1 / theirs.1)), "{told}");
            }
        }
    }
}

/// A file whose last datagram is lost goes on, also if the next ACK is for a few bytes: a window of as
/// few would let nothing leave any more. In one of some 150 sizes that happened over a short buffer.
#[test]
#[ignore = "takes long: .ci/night random"]
fn a_lost_end_is_sent_again() {
    for cc in ["bbr", "bbr3", "reno", "cubic"] {
        let sizes = if cc == "bbr" { 600 } else { 200 };
        for bytes in (0..sizes).map(|at| 400_000 + at * 1111) {
            let (took, _) = World::new(&[way(5.0, 10, 12_500)], cc, "minrtt", 1 << 22).file(bytes);
            let due = bytes as f64 * 8.0 / 4.0e6 + 0.7;
            assert!(took.as_secs_f64() < due, "{cc}, {bytes} bytes: {took:?}");
        }
    }
}

/// The library reports no lost probe of the MTU: it must neither keep recovery from ending, which
/// would hide all later losses, nor keep the window from being judged.
#[test]
fn a_lost_probe_of_the_mtu_is_forgotten() {
    for cc in ["reno", "cubic"] {
        let way = way(20.0, 20, 64_000);
        let run = |packet_max, largest| {
            let mut world = World::between(std::slice::from_ref(&way), |is_server| HostSettings {
                paths: vec![ConnectionSettings { packet_max, ..ConnectionSettings::lasting(1200) }],
                ..settings(is_server, 1, cc, "minrtt", 1 << 24)
            });
            world.largest = largest;
            let (took, world) = world.file(30_000_000);
            let seen = world.observe(0);
            (
                took.as_secs_f64(),
                seen.recoveries,
                world.hosts[0].paths(&ID)[0].as_ref().unwrap().packet,
            )
        };
        let (usual, probed) = (run(None, usize::MAX), run(Some(1452), 1400));
        assert!((1300..=1400).contains(&probed.2), "{cc}: packets of {} bytes", probed.2);
        assert!(usual.1 >= 3 && probed.1 + 1 >= usual.1, "{cc}: {probed:?} beside {usual:?}");
        assert!(probed.0 < usual.0 * 1.02, "{cc}: {probed:?} beside {usual:?}");
    }
}

/// Packets fill the frames of Ethernet, and of PPPoE, whose frames are eight bytes smaller, nearly:
/// the headers of IP and UDP are 28 bytes with IPv4 and 48 with IPv6.
#[test]
fn packets_are_as_large_as_the_path_carries() {
    let ways = [way(20.0, 10, 64_000)];
    for (is_ipv6, frame, least) in
        [(false, 1500, 1472), (true, 1500, 1452), (false, 1492, 1456), (true, 1492, 1440)]
    {
        let settings = |is_server| HostSettings {
            paths: vec![ConnectionSettings {
                packet_max: Some(1452),
                ..ConnectionSettings::lasting(1200)
            }],
            ..settings(is_server, 1, "bbr", "minrtt", 1 << 24)
        };
        let mut world = World::over(if is_ipv6 { address_v6 } else { address }, &ways, settings);
        world.largest = if is_ipv6 { frame - 48 } else { frame - 28 };
        let largest = world.largest;
        let (_, world) = world.file(5_000_000);
        for host in &world.hosts {
            let packet = host.paths(&ID)[0].as_ref().unwrap().packet;
            let told = format!("IPv6 {is_ipv6}, frames of {frame} bytes: packets of {packet}");
            assert!((least..=largest).contains(&usize::from(packet)), "{told}");
        }
    }
}

/// One link over IPv4 and one over IPv6: each finds a size of packets of its own, and a stream's data,
/// which is cut for the smaller one, passes from one to the other.
#[test]
fn a_bundle_spans_both_versions_of_ip() {
    let mixed = |end, path| if path == 0 { address(end, path) } else { address_v6(end, path) };
    let mut lossy = way(20.0, 10, 64_000);
    lossy.loss = 0.01;
    let ways = [lossy, way(20.0, 30, 64_000)];
    let settings = |is_server| HostSettings {
        paths: vec![
            ConnectionSettings {
                packet_max: Some(1452),
                ..ConnectionSettings::lasting(1200)
            };
            2
        ],
        ..settings(is_server, 2, "bbr", "just-in-time", 1 << 24)
    };
    let (took, world) = World::over(mixed, &ways, settings).file(20_000_000);
    for host in &world.hosts {
        let packets: Vec<u16> = host.paths(&ID).iter().flatten().map(|path| path.packet).collect();
        assert_eq!(packets, [1472, 1452]);
    }
    assert!(mbit(20_000_000, took) > 33.0, "{:.1} Mbit/s", mbit(20_000_000, took));
}

/// TCP's recovery lets BBR through a path that loses one packet in a hundred; QUIC's does not.
#[test]
fn bbr_bears_one_percent_of_loss() {
    let cell = Cell {
        mbit: 300.0,
        one_way_ms: 50,
        buffer: 4_000_000,
        loss: 0.01,
        megabytes: 50.0,
        cc: "bbr",
    };
    let (ours, theirs) = (cell.over_quic(), cell.simulated());
    println!("{ours:?} {theirs:?}");
    assert!((0.9..1.1).contains(&(ours.0 / theirs.0)), "{ours:?} beside {theirs:?}");
    // Both leave start-up although holes fill the receive window.
    assert!((0.67..1.5).contains(&(ours.1 / theirs.1)), "{ours:?} beside {theirs:?}");
}

fn mbit(bytes: u64, took: Time) -> f64 {
    bytes as f64 * 8.0 / took.as_secs_f64() / 1e6
}

/// The goals of `knee bond`, under a virtual clock.
#[test]
fn two_links_together() {
    let two = [way(10.0, 10, 25_000), way(5.0, 10, 20_000)];
    for cc in ["cubic", "bbr"] {
        let (took, _) = World::new(&two, cc, "just-in-time", 1 << 24).file(20_000_000);
        println!("{cc}: 20 MB over 10 + 5 Mbit/s {:.2} Mbit/s", mbit(20_000_000, took));
        assert!(mbit(20_000_000, took) >= 14.0, "{cc}: {took:?}");

        let uneven = [way(10.0, 5, 20_000), way(1.0, 100, 50_000)];
        let (both, _) = World::new(&uneven, cc, "just-in-time", 1 << 24).file(1_000_000);
        let (one, _) = World::new(&uneven[..1], cc, "just-in-time", 1 << 24).file(1_000_000);
        println!("{cc}: 1 MB over uneven links {both:?}, over the better one {one:?}");
        assert!(both.as_secs_f64() <= one.as_secs_f64() * 1.02, "{cc}: {both:?} beside {one:?}");

        let dead = Way { down: vec![(Time::from_secs(2), Time::from_secs(60))], ..two[0].clone() };
        let ways = [dead, two[1].clone()];
        let (took, _) = World::new(&ways, cc, "just-in-time", 1 << 24).file(5_000_000);
        println!("{cc}: 5 MB, first link dead at 2 s {took:?}");
        assert!(took <= Time::from_secs(5), "{cc}: {took:?}");

        let away = Way { down: vec![(Time::from_secs(2), Time::from_secs(6))], ..two[0].clone() };
        let ways = [away, two[1].clone()];
        let (took, _) = World::new(&ways, cc, "just-in-time", 1 << 24).file(20_000_000);
        println!("{cc}: 20 MB, back at 6 s {took:?}");
        // The bound would be 13.4 s, but probes back off while the link is away.
        assert!(took <= Time::from_millis(14_800), "{cc}: {took:?}");
    }
}

/// The same seed gives the same run: keys are generated anew, without effect on timing.
#[test]
fn a_run_is_repeated() {
    let ways = [Way { loss: 0.01, ..way(10.0, 10, 25_000) }, way(5.0, 10, 20_000)];
    let run = || {
        let (took, world) = World::new(&ways, "cubic", "minrtt", 1 << 20).file(2_000_000);
        let seen = [0, 1].map(|path| world.observe(path));
        (took, seen.map(|seen| (seen.sent_packets, seen.lost_packets, seen.delivered)))
    };
    assert_eq!(run(), run());
}

/// Hosts with one key and different streams draw different numbers, so that flows do not probe at the
/// same times.
#[test]
fn hosts_with_different_streams_draw_different_numbers() {
    let ways = [way(10.0, 10, 25_000), way(10.0, 10, 25_000)];
    let keys = [(); 2].map(|()| KeyPair::generate().unwrap());
    let run = |cc: &str, stream: u64| -> [Vec<Option<Rate>>; 2] {
        let mut world = World::new(&ways, cc, "minrtt", 1 << 20);
        for end in 0..2 {
            let mut rng = ChaCha8Rng::seed_from_u64(end as u64);
            rng.set_stream(stream << 40);
            let settings = settings(end == 1, 2, cc, "minrtt", 1 << 20);
            let peers = [keys[1 - end].public()];
            world.hosts[end] =
                Host::new(settings, &keys[end], &peers, Instant::now(), &rng).unwrap();
        }
        let paths = [0, 1].map(|path| (path, address(1, path), 0));
        world.hosts[0].open(Time::ZERO, ID, &paths).unwrap();
        let stream = world.hosts[0].bundle(&ID).unwrap().open(Class::Normal).unwrap();
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..200 {
            world.hosts[0].bundle(&ID).unwrap().write(stream, &[0; 1 << 16]);
            world.for_a_while(Time::from_millis(20));
            let controls = world.hosts[0].controls(&ID);
            for (rates, control) in rates.iter_mut().zip(controls.iter().flatten()) {
                rates.push(control.observe().decision.pacing_rate);
            }
        }
        rates
    };
    for cc in ["bbr", "vivace"] {
        let [first, second] = [1, 2].map(|stream| run(cc, stream));
        assert!(first == run(cc, 1), "{cc}: the same stream draws the same");
        assert!(first[0] != second[0] && first[1] != second[1], "{cc} draws the same twice");
    }
}

/// A peer with a different key is refused at either end, and learns nothing.
#[test]
fn strangers_are_refused() {
    let keys = [(); 3].map(|()| KeyPair::generate().unwrap());
    for (client_pins, server_pins) in [(2, 0), (1, 2)] {
        let mut world = World::new(&[way(10.0, 10, 25_000)], "cubic", "minrtt", 1 << 20);
        let pinned = [client_pins, server_pins];
        for end in 0..2_usize {
            let rng = ChaCha8Rng::seed_from_u64(end as u64);
            let settings = settings(end == 1, 1, "cubic", "minrtt", 1 << 20);
            let pins = [keys[pinned[end]].public()];
            world.hosts[end] =
                Host::new(settings, &keys[end], &pins, Instant::now(), &rng).unwrap();
        }
        world.hosts[0].open(Time::ZERO, ID, &[(0, address(1, 0), 0)]).unwrap();
        while world.now < Time::from_secs(3) && world.told.len() < 2 {
            world.step();
        }
        assert!(world.told.iter().any(|told| told.contains("Lost")), "{:?}", world.told);
        assert!(!world.told.iter().any(|told| told.contains("Accepted")), "{:?}", world.told);
        assert_eq!(world.received, 0);
    }
}

fn tells(told: &[String], end: usize, what: &str) -> bool {
    told.iter().any(|line| line.contains(&format!(" {end} ")) && line.contains(what))
}

#[test]
fn a_link_is_up_once_the_server_has_said_so() {
    let (mut world, _) = patient();
    world.connect(0);
    let told = world.for_a_while(Time::from_secs(1));
    let at = |end: usize| told.iter().position(|t| t.contains(&format!(" {end} Joined"))).unwrap();
    assert!(at(1) < at(0), "{told:?}");
    assert!(tells(&told, 1, "Accepted"), "{told:?}");
    // A second connection for the same path replaces the first.
    world.connect(0);
    world.connect(1);
    world.for_a_while(Time::from_secs(1));
    for host in &world.hosts {
        let labels: Vec<_> =
            host.paths(&ID).into_iter().flatten().filter(|p| p.is_up).map(|p| p.label).collect();
        assert_eq!(labels, ["link0", "link1"]);
    }
}

#[test]
fn a_bundle_without_links_waits_and_then_is_over() {
    let (mut world, _) = patient();
    world.connect(0);
    world.for_a_while(Time::from_secs(1));
    let now = world.now;
    world.hosts[0].disconnect(now, &ID, 0);
    world.for_a_while(Time::from_secs(2));
    assert_eq!(world.hosts.each_ref().map(|host| host.bundles().count()), [1, 1]);
    // In time, so the same bundle continues.
    world.connect(1);
    let told = world.for_a_while(Time::from_secs(1));
    assert!(tells(&told, 1, "Joined") && !tells(&told, 1, "Accepted"), "{told:?}");
    let now = world.now;
    world.hosts[0].disconnect(now, &ID, 1);
    let told = world.for_a_while(Time::from_secs(4));
    assert!(tells(&told, 0, "Ended") && tells(&told, 1, "Ended"), "{told:?}");
    assert_eq!(world.hosts.each_ref().map(|host| host.bundles().count()), [0, 0]);
}

#[test]
fn a_server_that_was_restarted_says_that_the_bundle_is_gone() {
    let (mut world, keys) = patient();
    world.connect(0);
    world.for_a_while(Time::from_secs(1));
    world.hosts[1] = patient_host(1, &keys);
    world.connect(1);
    let told = world.for_a_while(Time::from_secs(1));
    assert!(tells(&told, 0, "Refused") && tells(&told, 0, "Ended"), "{told:?}");
    assert!(!tells(&told, 1, "Accepted"), "{told:?}");
}

/// A server that comes back after a crash tells its clients at once, not after the timeout of a
/// silent link.
#[test]
fn a_server_that_crashed_resets_what_it_does_not_know() {
    let (mut world, keys) = patient();
    world.connect(0);
    world.for_a_while(Time::from_secs(1));
    world.hosts[1] = patient_host(1, &keys);
    let bundle = world.hosts[0].bundle(&ID).unwrap();
    let stream = bundle.open(Class::Normal).unwrap();
    bundle.write(stream, &[0; 100]);
    let told = world.for_a_while(Time::from_millis(500));
    assert!(tells(&told, 0, "Lost") && tells(&told, 0, "reset"), "{told:?}");
}

/// On the ground `quic` too, where a server forgets nothing by itself: it may have had thousands.
#[test]
fn an_eager_client_ends_the_bundle_at_the_server() {
    let (_, mut world) = World::new(&[way(10.0, 10, 25_000)], "cubic", "minrtt", 1 << 20).file(1);
    let now = world.now;
    world.hosts[0].close(now, &ID);
    world.for_a_while(Time::from_secs(5));
    assert_eq!(world.hosts.each_ref().map(|host| host.bundles().count()), [0, 0]);
}

#[test]
fn a_bundle_that_one_end_closes_is_over_at_the_other() {
    for end in 0..2 {
        let (mut world, _) = patient();
        world.connect(0);
        world.for_a_while(Time::from_secs(1));
        let now = world.now;
        world.hosts[end].close(now, &ID);
        let told = world.for_a_while(Time::from_secs(1));
        assert!(tells(&told, 1 - end, "Ended"), "{told:?}");
    }
}

/// A client that does not hear of the end of its bundle, and joins it again with another link, begins
/// anew.
#[test]
fn a_bundle_that_is_being_closed_takes_no_link() {
    let mut ways = [way(10.0, 10, 25_000), way(5.0, 10, 20_000)];
    ways[0].down = vec![(Time::from_secs(1), Time::from_secs(2))];
    let mut world = World::new(&ways, "cubic", "minrtt", 1 << 20);
    let keys = [(); 2].map(|()| KeyPair::generate().unwrap());
    world.hosts = [0, 1].map(|end| patient_host(end, &keys));
    world.connect(0);
    world.for_a_while(Time::from_secs(1));
    let now = world.now;
    world.hosts[1].close(now, &ID);
    world.connect(1);
    let told = world.for_a_while(Time::from_millis(500));
    assert!(!tells(&told, 0, "Joined") && tells(&told, 0, "Ended"), "{told:?}");
    world.connect(1);
    let told = world.for_a_while(Time::from_millis(500));
    assert!(tells(&told, 1, "Accepted") && tells(&told, 0, "Joined"), "{told:?}");
}

/// What a transfer adds to its bytes: headers in each packet of 1,500 (IP 20, UDP 8, QUIC's short
/// header 3 and the receiver's connection ID, its tag 16, DATAGRAM 3, the bundle 8), and
/// acknowledgements of what the other end acknowledges, a packet of some 70 bytes for 32 of data.
/// The ID has 8 bytes at a server, and 2 at a client: packets to it are 6 bytes smaller.
#[test]
fn a_transfer_adds_little_to_its_bytes() {
    const BYTES: u64 = 50_000_000;
    let ways = [way(100.0, 25, 4_000_000), way(100.0, 25, 4_000_000)];
    for (sender, headers) in [(0, 66), (1, 60)] {
        let mut world = World::new(&ways, "bbr", "minrtt", 1 << 24);
        world.sender = sender;
        let (_, world) = world.file(BYTES);
        assert_eq!((0..2).map(|path| world.observe(path).lost_packets).sum::<u64>(), 0);
        let packets = BYTES.div_ceil(1500 - headers);
        let bound = packets * 1500 + packets / 32 * 100;
        let sent: u64 = world.carried[sender].iter().sum();
        assert!(sent <= bound, "{sent} bytes from end {sender}, more than {bound}");
        assert!(sent > packets * 1500, "{sent} bytes from {sender}, fewer than its packets have");
    }
}

/// A client may have many connections, such as one for each transfer on the ground `quic`, although
/// their IDs are short.
#[test]
fn a_client_opens_many_connections() {
    const COUNT: u8 = 200;
    let ways = [way(100.0, 10, 1_000_000)];
    let mut world = World::between(&ways, |is_server| HostSettings {
        bundles_of_a_key: usize::MAX,
        ..settings(is_server, 1, "cubic", "minrtt", 1 << 20)
    });
    for number in 0..COUNT {
        // Not the one that the world opens.
        let id = [number, 0].repeat(8).try_into().unwrap();
        world.hosts[0].open(Time::ZERO, id, &[(0, address(1, 0), 0)]).unwrap();
    }
    let told = world.for_a_while(Time::from_secs(5));
    let accepted = told.iter().filter(|event| event.contains(" 1 Accepted")).count();
    assert_eq!(accepted, usize::from(COUNT) + 1);
    assert!(told.iter().all(|event| !event.contains("Lost")), "{told:?}");
}

/// Creates a world with the controller and scheduler of `knee bond`, whose server sends over two links
/// of 100 Mbit/s and 25 ms; a stream may always buffer `buffer` bytes.
fn two_fast_links(buffer: u64) -> World {
    let ways = [way(100.0, 25, 625_000), way(100.0, 25, 625_000)];
    let mut world = World::between(&ways, |is_server| {
        let mut settings = settings(is_server, 2, "bbr", "just-in-time", 1 << 24);
        let controller = settings.congestion.controller;
        settings.congestion.controller = controller.with("probe_rtt_gain", Value::Number(0.5));
        settings.buffer = buffer;
        settings
    });
    world.sender = 1;
    world
}

/// The goal of `knee bond` for a minute over two links of 100 Mbit/s, without what processors cost.
#[test]
#[ignore = "takes long: .ci/night random"]
fn a_minute_over_two_fast_links() {
    const BYTES: u64 = 1_400_000_000;
    let (took, world) = two_fast_links(4 << 20).file(BYTES);
    let lost: u64 = (0..2).map(|path| world.observe(path).lost_packets).sum();
    println!("{:.2} Mbit/s, {lost} packets lost", mbit(BYTES, took));
    assert!(mbit(BYTES, took) >= 187.0, "{took:?}");
}

/// When the queues overflow for the first time, what arrives behind the losses stays buffered, so
/// BBR's startup needs more than a stream may always buffer. A full buffer is a limit of the
/// application, from which BBR learns nothing about the path, so that it would stay in startup.
#[test]
fn startup_is_not_limited_by_the_buffer() {
    const BYTES: u64 = 50_000_000;
    let lost = |buffer| {
        let (_, world) = two_fast_links(buffer).file(BYTES);
        (0..2).map(|path| world.observe(path).lost_packets).sum::<u64>()
    };
    assert_eq!(lost(4 << 20), lost(8 << 20));
}

/// The plan of a scheduler such as DAPS is for a set of paths.
#[test]
fn a_scheduler_is_told_of_paths_that_come_and_go() {
    let mut ways = [way(10.0, 10, 25_000), way(5.0, 10, 20_000)];
    // Silent for a while, and so suspect.
    ways[1].down = vec![(Time::from_secs(2), Time::from_secs(3))];
    let mut world = World::new(&ways, "cubic", "daps", 1 << 20);
    while world.hosts[0].bundle(&ID).is_none() {
        world.step();
    }
    let decisions = world.hosts[0].decisions(&ID).unwrap();
    decisions.want(true);
    let id = world.hosts[0].bundle(&ID).unwrap().open(Class::Normal).unwrap();
    let changes = |world: &mut World, until: Time| -> Vec<String> {
        let chunk = vec![0_u8; 65_536];
        let mut lines = String::new();
        while world.now < until {
            let bundle = world.hosts[0].bundle(&ID).unwrap();
            while bundle.write(id, &chunk) > 0 {}
            world.step_to(until);
            for trace in decisions.take().traces {
                lines.push_str(&trace.to_string());
            }
        }
        lines.lines().filter(|line| line.starts_with("changed")).map(str::to_owned).collect()
    };
    // Once for each path, at most, and for the new scheduler of the recording.
    assert!((1..=3).contains(&changes(&mut world, Time::from_secs(2)).len()));
    let silent = changes(&mut world, Time::from_secs(6));
    assert_eq!(silent.len(), 2, "suspect, and back: {silent:#?}");
    world.hosts[0].disconnect(world.now, &ID, 1);
    let gone = changes(&mut world, Time::from_secs(7));
    assert_eq!(gone.len(), 1, "{gone:#?}");
}

/// Returns the rate of a file of 60 MB at 100 Mbit/s between ends that run once per `turn`, Mbit/s.
fn rate_of_busy_ends(turn: Time) -> f64 {
    let mut world = World::new(&[way(100.0, 25, 625_000)], "bbr", "minrtt", 16 << 20);
    world.turn = turn;
    mbit(60_000_000, world.file(60_000_000).0)
}

/// A burst of BBR takes about a millisecond, so an end that sent one per turn would reach half of its
/// rate or less, and BBR would take that for the rate of the path.
#[test]
fn busy_ends_keep_the_pace() {
    let exact = rate_of_busy_ends(Time::ZERO);
    for turn in [1, 2, 4].map(Time::from_millis) {
        let busy = rate_of_busy_ends(turn);
        assert!(busy > 0.97 * exact, "{busy:.1} of {exact:.1} Mbit/s with a turn each {turn}");
    }
}

#[test]
fn what_a_pause_delayed_does_not_all_leave_at_once() {
    let mut world = World::new(&[way(100.0, 25, 625_000)], "bbr", "minrtt", 16 << 20);
    while world.hosts[0].bundle(&ID).is_none() {
        world.step();
    }
    let id = world.hosts[0].bundle(&ID).unwrap().open(Class::Normal).unwrap();
    let chunk = vec![0_u8; 65_536];
    let run = |world: &mut World, until: Time| {
        while world.now < until {
            let bundle = world.hosts[0].bundle(&ID).unwrap();
            while bundle.write(id, &chunk) > 0 {}
            world.step_to(until);
        }
    };
    run(&mut world, Time::from_secs(3));
    world.next_turn[0] = world.now + Time::from_millis(50);
    let end = world.next_turn[0];
    run(&mut world, end);
    let before = world.carried[0][0];
    world.work(0);
    let (burst, rate) =
        (world.carried[0][0] - before, world.observe(0).decision.pacing_rate.unwrap());
    let ten_ms = rate.as_bits_per_second() / 8 / 100;
    assert!((ten_ms * 9 / 10..=ten_ms + 40_000).contains(&burst), "{burst} B, {ten_ms} B in 10 ms");
}
