//! The controller's phases, in words and as spans of time.

use crate::encode::Column;
use knee_present::words::percent;
use serde::Serialize;

/// A phase in the legend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Phase {
    /// Name in words.
    pub words: String,
    /// Tint; a class in the style sheet.
    pub tint: &'static str,
}

/// The phases of a flow over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Spans {
    /// Start of each span, nanoseconds; a span lasts until the next one.
    pub at: Column,
    /// Its phase, by index in the page's list.
    pub phase: Column,
    /// The fraction of the time that each phase took, in order of first appearance: its index, and
    /// the fraction in words.
    shares: Vec<(u64, String)>,
}

/// All phases that a page has shown so far.
#[derive(Debug, Default)]
pub(crate) struct Phases {
    names: Vec<&'static str>,
}

impl Phases {
    /// Returns the spans of a series of (time, phase), at most `spans_max` of them: if there are
    /// more, the time is divided into that many equal pieces, each with the phase that lasted
    /// longest in it. `None` if the controller shows no phases.
    pub(crate) fn spans(
        &mut self,
        rows: impl Iterator<Item = (u64, &'static str)>,
        spans_max: usize,
    ) -> Option<Spans> {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        let mut end = 0;
        for (time, name) in rows {
            end = time;
            let phase = self.index(name);
            if spans.last().is_none_or(|last| last.1 != phase) {
                spans.push((time, phase));
            }
        }
        if spans.iter().all(|&(_, phase)| self.names[phase as usize].is_empty()) {
            return None;
        }
        let shares = shares(&spans, end);
        if spans.len() > spans_max {
            spans = merge(&spans, end, spans_max, self.names.len());
        }
        let at: Vec<u64> = spans.iter().map(|span| span.0).collect();
        let phase: Vec<u64> = spans.iter().map(|span| span.1).collect();
        Some(Spans { at: Column::times(&at), phase: Column::exact(&phase), shares })
    }

    /// Returns the legend, in order of first appearance.
    pub(crate) fn legend(&self) -> Vec<Phase> {
        let phase = |name: &&'static str| Phase { words: words(name), tint: tint(name) };
        self.names.iter().map(phase).collect()
    }

    fn index(&mut self, name: &'static str) -> u64 {
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) as u64
    }
}

/// Returns the fraction of the time from the first span to the end that each phase took.
fn shares(spans: &[(u64, u64)], end: u64) -> Vec<(u64, String)> {
    let mut lasted: Vec<(u64, u64)> = Vec::new();
    for (position, &(from, phase)) in spans.iter().enumerate() {
        let time = spans.get(position + 1).map_or(end, |next| next.0) - from;
        match lasted.iter_mut().find(|(known, _)| *known == phase) {
            Some((_, sum)) => *sum += time,
            None => lasted.push((phase, time)),
        }
    }
    let whole = lasted.iter().map(|(_, time)| time).sum::<u64>().max(1) as f64;
    lasted.into_iter().map(|(phase, time)| (phase, percent(Some(time as f64 / whole)))).collect()
}

/// Divides the time into equal pieces, each with the phase that lasted longest.
fn merge(spans: &[(u64, u64)], end: u64, pieces: usize, phases: usize) -> Vec<(u64, u64)> {
    let begin = spans[0].0;
    let piece = (end - begin).div_ceil(pieces as u64).max(1);
    let mut lasted = vec![vec![0u64; phases]; pieces];
    for (position, &(from, phase)) in spans.iter().enumerate() {
        let until = spans.get(position + 1).map_or(end, |next| next.0);
        let mut at = from;
        while at < until {
            let index = ((at - begin) / piece) as usize;
            let stop = until.min(begin + (index as u64 + 1) * piece);
            lasted[index][phase as usize] += stop - at;
            at = stop;
        }
    }
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (index, lasted) in lasted.iter().enumerate() {
        let longest = (0..phases).max_by_key(|&phase| lasted[phase]).unwrap_or(0) as u64;
        if merged.last().is_none_or(|last| last.1 != longest) {
            merged.push((begin + index as u64 * piece, longest));
        }
    }
    merged
}

fn words(name: &str) -> String {
    match name {
        "startup" => "start-up: doubling each round",
        "drain" => "drain: emptying the start-up queue",
        "probe_bw_up" => "probe bandwidth: up",
        "probe_bw_down" => "probe bandwidth: down",
        "probe_bw_cruise" => "probe bandwidth: cruise",
        "probe_bw_refill" => "probe bandwidth: refill",
        "probe_bw" => "probe bandwidth",
        "probe_bw_policed" => "probe bandwidth: held to a policer's rate",
        "probe_rtt" => "probe RTT: nearly empty window",
        "" => "none shown",
        other => return other.replace('_', " "),
    }
    .to_string()
}

/// Returns the tint of a phase; phases with the same purpose have the same tint in every
/// controller.
fn tint(name: &str) -> &'static str {
    match name {
        "" => "tint-none",
        "probe_rtt" => "tint-purple",
        name if name.ends_with("_up") || name.ends_with("refill") => "tint-orange",
        name if name.ends_with("_down") || name == "drain" => "tint-blue",
        "startup" | "slow_start" | "hystart" | "conservative_slow_start" => "tint-green",
        "reconnaissance" | "unvalidated" | "validating" => "tint-green",
        name if name.contains("recovery") || name.ends_with("policed") => "tint-yellow",
        "safe_retreat" => "tint-yellow",
        name if name.contains("loss") || name.contains("timeout") => "tint-red",
        name if name.ends_with("cruise") || name == "probe_bw" => "tint-grey",
        "congestion_avoidance" => "tint-grey",
        _ => "tint-sky",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_what_lasts_and_bounds_the_spans() {
        // Phase 0 lasts nine tenths of the time, phase 1 the rest.
        let spans: Vec<(u64, u64)> =
            (0..1000).flat_map(|round| [(round * 100, 0), (round * 100 + 90, 1)]).collect();
        let merged = merge(&spans, 100_000, 50, 2);
        assert_eq!(merged, [(0, 0)]);
        // Long spans keep their places.
        let halves = [(0, 0), (50_000, 1)];
        assert_eq!(merge(&halves, 100_000, 50, 2), halves);
    }

    /// Phase 0 lasts 30 + 20 of 80, phase 1 the other 30; 3/8 is 37.5 %.
    #[test]
    fn shares_of_the_time_add_up_what_comes_again() {
        let words = |text: &str| text.to_string();
        let shares = shares(&[(20, 0), (50, 1), (80, 0)], 100);
        assert_eq!(shares, [(0, words("62.5 %")), (1, words("37.5 %"))]);
    }

    #[test]
    fn an_unknown_phase_is_shown_in_its_own_words() {
        assert_eq!(words("competitive_mode"), "competitive mode");
    }
}
