//! Tables of a scenario on the simulator and on real-time grounds.

use crate::cell::Cell;
use crate::document::Document;
use crate::table::{Mood, Table};
use knee_lab::KERNEL;
use knee_lab::both::{heads, row};
use knee_lab::words::time_us;
use knee_record::Fidelity;

/// For each ground its table and the verdict on its run.
pub fn document(fidelity: &Fidelity) -> Document {
    let each = fidelity.all().map(with_one);
    each.reduce(|all, next| all.words("\n").then(next)).unwrap_or_default()
}

fn with_one(fidelity: &Fidelity) -> Document {
    let name = match fidelity.ground.as_str() {
        KERNEL => "measures".to_string(),
        other => format!("measures-{other}"),
    };
    let heads = heads(&fidelity.ground);
    let mut table = Table::new(&heads.each_ref().map(String::as_str)).called(&name);
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
