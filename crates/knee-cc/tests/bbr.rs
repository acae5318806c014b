//! BBR against what its paper and Linux's comments promise, on a perfect
//! pipe.
#![allow(clippy::unwrap_used, reason = "a test ends there")]

mod pipe;

use knee_cc::{Recovery, Selection, Value, build};
use knee_units::Time;
use pipe::{MSS, Net, Path, Seen, controller};

fn run(path: Path, name: &str, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(controller(name, 7), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

fn bandwidth(seen: &Seen) -> f64 {
    seen.state.bandwidth.map_or(0.0, |b| b.as_bits_per_second() as f64 / 8.0)
}

/// Phases in order, with their first and last acknowledgement.
fn phases(all: &[Seen]) -> Vec<(&'static str, Seen, Seen)> {
    let mut list: Vec<(&'static str, Seen, Seen)> = Vec::new();
    for seen in all {
        match list.last_mut() {
            Some((phase, _, last)) if *phase == seen.state.phase => *last = *seen,
            _ => list.push((seen.state.phase, *seen, *seen)),
        }
    }
    list
}

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

/// Packet-timed round trips: what was in flight at the start of one is
/// delivered at its end.
fn round_trips<'a>(all: impl Iterator<Item = &'a Seen>) -> u32 {
    let mut ends_at = None;
    let mut rounds = 0;
    for seen in all {
        let end = *ends_at.get_or_insert(seen.delivered + seen.in_flight);
        if seen.delivered >= end {
            rounds += 1;
            ends_at = Some(seen.delivered + seen.in_flight);
        }
    }
    rounds
}

/// At most two BDP of excess queue in STARTUP; DRAIN ends with one BDP in
/// flight (and the quantisation budget).
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

/// PROBE_BW: 5/4 for a full min_rtt, 3/4 for at most one, then six at 1.
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

/// The first phase is drawn among all but the one below gain 1.
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
    // One in seven; the others begin at any of the six cruising phases.
    assert!((2..20).contains(&up), "{up} of 60");
    assert!(lengths.len() >= 5, "{lengths:?}");
}

/// One flow fills the link with a queue of a few packets, 1 % is given to
/// PROBE_RTT and start-up.
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

/// Every ten seconds four packets for at least 200 ms, then the earlier
/// window.
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

/// The estimate lasts ten rounds: after the link slows down, plain BBR holds
/// on to the old rate that long and no longer.
#[test]
fn bandwidth_is_forgotten_after_ten_rounds() {
    let path = Path::new(20_000_000, 40);
    let mut net = Net::new(path);
    net.add(controller("bbr", 3), Time::ZERO, Time::MAX);
    net.run(Time::from_secs(4), |_| {});
    let slow = Path { rate: 10_000_000, ..path };
    net.set_path(slow);
    let mut remembering = Vec::new();
    let mut forgotten = false;
    net.run(Time::from_secs(9), |seen| {
        forgotten |= bandwidth(seen) < 1.1 * slow.payload_rate();
        if !forgotten {
            remembering.push(*seen);
        }
    });
    assert!(forgotten, "the new rate is found");
    let rounds = round_trips(remembering.iter());
    assert!((8..=12).contains(&rounds), "{rounds} rounds");
}

/// A policer is found and its rate used instead of what its bucket promises.
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
    // While in use, little is lost: less than a tenth of what is sent.
    let using: Vec<&Seen> = all.iter().filter(|s| s.state.phase == "probe_bw_policed").collect();
    let first = using[0];
    let last = using.iter().rev().find(|s| s.now < first.now + Time::from_secs(2)).unwrap();
    let lost = (last.lost - first.lost) as f64;
    let delivered = (last.delivered - first.delivered) as f64;
    assert!(lost / delivered < 0.15, "{:.3}", lost / delivered);
}

/// Bunched acknowledgements widen the window, by no more than 100 ms of
/// bandwidth.
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

/// With a quarter of a BDP of buffer, losses do not stop BBR, and recovery
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

/// The five changes, each switched on alone.
fn with(name: &str, value: Value) -> Selection {
    Selection::named("bbr").with(name, value)
}

