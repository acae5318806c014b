//! The server: knows its clients by their keys, and connects to the targets that they ask for.

use crate::BondError;
use crate::config::{EgressConfig, ServerConfig};
use crate::egress::Egress;
use crate::engine::{Engine, EngineEvent};
use crate::judge::Judges;
use crate::key;
use crate::page;
use crate::record::snapshot::SnapshotSource;
use crate::request::one_line;
use crate::settings::{rng, settings};
use crate::status::{BundleStatus, Status, StatusSocket, socket_path, unread};
use crate::streams::{Owner, Shared, serve_stream};
use bytes::Bytes;
use knee_host::{LinkChanges, Routing, raise_open_files_limit};
use knee_quic::{BundleId, Host, HostEvent};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::Instant;

/// Time for streams to end when the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// Interval at which a server that is stopping looks whether all streams have ended.
const DRAIN_STEP: Duration = Duration::from_millis(50);
/// Time in which the last packets of a client that was killed arrive, and in which a living one
/// answers.
const ARRIVAL: Duration = Duration::from_secs(2);
const ANSWERS: Duration = Duration::from_secs(13);
/// A flow that no stream has.
const NO_FLOW: u64 = (1 << 62) - 1;

/// A server, ready to run.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    engine: Rc<Engine>,
    events: mpsc::UnboundedReceiver<EngineEvent>,
    egress: Rc<Egress>,
    listen: SocketAddr,
    page: Option<TcpListener>,
    status: StatusSocket,
    started: Instant,
    reloads: (mpsc::UnboundedSender<ServerConfig>, mpsc::UnboundedReceiver<ServerConfig>),
}

impl Server {
    /// Binds the port and reads the key. A service manager may pass a socket that it keeps while
    /// the server restarts, so that no packet is refused meanwhile.
    ///
    /// # Errors
    /// The port is in use, the key cannot be read, or the system lacks a resource.
    pub async fn new(config: ServerConfig, handed: Option<UdpSocket>) -> Result<Server, BondError> {
        let keys = key::read(&config.key)?;
        let pins = config.pins();
        #[expect(clippy::disallowed_methods, reason = "QUIC counts from it; Knee's clock does not")]
        let start = std::time::Instant::now();
        let rng = rng().map_err(|_| BondError::Random)?;
        let settings = settings(true, 1, &config.tuning, &[], config.limits.streams);
        let host = Host::new(settings, &keys, &pins, start, &rng)?;
        let (engine, events) = Engine::new(host, start);
        let taken = |source| BondError::Listen { at: format!("UDP {}", config.listen), source };
        let socket = match handed {
            Some(socket) => socket,
            None => UdpSocket::bind(config.listen).map_err(taken)?,
        };
        let listen = socket.local_addr().map_err(taken)?;
        engine.attach(0, socket).map_err(taken)?;
        let own = own_addresses()?;
        let EgressConfig { allow, ports } = config.egress.clone();
        let egress = Rc::new(Egress { allow, ports, own });
        let page = match config.page {
            Some(at) => Some(crate::client::listen(at).await?),
            None => None,
        };
        let path = config.status.clone().unwrap_or_else(|| socket_path("server"));
        let status = StatusSocket::bind(&path)
            .map_err(|source| BondError::Listen { at: path.display().to_string(), source })?;
        let started = Instant::now();
        let reloads = mpsc::unbounded_channel();
        Ok(Server { engine, events, egress, listen, page, status, started, reloads, config })
    }

    /// Returns where to send another configuration while the server runs. Of it the keys are used: its
    /// own, and those of clients. Connections of clients whose key is gone end, others go on.
    pub fn reloader(&self) -> mpsc::UnboundedSender<ServerConfig> {
        self.reloads.0.clone()
    }

