//! What an evaluation in real time has made so far, so that it goes on after an interrupt or a kill.

use super::RunRows;
use super::plan::{Evaluate, Planned};
use crate::directory::{MADE, cannot_write};
use crate::error::Error;
use crate::ground::Pace;
use knee_record::{EvaluationRow, Program, write_bytes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// First line of the file: what the rows below it are of.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Of {
    command: String,
    /// What the candidate's flows have.
    with: Vec<String>,
    program: Program,
}

impl Of {
    fn new(evaluate: &Evaluate<'_>, program: &Program) -> Of {
        Of {
            command: evaluate.plan.command.clone(),
            with: evaluate.with.iter().map(|own| own.text().to_string()).collect(),
            program: program.clone(),
        }
    }
}

/// The file to which the rows of each run are added once it has ended.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Begins the file, with what was made before; `None` where runs take no real time.
    pub fn begin(
        evaluate: &Evaluate<'_>,
        program: &Program,
        directory: &Path,
    ) -> Result<Option<Journal>, Error> {
        if evaluate.on.pace() == Pace::Virtual {
            return Ok(None);
        }
        let path = directory.join(MADE);
        let failed = |source| cannot_write(&path, source);
        let mut begun = line(&Of::new(evaluate, program)).map_err(failed)?;
        if !evaluate.made.is_empty() {
            begun.extend(line(&evaluate.made).map_err(failed)?);
        }
        write_bytes(&path, &begun)?;
        let file = File::options().append(true).open(&path).map_err(failed)?;
        Ok(Some(Journal { path: path.clone(), file: Mutex::new(file) }))
    }

    /// Adds the rows of a run, in one line.
    pub fn add(&self, rows: &[EvaluationRow]) -> Result<(), Error> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let added = line(&rows).and_then(|line| file.write_all(&line));
        added.map_err(|source| cannot_write(&self.path, source))
    }

    /// Removes the file, once all is made.
    pub fn remove(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(|source| cannot_write(&self.path, source))
    }
}

fn line(of: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(of)?;
    line.push(b'\n');
    Ok(line)
}

/// The rows that the same evaluation by the same program left in a folder; none of another, or of
/// one that ended. A line that a kill cut short counts for nothing.
fn left(evaluate: &Evaluate<'_>, program: &Program, directory: &Path) -> RunRows {
    let text = fs::read_to_string(directory.join(MADE)).unwrap_or_default();
    let mut lines = text.lines();
    let of = lines.next().and_then(|line| serde_json::from_str::<Of>(line).ok());
    if of != Some(Of::new(evaluate, program)) {
        return RunRows::new();
    }
    lines.filter_map(|line| serde_json::from_str::<RunRows>(line).ok()).flatten().collect()
}

impl Evaluate<'_> {
    /// Takes over the runs in real time that an interrupted evaluation of the same candidate by the
    /// same program has left in a folder, which are not made again. Returns how many these are.
    pub fn resume(&mut self, program: &Program, directory: &Path) -> usize {
        self.made = left(self, program, directory);
        let runs = self.runs.len();
        runs - self.order().len()
    }

    /// Whether all rows of a run are there.
    pub(super) fn is_made(&self, run: &Planned) -> bool {
        let there: BTreeSet<_> = self
            .made
            .iter()
            .filter(|row| (row.controller, row.repeat) == (run.controller, run.repeat))
            .map(|row| (row.line, row.case))
            .collect();
        let mut lines = self.cases[run.case].lines.iter();
        !there.is_empty() && lines.all(|line| there.contains(line))
    }
}
