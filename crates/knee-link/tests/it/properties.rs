//! Properties of every link and every pattern of arrivals.

use crate::common::{Fate, Log, Offer, bits, constant, drive, link, plain, run};
use knee_link::{
    Aqm, Buffer, CircuitBreaker, Codel, Config, Delay, Device, DropReason, FqCodel, Jitter, Loss,
    Pie, Policer, RateModel, Red, Steps, Threshold, Trace,
};
use knee_units::{Rate, Time};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

const MS: u64 = 1_000_000;
/// CoDel that never drops.
const NEVER: Codel =
    Codel { target: Time::from_secs(3600), interval: Time::from_secs(3600), ecn: false };

/// Strictly ascending times from zero, each with a value.
fn steps<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = Steps<T>> {
    (value.clone(), vec((1..200 * MS, value), 0..4)).prop_map(|(first, others)| {
        let mut time = 0;
        let mut steps = vec![(Time::ZERO, first)];
        for (span, value) in others {
            time += span;
            steps.push((Time::from_nanos(time), value));
        }
        Steps(steps)
    })
}

fn rate() -> impl Strategy<Value = Rate> + Clone {
    (100_000_u64..2_000_000_000).prop_map(Rate::from_bits_per_second)
}

fn rate_or_none() -> impl Strategy<Value = Rate> + Clone {
    prop_oneof![1 => Just(Rate::ZERO), 3 => rate()]
}

fn trace() -> impl Strategy<Value = RateModel> {
    (vec(0_u32..40, 1..60), 1_u32..40, any::<u64>()).prop_map(|(mut times, last, offset)| {
        times.sort_unstable();
        times.push(times.last().copied().unwrap_or(0) + last);
        let period = Time::from_millis(u64::from(*times.last().expect("not empty"))).as_nanos();
        // Half of them have no offset.
        let offset = if offset % 2 == 0 { 0 } else { offset % period };
        let (name, offset) = ("random".into(), Time::from_nanos(offset));
        RateModel::Trace(Arc::new(Trace { name, opportunities_ms: times, offset }))
    })
}

/// Rates with which every packet eventually leaves.
fn rate_model() -> impl Strategy<Value = RateModel> {
    let with_end = (steps(rate_or_none()), rate()).prop_map(|(mut steps, last)| {
        let end = steps.0.last().map_or(Time::ZERO, |(from, _)| *from);
        steps.0.push((end + Time::from_millis(50), last));
        RateModel::Steps(steps)
    });
    prop_oneof![rate().prop_map(RateModel::Constant), with_end, trace()]
}

fn delay() -> impl Strategy<Value = Delay> {
    let amount = steps((0..50 * MS).prop_map(Time::from_nanos));
    let share = prop_oneof![Just(1.0), 0.0..=1.0];
    // A fraction of the smallest amount.
    let jitter = (amount, 0u64..=4, share, any::<bool>());
    let jitter = jitter.prop_map(|(amount, quarters, share, reorder)| {
        let smallest = amount.0.iter().map(|(_, amount)| *amount).min().unwrap_or_default();
        Jitter { amount, least: smallest * quarters / 4, share, normal: None, reorder }
    });
    let base = steps((0..100 * MS).prop_map(Time::from_nanos));
    (base, any::<bool>(), option::of(jitter)).prop_map(|(base, reorder, jitter)| Delay {
        base,
        reorder,
        jitter,
    })
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        Just(Buffer::Unlimited),
        (0_u64..100_000).prop_map(Buffer::Bytes),
        (0_u64..60).prop_map(Buffer::Packets),
    ]
}

fn time_ms(range: std::ops::Range<u64>) -> impl Strategy<Value = Time> + Clone {
    range.prop_map(Time::from_millis)
}

fn aqm() -> impl Strategy<Value = Aqm> {
    let codel = (time_ms(1..20), time_ms(10..200), any::<bool>())
        .prop_map(|(target, interval, ecn)| Codel { target, interval, ecn });
    let fq = (codel.clone(), 1_u32..8, 100_u32..3000)
        .prop_map(|(codel, flows, quantum)| Aqm::FqCodel(FqCodel { codel, flows, quantum }));
    let pie = (time_ms(1..30), time_ms(1..30), time_ms(0..200), any::<bool>())
        .prop_map(|(target, update, burst, ecn)| Aqm::Pie(Pie { target, update, burst, ecn }));
    let red = (0_u64..50_000, 1_u64..100_000, 0.01..1.0, 0.001..0.5, any::<bool>()).prop_map(
        |(min, more, max_probability, weight, ecn)| {
            let (min_threshold_bytes, max_threshold_bytes) = (min, min + more);
            Aqm::Red(Red { min_threshold_bytes, max_threshold_bytes, max_probability, weight, ecn })
        },
    );
    let step = time_ms(0..50).prop_map(|delay| Aqm::Threshold(Threshold { delay }));
    prop_oneof![2 => Just(Aqm::DropTail), 1 => codel.prop_map(Aqm::Codel), 1 => fq, 1 => pie,
        1 => red, 1 => step]
}