    /// Returns the address on which clients are accepted.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Runs until `stop` completes; streams then have at most ten seconds to end. `say` receives each
    /// event as a line of text.
    ///
    /// # Errors
    /// The system lacks a resource. Errors of clients are not errors.
    pub async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        mut say: impl FnMut(&str),
    ) -> Result<(), BondError> {
        let mut say = |said: &str| say(&one_line(said));
        // Each connection takes a descriptor; the usual limit is for programs that use select(2).
        let _ = raise_open_files_limit();
        let running = spawn_local(self.engine.clone().run());
        let (spent, mut spending) = mpsc::unbounded_channel();
        let shared = Rc::new(Shared {
            egress: self.egress.clone(),
            limits: self.config.limits,
            nameserver: self.config.nameserver,
            accounts: RefCell::default(),
            spent,
            owners: RefCell::default(),
            hoarders: RefCell::default(),
        });
        let mut config = self.config;
        let judges = Rc::<Judges>::default();
        let judging = spawn_local(judges.clone().run(self.engine.clone()));
        let state = {
            let (engine, shared) = (self.engine.clone(), shared.clone());
            let (listen, started) = (self.listen.to_string(), self.started);
            let judges = judges.clone();
            move || status(&engine, &shared, &judges, &listen, started)
        };
        if let Some(listener) = self.page {
            spawn_local(page::serve(listener, state.clone()));
        }
        let source = Rc::new(SnapshotSource {
            engine: self.engine.clone(),
            role: "server",
            bundle: Box::new({
                let (engine, shared) = (self.engine.clone(), shared.clone());
                move |of: &str| chosen(&engine, &shared, of)
            }),
            names: config.client.iter().map(|client| client.name.clone()).collect(),
            recorded: RefCell::default(),
            tuning: config.tuning.texts(),
        });
        let shown = spawn_local(self.status.serve(state, source));
        tokio::pin!(stop);
        let mut until = None;
        loop {
            let end = async {
                let Some(until) = until else { return std::future::pending().await };
                while Instant::now() < until && !is_drained(&self.engine, &shared) {
                    tokio::time::sleep(DRAIN_STEP).await;
                }
            };
            tokio::select! {
                () = &mut stop, if until.is_none() => {
                    self.engine.with(|host, _| {
                        host.leave();
                        for id in host.bundles().copied().collect::<Vec<_>>() {
                            if let Some(bundle) = host.bundle(&id) {
                                bundle.go_away();
                            }
                        }
                    });
                    let open = open_streams(&shared);
                    if open > 0 {
                        say(&format!("Stopping: {open} connections have {} s to finish.", DRAIN.as_secs()));
                    }
                    until = Some(Instant::now() + DRAIN);
                }
                () = end => break,
                Some(said) = spending.recv() => say(&said),
                Some(new) = self.reloads.1.recv() => {
                    match reload(&self.engine, &new) {
                        Ok(()) => {
                            let clients = new.client.len();
                            say(&format!("Keys read again: {clients} clients may connect."));
                            config.client = new.client;
                        }
                        Err(error) => say(&format!("The keys are as before: {error}.")),
                    }
                }
                event = self.events.recv() => match event {
                    Some(event) => on_event(&self.engine, &shared, &config, event, &mut say),
                    None => break,
                },
            }
        }
        self.engine.with(|host, now| {
            for id in host.bundles().copied().collect::<Vec<_>>() {
                host.close(now, &id);
            }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        shown.abort();
        let _ = shown.await;
        running.abort();
        judging.abort();
        Ok(())
    }
}

/// Uses the keys of another configuration.
fn reload(engine: &Engine, new: &ServerConfig) -> Result<(), BondError> {
    let keys = key::read(&new.key)?;
    engine.with(|host, now| host.set_keys(now, &keys, &new.pins()))?;
    Ok(())
}

/// Number of streams that are being served.
fn open_streams(shared: &Shared) -> u32 {
    shared.accounts.borrow().values().map(|account| account.streams).sum()
}

/// Returns whether all streams have ended, and every client that answers has what they sent.
fn is_drained(engine: &Engine, shared: &Shared) -> bool {
    open_streams(shared) == 0
        && engine.with(|host, _| {
            let ids: Vec<BundleId> = host.bundles().copied().collect();
            ids.iter().all(|id| {
                let answers =
                    host.paths(id).iter().flatten().any(|path| path.is_up && !path.is_suspect);
                !answers || host.bundle(id).is_none_or(|bundle| bundle.is_drained())
            })
        })
}

/// Returns a client's bundle to record, or any client's if `of` is empty: preferably one with a link
/// that is up, since a restarted client's old bundle has none.
fn chosen(engine: &Engine, shared: &Shared, of: &str) -> Option<(BundleId, String)> {
    let owners = shared.owners.borrow();
    let its = owners.iter().filter(|(_, owner)| of.is_empty() || owner.name == of);
    let is_up = |id: &BundleId| {
        let paths = engine.with(|host, _| host.paths(id));
        paths.iter().flatten().any(|path| path.is_up && !path.is_suspect)
    };
    let (id, owner) = its.max_by_key(|(id, _)| is_up(id))?;
    Some((*id, owner.name.clone()))
}

/// Bytes received over each link of a bundle.
fn heard(engine: &Engine, id: &BundleId) -> Vec<Option<u64>> {
    let paths = engine.with(|host, _| host.paths(id));
    paths.iter().map(|path| path.as_ref().map(|path| path.received)).collect()
}

/// Ends those of a client's earlier bundles that it has no more because it was killed: their streams
/// would count as its own until they time out. A bundle is dead if nothing answers an empty message
/// over all of its links for longer than [`try_links`](crate::try_links) takes, whose bundle
/// replaces no other.
async fn end_dead(engine: Rc<Engine>, shared: Rc<Shared>, new: BundleId, others: Vec<BundleId>) {
    // What the old process has sent arrives first.
    tokio::time::sleep(ARRIVAL).await;
    let others: Vec<_> = others.into_iter().map(|id| (id, heard(&engine, &id))).collect();
    for (id, _) in &others {
        engine.with_bundle(id, |bundle| bundle.send(NO_FLOW, Bytes::new(), true));
    }
    tokio::time::sleep(ANSWERS).await;
    for (id, before) in others {
        let is_replaced = shared.owners.borrow().contains_key(&new);
        let now = heard(&engine, &id);
        let is_silent =
            |(link, now): (usize, &Option<u64>)| now.is_none() || before.get(link) == Some(now);
        if is_replaced && now.iter().enumerate().all(is_silent) {
            engine.close(&id, "a new one has replaced it");
        }
    }
}

/// Returns the addresses of this host, kept up to date by a thread until they are dropped.
fn own_addresses() -> Result<Arc<RwLock<BTreeSet<IpAddr>>>, BondError> {
    let mut changes = LinkChanges::listen_for_addresses()?;
    let mut routing = Routing::open()?;
    let own = Arc::new(RwLock::new(routing.addresses()?));
    let kept = Arc::downgrade(&own);
    let keep = move || {
        let mut is_stale = false;
        while kept.strong_count() > 0 {
            is_stale |= changes.wait(Duration::from_secs(1)).unwrap_or(false);
            if is_stale && let (Some(own), Ok(addresses)) = (kept.upgrade(), routing.addresses()) {
                *own.write().unwrap_or_else(PoisonError::into_inner) = addresses;
                is_stale = false;
            }
        }
    };
    let thread = std::thread::Builder::new().name("addresses".to_owned()).spawn(keep);
    thread.map(|_| own).map_err(BondError::Thread)
}

fn on_event(
    engine: &Rc<Engine>,
    shared: &Rc<Shared>,
    config: &ServerConfig,
    event: EngineEvent,
    say: &mut impl FnMut(&str),
) {
    let name = |id: &BundleId| {
        let owners = shared.owners.borrow();
        owners.get(id).map_or_else(|| "a client".to_owned(), |owner| owner.name.clone())
    };
    match event {
        EngineEvent::Host(HostEvent::Accepted(id, key)) => {
            let others = shared.own(id, config.name_of(&key).unwrap_or("a client"));
            say(&format!("{} connected.", name(&id)));
            if !others.is_empty() {
                say(&format!(
                    "{} connected twice: it was restarted, or two machines use one key.",
                    name(&id)
                ));
                spawn_local(end_dead(engine.clone(), shared.clone(), id, others));
            }
        }
        EngineEvent::Host(HostEvent::Joined(id, number)) => {
            let link = engine.with(|host, _| host.paths(&id).get(number).cloned().flatten());
            if let Some(link) = link {
                say(&format!("{}: {} is up, from {}.", name(&id), link.label, link.peer));
            }
        }
        // For a bundle that is over, only its end is reported.
        EngineEvent::Host(HostEvent::Lost(Some((id, number)), why))
            if shared.owners.borrow().contains_key(&id) =>
        {
            say(&format!("{}: link {number} is down: {why}.", name(&id)));
        }
        EngineEvent::Host(HostEvent::Hoarded(key)) => {
            let name = config.name_of(&key).unwrap_or("a client");
            if shared.says_hoarder(name) {
                say(&format!(
                    "{name} opens connections that do not join a bundle: the oldest ones are closed."
                ));
            }
        }
        EngineEvent::Host(HostEvent::Broken(id, violation)) => {
            say(&format!("{} broke the rules of the bundle: {violation}.", name(&id)));
        }
        EngineEvent::Host(HostEvent::Ended(id)) | EngineEvent::Closed(id, _) => {
            // A client that closes its bundle might keep its connections open.
            engine.with(|host, now| host.close(now, &id));
            say(&format!("{} disconnected.", name(&id)));
            shared.owners.borrow_mut().remove(&id);
        }
        EngineEvent::Opened(id, stream) => {
            let owner = shared.owners.borrow().get(&id).map(|owner| owner.name.clone());
            if let (Some(owner), Some(stream)) = (owner, engine.accept(id, stream)) {
                let (engine, shared) = (engine.clone(), shared.clone());
                spawn_local(async move { serve_stream(&engine, &shared, owner, stream).await });
            }
        }
        EngineEvent::Crowded(id, streams, bytes) => {
            say(&format!("{}: {}.", name(&id), unread(streams, bytes, "no target")));
        }
        // Strangers are refused, and not worth a line each.
        EngineEvent::Host(HostEvent::Lost(..) | HostEvent::Refused(..))
        | EngineEvent::GoAway(_) => {}
    }
}

fn status(
    engine: &Engine,
    shared: &Shared,
    judges: &Judges,
    listen: &str,
    started: Instant,
) -> Status {
    let owners = shared.owners.borrow();
    let bundles = engine.with(|host, _| {
        let of = |(id, owner): (&BundleId, &Owner)| {
            BundleStatus::of(host, id, owner.name.clone(), owner.number, judges)
        };
        owners.iter().map(of).collect()
    });
    Status {
        role: "server".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        running_s: started.elapsed().as_secs_f64(),
        listen: listen.to_owned(),
        bundles,
        unused: Vec::new(),
        caps: Vec::new(),
        carried: shared.carried(),
        transparent: false,
    }
}
