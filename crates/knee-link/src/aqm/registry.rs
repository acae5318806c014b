//! AQMs by name, with their parameters, for who reads scenarios.

use super::Aqm;
use crate::config::Buffer;
use knee_registry::{Entry, Kind, Parameter, SelectionError, Settings};
use knee_units::Time;

/// An AQM as its registry knows it.
pub type AqmEntry = Entry<Build>;

/// How an AQM comes from its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Whether it marks.
    pub marks: Marks,
    /// Makes one at its place; sets parameters whose defaults depend on it.
    pub make: fn(&mut Settings, &Place) -> Result<Aqm, SelectionError>,
}

/// Whether an AQM marks ECN-capable packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// It knows no marks.
    Never,
    /// With `ecn = true`, instead of dropping.
    WhereAsked,
    /// Without being asked.
    Always,
}

/// Where an AQM stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// What its queue holds.
    pub buffer: Buffer,
    /// IP bytes of the largest packet.
    pub mtu: u64,
    /// ECN-capable packets are marked.
    pub ecn: bool,
}

/// Longest time that a parameter takes.
pub(super) const AQM_TIME_MAX: Time = Time::from_secs(60);

/// A time above zero.
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
