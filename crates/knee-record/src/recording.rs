//! A run directory that is being written: samples during the run, everything else at its end.

use crate::part::{Part, remove_if_there};
use crate::run::{self, write_bytes, write_json, write_text};
use crate::table::{self, Table};
use crate::tables::{self, Names};
use crate::{
    ClassSample, ConnectionRecord, Error, FlowSample, LinkSample, Manifest, Records, Summary,
};
use knee_scenario::Scenario;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Receives the rows of time series, each ascending in time, and of connections during a run.
pub trait SampleSink {
    /// Takes a row of a flow.
    ///
    /// # Errors
    /// If the row cannot be stored; the run must then end.
    fn flow(&mut self, row: &FlowSample) -> Result<(), Error>;

    /// Takes a row of a path of a flow.
    ///
    /// # Errors
    /// The errors of [`SampleSink::flow`].
    fn path(&mut self, row: &FlowSample) -> Result<(), Error>;

    /// Takes a row of a link.
    ///
    /// # Errors
    /// The errors of [`SampleSink::flow`].
    fn link(&mut self, row: &LinkSample) -> Result<(), Error>;

    /// Takes a row of a traffic class of a link.
    ///
    /// # Errors
    /// The errors of [`SampleSink::flow`].
    fn class(&mut self, row: &ClassSample) -> Result<(), Error>;

    /// Takes the row of a connection that has ended or was cut off.
    ///
    /// # Errors
    /// The errors of [`SampleSink::flow`].
    fn connection(&mut self, row: &ConnectionRecord) -> Result<(), Error>;
}

/// Discards all rows, for a run that writes no files.
impl SampleSink for () {
    fn flow(&mut self, _: &FlowSample) -> Result<(), Error> {
        Ok(())
    }

    fn path(&mut self, _: &FlowSample) -> Result<(), Error> {
        Ok(())
    }

    fn link(&mut self, _: &LinkSample) -> Result<(), Error> {
        Ok(())
    }

    fn class(&mut self, _: &ClassSample) -> Result<(), Error> {
        Ok(())
    }

    fn connection(&mut self, _: &ConnectionRecord) -> Result<(), Error> {
        Ok(())
    }
}

/// A run directory that is being written. Each file appears whole or not at all, the manifest last;
/// if the recording is dropped before its end, no files appear.
pub struct Recording {
    dir: PathBuf,
    names: Names,
    samples: Table<FlowSample>,
    /// Created with the first row: most runs have none.
    path_samples: Option<Table<FlowSample>>,
    links: Table<LinkSample>,
    /// Created with the first row.
    classes: Option<Table<ClassSample>>,
    connections: Table<ConnectionRecord>,
    /// A file of another form, written by others during the run.
    beside: Vec<Part>,
}

impl Recording {
    /// Begins writing the run of a scenario into `dir`, which is created with its parents if
    /// necessary. A run that is already there loses its manifest.
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub fn begin(dir: &Path, scenario: &Scenario) -> Result<Recording, Error> {
        Recording::with_names(dir, Names::of_scenario(scenario))
    }

    pub(crate) fn with_names(dir: &Path, names: Names) -> Result<Recording, Error> {
        fs::create_dir_all(dir).map_err(|source| Error::io("create", dir, source))?;
        remove_if_there(&dir.join(run::MANIFEST))?;
        Ok(Recording {
            samples: Table::create(&dir.join(run::SAMPLES), tables::samples_of(&names))?,
            path_samples: None,
            classes: None,
            links: Table::create(&dir.join(run::LINKS), tables::links())?,
            connections: Table::create(&dir.join(run::CONNECTIONS), tables::connections())?,
            beside: Vec::new(),
            names,
            dir: dir.to_path_buf(),
        })
    }

    /// Adds a complete file, which appears with the others.
    pub fn add(&mut self, file: Part) {
        self.beside.push(file);
    }

