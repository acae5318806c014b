//! The client: keeps its links to the server, and serves the applications of its host.

use crate::BondError;
use crate::config::{ClientConfig, LINKS_MAX, LimitsConfig};
use crate::engine::{Engine, EngineEvent};
use crate::judge::Judges;
use crate::key;
use crate::links::{Links, Slot, SlotState};
use crate::page;
use crate::proxy::{self, Doors};
use crate::quota::Quotas;
use crate::record::snapshot::SnapshotSource;
use crate::request::{Target, one_line};
use crate::settings::{rng, settings};
use crate::status::{BundleStatus, LinkStatus, Status, StatusSocket, Unused, socket_path};
use crate::transparent::Transparent;
use knee_host::raise_open_files_limit;
use knee_quic::{BundleId, Host};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;
use tokio::time::Instant;

/// File descriptors that a process has if the system does not say how many.
const DESCRIPTORS: u64 = 1024;

/// Time to measure a link once it is up.
const MEASURED: Duration = Duration::from_millis(200);

/// Limit for trying all links; longer than a handshake over one link may take.
const TRIED: Duration = Duration::from_secs(11);

/// Result of trying a link.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Name of the interface.
    pub interface: String,
    /// The measurements, or why the link does not work.
    pub outcome: Result<LinkStatus, String>,
}

/// The route of applications to the server.
#[derive(Debug)]
pub struct ClientHandle {
    /// Runs the client's QUIC host.
    pub engine: Rc<Engine>,
    /// Sends each datagram over all links.
    pub duplicate_udp: bool,
    bundle: RefCell<Option<BundleId>>,
    /// The bundle in which the server accepts no more streams.
    left: Cell<Option<BundleId>>,
    changed: Notify,
}

impl ClientHandle {
    /// Waits for the first link, and returns the bundle.
    pub async fn bundle(&self) -> BundleId {
        loop {
            let changed = self.changed.notified();
            if let Some(bundle) = *self.bundle.borrow() {
                return bundle;
            }
            changed.await;
        }
    }

    /// Notes that the server accepts no more streams in a bundle, because it is stopping.
    pub(crate) fn leave(&self, bundle: BundleId) {
        self.left.set(Some(bundle));
    }

    /// Returns whether the server accepts no more streams in a bundle.
    pub(crate) fn is_left(&self, bundle: &BundleId) -> bool {
        self.left.get() == Some(*bundle)
    }

    pub(crate) fn set(&self, bundle: Option<BundleId>) {
        *self.bundle.borrow_mut() = bundle;
        self.changed.notify_waiters();
    }
}

/// A client, ready to run.
pub struct Client {
    config: ClientConfig,
    handle: Rc<ClientHandle>,
    links: Links,
    events: mpsc::UnboundedReceiver<EngineEvent>,
    proxy: TcpListener,
    forwards: Vec<(TcpListener, Target)>,
    page: Option<TcpListener>,
    status: StatusSocket,
    transparent: Option<Transparent>,
    started: Instant,
    reloads: (mpsc::UnboundedSender<ClientConfig>, mpsc::UnboundedReceiver<ClientConfig>),
}

pub(crate) async fn listen(at: SocketAddr) -> Result<TcpListener, BondError> {
    TcpListener::bind(at).await.map_err(|source| BondError::Listen { at: at.to_string(), source })
}

/// Makes the client's host and its links.
fn host(
    config: &ClientConfig,
) -> Result<(Rc<ClientHandle>, Links, mpsc::UnboundedReceiver<EngineEvent>), BondError> {
    let keys = key::read(&config.key)?;
    let costs = |link: &usize| config.link[*link].cost > 0;
    let quiet: Vec<usize> = (0..config.link.len()).filter(costs).collect();
    // Servers open no streams.
    let streams = LimitsConfig::default().streams;
    let settings = settings(false, LINKS_MAX, &config.tuning, &quiet, streams);
    #[expect(clippy::disallowed_methods, reason = "QUIC counts from it; Knee's clock does not")]
    let start = std::time::Instant::now();
    let rng = rng().map_err(|_| BondError::Random)?;
    let host = Host::new(settings, &keys, &config.server_key.0, start, &rng)?;
    let (engine, events) = Engine::new(host, start);
    let (duplicate_udp, bundle, left, changed) =
        (config.duplicate_udp, RefCell::default(), Cell::default(), Notify::new());
    let handle = Rc::new(ClientHandle { engine, duplicate_udp, bundle, left, changed });
    let links = Links::new(config, handle.clone())?;
    Ok((handle, links, events))
}

