//! Cost of one packet in a link: one `send`, its `poll`, and the `next_time`
//! that the caller requests after each.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use knee_link::{
    Aqm, Buffer, Codel, Config, FqCodel, Link, Loss, Packet, Pie, RateModel, Red, Trace,
};
use knee_units::{Ecn, Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::hint::black_box;
use std::sync::Arc;

/// 16 bytes, as in the simulator.
#[derive(Clone, Copy)]
struct Segment {
    number: u64,
    flow: u32,
    size: u32,
}

impl Packet for Segment {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }
    fn mark(&mut self) {}
    fn clear_ecn(&mut self) {}
    fn flow_hash(&self) -> u64 {
        u64::from(self.flow)
    }
}

fn plain() -> Config {
    Config {
        rate: RateModel::Constant(Rate::from_bits_per_second(100_000_000)),
        buffer: Buffer::Bytes(3_750_000),
        ..Config::pure_delay(Time::from_millis(30))
    }
}

/// Sends at the rate of the link with 200 packets of standing queue.
fn drive(link: &mut Link<Segment>, now: &mut u64, packets: u64) -> u64 {
    let mut delivered = 0;
    for number in 0..packets {
        *now += 120_000;
        let packet = Segment { number, flow: number as u32 & 3, size: 1500 };
        black_box(link.send(Time::from_nanos(*now), packet).is_ok());
        while link.next_time().as_nanos() <= *now {
            let packet = link.poll(Time::from_nanos(*now));
            delivered += packet.map_or(0, |packet| packet.number & 1);
            while link.take_dropped().is_some() {}
        }
    }
    delivered
}

fn one_packet(criterion: &mut Criterion) {
    let target = Time::from_millis(50);
    let codel = Codel { target, interval: Time::from_millis(100), ecn: false };
    let red = Red {
        min_threshold_bytes: 400_000,
        max_threshold_bytes: 900_000,
        max_probability: 0.1,
        weight: 0.002,
        ecn: false,
    };
    let pie =
        Pie { target, update: Time::from_millis(15), burst: Time::from_millis(150), ecn: false };
    let second: Vec<u32> = (0..8333).map(|n| n * 1000 / 8333 + 1).collect();
    let trace = Trace { name: "100 Mbit/s".into(), opportunities_ms: second, offset: Time::ZERO };
    let cases = [
        ("unlimited", Config { rate: RateModel::Unlimited, ..plain() }),
        ("drop-tail", plain()),
        ("drop-tail, buffer nearly full", Config { buffer: Buffer::Bytes(302_000), ..plain() }),
        ("1 % loss", Config { loss: Loss::Independent(0.01), ..plain() }),
        ("trace", Config { rate: RateModel::Trace(Arc::new(trace)), ..plain() }),
        ("red", Config { aqm: Aqm::Red(red), ..plain() }),
        ("pie", Config { aqm: Aqm::Pie(pie), ..plain() }),
        ("codel", Config { aqm: Aqm::Codel(codel), ..plain() }),
        (
            "fq-codel",
            Config { aqm: Aqm::FqCodel(FqCodel { codel, flows: 1024, quantum: 1514 }), ..plain() },
        ),
    ];
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Elements(10_000));
    for (name, config) in cases {
        let mut link = Link::new(config, ChaCha8Rng::seed_from_u64(1));
        for number in 0..200 {
            let _ = link.send(Time::ZERO, Segment { number, flow: 0, size: 1500 });
        }
        let mut now = 0;
        group.bench_function(name, |bencher| bencher.iter(|| drive(&mut link, &mut now, 10_000)));
    }
    group.finish();
}

criterion_group!(benches, one_packet);
criterion_main!(benches);
