//! BBRv3 in the kernel, on 10 Mbit/s and 60 ms with half a BDP of buffer, where BBR version 1 loses
//! up to 31 % at the start and some per cent after it. The draft (draft-ietf-ccwg-bbr-06) tolerates
//! 2 % of loss, leaves 15 % of headroom between probes, and enters PROBE_RTT every five seconds
//! with half a BDP in flight.

use crate::host::{bpf_allowed, sound_run};
use crate::{after, goodput, median, text};
use knee_trials::{Skipped, tell};

const HALF_A_BDP: &str = "rate = \"10 Mbit/s\"\ndelay = \"30 ms\"\nbuffer = \"0.5 BDP\"";

/// Full except for a few per cent, hardly a queue, little loss. A pause of the host costs a probe,
/// so one of three runs must match.
pub fn bbr3_fills_a_shallow_buffer_with_little_loss() -> Result<(), Skipped> {
    bpf_allowed()?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (records, _) = sound_run(&text("12 s", HALF_A_BDP, "cc = \"bbr3\""))?;
        let rows = after(&records, 4);
        let used = goodput(&rows) / (10e6 * 1448.0 / 1500.0);
        let rtt = median(rows.iter().map(|row| row.srtt_ns).collect()) as f64 / 1e6;
        let flow = &records.flows[0];
        let lost = flow.retransmitted_bytes as f64 / flow.sent_bytes as f64;
        tell(&format!("bbr3: {used:.3} of the link, {rtt:.1} ms, {:.2} % again", 100.0 * lost));
        if used > 0.93 && (60.0..70.0).contains(&rtt) && lost < 0.02 {
            return Ok(());
        }
        seen.push((used, rtt, lost));
    }
    panic!("of the link, ms, sent again: {seen:?}");
}
