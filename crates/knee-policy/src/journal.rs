//! Write-ahead journal of changes to the host.
//!
//! A file of JSON lines, accessible to its owner only. An empty file means that nothing is applied.
//! A process that applies or reverts holds a lock on it.

use crate::PolicyError;
use ipnet::IpNet;
use knee_host::HostError;
use knee_scenario::read_open_text;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest journal; a larger file is a mistake.
const BYTES_MAX: u64 = 64 << 20;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A process starts to apply a policy.
    Begin {
        /// Name of the policy.
        policy: String,
        /// Process id.
        process: u32,
        /// Time, seconds since 1970 (Unix time).
        at: u64,
        /// The network namespace as shown in `/proc/PID/ns/net`.
        namespace: String,
    },
    /// A route is about to be created.
    Route {
        /// Number of its table.
        table: u32,
        /// Its destination.
        to: IpNet,
        /// Its controller; `None` for a route that defers to the main table.
        controller: Option<String>,
    },
    /// A route was removed because the plan no longer has it.
    Gone {
        /// Number of its table.
        table: u32,
        /// Its destination.
        to: IpNet,
    },
    /// BPF programs are about to steer.
    Programs {
        /// Folder of the BPF file system with the pins that undo it.
        folder: PathBuf,
    },
    /// A rule is about to be created.
    Rule {
        /// Whether it is for IPv6 instead of IPv4.
        ipv6: bool,
        /// Number of the table.
        table: u32,
        /// Local port; `None`: all.
        port: Option<u16>,
    },
}

/// Contents of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its entries. A truncated last line is ignored: the change that it announces did not happen.
    pub entries: Vec<Entry>,
}

impl Recorded {
    /// Name of the policy, process id, and start (Unix time).
    pub fn begun(&self) -> Option<(&str, u32, u64)> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Begin { policy, process, at, .. } => Some((policy.as_str(), *process, *at)),
            _ => None,
        })
    }

    fn namespace(&self) -> Option<&str> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Begin { namespace, .. } => Some(namespace.as_str()),
            _ => None,
        })
    }
}

/// A journal locked by this process.
#[derive(Debug)]
pub struct Journal {
    file: Flock<File>,
    path: PathBuf,
}

impl Journal {
    /// Creates the first line of a journal: this process starts to apply a policy.
    ///
    /// # Errors
    ///
    /// Missing `/proc`.
    pub fn begin(policy: &str, at: u64) -> Result<Entry, PolicyError> {
        let namespace = namespace().map_err(|source| {
            HostError::refused("read the network namespace", source, "mount /proc")
        })?;
        Ok(Entry::Begin { policy: policy.to_string(), process: std::process::id(), at, namespace })
    }

