//! A figure of a run as a separate file, for papers: the drawing of the run's page in a palette for
//! print.

use crate::applications::shortened;
use crate::chart::{Chart, Kind, Reference};
use crate::charts::charts;
use crate::finish::finish;
use crate::mix;
use crate::series::{Detail, Embedded, FlowSeries, shown};
use knee_record::{Records, RunView};
use knee_units::{Bytes, ParseError, Rate, Time};

/// Detail of the time series: more than a printed page shows.
const DETAIL: Detail = Detail { rows_max: 8000, drawn: true };

/// Figures of a run, with the name of the chart on its page and a description.
const FIGURES: [(Figure, &str, &str, &str); 13] = [
    (Figure::Throughput, "throughput", "rate", "Goodput of each flow over time"),
    (Figure::Delay, "delay", "rtt", "Round-trip time of each flow over time"),
    (Figure::Window, "window", "window", "Congestion window of each flow over time"),
    (Figure::InFlight, "in-flight", "in_flight", "Bytes in flight of each flow over time"),
    (Figure::Queue, "queue", "queue_delay", "Queueing delay of a link over time, and drops"),
    (Figure::QueueBytes, "queue-bytes", "queue_bytes", "Bytes in the queue of a link over time"),
    (
        Figure::Capacity,
        "capacity",
        "capacity",
        "Capacity and throughput of a link whose rate changes, as in mm-throughput-graph",
    ),
    (Figure::RttDistribution, "rtt-distribution", "distribution", "Distribution of the RTT"),
    (
        Figure::Bandwidth,
        "bandwidth",
        "bandwidth",
        "A controller's estimate of the bandwidth, and goodput, with its phases",
    ),
    (Figure::MinRtt, "min-rtt", "min_rtt", "A controller's estimate of the minimum RTT"),
    (
        Figure::Flight,
        "controller",
        "flight",
        "A controller's window and bytes in flight, with its phases",
    ),
    (
        Figure::SizeTime,
        "size-time",
        SIZE_TIME,
        "Sizes of a mix's transfers against their completion times, as a heat map",
    ),
    (
        Figure::Finish,
        "finish",
        FINISH,
        "When each path of a flow has delivered its part, and the tail delay",
    ),
];
/// Longest name of a mark, characters: with a value it takes half the width of a figure.
const NAME_MAX: usize = 28;
/// Names of the figures that are not charts.
const SIZE_TIME: &str = "size_time";
const FINISH: &str = "finish";

/// A figure of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Figure {
    /// Goodput over time.
    Throughput,
    /// RTT over time.
    Delay,
    /// Congestion window over time.
    Window,
    /// Bytes in flight over time.
    InFlight,
    /// Queueing delay of a link.
    Queue,
    /// Bytes in the queue of a link.
    QueueBytes,
    /// Capacity and throughput of a link.
    Capacity,
    /// Distribution of the RTT.
    RttDistribution,
    /// A controller's estimate of the bandwidth.
    Bandwidth,
    /// A controller's estimate of the minimum RTT.
    MinRtt,
    /// A controller's window, and what is in flight.
    Flight,
    /// Sizes of transfers against their times.
    SizeTime,
    /// When each path finishes.
    Finish,
}

impl Figure {
    /// All figures.
    pub const ALL: [Figure; FIGURES.len()] = {
        let mut all = [Figure::Throughput; FIGURES.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = FIGURES[at].0;
            at += 1;
        }
        all
    };

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns its description.
    pub fn about(self) -> &'static str {
        self.row().3
    }

    fn row(self) -> (Figure, &'static str, &'static str, &'static str) {
        FIGURES[self as usize]
    }

    /// Returns what its values are; `None` if it has no axis for a mark.
    fn kind(self) -> Option<Kind> {
        match self {
            Figure::Throughput | Figure::Capacity | Figure::Bandwidth => Some(Kind::Rate),
            Figure::Delay | Figure::Queue | Figure::MinRtt | Figure::RttDistribution => {
                Some(Kind::Time)
            }
            Figure::Window | Figure::InFlight | Figure::QueueBytes | Figure::Flight => {
                Some(Kind::Bytes)
            }
            Figure::SizeTime | Figure::Finish => None,
        }
    }

    fn is_over_time(self) -> bool {
        !matches!(self, Figure::RttDistribution | Figure::SizeTime | Figure::Finish)
    }
}

