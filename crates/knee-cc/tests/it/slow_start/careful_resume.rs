//! Careful Resume, RFC 9959.
use super::{choose, run, text};
use crate::pipe::{MSS, Path};
use crate::wire::Wire;
use knee_cc::{Event, Recovery};
use knee_units::Time;

/// Returns a connection that has acknowledged its initial window; 200 packets are saved.
fn reconnoitred(name: &str) -> Wire {
    let mut wire = Wire::new(&choose(name, "careful-resume"), 100);
    wire.connection.paced = true;
    wire.connection.in_flight = 20 * MSS;
    for _ in 0..9 {
        wire.ack(1);
        assert_eq!(wire.phase(), "reconnaissance");
    }
    wire
}

/// Section 3.3: at most half the saved window, once the initial window (10 packets) has arrived; all
/// of it paced over the current RTT (section 4.3).
#[test]
fn it_jumps_to_half_the_saved_window() {
    let mut wire = reconnoitred("cubic");
    assert!(wire.controller.needs().pacing);
    assert_eq!(wire.window(), 19.0);
    wire.ack(1);
    assert_eq!((wire.phase(), wire.window()), ("unvalidated", 100.0));
    let rate = wire.controller.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
    let expected = 100.0 * MSS as f64 * 8.0 / 0.1;
    assert!((rate / expected - 1.0).abs() < 0.001, "{rate}");
    // It does not grow until the jump is validated.
    wire.ack(1);
    assert_eq!(wire.window(), 100.0);
}

/// Section 3.2: no jump with at most half the saved RTT; section 4.2.1: nor with more than ten times
/// that.
#[test]
fn another_rtt_is_another_path() {
    for (rtt_us, jumps) in
        [(50_000, false), (50_001, true), (100_000, true), (1_000_000, true), (1_000_001, false)]
    {
        let saved = choose("reno", "careful-resume").with("saved_rtt", text("100 ms"));
        let mut wire = Wire::new(&saved, 100);
        wire.connection.min_rtt = Time::from_micros(rtt_us);
        wire.connection.in_flight = 20 * MSS;
        (0..10).for_each(|_| wire.ack(1));
        assert_eq!(wire.phase() == "unvalidated", jumps, "{rtt_us} us");
        assert_eq!(wire.window(), if jumps { 100.0 } else { 20.0 }, "{rtt_us} us");
    }
}

/// Section 3.2: the jump waits until more is to be sent than the window allows.
#[test]
fn a_limited_application_does_not_jump() {
    let mut wire = reconnoitred("reno");
    wire.connection.window_limited = false;
    (0..20).for_each(|_| wire.ack(1));
    assert_eq!(wire.phase(), "reconnaissance");
    wire.connection.window_limited = true;
    wire.ack(1);
    assert_eq!(wire.phase(), "unvalidated");
}

/// Section 3.5: the window becomes half of PipeSize, which is what was in flight at the jump and what
/// has arrived since; when recovery ends, the threshold is half of the PipeSize measured until then.
#[test]
fn a_loss_after_the_jump_leaves_half_of_what_arrived() {
    for name in ["reno", "cubic"] {
        let mut wire = reconnoitred(name);
        wire.ack(1);
        wire.connection.in_flight = 80 * MSS;
        (0..20).for_each(|_| wire.ack(1));
        assert_eq!(wire.phase(), "unvalidated");
        wire.begin_recovery();
        assert_eq!((wire.phase(), wire.window()), ("safe_retreat", 20.0), "{name}");
        (0..60).for_each(|_| wire.ack(1));
        assert_eq!(wire.window(), 20.0, "{name}: it grew in the retreat");
        // What is acknowledged beyond the 80 in flight was retransmitted.
        (0..20).for_each(|_| wire.ack(1));
        (0..40).for_each(|_| wire.ack(1));
        wire.end_recovery();
        // 20 in flight, 20 and 80 acknowledged.
        assert_eq!((wire.window(), wire.threshold()), (20.0, 60.0), "{name}");
        wire.connection.in_flight = 20 * MSS;
        (0..40).for_each(|_| wire.ack(1));
        assert_eq!(wire.window(), 60.0, "{name}: slow start up to the threshold");
    }
}

