//! The main tables: per group of flows, per flow, per link.

use knee_present::words::{bytes, count, number, percent, rate, time_us};
use knee_present::{Cell, Column, Head, Table};
use knee_record::{FlowSummary, LinkSummary, Records, RunView, Spread, Summary, Window, measure};
use knee_scenario::{Measure, Statistic};
use knee_units::Time;

/// Largest number of rows in the table of flows.
const FLOW_ROWS_MAX: usize = 50;

/// The head of a column of texts, with an explanation as a tooltip.
fn text(text: &str, about: &str) -> Head {
    knee_present::text(text).about(about)
}

/// The head of a column of numbers, with an explanation as a tooltip.
fn figure(text: &str, about: &str) -> Head {
    knee_present::number(text).about(about)
}

/// Returns the head of a measure's column, with the meaning from its declaration.
fn measured(text: &str, measure: &Measure) -> Head {
    figure(text, measure.declared().meaning)
}

/// Returns one row per group of flows, as the summary has it. Only what it lacks is measured: the
/// share of a flow without a group, and everything of groups in summaries of earlier versions.
pub(crate) fn groups(summary: &Summary, records: &Records) -> Table {
    let run = RunView::new(records, Time::from_micros(summary.warmup_us as u64));
    let mut names: Vec<&str> = Vec::new();
    for flow in &summary.flows {
        if !names.contains(&flow.name.as_str()) {
            names.push(&flow.name);
        }
    }
    let heads = [
        text("flows", "group of flows in the scenario"),
        text("controller", "congestion controller, or preset"),
        measured("goodput", &Measure::Goodput),
        measured("share", &Measure::Share),
        measured("RTT median", &Measure::Rtt(Statistic::P50)),
        measured("RTT p95", &Measure::Rtt(Statistic::P95)),
        figure("retransmitted", "bytes retransmitted over bytes sent, from start to end"),
        measured("fairness", &Measure::Jain),
    ];
    let fairness = heads.len() - 1;
    let table = Table::new(heads).with_rows(names.iter().map(|name| group(name, summary, &run)));
    // If no group has two flows, fairness does not apply.
    match table.rows.iter().all(|row| row.cells[fairness].is_none()) {
        true => table.without(fairness),
        false => table,
    }
}

fn group(name: &str, summary: &Summary, run: &RunView<'_>) -> Vec<String> {
    let members: Vec<&FlowSummary> =
        summary.flows.iter().filter(|flow| flow.name == name).collect();
    let measured = |what: Measure| measure(run, &what, name, Window::default()).ok();
    let group = summary.groups.iter().find(|group| group.name == name);
    let alone = members.first().filter(|_| members.len() == 1);
    let rtt = match (group, alone) {
        (Some(group), _) => group.rtt_us,
        (_, Some(flow)) => flow.rtt_us,
        _ => None,
    };
    let rtt = |statistic, of: fn(&Spread) -> f64| match &rtt {
        Some(rtt) => time_us(Some(of(rtt))),
        None => micros(measured(Measure::Rtt(statistic))),
    };
    let known = match (group, alone) {
        (Some(group), _) => [group.goodput_bps, group.share, group.retransmit_ratio, group.jain],
        (_, Some(flow)) => [flow.goodput_bps, None, flow.retransmit_ratio, None],
        _ => [None; 4],
    };
    let [goodput, share, retransmitted, jain] = known;
    let goodput = goodput.or_else(|| measured(Measure::Goodput));
    let share = share.or_else(|| measured(Measure::Share));
    let retransmitted = retransmitted.or_else(|| measured(Measure::RetransmitRatioTotal));
    let jain = jain.or_else(|| measured(Measure::Jain)).filter(|_| members.len() > 1);
    vec![
        match members.len() {
            1 => name.to_string(),
            flows => format!("{name} × {}", count(flows as u64)),
        },
        members.first().map_or_else(String::new, |flow| flow.cc.clone()),
        rate(goodput),
        percent(share),
        rtt(Statistic::P50, |rtt| rtt.p50),
        rtt(Statistic::P95, |rtt| rtt.p95),
        percent(retransmitted),
        number(jain),
    ]
}

/// Formats a time in seconds. It is rounded to nanoseconds, so that an error of division does not
/// make the figure differ from the terminal's.
fn micros(seconds: Option<f64>) -> String {
    time_us(seconds.map(|seconds| (seconds * 1e9).round() / 1e3))
}

