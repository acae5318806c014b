//! What applications waited for, of a flow and of a group of flows.

use crate::FlowSummary;

/// A value that flows with a certain workload have.
#[derive(Clone, Copy, Debug)]
pub struct ApplicationValue {
    /// Name of the number in a summary, within its flow.
    pub name: &'static str,
    /// How several flows give the value of their group.
    gather: Gather,
    /// The value of a flow; `None` if it has another workload.
    part: fn(&FlowSummary) -> Option<Part>,
}

/// A flow's part in the value of its group.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// `None` if what it measures did not happen.
    value: Option<f64>,
    /// Number of events of which the value is the mean.
    events: usize,
}

/// How several flows give the value of their group, as in a claim about the group.
#[derive(Clone, Copy, Debug)]
enum Gather {
    /// Mean over the flows; missing if one of them has no value.
    Mean,
    /// Mean over the events of all flows.
    OverEvents,
    Sum,
}

/// All of them, except the completion of files, which groups have themselves.
pub const APPLICATION_VALUES: [ApplicationValue; 8] = [
    ApplicationValue {
        name: "bursts.time_us.mean",
        gather: Gather::OverEvents,
        part: |flow| {
            let bursts = flow.bursts.as_ref()?;
            let value = bursts.time_us.as_ref().map(|time| time.mean);
            Some(Part { value, events: bursts.arrived })
        },
    },
    ApplicationValue {
        name: "page.load_us",
        gather: Gather::Mean,
        part: |flow| flow.page.as_ref().map(|page| once(page.load_us)),
    },
    ApplicationValue {
        name: "video.bitrate_bps",
        gather: Gather::OverEvents,
        part: |flow| {
            let video = flow.video.as_ref()?;
            Some(Part { value: video.bitrate_bps, events: video.segments })
        },
    },
    ApplicationValue {
        name: "video.stall_us",
        gather: Gather::Mean,
        part: |flow| flow.video.as_ref().map(|video| once(video.stall_us)),
    },
    ApplicationValue {
        name: "video.startup_us",
        gather: Gather::Mean,
        part: |flow| flow.video.as_ref().map(|video| once(video.startup_us)),
    },
    ApplicationValue {
        name: "transfers.all.finished",
        gather: Gather::Sum,
        part: |flow| flow.all_transfers().map(|all| once(Some(all.finished as f64))),
    },
    ApplicationValue {
        name: "transfers.all.cut_off",
        gather: Gather::Sum,
        part: |flow| flow.all_transfers().map(|all| once(Some(all.cut_off as f64))),
    },
    ApplicationValue {
        name: "transfers.all.completion_us.mean",
        gather: Gather::OverEvents,
        part: |flow| {
            let all = flow.all_transfers()?;
            Some(Part { value: all.completion_us.map(|time| time.mean), events: all.finished })
        },
    },
];

fn once(value: Option<f64>) -> Part {
    Part { value, events: 1 }
}

impl ApplicationValue {
    /// Returns the value of a flow: `None` if it has another workload, `Some(None)` if what it
    /// measures did not happen.
    pub fn of_flow(&self, flow: &FlowSummary) -> Option<Option<f64>> {
        (self.part)(flow).map(|part| part.value)
    }

    /// Returns the value of a group's flows, in the same way.
    pub fn of_group(&self, flows: &[&FlowSummary]) -> Option<Option<f64>> {
        let parts: Vec<Part> = flows.iter().filter_map(|flow| (self.part)(flow)).collect();
        (!parts.is_empty()).then(|| self.gather.all(&parts, flows.len()))
    }
}

impl Gather {
    /// Returns the value of a group with so many flows; `None` if there is none.
    fn all(self, parts: &[Part], flow_count: usize) -> Option<f64> {
        let values = || parts.iter().filter_map(|part| Some((part.value?, part.events as f64)));
        let sum = || values().map(|(value, _)| value).sum::<f64>();
        match self {
            Gather::Sum => Some(sum()),
            Gather::Mean => {
                let all = values().count() == flow_count;
                all.then(|| sum() / flow_count as f64)
            }
            Gather::OverEvents => {
                let events: f64 = values().map(|(_, events)| events).sum();
                let total: f64 = values().map(|(value, events)| value * events).sum();
                (events > 0.0).then(|| total / events)
            }
        }
    }
}
