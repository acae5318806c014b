//! HyStart as in Linux, and HyStart++ (RFC 9406).
use super::choose;
use crate::pipe::MSS;
use crate::wire::Wire;
use knee_cc::build;
use knee_units::Time;

/// Larger than the gap of an ACK train (2 ms in Linux), so that only the delay counts.
const APART: Time = Time::from_millis(3);

/// Returns the phase after rounds at `base` and one at `rise` more.
fn after_a_rise(start: &str, base: Time, rise: Time) -> &'static str {
    let mut wire = Wire::new(&choose("cubic", start), 1);
    wire.connection.paced = true;
    wire.rtt = base;
    for _ in 0..3 {
        wire.round_with_gap(APART);
        assert_eq!(wire.phase(), "slow_start", "{start} at a constant RTT of {base}");
    }
    wire.rtt = base + rise;
    wire.round_with_gap(APART);
    wire.phase()
}

/// Linux: `clamp(delay_min >> 3, 4 ms, 16 ms)`; RFC 9406, section 4.2: `max(MIN_RTT_THRESH, min(RTT /
/// 8, MAX_RTT_THRESH))`, with the same numbers. HyStart++ compares with "greater or equal".
#[test]
fn a_rise_of_an_eighth_within_4_and_16_ms_is_seen() {
    let instant = Time::from_micros(1);
    for (base_ms, bound_us) in [(8, 4_000), (32, 4_000), (80, 10_000), (128, 16_000), (600, 16_000)]
    {
        let (base, bound) = (Time::from_millis(base_ms), Time::from_micros(bound_us));
        let seen = |start: &str, rise: Time| after_a_rise(start, base, rise) != "slow_start";
        assert!(!seen("hystart", bound), "{base}");
        assert!(seen("hystart", bound + instant), "{base}");
        assert!(!seen("hystart++", bound - instant), "{base}");
        assert!(seen("hystart++", bound), "{base}");
    }
}

/// Linux: `hystart_low_window` is 16 segments.
#[test]
fn hystart_does_not_look_at_a_window_below_16() {
    for (segments, seen) in [(12, false), (18, true)] {
        let mut wire = Wire::new(&choose("cubic", "hystart"), 50);
        wire.connection.in_flight = 10 * MSS;
        (10..segments).for_each(|_| wire.ack(1));
        wire.connection.window_limited = false;
        wire.rtt = Time::from_millis(100);
        for _ in 0..40 {
            wire.connection.now += APART;
            wire.ack(1);
        }
        assert_eq!(wire.phase() == "congestion_avoidance", seen, "{segments}");
    }
}

/// Linux: acknowledgements at most 2 ms apart that last longer than half the minimum RTT.
#[test]
fn a_train_of_acks_of_half_an_rtt_ends_hystart() {
    for (gap_us, seen_after) in [(1_000, Some(50_000)), (2_000, Some(50_000)), (2_001, None)] {
        let mut wire = Wire::new(&choose("cubic", "hystart"), 100);
        wire.round_with_gap(APART);
        wire.connection.in_flight = 200 * MSS;
        wire.connection.now += APART;
        wire.ack(1);
        let mut lasted = 0;
        while wire.phase() == "slow_start" && lasted < 99_000 {
            lasted += gap_us;
            wire.connection.now += Time::from_micros(gap_us);
            wire.ack(1);
        }
        match seen_after {
            // Bursts of offload lengthen a train by up to 1 ms, of which half counts; and the round
            // begins with its second acknowledgement.
            Some(half) => {
                let latest = half + 500 + 2 * gap_us;
                assert!((half..=latest).contains(&lasted), "{gap_us}: {lasted} us");
            }
            None => assert_eq!(wire.phase(), "slow_start", "{gap_us}"),
        }
    }
}

