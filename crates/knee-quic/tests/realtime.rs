//! What the observer in the emulator sees of QUIC connections, compared with what their endpoints
//! and the links count themselves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use knee_quic::run_observed;
use knee_record::{Control, LinkSample};
use knee_scenario::{Loader, Source, parse};
use knee_testbed::{Observing, Played};
use knee_trials::{Pauses, Skipped, trials, turn};
use std::process::ExitCode;

/// IP protocol number of UDP.
const UDP: u8 = 17;

struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        Err(format!("{name}: no files here"))
    }
}

/// What an endpoint may count beyond the drops, or miss: a packet that it declared lost before its
/// acknowledgement came, and drops of packets that elicit no acknowledgement.
fn tolerance(drops: u64) -> u64 {
    2.max(drops / 100)
}

/// A file over this link: the observer agrees with the links' counters exactly, and with the
/// sending endpoint's count of lost packets within the tolerance.
fn agrees(link: &str, rtt_ms: u64, cc: &str, bytes: u64) {
    let text = format!(
        "name = \"test\"\nduration = \"8 s\"\n[link.bottleneck]\nrate = \"20 Mbit/s\"\n{link}\n\
         delay = \"{0} ms\"\n[path.main]\nforward = [\"bottleneck\"]\n\
         reverse_delay = \"{0} ms\"\n[[flow]]\nname = \"flow\"\ncc = \"{cc}\"\n\
         workload = {{ file = \"{bytes} B\" }}\n",
        rtt_ms / 2
    );
    let scenario = parse(&text, &Source { name: "test.toml", loader: &NoFiles }, &[]);
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors:?}"));
    let run = run_observed(&scenario, &Control::default(), Some(Observing::default()));
    let Played { records, health, observed } = run.unwrap_or_else(|error| panic!("{error}"));
    let seen = observed.unwrap();
    assert_eq!(seen.missed_events, 0);
    let end = records.links.iter().map(|row| row.time_ns).max().unwrap();
    let row: LinkSample = records.links.iter().find(|row| row.time_ns == end).unwrap();
    assert_eq!(seen.flows.dropped_packets(0), (row.dropped_packets, row.lost_packets), "{text}");
    let [connection] = &records.connections[..] else { panic!("{:?}", records.connections) };
    assert!(connection.completion_ns.is_some(), "{text}: the file did not end");
    // The probes are datagrams, too, and much fewer than the packets of the connection.
    let flows = seen.flows.iter().filter(|(five, _)| five.protocol == UDP);
    let (_, flow) = flows.max_by_key(|(_, flow)| flow.payload_bytes).unwrap();
    assert!(flow.retransmitted_bytes.is_none() && flow.payload_bytes > bytes, "{flow:?}");
    assert_eq!(flow.entered.packets, flow.left.packets + flow.dropped.packets, "{flow:?}");
    let probes: u64 = health.probes.iter().map(|one| one.sent).sum();
    assert!(flow.dropped.packets + probes >= row.dropped_packets + row.lost_packets);
    let (drops, lost) = (flow.dropped.packets, connection.retransmitted_packets.unwrap());
    assert!(drops > 0, "{text}: nothing was lost");
    assert!(drops.abs_diff(lost) <= tolerance(drops), "{text}: {lost} lost, {drops} dropped");
}

fn the_observer_agrees_with_endpoints_and_links() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    agrees("buffer = \"0.5 BDP\"\nloss = \"0.5 %\"", 40, "cubic", 3_000_000);
    Ok(())
}

/// 24 cells: three controllers, four kinds of link, two RTTs, without reordering.
fn the_observer_agrees_in_24_cells() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let links = [
        "buffer = \"0.2 BDP\"",
        "buffer = \"1 BDP\"\nloss = \"1 %\"",
        "buffer = \"4 BDP\"\naqm = \"codel\"\nloss = \"0.2 %\"",
        "buffer = \"1 BDP\"\nloss = { every = 100 }",
    ];
    for cc in ["cubic", "reno", "bbr"] {
        for link in links {
            for rtt_ms in [20, 80] {
                agrees(link, rtt_ms, cc, 1_000_000);
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    knee_trials::run(trials![
        the_observer_agrees_with_endpoints_and_links;
        nightly:
        the_observer_agrees_in_24_cells,
    ])
}
