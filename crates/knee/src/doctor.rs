//! `knee doctor`.

mod examine;
mod host;

use crate::arguments::Doctor;
use crate::failure::{Ending, Failure};
use crate::screen;
use crate::table::{Mood, Table};
use examine::{Finding, State, examine};
use host::Host;
use serde::Serialize;

/// What is printed with `--json`.
#[derive(Serialize)]
struct Document {
    /// `knee-doctor/1`.
    schema: &'static str,
    findings: Vec<Finding>,
}

/// Says what this host allows. What the later grounds lack is no failure.
pub fn doctor(arguments: &Doctor) -> Result<Ending, Failure> {
    let findings = examine(&Host::this());
    match arguments.json {
        true => screen::print_json(&Document { schema: "knee-doctor/1", findings })?,
        false => screen::print(&text(&findings))?,
    }
    Ok(Ending::Done)
}

fn text(findings: &[Finding]) -> String {
    let mut table = Table::new(&["state", "what", "found", "for"]);
    for finding in findings {
        let (mood, word) = match finding.state {
            State::Ready => (Mood::Good, "ready"),
            State::Lacking => (Mood::Bad, "lacking"),
            State::Unknown => (Mood::Neutral, "unknown"),
        };
        table.row_in(mood, [word, finding.what, &finding.found, finding.needed_for]);
    }
    let advice = findings.iter().filter(|finding| finding.state != State::Ready);
    let advice: String =
        advice.map(|finding| format!("{}: {}\n", finding.what, finding.advice)).collect();
    match advice.is_empty() {
        true => table.text(),
        false => format!("{}\nWhat to do:\n{advice}", table.text()),
    }
}