/// A line through a figure at a value from elsewhere, with its name beside it: a figure of a
/// publication, a target, an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    label: String,
    /// In the unit of the figure's columns.
    value: f64,
    /// Whether it is an instant on the time axis.
    is_instant: bool,
}

impl Mark {
    /// Reads `NAME=VALUE`, a value of the figure with its unit, or `NAME@TIME`, an instant of it.
    ///
    /// # Errors
    /// [`MarkError`], which says what to write instead.
    pub fn parse(text: &str, figure: Figure) -> Result<Mark, MarkError> {
        let lacks = || MarkError::NoValue(text.to_string());
        let at = text.rfind(['=', '@']).ok_or_else(lacks)?;
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        if name.is_empty() || value.is_empty() {
            return Err(lacks());
        }
        let is_instant = text[at..].starts_with('@');
        let kind = match is_instant {
            true => figure.is_over_time().then_some(Kind::Time),
            false => figure.kind(),
        };
        let read = match kind.ok_or(MarkError::NoAxis(figure.name()))? {
            Kind::Rate => value.parse().map(Rate::as_bits_per_second),
            Kind::Time => value.parse().map(Time::as_nanos),
            _ => value.parse().map(Bytes::get),
        };
        match read.map_err(|error| MarkError::Value(name.to_string(), error))? {
            0 => Err(MarkError::Zero(name.to_string())),
            read => {
                let name = shortened(name, NAME_MAX);
                let label = format!("{name}, {}{value}", if is_instant { "at " } else { "" });
                Ok(Mark { label, value: read as f64, is_instant })
            }
        }
    }

    /// Draws it into a chart of the figure.
    fn add(&self, chart: &mut Chart, figure: Figure) -> Result<(), PlotError> {
        let upright = self.is_instant || figure == Figure::RttDistribution;
        let ([from, to], label) = (chart.x.whole, self.label.clone());
        if upright && !(from..=to).contains(&(self.value / chart.x.divisor)) {
            return Err(PlotError::Outside(label, format!("{from} to {to} {}", chart.x.unit)));
        }
        chart.references.push(Reference { label, values: vec![self.value], upright, named: true });
        Ok(())
    }
}

/// Why a text is no mark of a figure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MarkError {
    /// Name or value is missing.
    #[error("the mark {0:?} lacks a name or a value")]
    NoValue(String),
    /// The value cannot be read.
    #[error("the mark {0}: {1}")]
    Value(String, ParseError),
    /// The value is zero, where the axis is.
    #[error("the mark {0} is at zero, where there is nothing to see")]
    Zero(String),
    /// The figure has no such axis.
    #[error("{0} has no axis for such a mark")]
    NoAxis(&'static str),
}

/// The figure to draw, and its options.
#[derive(Clone, Debug)]
pub struct Plot<'a> {
    /// The figure.
    pub figure: Figure,
    /// The flow whose controller is shown, as named in the page's legend; `None` for the first that
    /// has the data.
    pub flow: Option<&'a str>,
    /// The link; `None` for the one with the longest queue.
    pub link: Option<&'a str>,
    /// Width in pixels; the height is proportional.
    pub width: f64,
    /// Lines to compare with.
    pub marks: &'a [Mark],
}

