//! The machine that receives: knows its clients by their keys, counts what their flows carry, and
//! ends a measurement that exceeds its limits. All of it runs on one thread.

use crate::account::Account;
use crate::config::{LimitsConfig, ServeConfig};
use crate::frames::{Frames, GREETING, Reply, Request, SILENT, TLS_HANDSHAKE, TOKEN, VERSION};
use crate::used::{self, AllUsed};
use crate::{HostsError, PROTOCOL};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use knee_bond::config::{ClientOf, name_of, pins};
use knee_bond::key;
use knee_host::raise_open_files_limit;
use knee_quic::PublicKey;
use knee_record::Unit;
use nix::sys::socket::{MsgFlags, recv};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Time for a connection to say what it is.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of connections that have not said what they are; beyond it, the oldest one of the
/// address that has most of them is closed. TLS holds at most 64 KiB of a handshake.
const STRANGERS_MAX: usize = 128;
/// Maximum number of measurements of a client that have not quite ended, with the new one.
const SESSIONS_MAX: usize = 4;
/// Time for what flows have sent to be read when a measurement ends.
const DRAIN: Duration = Duration::from_secs(2);
/// Pause if a connection cannot be accepted, as when all descriptors are in use.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval in which what clients have used is written.
const WRITTEN: Duration = Duration::from_secs(1);
/// Maximum bytes per read.
const TAKE_BYTES: usize = 1 << 20;

/// A server, ready to run.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Rc<Shared>,
}

/// State shared by all connections.
struct Shared {
    clients: Vec<ClientOf>,
    limits: LimitsConfig,
    acceptor: TlsAcceptor,
    /// By the digest of their tokens, so that no comparison tells how much of a token is right.
    sessions: RefCell<BTreeMap<Vec<u8>, Rc<Session>>>,
    accounts: RefCell<BTreeMap<String, Account>>,
    /// Where what they have used is written, and what was written last.
    used: (PathBuf, RefCell<AllUsed>),
    /// Connections that have not said what they are, oldest first.
    strangers: RefCell<BTreeMap<u64, Stranger>>,
    buffer: RefCell<Vec<u8>>,
    say: RefCell<Say>,
}

/// A connection that has not said what it is.
struct Stranger {
    /// The other end: an IPv4 address, or 64 bits of an IPv6 address.
    from: IpAddr,
    task: AbortHandle,
}

/// Takes a line of text.
type Say = Box<dyn FnMut(&str)>;

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// A measurement of a client.
struct Session {
    client: String,
    state: watch::Sender<State>,
    open: Cell<u32>,
    connections: Cell<u64>,
    bytes: Cell<u64>,
    /// Notified when the last connection has ended.
    drained: Notify,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Nothing is read any more; connections stay open until the client knows why.
    Over(String),
    Closed,
}

/// What a connection is for.
enum Purpose {
    /// A measurement of a client, which has this version of the messages.
    Control(Box<Frames<TlsStream<TcpStream>>>, String, u32),
    Flow(TcpStream, Rc<Session>),
}

impl Server {
    /// Binds the port, reads the key and what clients have used of their bytes, which is kept in the
    /// folder of the service or of the user.
    ///
    /// # Errors
    /// The port is in use, or the key or what was used cannot be read.
    pub async fn new(config: ServeConfig) -> Result<Server, HostsError> {
        let used = used::path(&key::read(&config.key)?.public());
        Server::keeping(config, used).await
    }

    /// Does the same, with what clients have used in this file.
    ///
    /// # Errors
    /// Those of [`Server::new`].
    pub async fn keeping(config: ServeConfig, used: PathBuf) -> Result<Server, HostsError> {
        let keys = key::read(&config.key)?;
        // Nobody needs the file without a limit.
        let is_limited = config.limits.bytes_per_day.is_some();
        let known = if is_limited { used::read(&used)? } else { AllUsed::new() };
        let mut tls = keys.server(&pins(&config.client))?;
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let at = config.listen;
        let taken = |source| HostsError::Listen { at: at.to_string(), source };
        let listener = TcpListener::bind(at).await.map_err(taken)?;
        let shared = Rc::new(Shared {
            clients: config.client,
            limits: config.limits,
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            sessions: RefCell::default(),
            accounts: RefCell::default(),
            used: (used, RefCell::new(known)),
            strangers: RefCell::default(),
            buffer: RefCell::new(vec![0; TAKE_BYTES]),
            say: RefCell::new(Box::new(|_| {})),
        });
        Ok(Server { listener, shared })
    }

