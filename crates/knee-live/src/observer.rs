//! Receives the kernel's reports of ended connections and records them.

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

/// Maximum wait for a report before the stop condition is checked.
const PATIENCE: Duration = Duration::from_millis(200);
/// Pause between two readings, to batch reports; the smallest permitted buffer, 208 KiB, holds
/// three times as many at 20,000 reports per second.
const PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of reports per reading.
const BATCH: u64 = 4096;
/// Interval of dumps of live connections.
const DUMP_INTERVAL: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
/// Interval at which the page is updated.
const SHOWN_INTERVAL: Duration = Duration::from_secs(1);
/// Limit on the cached prefix texts.
const PREFIXES_MAX: usize = 4096;

/// Settings of an observer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Output directory.
    pub directory: PathBuf,
    /// Groups of remote prefixes.
    pub groups: Groups,
    /// One of this many connections gets a row, at least 1; aggregates include all.
    pub sample_one_of: u64,
    /// Whether to keep whole addresses rather than prefixes of 24 and 48 bits.
    pub keep_addresses: bool,
    /// Limit on the total size of the files; beyond it the oldest are removed.
    pub bytes_max: u64,
}

/// Observer of this host's connections.
pub struct Observer {
    closed: ClosedSockets,
    settings: Settings,
    files: Files,
    /// Controllers of the connections in the last two dumps, by cookie: a report may have been
    /// queued during a dump.
    living: [BTreeMap<u64, Arc<str>>; 2],
    controllers: Vec<Arc<str>>,
    prefixes: BTreeMap<IpNet, Arc<str>>,
    part: Part,
    total: Cells,
    /// The page's state, and the time of its last update.
    live: Option<(Live, Instant)>,
    /// Address of the page.
    page: Option<SocketAddr>,
    /// Start, on a monotonic clock and since 1970 (UTC).
    began: (Instant, Duration),
    dumped: Option<Instant>,
    observed: Observed,
}

/// Summary of an observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Duration, seconds.
    pub seconds: f64,
    /// Sockets reported by the kernel.
    pub reports: u64,
    /// Reported sockets without a connection: listening or never connected.
    pub without_connection: u64,
    /// Connections to this observer's own page, which are excluded.
    pub of_page: u64,
    /// Reports that the kernel counts as dropped.
    pub lost: u64,
    /// Number of rows kept.
    pub rows: u64,
    /// Connections by kind, in ascending order.
    pub cells: Vec<(Kind, Cell)>,
    /// Files written.
    pub written: Written,
}

impl Observed {
    /// Number of ended connections that were reported.
    pub fn connections(&self) -> u64 {
        self.reports - self.without_connection - self.of_page
    }

    /// Fraction of reports that were lost.
    pub fn lost_ratio(&self) -> f64 {
        let all = (self.reports + self.lost).max(1);
        self.lost as f64 / all as f64
    }

    /// Whether losses are low enough for the figures to represent the host.
    pub fn is_valid(&self) -> bool {
        self.lost_ratio() <= LOST_MAX
    }
}

impl Observer {
    /// Starts to listen in the network namespace of the calling thread, on which [`Observer::step`]
    /// must be called.
    ///
    /// # Errors
    ///
    /// If the host lacks sock_diag or the directory cannot be created.
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

    /// Size of the kernel's buffer for reports, bytes.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn buffer_bytes(&self) -> Result<usize, LiveError> {
        let call = |error| HostError::call("ask for the size of a buffer", error);
        Ok(self.closed.buffer_bytes().map_err(call)?)
    }

    /// Updates `live` from now on, after its present contents. Connections to the address `page`
    /// are excluded.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn show_on(&mut self, live: Live, page: SocketAddr) {
        live.now(self.part.clone(), self.counts());
        self.live = Some((live, Instant::now()));
        self.page = Some(page);
    }

    /// Waits at most 0.2 s and records the connections that ended meanwhile.
    ///
    /// # Errors
    ///
    /// Errors of reading and of writing files; [`Observer::finish`] keeps the records so far.
    pub fn step(&mut self) -> Result<(), LiveError> {
        let (_, pause) = self.read(PATIENCE)?;
        thread::sleep(pause);
        Ok(())
    }

    /// Reads what is reported already.
    fn read_all(&mut self) -> Result<(), LiveError> {
        loop {
            let (reports, pause) = self.read(Duration::ZERO)?;
            // A full batch is followed by the next without a pause.
            if reports == 0 || pause > Duration::ZERO {
                return Ok(());
            }
        }
    }

    /// Waits up to `patience` and records the connections that ended meanwhile. Returns the number
    /// of reports, and how long to pause before the next reading.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    fn read(&mut self, patience: Duration) -> Result<(u64, Duration), LiveError> {
        if self.dumped.is_none_or(|at| at.elapsed() >= DUMP_INTERVAL) {
            self.dump()?;
            self.dumped = Some(Instant::now());
        }
        let epoch = self.files.epoch(self.now())?;
        let end_ns = nanos(self.now().saturating_sub(epoch));
        let Observer {
            closed, settings, files, living, prefixes, part, live, page, observed, ..
        } = self;
        let mut written = Ok(());
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
                part.rows += 1;
                observed.rows += 1;
                let row = row(&socket, &info, Beside { end_ns, controller, group, prefix, weight });
                if written.is_ok() {
                    written = files.push(row);
                }
            }
        };
        let call = |error| HostError::call("read the kernel's reports of connections", error);
        let news = closed.hear(patience, BATCH, &mut one).map_err(call)?;
        observed.reports += news.reports;
        observed.lost += news.dropped;
        part.minute.lost += news.dropped;
        written?;
        self.turn_minute();
        self.show();
        self.files.turn(self.now())?;
        let is_batch = news.reports > 0 && news.reports < BATCH;
        Ok((news.reports, if is_batch { PAUSE } else { Duration::ZERO }))
    }

    /// Reads the remaining reports, completes all files and returns the summary.
    ///
    /// # Errors
    ///
    /// See [`Observer::step`].
    pub fn finish(mut self) -> Result<Observed, LiveError> {
        let read = self.read_all();
        let now = self.now();
        let minute = std::mem::take(&mut self.part).minute;
        self.total.merge(&minute.cells);
        self.files.minute(minute);
        let mut observed = self.observed;
        observed.seconds = (now - self.began.1).as_secs_f64();
        observed.cells = self.total.0.into_iter().collect();
        observed.written = self.files.finish(now)?;
        read.map(|()| observed)
    }

    /// Current time since 1970 (UTC), unaffected by changes of the host's clock.
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

    /// Updates the page once a second.
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

    /// Records the controllers of all live connections, since reports lack them.
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

/// Text of a prefix, cached.
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

/// Whether a connection gets a row: by a hash of its cookie (the finaliser of SplitMix64), since
/// cookies are assigned per CPU and in sequence.
fn is_sampled(cookie: u64, one_of: u64) -> bool {
    let mut hash = cookie.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ hash >> 31).is_multiple_of(one_of.max(1))
}

/// An empty minute that contains a time since 1970 (UTC).
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

    /// Of consecutive numbers, one in a hundred within four standard deviations.
    #[test]
    fn samples_are_spread() {
        let kept = (1..=100_000).filter(|cookie| is_sampled(*cookie, 100)).count() as f64;
        assert!((kept - 1000.0).abs() < 4.0 * (1000.0f64 * 0.99).sqrt(), "{kept}");
        assert!((0..1000).all(|cookie| is_sampled(cookie, 1)));
    }
}
