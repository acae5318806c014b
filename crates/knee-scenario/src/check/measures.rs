//! What claims measure: the name, and the parameters that it takes.

use super::claims::Names;
use super::in_range;
use crate::file::ClaimFile;
use crate::measure::{Measure, PARAMETERS, SizeRange};
use crate::read::{At, Entry};
use crate::source::Reading;
use crate::suggest;
use knee_units::{Fraction, Time};

/// Parameters of measures of transfers, which may be left out.
const SIZES: [&str; 2] = ["size_at_least", "size_below"];
/// A ladder has no more qualities.
const QUALITY_MAX: u64 = 99;

pub(super) fn check(file: &ClaimFile, names: &Names, reading: &mut Reading<'_>) -> Option<Measure> {
    let name = file.measure.at()?;
    let needs = PARAMETERS.iter().find(|(known, _)| *known == name.value).map(|(_, keys)| *keys);
    let plain = Measure::plain(&name.value);
    if needs.is_none() && plain.is_none() {
        let known = Measure::names();
        let message = format!("there is no measure \"{}\"", name.value);
        let help = suggest::instead(&name.value, known.iter().map(String::as_str));
        reading.problem(name.span, message, help);
        return None;
    }
    let may: &[&str] = match plain {
        Some(
            Measure::FlowThroughput(..)
            | Measure::FlowCompletion(..)
            | Measure::CompletionJitter(_),
        ) => &SIZES,
        _ => &[],
    };
    parameters(file, name, needs.unwrap_or(&[]), may, reading);
    if plain.as_ref().is_some_and(Measure::compares) && file.relative_to == Entry::Absent {
        let message = format!("measure {} compares, and the claim names nothing else", name.value);
        reading.problem(name.span, message, "add relative_to = \"run/flow\"");
    }
    match name.value.as_str() {
        "convergence_time" => {
            Some(Measure::ConvergenceTime { band: file.band.get()?.get(), hold: *file.hold.get()? })
        }
        "takeover_time" => Some(Measure::TakeoverTime {
            fraction: file.fraction.get()?.get(),
            hold: *file.hold.get()?,
        }),
        "phase_entries" => file.phase.get().cloned().map(Measure::PhaseEntries),
        "phase_share" => file.phase.get().cloned().map(Measure::PhaseShare),
        "path_share" => path(file, names, reading).map(Measure::PathShare),
        "video_quality_share" => {
            file.quality.get().map(|quality| Measure::VideoQualityShare(*quality as u32))
        }
        _ => plain.map(|measure| match measure {
            Measure::FlowThroughput(statistic, _) => {
                Measure::FlowThroughput(statistic, sizes(file, reading))
            }
            Measure::FlowCompletion(statistic, _) => {
                Measure::FlowCompletion(statistic, sizes(file, reading))
            }
            Measure::CompletionJitter(_) => Measure::CompletionJitter(sizes(file, reading)),
            measure => measure,
        }),
    }
}

/// A path that there is.
fn path(file: &ClaimFile, names: &Names, reading: &mut Reading<'_>) -> Option<String> {
    let At { value, span } = file.path.at()?;
    if !names.incomplete && !names.paths.contains(value) {
        let help = suggest::instead(value, names.paths.iter().map(String::as_str));
        reading.problem(*span, format!("there is no path \"{value}\""), help);
    }
    Some(value.clone())
}

fn sizes(file: &ClaimFile, reading: &mut Reading<'_>) -> SizeRange {
    let at_least = file.size_at_least.get().copied().unwrap_or_default();
    if let Some(below) = file.size_below.at()
        && below.value <= at_least
    {
        let message = format!("no size is at least {at_least} and below {}", below.value);
        reading.problem(below.span, message, format!("write more than {at_least}"));
    }
    SizeRange { at_least: at_least.get(), below: file.size_below.get().map(|below| below.get()) }
}

/// Notes parameters that the measure needs and lacks, or does not take.
fn parameters(
    file: &ClaimFile,
    name: &At<String>,
    needs: &[&str],
    may: &[&str],
    reading: &mut Reading<'_>,
) {
    let given = [
        ("band", "\"25 %\"", file.band.span(), file.band.is_broken()),
        ("hold", "\"2 s\"", file.hold.span(), file.hold.is_broken()),
        ("phase", "\"probe_bw\"", file.phase.span(), file.phase.is_broken()),
        ("fraction", "\"90 %\"", file.fraction.span(), file.fraction.is_broken()),
        ("path", "\"name\"", file.path.span(), file.path.is_broken()),
        ("quality", "0", file.quality.span(), file.quality.is_broken()),
        ("size_at_least", "", file.size_at_least.span(), file.size_at_least.is_broken()),
        ("size_below", "", file.size_below.span(), file.size_below.is_broken()),
    ];
    for (key, example, span, broken) in given {
        match (span, needs.contains(&key)) {
            (None, true) if !broken => {
                let message = format!("measure {} needs {key}", name.value);
                reading.problem(name.span, message, format!("add {key} = {example}"));
            }
            (Some(span), false) if !may.contains(&key) => {
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
