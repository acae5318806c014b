//! Which links do harm: a link that loses much, or answers late, delays all that has been
//! given to it, for the whole bundle waits for that in order. Such a link is left out while
//! another one does better, and tried again later.
//!
//! It is made dearer than any other for that ([`LEFT_OUT`]), which both ends hear of: it is
//! used when nothing else works. Each end judges what it sends itself. Times are arguments.

use crate::engine::Engine;
use knee_bundle::PathUse;
use knee_quic::{BundleId, PathState};
use knee_units::Time;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

/// What a link costs that is left out.
pub const LEFT_OUT: PathUse = PathUse { quiet: true, cost: u8::MAX };

/// How often links are looked at, and over how long they are judged.
const STEP: Duration = Duration::from_secs(1);
const SPAN: Time = Time::from_secs(10);
/// Packets sent in that span that say enough.
const TELLING: u64 = 100;
/// A link that loses such a part does harm: at 30 % every third packet comes a round trip
/// late at least, and what any controller gets over it is a fraction of its rate.
const LOSS: f64 = 0.3;
/// One that loses so much less is better.
const BETTER: f64 = 0.5;
/// A link whose round trips take so long, and so many times those of another.
const SLOW: Time = Time::from_secs(2);
const SLOWER: u64 = 10;
/// How long it is left out, at first and at most: twice as long each time.
const OUT: Time = Time::from_secs(60);
const OUT_MAX: Time = Time::from_secs(960);
/// After so long without harm the next time is the first again.
const FORGIVEN: Time = Time::from_secs(600);

/// What is seen of a link that is up: counts since it came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number in the bundle.
    pub number: usize,
    /// Packets sent.
    pub sent: u64,
    /// Packets of these that count as lost.
    pub lost: u64,
    /// Smoothed RTT.
    pub srtt: Time,
}

/// What is to be done about a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is to be left out, and why.
    LeaveOut(usize, String),
    /// It is to be used as before.
    TakeBack(usize),
}

/// What is known of a link.
#[derive(Debug, Default)]
struct Record {
    looks: VecDeque<(Time, Seen)>,
    out_until: Option<Time>,
    /// Times that it was left out lately, and when it was last taken back.
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
        // A link that came up anew counts from zero.
        if self.looks.back().is_some_and(|(_, last)| last.sent > seen.sent) {
            self.looks.clear();
        }
        self.looks.push_back((now, seen));
        while self.looks.get(1).is_some_and(|(at, _)| *at + SPAN <= now) {
            self.looks.pop_front();
        }
    }

    /// The part of packets lost over the span; none: too few were sent.
    fn loss(&self) -> Option<f64> {
        let ((_, first), (_, last)) = (self.looks.front()?, self.looks.back()?);
        let sent = last.sent - first.sent;
        let lost = last.lost.saturating_sub(first.lost);
        (sent >= TELLING).then(|| lost as f64 / sent as f64)
    }

    /// The lowest smoothed RTT of a whole span.
    fn srtt(&self, now: Time) -> Option<Time> {
        let (since, _) = self.looks.front()?;
        let least = self.looks.iter().map(|(_, seen)| seen.srtt).min();
        least.filter(|srtt| *since + SPAN <= now && *srtt > Time::ZERO)
    }
}

impl Judge {
    /// Why a link is left out; none: it is not.
    pub fn why(&self, number: usize) -> Option<&str> {
        let record = self.records.get(&number)?;
        record.out_until.map(|_| record.why.as_str())
    }

    /// Looks at the links that are up, and says what is to be done.
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

    /// What a link does to the others; none: nothing, or there is none that does better.
    fn harm(&self, now: Time, number: usize, links: &[Seen]) -> Option<String> {
        let record = self.records.get(&number).filter(|record| record.out_until.is_none())?;
        let others = || {
            let others = links.iter().filter(move |seen| seen.number != number);
            others
                .filter_map(|seen| self.records.get(&seen.number))
                .filter(|record| record.out_until.is_none())
        };
        if let Some(loss) = record.loss().filter(|loss| *loss >= LOSS)
            && others().any(|other| other.loss().unwrap_or(0.0) <= loss * BETTER)
        {
            return Some(format!("it loses {:.0} % of its packets", loss * 100.0));
        }
        if let Some(srtt) = record.srtt(now).filter(|srtt| *srtt >= SLOW)
            && others().any(|other| other.srtt(now).is_some_and(|least| least * SLOWER <= srtt))
        {
            return Some(format!("its round trips take {:.1} s", srtt.as_secs_f64()));
        }
        None
    }
}

/// The judges of an end's bundles, and what its links were to it before they were left out.
#[derive(Debug, Default)]
pub struct Judges(RefCell<BTreeMap<BundleId, Court>>);

#[derive(Debug, Default)]
struct Court {
    judge: Judge,
    before: BTreeMap<usize, PathUse>,
}

impl Judges {
    /// Why a link of a bundle is left out; none: it is not, or the other end does it.
    pub fn why(&self, id: &BundleId, number: usize) -> Option<String> {
        Some(self.0.borrow().get(id)?.judge.why(number)?.to_owned())
    }

    /// Looks at all links of an end, for as long as it runs.
    pub async fn sit(self: Rc<Judges>, engine: Rc<Engine>) {
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
    fn look(&mut self, now: Time, paths: &[Option<PathState>], bundle: &mut knee_bundle::Bundle) {
        let seen = |(number, path): (usize, &Option<PathState>)| {
            let path = path.as_ref().filter(|path| path.is_up && !path.is_suspect)?;
            let observed = &path.observed;
            Some(Seen {
                number,
                sent: observed.sent_packets,
                lost: observed.lost_packets,
                srtt: observed.srtt,
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
        // One that came up anew begins with what its configuration says.
        for number in links.iter().map(|seen| seen.number) {
            let own = bundle.own_use(number);
            if self.judge.why(number).is_some() && own != LEFT_OUT {
                self.before.insert(number, own);
                bundle.set_use(number, LEFT_OUT);
            }
        }
    }
}
