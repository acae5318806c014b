//! Links: rate, delay, policer, outages and holds.

use super::inputs::Inputs;
use super::loss::{loss, probability};
use super::paths::CheckedPath;
use super::series::{OfLink, Recorded};
use super::{breaker, check_name, in_range, pause, queue};
use crate::file::{
    AmountFile, AmountStepFile, DelayFile, DistributionWord, DownFile, HoldFile, JitterFile,
    LinkFile, OffsetFile, OffsetWord, PolicerFile, RateFile,
};
use crate::model::Link;
use crate::read::{At, List, Named, Optional};
use crate::source::Reading;
use crate::streams::offset_stream;
use crate::tree::Span;
use knee_link::{Config, Delay, Jitter, Normal, Policer, RateModel, Steps, Trace};
use knee_units::random::below;
use knee_units::{Bytes, Rate, Time};
use std::fmt::Display;
use std::sync::Arc;

pub(crate) const RATE_MIN: Rate = Rate::from_bits_per_second(1);
const RATE_MAX: Rate = Rate::from_bits_per_second(10_000_000_000_000);
const DELAY_MAX: Time = Time::from_secs(600);
const STEPS_MAX: usize = 100_000;

/// Sizes of the largest segments, IP bytes.
pub(super) struct Segments<'s> {
    pub default: u64,
    pub on_path: &'s [u64],
}

/// What is known before the links are checked.
#[derive(Clone, Copy)]
pub(super) struct Known<'k> {
    pub seed: u64,
    pub ways: &'k [CheckedPath],
    /// What the files of each link say.
    pub recorded: &'k [OfLink],
}

/// Checks all links.
pub(super) fn check(
    links: &mut Named<LinkFile>,
    Known { seed, ways, recorded }: Known<'_>,
    segments: Segments<'_>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Vec<Link> {
    let mut checked = Vec::new();
    for (index, (name, entry)) in links.0.iter_mut().enumerate() {
        check_name(&name.value, name.span, reading);
        let Optional::Given(file) = entry else { continue };
        let is_over = |path: &usize| ways[*path].leads_over(index);
        let paths: Vec<usize> = (0..ways.len()).filter(is_over).collect();
        let over: Vec<&CheckedPath> = paths.iter().map(|path| &ways[*path]).collect();
        let mtu = paths.iter().map(|path| segments.on_path[*path]).max();
        let mtu = mtu.unwrap_or(segments.default);
        let complete = ways.iter().all(|way| way.path.is_some());
        let OfLink { rate: rates, delay: delays, loss: losses } = &recorded[index];
        let draw = (seed, &*name.value);
        let rate = rate(&mut file.value.rate, as_read(rates), draw, inputs, reading);
        let nominal = match as_read(rates) {
            Some(table) => Some(table.mean_rate()),
            None => rate.as_ref().and_then(nominal_rate),
        };
        let place = queue::Place { name, over: &over, complete, rate: rate.as_ref(), nominal, mtu };
        let (buffer, aqm) = queue::check(&mut file.value, &place, reading);
        let device = queue::device(&file.value, &aqm, reading);
        let pause = pause::check(&file.value, (buffer, &aqm), &place, reading);
        let file = &mut file.value;
        let config = Config {
            rate: rate.unwrap_or(RateModel::Unlimited),
            delay: delay(file, as_read(delays), reading),
            buffer,
            aqm,
            device,
            loss: loss(&mut file.loss, as_read(losses), inputs, reading),
            policer: policer(&file.policer, mtu, reading),
            down: down(&file.down, reading),
            hold: hold(&file.hold, reading),
            circuit_breaker: breaker::check(&mut file.circuit_breaker, &over, reading),
            ecn_bleached: file.ecn_bleached.get().copied().unwrap_or(false),
            pause,
            // Known once all links are.
            pausable: false,
        };
        checked.push(Link { name: name.value.clone(), config, nominal_rate: nominal });
    }
    checked
}

/// Returns what a file says, if it is named and whole.
fn as_read(found: &Option<Option<Recorded>>) -> Option<&Recorded> {
    found.as_ref()?.as_ref()
}

