//! Study files.

use crate::file::ClaimFile;
use crate::read::{List, Optional, Required, Value, refuse_kind, table, word, words};
use crate::source::Reading;
use crate::tree::{Entries, Kind, Node};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

table! {
    /// Scenarios that belong together, with their claims.
    "a study" StudyFile {
        /// Title.
        name: Required<String>,
        /// Where the claims stand: a citation.
        source: Required<String>,
        /// What the study is about, in a few sentences.
        summary: Optional<String>,
        /// What came of it, in a paragraph that is printed before the claims:
        /// {A3} stands for the value of a claim, {A3.outcome} for how it
        /// ended, {claims}, {holds}, {fails}, {uncertain} and {untested} for
        /// how many claims there are and ended so, {holding} and {failing}
        /// for their ids.
        conclusion: Optional<String>,
        /// Its runs.
        run: List<RunFile>,
        /// Models that are computed without a ground.
        model: List<ModelFile>,
        /// Claims over its runs and models.
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
        /// Number of seeds, from that one on, on the simulator: a claim goes
        /// by the mean over the seeds that all of its runs have. Default: 1.
        seeds: Optional<u64>,
        /// Grounds on which it runs. Default: ["sim"].
        on: Optional<Vec<GroundName>>,
    }
}

words! {
    /// Where a scenario runs.
    "ground" GroundWord {
        /// The simulator.
        Sim = "sim",
        /// Linux's TCP.
        Kernel = "kernel",
        /// Multipath QUIC.
        Quic = "quic",
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
        /// Which model.
        model: Required<ModelWord>,
        /// Pacing gain while probing.
        gain: Required<f64>,
        /// What the two bandwidth filters hold at first, as parts of the
        /// link's capacity.
        start: Required<Vec<f64>>,
        /// Rounds of alternate probing, at most.
        rounds: Required<u64>,
    }
}

words! {
    /// A model by name.
    "model" ModelWord {
        /// Two flows that probe for bandwidth in turn on one link.
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
