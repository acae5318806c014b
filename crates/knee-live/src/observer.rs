//! Hears of connections that end, and keeps what they tell.

use crate::LiveError;
use crate::cells::{Cell, Cells, Kind, LOST_MAX};
use crate::files::{Files, Written};
use crate::group::{Groups, kept};
use crate::live::{Counts, Live, Part};
use crate::minutes::Minute;
use crate::report::heat_bin;
use crate::row::{Beside, heard, row};
use ipnet::IpNet;
use knee_host::{ClosedSockets, HostError, TcpSocket, each_connection};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long to wait for something to end before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// Between two readings, so that one wakes for many reports; the smallest buffer that a
/// host permits, 208 KiB, has room for three times as long at 20,000 a second.
const PAUSE: Duration = Duration::from_millis(5);
/// Reports of one reading.
const BATCH: u64 = 4096;
/// Between two dumps of the connections that live.
const DUMP_INTERVAL: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
/// Between two states that a page shows.
const SHOWN_INTERVAL: Duration = Duration::from_secs(1);
/// Prefixes whose text is kept.
const PREFIXES_MAX: usize = 4096;

/// What to observe, and what to keep of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where files go.
    pub directory: PathBuf,
    /// Groups of the other ends' prefixes.
    pub groups: Groups,
    /// Of so many connections one has a row; all are in the aggregates. At least 1.
    pub sample_one_of: u64,
    /// Keep whole addresses rather than prefixes of 24 and 48 bits.
    pub keep_addresses: bool,
    /// All files together; beyond it the oldest go.
    pub bytes_max: u64,
}

/// Connections of this host, while it is observed.
pub struct Observer {
    closed: ClosedSockets,
    settings: Settings,
    files: Files,
    /// Controllers of connections that lived at the last dump, and at the one before: a
    /// report may wait while a dump is made. By cookie.
    living: [BTreeMap<u64, Arc<str>>; 2],
    controllers: Vec<Arc<str>>,
    prefixes: BTreeMap<IpNet, Arc<str>>,
    part: Part,
    total: Cells,
    /// What shows it meanwhile, and when it was told last.
    live: Option<(Live, Instant)>,
    /// Where that is shown.
    page: Option<SocketAddr>,
    /// Began, by a clock that does not step, and since 1970 (UTC).
    began: (Instant, Duration),
    dumped: Option<Instant>,
    observed: Observed,
}

/// What was observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// For how long, seconds.
    pub seconds: f64,
    /// Sockets that the kernel told of.
    pub reports: u64,
    /// Of these, sockets without a connection: those that listened, or were never
    /// connected.
    pub without_connection: u64,
    /// Of these, connections with the page of this observer, which are left out.
    pub of_page: u64,
    /// Reports that the kernel had no room for, as it counts them.
    pub lost: u64,
    /// Rows that were kept.
    pub rows: u64,
    /// Connections by kind, ascending.
    pub cells: Vec<(Kind, Cell)>,
    /// Files.
    pub written: Written,
}

impl Observed {
    /// Connections that ended and were heard of.
    pub fn connections(&self) -> u64 {
        self.reports - self.without_connection - self.of_page
    }

    /// Lost reports, as a part of all.
    pub fn lost_ratio(&self) -> f64 {
        let all = (self.reports + self.lost).max(1);
        self.lost as f64 / all as f64
    }

    /// Whether so little was lost that the figures speak for the host.
    pub fn is_valid(&self) -> bool {
        self.lost_ratio() <= LOST_MAX
    }
}

