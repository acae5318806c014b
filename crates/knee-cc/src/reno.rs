//! Reno: the window grows by one segment per round trip and halves on loss (RFC
//! 5681; the transport does recovery according to RFC 6582 or better).

use crate::loss_based::{Growth, LossBased, reno_growth};
use crate::registry::{Build, Entry};
use crate::slow_start::{self, SlowStart};
use crate::window::Window;
use crate::{Connection, Controller, Init, Sample};
use knee_units::registry::{Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "reno",
    summary: "one segment more per round trip, half the window on loss",
    source: "RFC 5681, RFC 6582",
    parameters: &START,
    presets: &[],
    build: Build::Checked(slow_start::check, build),
};

const START: [Parameter; 4] = slow_start::parameters("standard");

/// Part of the window kept on loss (RFC 5681, equation 4).
const BETA: f64 = 0.5;

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let start = SlowStart::new(settings, BETA, &init);
    Box::new(LossBased::new(Reno { start }, &init))
}

#[derive(Clone, Debug)]
struct Reno {
    start: SlowStart,
}

impl Growth for Reno {
    fn slow_start(&self) -> Option<&SlowStart> {
        Some(&self.start)
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStart> {
        Some(&mut self.start)
    }

    fn observe(&mut self, window: &mut Window, sample: &Sample, connection: &Connection) {
        self.start.observe(window, sample, connection, true);
    }

    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) {
        let mut rest = acked;
        if window.in_slow_start() {
            rest = self.start.grow(window, acked, connection);
        }
        reno_growth(window, rest);
    }

    /// RFC 5681, equation 4, with the window instead of the flight size as in Linux.
    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(2)
    }
}
