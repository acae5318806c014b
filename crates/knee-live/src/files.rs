//! Rotating files: each appears when complete, and the oldest are removed beyond a total size.

use crate::minutes::{self, Minute};
use crate::{LiveError, Queue};
use knee_host::sysctl;
use knee_record::{ConnectionFile, ConnectionRecord, DEFAULT_CONTROLLER, Error, PART, rfc3339};
use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age and size at which a file is completed.
pub(crate) const FILE_TIME: Duration = Duration::from_secs(15 * 60);
pub(crate) const FILE_BYTES: u64 = 64 << 20;
pub(crate) const CONNECTIONS: &str = "connections-";
pub(crate) const MINUTES: &str = "minutes-";
pub(crate) const OPEN: &str = "open-";
pub(crate) const COUNTERS: &str = "counters-";
/// The beginnings of the names of all files.
const ALL: [&str; 4] = [CONNECTIONS, MINUTES, OPEN, COUNTERS];
pub(crate) const ENDING: &str = ".parquet";

/// Files written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Completed files, in the order of writing.
    pub files: Vec<PathBuf>,
    /// Number of files removed to make room.
    pub removed: u64,
}

/// The files of connections that ended.
pub(crate) struct Files {
    folder: Folder,
    open: Option<Open>,
    minutes: Vec<Minute>,
}

/// A folder of files, and the limit on their size.
pub(crate) struct Folder {
    directory: PathBuf,
    /// Limit on the total size; beyond it the oldest files are removed.
    bytes_max: u64,
    written: Written,
    /// The largest stamp of the files so far.
    largest: String,
    /// Stamps of files that are newer than the clock says, since it was set back, with the largest
    /// stamp of the files before them.
    set_back: BTreeMap<String, String>,
    /// Completed files are also stored elsewhere.
    queue: Option<Queue>,
    /// A lock on the folder, so that no other observer removes the file that this one is writing.
    _held: Option<Flock<File>>,
}

struct Open {
    connections: ConnectionFile,
    /// Time stamp in the name.
    name: String,
    since: Duration,
    epoch: Duration,
}

impl Folder {
    /// Creates the folder if it is not there yet.
    pub fn new(directory: &Path, bytes_max: u64) -> Result<Folder, LiveError> {
        let create = |source| Error::Io { action: "create", path: directory.to_path_buf(), source };
        fs::create_dir_all(directory).map_err(create)?;
        let held = hold(directory)?;
        let largest = listed(directory)?.pop().map(|file| file.stamp).unwrap_or_default();
        Ok(Folder {
            directory: directory.to_path_buf(),
            bytes_max,
            written: Written::default(),
            largest,
            set_back: BTreeMap::new(),
            queue: None,
            _held: held,
        })
    }

    /// The path of a file.
    pub fn path(&self, start: &str, stamp: &str) -> PathBuf {
        self.directory.join(format!("{start}{stamp}{ENDING}"))
    }

    /// Notes a completed file.
    pub fn completed(&mut self, stamp: &str, path: PathBuf) {
        if *stamp < *self.largest {
            self.set_back.insert(stamp.to_string(), self.largest.clone());
        }
        self.largest = stamp.max(&self.largest).to_string();
        if let Some(queue) = &self.queue {
            queue.add(stamp, path.clone());
        }
        self.written.files.push(path);
    }

    /// Removes the oldest files until the rest fits, first those that are stored elsewhere; keeps
    /// the newest and those with this stamp, which were just completed.
    pub fn forget(&mut self, completed: &str) -> Result<(), LiveError> {
        let mut files = listed(&self.directory)?;
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        self.set_back.retain(|stamp, _| files.iter().any(|file| file.stamp == *stamp));
        // What was written after the clock was set back is newer than what was before.
        files.sort_by_key(|file| {
            let after = self.set_back.get(&file.stamp).unwrap_or(&file.stamp);
            (after.clone(), self.set_back.contains_key(&file.stamp))
        });
        let newest = files.last().map(|file| file.stamp.clone());
        let is_stored =
            |file: &Listed| self.queue.as_ref().is_some_and(|queue| queue.is_stored(&file.path));
        // The sort is stable.
        files.sort_by_key(|file| !is_stored(file));
        for Listed { stamp, bytes: len, path } in files {
            if bytes <= self.bytes_max {
                break;
            }
            if stamp == completed || Some(&stamp) == newest.as_ref() {
                continue;
            }
            fs::remove_file(&path).map_err(|source| Error::Io {
                action: "remove",
                path: path.clone(),
                source,
            })?;
            bytes -= len;
            self.written.removed += 1;
            self.written.files.retain(|file| *file != path);
            if let Some(queue) = &self.queue {
                queue.removed(&stamp, &path);
            }
        }
        Ok(())
    }

