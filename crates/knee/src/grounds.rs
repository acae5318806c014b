//! The table of a scenario on the simulator and on the kernel.

use crate::table::{Mood, Table};
use knee_lab::both::{HEADS, row};
use knee_lab::words::time_us;
use knee_record::Fidelity;

/// The table, then how each run went.
pub fn text(fidelity: &Fidelity) -> String {
    let mut table = Table::new(&HEADS);
    for one in &fidelity.measures {
        let mood = match one.within {
            Some(true) => Mood::Good,
            Some(false) => Mood::Bad,
            None => Mood::Neutral,
        };
        table.row_in(mood, row(one));
    }
    let probes = fidelity.kernel.probes.iter().map(|probe| {
        format!(
            "probe    path {}: RTT p50 {}, p95 {}\n",
            probe.path,
            time_us(probe.rtt_p50_us),
            time_us(probe.rtt_p95_us)
        )
    });
    format!("{}{}", table.text(), probes.collect::<String>())
}
