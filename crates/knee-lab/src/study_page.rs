//! Page of studies, on one or more grounds.

use crate::both;
use crate::command;
use crate::error::Error;
use crate::ground::{KERNEL, SIMULATOR};
use crate::study_record::{GroundRecord, RunRecord, StudyRecord, StudyRecords, in_part};
use crate::words::{three, verdict};
use knee_present::{Table, number, text};
use knee_record::{ClaimOutcome, Fidelity, Records, read_run};
use knee_report::{RunPage, StudyPage, comparison_report, study_report};
use std::collections::BTreeMap;
use std::path::Path;

/// Inputs of a run's page besides its summary.
#[derive(Debug)]
pub(crate) struct RunSource {
    /// The rows.
    pub records: Records,
    /// The resolved scenario, TOML.
    pub scenario: String,
}

impl StudyRecords {
    /// Renders the report from the directories of the runs.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub(crate) fn saved_page(&self, directory: &Path) -> Result<String, Error> {
        let runs = self.studies.iter().flat_map(StudyRecord::all_runs);
        let sources = runs.map(|run| {
            let saved = read_run(&directory.join(&run.directory))?;
            let source = RunSource { records: saved.records, scenario: saved.scenario };
            Ok((run.directory.clone(), source))
        });
        let sources: BTreeMap<String, RunSource> = sources.collect::<Result<_, Error>>()?;
        self.page(directory, &sources)
    }

    /// Renders the report; `sources` holds all runs by directory.
    pub(crate) fn page(
        &self,
        directory: &Path,
        sources: &BTreeMap<String, RunSource>,
    ) -> Result<String, Error> {
        let runs = self.studies.iter().flat_map(StudyRecord::all_runs);
        let runs: Vec<(&RunRecord, &RunSource)> =
            runs.filter_map(|run| Some((run, sources.get(&run.directory)?))).collect();
        let names: Vec<String> = runs.iter().map(|(run, _)| page_name(run)).collect();
        let commands = runs.iter().map(|(run, _)| {
            command::of_run(&directory.join(&run.directory), &[run.summary.ground.as_str()])
        });
        let commands: Vec<String> = commands.collect();
        let mut pages =
            runs.iter().zip(&commands).zip(&names).map(|(((run, source), command), name)| {
                RunPage {
                    name,
                    summary: &run.summary,
                    records: &source.records,
                    lead: None,
                    logs: &[],
                    scenario: &source.scenario,
                    command,
                }
            });
        let abouts = self.studies.iter().map(|study| match in_part(std::slice::from_ref(study)) {
            None => study.about.clone(),
            Some(part) => format!("{} {part}", study.about.trim_end()),
        });
        let abouts: Vec<String> = abouts.collect();
        let studies: Vec<StudyPage<'_>> = self
            .studies
            .iter()
            .zip(&abouts)
            .map(|(record, about)| StudyPage {
                name: &record.name,
                title: &record.title,
                source: &record.source,
                about,
                conclusion: &record.conclusion,
                lead: None,
                claims: &record.claims,
                on_kernel: on_kernel(record),
                runs: pages.by_ref().take(record.all_runs().count()).collect(),
                command: &record.command,
            })
            .collect();
        if self.studies.iter().all(|study| study.beside().next().is_none()) {
            return Ok(study_report(&studies, &self.command)?);
        }
        let tables = self.studies.iter().map(|study| tables(directory, study));
        let tables = tables.collect::<Result<Vec<_>, Error>>()?;
        let compared: Vec<_> = studies.into_iter().zip(tables).collect();
        Ok(comparison_report(&compared, "Studies on both grounds", &self.command)?)
    }
}

/// Outcomes of the claims on the kernel; empty if it was not run.
fn on_kernel(record: &StudyRecord) -> Vec<Option<&ClaimOutcome>> {
    let there = record.kernel.iter();
    there.flat_map(|kernel| record.claims.iter().map(|claim| kernel.partner(claim))).collect()
}

fn page_name(run: &RunRecord) -> String {
    match run.summary.ground.as_str() {
        SIMULATOR => run.name.clone(),
        ground => format!("{} ({ground})", run.name),
    }
}

/// Tables of claims and runs on all grounds; runs on the kernel link to their comparisons.
fn tables(directory: &Path, study: &StudyRecord) -> Result<Vec<Table>, Error> {
    let mut tables = Vec::new();
    for (ground, record) in study.beside() {
        let claims = study.claims.iter();
        let pairs = claims.filter_map(|claim| Some((claim, record.partner(claim)?)));
        tables.push(both::claims_table(ground, pairs));
        if ground == KERNEL {
            tables.push(runs_table(&fidelities(directory, record)?));
        }
        tables.extend(Some(not_run(ground, record)).filter(|table| !table.rows.is_empty()));
    }
    Ok(tables)
}

fn not_run(ground: &str, record: &GroundRecord) -> Table {
    Table::new(["run", "why"].map(text))
        .titled(format!("Not run on the {}", both::noun(ground)))
        .with_rows(record.not_run.iter().map(|run| [&run.name, &run.reason]))
}

fn fidelities(directory: &Path, kernel: &GroundRecord) -> Result<Vec<(String, Fidelity)>, Error> {
    let mut fidelities = Vec::new();
    for run in &kernel.runs {
        let at = directory.join(&run.directory);
        if let Some(both) = at.parent().filter(|both| !both::are_in(both).is_empty()) {
            fidelities.push((run.name.clone(), both::read(both)?));
        }
    }
    Ok(fidelities)
}

fn runs_table(fidelities: &[(String, Fidelity)]) -> Table {
    let each = ["goodput sim", "RTT sim", "retransmitted sim"];
    let figures = each.into_iter().flat_map(|sim| [sim, "kernel", "difference"]).map(number);
    let heads = std::iter::once(text("run")).chain(figures).chain([text("kernel’s run")]);
    let row = |(name, fidelity): &(String, Fidelity)| {
        let mut row = vec![name.clone()];
        for measure in knee_record::JUDGED {
            row.extend(three(fidelity.overall(measure)));
        }
        row.push(verdict(&fidelity.kernel));
        row
    };
    Table::new(heads)
        .titled("Runs on both grounds")
        .noted(
            "All flows of a run together; RTT: median of the smoothed RTT. A difference is the \
             simulator's value minus the kernel's.",
        )
        .with_rows(fidelities.iter().map(row))
}
