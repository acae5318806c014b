//! Compares the objects of a page with the same objects of another page load.

use super::objects::{is_of_page, object_time, objects};
use super::{Flows, NotMeasurable, because};
use crate::view::{FlowView, RunView, Window};
use std::collections::BTreeMap;

/// Returns the fraction of a page's objects, `0..=1`, that arrived earlier after the flow's start
/// than the object with the same number on the other side; a tie counts half. Two runs without any
/// difference therefore give a half. The flows of the two targets are taken in pairs.
pub(crate) fn objects_earlier(
    targets: [(&RunView<'_>, &str); 2],
    window: Window,
) -> Result<f64, NotMeasurable> {
    earlier(targets, window, times)
}

/// Returns the fraction of ranks, `0..=1`, at which a page's objects, in the order of their arrival,
/// came earlier after the flow's start than those of the other side in theirs; a tie counts half.
/// It is the part of the one cumulative distribution that is ahead of the other.
pub(crate) fn objects_earlier_by_rank(
    targets: [(&RunView<'_>, &str); 2],
    window: Window,
) -> Result<f64, NotMeasurable> {
    earlier(targets, window, |flow| {
        let mut sorted: Vec<f64> = times(flow).into_values().collect();
        sorted.sort_by(f64::total_cmp);
        (0..).zip(sorted).collect()
    })
}

/// Compares the times under the same numbers, flow by flow.
fn earlier(
    targets: [(&RunView<'_>, &str); 2],
    window: Window,
    times: impl Fn(&FlowView<'_>) -> BTreeMap<u32, f64>,
) -> Result<f64, NotMeasurable> {
    let [(test, ours), (control, theirs)] = targets;
    let (test, control) = (Flows::find(test, ours, window)?, Flows::find(control, theirs, window)?);
    if test.members.len() != control.members.len() {
        return because(format!("{ours} and {theirs} are not as many flows"));
    }
    let (mut earlier, mut count) = (0.0, 0.0);
    for (ours, theirs) in test.members.iter().zip(&control.members) {
        let (ours, mut theirs) = (times(ours), times(theirs));
        for (number, time) in ours {
            let Some(other) = theirs.remove(&number) else {
                return because(format!("object {number} is on one side only"));
            };
            count += 1.0;
            earlier += match time.total_cmp(&other) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Greater => 0.0,
            };
        }
    }
    match count > 0.0 {
        true => Ok(earlier / count),
        false => because(format!("{} has no objects of a page", test.target)),
    }
}

/// Returns the time from the flow's start to the arrival of each object, seconds, by number.
fn times(flow: &FlowView<'_>) -> BTreeMap<u32, f64> {
    objects(flow, is_of_page).map(|row| (row.number, object_time(flow, row))).collect()
}
