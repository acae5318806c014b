//! Reno: the window grows by one segment per round trip and halves on loss
//! (RFC 5681; recovery is that of RFC 6582 or better, in the transport).

use crate::loss_based::{Growth, LossBased};
use crate::registry::{Build, Entry};
use crate::window::Window;
use crate::{Connection, Controller, Init};
use knee_registry::Settings;

pub(crate) const ENTRY: Entry = Entry {
    name: "reno",
    summary: "one segment more per round trip, half the window on loss",
    source: "RFC 5681, RFC 6582",
    parameters: &[],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(_settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(LossBased::new(Reno, &init))
}

#[derive(Clone, Debug)]
struct Reno;

impl Growth for Reno {
    fn grow(&mut self, window: &mut Window, acked: u32, _connection: &Connection) {
        let mut rest = acked;
        if window.in_slow_start() {
            rest = window.slow_start(acked);
        }
        if rest > 0 {
            window.additive(window.segments, rest);
        }
    }

    /// RFC 5681, equation 4, with the window for the flight size as in Linux.
    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(2)
    }
}
