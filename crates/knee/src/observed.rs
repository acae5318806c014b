//! `knee report` for a folder of `knee observe`.

use crate::arguments::{Format, OfObserved};
use crate::failure::{Ending, Failure};
use crate::policy::networks;
use crate::print::Print;
use knee_lab::Error;
use knee_lab::command::quoted;
use knee_lab::directory::REPORT;
use knee_live::{AccessLog, Providers, ReportSettings};
use knee_present::Document;
use knee_record::{ObservedReport, write_text};
use knee_report::{observed_page, observed_says, observed_tables};
use std::io::BufReader;
use std::path::Path;

/// Reads the folder, and prints its report or writes its page.
pub fn report(directory: &Path, arguments: &OfObserved, markdown: bool) -> Result<Ending, Failure> {
    let report = knee_live::report(directory, settings(arguments)?)?;
    let format = if markdown { Format::Markdown } else { arguments.print.format() };
    let document = document(&report);
    if format != Format::Text {
        document.print(format, &report)?;
        return Ok(Ending::Done);
    }
    let page = directory.join(REPORT);
    let text = observed_page(&report, &command(directory, arguments)).map_err(Error::from)?;
    write_text(&page, &text)?;
    document.words(format!("\npage     {}\n", page.display())).print(format, &report)?;
    Ok(Ending::Done)
}

fn settings(arguments: &OfObserved) -> Result<ReportSettings, Failure> {
    let not_read = |path: &Path, reason: String| {
        Failure::Usage(format!("cannot read {}: {reason}", path.display()), "check it".to_string())
    };
    let mut settings = ReportSettings {
        periods: arguments.period.clone(),
        controllers: arguments.controllers.clone().map(|two| two.0),
        ..ReportSettings::default()
    };
    settings.providers = arguments.providers.as_deref().map(providers).transpose()?;
    if let Some(path) = &arguments.log {
        let file =
            knee_scenario::open_file(path).map_err(|error| not_read(path, error.to_string()))?;
        let bytes = file.metadata().map_or(0, |about| about.len());
        settings.log = Some(AccessLog::read(path, BufReader::new(file), bytes)?);
    }
    Ok(settings)
}

/// Reads a table of networks.
pub fn providers(path: &Path) -> Result<Providers, Failure> {
    networks(path).map_err(|[what, advice]| Failure::Usage(what, advice))
}

/// The command that recreates the page.
fn command(directory: &Path, arguments: &OfObserved) -> String {
    let mut words = vec!["knee report".to_string(), quoted(&directory.to_string_lossy())];
    for period in &arguments.period {
        words.push(format!("--period {period}"));
    }
    if let Some(two) = &arguments.controllers {
        words.push(format!("--controllers {}", two.0.join(",")));
    }
    for (option, path) in [("--providers", &arguments.providers), ("--log", &arguments.log)] {
        words.extend(
            path.iter().map(|path| format!("{option} {}", quoted(&path.to_string_lossy()))),
        );
    }
    words.join(" ")
}

/// The report for a terminal, a table or a pull request.
pub fn document(report: &ObservedReport) -> Document {
    let says = observed_says(report).into_iter();
    let mut document = says.fold(Document::default(), Document::said);
    for table in observed_tables(report) {
        let note = table.note.clone();
        document = document.words(format!("\n{}\n", table.title)).table(table);
        if !note.is_empty() {
            document = document.said(note);
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_record::{
        ObservedBeside, ObservedCell, ObservedHour, ObservedObjectCell, ObservedObjects,
        ObservedProvider, ObservedSpread,
    };

    fn cell(class: &str, controller: &str, scale: f64) -> ObservedCell {
        let spread = |p50: f64| {
            Some(ObservedSpread { count: 7, p5: p50 / 3.0, p50, p95: p50 * 2.5 })
                .filter(|_| scale > 0.0)
        };
        ObservedCell {
            group: "far".to_string(),
            arm: "held out".to_string(),
            class: class.to_string(),
            controller: controller.to_string(),
            connections: 12_345,
            unfinished: Some(123),
            acked_bytes: 1_234_567,
            sent_bytes: 1_300_000,
            retransmitted_bytes: 51,
            timeouts: 3,
            receive_limited_ratio: Some(0.123_4),
            throughput_bps: spread(9.87e6 * scale),
            busy_us: spread(123_456.0 * scale),
            rtt_min_us: spread(31_500.0 * scale),
        }
    }

    /// The tables of a report keep their bytes.
    #[test]
    fn reports_print_the_same() {
        let [large, small] = ["3 MB and more", "below 3 MB"].map(|class| cell(class, "bbr", 1.0));
        let other = cell("3 MB and more", "", 0.0);
        let cells = vec![large.clone(), small.clone(), other.clone()];
        let hour = |hour| ObservedHour { hour, all: small.clone(), ..ObservedHour::default() };
        let named = ObservedProvider {
            asn: Some(64_496),
            name: "A network".to_string(),
            all: large.clone(),
            large: large.clone(),
            small: small.clone(),
        };
        let object = ObservedObjectCell {
            class: "1 to 3 MB".to_string(),
            objects: 40,
            alone: 4,
            log_throughput_bps: large.throughput_bps,
            throughput_bps: large.throughput_bps,
            retransmit_ratio: Some(0.01),
            ..ObservedObjectCell::default()
        };
        let report = ObservedReport {
            to_unix_s: 7200,
            valid: true,
            connections: 12_345,
            minutes: 120,
            observed_s: 7200,
            all: small.clone(),
            large: large.clone(),
            small: small.clone(),
            controllers: cells.clone(),
            groups: cells.clone(),
            arms: cells,
            hours: vec![hour(3), hour(14)],
            providers: vec![named, ObservedProvider { asn: None, ..ObservedProvider::default() }],
            beside: Some(ObservedBeside {
                names: ["bbr", "cubic"].map(str::to_string),
                of_controllers: true,
                pairs: vec![
                    [large.clone(), cell("3 MB and more", "", 0.7)],
                    [small.clone(), small],
                ],
            }),
            objects: Some(ObservedObjects {
                lines: 1000,
                joined: 900,
                cells: vec![object],
                ..ObservedObjects::default()
            }),
            ..ObservedReport::default()
        };
        let page = observed_page(&report, "knee report host").unwrap();
        let document = document(&report);
        let (shown, full) = (document.markdown(false), document.markdown(true));
        crate::golden::compare(
            "observed.txt",
            &format!("{shown}\n{full}\n{}", crate::golden::of_page(&page)),
        );
    }
}