fn device() -> impl Strategy<Value = Option<Device>> {
    option::of(prop_oneof![
        (1_u64..20_000).prop_map(Device::Bytes),
        (1_u64..20).prop_map(Device::Packets),
    ])
}

fn aqm_with_device() -> impl Strategy<Value = (Aqm, Option<Device>)> {
    let may =
        |(aqm, device): (Aqm, Option<Device>)| (aqm, device.filter(|_| aqm.decides_on_leaving()));
    (aqm(), device()).prop_map(may)
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![4 => plain_loss(), 1 => steps(plain_loss()).prop_map(Loss::Steps)]
}

fn plain_loss() -> impl Strategy<Value = Loss> + Clone {
    let chance = 0.0..=1.0;
    let gilbert_elliott = [chance.clone(), chance.clone(), chance.clone(), chance.clone()];
    prop_oneof![
        2 => Just(Loss::None),
        1 => (0.0..0.5).prop_map(Loss::Independent),
        1 => (1_u64..50).prop_map(Loss::Periodic),
        1 => gilbert_elliott.prop_map(|[good_to_bad, bad_to_good, loss_good, loss_bad]| {
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }
        }),
        1 => vec(any::<bool>(), 1..40).prop_map(|lost| Loss::Recorded(lost.into())),
    ]
}

fn outages() -> impl Strategy<Value = Vec<(Time, Time)>> {
    vec((0..100 * MS, 1..50 * MS), 0..3).prop_map(|spans| {
        let mut end = 0;
        let mut span = |(gap, length): (u64, u64)| {
            let from = end + gap;
            end = from + length;
            (Time::from_nanos(from), Time::from_nanos(end))
        };
        spans.into_iter().map(&mut span).collect()
    })
}

fn circuit_breaker() -> impl Strategy<Value = CircuitBreaker> {
    (time_ms(5..200), 0.0..=1.0, 1_u32..4, option::of(time_ms(1..300))).prop_map(
        |(interval, loss, intervals, reset_after)| CircuitBreaker {
            interval,
            loss,
            intervals,
            reset_after,
        },
    )
}

fn any_config() -> impl Strategy<Value = Config> {
    let policer = (rate(), 0_u64..50_000).prop_map(|(rate, burst)| Policer { rate, burst });
    let rate = prop_oneof![1 => Just(RateModel::Unlimited), 5 => rate_model()];
    let queue = (buffer(), aqm_with_device());
    let spans = (outages(), outages());
    let ends = (option::of(circuit_breaker()), any::<bool>());
    (rate, delay(), queue, loss(), option::of(policer), spans, ends).prop_map(
        |(rate, delay, (buffer, (aqm, device)), loss, policer, (down, hold), ends)| Config {
            rate,
            delay,
            buffer,
            aqm,
            device,
            loss,
            policer,
            down,
            hold,
            circuit_breaker: ends.0,
            ecn_bleached: ends.1,
            pause: None,
            pausable: false,
        },
    )
}

/// Whether a circuit breaker has tripped at each of some times, worked out from what
/// became of all packets: RFC 8084's meters, read at the end of each interval.
fn tripped(breaker: &CircuitBreaker, offers: &[Offer], log: &Log) -> Vec<bool> {
    let last = offers.last().map_or(Time::ZERO, |offer| offer.at);
    let mut spans = Vec::new();
    let (mut start, mut congested) = (Time::ZERO, 0);
    while start < last {
        let end = start + breaker.interval;
        let within = |at: Time| at > start && at <= end || at == Time::ZERO && start == at;
        let entered = offers.iter().filter(|offer| within(offer.at)).count();
        let missing = log.count(|fate| matches!(fate, Fate::Dropped { at, .. } if within(*at)));
        let is_congested = entered > 0 && missing as f64 > breaker.loss * entered as f64;
        congested = if is_congested { congested + 1 } else { 0 };
        start = end;
        if congested == breaker.intervals {
            start = breaker.reset_after.map_or(Time::MAX, |after| end + after);
            spans.push((end, start));
            congested = 0;
        }
    }
    let is_in = |at: Time| spans.iter().any(|(from, until)| at > *from && at <= *until);
    offers.iter().map(|offer| is_in(offer.at)).collect()
}

