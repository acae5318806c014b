//! Caps of links: counts the traffic of each since its last reset, and keeps the counts on disk.
//!
//! The counts cover all packets of Knee in both directions, with IP and UDP headers, as a provider
//! counts them; the traffic of other programs is not seen. The file is written once a second while
//! there is traffic, so a host that is switched off loses the count of one second.

use crate::config::LinkConfig;
use chrono::{Datelike, Local, NaiveDate};
use knee_scenario::read_file;
use knee_units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Interval of counting.
pub const STEP: Duration = Duration::from_millis(100);
/// The traffic of this many steps may still be in flight when a link is stopped.
const UNDER_WAY: usize = 10;
/// Minimum interval between writes of the file.
const WRITTEN: Duration = Duration::from_secs(1);

/// Why the file of counts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QuotaError {
    /// The file cannot be read or written.
    #[error("cannot {what} {}, which counts for the caps of links: {source}", path.display())]
    Io {
        /// `read` or `write`.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file's contents are not counts.
    #[error(
        "{} does not contain the counts of links: {problem}; remove it to start from zero",
        path.display()
    )]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Traffic of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Count {
    /// Day of the reset from which it is counted.
    since: NaiveDate,
    bytes: u64,
}

/// Cap of a link.
#[derive(Debug)]
struct Cap {
    bytes: u64,
    /// Day of the month on which the count restarts.
    resets: u32,
    /// Bytes of the most recent steps.
    steps: VecDeque<u64>,
    /// The engine's count at the last step.
    before: u64,
    /// Start of the month in which the cap was reached.
    reached: Option<NaiveDate>,
}

/// Status of a cap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapStatus {
    /// Name of the interface.
    pub name: String,
    /// Bytes used since `since`.
    pub used_bytes: u64,
    /// Bytes allowed.
    pub cap_bytes: u64,
    /// Day of the last reset.
    pub since: NaiveDate,
    /// Day of the next reset.
    pub resets: NaiveDate,
}

/// Caps of a client's links, by interface.
#[derive(Debug)]
pub struct Quotas {
    caps: BTreeMap<String, Cap>,
    counts: BTreeMap<String, Count>,
    path: PathBuf,
    /// When the file is to be written, or `None` if nothing changed.
    unsaved: Option<Instant>,
    /// Whether the last write failed, which has been reported.
    is_told: bool,
}

/// Counts that are to be written.
#[derive(Debug)]
pub struct Unsaved {
    path: PathBuf,
    counts: BTreeMap<String, Count>,
}

impl Quotas {
    /// Makes the caps of these links, with the counts from the file.
    ///
    /// # Errors
    /// The file exists and cannot be used.
    pub fn new(links: &[LinkConfig], path: PathBuf) -> Result<Quotas, QuotaError> {
        let cap = |link: &LinkConfig| {
            let (steps, before, reached) = (VecDeque::new(), 0, None);
            let cap =
                Cap { bytes: link.cap?.get(), resets: link.resets.into(), steps, before, reached };
            Some((link.interface.clone(), cap))
        };
        let caps: BTreeMap<String, Cap> = links.iter().filter_map(cap).collect();
        let counts = if caps.is_empty() { BTreeMap::new() } else { read(&path)? };
        Ok(Quotas { caps, counts, path, unsaved: None, is_told: false })
    }

    /// Returns whether no link has a cap.
    pub fn is_empty(&self) -> bool {
        self.caps.is_empty()
    }

    /// Counts the bytes that an interface has carried since the start of the program.
    pub fn count(&mut self, interface: &str, carried: u64) {
        let Some(cap) = self.caps.get_mut(interface) else { return };
        let bytes = carried.saturating_sub(cap.before);
        cap.before = carried;
        if cap.steps.len() == UNDER_WAY {
            cap.steps.pop_front();
        }
        cap.steps.push_back(bytes);
        let since = last_reset(today(), cap.resets);
        let count = self.counts.entry(interface.to_owned()).or_insert(Count { since, bytes: 0 });
        // Setting the clock back does not start a new month.
        if since > count.since {
            *count = Count { since, bytes: 0 };
        }
        count.bytes += bytes;
        if count.bytes + cap.steps.iter().sum::<u64>() >= cap.bytes {
            cap.reached = Some(count.since);
        }
        if bytes > 0 {
            self.unsaved.get_or_insert_with(|| Instant::now() + WRITTEN);
        }
    }

    /// Returns why an interface may carry nothing more, or `None` if it may. It stops short of its
    /// cap by the amount that may be in flight, and stays stopped until the next reset.
    pub fn spent(&self, interface: &str) -> Option<String> {
        let cap = self.caps.get(interface)?;
        let count = self.counts.get(interface)?;
        let reset = next_reset(today(), cap.resets);
        let is_new = count.since < last_reset(today(), cap.resets);
        let is_reached = cap.reached == Some(count.since) || count.bytes >= cap.bytes;
        (is_reached && !is_new).then(|| {
            let (used, all) = (Bytes::new(rounded(count.bytes)), Bytes::new(cap.bytes));
            format!("{used} of its cap of {all} are used: it is reset on {reset}")
        })
    }

    /// Returns what is to be written to the file, if it is due.
    pub fn take_unsaved(&mut self, at_once: bool) -> Option<Unsaved> {
        let is_due = self.unsaved.is_some_and(|due| at_once || due <= Instant::now());
        is_due.then(|| {
            self.unsaved = None;
            Unsaved { path: self.path.clone(), counts: self.counts.clone() }
        })
    }

