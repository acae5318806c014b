//! What a page shows of open connections: the last interval, the course of the last hour, and sums
//! since the start.

use crate::open::{Change, Look, Place, drops, retransmits_within};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// For how long steps are kept.
const COURSE: Duration = Duration::from_secs(3600);
/// The most steps of a course; more are merged.
const STEPS_MAX: f64 = 240.0;
/// The most places of drops that are told apart in sums.
const PLACES_MAX: usize = 100;

/// State of an observer of open connections for a page. Clones share the same state.
#[derive(Clone, Debug)]
pub(super) struct OpenLive {
    shown: Arc<Mutex<Shown>>,
    /// Whether there are groups, and whether whole addresses are shown.
    pub grouped: bool,
    pub whole: bool,
}

#[derive(Clone, Debug, Default)]
struct Shown {
    last: Option<Arc<Look>>,
    course: VecDeque<Step>,
    sums: Sums,
}

/// An interval, or some that were merged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Begin and end, since 1970 (UTC).
    pub from: Duration,
    pub to: Duration,
    /// What the connections did.
    pub change: Change,
    /// Packets that this host dropped.
    pub drops: u64,
}

/// Sums since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Length of all intervals.
    pub length: Duration,
    /// By group and controller: connections open at the last reading, and what all did.
    pub connections: BTreeMap<(Arc<str>, Arc<str>), (u64, Change)>,
    /// Segments sent, segments retransmitted, and timeouts of the whole namespace.
    pub segments: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// Drops of this host by place, in the order in which places were first seen, and those of places
    /// beyond [`PLACES_MAX`]: interfaces come and go.
    pub drops: Vec<(Place, u64)>,
    pub further_drops: u64,
}

impl Sums {
    fn add_drops(&mut self, place: Place, drops: u64) {
        if let Some((_, sum)) = self.drops.iter_mut().find(|(known, _)| *known == place) {
            *sum += drops;
        } else if self.drops.len() < PLACES_MAX {
            self.drops.push((place, drops));
        } else {
            self.further_drops += drops;
        }
    }
}

impl OpenLive {
    /// A page without intervals so far; `grouped` if there are groups, `whole` if it may show whole
    /// addresses of clients.
    pub fn new(grouped: bool, whole: bool) -> OpenLive {
        OpenLive { shown: Arc::default(), grouped, whole }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an interval.
    pub fn add(&self, look: &Arc<Look>) {
        let mut shown = self.shown();
        let mut step =
            Step { from: look.unix.saturating_sub(look.length), to: look.unix, ..Step::default() };
        let Shown { last, course, sums } = &mut *shown;
        sums.length += look.length;
        sums.connections.values_mut().for_each(|(open, _)| *open = 0);
        for one in &look.connections {
            step.change.add(&one.change);
            let kind = (one.group.clone(), one.controller.clone());
            let (open, change) = sums.connections.entry(kind).or_default();
            *open += 1;
            change.add(&one.change);
        }
        sums.segments += look.host.stack("TcpOutSegs");
        sums.retransmitted += look.host.stack("TcpRetransSegs");
        sums.timeouts += look.host.stack("TcpExtTCPTimeouts");
        for (place, drops) in drops(&look.host, retransmits_within(&look.connections)) {
            step.drops += drops;
            sums.add_drops(place, drops);
        }
        course.push_back(step);
        while course.front().is_some_and(|first| look.unix.saturating_sub(first.to) > COURSE) {
            course.pop_front();
        }
        *last = Some(look.clone());
    }

    /// The last interval; `None` before the first.
    pub fn last(&self) -> Option<Arc<Look>> {
        self.shown().last.clone()
    }

    pub fn sums(&self) -> Sums {
        self.shown().sums.clone()
    }

    /// The last hour in at most about [`STEPS_MAX`] steps.
    pub fn course(&self) -> Vec<Step> {
        let shown = self.shown();
        let Some((first, last)) = shown.course.front().zip(shown.course.back()) else {
            return Vec::new();
        };
        // Whole seconds, so that a step keeps its intervals from one page to the next.
        let span = last.to.saturating_sub(first.from).as_secs_f64();
        let length = (span / STEPS_MAX).ceil().max(1.0);
        let number = |step: &Step| (step.from.as_secs_f64() / length).floor();
        let mut steps: Vec<Step> = Vec::new();
        for step in &shown.course {
            match steps.last_mut() {
                Some(last) if number(last) == number(step) => {
                    last.to = step.to;
                    last.change.add(&step.change);
                    last.drops += step.drops;
                }
                _ => steps.push(*step),
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(unix_s: u64, dropped: u64) -> Arc<Look> {
        let mut look = Look {
            unix: Duration::from_secs(unix_s),
            length: Duration::from_secs(1),
            connections: Vec::new(),
            host: Default::default(),
            lost: Default::default(),
        };
        look.host.stack.insert("TcpExtTCPRetransFail".into(), dropped);
        look.host.stack.insert("TcpRetransSegs".into(), 2);
        Arc::new(look)
    }

    /// Two hours of seconds: the course is of the last one and short, and nothing is lost in merging;
    /// sums are of both.
    #[test]
    fn the_course_is_an_hour_and_the_sums_are_of_all() {
        let live = OpenLive::new(false, false);
        assert!(live.course().is_empty() && live.last().is_none());
        (1..=7200).for_each(|second| live.add(&look(1_000_000 + second, second % 2)));
        let course = live.course();
        assert!(course.len() <= 242, "{}", course.len());
        let steps: u64 = course.iter().map(|step| (step.to - step.from).as_secs()).sum();
        assert!((3600..=3601).contains(&steps), "{steps}");
        assert!(course.windows(2).all(|pair| pair[0].to == pair[1].from));
        let drops: u64 = course.iter().map(|step| step.drops).sum();
        assert!((1800..=1801).contains(&drops), "{drops}");
        let sums = live.sums();
        assert_eq!((sums.length.as_secs(), sums.retransmitted), (7200, 14_400));
        assert_eq!(sums.drops, [(Place::Stack("TCPRetransFail".to_string()), 3600)]);
    }

    /// However many interfaces come and go, the sums stay bounded and lose nothing.
    #[test]
    fn places_are_bounded_and_keep_their_sums() {
        let mut sums = Sums::default();
        let place = |number| Place::Interface(format!("veth{number}"), "tx_dropped".to_string());
        (0..1000).for_each(|number| sums.add_drops(place(999 - number), 2));
        sums.add_drops(place(999), 5);
        assert_eq!((sums.drops.len(), &sums.drops[0]), (PLACES_MAX, &(place(999), 7)));
        assert_eq!(sums.further_drops, 1800);
    }
}
