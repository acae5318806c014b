//! The charts of a run, drawn from the series that its page embeds.

use crate::chart::{Chart, Columns, Horizontal, Kind, SIZE, Source, Vertical};
use crate::series::{Embedded, FlowSeries, LinkSeries, Shown};

/// Width of a chart when three are side by side.
const NARROW: f64 = 400.0;
/// Height of the frame of such a chart.
const LOW: f64 = 130.0;
/// Number of colours for curves.
const COLOURS: usize = 8;
/// Time shown after the last activity, as a fraction of the time until then.
const AFTER: f64 = 0.02;

/// Returns all charts of a run's page.
pub(crate) fn charts(shown: &Shown) -> Vec<Chart> {
    let time = time(&shown.embedded);
    let mut charts = of_flows(shown, &time);
    charts.extend(of_controllers(&shown.embedded, &time));
    charts.extend(of_paths(&shown.embedded, &time));
    for (index, link) in shown.embedded.links.iter().enumerate() {
        charts.extend(of_link(index, link, &shown.embedded, &time));
    }
    charts.extend(distribution(shown));
    charts
}

/// Returns the time axis, from the start of the run to the end of all activity.
fn time(of: &Embedded) -> Horizontal {
    let flows = of.flows.iter().chain(of.multipath.iter().flat_map(|flow| &flow.paths));
    let last = |flow: &FlowSeries| {
        let times = flow.time_ns.numbers();
        let numbers = |column: &Option<crate::encode::Column>| {
            column.as_ref().map_or(Vec::new(), |column| column.numbers().to_vec())
        };
        let (delivered, in_flight) =
            (numbers(&flow.delivered_bytes), numbers(&flow.in_flight_bytes));
        let grew = delivered.windows(2).rposition(|pair| pair[1] > pair[0]).map(|row| row + 1);
        let busy = in_flight.iter().rposition(|bytes| *bytes > 0);
        grew.max(busy).and_then(|row| times.get(row)).copied()
    };
    let until = match (of.groups.is_empty(), flows.filter_map(last).max()) {
        (true, Some(last)) => last + (last as f64 * AFTER) as u64,
        _ => of.end_ns,
    };
    // A little less than the whole run is not worth cutting off.
    let whole = until > of.end_ns / 10 * 9;
    Horizontal::time(0, if whole { of.end_ns } else { until })
}

fn largest<'a>(of: &Embedded, places: impl Iterator<Item = &'a String>) -> f64 {
    let columns = places.filter_map(|place| of.column(place));
    columns.flatten().copied().max().unwrap_or(0) as f64
}

/// Returns the source of a gauge of a flow or a path.
pub(crate) fn gauge(owner: &str, field: &str, zero: bool) -> Source {
    let (x, y) = (format!("{owner}.time_ns"), format!("{owner}.{field}"));
    Source::Gauge { x, y, zero }
}

pub(crate) fn rate(owners: &[String]) -> Source {
    let pair = |owner: &String| [format!("{owner}.time_ns"), format!("{owner}.delivered_bytes")];
    Source::Rate { of: owners.iter().map(pair).collect() }
}

/// Returns an axis whose unit suits the largest value of a rate's curves.
pub(crate) fn rate_axis(
    title: &str,
    chart_x: &Horizontal,
    of: &Embedded,
    curves: &[(String, Source)],
    interval_ns: u64,
) -> Vertical {
    let plain = Vertical { divisor: 1.0, unit: "", title: String::new(), from_zero: true };
    let mut probe = Chart::new("", SIZE.0, chart_x.clone(), plain);
    probe.interval_ns = interval_ns;
    let highest = curves.iter().map(|(_, source)| probe.largest(of, source)).fold(0.0, f64::max);
    Vertical::of(title, Kind::Rate, highest)
}

/// Returns the value that all flows have in common; zero if they differ.
fn common(flows: &[FlowSeries], value: fn(&FlowSeries) -> u64) -> f64 {
    let mut values = flows.iter().map(value);
    let first = values.next().unwrap_or(0);
    if values.all(|other| other == first) { first as f64 } else { 0.0 }
}

fn full(of: &Embedded) -> &'static str {
    if of.rates_vary { "path full, in the mean" } else { "path full" }
}

fn longest_interval(flows: &[FlowSeries]) -> u64 {
    flows.iter().map(|flow| flow.interval_ns).max().unwrap_or(0).max(1)
}

