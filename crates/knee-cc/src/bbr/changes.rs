//! State of changes from other papers, which the study of the first five cites:
//! [`rtt_gains`], [`window_scale`] and [`delay_aware`]. It is allocated
//! separately, and only if one of them is on, because most of the memory of a
//! flow in a large simulation is its controller's state.
//!
//! [`rtt_gains`]: super::rtt_gains
//! [`window_scale`]: super::window_scale
//! [`delay_aware`]: super::delay_aware

use super::tobit::Tobit;
use super::window_scale::Scale;
use super::{Bbr, Gain, Mode};
use crate::Sample;
use knee_units::registry::Settings;

/// RTTs in microseconds that the changes use; zero before the first sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtts {
    /// The latest RTT.
    pub(super) last_us: u32,
    /// The smallest and the largest since the last upward probe began.
    pub(super) cycle_min_us: u32,
    pub(super) cycle_max_us: u32,
    /// The largest since the minimum was renewed.
    pub(super) max_us: u32,
    /// The minimum before its last renewal.
    pub(super) min_before_us: u32,
}

impl Rtts {
    fn take(&mut self, us: u32) {
        self.last_us = us;
        let smallest = if self.cycle_min_us == 0 { us } else { self.cycle_min_us.min(us) };
        self.cycle_min_us = smallest;
        self.cycle_max_us = self.cycle_max_us.max(us);
        self.max_us = self.max_us.max(us);
    }
}

/// Which changes are on, and their state.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) gamma_gains: bool,
    pub(super) inverse_gains: bool,
    pub(super) delay_aware_window: bool,
    pub(super) scale_window: bool,
    pub(super) tobit_filter: bool,
    pub(super) rtts: Rtts,
    pub(super) scale: Scale,
    pub(super) tobit: Tobit,
}

impl Changes {
    /// Returns the changes that are on, or `None` if all are off.
    pub(super) fn read(settings: &Settings) -> Option<Box<Changes>> {
        let changes = Changes {
            gamma_gains: settings.switch("gamma_gains"),
            inverse_gains: settings.switch("inverse_gains"),
            delay_aware_window: settings.switch("delay_aware_window"),
            scale_window: settings.switch("scale_window"),
            tobit_filter: settings.switch("tobit_filter"),
            ..Changes::default()
        };
        let any = changes.gamma_gains
            || changes.inverse_gains
            || changes.delay_aware_window
            || changes.scale_window
            || changes.tobit_filter;
        any.then(|| Box::new(changes))
    }
}

impl Bbr {
    /// Records from each acknowledgement what the changes need.
    #[inline]
    pub(super) fn observe(&mut self, sample: &Sample) {
        if self.changes.is_some() {
            self.observe_sample(sample);
        }
    }

    #[cold]
    fn observe_sample(&mut self, sample: &Sample) {
        let Some(changes) = self.changes.as_deref_mut() else { return };
        if let Some(rtt) = sample.rtt {
            changes.rtts.take(super::probe_rtt::micros(rtt).max(1));
        }
        if sample.newly_lost > 0 && self.mode == Mode::ProbeBw {
            changes.scale.lose(self.bandwidth.rounds);
        }
    }

    /// Starts a gain cycle, with its upward probe.
    pub(super) fn begin_cycle(&mut self) {
        let Some(changes) = self.changes.as_deref_mut() else { return };
        changes.scale.end_cycle(&changes.rtts, self.min_rtt.us);
        if let Some(gains) = super::rtt_gains::gains(changes, self.min_rtt.us) {
            self.cycle.set_gains(gains);
        }
        changes.rtts.cycle_min_us = 0;
        changes.rtts.cycle_max_us = 0;
    }

    /// Window in PROBE_BW, in BDP.
    #[inline]
    pub(super) fn probe_bw_window_gain(&self) -> Gain {
        match &self.changes {
            Some(changes) if changes.scale_window => changes.scale.value,
            _ => self.config.window_gain,
        }
    }

    pub(super) fn rescale_changes(&mut self, old_mss: u64, new_mss: u64) {
        if let Some(changes) = self.changes.as_deref_mut() {
            changes.tobit.rescale(old_mss, new_mss);
        }
    }

    /// Called when the minimum RTT is ten seconds old and about to be renewed.
    pub(super) fn min_rtt_expired(&mut self) {
        let Some(changes) = self.changes.as_deref_mut() else { return };
        if self.mode == Mode::ProbeBw {
            changes.rtts.min_before_us = self.min_rtt.us;
        }
        changes.rtts.max_us = 0;
        changes.scale.renew();
    }
}
