//! Files that rotate: each appears whole, and the oldest go when all are too large.

use crate::LiveError;
use crate::minutes::{self, Minute};
use knee_record::{ConnectionFile, ConnectionRecord, Error, rfc3339};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file is whole after this time, or at this size.
pub(crate) const FILE_TIME: Duration = Duration::from_secs(15 * 60);
const FILE_BYTES: u64 = 64 << 20;
pub(crate) const CONNECTIONS: &str = "connections-";
pub(crate) const MINUTES: &str = "minutes-";
pub(crate) const ENDING: &str = ".parquet";

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files in place, in the order in which they were written.
    pub files: Vec<PathBuf>,
    /// Files that had to go for newer ones.
    pub removed: u64,
}

pub(crate) struct Files {
    directory: PathBuf,
    /// All of them together; beyond it the oldest go.
    bytes_max: u64,
    open: Option<Open>,
    minutes: Vec<Minute>,
    written: Written,
}

struct Open {
    connections: ConnectionFile,
    /// The time in its name.
    name: String,
    since: Duration,
    epoch: Duration,
}

impl Files {
    pub fn new(directory: &Path, bytes_max: u64) -> Result<Files, LiveError> {
        let create = |source| Error::Io { action: "create", path: directory.to_path_buf(), source };
        fs::create_dir_all(directory).map_err(create)?;
        Ok(Files {
            directory: directory.to_path_buf(),
            bytes_max,
            open: None,
            minutes: Vec::new(),
            written: Written::default(),
        })
    }

    /// The epoch of the file that rows go to at `now`, both since 1970 (UTC).
    pub fn epoch(&mut self, now: Duration) -> Result<Duration, LiveError> {
        if let Some(open) = &self.open {
            return Ok(open.epoch);
        }
        let name = stamp(now);
        let path = self.directory.join(format!("{CONNECTIONS}{name}{ENDING}"));
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let connections = ConnectionFile::create(&path, "live", nanos)?;
        self.open = Some(Open { connections, name, since: now, epoch: now });
        Ok(now)
    }

    /// Keeps a row of the file that [`Files::epoch`] told.
    pub fn push(&mut self, row: ConnectionRecord) -> Result<(), LiveError> {
        if let Some(open) = &mut self.open {
            open.connections.push(row)?;
        }
        Ok(())
    }

    /// Keeps the aggregates of a minute.
    pub fn minute(&mut self, minute: Minute) {
        self.minutes.push(minute);
    }

    /// Ends the file under way where it is old or large enough.
    pub fn turn(&mut self, now: Duration) -> Result<(), LiveError> {
        let is_due = |open: &Open| {
            now.saturating_sub(open.since) >= FILE_TIME || open.connections.bytes() >= FILE_BYTES
        };
        if self.open.as_ref().is_some_and(is_due) { self.close(now) } else { Ok(()) }
    }

    /// Puts what is under way in place.
    pub fn close(&mut self, now: Duration) -> Result<(), LiveError> {
        let mut name = stamp(now);
        if let Some(open) = self.open.take() {
            name = open.name;
            let path = self.directory.join(format!("{CONNECTIONS}{name}{ENDING}"));
            open.connections.finish()?;
            self.written.files.push(path);
        }
        if !self.minutes.is_empty() {
            let path = self.directory.join(format!("{MINUTES}{name}{ENDING}"));
            minutes::write(&path, &self.minutes)?;
            self.minutes.clear();
            self.written.files.push(path);
        }
        self.forget()
    }

    /// Ends all, and tells what there is.
    pub fn finish(mut self, now: Duration) -> Result<Written, LiveError> {
        self.close(now)?;
        Ok(self.written)
    }

    /// Removes the oldest files until the rest has room; the newest stays.
    fn forget(&mut self) -> Result<(), LiveError> {
        let wrong = |source| Error::Io { action: "list", path: self.directory.clone(), source };
        let mut ours = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let stamp = [CONNECTIONS, MINUTES]
                .iter()
                .find_map(|start| name.strip_prefix(start)?.strip_suffix(ENDING));
            let Some(stamp) = stamp else { continue };
            // A link is no file of ours.
            let about = entry.metadata().map_err(wrong)?;
            if about.is_file() {
                ours.push((stamp.to_string(), about.len(), entry.path()));
            }
        }
        ours.sort();
        let mut bytes: u64 = ours.iter().map(|(_, bytes, _)| bytes).sum();
        let newest = ours.last().map(|(stamp, ..)| stamp.clone());
        for (stamp, len, path) in ours {
            if bytes <= self.bytes_max || Some(stamp) == newest {
                break;
            }
            fs::remove_file(&path).map_err(|source| Error::Io {
                action: "remove",
                path: path.clone(),
                source,
            })?;
            bytes -= len;
            self.written.removed += 1;
            self.written.files.retain(|file| *file != path);
        }
        Ok(())
    }
}

/// A time since 1970 (UTC) as it stands in names, to the millisecond: such names sort by
/// time.
pub(crate) fn stamp(since_1970: Duration) -> String {
    let second = rfc3339(since_1970.as_secs()).replace(['-', ':', 'Z'], "");
    format!("{second}.{:03}Z", since_1970.subsec_millis())
}
