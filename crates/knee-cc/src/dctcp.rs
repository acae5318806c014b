//! DCTCP (RFC 8257): reduces the window in proportion to the marks.
//!
//! ```text
//!   alpha += g (F - alpha)       once per window, F the marked share of its bytes
//!   W     *= 1 - alpha / 2       on a mark, once per window
//!   W     += 1                   per round trip otherwise, as Reno
//! ```
//! With a queue that marks everything beyond a short threshold, the window
//! stays around that queue instead of being halved. Loss is handled as in Reno
//! (section 3.5). Rounding follows Linux (`tcp_dctcp.c`): a cut is rounded
//! down, so that small windows are preserved.
//!
//! Left out: `dctcp_alpha_on_init` (alpha is initially 1, section 3.3), and the
//! fallback to Reno if the peer cannot report marks byte by byte, which every
//! ground here can.

use crate::loss_based::{Growth, LossBased, reno_growth};
use crate::registry::{Build, Entry};
use crate::window::Window;
use crate::{Connection, Controller, Ecn, Init, Recovery, Sample};
use knee_units::registry::{Kind, Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "dctcp",
    summary: "Reno that shrinks by the share of marked bytes, for networks that mark early",
    source: "RFC 8257",
    parameters: &[Parameter {
        name: "g",
        kind: Kind::Number { min: 0.001, max: 1.0 },
        default: "0.0625",
        summary: "weight of the newest window in the estimate of the marked share",
    }],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(LossBased::new(Dctcp::new(settings.number("g")), &init))
}

/// Smallest window after a reduction, in segments (section 3.3 and Linux).
const SMALLEST: u32 = 2;

#[derive(Clone, Debug)]
struct Dctcp {
    gain: f64,
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked.
    acked: u64,
    marked: u64,
    /// DCTCP.WindowEnd.
    window_end: u64,
    /// Highest byte sent when the window was last reduced for marks.
    reduced_at: u64,
}

impl Dctcp {
    fn new(gain: f64) -> Dctcp {
        Dctcp { gain, alpha: 1.0, acked: 0, marked: 0, window_end: 0, reduced_at: 0 }
    }

    /// Section 3.3, steps 1 to 9.
    fn estimate(&mut self, sample: &Sample, connection: &Connection) {
        self.acked += sample.newly_acked;
        self.marked += sample.newly_marked.min(sample.newly_acked);
        if connection.acknowledged <= self.window_end || self.acked == 0 {
            return;
        }
        let share = self.marked as f64 / self.acked as f64;
        self.alpha += self.gain * (share.min(1.0) - self.alpha);
        (self.acked, self.marked) = (0, 0);
        self.window_end = connection.sent;
    }
}

impl Growth for Dctcp {
    const MARKS: Option<Ecn> = Some(Ecn::Ect0);

    fn observe(&mut self, window: &mut Window, sample: &Sample, connection: &Connection) {
        self.estimate(sample, connection);
        // One reduction per window, whether for marks or for loss.
        let reducing = self.holds(connection)
            || matches!(connection.recovery, Recovery::Recovery | Recovery::Loss);
        if sample.newly_marked == 0 || reducing {
            return;
        }
        let cut = f64::from(window.segments) * self.alpha / 2.0;
        let left = (window.segments - cut as u32).max(SMALLEST);
        window.threshold = left;
        window.set(left);
        self.reduced_at = connection.sent;
    }

    /// Whether the window is in CWR, section 3.3 with RFC 3168, section 6.1.2.
    fn holds(&self, connection: &Connection) -> bool {
        connection.acknowledged < self.reduced_at
    }

    fn grow(&mut self, window: &mut Window, acked: u32, _connection: &Connection) {
        reno_growth(window, acked);
    }

    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(SMALLEST)
    }

    fn marked_share(&self) -> Option<f64> {
        Some(self.alpha)
    }
}
