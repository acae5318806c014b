//! A file that appears whole or not at all: it is written beside its place,
//! then renamed.

use crate::Error;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Ending of a file that is not whole yet.
pub const PART: &str = ".part";

/// A file under way. Dropped before its end, it is removed.
#[derive(Debug)]
pub(crate) struct Part {
    /// Where it will be.
    pub path: PathBuf,
    beside: PathBuf,
    in_place: bool,
}

impl Part {
    /// Begins the file that will be `path`. What stands in the way, left by a
    /// run that was killed, is removed and never written through: it could be
    /// a link to something else.
    pub(crate) fn create(path: &Path) -> Result<(Part, File), Error> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(PART);
        let beside = PathBuf::from(beside);
        remove_if_there(&beside)?;
        let file = File::create_new(&beside).map_err(|source| Error::io("create", path, source))?;
        Ok((Part { path: path.to_path_buf(), beside, in_place: false }, file))
    }

    /// Moves the file to where it belongs, over what is there.
    pub(crate) fn put_in_place(mut self) -> Result<(), Error> {
        fs::rename(&self.beside, &self.path)
            .map_err(|source| Error::io("write", &self.path, source))?;
        self.in_place = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.in_place {
            // The first error is the one to report.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Removes a file or a link, if there is one.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::io("replace", path, source))
        }
        _ => Ok(()),
    }
}
