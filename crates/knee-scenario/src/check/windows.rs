//! Converts windows in BDP to packets, because a controller does not know its path.

use super::paths::CheckedPath;
use crate::algorithms::Algorithms;
use crate::file::FlowFile;
use crate::model::{Flow, Link};
use crate::read::{At, List, Optional};
use crate::source::Reading;
use knee_units::registry::Value;
use knee_units::{BufferSize, Time};

/// Data by which a path's BDP is measured.
pub(super) struct Measured<'m> {
    pub ways: &'m [CheckedPath],
    pub links: &'m [Link],
}

/// Replaces each window in BDP with packets, in the flows and in the file. One BDP is the smallest
/// rate of the links from sender to receiver (at the start, or the mean of a trace) times the RTT
/// of the path over empty queues, as for a buffer; in segments of the flow, at least one.
pub(super) fn in_packets(
    list: &mut List<FlowFile>,
    flows: &mut [Flow],
    measured: &Measured<'_>,
    reading: &mut Reading<'_>,
) {
    let mut rest = flows;
    for entry in &mut list.0 {
        let Optional::Given(At { value: file, .. }) = entry else { continue };
        let Some(name) = file.name.get() else { continue };
        let count = rest.iter().take_while(|flow| flow.name == *name).count();
        let (group, later) = rest.split_at_mut(count);
        rest = later;
        of_group(file, group, measured, reading);
    }
}

fn of_group(
    file: &mut FlowFile,
    group: &mut [Flow],
    measured: &Measured<'_>,
    reading: &mut Reading<'_>,
) {
    let Some(first) = group.first() else { return };
    let Algorithms { controllers, .. } = reading.algorithms;
    let Ok(settings) = controllers.settings(&first.controller) else { return };
    let Optional::Given(At { value: cc, .. }) = &mut file.cc.0 else { return };
    for (parameter, times) in settings.windows_in_bdp() {
        let given = cc.parameters.iter_mut().find(|(name, _)| name.value == parameter);
        let Some((_, At { value, span })) = given else { continue };
        let packets = match packets(times, &group[0], measured) {
            Ok(packets) => Value::Text(BufferSize::Packets(packets).to_string()),
            Err(reason) => {
                let message = format!("{} is not known here: {reason}", BufferSize::Bdp(times));
                let help = format!("write packets: {parameter} = \"20 packets\"");
                reading.problem(*span, message, help);
                continue;
            }
        };
        *value = packets.clone();
        for flow in &mut *group {
            flow.controller.parameters.insert(parameter.to_string(), packets.clone());
        }
    }
}

/// Converts BDP of the flow's path to packets, or returns why the BDP is not known.
fn packets(times: f64, flow: &Flow, measured: &Measured<'_>) -> Result<u64, &'static str> {
    let [path] = flow.paths[..] else { return Err("the flow takes several paths") };
    let way = &measured.ways[path];
    let forward = way.path.iter().flat_map(|path| &path.forward);
    let rates = forward.filter_map(|link| measured.links.get(*link)?.nominal_rate);
    let Some(rate) = rates.min() else { return Err("no link of the path has a rate") };
    let rtt = way.propagation.unwrap_or(Time::ZERO);
    if rtt == Time::ZERO {
        return Err("the path has no delay");
    }
    let segment = f64::from(flow.transport.mss + flow.transport.header);
    let bytes = rate.as_bits_per_second() as f64 / 8.0 * rtt.as_secs_f64();
    Ok(((times * bytes / segment).round() as u64).max(1))
}
