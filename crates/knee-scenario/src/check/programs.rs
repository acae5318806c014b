//! Programs in place of Knee's own flows.

use super::in_range;
use crate::file::{FlowFile, ProgramFile, ReadyFile};
use crate::model::{Program, Ready};
use crate::read::{At, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_units::registry::{Selection, did_you_mean};
use knee_units::{Bytes, Time, is_hidden};

/// Names that commands may contain in braces.
const PLACEHOLDERS: [&str; 9] =
    ["here", "peer", "port", "cc", "bytes", "seconds", "ca", "cert", "key"];
/// Linux's limit is far higher (execve(2)).
const WORDS_MAX: usize = 1000;
const BYTES_MAX: Bytes = Bytes::new(1_000_000_000_000_000);
/// Longest time for a server without a sign that it is ready.
const AFTER_MAX: Time = Time::from_secs(10);

/// Longest name of a program's controller, characters.
const LABEL_CHARACTERS_MAX: usize = 64;

/// Whether this can be the name of a controller that only a program knows.
pub(super) fn is_label(controller: &Selection) -> bool {
    let Selection { name, parameters } = controller;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+:".contains(c);
    let length = name.chars().count();
    parameters.is_empty()
        && (1..=LABEL_CHARACTERS_MAX).contains(&length)
        && name.chars().all(is_plain)
        && !name.starts_with('-')
}

/// Checks the program of a flow, if it has one. `duration` is that of the run.
pub(super) fn check(
    flow: &mut FlowFile,
    duration: Time,
    reading: &mut Reading<'_>,
) -> Option<Option<Program>> {
    let Optional::Given(At { value: program, .. }) = &mut flow.program else {
        return (!flow.program.is_broken()).then_some(None);
    };
    if let Some(span) = flow.workload.span() {
        let message = "a program is its own workload";
        reading.problem(span, message, "remove workload; bytes says how much is transferred");
    }
    if let Some(span) = flow.after.span() {
        let message = "a program does not know when another flow's transfer is done";
        reading.problem(span, message, "remove after, or write start");
    }
    in_range(&program.bytes, "the transfer", Bytes::new(1), BYTES_MAX, reading);
    in_range(&program.timeout, "the timeout", Time::from_millis(1), Time::MAX, reading);
    let bytes = program.bytes.get().map(|bytes| bytes.get());
    let server = command(&program.server.0, program, reading);
    let client = command(&program.client.0, program, reading);
    let ready = match (program.ready.fill(ReadyFile::Tcp), program.ready.span()) {
        (ReadyFile::Tcp, _) => Ready::Tcp,
        (ReadyFile::Udp, _) => Ready::Udp,
        (ReadyFile::Line(line), _) => Ready::Line(line),
        (ReadyFile::After(time), span) => {
            if time > AFTER_MAX {
                let message = format!("a server has at most {AFTER_MAX} to be ready");
                reading.problem(span.unwrap_or_default(), message, "write less");
            }
            Ready::After(time)
        }
    };
    let timeout = program.timeout.get().copied().unwrap_or(duration);
    Some(Some(Program { server: server?, client: client?, bytes, ready, timeout }))
}

/// Checks a command: a program, no control characters, and no unknown name in braces.
fn command(
    entry: &Optional<Vec<At<String>>>,
    program: &ProgramFile,
    reading: &mut Reading<'_>,
) -> Option<Vec<String>> {
    let At { value: words, span } = entry.at()?;
    let before = reading.problem_count();
    if words.first().is_none_or(|word| word.value.is_empty()) {
        reading.problem(*span, "the command has no program", "write [\"iperf3\", \"-s\"]");
    }
    if words.len() > WORDS_MAX {
        let message = format!("a command has at most {WORDS_MAX} words");
        reading.problem(*span, message, "put them into a file that the program reads");
    }
    for At { value, span } in words.iter().take(WORDS_MAX) {
        if let Some(c) = value.chars().find(|c| is_hidden(*c) && !c.is_whitespace()) {
            let message = format!("an argument must not contain {c:?}");
            reading.problem(*span, message, "remove it");
        }
        for name in placeholders(value) {
            unknown(name, *span, program, reading);
        }
    }
    (reading.problem_count() == before)
        .then(|| words.iter().map(|word| word.value.clone()).collect())
}

fn unknown(name: &str, span: Span, program: &ProgramFile, reading: &mut Reading<'_>) {
    if !PLACEHOLDERS.contains(&name) {
        let message = format!("there is no placeholder {{{name}}}");
        reading.problem(span, message, did_you_mean(name, PLACEHOLDERS));
    } else if name == "bytes" && matches!(program.bytes, Optional::Absent) {
        let message = "{bytes} stands for the size of the transfer, which is not given";
        reading.problem(span, message, "add bytes = \"20 MB\"");
    }
}

/// Returns the names in braces: lower-case letters alone, since JSON and formats of other programs
/// have braces as well.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let candidates = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    candidates
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase()))
}
