//! The client: its links to the server, and what it offers its host.

use crate::BondError;
use crate::config::{ClientConfig, LINKS_MAX};
use crate::engine::{Engine, Told};
use crate::key;
use crate::links::{Links, Slot, SlotState};
use crate::proxy;
use crate::request::Target;
use crate::settings::{random, rng, settings};
use crate::status::{BundleStatus, Status, StatusSocket, Unused, socket_path};
use knee_host::{LinkChanges, Routing};
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

/// Changes of links come in bursts: the last of one is waited for.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How applications get to the server.
#[derive(Debug)]
pub struct Way {
    /// What runs it.
    pub engine: Rc<Engine>,
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
    slots: Rc<RefCell<Vec<Slot>>>,
    bundle: BundleId,
    told: mpsc::UnboundedReceiver<Told>,
    routing: Routing,
    proxy: TcpListener,
    forwards: Vec<(TcpListener, Target)>,
    status: StatusSocket,
    started: Instant,
}

async fn listen(at: SocketAddr) -> Result<TcpListener, BondError> {
    TcpListener::bind(at).await.map_err(|source| BondError::Listen { at: at.to_string(), source })
}

impl Client {
    /// Takes its ports, and reads its key. Nothing is sent before [`run`](Self::run).
    ///
    /// # Errors
    /// A port is in use, the key cannot be read, or the system lacks something.
    pub async fn new(config: ClientConfig) -> Result<Client, BondError> {
        let keys = key::read(&config.key)?;
        let slots: Vec<Slot> =
            config.link.iter().map(|link| Slot::new(link.interface.clone(), link.backup)).collect();
        let backup = (0..slots.len()).filter(|slot| slots[*slot].backup).collect();
        let settings = settings(false, LINKS_MAX, &config.tuning, backup);
        #[expect(clippy::disallowed_methods, reason = "QUIC counts from it; Knee's clock does not")]
        let start = std::time::Instant::now();
        let rng = rng().map_err(|_| BondError::Random)?;
        let host = Host::new(settings, &keys, &config.server_key.0, start, &rng)?;
        let (engine, told) = Engine::new(host, start);
        let way = Way { engine, bundle: RefCell::default(), changed: Notify::new() };
        let proxy = listen(config.listen).await?;
        let mut forwards = Vec::new();
        for forward in &config.forward {
            forwards.push((listen(forward.listen).await?, forward.to.clone()));
        }
        let path: PathBuf = config.status.clone().unwrap_or_else(|| socket_path("client"));
        let status = StatusSocket::bind(&path)
            .map_err(|source| BondError::Listen { at: path.display().to_string(), source })?;
        Ok(Client {
            way: Rc::new(way),
            slots: Rc::new(RefCell::new(slots)),
            bundle: random().map_err(|_| BondError::Random)?,
            told,
            routing: Routing::open()?,
            proxy,
            forwards,
            status,
            started: Instant::now(),
            config,
        })
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
        let engine = self.way.engine.clone();
        let running = spawn_local(engine.clone().run());
        let login = Rc::new(self.config.login.take());
        let listen = self.proxy.local_addr().map(|at| at.to_string()).unwrap_or_default();
        spawn_local(proxy::serve(self.proxy, self.way.clone(), login));
        for (listener, to) in self.forwards {
            spawn_local(proxy::forward(listener, self.way.clone(), to));
        }
        let shown = Shown {
            way: self.way.clone(),
            slots: self.slots.clone(),
            server: self.config.server.to_string(),
            listen,
            started: self.started,
        };
        let status = spawn_local(self.status.serve(move || shown.status()));
        let mut links = Links {
            way: self.way.clone(),
            slots: self.slots,
            automatic: self.config.link.is_empty(),
            server: self.config.server,
            bundle: self.bundle,
            routing: self.routing,
        };
        let (changes, mut changed) = mpsc::channel(1);
        listen_for_changes(changes)?;
        let mut tick = Instant::now();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = tokio::time::sleep_until(tick) => {
                    links.look(&mut say).await?;
                    tick = links.next();
                }
                Some(()) = changed.recv() => tick = tick.min(Instant::now() + DEBOUNCE),
                told = self.told.recv() => match told {
                    Some(told) => {
                        links.on_told(told, &mut say)?;
                        tick = tick.min(links.next());
                    }
                    None => break,
                },
            }
        }
        engine.with(|host, now| host.close(now, &links.bundle));
        // What says so leaves within a moment, or never.
        tokio::time::sleep(Duration::from_millis(100)).await;
        status.abort();
        let _ = status.await;
        running.abort();
        Ok(())
    }
}

/// A thread hears of changes of links, since to hear of them is to wait.
fn listen_for_changes(changes: mpsc::Sender<()>) -> Result<(), BondError> {
    let mut listener = LinkChanges::listen()?;
    let listen = move || {
        while !changes.is_closed() {
            // One that waits to be seen stands for all.
            if listener.wait(Duration::from_secs(1)).unwrap_or(false) {
                let _ = changes.try_send(());
            }
        }
    };
    let thread = std::thread::Builder::new().name("links".to_owned()).spawn(listen);
    thread.map(drop).map_err(BondError::Thread)
}

/// What `status` shows.
struct Shown {
    way: Rc<Way>,
    slots: Rc<RefCell<Vec<Slot>>>,
    server: String,
    listen: String,
    started: Instant,
}

impl Shown {
    fn status(&self) -> Status {
        let bundle = *self.way.bundle.borrow();
        let of = |id| {
            let peer = self.server.clone();
            self.way.engine.with(|host, _| BundleStatus::of(host, &id, peer))
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
        }
    }
}
