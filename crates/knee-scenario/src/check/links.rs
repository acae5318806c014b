//! Links: rate, delay, loss, policer and outages.

use super::inputs::Inputs;
use super::paths::Way;
use super::{check_name, in_range, queue};
use crate::file::{
    DelayFile, DownFile, LinkFile, LossFile, LossTable, OffsetFile, OffsetWord, PolicerFile,
    RateFile,
};
use crate::model::Link;
use crate::read::{At, Entry, List, Named};
use crate::source::Reading;
use crate::streams::offset_stream;
use crate::tree::Span;
use knee_link::{Config, Delay, Jitter, Loss, Policer, RateModel, Steps, Trace};
use knee_units::{Bytes, Fraction, Rate, Time};
use rand_core::Rng;
use std::fmt::Display;
use std::sync::Arc;

pub(super) const RATE_MIN: Rate = Rate::from_bits_per_second(1);
const RATE_MAX: Rate = Rate::from_bits_per_second(10_000_000_000_000);
const DELAY_MAX: Time = Time::from_secs(600);
const STEPS_MAX: usize = 100_000;

/// IP bytes of the largest segment.
pub(super) struct Segments<'s> {
    pub default: u64,
    pub on_path: &'s [u64],
}

/// Checks all links.
pub(super) fn check(
    links: &mut Named<LinkFile>,
    seed: u64,
    ways: &[Way],
    segments: Segments<'_>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Link> {
    let mut checked = Vec::new();
    for (index, (name, entry)) in links.0.iter_mut().enumerate() {
        check_name(&name.value, name.span, reading);
        let Entry::Given(file) = entry else { continue };
        let is_over = |path: &usize| ways[*path].leads_over(index);
        let paths: Vec<usize> = (0..ways.len()).filter(is_over).collect();
        let over: Vec<&Way> = paths.iter().map(|path| &ways[*path]).collect();
        let mtu = paths.iter().map(|path| segments.on_path[*path]).max();
        let mtu = mtu.unwrap_or(segments.default);
        let complete = ways.iter().all(|way| way.path.is_some());
        let rate = rate(&mut file.value.rate, (seed, &name.value), inputs, reading);
        let place = queue::Place { name, over: &over, complete, rate: rate.as_ref(), mtu };
        let (buffer, aqm) = queue::check(&mut file.value, &place, reading);
        let file = &mut file.value;
        let config = Config {
            rate: rate.unwrap_or(RateModel::Unlimited),
            delay: delay(file, reading),
            buffer,
            aqm,
            loss: loss(&mut file.loss, inputs, reading),
            policer: policer(&file.policer, mtu, reading),
            down: down(&file.down, reading),
        };
        checked.push(Link { name: name.value.clone(), config });
    }
    checked
}

