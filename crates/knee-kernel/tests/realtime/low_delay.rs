//! `bbr_low_delay` in the kernel, on the link of the study that it comes from: 10 Mbit/s, 60 ms, a
//! deep buffer. The first four seconds of each run are not counted.

use crate::host::{bpf_allowed, sound_run};
use knee_kernel::Health;
use knee_record::Records;
use knee_trials::{Skipped, tell};
use knee_units::Time;

const COUNTED_FROM: Time = Time::from_secs(4);

/// Goodput of two plain BBR flows of Linux 6.18 on this link, over another emulator, Mbit/s, at a
/// median RTT of 148 ms.
const PLAIN: f64 = 9.43;

/// Payload of a full link in Mbit/s: 1448 of 1500 bytes.
const CEILING: f64 = 10.0 * 1448.0 / 1500.0;

fn text(seconds: u64, flows: &[(usize, &str)]) -> String {
    let flow = |(count, cc): &(usize, &str)| {
        format!("[[flow]]\nname = \"{cc}\"\ncc = \"{cc}\"\ncount = {count}\n")
    };
    let flows: String = flows.iter().map(flow).collect();
    format!(
        "name = \"low delay\"\nduration = \"{seconds} s\"\n\
         [link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"30 ms\"\nbuffer = \"20 BDP\"\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"30 ms\"\n{flows}"
    )
}

/// Runs a scenario; also skipped if the kernel accepts no BPF programs from this process.
fn bpf_run(text: &str) -> Result<(Records, Health), Skipped> {
    bpf_allowed()?;
    sound_run(text)
}

/// Returns the median RTT of the probes in milliseconds.
fn probed_ms(health: &Health) -> f64 {
    let trips = health.probes[0].round_trips.iter();
    let mut rtts: Vec<Time> =
        trips.filter(|(sent, _)| *sent >= COUNTED_FROM).map(|(_, rtt)| *rtt).collect();
    rtts.sort_unstable();
    rtts[rtts.len() / 2].as_secs_f64() * 1e3
}

/// Returns the goodput of each flow in Mbit/s.
fn goodputs(records: &Records) -> Vec<f64> {
    let of = |flow: usize| {
        let rows = records.samples.iter().filter(|row| row.flow as usize == flow);
        let rows: Vec<_> = rows.filter(|row| row.time_ns >= COUNTED_FROM.as_nanos()).collect();
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let bytes = (last.delivered_bytes - first.delivered_bytes) as f64;
        bytes * 8e3 / (last.time_ns - first.time_ns) as f64
    };
    (0..records.flows.len()).map(of).collect()
}

/// Runs these flows; prints (`--nocapture`) and returns the median RTT and the goodputs.
fn measured(seconds: u64, flows: &[(usize, &str)]) -> Result<(f64, Vec<f64>), Skipped> {
    let (records, health) = bpf_run(&text(seconds, flows))?;
    let (rtt, rates) = (probed_ms(&health), goodputs(&records));
    tell(&format!("{flows:?}: median probe RTT {rtt:.1} ms, goodput {rates:.2?} Mbit/s"));
    Ok((rtt, rates))
}

/// Long enough for a PROBE_RTT, which happens after ten seconds.
const LONG: u64 = 12;
const SHORT: u64 = 8;

/// Two flows keep the queue below 15 ms and lose none of the goodput of two plain ones, whose queue
/// is a BDP and a half.
pub fn two_flows_have_a_short_queue() -> Result<(), Skipped> {
    have_a_short_queue(2, 75.0)
}

pub fn five_flows_have_a_short_queue() -> Result<(), Skipped> {
    have_a_short_queue(5, 85.0)
}

/// If the flows probe for the RTT one after another, they fill the link meanwhile; together they do
/// not, so one of three runs must match.
fn have_a_short_queue(count: usize, longest_ms: f64) -> Result<(), Skipped> {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (rtt, rates) = measured(LONG, &[(count, "bbr-low-delay")])?;
        let rate = rates.iter().sum::<f64>();
        assert!(rate <= 1.01 * CEILING, "{rate} Mbit/s is more than the link carries");
        if (60.0..=longest_ms).contains(&rtt) && rate >= 0.99 * PLAIN {
            return Ok(());
        }
        seen.push((rtt, rate));
    }
    panic!("median probe RTT in ms, Mbit/s: {seen:?}; plain {PLAIN} Mbit/s");
}

/// Next to controllers that fill the queue it gets little, which is measured and printed. The test
/// requires BBR's minimum, four packets per round trip, and a full link.
pub fn beside_others_it_keeps_four_packets_per_round_trip() -> Result<(), Skipped> {
    for other in ["bbr", "cubic"] {
        let flows = [(1, "bbr-low-delay"), (1, other)];
        let (rtt_ms, rates) = measured(SHORT, &flows)?;
        let least = 4.0 * 1448.0 * 8.0 / 1e3 / rtt_ms;
        assert!(rates[0] >= 0.8 * least, "{rates:?} beside {other}, least {least}");
        assert!(rates.iter().sum::<f64>() > 0.95 * CEILING, "{rates:?} beside {other}");
    }
    Ok(())
}

/// A run loads the controllers that its flows need, each with its own parameters, and unloads them
/// again.
pub fn a_run_brings_its_controllers() -> Result<(), Skipped> {
    let plain = text(SHORT, &[(1, "bbr-low-delay")]);
    let flow = "cc = { name = \"bbr\", window_gain = 1, drain_to_target = true }";
    let text = format!("{plain}[[flow]]\nname = \"drained\"\n{flow}\n");
    let (records, health) = bpf_run(&text)?;
    let rates = goodputs(&records);
    assert!(rates.iter().sum::<f64>() > 0.95 * CEILING, "{rates:?}");
    // Two plain flows have a queue of a BDP and a half.
    assert!(probed_ms(&health) < 130.0, "{}", probed_ms(&health));
    let offered = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let offered = std::fs::read_to_string(offered).unwrap();
    assert!(!offered.contains("knee"), "{offered}");
    Ok(())
}
