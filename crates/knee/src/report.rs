//! `knee report`.

use crate::arguments::Report;
use crate::directory::{REPORT, STUDIES};
use crate::failure::{Ending, Failure};
use crate::run::quoted;
use crate::screen;
use crate::study_record::StudyRecords;
use knee_record::{SavedRun, Verdict, read_run, write_text};
use knee_report::{RunPage, run_page};
use std::path::Path;

/// Writes the page of a run, or of studies, again.
pub fn report(arguments: &Report) -> Result<Ending, Failure> {
    let directory = &arguments.directory;
    let page = match directory.join(STUDIES).is_file() {
        true => StudyRecords::read(directory)?.saved_page(directory)?,
        false => page_of_run(directory)?,
    };
    let path = directory.join(REPORT);
    write_text(&path, &page)?;
    screen::print(&format!("{}\n", path.display()))?;
    Ok(Ending::Done)
}

fn page_of_run(directory: &Path) -> Result<String, Failure> {
    let run = read_run(directory)?;
    if run.summary.verdict != Verdict::Valid {
        let reason = run.summary.verdict_reason.as_deref().unwrap_or("no reason given");
        screen::say(&format!("The run is {}: {reason}.", run.summary.verdict));
    }
    let command = command(directory, &run);
    let page = RunPage {
        name: "",
        summary: &run.summary,
        records: &run.records,
        scenario: &run.scenario,
        command: &command,
    };
    Ok(run_page(&page)?)
}

/// The directory has the resolved scenario and all that it names.
fn command(directory: &Path, run: &SavedRun) -> String {
    let scenario = directory.join(knee_record::SCENARIO);
    format!("knee run {} --seed {}", quoted(&scenario.to_string_lossy()), run.summary.seed)
}
