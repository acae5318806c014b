//! Measures that a claim can name. Their formulas are in docs/measures.md.

use crate::table::Table;

/// A measure, or several that differ in their statistic.
struct Described {
    /// Its name, or what stands before the statistic.
    name: &'static str,
    /// It is followed by a statistic: `rtt_p50`.
    is_distribution: bool,
    of: &'static str,
    unit: &'static str,
    meaning: &'static str,
}

const fn number(
    name: &'static str,
    of: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Described {
    Described { name, is_distribution: false, of, unit, meaning }
}

const fn distribution(
    name: &'static str,
    of: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Described {
    Described { name, is_distribution: true, of, unit, meaning }
}

const FLOWS: &str = "flows";
const LINK: &str = "link";
const BOTH: &str = "flows, link";
const MODEL: &str = "model";

const MEASURES: [Described; 47] = [
    number("goodput", FLOWS, "bit/s", "payload delivered in order over time"),
    number("throughput", FLOWS, "bit/s", "IP bytes sent over time, retransmissions included"),
    number("share", FLOWS, "%", "goodput over that of all flows"),
    number("utilisation", LINK, "%", "IP bytes that left over what the rate allows"),
    distribution("rtt", FLOWS, "time", "RTT as the sender measured it"),
    distribution("smoothed_rtt", FLOWS, "time", "smoothed RTT"),
    distribution("queueing_delay", BOTH, "time", "RTT less that of empty queues; delay of a queue"),
    number("standing_queue", BOTH, "time", "queueing delay that never drains"),
    distribution("min_rtt_estimate", FLOWS, "time", "minimum RTT that the controller believes in"),
    distribution("bandwidth_estimate", FLOWS, "bit/s", "bandwidth that the controller believes in"),
    number("retransmit_ratio", FLOWS, "%", "retransmitted over sent bytes after the warm-up"),
    number("retransmit_ratio_startup", FLOWS, "%", "the same before the end of the warm-up"),
    number("retransmit_ratio_total", FLOWS, "%", "the same from start to end"),
    number("useful_ratio", FLOWS, "%", "bytes delivered over bytes sent"),
    number("effective_goodput", FLOWS, "bit/s", "goodput times the useful ratio"),
    number("lost_elsewhere", FLOWS, "%", "part of what was sent again that no link lost"),
    number("drops", LINK, "", "packets dropped by queue, AQM or policer"),
    number("jain", FLOWS, "", "Jain's fairness index of the goodputs"),
    number("convergence_time", FLOWS, "time", "until all stay near their fair share; band, hold"),
    number("takeover_time", FLOWS, "time", "until they have the path's rate; fraction, hold"),
    number("completion_time", FLOWS, "time", "from start until all is acknowledged"),
    number("power", FLOWS, "", "Kleinrock's power; 1 at the knee"),
    number("phase_entries", FLOWS, "", "times that a phase of the controller began; phase"),
    number("phase_share", FLOWS, "%", "part of the time in phases; phase"),
    number("startup_growth", FLOWS, "", "growth of BBR's estimate in a round of STARTUP"),
    number("startup_flat_rounds", FLOWS, "", "rounds without growth at the end of STARTUP"),
    number("completion_over_bound", FLOWS, "", "completion time over the least that is possible"),
    number("aggregation_ratio", FLOWS, "%", "what was delivered over what all paths allowed"),
    number("head_of_line_blocking", FLOWS, "time", "mean wait of a byte for another path's"),
    number("receive_buffer_peak", FLOWS, "bytes", "most bytes that ever waited so"),
    number("duplicate_ratio", FLOWS, "%", "bytes that came more than once, over all"),
    number("path_share", FLOWS, "%", "bytes of a path over those of all; path"),
    number("page_load_time", FLOWS, "time", "until the last object of a page is complete"),
    distribution("object_time", FLOWS, "time", "until an object of a page is complete"),
    number("objects_earlier", FLOWS, "%", "objects earlier than those of relative_to"),
    number("video_bitrate", FLOWS, "bit/s", "mean bitrate of the segments"),
    number("video_quality_share", FLOWS, "%", "media time in a quality over all; quality"),
    number("video_switches", FLOWS, "", "changes of quality"),
    number("video_stall_time", FLOWS, "time", "how long playback stood still"),
    number("video_startup_time", FLOWS, "time", "until playback starts"),
    distribution("flow_throughput", FLOWS, "bit/s", "of transfers; size_at_least, size_below"),
    distribution("flow_completion", FLOWS, "time", "of transfers; size_at_least, size_below"),
    number("flow_completion_jitter", FLOWS, "time", "its change; size_at_least, size_below"),
    number("model.share_low", MODEL, "", "the smaller share of the link"),
    number("model.share_high", MODEL, "", "the larger share of the link"),
    number("model.filter", MODEL, "", "what the bandwidth filters hold"),
    number("model.rounds_to_converge", MODEL, "", "rounds until the shares stay"),
];

const STATISTICS: &str = "STAT: min, p5, p50, p95, p99, max or mean, weighted by time, \
                          or over objects and transfers. \
                          Words after a semicolon are keys of the claim.";

/// Names of all measures; a distribution counts as one.
pub fn names() -> Vec<String> {
    MEASURES.iter().map(shown).collect()
}

/// A table of all measures.
pub fn text() -> String {
    let mut table = Table::new(&["measure", "of", "unit", "meaning"]);
    for measure in &MEASURES {
        table.row([&shown(measure), measure.of, measure.unit, measure.meaning]);
    }
    format!("{}\n{STATISTICS}\n", table.text())
}

fn shown(measure: &Described) -> String {
    let end = if measure.is_distribution { "_STAT" } else { "" };
    format!("{}{end}", measure.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::Measure;

    fn covers(described: &Described, name: &str) -> bool {
        const STATISTICS: [&str; 7] = ["min", "p5", "p50", "p95", "p99", "max", "mean"];
        let rest = name.strip_prefix(described.name);
        let statistic = rest.and_then(|rest| rest.strip_prefix('_'));
        match described.is_distribution {
            true => statistic.is_some_and(|statistic| STATISTICS.contains(&statistic)),
            false => rest == Some(""),
        }
    }

    /// What a scenario accepts is listed, and nothing else.
    #[test]
    fn the_list_is_complete() {
        let names = Measure::names();
        for name in &names {
            let listed = MEASURES.iter().filter(|described| covers(described, name)).count();
            assert_eq!(listed, 1, "{name}");
        }
        for described in &MEASURES {
            assert!(names.iter().any(|name| covers(described, name)), "{}", described.name);
        }
    }
}
