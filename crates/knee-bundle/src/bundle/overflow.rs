//! When a dear path helps although a cheaper one works: once the cheaper ones have been full for a
//! while, it carries what they have no room for. Of several dear paths a dearer one helps once those
//! that help already are full as well.

use super::{PathState, PathUse};
use crate::PATHS_MAX;
use knee_multipath::sched::{Path, Status};
use knee_units::{Rate, Time};

/// How long the cheaper paths must have been full. A request of some hundred kilobytes fills a path
/// for less, and so does what waited while BBR probed for the RTT; what lasts longer wants more than
/// the path carries.
const FULL: Time = Time::from_secs(2);
/// Longest time with room within that. Each acknowledgement gives room for a moment.
const PAUSE: Time = Time::from_millis(100);

/// Whether some paths together are full, and since when.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    since: Option<Time>,
    /// When they were last seen full.
    last: Time,
}

/// Which dear paths help at present.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// First the cheapest paths; each further level adds the next that helps.
    full: [Full; PATHS_MAX],
    /// Cost up to which paths help.
    helps: Option<u8>,
    /// Capacity of each path when it began to help. Until it changes it is that of keep-alives,
    /// which says nothing.
    idle: [Option<Rate>; PATHS_MAX],
}

impl Full {
    /// Notes whether they are full now, and returns whether they have been for long enough.
    fn note(&mut self, now: Time, waits: bool, has_room: bool) -> bool {
        if waits && !has_room {
            self.since.get_or_insert(now);
            self.last = now;
        } else if !waits || self.last.saturating_add(PAUSE) < now {
            self.since = None;
        }
        self.since.is_some_and(|since| since.saturating_add(FULL) <= now)
    }
}

impl Overflow {
    /// Whether paths of this cost help at present.
    pub fn is_on(&self, cost: u8) -> bool {
        self.helps.is_some_and(|helps| cost <= helps)
    }

    /// Notes the state of the paths, and makes those active that help now. `waits`: whether there is
    /// data that no path was given.
    pub fn look(&mut self, now: Time, waits: bool, states: &[PathState], paths: &mut [Path]) {
        self.helps = None;
        self.help(now, waits, states, paths);
        for (path, state) in paths.iter().enumerate() {
            if !self.is_on(states[path].both().cost) {
                self.idle[path] = state.capacity;
            }
        }
    }

    fn help(&mut self, now: Time, waits: bool, states: &[PathState], paths: &mut [Path]) {
        for level in 0..self.full.len() {
            let has_room = paths.iter().any(|path| path.status == Status::Active && path.ready);
            let is_full = self.full[level].note(now, waits, has_room);
            let next = if is_full { cheapest(states, paths) } else { None };
            let Some(cost) = next else {
                // What was full with paths that no longer help says nothing later.
                self.full[level + 1..].fill(Full::default());
                return;
            };
            self.helps = Some(cost);
            if has_room {
                return;
            }
            for ((path, state), idle) in paths.iter_mut().zip(states).zip(&self.idle) {
                if may_help(path, state) == Some(cost) {
                    path.status = Status::Active;
                    path.capacity = path.capacity.filter(|_| path.capacity != *idle);
                }
            }
        }
    }
}

/// Returns the cost of a path that waits and may help.
fn may_help(path: &Path, state: &PathState) -> Option<u8> {
    let PathUse { cost, overflows, .. } = state.both();
    (path.status == Status::Backup && overflows).then_some(cost)
}

fn cheapest(states: &[PathState], paths: &[Path]) -> Option<u8> {
    paths.iter().zip(states).filter_map(|(path, state)| may_help(path, state)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path helps only if each end that gave it a cost agrees, whichever cost is higher.
    #[test]
    fn the_end_that_pays_agrees() {
        let overflows = |own: (u8, bool), peer: (u8, bool)| {
            let given = |(cost, overflows)| PathUse { quiet: false, cost, overflows };
            let state =
                PathState { own_use: given(own), peer_use: given(peer), ..Default::default() };
            state.both().overflows
        };
        assert!(overflows((1, true), (0, false)) && overflows((0, false), (1, true)));
        assert!(overflows((1, true), (2, true)));
        for peer in [(0, true), (1, true), (255, true)] {
            assert!(!overflows((1, false), peer) && !overflows(peer, (1, false)), "{peer:?}");
        }
        assert!(!overflows((0, false), (0, false)), "a path without a cost is no backup");
    }
}
