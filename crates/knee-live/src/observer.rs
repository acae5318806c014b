//! Receives the kernel's reports of ended connections and records them.

use crate::assigned::{Assignments, Established};
use crate::cells::{Cell, Cells, Kind, LOST_MAX};
use crate::files::{Files, Written};
use crate::group::{Groups, kept};
use crate::listed::Lists;
use crate::live::{Counts, Live, Part};
use crate::minutes::Minute;
use crate::report::heat_bin;
use crate::row::{ConnectionContext, heard, row};
use crate::source::{Reports, Source};
use crate::{LiveError, Queue};
use ipnet::IpNet;
use knee_host::{HostError, TcpSocket, since_boot};
use knee_steer::Assigned;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum wait for a report before the stop condition is checked.
const NEWS_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval of lists of open connections.
const LIST_INTERVAL: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
/// Interval at which the page is updated.
const SHOWN_INTERVAL: Duration = Duration::from_secs(1);
/// Limit on the cached prefix texts.
const PREFIXES_MAX: usize = 4096;

/// Settings of an observer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Source of the reports.
    pub reports: Reports,
    /// Output directory.
    pub directory: PathBuf,
    /// Groups of remote prefixes.
    pub groups: Groups,
    /// One of this many connections gets a row, at least 1; aggregates include all.
    pub sample_one_of: u64,
    /// File in which a steering process of this host publishes who is in which arm.
    pub assignment: Option<PathBuf>,
    /// Whether to keep whole addresses rather than prefixes of 24 and 48 bits.
    pub keep_addresses: bool,
    /// Limit on the total size of the files; beyond it the oldest are removed.
    pub bytes_max: u64,
}

/// Observer of this host's connections.
pub struct Observer {
    source: Source,
    settings: Settings,
    files: Files,
    /// When no report was waiting, nanoseconds since the boot: later ones were written after it.
    emptied_ns: u64,
    lists: Lists,
    controllers: Vec<Arc<str>>,
    /// Reports that were read but not recorded yet, with the controller if known.
    heard: Vec<(TcpSocket<'static>, Option<Arc<str>>)>,
    prefixes: BTreeMap<IpNet, Arc<str>>,
    part: Part,
    /// Since when the current minute is observed, since 1970 (UTC).
    part_from: Duration,
    total: Cells,
    /// The page's state, and the time of its last update.
    live: Option<(Live, Instant)>,
    /// Address of the page.
    page: Option<SocketAddr>,
    /// When it began.
    began: Instant,
    /// When the current file began, on a monotonic clock and since 1970 (UTC).
    clock: (Instant, Duration),
    /// The host's clock: time since 1970 (UTC). It may be set at any time.
    host_clock: fn() -> Duration,
    /// When the open connections were last listed; `None`: they are to be listed now.
    listed: Option<Instant>,
    assignments: Option<Assignments>,
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
    /// Connections that were open at the start and whose end is not reported: BPF programs need
    /// Linux 6.13 for it.
    pub unreported: u64,
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
        let emptied_ns = boot_ns()?;
        let source = Source::open(settings.reports)?;
        let files = Files::new(&settings.directory, settings.bytes_max)?;
        let observed = Observed { unreported: source.unreported(), ..Observed::default() };
        let assignments = settings.assignment.as_deref().map(Assignments::new);
        let unix = since_1970();
        Ok(Observer {
            source,
            settings,
            files,
            emptied_ns,
            lists: Lists::default(),
            controllers: Vec::new(),
            heard: Vec::new(),
            prefixes: BTreeMap::new(),
            part: part_of(unix),
            part_from: unix,
            total: Cells::default(),
            live: None,
            page: None,
            began: Instant::now(),
            clock: (Instant::now(), unix),
            host_clock: since_1970,
            listed: None,
            assignments,
            observed,
        })
    }

