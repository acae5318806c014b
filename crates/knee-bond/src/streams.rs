//! Serves a client's stream: the server connects to the requested target, or carries its datagrams,
//! within the client's limits.

use crate::config::LimitsConfig;
use crate::datagrams::carry;
use crate::dns;
use crate::egress::Egress;
use crate::engine::Engine;
use crate::flows;
use crate::meter::{Meter, hours};
use crate::request::{Answer, Outcome, REQUEST_MAX, Request, Target};
use crate::resolver;
use crate::status::CarriedStatus;
use crate::stream::{BundleStream, relay};
use knee_quic::BundleId;
use knee_units::Bytes;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

/// Time limit to connect to a client's target.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for which a name waits until fewer of the client's names are being looked up.
const QUEUE: Duration = Duration::from_secs(5);
/// Pause before the next address of a target is tried while one does not answer (RFC 8305, section
/// 5).
const STAGGER: Duration = Duration::from_millis(250);
/// Maximum number of addresses of a target that are tried.
const ADDRESSES: usize = 8;
/// Time limit for a client to send its request on a new stream, and to take the answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Burst of new streams, as seconds of the allowed rate.
const BURST_S: f64 = 10.0;
/// Maximum number of names that are looked up for a client at a time. Each holds one of the runtime's
/// 512 threads for up to half a minute, even if nobody waits for it any more.
const LOOKUPS: usize = 64;
/// Time after which the log repeats that a client leaves connections without a bundle.
const REPEATED: Duration = Duration::from_secs(60);

/// What a client uses of its limits.
#[derive(Debug)]
pub struct Account {
    pub streams: u32,
    udp_flows: u32,
    /// New streams that it may open now.
    tokens: f64,
    filled: Instant,
    lookups: Arc<Semaphore>,
    meter: Rc<Meter>,
}

impl Account {
    fn new(limits: &LimitsConfig) -> Account {
        let tokens = f64::from(limits.new_streams_per_second) * BURST_S;
        let lookups = Arc::new(Semaphore::new(LOOKUPS));
        let meter = Rc::new(Meter::new(limits.bytes_per_day.map(Bytes::get)));
        Account { streams: 0, udp_flows: 0, tokens, filled: Instant::now(), lookups, meter }
    }

    /// Counts one more stream, or returns false if the limits do not allow it.
    fn take(&mut self, limits: &LimitsConfig) -> bool {
        let rate = f64::from(limits.new_streams_per_second);
        let now = Instant::now();
        let earned = now.duration_since(self.filled).as_secs_f64() * rate;
        self.filled = now;
        self.tokens = (self.tokens + earned).min(rate * BURST_S);
        let may = self.streams < limits.streams && self.tokens >= 1.0;
        if may {
            self.tokens -= 1.0;
            self.streams += 1;
        }
        may
    }
}

/// State shared by the streams of a server.
#[derive(Debug)]
pub struct Shared {
    pub egress: Rc<Egress>,
    pub limits: LimitsConfig,
    /// Nameserver for clients; if absent, the host's own.
    pub nameserver: Option<SocketAddr>,
    /// By the client's name: a client has one account, also while its key is being changed.
    pub accounts: RefCell<BTreeMap<String, Account>>,
    /// Tells the server's log of clients that have used up their limit of bytes.
    pub spent: UnboundedSender<String>,
    /// Owner of each bundle.
    pub owners: RefCell<BTreeMap<BundleId, Owner>>,
    /// When the log last said that a client leaves connections without a bundle.
    pub hoarders: RefCell<BTreeMap<String, Instant>>,
}

/// Owner of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Name of the client.
    pub name: String,
    /// Tells apart the bundles of one client: the least number that none of the others has.
    pub number: u32,
}

impl Shared {
    /// Returns what each client with a limit of bytes has carried in its current 24 hours.
    pub fn carried(&self) -> Vec<CarriedStatus> {
        let now = Instant::now();
        let of = |(client, account): (&String, &Account)| {
            let (used_bytes, limit_bytes) = account.meter.used(now)?;
            Some(CarriedStatus { client: client.clone(), used_bytes, limit_bytes })
        };
        self.accounts.borrow().iter().filter_map(of).collect()
    }

