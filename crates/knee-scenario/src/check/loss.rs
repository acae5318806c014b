//! Loss of a link.

use super::in_range;
use super::inputs::Inputs;
use super::links::steps;
use super::series::Recorded;
use crate::file::{LossFile, LossStepFile, LossTable, SteadyLossFile};
use crate::read::{At, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_link::Loss;
use knee_units::{Fraction, Time};

/// Reports a probability above one.
pub(super) fn probability(
    entry: &Optional<Fraction>,
    what: &str,
    reading: &mut Reading<'_>,
) -> f64 {
    in_range(entry, what, Fraction::default(), Fraction::new(1.0), reading);
    entry.get().map_or(0.0, |part| part.get())
}

/// Returns the loss model: constant, in steps, or as recorded.
pub(super) fn loss(
    entry: &mut Optional<LossFile>,
    recorded: Option<&Recorded>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Loss {
    let Optional::Given(at) = entry else { return Loss::None };
    match &mut at.value {
        LossFile::Independent(part) => {
            let part = Optional::Given(At { value: *part, span: at.span });
            match probability(&part, "the loss", reading) {
                0.0 => Loss::None,
                part => Loss::Independent(part),
            }
        }
        LossFile::Series(_) => recorded.map_or(Loss::None, |table| Loss::Steps(table.losses())),
        LossFile::Table(table) => pattern(at.span, table, inputs, reading).unwrap_or(Loss::None),
        LossFile::Steps(list) => {
            let checked: Vec<Option<(At<Time>, Loss)>> =
                list.iter_mut().map(|step| self::step(&mut step.value, inputs, reading)).collect();
            let list = checked.into_iter().collect::<Option<Vec<_>>>();
            let steps = list.and_then(|list| steps(at.span, list, reading));
            steps.map_or(Loss::None, Loss::Steps)
        }
    }
}

/// Checks a step; `None` if it is invalid.
fn step(
    file: &mut LossStepFile,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<(At<Time>, Loss)> {
    let Optional::Given(loss) = &mut file.loss.0 else { return None };
    let loss = match &mut loss.value {
        SteadyLossFile::Independent(part) => {
            let part = Optional::Given(At { value: *part, span: loss.span });
            Loss::Independent(probability(&part, "the loss", reading))
        }
        SteadyLossFile::Table(table) => pattern(loss.span, table, inputs, reading)?,
    };
    Some((file.at.at()?.clone(), loss))
}

fn pattern(
    span: Span,
    table: &mut LossTable,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Loss> {
    let states = [&table.good_to_bad, &table.bad_to_good, &table.loss_good, &table.loss_bad];
    let bursts = states.iter().any(|entry| entry.is_given());
    if states.iter().any(|entry| entry.is_broken()) || table.every.is_broken() {
        return None;
    }
    let super_packets = match &table.super_packets {
        Optional::Broken => return None,
        given => given.is_given(),
    };
    match (&table.every, &table.file, bursts) {
        (Optional::Absent, Optional::Absent, false) if super_packets => {
            Some(Loss::SuperPackets(probability(&table.super_packets, "super_packets", reading)))
        }
        (Optional::Given(_), Optional::Absent, false) if !super_packets => {
            in_range(&table.every, "every", 1, 1_000_000_000_000, reading);
            table.every.get().map(|every| Loss::Periodic(*every))
        }
        (Optional::Absent, Optional::Given(file), false) if !super_packets => {
            let file = file.clone();
            let lost = inputs.loss(&file, reading)?;
            table.file = Optional::new(inputs.resolved(&file.value));
            Some(Loss::Recorded(lost))
        }
        (Optional::Absent, Optional::Absent, true) if !super_packets => {
            gilbert_elliott(span, table, reading)
        }
        (_, Optional::Broken, _) => None,
        _ => {
            let help = "write { every = 1000 }, or { file = \"…\" }, or { super_packets = \"1 %\" }, \
                        or { good_to_bad = \"1 %\", bad_to_good = \"30 %\" }";
            reading.problem(span, "a loss pattern has one of four forms", help);
            None
        }
    }
}

fn gilbert_elliott(span: Span, table: &mut LossTable, reading: &mut Reading<'_>) -> Option<Loss> {
    if !(table.good_to_bad.is_given() && table.bad_to_good.is_given()) {
        let help = "write { good_to_bad = \"1 %\", bad_to_good = \"30 %\" }";
        reading.problem(span, "bursts of loss need good_to_bad and bad_to_good", help);
        return None;
    }
    table.loss_good.fill(Fraction::default());
    table.loss_bad.fill(Fraction::new(1.0));
    Some(Loss::GilbertElliott {
        good_to_bad: probability(&table.good_to_bad, "good_to_bad", reading),
        bad_to_good: probability(&table.bad_to_good, "bad_to_good", reading),
        loss_good: probability(&table.loss_good, "loss_good", reading),
        loss_bad: probability(&table.loss_bad, "loss_bad", reading),
    })
}
