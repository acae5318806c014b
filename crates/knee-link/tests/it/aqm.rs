//! Active queue management in a closed loop, compared with the claims of its documents.

use crate::common::source::{Outcome, share};
use crate::common::{Fate, Named, Offer, constant, link, plain, run};
use knee_link::{Aqm, Buffer, Codel, Config, Delay, DropReason, FqCodel, Link, Pie, Red};
use knee_units::Time;

const CODEL: Codel =
    Codel { target: Time::from_millis(5), interval: Time::from_millis(100), ecn: false };
const PIE: Pie = Pie {
    target: Time::from_millis(15),
    update: Time::from_millis(15),
    burst: Time::from_millis(150),
    ecn: false,
};
const MINUTE: Time = Time::from_secs(60);
const WARM: Time = Time::from_secs(20);

/// 10 Mbit/s, base RTT 100 ms, 1 MB of buffer (800 ms).
fn config(aqm: Aqm) -> Config {
    let delay = Delay::steady(constant(Time::from_millis(50)));
    Config { aqm, delay, buffer: Buffer::Bytes(1_000_000), ..plain() }
}

fn closed_loop(aqm: Aqm, flows: usize, ecn_capable: bool) -> (Outcome, Link<Named>) {
    let mut link = link(config(aqm));
    let outcome = share(&mut link, flows, Time::from_millis(100), ecn_capable, MINUTE);
    (outcome, link)
}

fn utilisation(link: &mut Link<Named>) -> f64 {
    let queue = link.queue(MINUTE);
    queue.departed_bytes as f64 / queue.capacity_bytes as f64
}

/// RFC 8289, section 3: a persistent queue is brought near the target, and the
/// link stays busy; without CoDel the same sources fill the buffer.
#[test]
fn codel_removes_a_standing_queue() {
    let (full, _) = closed_loop(Aqm::DropTail, 5, false);
    assert!(full.percentile_ms(WARM, 0.5) > 300.0, "the buffer of 800 ms fills");

    let (outcome, mut link) = closed_loop(Aqm::Codel(CODEL), 5, false);
    let median = outcome.percentile_ms(WARM, 0.5);
    assert!((0.5..10.0).contains(&median), "median {median} ms");
    let p95 = outcome.percentile_ms(WARM, 0.95);
    assert!(p95 < 30.0, "95th percentile {p95} ms");
    assert!(utilisation(&mut link) > 0.9, "utilisation {}", utilisation(&mut link));
}

#[test]
fn codel_marks_where_it_would_drop() {
    let (outcome, link) = closed_loop(Aqm::Codel(Codel { ecn: true, ..CODEL }), 5, true);
    assert!(outcome.drops.iter().all(|(_, reason)| *reason == DropReason::Queue));
    assert!(outcome.marks > 50);
    assert_eq!(link.counters().marked_packets as usize, outcome.marks);
    let median = outcome.percentile_ms(WARM, 0.5);
    assert!((0.5..10.0).contains(&median), "median {median} ms");
}

/// RFC 8033, section 1: latency is controlled around the target.
#[test]
fn pie_holds_the_delay_at_its_target() {
    for flows in [5, 20] {
        let (outcome, mut link) = closed_loop(Aqm::Pie(PIE), flows, false);
        let mean = outcome.mean_delay_ms(WARM);
        assert!((10.0..22.0).contains(&mean), "{flows} flows: mean {mean} ms");
        let busy = utilisation(&mut link);
        assert!(busy > 0.9, "{flows} flows: utilisation {busy}");
    }
}

/// RFC 8033, section 4.3: nothing is dropped while the allowance lasts, from
/// the first packet on, except for a full buffer.
#[test]
fn pie_lets_a_burst_pass() {
    let offers: Vec<Offer> =
        (0..2_000).map(|n| Offer { at: Time::from_micros(300 * n), size: 1500, flow: 0 }).collect();
    let config = Config { buffer: Buffer::Unlimited, ..config(Aqm::Pie(PIE)) };
    let log = run(config, &offers);
    let dropped = |fate: &Fate| matches!(fate, Fate::Dropped { reason: DropReason::Aqm, .. });
    let first = log.fates.iter().position(dropped).expect("four times the rate is too much");
    let allowance = PIE.burst;
    assert!(offers[first].at >= allowance, "first drop at {:?}", offers[first].at);
}

/// RFC 8033, section 5.1: ECN-capable packets are marked while the drop
/// probability is below 10 %.
#[test]
fn pie_marks_before_it_drops() {
    let (outcome, _) = closed_loop(Aqm::Pie(Pie { ecn: true, ..PIE }), 5, true);
    let late = |at: &Time| *at >= WARM;
    let drops = outcome.drops.iter().filter(|(at, _)| late(at)).count();
    assert_eq!(drops, 0, "five flows need far less than 10 %");
    assert!(outcome.marks > 50);
}

/// Floyd and Jacobson 1993, section 4: the average queue is kept between the thresholds.
#[test]
fn red_keeps_the_average_queue_between_its_thresholds() {
    let red = Red {
        min_threshold_bytes: 15_000,
        max_threshold_bytes: 60_000,
        max_probability: 0.1,
        weight: 0.002,
        ecn: false,
    };
    let (outcome, mut link) = closed_loop(Aqm::Red(red), 10, false);
    // 15 kB take 12 ms at 10 Mbit/s, 60 kB 48 ms.
    let mean = outcome.mean_delay_ms(WARM);
    assert!((12.0..48.0).contains(&mean), "mean {mean} ms");
    assert!(utilisation(&mut link) > 0.9);
    assert!(outcome.drops.iter().all(|(_, reason)| *reason == DropReason::Aqm));
}