impl Observer {
    /// Begins to listen, in the network namespace of the calling thread, which must be
    /// the one that calls [`Observer::step`].
    ///
    /// # Errors
    ///
    /// Where the host has no sock_diag, or the directory cannot be made.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn begin(settings: Settings) -> Result<Observer, LiveError> {
        let closed = ClosedSockets::listen()?;
        let files = Files::new(&settings.directory, settings.bytes_max)?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Observer {
            closed,
            settings,
            files,
            living: Default::default(),
            controllers: Vec::new(),
            prefixes: BTreeMap::new(),
            part: part_of(unix),
            total: Cells::default(),
            live: None,
            page: None,
            began: (Instant::now(), unix),
            dumped: None,
            observed: Observed::default(),
        })
    }

    /// Bytes of reports that may wait in the kernel.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn buffer_bytes(&self) -> Result<usize, LiveError> {
        let call = |error| HostError::call("ask for the size of a buffer", error);
        Ok(self.closed.buffer_bytes().map_err(call)?)
    }

    /// Shows what is heard from now on, after what is shown already. Connections to `page`,
    /// where it is shown, are left out.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn show_on(&mut self, live: Live, page: SocketAddr) {
        live.now(self.part.clone(), self.counts());
        self.live = Some((live, Instant::now()));
        self.page = Some(page);
    }

    /// Waits a fifth of a second at most, and takes what has ended meanwhile.
    ///
    /// # Errors
    ///
    /// What the host says of reading, and of writing files; what was heard until then is
    /// kept by [`Observer::finish`].
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn step(&mut self) -> Result<(), LiveError> {
        if self.dumped.is_none_or(|at| at.elapsed() >= DUMP_INTERVAL) {
            self.dump()?;
            self.dumped = Some(Instant::now());
        }
        let mut rows = Vec::new();
        let epoch = self.files.epoch(self.now())?;
        let end_ns = nanos(self.now().saturating_sub(epoch));
        let Observer { closed, settings, living, prefixes, part, live, page, observed, .. } = self;
        let mut one = |socket: TcpSocket<'_>| {
            let seen = living.iter().find_map(|dump| dump.get(&socket.cookie));
            let controller = seen.cloned().unwrap_or_default();
            let Some(info) = socket.info.filter(|_| socket.remote.port() != 0) else {
                observed.without_connection += 1;
                return;
            };
            if page.is_some_and(|page| page == socket.local || page == socket.remote) {
                observed.of_page += 1;
                return;
            }
            let group = settings.groups.of(socket.remote.ip());
            let ended = heard(&info);
            part.minute.cells.add(group.clone(), controller.clone(), &ended);
            if is_sampled(socket.cookie, settings.sample_one_of) {
                if live.is_some()
                    && let Some(bin) = heat_bin(&ended)
                {
                    *part.heat.entry(bin).or_default() += settings.sample_one_of;
                }
                let prefix = text_of(prefixes, socket.remote.ip(), settings.keep_addresses);
                let weight = settings.sample_one_of as f64;
                rows.push(row(
                    &socket,
                    &info,
                    Beside { end_ns, controller, group, prefix, weight },
                ));
            }
        };
        let call = |error| HostError::call("read what the kernel tells of connections", error);
        let news = closed.hear(PATIENCE, BATCH, &mut one).map_err(call)?;
        observed.reports += news.reports;
        observed.lost += news.dropped;
        part.minute.lost += news.dropped;
        part.rows += rows.len() as u64;
        observed.rows += rows.len() as u64;
        for row in rows {
            self.files.push(row)?;
        }
        self.turn_minute();
        self.show();
        self.files.turn(self.now())?;
        if news.reports > 0 && news.reports < BATCH {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Takes what is left, puts all files in place and tells what was observed.
    ///
    /// # Errors
    ///
    /// As [`Observer::step`].
    pub fn finish(mut self) -> Result<Observed, LiveError> {
        let now = self.now();
        let minute = std::mem::take(&mut self.part).minute;
        self.total.merge(&minute.cells);
        self.files.minute(minute);
        let mut observed = self.observed;
        observed.seconds = (now - self.began.1).as_secs_f64();
        observed.cells = self.total.0.into_iter().collect();
        observed.written = self.files.finish(now)?;
        Ok(observed)
    }

    /// Now, since 1970 (UTC), however the host's clock was set meanwhile.
    fn now(&self) -> Duration {
        self.began.1 + self.began.0.elapsed()
    }

    fn turn_minute(&mut self) {
        let next = part_of(self.now());
        if next.minute.unix_ns != self.part.minute.unix_ns {
            let past = std::mem::replace(&mut self.part, next);
            self.total.merge(&past.minute.cells);
            if let Some((live, _)) = &self.live {
                live.ended(&past, &self.total);
            }
            self.files.minute(past.minute);
        }
    }

    /// Shows what there is, once a second.
    fn show(&mut self) {
        let counts = self.counts();
        let Some((live, shown)) = &mut self.live else { return };
        if shown.elapsed() >= SHOWN_INTERVAL {
            live.now(self.part.clone(), counts);
            *shown += shown.elapsed();
        }
    }

    fn counts(&self) -> Counts {
        let Observed { reports, lost, .. } = self.observed;
        Counts { running: self.began.0.elapsed(), reports, lost }
    }

    /// Notes the controller of every connection that lives: its end will not tell it.
    fn dump(&mut self) -> Result<(), LiveError> {
        let mut living = BTreeMap::new();
        let controllers = &mut self.controllers;
        each_connection(|socket| {
            let Some(name) = socket.controller else { return };
            let known = controllers.iter().find(|known| &***known == name).cloned();
            let known = known.unwrap_or_else(|| {
                controllers.push(name.into());
                name.into()
            });
            living.insert(socket.cookie, known);
        })?;
        self.living.swap(0, 1);
        self.living[0] = living;
        Ok(())
    }
}

/// The text of a prefix, made once for many.
fn text_of(prefixes: &mut BTreeMap<IpNet, Arc<str>>, address: IpAddr, whole: bool) -> Arc<str> {
    let prefix = kept(address, whole);
    if let Some(text) = prefixes.get(&prefix) {
        return text.clone();
    }
    if prefixes.len() >= PREFIXES_MAX {
        prefixes.clear();
    }
    let text: Arc<str> = prefix.to_string().into();
    prefixes.insert(prefix, text.clone());
    text
}

/// Whether a connection is one of those that have a row: by a hash of its cookie (the
/// finaliser of SplitMix64), for cookies are handed out by processor and in order.
fn is_sampled(cookie: u64, one_of: u64) -> bool {
    let mut hash = cookie.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ hash >> 31).is_multiple_of(one_of.max(1))
}

/// The minute that a time since 1970 (UTC) is in, with nothing in it yet.
fn part_of(since_1970: Duration) -> Part {
    let minute = Duration::from_secs(since_1970.as_secs() / MINUTE.as_secs() * MINUTE.as_secs());
    let minute = Minute { unix_ns: nanos(minute), ..Minute::default() };
    Part { minute, ..Part::default() }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of consecutive numbers one in a hundred, within four standard deviations.
    #[test]
    fn samples_are_spread() {
        let kept = (1..=100_000).filter(|cookie| is_sampled(*cookie, 100)).count() as f64;
        assert!((kept - 1000.0).abs() < 4.0 * (1000.0f64 * 0.99).sqrt(), "{kept}");
        assert!((0..1000).all(|cookie| is_sampled(cookie, 1)));
    }
}