    /// Size of the kernel's buffer for reports, bytes.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn buffer_bytes(&self) -> Result<usize, LiveError> {
        self.source.buffer_bytes()
    }

    /// Updates `live` from now on, after its present contents. Connections to the address `page`
    /// are excluded.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn show_on(&mut self, live: Live, page: SocketAddr) {
        live.now(self.part_so_far(), self.counts());
        self.live = Some((live, Instant::now()));
        self.page = Some(page);
    }

    /// Adds completed files to a queue from now on; those that are stored are removed before others.
    pub fn store(&mut self, queue: Queue) {
        self.files.store(queue);
    }

    /// Waits at most 0.2 s and records the connections that ended meanwhile.
    ///
    /// # Errors
    ///
    /// Errors of reading and of writing files; [`Observer::finish`] keeps the records so far.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn step(&mut self) -> Result<(), LiveError> {
        self.list_if_due()?;
        let (_, pause) = self.record_news(NEWS_TIMEOUT)?;
        thread::sleep(pause);
        Ok(())
    }

    /// Records what is reported already.
    fn record_all(&mut self) -> Result<(), LiveError> {
        loop {
            let (reports, pause) = self.record_news(Duration::ZERO)?;
            // A full batch is followed by the next without a pause.
            if reports == 0 || pause > Duration::ZERO {
                return Ok(());
            }
        }
    }

    /// Lists the open connections if it is time to.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    fn list_if_due(&mut self) -> Result<(), LiveError> {
        let is_due = self.listed.is_none_or(|at| at.elapsed() >= LIST_INTERVAL);
        if is_due && self.source.lacks_starts() {
            // They may be of connections on the list that is replaced.
            self.record_all()?;
            let Observer { lists, controllers, .. } = self;
            lists.renew(|name| interned(controllers, name))?;
            self.listed = Some(Instant::now());
        }
        Ok(())
    }

    /// Waits up to `patience` and records the connections that ended meanwhile. Returns the number
    /// of reports, and how long to pause before the next reading.
    fn record_news(&mut self, patience: Duration) -> Result<(u64, Duration), LiveError> {
        let begun_ns = boot_ns()?;
        let Observer { source, heard, controllers, .. } = self;
        let (news, pause) = source.hear(patience, |socket| {
            let controller = socket.controller.map(|name| interned(controllers, name));
            heard.push((socket.without_controller(), controller));
        })?;
        let now_ns = boot_ns()?;
        // After reading: what is still in force was, until all these connections had ended.
        if let Some(assignments) = &mut self.assignments
            && assignments.look(now_ns)?
        {
            self.listed = None;
        }
        self.observed.reports += news.reports;
        self.observed.lost += news.dropped;
        self.part.minute.lost += news.dropped;
        if !self.files.is_begun() {
            self.read_clock();
        }
        let epoch = self.files.epoch(self.now())?;
        let end_ns = nanos(self.now().saturating_sub(epoch));
        let mut heard = std::mem::take(&mut self.heard);
        for (socket, controller) in heard.drain(..) {
            self.record(&socket, controller, now_ns, end_ns)?;
        }
        self.heard = heard;
        if news.emptied {
            self.emptied_ns = begun_ns;
        }
        self.turn_minute();
        self.show();
        self.files.turn(self.now())?;
        Ok((news.reports, pause))
    }

    /// Records a connection that ended. `now_ns` is the time since the boot, and `end_ns` the same
    /// since the epoch of the file.
    fn record(
        &mut self,
        socket: &TcpSocket<'_>,
        controller: Option<Arc<str>>,
        now_ns: u64,
        end_ns: u64,
    ) -> Result<(), LiveError> {
        let Observer { settings, lists, emptied_ns, part, observed, .. } = self;
        let Some(info) = socket.info.filter(|_| socket.remote.port() != 0) else {
            observed.without_connection += 1;
            return Ok(());
        };
        if self.page.is_some_and(|page| page == socket.local || page == socket.remote) {
            observed.of_page += 1;
            return Ok(());
        }
        let listed = lists.get(socket.cookie);
        let controller = controller.or_else(|| listed.map(|listed| listed.controller.clone()));
        let controller = controller.unwrap_or_default();
        let assigned = self.assignments.as_ref().and_then(|assignments| {
            let established = match (socket.established.map(nanos), listed) {
                (Some(at), _) => Established { not_before_ns: at, not_after_ns: at },
                (None, Some(listed)) => listed.established,
                (None, None) => lists.unlisted(&info, *emptied_ns, now_ns),
            };
            assignments.of(socket.local.port(), socket.remote.ip(), established)
        });
        let (group, arm, block) = match assigned {
            Some(Assigned { group, arm, block }) => (group, arm, block),
            None => (settings.groups.of(socket.remote.ip()), Arc::default(), None),
        };
        let ended = heard(&info);
        part.minute.cells.add(group.clone(), controller.clone(), arm.clone(), &ended);
        if !is_sampled(socket.cookie, settings.sample_one_of) {
            return Ok(());
        }
        if self.live.is_some()
            && let Some(bin) = heat_bin(&ended)
        {
            *part.heat.entry(bin).or_default() += settings.sample_one_of;
        }
        part.rows += 1;
        observed.rows += 1;
        // A time since the boot, as one since the epoch of the file. There is none before.
        let of_file = |at: Duration| {
            end_ns.checked_add_signed(nanos(at).cast_signed() - now_ns.cast_signed())
        };
        let beside = ConnectionContext {
            start_ns: socket.opened.and_then(of_file),
            end_ns: socket.ended.and_then(of_file).unwrap_or(end_ns),
            controller,
            group,
            block,
            arm,
            prefix: text_of(&mut self.prefixes, socket.remote.ip(), settings.keep_addresses),
            weight: settings.sample_one_of as f64,
        };
        self.files.push(&row(socket, &info, beside))
    }

    /// Reads the remaining reports, completes all files and returns the summary.
    ///
    /// # Errors
    ///
    /// See [`Observer::step`].
    pub fn finish(mut self) -> Result<Observed, LiveError> {
        let read = self.record_all();
        let now = self.now();
        let minute = self.part_so_far().minute;
        self.total.merge(&minute.cells);
        self.files.minute(minute);
        let mut observed = self.observed;
        observed.seconds = self.began.elapsed().as_secs_f64();
        observed.cells = self.total.0.into_iter().collect();
        observed.written = self.files.finish(now)?;
        read.map(|()| observed)
    }

    /// Current time since 1970 (UTC), unaffected by changes of the host's clock within a file.
    fn now(&self) -> Duration {
        self.clock.1 + self.clock.0.elapsed()
    }

    /// Follows the host's clock, which may have been set since the last file began, or been wrong
    /// until now; the monotonic one does not count the time in which the host is suspended.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    fn read_clock(&mut self) {
        self.clock = (Instant::now(), (self.host_clock)());
    }

    fn turn_minute(&mut self) {
        let next = part_of(self.now());
        if next.minute.unix_ns != self.part.minute.unix_ns {
            let past = self.part_so_far();
            self.part = next;
            // The next minute begins where this one ends, unless the clock was set.
            let ends = Duration::from_nanos(past.minute.unix_ns) + MINUTE;
            let goes_on = ends == Duration::from_nanos(self.part.minute.unix_ns);
            self.part_from = if goes_on { ends } else { self.now() };
            self.total.merge(&past.minute.cells);
            if let Some((live, _)) = &self.live {
                live.ended(&past, &self.total);
            }
            self.files.minute(past.minute);
        }
    }

    /// Updates the page once a second.
    fn show(&mut self) {
        let is_due = |(_, shown): &&(Live, Instant)| shown.elapsed() >= SHOWN_INTERVAL;
        if self.live.as_ref().filter(is_due).is_none() {
            return;
        }
        let (so_far, counts) = (self.part_so_far(), self.counts());
        if let Some((live, shown)) = &mut self.live {
            live.now(so_far, counts);
            *shown += shown.elapsed();
        }
    }

    /// The current minute, with the part of it that has been observed.
    fn part_so_far(&self) -> Part {
        let mut part = self.part.clone();
        let ends = Duration::from_nanos(part.minute.unix_ns) + MINUTE;
        let observed = self.now().min(ends).saturating_sub(self.part_from).min(MINUTE);
        part.minute.observed_ns = nanos(observed).max(1);
        part
    }

    fn counts(&self) -> Counts {
        let Observed { reports, lost, .. } = self.observed;
        Counts { running: self.began.elapsed(), reports, lost }
    }
}