    /// Returns the address at which it accepts connections.
    ///
    /// # Errors
    /// The system does not say.
    pub fn listen(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Runs within a `LocalSet` until `stop` completes; measurements are then ended. `say` gets
    /// each event as a line of text.
    pub async fn run(self, stop: impl Future<Output = ()>, say: impl FnMut(&str) + 'static) {
        let Server { listener, shared } = self;
        *shared.say.borrow_mut() = Box::new(say);
        // Each connection takes a descriptor.
        let _ = raise_open_files_limit();
        tokio::pin!(stop);
        let mut number = 0;
        let mut write = tokio::time::interval(WRITTEN);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                _ = write.tick() => {
                    shared.keep_used();
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => shared.admit(stream, peer.ip(), number),
                Err(_) => sleep(PAUSE).await,
            }
            number += 1;
        }
        let strangers = std::mem::take(&mut *shared.strangers.borrow_mut());
        strangers.values().for_each(|stranger| stranger.task.abort());
        let sessions: Vec<Rc<Session>> = shared.sessions.borrow().values().cloned().collect();
        sessions.iter().for_each(|session| session.end("knee serve was stopped there"));
        let closed = async {
            while !shared.sessions.borrow().is_empty() {
                sleep(PAUSE).await;
            }
        };
        // A client that does not answer is not waited for.
        let _ = timeout(DRAIN, closed).await;
        shared.keep_used();
    }
}

impl Shared {
    fn say(&self, said: &str) {
        (self.say.borrow_mut())(said);
    }

    /// Serves a connection; closes another stranger if there are too many, so that somebody who opens
    /// many keeps out nobody at another address.
    fn admit(self: &Rc<Shared>, stream: TcpStream, peer: IpAddr, number: u64) {
        let shared = self.clone();
        let task = spawn_local(async move {
            let purpose = timeout(TIMEOUT, shared.identify(stream)).await;
            shared.strangers.borrow_mut().remove(&number);
            match purpose {
                Ok(Some(Purpose::Control(frames, client, version))) => {
                    shared.measure(*frames, client, version).await;
                }
                Ok(Some(Purpose::Flow(stream, session))) => shared.receive(stream, &session).await,
                // Refused without a word, and not worth a line.
                Ok(None) | Err(_) => {}
            }
        });
        let mut strangers = self.strangers.borrow_mut();
        strangers.insert(number, Stranger { from: source(peer), task: task.abort_handle() });
        if strangers.len() > STRANGERS_MAX
            && let Some(number) = superfluous(&strangers)
            && let Some(one) = strangers.remove(&number)
        {
            one.task.abort();
        }
    }

    /// Returns what a connection is for; `None` if it may not be here.
    async fn identify(&self, mut stream: TcpStream) -> Option<Purpose> {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 0 {
            return None;
        }
        if first == [TLS_HANDSHAKE] {
            let _ = stream.set_nodelay(true);
            let stream = self.acceptor.accept(stream).await.ok()?;
            let key = PublicKey::of(stream.get_ref().1.peer_certificates()?.first()?)?;
            let client = name_of(&self.clients, &key)?.to_owned();
            let mut frames = Frames::new(stream);
            let Ok(Request::Begin { version }) = frames.read().await else { return None };
            return Some(Purpose::Control(Box::new(frames), client, version));
        }
        let mut greeting = [0; GREETING.len() + TOKEN];
        stream.read_exact(&mut greeting).await.ok()?;
        let token = greeting.strip_prefix(GREETING)?;
        let session = self.sessions.borrow().get(digest(&SHA256, token).as_ref()).cloned()?;
        let is_running = *session.state.borrow() == State::Running;
        is_running.then_some(Purpose::Flow(stream, session))
    }

