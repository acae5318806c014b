//! BBRv3 over a path: the example tests of draft-ietf-ccwg-bbr-06 (appendix,
//! "BBR Example Test Cases"), with numbers, as far as they look only at what a
//! controller shows. Those that look inside are in `src/bbr3/tests.rs`, those
//! with loss recovery in `knee-sim/tests/it/bbr3.rs`.
use crate::pipe::seen::bandwidth;
use crate::pipe::{MSS, Net, Path, Seen, controller};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

const MBIT: u64 = 1_000_000;

fn secs(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn start(path: Path, name: &str, seed: u64) -> Net {
    let mut net = Net::new(path);
    net.add(controller(name, seed), Time::ZERO, Time::MAX);
    net
}

fn collect(net: &mut Net, until: Time) -> Vec<Seen> {
    let mut all = Vec::new();
    net.run(until, |seen| all.push(*seen));
    all
}

/// Runs until an acknowledgement is `wanted`; returns the time and all
/// acknowledgements up to it.
fn wait(net: &mut Net, from: Time, wanted: impl Fn(&Seen) -> bool) -> (Time, Vec<Seen>) {
    let mut all: Vec<Seen> = Vec::new();
    let mut now = from;
    for _ in 0..400_000 {
        now += Time::from_micros(500);
        let known = all.len();
        net.run(now, |seen| all.push(*seen));
        if let Some(found) = all[known..].iter().position(&wanted) {
            all.truncate(known + found + 1);
            return (now, all);
        }
    }
    panic!("never seen: {:?}", all.last());
}

/// Runs until the controller shows `phase`.
fn until(net: &mut Net, phase: &str, from: Time) -> (Time, Vec<Seen>) {
    wait(net, from, |seen| seen.state.phase == phase)
}

/// Runs until the controller shows another phase: the next phase may last no
/// longer than the acknowledgement on which it begins.
fn past(net: &mut Net, phase: &str, from: Time) -> (Time, Vec<Seen>) {
    wait(net, from, |seen| seen.state.phase != phase)
}

/// Without PROBE_RTT, which could come in between.
fn undisturbed(path: Path) -> Net {
    let selection = Selection::named("bbr3").with("probe_rtt", Value::Switch(false));
    let mut net = Net::new(path);
    net.add(build(&selection, crate::pipe::init(1)).unwrap(), Time::ZERO, Time::MAX);
    net
}

fn phases(all: &[Seen]) -> Vec<&'static str> {
    let mut phases: Vec<&str> = all.iter().map(|seen| seen.state.phase).collect();
    phases.dedup();
    phases
}

/// Returns the time from the first acknowledgement in `phase` to the last consecutive one.
fn lasts(all: &[Seen], phase: &str) -> Time {
    let first = all.iter().position(|seen| seen.state.phase == phase).expect("never in the phase");
    let end = all[first..].iter().position(|seen| seen.state.phase != phase);
    let end = end.map_or(all.len() - 1, |end| first + end);
    all[end].now - all[first].now
}

/// 100 Mbit/s, 100 ms.
fn path() -> Path {
    Path::new(100 * MBIT, 100)
}

fn slower(path: Path, factor: f64) -> Path {
    Path { rate: (path.rate as f64 * factor) as u64, ..path }
}

fn with_paths_of_many_kinds(mut test: impl FnMut(Path)) {
    for (mbit, rtt) in [(100, 100), (10, 20), (1000, 10), (2, 400)] {
        test(Path::new(mbit * MBIT, rtt));
    }
}

/// "Exiting STARTUP on Bandwidth Plateau".
#[test]
fn startup_ends_on_a_plateau_within_two_per_cent() {
    with_paths_of_many_kinds(|path| {
        let mut net = start(path, "bbr3", 1);
        let (_, all) = until(&mut net, "drain", Time::ZERO);
        let last = all.last().unwrap();
        let found = bandwidth(last) / path.payload_rate();
        assert!((0.98..1.02).contains(&found), "{found} of {} bit/s", path.rate);
        // Three rounds without growth, after the doubling ones: by then the
        // queue holds up to a BDP.
        let full = all.iter().find(|seen| bandwidth(seen) > 0.95 * path.payload_rate()).unwrap();
        let after = (last.now - full.now).as_secs_f64() / path.rtt.as_secs_f64();
        assert!((2.0..8.0).contains(&after), "{after} RTTs after the plateau");
        let gain = last.state.pacing_gain;
        assert_eq!(gain, Some(0.5));
    });
}

