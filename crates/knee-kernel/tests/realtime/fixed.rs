//! A constant window in the kernel, on 10 Mbit/s and 60 ms with a buffer of one BDP, compared with
//! arithmetic. The first two seconds are not counted.

use crate::host::{bpf_allowed, sound_run};
use knee_trials::{Skipped, tell};

/// Returns goodput in Mbit/s, and the median RTT in milliseconds.
fn measured(window: &str) -> Result<(f64, f64), Skipped> {
    bpf_allowed()?;
    let (records, _) = sound_run(&format!(
        "name = \"fixed\"\nduration = \"6 s\"\nsample_interval = \"20 ms\"\n\
         [link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"30 ms\"\nbuffer = \"1 BDP\"\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"30 ms\"\n\
         [[flow]]\nname = \"flow\"\ncc = {{ name = \"fixed\", window = \"{window}\" }}\n"
    ))?;
    let rows: Vec<_> = records.samples.iter().filter(|row| row.time_ns >= 2_000_000_000).collect();
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    let bytes = (last.delivered_bytes - first.delivered_bytes) as f64;
    let goodput = bytes * 8e3 / (last.time_ns - first.time_ns) as f64;
    let mut rtts: Vec<u64> = rows.iter().map(|row| row.srtt_ns).collect();
    rtts.sort_unstable();
    let rtt = rtts[rtts.len() / 2] as f64 / 1e6;
    tell(&format!("{window}: {goodput:.2} Mbit/s, {rtt:.1} ms"));
    Ok((goodput, rtt))
}

/// Half a BDP, 25 packets, leaves once per RTT; one and a half fill the link and a queue of half a
/// BDP.
pub fn a_fixed_window_is_what_is_in_flight() -> Result<(), Skipped> {
    let (goodput, rtt) = measured("0.5 BDP")?;
    assert!((60.0..65.0).contains(&rtt), "{rtt} ms");
    let expected = 25.0 * 1448.0 * 8.0 / rtt / 1e3;
    assert!((goodput / expected - 1.0).abs() < 0.03, "{goodput} Mbit/s, expected {expected}");
    let (goodput, rtt) = measured("75 packets")?;
    assert!((rtt / 90.0 - 1.0).abs() < 0.03, "{rtt} ms");
    let ceiling = 10.0 * 1448.0 / 1500.0;
    assert!((goodput / ceiling - 1.0).abs() < 0.01, "{goodput} Mbit/s of {ceiling}");
    Ok(())
}
