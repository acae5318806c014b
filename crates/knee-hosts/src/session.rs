//! The machine that runs a scenario and sends.

use crate::config::HostConfig;
use crate::frames::{ALIVE, Frames, GREETING, Reply, Request, SILENT, VERSION};
use crate::{HostsError, PROTOCOL};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use knee_bond::key;
use knee_bond::request::{Target, one_line};
use knee_emulator::Clock;
use knee_kernel::{Remote, check_remote, run_remote};
use knee_record::{BoundedRows, Control, Records, SampleSink, row_queue};
use knee_scenario::Scenario;
use knee_units::Time;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Time limit for each address of the other machine, and for each step of the handshake.
const CONNECT: Duration = Duration::from_secs(10);
/// Interval at which the time is reported and a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// What the other machine says about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes of data that arrived; `None` if it did not say.
    pub bytes: Option<u64>,
    /// Why it ended the run, if it did.
    pub over: Option<String>,
}

/// A control channel over which a measurement has begun.
#[derive(Debug)]
pub struct Session {
    host: String,
    remote: Remote,
    runtime: Runtime,
    frames: Frames<TlsStream<TcpStream>>,
}

/// Checks that a scenario can run from this machine. Sends nothing.
///
/// # Errors
/// The setting that is not supported, and what to write instead; or this machine's key.
pub fn check(scenario: &Scenario, host: &HostConfig) -> Result<(), HostsError> {
    key::read(&host.key)?;
    let addresses = match &host.host {
        Target::Address(address, port) => vec![SocketAddr::new(*address, *port)],
        Target::Name(..) => Vec::new(),
    };
    Ok(check_remote(scenario, &addresses)?)
}

/// Runs a scenario to its end, or until `control` or the other machine says to stop.
///
/// # Errors
/// The other machine cannot be reached or refuses, a setting is not supported, or a flow failed.
pub fn run(
    scenario: &Scenario,
    host: &HostConfig,
    control: &Control,
) -> Result<(Records, Received), HostsError> {
    run_to(scenario, host, control, &mut ())
}

/// Runs a scenario as [`run`] does. Every row goes to `samples` during the run, because the records of
/// a long run hold only some of them.
///
/// # Errors
/// The errors of [`run`], and a row that cannot be stored.
pub fn run_to(
    scenario: &Scenario,
    host: &HostConfig,
    control: &Control,
    samples: &mut dyn SampleSink,
) -> Result<(Records, Received), HostsError> {
    let session = Session::begin(host)?;
    let stop = AtomicBool::new(false);
    let epoch_unix_ns = unix_time_ns();
    let look = |now: Time| {
        control.now_ns.store(now.as_nanos(), Ordering::Relaxed);
        if control.stop.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let (records, received) = session.run(scenario, (Clock::start(), &stop), samples, look)?;
    Ok((Records { epoch_unix_ns, ..records }, received))
}

/// Nanoseconds since 1970 (UTC); 0 if the clock is before.
fn unix_time_ns() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_nanos_opt().unwrap_or_default()).unwrap_or_default()
}

impl Session {
    /// Connects to the other machine and begins a measurement there.
    ///
    /// # Errors
    /// It cannot be reached, the keys do not match, or it refuses.
    pub fn begin(host: &HostConfig) -> Result<Session, HostsError> {
        let keys = key::read(&host.key)?;
        let mut tls = keys.client(&host.host_key.0)?;
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let connector = TlsConnector::from(Arc::new(tls));
        let name = host.host.to_string();
        let addresses = resolve(&host.host)
            .map_err(|source| HostsError::Unreachable { host: name.clone(), source })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(HostsError::System)?;
        let (frames, token) = runtime.block_on(connect(&name, &addresses, &connector))?;
        let greeting = [GREETING.as_slice(), &token].concat();
        Ok(Session { host: name, remote: Remote { addresses, greeting }, runtime, frames })
    }

