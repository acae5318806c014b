//! Loss detection of a path, compared with RFC 9002.

use knee_bundle::{AckRanges, Arrivals, Fate, Frame, NeverSent, Outstanding, Rtt};
use knee_units::Time;
use knee_units::random::normal;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

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
    // It was only late, 14 ms more than number 3: from now on only time counts, the latest RTT and a
    // quarter of the lowest one.
    assert_eq!(ack(&mut sent, &mut rtt, 114, &[(0, 0)])[..1], [(0, Fate::Late)]);
    assert_eq!(ack(&mut sent, &mut rtt, 114, &[(7, 7)]), [(7, Fate::Acknowledged)]);
    assert_eq!(ack(&mut sent, &mut rtt, 115, &[(7, 8)]), [(8, Fate::Acknowledged)]);
    assert_eq!((sent.loss_at(), sent.in_flight()), (MS(4 + 107 + 25), 4000));
}

/// Sends a datagram per 0.1 ms over a path with an RTT of 100 ms; each 500th is late by this many
/// milliseconds or never arrives, in turn. Returns the numbers of those declared lost that came late,
/// and the time after which the last one that was lost was declared so.
fn over_a_path_that_reorders(count: u64, late: impl Fn(u64) -> u64) -> (Vec<u64>, Time) {
    let sent_at = |number: u64| Time::from_micros(100 * number);
    let is_odd = |number: u64| number % 500 == 250;
    let mut arrivals: Vec<(Time, u64)> = (0..count)
        .filter(|number| !(is_odd(*number) && number / 500 % 2 == 1))
        .map(|number| {
            let extra = if is_odd(number) { MS(late(number)) } else { Time::ZERO };
            (sent_at(number) + MS(100) + extra, number)
        })
        .collect();
    arrivals.sort_unstable();
    let (mut sent, mut rtt) = (Outstanding::default(), Rtt::default());
    let (mut were_late, mut took) = (Vec::new(), Time::ZERO);
    for (now, number) in arrivals {
        while sent.next() < count && sent_at(sent.next()) <= now {
            let at = sent_at(sent.next());
            sent.push(at, 1000, true, ());
        }
        let mut told = Vec::new();
        let timer = sent.loss_at();
        sent.on_loss_timer(timer.min(now), &rtt, |number, fate, ()| {
            told.push((number, fate, timer))
        });
        let ranges = AckRanges::new([(number, number)]).unwrap();
        let tell = |number, fate, ()| told.push((number, fate, now));
        sent.on_ack(now, &ranges, &mut rtt, Time::ZERO, tell).unwrap();
        for (number, fate, at) in told {
            match fate {
                Fate::Late => were_late.push(number),
                Fate::Lost => took = at - sent_at(number),
                Fate::Acknowledged => {}
            }
        }
    }
    (were_late, took)
}

/// RFC 8985, section 6.2, steps 4 and 5: the window is as wide as a late datagram has shown, however
/// many overtook it, and only the first one shows it.
#[test]
fn a_late_datagram_is_waited_for_however_many_overtake_it() {
    let (were_late, took) = over_a_path_that_reorders(20_000, |_| 40);
    assert_eq!((were_late, took), (vec![250], MS(150)));
}

/// The window narrows to what is needed after sixteen rounds with losses (RFC 8985, section 6.2, step
/// 4): once lateness falls from 40 to 5 ms, losses are found earlier.
#[test]
fn the_window_narrows_after_sixteen_rounds_with_losses() {
    let late = |number| if number < 5000 { 40 } else { 5 };
    let (were_late, took) = over_a_path_that_reorders(80_000, late);
    assert_eq!((were_late, took), (vec![250], MS(125)));
}

/// Round trips of 0 to 80 ms, each as likely as the others, of a datagram every 0.3 ms, and no loss: a
/// window of at most the smoothed RTT took half of all datagrams for lost.
#[test]
fn delays_that_vary_by_more_than_their_mean_are_no_losses() {
    const COUNT: u64 = 20_000;
    let sent_at = |number: u64| Time::from_micros(300 * number);
    let delay = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let arrival = |number: u64| sent_at(number) + Time::from_micros(delay(number) % 80_000);
    let mut arrivals: Vec<(Time, u64)> =
        (0..COUNT).map(|number| (arrival(number), number)).collect();
    arrivals.sort_unstable();
    let (mut sent, mut rtt, mut lost) = (Outstanding::default(), Rtt::default(), 0);
    for (now, number) in arrivals {
        while sent.next() < COUNT && sent_at(sent.next()) <= now {
            sent.push(sent_at(sent.next()), 1000, true, ());
        }
        sent.on_loss_timer(now, &rtt, |_, _, ()| lost += 1);
        let ranges = AckRanges::new([(number, number)]).unwrap();
        let tell = |_, fate, ()| lost += u64::from(fate == Fate::Lost);
        sent.on_ack(now, &ranges, &mut rtt, Time::ZERO, tell).unwrap();
    }
    assert!(lost < COUNT / 100, "{lost} of {COUNT} count as lost");
}

/// Delays on the way there that are normal, as netem draws them, at 50 Mbit/s: the receiver has more
/// spans than an ACK has room for, and the packets that overtake all others have the shortest RTT. All
/// arrive, and what arrives is told by one of the next ACKs, of which a tenth is lost.
#[test]
fn normal_delays_are_no_losses_though_an_ack_has_few_ranges() {
    const COUNT: u64 = 20_000;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let sent_at = |number: u64| Time::from_micros(230 * number);
    let mut delay = || Time::from_micros((20_000.0 * (1.0 + normal(&mut rng))).max(0.0) as u64);
    let mut arrivals: Vec<(Time, u64)> =
        (0..COUNT).map(|number| (sent_at(number) + delay(), number)).collect();
    arrivals.sort_unstable();
    let (mut sent, mut rtt, mut lost) = (Outstanding::default(), Rtt::default(), 0);
    let mut receiver = Arrivals::default();
    for (count, (now, number)) in arrivals.into_iter().enumerate() {
        while sent.next() < COUNT && sent_at(sent.next()) <= now {
            sent.push(sent_at(sent.next()), 1000, true, ());
        }
        let tell = |lost: &mut u64, fate| *lost += u64::from(fate == Fate::Lost);
        sent.on_loss_timer(now, &rtt, |_, fate, ()| tell(&mut lost, fate));
        receiver.insert(now, number, true);
        if receiver.due() > now {
            continue;
        }
        let Some(Frame::Ack { ranges, .. }) = receiver.ack(now, 0) else { panic!("none") };
        if count % 10 > 0 {
            let on_fate = |_, fate, ()| tell(&mut lost, fate);
            sent.on_ack(now, &ranges, &mut rtt, Time::ZERO, on_fate).unwrap();
            receiver.settle(sent.settled());
        }
    }
    assert!(lost < COUNT / 100, "{lost} of {COUNT} count as lost");
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
