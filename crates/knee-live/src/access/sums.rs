//! Sums over the transfers of logs.

use super::LogSettings;
use super::course::Course;
use crate::cells::Size;
use crate::group::kept;
use ipnet::IpNet;
use knee_foreign::{DayClock, Moment, Protocol, Transfer};
use knee_record::{OBSERVED_BINS, size_classes};
use knee_units::statistics::Sketch;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Prefixes that have sums of their own. A prefix with a share p of the transfers is not among the
/// first 4096 of a log in which clients alternate with a probability of at most (1 − p)^4096: for
/// 0.3 % one in 200,000.
const PREFIXES_MAX: usize = 4096;
/// Controllers that have sums of their own; the others count together.
const CONTROLLERS_MAX: usize = 64;
/// Name of what has no sums of its own.
pub(super) const OTHERS: &str = "others";
/// Instants before it count from another one than 1970: 2000-01-01.
const DATED_FROM_NS: i64 = 946_684_800_000_000_000;

const SECOND_NS: i64 = 1_000_000_000;

/// Sums over transfers of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub transfers: u64,
    pub bytes: u64,
    pub throughput_bps: Sketch,
    pub time_us: Sketch,
    pub server_ns: u128,
    /// Durations of the transfers whose server's part is known.
    pub server_of_ns: u128,
    pub rtt_us: Sketch,
    pub delivery_rate_bps: Sketch,
    pub delivery_ratio: Sketch,
}

impl Cell {
    fn add(&mut self, one: &Transfer) {
        self.transfers += 1;
        self.bytes = self.bytes.saturating_add(one.bytes);
        if let Some(rtt) = one.rtt_ns {
            self.rtt_us.add(rtt as f64 / 1e3);
        }
        if let Some(rate) = one.delivery_rate_bps {
            self.delivery_rate_bps.add(rate);
        }
        let Some(duration) = one.duration_ns.filter(|duration| *duration > 0) else { return };
        let bps = one.bytes as f64 * 8e9 / duration as f64;
        self.throughput_bps.add(bps);
        self.time_us.add(duration as f64 / 1e3);
        if let Some(server) = one.server_ns {
            self.server_ns += u128::from(server);
            self.server_of_ns += u128::from(duration);
        }
        if let Some(rate) = one.delivery_rate_bps {
            self.delivery_ratio.add(bps / rate);
        }
    }

    pub fn merge(&mut self, other: &Cell) {
        self.transfers += other.transfers;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.throughput_bps.merge(&other.throughput_bps);
        self.time_us.merge(&other.time_us);
        self.server_ns += other.server_ns;
        self.server_of_ns += other.server_of_ns;
        self.rtt_us.merge(&other.rtt_us);
        self.delivery_rate_bps.merge(&other.delivery_rate_bps);
        self.delivery_ratio.merge(&other.delivery_ratio);
    }
}

/// Before the moment of the change, and from it on. Without one all are before.
pub(super) type Side = usize;
/// Transfers by side and size.
pub(super) type Cells = BTreeMap<(Side, Size), Cell>;

/// Sums so far.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub settings: LogSettings,
    /// By side, protocol and index into [`size_classes`].
    pub cells: BTreeMap<(Side, Protocol, usize), Cell>,
    pub controllers: BTreeMap<String, Cells>,
    pub groups: BTreeMap<Arc<str>, Cells>,
    /// By index of the network; `None` for clients in no line of the table.
    pub providers: BTreeMap<Option<usize>, Cells>,
    pub prefixes: BTreeMap<IpNet, Cells>,
    pub other_prefixes: u64,
    /// By side, hour of the day, bin of size and bin of duration.
    pub heat: BTreeMap<(Side, u32, i32, i32), u64>,
    pub course: Course,
    pub span_s: Option<(i64, i64)>,
    pub dated: bool,
    pub without_time: u64,
    pub without_duration: u64,
    pub without_unit: u64,
    pub too_short: u64,
    /// Number of durations that are no multiples of a second, and of a millisecond.
    pub finer_than: [u64; 2],
    clock: DayClock,
}

impl Sums {
    pub fn new(settings: LogSettings) -> Sums {
        Sums { settings, ..Sums::default() }
    }

