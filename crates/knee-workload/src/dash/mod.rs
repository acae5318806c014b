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
