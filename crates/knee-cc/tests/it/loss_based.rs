//! Reno and CUBIC compared with the formulas of RFC 5681, RFC 6298 and RFC
//! 9438, on a path that never queues: each round acknowledges one window.
use crate::pipe::MSS;
use crate::wire::Wire;
use knee_cc::{Event, Recovery, Sample, Selection, Value};
use knee_units::Time;

fn without_hystart() -> Selection {
    Selection::named("cubic").with("slow_start", Value::Text("standard".to_owned()))
}

/// RFC 5681, section 3.1: one segment per round trip, halved on loss.
#[test]
fn reno_adds_one_segment_per_round_and_halves() {
    let mut wire = Wire::named("reno", 50);
    wire.slow_start_to(100);
    wire.lose();
    assert_eq!(wire.window(), 50.0);
    let rounds = 40;
    for _ in 0..rounds {
        wire.round();
    }
    assert!((wire.window() - 90.0).abs() <= 1.0, "{}", wire.window());
}

/// RFC 5681, section 3.1: a delayed ACK for two segments counts for two.
#[test]
fn growth_does_not_depend_on_delayed_acks() {
    let mut wire = Wire::named("reno", 50);
    wire.slow_start_to(64);
    wire.lose();
    for _ in 0..20 {
        for _ in 0..wire.window() as u64 / 2 {
            wire.ack(2);
        }
    }
    assert!((wire.window() - 52.0).abs() <= 1.0, "{}", wire.window());
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for name in ["reno", "cubic"] {
        let mut wire = Wire::named(name, 50);
        wire.connection.window_limited = false;
        wire.round();
        assert_eq!(wire.window(), 10.0, "{name}");
    }
}

/// Selective acknowledgements alone do not show free capacity.
#[test]
fn only_cumulative_progress_grows_the_window() {
    let mut wire = Wire::named("reno", 50);
    let sample = Sample { newly_acked: 4 * MSS, ..Sample::default() };
    wire.controller.on_ack(&sample, &wire.connection);
    assert_eq!(wire.window(), 10.0);
}

/// RFC 5681, section 3.1, equation 4, and the note on repeated timeouts.
#[test]
fn a_timeout_restarts_from_one_segment() {
    for (name, kept) in [("reno", 0.5), ("cubic", 0.7)] {
        let mut wire = Wire::named(name, 50);
        wire.slow_start_to(100);
        wire.connection.in_flight = 0;
        wire.connection.recovery = Recovery::Open;
        wire.controller.on_event(Event::Timeout, &wire.connection);
        assert_eq!(wire.window(), 1.0, "{name}");
        assert!((wire.threshold() - 100.0 * kept).abs() <= 1.0, "{name}");
        wire.connection.recovery = Recovery::Loss;
        wire.controller.on_event(Event::Timeout, &wire.connection);
        assert!((wire.threshold() - 100.0 * kept).abs() <= 1.0, "{name}: cut twice");
    }
}

#[test]
fn a_spurious_reduction_is_undone() {
    for name in ["reno", "cubic"] {
        let mut wire = Wire::named(name, 50);
        wire.slow_start_to(100);
        wire.controller.on_event(Event::RecoveryStart, &wire.connection);
        assert!(wire.window() <= 70.0);
        wire.controller.on_event(Event::SpuriousRecovery, &wire.connection);
        assert_eq!(wire.window(), 100.0, "{name}");
        assert_eq!(wire.controller.state().slow_start_threshold, None, "{name}");
    }
}

/// RFC 3168, section 6.1.2: an echo reduces the window like a loss, once per window.
#[test]
fn an_echo_reduces_once() {
    let mut wire = Wire::named("cubic", 50);
    wire.slow_start_to(100);
    wire.controller.on_event(Event::CongestionEcho, &wire.connection);
    wire.controller.on_event(Event::RecoveryStart, &wire.connection);
    assert_eq!(wire.window(), 70.0);
}

/// RFC 5681, section 4.1: after a long pause the window restarts from the
/// initial one, and slow start restores it.
#[test]
fn idleness_restarts_the_window() {
    let mut wire = Wire::named("reno", 50);
    wire.slow_start_to(200);
    wire.lose();
    wire.connection.now += Time::from_millis(100);
    wire.controller.on_event(Event::SentAfterIdle, &wire.connection);
    assert_eq!(wire.window(), 100.0, "a short pause");
    wire.connection.now += Time::from_secs(30);
    wire.controller.on_event(Event::SentAfterIdle, &wire.connection);
    assert_eq!(wire.window(), 10.0);
    assert_eq!(wire.threshold(), 100.0);
}

