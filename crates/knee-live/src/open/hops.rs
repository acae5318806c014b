//! How many hops away packets are lost: probes with a limited TTL within a connection of its own.

use crate::LiveError;
use knee_host::{HopProbe, PROBES_MAX};
use knee_present::words::count;
use knee_present::{Cell, Table, number, text};
use knee_record::Unit;
use knee_units::statistics::wilson;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time from one probe to the next to the same hop: Linux as a router reports at most one packet a
/// second to the same address (`net.ipv4.icmp_ratelimit`).
pub const HOP_INTERVAL: Duration = Duration::from_millis(1250);
/// Furthest hop that is looked for.
const HOPS_MAX: u8 = 30;
/// How often each hop is asked who it is before it counts as silent.
const ASKED: u32 = 5;
/// How often the peer acknowledges before it is known by that.
const ACKNOWLEDGED: u32 = 3;
/// Longest wait for an answer; with short intervals as long as some of them.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// TTL of the probes to the peer itself.
const TTL_WHOLE: u8 = 64;
const INTERVALS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(2);
/// Half-width of the intervals, standard deviations: they are looked at again and again.
const DEVIATIONS: f64 = 3.0;

/// A hop on the way to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Address of the router or, at the last hop, of the peer; `None` if it never answers.
    pub router: Option<Ipv4Addr>,
    /// Probes that were answered or are too old to be.
    pub probes: u64,
    /// Those that were answered.
    pub answered: u64,
}

impl Hop {
    /// Share of the probes without an answer, with its interval; `None` without probes or if the hop
    /// never answers.
    fn unanswered(&self) -> Option<(f64, [f64; 2])> {
        let is_known = self.router.is_some() && self.probes > 0 && self.answered > 0;
        let lost = self.probes - self.answered;
        let interval = || wilson(lost, self.probes, DEVIATIONS);
        is_known.then(|| (lost as f64 / self.probes as f64, interval()))
    }
}

/// What probes to a peer found so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HopsSeen {
    /// The hops, the nearest first.
    pub hops: Vec<Hop>,
    /// Whether the last hop is the peer.
    pub is_whole: bool,
    /// Why there are no probes any more.
    pub failed: Option<String>,
}

/// Where losses begin.
#[derive(Clone, Debug, PartialEq)]
struct Lossy {
    /// Numbers of the last hop before, 0 for this host, and of the first hop beyond.
    between: [usize; 2],
    /// Share of the probes lost there or beyond it, at least, with its interval.
    share: (f64, [f64; 2]),
}

impl HopsSeen {
    /// Hops that answer, with their numbers from 1 on.
    fn known(&self) -> Vec<(usize, (f64, [f64; 2]))> {
        let hops = (1..).zip(&self.hops);
        hops.filter_map(|(number, hop)| Some((number, hop.unanswered()?))).collect()
    }

    /// Where losses begin: up to one hop fewer probes stay without an answer than at every hop from
    /// the next on. A router that answers rarely proves nothing, since later hops answer more often.
    fn lossy(&self) -> Vec<Lossy> {
        let known = self.known();
        let before = [(0, (0.0, [0.0, 0.0]))].into_iter().chain(known.iter().copied());
        let mut found: Vec<Lossy> = Vec::new();
        for (place, (number, (_, [_, high]))) in before.enumerate() {
            let beyond = &known[place..];
            // The hop beyond which fewest are lost: all others contain its losses.
            let least = beyond.iter().min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
            let Some((_, share)) = least else { continue };
            // A router that answers more rarely than that does not tell on which side of it.
            let next = beyond.iter().find(|(_, (_, [low, _]))| *low <= share.1[1]);
            let Some((next, _)) = next else { continue };
            if beyond.iter().all(|(_, (_, [low, _]))| *low > high) {
                found.push(Lossy { between: [number, *next], share: *share });
            }
        }
        found
    }

