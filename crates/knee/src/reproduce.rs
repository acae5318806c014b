//! `knee reproduce`.

use crate::arguments::Reproduce;
use crate::claims;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, warn, watched};
use crate::screen;
use crate::table::{Mood, Table};
use knee_lab::both::{claim_heads, claim_row};
use knee_lab::directory::{DEFAULT, REPORT};
use knee_lab::{
    Error, GroundRecord, NamedStudy, Reproduction, StudyRecord, StudyRecords, check_files,
    choose_studies, put_on_record,
};
use knee_record::Verdict;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs studies, keeps their runs, prints claim by claim what came out.
pub fn reproduce(arguments: &Reproduce) -> Result<Ending, Failure> {
    let lab = lab(arguments.output.jobs);
    let on = chosen(&lab.grounds, &arguments.on)?;
    let studies = choose_studies(&arguments.studies, &lab.grounds)?;
    if arguments.record {
        check_files(&studies).map_err(Error::from)?;
    }
    let out = arguments.output.out.clone();
    let out = out.unwrap_or_else(|| Path::new(DEFAULT).join("reproduce"));
    let plan = Reproduction::new(&studies, on, out.clone())?;
    lab.claim(&out, plan.directories(), arguments.output.force)?;
    warn(&plan.jobs());
    let Some(records) = watched(&lab, || lab.reproduce(&plan))? else {
        screen::say(&format!(
            "Stopped. Runs that were finished or begun are below {}; knee report shows one.",
            out.display()
        ));
        return Ok(Ending::Interrupted);
    };
    if arguments.record {
        record(&studies, &records)?;
    }
    match arguments.json {
        true => screen::print_json(&records)?,
        false => screen::print(&text(&records, &out))?,
    }
    let outcomes_agree = records.claims().all(|claim| claim.outcome == claim.recorded);
    let as_recorded = if arguments.record { outcomes_agree } else { records.as_recorded };
    Ok(if as_recorded { Ending::Done } else { Ending::ClaimDiffers })
}

/// Makes what was measured the record. An outcome that differs wants its reason
/// written by hand.
fn record(studies: &[NamedStudy], records: &StudyRecords) -> Result<(), Failure> {
    let written = put_on_record(studies, records)?;
    for (path, record) in written.iter().zip(&records.studies) {
        if let Some(path) = path {
            screen::say(&format!("{}: values on record written.", path.display()));
        }
        let other = record.claims.iter().filter(|claim| claim.outcome != claim.recorded);
        for claim in other {
            let (name, id, outcome) = (&record.name, &claim.id, claim.outcome);
            screen::say(&format!("{name}: write outcome = \"{outcome}\" for {id}, and why."));
        }
    }
    Ok(())
}

fn text(records: &StudyRecords, out: &Path) -> String {
    let mut text = conclusions(records);
    for study in &records.studies {
        let about = format!("{} ({})\n{}\n", study.title, study.name, study.source);
        let beside = study.beside().map(|(ground, record)| text_of_both(study, ground, record));
        let claims = match study.beside().next() {
            None => claims::text(&study.claims),
            Some(_) => beside.collect::<String>(),
        };
        text += &format!("{about}\n{claims}\n");
    }
    text += &tallies_beside(records);
    let all = records.claims();
    let runs: usize = records.studies.iter().map(|study| study.runs.len()).sum();
    text += &claims::drifts(all.clone());
    text += &format!(
        "{}\nverdict  {} ({runs} runs)\nreport   {}\nrepeat   {}\n",
        claims::tally(all),
        records.verdict,
        out.join(REPORT).display(),
        records.command
    );
    text
}

/// What came of each study, one paragraph each: what a reader wants first.
fn conclusions(records: &StudyRecords) -> String {
    let said = records.studies.iter().filter(|study| !study.conclusion.is_empty());
    said.map(|study| format!("{}\n{}\n\n", study.title, study.conclusion)).collect()
}

/// Each claim with its outcome on both grounds, and what was not run.
fn text_of_both(study: &StudyRecord, ground: &str, record: &GroundRecord) -> String {
    let mut table = Table::new(&claim_heads(ground));
    for claim in &study.claims {
        let Some(other) = record.partner(claim) else { continue };
        let mood = if claim.outcome == other.outcome { Mood::Good } else { Mood::Neutral };
        table.row_in(mood, claim_row(claim, other));
    }
    let on = knee_lab::both::noun(ground);
    let not_run = record.not_run.iter();
    let not_run = not_run.map(|run| format!("not on the {on}: {}, {}\n", run.name, run.reason));
    let unsound = record.runs.iter().filter(|run| run.summary.verdict != Verdict::Valid);
    let unsound = unsound.map(|run| {
        let reason = run.summary.verdict_reason.as_deref().unwrap_or("no reason given");
        format!("{} on the {on}: {}, {reason}\n", run.summary.verdict, run.name)
    });
    format!("{}{}{}", table.text(), not_run.collect::<String>(), unsound.collect::<String>())
}

/// How the claims ended on the grounds beside the simulator.
fn tallies_beside(records: &StudyRecords) -> String {
    let studies = records.studies.iter();
    let beside: Vec<(&str, &GroundRecord)> = studies.flat_map(StudyRecord::beside).collect();
    let grounds: BTreeSet<&str> = beside.iter().map(|(ground, _)| *ground).collect();
    let tally = |ground: &&str| {
        let those = beside.iter().filter(|(name, _)| name == ground);
        let claims = those.flat_map(|(_, record)| &record.claims);
        format!("{ground:<8} {}\n", claims::counts(claims))
    };
    let tallies: String = grounds.iter().map(tally).collect();
    if tallies.is_empty() { tallies } else { tallies + "sim      " }
}
