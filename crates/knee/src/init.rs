//! `knee init`.

use crate::arguments::Init;
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_lab::command::quoted;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a commented scenario and the files that it names.
pub fn init(arguments: &Init) -> Result<Ending, Failure> {
    let template = arguments.template;
    let scenario = match &arguments.file {
        Some(file) => file.clone(),
        None => PathBuf::from(template.default_file()),
    };
    let beside = scenario.parent().unwrap_or(Path::new(""));
    let mut files = vec![(scenario.clone(), template.text())];
    files.extend(template.files().iter().map(|(name, text)| (beside.join(name), *text)));
    if !arguments.force {
        // All or nothing: check every file before writing the first.
        files.iter().try_for_each(|(file, _)| match fs::symlink_metadata(file) {
            Ok(_) => Err(exists(file)),
            Err(_) => Ok(()),
        })?;
    }
    let mut said = String::new();
    for (file, text) in &files {
        write(file, text, arguments.force)?;
        said += &format!("{} written\n", file.display());
    }
    let next = quoted(&scenario.to_string_lossy());
    screen::print(&format!("{said}run it   knee run {next}\n"))?;
    Ok(Ending::Done)
}

fn write(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    if force {
        // Never overwrite in place: the file could be a link.
        let _ = fs::remove_file(file);
    }
    match create(file, text) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(file)),
        Err(error) => {
            let what = format!("cannot write {}: {error}", file.display());
            Err(Failure::Host(what, "name another file".to_string()))
        }
    }
}

fn exists(file: &Path) -> Failure {
    let what = format!("{} exists", file.display());
    Failure::Usage(what, "name another file, or add --force".to_string())
}

fn create(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes())
}
