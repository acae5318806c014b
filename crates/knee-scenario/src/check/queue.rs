//! Queues: their size, and the AQM that drops and marks.

use super::paths::CheckedPath;
use crate::file::{AqmFile, LinkFile};
use crate::read::{At, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_link::{Aqm, AqmEntry, Buffer, Device, Marks, RateModel, aqms};
use knee_units::registry::Settings;
use knee_units::{BufferSize, Bytes, Rate, Time};

/// Largest queue: a terabyte is a typing error.
pub(super) const BYTES_MAX: Bytes = Bytes::new(1_000_000_000_000);
const PACKETS_MAX: u64 = 1_000_000_000;
/// Smallest default size of a queue, in segments.
const DEFAULT_SEGMENTS_MIN: u64 = 10;

/// Data by which a queue's size is measured.
pub(super) struct Place<'p> {
    pub name: &'p At<String>,
    /// The paths that use the link.
    pub over: &'p [&'p CheckedPath],
    /// Whether no path is broken, so that `over` is complete.
    pub complete: bool,
    /// `None` if the rate is invalid.
    pub rate: Option<&'p RateModel>,
    /// Rate by which a buffer in BDP is measured.
    pub nominal: Option<Rate>,
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
        file.buffer = Optional::new(written(buffer));
    }
    let aqm = aqm(file, buffer, place, reading);
    (buffer.unwrap_or(Buffer::Unlimited), aqm)
}

/// Reports queue settings of a link without a rate, which has no queue.
fn refuse_queue(file: &LinkFile, reading: &mut Reading<'_>) {
    let keys = [
        ("buffer", file.buffer.span()),
        ("aqm", file.aqm.span()),
        ("device", file.device.span()),
        ("ecn", file.ecn.span()),
        ("pause", file.pause.span()),
    ];
    for (key, span) in keys {
        if let Some(span) = span {
            let message = format!("a link without a rate has no queue and does not take {key}");
            reading.problem(span, message, "remove it, or add rate = \"10 Mbit/s\"");
        }
    }
}

/// Converts bandwidth-delay products to bytes.
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
            None => format!("link \"{name}\" needs a buffer: {reason}, so its BDP is unknown"),
        };
        let help = "write bytes or packets: buffer = \"64 kB\"";
        reading.problem(given.unwrap_or(place.name.span), message, help);
        None
    };
    let rate = place.nominal?;
    if rate == Rate::ZERO {
        return refuse("the link's rate is zero at the start".to_string());
    }
    if place.over.is_empty() {
        return if place.complete { refuse(format!("no path uses link \"{name}\"")) } else { None };
    }
    let known: Option<Vec<Time>> = place.over.iter().map(|way| way.propagation).collect();
    let propagation = known?.into_iter().min()?;
    if propagation == Time::ZERO {
        return refuse("the paths over the link have no delay".to_string());
    }
    let bytes = times * rate.as_bits_per_second() as f64 / 8.0 * propagation.as_secs_f64();
    Some(bytes.round() as u64)
}

/// Reports a queue that holds no packet, or an absurd number.
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
        let message = format!("the buffer ({is}) exceeds {BYTES_MAX} or {PACKETS_MAX} packets");
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
    let chosen = match &file.aqm {
        Optional::Broken => return Aqm::DropTail,
        Optional::Absent => AqmFile::plain(&aqms()[0]),
        Optional::Given(at) => at.value.clone(),
    };
    let AqmEntry { name, parameters, build, .. } = chosen.entry;
    let ecn = ecn(&mut file.ecn, build.marks, name, reading);
    let mut settings = Settings::defaults(parameters);
    for (parameter, At { value, span }) in &chosen.parameters {
        if let Err(error) = settings.set(name, parameter.name, value) {
            reading.problem(*span, error.problem, error.advice);
        }
    }
    // Without a valid buffer, nothing that depends on it can be checked.
    let Some(buffer) = buffer else { return Aqm::DropTail };
    let place = knee_link::Place { buffer, mtu: place.mtu, ecn };
    let aqm = (build.make)(&mut settings, &place).unwrap_or_else(|error| {
        let parameter = error.parameter.and_then(|name| chosen.span_of(&name));
        reading.problem(parameter.unwrap_or(span), error.problem, error.advice);
        Aqm::DropTail
    });
    let of = |name| parameters.iter().find(|parameter| parameter.name == name);
    let written = settings.written().filter_map(|(parameter, value)| {
        Some((of(parameter.name)?, At { value, span: Span::default() }))
    });
    file.aqm = Optional::new(AqmFile { entry: chosen.entry, parameters: written.collect() });
    aqm
}

/// Returns the device queue below the AQM.
pub(super) fn device(file: &LinkFile, aqm: &Aqm, reading: &mut Reading<'_>) -> Option<Device> {
    let At { value, span } = file.device.at()?;
    // A missing rate or an invalid AQM is reported elsewhere.
    if !file.aqm.is_given() && file.rate.at().is_none() || file.aqm.is_broken() {
        return None;
    }
    let device = match value {
        BufferSize::Bytes(bytes) if *bytes <= BYTES_MAX => Device::Bytes(bytes.get()),
        BufferSize::Packets(packets) if *packets <= PACKETS_MAX => Device::Packets(*packets),
        _ => {
            let message = "a device queue needs a size in packets or bytes";
            reading.problem(*span, message, "write \"64 packets\" or \"30 kB\"");
            return None;
        }
    };
    if matches!(device, Device::Bytes(0) | Device::Packets(0)) {
        let message = "a device queue must hold at least the packet in transmission";
        reading.problem(*span, message, "write \"1 packets\" or more");
        return None;
    }
    if !aqm.decides_on_leaving() {
        let message = "a device queue is for an AQM that decides when packets leave";
        let help = "write aqm = \"fq-codel\", \"codel\" or \"dualpi2\"; with any other AQM, the \
                    buffer includes the device queue";
        reading.problem(*span, message, help);
        return None;
    }
    Some(device)
}

/// Returns whether the AQM marks.
fn ecn(entry: &mut Optional<bool>, marks: Marks, name: &str, reading: &mut Reading<'_>) -> bool {
    match (entry.at(), marks) {
        (Some(At { value: true, span }), Marks::Never) => {
            let help = "add aqm = \"codel\", or remove ecn";
            reading.problem(*span, format!("a {name} queue does not mark packets"), help);
        }
        (Some(At { value: false, span }), Marks::Always) => {
            reading.problem(*span, format!("{name} only marks packets"), "write ecn = true");
        }
        _ => {}
    }
    entry.fill(marks == Marks::Always)
}
