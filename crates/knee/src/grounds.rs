//! A scenario on the simulator and on the kernel: what both gave, side by
//! side.

use crate::directory::{FIDELITY, GROUNDS, REPORT};
use crate::failure::Failure;
use crate::figures::NONE;
use crate::run::quoted;
use crate::table::{Mood, Table};
use knee_record::{
    Agreement, Fidelity, GroundRun, SavedRun, Unit, read_fidelity, read_run, write_json, write_text,
};
use knee_report::{Comparison, ComparisonHead, RunPage, StudyPage, comparison_report};
use knee_scenario::Ground;
use std::path::Path;

const HEADS: [&str; 7] = ["agrees", "measure", "of", ">sim", ">kernel", ">difference", "tolerance"];

/// Its name in arguments, directories and records.
pub fn word(ground: Ground) -> &'static str {
    match ground {
        Ground::Sim => "sim",
        Ground::Kernel => "kernel",
        Ground::Quic => "quic",
    }
}

/// Whether both grounds left a run below a directory.
pub fn are_in(directory: &Path) -> bool {
    GROUNDS.iter().all(|ground| directory.join(ground).join(knee_record::MANIFEST).is_file())
}

/// Compares the runs below a directory; writes `fidelity.json` and the page
/// of both.
pub fn compare(directory: &Path, command: &str) -> Result<Fidelity, Failure> {
    let [sim, kernel] = GROUNDS.map(|ground| read_run(&directory.join(ground)));
    let (sim, kernel) = (sim?, kernel?);
    let fidelity = Fidelity::new(&sim, &kernel);
    write_json(&directory.join(FIDELITY), &fidelity)?;
    let page = page(directory, &fidelity, [&sim, &kernel], command)?;
    write_text(&directory.join(REPORT), &page)?;
    Ok(fidelity)
}

/// Reads what [`compare`] wrote.
pub fn read(directory: &Path) -> Result<Fidelity, Failure> {
    Ok(read_fidelity(&directory.join(FIDELITY))?)
}

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

/// The verdict with its reason.
pub fn verdict(run: &GroundRun) -> String {
    match &run.verdict_reason {
        Some(reason) => format!("{}, {reason}", run.verdict),
        None => run.verdict.to_string(),
    }
}

fn row(one: &Agreement) -> [String; 7] {
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

/// What stands for "within the tolerance".
pub fn agrees(within: Option<bool>) -> &'static str {
    match within {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not tested",
    }
}

pub fn measure_words(measure: &str) -> &str {
    match measure {
        "smoothed_rtt_p50" => "smoothed RTT, median",
        "retransmit_ratio_total" => "sent again",
        "convergence_time" => "convergence time",
        "completion_time" => "completion time",
        "page_load_time" => "page load time",
        "video_bitrate" => "video, bitrate",
        "video_startup_time" => "video, start-up time",
        "flow_completion_mean" => "transfers, mean time",
        other => other,
    }
}

/// Of ratios in per cent points; of all else as a part of the kernel's value.
pub fn difference(one: &Agreement) -> String {
    match (one.unit, one.difference, one.relative) {
        (Unit::Fraction, Some(off), _) => format!("{:+.2} points", off * 100.0),
        (_, _, Some(part)) => format!("{:+.1} %", part * 100.0),
        _ => NONE.to_string(),
    }
}

/// A measure on both grounds, and how far they are apart.
pub fn three(one: Option<&Agreement>) -> [String; 3] {
    let Some(one) = one else { return [NONE, NONE, NONE].map(str::to_string) };
    let show = |value: Option<f64>| value.map_or_else(|| NONE.to_string(), |v| one.unit.show(v));
    [show(one.sim), show(one.kernel), difference(one)]
}

fn time_us(microseconds: Option<f64>) -> String {
    microseconds.map_or_else(|| NONE.to_string(), |us| Unit::Seconds.show(us / 1e6))
}

/// The tables of the page: measures, then what came of the claims.
fn tables(fidelity: &Fidelity, runs: [&SavedRun; 2]) -> Vec<Comparison> {
    let probes = fidelity.kernel.probes.iter();
    let probes: Vec<String> = probes
        .map(|probe| format!("{} over path {}", time_us(probe.rtt_p50_us), probe.path))
        .collect();
    let probes = match probes.is_empty() {
        true => String::new(),
        false => format!(
            " Beside the flows, an independent probe measured a median RTT of {}.",
            probes.join(", ")
        ),
    };
    let release = fidelity.kernel_release.as_deref().unwrap_or("of unknown release");
    let note = format!(
        "Simulator: {}. Linux {release}: {}. A difference is the simulator's value less the \
         kernel's.{probes}",
        verdict(&fidelity.sim),
        verdict(&fidelity.kernel),
    );
    let measures = Comparison {
        title: "The simulator against the kernel".to_string(),
        note,
        heads: ComparisonHead::all(&HEADS),
        rows: fidelity.measures.iter().map(|one| row(one).to_vec()).collect(),
    };
    let [sim, kernel] = runs.map(|run| &run.summary.claims);
    let claims = claims_table(sim.iter().zip(kernel));
    std::iter::once(measures).chain((!claims.rows.is_empty()).then_some(claims)).collect()
}

/// Claims with their outcome on both grounds.
pub fn claims_table<'c>(
    claims: impl Iterator<Item = (&'c knee_record::ClaimOutcome, &'c knee_record::ClaimOutcome)>,
) -> Comparison {
    Comparison {
        title: "Claims on both grounds".to_string(),
        note: String::new(),
        heads: ComparisonHead::all(&CLAIM_HEADS),
        rows: claims.map(|(sim, kernel)| claim_row(sim, kernel).to_vec()).collect(),
    }
}

/// Heads of the table of claims on both grounds.
pub const CLAIM_HEADS: [&str; 7] =
    ["id", "claim", "expected", "sim", "measured", "kernel", "measured"];

/// A row of it.
pub fn claim_row(
    sim: &knee_record::ClaimOutcome,
    kernel: &knee_record::ClaimOutcome,
) -> [String; 7] {
    [
        sim.id.clone(),
        sim.says.clone(),
        sim.expected.clone(),
        sim.outcome.to_string(),
        sim.measured_text.clone(),
        kernel.outcome.to_string(),
        kernel.measured_text.clone(),
    ]
}

fn page(
    directory: &Path,
    fidelity: &Fidelity,
    runs: [&SavedRun; 2],
    command: &str,
) -> Result<String, Failure> {
    let commands = GROUNDS.map(|ground| {
        let scenario = directory.join(ground).join(knee_record::SCENARIO);
        format!("knee run {} --on {ground}", quoted(&scenario.to_string_lossy()))
    });
    let pages = runs.iter().zip(GROUNDS).zip(&commands).map(|((run, name), command)| RunPage {
        name,
        summary: &run.summary,
        records: &run.records,
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
    let tables = tables(fidelity, runs);
    Ok(comparison_report(&[(study, tables)], &fidelity.name, command)?)
}