    /// Locks and reads the journal; creates it and its folder if necessary.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Held`] by another process, [`PolicyError::Unsafe`], [`PolicyError::Foreign`],
    /// [`PolicyError::Elsewhere`], [`PolicyError::Journal`].
    pub fn hold(path: &Path) -> Result<(Journal, Recorded), PolicyError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|source| failed("create the folder of", path, source))?;
        }
        let file = open(path, true)?;
        let mut file =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(mut file, error)| {
                match error {
                    Errno::EWOULDBLOCK => {
                        let process = read(&mut file, path).ok();
                        let process = process.and_then(|recorded| Some(recorded.begun()?.1));
                        let path = path.to_path_buf();
                        PolicyError::Held { path, process: process.unwrap_or(0) }
                    }
                    error => failed("lock", path, error.into()),
                }
            })?;
        let recorded = read(&mut file, path)?;
        Ok((Journal { file, path: path.to_path_buf() }, recorded))
    }

    /// Reads a journal without locking it; empty if there is none.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::hold`], except [`PolicyError::Held`].
    pub fn read(path: &Path) -> Result<Recorded, PolicyError> {
        match open(path, false) {
            Ok(mut file) => read(&mut file, path),
            Err(PolicyError::Journal { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(Recorded::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Locks the journal. If the process that steered has ended, its guard may still be reverting:
    /// waits for that, at most ten seconds.
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::hold`].
    #[expect(clippy::disallowed_methods, reason = "it waits for a process")]
    pub fn hold_next(path: &Path) -> Result<(Journal, Recorded), PolicyError> {
        let step = Duration::from_millis(10);
        for _ in 0..1000 {
            match Journal::hold(path) {
                Err(PolicyError::Held { process, .. }) if !is_there(process) => {
                    std::thread::sleep(step);
                }
                held => return held,
            }
        }
        Journal::hold(path)
    }

    /// Locks the journal; asks another process that holds it to end (SIGTERM), and after ten
    /// seconds forces it (SIGKILL).
    ///
    /// # Errors
    ///
    /// The errors of [`Journal::hold`].
    #[expect(clippy::disallowed_methods, reason = "it waits for a process")]
    pub fn take_over(path: &Path) -> Result<(Journal, Recorded), PolicyError> {
        let (mut signal, step) = (Some(Signal::SIGTERM), Duration::from_millis(50));
        for waited in 0u32.. {
            match Journal::hold(path) {
                Err(PolicyError::Held { process, .. }) if waited < 300 => {
                    if waited == 200 {
                        signal = Some(Signal::SIGKILL);
                    }
                    // The first line contains the process id.
                    if process != 0
                        && let Some(signal) = signal.take()
                    {
                        // Fails if the process has just ended.
                        let _ = kill(Pid::from_raw(process.cast_signed()), signal);
                    }
                    std::thread::sleep(step);
                }
                held => return held,
            }
        }
        Journal::hold(path)
    }

    /// Appends entries and syncs them to disk.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Journal`]; the announced changes must not be made then.
    pub fn write<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> Result<(), PolicyError> {
        let written = (|| {
            let mut lines = BufWriter::new(&*self.file);
            for entry in entries {
                serde_json::to_writer(&mut lines, entry)?;
                lines.write_all(b"\n")?;
            }
            lines.flush()?;
            drop(lines);
            self.file.sync_data()
        })();
        written.map_err(|source| failed("write", &self.path, source))
    }

    /// Rereads the journal.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Journal`], [`PolicyError::Foreign`].
    pub fn recorded(&mut self) -> Result<Recorded, PolicyError> {
        read(&mut self.file, &self.path)
    }

    /// Clears the journal: nothing is applied.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Journal`].
    pub fn clear(&mut self) -> Result<(), PolicyError> {
        let cleared = self.file.set_len(0).and_then(|()| {
            self.file.rewind()?;
            self.file.sync_data()
        });
        cleared.map_err(|source| failed("clear", &self.path, source))
    }
}

/// Network namespace of the calling thread.
pub(crate) fn namespace() -> io::Result<String> {
    Ok(fs::read_link("/proc/thread-self/ns/net")?.to_string_lossy().into_owned())
}

/// Opens the journal if only its owner can have written it.
fn open(path: &Path, write: bool) -> Result<File, PolicyError> {
    let distrust = |path: &Path, problem: &str| {
        Err(PolicyError::Unsafe { path: path.to_path_buf(), problem: problem.to_string() })
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let user = nix::unistd::geteuid().as_raw();
    let about = match fs::metadata(folder) {
        Ok(about) => about,
        Err(source) => return Err(failed("open", path, source)),
    };
    if about.uid() != user && about.uid() != 0 {
        return distrust(folder, "it belongs to another user");
    }
    if about.mode() & 0o022 != 0 && about.mode() & 0o1000 == 0 {
        return distrust(folder, "others can write to it");
    }
    let mut options = OpenOptions::new();
    options.read(true).append(write).create(write).mode(0o600);
    // A pipe would wait for its other end (fifo(7)).
    let flags = OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    options.custom_flags(flags.bits());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(source) if source.raw_os_error() == Some(Errno::ELOOP as i32) => {
            return distrust(path, "it is a symbolic link");
        }
        // A pipe without a reader.
        Err(source) if source.raw_os_error() == Some(Errno::ENXIO as i32) => {
            return distrust(path, "it is not a regular file");
        }
        Err(source) => return Err(failed("open", path, source)),
    };
    let about = file.metadata().map_err(|source| failed("open", path, source))?;
    if !about.is_file() {
        return distrust(path, "it is not a regular file");
    }
    if about.uid() != user || about.nlink() != 1 {
        return distrust(path, "it belongs to another user, or has more than one name");
    }
    if about.mode() & 0o077 != 0 {
        return distrust(path, "others can read or write it");
    }
    Ok(file)
}

fn read(file: &mut File, path: &Path) -> Result<Recorded, PolicyError> {
    let text = file
        .rewind()
        .and_then(|()| file.try_clone())
        .and_then(|file| read_open_text(file, BYTES_MAX))
        .map_err(|source| failed("read", path, source))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut entries = Vec::new();
    for (index, line) in whole.lines().enumerate() {
        entries.push(serde_json::from_str(line).map_err(|error| PolicyError::Foreign {
            path: path.to_path_buf(),
            line: index + 1,
            problem: error.to_string(),
        })?);
    }
    let recorded = Recorded { entries };
    let here = namespace().map_err(|source| failed("read", path, source))?;
    match recorded.namespace() {
        Some(theirs) if theirs != here => {
            Err(PolicyError::Elsewhere { path: path.to_path_buf(), theirs: theirs.to_string() })
        }
        _ => Ok(recorded),
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> PolicyError {
    PolicyError::Journal { what, path: path.to_path_buf(), source }
}

/// Whether a process exists; none has id 0.
fn is_there(process: u32) -> bool {
    process != 0 && !matches!(kill(Pid::from_raw(process.cast_signed()), None), Err(Errno::ESRCH))
}
