//! Segmented video.

use super::{Kind, Room};
use crate::check::{Inputs, RATE_MIN, in_range};
use crate::read::{At, Optional, Value, table, words};
use crate::source::Reading;
use crate::tree::{Kind as NodeKind, Node};
use knee_units::{Rate, Time};
use knee_workload::{Dash, Rule, Workload};
use schemars::JsonSchema;

const QUALITIES_MAX: usize = 100;
const QUALITY_RATE_MAX: Rate = Rate::from_bits_per_second(1_000_000_000_000);
const MEDIA_MAX: Time = Time::from_secs(24 * 3600);

table! {
    /// Segmented video with an adaptive player.
    "a video" DashFile {
        /// Bitrates of the qualities, ascending, or a known ladder.
        /// Default: "measured".
        ladder: Optional<LadderFile>,
        /// Media time of a segment. Default: 4 s.
        segment: Optional<Time>,
        /// Media time of the whole video. Default: 120 s.
        media: Optional<Time>,
        /// Media that the player keeps below the top quality. Default:
        /// 18 s, as dash.js 5 does.
        buffer: Optional<Time>,
        /// How the player chooses a quality. Default: "dynamic".
        rule: Optional<RuleWord>,
    }
}

words! {
    /// Bitrates of a video's qualities by name.
    "ladder" LadderWord {
        /// 360p to 1080p60 around the 1310 kbit/s at 720p reported in the study
        /// of SCTC.
        Study = "study",
        /// 400 to 4500 kbit/s, with which dash.js was measured.
        Measured = "measured",
        /// Up to 14 Mbit/s: more than one link of 10 Mbit/s can carry.
        BeyondOneLink = "beyond-one-link",
    }
}

/// Bitrates of a video's qualities.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum LadderFile {
    /// A known ladder.
    Word(LadderWord),
    /// The given bitrates.
    Rates(Vec<At<Rate>>),
}

words! {
    /// How a player chooses the quality of the next segment.
    "rule" RuleWord {
        /// The highest bitrate below the throughput measured.
        Throughput = "throughput",
        /// BOLA: by the level of the buffer.
        Bola = "bola",
        /// Throughput at a low buffer, BOLA at a high one, as dash.js does.
        Dynamic = "dynamic",
    }
}

impl Kind for DashFile {
    fn alone() -> Option<DashFile> {
        Some(DashFile::default())
    }

    fn check(
        &mut self,
        _room: &Room,
        _inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload> {
        let (short, minute) = (Time::from_millis(100), Time::from_secs(60));
        in_range(&self.segment, "a segment", short, minute, reading);
        let segment = self.segment.fill(Time::from_secs(4));
        in_range(&self.media, "the media", segment, MEDIA_MAX, reading);
        in_range(&self.buffer, "the buffer", segment, MEDIA_MAX, reading);
        let ladder_bps = ladder(&mut self.ladder, reading);
        let rule = match self.rule.fill(RuleWord::Dynamic) {
            RuleWord::Throughput => Rule::Throughput,
            RuleWord::Bola => Rule::Bola,
            RuleWord::Dynamic => Rule::Dynamic,
        };
        let media = self.media.fill(Time::from_secs(120).max(segment));
        let buffer = self.buffer.fill(Time::from_secs(18).max(segment));
        Some(Workload::Dash(Dash { ladder_bps: ladder_bps?, segment, media, buffer, rule }))
    }
}

/// Returns the bitrates, and writes them to the file's tree.
fn ladder(entry: &mut Optional<LadderFile>, reading: &mut Reading<'_>) -> Option<Vec<u64>> {
    let span = entry.span().unwrap_or_default();
    let rates = match entry.fill(LadderFile::Word(LadderWord::Measured)) {
        LadderFile::Rates(rates) => rates,
        LadderFile::Word(word) => {
            let known = match word {
                LadderWord::Study => knee_workload::ladder_of_study(),
                LadderWord::Measured => knee_workload::ladder_measured(),
                LadderWord::BeyondOneLink => knee_workload::ladder_beyond_one_link(),
            };
            let rates = known.into_iter().map(Rate::from_bits_per_second);
            rates.map(|value| At { value, span }).collect()
        }
    };
    if entry.is_broken() {
        return None;
    }
    if rates.is_empty() || rates.len() > QUALITIES_MAX {
        let message =
            format!("a ladder needs 1 to {QUALITIES_MAX} bitrates, found {}", rates.len());
        reading.problem(span, message, "write ladder = [\"400 kbit/s\", \"1300 kbit/s\"]");
        return None;
    }
    for rate in &rates {
        let rate = Optional::Given(rate.clone());
        in_range(&rate, "a bitrate", RATE_MIN, QUALITY_RATE_MAX, reading);
    }
    for pair in rates.windows(2) {
        if pair[1].value <= pair[0].value {
            let message =
                format!("bitrates must ascend, {} follows {}", pair[1].value, pair[0].value);
            reading.problem(pair[1].span, message, "write the lowest bitrate first");
        }
    }
    let ladder = rates.iter().map(|rate| rate.value.as_bits_per_second()).collect();
    *entry = Optional::new(LadderFile::Rates(rates));
    Some(ladder)
}

impl Value for LadderFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<LadderFile> {
        match node.kind {
            NodeKind::Array(_) => Value::read(node, reading).map(LadderFile::Rates),
            _ => LadderWord::read(node, reading).map(LadderFile::Word),
        }
    }
    fn write(&self) -> Node {
        match self {
            LadderFile::Word(word) => word.write(),
            LadderFile::Rates(rates) => rates.write(),
        }
    }
}