/// Returns charts with a curve for each flow, or a band for each group.
fn of_flows(shown: &Shown, time: &Horizontal) -> Vec<Chart> {
    let of = &shown.embedded;
    let base = common(&of.flows, |flow| flow.base_rtt_ns);
    let mut charts = Vec::new();
    charts.extend(goodput(shown, time));
    let kinds = [
        ("rtt", "RTT", "rtt_ns", Kind::Time, false),
        ("window", "congestion window", "window_bytes", Kind::Bytes, true),
        ("in_flight", "in flight", "in_flight_bytes", Kind::Bytes, true),
    ];
    for (name, title, field, kind, zero) in kinds {
        let columns: Vec<String> =
            (0..of.flows.len()).map(|flow| format!("flows.{flow}.{field}")).collect();
        let edges: Vec<String> =
            (0..of.groups.len()).map(|group| format!("groups.{group}.{field}.high")).collect();
        let largest = largest(of, columns.iter().chain(&edges));
        if largest == 0.0 {
            continue;
        }
        let mut chart = Chart::new(name, SIZE.0, time.clone(), Vertical::of(title, kind, largest));
        add_flows(&mut chart, shown, field, zero, |flow| gauge(flow, field, zero));
        if field == "rtt_ns" {
            chart.level("empty path", vec![base]);
        }
        charts.push(chart.finished());
    }
    charts
}

/// Adds bands first, then flows; flows outside the legend are drawn when selected.
fn add_flows(
    chart: &mut Chart,
    shown: &Shown,
    field: &str,
    zero: bool,
    source: impl Fn(&str) -> Source,
) {
    let of = &shown.embedded;
    for (index, group) in of.groups.iter().enumerate() {
        let owner = format!("groups.{index}");
        let y = ["low", "median", "high"].map(|edge| format!("{owner}.{field}.{edge}"));
        if of.column(&y[1]).is_some() {
            let class = format!("c{}", index % COLOURS);
            let x = format!("{owner}.time_ns");
            chart.curve(&group.label, &class, Source::Band { x, y, zero });
        }
    }
    for (index, flow) in of.flows.iter().enumerate() {
        let owner = format!("flows.{index}");
        let class = format!("c{}", (of.groups.len() + index) % COLOURS);
        let column = if field == "rate_bps" { "delivered_bytes" } else { field };
        if of.column(&format!("{owner}.{column}")).is_some() {
            chart.curve(&flow.label, &class, source(&owner));
            if let Some(last) = chart.curves.last_mut() {
                last.optional = !shown.alone.contains(&index);
            }
        }
    }
}

fn goodput(shown: &Shown, time: &Horizontal) -> Option<Chart> {
    let of = &shown.embedded;
    let owners: Vec<String> = (0..of.flows.len()).map(|flow| format!("flows.{flow}")).collect();
    if of.flows.iter().all(|flow| flow.delivered_bytes.is_none()) {
        return None;
    }
    let together = of.groups.is_empty() && owners.len() > 1;
    let interval = longest_interval(&of.flows);
    let mut curves: Vec<(String, Source)> =
        owners.iter().map(|owner| (owner.clone(), rate(std::slice::from_ref(owner)))).collect();
    if together {
        curves.push((String::new(), rate(&owners)));
    }
    let mut y = rate_axis("goodput", time, of, &curves, interval);
    if !of.groups.is_empty() {
        let edges: Vec<String> =
            (0..of.groups.len()).map(|group| format!("groups.{group}.rate_bps.high")).collect();
        y = Vertical::of("goodput", Kind::Rate, largest(of, edges.iter()));
    }
    let mut chart = Chart::new("rate", SIZE.0, time.clone(), y);
    chart.interval_ns = interval;
    add_flows(&mut chart, shown, "rate_bps", true, |flow| rate(&[flow.to_string()]));
    if together {
        chart.curve("all together", "total", rate(&owners));
    }
    if of.groups.is_empty() {
        // With many flows, the path's rate is far above each of them.
        chart.level(full(of), vec![common(&of.flows, |flow| flow.full_bps)]);
    }
    Some(chart.finished())
}

