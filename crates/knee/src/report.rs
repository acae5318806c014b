//! `knee report`.

use crate::arguments::Report;
use crate::directory::{FIDELITY, REPORT, STUDIES, SWEEP};
use crate::failure::{Ending, Failure};
use crate::grounds;
use crate::run::quoted;
use crate::screen;
use crate::study_record::StudyRecords;
use knee_record::{SavedRun, Verdict, read_run, read_sweep, write_text};
use knee_report::{RunPage, run_page, sweep_page};
use std::path::Path;

/// Writes the page of a run, of studies or of a sweep again.
pub fn report(arguments: &Report) -> Result<Ending, Failure> {
    let directory = &arguments.directory;
    if directory.join(FIDELITY).is_file() && grounds::are_in(directory) {
        grounds::compare(directory, "")?;
        screen::print(&format!("{}\n", directory.join(REPORT).display()))?;
        return Ok(Ending::Done);
    }
    let page = if directory.join(STUDIES).is_file() {
        StudyRecords::read(directory)?.saved_page(directory)?
    } else if directory.join(SWEEP).is_file() {
        sweep_page(&read_sweep(&directory.join(SWEEP))?)?
    } else {
        page_of_run(directory)?
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
    let on = if run.summary.ground == "sim" { "" } else { " --on kernel" };
    format!("knee run {}{on} --seed {}", quoted(&scenario.to_string_lossy()), run.summary.seed)
}
