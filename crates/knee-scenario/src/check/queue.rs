//! Queues: how much they hold and who decides about dropping and marking.

use super::in_range;
use super::links::{nominal_rate, probability};
use super::paths::Way;
use crate::file::{AqmFile, AqmName, AqmTable, LinkFile};
use crate::read::{At, Entry};
use crate::source::Reading;
use crate::tree::Span;
use knee_link::{Aqm, Buffer, Codel, FqCodel, Pie, RateModel, Red, Threshold};
use knee_units::{BufferSize, Bytes, Fraction, Rate, Time};

/// A terabyte in a queue is a slip of the pen.
pub(super) const BYTES_MAX: Bytes = Bytes::new(1_000_000_000_000);
const PACKETS_MAX: u64 = 1_000_000_000;
/// A queue of which nothing is said holds this many segments at least.
const DEFAULT_SEGMENTS_MIN: u64 = 10;
const AQM_TIME_MAX: Time = Time::from_secs(60);

/// What a queue's size is measured by.
pub(super) struct Place<'p> {
    pub name: &'p At<String>,
    /// The paths over the link.
    pub over: &'p [&'p Way],
    /// No path is broken: `over` has them all.
    pub complete: bool,
    /// None: something is wrong with it.
    pub rate: Option<&'p RateModel>,
    /// IP bytes of the largest segment.
    pub mtu: u64,
}

pub(super) fn check(
    file: &mut LinkFile,
    place: &Place<'_>,
    reading: &mut Reading<'_>,
) -> (Buffer, Aqm) {
    if place.rate == Some(&RateModel::Unlimited) {
        refuse_queue(file, reading);
        return (Buffer::Unlimited, Aqm::DropTail);
    }
    let given = file.buffer.span();
    let size = file.buffer.fill(BufferSize::Bdp(1.0));
    let buffer = match size {
        BufferSize::Unlimited => Some(Buffer::Unlimited),
        BufferSize::Packets(n) => Some(Buffer::Packets(n)),
        BufferSize::Bytes(bytes) => Some(Buffer::Bytes(bytes.get())),
        BufferSize::Bdp(times) => {
            let bytes = in_bdp(times, given, place, reading);
            let least = if given.is_some() { 0 } else { DEFAULT_SEGMENTS_MIN * place.mtu };
            bytes.map(|bytes| Buffer::Bytes(bytes.max(least)))
        }
    };
    let broken = file.buffer.is_broken();
    if let (Some(buffer), false) = (buffer, broken) {
        possible(buffer, size, given.unwrap_or(place.name.span), place, reading);
        file.buffer = Entry::new(written(buffer));
    }
    let aqm = aqm(file, buffer, place, reading);
    (buffer.unwrap_or(Buffer::Unlimited), aqm)
}

/// A link without a rate has no queue.
fn refuse_queue(file: &LinkFile, reading: &mut Reading<'_>) {
    let keys = [("buffer", file.buffer.span()), ("aqm", file.aqm.span()), ("ecn", file.ecn.span())];
    for (key, span) in keys {
        if let Some(span) = span {
            let message = format!("a link without a rate has no queue, so no {key}");
            reading.problem(span, message, "remove it, or add rate = \"10 Mbit/s\"");
        }
    }
}

/// Bytes in so many bandwidth-delay products.
fn in_bdp(
    times: f64,
    given: Option<Span>,
    place: &Place<'_>,
    reading: &mut Reading<'_>,
) -> Option<u64> {
    let name = &place.name.value;
    let mut refuse = |reason: String| {
        let message = match given {
            Some(_) => format!("{} is not known here: {reason}", BufferSize::Bdp(times)),
            None => format!("link \"{name}\" needs a buffer: {reason}, so no BDP is known"),
        };
        let help = "write bytes or packets: buffer = \"64 kB\"";
        reading.problem(given.unwrap_or(place.name.span), message, help);
        None
    };
    let rate = nominal_rate(place.rate?)?;
    if rate == Rate::ZERO {
        return refuse("the link stands still at the start".to_string());
    }
    if place.over.is_empty() {
        return if place.complete {
            refuse(format!("no path leads over link \"{name}\""))
        } else {
            None
        };
    }
    let known: Option<Vec<Time>> = place.over.iter().map(|way| way.propagation).collect();
    let propagation = known?.into_iter().min()?;
    if propagation == Time::ZERO {
        return refuse("the paths over the link have no delay".to_string());
    }
    let bytes = times * rate.as_bits_per_second() as f64 / 8.0 * propagation.as_secs_f64();
    Some(bytes.round() as u64)
}

