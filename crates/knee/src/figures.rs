//! The table of what came out of a run.

use crate::table::Table;
use knee_lab::words::{NONE, time_us};
use knee_record::{FlowSummary, LinkSummary, Spread, Summary, Unit};

/// Flows and links that are shown one by one; the records have them all.
const ROWS_MAX: usize = 20;

/// Title, flows, links.
pub fn text(summary: &Summary) -> String {
    let title = format!(
        "{} · {} · seed {} · {}\n",
        summary.name,
        summary.ground,
        summary.seed,
        time_us(Some(summary.duration_us))
    );
    [title, flows(summary), links(summary)].join("\n")
}

fn flows(summary: &Summary) -> String {
    let sized = summary.flows.iter().any(|flow| flow.size_bytes.is_some());
    let mut heads = vec![
        "flow",
        "cc",
        ">goodput",
        ">RTT p50",
        ">RTT p95",
        ">standing",
        ">sent again",
        ">power",
    ];
    if sized {
        heads.push(">finished in");
    }
    let mut table = Table::new(&heads);
    let columns = |row: [String; 9]| row.into_iter().take(heads.len());
    summary.flows.iter().take(ROWS_MAX).for_each(|flow| table.row(columns(flow_row(flow))));
    if summary.flows.len() > 1 {
        table.row(columns(all_row(summary)));
    }
    let fairness = match summary.measures.jain {
        Some(jain) if summary.flows.len() > 1 => {
            format!("fairness (Jain's index) {}\n", Unit::Number.show(jain))
        }
        _ => String::new(),
    };
    table.text() + &fairness + &left_out(summary.flows.len(), "flows", knee_record::FLOWS)
}

fn flow_row(flow: &FlowSummary) -> [String; 9] {
    let rtt = |value: fn(&Spread) -> f64| time_us(flow.rtt_us.as_ref().map(value));
    [
        format!("{}[{}]", flow.name, flow.index),
        flow.cc.clone(),
        show(Unit::BitsPerSecond, flow.goodput_bps),
        rtt(|rtt| rtt.p50),
        rtt(|rtt| rtt.p95),
        time_us(flow.standing_queue_us),
        show(Unit::Fraction, flow.retransmit_ratio),
        show(Unit::Number, flow.power),
        time_us(flow.completion_us),
    ]
}

fn all_row(summary: &Summary) -> [String; 9] {
    let all = &summary.measures;
    let rtt = |value: fn(&Spread) -> f64| time_us(all.rtt_us.as_ref().map(value));
    [
        "all".to_string(),
        String::new(),
        show(Unit::BitsPerSecond, all.goodput_bps),
        rtt(|rtt| rtt.p50),
        rtt(|rtt| rtt.p95),
        time_us(all.standing_queue_us),
        show(Unit::Fraction, all.retransmit_ratio),
        show(Unit::Number, all.power),
        time_us(all.completion_us),
    ]
}

fn links(summary: &Summary) -> String {
    let mut table = Table::new(&[
        "link",
        ">utilisation",
        ">delay p50",
        ">delay p95",
        ">standing",
        ">dropped",
        ">lost",
        ">marked",
    ]);
    summary.links.iter().take(ROWS_MAX).for_each(|link| table.row(link_row(link)));
    table.text() + &left_out(summary.links.len(), "links", knee_record::LINKS)
}

fn link_row(link: &LinkSummary) -> [String; 8] {
    let delay = |value: fn(&Spread) -> f64| time_us(link.queueing_delay_us.as_ref().map(value));
    [
        link.name.clone(),
        show(Unit::Fraction, link.utilisation),
        delay(|delay| delay.p50),
        delay(|delay| delay.p95),
        time_us(link.standing_queue_us),
        link.drops.to_string(),
        link.losses.to_string(),
        link.marks.to_string(),
    ]
}

fn left_out(count: usize, what: &str, file: &str) -> String {
    match count.saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("… and {more} more {what}, in {file}\n"),
    }
}

fn show(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_string(), |value| unit.show(value))
}

/// A number of a summary with the unit that its name ends in.
pub fn named(name: &str, value: f64) -> String {
    if name.contains("_bps") {
        Unit::BitsPerSecond.show(value)
    } else if name.contains("_us") {
        Unit::Seconds.show(value / 1e6)
    } else if name.contains("_bytes") {
        format!("{} B", Unit::Number.show(value))
    } else if name.contains("_ratio") || name.ends_with("utilisation") {
        Unit::Fraction.show(value)
    } else {
        Unit::Number.show(value)
    }
}

/// Whether a number of a summary is one that is usually looked at.
pub fn is_headline(name: &str) -> bool {
    const ENDS: [&str; 10] = [
        "goodput_bps",
        "rtt_us.p50",
        "rtt_us.p95",
        "standing_queue_us",
        "queueing_delay_us.p95",
        "retransmit_ratio",
        "utilisation",
        "drops",
        "jain",
        "completion_us",
    ];
    let plain = |end: &str| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    ENDS.iter().any(|end| plain(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_unit() {
        assert_eq!(named("flow.a[0].goodput_bps", 9.4e6), "9.4 Mbit/s");
        assert_eq!(named("flow.a[0].rtt_us.p50", 60_000.0), "60 ms");
        assert_eq!(named("link.x.utilisation", 0.5), "50 %");
        assert_eq!(named("flow.a[0].sent_bytes", 1500.0), "1500 B");
        assert_eq!(named("jain", 0.5), "0.5");
    }

    #[test]
    fn headlines_are_whole_names() {
        assert!(is_headline("rtt_us.p50") && is_headline("flow.a[0].rtt_us.p50"));
        assert!(!is_headline("flow.a[0].srtt_us.p50") && !is_headline("flow.a[0].rtt_us.p5"));
    }
}
