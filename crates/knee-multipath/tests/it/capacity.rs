//! The rate of a path from trains of acknowledgements, compared with a
//! bottleneck of known rate.

use knee_multipath::CapacityMeter;
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const MSS: u64 = 1000;
/// 1000 packets of 1000 bytes per second.
const RATE: f64 = 8e6;
const PACKET_NS: u64 = 1_000_000;
const RTT_NS: u64 = 50_000_000;

/// Send times of the packets, ns.
type Sends = Vec<u64>;

/// Sends `burst` packets at once in every round trip.
fn in_bursts(burst: u64, rounds: u64) -> Sends {
    (0..rounds).flat_map(|round| (0..burst).map(move |_| round * RTT_NS)).collect()
}

/// Returns the measured rate if the acknowledgement of each packet, served one
/// by one at the bottleneck, arrives when `held` allows.
fn measured(sends: &Sends, held: impl FnMut(u64) -> u64) -> Option<f64> {
    measured_by(CapacityMeter::default(), sends, held)
}

fn measured_by(
    mut meter: CapacityMeter,
    sends: &Sends,
    mut held: impl FnMut(u64) -> u64,
) -> Option<f64> {
    let (mut free_at, mut last) = (0, 0);
    for (number, sent) in sends.iter().enumerate() {
        free_at = free_at.max(*sent) + PACKET_NS;
        // Acknowledgements do not overtake each other.
        last = held(free_at + RTT_NS - PACKET_NS).max(last);
        let [now, sent] = [last, *sent].map(Time::from_nanos);
        meter.on_ack(now, (number as u64 + 1) * MSS, sent, Time::from_nanos(RTT_NS), MSS);
    }
    meter.capacity().map(|rate| rate.as_bits_per_second() as f64 / RATE)
}

fn near(measured: Option<f64>, low: f64, high: f64) {
    let part = measured.unwrap_or(0.0);
    assert!((low..=high).contains(&part), "{part:.3} of the bottleneck's rate");
}

/// A window of a fifth of what the path holds: the delivery rate is a fifth.
#[test]
fn a_window_limited_path_shows_its_rate() {
    near(measured(&in_bursts(10, 40), |at| at), 0.99, 1.01);
}

/// The first burst gives the rate within its round trip; before it, a pair does.
#[test]
fn the_first_packets_tell_it() {
    near(measured(&in_bursts(2, 1), |at| at), 0.99, 1.01);
    near(measured(&in_bursts(10, 1), |at| at), 0.99, 1.01);
    assert_eq!(measured(&in_bursts(1, 1), |at| at), None);
}

/// The bottleneck always has packets to serve, sent at its own rate.
fn paced(packets: u64) -> Sends {
    (0..packets).map(|number| number * PACKET_NS).collect()
}

/// Acknowledgements arrive together every 20 ms, as over Wi-Fi or LTE.
#[test]
fn compressed_acknowledgements_do_not_inflate_it() {
    let every_20_ms = |at: u64| at.next_multiple_of(20_000_000);
    near(measured(&paced(4000), every_20_ms), 0.7, 1.25);
}

/// A host that sends and reads once in a tick of 5 ms, now and then a tick later, or
/// whose acknowledgements come in clumps of several ticks.
#[test]
fn ticks_do_not_inflate_it() {
    const TICK_NS: u64 = 5_000_000;
    for clump in [1, 2, 4, 10] {
        let every = clump * TICK_NS;
        let sends: Sends = paced(4000).into_iter().map(|at| at / every * every).collect();
        let by = |meter: CapacityMeter| {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let in_clumps = |at: u64| {
                // They are read one after another, not at once.
                let late = TICK_NS * u64::from(rng.next_u32().is_multiple_of(20));
                at.next_multiple_of(every) + late + at % every / 1000
            };
            measured_by(meter, &sends, in_clumps)
        };
        near(by(CapacityMeter::ticking(Time::from_nanos(TICK_NS))), 0.75, 1.1);
        // One that does not know looks much too fast.
        near(by(CapacityMeter::default()), 1.5, 1e6);
    }
}

/// Each is late by up to 10 ms, without overtaking.
#[test]
fn jitter_does_not_inflate_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let late = |at: u64| at + u64::from(rng.next_u32() % 10_000_000);
    near(measured(&paced(4000), late), 0.7, 1.25);
}

/// The rate falls to a tenth: only recent trains count.
#[test]
fn what_is_long_ago_is_forgotten() {
    let mut sends = in_bursts(10, 40);
    let begin = 41 * RTT_NS;
    sends.extend((0..400).map(|number| begin + number * 10 * PACKET_NS));
    near(measured(&sends, |at| at), 0.09, 0.11);
}
