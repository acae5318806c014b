//! Sizes of transfers.

use super::{SIZE_MAX, SIZE_MIN};
use crate::check::{Inputs, in_range};
use crate::read::{At, Optional, Value, table};
use crate::source::Reading;
use crate::tree::{Kind, Node, Span};
use knee_units::{Bytes, Time};
use knee_workload::{AccessLog, LogChoice, Sizes};
use schemars::JsonSchema;
use std::sync::Arc;

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum SizesFile {
    /// All equal.
    Fixed(Bytes),
    /// Drawn at random.
    Table(Box<SizesTable>),
}

table! {
    /// A distribution of sizes: log-normal with median, sigma and max;
    /// Pareto with min, shape and max; or those of an access log.
    "a distribution of sizes" SizesTable {
        /// Log-normal: half of the sizes are smaller.
        median: Optional<Bytes>,
        /// Log-normal: standard deviation of the natural logarithm.
        sigma: Optional<f64>,
        /// Pareto: the smallest.
        min: Optional<Bytes>,
        /// Pareto: the exponent, 1.1 to 1.5 for files on the web.
        shape: Optional<f64>,
        /// The largest.
        max: Optional<Bytes>,
        /// Name of an access log, relative to the scenario's folder: of a web
        /// server, a proxy or a delivery network, JSON lines with a key "bytes",
        /// values separated by commas, tabs or semicolons with a column "bytes",
        /// or one size per line; compressed by gzip or not. docs/inputs.md has
        /// the formats.
        log: Optional<String>,
        /// Only lines of the log of this class, by its column "class" or a similar
        /// one.
        class: Optional<String>,
        /// Only lines of the log whose client has at least this round-trip time, by its
        /// column "client_rtt_ms" or a similar one.
        rtt_at_least: Optional<Time>,
        /// Only lines of the log whose client has a round-trip time below this.
        rtt_below: Optional<Time>,
    }
}

/// Sizes, and the log that they come from.
pub(super) enum Read {
    Sizes(Sizes),
    /// The chosen lines of a log, and its name in the resolved scenario.
    Log(Box<AccessLog>, String),
}

impl Read {
    /// Returns the distribution.
    pub fn sizes(self) -> Sizes {
        match self {
            Read::Sizes(sizes) => sizes,
            Read::Log(log, _) => Sizes::Empirical(Arc::new(log.sizes)),
        }
    }
}

pub(super) fn sizes(
    at: &mut At<SizesFile>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Read> {
    match &mut at.value {
        SizesFile::Fixed(size) => {
            let entry = Optional::Given(At { value: *size, span: at.span });
            in_range(&entry, "a size", SIZE_MIN, SIZE_MAX, reading);
            Some(Read::Sizes(Sizes::Fixed(size.get())))
        }
        SizesFile::Table(table) => distribution(at.span, table, inputs, reading),
    }
}

/// Reads a distribution; its keys determine which one it is.
fn distribution(
    span: Span,
    table: &mut SizesTable,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Read> {
    let of_a_log =
        [table.class.is_given(), table.rtt_at_least.is_given(), table.rtt_below.is_given()];
    if of_a_log.contains(&true) && !table.log.is_given() {
        let help = "add log = \"access.csv\", or remove class and rtt_…";
        reading.problem(span, "class and rtt_… select lines of a log, and there is no log", help);
        return None;
    }
    let broken = [&table.median, &table.min, &table.max].iter().any(|entry| entry.is_broken())
        || [&table.sigma, &table.shape].iter().any(|entry| entry.is_broken())
        || table.log.is_broken();
    let bytes = |entry: &Optional<Bytes>| entry.get().map(|bytes| bytes.get());
    let (median, min, max) = (bytes(&table.median), bytes(&table.min), bytes(&table.max));
    let (sigma, shape) = (table.sigma.get().copied(), table.shape.get().copied());
    match (median, sigma, min, shape, max, table.log.at().cloned()) {
        _ if broken => None,
        (Some(median), Some(sigma), None, None, Some(max), None) => {
            in_range(&table.median, "the median", SIZE_MIN, SIZE_MAX, reading);
            in_range(&table.sigma, "sigma", 0.0, 10.0, reading);
            in_range(&table.max, "the largest size", Bytes::new(median), SIZE_MAX, reading);
            Some(Read::Sizes(Sizes::LogNormal { median, sigma, max }))
        }
        (None, None, Some(min), Some(shape), Some(max), None) => {
            in_range(&table.min, "the smallest size", SIZE_MIN, SIZE_MAX, reading);
            in_range(&table.shape, "the shape", 0.01, 100.0, reading);
            in_range(&table.max, "the largest size", Bytes::new(min), SIZE_MAX, reading);
            Some(Read::Sizes(Sizes::Pareto { min, shape, max }))
        }
        (None, None, None, None, None, Some(log)) => {
            let choice = LogChoice {
                class: table.class.get().cloned(),
                rtt_at_least: table.rtt_at_least.get().copied(),
                rtt_below: table.rtt_below.get().copied(),
            };
            let lines = inputs.log(&log, &choice, reading)?;
            let name = inputs.resolved(&log.value);
            table.log = Optional::new(name.clone());
            Some(Read::Log(Box::new(lines), name))
        }
        _ => {
            let help = "write { median = \"30 kB\", sigma = 2.0, max = \"1 GB\" }, or \
                        { min = \"4 kB\", shape = 1.2, max = \"1 GB\" }, or { log = \"access.csv\" }";
            reading.problem(span, "a distribution of sizes has one of three forms", help);
            None
        }
    }
}

impl Value for SizesFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<SizesFile> {
        match node.kind {
            Kind::Table(_) => SizesTable::read(node, reading).map(Box::new).map(SizesFile::Table),
            _ => Bytes::read(node, reading).map(SizesFile::Fixed),
        }
    }
    fn write(&self) -> Node {
        match self {
            SizesFile::Fixed(size) => size.write(),
            SizesFile::Table(table) => table.as_ref().write(),
        }
    }
}
