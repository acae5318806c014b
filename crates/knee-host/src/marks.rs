//! Connections that BPF programs have given a controller (`bpf/steer.bpf.c`): which they
//! are, and the way back. Whoever steers pins two iterators in the BPF file system; to
//! read such a file is to walk the TCP connections of the reader's network namespace.
//! That needs no feature of this crate and no privilege but that of opening the file.

use crate::HostError;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Names of the two files in their folder.
pub(crate) const BACK: &str = "back";
pub(crate) const MARKED: &str = "marked";
/// Bytes of a controller's name (`TCP_CA_NAME_MAX`).
const NAME: usize = 16;
/// What is told of a connection: the controller that it had, the one that it was given,
/// and the one that it has (`struct told`).
const RECORD: usize = 3 * NAME;

/// What the connections of a group get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Controllers, the first and the second; an empty name leaves what there is.
    pub controllers: [String; 2],
    /// Key of the draw between them (SipHash-2-4).
    pub key: [u8; 16],
    /// Of 2^32 parts of the clients, as many get the second.
    pub share: u32,
}

/// Connections that were given a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Those that still have it, by the controller that they had and the one that they
    /// were given.
    pub steered: BTreeMap<(String, String), u64>,
    /// Those whose programs have chosen another one since.
    pub changed: u64,
}

impl Marked {
    /// How many still have it.
    pub fn count(&self) -> u64 {
        self.steered.values().sum()
    }
}

/// Tells which connections were given a controller; none where the folder is not there.
///
/// # Errors
///
/// What the kernel says.
pub fn marked(folder: &Path) -> Result<Marked, HostError> {
    read(&folder.join(MARKED)).map_err(|error| HostError::call("read what is steered", error))
}

/// Returns them to the controller that they had, but those whose programs have chosen
/// another one since; tells which. None where the folder is not there.
///
/// # Errors
///
/// What the kernel says.
pub fn return_marked(folder: &Path) -> Result<Marked, HostError> {
    read(&folder.join(BACK)).map_err(|error| HostError::call("return connections", error))
}

/// Removes the folder; connections that are still marked keep what they have.
///
/// # Errors
///
/// What the system says; none where it is not there.
pub fn unpin_marks(folder: &Path) -> Result<(), HostError> {
    let done =
        [BACK, MARKED].iter().try_for_each(|name| absent(fs::remove_file(folder.join(name))));
    let done = done.and_then(|()| absent(fs::remove_dir(folder)));
    done.map_err(|error| HostError::call("remove a folder in /sys/fs/bpf", error))
}

/// What is not there is removed.
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
