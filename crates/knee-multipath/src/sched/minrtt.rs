//! Lowest RTT first: the scheduler of the Linux MPTCP fork, and the baseline
//! for all others.
//!
//! Two switches handle a full send window whose oldest packet is held by a slow
//! path (Raiciu et al., NSDI 2012, section 4.2): *opportunistic retransmission*
//! repeats that packet on the chosen path, *penalisation* halves the holder's
//! window.
//!
//! Left out: the fork also does both when the socket's send buffer is full, and
//! it spares a holder that is in loss recovery; a view shows neither.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, PATHS_MAX, Place, Scheduler, View};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Preset, SelectionError, Settings};

const RETRANSMISSION: &str = "opportunistic_retransmission";
const PENALISATION: &str = "penalisation";

pub(crate) const ENTRY: Entry = Entry {
    name: "minrtt",
    summary: "the path with room that has the lowest smoothed RTT",
    source: "Linux MPTCP fork, net/mptcp/mptcp_sched.c; Raiciu et al., NSDI 2012, section 4.2",
    parameters: &[
        Parameter {
            name: RETRANSMISSION,
            kind: Kind::Switch,
            default: "false",
            summary: "when the send window is full, a fast path repeats its oldest packet",
        },
        Parameter {
            name: PENALISATION,
            kind: Kind::Switch,
            default: "false",
            summary: "the path whose packet was repeated halves its window",
        },
    ],
    presets: &[Preset {
        name: "minrtt-penalising",
        summary: "opportunistic retransmission and penalisation, the fork's default",
        parameters: &[(RETRANSMISSION, "true"), (PENALISATION, "true")],
    }],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    let retransmission = settings.switch(RETRANSMISSION);
    let penalisation = settings.switch(PENALISATION);
    if penalisation && !retransmission {
        return Err(SelectionError {
            parameter: Some(PENALISATION.to_owned()),
            problem: format!("{PENALISATION} of minrtt needs {RETRANSMISSION}"),
            advice: format!("write {RETRANSMISSION} = true as well"),
        });
    }
    Ok(Box::new(MinRtt { retransmission, penalisation, penalised_at: [None; PATHS_MAX] }))
}

#[derive(Debug)]
struct MinRtt {
    retransmission: bool,
    penalisation: bool,
    /// When each path last penalised another.
    penalised_at: [Option<Time>; PATHS_MAX],
}

impl Scheduler for MinRtt {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let Some(path) = choose(view) else { return Decision::Wait };
        if view.has_new() {
            return Decision::Send(path, Place::Head);
        }
        if !self.retransmission {
            return Decision::Wait;
        }
        match rescue(view, path) {
            Some(holder) if self.penalises(view, path, holder) => {
                self.penalised_at[path] = Some(view.now);
                Decision::RepeatAndPenalise { path, holder }
            }
            Some(_) => Decision::Repeat(path),
            None => Decision::Wait,
        }
    }

    /// Sending does not change RTTs.
    fn keeps_choice(&self) -> bool {
        true
    }

    fn takes_only_choice(&self) -> bool {
        true
    }
}

impl MinRtt {
    /// Whether to penalise: only a slower path, and at most once per RTT of the fast one.
    fn penalises(&self, view: &View<'_>, path: usize, holder: usize) -> bool {
        let fast = view.paths[path].srtt;
        let rested = self.penalised_at[path].is_none_or(|at| view.now >= at.saturating_add(fast));
        self.penalisation && rested && fast < view.paths[holder].srtt
    }
}

/// Returns the path that minrtt would take.
#[inline]
pub(crate) fn choose(view: &View<'_>) -> Option<usize> {
    view.fastest_ready()
}

/// Windows up to this many packets are too small for fast recovery, so a loss
/// would wait for a timeout: any path may rescue their packets.
const TINY_WINDOW: u64 = 4;
/// Ratio of RTTs from which the copy is likely to overtake the original.
const OVERTAKES: u64 = 4;

/// Opportunistic retransmission: returns the holder of the oldest packet, if `path`
/// should repeat it. A rescue must be worthwhile for every path that was given it.
pub(crate) fn rescue(view: &View<'_>, path: usize) -> Option<usize> {
    let oldest = view.oldest.filter(|_| view.is_blocked())?;
    if oldest.sent_on.contains(path) || !view.can_repeat.contains(path) {
        return None;
    }
    let fast = view.paths[path].srtt.as_nanos();
    let worth = |holder: usize| {
        let held_by = &view.paths[holder];
        let tiny = held_by.window <= TINY_WINDOW * view.mss;
        tiny || fast.saturating_mul(OVERTAKES) < held_by.srtt.as_nanos()
    };
    oldest.sent_on.iter().all(worth).then_some(oldest.holder)
}
