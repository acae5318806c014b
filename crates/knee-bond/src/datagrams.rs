//! Carries a client's datagrams to their targets, and back.

use crate::request::{Outcome, Target};
use crate::stream::BundleStream;
use crate::streams::{Targets, send_outcome};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Idle time after which a UDP flow ends (RFC 4787, section 4.3).
const UDP_IDLE: Duration = Duration::from_secs(300);
/// Maximum number of peers of a UDP flow, and of names that it knows.
const UDP_PEERS: usize = 1024;
/// Maximum number of names that a UDP flow looks up at a time. Datagrams to further names are lost
/// meanwhile.
const UDP_LOOKUPS: usize = 4;
/// Datagrams that are kept for a name until it is known, such as a client's first flight; further
/// ones are lost.
const UDP_KEPT: usize = 4;
/// A name and a port.
type Name = (String, u16);

/// Sockets of a flow, and what is known of its peers.
struct Flow {
    targets: Targets,
    v4: UdpSocket,
    v6: Option<UdpSocket>,
    /// Only peers that were sent something may answer (RFC 4787, section 5: address-dependent
    /// filtering).
    peers: BTreeSet<IpAddr>,
    names: BTreeMap<Name, SocketAddr>,
    /// Datagrams kept for each name that is being looked up.
    waiting: BTreeMap<Name, Vec<Bytes>>,
    lookups: JoinSet<(Name, Option<SocketAddr>)>,
    /// The client may carry no more.
    is_over: bool,
}

impl Flow {
    async fn open(targets: Targets) -> io::Result<Flow> {
        Ok(Flow {
            targets,
            v4: UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?,
            // A host may lack IPv6.
            v6: UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await.ok(),
            peers: BTreeSet::new(),
            names: BTreeMap::new(),
            waiting: BTreeMap::new(),
            lookups: JoinSet::new(),
            is_over: false,
        })
    }

    /// Sends a client's message on, or keeps it until its name is known.
    async fn on_message(&mut self, message: &Bytes) {
        let Ok(Some((target, taken))) = Target::read(message) else { return };
        let bytes = message.slice(taken..);
        let name = match target {
            Target::Address(address, port) => {
                let to = SocketAddr::new(address, port);
                if self.targets.egress.refusal(address, port).is_none() {
                    self.send(to, &bytes).await;
                }
                return;
            }
            Target::Name(name, port) => (name, port),
        };
        if let Some(to) = self.names.get(&name) {
            return self.send(*to, &bytes).await;
        }
        if let Some(kept) = self.waiting.get_mut(&name) {
            if kept.len() < UDP_KEPT {
                kept.push(bytes);
            }
        } else if self.waiting.len() < UDP_LOOKUPS {
            self.waiting.insert(name.clone(), vec![bytes]);
            self.look_up(name);
        }
    }

    fn look_up(&mut self, name: Name) {
        let (targets, has_v6) = (self.targets.clone(), self.v6.is_some());
        self.lookups.spawn_local(async move {
            let target = Target::Name(name.0.clone(), name.1);
            let all = match targets.turn(&target).await {
                Ok(turn) => targets.resolve(&target, turn).await.unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            (name, all.into_iter().find(|to| to.is_ipv4() || has_v6))
        });
    }

    /// Sends what was kept for a name, or forgets it if the name has no address.
    async fn on_looked_up(&mut self, name: Name, to: Option<SocketAddr>) {
        let kept = self.waiting.remove(&name).unwrap_or_default();
        let Some(to) = to else { return };
        if self.names.len() >= UDP_PEERS {
            self.names.clear();
        }
        self.names.insert(name, to);
        for bytes in kept {
            self.send(to, &bytes).await;
        }
    }

    /// Counts a datagram's content; the flow is over if the client may not carry it.
    fn may_pass(&mut self, bytes: &[u8]) -> bool {
        self.is_over |= !self.targets.meter.may_pass(bytes.len());
        !self.is_over
    }

    async fn send(&mut self, to: SocketAddr, bytes: &[u8]) {
        if !self.may_pass(bytes) {
            return;
        }
        if self.peers.len() >= UDP_PEERS {
            self.peers.clear();
        }
        self.peers.insert(to.ip());
        let socket = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        if let Some(socket) = socket {
            // Datagrams that the network does not accept are lost, as on any network.
            let _ = socket.send_to(bytes, to).await;
        }
    }

    /// Sends what a peer said to the client.
    fn answer(&mut self, stream: &BundleStream, duplicate: bool, from: SocketAddr, bytes: &[u8]) {
        if !self.peers.contains(&from.ip()) {
            return;
        }
        if !self.may_pass(bytes) {
            return;
        }
        let mut message = Vec::with_capacity(19 + bytes.len());
        Target::Address(from.ip(), from.port()).write(&mut message);
        message.extend_from_slice(bytes);
        stream.send(message.into(), duplicate);
    }
}

/// Carries the datagrams of a flow until its stream ends, it has been idle for too long or its client
/// may carry no more.
///
/// # Errors
/// A socket cannot be opened.
pub async fn carry(
    targets: Targets,
    stream: &BundleStream,
    duplicate: bool,
    mut messages: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    let mut flow = Flow::open(targets).await?;
    if !send_outcome(stream, Outcome::Done, "").await {
        return Ok(());
    }
    let mut buffers = [vec![0; 1 << 16], vec![0; 1 << 16]];
    let [first, second] = &mut buffers;
    while !flow.is_over {
        tokio::select! {
            message = messages.recv() => {
                let Some(message) = message else { break };
                flow.on_message(&message).await;
            }
            Some(Ok((name, to))) = flow.lookups.join_next() => flow.on_looked_up(name, to).await,
            Ok((count, from)) = flow.v4.recv_from(first) => {
                flow.answer(stream, duplicate, from, &first[..count]);
            }
            Ok((count, from)) = received(flow.v6.as_ref(), second) => {
                flow.answer(stream, duplicate, from, &second[..count]);
            }
            ended = stream.read(1) => {
                if !matches!(ended, Ok(Some(_))) {
                    break;
                }
            }
            () = sleep(UDP_IDLE) => break,
        }
    }
    Ok(())
}

async fn received(socket: Option<&UdpSocket>, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    match socket {
        Some(socket) => socket.recv_from(into).await,
        None => std::future::pending().await,
    }
}
