//! The shared window follows what the application reads.

use knee_multipath::SharedWindow;
use knee_units::Time;

/// Twice what was read in a round of the slowest path, and never less than
/// before (dynamic right-sizing: twice the copied bytes).
#[test]
fn a_tuned_window_is_twice_what_was_read_in_a_round() {
    let rtt = Time::from_millis(50);
    let mut window = SharedWindow::tuned(1_000_000);
    assert_eq!(window.bytes(), 65_536);
    window.on_read(Time::from_millis(49), 90_000, rtt);
    assert_eq!(window.bytes(), 65_536, "the round is not over");
    window.on_read(Time::from_millis(50), 100_000, rtt);
    assert_eq!(window.bytes(), 200_000);
    window.on_read(Time::from_millis(100), 130_000, rtt);
    assert_eq!(window.bytes(), 200_000, "a slow reader does not shrink it");
    window.on_read(Time::from_millis(150), 900_000, rtt);
    assert_eq!(window.bytes(), 1_000_000, "its largest size");
}

/// An application that stops reading gets no more window, however long it waits.
#[test]
fn what_is_not_read_opens_no_window() {
    let mut window = SharedWindow::tuned(1_000_000);
    for round in 1..100 {
        window.on_read(Time::from_millis(50 * round), 30_000, Time::from_millis(50));
    }
    assert_eq!(window.bytes(), 65_536);
}

#[test]
fn a_fixed_window_stays() {
    let mut window = SharedWindow::fixed(10_000);
    window.on_read(Time::from_secs(1), 1_000_000, Time::from_millis(1));
    assert_eq!((window.bytes(), window.is_tuned()), (10_000, false));
}
