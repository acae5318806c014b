//! Records of a running end: its links and the decisions of its scheduler, as a run like those of
//! the laboratory, with a scenario that replays it.
//!
//! | file | contents |
//! |---|---|
//! | `path-samples.parquet`, `samples.parquet` | ten times a second: each link, and all together |
//! | `scenario.toml` | the links as they were seen, for `knee run` |
//! | `decisions.txt` | the scheduler's decisions, as `knee_multipath::sched::record` reads them |
//! | the others | as in any run: `knee report` shows it |
//!
//! Names of interfaces and of the other end are kept only on request; addresses, target names and
//! contents of the traffic never are.

mod replay;
mod series;
pub mod snapshot;

use crate::status::{record_request, says_more, socket_paths};
use knee_record::{Manifest, Meter, Records, Summary, write_run};
use knee_scenario::{Embedded, Scenario, Source, parse};
use replay::{make_names_usable, scenario_text};
use series::records;
use snapshot::{Refusal, Snapshot};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// Name of the ground in a recorded run.
pub const GROUND: &str = "bond";
/// Name of the file of decisions.
pub const DECISIONS: &str = "decisions.txt";
/// Maximum number of snapshots: one day.
const SNAPSHOTS_MAX: usize = 864_000;
/// Minimum number of snapshots of a recording.
const SNAPSHOTS_MIN: usize = 10;

/// Why recording failed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No end answers on the socket, or it went away.
    #[error("no running knee bond answers at {}: {source}; start one, or name its socket with \
             --socket", path.display())]
    Silent {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The end on the socket belongs to another user.
    #[error("the knee bond at {} belongs to another user: run this with sudo", .0.display())]
    Denied(PathBuf),
    /// The end has no such links.
    #[error("nothing was recorded: {0}")]
    Refused(String),
    /// The output folder exists already.
    #[error("{} exists already: choose another folder with --out", .0.display())]
    Exists(PathBuf),
    /// No link was up for long enough.
    #[error("nothing was recorded: no link was up for a second")]
    Nothing,
    /// A file of the run cannot be written.
    #[error(transparent)]
    Write(#[from] knee_record::Error),
    /// The file of decisions cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Decisions {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A defect of Knee: the scenario that it wrote is invalid.
    #[error("the recorded scenario cannot be used, please report this: {0}")]
    Scenario(String),
}

/// What to record, and how.
#[derive(Clone, Debug, Default)]
pub struct RecordSettings {
    /// Socket of the end; if absent, the usual places.
    pub socket: Option<PathBuf>,
    /// On a server, the client whose links are recorded; if empty, the first.
    pub peer: String,
    /// Output folder, which must not exist.
    pub out: PathBuf,
    /// Keep names of interfaces and of the other end.
    pub names: bool,
    /// Command line, for the manifest.
    pub arguments: Vec<String>,
}

/// Summary of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recorded {
    /// Duration, s.
    pub seconds: f64,
    /// Number of links.
    pub links: usize,
    /// Bytes that they carried in both directions.
    pub bytes: u64,
    /// Number of decisions recorded.
    pub decisions: u64,
    /// Number of decisions not recorded, because there were too many.
    pub decisions_lost: u64,
}

/// Records until `stop` completes or the end is gone.
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
    let result = record_into(settings, &decisions, asked, meter, stop).await;
    if let Err(error) = &result {
        if matches!(error, RecordError::Nothing | RecordError::Refused(_)) {
            let _ = fs::remove_file(&decisions);
        }
        // Fails if something was written, which stays.
        let _ = fs::remove_dir(&settings.out);
    }
    result
}

async fn record_into(
    settings: &RecordSettings,
    decisions: &Path,
    asked: UnixStream,
    meter: Meter,
    stop: impl Future<Output = ()>,
) -> Result<Recorded, RecordError> {
    let wrong = |source| RecordError::Decisions { path: decisions.to_owned(), source };
    let mut file = fs::File::create(decisions).map(std::io::BufWriter::new).map_err(wrong)?;
    let mut recorded =
        Recorded { seconds: 0.0, links: 0, bytes: 0, decisions: 0, decisions_lost: 0 };
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut lines = BufReader::new(asked).lines();
    tokio::pin!(stop);
    loop {
        let line = tokio::select! {
            () = &mut stop => break,
            line = lines.next_line() => line,
        };
        let Ok(Some(line)) = line else { break };
        let Ok(mut snapshot) = serde_json::from_str::<Snapshot>(&line) else {
            match serde_json::from_str::<Refusal>(&line) {
                Ok(refusal) => return Err(RecordError::Refused(refusal.refused)),
                Err(_) => break,
            }
        };
        recorded.decisions_lost += snapshot.decisions_lost;
        for text in snapshot.decisions.drain(..) {
            // One file is one trace, so its first line appears once.
            let rows = text.lines().skip(usize::from(recorded.decisions > 0));
            for row in rows {
                writeln!(file, "{row}").map_err(wrong)?;
            }
            recorded.decisions += text.lines().count() as u64 - 1;
        }
        snapshots.push(snapshot);
        if snapshots.len() >= SNAPSHOTS_MAX {
            break;
        }
    }
    file.flush().map_err(wrong)?;
    if snapshots.len() < SNAPSHOTS_MIN || snapshots.iter().all(|snapshot| snapshot.links.is_empty())
    {
        return Err(RecordError::Nothing);
    }
    if !settings.names {
        forget_names(&mut snapshots);
    }
    make_names_usable(&mut snapshots);
    let scenario = scenario(&scenario_text(&snapshots))?;
    let run = records(&snapshots, &scenario);
    write(settings, meter, &scenario, &run)?;
    recorded.seconds = run.end_ns as f64 / 1e9;
    recorded.links = scenario.paths.len();
    recorded.bytes = series::carried(&snapshots);
    Ok(recorded)
}

async fn connect(settings: &RecordSettings) -> Result<UnixStream, RecordError> {
    let paths = match &settings.socket {
        Some(path) => vec![path.clone()],
        None => ["client", "server"].into_iter().flat_map(socket_paths).collect(),
    };
    let mut problem: Option<(PathBuf, io::Error)> = None;
    for path in paths {
        let asked = async {
            let mut stream = UnixStream::connect(&path).await?;
            stream.write_all(record_request(&settings.peer).as_bytes()).await?;
            Ok(stream)
        };
        match asked.await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                if says_more(&error, problem.as_ref().map(|(_, error)| error)) {
                    problem = Some((path, error));
                }
            }
        }
    }
    Err(match problem {
        Some((path, error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            RecordError::Denied(path)
        }
        Some((path, source)) => RecordError::Silent { path, source },
        None => RecordError::Nothing,
    })
}

/// Renames the links to numbers, in the order in which they appeared.
fn forget_names(snapshots: &mut [Snapshot]) {
    let mut known: Vec<String> = Vec::new();
    for snapshot in snapshots {
        snapshot.peer.clear();
        for link in &mut snapshot.links {
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
    // The arguments may contain names that are not to be kept.
    let arguments = if settings.names { settings.arguments.clone() } else { Vec::new() };
    let manifest = Manifest::new(&summary, records, arguments, &[], &meter.stop());
    let dir: &Path = &settings.out;
    Ok(write_run(dir, &manifest, scenario, records, &summary)?)
}
