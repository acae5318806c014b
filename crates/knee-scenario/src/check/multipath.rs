//! The paths of a flow, and how it uses several.

use super::flows::selection;
use super::paths::CheckedPath;
use super::positions;
use crate::algorithms::Algorithms;
use crate::file::{FlowFile, PathName, SchedulerFile};
use crate::model::Multipath;
use crate::read::{At, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_multipath::sched::{PATHS_MAX, check_paths_of};
use knee_units::registry::did_you_mean;

/// Returns the paths by index, and how several are used; `None` if something is invalid.
pub(super) fn check(
    flow: &mut FlowFile,
    span: Span,
    ways: &[CheckedPath],
    reading: &mut Reading<'_>,
) -> Option<(Vec<usize>, Option<Multipath>)> {
    match (&flow.path, flow.paths.at().cloned()) {
        _ if flow.path.is_broken() || flow.paths.is_broken() => None,
        (_, None) => {
            refuse_multipath_keys(flow, reading);
            let path = single(flow, span, ways, reading)?;
            refuse_absence(&ways[path], flow.path.span().unwrap_or(span), reading);
            Some((vec![path], None))
        }
        (Optional::Absent, Some(list)) => several(flow, &list, ways, reading),
        (_, Some(list)) => {
            let message = "a flow has either path or paths, not both";
            reading.problem(list.span, message, "remove one of the two");
            None
        }
    }
}

/// Reports keys that only a flow with `paths` has.
fn refuse_multipath_keys(flow: &FlowFile, reading: &mut Reading<'_>) {
    let keys = [
        ("scheduler", flow.scheduler.span()),
        ("reinjection", flow.reinjection.span()),
        ("backup", flow.backup.span()),
    ];
    for (key, span) in keys {
        let Some(span) = span else { continue };
        let message = format!("a flow over one path does not take {key}");
        reading.problem(
            span,
            message,
            "write paths = [\"name\", \"name\"] instead of path, or remove it",
        );
    }
}

/// Reports that a flow over one path, which has no subflows to end and begin, cannot follow a path
/// that is absent for a while.
fn refuse_absence(way: &CheckedPath, span: Span, reading: &mut Reading<'_>) {
    if way.path.as_ref().is_some_and(|path| !path.absent.is_empty()) {
        let name = &way.name;
        let message =
            format!("path \"{name}\" is absent for a while, but the flow has no other way");
        let help = format!("write paths = [\"{name}\"], or down on a link in place of absent");
        reading.problem(span, message, help);
    }
}

fn single(
    flow: &mut FlowFile,
    span: Span,
    ways: &[CheckedPath],
    reading: &mut Reading<'_>,
) -> Option<usize> {
    let known = names(ways);
    match &flow.path {
        Optional::Given(at) => {
            let named = [At { value: at.value.0.clone(), span: at.span }];
            let found = positions(&named, &known, "path", unknown, reading)?;
            found.first().copied()
        }
        _ => match known[..] {
            [only] => {
                flow.path.fill(PathName(only.to_string()));
                Some(0)
            }
            [] => {
                let help = "add [path.main] with forward = [\"name of a link\"]";
                reading.problem(span, "there is no path for this flow", help);
                None
            }
            _ => {
                let help = did_you_mean("", known);
                reading.problem(span, "this flow does not name its path", help);
                None
            }
        },
    }
}

fn several(
    flow: &mut FlowFile,
    list: &At<Vec<At<String>>>,
    ways: &[CheckedPath],
    reading: &mut Reading<'_>,
) -> Option<(Vec<usize>, Option<Multipath>)> {
    let count = list.value.len();
    if count == 0 || count > PATHS_MAX {
        let message = format!("a flow needs 1 to {PATHS_MAX} paths, found {count}");
        let advice = match count {
            0 => "write paths = [\"name\", \"name\"]".to_owned(),
            _ => format!("name at most {PATHS_MAX}, or share the traffic among several flows"),
        };
        reading.problem(list.span, message, advice);
        return None;
    }
    let paths = positions(&list.value, &names(ways), "path", unknown, reading);
    let scheduler = scheduler(flow, list, reading);
    let reinjection = flow.reinjection.fill(true);
    // Backup names can only be checked once the paths are known.
    let backup = paths.as_ref().and_then(|_| backup(flow, list, reading));
    let multipath = Multipath { scheduler: scheduler?, reinjection, backup: backup? };
    Some((paths?, Some(multipath)))
}

fn scheduler(
    flow: &mut FlowFile,
    list: &At<Vec<At<String>>>,
    reading: &mut Reading<'_>,
) -> Option<knee_units::registry::Selection> {
    let broken = flow.scheduler.is_broken();
    let file = flow.scheduler.fill(SchedulerFile::named("minrtt"));
    let Algorithms { schedulers, .. } = reading.algorithms;
    let chosen = selection(&file, Vec::new(), |chosen| schedulers.check(chosen), reading)?;
    if let Err(error) = check_paths_of(schedulers, &chosen, list.value.len()) {
        reading.problem(file.name.span, error.problem, error.advice);
        return None;
    }
    (!broken).then_some(chosen)
}

/// Returns the backup paths as positions in `list`, ascending.
fn backup(
    flow: &mut FlowFile,
    list: &At<Vec<At<String>>>,
    reading: &mut Reading<'_>,
) -> Option<Vec<usize>> {
    let span = flow.backup.span().unwrap_or_default();
    let own: Vec<&str> = list.value.iter().map(|name| name.value.as_str()).collect();
    let unknown = |name: &str| format!("the flow has no path \"{name}\" to use as a backup");
    let backup = flow.backup.fill(Vec::new());
    let mut backup = positions(&backup, &own, "path", unknown, reading)?;
    if backup.len() == own.len() {
        let help = "remove at least one of the flow's paths from backup";
        reading.problem(span, "all paths of the flow are backups", help);
        return None;
    }
    backup.sort_unstable();
    Some(backup)
}

fn names(ways: &[CheckedPath]) -> Vec<&str> {
    ways.iter().map(|way| way.name.as_str()).collect()
}

fn unknown(name: &str) -> String {
    format!("there is no path \"{name}\"")
}
