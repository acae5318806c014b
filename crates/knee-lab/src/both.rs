//! One scenario on the simulator and on real-time grounds: results side by side.

use crate::command;
use crate::directory::{FIDELITY, REPORT};
use crate::error::Error;
use crate::ground::{KERNEL, REAL, SIMULATOR};
use crate::words::{agrees, difference, measure_words, verdict};
use knee_present::words::time_us;
use knee_present::{Cell, Table, Tone, number, text};
use knee_record::{
    ClaimOutcome, Fidelity, SavedRun, read_fidelity, read_run, write_json, write_text,
};
use knee_report::{RunPage, StudyPage, comparison_report};
use std::path::Path;

/// Names a ground as it reads after "the".
pub fn noun(ground: &str) -> String {
    if ground == KERNEL { ground.to_string() } else { format!("ground {ground}") }
}

/// The grounds with runs below a directory that can be compared: the simulator and at least one
/// real-time ground; empty otherwise.
pub(crate) fn are_in(directory: &Path) -> Vec<&'static str> {
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

/// Table of the measures on the simulator and on another ground.
pub fn measures_table(fidelity: &Fidelity) -> Table {
    let ground = fidelity.ground.as_str();
    let heads = [
        text("agrees"),
        text("measure"),
        text("of"),
        number(SIMULATOR),
        number(ground),
        number("difference"),
        text("tolerance"),
    ];
    let mut table = Table::new(heads);
    for one in &fidelity.measures {
        let tone = match one.within {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Neutral,
        };
        let never = |value: Option<f64>| one.unit.show(value.unwrap_or(f64::INFINITY));
        let figure = |shown, value| Cell::figure(one.unit, value).reading(shown);
        let of = if one.of == "*" { "all flows" } else { &one.of };
        table.row_in(
            tone,
            [
                agrees(one.within).into(),
                measure_words(&one.measure).into(),
                of.into(),
                figure(never(one.sim), one.sim),
                figure(never(one.kernel), one.kernel),
                figure(difference(one), one.difference),
                Cell::from(&one.tolerance),
            ],
        );
    }
    table
}

/// The page's tables for one ground: measures, then outcomes of the claims.
fn tables(fidelity: &Fidelity, sim: &SavedRun, other: &SavedRun) -> Vec<Table> {
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
    let measures =
        measures_table(fidelity).titled(format!("The simulator against the {whose}")).noted(note);
    let [sim, other] = [sim, other].map(|run| &run.summary.claims);
    let claims = claims_table(ground, sim.iter().zip(other));
    std::iter::once(measures).chain((!claims.rows.is_empty()).then_some(claims)).collect()
}

/// Table of claims with their outcomes on the simulator and on another ground.
pub fn claims_table<'c>(
    ground: &str,
    claims: impl Iterator<Item = (&'c ClaimOutcome, &'c ClaimOutcome)>,
) -> Table {
    let heads = ["id", "claim", "expected", SIMULATOR, "measured", ground, "measured"].map(text);
    let mut table = Table::new(heads).called("claims").titled(match ground {
        KERNEL => "Claims on both grounds".to_string(),
        other => format!("Claims on sim and {other}"),
    });
    let measured = |claim: &ClaimOutcome| {
        Cell::figure(claim.unit, claim.measured).reading(claim.measured_text.clone())
    };
    for (sim, other) in claims {
        let tone = if sim.outcome == other.outcome { Tone::Good } else { Tone::Neutral };
        table.row_in(
            tone,
            [
                Cell::from(&sim.id),
                Cell::from(&sim.says),
                Cell::from(&sim.expected),
                sim.outcome.to_string().into(),
                measured(sim),
                other.outcome.to_string().into(),
                measured(other),
            ],
        );
    }
    table
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
        lead: None,
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
        lead: None,
        claims: &[],
        on_kernel: Vec::new(),
        runs: pages.collect(),
        command,
    };
    let tables = fidelity.all().zip(others).flat_map(|(one, other)| tables(one, sim, other));
    Ok(comparison_report(&[(study, tables.collect())], &fidelity.name, command)?)
}
