//! Cost of one acknowledgement in a controller, ns: at most 150; 400 for Vivace
//! and RemyCC. Run with `cargo bench -p knee-cc`.

use criterion::{Criterion, criterion_group, criterion_main};
use knee_cc::{Connection, Controller, Event, Init, Sample, Selection, Value, controllers};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::hint::black_box;

const MSS: u64 = 1448;

/// A flow of 100 Mbit/s over 40 ms: an acknowledgement of two segments every
/// 240 us, an RTT that varies by 2 ms, one mark in a hundred.
struct Drive {
    controller: Box<dyn Controller>,
    connection: Connection,
    number: u64,
}

impl Drive {
    fn new(selection: &Selection) -> Drive {
        let init = Init {
            mss: MSS as u32,
            mtu: 1500,
            initial_window: 10 * MSS,
            rng: ChaCha8Rng::seed_from_u64(1),
        };
        let rtt = Time::from_millis(40);
        let connection = Connection {
            now: Time::from_secs(1),
            mss: MSS as u32,
            mtu: 1500,
            srtt: rtt,
            min_rtt: rtt,
            window_limited: true,
            paced: true,
            ..Connection::default()
        };
        let mut controller = knee_cc::build(selection, init).expect("it exists");
        controller.on_event(Event::Established, &connection);
        Drive { controller, connection, number: 0 }
    }

    fn ack(&mut self) {
        self.number += 1;
        let connection = &mut self.connection;
        let bytes = 2 * MSS;
        let in_flight = 345 * MSS;
        connection.now += Time::from_micros(240);
        connection.delivered += bytes;
        connection.acknowledged += bytes;
        connection.in_flight = in_flight;
        connection.sent = connection.acknowledged + in_flight;
        let rtt = Time::from_micros(40_000 + 20 * (self.number % 100));
        let sample = Sample {
            delivered: in_flight,
            prior_delivered: connection.delivered.saturating_sub(in_flight),
            interval: rtt,
            send_interval: rtt,
            ack_interval: rtt,
            rtt: Some(rtt),
            newly_acked: bytes,
            newly_acked_segments: 2,
            newly_marked: if self.number.is_multiple_of(100) { MSS } else { 0 },
            sent_at: connection.now - rtt,
            prior_in_flight: in_flight + bytes,
            in_flight_at_send: in_flight,
            ..Sample::default()
        };
        black_box(self.controller.on_ack(black_box(&sample), connection));
    }
}

fn acks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ack");
    for entry in controllers() {
        let mut drive = Drive::new(&Selection::named(entry.name));
        group.bench_function(entry.name, |bencher| bencher.iter(|| drive.ack()));
    }
    group.finish();
}

/// Slow starts of Reno. All but `hystart`, which this ACK train ends, stay in slow start.
fn slow_starts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("slow start");
    let text = |text: &str| Value::Text(text.to_owned());
    for start in ["standard", "hystart", "hystart++", "search", "rapid-start", "careful-resume"] {
        let mut selection = Selection::named("reno").with("slow_start", text(start));
        if start == "careful-resume" {
            selection = selection.with("saved_window", text("345 packets"));
        }
        let mut drive = Drive::new(&selection);
        group.bench_function(start, |bencher| bencher.iter(|| drive.ack()));
    }
    group.finish();
}

criterion_group!(benches, acks, slow_starts);
criterion_main!(benches);
