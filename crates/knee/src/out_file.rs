//! A single file that a command writes: whole or not at all, and in place of another one only with
//! `--force`.

use crate::advice::cannot_write;
use crate::failure::Failure;
use knee_record::Part;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A file that will be written.
#[derive(Clone, Copy, Debug)]
pub struct OutFile<'p> {
    path: &'p Path,
    force: bool,
}

impl<'p> OutFile<'p> {
    /// Checks before any work that the file can be written: refuses a file that exists, except with
    /// `force`, and a folder in which no file can be created.
    pub fn new(path: &'p Path, force: bool) -> Result<OutFile<'p>, Failure> {
        let file = OutFile { path, force };
        file.check()?;
        // Dropped at once, which removes it.
        Part::create(path)?;
        Ok(file)
    }

    fn check(&self) -> Result<(), Failure> {
        let is_folder = self.path.is_dir();
        if is_folder || (!self.force && fs::symlink_metadata(self.path).is_ok()) {
            let what = format!("{} exists", self.path.display());
            let advice = match is_folder {
                true => "it is a folder: name a file",
                false => "name another file, or add --force",
            };
            return Err(Failure::Usage(what, advice.to_string()));
        }
        Ok(())
    }

    /// Writes the file. If that fails, an existing one stays as it is.
    pub fn write<T>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.check()?;
        let (part, file) = Part::create(self.path)?;
        let mut file = BufWriter::new(file);
        let done = write(&mut file)?;
        file.flush().map_err(|error| cannot_write(self.path, &error))?;
        part.put_in_place()?;
        Ok(done)
    }

    /// Writes these bytes as the file.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(|file| file.write_all(bytes).map_err(|error| cannot_write(self.path, &error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the files in a folder.
    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_failure_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.table");
        fs::write(&path, "old").unwrap();
        let file = OutFile::new(&path, true).unwrap();
        let failed = file.write(|file| -> Result<(), Failure> {
            file.write_all(b"half").unwrap();
            Err(Failure::Internal("no more".to_string()))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(files(folder.path()), ["a.table"]);
        file.write_bytes(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(files(folder.path()), ["a.table"]);
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.table"), "old").unwrap();
        assert!(matches!(OutFile::new(&at("a.table"), false), Err(Failure::Usage(..))));
        assert!(matches!(OutFile::new(folder.path(), true), Err(Failure::Usage(..))));
        assert!(matches!(OutFile::new(&at("missing/a.table"), true), Err(Failure::Host(..))));
        assert!(matches!(OutFile::new(&at("a.table/b"), true), Err(Failure::Host(..))));
        OutFile::new(&at("b.table"), false).unwrap();
        assert_eq!(files(folder.path()), ["a.table"]);
    }
}
