//! BLEST: avoids a slower path if its packets would prevent the fast one from
//! using the send window.
//!
//! Ferlin, Alay, Mehani, Boreli: "BLEST: Blocking estimation-based MPTCP
//! scheduler for heterogeneous networks", IFIP Networking 2016, section III.
//! While a packet is in transit on the slow path s, the fast path f completes
//! `r = srtt_s / srtt_f` rounds, and its window grows by one packet in each:
//!
//! ```text
//! X = mss (cwnd_f + (r - 1) / 2) r          what f could send meanwhile
//! wait if lambda X > send window - mss (packets in flight on s + 1)
//! ```
//!
//! lambda corrects the estimate: it rises if the window filled anyway and an
//! opportunistic retransmission was needed, and falls otherwise. That
//! retransmission is minrtt's; there is no penalisation (the authors' `optim = 1`).
//!
//! Left out: the later kernel version's estimates for slow start and for the
//! time that a packet spends in a filling queue.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, Path, Place, Scheduler, View, minrtt};
use knee_units::Time;
use knee_units::registry::{SelectionError, Settings};

/// lambda in thousandths, as in its source: initial value and bounds, step up
/// after a slow round with a retransmission, step down after one without.
const LAMBDA_START: u64 = 1200;
const LAMBDA_MIN: u64 = 1000;
const LAMBDA_MAX: u64 = 1300;
const LAMBDA_UP: u64 = 40;
const LAMBDA_DOWN: u64 = 10;

pub(crate) const ENTRY: Entry = Entry {
    name: "blest",
    summary: "waits where a slower path's packets would block the send window",
    source: "Ferlin et al., IFIP Networking 2016; Linux MPTCP fork, net/mptcp/mptcp_blest.c",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Blest { lambda: LAMBDA_START, updated_at: None, retransmitted: false }))
}

#[derive(Debug)]
struct Blest {
    /// In thousandths.
    lambda: u64,
    updated_at: Option<Time>,
    /// Whether an opportunistic retransmission was needed since the last update.
    retransmitted: bool,
}

impl Scheduler for Blest {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let Some(chosen) = minrtt::choose(view) else { return Decision::Wait };
        let fastest = view.fastest(view.eligible()).unwrap_or(chosen);
        if chosen != fastest {
            self.update_lambda(view.now, view.paths[chosen].srtt);
        }
        let blocks =
            chosen != fastest && self.blocks(view, &view.paths[fastest], &view.paths[chosen]);
        match (view.has_new(), blocks) {
            (true, false) => Decision::Send(chosen, Place::Head),
            (true, true) => view.wait_rather_than(chosen),
            (false, false) if minrtt::rescue(view, chosen).is_some() => {
                self.retransmitted = true;
                Decision::Repeat(chosen)
            }
            (false, _) => Decision::Wait,
        }
    }
}

impl Blest {
    /// Updates lambda once per round of the slow path.
    fn update_lambda(&mut self, now: Time, slow_round: Time) {
        let updated_at = *self.updated_at.get_or_insert(now);
        if now < updated_at.saturating_add(slow_round) || now == updated_at {
            return;
        }
        let stepped =
            if self.retransmitted { self.lambda + LAMBDA_UP } else { self.lambda - LAMBDA_DOWN };
        self.lambda = stepped.clamp(LAMBDA_MIN, LAMBDA_MAX);
        self.retransmitted = false;
        self.updated_at = Some(now);
    }

    fn blocks(&self, view: &View<'_>, fast: &Path, slow: &Path) -> bool {
        let mss = view.mss as f64;
        // The slower path has the longer RTT, or no measured one yet.
        let rounds = (slow.srtt.as_secs_f64() / fast.srtt.as_secs_f64().max(1e-9)).max(1.0);
        let window = fast.window as f64 / mss;
        let meanwhile = mss * (window + (rounds - 1.0) / 2.0) * rounds;
        let held = slow.in_flight.saturating_add(view.mss);
        let room = view.outstanding.saturating_add(view.window_left).saturating_sub(held);
        self.lambda as f64 / 1000.0 * meanwhile > room as f64
    }
}
