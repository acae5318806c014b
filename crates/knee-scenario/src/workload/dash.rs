//! Segmented video.

use super::{Kind, Room};
use crate::check::{Inputs, RATE_MIN, in_range};
use crate::read::{At, Optional, Value, table, words};
use crate::source::Reading;
use crate::tree::{Kind as NodeKind, Node};
use knee_foreign::{Manifest, Quality};
use knee_units::{Rate, Time};
use knee_workload::{Dash, Rule, Segments, Workload};
use schemars::JsonSchema;
use std::sync::Arc;

const QUALITIES_MAX: usize = 100;
const QUALITY_RATE_MAX: Rate = Rate::from_bits_per_second(1_000_000_000_000);
const MEDIA_MAX: Time = Time::from_secs(24 * 3600);

table! {
    /// Segmented video with an adaptive player.
    "a video" DashFile {
        /// Name of a file, relative to the scenario's folder: the manifest of
        /// a video (MPD) or a playlist of HLS, which has the ladder, the
        /// segments, the media and, as far as it has them, sizes. A list of
        /// HLS's multivariant playlist and its media playlists has all of them.
        manifest: Optional<ManifestFile>,
        /// Bitrates of the qualities, ascending, or a known ladder.
        /// Default: that of the manifest, otherwise "measured".
        ladder: Optional<LadderFile>,
        /// Media time of a segment. Default: that of the manifest, otherwise
        /// 4 s.
        segment: Optional<Time>,
        /// Media time of the whole video. Default: that of the manifest,
        /// otherwise 120 s.
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

/// Files that describe a video.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ManifestFile {
    /// A whole description.
    One(String),
    /// HLS's multivariant playlist and its media playlists.
    Several(Vec<At<String>>),
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
        inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload> {
        let manifest = match self.manifest.at().cloned() {
            Some(files) => Some(manifest(&files, self, inputs, reading)?),
            None => None,
        };
        let (short, minute) = (Time::from_millis(100), Time::from_secs(60));
        in_range(&self.segment, "a segment", short, minute, reading);
        let known = manifest.as_ref().map(|manifest| {
            // What is written here goes before what the manifest says, with what follows from it.
            let own_segments = self.segment.is_given();
            let keeps_sizes = !own_segments && !self.ladder.is_given() && manifest.has_sizes();
            let lengths = if own_segments { Vec::new() } else { manifest.lengths.clone() };
            let bytes = manifest.ladder.iter().map(|quality| quality.bytes.clone());
            let bytes = if keeps_sizes { bytes.collect() } else { Vec::new() };
            Segments { lengths, bytes }
        });
        let segments = known.filter(|known| !known.lengths.is_empty()).map(Arc::new);
        let segment = match manifest.as_ref().and_then(Manifest::segment) {
            Some(usual) if !self.segment.is_given() => usual,
            _ => self.segment.fill(Time::from_secs(4)),
        };
        let whole = segments.as_ref().map(|segments| {
            segments.lengths.iter().fold(Time::ZERO, |sum, length| sum.saturating_add(*length))
        });
        let most = whole.map_or(MEDIA_MAX, |whole| whole.min(MEDIA_MAX));
        in_range(&self.media, "the media", segment.min(most), most, reading);
        in_range(&self.buffer, "the buffer", segment, MEDIA_MAX, reading);
        let ladder_bps = match &manifest {
            Some(manifest) if matches!(self.ladder, Optional::Absent) => {
                Some(manifest.ladder.iter().map(|quality| quality.bitrate_bps).collect())
            }
            _ => ladder(&mut self.ladder, reading),
        };
        let rule = match self.rule.fill(RuleWord::Dynamic) {
            RuleWord::Throughput => Rule::Throughput,
            RuleWord::Bola => Rule::Bola,
            RuleWord::Dynamic => Rule::Dynamic,
        };
        let media = match manifest.and_then(|manifest| manifest.media) {
            Some(media) if !self.media.is_given() => media,
            _ => self.media.fill(Time::from_secs(120).max(segment)),
        };
        let buffer = self.buffer.fill(Time::from_secs(18).max(segment));
        let ladder_bps = ladder_bps?;
        Some(Workload::Dash(Dash { ladder_bps, segment, segments, media, buffer, rule }))
    }
}

/// Reads the manifest, and reports what a video here cannot have.
fn manifest(
    files: &At<ManifestFile>,
    dash: &mut DashFile,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Manifest> {
    let named: Vec<At<String>> = match &files.value {
        ManifestFile::One(name) => vec![At { value: name.clone(), span: files.span }],
        ManifestFile::Several(names) => names.clone(),
    };
    if named.is_empty() || named.len() > QUALITIES_MAX + 1 {
        let message = format!("a manifest is 1 to {} files", QUALITIES_MAX + 1);
        reading.problem(files.span, message, "write manifest = \"movie.mpd\"");
        return None;
    }
    let manifest = inputs.manifest(&named.iter().collect::<Vec<_>>(), reading)?;
    let resolved = named.iter().map(|name| inputs.resolved(&name.value));
    dash.manifest = Optional::new(match &files.value {
        ManifestFile::One(_) => ManifestFile::One(resolved.collect()),
        ManifestFile::Several(_) => {
            let at = |value| At { value, span: files.span };
            ManifestFile::Several(resolved.map(at).collect())
        }
    });
    let rate = |quality: &Quality| Rate::from_bits_per_second(quality.bitrate_bps);
    let qualities = &manifest.ladder;
    let odd = qualities.iter().map(rate).find(|rate| *rate < RATE_MIN || *rate > QUALITY_RATE_MAX);
    let (short, minute) = (Time::from_millis(100), Time::from_secs(60));
    let usual = manifest.segment().filter(|length| *length < short || *length > minute);
    let long = manifest.media.filter(|media| *media > MEDIA_MAX);
    let (problem, key) = match (odd, usual, long) {
        _ if qualities.len() > QUALITIES_MAX => {
            (format!("it has {} bitrates, more than {QUALITIES_MAX}", qualities.len()), "ladder")
        }
        (Some(rate), ..) if !dash.ladder.is_given() => {
            (format!("a bitrate of {rate} is out of the range here"), "ladder")
        }
        (_, Some(length), _) if !dash.segment.is_given() => {
            (format!("segments of {length}: they must be {short} to {minute} long"), "segment")
        }
        (.., Some(media)) if !dash.media.is_given() => {
            (format!("it is {media} long, more than {MEDIA_MAX}"), "media")
        }
        _ => return Some(manifest),
    };
    let message = format!("manifest \"{}\": {problem}", named[0].value);
    reading.problem(files.span, message, format!("write {key} = … as well, which goes before it"));
    None
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

impl Value for ManifestFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<ManifestFile> {
        match node.kind {
            NodeKind::Array(_) => Value::read(node, reading).map(ManifestFile::Several),
            _ => Value::read(node, reading).map(ManifestFile::One),
        }
    }
    fn write(&self) -> Node {
        match self {
            ManifestFile::One(name) => name.write(),
            ManifestFile::Several(names) => names.write(),
        }
    }
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