/// None: something is wrong with it. `draw`: the seed and the link's name.
fn rate(
    entry: &mut Entry<RateFile>,
    draw: (u64, &str),
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<RateModel> {
    let Entry::Given(at) = entry else {
        return (!entry.is_broken()).then_some(RateModel::Unlimited);
    };
    match &mut at.value {
        RateFile::Constant(rate) => {
            let rate = Entry::Given(At { value: *rate, span: at.span });
            let possible = in_range(&rate, "the rate", RATE_MIN, RATE_MAX, reading);
            rate.get().filter(|_| possible).copied().map(RateModel::Constant)
        }
        RateFile::Steps(list) => {
            for step in list.iter() {
                in_range(&step.value.rate.0, "the rate", Rate::ZERO, RATE_MAX, reading);
            }
            let step = |s: &At<_>| -> Option<(At<Time>, Rate)> {
                let s: &At<crate::file::RateStepFile> = s;
                Some((s.value.at.at()?.clone(), *s.value.rate.get()?))
            };
            let steps = steps(at.span, list.iter().map(step).collect::<Option<_>>()?, reading)?;
            if steps.0.iter().all(|(_, rate)| *rate == Rate::ZERO) {
                let help = "write a rate above \"0 bit/s\" in one of the steps";
                reading.problem(at.span, "the rate is always zero", help);
                return None;
            }
            Some(RateModel::Steps(steps))
        }
        RateFile::Trace(file) => {
            let name = file.trace.at()?.clone();
            let mut trace = inputs.trace(&name, reading)?;
            trace.offset = offset(&file.offset, &trace, draw, reading)?;
            file.trace.0 = Entry::new(inputs.resolved(&name.value));
            Some(RateModel::Trace(Arc::new(trace)))
        }
    }
}

/// Where in a trace the run begins; none: not in it.
fn offset(
    entry: &Entry<OffsetFile>,
    trace: &Trace,
    (seed, link): (u64, &str),
    reading: &mut Reading<'_>,
) -> Option<Time> {
    let period_ms = trace.opportunities_ms.last().copied().unwrap_or(0);
    let period = Time::from_millis(u64::from(period_ms));
    match entry.at() {
        None => Some(Time::ZERO),
        Some(At { value: OffsetFile::Drawn(OffsetWord::Random), .. }) => {
            let drawn = offset_stream(seed, link).next_u64();
            // Lemire 2019, without rejection; the bias is below 2^-32.
            let ms = (u128::from(drawn) * u128::from(period_ms)) >> 64;
            Some(Time::from_millis(ms as u64))
        }
        Some(At { value: OffsetFile::At(offset), .. }) if *offset < period => Some(*offset),
        Some(At { value: OffsetFile::At(offset), span }) => {
            let message = format!("the trace lasts {period}, the offset is {offset}");
            reading.problem(*span, message, format!("write less than {period}, or \"random\""));
            None
        }
    }
}

/// The rate by which a buffer in BDP is measured: that of the start, or the
/// mean of a trace; none without a rate.
pub(crate) fn nominal_rate(rate: &RateModel) -> Option<Rate> {
    match rate {
        RateModel::Unlimited => None,
        RateModel::Constant(rate) => Some(*rate),
        RateModel::Steps(steps) => steps.0.first().map(|(_, rate)| *rate),
        RateModel::Trace(trace) => Some(mean_rate(trace)),
    }
}

/// Each opportunity lets 1500 bytes leave; the whole takes until its last.
fn mean_rate(trace: &Trace) -> Rate {
    let period = trace.opportunities_ms.last().copied().unwrap_or(0);
    let bytes = trace.opportunities_ms.len() as u64 * 1500;
    Rate::over(bytes, Time::from_millis(u64::from(period)))
}

fn delay(file: &mut LinkFile, reading: &mut Reading<'_>) -> Delay {
    let base = match file.delay.fill(DelayFile::Constant(Time::ZERO)) {
        DelayFile::Constant(delay) => {
            let span = file.delay.span().unwrap_or_default();
            let delay = Entry::Given(At { value: delay, span });
            in_range(&delay, "the delay", Time::ZERO, DELAY_MAX, reading);
            Steps(vec![(Time::ZERO, delay.get().copied().unwrap_or_default())])
        }
        DelayFile::Steps(list) => {
            for step in &list {
                in_range(&step.value.delay.0, "the delay", Time::ZERO, DELAY_MAX, reading);
            }
            let step = |s: &At<crate::file::DelayStepFile>| {
                Some((s.value.at.at()?.clone(), *s.value.delay.get()?))
            };
            let span = file.delay.span().unwrap_or_default();
            let list = list.iter().map(step).collect::<Option<Vec<_>>>();
            let checked = list.and_then(|list| steps(span, list, reading));
            checked.unwrap_or(Steps(vec![(Time::ZERO, Time::ZERO)]))
        }
    };
    let jitter = file.jitter.get().map(|jitter| {
        let smallest = Time::from_nanos(1);
        in_range(&jitter.amount.0, "the jitter", smallest, DELAY_MAX, reading);
        Jitter {
            amount: jitter.amount.get().copied().unwrap_or_default(),
            reorder: jitter.reorder.get().copied().unwrap_or(false),
        }
    });
    Delay { base, jitter }
}

/// Steps in time: the first at zero, ascending.
fn steps<T: Copy>(
    span: Span,
    list: Vec<(At<Time>, T)>,
    reading: &mut Reading<'_>,
) -> Option<Steps<T>> {
    if list.is_empty() || list.len() > STEPS_MAX {
        let message = format!("there must be 1 to {STEPS_MAX} steps, these are {}", list.len());
        reading.problem(span, message, "write a step with at = \"0 s\", and one for each change");
        return None;
    }
    if list[0].0.value != Time::ZERO {
        let message = "the first step must be at \"0 s\"";
        reading.problem(list[0].0.span, message, "write at = \"0 s\"");
    }
    for pair in list.windows(2) {
        let (before, after) = (&pair[0].0, &pair[1].0);
        if after.value <= before.value {
            let message = format!("steps must ascend, {} follows {}", after.value, before.value);
            reading.problem(after.span, message, "write the steps in the order of time");
        }
    }
    Some(Steps(list.into_iter().map(|(at, value)| (at.value, value)).collect()))
}

/// Notes a probability above one.
pub(super) fn probability(entry: &Entry<Fraction>, what: &str, reading: &mut Reading<'_>) -> f64 {
    in_range(entry, what, Fraction::default(), Fraction::new(1.0), reading);
    entry.get().map_or(0.0, |part| part.get())
}

fn loss(entry: &mut Entry<LossFile>, inputs: &mut Inputs<'_>, reading: &mut Reading<'_>) -> Loss {
    let Entry::Given(at) = entry else { return Loss::None };
    match &mut at.value {
        LossFile::Independent(part) => {
            let part = Entry::Given(At { value: *part, span: at.span });
            match probability(&part, "the loss", reading) {
                0.0 => Loss::None,
                part => Loss::Independent(part),
            }
        }
        LossFile::Table(table) => pattern(at.span, table, inputs, reading).unwrap_or(Loss::None),
    }
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
    match (&table.every, &table.file, bursts) {
        (Entry::Given(_), Entry::Absent, false) => {
            in_range(&table.every, "every", 1, 1_000_000_000_000, reading);
            table.every.get().map(|every| Loss::Periodic(*every))
        }
        (Entry::Absent, Entry::Given(file), false) => {
            let file = file.clone();
            let lost = inputs.loss(&file, reading)?;
            table.file = Entry::new(inputs.resolved(&file.value));
            Some(Loss::Recorded(lost))
        }
        (Entry::Absent, Entry::Absent, true) => gilbert_elliott(span, table, reading),
        (_, Entry::Broken, _) => None,
        _ => {
            let help = "write { every = 1000 }, or { file = \"…\" }, or \
                        { good_to_bad = \"1 %\", bad_to_good = \"30 %\" }";
            reading.problem(span, "a loss pattern is one of three", help);
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

fn policer(entry: &Entry<PolicerFile>, mtu: u64, reading: &mut Reading<'_>) -> Option<Policer> {
    let file = entry.get()?;
    in_range(&file.rate.0, "the policer's rate", RATE_MIN, RATE_MAX, reading);
    // A bucket that holds less than a packet lets none through.
    let smallest = Bytes::new(mtu);
    in_range(&file.burst.0, "the policer's burst", smallest, queue::BYTES_MAX, reading);
    Some(Policer { rate: *file.rate.get()?, burst: file.burst.get()?.get() })
}

/// Outages in the order of time.
fn down(list: &List<DownFile>, reading: &mut Reading<'_>) -> Vec<(Time, Time)> {
    let mut spans: Vec<(At<Time>, Time)> = Vec::new();
    for file in list.0.iter().filter_map(Entry::get) {
        let (Some(from), Some(until)) = (file.from.at(), file.until.at()) else { continue };
        if !ordered(from.value, until, "the outage", reading) {
            continue;
        }
        spans.push((from.clone(), until.value));
    }
    apart(spans, "outage", reading)
}

/// Spans in the order of time; notes those that overlap.
pub(super) fn apart(
    mut spans: Vec<(At<Time>, Time)>,
    noun: &str,
    reading: &mut Reading<'_>,
) -> Vec<(Time, Time)> {
    spans.sort_by_key(|(from, _)| from.value);
    for pair in spans.windows(2) {
        let [(from, until), (next, _)] = pair else { continue };
        if next.value < *until {
            let end = if *until == Time::MAX { "the end".into() } else { until.to_string() };
            let message =
                format!("this {noun} begins before the one from {} to {end} has ended", from.value);
            reading.problem(next.span, message, format!("write one {noun} instead of two"));
        }
    }
    spans.into_iter().map(|(from, until)| (from.value, until)).collect()
}

/// Notes an end that is not after its start.
pub(super) fn ordered<T: PartialOrd + Display>(
    from: T,
    until: &At<T>,
    what: &str,
    reading: &mut Reading<'_>,
) -> bool {
    let right = from < until.value;
    if !right {
        let message = format!("{what} ends at {}, not after its start at {from}", until.value);
        reading.problem(until.span, message, format!("write a time after {from}"));
    }
    right
}
