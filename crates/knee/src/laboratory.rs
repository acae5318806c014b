//! The laboratory for the command line: with a progress bar, a warning about large output, and
//! Ctrl-C.

use crate::arguments::left_out;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{build, interrupt, screen};
use knee_lab::{Classes, Error, Ground, Grounds, HOSTS, Job, Lab, Written};
use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// Minimum output size for a warning, bytes.
const WARN_BYTES: f64 = 10e9;

/// The command line, for manifests.
static TYPED: OnceLock<Vec<String>> = OnceLock::new();

/// The classes that the caller provides, for manifests.
static CLASSES: OnceLock<Classes> = OnceLock::new();

/// Stores the classes that the caller provides.
pub fn provide(classes: Classes) {
    let _ = CLASSES.set(classes);
}

/// Stores the command line and returns it.
pub fn remember(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let texts = typed.iter().map(|argument| argument.to_string_lossy().into_owned());
    // Only the first call has an effect: a process has one command line.
    let _ = TYPED.set(texts.collect());
    typed
}

/// Creates a lab with a limit on parallel runs.
pub fn lab(parallel: Option<u16>) -> Lab {
    let mut lab = Lab::default();
    (lab.parallel, lab.arguments) = (parallel, TYPED.get().cloned().unwrap_or_default());
    lab.program = build::program();
    lab.brought = CLASSES.get().cloned().unwrap_or_default();
    lab
}

/// The requested grounds.
pub fn chosen<'g>(grounds: &'g Grounds, names: &[String]) -> Result<Vec<&'g dyn Ground>, Failure> {
    if let Some((name, feature)) =
        left_out(grounds).find(|(name, _)| names.iter().any(|n| n == name))
    {
        let what = format!("this build of Knee has no ground {name}");
        let advice = format!(
            "install one that has, {}, or run on the simulator, with --on sim",
            build::with(feature)
        );
        return Err(Failure::Host(what, advice));
    }
    Ok(grounds.choose(names).map_err(Error::from)?)
}

/// The requested ground.
pub fn one_ground<'g>(grounds: &'g Grounds, name: &str) -> Result<&'g dyn Ground, Failure> {
    chosen(grounds, &[name.to_owned()])?;
    Ok(grounds.get(name).map_err(Error::from)?)
}

/// Says which runs do not count, and why.
pub fn tell_unsound(unsound: &[String]) {
    unsound.iter().for_each(|why| screen::say(&format!("Does not count: {why}.")));
}

/// Tells the ground between two machines which the other one is, if a file names it.
pub fn to_host(grounds: Grounds, on: &[String], file: Option<&Path>) -> Result<Grounds, Failure> {
    let Some(file) = file else { return Ok(grounds) };
    if !on.iter().any(|name| name == HOSTS) {
        let what = "--host is about the ground hosts, which is not among --on".to_owned();
        return Err(Failure::Usage(what, "add --on hosts, or remove --host".to_owned()));
    }
    #[cfg(feature = "bond")]
    return Ok(grounds.with(knee_lab::Hosts::to(file)?));
    // Naming the ground is refused, with the command for a build that has it.
    #[cfg(not(feature = "bond"))]
    Ok((grounds, file).0)
}

/// Runs a long operation with a progress bar and a handler for Ctrl-C.
pub fn watched<T>(lab: &Lab, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Failure> {
    interrupt::stops(lab.handle())?;
    let _bar = Bar::over(lab.handle());
    Ok(work()?)
}

/// Warns if `jobs` will write a large amount of data.
pub fn warn(jobs: &[Job<'_>]) {
    let written = Written::by(jobs);
    if written.bytes() > WARN_BYTES {
        let advice = match written.samples_bytes > written.logs_bytes {
            true => "a longer sample_interval reduces it",
            false => "omit --packet-log to reduce it",
        };
        let gigabytes = written.bytes() / 1e9;
        screen::say(&format!("This will write about {gigabytes:.0} GB; {advice}."));
    }
}
