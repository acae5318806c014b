//! Rules that choose the quality of the next segment, and the rule that limits it.

use super::bola::{Bola, View};
use super::throughput::Throughput;
use crate::{Dash, Rule};
use knee_units::Time;

/// Fraction of the measured throughput that is assumed (`bandwidthSafetyFactor`).
const SAFETY: f64 = 0.9;
/// Fraction of the throughput that the insufficient-buffer rule assumes (`throughputSafetyFactor`),
/// and the number of segments that this rule ignores at the start (`segmentIgnoreCount`).
const INSUFFICIENT_SAFETY: f64 = 0.7;
const INSUFFICIENT_IGNORES: u32 = 2;
/// Throughput assumed for the first segment, before any measurement, bit/s
/// (`DEFAULT_VIDEO_BITRATE`).
const INITIAL_BPS: f64 = 1_000_000.0;
/// The dynamic rule leaves BOLA when the buffer falls below this fraction of the level at which it
/// switched to it.
const SWITCH_OFF: f64 = 0.5;

pub(crate) struct Rules {
    rule: Rule,
    ladder_bps: Vec<f64>,
    segment_s: f64,
    buffer_s: f64,
    throughput: Throughput,
    bola: Bola,
    bola_decides: bool,
    /// When the last segment was complete.
    completed: Time,
    segments: u32,
}

/// A completed segment.
pub(crate) struct Arrival {
    pub quality: usize,
    pub bytes: u64,
    pub requested: Time,
    pub first_byte: Time,
    /// Media in the buffer before it and after it, s.
    pub levels_s: [f64; 2],
    /// Whether playback had to wait for it.
    pub stalled: bool,
}

impl Rules {
    pub fn new(dash: &Dash) -> Rules {
        let ladder_bps: Vec<f64> = dash.ladder_bps.iter().map(|&bps| bps as f64).collect();
        let buffer_s = dash.buffer.as_secs_f64();
        Rules {
            rule: dash.rule,
            bola: Bola::new(ladder_bps.clone(), buffer_s),
            ladder_bps,
            segment_s: dash.segment.as_secs_f64(),
            buffer_s,
            throughput: Throughput::default(),
            bola_decides: dash.rule == Rule::Bola,
            completed: Time::ZERO,
            segments: 0,
        }
    }

    /// Returns the quality before any measurement.
    pub fn initial(&self) -> usize {
        self.highest_within(INITIAL_BPS)
    }

    /// Returns the quality of the next segment, and how long to wait before requesting it.
    pub fn choose(&mut self, now: Time, level_s: f64, current: usize) -> (usize, Time) {
        self.choose_rule(level_s);
        let average_bps = self.throughput.average_bps();
        let sustainable = average_bps.map(|average| self.highest_within(SAFETY * average));
        let (quality, wait_s) = if self.bola_decides && self.ladder_bps.len() > 1 {
            let idle_s = now.saturating_sub(self.completed).as_secs_f64();
            let segment_s = self.segment_s;
            self.bola.choose(&View { level_s, segment_s, idle_s, current, sustainable })
        } else {
            (sustainable.unwrap_or(current), 0.0)
        };
        let limit = average_bps.and_then(|average| self.limit(average, level_s));
        (quality.min(limit.unwrap_or(quality)), Time::from_secs_f64(wait_s))
    }

    pub fn on_segment(&mut self, now: Time, arrival: &Arrival) {
        self.throughput.add(arrival.bytes, now.saturating_sub(arrival.first_byte));
        self.completed = now;
        self.segments += 1;
        if arrival.stalled {
            self.bola.on_empty();
        }
        let [before_s, after_s] = arrival.levels_s;
        let transfer_s = now.saturating_sub(arrival.requested).as_secs_f64();
        self.bola.on_segment(arrival.quality, before_s + transfer_s);
        self.choose_rule(after_s);
    }

    /// The dynamic rule uses BOLA once the buffer is full and until it is half empty; in between it
    /// does not switch.
    fn choose_rule(&mut self, level_s: f64) {
        if self.rule == Rule::Dynamic {
            let share = if self.bola_decides { SWITCH_OFF } else { 1.0 };
            self.bola_decides = level_s >= share * self.buffer_s;
        }
    }

    /// The insufficient-buffer rule: returns the highest quality whose segment arrives before the
    /// buffer is empty, with a margin.
    fn limit(&self, average_bps: f64, level_s: f64) -> Option<usize> {
        let bitrate = INSUFFICIENT_SAFETY * average_bps * level_s / self.segment_s;
        (self.segments >= INSUFFICIENT_IGNORES).then(|| self.highest_within(bitrate))
    }

    /// Returns the highest quality within a bitrate, or the lowest of all.
    fn highest_within(&self, bps: f64) -> usize {
        self.ladder_bps.partition_point(|bitrate| *bitrate <= bps).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladders::ladder_measured;

    fn rules(rule: Rule) -> Rules {
        let (segment, media) = (Time::from_secs(4), Time::from_secs(100));
        let ladder_bps = ladder_measured();
        let buffer = Time::from_secs(18);
        Rules::new(&Dash { ladder_bps, segment, segments: None, media, buffer, rule })
    }

    /// A segment that arrived at 2 Mbit/s and left this much in the buffer.
    fn arrive(rules: &mut Rules, level_s: f64) {
        let now = rules.completed + Time::from_secs(1);
        let arrival = Arrival {
            quality: 2,
            bytes: 250_000,
            requested: rules.completed,
            first_byte: rules.completed,
            levels_s: [level_s - 4.0, level_s],
            stalled: false,
        };
        rules.on_segment(now, &arrival);
    }

    /// By hand, at 2 Mbit/s: the throughput rule takes what fits into 1.8 Mbit/s, the
    /// insufficient-buffer rule what fits into 1.4 Mbit/s per segment in the buffer: 1050 kbit/s
    /// for 3 s of 4 s segments, 350 for 1 s.
    #[test]
    fn a_buffer_that_runs_out_limits_the_quality() {
        let mut rules = rules(Rule::Throughput);
        let mut choice = |arrived: bool, level_s| {
            if arrived {
                arrive(&mut rules, level_s);
            }
            rules.choose(rules.completed, level_s, 1).0
        };
        assert_eq!(choice(false, 0.0), 1, "nothing is measured");
        assert_eq!(choice(true, 1.0), 2, "the first two segments are let pass");
        assert_eq!(choice(true, 4.0), 2);
        assert_eq!(choice(false, 3.0), 1);
        assert_eq!(choice(false, 1.0), 0);
        assert_eq!(choice(false, 0.0), 0);
        assert_eq!(choice(false, 40.0), 2);
    }

    /// On at 18 s, off below 9 s, unchanged in between.
    #[test]
    fn the_dynamic_rule_switches_with_hysteresis() {
        let mut rules = rules(Rule::Dynamic);
        let mut decides = |level_s| {
            arrive(&mut rules, level_s);
            rules.bola_decides
        };
        let levels_s = [4.0, 12.0, 17.9, 18.0, 12.0, 9.0, 8.9, 12.0, 17.9, 20.0];
        let expected = [false, false, false, true, true, true, false, false, false, true];
        assert_eq!(levels_s.map(&mut decides), expected);
    }
}
