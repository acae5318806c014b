//! Words and figures that tables on screens and pages share.

use knee_record::{Agreement, GroundRun, Unit};

/// What stands where there is no value.
pub const NONE: &str = "–";

/// The verdict with its reason.
pub fn verdict(run: &GroundRun) -> String {
    match &run.verdict_reason {
        Some(reason) => format!("{}, {reason}", run.verdict),
        None => run.verdict.to_string(),
    }
}

/// What stands for "within the tolerance".
pub fn agrees(within: Option<bool>) -> &'static str {
    match within {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not tested",
    }
}

/// A measure of a comparison of grounds.
pub fn measure_words(measure: &str) -> &str {
    match measure {
        "smoothed_rtt_p50" => "smoothed RTT, median",
        "retransmit_ratio_total" => "sent again",
        "convergence_time" => "convergence time",
        "completion_time" => "completion time",
        "page_load_time" => "page load time",
        "video_bitrate" => "video, bitrate",
        "video_startup_time" => "video, start-up time",
        "flow_completion_mean" => "transfers, mean time",
        other => other,
    }
}

/// Of ratios in per cent points; of all else as a part of the kernel's value.
pub fn difference(one: &Agreement) -> String {
    match (one.unit, one.difference, one.relative) {
        (Unit::Fraction, Some(off), _) => format!("{:+.2} points", off * 100.0),
        (_, _, Some(part)) => format!("{:+.1} %", part * 100.0),
        _ => NONE.to_string(),
    }
}

/// A measure on both grounds, and how far they are apart.
pub fn three(one: Option<&Agreement>) -> [String; 3] {
    let Some(one) = one else { return [NONE, NONE, NONE].map(str::to_string) };
    let show = |value: Option<f64>| value.map_or_else(|| NONE.to_string(), |v| one.unit.show(v));
    [show(one.sim), show(one.kernel), difference(one)]
}

/// A time given in microseconds.
pub fn time_us(microseconds: Option<f64>) -> String {
    microseconds.map_or_else(|| NONE.to_string(), |us| Unit::Seconds.show(us / 1e6))
}