    /// Says where packets are lost on the way to a peer.
    pub fn sentence(&self, to: SocketAddrV4) -> String {
        if let Some(failed) = &self.failed {
            return format!("Hops to {to}: {failed}.");
        }
        let name = |number: usize| match number.checked_sub(1).map(|index| self.hops[index]) {
            None => "this host".to_string(),
            Some(_) if self.is_whole && number == self.hops.len() => format!("{}", to.ip()),
            Some(hop) => match hop.router {
                Some(router) => format!("hop {number} ({router})"),
                None => format!("hop {number}"),
            },
        };
        let percent = |share: f64| Unit::Fraction.show(share);
        let lossy: Vec<String> = self
            .lossy()
            .iter()
            .map(|Lossy { between: [near, far], share: (share, [low, high]) }| {
                format!(
                    "between {} and {}: {} of the probes ({} to {})",
                    name(*near),
                    name(*far),
                    percent(*share),
                    percent(*low),
                    percent(*high)
                )
            })
            .collect();
        let probes = self.hops.iter().map(|hop| hop.probes).max().unwrap_or(0);
        let known = self.known();
        let least = known.iter().filter(|(number, _)| *number == self.hops.len());
        let hidden = least.map(|(_, (_, [_, high]))| *high).next_back();
        let end = match (lossy.is_empty(), hidden) {
            _ if probes == 0 => return format!("Hops to {to}: they are being looked for."),
            (false, _) => format!("packets are lost {}", lossy.join("; ")),
            (true, Some(high)) => {
                format!("no loss is found; up to {} may be hidden", percent(high))
            }
            (true, None) => "the peer does not answer".to_string(),
        };
        let hops = self.hops.len();
        format!("Hops to {to}: {hops}, {} probes to each; {end}.", count(probes))
    }

    /// A row for each hop.
    pub fn table(&self) -> Table {
        let heads = [number("hop"), text("router"), number("probes"), number("unanswered")];
        let mut table = Table::new(heads).called("hops");
        for (number, hop) in (1..).zip(&self.hops) {
            let router = hop.router.map_or_else(|| "silent".to_string(), |one| one.to_string());
            let share = hop.unanswered().map(|(share, _)| share);
            let share = Cell::figure(Unit::Fraction, share);
            table.row([Cell::count(number as u64), router.into(), Cell::count(hop.probes), share]);
        }
        table
    }

    /// The same for programs.
    pub fn json(&self, to: SocketAddrV4) -> Value {
        let lossy = self.lossy();
        let hops = self.hops.iter().map(
            |hop| json!({ "router": hop.router, "probes": hop.probes, "answered": hop.answered }),
        );
        json!({
            "to": to.to_string(),
            "is_whole": self.is_whole,
            "hops": hops.collect::<Vec<_>>(),
            "lossy": lossy.iter().map(|one| json!({
                "between": one.between, "share": one.share.0,
                "low": one.share.1[0], "high": one.share.1[1],
            })).collect::<Vec<_>>(),
            "failed": self.failed,
        })
    }
}

