//! BBR's parameters, each set alone, on an ideal pipe, compared with the claims
//! of their authors.
use crate::pipe::seen::{bandwidth, phases, rounds_to_forget, several, with};
use crate::pipe::{MSS, Net, Path, Seen};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

fn mean_queue_ms(all: &[Seen], path: Path) -> f64 {
    let late: Vec<f64> = all
        .iter()
        .filter(|s| s.now > Time::from_secs(3))
        .map(|s| s.rtt.as_millis_f64() - path.rtt.as_millis_f64())
        .collect();
    late.iter().sum::<f64>() / late.len() as f64
}

/// Claim A9: over 40 % less standing queue, and less again with the early exit.
#[test]
fn draining_to_the_target_shortens_the_queue() {
    let path = Path::new(10_000_000, 60);
    let plain = mean_queue_ms(&several(&Selection::named("bbr"), path, 2, 30), path);
    let drain = with("drain_to_target", Value::Switch(true));
    let drained = mean_queue_ms(&several(&drain, path, 2, 30), path);
    assert!(drained < 0.6 * plain, "{drained:.1} of {plain:.1} ms");
    let early = drain.with("probe_up_exit_early", Value::Switch(true));
    let exited = mean_queue_ms(&several(&early, path, 2, 30), path);
    assert!(exited < drained, "{exited:.1} of {drained:.1} ms");
}

/// PROBE_RTT with the early exit costs one round instead of 200 ms.
#[test]
fn early_exit_shortens_probe_rtt() {
    let path = Path::new(10_000_000, 20);
    let time_in = |selection: &Selection| {
        let all = several(selection, path, 2, 45);
        let rows = all.windows(2).filter(|w| w[1].state.phase == "probe_rtt");
        rows.map(|w| (w[1].now - w[0].now).as_secs_f64()).sum::<f64>()
    };
    let plain = time_in(&Selection::named("bbr"));
    let early = with("probe_rtt_exit_early", Value::Switch(true));
    let one = time_in(&early);
    assert!(plain > 0.6, "{plain:.2} s");
    assert!(one < 0.6 * plain, "{one:.2} of {plain:.2} s");
    // The exit of the upward probe is another switch.
    let up = time_in(&with("probe_up_exit_early", Value::Switch(true)));
    assert!((0.9 * plain..1.1 * plain).contains(&up), "{up:.2} of {plain:.2} s");
    // Three round trips are two more, each of four times in which both flows are in PROBE_RTT
    // together: with four packets of each they take what the path takes, and little more.
    let three = time_in(&early.with("probe_rtt_rounds", Value::Number(3.0)));
    let probes = 4.0;
    let round = path.rtt.as_secs_f64();
    let more = (three - one) / probes / round;
    assert!((1.8..3.5).contains(&more), "{more:.2} round trips more");
}

/// Six flows that come at different times to a path of 4 ms: alone in PROBE_RTT, each measures the
/// queue of the others; a flow that joins the others when the queue falls measures the empty path.
#[test]
fn joining_brings_flows_into_probe_rtt_together() {
    let path = Path::new(10_000_000, 4);
    let median = |join: bool| {
        let selection = Selection::named("bbr-low-delay")
            .with("probe_rtt_exit_early", Value::Switch(false))
            .with("probe_rtt_join", Value::Switch(join));
        let mut net = Net::new(path);
        for (seed, start) in [0, 3, 6, 10, 14, 25].into_iter().enumerate() {
            let flow = build(&selection, crate::pipe::init(seed as u64)).unwrap();
            net.add(flow, Time::from_secs(start), Time::MAX);
        }
        // While it is renewed, an estimate is briefly what the queue shows then.
        let mut estimates = Vec::new();
        net.run(Time::from_secs(70), |seen| {
            if seen.now > Time::from_secs(40) {
                estimates.extend(seen.state.min_rtt);
            }
        });
        estimates.sort();
        estimates[estimates.len() / 2]
    };
    let (alone, joined) = (median(false), median(true));
    // Four packets of each of six flows take 28.8 ms at the link's rate.
    assert!(joined < Time::from_millis(30), "{joined:?}, alone {alone:?}");
    assert!(alone > joined.scale(1.3), "{alone:?}, joined {joined:?}");
}

