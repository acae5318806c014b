//! OLIA, the opportunistic linked increases algorithm (Khalili et al.,
//! CoNEXT 2012; draft-khalili-mptcp-congestion-control).
//!
//! ```text
//!                                         w_r / rtt_r^2          alpha_r
//!   growth per segment acknowledged = ----------------------- + ---------
//!                                      (sum (w_p / rtt_p))^2       w_r
//! ```
//!
//! The first term alone would be Pareto-optimal but slow to notice that a path
//! has become free. `alpha_r` moves window from the paths where it is largest
//! to the best paths whose window is small; it sums to zero over all paths. The
//! best path is the one where a TCP flow would be fastest: with `l_r` bytes
//! between losses, its rate is proportional to `sqrt(l_r) / rtt_r`.
//!
//! RFC 6356's second goal, that no path takes more than a TCP flow on it would,
//! holds for the first term. On a path that gains window `alpha_r` may exceed
//! it, by at most half of TCP's increase; neither source caps it.

use crate::coupling::{Coupled, Coupling, Path, Paths};
use crate::loss_based::LossBased;
use crate::registry::{Build, Entry};
use crate::{Controller, Init};
use knee_units::registry::Settings;

pub(crate) const ENTRY: Entry = Entry {
    name: "olia",
    summary: "coupled: like lia, and moves window to the paths that lose least",
    source: "Khalili et al. 2012, draft-khalili-mptcp-congestion-control",
    parameters: &[],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(_settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(LossBased::new(Coupled::new(Olia), &init))
}

#[derive(Clone, Debug)]
struct Olia;

impl Coupling for Olia {
    fn increase(&self, paths: &Paths) -> f64 {
        let own = paths.own();
        let linked = own.rate() / own.rtt / (paths.total_rate() * paths.total_rate());
        linked + alpha(paths) / own.window
    }

    /// Draft, section 2: a congested path carries less than two segments per
    /// round trip while another path is available.
    fn smallest_threshold(&self) -> u32 {
        1
    }
}

/// Returns this path's share of the window moved between paths.
fn alpha(paths: &Paths) -> f64 {
    let largest = paths.largest(|path| path.window);
    let best = paths.largest(quality);
    let has_largest = |path: &Path| path.window >= largest;
    // The draft's "collected paths": best, but not with the largest window yet.
    let is_collected = |path: &Path| quality(path) >= best && !has_largest(path);
    let collected = paths.all().filter(|path| is_collected(path)).count();
    if collected == 0 {
        return 0.0;
    }
    if is_collected(paths.own()) {
        return 1.0 / paths.count() / collected as f64;
    }
    if has_largest(paths.own()) {
        let givers = paths.all().filter(|path| has_largest(path)).count();
        return -1.0 / paths.count() / givers as f64;
    }
    0.0
}

/// Returns the square of the rate that TCP would have on the path, up to a constant.
fn quality(path: &Path) -> f64 {
    path.loss_interval / (path.rtt * path.rtt)
}
