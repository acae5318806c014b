//! Tests of a controller under a QUIC connection.

use super::*;

/// Returns a path whose handshake ended at 100 ms, with an RTT of as much.
fn established(controller: &str, initial_window: u32) -> CongestionControl {
    let settings = CongestionSettings {
        controller: Selection::named(controller),
        recovery: None,
        paced: Some(false),
        initial_window,
        max_burst: 65_536,
    };
    #[expect(clippy::disallowed_methods, reason = "only time zero of the library's clock")]
    let start = Instant::now();
    let rng = ChaCha8Rng::seed_from_u64(1);
    let control = CongestionControl::new(&settings, 1200, start, rng).unwrap();
    control.on_established(Time::from_millis(100), Time::from_millis(100));
    control
}

/// Packets of 1200 bytes, the last ten of a hundred lost: what is outstanding is what is in
/// flight, so that the next round begins with what is sent now.
#[test]
fn lost_bytes_are_not_outstanding() {
    let control = established("copa", 100);
    let (sent, now) = (Time::from_millis(100), Time::from_millis(200));
    let mut inner = control.inner();
    (0..100).for_each(|number| inner.on_sent(sent, 1200, number));
    let before = inner.connection(sent);
    assert_eq!(before.sent - before.acknowledged, before.in_flight);
    (0..90).for_each(|number| inner.on_acknowledged(now, sent, number));
    (90..100).for_each(|number| inner.on_lost(now, number));
    (100..107).for_each(|number| inner.on_sent(now, 1200, number));
    let after = inner.connection(now);
    assert_eq!((after.delivered, after.in_flight), (90 * 1200, 7 * 1200));
    assert_eq!(after.sent - after.acknowledged, after.in_flight);
    assert!(after.acknowledged >= before.acknowledged);
}

/// Of ten packets only a short one arrives, and with it a full one may leave: in recovery BBR
/// conserves packets. In bytes the window would be 40.
#[test]
fn a_short_packet_lets_a_full_one_leave() {
    let control = established("bbr", 10);
    let (sent, now) = (Time::from_millis(100), Time::from_millis(200));
    let mut inner = control.inner();
    (0..9).for_each(|number| inner.on_sent(sent, 1200, number));
    inner.on_sent(sent, 40, 9);
    inner.on_acknowledged(now, sent, 9);
    (0..9).for_each(|number| inner.on_lost(now, number));
    let batch = inner.batch.take();
    inner.settle(now, batch, false);
    assert_eq!((inner.in_flight, inner.decision.window), (0, 1200));
    assert!(inner.fits(0));
}

/// Whatever a controller decides, a packet may leave: without one there would be no more
/// acknowledgements, which open the window.
#[test]
fn the_window_is_never_less_than_a_packet() {
    let control = established("reno", 10);
    let mut inner = control.inner();
    inner.decision.window = 1;
    assert!(inner.fits(0) && !inner.fits(1));
}

/// A packet that overtakes the end of the handshake is dropped, because it cannot be decrypted. The
/// recovery that it causes is undone once others turn out to be overtaken (RFC 9002, section 7.4).
#[test]
fn a_loss_of_what_overtook_the_handshake_is_undone() {
    let control = established("reno", 10);
    let mut inner = control.inner();
    let sent = Time::from_millis(100);
    (0..10).for_each(|number| inner.on_sent(sent, 1200, number));
    let acknowledge = |inner: &mut Inner, at: u64, numbers: std::ops::Range<u64>| {
        let now = Time::from_millis(at);
        numbers.for_each(|number| inner.on_acknowledged(now, sent, number));
        let batch = inner.batch.take();
        inner.settle(now, batch, false);
    };
    // Three later ones arrived, so the first is lost.
    acknowledge(&mut inner, 200, 3..4);
    assert_eq!((inner.counted.recoveries, inner.counted.lost_packets), (1, 1));
    assert!(inner.decision.window < 10 * 1200);
    acknowledge(&mut inner, 201, 1..3);
    assert_eq!(inner.counted.spurious_recoveries, 1);
    assert!(inner.decision.window >= 10 * 1200 && inner.reduction.is_none());
}