/// Returns charts of the selected flow's controller and its estimates.
fn of_controllers(of: &Embedded, time: &Horizontal) -> Vec<Chart> {
    let place = |field: &str| {
        (0..of.flows.len()).map(|flow| format!("flows.{flow}.{field}")).collect::<Vec<_>>()
    };
    let any = |field: &str| place(field).iter().any(|place| of.column(place).is_some());
    let each = |value: fn(&FlowSeries) -> u64| -> Vec<f64> {
        of.flows.iter().map(|flow| value(flow) as f64).collect()
    };
    let new = |name: &str, y: Vertical| {
        let mut chart = Chart::new(name, SIZE.0, time.clone(), y);
        chart.shade = "flows.*".to_string();
        chart.interval_ns = longest_interval(&of.flows);
        chart
    };
    let mut charts = Vec::new();
    if any("bandwidth_estimate_bps") {
        let largest = largest(of, place("bandwidth_estimate_bps").iter());
        let mut chart = new("bandwidth", Vertical::of("bandwidth", Kind::Rate, largest));
        chart.curve("goodput", "measured", rate(&["flows.*".to_string()]));
        let estimate = gauge("flows.*", "bandwidth_estimate_bps", false);
        chart.curve("estimate of the bandwidth", "estimate", estimate);
        chart.level(full(of), each(|flow| flow.full_bps));
        charts.push(chart.finished());
    }
    if any("min_rtt_estimate_ns") {
        let largest = largest(of, place("rtt_ns").iter());
        let mut chart = new("min_rtt", Vertical::of("RTT", Kind::Time, largest));
        chart.curve("RTT", "measured", gauge("flows.*", "rtt_ns", false));
        let estimate = gauge("flows.*", "min_rtt_estimate_ns", false);
        chart.curve("estimate of the minimum RTT", "estimate", estimate);
        chart.level("empty path", each(|flow| flow.base_rtt_ns));
        charts.push(chart.finished());
    }
    let fields = ["window_bytes", "in_flight_bytes"];
    if fields.iter().any(|field| any(field)) {
        let largest =
            largest(of, fields.iter().flat_map(|field| place(field)).collect::<Vec<_>>().iter());
        let mut chart = new("flight", Vertical::of("window", Kind::Bytes, largest));
        chart.curve("in flight", "measured", gauge("flows.*", "in_flight_bytes", true));
        chart.curve("congestion window", "estimate", gauge("flows.*", "window_bytes", false));
        if any("slow_start_threshold_bytes") {
            let threshold = gauge("flows.*", "slow_start_threshold_bytes", false);
            chart.curve("slow-start threshold", "threshold", threshold);
        }
        chart.level("one BDP", each(|flow| flow.bdp_bytes));
        charts.push(chart.finished());
    }
    charts
}

/// Returns three charts for each path of a flow, and the data waiting at its receiver.
fn of_paths(of: &Embedded, time: &Horizontal) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (index, flow) in of.multipath.iter().enumerate() {
        for (number, path) in flow.paths.iter().enumerate() {
            let owner = format!("multipath.{index}.paths.{number}");
            charts.extend(of_path(&format!("{index}-{number}"), &owner, number, path, of, time));
        }
        let waiting = flow.reassembly_bytes.as_ref();
        if let Some(largest) = waiting.and_then(|column| column.numbers().iter().max()) {
            let y = Vertical::of("waiting", Kind::Bytes, *largest as f64);
            let name = format!("reassembly-{index}");
            let mut chart = Chart::new(&name, SIZE.0, time.clone(), y);
            let source = gauge(&format!("multipath.{index}"), "reassembly_bytes", true);
            chart.curve("waiting at the receiver", "third", source);
            charts.push(chart.finished());
        }
    }
    charts
}

fn of_path(
    at: &str,
    owner: &str,
    number: usize,
    path: &FlowSeries,
    of: &Embedded,
    time: &Horizontal,
) -> Vec<Chart> {
    let class = format!("c{}", number % COLOURS);
    let new = |name: &str, y: Vertical| {
        Chart::new(&format!("{name}-{at}"), NARROW, time.clone(), y).tall(LOW)
    };
    let mut charts = Vec::new();
    if path.delivered_bytes.is_some() {
        let source = rate(&[owner.to_string()]);
        let curves = [(owner.to_string(), source.clone())];
        let mut chart =
            new("path_rate", rate_axis("delivered", time, of, &curves, path.interval_ns.max(1)));
        chart.interval_ns = path.interval_ns.max(1);
        chart.curve(&path.label, &class, source);
        chart.level(full(of), vec![path.full_bps as f64]);
        charts.push(chart.finished());
    }
    let fields = [
        ("path_rtt", "RTT", "rtt_ns", Kind::Time, false),
        ("path_flight", "in flight", "in_flight_bytes", Kind::Bytes, true),
    ];
    for (name, title, field, kind, zero) in fields {
        let largest = largest(of, [format!("{owner}.{field}")].iter());
        if largest == 0.0 {
            continue;
        }
        let mut chart = new(name, Vertical::of(title, kind, largest));
        chart.curve(&path.label, &class, gauge(owner, field, zero));
        if kind == Kind::Time {
            chart.level("empty path", vec![path.base_rtt_ns as f64]);
        }
        charts.push(chart.finished());
    }
    charts
}