    /// Returns whether the log is to say that a client leaves connections without a bundle: once in a
    /// minute.
    pub fn says_hoarder(&self, name: &str) -> bool {
        let now = Instant::now();
        let mut hoarders = self.hoarders.borrow_mut();
        let is_due = hoarders.get(name).is_none_or(|said| now - *said >= REPEATED);
        if is_due {
            hoarders.insert(name.to_owned(), now);
        }
        is_due
    }

    /// Counts one more UDP flow of a client, or returns false if the limits do not allow it.
    pub fn begin_udp_flow(&self, owner: &str) -> bool {
        let mut accounts = self.accounts.borrow_mut();
        let account = accounts.get_mut(owner);
        account.is_some_and(|account| {
            let may = account.udp_flows < self.limits.udp_flows;
            account.udp_flows += u32::from(may);
            may
        })
    }

    /// Counts UDP flows of a client that ended.
    pub fn end_udp_flows(&self, owner: &str, count: u32) {
        if let Some(account) = self.accounts.borrow_mut().get_mut(owner) {
            account.udp_flows -= count;
        }
    }

    /// Notes the owner of a new bundle, and returns the client's other bundles.
    pub fn own(&self, id: BundleId, name: &str) -> Vec<BundleId> {
        let mut owners = self.owners.borrow_mut();
        let others = owners.iter().filter(|(_, owner)| owner.name == name);
        let (ids, taken): (Vec<_>, BTreeSet<_>) =
            others.map(|(id, owner)| (*id, owner.number)).unzip();
        let number = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
        owners.insert(id, Owner { name: name.to_owned(), number });
        ids
    }
}

/// Serves a stream, then releases what it took of the client's limits.
pub async fn serve_stream(
    engine: &Rc<Engine>,
    shared: &Rc<Shared>,
    owner: String,
    stream: BundleStream,
) {
    let (may, lookups, meter) = {
        let mut accounts = shared.accounts.borrow_mut();
        let account = accounts.entry(owner.clone()).or_insert_with(|| Account::new(&shared.limits));
        (account.take(&shared.limits), account.lookups.clone(), account.meter.clone())
    };
    if !may {
        let reason = "this client has reached its limit of connections, or opens them too fast";
        return refuse(stream, Outcome::TooMany, reason).await;
    }
    if let Some(left) = meter.wait(Instant::now()) {
        let hours = hours(left);
        let reason = format!("this client has carried all that it may in a day: wait {hours} h");
        refuse(stream, Outcome::TooMany, &reason).await;
    } else if let Ok(Ok((request, rest))) = timeout(TIMEOUT, hear(&stream)).await {
        let targets = Targets { egress: shared.egress.clone(), lookups, meter: meter.clone() };
        match request {
            Request::Tcp(target) => connect(&targets, target, stream, &rest).await,
            Request::Udp { duplicate } => {
                udp(engine, shared, &owner, targets, stream, duplicate).await;
            }
            Request::Dns => answer_question(shared, &meter, stream, rest).await,
            Request::Flows { duplicate } => {
                if send_outcome(&stream, Outcome::Done, "").await {
                    flows::serve(engine, shared, &owner, targets, &stream, duplicate).await;
                }
                stream.finish();
            }
        }
    }
    if let Some(hours) = meter.wait_to_say(Instant::now()) {
        let said = format!("{owner} has carried all that it may in a day, and waits {hours} h.");
        let _ = shared.spent.send(said);
    }
    if let Some(account) = shared.accounts.borrow_mut().get_mut(&owner) {
        account.streams -= 1;
    }
}

/// Reads the request of a stream, and returns it with the bytes that followed.
async fn hear(stream: &BundleStream) -> Result<(Request, Vec<u8>), ()> {
    let mut said = Vec::new();
    loop {
        if let Some((request, taken)) = Request::read(&said).map_err(drop)? {
            said.drain(..taken);
            return Ok((request, said));
        }
        if said.len() > REQUEST_MAX {
            return Err(());
        }
        let bytes = stream.read(REQUEST_MAX).await.map_err(drop)?;
        said.extend_from_slice(&bytes.ok_or(())?);
    }
}