    /// Returns why a client may not begin a measurement now, if so.
    fn refusal(&self, client: &str, version: u32) -> Option<String> {
        if version != VERSION {
            return Some("it has another version of Knee: install the same on both".to_owned());
        }
        let its = self.sessions.borrow().values().filter(|one| one.client == client).count();
        if its >= SESSIONS_MAX {
            return Some("its former measurements have not ended: wait ten seconds".to_owned());
        }
        self.closed(client)
    }

    /// Returns why a client may not send now, if so.
    fn closed(&self, client: &str) -> Option<String> {
        self.with_account(client, |account| account.closed())
    }

    fn with_account<T>(&self, client: &str, work: impl FnOnce(&mut Account) -> T) -> T {
        let mut accounts = self.accounts.borrow_mut();
        let new = || Account::new(self.limits, self.used.1.borrow().get(client).copied());
        work(accounts.entry(client.to_owned()).or_insert_with(new))
    }

    /// Writes what clients have used of their bytes, if it has changed.
    fn keep_used(&self) {
        let accounts = self.accounts.borrow();
        let (path, written) = &self.used;
        let mut now = written.borrow().clone();
        for (client, account) in accounts.iter() {
            match (account.used(), now.get(client)) {
                // The beginning is rounded to seconds.
                (Some(used), Some(known)) if used.bytes == known.bytes => {}
                (Some(used), _) => _ = now.insert(client.clone(), used),
                (None, _) => _ = now.remove(client),
            }
        }
        if now == *written.borrow() {
            return;
        }
        if let Err(error) = used::write(path, now.clone()) {
            self.say(&format!("{error}. After a restart it is not known."));
        }
        written.replace(now);
    }

    /// Serves a control channel.
    async fn measure(
        &self,
        mut frames: Frames<TlsStream<TcpStream>>,
        client: String,
        version: u32,
    ) {
        let refused = self.refusal(&client, version);
        let mut token = [0; TOKEN];
        let random = SystemRandom::new().fill(&mut token);
        let refused = refused.or(random.err().map(|_| "it has no randomness".to_owned()));
        if let Some(reason) = refused {
            self.say(&format!("{client} was refused: {reason}."));
            let _ = frames.write(&Reply::Refused { reason }).await;
            return frames.close().await;
        }
        let session = self.begin(digest(&SHA256, &token).as_ref().to_vec(), client);
        self.say(&format!("{} began to send.", session.client));
        let token = BASE64_STANDARD.encode(token);
        if frames.write(&Reply::Begun { token }).await.is_ok() {
            self.serve_session(&mut frames, &session).await;
        }
        self.sessions.borrow_mut().retain(|_, other| !Rc::ptr_eq(other, &session));
        session.state.send_replace(State::Closed);
        frames.close().await;
        let Session { client, connections, bytes, .. } = &*session;
        let (connections, bytes) = (connections.get(), Unit::Bytes.show(bytes.get() as f64));
        self.say(&format!("{client} has ended: {connections} connections, {bytes}."));
    }

    /// Begins a measurement, and ends a former one of the client.
    fn begin(&self, token: Vec<u8>, client: String) -> Rc<Session> {
        let mut sessions = self.sessions.borrow_mut();
        for former in sessions.values().filter(|session| session.client == client) {
            former.end("another measurement with the same key has begun");
        }
        let session = Rc::new(Session {
            client,
            state: watch::Sender::new(State::Running),
            open: Cell::new(0),
            connections: Cell::new(0),
            bytes: Cell::new(0),
            drained: Notify::new(),
        });
        sessions.insert(token, session.clone());
        session
    }

    /// Answers a client until its measurement ends.
    async fn serve_session(&self, frames: &mut Frames<TlsStream<TcpStream>>, session: &Session) {
        let mut state = session.state.subscribe();
        loop {
            let request = tokio::select! {
                over = over(&mut state) => return session.tell(frames, over).await,
                request = timeout(SILENT, frames.read()) => request,
            };
            let replied = match request {
                Ok(Ok(Request::Alive)) => {
                    if let Some(reason) = self.closed(&session.client) {
                        session.end(&reason);
                    }
                    frames.write(&Reply::Alive).await
                }
                Ok(Ok(Request::Finish)) => return session.finish(frames).await,
                // A second beginning, garbage, silence, the end.
                Ok(Ok(Request::Begin { .. }) | Err(_)) | Err(_) => return,
            };
            if replied.is_err() {
                return;
            }
        }
    }

