//! Measures that a claim can name, from the table of measures. Their formulas are in
//! docs/measures.md.

use knee_present::{Document, Table, text};
use knee_scenario::measure::{Declared, MEASURES, Subject, Unit};

const STATISTICS: &str = "STAT: min, p5, p50, p95, p99, max or mean, weighted by time, \
                          or over objects and transfers. \
                          Words after a semicolon are keys of the claim.";

/// Names of all measures; a distribution counts as one.
pub fn names() -> Vec<String> {
    MEASURES.iter().map(shown).collect()
}

/// A table of all measures.
pub fn document() -> Document {
    let mut table =
        Table::new([text("measure"), text("of"), text("unit"), text("meaning")]).called("measures");
    for measure in MEASURES {
        let unit = unit(measure).to_string();
        table.row([shown(measure), of(measure), unit, meaning(measure)]);
    }
    Document::default().table(table).words("\n").said(STATISTICS)
}

fn shown(measure: &Declared) -> String {
    let end = if measure.is_distribution() { "_STAT" } else { "" };
    format!("{}{end}", measure.name)
}

fn of(measure: &Declared) -> String {
    let word = |subject: &Subject| match subject {
        Subject::Flows => "flows",
        Subject::Link => "link",
        Subject::Model => "model",
    };
    measure.subjects.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn unit(measure: &Declared) -> &'static str {
    match measure.unit {
        Unit::BitsPerSecond => "bit/s",
        Unit::Seconds => "time",
        Unit::Bytes => "bytes",
        Unit::Fraction => "%",
        Unit::Number => "",
    }
}

/// The meaning, followed by the keys of the claim that are its parameters.
fn meaning(measure: &Declared) -> String {
    let keys: Vec<&str> = measure.needs().chain(measure.takes().iter().copied()).collect();
    match keys.as_slice() {
        [] => measure.meaning.to_string(),
        keys => format!("{}; {}", measure.meaning, keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measure that a scenario accepts is listed with its unit and keys.
    #[test]
    fn a_line_has_all_that_a_claim_needs() {
        let text = document().text(crate::screen::layout());
        let line = |name: &str| {
            let found = text.lines().find(|line| line.split_whitespace().next() == Some(name));
            found.unwrap_or_else(|| panic!("{name} is not in {text}")).to_string()
        };
        assert!(line("convergence_time").ends_with("fair share; band, hold"));
        assert!(line("flow_throughput_STAT").ends_with("size_at_least, size_below"));
        let queue = line("queueing_delay_STAT");
        assert!(queue.contains("flows, link") && queue.contains("time"), "{queue}");
        assert!(line("model.filter").contains("model"));
    }
}
