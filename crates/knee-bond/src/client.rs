//! The client: its links to the server, and what it offers its host.

use crate::BondError;
use crate::config::{ClientConfig, LINKS_MAX, TransparentConfig};
use crate::engine::{Engine, Told};
use crate::judge::Judges;
use crate::key;
use crate::links::{Links, Slot, SlotState};
use crate::page;
use crate::proxy;
use crate::quota::Quotas;
use crate::record::shot::Shooting;
use crate::request::Target;
use crate::settings::{rng, settings};
use crate::status::{BundleStatus, LinkStatus, Status, StatusSocket, Unused, socket_path};
use crate::transparent::Transparent;
use knee_quic::{BundleId, Host};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;
use tokio::time::Instant;

/// To measure a link takes so long, once it is up.
const MEASURED: Duration = Duration::from_millis(200);

/// Longer than the server is waited for over a link.
const TRIED: Duration = Duration::from_secs(11);

/// What was found out of a link that was tried.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its interface.
    pub interface: String,
    /// What was measured, or why it does not work.
    pub outcome: Result<LinkStatus, String>,
}

/// How applications get to the server.
#[derive(Debug)]
pub struct Way {
    /// What runs it.
    pub engine: Rc<Engine>,
    /// Datagrams go over all links.
    pub duplicate_udp: bool,
    bundle: RefCell<Option<BundleId>>,
    changed: Notify,
}

impl Way {
    /// The bundle, as soon as one of its links is up.
    pub async fn bundle(&self) -> BundleId {
        loop {
            let changed = self.changed.notified();
            if let Some(bundle) = *self.bundle.borrow() {
                return bundle;
            }
            changed.await;
        }
    }

    pub(crate) fn set(&self, bundle: Option<BundleId>) {
        *self.bundle.borrow_mut() = bundle;
        self.changed.notify_waiters();
    }
}

/// A client, ready to run.
pub struct Client {
    config: ClientConfig,
    way: Rc<Way>,
    links: Links,
    told: mpsc::UnboundedReceiver<Told>,
    proxy: TcpListener,
    forwards: Vec<(TcpListener, Target)>,
    page: Option<TcpListener>,
    status: StatusSocket,
    transparent: Option<Transparent>,
    started: Instant,
}

pub(crate) async fn listen(at: SocketAddr) -> Result<TcpListener, BondError> {
    TcpListener::bind(at).await.map_err(|source| BondError::Listen { at: at.to_string(), source })
}

/// The host of a client, and the links that it is to have.
fn host(
    config: &ClientConfig,
) -> Result<(Rc<Way>, Links, mpsc::UnboundedReceiver<Told>), BondError> {
    let keys = key::read(&config.key)?;
    let costs = |link: &usize| config.link[*link].cost > 0;
    let quiet: Vec<usize> = (0..config.link.len()).filter(costs).collect();
    let settings = settings(false, LINKS_MAX, &config.tuning, &quiet);
    #[expect(clippy::disallowed_methods, reason = "QUIC counts from it; Knee's clock does not")]
    let start = std::time::Instant::now();
    let rng = rng().map_err(|_| BondError::Random)?;
    let host = Host::new(settings, &keys, &config.server_key.0, start, &rng)?;
    let (engine, told) = Engine::new(host, start);
    let (duplicate_udp, bundle, changed) =
        (config.duplicate_udp, RefCell::default(), Notify::new());
    let way = Rc::new(Way { engine, duplicate_udp, bundle, changed });
    let links = Links::new(config, way.clone())?;
    Ok((way, links, told))
}

