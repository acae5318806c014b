//! BBR compared with its paper and Linux's comments, on an ideal pipe.
use crate::pipe::seen::{bandwidth, phases, round_trips, rounds_to_forget, run};
use crate::pipe::{MSS, Net, Path, Seen, controller};
use knee_cc::Recovery;
use knee_units::Time;

/// STARTUP doubles the delivery rate each round: log2(BDP / initial window)
/// rounds to the full pipe, then three without 25 % growth.
#[test]
fn startup_doubles_and_ends_after_three_rounds_without_growth() {
    let path = Path::new(100_000_000, 50);
    let all = run(path, "bbr", 3);
    let startup = phases(&all)[0];
    assert_eq!(startup.0, "startup");
    let at = |rounds: f64| {
        let time = path.rtt.scale(rounds + 0.9);
        bandwidth(all.iter().rfind(|s| s.now < time).unwrap())
    };
    for round in 1..4 {
        let growth = at(f64::from(round) + 1.0) / at(f64::from(round));
        assert!((1.7..2.4).contains(&growth), "round {round}: {growth:.2}");
    }
    let full = all.iter().find(|s| bandwidth(s) > 0.9 * path.payload_rate()).unwrap();
    let needed = (path.bdp() / (10.0 * MSS as f64)).log2();
    let rounds = full.now.as_secs_f64() / path.rtt.as_secs_f64();
    assert!(rounds < needed + 3.0, "{rounds:.1} rounds, {needed:.1} doublings");
    let waited = round_trips(all.iter().filter(|s| s.now > full.now && s.now <= startup.2.now));
    assert!((3..=4).contains(&waited), "{waited} rounds");
}

/// The excess queue in STARTUP is at most two BDP; DRAIN ends with one BDP in
/// flight (plus the quantisation budget).
#[test]
fn drain_empties_the_queue_of_startup() {
    let path = Path::new(20_000_000, 60);
    let all = run(path, "bbr", 3);
    let list = phases(&all);
    assert_eq!(list[1].0, "drain");
    let worst = all.iter().map(|s| s.rtt).max().unwrap();
    assert!(worst < path.rtt.scale(3.1), "{worst:?}");
    let left = list[1].2.in_flight as f64;
    assert!(left < path.bdp() + 12.0 * MSS as f64, "{left} of {}", path.bdp());
    assert!(left > path.bdp() * 0.9);
    assert!(list[2].0.starts_with("probe_bw"));
}

/// The first window is paced at 2/ln 2 times the window per RTT, less 1 %.
#[test]
fn initial_rate_comes_from_the_first_rtt() {
    let path = Path::new(10_000_000, 40);
    let mut bbr = controller("bbr", 1);
    let before = bbr.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
    assert!((before / (2.885 * 10.0 * MSS as f64 * 8.0 / 0.001 * 0.99) - 1.0).abs() < 0.01);
    let connection =
        knee_cc::Connection { srtt: path.rtt, min_rtt: path.rtt, mss: 1448, ..Default::default() };
    bbr.on_event(knee_cc::Event::Established, &connection);
    let after = bbr.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
    assert!((after / (2.885 * 10.0 * MSS as f64 * 8.0 / 0.04 * 0.99) - 1.0).abs() < 0.01);
}