fn several(selection: &Selection, path: Path, flows: u64, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    for seed in 0..flows {
        net.add(build(selection, pipe::init(seed)).unwrap(), Time::ZERO, Time::MAX);
    }
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

fn mean_queue_ms(all: &[Seen], path: Path) -> f64 {
    let late: Vec<f64> = all
        .iter()
        .filter(|s| s.now > Time::from_secs(3))
        .map(|s| s.rtt.as_millis_f64() - path.rtt.as_millis_f64())
        .collect();
    late.iter().sum::<f64>() / late.len() as f64
}

/// Claim A9: over 40 % less standing queue, and less again.
#[test]
fn draining_to_the_target_shortens_the_queue() {
    let path = Path::new(10_000_000, 60);
    let plain = mean_queue_ms(&several(&Selection::named("bbr"), path, 2, 30), path);
    let drain = with("drain_to_target", Value::Switch(true));
    let drained = mean_queue_ms(&several(&drain, path, 2, 30), path);
    assert!(drained < 0.6 * plain, "{drained:.1} of {plain:.1} ms");
    let early = drain.with("probe_exit_early", Value::Switch(true));
    let exited = mean_queue_ms(&several(&early, path, 2, 30), path);
    assert!(exited < drained, "{exited:.1} of {drained:.1} ms");
}

/// PROBE_RTT with the early exit costs a round instead of 200 ms.
#[test]
fn early_exit_shortens_probe_rtt() {
    let path = Path::new(10_000_000, 20);
    let time_in = |selection: &Selection| {
        let all = several(selection, path, 2, 45);
        let rows = all.windows(2).filter(|w| w[1].state.phase == "probe_rtt");
        rows.map(|w| (w[1].now - w[0].now).as_secs_f64()).sum::<f64>()
    };
    let plain = time_in(&Selection::named("bbr"));
    let early = time_in(&with("probe_exit_early", Value::Switch(true)));
    assert!(plain > 0.6, "{plain:.2} s");
    assert!(early < 0.6 * plain, "{early:.2} of {plain:.2} s");
}

/// Claim A8: long-RTT flows probe more often with a limit on cruising. The
/// source counts 24 and 43. A phase lasts a min_rtt: with a limit of 400 ms
/// the second one at gain 1 is the last, and no phase is cut.
#[test]
fn limited_cruise_probes_more_often() {
    let path = Path::new(10_000_000, 240);
    let probes = |list: &[(&'static str, Seen, Seen)]| {
        list.iter().filter(|phase| phase.0 == "probe_bw_up").count()
    };
    let plain = phases(&several(&Selection::named("bbr"), path, 1, 50));
    assert!((20..=27).contains(&probes(&plain)), "{}", probes(&plain));
    let limited = with("max_cruise", Value::Text("400 ms".to_owned()));
    let list = phases(&several(&limited, path, 1, 50));
    assert!((42..=45).contains(&probes(&list)), "{}", probes(&list));
    // PROBE_BW begins anywhere in the cycle.
    for pair in list.windows(3).filter(|w| w[0].0 == "probe_bw_down" && w[1].0 == CRUISE) {
        let lasted = (pair[2].1.now - pair[1].1.now).as_secs_f64() / path.rtt.as_secs_f64();
        let cut = pair[2].0 == "probe_rtt";
        assert!(cut || (2.0..2.3).contains(&lasted), "{lasted:.2} RTT at gain 1");
    }
}

const CRUISE: &str = "probe_bw_cruise";

/// Claim A7: below 22.2 ms PROBE_RTT outlasts the filter; the first estimate
/// after it is the one of before only if it is kept.
#[test]
fn bandwidth_is_kept_over_probe_rtt() {
    let path = Path::new(10_000_000, 8);
    let lowest = |selection: &Selection| {
        let all = several(selection, path, 1, 32);
        let late = all.iter().filter(|s| s.now > Time::from_secs(5));
        late.map(bandwidth).fold(f64::MAX, f64::min) / path.payload_rate()
    };
    let kept = lowest(&keeping());
    assert!(kept > 0.97, "{kept:.3}");
    let plain = lowest(&Selection::named("bbr"));
    assert!(plain < kept, "{plain:.3} {kept:.3}");
}

fn keeping() -> Selection {
    with("keep_bw_over_probe_rtt", Value::Switch(true))
}

/// A kept estimate must still be forgotten where ten rounds last longer than
/// the ten seconds from one PROBE_RTT to the next. In flight is two BDP of the
/// old rate at most, so that a round lasts up to 2.7 s.
#[test]
fn a_kept_estimate_follows_a_slower_link() {
    for selection in [keeping(), Selection::named("bbr-low-delay")] {
        for (seed, buffer) in [(1, 667), (2, 667), (3, 1_000_000)] {
            let path = Path { buffer, ..Path::new(20_000_000, 100) };
            let mut net = Net::new(path);
            net.add(build(&selection, pipe::init(seed)).unwrap(), Time::ZERO, Time::MAX);
            net.run(Time::from_secs(20), |_| {});
            let slow = Path { rate: 1_500_000, ..path };
            net.set_path(slow);
            let mut late = Vec::new();
            net.run(Time::from_secs(120), |seen| {
                if seen.now >= Time::from_secs(80) {
                    late.push((bandwidth(seen) / slow.payload_rate(), seen.rtt));
                }
            });
            let wrong = late.iter().find(|seen| !(0.9..1.1).contains(&seen.0));
            assert!(wrong.is_none(), "{selection:?}, seed {seed}: {wrong:?}");
            // Two packets are 16 ms on this link, the window two BDP.
            late.sort_by_key(|seen| seen.1);
            let median = late[late.len() / 2].1;
            assert!(median < path.rtt.scale(2.2), "{selection:?}, seed {seed}: {median:?}");
        }
    }
}

/// With a window of two rounds the old rate of a link is forgotten as soon.
#[test]
fn bandwidth_is_forgotten_after_as_many_rounds_as_asked_for() {
    for window in [1, 2, 5] {
        let path = Path::new(20_000_000, 40);
        let mut net = Net::new(path);
        let selection = with("bandwidth_window", Value::Number(f64::from(window)));
        net.add(build(&selection, pipe::init(3)).unwrap(), Time::ZERO, Time::MAX);
        net.run(Time::from_secs(4), |_| {});
        let slow = Path { rate: 10_000_000, ..path };
        net.set_path(slow);
        let mut remembering = Vec::new();
        let mut forgotten = false;
        net.run(Time::from_secs(9), |seen| {
            forgotten |= bandwidth(seen) < 1.1 * slow.payload_rate();
            if !forgotten {
                remembering.push(*seen);
            }
        });
        assert!(forgotten, "the new rate is found");
        // The last samples of the old rate come up to a round after it, and
        // the rounds in which the window begins and ends count too.
        let rounds = round_trips(remembering.iter());
        assert!((window..=window + 3).contains(&rounds), "{rounds} rounds with {window}");
    }
}

/// Between probes an estimate that is soon forgotten follows what is sent,
/// 1 % less each round, and a probe brings it back.
#[test]
fn a_short_memory_wears_down_between_probes() {
    let path = Path::new(20_000_000, 40);
    let estimates = |window: f64| -> Vec<f64> {
        let all = several(&with("bandwidth_window", Value::Number(window)), path, 1, 9);
        let late = all.iter().filter(|s| s.now > Time::from_secs(3));
        late.map(|seen| bandwidth(seen) / path.payload_rate()).collect()
    };
    let lowest = |all: &[f64]| all.iter().copied().fold(f64::MAX, f64::min);
    let (long, short) = (estimates(10.0), estimates(1.0));
    assert!(lowest(&long) > 0.99, "{}", lowest(&long));
    // Six rounds at gain 1, in the first of which a queue is left.
    assert!((0.99_f64.powi(6)..0.99_f64.powi(2)).contains(&lowest(&short)), "{}", lowest(&short));
    assert!(short.iter().any(|share| *share > 0.99));
}

/// A connection by hand: every 10 ms an ACK for ten packets of 40 in flight,
/// a packet per millisecond, a minimum RTT of 40 ms.
struct ByHand {
    bbr: Box<dyn knee_cc::Controller>,
    connection: knee_cc::Connection,
}

const PACKETS: u64 = 10;
const IN_FLIGHT: u64 = 40 * MSS;

impl ByHand {
    /// In PROBE_BW, in the phase after this one has ended.
    fn after(phase: &str, selection: &Selection) -> ByHand {
        let mut bbr = build(selection, pipe::init(1)).unwrap();
        let rtt = Time::from_millis(40);
        let connection = knee_cc::Connection {
            mss: MSS as u32,
            mtu: pipe::MTU as u32,
            srtt: rtt,
            min_rtt: rtt,
            in_flight: IN_FLIGHT,
            ..Default::default()
        };
        bbr.on_event(knee_cc::Event::Established, &connection);
        let mut by_hand = ByHand { bbr, connection };
        by_hand.until(phase);
        while by_hand.phase() == phase {
            by_hand.ack(70 * MSS, 0, PACKETS);
        }
        by_hand
    }

    fn phase(&self) -> &'static str {
        self.bbr.state().phase
    }

    /// Ends phases by what is in flight: 70 packets are above the target of
    /// a probe.
    fn until(&mut self, phase: &str) {
        for _ in 0..2000 {
            if self.phase() == phase {
                return;
            }
            self.ack(if self.phase() == "probe_bw_up" { 70 * MSS } else { IN_FLIGHT }, 0, PACKETS);
        }
        panic!("{phase} never comes");
    }

    fn ack(&mut self, in_flight: u64, lost: u64, packets: u64) {
        let c = &mut self.connection;
        c.now += Time::from_millis(10);
        let prior_delivered = c.delivered.saturating_sub(IN_FLIGHT);
        c.delivered += packets * MSS;
        c.lost += lost * MSS;
        let sample = knee_cc::Sample {
            delivered: packets * MSS,
            prior_delivered,
            interval: Time::from_millis(10),
            rtt: Some(Time::from_millis(40)),
            newly_acked: packets * MSS,
            newly_lost: lost * MSS,
            prior_in_flight: in_flight,
            ..Default::default()
        };
        self.bbr.on_ack(&sample, c);
    }

    /// The pacing rate, in packets per millisecond before the 1 % less.
    fn pace(&self) -> f64 {
        let rate = self.bbr.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
        rate / 8.0 / (MSS as f64 * 1000.0) / 0.99
    }

    #[track_caller]
    fn paces(&self, phase: &str, expected: f64) {
        assert_eq!(self.phase(), phase);
        assert!((self.pace() / expected - 1.0).abs() < 0.003, "{}, not {expected}", self.pace());
    }
}

fn cutting() -> Selection {
    with("probe_loss_gain", Value::Number(0.7))
}

/// A probe begins.
fn at_a_probe(selection: &Selection) -> ByHand {
    let mut by_hand = ByHand::after("probe_bw_up", selection);
    by_hand.until("probe_bw_up");
    by_hand.paces("probe_bw_up", 1.25);
    by_hand
}

/// What is lost of a probe cuts the rate by the factor, once however often it
/// is lost, and the next probe starts from there. Those that lose nothing raise
/// it by their gain, up to the estimate.
#[test]
fn a_probe_that_lost_cuts_the_rate_once_and_others_raise_it() {
    let mut by_hand = at_a_probe(&cutting());
    for _ in 0..4 {
        by_hand.ack(IN_FLIGHT, 0, PACKETS);
        by_hand.paces("probe_bw_up", 1.25);
    }
    by_hand.ack(60 * MSS, 2, PACKETS); // sent in the probe; it ends with it
    by_hand.paces("probe_bw_down", 0.75 * 0.7);
    by_hand.ack(60 * MSS, 2, PACKETS);
    by_hand.paces("probe_bw_down", 0.75 * 0.7);
    by_hand.ack(IN_FLIGHT, 0, PACKETS);
    by_hand.paces("probe_bw_cruise", 0.7);
    for rate in [0.7, 0.7 * 1.25, 1.0] {
        by_hand.paces("probe_bw_cruise", rate);
        by_hand.until("probe_bw_up");
        by_hand.paces("probe_bw_up", 1.25 * rate);
        // A min_rtt, whatever is in flight.
        let began = by_hand.connection.now;
        by_hand.until("probe_bw_down");
        let lasted = by_hand.connection.now - began;
        assert_eq!(lasted, Time::from_millis(50));
        by_hand.until("probe_bw_cruise");
    }
    // Cut twice: the second cut is of the rate that the probe started from.
    for rate in [0.7, 0.7 * 0.7] {
        by_hand.until("probe_bw_up");
        for lost in [0, 0, 0, 0, 2] {
            by_hand.ack(60 * MSS, lost, PACKETS);
        }
        by_hand.paces("probe_bw_down", 0.75 * rate);
    }
}

/// Its losses also show after it; those of other data change nothing.
#[test]
fn only_what_was_sent_in_a_probe_cuts_the_rate() {
    // The first ACKs of a probe cover what was sent before it.
    let mut by_hand = at_a_probe(&cutting());
    by_hand.ack(IN_FLIGHT, 1, PACKETS);
    by_hand.until("probe_bw_down");
    by_hand.paces("probe_bw_down", 0.75);
    // 40 packets later the ACKs are for what was sent in its last moment.
    for _ in 0..3 {
        by_hand.ack(60 * MSS, 0, PACKETS);
    }
    by_hand.paces("probe_bw_down", 0.75);
    by_hand.ack(60 * MSS, 1, PACKETS);
    assert!((by_hand.pace() / 0.7 - by_hand.bbr.state().pacing_gain.unwrap()).abs() < 0.003);
    // In a cycle without losses, a loss long after the probe.
    let mut by_hand = at_a_probe(&cutting());
    by_hand.until("probe_bw_cruise");
    for _ in 0..8 {
        by_hand.ack(IN_FLIGHT, 0, PACKETS);
    }
    by_hand.ack(IN_FLIGHT, 3, PACKETS);
    by_hand.paces("probe_bw_cruise", 1.0);
    // The plain algorithm does not look at losses of probes at all.
    let mut plain = at_a_probe(&Selection::named("bbr"));
    for lost in [0, 0, 0, 0, 2] {
        plain.ack(60 * MSS, lost, PACKETS);
    }
    plain.paces("probe_bw_down", 0.75);
}

/// With a short memory the estimate falls to what the cut lets through; that
/// is no reason to cut again.
#[test]
fn a_cut_does_not_repeat_itself() {
    let both = cutting().with("bandwidth_window", Value::Number(1.0));
    let mut by_hand = at_a_probe(&both);
    for lost in [0, 0, 0, 0, 2] {
        by_hand.ack(60 * MSS, lost, PACKETS);
    }
    by_hand.until("probe_bw_cruise");
    for _ in 0..16 {
        by_hand.ack(IN_FLIGHT, 0, 7);
    }
    by_hand.paces("probe_bw_cruise", 0.7);
    by_hand.until("probe_bw_up");
    by_hand.paces("probe_bw_up", 1.25 * 0.7);
}

/// In a buffer that a probe overflows the cut leaves the link partly unused;
/// in one that it does not, nothing changes.
#[test]
fn the_cut_acts_where_probes_lose_and_nowhere_else() {
    let decisions = |selection: &Selection, path: Path| -> Vec<_> {
        several(selection, path, 1, 10).iter().map(|seen| seen.decision).collect()
    };
    let plain = Selection::named("bbr");
    let deep = Path::new(20_000_000, 40);
    assert_eq!(decisions(&cutting(), deep), decisions(&plain, deep));
    let shallow = Path { buffer: 5, ..deep };
    let share = |selection: &Selection| {
        let last = *several(selection, shallow, 1, 20).last().unwrap();
        (last.delivered as f64 / 20.0 / shallow.payload_rate(), last.lost as f64)
    };
    let ((full, lost), (cut, less)) = (share(&plain), share(&cutting()));
    assert!(lost > 0.0 && less < 0.9 * lost, "{less} of {lost}");
    // From 0.7 it takes two probes to the next loss.
    assert!(full > 0.9 && (0.7..0.95).contains(&cut), "{cut:.3}, {full:.3}");
}

/// Each part of the algorithm that a switch takes away is gone.
#[test]
fn parts_can_be_taken_away() {
    let off = |name: &str| with(name, Value::Switch(false));
    let policed = Path { policer: Some((10_000_000, 150_000)), ..Path::new(100_000_000, 40) };
    let all = several(&off("detect_policers"), policed, 1, 20);
    assert!(all.iter().all(|seen| seen.state.phase != "probe_bw_policed"));

    let path = Path::new(10_000_000, 60);
    let all = several(&off("probe_rtt"), path, 2, 35);
    assert!(all.iter().all(|seen| seen.state.phase != "probe_rtt"));
    // Of two flows that keep a queue the minimum is then that of ten seconds.
    let last = all.last().unwrap().state.min_rtt.unwrap();
    assert!(last > path.rtt.scale(1.1), "{last:?}");

    // Window of exactly two BDP, of the estimates of the same moment.
    let bunched = Path { ack_every: 24, ..Path::new(40_000_000, 20) };
    let bare = off("allow_for_bursts").with("allow_for_aggregation", Value::Switch(false));
    let excess = |selection: &Selection| {
        let all = several(selection, bunched, 1, 6);
        let cruising =
            all.iter().filter(|seen| seen.now > Time::from_secs(3) && seen.state.phase == CRUISE);
        let over = cruising.map(|seen| {
            let bdp = bandwidth(seen) * seen.state.min_rtt.unwrap().as_secs_f64();
            (seen.decision.window as f64 - 2.0 * bdp) / MSS as f64
        });
        over.fold(f64::MIN, f64::max)
    };
    let (nothing, bursts, both) =
        (excess(&bare), excess(&off("allow_for_aggregation")), excess(&Selection::named("bbr")));
    assert!((0.0..=1.0).contains(&nothing), "{nothing:.2} packets");
    assert!((6.0..20.0).contains(&bursts), "{bursts:.2} packets");
    assert!(both > bursts + 12.0, "{both:.2} packets");
}

/// Rates are kept in segments: at half the segment size the estimate is still
/// the same in bits per second, and what leaves at once are new segments.
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
