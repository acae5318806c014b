//! What clients have used of their bytes, on disk, so that a restart does not begin a new day.

use crate::HostsError;
use knee_bond::quota::state_folder;
use knee_quic::PublicKey;
use knee_record::{Error, read_json, write_json};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SCHEMA: &str = "knee-serve-used/1";

/// What a client has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// When its 24 hours began, seconds since 1970 (Unix time).
    pub began_unix: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// What clients have used, by name.
pub type AllUsed = BTreeMap<String, Used>;

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    clients: AllUsed,
}

impl Used {
    /// Time since its 24 hours began, by a clock that may have been set back meanwhile.
    pub fn elapsed(&self) -> Duration {
        Duration::from_secs(now_unix().saturating_sub(self.began_unix))
    }

    /// Makes it of the time since its 24 hours began.
    pub fn of((elapsed, bytes): (Duration, u64)) -> Used {
        Used { began_unix: now_unix().saturating_sub(elapsed.as_secs()), bytes }
    }
}

#[expect(clippy::disallowed_methods, reason = "it is compared after a restart")]
fn now_unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Path of the file of the server with this key: in the directory of the service, or of the user.
pub fn path(key: &PublicKey) -> PathBuf {
    let name = digest(&SHA256, knee_bond::key::to_text(key).as_bytes());
    let name: String = name.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    state_folder().join(format!("serve-used-{name}.json"))
}

/// Reads the file; nothing is used if there is none.
///
/// # Errors
/// A file that cannot be read, or has other contents.
pub fn read(path: &Path) -> Result<AllUsed, HostsError> {
    match read_json::<Document>(path, SCHEMA) {
        Ok(document) => Ok(document.clients),
        Err(Error::Missing { .. }) => Ok(AllUsed::new()),
        Err(error) => Err(HostsError::Used(Box::new(error))),
    }
}

/// Writes the file, so that a reader finds either the old or the new contents.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, clients: AllUsed) -> Result<(), HostsError> {
    if let Some(folder) = path.parent() {
        // What goes wrong here, writing says.
        let _ = fs::create_dir_all(folder);
    }
    let document = Document { schema: SCHEMA.to_owned(), clients };
    write_json(path, &document).map_err(|error| HostsError::Used(Box::new(error)))
}