pub async fn send_outcome(stream: &BundleStream, outcome: Outcome, reason: &str) -> bool {
    let mut bytes = Vec::new();
    Answer { outcome, reason: reason.to_owned() }.write(&mut bytes);
    matches!(timeout(TIMEOUT, stream.write(&bytes)).await, Ok(Ok(())))
}

async fn refuse(stream: BundleStream, outcome: Outcome, reason: &str) {
    send_outcome(&stream, outcome, reason).await;
    stream.finish();
}

async fn connect(targets: &Targets, target: Target, stream: BundleStream, first: &[u8]) {
    let turn = match targets.turn(&target).await {
        Ok(turn) => turn,
        Err((outcome, reason)) => return refuse(stream, outcome, &reason).await,
    };
    match timeout(CONNECT, reach(targets, &target, turn)).await {
        Ok(Ok(mut connection)) => {
            // What came with the request is for the target.
            if send_outcome(&stream, Outcome::Done, "").await
                && targets.meter.may_pass(first.len())
                && connection.write_all(first).await.is_ok()
            {
                relay(connection, stream, &[], |count| targets.meter.may_pass(count)).await;
            }
        }
        Ok(Err((outcome, reason))) => refuse(stream, outcome, &reason).await,
        Err(_) => {
            let reason = format!("{target} did not answer within {} s", CONNECT.as_secs());
            refuse(stream, Outcome::TimedOut, &reason).await;
        }
    }
}

/// Forwards a client's question to the server's nameserver.
async fn answer_question(shared: &Shared, meter: &Meter, stream: BundleStream, mut said: Vec<u8>) {
    let whole = async {
        while dns::message(&said).is_none() {
            let bytes = stream.read(dns::MESSAGE_MAX).await.ok().flatten()?;
            said.extend_from_slice(&bytes);
        }
        dns::message(&said)
    };
    let Ok(Some(question)) = timeout(TIMEOUT, whole).await else {
        return refuse(stream, Outcome::Failed, "the DNS query is invalid").await;
    };
    let nameserver = shared.nameserver.unwrap_or_else(resolver::own);
    const SPENT: &str = "this client has reached its limit of bytes";
    let asked = resolver::resolve(nameserver, question, |bytes| meter.may_pass(bytes)).await;
    let answer = match asked {
        Ok(answer) => answer,
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
            return refuse(stream, Outcome::TooMany, SPENT).await;
        }
        Err(_) => {
            let reason = "the server's nameserver does not answer";
            return refuse(stream, Outcome::TimedOut, reason).await;
        }
    };
    if !meter.may_pass(answer.len()) {
        return refuse(stream, Outcome::TooMany, SPENT).await;
    }
    if send_outcome(&stream, Outcome::Done, "").await
        && stream.write(&dns::framed(&answer)).await.is_ok()
    {
        stream.finish();
    }
}

/// Permission to look up a target's name; an address needs none.
pub type Turn = Option<OwnedSemaphorePermit>;

/// Targets that a client may reach.
#[derive(Clone, Debug)]
pub struct Targets {
    pub egress: Rc<Egress>,
    lookups: Arc<Semaphore>,
    /// Counts what the client carries to them and back.
    pub meter: Rc<Meter>,
}

impl Targets {
    /// Waits until one more of the client's names may be looked up.
    pub async fn turn(&self, target: &Target) -> Result<Turn, (Outcome, String)> {
        let Target::Name(..) = target else { return Ok(None) };
        let permit = timeout(QUEUE, self.lookups.clone().acquire_owned()).await;
        permit.ok().and_then(Result::ok).map(Some).ok_or_else(|| {
            let reason = "too many names of this client are being looked up";
            (Outcome::TooMany, reason.to_owned())
        })
    }

