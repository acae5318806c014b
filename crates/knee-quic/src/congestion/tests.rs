//! Tests of a controller under a QUIC connection.

use super::*;

/// Packets of 1200 bytes, the last ten of a hundred lost: what is outstanding is what is in
/// flight, so that the next round begins with what is sent now.
#[test]
fn lost_bytes_are_not_outstanding() {
    let settings = CongestionSettings {
        controller: Selection::named("copa"),
        recovery: None,
        paced: None,
        initial_window: 100,
        max_burst: 65_536,
    };
    #[expect(clippy::disallowed_methods, reason = "only time zero of the library's clock")]
    let start = Instant::now();
    let rng = ChaCha8Rng::seed_from_u64(1);
    let control = CongestionControl::new(&settings, 1200, start, rng).unwrap();
    let (sent, now) = (Time::from_millis(100), Time::from_millis(200));
    control.on_established(sent, Time::from_millis(100));
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
