//! Text and numbers shared by tables on screen and on pages.

use knee_present::Cell;
use knee_present::words::{NONE, value};
use knee_record::{Agreement, GroundRun, Unit};

/// Formats the verdict with its reason.
pub fn verdict(run: &GroundRun) -> String {
    match &run.verdict_reason {
        Some(reason) => format!("{}, {reason}", run.verdict),
        None => run.verdict.to_string(),
    }
}

/// Formats whether a value is within the tolerance.
pub(crate) fn agrees(within: Option<bool>) -> &'static str {
    match within {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not tested",
    }
}

/// Display name of a measure in a comparison of grounds.
pub(crate) fn measure_words(measure: &str) -> &str {
    match measure {
        "smoothed_rtt_p50" => "smoothed RTT, median",
        "retransmit_ratio_total" => "retransmitted",
        "convergence_time" => "convergence time",
        "completion_time" => "completion time",
        "page_load_time" => "page load time",
        "video_bitrate" => "video, bitrate",
        "video_startup_time" => "video, start-up time",
        "flow_completion_mean" => "transfers, mean time",
        other => other,
    }
}

/// Difference in percentage points for ratios, otherwise relative to the kernel's value.
pub(crate) fn difference(one: &Agreement) -> String {
    match (one.unit, one.difference, one.relative) {
        (Unit::Fraction, Some(off), _) => format!("{:+.2} points", off * 100.0),
        (_, _, Some(part)) => format!("{:+.1} %", part * 100.0),
        _ => NONE.to_string(),
    }
}

/// Values of a measure on both grounds, and their difference.
pub(crate) fn three(one: Option<&Agreement>) -> [String; 3] {
    let Some(one) = one else { return [NONE, NONE, NONE].map(str::to_string) };
    [value(one.unit, one.sim), value(one.unit, one.kernel), difference(one)]
}

/// Formats a number of a summary in the unit of its field.
pub fn named(name: &str, value: f64) -> String {
    match field(name) {
        field if field.ends_with("_bps") => Unit::BitsPerSecond.show(value),
        field if field.ends_with("_us") => Unit::Seconds.show(value / 1e6),
        field if field.ends_with("_bytes") => format!("{} B", Unit::Number.show(value)),
        _ if is_part(name) => Unit::Fraction.show(value),
        _ => Unit::Number.show(value),
    }
}

/// A cell with a number of a summary.
pub fn figure(name: &str, value: f64) -> Cell {
    Cell::shown(named(name, value), value)
}

/// Returns the field of a summary that a number is of: `rtt_us` of `flow.bbr[0].rtt_us.p50`. Flows
/// and links may be called anything.
fn field(name: &str) -> &str {
    const STATISTICS: [&str; 8] = ["min", "p5", "p50", "p95", "p99", "max", "mean", "count"];
    let fields = match name.rsplit_once('.') {
        Some((of, end)) if STATISTICS.contains(&end) => of,
        _ => name,
    };
    fields.rsplit('.').next().unwrap_or(fields)
}

/// Ends of the names of headline numbers, and what people call them.
const TITLES: [(&str, &str); 20] = [
    ("bursts.time_us.mean", "bursts, mean time to answer a request"),
    ("page.load_us", "page load time"),
    ("video.bitrate_bps", "video, bitrate"),
    ("video.stall_us", "video, stalled"),
    ("video.startup_us", "video, start-up time"),
    ("completion_over_best_path", "completion over that of the best path"),
    ("transfers.all.finished", "transfers, finished"),
    ("transfers.all.cut_off", "transfers, cut off"),
    ("transfers.all.completion_us.mean", "transfers, mean time"),
    ("transfers.all.completion_us.p95", "transfers, 95th percentile of the time"),
    ("goodput_bps", "goodput"),
    ("rtt_us.p50", "RTT, median"),
    ("rtt_us.p95", "RTT, 95th percentile"),
    ("standing_queue_us", "standing queue"),
    ("queueing_delay_us.p95", "queueing delay, 95th percentile"),
    ("retransmit_ratio", "retransmitted"),
    ("utilisation", "utilisation"),
    ("drops", "packets dropped"),
    ("jain", "fairness (Jain's index)"),
    ("completion_us", "completion time"),
];

/// Returns the name of a number of a summary for people: `bbr[0]: RTT, median` for
/// `flow.bbr[0].rtt_us.p50`. Names that are not known stay.
pub fn titled(name: &str) -> String {
    for (end, title) in TITLES {
        let Some(of) = name.strip_suffix(end) else { continue };
        let parts = ["group.", "flow.", "link."];
        let of = parts.iter().find_map(|part| of.strip_prefix(part)).unwrap_or(of);
        match of.strip_suffix('.') {
            Some(of) => return format!("{of}: {title}"),
            None if of.is_empty() => return title.to_string(),
            // The end of a longer name.
            None => {}
        }
    }
    titled_class(name).unwrap_or_else(|| name.to_string())
}

