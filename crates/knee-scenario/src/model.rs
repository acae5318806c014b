//! A scenario, checked and resolved: every name is resolved, every value is possible, every file is
//! read, and buffers are in bytes or packets.

use crate::check::placeholders;
use crate::measure::Measure;
use knee_units::{Rate, Time};
use knee_workload::Workload;
use std::collections::BTreeSet;
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
    /// Time between two rows of a time series; default 100 ms.
    pub sample_interval: Time,
    /// Time after a flow's start at which its measures begin; default 0 s.
    pub warmup: Time,
    /// Links, in the order of the file.
    pub links: Vec<Link>,
    /// Paths, in the order of the file.
    pub paths: Vec<Path>,
    /// Flows, with groups expanded.
    pub flows: Vec<Flow>,
    /// Claims to check against the records.
    pub claims: Vec<Claim>,
    /// The resolved scenario as TOML: reading it with [`files`](Self::files) gives this value
    /// again.
    pub resolved: String,
    /// The input files of the resolved scenario: traces, loss records, pages and access logs.
    pub files: Vec<InputFile>,
}

/// An input file of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct InputFile {
    /// Name in [`Scenario::resolved`], without a folder.
    pub name: String,
    /// Name in the file that was read.
    pub written: String,
    /// The file's contents.
    pub bytes: Arc<[u8]>,
    /// How the file was read, for display: for an access log, its format and the number of lines
    /// used; otherwise empty.
    pub read_as: String,
}

/// A link with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name in the file.
    pub name: String,
    /// Configuration of the link.
    pub config: knee_link::Config,
    /// Rate by which buffers in BDP are measured: the one at the start, or the mean of a trace or a
    /// table; `None` without a rate.
    pub nominal_rate: Option<Rate>,
}

impl Link {
    /// Returns the link that a ground adds for a path whose reverse direction is a pure delay.
    pub fn reverse_delay(path: &str, delay: Time) -> Link {
        let config = knee_link::Config::pure_delay(delay);
        Link { name: format!("reverse of {path}"), config, nominal_rate: None }
    }
}

/// A path and its reverse direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Name in the file.
    pub name: String,
    /// Links from sender to receiver, by index, at least one.
    pub forward: Vec<usize>,
    /// The path of the acknowledgements.
    pub reverse: Reverse,
    /// Spans in which the path does not exist, for example because an interface is gone; its host
    /// knows this. Each is from a time until before another, in order of time; with [`Time::MAX`]
    /// the path does not return.
    pub absent: Vec<(Time, Time)>,
    /// The tunnel that carries it both ways: to a queue that separates flows, all
    /// packets of a tunnel in one direction are one flow.
    pub tunnel: Option<String>,
}

/// The path of the acknowledgements.
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
    /// How several paths are used; `None` for a plain flow over a single path.
    pub multipath: Option<Multipath>,
    /// Congestion controller: name or preset, with parameters.
    pub controller: knee_cc::Selection,
    /// Settings of both ends.
    pub transport: knee_transport::Config,
    /// Random delay of the sending host before each packet, uniform up to this; zero for none.
    pub send_jitter: Time,
    /// What the application does; for a program a file of its size, or bulk if that is not known.
    pub workload: Workload,
    /// The programs that run in its place.
    pub program: Option<Program>,
    /// The flow for whose transfers its own wait, by index: what it sends on a connection is sent
    /// once the transfer of the same number there is acknowledged to its end. Both are mixes, or
    /// both files; nothing waits for itself.
    pub after: Option<usize>,
    /// When it starts.
    pub start: Time,
    /// When the application stops sending; `None` at the end of the run.
    pub stop: Option<Time>,
}

/// Two programs in place of a flow. Their arguments have placeholders: see [`Program::arguments`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The one at the sending end, which listens: its name and its arguments.
    pub server: Vec<String>,
    /// The one at the receiving end, which connects.
    pub client: Vec<String>,
    /// Payload of the whole transfer, bytes; `None` if it is not known.
    pub bytes: Option<u64>,
    /// When the client may start.
    pub ready: Ready,
    /// Maximum time of the client.
    pub timeout: Time,
}

/// When a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It listens on the flow's TCP port.
    Tcp,
    /// It has a socket on the flow's UDP port.
    Udp,
    /// It has written a line that contains this.
    Line(String),
    /// This time after its start.
    After(Time),
}

