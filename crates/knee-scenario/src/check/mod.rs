//! Turns a file into a scenario in which every value is possible and every name known. Each check
//! reports its problems and continues, so that a user sees all of them at once; what it returns
//! after a problem is discarded.

mod after;
mod bounds;
mod breaker;
mod claims;
mod flows;
mod inputs;
mod links;
mod loss;
mod measures;
mod multipath;
mod paths;
mod pause;
mod programs;
mod queue;
mod series;
mod study;
mod transport;
mod windows;

pub use claims::placeholders;
pub use inputs::INPUTS;
pub(crate) use inputs::Inputs;
pub(crate) use links::RATE_MIN;
pub(crate) use study::study;

use crate::file::{ScenarioFile, TransportFile};
use crate::model::{Flow, Path, Scenario};
use crate::read::{At, Named, Optional, Required, Value};
use crate::source::{Reading, file_name};
use crate::tree::{self, Kind, Node, Span};
use claims::Names;
use knee_foreign::{Purpose, purpose};
use knee_units::registry::did_you_mean;
use knee_units::{Time, is_hidden};
use std::fmt::Display;

const DURATION_MIN: Time = Time::from_millis(1);
const DURATION_MAX: Time = Time::from_secs(4 * 3600);
/// Largest number each of links, paths, groups of flows, claims, and runs of a study.
const ENTRIES_MAX: usize = 10_000;
const SAMPLE_INTERVAL_MIN: Time = Time::from_micros(100);

/// Checks a scenario. `name` is the name of its file; `folder` is where its input files are
/// looked up.
pub(crate) fn scenario(
    mut file: ScenarioFile,
    name: &str,
    folder: &str,
    reading: &mut Reading<'_>,
) -> Scenario {
    check_title(&file.name, reading);
    let title = file.name.fill(stem(name).to_string());
    let duration = duration(&file.duration, reading);
    let seed = file.seed.fill(1);
    let sample_interval = file.sample_interval.fill(Time::from_millis(100).min(duration));
    in_range(&file.sample_interval, "the sample interval", SAMPLE_INTERVAL_MIN, duration, reading);
    let warmup = file.warmup.fill(Time::ZERO);
    in_range(&file.warmup, "the warm-up", Time::ZERO, duration, reading);

    let given = file.transport.fill(TransportFile::default());
    let single = transport::check(&given, knee_transport::Config::default(), false, reading);
    let transport = flows::Transports { single, several: transport::several(&given, single) };
    let send_jitter = given.send_jitter.clone();
    let base_jitter = send_jitter.get().copied().unwrap_or(Time::ZERO);
    let written = TransportFile { send_jitter, ..transport::write(&single) };
    file.transport = Optional::new(written);

    let mut inputs = Inputs::new(folder);
    let run = series::OfRun { duration, seed };
    let recorded = series::read(&mut file.link, run, &mut inputs, reading);
    let ways = paths::check(&file.path, &file.link, &recorded, reading);
    let context =
        flows::Context { ways: &ways, duration, seed, transport, send_jitter: base_jitter };
    let mut flows = flows::check(&mut file, context, &mut inputs, reading);
    let default = segment_bytes(&single);
    let largest = largest_segments(&flows, ways.len(), default);
    let segments = links::Segments { default, on_path: &largest };
    let known = links::Known { seed, ways: &ways, recorded: &recorded };
    let mut links = links::check(&mut file.link, known, segments, &mut inputs, reading);
    // After a problem, a link may lack what the file gives it.
    if reading.problem_count() == 0 {
        paths::check_times(&file.path, &ways, &links, reading);
        let paths: Vec<&Path> = ways.iter().filter_map(|way| way.path.as_ref()).collect();
        pause::check_before(&file.link, &paths, &mut links, reading);
    }
    let measured = windows::Measured { ways: &ways, links: &links };
    windows::in_packets(&mut file.flow, &mut flows, &measured, reading);
    let names = Names::of_scenario(&file, duration, reading);
    let claims = claims::check(&mut file.claim, &names, reading);

    Scenario {
        name: title,
        duration,
        seed,
        sample_interval,
        warmup,
        links,
        paths: ways.into_iter().flat_map(|way| way.path).collect(),
        flows,
        claims,
        resolved: file.write().entries().map(tree::print).unwrap_or_default(),
        files: inputs.files,
    }
}

/// Returns the IP bytes of the largest segment on each path, at least the default's. Flows on other
/// paths do not matter to a link.
fn largest_segments(flows: &[Flow], paths: usize, default: u64) -> Vec<u64> {
    let mut largest = vec![default; paths];
    for flow in flows {
        for path in &flow.paths {
            largest[*path] = largest[*path].max(segment_bytes(&flow.transport));
        }
    }
    largest
}

fn segment_bytes(transport: &knee_transport::Config) -> u64 {
    u64::from(transport.mss + transport.header).min(transport::PACKET_BYTES_MAX)
}

fn duration(entry: &Required<Time>, reading: &mut Reading<'_>) -> Time {
    in_range(&entry.0, "the duration", DURATION_MIN, DURATION_MAX, reading);
    match entry.get() {
        Some(duration) if *duration >= DURATION_MIN => *duration,
        // Already reported; nothing else is compared with an invalid duration.
        _ => DURATION_MAX,
    }
}