/// Returns one row per flow, for the first [`FLOW_ROWS_MAX`].
pub(crate) fn flows(summary: &Summary) -> Table {
    fn rtt(flow: &FlowSummary, value: fn(&Spread) -> f64) -> Cell {
        time_us(flow.rtt_us.as_ref().map(value)).into()
    }
    let columns: [Column<FlowSummary>; 13] = [
        Column::new(text("flow", "group and number within it"), |flow| {
            format!("{}[{}]", flow.name, flow.index).into()
        }),
        Column::new(text("controller", "congestion controller, or preset"), |flow| {
            (&flow.cc).into()
        }),
        Column::new(figure("goodput", "payload delivered in order over time"), |flow| {
            rate(flow.goodput_bps).into()
        }),
        Column::new(figure("RTT min", "smallest RTT measured"), |flow| rtt(flow, |rtt| rtt.min)),
        Column::new(figure("median", "median over time"), |flow| rtt(flow, |rtt| rtt.p50)),
        Column::new(figure("p95", "95th percentile over time"), |flow| rtt(flow, |rtt| rtt.p95)),
        Column::new(
            figure("standing queue", "smallest queueing delay in each second, mean"),
            |flow| time_us(flow.standing_queue_us).into(),
        ),
        Column::new(
            figure("delivered", "payload delivered to the receiver's application"),
            |flow| bytes(Some(flow.delivered_bytes as f64)).into(),
        ),
        Column::new(
            figure("retransmitted", "bytes retransmitted over bytes sent, from start to end"),
            |flow| percent(flow.retransmit_ratio).into(),
        ),
        Column::new(figure("recoveries", "fast recoveries"), |flow| count(flow.recoveries).into()),
        Column::new(figure("timeouts", "retransmission timeouts"), |flow| {
            count(flow.timeouts).into()
        }),
        Column::new(
            figure("completed in", "from start to the acknowledgement of the last byte"),
            |flow| time_us(flow.completion_us).into(),
        ),
        Column::new(figure("power", "Kleinrock's power, normalised; 1 at the knee"), |flow| {
            number(flow.power).into()
        }),
    ];
    let left_out = summary.flows.len().saturating_sub(FLOW_ROWS_MAX);
    Table { left_out, ..Table::of(&columns, summary.flows.iter().take(FLOW_ROWS_MAX)) }
}

/// Returns one row per link.
pub(crate) fn links(summary: &Summary) -> Table {
    fn of_entered(link: &LinkSummary, packets: u64) -> Cell {
        let part = packets as f64 / link.entered_packets.max(packets) as f64;
        match packets {
            0 => "0".into(),
            packets => format!("{} ({})", count(packets), percent(Some(part))).into(),
        }
    }
    let columns: [Column<LinkSummary>; 9] = [
        Column::new(text("link", "one direction of one hop"), |link| (&link.name).into()),
        Column::new(
            figure("utilisation", "bytes that left it over what its rate allows"),
            |link| percent(link.utilisation).into(),
        ),
        Column::new(figure("queue mean", "bytes waiting, mean over time"), |link| {
            bytes(link.queue_bytes.map(|queue| queue.mean)).into()
        }),
        Column::new(figure("queue p95", "bytes waiting, 95th percentile over time"), |link| {
            bytes(link.queue_bytes.map(|queue| queue.p95)).into()
        }),
        Column::new(
            figure("delay median", "delay of a packet entering the queue, median over time"),
            |link| time_us(link.queueing_delay_us.map(|delay| delay.p50)).into(),
        ),
        Column::new(figure("delay p95", "the same, 95th percentile over time"), |link| {
            time_us(link.queueing_delay_us.map(|delay| delay.p95)).into()
        }),
        Column::new(figure("dropped", "packets dropped by queue, AQM or policer"), |link| {
            of_entered(link, link.drops)
        }),
        Column::new(
            figure("lost", "packets lost at random, by record, or while the link was down"),
            |link| of_entered(link, link.losses),
        ),
        Column::new(figure("marked", "packets marked with Congestion Experienced"), |link| {
            of_entered(link, link.marks)
        }),
    ];
    let left_out = summary.links.len().saturating_sub(FLOW_ROWS_MAX);
    Table { left_out, ..Table::of(&columns, summary.links.iter().take(FLOW_ROWS_MAX)) }
}