/// Time of the host's clock.
#[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Name of a controller, of which there are few.
pub(crate) fn interned(known: &mut Vec<Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = known.iter().find(|known| &***known == name) {
        return known.clone();
    }
    let new: Arc<str> = name.into();
    known.push(new.clone());
    new
}

/// Time since the boot, nanoseconds.
pub(crate) fn boot_ns() -> Result<u64, LiveError> {
    Ok(nanos(since_boot().map_err(|error| HostError::call("read the clock", error))?))
}

/// Text of a prefix, cached.
pub(crate) fn text_of(
    prefixes: &mut BTreeMap<IpNet, Arc<str>>,
    address: IpAddr,
    whole: bool,
) -> Arc<str> {
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

pub(crate) fn nanos(duration: Duration) -> u64 {
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

    /// The host's clock is set by a day while a file is written: the file goes on by the old time, and
    /// the next one has the new.
    #[test]
    fn each_file_begins_by_the_host_s_clock() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            reports: Reports::SockDiag,
            directory: folder.path().to_path_buf(),
            groups: Groups::default(),
            sample_one_of: 1,
            assignment: None,
            keep_addresses: false,
            bytes_max: u64::MAX,
        };
        const DAY: Duration = Duration::from_secs(86_400);
        let mut observer = Observer::begin(settings).unwrap();
        observer.host_clock = || DAY * 10;
        observer.step().unwrap();
        observer.host_clock = || DAY * 11;
        observer.step().unwrap();
        let now = observer.now();
        assert!((DAY * 10..DAY * 11).contains(&now), "{now:?}");
        observer.files.close(now).unwrap();
        observer.step().unwrap();
        let written = observer.finish().unwrap().written.files;
        let names = written.iter().map(|file| file.file_name().unwrap().to_string_lossy());
        let names: Vec<String> =
            names.filter(|name| name.starts_with("connections")).map(String::from).collect();
        assert!(names[0].starts_with("connections-19700111T000000."), "{names:?}");
        assert!(names[1].starts_with("connections-19700112T000000."), "{names:?}");
        assert_eq!(names.len(), 2);
    }
}