/// Probes to a peer, by a thread of its own until this is dropped.
#[derive(Debug)]
pub struct Hops {
    /// The peer.
    pub to: SocketAddrV4,
    seen: Arc<Mutex<HopsSeen>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hops {
    /// Connects to a peer, in the network namespace of the calling thread, and sends a probe to
    /// each hop in each interval ([`HOP_INTERVAL`]).
    ///
    /// # Errors
    ///
    /// A peer that does not answer, missing privileges.
    pub fn begin(to: SocketAddrV4, interval: Duration) -> Result<Hops, LiveError> {
        let probe = HopProbe::connect(to, Duration::from_secs(10))?;
        let seen = Arc::new(Mutex::new(HopsSeen::default()));
        let is_over = Arc::new(AtomicBool::new(false));
        let prober =
            Prober { probe, to, interval, seen: seen.clone(), is_over: is_over.clone(), next: 0 };
        let thread = thread::spawn(move || prober.run());
        Ok(Hops { to, seen, is_over, thread: Some(thread) })
    }

    /// What is known so far.
    pub fn seen(&self) -> HopsSeen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Hops {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

struct Prober {
    probe: HopProbe,
    to: SocketAddrV4,
    interval: Duration,
    seen: Arc<Mutex<HopsSeen>>,
    is_over: Arc<AtomicBool>,
    /// Number of the next probe.
    next: u32,
}

#[expect(clippy::disallowed_methods, reason = "a path is observed as time passes")]
impl Prober {
    fn run(mut self) {
        let done = self.look_for().and_then(|()| self.count());
        if let Err(error) = done {
            self.change(|seen| seen.failed = Some(format!("probes cannot be sent: {error}")));
        }
    }

    fn change(&self, change: impl FnOnce(&mut HopsSeen)) {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn number(&mut self) -> u32 {
        self.next = (self.next + 1) % PROBES_MAX;
        self.next
    }

    /// Looks for the routers, one after the other, up to the peer, which acknowledges.
    fn look_for(&mut self) -> std::io::Result<()> {
        for ttl in 1..=HOPS_MAX {
            let mut router = None;
            let mut acknowledged = 0;
            let mut asked = 0;
            // A peer that has acknowledged once is asked more often: a handshake of which something was
            // lost looks like that too.
            while asked < if acknowledged > 0 { 2 * ASKED } else { ASKED } {
                asked += 1;
                let mut is_peer = false;
                let before = self.probe.received_segments()?;
                let number = self.number();
                self.probe.send(ttl, number)?;
                let sent = Instant::now();
                while router.is_none() && !is_peer && sent.elapsed() < PROBE_TIMEOUT {
                    if self.is_over() {
                        return Ok(());
                    }
                    thread::sleep(PAUSE);
                    self.probe.reports(|one| {
                        if one.number == number {
                            router = Some(one.router);
                        }
                    })?;
                    is_peer = self.probe.received_segments()? != before;
                }
                acknowledged += u32::from(is_peer);
                if router.is_some() || acknowledged == ACKNOWLEDGED {
                    break;
                }
            }
            let is_peer = acknowledged == ACKNOWLEDGED;
            if is_peer {
                router = Some(*self.to.ip());
            }
            self.change(|seen| {
                seen.hops.push(Hop { router, ..Hop::default() });
                seen.is_whole = is_peer;
            });
            if is_peer {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends probes to all hops until it is over, and counts answers.
    fn count(&mut self) -> std::io::Result<()> {
        let (hops, is_whole) = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            (seen.hops.len(), seen.is_whole)
        };
        let mut pending: BTreeMap<u32, (usize, Instant)> = BTreeMap::new();
        // Of those to the peer one at a time: an acknowledgement does not say of what.
        let mut to_peer: Option<(u32, Instant)> = None;
        let patience = PROBE_TIMEOUT.min(self.interval * INTERVALS);
        let step = self.interval / u32::try_from(hops).unwrap_or(u32::MAX).max(1);
        let mut due = Instant::now();
        for hop in (0..hops).cycle() {
            while Instant::now() < due && !self.is_over() {
                self.hear(&mut pending)?;
                self.acknowledged(hops - 1, &mut to_peer, patience)?;
                thread::sleep(PAUSE.min(due.saturating_duration_since(Instant::now())));
            }
            if self.is_over() {
                return Ok(());
            }
            due = (due + step).max(Instant::now());
            self.hear(&mut pending)?;
            let old = Instant::now();
            let is_late = |sent: Instant| old.saturating_duration_since(sent) > patience;
            let late: Vec<u32> = pending
                .iter()
                .filter(|(_, (_, sent))| is_late(*sent))
                .map(|(one, _)| *one)
                .collect();
            for number in late {
                if let Some((hop, _)) = pending.remove(&number) {
                    self.change(|seen| seen.hops[hop].probes += 1);
                }
            }
            let number = self.number();
            if !(is_whole && hop == hops - 1) {
                self.probe.send(u8::try_from(hop + 1).unwrap_or(u8::MAX), number)?;
                pending.insert(number, (hop, Instant::now()));
                continue;
            }
            if !self.probe.is_open() {
                // The peer closes what is idle; what it ended with is no answer.
                to_peer = None;
                pending.clear();
                self.probe =
                    HopProbe::connect(self.to, PROBE_TIMEOUT).map_err(std::io::Error::other)?;
            }
            if to_peer.is_none() {
                to_peer = Some((self.probe.received_segments()?, Instant::now()));
                self.probe.send(TTL_WHOLE, number)?;
            }
        }
        Ok(())
    }

    /// Counts the reports of routers.
    fn hear(&self, pending: &mut BTreeMap<u32, (usize, Instant)>) -> std::io::Result<()> {
        self.probe.reports(|one| {
            if let Some((hop, _)) = pending.remove(&one.number) {
                self.change(|seen| {
                    let hop = &mut seen.hops[hop];
                    hop.probes += 1;
                    hop.answered += 1;
                    hop.router = Some(one.router);
                });
            }
        })
    }

    /// Counts the probe to the peer if it is acknowledged, or too old to be.
    fn acknowledged(
        &self,
        last: usize,
        probe: &mut Option<(u32, Instant)>,
        patience: Duration,
    ) -> std::io::Result<()> {
        let Some((before, sent)) = *probe else { return Ok(()) };
        let is_answered = self.probe.received_segments()? != before;
        if is_answered || sent.elapsed() > patience {
            *probe = None;
            self.change(|seen| {
                seen.hops[last].probes += 1;
                seen.hops[last].answered += u64::from(is_answered);
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 7), 443);

    /// Hops with these numbers of answers to 1000 probes each; `None` never answers.
    fn seen(answered: &[Option<u64>]) -> HopsSeen {
        let hop = |(number, answered): (u8, &Option<u64>)| Hop {
            router: answered.map(|_| Ipv4Addr::new(192, 0, 2, number)),
            probes: 1000,
            answered: answered.unwrap_or(0),
        };
        HopsSeen { hops: (1..).zip(answered).map(hop).collect(), is_whole: true, failed: None }
    }

    fn between(answered: &[Option<u64>]) -> Vec<[usize; 2]> {
        seen(answered).lossy().into_iter().map(|one| one.between).collect()
    }

    /// What is lost on a link is lost to all hops beyond it; a router that answers rarely, or never,
    /// loses nothing of others.
    #[test]
    fn loss_begins_where_it_lasts() {
        let [all, most, half] = [Some(1000), Some(900), Some(500)];
        assert_eq!(between(&[all, all, all]), Vec::<[usize; 2]>::new());
        assert_eq!(between(&[most, most, most]), [[0, 1]]);
        assert_eq!(between(&[all, all, most]), [[2, 3]]);
        assert_eq!(between(&[all, most, most]), [[1, 2]]);
        assert_eq!(between(&[all, half, all]), Vec::<[usize; 2]>::new());
        assert_eq!(between(&[all, half, most]), [[1, 3]]);
        assert_eq!(between(&[all, None, most]), [[1, 3]]);
        assert_eq!(between(&[all, most, half]), [[1, 2], [2, 3]]);
        // The peer is silent: the last hops that answer decide.
        assert_eq!(between(&[all, most, None]), [[1, 2]]);
        // Too few to tell from chance.
        assert_eq!(between(&[all, Some(995)]), Vec::<[usize; 2]>::new());
        assert_eq!(between(&[]), Vec::<[usize; 2]>::new());
    }

    #[test]
    fn the_place_is_said() {
        let said = seen(&[Some(1000), Some(900), Some(901)]).sentence(TO);
        let place =
            "packets are lost between hop 1 (192.0.2.1) and hop 2 (192.0.2.2): 9.9 % of the";
        assert!(said.contains("443: 3, ") && said.contains(place), "{said}");
        let said = seen(&[Some(900), Some(900)]).sentence(TO);
        assert!(said.contains("between this host and hop 1"), "{said}");
        let said = seen(&[Some(1000), Some(900)]).sentence(TO);
        assert!(said.contains("hop 1 (192.0.2.1) and 198.51.100.7"), "{said}");
        let said = seen(&[Some(1000), Some(1000)]).sentence(TO);
        // Wilson's bound for none of 1000 at three deviations: 9 / 1009.
        assert!(said.contains("no loss is found; up to 0.892 % may be hidden"), "{said}");
        assert!(HopsSeen::default().sentence(TO).contains("are being looked for"));
    }
}
