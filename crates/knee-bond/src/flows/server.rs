//! The server's end: a socket for each flow.

use super::{Assembly, Datagram, Protocol, Use};
use crate::engine::Engine;
use crate::stream::BundleStream;
use crate::streams::{Shared, Targets};
use bytes::Bytes;
use knee_host::{
    echo_header, ping_socket, read_reply, receive_datagram, report_tos, send_datagram,
};
use knee_quic::BundleId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Largest datagram.
const DATAGRAM: usize = 1 << 16;
/// Datagrams of a flow that are received before other tasks have a turn.
const BATCH: usize = 16;

/// A flow.
struct Flow {
    number: u64,
    protocol: Protocol,
    is_v6: bool,
    socket: UdpSocket,
    used: Cell<Use>,
    last: Cell<Instant>,
}

/// The flows of a client.
struct Flows {
    engine: Rc<Engine>,
    bundle: BundleId,
    targets: Targets,
    duplicate: bool,
    open: RefCell<BTreeMap<u64, Rc<Flow>>>,
    number: Cell<u32>,
    /// For all flows, each of which uses it without waiting.
    buffer: RefCell<Vec<u8>>,
    /// The client may carry no more.
    is_over: Cell<bool>,
}

/// Carries a client's flows until their stream ends or the client may carry no more.
pub async fn serve(
    engine: &Rc<Engine>,
    shared: &Shared,
    owner: &str,
    targets: Targets,
    stream: &BundleStream,
    duplicate: bool,
) {
    let mut coming = engine.datagrams(stream.bundle());
    let flows = Rc::new(Flows {
        engine: engine.clone(),
        bundle: stream.bundle(),
        targets,
        duplicate,
        open: RefCell::default(),
        number: Cell::new(0),
        buffer: RefCell::new(vec![0; DATAGRAM]),
        is_over: Cell::new(false),
    });
    let (mut assembly, mut tasks) = (Assembly::default(), JoinSet::new());
    while !flows.is_over.get() {
        tokio::select! {
            message = coming.recv() => {
                let Some((number, message)) = message else { break };
                if let Some(datagram) = assembly.take(number, &message) {
                    flows.on_datagram(shared, owner, number, &datagram, &mut tasks);
                }
            }
            Some(ended) = tasks.join_next() => {
                if let Ok(number) = ended {
                    flows.open.borrow_mut().remove(&number);
                    shared.end_udp_flows(owner, 1);
                }
            }
            ended = stream.read(1) => {
                if !matches!(ended, Ok(Some(_))) {
                    break;
                }
            }
        }
    }
    let left = flows.open.borrow().len() as u32;
    shared.end_udp_flows(owner, left);
}

impl Flows {
    fn on_datagram(
        self: &Rc<Flows>,
        shared: &Shared,
        owner: &str,
        number: u64,
        datagram: &Datagram,
        tasks: &mut JoinSet<u64>,
    ) {
        let Datagram { protocol, peer, bytes, .. } = datagram;
        let egress = &self.targets.egress;
        let refusal = match protocol {
            Protocol::Udp => egress.refusal(peer.ip(), peer.port()),
            Protocol::Echo => egress.refusal_of_host(peer.ip()),
        };
        if refusal.is_some() || !self.may_pass(bytes) {
            return;
        }
        let known = self.open.borrow().get(&number).cloned();
        let flow = match known {
            Some(flow) => flow,
            None => {
                if !shared.begin_udp_flow(owner) {
                    return;
                }
                let Ok(flow) = Flow::open(number, *protocol, *peer) else {
                    return shared.end_udp_flows(owner, 1);
                };
                let flow = Rc::new(flow);
                self.open.borrow_mut().insert(number, flow.clone());
                tasks.spawn_local(self.clone().answer(flow.clone()));
                flow
            }
        };
        flow.note(|used| used.on_sent(*peer));
        // Datagrams that the network does not accept are lost, as on any network.
        let _ = flow.send(datagram);
    }

