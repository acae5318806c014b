//! Claims.

use crate::measure::Measure;
use crate::read::{At, Optional, Required, Value, refuse_kind, table, words};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use knee_units::{Bytes, Fraction, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

table! {
    /// A statement of a source, in a form that can be checked.
    "a claim" ClaimFile {
        /// Short name, such as "A3".
        id: Optional<String>,
        /// The sentence.
        says: Required<String>,
        /// Name of the measure: "goodput", "rtt_p95", "jain" …
        #[schemars(schema_with = "measure_names")]
        measure: Required<String>,
        /// For convergence_time: allowed deviation from the fair share, as
        /// a fraction of it.
        band: Optional<Fraction>,
        /// For convergence_time: how long the shares must stay fair. For
        /// takeover_time: time over which goodput is averaged.
        hold: Optional<Time>,
        /// For measures of the controller's phases: name of the phase, or its
        /// beginning.
        phase: Optional<String>,
        /// For phase_followed_by: name of the phase that follows, or its
        /// beginning.
        next: Optional<String>,
        /// For takeover_time: part of the path's rate that must be reached.
        fraction: Optional<Fraction>,
        /// For path_share: name of the path.
        path: Optional<String>,
        /// For video_quality_share: number of the quality; the lowest is 0.
        quality: Optional<u64>,
        /// For flow_throughput and flow_completion: transfers of at least
        /// this size count. Default: all.
        size_at_least: Optional<Bytes>,
        /// For flow_throughput and flow_completion: transfers below this
        /// size count. Default: all.
        size_below: Optional<Bytes>,
        /// A flow group, one flow of it ("bbr[1]"), a link, or "*", all flows;
        /// in a study "run/name", or the name of a model. Default: "*".
        of: Optional<String>,
        /// The measured value is divided by the same measure of this.
        relative_to: Optional<String>,
        /// Lower bound, with the measure's unit.
        at_least: Optional<BoundFile>,
        /// Upper bound, with the measure's unit.
        at_most: Optional<BoundFile>,
        /// Both bounds: ["70 ms", "90 ms"].
        between: Optional<Vec<At<BoundFile>>>,
        /// The expected value; `within` gives the tolerance.
        equals: Optional<BoundFile>,
        /// Allowed distance from `equals`: in the measure's unit, or in percent
        /// of `equals` unless the measure is a fraction.
        within: Optional<BoundFile>,
        /// Start of the interval that counts.
        from: Optional<Time>,
        /// End of the interval that counts.
        until: Optional<Time>,
        /// Place in the source.
        source: Optional<String>,
        /// Value given in the source.
        source_figure: Optional<String>,
        /// For a claim that does not hold: the result found instead and its
        /// reason. {value} stands for the value measured, {A3} for that of the
        /// claim with this id.
        finding: Optional<String>,
        /// The outcome on record. Default: "holds".
        outcome: Optional<OutcomeWord>,
        /// The value on record, with the measure's unit, or "never"; `knee
        /// reproduce` reports a different outcome.
        measured: Optional<BoundFile>,
        /// Allowed drift of the measured value from the one on record: in
        /// percent of it, or in the measure's unit.
        drift: Optional<BoundFile>,
    }
}

/// Returns the schema of a measure's name, from the table of measures.
fn measure_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Measure::names() })
}

words! {
    /// Outcome of a claim.
    "outcome" OutcomeWord {
        /// Measured, within its bounds.
        Holds = "holds",
        /// Measured, outside its bounds.
        Fails = "fails",
        /// Measured, with an interval that crosses a bound.
        Uncertain = "uncertain",
        /// Not measured on this ground.
        NotTestedHere = "not tested here",
    }
}

/// A bound; the measure determines its unit.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum BoundFile {
    /// With a unit.
    Text(String),
    /// Without a unit.
    Number(f64),
}

impl Value for BoundFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<BoundFile> {
        match &node.kind {
            Kind::String(text) => Some(BoundFile::Text(text.clone())),
            Kind::Integer(_) | Kind::Float(_) => f64::read(node, reading).map(BoundFile::Number),
            _ => {
                refuse_kind(node, "a bound", "it with the measure's unit: \"72 ms\"", reading);
                None
            }
        }
    }
    fn write(&self) -> Node {
        match self {
            BoundFile::Text(text) => text.write(),
            BoundFile::Number(number) => number.write(),
        }
    }
}
