//! Flows whose transfers wait for those of others.

use crate::file::FlowFile;
use crate::model::Flow;
use crate::read::{At, List, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_registry::did_you_mean;
use knee_workload::{Arrivals, Workload};
use std::sync::Arc;

/// A group that waits for another.
struct Waiting<'f> {
    name: &'f str,
    after: &'f At<String>,
    group: &'f FlowFile,
}

/// Resolves the names of the flows for which others wait, and gives mixes their arrivals.
pub(super) fn check(groups: &List<FlowFile>, flows: &mut [Flow], reading: &mut Reading<'_>) {
    let groups: Vec<&FlowFile> = groups.0.iter().filter_map(Optional::get).collect();
    let waiting = groups.iter().filter_map(|group| {
        let (name, after) = group.name.get().zip(group.after.at())?;
        Some(Waiting { name, after, group })
    });
    let waiting: Vec<Waiting<'_>> = waiting.collect();
    let before = reading.problem_count();
    let names: Vec<&str> =
        groups.iter().filter_map(|group| group.name.get()).map(String::as_str).collect();
    for Waiting { after: At { value, span }, .. } in &waiting {
        if !names.contains(&value.as_str()) {
            let message = format!("there is no flow \"{value}\" to wait for");
            reading.problem(*span, message, did_you_mean(value, names.iter().copied()));
        }
    }
    refuse_cycles(&waiting, reading);
    if reading.problem_count() > before {
        return;
    }
    // A flow's arrivals are known once those of the flow before it are.
    let mut left: Vec<&Waiting<'_>> = waiting.iter().collect();
    while !left.is_empty() {
        let is_ready = |one: &Waiting<'_>| !left.iter().any(|other| *other.name == one.after.value);
        let (ready, rest): (Vec<&Waiting<'_>>, Vec<&Waiting<'_>>) =
            left.iter().partition(|one| is_ready(one));
        // Two flows of one name, which are refused already, can hide a circle.
        if ready.is_empty() {
            return;
        }
        for one in ready {
            let other = groups.iter().find(|group| group.name.get() == Some(&one.after.value));
            other.into_iter().for_each(|other| join(one, other, flows, reading));
        }
        left = rest;
    }
}

/// Reports each circle of flows that wait for one another once, at its first flow.
fn refuse_cycles(waiting: &[Waiting<'_>], reading: &mut Reading<'_>) {
    let mut told: Vec<&str> = Vec::new();
    for first in waiting {
        let next = |one: &&Waiting<'_>| waiting.iter().find(|other| other.name == one.after.value);
        let chain = std::iter::successors(Some(first), next).take(waiting.len());
        let chain: Vec<&Waiting<'_>> = chain.collect();
        let Some(end) = chain.iter().position(|one| one.after.value == first.name) else {
            continue;
        };
        if told.contains(&first.name) {
            continue;
        }
        told.extend(chain[..=end].iter().map(|one| one.name));
        let others = chain[..=end].iter().map(|one| format!("\"{}\"", one.after.value));
        let others: Vec<String> = others.collect();
        let message =
            format!("the flow \"{}\" waits for {}", first.name, others.join(", which waits for "));
        reading.problem(first.after.span, message, "remove after from one of them");
    }
}

/// Lets the flows of a group wait for those of another.
fn join(one: &Waiting<'_>, other: &FlowFile, flows: &mut [Flow], reading: &mut Reading<'_>) {
    let of = |name: &str| -> Vec<usize> {
        (0..flows.len()).filter(|index| flows[*index].name == name).collect()
    };
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
            mix.arrivals = Arrivals::After(Arc::new(first));
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
