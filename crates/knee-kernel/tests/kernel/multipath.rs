//! The kernel's MPTCP over two paths, against what the paths permit.

use crate::host::sound_run;
use crate::{after, goodput};
use knee_kernel::Health;
use knee_record::Records;
use knee_trials::Skipped;

fn text(duration: &str, mbit: [u32; 2], flow: &str) -> String {
    let link = |name: &str, mbit: u32| {
        format!("[link.{name}]\nrate = \"{mbit} Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"2 BDP\"\n")
    };
    let path =
        |name: &str| format!("[path.{name}]\nforward = [\"{name}\"]\nreverse_delay = \"20 ms\"\n");
    format!(
        "name = \"test\"\nduration = \"{duration}\"\n{}{}{}{}\
         [[flow]]\nname = \"flow\"\npaths = [\"a\", \"b\"]\nscheduler = \"blest\"\n{flow}\n",
        link("a", mbit[0]),
        link("b", mbit[1]),
        path("a"),
        path("b"),
    )
}

/// Skipped also where the kernel has no MPTCP, or has it switched off.
fn multipath_run(text: &str) -> Result<(Records, Health), Skipped> {
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
    if enabled.trim() != "1" {
        return Err(Skipped::lack("the host lacks MPTCP (sysctl net.mptcp.enabled=1)"));
    }
    sound_run(text)
}

/// Two links of 10 and 5 Mbit/s carry 15, less headers (MPTCP's option of 20
/// bytes on each segment of 1460 is among them).
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

/// Every byte of a file arrives, not before both links together can carry it.
pub fn a_file_over_two_paths_is_delivered_to_its_last_byte() -> Result<(), Skipped> {
    let flow = "cc = \"reno\"\nworkload = { file = \"3 MB\" }";
    let (records, _) = multipath_run(&text("6 s", [10, 10], flow))?;
    let flow = &records.flows[0];
    assert_eq!(flow.delivered_bytes, 3_000_000);
    let bound_ns = 3_000_000 * 8 * 50;
    assert!(flow.completion_ns.unwrap() > bound_ns, "{:?}", flow.completion_ns);
    Ok(())
}