    /// The files written.
    pub fn written(self) -> Written {
        self.written
    }
}

impl Files {
    pub fn new(directory: &Path, bytes_max: u64) -> Result<Files, LiveError> {
        let folder = Folder::new(directory, bytes_max)?;
        Ok(Files { folder, open: None, minutes: Vec::new() })
    }

    /// Adds completed files to a queue from now on, and removes files that are stored before
    /// others.
    pub fn store(&mut self, queue: Queue) {
        self.folder.queue = Some(queue);
    }

    /// Epoch of the current file at `now`, both since 1970 (UTC).
    pub fn epoch(&mut self, now: Duration) -> Result<Duration, LiveError> {
        if let Some(open) = &self.open {
            return Ok(open.epoch);
        }
        let name = stamp(now);
        let path = self.folder.path(CONNECTIONS, &name);
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let mut connections = ConnectionFile::create(&path, "live", nanos)?;
        // What connections have that no scan sees, unless a route or a program says otherwise.
        if let Ok(default) = sysctl("net.ipv4.tcp_congestion_control") {
            connections.note(DEFAULT_CONTROLLER, default);
        }
        self.open = Some(Open { connections, name, since: now, epoch: now });
        Ok(now)
    }

    /// Whether a file has begun and is not complete yet.
    pub fn is_begun(&self) -> bool {
        self.open.is_some()
    }

    /// Adds a row, relative to the epoch that [`Files::epoch`] returned.
    pub fn push(&mut self, row: &ConnectionRecord) -> Result<(), LiveError> {
        if let Some(open) = &mut self.open {
            open.connections.push(row)?;
        }
        Ok(())
    }

    /// Adds the aggregates of a minute.
    pub fn minute(&mut self, minute: Minute) {
        self.minutes.push(minute);
    }

    /// Completes the current file if it is old or large enough.
    pub fn turn(&mut self, now: Duration) -> Result<(), LiveError> {
        let is_due = |open: &Open| {
            now.saturating_sub(open.since) >= FILE_TIME || open.connections.bytes() >= FILE_BYTES
        };
        if self.open.as_ref().is_some_and(is_due) { self.close(now) } else { Ok(()) }
    }

    /// Completes the current files.
    pub fn close(&mut self, now: Duration) -> Result<(), LiveError> {
        let mut name = stamp(now);
        if let Some(open) = self.open.take() {
            name = open.name;
            let path = self.folder.path(CONNECTIONS, &name);
            open.connections.finish()?;
            self.folder.completed(&name, path);
        }
        if !self.minutes.is_empty() {
            let path = self.folder.path(MINUTES, &name);
            minutes::write(&path, &self.minutes)?;
            self.minutes.clear();
            self.folder.completed(&name, path);
        }
        self.folder.forget(&name)
    }

    /// Completes all files and returns the list.
    pub fn finish(mut self, now: Duration) -> Result<Written, LiveError> {
        self.close(now)?;
        Ok(self.folder.written())
    }
}

/// Locks the folder for observers, of which there may be several. The only one removes the unfinished
/// files of those that were killed, which the limit on the total size does not include. `None` if the
/// file system has no locks: then they remain.
fn hold(directory: &Path) -> Result<Option<Flock<File>>, Error> {
    let wrong = |source| Error::Io { action: "open", path: directory.to_path_buf(), source };
    let folder = File::open(directory).map_err(wrong)?;
    match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
        Ok(held) => {
            remove_unfinished(directory)?;
            Ok(held.relock(FlockArg::LockSharedNonblock).is_ok().then_some(held))
        }
        Err((folder, _)) => Ok(Flock::lock(folder, FlockArg::LockSharedNonblock).ok()),
    }
}