/// Returns a file's name without its folder and extension.
fn stem(name: &str) -> &str {
    let name = name.rsplit_once('/').map_or(name, |(_, last)| last);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Reports a value outside its range, and returns whether it is inside. A range that is empty
/// because its end is invalid accepts everything.
pub(crate) fn in_range<T: PartialOrd + Display>(
    entry: &Optional<T>,
    what: &str,
    min: T,
    max: T,
    reading: &mut Reading<'_>,
) -> bool {
    let Some(At { value, span }) = entry.at() else { return true };
    if min > max {
        return true;
    }
    if *value < min {
        let message = format!("{what} must be at least {min}, found {value}");
        reading.problem(*span, message, format!("write {min} or more"));
    } else if *value > max {
        let message = format!("{what} must be at most {max}, found {value}");
        reading.problem(*span, message, format!("write {max} or less"));
    }
    (min..=max).contains(value)
}

/// Reports implausibly many links, paths, groups of flows and so on: each is compared with all
/// others.
fn few_enough(document: &Node, reading: &mut Reading<'_>) -> bool {
    let before = reading.problem_count();
    if let Some((key, _)) = document.entries().and_then(|entries| entries.get(ENTRIES_MAX)) {
        let help = "write the name of a scenario; knee init FILE writes one";
        reading.problem(key.span, format!("more than {ENTRIES_MAX} keys are too many"), help);
    }
    for (key, value) in document.entries().into_iter().flatten() {
        let count = match &value.kind {
            Kind::Array(items) => items.len(),
            Kind::Table(entries) => entries.len(),
            _ => continue,
        };
        if count > ENTRIES_MAX {
            let message = format!("{count} entries of {} are too many", key.name);
            let help = match key.name.as_str() {
                "flow" => format!("write at most {ENTRIES_MAX}, some with count = 10"),
                _ => format!("write at most {ENTRIES_MAX}, or several files"),
            };
            reading.problem(key.span, message, help);
        }
    }
    reading.problem_count() == before
}

/// Parses a text; reports what is not TOML.
pub(crate) fn parse_document(name: &str, text: &str, reading: &mut Reading<'_>) -> Option<Node> {
    let base = reading.add_text(name, text);
    match reading.cache.document(base, text) {
        Ok(document) => few_enough(&document, reading).then_some(document),
        Err(errors) => {
            refuse_text(name, (text, base), errors, reading);
            None
        }
    }
}

/// Reports a text that is not TOML.
fn refuse_text(
    name: &str,
    (text, base): (&str, usize),
    errors: Vec<tree::SyntaxError>,
    reading: &mut Reading<'_>,
) {
    let end = text.find('\n').unwrap_or(text.len());
    if let Some(Purpose { what, advice }) = purpose(text.as_bytes()) {
        let message = format!("this is {what}, not a scenario");
        let help = advice.replace("FILE", file_name(name));
        return reading.problem(Span { start: base, end: base + end }, message, help);
    }
    if let Some(format) = knee_workload::log_format(text) {
        let message = format!("this is an access log ({format}), not a scenario");
        let help =
            format!("name it in a mix of a scenario: sizes = {{ log = \"{}\" }}", file_name(name));
        return reading.problem(Span { start: base, end: base + end }, message, help);
    }
    let many = errors.len() > tree::SYNTAX_ERRORS_MAX;
    for (span, message) in errors.into_iter().take(if many { 1 } else { usize::MAX }) {
        let message = message.replace('\n', ", ");
        if many {
            let message = format!("invalid TOML here and in many other places: {message}");
            let help = "write the name of a scenario; knee init FILE writes one";
            reading.problem(span, message, help);
        } else {
            reading.problem(span, format!("invalid TOML: {message}"), "see https://toml.io");
        }
    }
}

const NAME_CHARACTERS_MAX: usize = 64;

/// Reports a name that contains characters with a meaning in claims and `--set`: `run/flow[1]`,
/// `link.name.rate`.
fn check_name(name: &str, span: Span, reading: &mut Reading<'_>) {
    let special = |c: char| is_hidden(c) || "/[].=*\"'".contains(c);
    if name.is_empty() || name.trim() != name {
        reading.problem(
            span,
            "a name must not be empty, nor begin or end with a space",
            "write a name such as \"bottleneck\"",
        );
    } else if let Some(c) = name.chars().find(|c| special(*c)) {
        let message = format!("a name must not contain {c:?}");
        reading.problem(span, message, "write letters, digits, - and _");
    } else if name.chars().count() > NAME_CHARACTERS_MAX {
        let message = format!("a name has at most {NAME_CHARACTERS_MAX} characters");
        reading.problem(span, message, "write a shorter one");
    }
}

/// Reports a title with characters that change how other text is displayed.
fn check_title(title: &Optional<String>, reading: &mut Reading<'_>) {
    let Some(At { value, span }) = title.at() else { return };
    if let Some(c) = value.chars().find(|c| is_hidden(*c)) {
        let message = format!("a title must not contain {c:?}");
        reading.problem(*span, message, "write one line without control characters");
    }
}

/// Converts names to positions in `known`; reports unknown and repeated names.
fn positions(
    list: &[At<String>],
    known: &[&str],
    noun: &str,
    unknown: impl Fn(&str) -> String,
    reading: &mut Reading<'_>,
) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for At { value, span } in list {
        match known.iter().position(|known| known == value) {
            None => {
                reading.problem(*span, unknown(value), did_you_mean(value, known.iter().copied()))
            }
            Some(position) if found.contains(&position) => {
                let message = format!("{noun} \"{value}\" is named twice");
                reading.problem(*span, message, format!("name each {noun} once"));
            }
            Some(position) => found.push(position),
        }
    }
    (found.len() == list.len()).then_some(found)
}

/// Returns the names of tables.
fn names<T>(named: &Named<T>) -> Vec<&str> {
    named.0.iter().map(|(name, _)| name.value.as_str()).collect()
}
