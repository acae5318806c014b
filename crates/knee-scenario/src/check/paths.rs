//! Paths: names of links become indices.

use super::series::OfLink;
use super::{check_name, in_range, names, positions};
use crate::file::{AbsentFile, DelayFile, LinkFile, PathFile};
use crate::model::{Link, Path, Reverse};
use crate::read::{At, List, Named, Optional};
use crate::source::Reading;
use knee_link::{Config, RateModel, Steps};
use knee_units::Time;

const REVERSE_DELAY_MAX: Time = Time::from_secs(600);

/// A path, as far as it is valid.
pub(super) struct CheckedPath {
    pub name: String,
    /// `None` if the path is invalid.
    pub path: Option<Path>,
    /// Round-trip propagation time at the start, or the smallest of a table, without queues and
    /// serialisation; `None` if a delay is invalid.
    pub propagation: Option<Time>,
}

impl CheckedPath {
    /// Returns whether the path uses the link, forward or back.
    pub(super) fn leads_over(&self, link: usize) -> bool {
        let Some(path) = &self.path else { return false };
        let back = match &path.reverse {
            Reverse::Delay(_) => false,
            Reverse::Links(links) => links.contains(&link),
        };
        back || path.forward.contains(&link)
    }
}

pub(super) fn check(
    paths: &Named<PathFile>,
    links: &Named<LinkFile>,
    recorded: &[OfLink],
    reading: &mut Reading<'_>,
) -> Vec<CheckedPath> {
    let mut ways = Vec::new();
    for (name, file) in &paths.0 {
        check_name(&name.value, name.span, reading);
        let path = match file.get() {
            Some(file) => check_one(name, file, links, reading),
            None => None,
        };
        let propagation = path.as_ref().and_then(|path| propagation(path, links, recorded));
        ways.push(CheckedPath { name: name.value.clone(), path, propagation });
    }
    ways
}

fn check_one(
    name: &At<String>,
    file: &PathFile,
    links: &Named<LinkFile>,
    reading: &mut Reading<'_>,
) -> Option<Path> {
    if file.forward == Optional::Absent && file.like == Optional::Absent {
        let help = "add forward = [\"name of a link\"], or like = \"leo\"";
        reading.problem(name.span, "a path needs \"forward\"", help);
    }
    let forward = file.forward.at().and_then(|list| resolve(list, links, reading));
    let reverse = reverse(name, file, links, reading);
    Some(Path {
        name: name.value.clone(),
        forward: forward?,
        reverse: reverse?,
        absent: absent(&file.absent, reading),
        tunnel: tunnel(&file.tunnel, reading),
    })
}

fn reverse(
    name: &At<String>,
    file: &PathFile,
    links: &Named<LinkFile>,
    reading: &mut Reading<'_>,
) -> Option<Reverse> {
    in_range(&file.reverse_delay, "the reverse delay", Time::ZERO, REVERSE_DELAY_MAX, reading);
    match (&file.reverse_delay, &file.reverse) {
        (Optional::Given(delay), Optional::Given(_)) => {
            let message = "a path has either reverse_delay or reverse, not both";
            reading.problem(delay.span, message, "remove one of the two");
            None
        }
        // What a wrong `like` would have given is not said to be missing.
        (Optional::Absent, Optional::Absent) if file.like != Optional::Absent => None,
        (Optional::Absent, Optional::Absent) => {
            let message = format!("path \"{}\" has no reverse direction", name.value);
            let help = "add reverse_delay = \"30 ms\", or reverse = [\"name of a link\"]";
            reading.problem(name.span, message, help);
            None
        }
        (Optional::Given(delay), Optional::Absent) => Some(Reverse::Delay(delay.value)),
        (Optional::Absent, Optional::Given(list)) => {
            resolve(list, links, reading).map(Reverse::Links)
        }
        _ => None,
    }
}