/// Returns the queue of a link, and its capacity and use if its rate changes.
fn of_link(index: usize, link: &LinkSeries, of: &Embedded, time: &Horizontal) -> Vec<Chart> {
    let owner = format!("links.{index}");
    let mut charts = Vec::new();
    let queues = [
        ("queue_delay", "queueing delay", "queue_delay_ns", Kind::Time),
        ("queue_bytes", "bytes in the queue", "queue_bytes", Kind::Bytes),
    ];
    for (name, title, field, kind) in queues {
        let largest = largest(of, [format!("{owner}.{field}")].iter());
        if largest == 0.0 {
            continue;
        }
        let mut y = Vertical::of(title, kind, largest);
        y.from_zero = true;
        let mut chart = Chart::new(&format!("{name}-{index}"), SIZE.0, time.clone(), y);
        chart.curve(&link.label, "c0", gauge(&owner, field, true));
        chart.drops = owner.clone();
        charts.push(chart.finished());
    }
    charts.extend(capacity(index, link, of, time));
    charts
}

/// Returns the capacity of a link with a changing rate as an area, and its use as a line over it,
/// as `mm-throughput-graph` of Mahimahi does.
fn capacity(index: usize, link: &LinkSeries, of: &Embedded, time: &Horizontal) -> Option<Chart> {
    link.capacity_bytes.as_ref()?;
    let owner = format!("links.{index}");
    let counter = |name: &str| Source::Rate {
        of: vec![[format!("{owner}.time_ns"), format!("{owner}.{name}")]],
    };
    let curves = [(String::new(), counter("capacity_bytes"))];
    let y = rate_axis("IP rate", time, of, &curves, link.interval_ns.max(1));
    let mut chart = Chart::new(&format!("capacity-{index}"), SIZE.0, time.clone(), y);
    chart.interval_ns = link.interval_ns.max(1);
    chart.curve("capacity of the link", "area", counter("capacity_bytes"));
    if link.used_bytes.is_some() {
        chart.curve("throughput of the link", "c0", counter("used_bytes"));
    }
    Some(chart.finished())
}

/// Returns the fraction of samples with at most a given RTT.
pub(crate) fn distribution(shown: &Shown) -> Option<Chart> {
    let of = &shown.embedded;
    let all = of.rtt_distribution.as_ref()?;
    let rtts = all.rtt_ns.numbers();
    let (first, last) = (*rtts.first()?, *rtts.last()?);
    let scale = Kind::Time.scale(last as f64);
    let whole = [first, last.max(first + 1)].map(|rtt| rtt as f64 / scale.divisor);
    let x = Horizontal { whole, divisor: scale.divisor, unit: scale.unit, title: "RTT" };
    let y = Vertical { divisor: 1000.0, unit: "%", title: "samples".to_string(), from_zero: true };
    let mut chart = Chart::new("distribution", SIZE.0, x, y);
    for (index, curve) in all.curves.iter().enumerate() {
        let y = format!("rtt_distribution.curves.{index}.at_or_below");
        let source = Source::Gauge { x: "rtt_distribution.rtt_ns".to_string(), y, zero: true };
        chart.curve(&curve.label, &format!("c{}", index % COLOURS), source);
        if let Some(last) = chart.curves.last_mut() {
            last.optional = of.groups.is_empty() && !shown.alone.contains(&index);
        }
    }
    let base = common(&of.flows, |flow| flow.base_rtt_ns);
    if base > 0.0 {
        let label = "empty path".to_string();
        let reference =
            crate::chart::Reference { label, values: vec![base], upright: true, named: false };
        chart.references.push(reference);
    }
    Some(chart.finished())
}
