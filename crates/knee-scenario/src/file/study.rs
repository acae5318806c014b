//! Study files.

use crate::file::ClaimFile;
use crate::read::{List, Optional, Required, Value, refuse_kind, table, word, words};
use crate::source::Reading;
use crate::tree::{Entries, Kind, Node};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

table! {
    /// A set of scenarios with their claims.
    "a study" StudyFile {
        /// Title.
        name: Required<String>,
        /// Source of the claims: a citation.
        source: Required<String>,
        /// Subject of the study, in a few sentences.
        summary: Optional<String>,
        /// Conclusion, a paragraph that is printed before the claims: {A3}
        /// stands for the value of a claim, {A3.outcome} for its outcome,
        /// {claims} for the number of claims, {holds}, {fails}, {uncertain} and
        /// {untested} for the number with this outcome, {holding} and {failing}
        /// for their ids.
        conclusion: Optional<String>,
        /// Its runs.
        run: List<RunFile>,
        /// Models, which are computed without a ground.
        model: List<ModelFile>,
        /// Claims about its runs and models.
        claim: List<ClaimFile>,
    }
}

table! {
    /// One run of a scenario.
    "a run" RunFile {
        /// Name of the run, for claims.
        name: Required<String>,
        /// The scenario, relative to the study's folder.
        file: Required<String>,
        /// Keys of the scenario that differ: { "link.bottleneck.rate" = "20 Mbit/s" }.
        set: Optional<SetFile>,
        /// Seed. Default: the scenario's.
        seed: Optional<u64>,
        /// Number of consecutive seeds on the simulator, from that one on: a
        /// claim is judged by the mean over the seeds that all its runs have.
        /// Default: 1.
        seeds: Optional<u64>,
        /// Grounds on which it runs. Default: ["sim"].
        on: Optional<Vec<GroundName>>,
    }
}

words! {
    /// Ground of a run.
    "ground" GroundWord {
        /// The simulator.
        Sim = "sim",
        /// Linux's TCP.
        Kernel = "kernel",
        /// Multipath QUIC.
        Quic = "quic",
        /// Programs in place of Knee's own flows.
        Programs = "programs",
    }
}

/// The ground of a run: one of this version of Knee, or one that the program adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroundName(pub String);

impl Value for GroundName {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<GroundName> {
        let further = reading.grounds().to_vec();
        let ours = GroundWord::WORDS.iter().map(|(name, _)| *name);
        let is_ours = |name: &&str| ours.clone().any(|known| known == *name);
        let others = further.iter().map(String::as_str).filter(|name| !is_ours(name));
        let known = ours.clone().chain(others);
        let words: Vec<(&str, &str)> = known.map(|name| (name, name)).collect();
        word(node, "ground", &words, reading).map(|name| GroundName(name.to_string()))
    }
    fn write(&self) -> Node {
        Node::text(&self.0)
    }
}

impl JsonSchema for GroundName {
    fn schema_name() -> Cow<'static, str> {
        GroundWord::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        GroundWord::json_schema(generator)
    }
}

table! {
    /// A model that is computed without a ground.
    "a model" ModelFile {
        /// Name, for claims.
        name: Required<String>,
        /// The model.
        model: Required<ModelWord>,
        /// Pacing gain while probing.
        gain: Required<f64>,
        /// Initial values of the bandwidth filters, one for each flow, as fractions of the
        /// link's capacity.
        start: Optional<Vec<f64>>,
        /// Number of starts to draw in place of `start`, each division of the link as likely as
        /// any other. Measures are then over all starts: the smallest and the largest share, and
        /// the median of rounds.
        starts: Optional<u64>,
        /// Number of flows of the starts that are drawn; default 2.
        flows: Optional<u64>,
        /// Seed of the starts that are drawn; default 1.
        seed: Optional<u64>,
        /// Maximum number of rounds of alternate probing.
        rounds: Required<u64>,
    }
}

words! {
    /// A model by name.
    "model" ModelWord {
        /// Flows that probe for bandwidth in turn on one link.
        AlternateProbing = "alternate-probing",
    }
}

/// Keys of a scenario and their values, as a tree. They are checked by the scenario's own tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SetFile(pub Entries);

impl Value for SetFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<SetFile> {
        let entries = node.entries().cloned();
        if entries.is_none() {
            let example = "{ \"link.bottleneck.rate\" = \"20 Mbit/s\" }";
            refuse_kind(node, "a table", example, reading);
        }
        entries.map(SetFile)
    }
    fn write(&self) -> Node {
        Node::new(Kind::Table(self.0.clone()))
    }
}

impl JsonSchema for SetFile {
    fn schema_name() -> Cow<'static, str> {
        "Set".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "Keys of a scenario and their values." })
    }
}