    /// Runs the flows of a scenario until its end, or until `stop` is set, which the other machine's
    /// end of the measurement also does. `look` gets the time, every 20 ms.
    ///
    /// # Errors
    /// A setting is not supported, a flow failed, or the other machine is gone.
    pub fn run(
        self,
        scenario: &Scenario,
        (clock, stop): (Clock, &AtomicBool),
        samples: &mut dyn SampleSink,
        look: impl Fn(Time),
    ) -> Result<(Records, Received), HostsError> {
        let Session { host, remote, runtime, mut frames } = self;
        let lost = |source| HostsError::Lost { host: host.clone(), source };
        let (done, running) = oneshot::channel();
        let mut kept = BoundedRows::new(samples);
        let (sender, rows) = row_queue();
        let mut stored = Ok(());
        let (applied, over) = thread::scope(|scope| {
            let applications = scope.spawn(|| {
                let applied = run_remote(scenario, &remote, clock, stop, sender);
                // Nobody waits any more if the other machine is lost.
                let _ = done.send(());
                applied
            });
            let look = || {
                look(clock.now());
                if stored.is_ok() {
                    stored = rows.pass_on(&mut kept);
                }
                // A row that cannot be stored ends the run.
                if stored.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
            };
            let over = runtime.block_on(watch(&mut frames, running, stop, look));
            if over.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            (applications.join(), over)
        });
        let over = over.map_err(lost)?;
        let records = applied.map_err(|_| HostsError::Panicked)?;
        let records = match (records, &over) {
            (Ok(records), _) => records,
            (Err(_), Some(reason)) => {
                let source = io::Error::other(format!("it ended the run: {reason}"));
                return Err(lost(source));
            }
            (Err(error), None) => return Err(error.into()),
        };
        stored.and_then(|()| rows.pass_on(&mut kept)).map_err(HostsError::Samples)?;
        let bytes = runtime.block_on(finish(&mut frames));
        Ok((kept.into_records(records), Received { bytes, over }))
    }
}

/// Returns the addresses of the other machine.
fn resolve(host: &Target) -> io::Result<Vec<SocketAddr>> {
    match host {
        Target::Address(address, port) => Ok(vec![SocketAddr::new(*address, *port)]),
        Target::Name(name, port) => Ok((name.as_str(), *port).to_socket_addrs()?.collect()),
    }
}

/// Opens the control channel; returns it with the token for flows.
async fn connect(
    host: &str,
    addresses: &[SocketAddr],
    connector: &TlsConnector,
) -> Result<(Frames<TlsStream<TcpStream>>, Vec<u8>), HostsError> {
    let unreachable = |source| HostsError::Unreachable { host: host.to_owned(), source };
    let unknown = |source| HostsError::Unknown { host: host.to_owned(), source };
    let stream = reach(addresses).await.map_err(unreachable)?;
    // Nothing depends on the name: the key is pinned.
    let name = ServerName::from(std::net::Ipv4Addr::LOCALHOST);
    let shaken = in_time(connector.connect(name, stream)).await;
    let mut frames = Frames::new(shaken.map_err(unknown)?);
    in_time(frames.write(&Request::Begin { version: VERSION })).await.map_err(unknown)?;
    // In TLS 1.3 a server that refuses the client's key says so only now.
    match in_time(frames.read()).await.map_err(unknown)? {
        Reply::Begun { token } => {
            let wrong = |error| unknown(io::Error::new(io::ErrorKind::InvalidData, error));
            Ok((frames, BASE64_STANDARD.decode(token).map_err(wrong)?))
        }
        Reply::Refused { reason } => {
            let (host, reason) = (host.to_owned(), one_line(&reason));
            Err(HostsError::Refused { host, reason })
        }
        other => Err(unknown(io::Error::other(format!("unexpected answer {other:?}")))),
    }
}

/// Connects to the first address that answers.
async fn reach(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match in_time(TcpStream::connect(address)).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(CONNECT, work).await.map_err(|_| io::ErrorKind::TimedOut)?
}

/// Keeps the control channel alive while the applications run. Returns why the other machine has
/// ended the run, if it has.
async fn watch(
    frames: &mut Frames<TlsStream<TcpStream>>,
    mut running: oneshot::Receiver<()>,
    stop: &AtomicBool,
    mut look: impl FnMut(),
) -> io::Result<Option<String>> {
    let (mut alive, mut looks) = (interval(ALIVE), interval(LOOK));
    let mut heard = Instant::now();
    let mut over = None;
    loop {
        tokio::select! {
            // An error is that of a thread that panicked.
            _ = &mut running => return Ok(over),
            _ = looks.tick() => look(),
            _ = alive.tick(), if over.is_none() => {
                if heard.elapsed() > SILENT {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                frames.write(&Request::Alive).await?;
            }
            reply = frames.read(), if over.is_none() => match reply? {
                Reply::Over { reason } => {
                    over = Some(one_line(&reason));
                    stop.store(true, Ordering::Relaxed);
                }
                Reply::Alive => heard = Instant::now(),
                other => return Err(io::Error::other(format!("unexpected answer {other:?}"))),
            },
        }
    }
}

/// Ends the measurement; returns how many bytes have arrived there, if it says so in time.
async fn finish(frames: &mut Frames<TlsStream<TcpStream>>) -> Option<u64> {
    let ended = async {
        frames.write(&Request::Finish).await?;
        loop {
            match frames.read().await? {
                Reply::Ended { bytes, .. } => return Ok(Some(bytes)),
                Reply::Alive => {}
                _ => return Ok(None),
            }
        }
    };
    in_time(ended).await.ok().flatten()
}
