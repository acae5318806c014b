//! Claims.

use crate::measure::Measure;
use crate::read::{At, Entry, Required, Value, refuse_kind, table, words};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use knee_units::{Bytes, Fraction, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

table! {
    /// A sentence from a source, made checkable.
    "a claim" ClaimFile {
        /// Short name, such as "A3".
        id: Entry<String>,
        /// The sentence.
        says: Required<String>,
        /// What is measured: "goodput", "rtt_p95", "jain" …
        #[schemars(schema_with = "measure_names")]
        measure: Required<String>,
        /// For convergence_time: allowed deviation from the fair share, as
        /// a fraction of it.
        band: Entry<Fraction>,
        /// For convergence_time: how long it must last. For takeover_time:
        /// time over which goodput is averaged.
        hold: Entry<Time>,
        /// For phase_entries and phase_share: name of the phase, or how it
        /// begins.
        phase: Entry<String>,
        /// For takeover_time: part of the path's rate that must be reached.
        fraction: Entry<Fraction>,
        /// For path_share: name of the path.
        path: Entry<String>,
        /// For video_quality_share: number of the quality; the lowest is 0.
        quality: Entry<u64>,
        /// For flow_throughput and flow_completion: transfers of at least
        /// this size count. Default: all.
        size_at_least: Entry<Bytes>,
        /// For flow_throughput and flow_completion: transfers below this
        /// size count. Default: all.
        size_below: Entry<Bytes>,
        /// A flow group, one flow of it ("bbr[1]"), a link, or "*", all flows;
        /// in a study "run/name", or the name of a model. Default: "*".
        of: Entry<String>,
        /// The measured value is divided by the same measure of this.
        relative_to: Entry<String>,
        /// Lower bound, with the measure's unit.
        at_least: Entry<BoundFile>,
        /// Upper bound, with the measure's unit.
        at_most: Entry<BoundFile>,
        /// Both bounds: ["70 ms", "90 ms"].
        between: Entry<Vec<At<BoundFile>>>,
        /// The value expected; `within` says how exactly.
        equals: Entry<BoundFile>,
        /// Allowed distance from `equals`: in the measure's unit, or, where
        /// that is no fraction, in percent of `equals`.
        within: Entry<BoundFile>,
        /// Only what happens from here on counts.
        from: Entry<Time>,
        /// Only what happens before this counts.
        until: Entry<Time>,
        /// Where the sentence stands.
        source: Entry<String>,
        /// The figure as the source gives it.
        source_figure: Entry<String>,
        /// What comes out instead and why, when the claim does not hold.
        /// {value} stands for the value measured, {A3} for that of the claim
        /// with this id.
        finding: Entry<String>,
        /// The outcome on record. Default: "holds".
        outcome: Entry<OutcomeWord>,
        /// The value on record, with the measure's unit, or "never";
        /// `knee reproduce` says when it is another one.
        measured: Entry<BoundFile>,
        /// How far the measured value may drift from the one on record: in
        /// percent of it, or in the measure's unit.
        drift: Entry<BoundFile>,
    }
}

/// What a claim can name, from the table of measures.
fn measure_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Measure::names() })
}

words! {
    /// How a claim ended.
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

/// A bound: what unit it needs depends on the measure.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum BoundFile {
    /// With a unit.
    Text(String),
    /// Of a measure without one.
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
