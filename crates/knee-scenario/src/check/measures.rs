//! The measures of claims: the name, and the parameters that it takes.

use super::claims::Names;
use super::in_range;
use crate::file::ClaimFile;
use crate::measure::{Declared, Measure, Parameters, SizeRange};
use crate::read::{At, Optional};
use crate::source::Reading;
use knee_units::registry::did_you_mean;
use knee_units::statistics::Statistic;
use knee_units::{Fraction, Time};

/// Largest quality number of a ladder.
const QUALITY_MAX: u64 = 99;

pub(super) fn check(file: &ClaimFile, names: &Names, reading: &mut Reading<'_>) -> Option<Measure> {
    let name = file.measure.at()?;
    let Some((declared, statistic)) = Declared::find(&name.value) else {
        let known = Measure::names();
        let message = format!("there is no measure \"{}\"", name.value);
        let help = did_you_mean(&name.value, known.iter().map(String::as_str));
        reading.problem(name.span, message, help);
        return None;
    };
    parameters(file, name, declared, reading);
    if declared.compares && file.relative_to == Optional::Absent {
        let message =
            format!("measure {} compares two runs, but the claim names only one", name.value);
        reading.problem(name.span, message, "add relative_to = \"run/flow\"");
    }
    if !declared.takes().is_empty() {
        sizes(file, reading);
    }
    if declared.needs().any(|key| key == "path") {
        path(file, names, reading);
    }
    Measure::build(declared.name, &ClaimParameters { file, statistic })
}

/// The parameters that a claim gives.
struct ClaimParameters<'f> {
    file: &'f ClaimFile,
    statistic: Option<Statistic>,
}

impl Parameters for ClaimParameters<'_> {
    fn statistic(&self) -> Option<Statistic> {
        self.statistic
    }
    fn sizes(&self) -> Option<SizeRange> {
        let at_least = self.file.size_at_least.get().map_or(0, |least| least.get());
        Some(SizeRange { at_least, below: self.file.size_below.get().map(|below| below.get()) })
    }
    fn band(&self) -> Option<f64> {
        self.file.band.get().map(|band| band.get())
    }
    fn fraction(&self) -> Option<f64> {
        self.file.fraction.get().map(|fraction| fraction.get())
    }
    fn hold(&self) -> Option<Time> {
        self.file.hold.get().copied()
    }
    fn phase(&self) -> Option<String> {
        self.file.phase.get().cloned()
    }
    fn next(&self) -> Option<String> {
        self.file.next.get().cloned()
    }
    fn path(&self) -> Option<String> {
        self.file.path.get().cloned()
    }
    fn quality(&self) -> Option<u32> {
        self.file.quality.get().map(|quality| *quality as u32)
    }
}

/// Reports a path that does not exist.
fn path(file: &ClaimFile, names: &Names, reading: &mut Reading<'_>) {
    let Some(At { value, span }) = file.path.at() else { return };
    if !names.incomplete && !names.paths.contains(value) {
        let help = did_you_mean(value, names.paths.iter().map(String::as_str));
        reading.problem(*span, format!("there is no path \"{value}\""), help);
    }
}

/// Reports an empty size range.
fn sizes(file: &ClaimFile, reading: &mut Reading<'_>) {
    let at_least = file.size_at_least.get().copied().unwrap_or_default();
    if let Some(below) = file.size_below.at()
        && below.value <= at_least
    {
        let message = format!("no size is at least {at_least} and below {}", below.value);
        reading.problem(below.span, message, format!("write more than {at_least}"));
    }
}

/// Reports parameters that the measure needs but lacks, or does not take.
fn parameters(file: &ClaimFile, name: &At<String>, declared: &Declared, reading: &mut Reading<'_>) {
    let given = [
        ("band", "\"25 %\"", file.band.span(), file.band.is_broken()),
        ("hold", "\"2 s\"", file.hold.span(), file.hold.is_broken()),
        ("phase", "\"probe_bw\"", file.phase.span(), file.phase.is_broken()),
        ("next", "\"drain\"", file.next.span(), file.next.is_broken()),
        ("fraction", "\"90 %\"", file.fraction.span(), file.fraction.is_broken()),
        ("path", "\"name\"", file.path.span(), file.path.is_broken()),
        ("quality", "0", file.quality.span(), file.quality.is_broken()),
        ("size_at_least", "", file.size_at_least.span(), file.size_at_least.is_broken()),
        ("size_below", "", file.size_below.span(), file.size_below.is_broken()),
    ];
    for (key, example, span, broken) in given {
        match (span, declared.needs().any(|needed| needed == key)) {
            (None, true) if !broken => {
                let message = format!("measure {} needs {key}", name.value);
                reading.problem(name.span, message, format!("add {key} = {example}"));
            }
            (Some(span), false) if !declared.takes().contains(&key) => {
                let message = format!("measure {} has no parameter {key}", name.value);
                reading.problem(span, message, "remove it");
            }
            _ => {}
        }
    }
    let (zero, smallest) = (Fraction::default(), Time::from_nanos(1));
    in_range(&file.band, "the band", zero, Fraction::new(1.0), reading);
    in_range(&file.fraction, "the fraction", zero, Fraction::new(1.0), reading);
    in_range(&file.quality, "the quality", 0, QUALITY_MAX, reading);
    in_range(&file.hold, "the hold time", smallest, Time::MAX, reading);
}
