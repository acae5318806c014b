//! BBR with the changes from other papers, each alone, on an ideal pipe,
//! compared with its formula.
use crate::pipe::seen::{seeded, several, with};
use crate::pipe::{MSS, Path, Seen};
use knee_cc::{Selection, Value, build, not_in_kernel};
use knee_units::Time;

fn on(name: &str) -> Selection {
    with(name, Value::Switch(true))
}

fn late(all: &[Seen]) -> impl Iterator<Item = &Seen> {
    all.iter().filter(|seen| seen.now > Time::from_secs(4))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

fn queue_ms(all: &[Seen], path: Path) -> f64 {
    mean(late(all).map(|seen| seen.rtt.as_millis_f64() - path.rtt.as_millis_f64()))
}

/// Payload delivered after the fourth second, as a fraction of the link's capacity.
fn use_of(all: &[Seen], path: Path, flows: usize) -> f64 {
    let delivered = |flow| {
        let mut rows = late(all).filter(|seen| seen.flow == flow);
        let first = *rows.next().unwrap();
        let last = *rows.last().unwrap();
        (last.delivered - first.delivered) as f64 / (last.now - first.now).as_secs_f64()
    };
    (0..flows).map(delivered).sum::<f64>() / path.payload_rate()
}

fn gains(selection: &Selection, path: Path, phase: &str) -> Vec<f64> {
    let all = several(selection, path, 1, 12);
    let in_phase = late(&all).filter(|seen| seen.state.phase == phase);
    in_phase.map(|seen| seen.state.pacing_gain.unwrap()).collect()
}

/// 1 + 10 ms / RTT, and the same amount below 1.
#[test]
fn inverse_gains_go_with_the_inverse_of_the_rtt() {
    for (rtt_ms, excess) in [(20, 0.5), (40, 0.25), (80, 0.125), (400, 0.0625)] {
        let path = Path::new(20_000_000, rtt_ms);
        for (phase, expected) in [("probe_bw_up", 1.0 + excess), ("probe_bw_down", 1.0 - excess)] {
            let all = gains(&on("inverse_gains"), path, phase);
            let wrong = all.iter().find(|gain| (*gain - expected).abs() > 0.04);
            assert!(!all.is_empty() && wrong.is_none(), "{rtt_ms} ms, {phase}: {wrong:?}");
        }
    }
}

/// Each gain follows the RTTs seen since the minimum was measured: at most 1 +
/// 1/2, at least 9/8, and with a start-up queue of about a BDP 1 + 1/2 (1/2)^2.
#[test]
fn gamma_gains_go_with_the_queue() {
    let all = gains(&on("gamma_gains"), Path::new(20_000_000, 40), "probe_bw_up");
    assert!(!all.is_empty() && all.iter().all(|gain| (1.12..1.3).contains(gain)), "{all:?}");
    // A queue of 10 packets of 0.6 ms is less than a third of the RTT.
    let shallow = Path { buffer: 10, ..Path::new(20_000_000, 40) };
    let all = gains(&on("gamma_gains"), shallow, "probe_bw_up");
    assert!(!all.is_empty() && all.iter().all(|gain| *gain == 1.125), "{all:?}");
}

/// The window exceeds `2 bw min_rtt rtt / (rtt + min_rtt)` by no more than the
/// room for bursts, delayed ACKs and the probe's two packets; plain BBR's
/// exceeds it by more.
#[test]
fn the_delay_aware_window_follows_the_delay() {
    let path = Path::new(20_000_000, 40);
    let above = |selection: &Selection| {
        let all = several(selection, path, 3, 12);
        let excess =
            late(&all).filter(|seen| seen.state.phase.starts_with("probe_bw")).map(|seen| {
                let bw = seen.state.bandwidth.unwrap().as_bits_per_second() as f64 / 8.0;
                let (min, rtt) =
                    (seen.state.min_rtt.unwrap().as_secs_f64(), seen.rtt.as_secs_f64());
                (seen.decision.window as f64 - 2.0 * bw * min * rtt / (rtt + min)) / MSS as f64
            });
        (excess.fold(f64::MIN, f64::max), queue_ms(&all, path), use_of(&all, path, 3))
    };
    let (excess, queue, used) = above(&on("delay_aware_window"));
    let (plain, plain_queue, _) = above(&Selection::named("bbr"));
    assert!(excess < 16.0 && plain > 20.0, "{excess:.1} and {plain:.1} packets");
    assert!(queue < 0.8 * plain_queue, "{queue:.1} of {plain_queue:.1} ms");
    assert!(used > 0.95, "{used:.3}");
}

/// Losses in each round lower the scale to 1; without losses it stays at 2. The
/// window is the scale plus room for bursts.
#[test]
fn losses_scale_the_window() {
    let scale = |path: Path| {
        let all = several(&on("scale_window"), path, 1, 12);
        mean(late(&all).filter(|seen| seen.state.phase == "probe_bw_cruise").map(|seen| {
            let bw = seen.state.bandwidth.unwrap().as_bits_per_second() as f64 / 8.0;
            let room = 3.0 * seen.decision.send_quantum as f64;
            (seen.decision.window as f64 - room) / (bw * seen.state.min_rtt.unwrap().as_secs_f64())
        }))
    };
    let path = Path::new(50_000_000, 40);
    let quiet = scale(path);
    assert!((1.85..2.2).contains(&quiet), "{quiet:.2}");
    // 166 packets per round: one in 50 is lost.
    let lossy = scale(Path { drop_every: Some(50), ..path });
    assert!((0.8..1.3).contains(&lossy), "{lossy:.2}");
}

/// The maxima of two flows add up to more than the link (BBR's model: 1.11);
/// estimates of the mean do not, so that less is queued (in the mean of six draws,
/// which lie apart by a third).
#[test]
fn the_tobit_filter_estimates_what_there_is() {
    let path = Path::new(20_000_000, 40);
    let draw = |selection: &Selection, seed: u64| {
        let all = seeded(selection, path, seed..seed + 2, 30);
        let estimate = |flow| {
            let of_flow = late(&all).filter(|seen| seen.flow == flow);
            mean(
                of_flow.map(|seen| seen.state.bandwidth.unwrap().as_bits_per_second() as f64 / 8.0),
            ) / path.payload_rate()
        };
        [estimate(0) + estimate(1), queue_ms(&all, path), use_of(&all, path, 2)]
    };
    let draws = |selection: &Selection| -> Vec<[f64; 3]> {
        (0..6).map(|number| draw(selection, 2 * number)).collect()
    };
    let (plain, tobit) = (draws(&Selection::named("bbr")), draws(&on("tobit_filter")));
    assert!(plain[0][0] > 1.05, "{:.3}", plain[0][0]);
    assert!((0.95..1.05).contains(&tobit[0][0]), "{:.3}", tobit[0][0]);
    let [plain_queue, queue] = [&plain, &tobit].map(|all| mean(all.iter().map(|draw| draw[1])));
    let used = mean(tobit.iter().map(|draw| draw[2]));
    assert!(
        queue < 0.7 * plain_queue && used > 0.95,
        "{queue:.1} of {plain_queue:.1} ms, {used:.3}"
    );
}

/// Ten times the rate, and a tenth of it: followed within 3 s.
#[test]
fn the_tobit_filter_follows_the_link() {
    for (from, to) in [(5_000_000, 50_000_000), (50_000_000, 5_000_000)] {
        let path = Path::new(from, 40);
        let mut net = crate::pipe::Net::new(path);
        net.add(build(&on("tobit_filter"), crate::pipe::init(1)).unwrap(), Time::ZERO, Time::MAX);
        net.run(Time::from_secs(6), |_| {});
        let new = Path { rate: to, ..path };
        net.set_path(new);
        let mut estimates = Vec::new();
        net.run(Time::from_secs(12), |seen| {
            if seen.now > Time::from_secs(9) {
                let bits = seen.state.bandwidth.unwrap().as_bits_per_second() as f64;
                estimates.push(bits / 8.0 / new.payload_rate());
            }
        });
        let mean = mean(estimates.iter().copied());
        let least = estimates.iter().copied().fold(f64::MAX, f64::min);
        assert!((0.85..1.15).contains(&mean), "{from} to {to}: {mean:.3}");
        assert!(least > 0.6, "{from} to {to}: {least:.3}");
    }
}

/// `gain` packets are queued, no more: 1 MiB/s over 40 ms is more than a
/// sixteenth of the BDP. DRAIN costs two round trips in ten seconds.
#[test]
fn the_window_machine_queues_its_gain() {
    let path = Path::new(20_000_000, 40);
    let all = several(&on("window_machine"), path, 1, 30);
    let gain_ms = path.rtt.as_millis_f64() / 16.0;
    let queue = queue_ms(&all, path);
    assert!((0.3 * gain_ms..2.0 * gain_ms).contains(&queue), "{queue:.2} ms, gain {gain_ms:.2}");
    let used = use_of(&all, path, 1);
    assert!(used > 0.96, "{used:.3}");
    let largest = late(&all).map(|seen| seen.decision.window as f64).fold(0.0, f64::max);
    assert!(largest < 1.13 * path.bdp(), "{largest} of {}", path.bdp());
    assert!(all.iter().any(|seen| seen.state.phase == "drain"));
}

#[test]
fn switches_that_decide_the_same_are_refused() {
    let refused = |first: &str, second: &str| {
        let both = on(first).with(second, Value::Switch(true));
        build(&both, crate::pipe::init(1)).err().map(|error| error.to_string())
    };
    let error = refused("gamma_gains", "inverse_gains").unwrap();
    assert!(error.contains("gamma_gains and inverse_gains are mutually exclusive"), "{error}");
    assert!(refused("scale_window", "delay_aware_window").is_some());
    assert!(refused("scale_window", "shrink_window").is_some());
    let literal = with("shrink_window", Value::Text("literal".to_owned()));
    let with_decay = literal.with("shrink_decay", Value::Switch(false));
    let error = build(&with_decay, crate::pipe::init(1)).err().unwrap().to_string();
    assert!(error.contains("shrink_window = \"literal\" has no shrink_decay"), "{error}");
    let error = refused("window_machine", "shrink_window").unwrap();
    assert!(error.contains("window_machine has no shrink_window"), "{error}");
    let error = refused("window_machine", "tobit_filter").unwrap();
    assert!(error.contains("window_machine has no tobit_filter"), "{error}");
    assert!(refused("gamma_gains", "scale_window").is_none());
    assert!(refused("tobit_filter", "drain_to_target").is_none());
}

/// Changes that a kernel cannot run are named; the others are not.
#[test]
fn the_kernel_is_told_what_it_lacks() {
    for name in ["gamma_gains", "inverse_gains", "delay_aware_window", "scale_window"] {
        assert_eq!(not_in_kernel(&on(name)), Some(name));
        assert_eq!(not_in_kernel(&with(name, Value::Switch(false))), None);
    }
    assert_eq!(not_in_kernel(&on("tobit_filter")), Some("tobit_filter"));
    assert_eq!(not_in_kernel(&on("window_machine")), Some("window_machine"));
    let literal = with("shrink_window", Value::Text("literal".to_owned()));
    assert_eq!(not_in_kernel(&literal), Some("shrink_window = \"literal\""));
    let limited = Selection::named("bbr-low-delay").with("shrink_limit", Value::Number(0.25));
    assert_eq!(not_in_kernel(&limited), Some("shrink_limit"));
    assert_eq!(not_in_kernel(&on("drain_to_target")), None);
    assert_eq!(not_in_kernel(&Selection::named("bbr-low-delay")), None);
    assert_eq!(not_in_kernel(&Selection::named("cubic")), None);
}
