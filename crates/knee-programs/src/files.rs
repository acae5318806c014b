//! Files in the folder of a run.

use knee_host::HostError;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates a file, never through a link.
pub fn create(folder: &Path, name: &str, mode: u32) -> Result<File, HostError> {
    let refused = |source| HostError::refused("write into the run's folder", source, "see --out");
    fs::create_dir_all(folder).map_err(refused)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    options.custom_flags(nix::libc::O_NOFOLLOW);
    options.open(folder.join(name)).map_err(refused)
}
