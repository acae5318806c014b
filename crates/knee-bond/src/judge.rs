//! Detects harmful links. A link that loses many packets or has a very long RTT delays everything
//! sent over it, and the bundle delivers in order, so all of it waits. Such a link is left out
//! while another one does better, and tried again later.
//!
//! Leaving a link out makes it costlier than any other ([`LEFT_OUT`]), which both ends learn of: it
//! is used when nothing else works. Each end judges its own sending. Times are arguments.

use crate::engine::Engine;
use knee_bundle::PathUse;
use knee_quic::{BundleId, PathState};
use knee_units::Time;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

/// Use of a link that is left out.
pub const LEFT_OUT: PathUse = PathUse { quiet: true, cost: u8::MAX, overflows: false };

/// Interval between looks at the links, and span over which they are judged.
const STEP: Duration = Duration::from_secs(1);
const SPAN: Time = Time::from_secs(10);
/// Packets sent within the span that suffice for a verdict.
const TELLING: u64 = 100;
/// Share of lost packets from which a link is harmful: at 30 %, every third packet is at least a
/// round trip late, and any controller gets a fraction of the link's rate.
const LOSS: f64 = 0.3;
/// A link is better if its loss is at most this fraction of the other's.
const BETTER: f64 = 0.5;
/// RTT from which a link is harmful, and its minimum ratio to another link's RTT.
const SLOW: Time = Time::from_secs(2);
const SLOWER: u64 = 10;
/// How long a link is left out, initially and at most; it doubles each time.
const OUT: Time = Time::from_secs(60);
const OUT_MAX: Time = Time::from_secs(960);
/// Time without harm after which the doubling restarts.
const FORGIVEN: Time = Time::from_secs(600);

/// Observations of a link that is up; counts since it came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the link in the bundle.
    pub number: usize,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were declared lost.
    pub lost: u64,
    /// Smoothed RTT.
    pub srtt: Time,
    /// Cost of the link, as both ends want it.
    pub cost: u8,
}

/// What to do about a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Leave it out, for this reason.
    LeaveOut(usize, String),
    /// Use it as before.
    TakeBack(usize),
}

/// History of a link.
#[derive(Debug, Default)]
struct Record {
    looks: VecDeque<(Time, Seen)>,
    out_until: Option<Time>,
    /// How often it was left out lately, and when it was last taken back.
    times: u32,
    back: Time,
    why: String,
}

/// The judge of one bundle's links.
#[derive(Debug, Default)]
pub struct Judge {
    records: BTreeMap<usize, Record>,
}

impl Record {
    fn note(&mut self, now: Time, seen: Seen) {
        // The counts of a link that came up again restart at zero.
        if self.looks.back().is_some_and(|(_, last)| last.sent > seen.sent) {
            self.looks.clear();
        }
        self.looks.push_back((now, seen));
        while self.looks.get(1).is_some_and(|(at, _)| *at + SPAN <= now) {
            self.looks.pop_front();
        }
    }

    /// Returns the share of packets lost over the span, or `None` if too few were sent.
    fn loss(&self) -> Option<f64> {
        let ((_, first), (_, last)) = (self.looks.front()?, self.looks.back()?);
        let sent = last.sent - first.sent;
        let lost = last.lost.saturating_sub(first.lost);
        (sent >= TELLING).then(|| lost as f64 / sent as f64)
    }

    /// Returns the lowest smoothed RTT of a whole span.
    fn srtt(&self, now: Time) -> Option<Time> {
        let (since, _) = self.looks.front()?;
        let least = self.looks.iter().map(|(_, seen)| seen.srtt).min();
        least.filter(|srtt| *since + SPAN <= now && *srtt > Time::ZERO)
    }
}

impl Judge {
    /// Returns why a link is left out, or `None` if it is not.
    pub fn why(&self, number: usize) -> Option<&str> {
        let record = self.records.get(&number)?;
        record.out_until.map(|_| record.why.as_str())
    }

    /// Forgets the record of a link whose number another one has now.
    pub fn forget(&mut self, number: usize) {
        self.records.remove(&number);
    }

    /// Notes the state of the links that are up, and returns what to do.
    pub fn look(&mut self, now: Time, links: &[Seen]) -> Vec<Verdict> {
        for seen in links {
            self.records.entry(seen.number).or_default().note(now, *seen);
        }
        self.records.retain(|number, record| {
            record.out_until.is_some() || links.iter().any(|seen| seen.number == *number)
        });
        let harms: Vec<(usize, String)> = links
            .iter()
            .filter_map(|seen| Some((seen.number, self.harm(now, seen.number, links)?)))
            .collect();
        let mut verdicts = Vec::new();
        for (number, why) in harms {
            let Some(record) = self.records.get_mut(&number) else { continue };
            if record.back + FORGIVEN <= now {
                record.times = 0;
            }
            let out = (OUT * (1 << record.times.min(8))).min(OUT_MAX);
            record.times += 1;
            record.out_until = Some(now + out);
            record.why = format!("{why}; it is tried again after {} s", out.as_secs_f64());
            record.looks.clear();
            verdicts.push(Verdict::LeaveOut(number, record.why.clone()));
        }
        for (number, record) in &mut self.records {
            if record.out_until.is_some_and(|until| until <= now) {
                (record.out_until, record.back) = (None, now);
                record.looks.clear();
                verdicts.push(Verdict::TakeBack(*number));
            }
        }
        verdicts
    }

