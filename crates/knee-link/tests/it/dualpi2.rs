//! DualPI2 compared with the formulas of RFC 9332: classification, priority,
//! the ramp of the low-latency queue, the coupling, and overload.
use knee_link::{Aqm, Buffer, Config, DropReason, DualPi2, Link, Packet, RateModel};
use knee_units::{Ecn, Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const BYTES: u32 = 1000;

#[derive(Clone, Copy, Debug)]
struct Coded(Ecn);

impl Packet for Coded {
    fn size(&self) -> u32 {
        BYTES
    }
    fn ecn(&self) -> Ecn {
        self.0
    }
    fn mark(&mut self) {
        assert!(self.0.is_capable(), "only ECN-capable packets may be marked");
        self.0 = Ecn::Ce;
    }
    fn clear_ecn(&mut self) {
        self.0 = Ecn::NotCapable;
    }
    fn flow_hash(&self) -> u64 {
        0
    }
}

/// The values of RFC 9332, appendix A.
const DUALPI2: DualPi2 = DualPi2 {
    target: Time::from_millis(15),
    update: Time::from_millis(16),
    rtt_max: Time::from_millis(100),
    coupling: 2.0,
    step: Time::from_micros(800),
    range: Time::from_micros(400),
    classic_share: 1.0 / 16.0,
};

/// A link that sends one packet per `1 / mbit` of 8 ms.
fn link(mbit: u64, settings: DualPi2) -> Link<Coded> {
    let config = Config {
        rate: RateModel::Constant(Rate::from_bits_per_second(mbit * 1_000_000)),
        buffer: Buffer::Unlimited,
        aqm: Aqm::DualPi2(settings),
        ..Config::pure_delay(Time::ZERO)
    };
    Link::new(config, ChaCha8Rng::seed_from_u64(3))
}

/// Outcomes of packets.
#[derive(Debug, Default)]
struct Count {
    /// By codepoint at the far end: not capable, ECT(0), ECT(1), CE.
    arrived: [u64; 4],
    dropped: u64,
}

impl Count {
    fn take(&mut self, link: &mut Link<Coded>, now: Time) {
        while link.next_time() <= now {
            let at = link.next_time();
            while let Some(packet) = link.poll(at) {
                let place = match packet.0 {
                    Ecn::NotCapable => 0,
                    Ecn::Ect0 => 1,
                    Ecn::Ect1 => 2,
                    Ecn::Ce => 3,
                };
                self.arrived[place] += 1;
            }
            while let Some((_, reason, _)) = link.take_dropped() {
                assert_eq!(reason, DropReason::Aqm);
                self.dropped += 1;
            }
        }
    }

    fn total(&self) -> u64 {
        self.arrived.iter().sum()
    }
}

/// Section 2.3 and RFC 9331, section 5.1: ECT(1) and CE wait separately.
#[test]
fn the_codepoint_chooses_the_queue() {
    let mut link = link(8, DUALPI2);
    for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::NotCapable] {
        link.send(Time::ZERO, Coded(ecn)).unwrap();
    }
    // The first is in transmission.
    let classes = link.classes(Time::ZERO);
    assert_eq!((classes[0].name, classes[0].packets), ("low-latency", 2));
    assert_eq!((classes[1].name, classes[1].packets, classes[1].bytes), ("classic", 3, 3000));
}

/// Section 4.2.2: the low-latency queue goes first; the classic one still gets its share.
#[test]
fn priority_is_conditional() {
    let never = DualPi2 { target: Time::from_secs(50), step: Time::from_secs(50), ..DUALPI2 };
    for share in [1.0 / 16.0, 0.25] {
        let mut link = link(8, DualPi2 { classic_share: share, ..never });
        for _ in 0..3200 {
            link.send(Time::ZERO, Coded(Ecn::NotCapable)).unwrap();
            link.send(Time::ZERO, Coded(Ecn::Ect1)).unwrap();
        }
        let mut count = Count::default();
        count.take(&mut link, Time::from_millis(1600));
        let classic = count.arrived[0] as f64 / count.total() as f64;
        assert!((classic - share).abs() < 0.002, "{classic} for {share}");
    }
}

