//! The links of a client: found, made, given up, tried again.

use crate::BondError;
use crate::client::Way;
use crate::config::ClientConfig;
use crate::config::LINKS_MAX;
use crate::engine::Told;
use crate::quota::{self, Quotas, state_path};
use crate::request::Target;
use crate::settings::random;
use knee_bundle::PathUse;
use knee_host::{Link, LinkChanges, Routing};
use knee_quic::{BundleId, HostEvent, Member};
use nix::sys::socket::{setsockopt, sockopt};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Changes of links come in bursts: the last of one is waited for.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// What says that a bundle is over leaves within so long, or never.
const PARTING: Duration = Duration::from_millis(100);
/// How often links are looked at although nothing was heard of them.
const STEP: Duration = Duration::from_secs(5);
/// A link that could not be had is tried again after so long, and twice as long each time.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// After so long without an answer a link is tried anew.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A link that there is, or that is wanted.
#[derive(Debug)]
pub struct Slot {
    pub interface: String,
    pub cost: u8,
    pub state: SlotState,
    /// Since it was last up, tries that failed.
    failures: u32,
}

/// How far a link is.
#[derive(Debug)]
pub enum SlotState {
    /// Why it is not used, and when it is tried again.
    Down(String, Instant),
    /// Since then, from these addresses.
    Connecting(Instant, BTreeSet<IpAddr>),
    /// It is a path of the bundle, from these addresses.
    Up(BTreeSet<IpAddr>),
}

impl Slot {
    fn new(interface: String, cost: u8) -> Slot {
        let state = SlotState::Down("it has not been tried yet".to_owned(), Instant::now());
        Slot { interface, cost, state, failures: 0 }
    }

    /// It is up, or why it is not is known.
    pub fn is_decided(&self) -> bool {
        match &self.state {
            SlotState::Down(..) => self.failures > 0,
            SlotState::Connecting(..) => false,
            SlotState::Up(_) => true,
        }
    }

    fn fail(&mut self, why: String) {
        let wait = RETRY.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
        self.failures += 1;
        self.state = SlotState::Down(why, Instant::now() + wait);
    }
}

/// What makes links and gives them up.
pub struct Links {
    pub slots: Rc<RefCell<Vec<Slot>>>,
    pub quotas: Rc<RefCell<Quotas>>,
    way: Rc<Way>,
    /// Every interface with a default route is one.
    automatic: bool,
    server: Target,
    bundle: BundleId,
    routing: Routing,
}

impl Links {
    /// The links of a configuration; none is made before [`keep`](Self::keep).
    pub fn new(config: &ClientConfig, way: Rc<Way>) -> Result<Links, BondError> {
        let slots = config.link.iter().map(|link| Slot::new(link.interface.clone(), link.cost));
        let path = config.caps.clone().unwrap_or_else(state_path);
        Ok(Links {
            quotas: Rc::new(RefCell::new(Quotas::new(&config.link, path)?)),
            slots: Rc::new(RefCell::new(slots.collect())),
            way,
            automatic: config.link.is_empty(),
            server: config.server.clone(),
            bundle: random().map_err(|_| BondError::Random)?,
            routing: Routing::open()?,
        })
    }

