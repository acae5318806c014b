//! Links in situations that can be computed by hand.

use crate::common::{Fate, Offer, burst, constant, link, plain, run};
use knee_link::{
    Aqm, Buffer, Config, Delay, DropReason, Jitter, Loss, Normal, Policer, RateModel, Steps,
    Threshold, Trace,
};
use knee_units::{Rate, Time};
use std::sync::Arc;

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

#[test]
fn a_burst_leaves_at_the_rate_and_arrives_after_the_delay() {
    let log = run(plain(), &burst(ms(5), 3));
    let arrivals: Vec<_> = (0..3).map(|n| log.delivered_at(n).expect("delivered")).collect();
    assert_eq!(arrivals, [us(26_200), us(27_400), us(28_600)]);
}

#[test]
fn an_unlimited_link_is_a_pure_delay() {
    let config = Config { rate: RateModel::Unlimited, buffer: Buffer::Bytes(0), ..plain() };
    let log = run(config, &burst(ms(5), 100));
    assert_eq!(log.count(|fate| *fate == Fate::Delivered { at: ms(25), marked: false }), 100);
}

/// One packet is in transmission, and as many wait as the buffer holds.
#[test]
fn the_buffer_holds_what_waits() {
    let cases = [
        (Buffer::Bytes(0), 1),
        (Buffer::Bytes(2_999), 2),
        (Buffer::Bytes(3_000), 3),
        (Buffer::Packets(0), 1),
        (Buffer::Packets(4), 5),
        (Buffer::Unlimited, 10),
    ];
    for (buffer, passing) in cases {
        let log = run(Config { buffer, ..plain() }, &burst(ms(0), 10));
        let delivered = |fate: &Fate| matches!(fate, Fate::Delivered { .. });
        assert_eq!(log.count(delivered), passing, "{buffer:?}");
        assert!(log.fates[..passing].iter().all(delivered), "the last ones are dropped");
        let dropped = Fate::Dropped { at: ms(0), reason: DropReason::Queue };
        assert_eq!(log.count(|fate| *fate == dropped), 10 - passing);
    }
}

#[test]
fn the_queue_is_reported_with_the_packet_in_transmission() {
    let mut link = link(plain());
    for offer in burst(ms(0), 10) {
        let packet = crate::common::Named {
            number: 0,
            size: offer.size,
            flow: 0,
            ecn_capable: false,
            marked: false,
        };
        link.send(offer.at, packet).expect("no limit");
    }
    let queue = link.queue(ms(3));
    assert_eq!((queue.bytes, queue.packets), (12_000, 8), "two have left by 2.4 ms");
    assert_eq!(queue.delay, ms(9), "12 ms of work, 3 done");
    assert_eq!((queue.departed_bytes, queue.capacity_bytes), (3_000, 3_750));
    let queue = link.queue(ms(20));
    assert_eq!((queue.bytes, queue.packets, queue.delay), (0, 0, Time::ZERO));
    assert_eq!((queue.departed_bytes, queue.capacity_bytes), (15_000, 25_000));
}

#[test]
fn an_outage_loses_what_waits_and_what_enters() {
    let config = Config { down: vec![(ms(3), ms(10))], ..plain() };
    // 24 ms of work, twice the time that the outage leaves.
    let mut offers = burst(ms(0), 20);
    offers.extend([ms(3), us(9_999), ms(10)].map(|at| Offer { at, size: 1500, flow: 0 }));
    let log = run(config, &offers);
    let lost = |at| Fate::Dropped { at, reason: DropReason::Down };
    let arrived = |at| Fate::Delivered { at, marked: false };
    // Two have left by 2.4 ms and are propagating.
    assert_eq!(log.fates[..2], [arrived(us(21_200)), arrived(us(22_400))]);
    assert!(log.fates[2..20].iter().all(|fate| *fate == lost(ms(3))));
    assert_eq!(log.fates[20..22], [lost(ms(3)), lost(us(9_999))]);
    // The link starts over, with an empty queue.
    assert_eq!(log.fates[22], arrived(us(31_200)));
}

