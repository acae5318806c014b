//! The ground between two hosts with the emulator between them, beside the kernel ground, which
//! drives both ends from one thread.

use crate::far::{Far, scenario};
use knee_hosts::{HostsError, LimitsConfig, Received, Session};
use knee_kernel::{create_hosts, run};
use knee_record::{Control, FlowSample, Records, Verdict};
use knee_scenario::Scenario;
use knee_testbed::{End, Family, Health, Testbed, TestbedError, address};
use knee_trials::{Pauses, Skipped, tell, turn};
use knee_units::Time;
use std::net::SocketAddr;
use std::sync::mpsc;

/// Largest differences: goodput as a part of it, retransmitted bytes as a part of those sent.
const GOODPUT: f64 = 0.02;
const RETRANSMITTED: f64 = 0.002;
/// When flows begin: the control channel takes three round trips before.
const START_S: u64 = 1;
const PORT: u16 = 4434;

/// Why a run failed; shown by `unwrap`.
#[derive(Debug)]
struct Failed(#[expect(dead_code, reason = "shown")] String);

impl From<TestbedError> for Failed {
    fn from(error: TestbedError) -> Failed {
        Failed(error.to_string())
    }
}

impl From<HostsError> for Failed {
    fn from(error: HostsError) -> Failed {
        Failed(error.to_string())
    }
}

/// Goodput, bit/s, and the part of bytes that was retransmitted.
type Measured = (f64, f64);

fn cell(rate_mbit: u64, rtt_ms: u64, cc: &str, duration_s: u64) -> Scenario {
    let half = rtt_ms as f64 / 2.0;
    scenario(&format!(
        "name = \"test\"\nduration = \"{duration_s} s\"\n\
         [link.wire]\nrate = \"{rate_mbit} Mbit/s\"\ndelay = \"{half} ms\"\nbuffer = \"1 BDP\"\n\
         [path.main]\nforward = [\"wire\"]\nreverse_delay = \"{half} ms\"\n\
         [[flow]]\nname = \"flow\"\ncc = \"{cc}\"\nstart = \"{START_S} s\"\n"
    ))
}

/// Measures what follows the first second of the flow.
fn measured(records: &Records) -> Measured {
    let begin = (START_S + 1) * 1_000_000_000;
    let rows: Vec<FlowSample> = records.samples.iter().filter(|row| row.time_ns >= begin).collect();
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    let per_s = |bytes: u64| bytes as f64 * 8e9 / (last.time_ns - first.time_ns) as f64;
    let flow = &records.flows[0];
    let again = flow.retransmitted_bytes as f64 / flow.sent_bytes as f64;
    (per_s(last.delivered_bytes - first.delivered_bytes), again)
}

/// Runs a scenario from one host of a testbed to the other.
fn run_between(scenario: &Scenario) -> Result<(Records, Received, Health), Failed> {
    let (hosts, devices) = create_hosts(scenario).map_err(|error| Failed(error.to_string()))?;
    let (entered, waiting) = mpsc::channel();
    std::thread::scope(|scope| {
        // The server's thread is that of the receiver's namespace.
        let receiver = &hosts.receiver;
        let far = scope.spawn(move || {
            receiver.enter().unwrap();
            let at = SocketAddr::new(address(0, End::Receiver, Family::V4), PORT);
            // Its thread begins in the namespace of this one.
            entered.send(Far::serve_at(at, LimitsConfig::default(), || {})).unwrap();
        });
        far.join().unwrap();
        let far = waiting.recv().unwrap();
        // The emulator outlives the flows: the other host then says what arrived, after two seconds
        // if the reset that ends a flow was lost.
        let mut longer = scenario.clone();
        longer.duration += Time::from_secs(4);
        let testbed = Testbed { scenario: &longer, hosts: &hosts };
        let checked = testbed.self_check(devices)?;
        let mut told = Received::default();
        let control = Control::default();
        let played = testbed.play(checked, &control, &mut (), None, |clock, stop, mut rows| {
            hosts.sender.enter().map_err(TestbedError::from)?;
            let session = Session::begin(&far.host())?;
            let (records, received) = session.run(scenario, (clock, stop), &mut rows, |_| {})?;
            told = received;
            Ok::<_, Failed>(records)
        })?;
        Ok((played.records, told, played.health))
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Compares the medians of `runs` runs on both grounds.
fn compare(scenario: &Scenario, name: &str, runs: usize) -> Result<(), Skipped> {
    let (mut kernel, mut hosts) = (Vec::new(), Vec::new());
    for _ in 0..2 * runs {
        let (records, health) = run(scenario, &Control::default()).unwrap();
        if health.verdict().0 == Verdict::Valid && kernel.len() < runs {
            kernel.push(measured(&records));
        }
        let (records, received, health) = run_between(scenario).unwrap();
        let acked: u64 = records.flows.iter().map(|flow| flow.delivered_bytes).sum();
        let all = received.bytes.is_some_and(|bytes| bytes >= acked);
        assert!(received.over.is_none() && all, "{received:?} of {acked}");
        if health.verdict().0 == Verdict::Valid && hosts.len() < runs {
            hosts.push(measured(&records));
        }
        if kernel.len().min(hosts.len()) == runs {
            break;
        }
    }
    if kernel.len().min(hosts.len()) < runs {
        return Err(Skipped(format!("{name}: the host is too busy")));
    }
    let of = |all: &[Measured]| {
        let goodput = median(all.iter().map(|one| one.0).collect());
        (goodput, median(all.iter().map(|one| one.1).collect()))
    };
    let (on_kernel, between) = (of(&kernel), of(&hosts));
    let goodput = between.0 / on_kernel.0 - 1.0;
    let again = between.1 - on_kernel.1;
    tell(&format!(
        "{name}: goodput {:.3} and {:.3} Mbit/s ({:+.2} %), retransmitted {:.3} and {:.3} % \
         ({:+.3} points)",
        on_kernel.0 / 1e6,
        between.0 / 1e6,
        goodput * 100.0,
        on_kernel.1 * 100.0,
        between.1 * 100.0,
        again * 100.0
    ));
    assert!(goodput.abs() <= GOODPUT, "{name}: {kernel:?} and {hosts:?}");
    assert!(again.abs() <= RETRANSMITTED, "{name}: {kernel:?} and {hosts:?}");
    Ok(())
}

pub fn the_kernel_ground_measures_the_same() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    compare(&cell(20, 40, "cubic", 6), "cubic, 20 Mbit/s, 40 ms", 1)
}

/// Medians of three: BBR's runs differ by what it meets when it probes. `KNEE_FIRST_SEED` says which
/// third of the cells is tried: all of them take twenty minutes.
pub fn four_of_twelve_cells_measure_the_same() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let first = std::env::var("KNEE_FIRST_SEED").ok().and_then(|seed| seed.parse::<usize>().ok());
    let cells = ["reno", "cubic", "bbr"]
        .into_iter()
        .flat_map(|cc| [(10, 20), (10, 80), (50, 20), (50, 80)].map(|(rate, rtt)| (cc, rate, rtt)));
    for (cc, rate, rtt) in cells.skip(first.unwrap_or(0) % 3).step_by(3) {
        compare(&cell(rate, rtt, cc, 14), &format!("{cc}, {rate} Mbit/s, {rtt} ms"), 3)?;
    }
    Ok(())
}
