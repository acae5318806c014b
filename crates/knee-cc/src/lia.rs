//! LIA, the linked increases algorithm (RFC 6356): all paths together are as
//! aggressive as one TCP flow on the best path.
//!
//! ```text
//!                           max (w_i / rtt_i^2)
//!   alpha = w_total --------------------------------        (section 3)
//!                       (sum (w_i / rtt_i))^2
//!
//!   growth per segment acknowledged = min (alpha / w_total, 1 / w_i)
//! ```
//!
//! The minimum keeps each path from taking more than a TCP flow on it would.

use crate::coupling::{Coupled, Coupling, Paths};
use crate::loss_based::LossBased;
use crate::registry::{Build, Entry};
use crate::{Controller, Init};
use knee_units::registry::Settings;

pub(crate) const ENTRY: Entry = Entry {
    name: "lia",
    summary: "coupled: all paths together as aggressive as one flow on the best",
    source: "RFC 6356",
    parameters: &[],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(_settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(LossBased::new(Coupled::new(Lia), &init))
}

#[derive(Clone, Debug)]
struct Lia;

impl Coupling for Lia {
    fn increase(&self, paths: &Paths) -> f64 {
        let total: f64 = paths.all().map(|path| path.window).sum();
        let best = paths.largest(|path| path.rate() / path.rtt);
        let alpha = total * best / (paths.total_rate() * paths.total_rate());
        (alpha / total).min(1.0 / paths.own().window)
    }
}