/// Section 3.3: after the first acknowledgement of what the jump sent, the window becomes what is in
/// flight, if that is more than PipeSize; and PipeSize otherwise.
#[test]
fn the_window_becomes_what_was_used() {
    for (in_flight, phase, window) in [(90, "validating", 90.0), (20, "slow_start", 41.0)] {
        let mut wire = reconnoitred("reno");
        wire.ack(1);
        // What was sent before the jump arrives, then the first byte after it.
        wire.connection.in_flight = in_flight * MSS;
        wire.connection.window_limited = false;
        (0..21).for_each(|_| wire.ack(1));
        assert_eq!((wire.phase(), wire.window()), (phase, window));
    }
}

/// Section 3.4: it is validated when the last packet of the jump is acknowledged; then slow start
/// goes on, and a loss is a usual one.
#[test]
fn a_validated_window_is_a_usual_one() {
    let mut wire = reconnoitred("reno");
    wire.ack(1);
    wire.connection.in_flight = 90 * MSS;
    wire.connection.window_limited = false;
    (0..21).for_each(|_| wire.ack(1));
    assert_eq!(wire.phase(), "validating");
    (0..89).for_each(|_| wire.ack(1));
    assert_eq!(wire.phase(), "validating");
    wire.ack(1);
    assert_eq!((wire.phase(), wire.window()), ("slow_start", 90.0));
    wire.begin_recovery();
    assert_eq!(wire.window(), 45.0);
}

/// A loss before the jump ends it all: the usual response, and no jump later.
#[test]
fn a_loss_in_reconnaissance_prevents_the_jump() {
    let mut wire = reconnoitred("reno");
    let before = wire.window();
    wire.lose();
    assert_eq!(wire.window(), (before / 2.0).floor());
    (0..60).for_each(|_| wire.ack(1));
    assert_eq!(wire.phase(), "congestion_avoidance");
    assert!(wire.window() < 20.0);
}

/// A timeout after the jump leaves no threshold from the unvalidated window.
#[test]
fn a_timeout_after_the_jump_leaves_half_of_what_arrived() {
    let mut wire = reconnoitred("cubic");
    wire.ack(1);
    wire.connection.in_flight = 0;
    wire.connection.recovery = Recovery::Open;
    wire.controller.on_event(Event::Timeout, &wire.connection);
    assert_eq!((wire.window(), wire.threshold()), (1.0, 10.0));
}

/// The RFC's purpose (section 1.4: 5.3 MB over a satellite in 4 s instead of 9 s): here the same
/// transfer, with a saved window of one BDP.
#[test]
fn a_satellite_transfer_takes_half_the_time() {
    let path = Path { buffer: 2000, ack_every: 1, ..Path::new(20_000_000, 600) };
    let packets = (path.bdp() / MSS as f64) as u64;
    let seconds = |start: &str| {
        let mut selection = choose("cubic", start);
        if start == "careful-resume" {
            selection = selection.with("saved_window", text(&format!("{packets} packets")));
        }
        let all = run(&selection, path, 20);
        all.iter().find(|seen| seen.delivered >= 5_300_000).unwrap().now.as_secs_f64()
    };
    let (resumed, standard) = (seconds("careful-resume"), seconds("standard"));
    assert!(resumed < 0.8 * standard, "{resumed:.1} s, {standard:.1} s");
}

/// A saved window far too large for the path: the retreat limits what is lost, and the link is full
/// again.
#[test]
fn a_path_that_became_slower_is_found() {
    let path = Path { buffer: 40, ack_every: 1, ..Path::new(5_000_000, 60) };
    for name in ["reno", "cubic"] {
        let selection = choose(name, "careful-resume").with("saved_window", text("1000 packets"));
        let all = run(&selection, path, 20);
        assert!(all.iter().any(|seen| seen.state.phase == "safe_retreat"), "{name}");
        assert!(super::utilisation(&all, path, 10) > 0.95, "{name}");
    }
}
