//! Which figures a page has: heading, caption, or the reason why there is
//! nothing to draw.

use crate::series::{FlowSeries, LinkSeries, Shown};
use serde::Serialize;

/// A plot, or a sentence in its place.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// Name by which the script finds it.
    pub plot: String,
    /// Heading.
    pub title: String,
    /// What to see in it.
    pub caption: &'static str,
    /// Why there is nothing to see.
    pub empty: Option<String>,
}

fn figure(plot: &str, title: &str, caption: &'static str, any: bool, empty: &str) -> Figure {
    Figure {
        plot: plot.to_string(),
        title: title.to_string(),
        caption,
        empty: (!any).then(|| empty.to_string()),
    }
}

/// The plots with a curve for each flow.
pub(crate) fn of_flows(shown: &Shown) -> Vec<Figure> {
    let flows = &shown.embedded.flows;
    let any = |has: fn(&FlowSeries) -> bool| flows.iter().any(has);
    vec![
        figure(
            "rate",
            "Goodput",
            "Payload that the receiver's application got.",
            any(|flow| flow.delivered_bytes.is_some()),
            "No flow delivered anything.",
        ),
        figure(
            "rtt",
            "Round-trip time",
            "Last RTT that the sender measured; what lies above the empty path is queue.",
            any(|flow| flow.rtt_ns.is_some()),
            "No flow measured an RTT.",
        ),
        figure(
            "window",
            "Congestion window",
            "What the controller allows in flight.",
            any(|flow| flow.window_bytes.is_some()),
            "No flow had a window.",
        ),
        figure(
            "in_flight",
            "In flight",
            "Sent, and neither acknowledged nor marked lost.",
            any(|flow| flow.in_flight_bytes.is_some()),
            "No sample found anything in flight.",
        ),
    ]
}

/// The two plots of each link.
pub(crate) fn of_links(shown: &Shown) -> Vec<Figure> {
    let links = shown.embedded.links.iter().enumerate();
    links.flat_map(|(index, link)| of_link(index, link)).collect()
}

fn of_link(index: usize, link: &LinkSeries) -> [Figure; 2] {
    let delay = figure(
        &format!("queue_delay-{index}"),
        &format!("Delay of the queue: {}", link.label),
        "What a packet entering now would wait. Red ticks at the foot: packets dropped.",
        link.queue_delay_ns.is_some(),
        "This queue never delayed a packet.",
    );
    let bytes = figure(
        &format!("queue_bytes-{index}"),
        &format!("Bytes in the queue: {}", link.label),
        "IP bytes waiting, the packet in transmission included.",
        link.queue_bytes.is_some(),
        "This queue was always empty.",
    );
    [delay, bytes]
}

/// The distribution of the RTT.
pub(crate) fn distribution(shown: &Shown) -> Figure {
    figure(
        "distribution",
        "Distribution of the RTT",
        "Part of all samples with at most this RTT, the start included. Steep is steady.",
        shown.embedded.rtt_distribution.is_some(),
        "No flow measured an RTT.",
    )
}

/// What the plots leave out, in words; empty: nothing.
pub(crate) fn left_out(shown: &Shown) -> Vec<String> {
    let mut notes = Vec::new();
    let drawn = shown.embedded.flows.len();
    if drawn < shown.flows_sampled {
        notes.push(format!(
            "{drawn} of {} flows are drawn one by one, the first of each group; the dashed curve \
             is the mean of all of them.",
            shown.flows_sampled
        ));
    }
    if shown.bucket > 1 {
        notes.push(format!(
            "Each pair of points stands for up to {} samples: the smallest and the largest of them.",
            shown.bucket
        ));
    }
    notes
}