    /// Writes everything but the samples and connections, which it has already received.
    ///
    /// # Errors
    /// [`Error::Io`] with the path, when the disk is full or the folder cannot be written. The
    /// files written so far are not accepted as a run.
    pub fn finish(
        self,
        manifest: &Manifest,
        scenario: &Scenario,
        records: &Records,
        summary: &Summary,
    ) -> Result<(), Error> {
        let Recording { dir, names, samples, path_samples, links, classes, .. } = self;
        let Recording { mut connections, beside, .. } = self;
        write_inputs(&dir, scenario)?;
        write_text(&dir.join(run::SCENARIO), &scenario.resolved)?;
        table::write(
            &dir.join(run::FLOWS),
            tables::flows_of(&records.flows),
            &names,
            &records.flows,
        )?;
        samples.finish(&names)?;
        links.finish(&names)?;
        match path_samples {
            Some(table) => table.finish(&names)?,
            None => remove_if_there(&dir.join(run::PATH_SAMPLES))?,
        }
        match classes {
            Some(table) => table.finish(&names)?,
            None => remove_if_there(&dir.join(run::CLASSES))?,
        }
        connections.note(table::GROUND_KEY, manifest.ground.clone());
        connections.note(table::EPOCH_KEY, records.epoch_unix_ns.to_string());
        connections.finish(&names)?;
        let Records { paths, objects, .. } = records;
        write_if_any(&dir.join(run::PATHS), tables::paths(), &names, paths)?;
        write_if_any(&dir.join(run::OBJECTS), tables::objects(), &names, objects)?;
        beside.into_iter().try_for_each(Part::put_in_place)?;
        // An earlier version may have written it.
        remove_if_there(&dir.join(run::TRANSFERS))?;
        write_json(&dir.join(run::SUMMARY), summary)?;
        write_json(&dir.join(run::MANIFEST), manifest)
    }
}

impl SampleSink for Recording {
    fn flow(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.samples.push(&self.names, row)
    }

    fn path(&mut self, row: &FlowSample) -> Result<(), Error> {
        let table = match &mut self.path_samples {
            Some(table) => table,
            none => {
                let path = self.dir.join(run::PATH_SAMPLES);
                none.insert(Table::create(&path, tables::path_samples_of(&self.names))?)
            }
        };
        table.push(&self.names, row)
    }

    fn link(&mut self, row: &LinkSample) -> Result<(), Error> {
        self.links.push(&self.names, row)
    }

    fn class(&mut self, row: &ClassSample) -> Result<(), Error> {
        let table = match &mut self.classes {
            Some(table) => table,
            none => none.insert(Table::create(&self.dir.join(run::CLASSES), tables::classes())?),
        };
        table.push(&self.names, row)
    }

    fn connection(&mut self, row: &ConnectionRecord) -> Result<(), Error> {
        self.connections.push(&self.names, row)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Writes a run into `dir`, which is created with its parents if necessary. A run that is already
/// there is replaced; other files are left alone.
///
/// # Errors
/// The errors of [`Recording::finish`].
pub fn write_run(
    dir: &Path,
    manifest: &Manifest,
    scenario: &Scenario,
    records: &Records,
    summary: &Summary,
) -> Result<(), Error> {
    let mut recording = Recording::with_names(dir, Names::of(records))?;
    records.samples.iter().try_for_each(|row| recording.flow(&row))?;
    records.path_samples.iter().try_for_each(|row| recording.path(&row))?;
    records.links.iter().try_for_each(|row| recording.link(&row))?;
    records.classes.iter().try_for_each(|row| recording.class(&row))?;
    records.connections.iter().try_for_each(|row| recording.connection(row))?;
    recording.finish(manifest, scenario, records, summary)
}

/// Writes the scenario's input files where its resolved form refers to them.
fn write_inputs(dir: &Path, scenario: &Scenario) -> Result<(), Error> {
    for file in &scenario.files {
        let path = dir.join(&file.name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
        }
        write_bytes(&path, &file.bytes)?;
    }
    Ok(())
}

/// Writes a table if it has rows; otherwise removes a file that an earlier run left.
fn write_if_any<R: Clone>(
    path: &Path,
    layout: table::Layout<R>,
    names: &Names,
    rows: &[R],
) -> Result<(), Error> {
    if rows.is_empty() { remove_if_there(path) } else { table::write(path, layout, names, rows) }
}