/// HyStart leaves slow start near the BDP; without it the window keeps doubling
/// until there is a loss.
#[test]
fn hystart_ends_slow_start_near_the_bdp() {
    let path = crate::pipe::Path { buffer: 2000, ..crate::pipe::Path::new(20_000_000, 60) };
    let mut net = crate::pipe::Net::new(path);
    net.add(crate::pipe::controller("cubic", 1), Time::ZERO, Time::MAX);
    let mut left_at = None;
    net.run(Time::from_secs(2), |seen| {
        left_at = left_at.or(seen.state.slow_start_threshold);
    });
    let threshold = left_at.expect("HyStart found the pipe full") as f64;
    let bdp = path.bdp();
    assert!((0.4..1.8).contains(&(threshold / bdp)), "{:.2} BDP", threshold / bdp);

    let mut net = crate::pipe::Net::new(path);
    net.add(
        build(&choose("cubic", "standard"), crate::pipe::init(1)).unwrap(),
        Time::ZERO,
        Time::MAX,
    );
    let mut queue_rtt = Time::ZERO;
    net.run(Time::from_secs(2), |seen| queue_rtt = queue_rtt.max(seen.rtt));
    assert!(queue_rtt > path.rtt * 5, "{queue_rtt:?}");
}

/// RFC 9406, with RTTs set here: an RTT increase of an eighth starts
/// conservative slow start at a quarter of the pace, and congestion avoidance
/// follows five rounds later.
#[test]
fn hystart_plus_plus_slows_down_before_it_ends_slow_start() {
    for name in ["reno", "cubic"] {
        let selection = choose(name, "hystart++");
        let mut wire = Wire::new(&selection, 100);
        wire.connection.paced = true;
        for expected in [20.0, 40.0] {
            wire.round();
            assert_eq!(wire.window(), expected, "{name}");
        }
        // An increase by 100 / 8 = 12.5 ms counts, 12 ms does not.
        wire.rtt = Time::from_millis(112);
        wire.round();
        assert_eq!(wire.window(), 80.0, "{name}");
        wire.rtt = Time::from_millis(126);
        let mut windows = Vec::new();
        while wire.controller.state().slow_start_threshold.is_none() {
            wire.round();
            windows.push(wire.window());
            assert!(windows.len() < 10, "{name} never ends: {windows:?}");
        }
        // A few samples of the first round pass at the full pace.
        let first = windows[0];
        assert!((100.0..112.0).contains(&first), "{name}: {windows:?}");
        for pair in windows[..4].windows(2) {
            assert!((1.23..1.27).contains(&(pair[1] / pair[0])), "{name}: {windows:?}");
        }
        assert!(windows.len() <= 6, "{name}: {windows:?}");
    }
}

/// RFC 9406, section 4.2: a smaller RTT in the conservative phase shows that
/// the increase was temporary.
#[test]
fn hystart_plus_plus_goes_on_after_a_spike() {
    let selection = choose("reno", "hystart++");
    let mut wire = Wire::new(&selection, 100);
    wire.connection.paced = true;
    wire.round();
    wire.rtt = Time::from_millis(130);
    wire.round();
    let slow = wire.window();
    assert!(slow < 32.0, "{slow}");
    wire.rtt = Time::from_millis(100);
    wire.round();
    let before = wire.window();
    wire.round();
    assert_eq!(wire.window(), 2.0 * before);
    assert_eq!(wire.controller.state().slow_start_threshold, None);
}

/// RFC 9406, section 4.2: without pacing at most L = 8 segments per acknowledgement.
#[test]
fn hystart_plus_plus_limits_the_step_without_pacing() {
    for (paced, expected) in [(false, 18.0), (true, 40.0)] {
        let selection = choose("reno", "hystart++");
        let mut wire = Wire::new(&selection, 100);
        wire.connection.paced = paced;
        wire.ack(30);
        assert_eq!(wire.window(), expected);
    }
}

/// The purpose (RFC 9406, section 1): fewer losses at the end of slow start without
/// delivering less. Five rounds at a quarter of the pace still triple the window.
#[test]
fn hystart_plus_plus_loses_less_in_slow_start() {
    let path = crate::pipe::Path { buffer: 500, ..crate::pipe::Path::new(20_000_000, 60) };
    let run = |start: &str| {
        let selection = choose("reno", start);
        let mut net = crate::pipe::Net::new(path);
        net.add(build(&selection, crate::pipe::init(1)).unwrap(), Time::ZERO, Time::MAX);
        let mut last = None;
        net.run(Time::from_secs(3), |seen| last = Some(*seen));
        last.unwrap()
    };
    let (with, without) = (run("hystart++"), run("standard"));
    assert!(without.lost > 500 * MSS, "{}", without.lost);
    assert!(with.lost < without.lost / 3, "{} of {}", with.lost, without.lost);
    assert!(with.delivered >= without.delivered, "{} of {}", with.delivered, without.delivered);
}
