//! The laboratory as the command line uses it: with a bar, a word about what
//! it will write, and Ctrl-C.

use crate::arguments::planned;
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{build, interrupt, screen};
use knee_lab::{Error, Ground, Grounds, Job, Lab, Written};
use std::ffi::OsString;
use std::sync::OnceLock;

/// No word is said of less.
const WARN_BYTES: f64 = 10e9;

/// The command line, for the manifests of runs.
static TYPED: OnceLock<Vec<String>> = OnceLock::new();

/// Keeps the command line, and gives it back.
pub fn remember(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let texts = typed.iter().map(|argument| argument.to_string_lossy().into_owned());
    // The first call counts: a process has one command line.
    let _ = TYPED.set(texts.collect());
    typed
}

/// One that makes so many runs at the same time.
pub fn lab(parallel: Option<u16>) -> Lab {
    let mut lab = Lab::default();
    (lab.parallel, lab.arguments) = (parallel, TYPED.get().cloned().unwrap_or_default());
    lab.program = build::program();
    lab
}

/// The grounds that were asked for.
pub fn chosen<'g>(grounds: &'g Grounds, names: &[String]) -> Result<Vec<&'g dyn Ground>, Failure> {
    if let Some(name) = planned(grounds).find(|name| names.iter().any(|n| n == name)) {
        let what = format!("the ground {name} is not in this version");
        return Err(Failure::Host(what, "run on the simulator, with --on sim".to_string()));
    }
    Ok(grounds.choose(names).map_err(Error::from)?)
}

/// Does what takes long: with a bar, and an end at Ctrl-C.
pub fn watched<T>(lab: &Lab, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Failure> {
    interrupt::stops(lab.handle())?;
    let _bar = Bar::over(lab.handle());
    Ok(work()?)
}

/// Says how much `jobs` will write, if it is a lot.
pub fn warn(jobs: &[Job<'_>]) {
    let written = Written::by(jobs);
    if written.bytes() > WARN_BYTES {
        let advice = match written.samples_bytes > written.logs_bytes {
            true => "a longer sample_interval makes it less",
            false => "without --packet-log it is less",
        };
        let gigabytes = written.bytes() / 1e9;
        screen::say(&format!("This will write about {gigabytes:.0} GB; {advice}."));
    }
}