/// Bursts, trains and pauses.
fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let gap = prop_oneof![3 => Just(0), 3 => 0..2 * MS, 1 => 0..80 * MS, 1 => 0..20_u64];
    let size = prop_oneof![1 => Just(1500_u32), 1 => 40_u32..3000];
    vec((gap, size, 0_u64..5), 1..250).prop_map(|packets| {
        let mut now = 0;
        let mut offer = |(gap, size, flow)| {
            now += gap;
            Offer { at: Time::from_nanos(now), size, flow }
        };
        packets.into_iter().map(&mut offer).collect()
    })
}

fn may_reorder(config: &Config) -> bool {
    let unlimited = config.rate == RateModel::Unlimited;
    config.delay.reorder
        || config.delay.jitter.as_ref().is_some_and(|jitter| jitter.reorder)
        || (matches!(config.aqm, Aqm::FqCodel(_)) && !unlimited)
}

fn smallest_delay(delay: &Delay) -> Time {
    delay.base.0.iter().map(|(_, base)| *base).min().expect("at least one step")
}

/// Returns the work in bit/s x ns that the rate does between two times, by
/// summing the parts; an opportunity of a trace takes no time.
fn work_between(rate: &RateModel, from: u64, to: u64) -> u128 {
    match rate {
        RateModel::Unlimited => u128::MAX,
        RateModel::Constant(rate) => u128::from(rate.as_bits_per_second()) * u128::from(to - from),
        RateModel::Steps(steps) => {
            let mut work = 0;
            for (index, (begin, rate)) in steps.0.iter().enumerate() {
                let end = steps.0.get(index + 1).map_or(u64::MAX, |next| next.0.as_nanos());
                let (begin, end) = (begin.as_nanos().max(from), end.min(to));
                let span = end.saturating_sub(begin);
                work += u128::from(rate.as_bits_per_second()) * u128::from(span);
            }
            work
        }
        RateModel::Trace(trace) => {
            let period = u64::from(*trace.opportunities_ms.last().expect("not empty")) * MS;
            let (from, to) = (from + trace.offset.as_nanos(), to + trace.offset.as_nanos());
            let mut opportunities = 0;
            for repetition in from / period..=to / period {
                for ms in &trace.opportunities_ms {
                    let at = repetition * period + u64::from(*ms) * MS;
                    opportunities += u128::from((from..=to).contains(&at));
                }
            }
            // The last one of the previous repetition coincides with the start
            // of the first.
            opportunities += u128::from(from.is_multiple_of(period) && from > 0);
            opportunities * 1500 * 8_000_000_000
        }
    }
}

/// Between any two departures the link sends no more than the rate allows.
fn assert_rate_kept(config: &Config, offers: &[Offer], log: &Log) -> Result<(), TestCaseError> {
    let delay = config.delay.base.0[0].1;
    let left: Vec<(u64, u64)> = (log.order.iter())
        .map(|number| {
            let at = log.delivered_at(*number).expect("it is in the order of deliveries");
            ((at - delay).as_nanos(), u64::from(offers[*number].size))
        })
        .collect();
    for first in 0..left.len() {
        let mut bytes = 0;
        for last in first + 1..left.len() {
            bytes += left[last].1;
            // Departures are rounded up to the nanosecond.
            let from = left[first].0.saturating_sub(1);
            let possible = work_between(&config.rate, from, left[last].0);
            prop_assert!(
                u128::from(bytes) * 8_000_000_000 <= possible,
                "{bytes} bytes from {from} to {} ns",
                left[last].0
            );
        }
    }
    Ok(())
}

