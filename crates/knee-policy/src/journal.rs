//! What was done to the host, written before it is done.
//!
//! A file of JSON lines, closed to all but its owner. An empty one says that nothing is
//! applied. Who applies or takes back holds a lock on it meanwhile.

use crate::PolicyError;
use ipnet::IpNet;
use knee_host::HostError;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// A process begins to apply a policy.
    Begin {
        /// Name of the policy.
        policy: String,
        /// Number of the process.
        process: u32,
        /// When, as seconds since 1970 (Unix time).
        at: u64,
        /// The network namespace, as `/proc/PID/ns/net` shows it.
        namespace: String,
    },
    /// A route is about to be made.
    Route {
        /// Number of its table.
        table: u32,
        /// Where it leads.
        to: IpNet,
        /// The controller that it names; none: one that sends on to the main table.
        controller: Option<String>,
    },
    /// A route is gone, since nothing asks for it any more.
    Gone {
        /// Number of its table.
        table: u32,
        /// Where it led.
        to: IpNet,
    },
    /// BPF programs are about to steer.
    Programs {
        /// Folder of the BPF file system that the way back is in.
        folder: PathBuf,
    },
    /// A rule is about to be made.
    Rule {
        /// IPv6 instead of IPv4.
        ipv6: bool,
        /// Number of the table.
        table: u32,
        /// The local port; none: all.
        port: Option<u16>,
    },
}

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Its lines; a last one that was cut off is left out: what it announces was not
    /// done.
    pub entries: Vec<Entry>,
}

impl Recorded {
    /// Name of the policy, number of the process, and when it began (Unix time).
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

/// A journal that this process holds.
#[derive(Debug)]
pub struct Journal {
    file: Flock<File>,
    path: PathBuf,
}

impl Journal {
    /// The first line of a journal: this process begins to apply a policy.
    ///
    /// # Errors
    ///
    /// Without `/proc`.
    pub fn begin(policy: &str, at: u64) -> Result<Entry, PolicyError> {
        let namespace = namespace().map_err(|source| {
            HostError::refused("read the network namespace", source, "mount /proc")
        })?;
        Ok(Entry::Begin { policy: policy.to_string(), process: std::process::id(), at, namespace })
    }

    /// Takes hold of the journal and reads it; makes it and its folder where they are
    /// not there.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Held`] by another process, [`PolicyError::Unsafe`],
    /// [`PolicyError::Foreign`], [`PolicyError::Elsewhere`], [`PolicyError::Journal`].
    pub fn hold(path: &Path) -> Result<(Journal, Recorded), PolicyError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|source| failed("make the folder of", path, source))?;
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

    /// What a journal says, whoever holds it; nothing where there is none.
    ///
    /// # Errors
    ///
    /// As [`Journal::hold`], but [`PolicyError::Held`].
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

    /// Takes hold of the journal. Where nobody is known to steer any more, a second
    /// process may still be taking all back: it is waited for, ten seconds at most.
    ///
    /// # Errors
    ///
    /// As [`Journal::hold`].
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

    /// Takes hold of the journal; another process that has it is asked to end first
    /// (SIGTERM), and after ten seconds made to (SIGKILL).
    ///
    /// # Errors
    ///
    /// As [`Journal::hold`].
    #[expect(clippy::disallowed_methods, reason = "it waits for a process")]
    pub fn take_over(path: &Path) -> Result<(Journal, Recorded), PolicyError> {
        let (mut signal, step) = (Some(Signal::SIGTERM), Duration::from_millis(50));
        for waited in 0u32.. {
            match Journal::hold(path) {
                Err(PolicyError::Held { process, .. }) if waited < 300 => {
                    if waited == 200 {
                        signal = Some(Signal::SIGKILL);
                    }
                    // Its number is there with its first line.
                    if process != 0
                        && let Some(signal) = signal.take()
                    {
                        // One that has just ended cannot be found.
                        let _ = kill(Pid::from_raw(process.cast_signed()), signal);
                    }
                    std::thread::sleep(step);
                }
                held => return held,
            }
        }
        Journal::hold(path)
    }

    /// Writes lines, and waits until the disk has them.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Journal`]: what they announce must not be done then.
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

    /// What it says.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Journal`], [`PolicyError::Foreign`].
    pub fn recorded(&mut self) -> Result<Recorded, PolicyError> {
        read(&mut self.file, &self.path)
    }

    /// Says that nothing is applied.
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

/// The network namespace of the calling thread.
pub(crate) fn namespace() -> io::Result<String> {
    Ok(fs::read_link("/proc/thread-self/ns/net")?.to_string_lossy().into_owned())
}

/// Opens the journal, if nobody else can have written it.
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
        return distrust(folder, "others may write there");
    }
    let mut options = OpenOptions::new();
    options.read(true).append(write).create(write).mode(0o600);
    options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(source) if source.raw_os_error() == Some(Errno::ELOOP as i32) => {
            return distrust(path, "it is a symbolic link");
        }
        Err(source) => return Err(failed("open", path, source)),
    };
    let about = file.metadata().map_err(|source| failed("open", path, source))?;
    if !about.is_file() {
        return distrust(path, "it is no file");
    }
    if about.uid() != user || about.nlink() != 1 {
        return distrust(path, "it belongs to another user, or has another name too");
    }
    if about.mode() & 0o077 != 0 {
        return distrust(path, "others may read or write it");
    }
    Ok(file)
}

fn read(file: &mut File, path: &Path) -> Result<Recorded, PolicyError> {
    let mut text = String::new();
    file.rewind()
        .and_then(|()| file.read_to_string(&mut text))
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

/// Whether there is a process of this number; there is none of the number 0.
fn is_there(process: u32) -> bool {
    process != 0 && !matches!(kill(Pid::from_raw(process.cast_signed()), None), Err(Errno::ESRCH))
}