/// What was transmitted stays used when the link goes down in the midst of a packet.
#[test]
fn an_outage_takes_no_used_bytes_back() {
    let mut link = link(Config { down: vec![(ms(3), ms(10))], ..plain() });
    let send = |link: &mut knee_link::Link<crate::common::Named>, at, number| {
        let packet =
            crate::common::Named { number, size: 1500, flow: 0, ecn_capable: false, marked: false };
        link.send(at, packet).expect("no limit");
    };
    (0..10).for_each(|number| send(&mut link, ms(0), number));
    // 1250 bytes a millisecond: the third packet was half sent.
    let used = [1, 2, 3, 5, 10].map(|at| link.queue(ms(at)).used_bytes);
    assert_eq!(used, [1250, 2500, 3750, 3750, 3750]);
    send(&mut link, ms(11), 10);
    let used = [12, 20].map(|at| link.queue(ms(at)).used_bytes);
    assert_eq!(used, [5000, 5250]);
}

#[test]
fn the_capacity_of_an_outage_is_nothing() {
    let mut link = link(Config { down: vec![(ms(100), ms(300))], ..plain() });
    assert_eq!(link.queue(ms(400)).capacity_bytes, 250_000);
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    let base = Steps(vec![(ms(0), ms(50)), (ms(10), ms(5))]);
    let config = Config { delay: Delay::steady(base), ..plain() };
    let offers = [8, 9, 15, 60].map(|at| Offer { at: ms(at), size: 1500, flow: 0 });
    let log = run(config, &offers);
    let arrivals: Vec<_> = (0..4).map(|n| log.delivered_at(n).expect("delivered")).collect();
    // The second departs at 10.4 ms, after the step, and waits for the first.
    assert_eq!(arrivals, [us(59_200), us(59_200), us(59_200), us(66_200)]);
}

/// The same link, whose packets may overtake: those after the step arrive 5 ms after they depart.
#[test]
fn packets_overtake_when_the_delay_falls_if_they_may() {
    let base = Steps(vec![(ms(0), ms(50)), (ms(10), ms(5))]);
    let config = Config { delay: Delay { reorder: true, ..Delay::steady(base) }, ..plain() };
    let offers = [8, 9, 15, 60].map(|at| Offer { at: ms(at), size: 1500, flow: 0 });
    let log = run(config, &offers);
    let arrivals: Vec<_> = (0..4).map(|n| log.delivered_at(n).expect("delivered")).collect();
    assert_eq!(arrivals, [us(59_200), us(15_400), us(21_200), us(66_200)]);
}

/// Uniform in 0..=20 ms: mean 10 ms, deviation 20/sqrt(12) = 5.77 ms.
#[test]
fn jitter_is_uniform_and_reorders_only_if_it_may() {
    let offers: Vec<Offer> =
        (0..20_000).map(|n| Offer { at: us(100 * n), size: 100, flow: 0 }).collect();
    let run_with = |reorder| {
        let jitter = Some(Jitter {
            amount: constant(ms(20)),
            least: ms(0),
            share: 1.0,
            normal: None,
            reorder,
        });
        let delay = Delay { base: constant(ms(30)), reorder: false, jitter };
        run(Config { rate: RateModel::Unlimited, delay, ..plain() }, &offers)
    };
    let log = run_with(true);
    let added: Vec<f64> = (0..offers.len())
        .map(|n| (log.delivered_at(n).expect("delivered") - offers[n].at - ms(30)).as_millis_f64())
        .collect();
    let mean = added.iter().sum::<f64>() / added.len() as f64;
    let variance = added.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / added.len() as f64;
    assert!((mean - 10.0).abs() < 0.2, "mean {mean} ms");
    assert!((variance.sqrt() - 5.77).abs() < 0.1, "deviation {} ms", variance.sqrt());
    assert!(added.iter().all(|x| (0.0..=20.0).contains(x)));
    assert!(!log.order.is_sorted());
    assert!(run_with(false).order.is_sorted());
}

