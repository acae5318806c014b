//! What applications do.

use crate::read::{At, Entry, Required, Value, key, refuse_kind, refuse_unknown, table, words};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use knee_units::{Bytes, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// What the application does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkloadFile {
    /// Sends all the time.
    Bulk,
    /// One transfer of so many bytes.
    File(Bytes),
    /// A web page.
    Page(PageFile),
    /// Segmented video.
    Dash(Box<DashFile>),
    /// Transfers that arrive at random.
    Mix(Box<MixFile>),
}

table! {
    /// A web page: objects, some of which are known only once others have
    /// arrived.
    "a page" PageFile {
        /// Name of a file of comma-separated values under the names
        /// name,bytes,after, relative to the scenario's folder; after holds
        /// names, separated by spaces. Default: a page of 53 objects and
        /// 2.3 MB.
        objects: Entry<String>,
        /// How the objects are fetched. Default: "1.1".
        http: Entry<HttpWord>,
        /// HTTP/1.1: connections at most. Default: 6.
        connections: Entry<u64>,
    }
}

words! {
    /// How the objects of a page are fetched.
    "HTTP" HttpWord {
        /// One request at a time on each of some connections.
        Version1 = "1.1",
        /// All requests at once on one connection, as HTTP/2 has them.
        Multiplexed = "multiplexed",
    }
}

table! {
    /// Segmented video with an adaptive player.
    "a video" DashFile {
        /// Bitrates of the qualities, ascending, or a known ladder.
        /// Default: "measured".
        ladder: Entry<LadderFile>,
        /// Media time of a segment. Default: 4 s.
        segment: Entry<Time>,
        /// Media time of the whole. Default: 120 s.
        media: Entry<Time>,
        /// Media that the player keeps below the top quality. Default:
        /// 18 s, as dash.js 5 does.
        buffer: Entry<Time>,
        /// How the player chooses a quality. Default: "dynamic".
        rule: Entry<RuleWord>,
    }
}

words! {
    /// Bitrates of a video's qualities by name.
    "ladder" LadderWord {
        /// 360p to 1080p60 around the 1310 kbit/s at 720p that the study of
        /// SCTC tells.
        Study = "study",
        /// 400 to 4500 kbit/s, with which dash.js was measured.
        Measured = "measured",
        /// Up to 14 Mbit/s: more than one link of 10 Mbit/s can carry.
        BeyondOneLink = "beyond-one-link",
    }
}

/// Bitrates of a video's qualities.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum LadderFile {
    /// Known ones.
    Word(LadderWord),
    /// These.
    Rates(Vec<At<Rate>>),
}

words! {
    /// How a player chooses the quality of the next segment.
    "rule" RuleWord {
        /// The highest bitrate below the throughput measured.
        Throughput = "throughput",
        /// BOLA: by what is in the buffer.
        Bola = "bola",
        /// Throughput at a low buffer, BOLA at a high one, as dash.js does.
        Dynamic = "dynamic",
    }
}

table! {
    /// Transfers that arrive as a Poisson process, each over a connection of
    /// its own.
    "a mix" MixFile {
        /// Mean time between two arrivals.
        arrival_interval: Required<Time>,
        /// How many arrive at most. Default: as many as the time brings.
        count: Entry<u64>,
        /// Name of the arrival process. Mixes that name the same one see the
        /// same arrivals, to within a millisecond, and the same sizes, as
        /// test and control should; all else of them must be equal too.
        /// Default: a process of its own.
        process: Entry<String>,
        /// How large they are: "1 MB", { median = "30 kB", sigma = 2.0,
        /// max = "1 GB" }, { min = "4 kB", shape = 1.2, max = "1 GB" } or
        /// { log = "access.csv" }.
        sizes: Required<SizesFile>,
    }
}

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum SizesFile {
    /// All the same.
    Fixed(Bytes),
    /// Drawn at random.
    Table(Box<SizesTable>),
}

