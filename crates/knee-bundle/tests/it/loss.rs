//! Loss detection of a path, compared with RFC 9002.

use knee_bundle::{AckRanges, Fate, NeverSent, Outstanding, Rtt};
use knee_units::Time;

const MS: fn(u64) -> Time = Time::from_millis;

/// Ten datagrams of 1000 bytes, one per millisecond.
fn ten() -> Outstanding<()> {
    let mut sent = Outstanding::default();
    (0..10).for_each(|at| assert_eq!(sent.push(MS(at), 1000, true, ()), at));
    sent
}

fn ack(
    sent: &mut Outstanding<()>,
    rtt: &mut Rtt,
    now: u64,
    spans: &[(u64, u64)],
) -> Vec<(u64, Fate)> {
    let mut told = Vec::new();
    let ranges = AckRanges::new(spans.iter().copied()).unwrap();
    let tell = |number, fate, ()| told.push((number, fate));
    sent.on_ack(MS(now), &ranges, rtt, Time::ZERO, tell).unwrap();
    told
}

/// Section 6.1.1: three later ones; section 6.1.2: 9/8 of an RTT.
#[test]
fn three_later_ones_or_nine_eighths_of_an_rtt_mean_loss() {
    let (mut sent, mut rtt) = (ten(), Rtt::default());
    assert_eq!(ack(&mut sent, &mut rtt, 102, &[(2, 2)]), [(2, Fate::Acknowledged)]);
    assert_eq!(rtt.smoothed, MS(100));
    // Number 0 left at 0 ms, so it is lost at 112.5 ms.
    assert_eq!(sent.loss_at(), Time::from_micros(112_500));
    let told = ack(&mut sent, &mut rtt, 103, &[(2, 3)]);
    assert_eq!(told, [(3, Fate::Acknowledged), (0, Fate::Lost)]);
    assert_eq!(sent.loss_at(), Time::from_micros(113_500));
    let mut told = Vec::new();
    sent.on_loss_timer(Time::from_micros(113_499), &rtt, |number, _, ()| told.push(number));
    assert!(told.is_empty());
    sent.on_loss_timer(Time::from_micros(113_500), &rtt, |number, _, ()| told.push(number));
    assert_eq!((told, sent.in_flight(), sent.loss_at()), (vec![1], 6000, Time::MAX));
    // It was only late; from now on four later ones are needed.
    assert_eq!(ack(&mut sent, &mut rtt, 114, &[(0, 0)])[..1], [(0, Fate::Late)]);
    assert_eq!(ack(&mut sent, &mut rtt, 114, &[(7, 7)]), [(7, Fate::Acknowledged)]);
    let told = ack(&mut sent, &mut rtt, 115, &[(7, 8)]);
    assert_eq!(told, [(8, Fate::Acknowledged), (4, Fate::Lost)]);
    assert_eq!(sent.in_flight(), 3000);
}

/// Section 6.2.1: smoothed RTT + 4 variations + ACK delay, doubled each time.
#[test]
fn probes_back_off() {
    let (mut sent, mut rtt) = (ten(), Rtt::default());
    ack(&mut sent, &mut rtt, 100, &[(0, 0)]);
    let timeout = MS(100 + 4 * 50 + 4);
    assert_eq!(sent.probe_at(&rtt, MS(4)), MS(9) + timeout);
    sent.on_probe();
    assert_eq!(sent.probe_at(&rtt, MS(4)), MS(9) + timeout * 2);
    ack(&mut sent, &mut rtt, 109, &[(0, 9)]);
    assert_eq!((sent.probe_at(&rtt, MS(4)), sent.in_flight(), sent.settled()), (Time::MAX, 0, 10));
}

#[test]
fn an_ack_of_what_was_never_sent_changes_nothing() {
    let (mut sent, mut rtt) = (ten(), Rtt::default());
    let ranges = AckRanges::new([(0, 10)]).unwrap();
    let told = sent.on_ack(MS(50), &ranges, &mut rtt, Time::ZERO, |_, _, ()| panic!("told"));
    assert_eq!((told, sent.in_flight(), rtt), (Err(NeverSent), 10_000, Rtt::default()));
}