impl Program {
    /// Returns a command with `values`, pairs of name and value, in place of `{name}`.
    pub fn arguments(command: &[String], values: &[(&str, String)]) -> Vec<String> {
        let filled = |word: &String| {
            values.iter().fold(word.clone(), |word, (name, value)| {
                word.replace(&format!("{{{name}}}"), value)
            })
        };
        command.iter().map(filled).collect()
    }
}

/// How a connection uses several paths (RFC 8684).
#[derive(Clone, Debug, PartialEq)]
pub struct Multipath {
    /// Scheduler that chooses the path of each packet: name or preset, with parameters.
    pub scheduler: knee_units::registry::Selection,
    /// Whether data on a slower or failed path is repeated on a better one when nothing new may be
    /// sent.
    pub reinjection: bool,
    /// Paths that are used only when no other can be: positions in [`Flow::paths`], ascending;
    /// never all of them.
    pub backup: Vec<usize>,
}

/// A statement from a source, in a form that can be checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Short name, such as `A3`; empty if the file gives none.
    pub id: String,
    /// The statement.
    pub says: String,
    /// What is measured.
    pub measure: Measure,
    /// Flow group, one flow of it (`bbr[1]`), all flows (`*`), or link. In a
    /// study: `run/name`, or the name of a model.
    pub of: String,
    /// Second target; the measured value is divided by its value of the same measure.
    pub relative_to: Option<String>,
    /// Lower bound, in the measure's unit.
    pub at_least: Option<f64>,
    /// Upper bound, in the measure's unit.
    pub at_most: Option<f64>,
    /// Only samples from here on count, since the start of the run.
    pub from: Option<Time>,
    /// Only samples before this count.
    pub until: Option<Time>,
    /// Where the statement is found.
    pub source: String,
    /// The figure given by the source, for the reader.
    pub source_figure: Option<String>,
    /// The recorded outcome; a run with another outcome disagrees with the record.
    pub recorded: Outcome,
    /// The recorded value, for `knee reproduce`.
    pub on_record: Option<OnRecord>,
    /// Explains what happens instead, if the recorded outcome is not `Holds`; see
    /// [`placeholders`](crate::placeholders).
    pub finding: Option<String>,
}

/// The recorded value of a claim, in the measure's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnRecord {
    /// Measured value; infinite if the event never occurred.
    pub value: f64,
    /// Largest allowed difference from it.
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
    /// Where the claims are found: a citation.
    pub source: String,
    /// What the study is about; empty if the file gives none.
    pub summary: String,
    /// Conclusion, with placeholders as in findings and for the counts of claims; empty if the file
    /// gives none.
    pub conclusion: String,
    /// Its runs, in the order of the file; at least one run or model.
    pub runs: Vec<StudyRun>,
    /// Its models, in the order of the file.
    pub models: Vec<Model>,
    /// Claims over its runs and models. Claims about a single run are in its scenario.
    pub claims: Vec<Claim>,
}

impl Study {
    /// Ids of the claims whose value or outcome the conclusion cites.
    pub fn cited(&self) -> BTreeSet<&str> {
        let names = placeholders(&self.conclusion).map(|name| name.trim_matches(['{', '}']));
        let ids = names.map(|name| name.strip_suffix(".outcome").unwrap_or(name));
        ids.filter(|id| self.claims.iter().any(|claim| claim.id == *id)).collect()
    }
}

/// One run of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyRun {
    /// Name, unique in the study.
    pub name: String,
    /// The scenario, with the study's changes.
    pub scenario: Scenario,
    /// The same scenario with the following seeds, for the simulator.
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

/// A kind of model.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelKind {
    /// Flows take turns probing for the bandwidth of one link of capacity 1, as
    /// `knee_cc::model` computes it.
    AlternateProbing {
        /// Pacing gain while probing, above 1.
        gain: f64,
        /// Where they start.
        starts: Starts,
        /// Rounds, at least one.
        rounds: u64,
    },
}

/// Where the flows of a model start.
#[derive(Clone, Debug, PartialEq)]
pub enum Starts {
    /// Initial values of the bandwidth filters, each above 0; at least two.
    At(Vec<f64>),
    /// Starts that are drawn, with each division of the link as likely as any other.
    Drawn {
        /// Number of flows, at least two.
        flows: usize,
        /// Number of starts, at least one.
        count: usize,
        /// Seed.
        seed: u64,
    },
}