fn w_cubic(t: f64, w_max: f64) -> f64 {
    let k = (w_max * 0.3 / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

/// RFC 9438, figures 1 and 2: the window follows W_cubic(t).
#[test]
fn cubic_follows_its_function() {
    let mut wire = Wire::new(&without_hystart(), 100);
    wire.slow_start_to(1000);
    wire.lose();
    assert_eq!(wire.window(), 700.0);
    let start = wire.connection.now;
    for _ in 0..150 {
        wire.round();
        let t = (wire.connection.now - start).as_secs_f64();
        let expected = w_cubic(t, 1000.0);
        let off = (wire.window() - expected).abs() / expected;
        assert!(off < 0.02, "at {t:.1} s: {} for {expected:.0}", wire.window());
    }
}

/// RFC 9438, section 4.3: with a small window Reno's estimate applies, which
/// grows by 3 (1 - beta) / (1 + beta) = 0.53 segments per round.
#[test]
fn cubic_is_at_least_as_fast_as_reno() {
    let mut wire = Wire::new(&without_hystart(), 10);
    wire.slow_start_to(100);
    wire.lose();
    for _ in 0..60 {
        wire.round();
    }
    let expected = 70.0 + 0.53 * 60.0;
    assert!((wire.window() - expected).abs() < 4.0, "{} for {expected}", wire.window());

    let mut alone =
        Wire::new(&without_hystart().with("tcp_friendliness", Value::Switch(false)), 10);
    alone.slow_start_to(100);
    alone.lose();
    for _ in 0..60 {
        alone.round();
    }
    let expected = w_cubic(0.6, 100.0);
    assert!((alone.window() - expected).abs() < 3.0, "{} for {expected}", alone.window());
}

/// RFC 9438, section 4.7: a second loss below the last maximum puts the plateau
/// at (1 + beta) / 2 of the window; without fast convergence, at the window.
#[test]
fn fast_convergence_lowers_the_plateau() {
    for (on, plateau) in [(true, 0.85), (false, 1.0)] {
        let selection = without_hystart().with("fast_convergence", Value::Switch(on));
        let mut wire = Wire::new(&selection, 100);
        wire.slow_start_to(1000);
        wire.lose();
        wire.round();
        let second = wire.window();
        wire.lose();
        // K seconds later the window reaches the plateau.
        let w_max = second * plateau;
        let k = ((w_max - second * 0.7) / 0.4).cbrt();
        let start = wire.connection.now;
        while (wire.connection.now - start).as_secs_f64() < k {
            wire.round();
        }
        let off = (wire.window() - w_max).abs() / w_max;
        assert!(off < 0.02, "{on}: {} for {w_max}", wire.window());
    }
}

/// RFC 9438, section 5.8: a pause does not count as time for growth. 8 s on the
/// curve from 700 would give 990 segments.
#[test]
fn a_pause_does_not_advance_the_curve() {
    let mut wire = Wire::new(&without_hystart(), 100);
    wire.slow_start_to(1000);
    wire.lose();
    wire.round();
    let before = wire.window();
    wire.connection.now += Time::from_secs(8);
    wire.controller.on_event(Event::SentAfterIdle, &wire.connection);
    for _ in 0..before as u64 {
        wire.ack(1);
    }
    assert!(wire.window() <= before * 1.06, "{} after {before}", wire.window());
}

/// Linux's tcp_update_pacing_rate: 200 % of the window per RTT in the lower
/// half of slow start, 120 % afterwards.
#[test]
fn pacing_rate_follows_the_window() {
    let mut wire = Wire::named("reno", 100);
    let rate = |w: &Wire| w.controller.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
    wire.connection.in_flight = 0;
    wire.ack(1);
    let expected = 2.0 * 11.0 * MSS as f64 * 8.0 / 0.1;
    assert!((rate(&wire) / expected - 1.0).abs() < 0.001, "{}", rate(&wire));
    wire.slow_start_to(100);
    wire.connection.in_flight = 0;
    wire.lose();
    let expected = 1.2 * 50.0 * MSS as f64 * 8.0 / 0.1;
    assert!((rate(&wire) / expected - 1.0).abs() < 0.001, "{}", rate(&wire));
}

/// The path's MTU halves: the window is unchanged in bytes and counted in
/// segments of the new size.
#[test]
fn a_new_segment_size_keeps_the_window_in_bytes() {
    for name in ["reno", "cubic"] {
        let mut wire = Wire::named(name, 100);
        (0..3).for_each(|_| wire.round());
        let before = wire.controller.decision().window;
        wire.connection.mss = 700;
        wire.connection.in_flight = 0;
        let decision = wire.controller.on_ack(&Sample::default(), &wire.connection);
        assert!(before - decision.window < 700, "{name}: {} of {before}", decision.window);
        assert_eq!(decision.window % 700, 0);
        assert_eq!(decision.send_quantum % 700, 0);
    }
}

/// After a loss CUBIC grows back to the same bytes in the same time, and the undo of a
/// reduction restores as many.
#[test]
fn a_new_segment_size_keeps_what_a_loss_left_in_bytes() {
    for name in ["reno", "cubic"] {
        let mut wire = Wire::named(name, 100);
        (0..4).for_each(|_| wire.round());
        let before = wire.controller.decision().window;
        wire.lose();
        let (window, threshold) = (wire.window(), wire.threshold());
        wire.round();
        let small = MSS / 2;
        wire.connection.mss = small as u32;
        wire.connection.in_flight = 0;
        let decision = wire.controller.on_ack(&Sample::default(), &wire.connection);
        assert!(decision.window as f64 >= window * MSS as f64, "{name}");
        let same = wire.threshold();
        assert!((same - threshold).abs() < 1.0, "{name}: {same} after {threshold}");
        let undone = wire.controller.on_event(Event::SpuriousRecovery, &wire.connection);
        assert!(undone.window.abs_diff(before) < 2 * MSS, "{name}: {} of {before}", undone.window);
    }
}