/// Checks a rate; `None` if it is invalid. `draw` is the seed and the link's name.
fn rate(
    entry: &mut Optional<RateFile>,
    recorded: Option<&Recorded>,
    draw: (u64, &str),
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<RateModel> {
    let Optional::Given(at) = entry else {
        return (!entry.is_broken()).then_some(RateModel::Unlimited);
    };
    match &mut at.value {
        RateFile::Constant(rate) => {
            let rate = Optional::Given(At { value: *rate, span: at.span });
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
            file.trace.0 = Optional::new(inputs.resolved(&name.value));
            Some(RateModel::Trace(Arc::new(trace)))
        }
        RateFile::Series(_) => recorded.map(|table| RateModel::Steps(table.rates())),
    }
}

/// Returns the offset in a trace at which the run begins; `None` if it is outside the trace.
fn offset(
    entry: &Optional<OffsetFile>,
    trace: &Trace,
    (seed, link): (u64, &str),
    reading: &mut Reading<'_>,
) -> Option<Time> {
    let period_ms = trace.opportunities_ms.last().copied().unwrap_or(0);
    let period = Time::from_millis(u64::from(period_ms));
    match entry.at() {
        None => Some(Time::ZERO),
        Some(At { value: OffsetFile::Drawn(OffsetWord::Random), .. }) => {
            Some(Time::from_millis(below(&mut offset_stream(seed, link), u64::from(period_ms))))
        }
        Some(At { value: OffsetFile::At(offset), .. }) if *offset < period => Some(*offset),
        Some(At { value: OffsetFile::At(offset), span }) => {
            let message = format!("the trace lasts {period}, but the offset is {offset}");
            reading.problem(*span, message, format!("write less than {period}, or \"random\""));
            None
        }
    }
}

/// Returns the rate by which a buffer in BDP is measured: the rate at the start, or the mean of a
/// trace; `None` without a rate.
fn nominal_rate(rate: &RateModel) -> Option<Rate> {
    match rate {
        RateModel::Unlimited => None,
        RateModel::Constant(rate) => Some(*rate),
        RateModel::Steps(steps) => steps.0.first().map(|(_, rate)| *rate),
        RateModel::Trace(trace) => Some(mean_rate(trace)),
    }
}

/// Returns the mean rate: each opportunity lets 1500 bytes leave, and the trace lasts until its
/// last opportunity.
fn mean_rate(trace: &Trace) -> Rate {
    let period = trace.opportunities_ms.last().copied().unwrap_or(0);
    let bytes = trace.opportunities_ms.len() as u64 * 1500;
    Rate::over(bytes, Time::from_millis(u64::from(period)))
}

fn delay(file: &mut LinkFile, recorded: Option<&Recorded>, reading: &mut Reading<'_>) -> Delay {
    let mut reorder = false;
    let base = match file.delay.fill(DelayFile::Constant(Time::ZERO)) {
        DelayFile::Constant(delay) => {
            let span = file.delay.span().unwrap_or_default();
            let delay = Optional::Given(At { value: delay, span });
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
        DelayFile::Series(given) => {
            reorder = given.reorder.get().copied().unwrap_or(false);
            recorded.map_or(Steps(vec![(Time::ZERO, Time::ZERO)]), Recorded::delays)
        }
    };
    let jitter = file.jitter.at().map(|file| jitter(&file.value, file.span, reading));
    Delay { base, reorder, jitter }
}

fn jitter(file: &JitterFile, span: Span, reading: &mut Reading<'_>) -> Jitter {
    let reorder = file.reorder.get().copied().unwrap_or(false);
    if file.distribution.get() == Some(&DistributionWord::Normal) {
        let normal = normal(file, span, reading);
        let amount = Steps(vec![(Time::ZERO, normal.largest())]);
        let (least, normal) = (Time::ZERO, Some(normal));
        return Jitter { amount, least, share: 1.0, normal, reorder };
    }
    for (entry, name) in [(&file.mean, "mean"), (&file.deviation, "deviation")] {
        if let Some(At { span, .. }) = entry.at() {
            let message = format!("only a normal distribution has a {name}");
            reading.problem(*span, message, "add distribution = \"normal\", or write amount");
        }
    }
    if file.amount.at().is_none() {
        let help = "write amount = \"5 ms\", or distribution = \"normal\" and deviation";
        reading.problem(span, "a jitter needs an amount", help);
    }
    let amount = amount(&file.amount, reading);
    // The smallest addition must not exceed the smallest amount.
    let smallest = amount.0.iter().map(|(_, amount)| *amount).min().unwrap_or_default();
    let mut least = file.at_least.get().copied().unwrap_or_default();
    if !in_range(&file.at_least, "the smallest addition", Time::ZERO, smallest, reading) {
        least = Time::ZERO;
    }
    probability(&file.share, "the share of late packets", reading);
    Jitter {
        amount,
        least,
        share: file.share.get().map_or(1.0, |share| share.get()),
        normal: None,
        reorder,
    }
}

/// Checks a jitter with a normal distribution, which delays every packet.
fn normal(file: &JitterFile, span: Span, reading: &mut Reading<'_>) -> Normal {
    let others = [
        (file.amount.span(), "amount"),
        (file.at_least.span(), "at_least"),
        (file.share.span(), "share"),
    ];
    for (span, name) in others {
        if let Some(span) = span {
            let message = format!("a normal distribution has no {name}");
            reading.problem(span, message, "write mean and deviation");
        }
    }
    if file.deviation.at().is_none() {
        let message = "a normal distribution needs a deviation";
        reading.problem(span, message, "write deviation = \"2 ms\"");
    }
    in_range(&file.mean, "the mean", Time::ZERO, DELAY_MAX, reading);
    in_range(&file.deviation, "the deviation", Time::from_nanos(1), DELAY_MAX, reading);
    let value = |entry: &Optional<Time>| entry.get().copied().unwrap_or_default().min(DELAY_MAX);
    Normal { mean: value(&file.mean), deviation: value(&file.deviation) }
}

/// Returns the largest random addition to the delay.
fn amount(entry: &Optional<AmountFile>, reading: &mut Reading<'_>) -> Steps<Time> {
    let none = Steps(vec![(Time::ZERO, Time::ZERO)]);
    match entry.at() {
        None => none,
        Some(At { value: AmountFile::Constant(amount), span }) => {
            let amount = Optional::Given(At { value: *amount, span: *span });
            in_range(&amount, "the jitter", Time::from_nanos(1), DELAY_MAX, reading);
            Steps(vec![(Time::ZERO, amount.get().copied().unwrap_or_default())])
        }
        Some(At { value: AmountFile::Steps(list), span }) => {
            for step in list {
                in_range(&step.value.amount.0, "the jitter", Time::ZERO, DELAY_MAX, reading);
            }
            let step =
                |s: &At<AmountStepFile>| Some((s.value.at.at()?.clone(), *s.value.amount.get()?));
            let list = list.iter().map(step).collect::<Option<Vec<_>>>();
            list.and_then(|list| steps(*span, list, reading)).unwrap_or(none)
        }
    }
}

/// Checks steps in time: ascending, the first at zero.
pub(super) fn steps<T>(
    span: Span,
    list: Vec<(At<Time>, T)>,
    reading: &mut Reading<'_>,
) -> Option<Steps<T>> {
    if list.is_empty() || list.len() > STEPS_MAX {
        let message = format!("expected 1 to {STEPS_MAX} steps, found {}", list.len());
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
            let message =
                format!("steps must ascend, but {} follows {}", after.value, before.value);
            reading.problem(after.span, message, "write the steps in order of time");
        }
    }
    Some(Steps(list.into_iter().map(|(at, value)| (at.value, value)).collect()))
}

fn policer(entry: &Optional<PolicerFile>, mtu: u64, reading: &mut Reading<'_>) -> Option<Policer> {
    let file = entry.get()?;
    in_range(&file.rate.0, "the policer's rate", RATE_MIN, RATE_MAX, reading);
    // A bucket smaller than a packet lets nothing through.
    let smallest = Bytes::new(mtu);
    in_range(&file.burst.0, "the policer's burst", smallest, queue::BYTES_MAX, reading);
    Some(Policer { rate: *file.rate.get()?, burst: file.burst.get()?.get() })
}

/// Returns the outages in order of time.
fn down(list: &List<DownFile>, reading: &mut Reading<'_>) -> Vec<(Time, Time)> {
    let mut spans: Vec<(At<Time>, Time)> = Vec::new();
    for file in list.0.iter().filter_map(Optional::get) {
        let (Some(from), Some(until)) = (file.from.at(), file.until.at()) else { continue };
        if !ordered(from.value, until, "the outage", reading) {
            continue;
        }
        spans.push((from.clone(), until.value));
    }
    apart(spans, "outage", reading)
}

/// Returns the holds in order of time.
fn hold(list: &List<HoldFile>, reading: &mut Reading<'_>) -> Vec<(Time, Time)> {
    let mut spans: Vec<(At<Time>, Time)> = Vec::new();
    for file in list.0.iter().filter_map(Optional::get) {
        let (Some(from), Some(until)) = (file.from.at(), file.until.at()) else { continue };
        if ordered(from.value, until, "the hold", reading) {
            spans.push((from.clone(), until.value));
        }
    }
    apart(spans, "hold", reading)
}

/// Sorts spans by time; reports those that overlap.
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
            let message = format!(
                "this {noun} begins before the end of the one from {} to {end}",
                from.value
            );
            reading.problem(next.span, message, format!("write one {noun} instead of two"));
        }
    }
    spans.into_iter().map(|(from, until)| (from.value, until)).collect()
}

/// Reports an end that is not after its start.
pub(super) fn ordered<T: PartialOrd + Display>(
    from: T,
    until: &At<T>,
    what: &str,
    reading: &mut Reading<'_>,
) -> bool {
    let right = from < until.value;
    if !right {
        let message =
            format!("{what} ends at {}, which is not after its start at {from}", until.value);
        reading.problem(until.span, message, format!("write a time after {from}"));
    }
    right
}