    fn may_pass(&self, bytes: &[u8]) -> bool {
        let may = self.targets.meter.may_pass(bytes.len());
        self.is_over.set(self.is_over.get() || !may);
        may
    }

    /// Sends what comes to a flow's socket to the client, until the flow is idle; returns its number.
    async fn answer(self: Rc<Flows>, flow: Rc<Flow>) -> u64 {
        loop {
            let until = flow.last.get() + flow.used.get().idle();
            tokio::select! {
                ready = flow.socket.readable() => {
                    if ready.is_err() {
                        return flow.number;
                    }
                    self.receive(&flow);
                    // Nothing else might wake the loop that closes the sockets.
                    if self.is_over.get() {
                        return flow.number;
                    }
                }
                () = sleep_until(until) => {
                    if Instant::now() >= flow.last.get() + flow.used.get().idle() {
                        return flow.number;
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn receive(&self, flow: &Flow) {
        let mut buffer = self.buffer.borrow_mut();
        for _ in 0..BATCH {
            let socket = &flow.socket;
            let received =
                socket.try_io(Interest::READABLE, || receive_datagram(socket, &mut buffer));
            let datagram = match received {
                Ok(datagram) => datagram,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An error of an earlier datagram.
                Err(_) => continue,
            };
            let Some(answer) = flow.read(&datagram, &buffer) else { continue };
            if !self.may_pass(&answer.bytes) {
                return;
            }
            flow.note(Use::on_answered);
            let number = self.number.replace(self.number.get().wrapping_add(1));
            self.engine.send_datagram(&self.bundle, flow.number, self.duplicate, |most| {
                answer.messages(number, most)
            });
        }
    }
}

impl Flow {
    /// Opens a socket for the family of the first destination: a sender has one address, of one
    /// family.
    fn open(number: u64, protocol: Protocol, peer: SocketAddr) -> io::Result<Flow> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = match protocol {
            Protocol::Udp => std::net::UdpSocket::bind((any, 0))?,
            Protocol::Echo => ping_socket(peer.is_ipv6())?,
        };
        socket.set_nonblocking(true)?;
        report_tos(&socket, peer.is_ipv6())?;
        let socket = UdpSocket::from_std(socket)?;
        let (used, last) = (Cell::new(Use::default()), Cell::new(Instant::now()));
        Ok(Flow { number, protocol, is_v6: peer.is_ipv6(), socket, used, last })
    }

    fn send(&self, datagram: &Datagram) -> io::Result<()> {
        let Datagram { protocol, tos, peer, bytes } = datagram;
        match protocol {
            _ if *protocol != self.protocol => Ok(()),
            Protocol::Udp => send_datagram(&self.socket, *peer, *tos, bytes),
            Protocol::Echo => {
                let message = [&echo_header(self.is_v6, peer.port()), &bytes[..]].concat();
                send_datagram(&self.socket, SocketAddr::new(peer.ip(), 0), *tos, &message)
            }
        }
    }

    /// Reads what its socket received.
    fn read(&self, datagram: &knee_host::Datagram, buffer: &[u8]) -> Option<Datagram> {
        let (protocol, tos, bytes) = (self.protocol, datagram.tos, &buffer[..datagram.len]);
        let (peer, bytes) = match protocol {
            Protocol::Udp => (datagram.from, bytes),
            Protocol::Echo => {
                let (sequence, data) = read_reply(self.is_v6, bytes)?;
                (SocketAddr::new(datagram.from.ip(), sequence), data)
            }
        };
        Some(Datagram { protocol, tos, peer, bytes: Bytes::copy_from_slice(bytes) })
    }

    fn note(&self, change: impl FnOnce(&mut Use)) {
        let mut used = self.used.get();
        change(&mut used);
        self.used.set(used);
        self.last.set(Instant::now());
    }
}
