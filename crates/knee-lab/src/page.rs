//! Pages of what is kept in a directory, written again from the records.

use crate::both;
use crate::command;
use crate::directory::{FIDELITY, REPORT, STUDIES, SWEEP};
use crate::error::Error;
use crate::study_record::StudyRecords;
use knee_record::{SavedRun, Summary, read_run, read_sweep, write_text};
use knee_report::{RunPage, run_page, sweep_page};
use std::path::Path;

/// Writes the page of a run, of studies, of a sweep or of grounds side by side
/// again. Gives the summary where it is a single run's.
///
/// # Errors
/// That the directory holds none of these, or that the page cannot be written.
pub fn rewrite_page(directory: &Path) -> Result<Option<Summary>, Error> {
    if directory.join(FIDELITY).is_file() && both::are_in(directory) {
        both::compare(directory, "")?;
        return Ok(None);
    }
    let (page, summary) = if directory.join(STUDIES).is_file() {
        (StudyRecords::read(directory)?.saved_page(directory)?, None)
    } else if directory.join(SWEEP).is_file() {
        (sweep_page(&read_sweep(&directory.join(SWEEP))?)?, None)
    } else {
        let run = read_run(directory)?;
        (page_of_run(directory, &run)?, Some(run.summary))
    };
    write_text(&directory.join(REPORT), &page)?;
    Ok(summary)
}

fn page_of_run(directory: &Path, run: &SavedRun) -> Result<String, Error> {
    let SavedRun { summary, records, scenario, .. } = run;
    let line = command::of_run(directory, &[summary.ground.as_str()]);
    let command = format!("{line} --seed {}", summary.seed);
    Ok(run_page(&RunPage { name: "", summary, records, scenario, command: &command })?)
}