    /// Resolves a target whose turn it is, and returns those of its addresses that are allowed.
    pub async fn resolve(
        &self,
        target: &Target,
        turn: Turn,
    ) -> Result<Vec<SocketAddr>, (Outcome, String)> {
        let all = match target {
            Target::Address(address, port) => vec![SocketAddr::new(*address, *port)],
            Target::Name(name, port) => look_up(name, *port, turn).await.unwrap_or_default(),
        };
        let mut refusal = None;
        let mut allowed = all.clone();
        allowed.retain(|to| {
            let why = self.egress.refusal(to.ip(), to.port());
            refusal = refusal.or(why);
            why.is_none()
        });
        match (allowed.is_empty(), refusal) {
            (false, _) => Ok(allowed),
            // The reason does not name the address, which is the server's own business.
            (true, Some(why)) => {
                Err((Outcome::Denied, format!("the server does not connect to {target}: {why}")))
            }
            (true, None) => Err((Outcome::NoName, format!("{target} has no address"))),
        }
    }
}

/// Returns the addresses of a name as the host's programs see them.
async fn look_up(name: &str, port: u16, turn: Turn) -> Option<Vec<SocketAddr>> {
    let name = name.to_owned();
    let look_up = move || {
        let _turn = turn;
        (name.as_str(), port).to_socket_addrs().map(Iterator::collect)
    };
    spawn_blocking(look_up).await.ok()?.ok()
}

/// Alternates between the families of addresses, beginning with that of the first (RFC 8305, section
/// 4): a host whose IPv6 is broken may have many such addresses.
fn alternating(all: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_first = |to: &&SocketAddr| to.is_ipv4() == all[0].is_ipv4();
    let (first, other): (Vec<_>, Vec<_>) = all.iter().partition(is_first);
    let mut other = other.into_iter();
    let mut order: Vec<_> = first.into_iter().flat_map(|to| [Some(to), other.next()]).collect();
    order.extend(other.map(Some));
    order.into_iter().flatten().copied().take(ADDRESSES).collect()
}

/// Connects to the address of a target that answers first; they are tried one after another, each
/// without waiting long for those before.
async fn reach(
    targets: &Targets,
    target: &Target,
    turn: Turn,
) -> Result<TcpStream, (Outcome, String)> {
    let mut last = (Outcome::Failed, String::new());
    let mut addresses = alternating(&targets.resolve(target, turn).await?).into_iter();
    // Dropping the set ends the attempts that remain.
    let mut attempts = JoinSet::new();
    loop {
        if let Some(to) = addresses.next() {
            attempts.spawn_local(TcpStream::connect(to));
        }
        let ended = tokio::select! {
            ended = attempts.join_next() => ended,
            () = sleep(STAGGER), if addresses.len() > 0 => continue,
        };
        match ended {
            None => return Err(last),
            Some(Ok(Ok(connection))) => return Ok(connection),
            Some(Ok(Err(error))) => last = failed(target, &error),
            // The attempt panicked, and the next may succeed.
            Some(Err(_)) => {}
        }
    }
}

fn failed(target: &Target, error: &io::Error) -> (Outcome, String) {
    let outcome = match error.kind() {
        io::ErrorKind::ConnectionRefused => Outcome::Refused,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Outcome::Unreachable,
        io::ErrorKind::TimedOut => Outcome::TimedOut,
        _ => Outcome::Failed,
    };
    (outcome, format!("cannot connect to {target}: {error}"))
}

/// Carries the datagrams of a flow until its stream ends or it has been idle for too long.
async fn udp(
    engine: &Rc<Engine>,
    shared: &Shared,
    owner: &str,
    targets: Targets,
    stream: BundleStream,
    duplicate: bool,
) {
    if !shared.begin_udp_flow(owner) {
        let reason = "this client has reached its limit of UDP flows";
        return refuse(stream, Outcome::TooMany, reason).await;
    }
    let messages = engine.messages(stream.bundle(), stream.flow());
    let result = carry(targets, &stream, duplicate, messages).await;
    if let Err(error) = result {
        refuse(stream, Outcome::Failed, &format!("cannot open a UDP socket: {error}")).await;
    } else {
        stream.finish();
    }
    shared.end_udp_flows(owner, 1);
}
