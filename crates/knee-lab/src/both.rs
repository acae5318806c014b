//! One scenario on the simulator and on real-time grounds: results side by side.

use crate::command;
use crate::directory::{FIDELITY, REPORT};
use crate::error::Error;
use crate::ground::{KERNEL, REAL, SIMULATOR};
use crate::words::{agrees, difference, measure_words, time_us, verdict};
use knee_record::{
    Agreement, ClaimOutcome, Fidelity, SavedRun, read_fidelity, read_run, write_json, write_text,
};
use knee_report::{Comparison, ComparisonHead, RunPage, StudyPage, comparison_report};
use std::path::Path;

/// Column heads for measures on the simulator and on another ground; a leading `>` marks numeric
/// columns.
pub fn heads(ground: &str) -> [String; 7] {
    let figures = format!(">{ground}");
    ["agrees", "measure", "of", ">sim", &figures, ">difference", "tolerance"].map(String::from)
}

/// Column heads for claims on the simulator and on another ground.
pub fn claim_heads(ground: &str) -> [&str; 7] {
    ["id", "claim", "expected", SIMULATOR, "measured", ground, "measured"]
}

/// Names a ground as it reads after "the".
pub fn noun(ground: &str) -> String {
    if ground == KERNEL { ground.to_string() } else { format!("ground {ground}") }
}

/// The grounds with runs below a directory that can be compared: the simulator and at least one
/// real-time ground; empty otherwise.
pub fn are_in(directory: &Path) -> Vec<&'static str> {
    let holds = |ground: &&str| directory.join(ground).join(knee_record::MANIFEST).is_file();
    let real: Vec<&str> = REAL.into_iter().filter(holds).collect();
    match holds(&SIMULATOR) && !real.is_empty() {
        true => std::iter::once(SIMULATOR).chain(real).collect(),
        false => Vec::new(),
    }
}

/// Compares the runs below a directory; writes `fidelity.json` and the combined page, which
/// includes `command`, the command that repeats them.
///
/// # Errors
/// A run that cannot be read, or a comparison that cannot be written.
pub fn compare(directory: &Path, command: &str) -> Result<Fidelity, Error> {
    let sim = read_run(&directory.join(SIMULATOR))?;
    let others = are_in(directory).into_iter().skip(1);
    let others = others.map(|ground| Ok(read_run(&directory.join(ground))?));
    let others: Vec<SavedRun> = others.collect::<Result<_, Error>>()?;
    let mut compared = others.iter().map(|other| Fidelity::new(&sim, other));
    let first = compared.next();
    let fidelity = first.ok_or_else(|| Error::Defect("nothing to compare with".to_string()))?;
    let fidelity = fidelity.beside(compared.collect());
    write_json(&directory.join(FIDELITY), &fidelity)?;
    let page = page(directory, &fidelity, &sim, &others, command)?;
    write_text(&directory.join(REPORT), &page)?;
    Ok(fidelity)
}

/// Reads the file that [`compare`] wrote.
pub(crate) fn read(directory: &Path) -> Result<Fidelity, Error> {
    Ok(read_fidelity(&directory.join(FIDELITY))?)
}

/// Formats a row of the table of measures.
pub fn row(one: &Agreement) -> [String; 7] {
    let never = |value: Option<f64>| one.unit.show(value.unwrap_or(f64::INFINITY));
    [
        agrees(one.within).to_string(),
        measure_words(&one.measure).to_string(),
        if one.of == "*" { "all flows".to_string() } else { one.of.clone() },
        never(one.sim),
        never(one.kernel),
        difference(one),
        one.tolerance.clone(),
    ]
}

/// The page's tables for one ground: measures, then outcomes of the claims.
fn tables(fidelity: &Fidelity, sim: &SavedRun, other: &SavedRun) -> Vec<Comparison> {
    let probes = fidelity.kernel.probes.iter();
    let probes: Vec<String> = probes
        .map(|probe| format!("{} over path {}", time_us(probe.rtt_p50_us), probe.path))
        .collect();
    let probes = match probes.is_empty() {
        true => String::new(),
        false => format!(
            " An independent probe beside the flows measured a median RTT of {}.",
            probes.join(", ")
        ),
    };
    let release = fidelity.kernel_release.as_deref().unwrap_or("of unknown release");
    let ground = fidelity.ground.as_str();
    let (who, whose) = match ground {
        KERNEL => (format!("Linux {release}"), "kernel".to_string()),
        other => (format!("{} on Linux {release}", other.to_uppercase()), noun(other)),
    };
    let note = format!(
        "Simulator: {}. {who}: {}. A difference is the simulator's value minus the \
         {whose}'s.{probes}",
        verdict(&fidelity.sim),
        verdict(&fidelity.kernel),
    );
    let measures = Comparison {
        title: format!("The simulator against the {whose}"),
        note,
        heads: ComparisonHead::all(&heads(ground).each_ref().map(String::as_str)),
        rows: fidelity.measures.iter().map(|one| row(one).to_vec()).collect(),
    };
    let [sim, other] = [sim, other].map(|run| &run.summary.claims);
    let claims = claims_table(ground, sim.iter().zip(other));
    std::iter::once(measures).chain((!claims.rows.is_empty()).then_some(claims)).collect()
}

/// Table of claims with their outcomes on the simulator and on another ground.
pub(crate) fn claims_table<'c>(
    ground: &str,
    claims: impl Iterator<Item = (&'c ClaimOutcome, &'c ClaimOutcome)>,
) -> Comparison {
    Comparison {
        title: match ground {
            KERNEL => "Claims on both grounds".to_string(),
            other => format!("Claims on sim and {other}"),
        },
        note: String::new(),
        heads: ComparisonHead::all(&claim_heads(ground)),
        rows: claims.map(|(sim, kernel)| claim_row(sim, kernel).to_vec()).collect(),
    }
}

/// Formats a row of the table of claims.
pub fn claim_row(sim: &ClaimOutcome, other: &ClaimOutcome) -> [String; 7] {
    [
        sim.id.clone(),
        sim.says.clone(),
        sim.expected.clone(),
        sim.outcome.to_string(),
        sim.measured_text.clone(),
        other.outcome.to_string(),
        other.measured_text.clone(),
    ]
}

fn page(
    directory: &Path,
    fidelity: &Fidelity,
    sim: &SavedRun,
    others: &[SavedRun],
    command: &str,
) -> Result<String, Error> {
    let runs: Vec<&SavedRun> = std::iter::once(sim).chain(others).collect();
    let commands: Vec<String> = runs
        .iter()
        .map(|run| {
            let ground = run.summary.ground.as_str();
            let scenario = directory.join(ground).join(knee_record::SCENARIO);
            format!("knee run {} --on {ground}", command::quoted(&scenario.to_string_lossy()))
        })
        .collect();
    let pages = runs.iter().zip(&commands).map(|(run, command)| RunPage {
        name: &run.summary.ground,
        summary: &run.summary,
        records: &run.records,
        answers: None,
        logs: &[],
        scenario: &run.scenario,
        command,
    });
    let study = StudyPage {
        name: "grounds",
        title: &fidelity.name,
        source: "",
        about: "",
        conclusion: "",
        claims: &[],
        on_kernel: Vec::new(),
        runs: pages.collect(),
        command,
    };
    let tables = fidelity.all().zip(others).flat_map(|(one, other)| tables(one, sim, other));
    Ok(comparison_report(&[(study, tables.collect())], &fidelity.name, command)?)
}