/// Sets up each link as a client does, measures it, and closes it. Does not disturb a running
/// client that uses the same key.
///
/// # Errors
/// The key cannot be read, or the system lacks a resource. A link that does not work is not an
/// error.
pub async fn try_links(config: &ClientConfig) -> Result<Vec<Tried>, BondError> {
    let (handle, mut links, mut events) = host(config)?;
    let running = spawn_local(handle.engine.clone().run());
    let slots = links.slots.clone();
    let decided = async {
        // Allows the first look at the interfaces, and an RTT or two of the links that are up.
        tokio::time::sleep(MEASURED).await;
        let all = async {
            while !slots.borrow().iter().all(Slot::is_decided) {
                tokio::time::sleep(MEASURED).await;
            }
        };
        // Links still undecided at the timeout are reported as not answering.
        let _ = tokio::time::timeout(TRIED, all).await;
        tokio::time::sleep(MEASURED).await;
    };
    links.keep(&mut events, decided, &mut |_| {}).await?;
    let bundle = *handle.bundle.borrow();
    let found = bundle.map(|id| {
        handle
            .engine
            .with(|host, _| BundleStatus::of(host, &id, String::new(), 0, &Judges::default()))
            .links
    });
    let found = found.unwrap_or_default();
    let outcome = |slot: &Slot| match &slot.state {
        SlotState::Down(why, _) => Err(why.clone()),
        SlotState::Resolving(..) => Err("no nameserver knew the server's address yet".to_owned()),
        SlotState::Connecting(..) => Err("the server did not answer over it".to_owned()),
        SlotState::Up(_) => {
            let link = found.iter().find(|link| link.name == slot.interface);
            link.cloned().ok_or_else(|| "it came, and was lost again".to_owned())
        }
    };
    let tried = |slot: &Slot| Tried { interface: slot.interface.clone(), outcome: outcome(slot) };
    let tried = slots.borrow().iter().map(tried).collect();
    links.close().await;
    running.abort();
    Ok(tried)
}

/// Checks whether the transparent mode would work here, if it is configured.
///
/// # Errors
/// What the host lacks for it.
pub fn check_transparent(config: &ClientConfig) -> Result<(), BondError> {
    match (&config.transparent, &config.server) {
        (Some(transparent), Target::Address(address, port)) => {
            Ok(Transparent::check(SocketAddr::new(*address, *port), transparent)?)
        }
        _ => Ok(()),
    }
}

/// Starts the transparent mode, if it is configured.
async fn transparent(config: &ClientConfig) -> Result<Option<Transparent>, BondError> {
    match (&config.transparent, &config.server) {
        (Some(transparent), Target::Address(address, port)) => {
            let server = SocketAddr::new(*address, *port);
            Ok(Some(Transparent::begin(server, transparent).await?))
        }
        // A server given by name was refused when the configuration was read.
        _ => Ok(None),
    }
}

impl Client {
    /// Binds the ports and reads the key. Nothing is sent before [`run`](Self::run).
    ///
    /// # Errors
    /// A port is in use, the key cannot be read, or the system lacks a resource.
    pub async fn new(config: ClientConfig) -> Result<Client, BondError> {
        let (handle, links, events) = host(&config)?;
        let proxy = listen(config.listen).await?;
        let mut forwards = Vec::new();
        for forward in &config.forward {
            forwards.push((listen(forward.listen).await?, forward.to.clone()));
        }
        let page = match config.page {
            Some(at) => Some(listen(at).await?),
            None => None,
        };
        let path: PathBuf = config.status.clone().unwrap_or_else(|| socket_path("client"));
        let status = StatusSocket::bind(&path)
            .map_err(|source| BondError::Listen { at: path.display().to_string(), source })?;
        // The rules come before the links, so that nothing gets past them in between.
        let transparent = transparent(&config).await?;
        let started = Instant::now();
        let reloads = mpsc::unbounded_channel();
        Ok(Client {
            handle,
            links,
            events,
            proxy,
            forwards,
            page,
            status,
            transparent,
            started,
            reloads,
            config,
        })
    }

    /// Returns where to send another configuration while the client runs. Of it the keys are used, its
    /// own and the server's, for links that begin from then on.
    pub fn reloader(&self) -> mpsc::UnboundedSender<ClientConfig> {
        self.reloads.0.clone()
    }

