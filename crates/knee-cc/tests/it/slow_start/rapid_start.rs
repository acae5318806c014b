//! Rapid Start, draft-kazuho-ccwg-rapid-start-02.
use super::{choose, run};
use crate::pipe::{MSS, Path};
use crate::wire::Wire;
use knee_cc::Event;
use knee_units::Time;

/// Pacing Requirement: at most two initial windows in the first flight, at `2 IW / min_rtt`.
#[test]
fn the_first_flight_is_two_initial_windows_paced_over_an_rtt() {
    let selection = choose("cubic", "rapid-start");
    let wire = Wire::with(&selection, 100, |connection| connection.paced = true);
    assert!(wire.controller.needs().pacing);
    assert_eq!(wire.window(), 20.0);
    let rate = wire.controller.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
    let expected = 20.0 * MSS as f64 * 8.0 / 0.1;
    assert!((rate / expected - 1.0).abs() < 0.001, "{rate}");
    // A sender that cannot pace keeps the initial window.
    assert_eq!(Wire::new(&selection, 100).window(), 10.0);
}

/// Rapid Start Phase: 3x while the RTT floor is at most `min(min_rtt + 4 ms, 1.1 min_rtt)`.
#[test]
fn a_queue_of_4_ms_or_a_tenth_makes_it_double() {
    for (base_us, bound_us) in [(20_000, 2_000), (40_000, 4_000), (100_000, 4_000)] {
        for (rise_us, factor) in [(bound_us, 3.0), (bound_us + 1, 2.0)] {
            let mut wire = Wire::new(&choose("reno", "rapid-start"), base_us / 1000);
            wire.round();
            wire.rtt = Time::from_micros(base_us + rise_us);
            // The floor is that of the last round trip: the lower samples are forgotten by then.
            wire.connection.window_limited = false;
            wire.round();
            wire.round();
            wire.connection.window_limited = true;
            let before = wire.window();
            wire.round();
            assert_eq!(wire.window(), before * factor, "{base_us} us, {rise_us} us");
        }
    }
}

/// Returns the window before the first recovery, and at its beginning and end relative to that, if
/// a part of it is lost.
fn first_recovery(name: &str, part_lost: f64) -> (f64, f64, f64) {
    let mut wire = Wire::new(&choose(name, "rapid-start"), 100);
    (0..4).for_each(|_| wire.round());
    let before = wire.window();
    let lost = (before * part_lost) as u64;
    wire.connection.in_flight = before as u64 * MSS;
    wire.begin_recovery();
    let at_once = wire.window();
    // Losses are confirmed one by one, between acknowledgements.
    let arrived = before as u64 - lost;
    for number in 1..=arrived {
        wire.connection.now += Time::from_millis(1);
        wire.connection.lost = lost * number / arrived * MSS;
        wire.ack(1);
    }
    let recovered = wire.window();
    // What was lost is retransmitted and arrives, before TCP's recovery ends.
    (0..lost).for_each(|_| wire.ack(1));
    assert_eq!(wire.window(), recovered, "retransmissions count twice");
    wire.end_recovery();
    assert_eq!(wire.window(), recovered);
    assert_eq!(wire.threshold(), recovered);
    (before, at_once / before, recovered / before)
}

/// Deriving the Reduction Factors: the silence factor is 29/36 for a beta of 0.5 and 53/60 for 0.7;
/// the window ends at beta times the pipe, the rest of it being what was lost.
#[test]
fn the_first_recovery_ends_at_beta_times_the_pipe() {
    for (name, beta, silence) in [("reno", 0.5, 29.0 / 36.0), ("cubic", 0.7, 53.0 / 60.0)] {
        for (part_lost, pipe) in [(0.0, 1.0), (1.0 / 3.0, 2.0 / 3.0), (2.0 / 3.0, 1.0 / 3.0)] {
            let (before, at_once, after) = first_recovery(name, part_lost);
            assert_eq!(before, 810.0);
            assert!((at_once - silence).abs() < 0.002, "{name}: {at_once}");
            assert!((after - beta * pipe).abs() < 0.003, "{name}, {part_lost}: {after}");
        }
    }
}

/// `cwnd_before_loss * (silence - ack / 3 - 2 loss / 3)`, which is beta / 3.
#[test]
fn more_losses_than_two_thirds_reduce_no_further() {
    for (name, beta) in [("reno", 0.5), ("cubic", 0.7)] {
        let (_, _, after) = first_recovery(name, 0.9);
        assert!((after - beta / 3.0).abs() < 0.002, "{name}: {after}");
    }
}

/// The sender "MAY stop reducing" at the initial window times beta.
#[test]
fn a_tiny_pipe_keeps_half_the_initial_window() {
    let mut wire = Wire::new(&choose("reno", "rapid-start"), 100);
    wire.connection.in_flight = 10 * MSS;
    wire.begin_recovery();
    wire.connection.lost = 9 * MSS;
    wire.ack(1);
    assert_eq!(wire.window(), 5.0);
}

/// The second loss, and one after a timeout, halve the window as usual; so does a loss after the
/// first was found to be spurious.
#[test]
fn only_the_first_recovery_is_its_own() {
    let mut wire = Wire::new(&choose("reno", "rapid-start"), 100);
    (0..2).for_each(|_| wire.round());
    wire.begin_recovery();
    wire.end_recovery();
    let before = wire.window();
    wire.begin_recovery();
    assert_eq!(wire.window(), (before / 2.0).floor());

    let mut wire = Wire::new(&choose("reno", "rapid-start"), 100);
    (0..2).for_each(|_| wire.round());
    let before = wire.window();
    wire.begin_recovery();
    wire.controller.on_event(Event::SpuriousRecovery, &wire.connection);
    assert_eq!(wire.window(), before, "undone");
    wire.begin_recovery();
    assert_eq!(wire.window(), before / 2.0);
}

/// The draft's purpose: the pipe is full in fewer round trips, and what is lost in the first
/// recovery does not leave the link idle after it.
#[test]
fn the_link_is_full_earlier_than_with_standard_slow_start() {
    let path = Path::new(100_000_000, 80);
    let path = Path { buffer: (path.bdp() / MSS as f64) as usize, ack_every: 1, ..path };
    let full = |start: &str| {
        let all = run(&choose("cubic", start), path, 10);
        let delivered = |ms: u64| {
            let seen = all.iter().rev().find(|seen| seen.now <= Time::from_millis(ms)).unwrap();
            seen.delivered as f64
        };
        // Time until 3 MB have arrived, and the rate from 1.5 to 4 s.
        let done = all.iter().find(|seen| seen.delivered >= 3_000_000).unwrap().now;
        (done, (delivered(4000) - delivered(1500)) / 2.5 / path.payload_rate())
    };
    let (rapid, used) = full("rapid-start");
    let (standard, _) = full("standard");
    // From twice the window, log(3) / log(2) = 1.58 times fewer round trips until the pipe is full.
    assert!(rapid < standard - path.rtt, "{rapid}, {standard}");
    assert!(used > 0.9, "{used:.3}");
}
