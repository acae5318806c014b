//! Connections that BPF programs have assigned a controller (`bpf/steer.bpf.c`), and how to undo
//! it. The steering process pins two iterators in the BPF file system; reading such a file walks
//! the TCP connections of the reader's network namespace. This needs no feature of this crate and
//! no privilege except opening the file.

use crate::HostError;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Names of the two files in their folder.
pub(crate) const BACK: &str = "back";
pub(crate) const MARKED: &str = "marked";
/// Length of a controller's name (`TCP_CA_NAME_MAX`).
const NAME: usize = 16;
/// Record of a connection: its original controller, the assigned one and the current one (`struct
/// told`).
const RECORD: usize = 3 * NAME;

/// What a connection gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arm {
    /// Name of the controller; empty: nothing is changed.
    pub controller: String,
    /// Segments that may be in flight before the first acknowledgement (RFC 6928), of connections
    /// that begin; `None`: as many as without Knee.
    pub initial_window: Option<u16>,
    /// Whether the segments of connections that begin are paced, whatever the controller
    /// (`SO_MAX_PACING_RATE` of socket(7), 34 Gbit/s, the highest that BPF programs can set).
    pub paces: bool,
    /// Whether connections that begin ask for ECN, and are granted it if the peer asks (RFC 3168,
    /// section 6.1.1), whatever `net.ipv4.tcp_ecn` says.
    pub ecn: bool,
}

impl Arm {
    /// A controller, and nothing else.
    pub fn of(controller: &str) -> Arm {
        Arm { controller: controller.to_string(), ..Arm::default() }
    }
}

impl Display for Arm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.controller)?;
        if let Some(window) = self.initial_window {
            write!(f, ", initial window {window}")?;
        }
        if self.paces {
            f.write_str(", paced")?;
        }
        if self.ecn { f.write_str(", with ECN") } else { Ok(()) }
    }
}

/// What the connections of a group get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The first and the second arm.
    pub arms: [Arm; 2],
    /// Key of the draw between them (SipHash-2-4).
    pub key: [u8; 16],
    /// Share of the clients that get the second arm, in units of 2^-32.
    pub share: u32,
}

/// Connections that were assigned a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Those that still have it, by the original and the assigned controller.
    pub steered: BTreeMap<(String, String), u64>,
    /// Those whose programs have chosen a different one since.
    pub changed: u64,
}

impl Marked {
    /// Returns how many still have it.
    pub fn count(&self) -> u64 {
        self.steered.values().sum()
    }
}

/// Returns the connections that were assigned a controller; none if the folder does not exist.
///
/// # Errors
///
/// If the kernel refuses.
pub fn marked(folder: &Path) -> Result<Marked, HostError> {
    read(&folder.join(MARKED)).map_err(|error| HostError::call("read the steered traffic", error))
}

/// Returns them to their original controller, except for those whose programs have chosen a
/// different one since, and returns which. Does nothing if the folder does not exist.
///
/// # Errors
///
/// If the kernel refuses.
pub fn return_marked(folder: &Path) -> Result<Marked, HostError> {
    read(&folder.join(BACK)).map_err(|error| HostError::call("return connections", error))
}

/// Removes the folder; connections that are still marked keep their controller.
///
/// # Errors
///
/// If the system refuses; not if the folder does not exist.
pub fn unpin_marks(folder: &Path) -> Result<(), HostError> {
    let done =
        [BACK, MARKED].iter().try_for_each(|name| absent(fs::remove_file(folder.join(name))));
    let done = done.and_then(|()| absent(fs::remove_dir(folder)));
    done.map_err(|error| HostError::call("remove a folder in /sys/fs/bpf", error))
}

/// Treats a missing file as removed.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn read(file: &Path) -> io::Result<Marked> {
    let mut file = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Marked::default()),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(decoded(&bytes))
}

fn decoded(bytes: &[u8]) -> Marked {
    let mut marked = Marked::default();
    for record in bytes.chunks_exact(RECORD) {
        let [had, given, has] = [0, 1, 2].map(|index| {
            let name = &record[index * NAME..(index + 1) * NAME];
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
            String::from_utf8_lossy(&name[..end]).into_owned()
        });
        if given == has {
            *marked.steered.entry((had, given)).or_default() += 1;
        } else {
            marked.changed += 1;
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted() {
        let record = |names: [&str; 3]| {
            let mut bytes = Vec::new();
            for name in names {
                bytes.extend(name.bytes());
                bytes.resize(bytes.len().next_multiple_of(NAME), 0);
            }
            bytes
        };
        let two = record(["cubic", "bbr", "bbr"]);
        let other = record(["cubic", "bbr", "reno"]);
        let marked = decoded(&[&two[..], &other, &two, &two[..20]].concat());
        assert_eq!(marked.steered, BTreeMap::from([(("cubic".into(), "bbr".into()), 2)]));
        assert_eq!((marked.count(), marked.changed), (2, 1));
        assert_eq!(super::marked(Path::new("/nonexistent")).unwrap(), Marked::default());
    }
}
