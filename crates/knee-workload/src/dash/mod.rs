//! Segmented video with an adaptive player, as dash.js 5 plays it on demand.
//!
//! ```text
//!   throughput of segments ─▶ throughput rule ─┐
//!                                              ├─▶ lower of both ─▶ next segment
//!   media in the buffer ────▶ BOLA ────────────┤        ▲
//!                        └──▶ insufficient-buffer rule ─┘
//! ```
//!
//! Constants are the defaults of dash.js 5.1 (`Settings.js`); the rules follow its documentation of
//! ABR and the papers cited at each. Unless a manifest says otherwise, segments have a constant
//! bitrate: exactly bitrate times duration.
//!
//! Left out: audio, the manifest and initialisation segments, replacing buffered segments by better
//! ones (fast switching), abandoning a segment in progress, the rules about switch history and
//! dropped frames, and the half-second interval at which dash.js checks its buffer (here it asks as
//! soon as there is room).

mod bola;
mod buffer;
mod player;
mod rules;
mod throughput;

pub(crate) use player::Player;

use crate::Properties;
use knee_units::Time;
use std::sync::Arc;

pub(crate) const PROPERTIES: Properties =
    Properties { pushes: false, single: false, transient: false, ends: true, bytes: None };

/// Segmented video.
#[derive(Clone, Debug, PartialEq)]
pub struct Dash {
    /// Bitrates of the qualities, bit/s, ascending.
    pub ladder_bps: Vec<u64>,
    /// Media time of a segment.
    pub segment: Time,
    /// The segments one by one, if they are known: their lengths, and sizes.
    pub segments: Option<Arc<Segments>>,
    /// Total media time.
    pub media: Time,
    /// Media that the player keeps in its buffer below the top quality before it pauses (dash.js:
    /// 12 s in version 4, 18 s in version 5). At the top quality it keeps 30 s, or 60 s if the
    /// media is ten minutes or longer, if that is more, as dash.js does.
    pub buffer: Time,
    /// Rule by which it chooses.
    pub rule: Rule,
}

/// The segments of a video one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Media time of each.
    pub lengths: Vec<Time>,
    /// Size of each, bytes, by quality; empty: bitrate times length.
    pub bytes: Vec<Vec<u64>>,
}

impl Segments {
    /// Returns when each begins, and when the last one ends, in the media.
    fn begins(&self) -> Vec<Time> {
        let mut at = Time::ZERO;
        let mut begins = vec![at];
        begins.extend(self.lengths.iter().map(|length| {
            at = at.saturating_add(*length);
            at
        }));
        begins
    }
}

/// How a player chooses the quality of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The highest bitrate below the measured throughput, with a margin.
    Throughput,
    /// BOLA (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016).
    Bola,
    /// Throughput at start-up and at a low buffer, BOLA otherwise, the default of dash.js.
    Dynamic,
}