    /// Makes links and gives them up as they come and go, until `stop` says so.
    pub async fn keep(
        &mut self,
        told: &mut mpsc::UnboundedReceiver<Told>,
        stop: impl Future<Output = ()>,
        say: &mut impl FnMut(&str),
    ) -> Result<(), BondError> {
        let (changes, mut changed) = mpsc::channel(1);
        listen_for_changes(changes)?;
        let mut tick = Instant::now();
        let counts = !self.quotas.borrow().is_empty();
        let mut count = tokio::time::interval(quota::STEP);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => {
                    self.count(true, say);
                    return Ok(());
                }
                _ = count.tick(), if counts => {
                    self.count(false, say);
                }
                () = tokio::time::sleep_until(tick) => {
                    self.look(say).await?;
                    tick = self.next();
                }
                Some(()) = changed.recv() => tick = tick.min(Instant::now() + DEBOUNCE),
                told = told.recv() => match told {
                    Some(told) => {
                        self.on_told(told, say)?;
                        tick = tick.min(self.next());
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    /// Counts what links with a cap carried, and gives those up that have reached it.
    fn count(&self, is_last: bool, say: &mut impl FnMut(&str)) {
        let slots = self.slots.borrow().len();
        for number in 0..slots {
            let interface = self.slots.borrow()[number].interface.clone();
            let carried = self.way.engine.carried(number);
            self.quotas.borrow_mut().count(&interface, carried);
            let spent = self.quotas.borrow().spent(&interface);
            if let Some(why) = spent {
                self.give_up(number, &why, say);
            }
        }
        if let Err(error) = self.quotas.borrow_mut().save(is_last) {
            say(&format!("{error}. Links go on; what they carry now is not kept."));
        }
    }

    /// Tells the server that the bundle is over.
    pub async fn close(&self) {
        self.way.engine.with(|host, now| host.close(now, &self.bundle));
        tokio::time::sleep(PARTING).await;
    }

    /// When to look again.
    fn next(&self) -> Instant {
        let at = |slot: &Slot| match &slot.state {
            SlotState::Down(_, retry) => *retry,
            SlotState::Connecting(since, _) => *since + HANDSHAKE,
            SlotState::Up(_) => Instant::now() + STEP,
        };
        let slots = self.slots.borrow();
        let soon = Instant::now() + Duration::from_millis(50);
        slots.iter().map(at).min().unwrap_or(soon + STEP).clamp(soon, soon + STEP)
    }

    /// Looks at the interfaces, and makes and gives up links as they are.
    async fn look(&mut self, say: &mut impl FnMut(&str)) -> Result<(), BondError> {
        let found = self.routing.links()?;
        if self.automatic {
            self.find(&found);
        }
        let count = self.slots.borrow().len();
        for number in 0..count {
            let (interface, retry) = {
                let slots = self.slots.borrow();
                let retry = match &slots[number].state {
                    SlotState::Down(_, retry) => *retry <= Instant::now(),
                    _ => false,
                };
                (slots[number].interface.clone(), retry)
            };
            let link = found.iter().find(|link| link.name == interface);
            let spent = self.quotas.borrow().spent(&interface);
            if let Some(why) = unusable(link).map(str::to_owned).or(spent) {
                self.give_up(number, &why, say);
                continue;
            }
            let addresses = link.map(|link| link.addresses.clone()).unwrap_or_default();
            let stale = match &self.slots.borrow()[number].state {
                SlotState::Up(before) if *before != addresses => Some("its addresses changed"),
                SlotState::Connecting(since, before)
                    if *before != addresses || since.elapsed() >= HANDSHAKE =>
                {
                    Some("the server did not answer over it: is its UDP port open?")
                }
                _ => None,
            };
            if let Some(why) = stale {
                self.give_up(number, why, say);
            } else if retry {
                self.connect(number, &interface, addresses).await;
            }
        }
        Ok(())
    }

    /// New interfaces that lead elsewhere become links.
    fn find(&self, found: &[Link]) {
        let mut slots = self.slots.borrow_mut();
        for link in found.iter().filter(|link| link.has_default_route && link.is_physical) {
            if slots.len() < LINKS_MAX && slots.iter().all(|slot| slot.interface != link.name) {
                slots.push(Slot::new(link.name.clone(), 0));
            }
        }
    }

    /// Takes a link out of use; it is tried again once that is worth it.
    fn give_up(&self, number: usize, why: &str, say: &mut impl FnMut(&str)) {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[number];
        match &mut slot.state {
            SlotState::Down(known, _) => {
                why.clone_into(known);
                slot.failures = slot.failures.max(1);
                return;
            }
            SlotState::Up(_) => {
                say(&format!("{} is down: {why}.", slot.interface));
                // It was good a moment ago.
                slot.failures = 0;
            }
            SlotState::Connecting(..) => {}
        }
        slot.fail(why.to_owned());
        let bundle = self.bundle;
        self.way.engine.with(|host, now| host.disconnect(now, &bundle, number));
        // What still comes in counts for a cap.
        if self.quotas.borrow().spent(&slot.interface).is_none() {
            self.way.engine.detach(number);
        }
    }

    /// Opens a connection over an interface.
    async fn connect(&mut self, number: usize, interface: &str, addresses: BTreeSet<IpAddr>) {
        let result = match self.resolve(&addresses).await {
            Ok(to) => self.open(number, interface, to),
            Err(why) => Err(why),
        };
        let slot = &mut self.slots.borrow_mut()[number];
        match result {
            Ok(()) => slot.state = SlotState::Connecting(Instant::now(), addresses),
            Err(why) => slot.fail(why),
        }
    }

    /// The server's address, of a family that the link has.
    async fn resolve(&self, addresses: &BTreeSet<IpAddr>) -> Result<SocketAddr, String> {
        let (name, port) = match &self.server {
            Target::Address(address, port) => return Ok(SocketAddr::new(*address, *port)),
            Target::Name(name, port) => (name.as_str(), *port),
        };
        let found = tokio::net::lookup_host((name, port)).await;
        let found: Vec<SocketAddr> =
            found.map_err(|error| format!("the name {name} has no address: {error}"))?.collect();
        let has = |to: &&SocketAddr| addresses.iter().any(|own| own.is_ipv4() == to.is_ipv4());
        let to = found.iter().find(has).or(found.first()).copied();
        to.ok_or_else(|| format!("the name {name} has no address"))
    }

    fn open(&mut self, number: usize, interface: &str, to: SocketAddr) -> Result<(), String> {
        let at: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = || {
            let socket = UdpSocket::bind((at, 0)).map_err(|error| error.to_string())?;
            setsockopt(&socket, sockopt::BindToDevice, &OsString::from(interface))
                .map_err(|error| format!("its socket cannot be bound to it: {error}"))?;
            Ok::<_, String>(socket)
        };
        // To connect a socket only asks the kernel for the way.
        bound()?.connect(to).map_err(|error| match error.raw_os_error() {
            Some(libc::ENETUNREACH) => {
                format!("no route leads to {to} through it: add one, such as a default route")
            }
            _ => error.to_string(),
        })?;
        let socket = bound()?;
        let engine = &self.way.engine;
        engine.attach(number, socket).map_err(|error| error.to_string())?;
        let cost = self.slots.borrow()[number].cost;
        let path_use = PathUse { quiet: cost > 0, cost };
        let label = interface.to_owned();
        let member = Member { bundle: self.bundle, number, label, path_use };
        engine.with(|host, now| host.connect(now, number, to, member)).map_err(|e| e.to_string())
    }

    fn on_told(&mut self, told: Told, say: &mut impl FnMut(&str)) -> Result<(), BondError> {
        match told {
            Told::Host(HostEvent::Joined(bundle, number)) if bundle == self.bundle => {
                self.up(number, say);
            }
            Told::Host(HostEvent::Refused(bundle, number, why)) if bundle == self.bundle => {
                say(&format!("The server refuses {}: {why}.", self.name(number)));
                self.failed(number, &format!("the server refuses it: {why}"), say);
            }
            Told::Host(HostEvent::Lost(Some((bundle, number)), why)) if bundle == self.bundle => {
                self.failed(number, &explained(&why), say);
            }
            Told::Host(HostEvent::Broken(bundle, violation)) if bundle == self.bundle => {
                say(&format!("The server broke the rules of the bundle: {violation}."));
                self.begin_anew()?;
            }
            Told::Host(HostEvent::Ended(bundle)) if bundle == self.bundle => {
                say("The bundle is over; connections over it broke off. A new one begins.");
                self.begin_anew()?;
            }
            Told::Closed(bundle, reason) if bundle == self.bundle => {
                say(&format!("The server ended the bundle: {reason}."));
                self.begin_anew()?;
            }
            Told::GoAway(bundle) if bundle == self.bundle => {
                say("The server is about to stop, and takes no new connections.");
            }
            _ => {}
        }
        Ok(())
    }

    fn name(&self, number: usize) -> String {
        self.slots.borrow().get(number).map(|slot| slot.interface.clone()).unwrap_or_default()
    }

    fn up(&self, number: usize, say: &mut impl FnMut(&str)) {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.get_mut(number) else { return };
        if let SlotState::Connecting(_, addresses) = &mut slot.state {
            slot.state = SlotState::Up(std::mem::take(addresses));
            slot.failures = 0;
            say(&format!("{} is up.", slot.interface));
        }
        self.way.set(Some(self.bundle));
    }

    /// A connection is over by itself.
    fn failed(&self, number: usize, why: &str, say: &mut impl FnMut(&str)) {
        let is_known = matches!(
            self.slots.borrow().get(number),
            Some(Slot { state: SlotState::Down(..), .. })
        );
        if !is_known && number < self.slots.borrow().len() {
            self.give_up(number, why, say);
        }
    }

    /// A new bundle takes the place of one that is over.
    fn begin_anew(&mut self) -> Result<(), BondError> {
        self.way.set(None);
        let old = self.bundle;
        self.bundle = random().map_err(|_| BondError::Random)?;
        self.way.engine.with(|host, now| host.close(now, &old));
        for (number, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            if !matches!(slot.state, SlotState::Down(..)) {
                slot.state = SlotState::Down("a new bundle begins".to_owned(), Instant::now());
                self.way.engine.detach(number);
            }
        }
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

/// Why an interface cannot be a link; none: it can.
fn unusable(link: Option<&Link>) -> Option<&'static str> {
    match link {
        None => Some("there is no such interface: ip link lists them"),
        Some(link) if !link.is_up => Some("the interface is down, or nobody is at its other end"),
        Some(link) if link.addresses.is_empty() => Some("the interface has no address"),
        Some(_) => None,
    }
}

/// What the library says, for people.
fn explained(why: &str) -> String {
    if why.contains("certificate") || why.contains("cryptographic") || why.contains("crypto") {
        format!(
            "the keys do not match ({why}): server_key here must be the server's, and this \
             client's public key must stand in the server's configuration"
        )
    } else if why == "timed out" {
        "it was silent for too long".to_owned()
    } else {
        why.to_owned()
    }
}
