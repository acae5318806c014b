//! Tables of a scenario on the simulator and on real-time grounds.

use knee_lab::KERNEL;
use knee_lab::both::measures_table;
use knee_present::Document;
use knee_present::words::time_us;
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
    let table = measures_table(fidelity).called(&name);
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
