//! Segmented video with an adaptive player, as dash.js 5 plays it on demand.
//!
//! ```text
//!   throughput of segments ─▶ throughput rule ─┐
//!                                              ├─▶ lower of both ─▶ next segment
//!   media in the buffer ────▶ BOLA ────────────┤        ▲
//!                        └──▶ insufficient-buffer rule ─┘
//! ```
//!
//! Figures are the defaults of dash.js 5.1 (`Settings.js`); the rules follow
//! its documentation of ABR and the papers named at each. Segments have a
//! constant bitrate: exactly bitrate times duration.
//!
//! Left out: audio, the manifest and initialisation segments, replacing
//! buffered segments by better ones (fast switching), giving up a segment
//! under way, the rules about switch history and dropped frames, and the
//! half-second beat in which dash.js looks at its buffer (here it asks the
//! moment there is room).

mod bola;
mod buffer;
mod player;
mod rules;
mod throughput;

pub(crate) use player::Player;

use crate::Properties;
use knee_units::Time;

pub(crate) const PROPERTIES: Properties =
    Properties { pushes: false, single: false, transient: false, ends: true, bytes: None };

/// Segmented video.
#[derive(Clone, Debug, PartialEq)]
pub struct Dash {
    /// Bitrates of the qualities, bit/s, ascending.
    pub ladder_bps: Vec<u64>,
    /// Media time of a segment.
    pub segment: Time,
    /// Media time of the whole.
    pub media: Time,
    /// Media that the player keeps in its buffer below the top quality, where
    /// it does not ask for more beyond (dash.js: 12 s in version 4, 18 s in
    /// version 5). At the top quality it keeps 30 s, or 60 s of media of ten
    /// minutes and more, if that is longer, as dash.js does.
    pub buffer: Time,
    /// How it chooses.
    pub rule: Rule,
}

/// How a player chooses the quality of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The highest bitrate below the throughput measured, with a margin.
    Throughput,
    /// BOLA (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016).
    Bola,
    /// Throughput at start-up and at low buffer, BOLA above, as dash.js
    /// does by default.
    Dynamic,
}