/// PROBE_BW: 5/4 for a full min_rtt, 3/4 for at most one, then six phases at 1.
#[test]
fn gain_cycle_has_eight_phases() {
    let path = Path::new(20_000_000, 40);
    let all = run(path, "bbr", 8);
    let settled: Vec<Seen> = all.into_iter().filter(|s| s.now > Time::from_secs(2)).collect();
    let list = phases(&settled);
    let rtt = path.rtt.as_secs_f64();
    let mut cycles = 0;
    for pair in list.windows(2).skip(1).take(list.len() - 3) {
        let (phase, first, _) = pair[0];
        let lasted = (pair[1].1.now - first.now).as_secs_f64() / rtt;
        let gain = first.state.pacing_gain.unwrap();
        match phase {
            "probe_bw_up" => {
                assert_eq!(gain, 1.25);
                assert!((1.0..2.0).contains(&lasted), "up for {lasted:.2}");
                cycles += 1;
            }
            "probe_bw_down" => {
                assert_eq!(gain, 0.75);
                assert!((0.1..1.3).contains(&lasted), "down for {lasted:.2}");
            }
            "probe_bw_cruise" => {
                assert_eq!(gain, 1.0);
                assert!((6.0..6.7).contains(&lasted), "cruise for {lasted:.2}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(cycles >= 10, "{cycles}");
}

/// The first phase is drawn from all except the one below gain 1.
#[test]
fn first_phase_is_random_but_never_down() {
    let mut up = 0;
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..60 {
        let path = Path::new(10_000_000, 20);
        let mut net = Net::new(path);
        net.add(controller("bbr", seed), Time::ZERO, Time::MAX);
        let mut all = Vec::new();
        net.run(Time::from_millis(1500), |seen| all.push(*seen));
        let list = phases(&all);
        let first = list.iter().position(|p| p.0.starts_with("probe_bw")).unwrap();
        let (phase, begin, _) = list[first];
        assert_ne!(phase, "probe_bw_down", "seed {seed}");
        up += u32::from(phase == "probe_bw_up");
        if phase == "probe_bw_cruise" {
            let lasted = list[first + 1].1.now - begin.now;
            lengths.insert((lasted.as_secs_f64() / 0.0212).round() as u32);
        }
    }
    // One in seven; the others begin in any of the six cruising phases.
    assert!((2..20).contains(&up), "{up} of 60");
    assert!(lengths.len() >= 5, "{lengths:?}");
}

/// One flow fills the link with a queue of a few packets; PROBE_RTT and start-up cost 1 %.
#[test]
fn one_flow_fills_the_link() {
    for (rate, rtt) in [(10_000_000, 60), (10_000_000, 8), (100_000_000, 20), (1_000_000, 100)] {
        let path = Path::new(rate, rtt);
        let all = run(path, "bbr", 30);
        let goodput = all.last().unwrap().delivered as f64 / 30.0 / path.payload_rate();
        assert!(goodput > 0.95, "{rate} {rtt}: {goodput:.3}");
        let estimate = bandwidth(all.last().unwrap()) / path.payload_rate();
        assert!((0.97..1.03).contains(&estimate), "{rate} {rtt}: {estimate:.3}");
    }
}

/// Every ten seconds the window is four packets for at least 200 ms, then the
/// earlier window.
#[test]
fn probe_rtt_renews_the_minimum() {
    let path = Path::new(10_000_000, 60);
    let mut net = Net::new(path);
    for seed in 0..2 {
        net.add(controller("bbr", seed), Time::ZERO, Time::MAX);
    }
    let mut all = Vec::new();
    net.run(Time::from_secs(62), |seen| all.push(*seen));
    let mine: Vec<Seen> = all.into_iter().filter(|s| s.flow == 0).collect();
    let list = phases(&mine);
    let probes: Vec<_> = list.windows(2).filter(|w| w[0].0 == "probe_rtt").collect();
    assert!((5..=6).contains(&probes.len()), "{}", probes.len());
    for (i, probe) in probes.iter().enumerate() {
        let (_, first, last) = probe[0];
        let after = probe[1].1;
        assert_eq!(last.decision.window, 4 * MSS);
        assert!(after.now - first.now >= Time::from_millis(200));
        assert!(after.now - first.now < Time::from_millis(600));
        assert!(after.decision.window as f64 > 0.5 * path.bdp(), "{i}");
        assert!(after.state.min_rtt.unwrap() < Time::from_millis(68), "{i}");
    }
    for pair in probes.windows(2) {
        let gap = (pair[1][0].1.now - pair[0][0].1.now).as_secs_f64();
        assert!((9.9..10.8).contains(&gap), "{gap:.2} s");
    }
}

/// The estimate lasts ten rounds: after the link slows down, plain BBR keeps
/// the old rate for that long and no longer.
#[test]
fn bandwidth_is_forgotten_after_ten_rounds() {
    let rounds = rounds_to_forget(controller("bbr", 3));
    assert!((8..=12).contains(&rounds), "{rounds} rounds");
}

/// A policer is detected, and its rate is used instead of the rate of its bucket.
#[test]
fn policed_rate_is_detected() {
    let path = Path { policer: Some((10_000_000, 150_000)), ..Path::new(100_000_000, 40) };
    let all = run(path, "bbr", 20);
    let policed = Path::new(10_000_000, 40).payload_rate();
    let found = all.iter().find(|s| s.state.phase == "probe_bw_policed").expect("detected");
    assert!(found.now < Time::from_secs(8), "{:?}", found.now);
    let estimate = bandwidth(found) / policed;
    assert!((0.85..1.25).contains(&estimate), "{estimate:.2}");
    assert_eq!(found.state.pacing_gain, Some(1.0));
    // While the rate is in use, less than a tenth of what is sent is lost.
    let using: Vec<&Seen> = all.iter().filter(|s| s.state.phase == "probe_bw_policed").collect();
    let first = using[0];
    let last = using.iter().rev().find(|s| s.now < first.now + Time::from_secs(2)).unwrap();
    let lost = (last.lost - first.lost) as f64;
    let delivered = (last.delivered - first.delivered) as f64;
    assert!(lost / delivered < 0.15, "{:.3}", lost / delivered);
}

/// Bunched acknowledgements widen the window, by at most 100 ms of bandwidth.
#[test]
fn aggregated_acks_widen_the_window_within_bounds() {
    let rate = 40_000_000;
    let plain = Path::new(rate, 20);
    let bunched = Path { ack_every: 24, ..plain };
    let window = |path: Path| {
        let all = run(path, "bbr", 6);
        let late: Vec<u64> = all
            .iter()
            .filter(|s| s.now > Time::from_secs(3) && s.state.phase == "probe_bw_cruise")
            .map(|s| s.decision.window)
            .collect();
        let goodput = all.last().unwrap().delivered as f64 / 6.0 / path.payload_rate();
        (late.iter().sum::<u64>() as f64 / late.len() as f64, goodput)
    };
    let ((narrow, _), (wide, goodput)) = (window(plain), window(bunched));
    assert!(wide > narrow + 12.0 * MSS as f64, "{narrow} {wide}");
    assert!(wide - narrow < 0.1 * plain.payload_rate(), "{narrow} {wide}");
    assert!(goodput > 0.93, "{goodput:.3}");
}

/// With a buffer of a quarter of a BDP, losses do not stop BBR, and recovery
/// begins with packet conservation: the window is what is in flight.
#[test]
fn recovery_begins_with_packet_conservation() {
    let path = Path { buffer: 20, ..Path::new(20_000_000, 40) };
    let all = run(path, "bbr", 10);
    let mut entries = 0;
    for pair in all.windows(2) {
        if pair[0].recovery == Recovery::Open && pair[1].recovery == Recovery::Recovery {
            entries += 1;
            let acked = pair[1].delivered - pair[0].delivered;
            let conserved = pair[1].in_flight + acked;
            assert_eq!(pair[1].decision.window.max(4 * MSS), conserved.max(4 * MSS));
        }
    }
    assert!(entries > 3, "{entries}");
    let goodput = all.last().unwrap().delivered as f64 / 10.0 / path.payload_rate();
    assert!(goodput > 0.9, "{goodput:.3}");
}

/// What is conserved is packets (`bbr_set_cwnd_to_recover_or_restore`): each one that arrived lets a
/// full one leave. Counted in bytes, short packets would shrink the window with each
/// acknowledgement, and one of a few bytes would leave no room for any.
#[test]
fn conservation_counts_packets() {
    // Bytes in flight and acknowledged, and packets acknowledged.
    for (in_flight, acked, packets) in [(0, 10, 1), (700, 700, 1), (5 * MSS, MSS + 1, 2)] {
        let mut bbr = controller("bbr", 1);
        let mut connection =
            knee_cc::Connection { mss: MSS as u32, in_flight, ..Default::default() };
        connection.recovery = Recovery::Recovery;
        let sample = knee_cc::Sample {
            newly_acked: acked,
            newly_acked_segments: packets,
            newly_lost: MSS,
            ..Default::default()
        };
        let window = bbr.on_ack(&sample, &connection).window;
        assert_eq!(window, in_flight + u64::from(packets) * MSS, "{acked} acknowledged");
    }
}

/// Rates are kept in segments: with half the segment size the estimate is
/// unchanged in bits per second, and bursts are counted in new segments.
#[test]
fn a_new_segment_size_keeps_the_rate() {
    let mut bbr = controller("bbr", 1);
    let interval = Time::from_millis(40);
    let mut connection =
        knee_cc::Connection { mss: MSS as u32, srtt: interval, ..Default::default() };
    let mut ack = |connection: &mut knee_cc::Connection| {
        connection.now += interval;
        let sample = knee_cc::Sample {
            delivered: 100 * MSS,
            prior_delivered: connection.delivered,
            interval,
            newly_acked: 100 * MSS,
            newly_acked_segments: 100,
            rtt: Some(interval),
            ..Default::default()
        };
        connection.delivered += 100 * MSS;
        let decision = bbr.on_ack(&sample, connection);
        (bbr.state().bandwidth.unwrap().as_bits_per_second() as f64, decision)
    };
    let (before, _) = ack(&mut connection);
    let expected = 100.0 * MSS as f64 * 8.0 / 0.04;
    assert!((before / expected - 1.0).abs() < 1e-3, "{before} of {expected}");
    connection.mss = 700;
    let (after, decision) = ack(&mut connection);
    assert!((after / before - 1.0).abs() < 1e-3, "{after} after {before}");
    assert_eq!(decision.send_quantum % 700, 0);
}
