//! Completed files on their way to an object store: which are stored, and which are not yet.

use crate::files::listed;
use knee_record::Error;
use std::collections::BTreeSet;
#[cfg(feature = "upload")]
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The completed files of a folder, shared by the observer that writes them and the thread that
/// stores them.
#[derive(Clone, Debug, Default)]
pub struct Queue(Arc<Mutex<State>>);

/// How far the storing of files is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Files stored by this process.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Files that wait to be stored.
    pub waiting: u64,
    /// Files that were removed before they were stored, because of the limit on their size.
    pub removed_before: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Error of the last attempt, if it failed.
    pub trouble: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    /// Files to store, by time stamp and path: the oldest first.
    waiting: BTreeSet<(String, PathBuf)>,
    /// Files that are stored, as far as they are still in the folder.
    stored: BTreeSet<PathBuf>,
    done: Stored,
}

impl Queue {
    /// Begins with the files of a folder, all of which may be stored already.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read; one that does not exist is empty.
    pub fn of(directory: &Path) -> Result<Queue, Error> {
        let queue = Queue::default();
        if directory.exists() {
            for file in listed(directory)? {
                queue.add(&file.stamp, file.path);
            }
        }
        Ok(queue)
    }

    /// How far it is.
    pub fn progress(&self) -> Stored {
        let state = self.state();
        Stored { waiting: state.waiting.len() as u64, ..state.done.clone() }
    }

    /// Adds a completed file.
    pub(crate) fn add(&self, stamp: &str, path: PathBuf) {
        self.state().waiting.insert((stamp.to_string(), path));
    }

    /// Whether a file is stored.
    pub(crate) fn is_stored(&self, path: &Path) -> bool {
        self.state().stored.contains(path)
    }

    /// Notes that a file was removed from the folder.
    pub(crate) fn removed(&self, stamp: &str, path: &Path) {
        let mut state = self.state();
        if !state.stored.remove(path) {
            state.waiting.remove(&(stamp.to_string(), path.to_path_buf()));
            state.done.removed_before += 1;
        }
    }

    /// The oldest file that waits, or the oldest after `after`, if there is one.
    #[cfg(feature = "upload")]
    pub(crate) fn next(&self, after: Option<&(String, PathBuf)>) -> Option<(String, PathBuf)> {
        let waiting = &self.state().waiting;
        let later = |after| waiting.range((Bound::Excluded(after), Bound::Unbounded)).next();
        after.and_then(later).or_else(|| waiting.first()).cloned()
    }

    /// Notes that a file is stored; `bytes` were transferred for it, none if it was there already.
    #[cfg(feature = "upload")]
    pub(crate) fn stored(&self, stamp: String, path: PathBuf, bytes: Option<u64>) {
        let mut state = self.state();
        state.done.trouble = None;
        if let Some(bytes) = bytes {
            state.done.files += 1;
            state.done.bytes += bytes;
        }
        let place = (stamp, path);
        // It may have been removed meanwhile.
        if state.waiting.remove(&place) {
            state.stored.insert(place.1);
        } else {
            state.done.removed_before = state.done.removed_before.saturating_sub(1);
        }
    }

    /// Notes that somebody else has removed a file that waits.
    #[cfg(feature = "upload")]
    pub(crate) fn gone(&self, place: &(String, PathBuf)) {
        let mut state = self.state();
        state.waiting.remove(place);
        state.done.trouble = None;
    }

    /// Notes a failed attempt.
    #[cfg(feature = "upload")]
    pub(crate) fn failed(&self, trouble: String) {
        let mut state = self.state();
        state.done.failures += 1;
        state.done.trouble = Some(trouble);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use std::fs;
    use std::time::Duration;

    fn file(directory: &Path, day: u32) -> PathBuf {
        let path = directory.join(format!("connections-2026010{day}T000000.000Z.parquet"));
        fs::write(&path, [0; 100]).unwrap();
        path
    }

    fn stamp(day: u32) -> String {
        format!("2026010{day}T000000.000Z")
    }

    /// Five files, of which the third is stored, and room for three: the third and the first are
    /// removed, and the first is lost.
    #[test]
    fn stored_files_are_removed_first() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (1..=5).map(|day| file(folder.path(), day)).collect();
        fs::write(folder.path().join("report.html"), [0; 1000]).unwrap();
        let queue = Queue::of(folder.path()).unwrap();
        assert_eq!(queue.progress().waiting, 5);
        let place = (stamp(3), paths[2].clone());
        {
            let mut state = queue.state();
            assert!(state.waiting.remove(&place));
            state.stored.insert(place.1);
        }
        let mut files = Files::new(folder.path(), 300).unwrap();
        files.store(queue.clone());
        files.close(Duration::ZERO).unwrap();
        let is_there: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(is_there, [false, true, false, true, true]);
        let progress = queue.progress();
        assert_eq!(
            (progress.waiting, progress.removed_before, progress.files),
            (3, 1, 0),
            "{progress:?}"
        );
    }

    #[test]
    fn a_folder_to_come_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::of(&folder.path().join("none")).unwrap();
        assert_eq!(queue.progress(), Stored::default());
    }
}
