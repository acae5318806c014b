//! Sums over the minutes and rows of a folder.

use super::ReportSettings;
use crate::cells::{Cell, Cells, Ended, Kind, LARGE_BYTES, Size};
use crate::live::{Slot, add_point};
use crate::minutes::Minute;
use ipnet::IpNet;
use knee_record::{ConnectionRecord, OBSERVED_BINS, ObservedPoint, size_classes};
use knee_units::statistics::Sketch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Limit on the cached prefixes.
const PREFIXES_MAX: usize = 1 << 16;

/// Sums so far.
#[derive(Clone, Default)]
pub(crate) struct Gathered {
    pub settings: ReportSettings,
    /// Cells by index of the period and kind.
    pub cells: BTreeMap<(usize, Kind), Cell>,
    /// Cells by hour of the day and size; `None` without acknowledged payload.
    pub hours: BTreeMap<(u32, Option<Size>), Cell>,
    /// Points by start of the minute, seconds since 1970.
    pub minutes: BTreeMap<u64, ObservedPoint>,
    pub rows: u64,
    /// Connections by hour of the day, bin of size and bin of duration.
    pub heat: BTreeMap<(u32, i32, i32), u64>,
    /// Cells by index of the network and size; `None` for unknown networks.
    pub networks: BTreeMap<(Option<usize>, Size), Cell>,
    /// Objects by size class and controller.
    pub objects: BTreeMap<(usize, Arc<str>), Objects>,
    pub joined: u64,
    known: BTreeMap<Arc<str>, Option<IpNet>>,
}

/// Sums over similar objects.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    pub objects: u64,
    pub alone: u64,
    pub log_throughput_bps: Sketch,
    pub throughput_bps: Sketch,
    pub rtt_min_us: Sketch,
    pub sent_bytes: u64,
    pub retransmitted_bytes: u64,
}

impl Gathered {
    pub fn new(settings: ReportSettings) -> Gathered {
        Gathered { settings, ..Gathered::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.minutes.is_empty()
    }

    /// Index of the period that contains a time; `None` if no requested period does.
    fn period(&self, unix_ns: u64) -> Option<usize> {
        match &self.settings.periods[..] {
            [] => Some(0),
            periods => periods.iter().position(|period| period.contains_ns(unix_ns)),
        }
    }

    /// Adds the aggregates of a minute.
    pub fn minute(&mut self, minute: &Minute) {
        let Some(period) = self.period(minute.unix_ns) else { return };
        let point = minute.point();
        add_point(self.minutes.entry(point.unix_s).or_default(), &point);
        self.cells(period, point.unix_s, &minute.cells);
    }

    fn cells(&mut self, period: usize, unix_s: u64, cells: &Cells) {
        for (kind, cell) in &cells.0 {
            self.hours.entry((hour(unix_s), kind.size())).or_default().merge(cell);
            self.cells.entry((period, kind.clone())).or_default().merge(cell);
        }
    }

    /// Adds minutes with the heat map of their rows.
    pub fn slot(&mut self, slot: &Slot) {
        let Some(period) = self.period(slot.unix_s * 1_000_000_000) else { return };
        for (unix_s, point) in &slot.points {
            add_point(self.minutes.entry(*unix_s).or_default(), point);
        }
        self.cells(period, slot.unix_s, &slot.cells);
        self.rows += slot.rows;
        for ((size, time), connections) in &slot.heat {
            *self.heat.entry((hour(slot.unix_s), *size, *time)).or_default() += connections;
        }
    }

    /// Adds a connection that has a row.
    pub fn row(&mut self, end_unix_ns: u64, row: &ConnectionRecord, ended: &Ended) {
        if self.period(end_unix_ns).is_none() {
            return;
        }
        self.rows += 1;
        // One in N has a row, so its weight is N.
        let weight = row.weight.unwrap_or(1.0).round() as u64;
        let acked = ended.acked_bytes;
        if acked == 0 {
            return;
        }
        if let Some((size, time)) = heat_bin(ended) {
            let hour = hour(end_unix_ns / 1_000_000_000);
            *self.heat.entry((hour, size, time)).or_default() += weight;
        }
        let net = self.net(&row.prefix);
        if let Some(providers) = &self.settings.providers {
            let at = net.and_then(|net| providers.of(net));
            let size = Size::of(acked);
            self.networks.entry((at, size)).or_default().add(ended, weight);
        }
        self.join(end_unix_ns, row, ended, net);
    }

    /// Parses the prefix of a row, with a cache.
    fn net(&mut self, prefix: &Arc<str>) -> Option<IpNet> {
        if let Some(net) = self.known.get(prefix) {
            return *net;
        }
        if self.known.len() >= PREFIXES_MAX {
            self.known.clear();
        }
        let net = prefix.parse().ok();
        self.known.insert(prefix.clone(), net);
        net
    }

    /// Matches lines of the log with the connection that carried their objects.
    fn join(
        &mut self,
        end_unix_ns: u64,
        row: &ConnectionRecord,
        ended: &Ended,
        net: Option<IpNet>,
    ) {
        let Some(log) = &mut self.settings.log else { return };
        let (Some(net), Some(port)) = (net, row.remote_port) else { return };
        let lines = log.take(port, net, end_unix_ns / 1_000_000);
        let alone = lines.len() == 1;
        for line in lines {
            self.joined += 1;
            let class = size_classes().iter().position(|class| class.sizes.contains(line.bytes));
            let key = (class.unwrap_or_default(), row.cc.clone());
            let cell = self.objects.entry(key).or_default();
            cell.objects += 1;
            cell.sent_bytes += ended.sent_bytes;
            cell.retransmitted_bytes += ended.retransmitted_bytes;
            if let Some(seconds) = line.seconds {
                cell.log_throughput_bps.add(8.0 * line.bytes as f64 / seconds);
            }
            if let Some(rtt) = ended.rtt_min_us {
                cell.rtt_min_us.add(rtt);
            }
            if alone {
                cell.alone += 1;
                // A duration below one kernel clock tick is zero.
                cell.throughput_bps.add(8e6 * ended.acked_bytes as f64 / ended.busy_us as f64);
            }
        }
    }
}

/// Bins of size and duration of a connection; `None` if either is zero.
pub(crate) fn heat_bin(ended: &Ended) -> Option<(i32, i32)> {
    let bin = |value: f64| (value.log10() * OBSERVED_BINS).floor() as i32;
    let has_both = ended.acked_bytes > 0 && ended.busy_us > 0;
    has_both.then(|| (bin(ended.acked_bytes as f64), bin(ended.busy_us as f64 / 1e6)))
}

/// Hour of the day, in UTC.
pub(super) fn hour(unix_s: u64) -> u32 {
    (unix_s / 3600 % 24) as u32
}

/// Display names of the two sizes.
pub(crate) fn size_name(size: Size) -> &'static str {
    const { assert!(LARGE_BYTES == 3_000_000) };
    match size {
        Size::Small => "below 3 MB",
        Size::Large => "3 MB and more",
    }
}
