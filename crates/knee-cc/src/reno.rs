//! Reno: the window grows by one segment per round trip and halves on loss (RFC
//! 5681; the transport does recovery according to RFC 6582 or better). Slow
//! start may end by HyStart++ (RFC 9406).

use crate::hystart_plus_plus::{self, HyStartPlusPlus};
use crate::loss_based::{Growth, LossBased, reno_growth};
use crate::registry::{Build, Entry};
use crate::window::Window;
use crate::{Connection, Controller, Init, Sample};
use knee_registry::Settings;

pub(crate) const ENTRY: Entry = Entry {
    name: "reno",
    summary: "one segment more per round trip, half the window on loss",
    source: "RFC 5681, RFC 6582",
    parameters: &[hystart_plus_plus::PARAMETER],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let hystart = settings.switch(hystart_plus_plus::PARAMETER.name);
    let hystart = hystart.then(HyStartPlusPlus::new);
    Box::new(LossBased::new(Reno { hystart }, &init))
}

#[derive(Clone, Debug)]
struct Reno {
    hystart: Option<HyStartPlusPlus>,
}

impl Growth for Reno {
    fn observe(&mut self, window: &mut Window, sample: &Sample, connection: &Connection) {
        if let Some(hystart) = &mut self.hystart {
            hystart.observe(window, sample, connection);
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) {
        match &mut self.hystart {
            Some(hystart) if window.in_slow_start() => {
                let rest = hystart.slow_start(window, acked, connection);
                reno_growth(window, rest);
            }
            _ => reno_growth(window, acked),
        }
    }

    /// RFC 5681, equation 4, with the window instead of the flight size as in Linux.
    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(2)
    }
}
