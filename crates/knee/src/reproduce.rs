//! `knee reproduce`.

use crate::arguments::Reproduce;
use crate::claims;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, warn, watched};
use crate::print::Print;
use crate::screen;
use knee_lab::both::claims_table;
use knee_lab::directory::{DEFAULT, REPORT};
use knee_lab::{
    Error, GroundRecord, NamedStudy, Reproduction, Scope, StudyRecord, StudyRecords, check_files,
    choose_studies, put_on_record,
};
use knee_present::Document;
use knee_record::Verdict;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs studies, stores their runs, and prints the outcome of each claim.
pub fn reproduce(arguments: &Reproduce) -> Result<Ending, Failure> {
    let lab = lab(arguments.output.jobs);
    let on = chosen(&lab.grounds, &arguments.on)?;
    let studies = choose_studies(&arguments.studies, &lab.grounds, arguments.seed_shift)?;
    if arguments.record {
        check_files(&studies).map_err(Error::from)?;
    }
    let out = arguments.output.out.clone();
    let out = out.unwrap_or_else(|| Path::new(DEFAULT).join("reproduce"));
    // The record has every claim.
    let all = arguments.all || arguments.record;
    let scope = if all { Scope::AllClaims } else { Scope::Conclusions };
    let mut plan = Reproduction::new(&studies, scope, on, out.clone())?;
    let resumed = if arguments.output.force { 0 } else { plan.resume(&lab.program) };
    if resumed > 0 {
        let (runs, are) = if resumed == 1 { ("run", "is") } else { ("runs", "are") };
        screen::say(&format!(
            "{resumed} {runs} in real time {are} in {} already, not to be repeated.",
            out.display()
        ));
    }
    lab.claim(&out, plan.directories(), arguments.output.force || resumed > 0)?;
    warn(&plan.jobs());
    let Some(records) = watched(&lab, || lab.reproduce(&plan))? else {
        screen::say(&format!(
            "Stopped. Finished and partial runs are in {}; knee report shows one.",
            out.display()
        ));
        return Ok(Ending::Interrupted);
    };
    if arguments.record {
        record(&studies, &records)?;
    }
    let document = document(&records, &out);
    let document = match arguments.seed_shift {
        0 => document,
        _ => document.words(claims::against_other_seeds(records.claims())),
    };
    document.print(arguments.print.format(), &records)?;
    let outcomes_agree = records.claims().all(|claim| claim.outcome == claim.recorded);
    let as_recorded = if arguments.record { outcomes_agree } else { records.as_recorded };
    Ok(if as_recorded { Ending::Done } else { Ending::Differs })
}

/// Records measured values as expected ones. A changed outcome needs a reason written by hand.
fn record(studies: &[NamedStudy], records: &StudyRecords) -> Result<(), Failure> {
    let written = put_on_record(studies, records)?;
    for (path, record) in written.iter().zip(&records.studies) {
        if let Some(path) = path {
            screen::say(&format!("{}: values on record written.", path.display()));
        }
        let other = record.claims.iter().filter(|claim| claim.outcome != claim.recorded);
        for claim in other {
            let (name, id, outcome) = (&record.name, &claim.id, claim.outcome);
            screen::say(&format!(
                "{name}: write outcome = \"{outcome}\" for {id}, and the reason."
            ));
        }
    }
    Ok(())
}

/// Results of studies stored in a directory.
pub fn document(records: &StudyRecords, out: &Path) -> Document {
    let mut document = conclusions(records);
    for study in &records.studies {
        let about = format!("{} ({})\n{}\n\n", study.title, study.name, study.source);
        document = document.words(about);
        document = match study.beside().next() {
            None => document.then(claims::document(&study.claims)),
            Some(_) => study.beside().fold(document, |document, (ground, record)| {
                document.then(of_both(study, ground, record))
            }),
        };
        document = document.words("\n");
    }
    let all = records.claims();
    let runs: usize = records.studies.iter().map(|study| study.runs.len()).sum();
    let part = records.in_part().map(|part| part + "\n").unwrap_or_default();
    document.words(tallies_beside(records) + &claims::drifts(all.clone()) + &part).words(format!(
        "{}\nverdict  {} ({runs} runs)\nreport   {}\nrepeat   {}\n",
        claims::tally(all),
        records.verdict,
        out.join(REPORT).display(),
        records.command
    ))
}

/// The conclusion of each study, in one paragraph.
fn conclusions(records: &StudyRecords) -> Document {
    let said = records.studies.iter().filter(|study| !study.conclusion.is_empty());
    said.fold(Document::default(), |document, study| {
        document.words(format!("{}\n", study.title)).said(&study.conclusion).words("\n")
    })
}

/// Claims with their outcomes on both grounds, and runs that were not done.
fn of_both(study: &StudyRecord, ground: &str, record: &GroundRecord) -> Document {
    let claims = study.claims.iter();
    let pairs = claims.filter_map(|claim| Some((claim, record.partner(claim)?)));
    let table = claims_table(ground, pairs);
    let on = knee_lab::both::noun(ground);
    let not_run = record.not_run.iter();
    let not_run = not_run.map(|run| format!("not on the {on}: {}, {}\n", run.name, run.reason));
    let unsound = record.runs.iter().filter(|run| run.summary.verdict != Verdict::Valid);
    let unsound = unsound.map(|run| {
        let reason = run.summary.verdict_reason.as_deref().unwrap_or("no reason given");
        format!("{} on the {on}: {}, {reason}\n", run.summary.verdict, run.name)
    });
    let words = not_run.chain(unsound).collect::<String>();
    Document::default().table(table).words(words)
}

/// Tallies of claims on grounds other than the simulator.
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