/// Notes a queue that holds no packet, or an absurd number.
fn possible(
    buffer: Buffer,
    size: BufferSize,
    span: Span,
    place: &Place<'_>,
    reading: &mut Reading<'_>,
) {
    let help = format!("write {} or more, or \"unlimited\"", Bytes::new(place.mtu));
    let tiny = match buffer {
        Buffer::Unlimited => false,
        Buffer::Bytes(bytes) => bytes < place.mtu,
        Buffer::Packets(packets) => packets == 0,
    };
    let huge = match buffer {
        Buffer::Unlimited => false,
        Buffer::Bytes(bytes) => bytes > BYTES_MAX.get(),
        Buffer::Packets(packets) => packets > PACKETS_MAX,
    };
    let is = match (size, buffer) {
        (BufferSize::Bdp(_), Buffer::Bytes(bytes)) => format!("{size}, {}", Bytes::new(bytes)),
        _ => size.to_string(),
    };
    if tiny {
        let message = format!("the buffer ({is}) does not hold one segment of {} B", place.mtu);
        reading.problem(span, message, help);
    } else if huge {
        let message = format!("the buffer ({is}) is beyond {BYTES_MAX} or {PACKETS_MAX} packets");
        reading.problem(span, message, "write a smaller one, or \"unlimited\"");
    }
}

fn written(buffer: Buffer) -> BufferSize {
    match buffer {
        Buffer::Unlimited => BufferSize::Unlimited,
        Buffer::Bytes(bytes) => BufferSize::Bytes(Bytes::new(bytes)),
        Buffer::Packets(packets) => BufferSize::Packets(packets),
    }
}

fn aqm(
    file: &mut LinkFile,
    buffer: Option<Buffer>,
    place: &Place<'_>,
    reading: &mut Reading<'_>,
) -> Aqm {
    let span = file.aqm.span().unwrap_or(place.name.span);
    let mut table = match &file.aqm {
        Entry::Broken => return Aqm::DropTail,
        Entry::Absent => named(AqmName::DropTail),
        Entry::Given(At { value: AqmFile::Name(name), .. }) => named(*name),
        Entry::Given(At { value: AqmFile::Table(table), .. }) => table.as_ref().clone(),
    };
    let Some(name) = table.name.get().copied() else { return Aqm::DropTail };
    refuse_foreign(&table, name, reading);
    let ecn = ecn(&mut file.ecn, name, reading);
    let aqm = match name {
        AqmName::DropTail => Aqm::DropTail,
        AqmName::Codel => Aqm::Codel(codel(&mut table, ecn, reading)),
        AqmName::FqCodel => Aqm::FqCodel(fq_codel(&mut table, ecn, reading)),
        AqmName::Pie => Aqm::Pie(pie(&mut table, ecn, reading)),
        AqmName::Red => match red(&mut table, ecn, span, buffer, place.mtu, reading) {
            Some(red) => Aqm::Red(red),
            None => Aqm::DropTail,
        },
        AqmName::Threshold => threshold(&table, span, reading),
    };
    file.aqm = Entry::new(match name {
        AqmName::DropTail => AqmFile::Name(name),
        _ => AqmFile::Table(Box::new(table)),
    });
    aqm
}

fn named(name: AqmName) -> AqmTable {
    AqmTable { name: crate::read::Required(Entry::new(name)), ..AqmTable::default() }
}

/// Notes parameters that belong to another AQM.
fn refuse_foreign(table: &AqmTable, name: AqmName, reading: &mut Reading<'_>) {
    let own: &[&str] = match name {
        AqmName::DropTail => &[],
        AqmName::Codel => &["target", "interval"],
        AqmName::FqCodel => &["target", "interval", "flows", "quantum"],
        AqmName::Pie => &["target", "update", "burst"],
        AqmName::Red => &["min_threshold", "max_threshold", "max_probability", "weight"],
        AqmName::Threshold => &["delay"],
    };
    let given = [
        ("target", table.target.span()),
        ("interval", table.interval.span()),
        ("flows", table.flows.span()),
        ("quantum", table.quantum.span()),
        ("update", table.update.span()),
        ("burst", table.burst.span()),
        ("min_threshold", table.min_threshold.span()),
        ("max_threshold", table.max_threshold.span()),
        ("max_probability", table.max_probability.span()),
        ("weight", table.weight.span()),
        ("delay", table.delay.span()),
    ];
    let word = AqmName::WORDS.iter().find(|(_, known)| *known == name).map_or("", |(w, _)| w);
    for (key, span) in given {
        if let (Some(span), false) = (span, own.contains(&key)) {
            let help = match own {
                [] => "remove it".to_string(),
                own => format!("its parameters are {}", own.join(", ")),
            };
            reading.problem(span, format!("{word} has no parameter {key}"), help);
        }
    }
}