/// "Exiting STARTUP on Loss When Application-Limited".
#[test]
fn startup_ends_on_loss_although_the_application_limits() {
    let limited = Path { application: Some(5_000_000), ..path() };
    let lossy = Path { drop_every: Some(12), ..limited };
    let mut net = start(limited, "bbr3", 1);
    let before = collect(&mut net, secs(3));
    assert_eq!(phases(&before), ["startup"]);
    net.set_path(lossy);
    let (end, all) = past(&mut net, "startup", secs(3));
    // Nothing has to be drained.
    assert!(all.last().unwrap().state.phase.starts_with("probe_bw"), "{:?}", all.last());
    // The loss is seen after one round, and its rate after the next.
    assert!(end < secs(3) + path().rtt.scale(4.0), "{end:?}");
    // 1 % loss in as many ranges is not enough.
    let mut net = start(Path { drop_every: Some(100), ..limited }, "bbr3", 1);
    assert_eq!(phases(&collect(&mut net, secs(4))), ["startup"]);
}

/// "Exiting DRAIN Based on Inflight".
#[test]
fn drain_ends_with_a_bdp_in_flight() {
    with_paths_of_many_kinds(|path| {
        let mut net = undisturbed(path);
        let (drained, _) = until(&mut net, "drain", Time::ZERO);
        let (_, all) = past(&mut net, "drain", drained);
        let (last, before) = all.split_last().unwrap();
        let bdp = path.bdp().max(4.0 * MSS as f64).max(3.0 * 2.0 * MSS as f64);
        let room = 1.02 * bdp.max(path.payload_rate() * 3e-3);
        assert!((last.in_flight as f64) <= room, "{} of {room}", last.in_flight);
        assert!(before.iter().all(|seen| seen.in_flight as f64 > 0.97 * bdp));
        assert!(lasts(&all, "drain") < path.rtt.scale(3.0));
    });
}

/// "Exiting DRAIN Based on Time": the rate falls by 10 % when DRAIN begins.
#[test]
fn drain_ends_after_three_rounds() {
    let gentle = Selection::named("bbr3").with("drain_gain", Value::Number(0.9));
    for (selection, rounds) in
        [(gentle.clone(), 3), (gentle.with("drain_rounds", Value::Number(1.0)), 1)]
    {
        let mut net = Net::new(path());
        net.add(build(&selection, crate::pipe::init(1)).unwrap(), Time::ZERO, Time::MAX);
        let (drained, _) = until(&mut net, "drain", Time::ZERO);
        net.set_path(slower(path(), 0.9));
        let (_, all) = past(&mut net, "drain", drained);
        let last = all.last().unwrap();
        assert!(last.in_flight as f64 > 1.1 * path().bdp(), "{}", last.in_flight);
        // One more round begins than has passed, and each round includes the queue.
        let took = (last.now - drained).as_secs_f64() / 0.2;
        assert!((f64::from(rounds)..f64::from(rounds) + 2.0).contains(&took), "{took} rounds");
    }
}

/// "Exiting PROBE_UP on Bandwidth Plateau".
#[test]
fn a_probe_ends_on_a_plateau() {
    let mut net = undisturbed(path());
    let (up, _) = until(&mut net, "probe_bw_up", Time::ZERO);
    let (_, all) = until(&mut net, "probe_bw_down", up);
    // Rounds of at least 1.25 BDP, three of them without growth.
    let took = (all.last().unwrap().now - up).as_secs_f64() / 0.1;
    assert!((3.0..7.0).contains(&took), "{took} RTTs");
    let probing = all.iter().filter(|seen| seen.state.phase == "probe_bw_up");
    assert!(probing.clone().all(|seen| seen.state.pacing_gain == Some(1.25)));
    assert!(probing.map(|seen| seen.in_flight).max().unwrap() as f64 > 1.2 * path().bdp());
}

