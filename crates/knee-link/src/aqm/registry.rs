//! AQMs by name, with their parameters, for readers of scenarios.

use super::Aqm;
use crate::config::Buffer;
use knee_units::Time;
use knee_units::registry::{Entry, Kind, Parameter, SelectionError, Settings};

/// An AQM in the registry.
pub type AqmEntry = Entry<Build>;

/// How an AQM is created from its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Whether it marks.
    pub marks: Marks,
    /// Creates one for its place; sets parameters whose defaults depend on the place.
    pub make: fn(&mut Settings, &Place) -> Result<Aqm, SelectionError>,
}

/// Whether an AQM marks ECN-capable packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// It never marks.
    Never,
    /// With `ecn = true`, instead of dropping.
    WhereAsked,
    /// Without a setting.
    Always,
}

/// Queue and link for which an AQM is created.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Size of its queue.
    pub buffer: Buffer,
    /// IP bytes of the largest packet.
    pub mtu: u64,
    /// Whether ECN-capable packets are marked.
    pub ecn: bool,
}

/// Largest value of a time parameter.
pub(super) const AQM_TIME_MAX: Time = Time::from_secs(60);

/// Declares a time parameter above zero.
pub(super) const fn time(
    name: &'static str,
    default: &'static str,
    summary: &'static str,
) -> Parameter {
    let kind = Kind::Time { min: Time::from_micros(1), max: AQM_TIME_MAX };
    Parameter { name, kind, default, summary }
}

/// A queue without an AQM.
pub(super) const DROP_TAIL: AqmEntry = AqmEntry {
    name: "drop-tail",
    summary: "Drop what does not fit.",
    source: "the plain queue: RFC 7567, section 1.1",
    parameters: &[],
    presets: &[],
    build: Build { marks: Marks::Never, make: |_, _| Ok(Aqm::DropTail) },
};