    /// Counts what a flow's connection carries.
    async fn receive(&self, stream: TcpStream, session: &Session) {
        session.connections.set(session.connections.get() + 1);
        if session.open.get() >= self.limits.connections {
            session.end(&format!("more than {} connections at a time", self.limits.connections));
        }
        session.open.set(session.open.get() + 1);
        let mut state = session.state.subscribe();
        loop {
            tokio::select! {
                biased;
                _ = over(&mut state) => break,
                ready = stream.readable() => if ready.is_err() { break },
            }
            match self.take(&stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => break,
                Ok(bytes) => {
                    session.bytes.set(session.bytes.get() + bytes as u64);
                    let over = self.with_account(&session.client, |account| account.take(bytes));
                    if let Some(reason) = over {
                        session.end(&reason);
                    }
                }
            }
        }
        session.open.set(session.open.get() - 1);
        if session.open.get() == 0 {
            session.drained.notify_waiters();
        }
        if matches!(&*session.state.borrow(), State::Over(_)) {
            // A reset now would reach the client before the reason.
            let _ = state.wait_for(|state| *state == State::Closed).await;
        }
    }

    /// Discards what has arrived, and returns the number of bytes.
    fn take(&self, stream: &TcpStream) -> io::Result<usize> {
        let mut buffer = self.buffer.borrow_mut();
        // The kernel discards the data without copying it.
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        stream.try_io(Interest::READABLE, || Ok(recv(stream.as_raw_fd(), &mut buffer, flags)?))
    }
}

/// What an address is taken for: a host has 64 bits of IPv6 addresses.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::from(Ipv6Addr::from_bits(six.to_bits() >> 64 << 64)),
        four => four,
    }
}

/// The oldest stranger of the address that has most.
fn superfluous(strangers: &BTreeMap<u64, Stranger>) -> Option<u64> {
    let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for stranger in strangers.values() {
        *counts.entry(stranger.from).or_default() += 1;
    }
    let most = counts.values().max().copied();
    let has_most = |from: &IpAddr| counts.get(from).copied() == most;
    strangers.iter().find(|(_, one)| has_most(&one.from)).map(|(number, _)| *number)
}

/// Completes when a measurement is ended from this side, with the reason; never if it just closes.
async fn over(state: &mut watch::Receiver<State>) -> String {
    let ended = state.wait_for(|state| *state != State::Running).await;
    match ended.map(|state| state.clone()) {
        Ok(State::Over(reason)) => reason,
        _ => String::new(),
    }
}

impl Session {
    /// Ends it, unless it has ended.
    fn end(&self, reason: &str) {
        self.state.send_if_modified(|state| {
            let is_running = *state == State::Running;
            if is_running {
                *state = State::Over(reason.to_owned());
            }
            is_running
        });
    }

    /// Tells the client why its measurement has ended, and waits for its last message.
    async fn tell(&self, frames: &mut Frames<TlsStream<TcpStream>>, reason: String) {
        if frames.write(&Reply::Over { reason }).await.is_err() {
            return;
        }
        let finished =
            async { while !matches!(frames.read().await, Ok(Request::Finish) | Err(_)) {} };
        if timeout(DRAIN, finished).await.is_ok() {
            let _ = frames.write(&self.ended()).await;
        }
    }

    /// Answers with what has arrived, once connections have ended.
    async fn finish(&self, frames: &mut Frames<TlsStream<TcpStream>>) {
        let drained = self.drained.notified();
        if self.open.get() > 0 {
            let _ = timeout(DRAIN, drained).await;
        }
        let _ = frames.write(&self.ended()).await;
    }

    fn ended(&self) -> Reply {
        Reply::Ended { connections: self.connections.get(), bytes: self.bytes.get() }
    }
}
