//! The links of a client: finds, opens, closes and retries them.

use crate::BondError;
use crate::client::ClientHandle;
use crate::config::ClientConfig;
use crate::config::LINKS_MAX;
use crate::engine::EngineEvent;
use crate::quota::{self, QuotaError, Quotas, state_path};
use crate::request::Target;
use crate::settings::random;
use crate::status::unread;
use knee_bundle::PathUse;
use knee_host::{Link, LinkChanges, Routing};
use knee_quic::{BundleId, HostEvent, Member};
use nix::sys::socket::{setsockopt, sockopt};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;

/// Changes of links come in bursts; wait this long for the last of a burst.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Time for the close of a bundle to leave.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// Interval between looks at the links when no change is reported.
const STEP: Duration = Duration::from_secs(5);
/// Delay before a failed link is retried, initially and at most; it doubles each time.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Time without an answer after which a link is reopened.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A link that exists or is configured.
#[derive(Debug)]
pub struct Slot {
    pub interface: String,
    pub path_use: PathUse,
    pub state: SlotState,
    /// Failed attempts since it was last up.
    failures: u32,
    /// Attempts that failed although the interface could be used: the next one is at the server's
    /// next address.
    attempts: u32,
}

/// State of a link.
#[derive(Debug)]
pub enum SlotState {
    /// Not used: the reason, and when it is retried; `None` for as soon as it can be used.
    Down(String, Option<Instant>),
    /// Waiting for the server's address since then, with these addresses.
    Resolving(Instant, BTreeSet<IpAddr>),
    /// Connecting since then, from these addresses.
    Connecting(Instant, BTreeSet<IpAddr>),
    /// A path of the bundle, from these addresses.
    Up(BTreeSet<IpAddr>),
}

impl Slot {
    fn new(interface: String, path_use: PathUse) -> Slot {
        let state = SlotState::Down("it has not been tried yet".to_owned(), None);
        Slot { interface, path_use, state, failures: 0, attempts: 0 }
    }

    /// Returns whether the link is up, or the reason why not is known.
    pub fn is_decided(&self) -> bool {
        match &self.state {
            SlotState::Down(..) => self.failures > 0,
            SlotState::Resolving(..) | SlotState::Connecting(..) => false,
            SlotState::Up(_) => true,
        }
    }

    fn fail(&mut self, why: String) {
        let wait = RETRY.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
        self.failures += 1;
        self.state = SlotState::Down(why, Some(Instant::now() + wait));
    }

    /// Returns when to look at it again. Interfaces that change are reported sooner, and one that
    /// cannot be used has no other time: a look takes thousands of routes from the kernel.
    fn due(&self, now: Instant) -> Instant {
        match &self.state {
            SlotState::Down(_, Some(retry)) => *retry,
            SlotState::Connecting(since, _) => *since + HANDSHAKE,
            SlotState::Down(_, None) | SlotState::Resolving(..) | SlotState::Up(_) => now + STEP,
        }
    }
}

/// What the server's name was found to mean, for a slot that waits for it.
struct Resolved {
    number: usize,
    since: Instant,
    found: Result<Vec<SocketAddr>, String>,
}

/// Opens and closes the links of a client.
pub struct Links {
    pub slots: Rc<RefCell<Vec<Slot>>>,
    pub quotas: Rc<RefCell<Quotas>>,
    handle: Rc<ClientHandle>,
    /// Every physical interface with a default route becomes a link.
    automatic: bool,
    server: Target,
    bundle: BundleId,
    routing: Routing,
    /// A write of the counts of caps that is under way.
    writing: Option<JoinHandle<Result<(), QuotaError>>>,
}

impl Links {
    /// Makes the links of a configuration; [`keep`](Self::keep) opens them.
    pub fn new(config: &ClientConfig, handle: Rc<ClientHandle>) -> Result<Links, BondError> {
        let slots = config.link.iter().map(|link| {
            let cost = link.cost;
            let path_use = PathUse { quiet: cost > 0, cost, overflows: link.overflow };
            Slot::new(link.interface.clone(), path_use)
        });
        let path = config.caps.clone().unwrap_or_else(state_path);
        Ok(Links {
            quotas: Rc::new(RefCell::new(Quotas::new(&config.link, path)?)),
            slots: Rc::new(RefCell::new(slots.collect())),
            handle,
            automatic: config.link.is_empty(),
            server: config.server.clone(),
            bundle: random().map_err(|_| BondError::Random)?,
            routing: Routing::open()?,
            writing: None,
        })
    }