    /// Returns the harm that a link does, or `None` if there is none or no other link does better.
    fn harm(&self, now: Time, number: usize, links: &[Seen]) -> Option<String> {
        let record = self.records.get(&number).filter(|record| record.out_until.is_none())?;
        let cost = links.iter().find(|seen| seen.number == number)?.cost;
        let others = || {
            let others = links.iter().filter(move |seen| seen.number != number);
            others
                .filter_map(|seen| Some((seen.cost, self.records.get(&seen.number)?)))
                .filter(|(_, record)| record.out_until.is_none())
        };
        // An idle link may be as lossy: it gets the benefit of the doubt only if it costs no more.
        let does_better = |loss: f64, (its_cost, other): (u8, &Record)| match other.loss() {
            Some(its_loss) => its_loss <= loss * BETTER,
            None => its_cost <= cost,
        };
        if let Some(loss) = record.loss().filter(|loss| *loss >= LOSS)
            && others().any(|other| does_better(loss, other))
        {
            return Some(format!("it loses {:.0} % of its packets", loss * 100.0));
        }
        if let Some(srtt) = record.srtt(now).filter(|srtt| *srtt >= SLOW)
            && others()
                .any(|(_, other)| other.srtt(now).is_some_and(|least| least * SLOWER <= srtt))
        {
            return Some(format!("its round trips take {:.1} s", srtt.as_secs_f64()));
        }
        None
    }
}

/// Judges of an end's bundles, and the use of each link before it was left out.
#[derive(Debug, Default)]
pub struct Judges(RefCell<BTreeMap<BundleId, Court>>);

#[derive(Debug, Default)]
struct Court {
    judge: Judge,
    before: BTreeMap<usize, PathUse>,
    /// Name of each link.
    labels: BTreeMap<usize, String>,
}

impl Judges {
    /// Returns why a link of a bundle is left out; `None` if it is not, or the other end did it.
    pub fn why(&self, id: &BundleId, number: usize) -> Option<String> {
        Some(self.0.borrow().get(id)?.judge.why(number)?.to_owned())
    }

    /// Judges all links of an end, for as long as it runs.
    pub async fn run(self: Rc<Judges>, engine: Rc<Engine>) {
        let mut tick = tokio::time::interval(STEP);
        loop {
            tick.tick().await;
            engine.with(|host, now| {
                let ids: Vec<BundleId> = host.bundles().copied().collect();
                self.0.borrow_mut().retain(|id, _| ids.contains(id));
                for id in ids {
                    let paths = host.paths(&id);
                    let Some(bundle) = host.bundle(&id) else { continue };
                    let mut courts = self.0.borrow_mut();
                    courts.entry(id).or_default().look(now, &paths, bundle);
                }
            });
        }
    }
}

impl Court {
    /// Notes the name of a link. In automatic mode an interface takes the number of one that is gone,
    /// but not its record.
    fn name(&mut self, number: usize, label: &str) {
        let known = self.labels.entry(number).or_insert_with(|| label.to_owned());
        if known != label {
            label.clone_into(known);
            self.judge.forget(number);
            self.before.remove(&number);
        }
    }

    fn look(&mut self, now: Time, paths: &[Option<PathState>], bundle: &mut knee_bundle::Bundle) {
        for (number, path) in paths.iter().enumerate() {
            if let Some(path) = path {
                self.name(number, &path.label);
            }
        }
        let seen = |(number, path): (usize, &Option<PathState>)| {
            let path = path.as_ref().filter(|path| path.is_up && !path.is_suspect)?;
            let observed = &path.observed;
            Some(Seen {
                number,
                sent: observed.sent_packets,
                lost: observed.lost_packets,
                srtt: observed.srtt,
                cost: path.path_use.cost,
            })
        };
        let links: Vec<Seen> = paths.iter().enumerate().filter_map(seen).collect();
        for verdict in self.judge.look(now, &links) {
            if let Verdict::TakeBack(number) = verdict
                && let Some(before) = self.before.remove(&number)
            {
                bundle.set_use(number, before);
            }
        }
        // A link that came up again starts with the use that its configuration gives.
        for number in links.iter().map(|seen| seen.number) {
            let own = bundle.own_use(number);
            if self.judge.why(number).is_some() && own != LEFT_OUT {
                self.before.insert(number, own);
                bundle.set_use(number, LEFT_OUT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_does_not_inherit_the_record_of_another() {
        let mut court = Court::default();
        court.name(0, "wlan0");
        court.name(1, "usb0");
        let seen = |number, second: u64, lost| Seen {
            number,
            sent: 100 * second,
            lost: lost * second,
            srtt: Time::from_millis(20),
            cost: 0,
        };
        for second in 0..=10 {
            let links = [seen(0, second, 0), seen(1, second, 50)];
            court.judge.look(Time::from_secs(second), &links);
        }
        court.name(1, "usb0");
        assert!(court.judge.why(1).is_some());
        court.name(1, "usb1");
        assert!(court.judge.why(1).is_none());
    }
}
