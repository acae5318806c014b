//! `knee doctor`.

mod examine;
mod host;

use crate::arguments::Doctor;
use crate::failure::{Ending, Failure};
use crate::print::Print;
use examine::{Finding, State, examine};
use host::Host;
use knee_present::{Document, Table, Tone, text};
use serde::Serialize;

/// Output of `--format json`.
#[derive(Serialize)]
struct Findings<'f> {
    /// `knee-doctor/1`.
    schema: &'static str,
    findings: &'f [Finding],
}

/// Reports what this host supports. Missing support for other grounds is not a failure.
pub fn doctor(arguments: &Doctor) -> Result<Ending, Failure> {
    let findings = examine(&Host::this());
    let json = Findings { schema: "knee-doctor/1", findings: &findings };
    document(&findings).print(arguments.print.format(), &json)?;
    Ok(Ending::Done)
}

fn document(findings: &[Finding]) -> Document {
    let mut table =
        Table::new([text("state"), text("what"), text("found"), text("for")]).called("findings");
    for finding in findings {
        let (tone, word) = match finding.state {
            State::Ready => (Tone::Good, "ready"),
            State::Lacking => (Tone::Bad, "lacking"),
            State::Unknown => (Tone::Neutral, "unknown"),
        };
        table.row_in(tone, [word, finding.what, finding.found.as_str(), finding.needed_for]);
    }
    let advice = findings.iter().filter(|finding| finding.state != State::Ready);
    let advice: String =
        advice.map(|finding| format!("{}: {}\n", finding.what, finding.advice)).collect();
    let document = Document::default().table(table);
    match advice.is_empty() {
        true => document,
        false => document.words(format!("\nWhat to do:\n{advice}")),
    }
}
