//! Step marking, as in DCTCP and L4S: packets that would wait longer than a
//! delay are marked.

use super::registry::{AQM_TIME_MAX, AqmEntry, Build, Marks};
use super::{Aqm, Found, OnEntry, Settings, Verdict};
use crate::config::RateModel;
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, SelectionError};
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "threshold",
    summary: "Mark everything above a sojourn time (a DCTCP or L4S step).",
    source: "RFC 8257, section 3.1; RFC 9332, section 2.4",
    parameters: &[Parameter {
        name: "delay",
        kind: Kind::Time { min: Time::ZERO, max: AQM_TIME_MAX },
        default: "",
        summary: "sojourn time from which a packet is marked",
    }],
    presets: &[],
    build: Build {
        marks: Marks::Always,
        make: |settings, _| match settings.duration("delay") {
            Some(delay) => Ok(Aqm::Threshold(Threshold { delay })),
            None => Err(SelectionError {
                parameter: None,
                problem: "threshold needs a marking delay".to_owned(),
                advice: "write { name = \"threshold\", delay = \"1 ms\" }".to_owned(),
            }),
        },
    },
};

/// Step marking: ECN-capable packets whose sojourn time exceeds `delay` are
/// marked; others are unaffected until the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Sojourn time above which a packet is marked.
    pub delay: Time,
}

impl Settings for Threshold {
    fn log(&self) -> String {
        format!(",aqm=threshold,target_ns={}", self.delay.as_nanos())
    }
}

pub(crate) struct ThresholdState(Time);

impl OnEntry for ThresholdState {
    type Settings = Threshold;

    fn new(settings: &Threshold, _: &RateModel, _: impl FnOnce() -> ChaCha8Rng) -> ThresholdState {
        ThresholdState(settings.delay)
    }

    fn judge(
        &mut self,
        found: &Found,
        start: impl Fn(Time) -> Time,
        _: &mut ChaCha8Rng,
    ) -> Verdict {
        let sojourn = start(found.now).saturating_sub(found.now);
        let marks = found.ecn.is_capable() && sojourn > self.0;
        if marks { Verdict::Mark } else { Verdict::Pass }
    }
}
