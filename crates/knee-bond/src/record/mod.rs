//! Records of a running end: what each of its links did, and what its scheduler was asked and
//! answered, as a run like those of the laboratory, with a scenario that replays it.
//!
//! | file | what it is |
//! |---|---|
//! | `path-samples.parquet`, `samples.parquet` | ten times a second: each link, and all together |
//! | `scenario.toml` | the links as they were seen, for `knee run` |
//! | `decisions.txt` | the scheduler's decisions, as `knee_sched::record` reads them |
//! | the others | those of any run: `knee report` shows it |
//!
//! Neither names of interfaces nor who was at the other end are kept unless that is asked
//! for; addresses, names and contents of what went over the links never are.

mod replay;
mod series;
pub mod shot;

use crate::status::{self, socket_paths};
use knee_record::{Manifest, Meter, Records, Summary, write_run};
use knee_scenario::{Embedded, Scenario, Source, parse};
use replay::scenario_text;
use series::records;
use shot::Shot;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// The ground that stands in a recorded run.
pub const GROUND: &str = "bond";
/// The file of decisions.
pub const DECISIONS: &str = "decisions.txt";
/// Shots that are kept: a day of them.
const SHOTS_MAX: usize = 864_000;
/// A recording with fewer has nothing to show.
const SHOTS_MIN: usize = 10;

/// A recording that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No end shows itself there, or it went away.
    #[error("no knee bond answers at {}: {source}; start one, or name its socket with --socket", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// There is a folder of that name.
    #[error("{} is there already: choose another folder with --out", .0.display())]
    Exists(PathBuf),
    /// Nothing was carried, or it was stopped at once.
    #[error("nothing was recorded: no link was up for a second")]
    Nothing,
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] knee_record::Error),
    /// The file of decisions cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Decisions {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A defect of Knee: what it wrote it cannot read.
    #[error("the recorded scenario cannot be used, please report this: {0}")]
    Scenario(String),
}

/// What is recorded, and how.
#[derive(Clone, Debug, Default)]
pub struct RecordSettings {
    /// The socket of the end; none: the usual places.
    pub socket: Option<PathBuf>,
    /// Of a server, the client whose links are recorded; empty: the first.
    pub peer: String,
    /// Where to; it must not be there.
    pub out: PathBuf,
    /// Names of interfaces and of the other end are kept.
    pub names: bool,
    /// The command line, for the manifest.
    pub arguments: Vec<String>,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// How long, s.
    pub seconds: f64,
    /// Links.
    pub links: usize,
    /// Bytes that went over them in both directions.
    pub bytes: u64,
    /// Decisions that were kept, and that were not because there were too many.
    pub decisions: u64,
    /// The latter.
    pub decisions_lost: u64,
}

/// Records until `stop` says so, or the end is gone.
///
/// # Errors
/// [`RecordError`].
pub async fn record(
    settings: &RecordSettings,
    stop: impl Future<Output = ()>,
) -> Result<Recorded, RecordError> {
    if settings.out.exists() {
        return Err(RecordError::Exists(settings.out.clone()));
    }
    let meter = Meter::start();
    let asked = connect(settings).await?;
    let decisions = settings.out.join(DECISIONS);
    let wrong = |source| RecordError::Decisions { path: decisions.clone(), source };
    fs::create_dir_all(&settings.out).map_err(wrong)?;
    let mut file = fs::File::create(&decisions).map(std::io::BufWriter::new).map_err(wrong)?;
    let mut recorded =
        Recorded { seconds: 0.0, links: 0, bytes: 0, decisions: 0, decisions_lost: 0 };
    let mut shots: Vec<Shot> = Vec::new();
    let mut lines = BufReader::new(asked).lines();
    tokio::pin!(stop);
    loop {
        let line = tokio::select! {
            () = &mut stop => break,
            line = lines.next_line() => line,
        };
        let Ok(Some(line)) = line else { break };
        let Ok(mut shot) = serde_json::from_str::<Shot>(&line) else { break };
        recorded.decisions_lost += shot.decisions_lost;
        for text in shot.decisions.drain(..) {
            // One file is one trace: its first line stands once.
            let rows = text.lines().skip(usize::from(recorded.decisions > 0));
            for row in rows {
                writeln!(file, "{row}").map_err(wrong)?;
            }
            recorded.decisions += text.lines().count() as u64 - 1;
        }
        shots.push(shot);
        if shots.len() >= SHOTS_MAX {
            break;
        }
    }
    file.flush().map_err(wrong)?;
    if shots.len() < SHOTS_MIN || shots.iter().all(|shot| shot.links.is_empty()) {
        return Err(RecordError::Nothing);
    }
    if !settings.names {
        forget_names(&mut shots);
    }
    let scenario = scenario(&scenario_text(&shots))?;
    let run = records(&shots, &scenario);
    write(settings, meter, &scenario, &run)?;
    recorded.seconds = run.end_ns as f64 / 1e9;
    recorded.links = scenario.paths.len();
    recorded.bytes = series::carried(&shots);
    Ok(recorded)
}

async fn connect(settings: &RecordSettings) -> Result<UnixStream, RecordError> {
    let paths = match &settings.socket {
        Some(path) => vec![path.clone()],
        None => ["client", "server"].into_iter().flat_map(socket_paths).collect(),
    };
    let mut last = None;
    for path in paths {
        let asked = async {
            let mut stream = UnixStream::connect(&path).await?;
            stream.write_all(status::record_request(&settings.peer).as_bytes()).await?;
            Ok(stream)
        };
        match asked.await {
            Ok(stream) => return Ok(stream),
            Err(source) => last = last.or(Some(RecordError::Silent { path, source })),
        }
    }
    Err(last.unwrap_or(RecordError::Nothing))
}

/// Links are numbered in the order in which they came.
fn forget_names(shots: &mut [Shot]) {
    let mut known: Vec<String> = Vec::new();
    for shot in shots {
        shot.peer.clear();
        for link in &mut shot.links {
            let number = known.iter().position(|name| *name == link.name).unwrap_or_else(|| {
                known.push(link.name.clone());
                known.len() - 1
            });
            link.name = format!("link{number}");
        }
    }
}

fn scenario(text: &str) -> Result<Scenario, RecordError> {
    let source = Source { name: "scenario.toml", loader: &Embedded(&[]) };
    parse(text, &source, &[]).map_err(|errors| RecordError::Scenario(errors.to_string()))
}

fn write(
    settings: &RecordSettings,
    meter: Meter,
    scenario: &Scenario,
    records: &Records,
) -> Result<(), RecordError> {
    let summary = Summary::new(scenario, GROUND, records);
    // They name what the names of are not kept.
    let arguments = if settings.names { settings.arguments.clone() } else { Vec::new() };
    let manifest = Manifest::new(&summary, records, arguments, &[], &meter.stop());
    let dir: &Path = &settings.out;
    Ok(write_run(dir, &manifest, scenario, records, &summary)?)
}