table! {
    /// A distribution of sizes: log-normal with median, sigma and max;
    /// Pareto with min, shape and max; or those of an access log.
    "a distribution of sizes" SizesTable {
        /// Log-normal: half of the sizes are smaller.
        median: Entry<Bytes>,
        /// Log-normal: standard deviation of the natural logarithm.
        sigma: Entry<f64>,
        /// Pareto: the smallest.
        min: Entry<Bytes>,
        /// Pareto: the exponent, 1.1 to 1.5 for files on the web.
        shape: Entry<f64>,
        /// The largest.
        max: Entry<Bytes>,
        /// Name of an access log as comma-separated values with a column
        /// "bytes", or of a file with one size per line, relative to the
        /// scenario's folder.
        log: Entry<String>,
    }
}

const KINDS: [&str; 4] = ["file", "page", "dash", "mix"];
const EXAMPLE: &str = "\"bulk\", { file = \"1 MB\" }, \"page\", \"dash\", or { mix = { \
                       arrival_interval = \"50 ms\", sizes = \"100 kB\" } }";

impl Value for WorkloadFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<WorkloadFile> {
        let Some(entries) = node.entries() else { return word(node, reading) };
        refuse_unknown(entries, "a workload", &KINDS, reading);
        let given: Vec<_> = entries.iter().filter(|(key, _)| KINDS.contains(&&*key.name)).collect();
        let [(kind, inner)] = given[..] else {
            // With an unknown key alone, what is wrong is noted already.
            if entries.is_empty() || given.len() > 1 {
                let message = match given.len() {
                    0 => "the workload says nothing",
                    _ => "a flow has one workload",
                };
                reading.problem(node.span, message, format!("write {EXAMPLE}"));
            }
            return None;
        };
        match kind.name.as_str() {
            "file" => Value::read(inner, reading).map(WorkloadFile::File),
            "page" => Value::read(inner, reading).map(WorkloadFile::Page),
            "dash" => DashFile::read(inner, reading).map(Box::new).map(WorkloadFile::Dash),
            _ => MixFile::read(inner, reading).map(Box::new).map(WorkloadFile::Mix),
        }
    }
    fn write(&self) -> Node {
        let (kind, inner) = match self {
            WorkloadFile::Bulk => return Node::text("bulk"),
            WorkloadFile::File(size) => ("file", size.write()),
            WorkloadFile::Page(page) => ("page", page.write()),
            WorkloadFile::Dash(dash) => ("dash", dash.as_ref().write()),
            WorkloadFile::Mix(mix) => ("mix", mix.as_ref().write()),
        };
        Node::new(Kind::Table(vec![(key(kind), inner)]))
    }
}

/// A workload without settings.
fn word(node: &Node, reading: &mut Reading<'_>) -> Option<WorkloadFile> {
    match node.as_str() {
        Some("bulk") => Some(WorkloadFile::Bulk),
        Some("page") => Some(WorkloadFile::Page(PageFile::default())),
        Some("dash") => Some(WorkloadFile::Dash(Box::default())),
        Some(word) => {
            let message = format!("there is no workload \"{word}\"");
            reading.problem(node.span, message, format!("write {EXAMPLE}"));
            None
        }
        None => {
            refuse_kind(node, "a workload", EXAMPLE, reading);
            None
        }
    }
}

impl JsonSchema for WorkloadFile {
    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = [
            ("file", "One transfer of so many bytes.", generator.subschema_for::<Bytes>()),
            ("page", "A web page.", generator.subschema_for::<PageFile>()),
            ("dash", "Segmented video.", generator.subschema_for::<DashFile>()),
            ("mix", "Transfers that arrive at random.", generator.subschema_for::<MixFile>()),
        ];
        let mut any = vec![json_schema!({
            "description": "Sends all the time; the default page; the default video.",
            "enum": ["bulk", "page", "dash"],
        })];
        any.extend(kinds.map(|(kind, description, inner)| {
            json_schema!({
                "type": "object",
                "description": description,
                "properties": { kind: inner },
                "required": [kind],
                "additionalProperties": false,
            })
        }));
        json_schema!({ "description": "What the application does.", "anyOf": any })
    }
}

impl Value for LadderFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<LadderFile> {
        match node.kind {
            Kind::Array(_) => Value::read(node, reading).map(LadderFile::Rates),
            _ => LadderWord::read(node, reading).map(LadderFile::Word),
        }
    }
    fn write(&self) -> Node {
        match self {
            LadderFile::Word(word) => word.write(),
            LadderFile::Rates(rates) => rates.write(),
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