/// "Exiting PROBE_UP on Loss When Application-Limited".
#[test]
fn a_probe_ends_on_loss_although_the_application_limits() {
    let mut net = undisturbed(path());
    let (up, all) = until(&mut net, "probe_bw_up", Time::ZERO);
    let bound = all.last().unwrap().state.slow_start_threshold;
    let limited = Path { application: Some(8_000_000), ..path() };
    net.set_path(limited);
    let quiet = collect(&mut net, up + Time::from_millis(500));
    assert_eq!(quiet.last().unwrap().state.phase, "probe_bw_up");
    net.set_path(Path { drop_every: Some(12), ..limited });
    let (_, all) = past(&mut net, "probe_bw_up", up + Time::from_millis(500));
    let last = all.last().unwrap();
    assert!(last.now < up + Time::from_millis(800), "{:?} after {up:?}", last.now);
    // The application-limited losses do not set the bound.
    assert_eq!(last.state.slow_start_threshold, bound);
}

/// "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No
/// Loss".
#[test]
fn what_the_application_limits_ends_no_phase_that_accelerates() {
    let limited = Path { application: Some(3_000_000), ..path() };
    let mut net = start(limited, "bbr3", 1);
    let all = collect(&mut net, secs(60));
    let phases = phases(&all);
    assert!(phases.iter().all(|phase| ["startup", "probe_rtt"].contains(phase)), "{phases:?}");

    let mut net = undisturbed(path());
    let (up, _) = until(&mut net, "probe_bw_up", Time::ZERO);
    net.set_path(limited);
    let all = collect(&mut net, up + secs(60));
    assert_eq!(self::phases(&all), ["probe_bw_up"]);
}

/// "Exiting PROBE_DOWN on Inflight".
#[test]
fn going_down_ends_with_a_bdp_in_flight() {
    let mut net = undisturbed(path());
    let (up, _) = until(&mut net, "probe_bw_up", Time::ZERO);
    let (down, _) = until(&mut net, "probe_bw_down", up);
    let (_, all) = until(&mut net, "probe_bw_cruise", down);
    let (last, before) = all.split_last().unwrap();
    assert!(before.iter().all(|seen| seen.state.pacing_gain == Some(0.9)));
    assert!(last.in_flight as f64 <= 1.02 * path().bdp(), "{}", last.in_flight);
    assert!(before.iter().all(|seen| seen.in_flight as f64 > 0.98 * path().bdp()));
}

/// "Exiting PROBE_DOWN After Max Time": the rate falls by 10 % when the phase
/// begins, and no queue empties.
#[test]
fn going_down_ends_when_it_is_time_to_probe() {
    let mut net = undisturbed(path());
    let (up, _) = until(&mut net, "probe_bw_up", Time::ZERO);
    let (down, _) = until(&mut net, "probe_bw_down", up);
    net.set_path(slower(path(), 0.9));
    let (refill, all) = until(&mut net, "probe_bw_refill", down);
    assert_eq!(phases(&all), ["probe_bw_down", "probe_bw_refill"]);
    let waited = (refill - down).as_secs_f64();
    assert!((1.99..3.2).contains(&waited), "{waited} s");
}