/// draft-ietf-ccwg-bbr-06, BBRProbeRTTCwndGain: with half a BDP in flight a probe of 200 ms and
/// the round in which the window is reached cost half as much as with next to nothing, and the
/// estimate of the path is as good.
#[test]
fn half_a_window_in_probe_rtt_costs_half() {
    let path = Path::new(50_000_000, 50);
    let lost = |gain: f64| {
        let selection = with("probe_rtt_gain", Value::Number(gain));
        let all = several(&selection, path, 1, 42);
        let (from, to) = (Time::from_secs(2), Time::from_secs(42));
        let at = |time| all.iter().rfind(|seen| seen.now <= time).unwrap().delivered as f64;
        let mut estimates: Vec<Time> = all
            .iter()
            .filter(|seen| seen.now > from)
            .filter_map(|seen| seen.state.min_rtt)
            .collect();
        estimates.sort();
        let estimate = estimates[estimates.len() / 2];
        let probes = all
            .windows(2)
            .filter(|w| w[1].state.phase == "probe_rtt" && w[0].state.phase != "probe_rtt");
        assert_eq!(probes.count(), 4, "with {gain}");
        (path.payload_rate() * 40.0 - (at(to) - at(from)), estimate)
    };
    let (four_packets, half) = (lost(0.0), lost(0.5));
    assert!(half.0 < 0.6 * four_packets.0, "{half:?} of {four_packets:?}");
    assert!(half.1 <= four_packets.1.scale(1.01), "{half:?}, {four_packets:?}");
}

/// Claim A8: long-RTT flows probe more often with a limit on cruising. The
/// source counts 24 and 43. A phase lasts one min_rtt: with a limit of 400 ms
/// the second phase at gain 1 is the last, and no phase is cut short.
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
    // PROBE_BW may begin anywhere in the cycle.
    for pair in list.windows(3).filter(|w| w[0].0 == "probe_bw_down" && w[1].0 == CRUISE) {
        let lasted = (pair[2].1.now - pair[1].1.now).as_secs_f64() / path.rtt.as_secs_f64();
        let cut = pair[2].0 == "probe_rtt";
        assert!(cut || (2.0..2.3).contains(&lasted), "{lasted:.2} RTT at gain 1");
    }
}

const CRUISE: &str = "probe_bw_cruise";

/// Claim A7: below 22.2 ms PROBE_RTT outlasts the filter; the first estimate
/// after it equals the one before only if it is kept.
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

/// A kept estimate must still be forgotten if ten rounds last longer than the
/// ten seconds from one PROBE_RTT to the next. At most two BDP of the old rate
/// are in flight, so that a round lasts up to 2.7 s.
#[test]
fn a_kept_estimate_follows_a_slower_link() {
    for selection in [keeping(), Selection::named("bbr-low-delay")] {
        for (seed, buffer) in [(1, 667), (2, 667), (3, 1_000_000)] {
            let path = Path { buffer, ..Path::new(20_000_000, 100) };
            let mut net = Net::new(path);
            net.add(build(&selection, crate::pipe::init(seed)).unwrap(), Time::ZERO, Time::MAX);
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
            // Two packets take 16 ms on this link; the window is two BDP.
            late.sort_by_key(|seen| seen.1);
            let median = late[late.len() / 2].1;
            assert!(median < path.rtt.scale(2.2), "{selection:?}, seed {seed}: {median:?}");
        }
    }
}

/// With a window of a few rounds, the old rate of a link is forgotten as quickly.
#[test]
fn bandwidth_is_forgotten_after_as_many_rounds_as_asked_for() {
    for window in [1, 2, 5] {
        let selection = with("bandwidth_window", Value::Number(f64::from(window)));
        let rounds = rounds_to_forget(build(&selection, crate::pipe::init(3)).unwrap());
        // The last samples of the old rate arrive up to a round later, and the
        // rounds in which the window begins and ends count too.
        assert!((window..=window + 3).contains(&rounds), "{rounds} rounds with {window}");
    }
}

/// Between probes an estimate with a short window follows what is sent, 1 %
/// less per round, and a probe restores it.
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
    // Six rounds at gain 1; a queue is left in the first.
    assert!((0.99_f64.powi(6)..0.99_f64.powi(2)).contains(&lowest(&short)), "{}", lowest(&short));
    assert!(short.iter().any(|share| *share > 0.99));
}

/// Each switch disables its part of the algorithm.
#[test]
fn parts_can_be_taken_away() {
    let off = |name: &str| with(name, Value::Switch(false));
    let policed = Path { policer: Some((10_000_000, 150_000)), ..Path::new(100_000_000, 40) };
    let all = several(&off("detect_policers"), policed, 1, 20);
    assert!(all.iter().all(|seen| seen.state.phase != "probe_bw_policed"));

    let path = Path::new(10_000_000, 60);
    let all = several(&off("probe_rtt"), path, 2, 35);
    assert!(all.iter().all(|seen| seen.state.phase != "probe_rtt"));
    // With two flows that keep a queue, the minimum is then that of ten seconds.
    let last = all.last().unwrap().state.min_rtt.unwrap();
    assert!(last > path.rtt.scale(1.1), "{last:?}");

    // The window is exactly two BDP, from estimates of the same moment.
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