    /// Runs until `stop` completes. `say` receives each event as a line of text.
    ///
    /// # Errors
    /// The system lacks a resource. A link that does not work is not an error.
    pub async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        mut say: impl FnMut(&str),
    ) -> Result<(), BondError> {
        let mut say = |said: &str| say(&one_line(said));
        // Each connection takes a descriptor; the usual limit is for programs that use select(2).
        let descriptors = raise_open_files_limit().unwrap_or(DESCRIPTORS);
        let doors = Rc::new(Doors::new(descriptors));
        let running = spawn_local(self.handle.engine.clone().run());
        let login = Rc::new(self.config.login.take());
        let listen = self.proxy.local_addr().map(|at| at.to_string()).unwrap_or_default();
        spawn_local(proxy::serve(self.proxy, self.handle.clone(), login, doors.clone()));
        for (listener, to) in self.forwards {
            spawn_local(proxy::forward(listener, self.handle.clone(), to, doors.clone()));
        }
        let reloading = spawn_local(reload(self.handle.engine.clone(), self.reloads.1));
        let is_transparent = self.transparent.is_some();
        let diversion = self.transparent.map(|transparent| transparent.serve(&self.handle));
        let judges = Rc::<Judges>::default();
        let judging = spawn_local(judges.clone().run(self.handle.engine.clone()));
        let shown = Rc::new(Shown {
            judges,
            is_transparent,
            handle: self.handle.clone(),
            slots: self.links.slots.clone(),
            quotas: self.links.quotas.clone(),
            server: self.config.server.to_string(),
            listen,
            started: self.started,
        });
        if let Some(listener) = self.page {
            let shown = shown.clone();
            spawn_local(page::serve(listener, move || shown.status()));
        }
        let source = Rc::new(SnapshotSource {
            engine: self.handle.engine.clone(),
            role: "client",
            bundle: Box::new({
                let (handle, server) = (self.handle.clone(), self.config.server.to_string());
                move |_: &str| handle.bundle.borrow().map(|id| (id, server.clone()))
            }),
            names: Vec::new(),
            recorded: RefCell::default(),
            tuning: self.config.tuning.texts(),
        });
        let status = spawn_local(self.status.serve(move || shown.status(), source));
        self.links.keep(&mut self.events, stop, &mut say).await?;
        self.links.close().await;
        status.abort();
        let _ = status.await;
        running.abort();
        judging.abort();
        reloading.abort();
        drop(diversion);
        Ok(())
    }
}

/// Uses the keys of each further configuration.
async fn reload(engine: Rc<Engine>, mut configs: mpsc::UnboundedReceiver<ClientConfig>) {
    while let Some(ClientConfig { key, server_key, .. }) = configs.recv().await {
        // They were read just before.
        if let Ok(keys) = key::read(&key) {
            let _ = engine.with(|host, now| host.set_keys(now, &keys, &server_key.0));
        }
    }
}

/// The state that `status` describes.
struct Shown {
    judges: Rc<Judges>,
    is_transparent: bool,
    handle: Rc<ClientHandle>,
    slots: Rc<RefCell<Vec<Slot>>>,
    quotas: Rc<RefCell<Quotas>>,
    server: String,
    listen: String,
    started: Instant,
}

impl Shown {
    fn status(&self) -> Status {
        let bundle = *self.handle.bundle.borrow();
        let of = |id| {
            let peer = self.server.clone();
            self.handle.engine.with(|host, _| BundleStatus::of(host, &id, peer, 0, &self.judges))
        };
        let slots = self.slots.borrow();
        let unused = slots.iter().filter_map(|slot| {
            let why = match &slot.state {
                SlotState::Down(why, _) => why.clone(),
                SlotState::Resolving(..) => "it waits for a nameserver's answer".to_owned(),
                SlotState::Connecting(..) => "it waits for the server's answer".to_owned(),
                SlotState::Up(_) => return None,
            };
            Some(Unused { name: slot.interface.clone(), why })
        });
        Status {
            role: "client".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            running_s: self.started.elapsed().as_secs_f64(),
            listen: self.listen.clone(),
            bundles: bundle.map(of).into_iter().collect(),
            unused: unused.collect(),
            caps: self.quotas.borrow().status(),
            carried: Vec::new(),
            transparent: self.is_transparent,
        }
    }
}