/// "Entering and Exiting PROBE_RTT".
#[test]
fn probe_rtt_comes_every_five_seconds() {
    let mut net = start(path(), "bbr3", 1);
    let all = collect(&mut net, secs(30));
    let begins: Vec<usize> = (1..all.len())
        .filter(|&i| all[i].state.phase == "probe_rtt" && all[i - 1].state.phase != "probe_rtt")
        .collect();
    assert!((4..=6).contains(&begins.len()), "{} times", begins.len());
    for pair in begins.windows(2) {
        let apart = (all[pair[1]].now - all[pair[0]].now).as_secs_f64();
        assert!((5.0..6.5).contains(&apart), "{apart} s apart");
    }
    for &begin in &begins[..begins.len() - 1] {
        let end = begin + all[begin..].iter().position(|s| s.state.phase != "probe_rtt").unwrap();
        let held = &all[begin..end];
        let half = 0.5 * path().bdp();
        assert!(held.iter().all(|seen| seen.decision.window as f64 <= 1.02 * half));
        assert!(held.iter().all(|seen| seen.decision.holds_back));
        let low = held.iter().find(|seen| seen.in_flight <= seen.decision.window).unwrap();
        let lasted = (all[end].now - low.now).as_secs_f64();
        assert!((0.2..0.45).contains(&lasted), "{lasted} s with little in flight");
        assert_eq!(all[end].state.phase, "probe_bw_cruise");
        assert!(all[end].decision.window as f64 > 1.5 * path().bdp(), "restored");
    }
    let estimates = all.iter().filter(|seen| seen.now > secs(3)).map(bandwidth);
    let lowest = estimates.fold(f64::MAX, f64::min);
    assert!(lowest > 0.97 * path().payload_rate(), "low rates in PROBE_RTT do not count");
}

/// "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn probe_rtt_is_skipped_after_silence() {
    let mut net = start(path(), "bbr3", 1);
    let (cruise, _) = until(&mut net, "probe_bw_cruise", Time::ZERO);
    net.set_path(Path { application: Some(0), ..path() });
    collect(&mut net, cruise + secs(6));
    net.set_path(path());
    net.wake(0);
    let all = collect(&mut net, cruise + secs(9));
    assert!(!all.is_empty());
    assert!(all.iter().all(|seen| seen.state.phase != "probe_rtt"), "{:?}", phases(&all));
}

fn bunched(path: Path) -> Path {
    Path { ack_bunches: Some(Time::from_millis(40)), ..path }
}

/// "Achieving Expected STARTUP Bandwidth on a Link With Aggregation": ACKs
/// every 40 ms.
#[test]
fn startup_finds_the_rate_of_a_link_with_aggregation() {
    let path = bunched(Path::new(50 * MBIT, 40));
    let mut net = start(path, "bbr3", 1);
    let (_, all) = until(&mut net, "drain", Time::ZERO);
    let last = all.last().unwrap();
    let found = bandwidth(last) / path.payload_rate();
    // A round of two bunches may include the beginning of a third.
    assert!((0.95..1.5).contains(&found), "{found}");
    let min_rtt = last.state.min_rtt.unwrap().as_secs_f64();
    let bdp = bandwidth(last) * min_rtt;
    assert!(last.decision.window as f64 > 2.0 * bdp, "{} of {bdp}", last.decision.window);
}

/// "Achieving Expected Cruise Bandwidth on a Link With Aggregation".
#[test]
fn a_link_with_aggregation_is_kept_full() {
    let plain = Path::new(50 * MBIT, 40);
    let mut net = start(plain, "bbr3", 1);
    let (cruise, all) = until(&mut net, "probe_bw_cruise", Time::ZERO);
    let before = all.last().unwrap().decision.window;
    net.set_path(bunched(plain));
    let all = collect(&mut net, cruise + secs(20));
    let (from, to) = (all[all.len() / 2], all[all.len() - 1]);
    let rate = (to.delivered - from.delivered) as f64 / (to.now - from.now).as_secs_f64();
    assert!(rate > 0.93 * plain.payload_rate(), "{}", rate / plain.payload_rate());
    let cruising = all.iter().filter(|seen| seen.state.phase == "probe_bw_cruise");
    let after = cruising.map(|seen| seen.decision.window).max().unwrap();
    // 40 ms of data at 50 Mbit/s arrive at once.
    assert!(after as f64 > before as f64 + 0.02 * plain.payload_rate(), "{before} {after}");
}