/// Appendix A, `laqm`: packets of a queue with a constant delay are marked in
/// proportion to the excess over the threshold, all of them beyond the ramp.
#[test]
fn the_ramp_marks_by_sojourn() {
    for (tenths_of_ms, expected) in [(8, 0.0), (9, 0.25), (10, 0.5), (11, 0.75), (13, 1.0)] {
        // 0.1 ms per packet: as many wait behind the one in transmission.
        let mut link = link(80, DUALPI2);
        let mut count = Count::default();
        for _ in 0..=tenths_of_ms {
            link.send(Time::ZERO, Coded(Ecn::Ect1)).unwrap();
        }
        for tenth in 1..=10_000 {
            let now = Time::from_micros(100 * tenth);
            count.take(&mut link, now);
            link.send(now, Coded(Ecn::Ect1)).unwrap();
        }
        let share = count.arrived[3] as f64 / count.total() as f64;
        assert!((share - expected).abs() < 0.02, "{share} at {tenths_of_ms}");
        assert_eq!(count.dropped, 0);
    }
}

/// Keeps the classic queue at `delay_ms` for a time, beside a low-latency
/// packet every 10 ms, which never waits; a packet takes 1 ms.
fn standing(delay_ms: u64, seconds: u64, ecn: Ecn) -> Count {
    let mut link = link(8, DUALPI2);
    let mut count = Count::default();
    (0..delay_ms).for_each(|_| link.send(Time::ZERO, Coded(ecn)).unwrap());
    for ms in 1..=seconds * 1000 {
        let now = Time::from_millis(ms);
        count.take(&mut link, now);
        if ms % 10 == 0 {
            link.send(now, Coded(Ecn::Ect1)).unwrap();
        }
        while link.queue(now).packets < delay_ms {
            link.send(now, Coded(ecn)).unwrap();
        }
    }
    count
}

/// Figure 6 for a constant delay: p' = beta d + n alpha (d - target) after n
/// updates, with alpha = 0.16 and beta = 3 per second; in total, classic
/// packets are dropped with p'^2 and low-latency ones marked with 2 p'.
#[test]
fn the_queues_are_coupled_by_the_square() {
    let (delay, target, updates) = (0.018, 0.015, 250.0 * 5.0 / 4.0);
    let (mut squares, mut doubles) = (0.0, 0.0);
    for n in 1..=updates as u64 {
        let p: f64 = 3.0 * delay + n as f64 * 0.16 * (delay - target);
        squares += p * p;
        doubles += 2.0 * p;
    }
    let seconds = 5;
    let count = standing(18, seconds, Ecn::NotCapable);
    let served = count.arrived[0] + count.dropped;
    let dropped = count.dropped as f64 / served as f64;
    let marked = count.arrived[3] as f64 / (count.arrived[2] + count.arrived[3]) as f64;
    let (squares, doubles) = (squares / updates, doubles / updates);
    println!("dropped {dropped:.4} for {squares:.4}, marked {marked:.4} for {doubles:.4}");
    // The delay varies by one packet of 1 ms around its mean.
    assert!((dropped / squares - 1.0).abs() < 0.25, "{dropped} for {squares}");
    assert!((marked / doubles - 1.0).abs() < 0.15, "{marked} for {doubles}");
    // k p' and p'^2 correspond, whatever p' was.
    let coupled = (marked / 2.0).powi(2);
    assert!((0.85..1.25).contains(&(dropped / coupled)), "{dropped} beside {coupled}");
}

/// Figure 4: ECN-capable classic packets are marked instead, equally often.
#[test]
fn classic_packets_are_marked_where_they_may() {
    let dropped = standing(18, 5, Ecn::NotCapable).dropped;
    let count = standing(18, 5, Ecn::Ect0);
    assert_eq!(count.dropped, 0);
    // Those of the low-latency queue are included in the marked ones.
    assert!(count.arrived[3] > dropped, "{count:?}");
}

/// Sections 2.5.1.1 and 4.1: unresponsive traffic is eventually dropped, with
/// or without ECN, low latency or not.
#[test]
fn overload_is_dropped_whatever_it_is() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let count = standing(200, 20, ecn);
        assert!(count.dropped > 1000, "{ecn:?}: {count:?}");
    }
}
