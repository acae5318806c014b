//! Files that appear whole or not at all: a file is written under a temporary name, then renamed.

use crate::Error;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Suffix of a file that is not complete yet.
pub const PART: &str = ".part";

/// A file that is being written. It is removed if dropped before it is in place.
#[derive(Debug)]
pub struct Part {
    /// Final path.
    pub(crate) path: PathBuf,
    beside: PathBuf,
    in_place: bool,
}

impl Part {
    /// Creates the temporary file for `path`. A file that a killed run left there is removed, never
    /// written through: it could be a link to something else.
    ///
    /// # Errors
    /// [`Error::Io`] with the final path.
    pub fn create(path: &Path) -> Result<(Part, File), Error> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(PART);
        let beside = PathBuf::from(beside);
        remove_if_there(&beside)?;
        let file = File::options().read(true).write(true).create_new(true).open(&beside);
        let file = file.map_err(|source| Error::io("create", path, source))?;
        Ok((Part { path: path.to_path_buf(), beside, in_place: false }, file))
    }

    /// Renames the file to its final path, replacing an existing file.
    ///
    /// # Errors
    /// [`Error::Io`] with the final path.
    pub fn put_in_place(mut self) -> Result<(), Error> {
        fs::rename(&self.beside, &self.path)
            .map_err(|source| Error::io("write", &self.path, source))?;
        self.in_place = true;
        Ok(())
    }

    /// As [`Part::put_in_place`], with the contents on disk before the name, and the name before the
    /// return: a loss of power leaves no broken file.
    pub(crate) fn put_in_place_durably(self) -> Result<(), Error> {
        let path = self.path.clone();
        let wrong = |source| Error::io("write", &path, source);
        File::open(&self.beside).and_then(|file| file.sync_all()).map_err(wrong)?;
        self.put_in_place()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new(".")));
        // Some file systems cannot do that, and the file is complete.
        let _ = folder.and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.in_place {
            // If removal fails too, the first error is the one to report.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Removes a file or a link if it exists.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::io("replace", path, source))
        }
        _ => Ok(()),
    }
}
