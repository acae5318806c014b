//! Circuit breakers and bleached ECN in situations that can be worked out by hand.

use crate::common::{Fate, Log, Named, Offer, link, plain, run};
use knee_link::{
    Aqm, CircuitBreaker, Codel, Config, DropReason, Ecn, Loss, Packet, RateModel, Steps, Threshold,
};
use knee_units::Time;

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// More than a tenth of the packets in each of three seconds.
const BREAKER: CircuitBreaker =
    CircuitBreaker { interval: Time::from_secs(1), loss: 0.1, intervals: 3, reset_after: None };

/// Ten packets a second for so many seconds, the first after 50 ms.
fn ten_a_second(seconds: u64) -> Vec<Offer> {
    let at = |number| ms(50 + 100 * number);
    (0..10 * seconds).map(|number| Offer { at: at(number), size: 100, flow: 0 }).collect()
}

/// Over a link with a circuit breaker, but for that a pure delay.
fn protected(breaker: CircuitBreaker, loss: Loss, offers: &[Offer]) -> Log {
    let rate = RateModel::Unlimited;
    run(Config { rate, loss, circuit_breaker: Some(breaker), ..plain() }, offers)
}

/// Numbers of the packets that the circuit breaker dropped.
fn cut(log: &Log) -> Vec<usize> {
    let is_cut = |fate: &Fate| matches!(fate, Fate::Dropped { reason: DropReason::Breaker, .. });
    (0..log.fates.len()).filter(|number| is_cut(&log.fates[*number])).collect()
}

/// Every fifth is lost: two of ten in each second, so that it trips after the third.
#[test]
fn it_trips_after_three_congested_intervals() {
    let offers = ten_a_second(6);
    let log = protected(BREAKER, Loss::Periodic(5), &offers);
    assert_eq!(cut(&log), (30..60).collect::<Vec<_>>());
    let delivered = |number: &usize| number % 5 != 4;
    assert_eq!(log.order, (0..30).filter(delivered).collect::<Vec<_>>());
}

/// Two of ten are not more than a fifth.
#[test]
fn it_trips_by_more_than_its_loss() {
    let offers = ten_a_second(6);
    let at = |loss| cut(&protected(CircuitBreaker { loss, ..BREAKER }, Loss::Periodic(5), &offers));
    assert_eq!(at(0.2).len(), 0);
    assert_eq!(at(0.199).len(), 30);
}

/// The third second is without loss, so that the fourth is the first in a row again.
#[test]
fn an_interval_without_congestion_begins_anew() {
    let steps = [(0, Loss::Periodic(5)), (2, Loss::None), (3, Loss::Periodic(5))];
    let steps = steps.map(|(at, loss)| (Time::from_secs(at), loss)).to_vec();
    let log = protected(BREAKER, Loss::Steps(Steps(steps)), &ten_a_second(8));
    assert_eq!(cut(&log), (60..80).collect::<Vec<_>>());
}

/// Nothing enters in the third second: nothing is congested.
#[test]
fn an_interval_without_packets_is_not_congested() {
    let silent = |offer: &Offer| offer.at < ms(2000) || offer.at > ms(3000);
    let offers: Vec<Offer> = ten_a_second(7).into_iter().filter(silent).collect();
    let log = protected(BREAKER, Loss::Periodic(5), &offers);
    // 20 in two seconds, 30 in the three after the pause.
    assert_eq!(cut(&log), (50..60).collect::<Vec<_>>());
}

/// Tripped at 3 s, closed again after 7 s, tripped at 10 s, closed again after 14 s.
#[test]
fn it_lets_in_again_what_it_kept_out() {
    let breaker = CircuitBreaker { reset_after: Some(Time::from_secs(4)), ..BREAKER };
    let log = protected(breaker, Loss::Periodic(5), &ten_a_second(15));
    assert_eq!(cut(&log), (30..70).chain(100..140).collect::<Vec<_>>());
}

