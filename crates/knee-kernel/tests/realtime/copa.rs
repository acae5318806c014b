//! Copa in the kernel, on 10 Mbit/s and 60 ms with a deep buffer: its paper (Arun and Balakrishnan,
//! NSDI 2018, section 2.2) promises a full link and about 1 / delta = 2 packets in the queue, at
//! most a few. The first four seconds are not counted.

use crate::host::{bpf_allowed, scenario, sound_run};
use crate::{TEN_MEGABIT, after, goodput, median, text};
use knee_kernel::check_scenario;
use knee_trials::{Skipped, tell};

/// A pause of the host, too short to make a run invalid, looks to Copa like another flow keeping
/// the queue full, so it competes for a while: one of three runs must match.
pub fn copa_fills_the_link_with_a_queue_of_packets() -> Result<(), Skipped> {
    bpf_allowed()?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (records, _) = sound_run(&text("10 s", TEN_MEGABIT, "cc = \"copa\""))?;
        let rows = after(&records, 4);
        let used = goodput(&rows) / (10e6 * 1448.0 / 1500.0);
        let rtt = median(rows.iter().map(|row| row.srtt_ns).collect()) as f64 / 1e6;
        tell(&format!("copa: {used:.3} of the link, {rtt:.1} ms"));
        let dropped = records.links.iter().map(|row| row.dropped_packets).max().unwrap();
        // Ten packets of 1.2 ms, plus the host's delay.
        if used > 0.9 && (60.0..74.0).contains(&rtt) && dropped == 0 {
            return Ok(());
        }
        seen.push((used, rtt, dropped));
    }
    panic!("of the link, ms, dropped: {seen:?}");
}

/// Its program always paces; a fixed window never does.
pub fn pacing_cannot_be_switched_off() -> Result<(), Skipped> {
    bpf_allowed()?;
    let checked = |cc: &str| {
        let flow = format!("cc = {cc}\npacing = \"off\"");
        check_scenario(&scenario(&text("1 s", TEN_MEGABIT, &flow)))
    };
    let refusal = checked("\"copa\"").unwrap_err().to_string();
    assert!(refusal.starts_with("flow \"flow\", pacing: "), "{refusal}");
    checked("{ name = \"fixed\", window = \"20 packets\" }").unwrap();
    Ok(())
}
