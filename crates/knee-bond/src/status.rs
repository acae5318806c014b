//! What an end shows of itself: over a Unix socket, as JSON, to whoever may open it.

use crate::judge::{Judges, LEFT_OUT};
use crate::quota::CapStatus;
use crate::record::shot::{self, Shooting};
use knee_quic::{BundleId, Host, PathState};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// The state of an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `client` or `server`.
    pub role: String,
    /// Version of the program.
    pub version: String,
    /// Since its start, s.
    pub running_s: f64,
    /// A client's: where it takes connections; a server's: where clients come to.
    pub listen: String,
    /// Its bundles; of a client one at most.
    pub bundles: Vec<BundleStatus>,
    /// Links of a client that are not used, and why.
    pub unused: Vec<Unused>,
    /// Links of a client that have a cap.
    pub caps: Vec<CapStatus>,
    /// It takes all that programs of its host send.
    #[serde(default)]
    pub transparent: bool,
}

/// A bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleStatus {
    /// Who is at the other end.
    pub peer: String,
    /// Its links.
    pub links: Vec<LinkStatus>,
    /// Bytes that wait or are on their way.
    pub held_bytes: u64,
}

/// A link of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Its name: the client's interface.
    pub name: String,
    /// The address at the other end.
    pub address: String,
    /// It is silent, and not used for now.
    pub silent: bool,
    /// It waits, since a cheaper one works.
    pub backup: bool,
    /// What it costs.
    pub cost: u8,
    /// Why it is left out; none: it is not.
    #[serde(default)]
    pub left_out: Option<String>,
    /// Smoothed RTT, ms.
    pub rtt_ms: f64,
    /// Lowest RTT, ms.
    pub min_rtt_ms: f64,
    /// Bytes of packets that this end sent and that arrived.
    pub sent_bytes: u64,
    /// Bytes of packets that came.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets lost of these.
    pub lost_packets: u64,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Phase of its congestion control.
    pub phase: String,
    /// Bytes of its largest packet.
    pub packet_bytes: u16,
}

/// A link that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unused {
    /// Its interface.
    pub name: String,
    /// Why.
    pub why: String,
}

impl BundleStatus {
    /// That of a bundle of a host.
    pub fn of(host: &mut Host, id: &BundleId, peer: String, judges: &Judges) -> BundleStatus {
        let held_bytes = host.bundle(id).map(|bundle| bundle.held()).unwrap_or_default();
        let of = |(number, path): (usize, Option<PathState>)| {
            Some(LinkStatus::of(&path?, judges.why(id, number)))
        };
        let links = host.paths(id).into_iter().enumerate().filter_map(of).collect();
        BundleStatus { peer, links, held_bytes }
    }
}

impl LinkStatus {
    fn of(path: &PathState, why: Option<String>) -> LinkStatus {
        let PathState {
            peer,
            label,
            is_suspect,
            is_backup,
            path_use,
            packet,
            received,
            observed,
            ..
        } = path;
        LinkStatus {
            name: label.clone(),
            address: peer.to_string(),
            silent: *is_suspect,
            backup: *is_backup,
            cost: path_use.cost,
            left_out: why.or_else(|| {
                let by_peer = path_use.cost == LEFT_OUT.cost;
                by_peer.then(|| "the other end found that it does harm".to_owned())
            }),
            rtt_ms: observed.srtt.as_secs_f64() * 1e3,
            min_rtt_ms: observed.min_rtt.as_secs_f64() * 1e3,
            sent_bytes: observed.delivered,
            received_bytes: *received,
            sent_packets: observed.sent_packets,
            lost_packets: observed.lost_packets,
            window_bytes: observed.window,
            phase: observed.state.phase.to_owned(),
            packet_bytes: *packet,
        }
    }
}

/// Where an end shows its state unless it is told otherwise: in the directory of the
/// service, of root, or of the user.
pub fn socket_path(role: &str) -> PathBuf {
    let folder = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
        .iter()
        .find_map(std::env::var_os)
        .map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    folder.join(format!("knee-bond-{role}.sock"))
}

/// Where an end that runs on this host may show its state: where one of this user does, or
/// the service of this host.
pub fn socket_paths(role: &str) -> [PathBuf; 2] {
    let file = format!("knee-bond-{role}.sock");
    [socket_path(role), Path::new("/run").join(format!("knee-bond-{role}")).join(file)]
}

/// The socket of a state; it is removed when this is dropped.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl StatusSocket {
    /// Makes one that its owner alone may open.
    ///
    /// # Errors
    /// Another process shows its state there, or the system says something else.
    pub fn bind(path: &Path) -> io::Result<StatusSocket> {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(StatusSocket { listener, path: path.to_owned() })
    }

    /// Shows the state to whoever asks, or tells a recorder of it for as long as that listens.
    pub async fn serve(self, state: impl Fn() -> Status, shooting: Rc<Shooting>) {
        while let Ok((mut asker, _)) = self.listener.accept().await {
            // An asker of an earlier version says nothing.
            let mut said = [0; REQUEST_MAX];
            let asked = timeout(PATIENCE, asker.read(&mut said)).await;
            let said = &said[..asked.ok().and_then(Result::ok).unwrap_or(0)];
            if let Some(of) = recorder(said) {
                let shooting = shooting.clone();
                spawn_local(async move { shot::tell(asker, &shooting, &of).await });
                continue;
            }
            let text = serde_json::to_vec(&state()).unwrap_or_default();
            // Who does not want it any more is not told.
            let _ = asker.write_all(&text).await;
        }
    }
}

/// What a recorder says: the client that it means may follow.
const RECORD: &str = "record ";
const STATUS: &str = "status\n";
const REQUEST_MAX: usize = 256;
/// Whoever asks says what within so long.
const PATIENCE: Duration = Duration::from_millis(100);

/// What a recorder says first.
pub(crate) fn record_request(of: &str) -> String {
    format!("{RECORD}{of}\n")
}

/// The client that a recorder means; none: no recorder.
fn recorder(said: &[u8]) -> Option<String> {
    let said = std::str::from_utf8(said).ok()?;
    Some(said.strip_prefix(RECORD)?.trim_end().to_owned())
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The state that is shown at a socket.
///
/// # Errors
/// Nobody shows one there.
pub fn ask(path: &Path) -> io::Result<Status> {
    let mut asked = std::os::unix::net::UnixStream::connect(path)?;
    asked.write_all(STATUS.as_bytes())?;
    asked.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
    serde_json::from_reader(asked).map_err(io::Error::other)
}