    /// Begins another log. Times of day go on within a log only.
    pub fn begin_log(&mut self) {
        self.clock = DayClock::default();
    }

    /// Adds a transfer.
    pub fn add(&mut self, one: &Transfer) {
        let at_ns = self.at_ns(one.at);
        let side = match (self.settings.since_ns, at_ns) {
            (Some(since), Some(at)) => Side::from(at >= since),
            // Neither before nor after: left out of both.
            (Some(_), None) => 2,
            (None, _) => 0,
        };
        let class = size_classes().iter().position(|class| class.sizes.contains(one.bytes));
        let key = (side, one.protocol, class.unwrap_or_default());
        self.cells.entry(key).or_default().add(one);
        self.duration(one);
        let key = (side, Size::of(one.bytes));
        if !one.controller.is_empty() {
            let many = self.controllers.len() >= CONTROLLERS_MAX;
            let known = !many || self.controllers.contains_key(&one.controller);
            let name = if known { &*one.controller } else { OTHERS };
            entry(&mut self.controllers, name, key).add(one);
        }
        if let Some(client) = one.client {
            self.client(client, key, one);
        }
        let at_s = at_ns.map(|at| at.div_euclid(SECOND_NS));
        if let Some((size, time)) = heat_bin(one) {
            let hour = at_s.map_or(0, |at| at.div_euclid(3600).rem_euclid(24) as u32);
            *self.heat.entry((side, hour, size, time)).or_default() += 1;
        }
        match at_s {
            Some(at) => {
                let (from, to) = self.span_s.unwrap_or((at, at));
                self.span_s = Some((from.min(at), to.max(at)));
                self.course.add(at, one);
            }
            None => self.without_time += 1,
        }
    }

    /// Adds a transfer to the sums of its client.
    fn client(&mut self, client: IpAddr, key: (Side, Size), one: &Transfer) {
        let group = self.settings.groups.of(client);
        if !group.is_empty() {
            self.groups.entry(group).or_default().entry(key).or_default().add(one);
        }
        if let Some(table) = &self.settings.providers {
            let at = table.of(kept(client, true));
            self.providers.entry(at).or_default().entry(key).or_default().add(one);
        }
        let prefix = kept(client, false);
        if self.prefixes.len() < PREFIXES_MAX || self.prefixes.contains_key(&prefix) {
            self.prefixes.entry(prefix).or_default().entry(key).or_default().add(one);
        } else {
            self.other_prefixes += 1;
        }
    }

    fn duration(&mut self, one: &Transfer) {
        match one.duration_ns {
            None => {
                self.without_duration += 1;
                self.without_unit += u64::from(one.is_without_unit);
            }
            Some(0) => self.too_short += 1,
            Some(nanos) => {
                for (finer, unit) in self.finer_than.iter_mut().zip([1_000_000_000, 1_000_000]) {
                    *finer += u64::from(nanos % unit != 0);
                }
            }
        }
    }

    /// Returns the time of a transfer, nanoseconds; those without a date count from the first
    /// midnight, and are left out if there are others with a date.
    fn at_ns(&mut self, at: Option<Moment>) -> Option<i64> {
        let at = match at? {
            Moment::Instant(at) => at,
            Moment::OfDay(at) => self.clock.since_midnight(at).0,
        };
        let dated = at >= DATED_FROM_NS;
        if self.span_s.is_none() {
            self.dated = dated;
        }
        (dated == self.dated).then_some(at)
    }
}

/// Returns the cell of a name.
fn entry<'s>(all: &'s mut BTreeMap<String, Cells>, name: &str, key: (Side, Size)) -> &'s mut Cell {
    all.entry(name.to_string()).or_default().entry(key).or_default()
}

/// Bins of size and duration; `None` without a duration.
fn heat_bin(one: &Transfer) -> Option<(i32, i32)> {
    let bin = |value: f64| (value.log10() * OBSERVED_BINS).floor() as i32;
    let duration = one.duration_ns.filter(|duration| *duration > 0)?;
    Some((bin(one.bytes as f64), bin(duration as f64 / 1e9)))
}