/// A drop-tail queue at a constant rate in exact fractions, directly from the
/// definition: which packets are accepted, and when they leave (rounded up).
fn reference(rate: u64, buffer: Buffer, offers: &[Offer]) -> Vec<Option<Time>> {
    let mut queue: VecDeque<(u128, u64)> = VecDeque::new();
    let mut end = 0_u128;
    let mut departures = vec![];
    for offer in offers {
        let now = u128::from(offer.at.as_nanos()) * u128::from(rate);
        queue.retain(|(leaves, _)| leaves.div_ceil(u128::from(rate)) > now / u128::from(rate));
        let waiting = queue.iter().skip(1);
        let fits = match buffer {
            _ if queue.is_empty() => true,
            Buffer::Unlimited => true,
            Buffer::Bytes(limit) => {
                waiting.map(|(_, size)| size).sum::<u64>() + u64::from(offer.size) <= limit
            }
            Buffer::Packets(limit) => (waiting.count() as u64) < limit,
        };
        if fits {
            end = end.max(now) + u128::from(offer.size) * 8_000_000_000;
            queue.push_back((end, u64::from(offer.size)));
        }
        departures.push(fits.then(|| Time::from_nanos(end.div_ceil(u128::from(rate)) as u64)));
    }
    departures
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn packets_are_conserved_and_nothing_is_early(config in any_config(), offers in offers()) {
        let mut link = link(config.clone());
        let log = drive(&mut link, &offers, true);
        let delay = smallest_delay(&config.delay);
        for (fate, offer) in log.fates.iter().zip(&offers) {
            match fate {
                Fate::Inside => prop_assert!(false, "a packet never came out: {offer:?}"),
                Fate::Delivered { at, .. } => prop_assert!(*at >= offer.at + delay),
                Fate::Dropped { at, .. } => prop_assert!(*at >= offer.at),
            }
        }
        if !may_reorder(&config) {
            prop_assert!(log.order.is_sorted(), "{:?}", log.order);
        }

        let counters = link.counters();
        let lost = |reason| matches!(reason, DropReason::Loss | DropReason::Down);
        let count = |of: &dyn Fn(&Fate) -> bool| log.count(of) as u64;
        prop_assert_eq!(counters.entered_packets, offers.len() as u64);
        prop_assert_eq!(counters.delivered_packets, log.order.len() as u64);
        prop_assert_eq!(
            counters.lost_packets,
            count(&|fate| matches!(fate, Fate::Dropped { reason, .. } if lost(*reason)))
        );
        prop_assert_eq!(
            counters.dropped_packets,
            count(&|fate| matches!(fate, Fate::Dropped { reason, .. } if !lost(*reason)))
        );
        let end = Time::from_secs(3600);
        let delivered: u64 = log.order.iter().map(|n| u64::from(offers[*n].size)).sum();
        let queue = link.queue(end);
        prop_assert_eq!((queue.bytes, queue.packets), (0, 0));
        prop_assert_eq!(queue.departed_bytes, delivered);
        prop_assert!(config.rate == RateModel::Unlimited || delivered <= queue.capacity_bytes);
    }

    /// A circuit breaker drops whatever enters while it has tripped, and nothing else.
    #[test]
    fn a_breaker_trips_by_its_meters(
        config in any_config(),
        breaker in circuit_breaker(),
        offers in offers(),
    ) {
        let config = Config { circuit_breaker: Some(breaker), ..config };
        let log = run(config, &offers);
        for (number, tripped) in tripped(&breaker, &offers, &log).into_iter().enumerate() {
            let at = offers[number].at;
            let cut = log.fates[number] == Fate::Dropped { at, reason: DropReason::Breaker };
            prop_assert_eq!(cut, tripped, "packet {}", number);
        }
    }

    /// Clearing the ECN field changes marks at the far end, and nothing else.
    #[test]
    fn bleaching_changes_marks_alone(config in any_config(), offers in offers()) {
        let kept = run(Config { ecn_bleached: false, ..config.clone() }, &offers);
        let bleached = run(Config { ecn_bleached: true, ..config }, &offers);
        prop_assert_eq!(&kept.order, &bleached.order);
        for (kept, bleached) in kept.fates.iter().zip(&bleached.fates) {
            let expected = match *kept {
                Fate::Delivered { at, .. } => Fate::Delivered { at, marked: false },
                other => other,
            };
            prop_assert_eq!(*bleached, expected);
        }
    }

    /// Polling late changes when a packet is handed over, but not its fate.
    #[test]
    fn a_late_caller_sees_the_same_link(config in any_config(), offers in offers()) {
        let punctual = run(config.clone(), &offers);
        let late = drive(&mut link(config), &offers, false);
        prop_assert_eq!(punctual.order, late.order);
        for (punctual, late) in punctual.fates.iter().zip(&late.fates) {
            match (punctual, late) {
                (Fate::Delivered { marked: a, .. }, Fate::Delivered { marked: b, .. }) => {
                    prop_assert_eq!(a, b);
                }
                _ => prop_assert_eq!(punctual, late),
            }
        }
    }

    #[test]
    fn no_window_exceeds_the_rate(
        rate in rate_model(), buffer in buffer(), queue in aqm_with_device(), down in outages(),
        offers in offers(),
    ) {
        let (aqm, device) = queue;
        let config = Config { rate, buffer, aqm, device, down, ..plain() };
        let log = run(config.clone(), &offers);
        assert_rate_kept(&config, &offers, &log)?;
        let delay = config.delay.base.0[0].1;
        for number in &log.order {
            let left = log.delivered_at(*number).expect("delivered") - delay;
            let outage = config.down.iter().find(|(from, to)| *from < left && left <= *to);
            prop_assert_eq!(outage, None, "packet {} left at {:?}", number, left);
        }
    }

    #[test]
    fn drop_tail_is_the_reference(
        rate in 100_000_u64..2_000_000_000, buffer in buffer(), offers in offers(),
    ) {
        let log = run(Config { rate: bits(rate), buffer, ..plain() }, &offers);
        let expected = reference(rate, buffer, &offers);
        for (number, departure) in expected.into_iter().enumerate() {
            let arrival = departure.map(|at| at + Time::from_millis(20));
            prop_assert_eq!(log.delivered_at(number), arrival, "packet {}", number);
        }
    }

    /// CoDel and FQ-CoDel decide at departure, drop-tail on entry; if none of
    /// them drops, they are the same link to the nanosecond.
    #[test]
    fn early_and_late_departures_agree(rate in rate_model(), mut offers in offers()) {
        offers.iter_mut().for_each(|offer| offer.flow = 3);
        let codel = NEVER;
        let with = |aqm| run(Config { rate: rate.clone(), aqm, ..plain() }, &offers);
        let drop_tail = with(Aqm::DropTail);
        prop_assert_eq!(&with(Aqm::Codel(codel)), &drop_tail);
        let fq_codel = FqCodel { codel, flows: 16, quantum: 300 };
        prop_assert_eq!(&with(Aqm::FqCodel(fq_codel)), &drop_tail);
    }

    /// A device changes when a packet is handed over, and so which packets are
    /// dropped, but not when a packet is transmitted.
    #[test]
    fn a_device_costs_the_wire_nothing(
        rate in rate_model(), device in device(), mut offers in offers(),
    ) {
        offers.iter_mut().for_each(|offer| offer.flow = 3);
        let fq_codel = FqCodel { codel: NEVER, flows: 16, quantum: 300 };
        for aqm in [Aqm::Codel(NEVER), Aqm::FqCodel(fq_codel)] {
            let with = |device| run(Config { rate: rate.clone(), aqm, device, ..plain() }, &offers);
            prop_assert_eq!(&with(device), &with(None));
        }
    }

    /// Effect of a hold, by its definition: an arrival within a span moves to its end.
    #[test]
    fn a_hold_moves_arrivals_to_its_end(
        config in any_config(), hold in outages(), offers in offers(),
    ) {
        let free = run(Config { hold: vec![], ..config.clone() }, &offers);
        let held = run(Config { hold: hold.clone(), ..config }, &offers);
        for (free, held) in free.fates.iter().zip(&held.fates) {
            let Fate::Delivered { at, marked } = *free else {
                prop_assert_eq!(held, free);
                continue;
            };
            let span = hold.iter().find(|(from, until)| (*from..*until).contains(&at));
            let at = span.map_or(at, |(_, until)| *until);
            prop_assert_eq!(*held, Fate::Delivered { at, marked });
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(config in any_config(), offers in offers()) {
        prop_assert_eq!(run(config.clone(), &offers), run(config, &offers));
    }

    #[test]
    fn the_queue_respects_its_limit(
        rate in rate_model(), buffer in buffer(), aqm in aqm(), offers in offers(),
    ) {
        let delay = Delay::steady(constant(Time::ZERO));
        let mut link = link(Config { rate, buffer, aqm, delay, ..plain() });
        let mut largest = 0;
        for (number, offer) in offers.iter().enumerate() {
            largest = largest.max(u64::from(offer.size));
            let packet = crate::common::Named {
                number, size: offer.size, flow: offer.flow, ecn_capable: true, marked: false,
            };
            let _ = link.send(offer.at, packet);
            let queue = link.queue(offer.at);
            match buffer {
                Buffer::Unlimited => {}
                // The packet in transmission is not counted.
                Buffer::Bytes(limit) => prop_assert!(queue.bytes <= limit + largest),
                Buffer::Packets(limit) => prop_assert!(queue.packets <= limit + 1),
            }
        }
    }
}