fn remove_unfinished(directory: &Path) -> Result<(), Error> {
    let wrong = |action| {
        let path = directory.to_path_buf();
        move |source| Error::Io { action, path, source }
    };
    for entry in fs::read_dir(directory).map_err(wrong("list"))? {
        let entry = entry.map_err(wrong("list"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = ALL.iter().any(|start| name.starts_with(start));
        let is_unfinished = name.strip_suffix(PART).is_some_and(|name| name.ends_with(ENDING));
        if is_ours && is_unfinished && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::remove_file(entry.path()).map_err(wrong("remove"))?;
        }
    }
    Ok(())
}

/// A completed file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listed {
    /// Time stamp in the name.
    pub stamp: String,
    pub bytes: u64,
    pub path: PathBuf,
}

/// Lists the completed files of a folder, the oldest first.
pub(crate) fn listed(directory: &Path) -> Result<Vec<Listed>, Error> {
    let wrong = |source| Error::Io { action: "list", path: directory.to_path_buf(), source };
    let mut ours = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let stamp = ALL.iter().find_map(|start| name.strip_prefix(start)?.strip_suffix(ENDING));
        let Some(stamp) = stamp else { continue };
        // Skips links, which are not Knee's.
        let about = entry.metadata().map_err(wrong)?;
        if about.is_file() {
            let stamp = stamp.to_string();
            ours.push(Listed { stamp, bytes: about.len(), path: entry.path() });
        }
    }
    ours.sort();
    Ok(ours)
}

/// A time since 1970 (UTC) as used in file names, in milliseconds; such names sort by time.
pub(crate) fn stamp(since_1970: Duration) -> String {
    let second = rfc3339(since_1970.as_secs()).replace(['-', ':', 'Z'], "");
    format!("{second}.{:03}Z", since_1970.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once the host's clock is set back, the new files have the smallest stamps: the oldest are
    /// removed nevertheless, also those of an observer before.
    #[test]
    fn the_newest_files_remain_if_the_clock_is_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let write = |files: &mut Files, minute: u64| {
            files.epoch(Duration::from_secs(60 * minute)).unwrap();
            files.close(Duration::from_secs(60 * minute + 30)).unwrap();
        };
        let mut before = Files::new(folder.path(), u64::MAX).unwrap();
        (1000..1003).for_each(|minute| write(&mut before, minute));
        drop(before);
        let there = || listed(folder.path()).unwrap();
        // There is room for four files, which all have the same size.
        let room = there()[0].bytes * 9 / 2;
        let mut files = Files::new(folder.path(), room).unwrap();
        for minute in [1003, 1004, 0, 1, 2] {
            write(&mut files, minute);
        }
        let stamps = |minutes: &[u64]| -> Vec<String> {
            minutes.iter().map(|minute| stamp(Duration::from_secs(60 * minute))).collect()
        };
        let names = || -> Vec<String> { there().into_iter().map(|file| file.stamp).collect() };
        assert_eq!(names(), stamps(&[0, 1, 2, 1004]));
        write(&mut files, 3);
        assert_eq!(names(), stamps(&[0, 1, 2, 3]));
        write(&mut files, 4);
        assert_eq!(names(), stamps(&[1, 2, 3, 4]));
        assert_eq!(files.finish(Duration::from_secs(300)).unwrap().removed, 6);
    }

    /// What a killed observer left is removed, but nothing of one that runs, nor other files.
    #[test]
    fn unfinished_files_of_the_dead_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = ["connections-1.parquet.part", "minutes-1.parquet.part"];
        let others = ["connections-1.parquet", "notes.part", "connections-1.part"];
        for name in left.iter().chain(&others) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let is_there = |name: &str| folder.path().join(name).exists();
        let mut first = Files::new(folder.path(), u64::MAX).unwrap();
        assert!(!left.iter().any(|name| is_there(name)));
        assert!(others.iter().all(|name| is_there(name)));
        first.epoch(Duration::from_secs(1)).unwrap();
        let open = "connections-19700101T000001.000Z.parquet.part";
        assert!(is_there(open));
        let second = Files::new(folder.path(), u64::MAX).unwrap();
        assert!(is_there(open));
        drop((first, second));
        fs::write(folder.path().join(left[0]), "").unwrap();
        drop(Files::new(folder.path(), u64::MAX).unwrap());
        assert!(!is_there(left[0]));
    }
}