/// "Correctly Managing Sub-Packet BDPs": 500 kbit/s over 10 ms is 0.4 packets.
#[test]
fn a_path_of_less_than_a_packet_is_kept_full() {
    let tiny = Path::new(MBIT / 2, 10);
    let mut net = start(tiny, "bbr3", 1);
    let all = collect(&mut net, secs(60));
    assert!(all.iter().all(|seen| seen.decision.window >= 4 * MSS));
    let late: Vec<&Seen> = all.iter().filter(|seen| seen.now > secs(30)).collect();
    let (from, to) = (late[0], late[late.len() - 1]);
    let rate = (to.delivered - from.delivered) as f64 / (to.now - from.now).as_secs_f64();
    assert!(rate > 0.95 * tiny.payload_rate(), "{}", rate / tiny.payload_rate());
    let cruise = late.iter().filter(|seen| seen.state.phase == "probe_bw_cruise");
    for seen in cruise {
        let paced = seen.decision.pacing_rate.unwrap().as_bytes_per_second() as f64;
        assert!((0.93..1.05).contains(&(paced / tiny.payload_rate())), "{paced}");
    }
}

/// "Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached": from 10 to
/// 100 Mbit/s within 25 rounds of probing, with or without an earlier loss bound.
#[test]
fn ten_times_the_rate_is_found_in_few_rounds() {
    for drop_every in [None, Some(30)] {
        let slow = Path { buffer: 1000, drop_every, ..Path::new(10 * MBIT, 100) };
        let mut net = start(slow, "bbr3", 1);
        let (_, all) = until(&mut net, "probe_bw_cruise", Time::ZERO);
        let now = all.last().unwrap().now;
        let fast = Path { rate: 100 * MBIT, drop_every: None, ..slow };
        net.set_path(fast);
        // Packet-timed rounds, as the controller counts them.
        let (mut probing, mut round_end, mut found) = (0, 0, None);
        net.run(now + secs(60), |seen| {
            if seen.delivered >= round_end {
                round_end = seen.delivered + seen.in_flight;
                probing += u32::from(seen.state.phase == "probe_bw_up");
            }
            if bandwidth(seen) > 0.95 * fast.payload_rate() {
                found = found.or(Some(probing));
            }
        });
        let rounds = found.expect("never found");
        // At least log(10) / log(1.25) rounds.
        assert!((9..=25).contains(&rounds), "{rounds} rounds, loss {drop_every:?}");
    }
}

/// "Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down".
#[test]
fn a_tenth_of_the_rate_is_found_within_four_cycles() {
    let fast = Path { buffer: 834, ..path() };
    let mut net = start(fast, "bbr3", 1);
    let (cruise, _) = until(&mut net, "probe_bw_cruise", Time::ZERO);
    let slow = slower(fast, 0.1);
    net.set_path(slow);
    let (mut cycles, mut last, mut found) = (0, "", None);
    net.run(cruise + secs(60), |seen| {
        cycles += u32::from(seen.state.phase == "probe_bw_down" && last != "probe_bw_down");
        last = seen.state.phase;
        if bandwidth(seen) < 1.1 * slow.payload_rate() && last == "probe_bw_up" {
            found = found.or(Some(cycles));
        }
    });
    // The maximum applies while going up: there is no short-term bound in that phase.
    assert!(found.expect("never found") <= 4, "{found:?} cycles");
}

/// "Handling Token Bucket Policers".
#[test]
fn a_policer_gets_about_its_rate_and_drops_little() {
    let policed = Path { policer: Some((10 * MBIT, 150_000)), ..path() };
    for seed in 1..=3 {
        let mut net = start(policed, "bbr3", seed);
        let all = collect(&mut net, secs(60));
        let late: Vec<&Seen> = all.iter().filter(|seen| seen.now > secs(20)).collect();
        let (from, to) = (late[0], late[late.len() - 1]);
        let delivered = (to.delivered - from.delivered) as f64;
        let lost = (to.lost - from.lost) as f64;
        let allowed = Path::new(10 * MBIT, 100).payload_rate();
        let rate = delivered / (to.now - from.now).as_secs_f64() / allowed;
        assert!((0.75..1.25).contains(&rate), "{rate} of the policer's rate");
        assert!(lost / (lost + delivered) <= 0.10, "{}", lost / (lost + delivered));
    }
}

