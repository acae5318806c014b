//! The table of a scenario on the simulator and on the kernel.

use crate::cell::Cell;
use crate::document::Document;
use crate::table::{Mood, Table};
use knee_lab::both::{HEADS, row};
use knee_lab::words::time_us;
use knee_record::Fidelity;

/// The table, then how each run went.
pub fn document(fidelity: &Fidelity) -> Document {
    let mut table = Table::new(&HEADS).called("measures");
    for one in &fidelity.measures {
        let mood = match one.within {
            Some(true) => Mood::Good,
            Some(false) => Mood::Bad,
            None => Mood::Neutral,
        };
        let [agrees, measure, of, sim, kernel, difference, tolerance] = row(one);
        let figure = |shown, value| Cell::figure(one.unit, value).reading(shown);
        let figures = [figure(sim, one.sim), figure(kernel, one.kernel)];
        let words = [agrees, measure, of].map(Cell::from).into_iter().chain(figures);
        let rest = [figure(difference, one.difference), tolerance.into()];
        table.row_in(mood, words.chain(rest));
    }
    let probes = fidelity.kernel.probes.iter().map(|probe| {
        format!(
            "probe    path {}: RTT p50 {}, p95 {}\n",
            probe.path,
            time_us(probe.rtt_p50_us),
            time_us(probe.rtt_p95_us)
        )
    });
    Document::default().table(table).words(probes.collect::<String>())
}