/// Makes each link as a client does, measures it, and gives it up. A client that runs with
/// the same key is left alone.
///
/// # Errors
/// The key cannot be read, or the system lacks something; links that do not work are no
/// error.
pub async fn try_links(config: &ClientConfig) -> Result<Vec<Tried>, BondError> {
    let (way, mut links, mut told) = host(config)?;
    let running = spawn_local(way.engine.clone().run());
    let slots = links.slots.clone();
    let decided = async {
        // The first look at interfaces, and an RTT or two of those that are up.
        tokio::time::sleep(MEASURED).await;
        let all = async {
            while !slots.borrow().iter().all(Slot::is_decided) {
                tokio::time::sleep(MEASURED).await;
            }
        };
        // Those that are not are told so.
        let _ = tokio::time::timeout(TRIED, all).await;
        tokio::time::sleep(MEASURED).await;
    };
    links.keep(&mut told, decided, &mut |_| {}).await?;
    let bundle = *way.bundle.borrow();
    let found = bundle.map(|id| {
        way.engine
            .with(|host, _| BundleStatus::of(host, &id, String::new(), &Judges::default()))
            .links
    });
    let found = found.unwrap_or_default();
    let outcome = |slot: &Slot| match &slot.state {
        SlotState::Down(why, _) => Err(why.clone()),
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

/// Whether a client could take all that programs of this host send, if it is to.
///
/// # Errors
/// What the host lacks for that.
pub fn check_transparent(config: &ClientConfig) -> Result<(), BondError> {
    match (&config.transparent, &config.server) {
        (Some(TransparentConfig { except }), Target::Address(address, port)) => {
            Ok(Transparent::check(SocketAddr::new(*address, *port), except)?)
        }
        _ => Ok(()),
    }
}

/// What takes all that programs of this host send, if that is wanted.
async fn transparent(config: &ClientConfig) -> Result<Option<Transparent>, BondError> {
    match (&config.transparent, &config.server) {
        (Some(TransparentConfig { except }), Target::Address(address, port)) => {
            let server = SocketAddr::new(*address, *port);
            Ok(Some(Transparent::begin(server, except).await?))
        }
        // The configuration was refused where the server stands by its name.
        _ => Ok(None),
    }
}

impl Client {
    /// Takes its ports, and reads its key. Nothing is sent before [`run`](Self::run).
    ///
    /// # Errors
    /// A port is in use, the key cannot be read, or the system lacks something.
    pub async fn new(config: ClientConfig) -> Result<Client, BondError> {
        let (way, links, told) = host(&config)?;
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
        // First the rules, then the links: nothing passes in between.
        let transparent = transparent(&config).await?;
        let started = Instant::now();
        Ok(Client { way, links, told, proxy, forwards, page, status, transparent, started, config })
    }

    /// Runs until `stop` says so. `say` is given what happens, a line each.
    ///
    /// # Errors
    /// The system lacks something; links that do not work are no error.
    pub async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        mut say: impl FnMut(&str),
    ) -> Result<(), BondError> {
        let running = spawn_local(self.way.engine.clone().run());
        let login = Rc::new(self.config.login.take());
        let listen = self.proxy.local_addr().map(|at| at.to_string()).unwrap_or_default();
        spawn_local(proxy::serve(self.proxy, self.way.clone(), login));
        for (listener, to) in self.forwards {
            spawn_local(proxy::forward(listener, self.way.clone(), to));
        }
        let is_transparent = self.transparent.is_some();
        let diversion = self.transparent.map(|transparent| transparent.serve(&self.way));
        let judges = Rc::<Judges>::default();
        let judging = spawn_local(judges.clone().sit(self.way.engine.clone()));
        let shown = Rc::new(Shown {
            judges,
            is_transparent,
            way: self.way.clone(),
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
        let shooting = Rc::new(Shooting {
            engine: self.way.engine.clone(),
            role: "client",
            bundle: Box::new({
                let (way, server) = (self.way.clone(), self.config.server.to_string());
                move |_: &str| way.bundle.borrow().map(|id| (id, server.clone()))
            }),
            tuning: self.config.tuning.names(),
        });
        let status = spawn_local(self.status.serve(move || shown.status(), shooting));
        self.links.keep(&mut self.told, stop, &mut say).await?;
        self.links.close().await;
        status.abort();
        let _ = status.await;
        running.abort();
        judging.abort();
        drop(diversion);
        Ok(())
    }
}

/// What `status` shows.
struct Shown {
    judges: Rc<Judges>,
    is_transparent: bool,
    way: Rc<Way>,
    slots: Rc<RefCell<Vec<Slot>>>,
    quotas: Rc<RefCell<Quotas>>,
    server: String,
    listen: String,
    started: Instant,
}

impl Shown {
    fn status(&self) -> Status {
        let bundle = *self.way.bundle.borrow();
        let of = |id| {
            let peer = self.server.clone();
            self.way.engine.with(|host, _| BundleStatus::of(host, &id, peer, &self.judges))
        };
        let slots = self.slots.borrow();
        let unused = slots.iter().filter_map(|slot| {
            let why = match &slot.state {
                SlotState::Down(why, _) => why.clone(),
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
            transparent: self.is_transparent,
        }
    }
}
