//! Values over time that links read from files. They are read before anything else: paths and
//! queues depend on them.

use super::inputs::Inputs;
use crate::file::{
    DelayFile, DelaySeriesFile, GapWord, LinkFile, LossFile, OffsetFile, OffsetWord, RateFile,
    SeriesFile,
};
use crate::read::{At, Named, Optional};
use crate::source::Reading;
use crate::streams::offset_stream;
use crate::tree::Span;
use knee_foreign::{Columns, Gap, Quantity, STEPS_MAX, Series};
use knee_link::{Loss, Steps};
use knee_units::random::below;
use knee_units::{Rate, Time};

/// A value over the time of a run.
pub(super) struct Recorded {
    /// From each time on, the value: bit/s, seconds, or a part of one.
    steps: Vec<(Time, f64)>,
    /// Mean of the whole table.
    mean: f64,
    /// Smallest value of the whole table.
    least: f64,
}

/// What the files of a link say; an outer `None` if no file is named, an inner one if it is broken.
#[derive(Default)]
pub(super) struct OfLink {
    pub rate: Option<Option<Recorded>>,
    pub delay: Option<Option<Recorded>>,
    pub loss: Option<Option<Recorded>>,
}

/// What all tables of a run have in common.
#[derive(Clone, Copy)]
pub(super) struct OfRun {
    pub duration: Time,
    pub seed: u64,
}

impl Recorded {
    /// Returns the rate over time.
    pub fn rates(&self) -> Steps<Rate> {
        self.mapped(|rate| Rate::from_bits_per_second(rate.round() as u64))
    }

    /// Returns the mean rate of the whole table.
    pub fn mean_rate(&self) -> Rate {
        Rate::from_bits_per_second(self.mean.round() as u64)
    }

    /// Returns the delay over time.
    pub fn delays(&self) -> Steps<Time> {
        self.mapped(Time::from_secs_f64)
    }

    /// Returns the smallest delay of the whole table.
    pub fn least_delay(&self) -> Time {
        Time::from_secs_f64(self.least)
    }

    /// Returns the loss over time.
    pub fn losses(&self) -> Steps<Loss> {
        self.mapped(|part| if part > 0.0 { Loss::Independent(part) } else { Loss::None })
    }

    fn mapped<T>(&self, value: impl Fn(f64) -> T) -> Steps<T> {
        Steps(self.steps.iter().map(|(at, found)| (*at, value(*found))).collect())
    }
}

/// Reads the files of all links, in their order.
pub(super) fn read(
    links: &mut Named<LinkFile>,
    run: OfRun,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Vec<OfLink> {
    let mut all = Vec::new();
    for (name, entry) in &mut links.0 {
        let mut found = OfLink::default();
        if let Optional::Given(At { value: file, .. }) = entry {
            let mut read = |quantity, file: &mut SeriesFile, span| {
                let place = Place { quantity, link: &name.value, span };
                place.read(file, run, inputs, reading)
            };
            if let Optional::Given(At { value: RateFile::Series(file), span }) = &mut file.rate {
                found.rate = Some(read(Quantity::Rate, file, *span));
            }
            let delay = &mut file.delay;
            if let Optional::Given(At { value: DelayFile::Series(file), span }) = delay {
                let DelaySeriesFile { series, reorder } = file.as_mut();
                reorder.fill(false);
                found.delay = Some(read(Quantity::Delay, series, *span));
            }
            if let Optional::Given(At { value: LossFile::Series(file), span }) = &mut file.loss {
                found.loss = Some(read(Quantity::Loss, file, *span));
            }
        }
        all.push(found);
    }
    all
}

/// Where a table is named.
struct Place<'p> {
    quantity: Quantity,
    link: &'p str,
    span: Span,
}

impl Place<'_> {
    fn read(
        &self,
        file: &mut SeriesFile,
        OfRun { duration, seed }: OfRun,
        inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Recorded> {
        let name = file.table.at()?.clone();
        let scale = self.scale(file, reading)?;
        if self.quantity == Quantity::Delay
            && let Some(At { value: GapWord::Zero, span }) = file.gap.at()
        {
            let message = "a delay is never zero because a row is missing";
            reading.problem(*span, message, "leave out gap, or write gap = \"hold\"");
            return None;
        }
        let text = |entry: &'_ Optional<String>| entry.get().cloned();
        let (time, value, rows) = (text(&file.time), text(&file.value), text(&file.rows));
        let columns = Columns {
            time: time.as_deref(),
            value: value.as_deref(),
            rows: rows.as_deref(),
            gap: match file.gap.fill(GapWord::Hold) {
                GapWord::Hold => Gap::Hold,
                GapWord::Zero => Gap::Zero,
            },
        };
        let series = inputs.series(&name, self.quantity, (&columns, scale), reading)?;
        file.table.0 = Optional::new(inputs.resolved(&name.value));
        let offset = self.offset(&file.offset, &series, seed, reading)?;
        let Some(steps) = series.steps(duration, offset, file.repeat.fill(true)) else {
            let message = format!("it changes more than {STEPS_MAX} times within the run");
            reading.problem(self.span, message, "write repeat = false, or a shorter duration");
            return None;
        };
        let steps: Vec<_> = steps.into_iter().map(|(at, value)| (at, value * scale)).collect();
        let ((least, most), mean) = (series.range(), series.mean());
        let is_possible = match self.quantity {
            Quantity::Rate => most * scale >= 1.0 && most * scale <= 1e13,
            Quantity::Delay => most * scale <= 600.0,
            Quantity::Loss => most * scale <= 1.0,
        };
        if !is_possible {
            let (what, help) = match self.quantity {
                Quantity::Rate => ("rate", "its largest must be from 1 bit/s to 10000 Gbit/s"),
                Quantity::Delay => ("delay", "its largest must be at most 600 s"),
                Quantity::Loss => ("loss", "its largest must be at most 100 %"),
            };
            let message = format!("the {what} in \"{}\" is impossible", name.value);
            reading.problem(self.span, message, format!("write another scale: {help}"));
            return None;
        }
        Some(Recorded { steps, mean: mean * scale, least: least * scale })
    }

    fn scale(&self, file: &mut SeriesFile, reading: &mut Reading<'_>) -> Option<f64> {
        let span = file.scale.span();
        let scale = file.scale.fill(1.0);
        if scale > 0.0 && scale <= 1e9 {
            return Some(scale);
        }
        let message = format!("the scale must be above zero, found {scale}");
        reading.problem(span.unwrap_or(self.span), message, "write a factor such as 0.5");
        None
    }

    /// Returns the position in the table at which the run begins; `None` if it is outside.
    fn offset(
        &self,
        entry: &Optional<OffsetFile>,
        series: &Series,
        seed: u64,
        reading: &mut Reading<'_>,
    ) -> Option<Time> {
        let length = series.span();
        match entry.at() {
            None => Some(Time::ZERO),
            Some(At { value: OffsetFile::Drawn(OffsetWord::Random), .. }) => {
                let mut stream = offset_stream(seed, self.link);
                Some(Time::from_nanos(below(&mut stream, length.as_nanos())))
            }
            Some(At { value: OffsetFile::At(offset), .. }) if *offset < length => Some(*offset),
            Some(At { value: OffsetFile::At(offset), span }) => {
                let message = format!("the table lasts {length}, but the offset is {offset}");
                reading.problem(*span, message, format!("write less than {length}, or \"random\""));
                None
            }
        }
    }
}