/// Why a figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The records have no data for it.
    #[error("there is nothing to draw for {0}: this run's records contain {1}")]
    Nothing(&'static str, String),
    /// The run has nothing with this name.
    #[error("this run has no {0} {1} to draw: it has {2}")]
    Unknown(&'static str, String, String),
    /// A mark is not on the axis.
    #[error("the mark {0:?} is not on the axis, which shows {1}")]
    Outside(String, String),
}

/// Returns the figure as an SVG file.
///
/// # Errors
/// [`PlotError`], with what is available instead.
pub fn plot_svg(records: &Records, plot: &Plot<'_>) -> Result<String, PlotError> {
    match plot.figure {
        Figure::SizeTime => return size_time(records, plot),
        Figure::Finish => return finish_times(records, plot),
        _ => {}
    }
    let mut shown = shown(records, DETAIL);
    if let Some(flow) = plot.flow {
        shown.embedded.picked = place(&shown.embedded.flows, |own| &own.label, flow, "flow")?;
    } else {
        let estimates = |own: &FlowSeries| match plot.figure {
            Figure::Bandwidth => own.bandwidth_estimate_bps.is_some(),
            Figure::MinRtt => own.min_rtt_estimate_ns.is_some(),
            _ => true,
        };
        shown.embedded.picked = shown.embedded.flows.iter().position(estimates).unwrap_or(0);
    }
    let all = charts(&shown);
    let (figure, name, chart_name, _) = plot.figure.row();
    let link = match plot.link {
        Some(link) => place(&shown.embedded.links, |own| &own.label, link, "link")?,
        None => longest_queue(&shown.embedded),
    };
    let of_link = matches!(figure, Figure::Queue | Figure::QueueBytes | Figure::Capacity);
    let wanted = |own: &str| match own.rsplit_once('-') {
        Some((kind, number)) if of_link => {
            kind == chart_name
                && (plot.link.is_none() && figure == Figure::Capacity || number == link.to_string())
        }
        _ => own == chart_name,
    };
    match all.iter().find(|chart| wanted(&chart.name)) {
        Some(chart) => {
            let mut chart = chart.clone();
            plot.marks.iter().try_for_each(|mark| mark.add(&mut chart, figure))?;
            Ok(chart.finished().file(&shown.embedded, plot.width))
        }
        None => {
            let kind = |own: &str| own.rsplit_once('-').map_or(own, |(kind, _)| kind).to_string();
            let kinds: Vec<String> = all.iter().map(|chart| kind(&chart.name)).collect();
            let there = FIGURES.iter().filter(|(_, _, chart, _)| kinds.iter().any(|k| k == chart));
            let there: Vec<&str> = there.map(|(_, name, ..)| *name).collect();
            let there = if there.is_empty() { "no samples".to_string() } else { there.join(", ") };
            Err(PlotError::Nothing(name, there))
        }
    }
}

/// Draws the heat map of a mix, by the name of its flow; `None` for the first.
fn size_time(records: &Records, plot: &Plot<'_>) -> Result<String, PlotError> {
    let run = RunView::new(records, Time::ZERO);
    let all = mix::heat_maps(&run);
    let labels: Vec<String> = run
        .flows
        .iter()
        .filter(|flow| !flow.transfers.is_empty())
        .map(|flow| flow.record.label())
        .collect();
    let at = match plot.flow {
        Some(flow) => place(&labels, |own| own, flow, "mix")?,
        None => 0,
    };
    let drawing = all.get(at).and_then(|shown| shown.drawing.as_ref());
    let nothing = || PlotError::Nothing("size-time", "no transfers of a mix".to_string());
    Ok(drawing.ok_or_else(nothing)?.file(plot.width))
}

/// Draws when the paths of a flow finish, by its name; `None` for all flows over several paths.
fn finish_times(records: &Records, plot: &Plot<'_>) -> Result<String, PlotError> {
    let run = RunView::new(records, Time::ZERO);
    let mut flows: Vec<_> = run.flows.iter().filter(|flow| !flow.paths.is_empty()).collect();
    if let Some(flow) = plot.flow {
        let labels: Vec<String> = flows.iter().map(|flow| flow.record.label()).collect();
        flows = vec![flows[place(&labels, |own| own, flow, "flow over several paths")?]];
    }
    let nothing = || PlotError::Nothing("finish", "no flow over several paths".to_string());
    Ok(finish(&run, &flows).ok_or_else(nothing)?.file(plot.width))
}

fn place<T>(
    all: &[T],
    name: impl Fn(&T) -> &String,
    wanted: &str,
    what: &'static str,
) -> Result<usize, PlotError> {
    let found = all.iter().position(|one| name(one) == wanted);
    found.ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|one| name(one).as_str()).collect();
        let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
        PlotError::Unknown(what, wanted.to_string(), known)
    })
}

fn longest_queue(of: &Embedded) -> usize {
    let longest = |link: &usize| {
        let column = of.links[*link].queue_bytes.as_ref();
        column.and_then(|column| column.numbers().iter().copied().max())
    };
    // The first of equals.
    (0..of.links.len()).rev().max_by_key(longest).unwrap_or(0)
}
