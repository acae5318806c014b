//! `knee report`.

use crate::arguments::Report;
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_lab::directory::REPORT;
use knee_lab::rewrite_page;
use knee_record::Verdict;

/// Writes the page of a run, of studies or of a sweep again.
pub fn report(arguments: &Report) -> Result<Ending, Failure> {
    let directory = &arguments.directory;
    let run = rewrite_page(directory)?;
    if let Some(run) = run.filter(|run| run.verdict != Verdict::Valid) {
        let reason = run.verdict_reason.as_deref().unwrap_or("no reason given");
        screen::say(&format!("The run is {}: {reason}.", run.verdict));
    }
    screen::print(&format!("{}\n", directory.join(REPORT).display()))?;
    Ok(Ending::Done)
}
