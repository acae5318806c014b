//! The figures of a page: heading and caption, or the reason why there is nothing to draw.

use crate::series::{LinkSeries, Shown};
use serde::Serialize;
use std::collections::BTreeSet;

/// A chart, or a sentence instead of it.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    /// Name of the chart.
    pub plot: String,
    /// Heading.
    pub title: String,
    /// What the chart shows.
    pub caption: &'static str,
    /// Why there is nothing to draw.
    pub empty: Option<String>,
}

/// Names of the existing charts.
pub(crate) type Names<'a> = BTreeSet<&'a str>;

fn figure(
    plot: &str,
    title: &str,
    caption: &'static str,
    names: &Names<'_>,
    empty: &str,
) -> Figure {
    Figure {
        plot: plot.to_string(),
        title: title.to_string(),
        caption,
        empty: (!names.contains(plot)).then(|| empty.to_string()),
    }
}

/// Returns the charts with a curve for each flow.
pub(crate) fn of_flows(names: &Names<'_>) -> Vec<Figure> {
    vec![
        figure(
            "rate",
            "Goodput",
            "Payload delivered to the receiver's application.",
            names,
            "No flow delivered anything.",
        ),
        figure(
            "rtt",
            "Round-trip time",
            "Last RTT that the sender measured; the part above the empty path is queueing delay.",
            names,
            "No flow measured an RTT.",
        ),
        figure(
            "window",
            "Congestion window",
            "Bytes that the controller allows in flight.",
            names,
            "No flow had a window.",
        ),
        figure(
            "in_flight",
            "In flight",
            "Bytes sent and neither acknowledged nor marked lost.",
            names,
            "No sample found anything in flight.",
        ),
    ]
}

/// Returns the charts of a controller's estimates and limits.
pub(crate) fn of_controllers(names: &Names<'_>) -> Vec<Figure> {
    let all = [
        ("bandwidth", "Bandwidth", "Estimate and goodput."),
        ("min_rtt", "Minimum RTT", "Estimate and measured RTT."),
        (
            "flight",
            "Window and in flight",
            "Bytes in flight above one BDP (bandwidth-delay product) wait in a queue.",
        ),
    ];
    let there = all.into_iter().filter(|(plot, ..)| names.contains(plot));
    there.map(|(plot, title, caption)| figure(plot, title, caption, names, "")).collect()
}

/// Returns the charts of each link.
pub(crate) fn of_links(shown: &Shown, names: &Names<'_>) -> Vec<Figure> {
    let links = shown.embedded.links.iter().enumerate();
    links.flat_map(|(index, link)| of_link(index, link, names)).collect()
}

fn of_link(index: usize, link: &LinkSeries, names: &Names<'_>) -> Vec<Figure> {
    let mut figures = vec![
        figure(
            &format!("queue_delay-{index}"),
            &format!("Delay of the queue: {}", link.label),
            "Delay of a packet that enters the queue now. Red ticks at the bottom: packets \
             dropped.",
            names,
            "This queue never delayed a packet.",
        ),
        figure(
            &format!("queue_bytes-{index}"),
            &format!("Bytes in the queue: {}", link.label),
            "IP bytes waiting, the packet in transmission included.",
            names,
            "This queue was always empty.",
        ),
    ];
    let capacity = format!("capacity-{index}");
    if names.contains(&*capacity) {
        let title = format!("Capacity and throughput: {}", link.label);
        let caption = "Area: capacity of the link. Line: its throughput.";
        figures.push(figure(&capacity, &title, caption, names, ""));
    }
    figures
}

/// Returns the distribution of the RTT.
pub(crate) fn distribution(names: &Names<'_>) -> Figure {
    figure(
        "distribution",
        "Distribution of the RTT",
        "Share of all samples with at most this RTT, including the start. A steep line means a \
         steady RTT.",
        names,
        "No flow measured an RTT.",
    )
}

/// Returns notes on what the plots leave out; empty if nothing.
pub(crate) fn left_out(shown: &Shown) -> Vec<String> {
    let mut notes = Vec::new();
    if !shown.embedded.groups.is_empty() {
        notes.push(format!(
            "Line: median over the flows of a group; band: 5th to 95th percentile. {} of {} flows \
             can be drawn individually.",
            shown.embedded.flows.len(),
            shown.flows_sampled
        ));
    }
    if shown.bucket > 1 {
        notes.push(format!(
            "Each pair of points shows the smallest and the largest of up to {} samples.",
            shown.bucket
        ));
    }
    notes
}
