//! The kernel's MPTCP over two paths, compared with what the paths permit.

use crate::host::{scenario, sound_run};
use crate::{after, goodput};
use knee_kernel::{Control, Health, run};
use knee_record::{FlowSample, Records};
use knee_trials::scenario::link_and_path;
use knee_trials::{Pauses, Skipped, turn};
use std::path::Path;

fn text(duration: &str, mbit: [u32; 2], flow: &str) -> String {
    let way = |name: &str, mbit: u32| {
        link_and_path(name, &format!("{mbit} Mbit/s"), "20 ms", "buffer = \"2 BDP\"")
    };
    format!(
        "name = \"test\"\nduration = \"{duration}\"\n{}{}\
         [[flow]]\nname = \"flow\"\npaths = [\"a\", \"b\"]\nscheduler = \"blest\"\n{flow}\n",
        way("a", mbit[0]),
        way("b", mbit[1]),
    )
}

/// Runs a scenario; also skipped if the kernel lacks MPTCP, or has it disabled.
fn multipath_run(text: &str) -> Result<(Records, Health), Skipped> {
    check_enabled()?;
    sound_run(text)
}

fn check_enabled() -> Result<(), Skipped> {
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
    if enabled.trim() != "1" {
        return Err(Skipped::lack("the host lacks MPTCP (sysctl net.mptcp.enabled=1)"));
    }
    Ok(())
}

/// Two links of 10 and 5 Mbit/s carry 15, less headers (which include MPTCP's option of 20 bytes on
/// each segment of 1460).
pub fn two_paths_carry_what_both_have() -> Result<(), Skipped> {
    let (records, _) = multipath_run(&text("8 s", [10, 5], "cc = \"cubic\""))?;
    let rate = goodput(&after(&records, 2)) / 1e6;
    assert!((12.5..=15.0).contains(&rate), "{rate} Mbit/s");
    let [a, b] = &records.paths[..] else { panic!("{:?}", records.paths) };
    let split = a.delivered_bytes as f64 / b.delivered_bytes as f64;
    assert!((1.6..2.4).contains(&split), "{split}");
    assert!(a.rtt_min_ns >= 40_000_000 && b.rtt_min_ns >= 40_000_000, "{a:?} {b:?}");
    assert_eq!(records.path_samples.len(), 2 * records.samples.len());
    Ok(())
}

/// Every byte of a file arrives, no earlier than both links together can carry it.
pub fn a_file_over_two_paths_is_delivered_to_its_last_byte() -> Result<(), Skipped> {
    let flow = "cc = \"reno\"\nworkload = { file = \"3 MB\" }";
    let (records, _) = multipath_run(&text("6 s", [10, 10], flow))?;
    let flow = &records.flows[0];
    assert_eq!(flow.delivered_bytes, 3_000_000);
    let bound_ns = 3_000_000 * 8 * 50;
    assert!(flow.completion_ns.unwrap() > bound_ns, "{:?}", flow.completion_ns);
    // One row: the file once, and what both subflows sent of it.
    let [row] = &records.connections[..] else { panic!("{:?}", records.connections) };
    assert_eq!((row.acked_bytes, row.delivered_bytes), (Some(3_000_000), Some(3_000_000)));
    assert!(row.sent_bytes >= Some(3_000_000) && row.sent_packets > Some(2_000), "{row:?}");
    assert_eq!((row.srtt_ns, row.busy_ns, row.window_bytes), (None, None, None));
    Ok(())
}

/// The link of the first path is down from 2 to 6 s. Before that its backup carries no data (RFC
/// 8684, section 3.3.8); then the file continues over it.
pub fn a_backup_carries_what_the_first_path_cannot() -> Result<(), Skipped> {
    let down = "buffer = \"2 BDP\"\ndown = [{ from = \"2 s\", until = \"8 s\" }]";
    let text = text("8 s", [10, 10], "cc = \"cubic\"\nbackup = [\"b\"]");
    let text = text.replacen("buffer = \"2 BDP\"", down, 1);
    let (records, _) = multipath_run(&text)?;
    let [a, b] = &records.paths[..] else { panic!("{:?}", records.paths) };
    assert_eq!((a.backup, b.backup), (false, true));
    let carried = |from: u64, until: u64| {
        let by = |second: u64| {
            let until = |row: &FlowSample| row.path == 1 && row.time_ns <= second * 1_000_000_000;
            records.path_samples.iter().filter(until).last().map_or(0, |row| row.delivered_bytes)
        };
        by(until) - by(from)
    };
    assert!(carried(0, 2) < 10_000, "{} bytes while the first path is up", carried(0, 2));
    // The kernel abandons a subflow after some timeouts, each twice as long as the one before.
    assert!(carried(5, 8) > 1_500_000, "{} bytes while it is down", carried(5, 8));
    Ok(())
}

/// The link over which the connection begins is down for six seconds, in which Linux would take MPTCP
/// for blocked and fall back to TCP.
pub fn a_path_that_is_down_at_first_is_waited_for() -> Result<(), Skipped> {
    let down = "buffer = \"2 BDP\"\ndown = [{ from = \"0 s\", until = \"6 s\" }]";
    check_enabled()?;
    let setting = "net/mptcp/syn_retrans_before_tcp_fallback";
    if !Path::new("/proc/sys").join(setting).exists() {
        return Err(Skipped::lack(
            "the kernel falls back to TCP after two SYNs (Linux 6.14 has a setting)",
        ));
    }
    let _turn = turn(Pauses::UpToMs(20))?;
    let text = text("9 s", [10, 10], "cc = \"cubic\"");
    let scenario = scenario(&text.replacen("buffer = \"2 BDP\"", down, 1));
    // Whatever else the host does: no figure is compared.
    let run = run(&scenario, &Control::default());
    let (records, _) = run.unwrap_or_else(|error| panic!("{error}"));
    let [a, b] = &records.paths[..] else { panic!("{:?}", records.paths) };
    assert!(a.delivered_bytes > 0 && b.delivered_bytes > 0, "{a:?} {b:?}");
    Ok(())
}