/// Whether the AQM marks.
fn ecn(entry: &mut Entry<bool>, name: AqmName, reading: &mut Reading<'_>) -> bool {
    let marks_always = name == AqmName::Threshold;
    match (entry.at(), name) {
        (Some(At { value: true, span }), AqmName::DropTail) => {
            let help = "add aqm = \"codel\", or remove ecn";
            reading.problem(*span, "a drop-tail queue does not mark", help);
        }
        (Some(At { value: false, span }), AqmName::Threshold) => {
            reading.problem(*span, "threshold does nothing but mark", "write ecn = true");
        }
        _ => {}
    }
    entry.fill(marks_always)
}

fn time(entry: &mut Entry<Time>, what: &str, default: u64, reading: &mut Reading<'_>) -> Time {
    in_range(entry, what, Time::from_micros(1), AQM_TIME_MAX, reading);
    entry.fill(Time::from_millis(default))
}

fn codel(table: &mut AqmTable, ecn: bool, reading: &mut Reading<'_>) -> Codel {
    Codel {
        target: time(&mut table.target, "the target", 5, reading),
        interval: time(&mut table.interval, "the interval", 100, reading),
        ecn,
    }
}

fn fq_codel(table: &mut AqmTable, ecn: bool, reading: &mut Reading<'_>) -> FqCodel {
    in_range(&table.flows, "flows", 1, 65_536, reading);
    let (small, large) = (Bytes::new(1), Bytes::new(1 << 20));
    in_range(&table.quantum, "the quantum", small, large, reading);
    let quantum = table.quantum.fill(Bytes::new(1514)).get();
    FqCodel {
        codel: codel(table, ecn, reading),
        flows: u32::try_from(table.flows.fill(1024)).unwrap_or(1024),
        quantum: u32::try_from(quantum).unwrap_or(1514),
    }
}

fn pie(table: &mut AqmTable, ecn: bool, reading: &mut Reading<'_>) -> Pie {
    in_range(&table.burst, "the burst", Time::ZERO, AQM_TIME_MAX, reading);
    Pie {
        target: time(&mut table.target, "the target", 15, reading),
        update: time(&mut table.update, "the update period", 15, reading),
        burst: table.burst.fill(Time::from_millis(150)),
        ecn,
    }
}

/// The defaults are tc-red(8)'s: the upper threshold a quarter of the
/// buffer, the lower one a third of that, 2 %.
fn red(
    table: &mut AqmTable,
    ecn: bool,
    span: Span,
    buffer: Option<Buffer>,
    mtu: u64,
    reading: &mut Reading<'_>,
) -> Option<Red> {
    let held = match buffer? {
        Buffer::Bytes(bytes) => Some(bytes),
        Buffer::Packets(packets) => Some(packets.saturating_mul(mtu)),
        Buffer::Unlimited => None,
    };
    if let (Entry::Absent, None) = (&table.max_threshold, held) {
        let help = "write { name = \"red\", min_threshold = \"10 kB\", max_threshold = \"30 kB\" }";
        reading.problem(span, "red needs thresholds in an unlimited buffer", help);
        return None;
    }
    let max = table.max_threshold.fill(Bytes::new(held.unwrap_or(0) / 4)).get();
    let min = table.min_threshold.fill(Bytes::new(max / 3)).get();
    if min >= max {
        let message = "the lower threshold must be below the upper one";
        let place = table.min_threshold.span().filter(|at| *at != Span::default()).unwrap_or(span);
        reading.problem(place, message, format!("write less than {}", Bytes::new(max)));
    }
    let max_probability = table.max_probability.fill(Fraction::new(0.02));
    probability(&table.max_probability, "max_probability", reading);
    in_range(&table.weight, "the weight", 1e-9, 1.0, reading);
    Some(Red {
        min_threshold_bytes: min,
        max_threshold_bytes: max,
        max_probability: max_probability.get(),
        weight: table.weight.fill(0.002),
        ecn,
    })
}

fn threshold(table: &AqmTable, span: Span, reading: &mut Reading<'_>) -> Aqm {
    in_range(&table.delay, "the delay", Time::ZERO, AQM_TIME_MAX, reading);
    match &table.delay {
        Entry::Given(delay) => Aqm::Threshold(Threshold { delay: delay.value }),
        Entry::Broken => Aqm::DropTail,
        Entry::Absent => {
            let help = "write { name = \"threshold\", delay = \"1 ms\" }";
            reading.problem(span, "threshold needs the delay from which it marks", help);
            Aqm::DropTail
        }
    }
}
