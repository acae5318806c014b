//! BALIA, the balanced linked adaptation algorithm (Peng, Walid, Hwang, Low,
//! IEEE/ACM Transactions on Networking 2016; draft-walid-mptcp-congestion-control):
//! a trade-off between LIA's friendliness to TCP and fast response to change.
//!
//! ```text
//!   x_r = w_r / rtt_r        alpha_r = max x_p / x_r
//!
//!                                        x_r / rtt_r    1 + alpha_r   4 + alpha_r
//!   growth per segment acknowledged = --------------- * ----------- * -----------
//!                                      (sum x_p)^2           2             5
//!
//!   loss takes  w_r / 2 * min (alpha_r, 3/2)
//! ```
//!
//! With `x_r <= max x_p <= sum x_p` the growth is never above TCP's `1 / w_r`.

use crate::coupling::{Coupled, Coupling, Path, Paths};
use crate::loss_based::LossBased;
use crate::registry::{Build, Entry};
use crate::{Controller, Init};
use knee_units::registry::Settings;

pub(crate) const ENTRY: Entry = Entry {
    name: "balia",
    summary: "coupled: balances friendliness to other flows and quick adaptation",
    source: "Peng et al. 2016, draft-walid-mptcp-congestion-control",
    parameters: &[],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(_settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(LossBased::new(Coupled::new(Balia), &init))
}

/// Largest decrease on loss, in multiples of half the window.
const LARGEST_DECREASE: f64 = 1.5;

#[derive(Clone, Debug)]
struct Balia;

impl Coupling for Balia {
    fn increase(&self, paths: &Paths) -> f64 {
        let own = paths.own();
        let total = paths.total_rate();
        let alpha = alpha(paths);
        own.rate() / own.rtt / (total * total) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
    }

    fn decrease(&self, paths: &Paths) -> f64 {
        0.5 * alpha(paths).min(LARGEST_DECREASE)
    }

    /// One segment, as in the authors' version for Linux.
    fn smallest_threshold(&self) -> u32 {
        1
    }
}

/// Returns the ratio of the fastest path's rate to this path's.
fn alpha(paths: &Paths) -> f64 {
    paths.largest(Path::rate) / paths.own().rate()
}