/// The tenth packet of a second enters at its end, is lost then, and is of that
/// second; the first that is kept out enters a nanosecond later.
#[test]
fn what_happens_at_the_end_of_an_interval_is_of_it() {
    let mut offers: Vec<Offer> =
        (1..=30).map(|n| Offer { at: ms(100 * n), size: 100, flow: 0 }).collect();
    offers.push(Offer { at: ms(3000) + Time::from_nanos(1), size: 100, flow: 0 });
    let breaker = CircuitBreaker { loss: 0.099, ..BREAKER };
    let log = protected(breaker, Loss::Periodic(10), &offers);
    assert_eq!(cut(&log), [30]);
    assert_eq!(log.order.len(), 27);
}

/// What is in the queue when it trips is delivered. A packet per millisecond over a link
/// that sends one in 1.2 ms and holds ten: a sixth is dropped once ten wait, after 60 ms.
#[test]
fn what_has_entered_is_delivered() {
    let offers: Vec<Offer> = (0..1000).map(|n| Offer { at: ms(n), size: 1500, flow: 0 }).collect();
    let breaker = CircuitBreaker { interval: ms(100), ..BREAKER };
    let buffer = knee_link::Buffer::Packets(10);
    let log = run(Config { buffer, circuit_breaker: Some(breaker), ..plain() }, &offers);
    // The first interval loses 100 - 100 / 1.2 - 10 packets, less than a tenth; the
    // next three lose a sixth each.
    assert_eq!(cut(&log), (401..1000).collect::<Vec<_>>());
    let last = log.order.last().and_then(|number| log.delivered_at(*number)).expect("one is");
    assert!(last > ms(420) && last < ms(436), "{last}");
}

/// Codepoints at the far end, and how many packets the link marked.
fn codepoints(config: Config, ecn_capable: bool) -> (Vec<Ecn>, u64) {
    let mut link = link(config);
    for number in 0..20 {
        let packet = Named { number, size: 1500, flow: 0, ecn_capable, marked: number == 0 };
        let packet = Named { marked: packet.marked && ecn_capable, ..packet };
        assert!(link.send(ms(0), packet).is_ok());
    }
    let mut found = Vec::new();
    while link.next_time() < Time::MAX {
        let now = link.next_time();
        found.extend(std::iter::from_fn(|| link.poll(now)).map(|packet| packet.ecn()));
    }
    (found, link.counters().marked_packets)
}

/// ECT, CE on entry and CE by the queue all leave as Not-ECT; packet k waits k times
/// 1.2 ms, so that those from 6 on find more than 6 ms and are marked.
#[test]
fn nothing_keeps_its_codepoint() {
    let aqm = Aqm::Threshold(Threshold { delay: ms(6) });
    let config = Config { aqm, ecn_bleached: true, ..plain() };
    let (found, marked) = codepoints(config.clone(), true);
    assert_eq!((found, marked), (vec![Ecn::NotCapable; 20], 14));
    assert_eq!(codepoints(config.clone(), false), (vec![Ecn::NotCapable; 20], 0));
    let (found, _) = codepoints(Config { ecn_bleached: false, ..config }, true);
    assert_eq!(found.iter().filter(|ecn| ecn.is_marked()).count(), 15);
}

/// The queue sees the codepoint still: it marks where it would drop without.
#[test]
fn the_queue_marks_before_the_mark_is_lost() {
    let codel = Codel { target: ms(1), interval: ms(2), ecn: true };
    let config = Config { aqm: Aqm::Codel(codel), ecn_bleached: true, ..plain() };
    let (found, marked) = codepoints(config.clone(), true);
    assert_eq!(found.len(), 20);
    assert!(marked > 3, "{marked} marked");
    let (found, marked) = codepoints(config, false);
    assert!(found.len() < 17 && marked == 0, "{} delivered", found.len());
}