fn fq_codel() -> Aqm {
    Aqm::FqCodel(FqCodel { codel: CODEL, flows: 1024, quantum: 1514 })
}

/// RFC 8290, section 1.2: flows that want more than their share get equal
/// bytes, regardless of their packet size and sending rate.
#[test]
fn fq_codel_gives_equal_bytes() {
    let mut offers: Vec<Offer> = vec![];
    let end = 10_000_000;
    // 15, 12 and 8 Mbit/s into 10.
    for (flow, size, gap_us) in [(1, 1500, 800), (2, 300, 200), (3, 1000, 1000)] {
        let at = |n: u64| Time::from_micros(n * gap_us + flow);
        offers.extend((0..end / gap_us).map(|n| Offer { at: at(n), size, flow }));
    }
    offers.sort_by_key(|offer| offer.at);
    let config = Config { buffer: Buffer::Packets(10_240), ..config(fq_codel()) };
    let log = run(config, &offers);
    let mut bytes = [0_u64; 4];
    for (number, offer) in offers.iter().enumerate() {
        if log.delivered_at(number).is_some_and(|at| at < Time::from_micros(end)) {
            bytes[offer.flow as usize] += u64::from(offer.size);
        }
    }
    let fair = 10_000_000.0 / 8.0 * (end as f64 / 1e6 - 0.05) / 3.0;
    for (flow, bytes) in bytes.iter().enumerate().skip(1) {
        let share = *bytes as f64 / fair;
        assert!((0.99..1.01).contains(&share), "flow {flow}: {share} of its share");
    }
}

/// RFC 8290, section 1.3: a flow that sends less than a quantum per round waits
/// only for the packet in transmission, not for ten busy queues.
#[test]
fn fq_codel_lets_sparse_flows_pass() {
    let delay_of_sparse = |aqm| {
        let mut offers: Vec<Offer> = (0..10_000)
            .map(|n| Offer { at: Time::from_micros(n * 1_000), size: 1500, flow: 1 + n % 10 })
            .collect();
        offers.extend((0..400).map(|n| Offer {
            at: Time::from_micros(n * 24_571),
            size: 200,
            flow: 77,
        }));
        offers.sort_by_key(|offer| offer.at);
        let log = run(Config { buffer: Buffer::Unlimited, ..config(aqm) }, &offers);
        // By that time the ten queues are busy.
        let late = |offer: &Offer| offer.at > Time::from_secs(1);
        let sparse = offers.iter().enumerate().filter(|(_, offer)| offer.flow == 77 && late(offer));
        let waits = sparse.map(|(number, offer)| {
            let at = log.delivered_at(number).expect("nothing is dropped");
            at - offer.at - Time::from_millis(50)
        });
        waits.max().expect("there are some")
    };
    // 1.2 ms for the packet in transmission, 0.16 ms for its own.
    let never = Codel { target: Time::from_secs(3600), ..CODEL };
    let wait = delay_of_sparse(Aqm::FqCodel(FqCodel { codel: never, flows: 1024, quantum: 1514 }));
    assert!(wait <= Time::from_micros(1_360), "waited {wait:?}");
    let wait = delay_of_sparse(Aqm::DropTail);
    assert!(wait > Time::from_millis(100), "drop-tail makes it wait: {wait:?}");
}

/// RFC 8290, section 4.2: a queue that ran empty waits behind the busy ones before
/// it counts as new; otherwise twenty intermittent flows could starve a busy one.
#[test]
fn fq_codel_does_not_let_new_queues_starve_an_old_one() {
    let mut offers = vec![Offer { at: Time::ZERO, size: 1500, flow: 500 }; 2_000];
    // Together 99 % of the link, each with one packet per 24.2 ms.
    let at = |n: u64| Time::from_micros(n * 1_212);
    offers.extend((0..5_000).map(|n| Offer { at: at(n), size: 1500, flow: n % 20 }));
    let config = Config { buffer: Buffer::Unlimited, ..config(fq_codel()) };
    let log = run(config, &offers);
    let end = at(5_000);
    let passed = |number: &usize| log.delivered_at(*number).is_some_and(|at| at < end);
    let busy = (0..2_000).filter(passed).count() as f64;
    let share = busy / (end.as_millis_f64() / 1.2);
    assert!(share > 0.9 / 21.0, "{share} of the link, not a 21st");
}

/// RFC 8290, section 4.1: if the buffer is full, the longest queue loses packets.
#[test]
fn fq_codel_overflows_at_the_expense_of_the_longest_queue() {
    let mut offers = vec![Offer { at: Time::ZERO, size: 1500, flow: 1 }; 300];
    offers.extend([2, 3, 4].map(|flow| Offer { at: Time::ZERO, size: 1500, flow }));
    let log = run(Config { buffer: Buffer::Packets(100), ..config(fq_codel()) }, &offers);
    for (number, offer) in offers.iter().enumerate().skip(300) {
        assert!(log.delivered_at(number).is_some(), "flow {} lost its packet", offer.flow);
    }
    let dropped = |fate: &Fate| matches!(fate, Fate::Dropped { reason: DropReason::Queue, .. });
    assert!(log.count(dropped) >= 202, "303 packets, one leaves at once, 100 wait");
    // Drops are from the head: the last packet of flow 1 survives.
    assert!(log.delivered_at(299).is_some());
}
