//! Performance of the emulator on this host, compared with another machine: delay, rate, the rates
//! at which a run is still valid, and the maximum rate. The flows share the two cores; run it on an
//! idle machine: `cargo bench -p knee-kernel`.
//!
//! Next to each delay is the delay of the host itself: no emulator is more punctual than a thread
//! that never sleeps. A round trip depends on four moments: if the host takes a quarter of a per
//! cent of the time, one probe in a hundred is late.
//!
//! The reference is a prototype of the same design on two cores of a shared machine, emulator and
//! flows under SCHED_FIFO, Linux 6.18.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints")]

use knee_kernel::{Control, Health, run};
use knee_record::Records;
use knee_scenario::{Loader, Source, parse};
use std::time::{Duration, Instant};

struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        Err(format!("{name}: no files here"))
    }
}

/// Runs one flow over one link, with half of the delay in each direction.
fn measure(link: &str, delay_ms: u32, flow: &str, seconds: u32) -> (Records, Health) {
    let half = f64::from(delay_ms) / 2.0;
    let text = format!(
        "name = \"bench\"\nduration = \"{seconds} s\"\n\
         [link.bottleneck]\n{link}\ndelay = \"{half} ms\"\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"{half} ms\"\n\
         [[flow]]\nname = \"flow\"\n{flow}\n"
    );
    let source = Source { name: "bench.toml", loader: &NoFiles };
    let scenario = parse(&text, &source, &[]).unwrap_or_else(|errors| panic!("{errors:?}"));
    run(&scenario, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn state(health: &Health) -> String {
    let (verdict, reason) = health.verdict();
    let late = health.emulator.lateness.at(0.99).as_micros();
    let cpu = health.cpu * 100.0;
    format!("CPU {cpu:.0} %, lateness p99 {late} us, {verdict} {reason}")
}

/// Time that the host takes from a thread that only watches the clock, over two seconds: the share
/// of time in pauses of more than 50 µs, per cent, and the longest pause, ms.
#[allow(clippy::disallowed_methods, reason = "the clock is what is measured")]
fn host_pauses() -> (f64, f64) {
    const SPAN: Duration = Duration::from_secs(2);
    let begun = Instant::now();
    let (mut last, mut taken, mut longest) = (begun, Duration::ZERO, Duration::ZERO);
    while last - begun < SPAN {
        let now = Instant::now();
        let pause = now - last;
        if pause > Duration::from_micros(50) {
            taken += pause;
            longest = longest.max(pause);
        }
        last = now;
    }
    (taken.as_secs_f64() / SPAN.as_secs_f64() * 100.0, longest.as_secs_f64() * 1e3)
}

/// Goal: a mean error of at most 0.2 ms, p99 at most 0.2 ms above the median.
fn delay(delay_ms: u32, reference: &str) {
    let flow = "cc = \"cubic\"\nworkload = { file = \"1 kB\" }";
    let (_, health) = measure("rate = \"100 Mbit/s\"\nbuffer = \"1 MB\"", delay_ms, flow, 10);
    let probe = &health.probes[0];
    let total: f64 = probe.round_trips.iter().map(|(_, rtt)| rtt.as_millis_f64()).sum();
    let error = total / probe.round_trips.len() as f64 - f64::from(delay_ms);
    let median = probe.rtt_at(0.5).unwrap().as_millis_f64();
    let tail = probe.rtt_at(0.99).unwrap().as_millis_f64() - median;
    let (taken, longest) = host_pauses();
    println!(
        "delay {delay_ms:>4} ms: mean error {error:.3} ms, p99 {tail:.3} ms above the median \
         (reference {reference}); {}; the host takes {taken:.2} %, at most {longest:.1} ms",
        state(&health)
    );
}

/// Returns the payload rate of a flow after three seconds, bit/s. The buffer is never full, so no
/// gap delays data that was received.
fn goodput(records: &Records) -> f64 {
    let rows: Vec<_> = records.samples.iter().filter(|row| row.time_ns >= 3_000_000_000).collect();
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    let bytes = (last.delivered_bytes - first.delivered_bytes) as f64;
    bytes * 8e9 / (last.time_ns - first.time_ns) as f64
}

/// Goal: an error of at most 0.1 %, a valid run.
fn rate(mbit: u32, cc: &str, reference: &str) {
    let link = format!("rate = \"{mbit} Mbit/s\"\nbuffer = \"20 BDP\"");
    let (records, health) = measure(&link, 20, &format!("cc = \"{cc}\""), 10);
    // The probe's traffic: 44 bytes every 20 ms.
    let left = f64::from(mbit) * 1e6 - 44.0 * 8.0 / 0.02;
    let expected = left * 1448.0 / 1500.0;
    let error = (goodput(&records) / expected - 1.0) * 100.0;
    println!(
        "rate {mbit:>5} Mbit/s, {cc:<5}: error {error:+.4} % (reference {reference}); {}",
        state(&health)
    );
}

/// Goal: at least 8 Gbit/s.
fn unlimited(delay_ms: u32, reference: &str) {
    let (records, health) = measure("", delay_ms, "cc = \"cubic\"", 10);
    let gbit = goodput(&records) / 1e9;
    println!(
        "without a limit, {delay_ms} ms: {gbit:.2} Gbit/s (reference {reference} Gbit/s); {}",
        state(&health)
    );
}

fn main() {
    // Mean error, p99 above the median; ours includes the probe's 4 us on the wire. Three times,
    // because the host's pauses vary.
    for _ in 0..3 {
        delay(20, "0.157 ms, 0.129 ms");
        delay(60, "0.146 ms, 0.074 ms");
        delay(140, "0.160 ms, 0.089 ms");
    }
    rate(10, "cubic", "+0.0024 %");
    rate(100, "cubic", "-0.0011 %");
    rate(1000, "cubic", "-0.0022 %");
    rate(2000, "cubic", "-0.0022 %");
    unlimited(0, "9.06");
}
