//! A scenario, checked and resolved: no name dangles, every value is
//! possible, every file is read, buffers are in bytes or packets.

use crate::measure::Measure;
use knee_units::Time;
use knee_workload::Workload;
use std::sync::Arc;

/// One experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Title.
    pub name: String,
    /// Simulated time.
    pub duration: Time,
    /// Seed of all randomness.
    pub seed: u64,
    /// Time between two rows of a time series, 100 ms.
    pub sample_interval: Time,
    /// Measures of a flow begin this long after its start, 0 s.
    pub warmup: Time,
    /// Links, in the order of the file.
    pub links: Vec<Link>,
    /// Paths, in the order of the file.
    pub paths: Vec<Path>,
    /// Flows, groups expanded.
    pub flows: Vec<Flow>,
    /// Claims to check on the records.
    pub claims: Vec<Claim>,
    /// The resolved scenario as TOML: reading it beside
    /// [`files`](Self::files) gives this value again.
    pub resolved: String,
    /// The files that the resolved scenario names: traces, loss records,
    /// pages and access logs.
    pub files: Vec<InputFile>,
}

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq)]
pub struct InputFile {
    /// Its name in [`Scenario::resolved`], without a folder.
    pub name: String,
    /// As the file that was read named it.
    pub written: String,
    /// The file's contents.
    pub bytes: Arc<[u8]>,
    /// What was made of it, for people: of an access log its format, and how
    /// many lines were taken; else empty.
    pub read_as: String,
}

/// A link with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name in the file.
    pub name: String,
    /// What it is.
    pub config: knee_link::Config,
}

impl Link {
    /// What a ground adds for a path whose way back is a pure delay.
    pub fn reverse_delay(path: &str, delay: Time) -> Link {
        let config = knee_link::Config::pure_delay(delay);
        Link { name: format!("reverse of {path}"), config }
    }
}

/// The way there and back.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Name in the file.
    pub name: String,
    /// Links from sender to receiver, by index, at least one.
    pub forward: Vec<usize>,
    /// The way of the acknowledgements.
    pub reverse: Reverse,
    /// Spans in which the path is not there at all, as when an interface is
    /// gone, which its host knows: from a time until before another, in the
    /// order of time; [`Time::MAX`]: it does not come back.
    pub absent: Vec<(Time, Time)>,
}

/// The way of the acknowledgements.
#[derive(Clone, Debug, PartialEq)]
pub enum Reverse {
    /// A pure delay.
    Delay(Time),
    /// Links from receiver to sender, by index.
    Links(Vec<usize>),
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name of the group in the file.
    pub name: String,
    /// Number within the group, from zero.
    pub index: usize,
    /// Paths, by index, at least one.
    pub paths: Vec<usize>,
    /// How several paths are used; none: a plain flow over its only path.
    pub multipath: Option<Multipath>,
    /// Congestion controller: name or preset, with parameters.
    pub controller: knee_cc::Selection,
    /// Settings of both ends.
    pub transport: knee_transport::Config,
    /// What the application does.
    pub workload: Workload,
    /// When it starts.
    pub start: Time,
    /// When the application stops sending; none: at the end of the run.
    pub stop: Option<Time>,
}

/// How a connection uses several paths (RFC 8684).
#[derive(Clone, Debug, PartialEq)]
pub struct Multipath {
    /// Chooses the path of each packet: name or preset, with parameters.
    pub scheduler: knee_registry::Selection,
    /// What a slower or failed path holds is repeated on a better one when
    /// nothing new may be sent.
    pub reinjection: bool,
    /// Paths that are used only when no other can be: positions in
    /// [`Flow::paths`], ascending; never all of them.
    pub backup: Vec<usize>,
}

/// A sentence from a source, made checkable.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Short name, such as `A3`; empty when the file gives none.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// What is measured.
    pub measure: Measure,
    /// Flow group, one flow of it (`bbr[1]`), all flows (`*`), or link. In a
    /// study: `run/name`, or the name of a model.
    pub of: String,
    /// The measured value is divided by the same measure of this.
    pub relative_to: Option<String>,
    /// Lower bound, in the measure's unit.
    pub at_least: Option<f64>,
    /// Upper bound, in the measure's unit.
    pub at_most: Option<f64>,
    /// Only samples from here on count, since the start of the run.
    pub from: Option<Time>,
    /// Only samples before this count.
    pub until: Option<Time>,
    /// Where the sentence stands.
    pub source: String,
    /// The figure as the source gives it, for the reader.
    pub source_figure: Option<String>,
    /// The outcome on record; a run whose outcome differs is news.
    pub recorded: Outcome,
    /// The value on record, for `knee reproduce`.
    pub on_record: Option<OnRecord>,
    /// What comes out instead and why, when the recorded outcome is not
    /// `Holds`; see [`placeholders`](crate::placeholders).
    pub finding: Option<String>,
}

/// The value on record of a claim, in the measure's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnRecord {
    /// What was measured; infinity: it never came about.
    pub value: f64,
    /// How far a measured value may be from it.
    pub drift: f64,
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Measured, within its bounds.
    Holds,
    /// Measured, outside its bounds.
    Fails,
    /// Measured, with an interval that crosses a bound.
    Uncertain,
    /// Not measured on this ground.
    NotTestedHere,
}

/// Scenarios that belong together, with their claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Title.
    pub name: String,
    /// Where the claims stand: a citation.
    pub source: String,
    /// What the study is about; empty when the file gives none.
    pub summary: String,
    /// What came of it, with placeholders as in findings and for the tally;
    /// empty when the file gives none.
    pub conclusion: String,
    /// Its runs, in the order of the file; at least one run or model.
    pub runs: Vec<StudyRun>,
    /// Its models, in the order of the file.
    pub models: Vec<Model>,
    /// Claims over its runs and models; those of one run stand in its
    /// scenario.
    pub claims: Vec<Claim>,
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRun {
    /// Name, unique in the study.
    pub name: String,
    /// The scenario, with what the study sets otherwise.
    pub scenario: Scenario,
    /// The same with the seeds after its own, for the simulator.
    pub further_seeds: Vec<Scenario>,
    /// Names of the grounds on which it runs, at least one.
    pub grounds: Vec<String>,
}

/// A model that is computed without a ground.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name, unique in the study.
    pub name: String,
    /// What is computed.
    pub kind: ModelKind,
}

/// What a model computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ModelKind {
    /// Two flows probe in turn for the bandwidth of one link of capacity 1,
    /// as `knee_cc::model` computes it.
    AlternateProbing {
        /// Pacing gain while probing, above 1.
        gain: f64,
        /// What the two bandwidth filters hold at first, each above 0.
        start: [f64; 2],
        /// Rounds, at least one.
        rounds: u64,
    },
}