/// Returns `web[0]: transfers 1 to 3 MB, mean time` for a number of a size class.
fn titled_class(name: &str) -> Option<String> {
    let (of, rest) = name.split_once(".transfers.")?;
    let values = [(".completion_us.mean", "mean time"), (".throughput_bps.mean", "mean rate")];
    let (class, what) =
        values.iter().find_map(|(end, what)| Some((rest.strip_suffix(end)?, what)))?;
    let of = of.strip_prefix("flow.").unwrap_or(of);
    Some(format!("{of}: transfers {class}, {what}"))
}

/// Formats the difference of two numbers of a summary; that of fractions is given in percentage
/// points, since 2 % more of 50 % would be 51 %.
pub fn change(name: &str, by: f64) -> String {
    let sign = if by > 0.0 { "+" } else { "" };
    let shown = named(name, by);
    match shown.strip_suffix(" %") {
        Some(points) => format!("{sign}{points} points"),
        None => format!("{sign}{shown}"),
    }
}

/// Whether a number of a summary is a fraction.
pub fn is_part(name: &str) -> bool {
    let field = field(name);
    let is_ratio = field.ends_with("_ratio") || field.starts_with("retransmit_ratio_");
    is_ratio || ["share", "capacity_share", "utilisation"].contains(&field)
}

/// Whether a number of a summary is a headline number.
pub fn is_headline(name: &str) -> bool {
    let plain = |end: &str| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    // By size class: times of small transfers, rates of large ones.
    let of_class = |classes: &[&str], value: &str| {
        let class = name.split_once(".transfers.").and_then(|(_, rest)| rest.strip_suffix(value));
        class.is_some_and(|class| classes.contains(&class))
    };
    let small = ["under 100 kB", "100 kB to 1 MB", "1 to 3 MB"];
    TITLES.iter().any(|(end, _)| plain(end))
        || of_class(&small, ".completion_us.mean")
        || of_class(&["3 to 30 MB", "30 MB and more"], ".throughput_bps.mean")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_names_for_people() {
        assert_eq!(titled("goodput_bps"), "goodput");
        assert_eq!(titled("flow.bbr[0].rtt_us.p50"), "bbr[0]: RTT, median");
        assert_eq!(titled("link.a.b.drops"), "a.b: packets dropped");
        let class = "flow.web[0].transfers.1 to 3 MB.completion_us.mean";
        assert_eq!(titled(class), "web[0]: transfers 1 to 3 MB, mean time");
        assert_eq!(titled("flow.x.min_rtt_us.p50"), "flow.x.min_rtt_us.p50");
    }

    #[test]
    fn names_say_the_unit() {
        assert_eq!(named("flow.a[0].goodput_bps", 9.4e6), "9.4 Mbit/s");
        assert_eq!(named("flow.a[0].rtt_us.p50", 60_000.0), "60 ms");
        assert_eq!(named("link.x.utilisation", 0.5), "50 %");
        assert_eq!(named("flow.a[0].sent_bytes", 1500.0), "1\u{202f}500 B");
        assert_eq!(named("jain", 0.5), "0.5");
        // Whatever a flow or a link is called.
        assert_eq!(named("flow.to_us[0].jain", 0.5), "0.5");
        assert_eq!(named("link.a_bps.b.drops", 12.0), "12");
        assert_eq!(named("link.my_ratio.queue_bytes.p95", 1500.0), "1\u{202f}500 B");
    }

    #[test]
    fn parts_of_a_whole_differ_by_points() {
        assert_eq!(change("link.x.utilisation", 0.02), "+2 points");
        assert_eq!(change("flow.a[0].retransmit_ratio", -0.005), "-0.5 points");
        assert_eq!(change("rtt_us.p50", 2000.0), "+2 ms");
    }

    #[test]
    fn headlines_are_whole_names() {
        assert!(is_headline("rtt_us.p50") && is_headline("flow.a[0].rtt_us.p50"));
        assert!(is_headline("flow.a[0].transfers.under 100 kB.completion_us.mean"));
        assert!(!is_headline("flow.a[0].transfers.3 to 30 MB.completion_us.mean"));
        assert!(!is_headline("flow.a[0].srtt_us.p50") && !is_headline("flow.a[0].rtt_us.p5"));
    }
}