/// "Entering and Exiting PROBE_RTT During STARTUP".
#[test]
fn probe_rtt_in_startup_leads_back_to_startup() {
    let limited = Path { application: Some(3_000_000), ..path() };
    let mut net = start(limited, "bbr3", 1);
    let all = collect(&mut net, secs(7));
    assert_eq!(phases(&all), ["startup", "probe_rtt", "startup"]);
    net.set_path(path());
    let (_, all) = until(&mut net, "drain", secs(7));
    let found = bandwidth(all.last().unwrap()) / path().payload_rate();
    assert!((0.98..1.02).contains(&found), "{found}");
}

/// "Handling Application-Limited Sending During PROBE_REFILL".
#[test]
fn what_the_application_limits_does_not_lower_the_estimate() {
    let mut net = start(path(), "bbr3", 1);
    let (refill, all) = until(&mut net, "probe_bw_refill", Time::ZERO);
    let before = bandwidth(all.last().unwrap());
    net.set_path(Path { application: Some(1_000_000), ..path() });
    let (up, all) = until(&mut net, "probe_bw_up", refill);
    assert!(all.iter().all(|seen| bandwidth(seen) >= before));
    net.set_path(path());
    let (_, all) = until(&mut net, "probe_bw_cruise", up);
    assert!(all.iter().all(|seen| bandwidth(seen) >= 0.98 * before));
}

/// A fall from 20 to 1.5 Mbit/s, in a deep buffer: the estimate follows, and
/// the queue drains.
#[test]
fn estimates_fall_with_the_rate() {
    for name in ["bbr3", "bbr3-linux", "bbr3-loss-v2"] {
        for (rtt, buffer) in
            [(10, 1_000_000), (100, 1_000_000), (400, 1_000_000), (10, 50), (100, 100), (400, 100)]
        {
            for seed in 1..=3 {
                let path = Path { buffer, ..Path::new(20 * MBIT, rtt) };
                let mut net = start(path, name, seed);
                net.run(secs(20), |_| {});
                let slow = Path { rate: 3 * MBIT / 2, ..path };
                net.set_path(slow);
                let mut late = Vec::new();
                // Each PROBE_RTT halves the rest of the queue.
                net.run(secs(200), |seen| {
                    if seen.now >= secs(160) {
                        late.push((bandwidth(seen) / slow.payload_rate(), seen.rtt));
                    }
                });
                let most = late.iter().map(|seen| seen.0).fold(0.0, f64::max);
                assert!(most < 1.15, "{name}, {rtt} ms, {buffer}, seed {seed}: {most}");
                late.sort_by_key(|seen| seen.1);
                let median = late[late.len() / 2].1;
                // Three bursts of two packets, plus two packets, are 64 ms here.
                let bound = path.rtt.scale(2.2) + Time::from_millis(64);
                assert!(median < bound, "{name}, {rtt} ms, {buffer}, seed {seed}: {median:?}");
            }
        }
    }
}

/// The initial rate comes from the first RTT: 2.77 initial windows per round
/// trip, less at most 1 %.
#[test]
fn the_first_rtt_sets_the_initial_rate() {
    for rtt in [10, 100, 400] {
        let path = Path::new(100 * MBIT, rtt);
        let mut net = start(path, "bbr3", 1);
        let first = collect(&mut net, path.rtt + Time::from_millis(2))[0];
        let paced = first.decision.pacing_rate.unwrap().as_bytes_per_second() as f64;
        let expected = 2.77 * 10.0 * MSS as f64 / path.rtt.as_secs_f64();
        assert!((0.98..1.02).contains(&(paced / expected)), "{}", paced / expected);
    }
}

/// The same seed gives the same decisions.
#[test]
fn a_run_is_its_seed() {
    let run = |seed| {
        let path = Path { buffer: 200, ..path() };
        let decisions: Vec<_> = collect(&mut start(path, "bbr3", seed), secs(10));
        format!("{:?}", decisions.iter().map(|seen| seen.decision).collect::<Vec<_>>())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