    /// Opens and closes links as they come and go, until `stop` completes.
    pub async fn keep(
        &mut self,
        events: &mut mpsc::UnboundedReceiver<EngineEvent>,
        stop: impl Future<Output = ()>,
        say: &mut impl FnMut(&str),
    ) -> Result<(), BondError> {
        let (changes, mut changed) = mpsc::channel(1);
        listen_for_changes(changes)?;
        let (names, mut resolved) = mpsc::unbounded_channel();
        let mut tick = Instant::now();
        let counts = !self.quotas.borrow().is_empty();
        let mut count = tokio::time::interval(quota::STEP);
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => {
                    self.count(say);
                    self.save(true, say).await;
                    return Ok(());
                }
                _ = count.tick(), if counts => {
                    self.count(say);
                    self.save(false, say).await;
                }
                () = tokio::time::sleep_until(tick) => {
                    self.look(&names, say)?;
                    tick = self.next();
                }
                Some(resolved) = resolved.recv() => {
                    self.on_resolved(resolved);
                    tick = tick.min(self.next());
                }
                Some(()) = changed.recv() => tick = tick.min(Instant::now() + DEBOUNCE),
                event = events.recv() => match event {
                    Some(event) => {
                        self.on_event(event, say)?;
                        tick = tick.min(self.next());
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    /// Counts the traffic of links with a cap, and closes those that have reached it.
    fn count(&self, say: &mut impl FnMut(&str)) {
        let slots = self.slots.borrow().len();
        for number in 0..slots {
            let interface = self.slots.borrow()[number].interface.clone();
            let carried = self.handle.engine.carried(number);
            self.quotas.borrow_mut().count(&interface, carried);
            let spent = self.quotas.borrow().spent(&interface);
            if let Some(why) = spent {
                self.give_up(number, &why, say);
            }
        }
    }

    /// Writes the counts if it is due: on a thread of its own, because a disk may take seconds.
    async fn save(&mut self, is_last: bool, say: &mut impl FnMut(&str)) {
        if !is_last && self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return;
        }
        self.end_write(say).await;
        let unsaved = self.quotas.borrow_mut().take_unsaved(is_last);
        self.writing = unsaved.map(|unsaved| spawn_blocking(move || unsaved.write()));
        if is_last {
            self.end_write(say).await;
        }
    }

    async fn end_write(&mut self, say: &mut impl FnMut(&str)) {
        let Some(writing) = self.writing.take() else { return };
        let Ok(result) = writing.await else { return };
        if let Err(error) = self.quotas.borrow_mut().on_written(result) {
            say(&format!("{error}. The links continue; their counts are not saved."));
        }
    }

    /// Tells the server that the bundle is over.
    pub async fn close(&self) {
        self.handle.engine.with(|host, now| host.close(now, &self.bundle));
        tokio::time::sleep(CLOSE_TIMEOUT).await;
    }

    /// Returns the time of the next look.
    fn next(&self) -> Instant {
        let now = Instant::now();
        let (soon, slots) = (now + Duration::from_millis(50), self.slots.borrow());
        let first = slots.iter().map(|slot| slot.due(now)).min();
        first.unwrap_or(soon + STEP).clamp(soon, soon + STEP)
    }

    /// Opens and closes links according to the state of their interfaces.
    fn look(
        &mut self,
        names: &mpsc::UnboundedSender<Resolved>,
        say: &mut impl FnMut(&str),
    ) -> Result<(), BondError> {
        let found = self.routing.links()?;
        if self.automatic {
            add_new(&mut self.slots.borrow_mut(), &found);
        }
        let count = self.slots.borrow().len();
        for number in 0..count {
            let (interface, retry) = {
                let slots = self.slots.borrow();
                let retry = match &slots[number].state {
                    SlotState::Down(_, retry) => retry.is_none_or(|retry| retry <= Instant::now()),
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
                SlotState::Up(before) | SlotState::Resolving(_, before) if *before != addresses => {
                    Some("its addresses changed")
                }
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
                self.connect(number, &interface, addresses, names);
            }
        }
        Ok(())
    }

    /// Closes a link, and schedules a retry. If it is down already, it cannot be used: it is retried
    /// as soon as it can be.
    fn give_up(&self, number: usize, why: &str, say: &mut impl FnMut(&str)) {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[number];
        match &mut slot.state {
            SlotState::Down(known, retry) => {
                why.clone_into(known);
                *retry = None;
                slot.failures = slot.failures.max(1);
                return;
            }
            SlotState::Up(_) => {
                say(&format!("{} is down: {why}.", slot.interface));
                // It worked a moment ago, so its backoff restarts.
                slot.failures = 0;
            }
            SlotState::Connecting(..) => slot.attempts += 1,
            SlotState::Resolving(..) => {}
        }
        slot.fail(why.to_owned());
        let bundle = self.bundle;
        self.handle.engine.with(|host, now| host.disconnect(now, &bundle, number));
        // Packets that still come in count towards a cap, so a link stopped by its cap keeps its
        // socket.
        if self.quotas.borrow().spent(&slot.interface).is_none() {
            self.handle.engine.detach(number);
        }
    }

    /// Opens a connection over an interface. The server's name is resolved on a thread of its own: a
    /// nameserver that does not answer takes half a minute, and caps are counted meanwhile.
    fn connect(
        &mut self,
        number: usize,
        interface: &str,
        addresses: BTreeSet<IpAddr>,
        names: &mpsc::UnboundedSender<Resolved>,
    ) {
        let (name, port) = match &self.server {
            Target::Address(address, port) => {
                let to = SocketAddr::new(*address, *port);
                return self.connect_to(number, interface, addresses, Ok(to));
            }
            Target::Name(name, port) => (name.clone(), *port),
        };
        let (since, names) = (Instant::now(), names.clone());
        let resolve = move || {
            let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
            let found = found.map_err(|error| format!("the name {name} has no address: {error}"));
            let _ = names.send(Resolved { number, since, found });
        };
        let slot = &mut self.slots.borrow_mut()[number];
        match std::thread::Builder::new().name("names".to_owned()).spawn(resolve) {
            Ok(_) => slot.state = SlotState::Resolving(since, addresses),
            Err(error) => slot.fail(BondError::Thread(error).to_string()),
        }
    }

    /// Continues to open a connection once the server's name is resolved.
    fn on_resolved(&mut self, Resolved { number, since, found }: Resolved) {
        let (interface, addresses, attempts) = {
            let slots = self.slots.borrow();
            let Some(slot) = slots.get(number) else { return };
            match &slot.state {
                SlotState::Resolving(from, addresses) if *from == since => {
                    (slot.interface.clone(), addresses.clone(), slot.attempts)
                }
                // It went down meanwhile.
                _ => return,
            }
        };
        let none = || format!("the name {} has no address", self.server);
        let to = found.and_then(|all| choose(&all, &addresses, attempts).ok_or_else(none));
        self.connect_to(number, &interface, addresses, to);
    }

    fn connect_to(
        &mut self,
        number: usize,
        interface: &str,
        addresses: BTreeSet<IpAddr>,
        to: Result<SocketAddr, String>,
    ) {
        let result = to.and_then(|to| self.open(number, interface, to));
        let slot = &mut self.slots.borrow_mut()[number];
        match result {
            Ok(()) => slot.state = SlotState::Connecting(Instant::now(), addresses),
            Err(why) => {
                slot.attempts += 1;
                slot.fail(why);
            }
        }
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
        // Connecting a UDP socket sends nothing; it only looks up the route.
        bound()?.connect(to).map_err(|error| match error.raw_os_error() {
            Some(libc::ENETUNREACH) => {
                format!("there is no route to {to} through it: add one, such as a default route")
            }
            _ => error.to_string(),
        })?;
        let socket = bound()?;
        let engine = &self.handle.engine;
        engine.attach(number, socket).map_err(|error| error.to_string())?;
        let path_use = self.slots.borrow()[number].path_use;
        let label = interface.to_owned();
        let member = Member { bundle: self.bundle, number, label, path_use };
        engine.with(|host, now| host.connect(now, number, to, member)).map_err(|e| e.to_string())
    }

    fn on_event(
        &mut self,
        event: EngineEvent,
        say: &mut impl FnMut(&str),
    ) -> Result<(), BondError> {
        match event {
            EngineEvent::Host(HostEvent::Joined(bundle, number)) if bundle == self.bundle => {
                self.up(number, say);
            }
            EngineEvent::Host(HostEvent::Refused(bundle, number, why)) if bundle == self.bundle => {
                say(&format!("The server refuses {}: {why}.", self.name(number)));
                self.failed(number, &format!("the server refuses it: {why}"), say);
            }
            EngineEvent::Host(HostEvent::Lost(Some((bundle, number)), why))
                if bundle == self.bundle =>
            {
                self.failed(number, &explained(&why), say);
            }
            EngineEvent::Host(HostEvent::Broken(bundle, violation)) if bundle == self.bundle => {
                say(&format!("The server broke the rules of the bundle: {violation}."));
                self.begin_anew()?;
            }
            EngineEvent::Host(HostEvent::Ended(bundle)) if bundle == self.bundle => {
                say("The bundle ended; its connections were aborted. A new one begins.");
                self.begin_anew()?;
            }
            EngineEvent::Closed(bundle, reason) if bundle == self.bundle => {
                say(&format!("The server ended the bundle: {reason}."));
                self.begin_anew()?;
            }
            EngineEvent::Crowded(bundle, streams, bytes) if bundle == self.bundle => {
                let mut said = unread(streams, bytes, "no program");
                said.push('.');
                say(&said);
            }
            EngineEvent::GoAway(bundle) if bundle == self.bundle => {
                self.handle.leave(bundle);
                say("The server is stopping and accepts no new connections.");
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
        self.handle.set(Some(self.bundle));
    }

    /// Handles a connection that ended by itself.
    fn failed(&self, number: usize, why: &str, say: &mut impl FnMut(&str)) {
        let is_known = matches!(
            self.slots.borrow().get(number),
            Some(Slot { state: SlotState::Down(..), .. })
        );
        if !is_known && number < self.slots.borrow().len() {
            self.give_up(number, why, say);
        }
    }

    /// Replaces a bundle that is over.
    fn begin_anew(&mut self) -> Result<(), BondError> {
        self.handle.set(None);
        let old = self.bundle;
        self.bundle = random().map_err(|_| BondError::Random)?;
        self.handle.engine.with(|host, now| host.close(now, &old));
        for (number, slot) in self.slots.borrow_mut().iter_mut().enumerate() {
            if !matches!(slot.state, SlotState::Down(..)) {
                slot.state =
                    SlotState::Down("a new bundle begins".to_owned(), Some(Instant::now()));
                self.handle.engine.detach(number);
            }
        }
        Ok(())
    }
}

/// Watches for changes of links on a thread of its own, because waiting for them blocks.
fn listen_for_changes(changes: mpsc::Sender<()>) -> Result<(), BondError> {
    let mut listener = LinkChanges::listen()?;
    let listen = move || {
        while !changes.is_closed() {
            // One pending notification stands for all.
            if listener.wait(Duration::from_secs(1)).unwrap_or(false) {
                let _ = changes.try_send(());
            }
        }
    };
    let thread = std::thread::Builder::new().name("links".to_owned()).spawn(listen);
    thread.map(drop).map_err(BondError::Thread)
}

/// Adds physical interfaces that have a default route and are new. If there are too many, one takes
/// the place of another that is gone.
fn add_new(slots: &mut Vec<Slot>, found: &[Link]) {
    for link in found.iter().filter(|link| link.has_default_route && link.is_physical) {
        if slots.iter().any(|slot| slot.interface == link.name) {
            continue;
        }
        let slot = Slot::new(link.name.clone(), PathUse::default());
        let is_gone = |slot: &Slot| {
            let is_there = found.iter().any(|link| link.name == slot.interface);
            matches!(slot.state, SlotState::Down(..)) && !is_there
        };
        if slots.len() < LINKS_MAX {
            slots.push(slot);
        } else if let Some(place) = slots.iter().position(is_gone) {
            slots[place] = slot;
        }
    }
}

/// Chooses an address of the server, if possible of a family that the link has: after each attempt
/// that failed the next of them.
fn choose(all: &[SocketAddr], own: &BTreeSet<IpAddr>, attempts: u32) -> Option<SocketAddr> {
    let has = |to: &&SocketAddr| own.iter().any(|own| own.is_ipv4() == to.is_ipv4());
    let suitable: Vec<&SocketAddr> = all.iter().filter(has).collect();
    let among = if suitable.is_empty() { all.iter().collect() } else { suitable };
    among.get(attempts as usize % among.len().max(1)).map(|to| **to)
}

/// Returns why an interface cannot be a link, or `None` if it can.
fn unusable(link: Option<&Link>) -> Option<&'static str> {
    match link {
        None => Some("there is no such interface: ip link lists them"),
        Some(link) if !link.is_up => Some("the interface is down, or has no peer"),
        Some(link) if link.addresses.is_empty() => Some("the interface has no address"),
        Some(_) => None,
    }
}

/// Translates an error of the QUIC library for the user.
fn explained(why: &str) -> String {
    if why.contains("certificate") || why.contains("cryptographic") || why.contains("crypto") {
        format!(
            "the keys do not match ({why}): server_key here must be the server's, and this \
             client's public key must be in the server's configuration"
        )
    } else if why == "timed out" {
        "it was silent for too long".to_owned()
    } else {
        why.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot that cannot be used is not looked at all the time.
    #[tokio::test]
    async fn what_cannot_be_used_waits() {
        let mut slot = Slot::new("wwan0".to_owned(), PathUse::default());
        let now = Instant::now();
        assert_eq!(slot.due(now), now + STEP);
        slot.fail("the interface is down".to_owned());
        assert!(slot.due(now) < now + STEP);
    }

    /// Interfaces whose names change, such as those of phones, do not use up the places.
    #[test]
    fn an_interface_takes_the_place_of_one_that_is_gone() {
        let link = |number: usize| Link {
            name: format!("usb{number}"),
            is_up: true,
            is_physical: true,
            addresses: BTreeSet::new(),
            has_default_route: true,
        };
        let mut slots = Vec::new();
        let named = |slots: &[Slot]| -> Vec<String> {
            slots.iter().map(|slot| slot.interface.clone()).collect()
        };
        let first: Vec<Link> = (0..LINKS_MAX).map(link).collect();
        add_new(&mut slots, &first);
        let mut expected: Vec<String> = first.iter().map(|link| link.name.clone()).collect();
        assert_eq!(named(&slots), expected);
        // The first is gone, but its link has not been given up yet; the second is gone, and down.
        slots[0].state = SlotState::Up(BTreeSet::new());
        let now: Vec<Link> = (2..LINKS_MAX + 2).map(link).collect();
        add_new(&mut slots, &now);
        expected[1] = now[LINKS_MAX - 2].name.clone();
        assert_eq!(named(&slots), expected);
    }

    /// An address of the server that does not answer does not keep the others from being tried.
    #[test]
    fn addresses_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (six, four) = (address("[2001:db8::1]:4433"), address("192.0.2.1:4433"));
        let all = [six, four];
        let own = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let both = own(&["2001:db8::2", "192.0.2.2"]);
        assert_eq!([0, 1, 2].map(|n| choose(&all, &both, n)), [Some(six), Some(four), Some(six)]);
        let only = own(&["192.0.2.2"]);
        assert_eq!([0, 1].map(|n| choose(&all, &only, n)), [Some(four); 2]);
        assert_eq!([0, 1].map(|n| choose(&all[..1], &only, n)), [Some(six); 2]);
        assert_eq!(choose(&[], &only, 3), None);
    }
}