/// Converts names of links to indices: known, at least one, none twice.
fn resolve(
    list: &At<Vec<At<String>>>,
    links: &Named<LinkFile>,
    reading: &mut Reading<'_>,
) -> Option<Vec<usize>> {
    if list.value.is_empty() {
        reading.problem(list.span, "a path needs at least one link", "write the name of a link");
        return None;
    }
    let unknown = |name: &str| format!("there is no link \"{name}\"");
    positions(&list.value, &names(links), "link", unknown, reading)
}

fn tunnel(entry: &Optional<String>, reading: &mut Reading<'_>) -> Option<String> {
    let At { value, span } = entry.at()?;
    check_name(value, *span, reading);
    Some(value.clone())
}

/// Returns the absences in order of time.
fn absent(list: &List<AbsentFile>, reading: &mut Reading<'_>) -> Vec<(Time, Time)> {
    let mut spans = Vec::new();
    for file in list.0.iter().filter_map(Optional::get) {
        let Some(from) = file.from.at() else { continue };
        let right = file
            .until
            .at()
            .is_none_or(|until| super::links::ordered(from.value, until, "the absence", reading));
        let until = file.until.get().copied().unwrap_or(Time::MAX);
        spans.extend((right && !file.until.is_broken()).then(|| (from.clone(), until)));
    }
    super::links::apart(spans, "absence", reading)
}

/// Refuses a path over which a round trip takes no time, because time would stand still there.
pub(super) fn check_times(
    paths: &Named<PathFile>,
    ways: &[CheckedPath],
    links: &[Link],
    reading: &mut Reading<'_>,
) {
    for ((name, _), way) in paths.0.iter().zip(ways) {
        let Some(Path { forward, reverse, .. }) = &way.path else { continue };
        let (back, delay) = match reverse {
            Reverse::Delay(delay) => (&[][..], *delay),
            Reverse::Links(links) => (&links[..], Time::ZERO),
        };
        let mut indices = forward.iter().chain(back);
        if delay == Time::ZERO && !indices.any(|index| takes_time(&links[*index].config)) {
            let message = format!("a round trip over path \"{}\" takes no time", name.value);
            let help = "write a rate or a delay for one of its links, or a reverse_delay";
            reading.problem(name.span, message, help);
        }
    }
}

/// Returns whether a packet needs time for a link, whenever it is sent.
fn takes_time(config: &Config) -> bool {
    let always = |steps: &Steps<Time>| steps.0.iter().all(|(_, time)| *time > Time::ZERO);
    let Config { rate, delay, .. } = config;
    let jitter = delay.jitter.as_ref();
    let is_late = jitter.is_some_and(|jitter| jitter.share > 0.0 && always(&jitter.amount));
    *rate != RateModel::Unlimited || always(&delay.base) || is_late
}

fn propagation(path: &Path, links: &Named<LinkFile>, recorded: &[OfLink]) -> Option<Time> {
    // Delays are limited only by a later check, so they may be absurd here.
    let over = |indices: &[usize]| {
        let mut delays =
            indices.iter().map(|index| first_delay(&links.0[*index].1, &recorded[*index]));
        delays.try_fold(Time::ZERO, |sum, delay| Some(sum.saturating_add(delay?)))
    };
    let back = match &path.reverse {
        Reverse::Delay(delay) => Some(*delay),
        Reverse::Links(links) => over(links),
    };
    Some(over(&path.forward)?.saturating_add(back?))
}

/// Returns the delay of a link at the start, or the smallest of a table.
fn first_delay(link: &Optional<LinkFile>, recorded: &OfLink) -> Option<Time> {
    match &link.get()?.delay {
        Optional::Absent => Some(Time::ZERO),
        Optional::Broken => None,
        Optional::Given(At { value: DelayFile::Constant(delay), .. }) => Some(*delay),
        Optional::Given(At { value: DelayFile::Steps(steps), .. }) => {
            steps.first()?.value.delay.get().copied()
        }
        Optional::Given(At { value: DelayFile::Series(_), .. }) => {
            Some(recorded.delay.as_ref()?.as_ref()?.least_delay())
        }
    }
}