/// Additions of packets that enter every `gap`, ms.
fn normal_additions(normal: Normal, gap: Time, reorder: bool) -> (Vec<f64>, Vec<usize>) {
    let offers: Vec<Offer> =
        (0..20_000).map(|n| Offer { at: gap * n, size: 100, flow: 0 }).collect();
    let amount = constant(normal.largest());
    let jitter = Jitter { amount, least: ms(0), share: 1.0, normal: Some(normal), reorder };
    let delay = Delay { base: constant(ms(30)), reorder: false, jitter: Some(jitter) };
    let log = run(Config { rate: RateModel::Unlimited, delay, ..plain() }, &offers);
    let added = (0..offers.len())
        .map(|n| (log.delivered_at(n).expect("delivered") - offers[n].at - ms(30)).as_millis_f64())
        .collect();
    (added, log.order.clone())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and deviation within four standard errors; a packet overtakes the one that entered 5 ms
/// before it if the difference of the two, of deviation 5 sqrt(2) ms, exceeds that: 24.0 %.
#[test]
fn normal_jitter_has_mean_and_deviation_and_overtakes_as_often_as_it_should() {
    let normal = Normal { mean: ms(20), deviation: ms(5) };
    let (added, order) = normal_additions(normal, ms(5), true);
    let n = added.len() as f64;
    assert!((mean(&added) - 20.0).abs() < 4.0 * 5.0 / n.sqrt(), "{}", mean(&added));
    let squares: Vec<f64> = added.iter().map(|x| (x - mean(&added)).powi(2)).collect();
    let deviation = mean(&squares).sqrt();
    assert!((deviation - 5.0).abs() < 4.0 * 5.0 / (2.0 * n).sqrt(), "{deviation}");
    // A share of 68.3 % within one deviation of the mean.
    let within = added.iter().filter(|x| (15.0..=25.0).contains(*x)).count() as f64 / n;
    assert!((within - 0.6827).abs() < 4.0 * (0.6827 * 0.3173 / n).sqrt(), "{within}");
    let overtakes = |pair: &&[f64]| pair[1] + 5.0 < pair[0];
    let share = added.windows(2).filter(overtakes).count() as f64 / n;
    assert!((share - 0.2398).abs() < 0.015, "{share}");
    assert!(added.iter().all(|x| (0.0..=40.0).contains(x)) && !order.is_sorted());
    assert!(normal_additions(normal, ms(5), false).1.is_sorted());
}

/// What would be negative is zero, for half of the packets with a mean of zero; the mean of the rest
/// is that of a half-normal distribution: in all, deviation / sqrt(2 pi).
#[test]
fn normal_jitter_below_zero_is_none() {
    let (added, _) = normal_additions(Normal { mean: ms(0), deviation: ms(5) }, ms(1), true);
    let none = added.iter().filter(|x| **x == 0.0).count() as f64 / added.len() as f64;
    assert!((none - 0.5).abs() < 4.0 * 0.5 / (added.len() as f64).sqrt(), "{none}");
    assert!((mean(&added) - 1.9947).abs() < 0.09, "{}", mean(&added));
    assert!(added.iter().all(|x| *x <= 20.0));
}

/// A tenth of the packets are late by 5 to 20 ms, mean 12.5 ms, the others are
/// not: within four standard deviations of binomial and uniform distribution.
#[test]
fn a_share_of_the_packets_is_late() {
    let (n, share) = (20_000.0, 0.1);
    let offers: Vec<Offer> =
        (0..20_000).map(|n| Offer { at: us(100 * n), size: 100, flow: 0 }).collect();
    let jitter =
        Some(Jitter { amount: constant(ms(20)), least: ms(5), share, normal: None, reorder: true });
    let delay = Delay { base: constant(ms(30)), reorder: false, jitter };
    let log = run(Config { rate: RateModel::Unlimited, delay, ..plain() }, &offers);
    let added = |n: usize| log.delivered_at(n).expect("delivered") - offers[n].at - ms(30);
    let late: Vec<_> = (0..offers.len()).map(added).filter(|added| *added > ms(0)).collect();
    let count = late.len() as f64;
    assert!((count - n * share).abs() <= 4.0 * (n * share * (1.0 - share)).sqrt(), "{count}");
    let mean = late.iter().map(|added| added.as_millis_f64()).sum::<f64>() / count;
    assert!((mean - 12.5).abs() <= 4.0 * 15.0 / (12.0 * count).sqrt(), "mean {mean} ms");
    assert!(late.iter().all(|added| (ms(5)..=ms(20)).contains(added)));
}

/// A frame retransmitted on a link that keeps order delays those behind it: the
/// share is late by exactly this much, and later packets arrive with it.
#[test]
fn where_order_is_kept_the_late_hold_up_those_behind() {
    let offers: Vec<Offer> =
        (0..5_000).map(|n| Offer { at: us(1000 * n), size: 100, flow: 0 }).collect();
    let jitter = Some(Jitter {
        amount: constant(ms(8)),
        least: ms(8),
        share: 0.02,
        normal: None,
        reorder: false,
    });
    let delay = Delay { base: constant(ms(30)), reorder: false, jitter };
    let log = run(Config { rate: RateModel::Unlimited, delay, ..plain() }, &offers);
    let added: Vec<u64> = (0..offers.len())
        .map(|n| (log.delivered_at(n).expect("delivered") - offers[n].at - ms(30)).as_nanos())
        .collect();
    assert!(log.order.is_sorted());
    assert_eq!(added.iter().max(), Some(&8_000_000));
    // One packet per millisecond: each waits one millisecond less than the previous one.
    for pair in added.windows(2) {
        let next = pair[0].saturating_sub(1_000_000);
        assert!(pair[1] == next || pair[1] == 8_000_000, "{pair:?}");
    }
}

/// The step current at a packet's departure bounds its jitter; the mean is half.
#[test]
fn jitter_changes_in_steps() {
    let offers: Vec<Offer> =
        (0..30_000).map(|n| Offer { at: us(100 * n), size: 100, flow: 0 }).collect();
    let amount = Steps(vec![(ms(0), ms(20)), (ms(1000), ms(0)), (ms(2000), ms(6))]);
    let jitter = Some(Jitter { amount, least: ms(0), share: 1.0, normal: None, reorder: true });
    let delay = Delay { base: constant(ms(30)), reorder: false, jitter };
    let log = run(Config { rate: RateModel::Unlimited, delay, ..plain() }, &offers);
    for (second, most) in [(0, 20.0), (1, 0.0), (2, 6.0)] {
        let added: Vec<f64> = (second * 10_000..(second + 1) * 10_000)
            .map(|n| log.delivered_at(n).expect("delivered") - offers[n].at - ms(30))
            .map(|added| added.as_millis_f64())
            .collect();
        let mean = added.iter().sum::<f64>() / added.len() as f64;
        assert!((mean - most / 2.0).abs() <= most / 50.0, "second {second}: mean {mean} ms");
        assert!(added.iter().all(|x| *x <= most), "second {second}");
    }
}

/// 1 % for a second, then 30 %, then none: each within four standard deviations
/// of the binomial distribution.
#[test]
fn loss_changes_in_steps() {
    let steps = [(0, Loss::Independent(0.01)), (1, Loss::Independent(0.3)), (2, Loss::None)];
    let steps = steps.map(|(at, loss)| (Time::from_secs(at), loss)).to_vec();
    let loss = Loss::Steps(Steps(steps));
    let offers: Vec<Offer> =
        (0..300_000).map(|n| Offer { at: us(10 * n), size: 100, flow: 0 }).collect();
    let log = run(Config { rate: RateModel::Unlimited, loss, ..plain() }, &offers);
    for (second, p) in [(0, 0.01), (1, 0.3), (2, 0.0)] {
        let n = 100_000.0;
        let fates = &log.fates[second * 100_000..(second + 1) * 100_000];
        let lost = fates.iter().filter(|fate| matches!(fate, Fate::Dropped { .. })).count() as f64;
        assert!(
            (lost - n * p).abs() <= 4.0 * (n * p * (1.0 - p)).sqrt(),
            "second {second}: {lost}"
        );
    }
}

/// Ten packets two milliseconds apart would reach the far end at 21.2, 23.2 …
/// 39.2 ms; the link holds packets from 23 to 27 ms.
#[test]
fn a_hold_releases_in_order_at_its_end() {
    let offers: Vec<Offer> =
        (0..10).map(|n| Offer { at: ms(2 * n), size: 1500, flow: 0 }).collect();
    let log = run(Config { hold: vec![(ms(23), ms(27))], ..plain() }, &offers);
    let arrivals: Vec<_> = (0..10).map(|n| log.delivered_at(n).expect("delivered")).collect();
    let plain = (0..10).map(|n| us(21_200 + 2_000 * n));
    let expected = plain.map(|at| if at > ms(23) && at < ms(27) { ms(27) } else { at });
    assert_eq!(arrivals, expected.collect::<Vec<_>>());
    assert!(log.order.is_sorted());
}

#[test]
fn a_step_marks_what_waits_too_long() {
    let aqm = Aqm::Threshold(Threshold { delay: ms(6) });
    let log = run(Config { aqm, ..plain() }, &burst(ms(0), 20));
    for (number, fate) in log.fates.iter().enumerate() {
        // Packet k waits k times 1.2 ms; the odd ones can be marked.
        let expected = number % 2 == 1 && number as u64 * 1_200 > 6_000;
        let marked = matches!(fate, Fate::Delivered { marked: true, .. });
        assert_eq!(marked, expected, "packet {number}");
    }
    assert_eq!(log.count(|fate| matches!(fate, Fate::Delivered { .. })), 20);
}

#[test]
fn a_policer_drops_before_the_queue() {
    let policer = Policer { rate: Rate::from_bits_per_second(1_000_000), burst: 4_500 };
    let log = run(Config { policer: Some(policer), ..plain() }, &burst(ms(0), 10));
    let dropped = Fate::Dropped { at: ms(0), reason: DropReason::Policer };
    assert_eq!(log.count(|fate| *fate == dropped), 7);
}

#[test]
fn counters_tell_drops_from_losses() {
    let config = Config { loss: Loss::Periodic(5), buffer: Buffer::Packets(9), ..plain() };
    let mut link = link(config);
    let log = crate::common::drive(&mut link, &burst(ms(0), 100), true);
    let counters = link.counters();
    assert_eq!(counters.entered_packets, 100);
    assert_eq!(counters.lost_packets, 20);
    assert_eq!(counters.dropped_packets, 70);
    assert_eq!(counters.delivered_packets, 10);
    assert_eq!(log.order, [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]);
}

#[test]
fn a_saturating_source_uses_every_opportunity_of_a_trace() {
    // Bursts and gaps; the time between offers is far shorter than necessary.
    let opportunities_ms: Vec<u32> = (1..=400).map(|n: u32| n * n / 80 + n % 3 * 5).collect();
    let mut sorted = opportunities_ms;
    sorted.sort_unstable();
    let trace = Trace { name: "test".into(), opportunities_ms: sorted.clone(), offset: Time::ZERO };
    let delay = Delay::steady(constant(Time::ZERO));
    let config = Config { rate: RateModel::Trace(Arc::new(trace)), delay, ..plain() };
    let offers: Vec<Offer> =
        (0..6_000).map(|n| Offer { at: us(0), size: 200 + n % 1301, flow: 0 }).collect();
    let log = run(config, &offers);
    let period = u64::from(*sorted.last().expect("not empty"));
    let mut bytes_by_ms = vec![0_u64; 4 * period as usize];
    for (number, offer) in offers.iter().enumerate() {
        let at = log.delivered_at(number).expect("delivered").as_nanos();
        assert_eq!(at % 1_000_000, 0, "opportunities come at whole milliseconds");
        if let Some(bytes) = bytes_by_ms.get_mut((at / 1_000_000) as usize) {
            *bytes += u64::from(offer.size);
        }
    }
    let (mut allowed, mut delivered) = (0, 0);
    for (time, bytes) in bytes_by_ms.iter().enumerate().skip(1) {
        let time = time as u64;
        // The last of one repetition and a zero of the next coincide.
        let here = |ms: &&u32| time % period == u64::from(**ms) % period;
        allowed += 1500 * sorted.iter().filter(here).count() as u64;
        delivered += bytes;
        assert!(delivered <= allowed, "at {time} ms");
        assert!(delivered + 1500 > allowed, "at {time} ms: {delivered} of {allowed}");
    }
}

#[test]
#[should_panic(expected = "the first step is at time zero")]
fn impossible_configurations_are_refused() {
    let base = Steps(vec![(ms(1), ms(1))]);
    link(Config { delay: Delay::steady(base), ..plain() });
}