    /// Takes the result of [`Unsaved::write`].
    ///
    /// # Errors
    /// The file could not be written; reported only the first time.
    pub fn on_written(&mut self, result: Result<(), QuotaError>) -> Result<(), QuotaError> {
        let was_told = std::mem::replace(&mut self.is_told, result.is_err());
        if was_told { Ok(()) } else { result }
    }

    /// Returns the status of all caps.
    pub fn status(&self) -> Vec<CapStatus> {
        let today = today();
        let of = |(name, cap): (&String, &Cap)| {
            let since = last_reset(today, cap.resets);
            let count = self.counts.get(name).filter(|count| count.since >= since);
            CapStatus {
                name: name.clone(),
                used_bytes: count.map_or(0, |count| count.bytes),
                cap_bytes: cap.bytes,
                since,
                resets: next_reset(today, cap.resets),
            }
        };
        self.caps.iter().map(of).collect()
    }
}

/// Rounds down to three digits, for display.
fn rounded(bytes: u64) -> u64 {
    let step = 10_u64.pow(bytes.checked_ilog10().unwrap_or(0).saturating_sub(2));
    bytes / step * step
}

fn today() -> NaiveDate {
    Local::now().date_naive()
}

/// Returns that day of the month, or its last day if the month is shorter.
fn day_in(year: i32, month: u32, day: u32) -> NaiveDate {
    let within = |day| NaiveDate::from_ymd_opt(year, month, day);
    (28..=day).rev().find_map(within).or_else(|| within(day)).unwrap_or_default()
}

/// Returns the most recent reset, which may be today.
pub fn last_reset(today: NaiveDate, day: u32) -> NaiveDate {
    let this = day_in(today.year(), today.month(), day);
    if this <= today {
        return this;
    }
    match today.month() {
        1 => day_in(today.year() - 1, 12, day),
        month => day_in(today.year(), month - 1, day),
    }
}

/// Returns the first reset after today.
pub fn next_reset(today: NaiveDate, day: u32) -> NaiveDate {
    let this = day_in(today.year(), today.month(), day);
    if this > today {
        return this;
    }
    match today.month() {
        12 => day_in(today.year() + 1, 1, day),
        month => day_in(today.year(), month + 1, day),
    }
}

/// Returns the default path of the counts.
pub fn state_path() -> PathBuf {
    state_folder().join("bond-caps.json")
}

/// Returns the folder for what outlives a process: that of the service, or of the user.
pub fn state_folder() -> PathBuf {
    let folder = |name| std::env::var_os(name).map(PathBuf::from);
    folder("STATE_DIRECTORY")
        .or_else(|| Some(folder("XDG_STATE_HOME")?.join("knee")))
        .or_else(|| Some(folder("HOME")?.join(".local/state/knee")))
        .unwrap_or_else(|| PathBuf::from("/var/lib/knee"))
}

/// Largest file of counts: about 100 bytes for each client.
const COUNTS_BYTES_MAX: u64 = 16 << 20;

fn read(path: &Path) -> Result<BTreeMap<String, Count>, QuotaError> {
    match read_file(path, COUNTS_BYTES_MAX) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| QuotaError::Damaged {
            path: path.to_owned(),
            problem: error.to_string(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(source) => Err(QuotaError::Io { what: "read", path: path.to_owned(), source }),
    }
}

impl Unsaved {
    /// Writes the counts so that a reader finds either the old or the new ones, even after a crash.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self) -> Result<(), QuotaError> {
        let Unsaved { path, counts } = self;
        let beside = path.with_extension("new");
        let attempt = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::create(&beside)?;
            file.write_all(&serde_json::to_vec(counts)?)?;
            file.sync_all()?;
            fs::rename(&beside, path)
        };
        attempt().map_err(|source| QuotaError::Io { what: "write", path: path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::{last_reset, next_reset};
    use chrono::NaiveDate;

    fn day(year: i32, month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(year, month, day).unwrap()
    }

    #[test]
    fn a_reset_on_the_day_itself_and_around_it() {
        assert_eq!(last_reset(day(2026, 11, 5), 5), day(2026, 11, 5));
        assert_eq!(next_reset(day(2026, 11, 5), 5), day(2026, 12, 5));
        assert_eq!(last_reset(day(2026, 11, 4), 5), day(2026, 10, 5));
        assert_eq!(next_reset(day(2026, 11, 4), 5), day(2026, 11, 5));
        assert_eq!(last_reset(day(2026, 1, 4), 5), day(2025, 12, 5));
        assert_eq!(next_reset(day(2026, 12, 31), 5), day(2027, 1, 5));
    }

    #[test]
    fn a_short_month_resets_on_its_last_day() {
        assert_eq!(last_reset(day(2026, 2, 28), 31), day(2026, 2, 28));
        assert_eq!(last_reset(day(2028, 2, 28), 31), day(2028, 1, 31));
        assert_eq!(next_reset(day(2028, 2, 28), 30), day(2028, 2, 29));
        assert_eq!(next_reset(day(2026, 2, 28), 31), day(2026, 3, 31));
    }

    /// For every reset day, each day lies between the last reset and the next.
    #[test]
    fn today_is_between_the_resets() {
        for today in day(2027, 1, 1).iter_days().take(1000) {
            for reset in 1..=31 {
                let (last, next) = (last_reset(today, reset), next_reset(today, reset));
                assert!(last <= today && today < next, "{last} {today} {next}");
                assert!((28..=31).contains(&(next - last).num_days()), "{last} {next}");
            }
        }
    }
}
