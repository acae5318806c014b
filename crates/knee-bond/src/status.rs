//! Status of an end: JSON over a Unix socket, for whoever may open it.

use crate::judge::{Judges, LEFT_OUT};
use crate::proxy::RETRY_DELAY;
use crate::quota::CapStatus;
use crate::record::snapshot::{self, SnapshotSource};
use knee_quic::{BundleId, Host, PathState};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::task::spawn_local;
use tokio::time::timeout;

/// State of an end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `client` or `server`.
    pub role: String,
    /// Version of the program.
    pub version: String,
    /// Time since its start, s.
    pub running_s: f64,
    /// Address on which it accepts connections of applications (client) or clients (server).
    pub listen: String,
    /// Bundles; a client has at most one.
    pub bundles: Vec<BundleStatus>,
    /// Links of a client that are not used, and why.
    pub unused: Vec<Unused>,
    /// Links of a client that have a cap.
    pub caps: Vec<CapStatus>,
    /// Clients of a server that have a limit of bytes.
    #[serde(default)]
    pub carried: Vec<CarriedStatus>,
    /// Whether this is a client in transparent mode, which takes everything that its host sends.
    #[serde(default)]
    pub transparent: bool,
}

/// What a client with a limit of bytes has carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedStatus {
    /// Name of the client.
    pub client: String,
    /// Bytes in its current 24 hours.
    pub used_bytes: u64,
    /// Bytes that it may carry in 24 hours.
    pub limit_bytes: u64,
}

/// State of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleStatus {
    /// Name of the other end.
    pub peer: String,
    /// Tells apart bundles with one peer: a server has two of a restarted client until the first one
    /// ends.
    #[serde(default)]
    pub number: u32,
    /// Links of the bundle.
    pub links: Vec<LinkStatus>,
    /// Bytes that wait or are in flight.
    pub held_bytes: u64,
    /// Connections whose content nobody reads here, if that leaves little of the window for others.
    #[serde(default)]
    pub unread: Option<Unread>,
    /// Connections that wait because nobody reads at the other end.
    #[serde(default)]
    pub waiting_for_peer: usize,
}

/// Content that nobody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Connections with such content.
    pub connections: usize,
    /// Bytes of it.
    pub bytes: u64,
}

/// Says that streams hold bytes that `nobody` reads.
pub fn unread(streams: usize, bytes: u64, nobody: &str) -> String {
    let megabytes = bytes as f64 / 1e6;
    format!(
        "{streams} connections hold {megabytes:.1} MB that {nobody} reads, and slow other ones down"
    )
}

/// State of a link of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// Name of the link: the client's interface.
    pub name: String,
    /// Address of the other end.
    pub address: String,
    /// The link is silent, and not used for now.
    pub silent: bool,
    /// The link waits, because a cheaper one works.
    pub backup: bool,
    /// Cost of the link.
    pub cost: u8,
    /// Why the link is left out; absent if it is not.
    #[serde(default)]
    pub left_out: Option<String>,
    /// Smoothed RTT, ms.
    pub rtt_ms: f64,
    /// Lowest RTT, ms.
    pub min_rtt_ms: f64,
    /// Bytes of packets sent by this end and acknowledged.
    pub sent_bytes: u64,
    /// Bytes of packets received.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Phase of the congestion controller.
    pub phase: String,
    /// Largest packet, bytes.
    pub packet_bytes: u16,
}

/// A link that is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unused {
    /// Name of the interface.
    pub name: String,
    /// Why it is not used.
    pub why: String,
}

