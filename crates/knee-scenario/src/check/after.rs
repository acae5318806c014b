//! Flows whose transfers wait for those of others.

use crate::file::FlowFile;
use crate::model::Flow;
use crate::read::{At, List, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_units::registry::did_you_mean;
use knee_workload::{Arrivals, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group that waits for another.
struct Waiting<'f> {
    name: &'f str,
    after: &'f At<String>,
    group: &'f FlowFile,
}

/// Resolves the names of the flows for which others wait, and gives mixes their arrivals. A file may
/// have many thousand groups in one chain: all of it takes time in proportion.
pub(super) fn check(groups: &List<FlowFile>, flows: &mut [Flow], reading: &mut Reading<'_>) {
    let groups = groups.0.iter().filter_map(Optional::get);
    let groups: Vec<(&str, &FlowFile)> =
        groups.filter_map(|group| Some((group.name.get()?.as_str(), group))).collect();
    let waiting = groups
        .iter()
        .filter_map(|&(name, group)| Some(Waiting { name, after: group.after.at()?, group }));
    let waiting: Vec<Waiting<'_>> = waiting.collect();
    if waiting.is_empty() {
        return;
    }
    let before = reading.problem_count();
    let by_name: BTreeMap<&str, &FlowFile> = groups.iter().copied().collect();
    for Waiting { name, after: At { value, span }, .. } in &waiting {
        if !by_name.contains_key(value.as_str()) {
            let others = groups.iter().map(|(other, _)| *other).filter(|other| other != name);
            let message = format!("there is no flow \"{value}\" to wait for");
            reading.problem(*span, message, did_you_mean(value, others));
        }
    }
    let places: BTreeMap<&str, usize> =
        waiting.iter().enumerate().map(|(at, one)| (one.name, at)).collect();
    let next = waiting.iter().map(|one| places.get(one.after.value.as_str()).copied());
    let (order, circles) = in_order(&next.collect::<Vec<Option<usize>>>());
    for circle in circles {
        let first = &waiting[circle[0]];
        let others = circle.iter().map(|at| format!("\"{}\"", waiting[*at].after.value));
        let others: Vec<String> = others.collect();
        let message =
            format!("the flow \"{}\" waits for {}", first.name, others.join(", which waits for "));
        reading.problem(first.after.span, message, "remove after from one of them");
    }
    if reading.problem_count() > before {
        return;
    }
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, flow) in flows.iter().enumerate() {
        members.entry(flow.name.clone()).or_default().push(index);
    }
    for one in order.into_iter().map(|at| &waiting[at]) {
        let other = by_name.get(one.after.value.as_str());
        other.into_iter().for_each(|other| join(one, other, &members, flows, reading));
    }
}

/// Returns those that wait in an order in which each comes after the one for which it waits, and the
/// circles of those that wait for one another, each from its first on. `next` is for which each
/// waits, if that one waits as well.
fn in_order(next: &[Option<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    // Where the walk began in which each was met.
    let mut met: Vec<Option<usize>> = vec![None; next.len()];
    let (mut order, mut circles) = (Vec::new(), Vec::new());
    for first in 0..next.len() {
        let (mut walk, mut at) = (Vec::new(), Some(first));
        while let Some(one) = at.filter(|one| met[*one].is_none()) {
            met[one] = Some(first);
            walk.push(one);
            at = next[one];
        }
        if let Some(again) = at.filter(|one| met[*one] == Some(first)) {
            let from = walk.iter().position(|one| *one == again).unwrap_or(0);
            let mut circle: Vec<usize> = walk[from..].to_vec();
            let smallest = (0..circle.len()).min_by_key(|place| circle[*place]).unwrap_or(0);
            circle.rotate_left(smallest);
            circles.push(circle);
        }
        order.extend(walk.into_iter().rev());
    }
    (order, circles)
}

/// Lets the flows of a group wait for those of another. `members` are the flows of each group.
fn join(
    one: &Waiting<'_>,
    other: &FlowFile,
    members: &BTreeMap<String, Vec<usize>>,
    flows: &mut [Flow],
    reading: &mut Reading<'_>,
) {
    let of = |name: &str| members.get(name).cloned().unwrap_or_default();
    let (own, others) = (of(one.name), of(&one.after.value));
    // A group with another mistake has no flows, which is no second one.
    if own.is_empty() || others.is_empty() {
        return;
    }
    let span = one.after.span;
    if own.len() != others.len() {
        let message = format!(
            "the count of \"{}\" is {}, and that of \"{}\", for which it waits, {}",
            one.name,
            own.len(),
            one.after.value,
            others.len()
        );
        reading.problem(span, message, format!("write count = {}", others.len()));
        return;
    }
    for (index, after) in own.into_iter().zip(others) {
        if !is_of_a_kind(&flows[index].workload, &flows[after].workload) {
            let message = "a mix waits for a mix, and a file for a file";
            reading.problem(
                span,
                message,
                "change the workload of one of the two, or remove after",
            );
            return;
        }
        flows[index].after = Some(after);
        let (start, workload) = (flows[after].start, flows[after].workload.clone());
        if let (Workload::Mix(mix), Workload::Mix(first)) = (&mut flows[index].workload, workload) {
            // Those of the first in the chain, so that mixes are not nested as deep as it is long.
            mix.arrivals = match first.arrivals {
                Arrivals::After(first) => Arrivals::After(first),
                _ => Arrivals::After(Arc::new(first)),
            };
            if !start_alike(one, other, span, reading) {
                return;
            }
            flows[index].start = start;
        }
    }
}

fn is_of_a_kind(one: &Workload, other: &Workload) -> bool {
    matches!(
        (one, other),
        (Workload::Mix(_), Workload::Mix(_)) | (Workload::File(_), Workload::File(_))
    )
}

/// Reports a mix that says to start at another time than the mix whose arrivals it has.
fn start_alike(one: &Waiting<'_>, other: &FlowFile, span: Span, reading: &mut Reading<'_>) -> bool {
    let (own, others) = (one.group.start.get(), other.start.get());
    let alike = own == others && one.group.start_interval.get() == other.start_interval.get();
    if !alike {
        let message = format!(
            "\"{}\" does not start with \"{}\", for whose transfers it waits",
            one.name, one.after.value
        );
        let help = "write the same start and start_interval in both";
        reading.problem(span, message, help);
    }
    alike
}