impl BundleStatus {
    /// Returns the state of a bundle.
    pub fn of(
        host: &mut Host,
        id: &BundleId,
        peer: String,
        number: u32,
        judges: &Judges,
    ) -> BundleStatus {
        let held_bytes = host.bundle(id).map(|bundle| bundle.held()).unwrap_or_default();
        let unread = host.bundle(id).and_then(|bundle| bundle.unread());
        let unread = unread.map(|(connections, bytes)| Unread { connections, bytes });
        let waiting_for_peer = host.bundle(id).map_or(0, |bundle| bundle.waiting_for_peer());
        let of = |(number, path): (usize, Option<PathState>)| {
            Some(LinkStatus::of(&path?, judges.why(id, number)))
        };
        let links = host.paths(id).into_iter().enumerate().filter_map(of).collect();
        BundleStatus { peer, number, links, held_bytes, unread, waiting_for_peer }
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
                by_peer.then(|| "the other end found it harmful".to_owned())
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

/// Returns the default path of the status socket: in the directory of the service, of root, or of
/// the user.
pub fn socket_path(role: &str) -> PathBuf {
    let folder = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"]
        .iter()
        .find_map(std::env::var_os)
        .map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    folder.join(format!("knee-bond-{role}.sock"))
}

/// Returns where an end on this host may have its status socket: that of this user, and that of the
/// service.
pub fn socket_paths(role: &str) -> [PathBuf; 2] {
    let file = format!("knee-bond-{role}.sock");
    [socket_path(role), Path::new("/run").join(format!("knee-bond-{role}")).join(file)]
}

/// A bound status socket; its file is removed on drop.
#[derive(Debug)]
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl StatusSocket {
    /// Binds a socket that only its owner may open.
    ///
    /// # Errors
    /// Another process serves its status there, another file is there, or the system fails.
    pub fn bind(path: &Path) -> io::Result<StatusSocket> {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        match std::fs::symlink_metadata(path) {
            // Of an end that was killed.
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
            Ok(_) => {
                let problem = "there is a file that is not a socket: choose another place";
                return Err(io::Error::other(problem));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(StatusSocket { listener, path: path.to_owned() })
    }

    /// Serves the state to each process that asks, and snapshots to a recorder for as long as it
    /// listens.
    pub async fn serve(self, state: impl Fn() -> Status, source: Rc<SnapshotSource>) {
        loop {
            let Ok((mut asker, _)) = self.listener.accept().await else {
                // Such as for lack of file descriptors, which others give back.
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            };
            // Earlier versions send nothing when they ask.
            let mut said = [0; REQUEST_MAX];
            let asked = timeout(TIMEOUT, asker.read(&mut said)).await;
            let said = &said[..asked.ok().and_then(Result::ok).unwrap_or(0)];
            if let Some(of) = recorder(said) {
                let source = source.clone();
                spawn_local(async move { snapshot::send_snapshot(asker, &source, &of).await });
                continue;
            }
            let text = serde_json::to_vec(&state()).unwrap_or_default();
            // Fails if the other process went away.
            let _ = asker.write_all(&text).await;
        }
    }
}

/// Prefix of a recorder's request; the name of a client may follow.
const RECORD: &str = "record ";
const STATUS: &str = "status\n";
const REQUEST_MAX: usize = 256;
/// Time limit for a request.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Formats a recorder's request.
pub(crate) fn record_request(of: &str) -> String {
    format!("{RECORD}{of}\n")
}

/// Returns the client that a recorder asks for, or `None` if the request is not a recorder's.
fn recorder(said: &[u8]) -> Option<String> {
    let said = std::str::from_utf8(said).ok()?;
    Some(said.strip_prefix(RECORD)?.trim_end().to_owned())
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns whether an error says more than that of another socket: any does, except that there is no
/// such socket.
pub fn says_more(error: &io::Error, than: Option<&io::Error>) -> bool {
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    than.is_none_or(|than| is_absent(than) && !is_absent(error))
}

/// Asks an end for its state.
///
/// # Errors
/// No end answers there.
pub fn ask(path: &Path) -> io::Result<Status> {
    let mut asked = std::os::unix::net::UnixStream::connect(path)?;
    asked.write_all(STATUS.as_bytes())?;
    asked.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
    serde_json::from_reader(asked).map_err(io::Error::other)
}
