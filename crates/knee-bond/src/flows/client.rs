//! The client's end: datagrams and echo requests that the kernel hands over become messages, and
//! messages become datagrams and replies in the name of the peer.

use super::{Assembly, Datagram, FIRST, Protocol, Use};
use crate::client::ClientHandle;
use crate::proxy::ask;
use crate::request::Request;
use crate::stream::BundleStream;
use bytes::Bytes;
use knee_host::{EchoRequest, Impersonator, receive_datagram, receive_echo, reply_to_echo};
use knee_quic::BundleId;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::task::{spawn_local, yield_now};
use tokio::time::{Instant, sleep};

/// Maximum number of flows, and of those of one machine, so that one that scans ports leaves room
/// for others. Datagrams of further ones are lost.
const FLOWS_MAX: usize = 16_384;
const OF_A_HOST_MAX: usize = 4096;
/// Interval at which flows that are idle end.
const SWEEP: Duration = Duration::from_secs(5);
/// Pause before the server is asked again.
const RETRY: Duration = Duration::from_secs(1);
/// Datagrams received before other tasks have a turn.
const BATCH: usize = 64;
/// Largest datagram.
const DATAGRAM: usize = 1 << 16;

/// Sender of a flow. The port of an echo is its identifier.
type Source = (Protocol, SocketAddr);

struct Flow {
    number: u64,
    used: Use,
    last: Instant,
}

/// Flows of a client's host and house.
#[derive(Default)]
struct Table {
    by_source: BTreeMap<Source, Flow>,
    sources: BTreeMap<u64, Source>,
    of_a_host: BTreeMap<IpAddr, usize>,
    next: u64,
}

impl Table {
    /// Returns the number of the flow of a datagram, or `None` if there are too many.
    fn on_sent(&mut self, from: Source, to: SocketAddr) -> Option<u64> {
        if !self.by_source.contains_key(&from) {
            let of_this = self.of_a_host.entry(from.1.ip()).or_default();
            if self.by_source.len() >= FLOWS_MAX || *of_this >= OF_A_HOST_MAX {
                return None;
            }
            *of_this += 1;
            let number = FIRST + self.next;
            self.next += 1;
            let flow = Flow { number, used: Use::default(), last: Instant::now() };
            self.by_source.insert(from, flow);
            self.sources.insert(number, from);
        }
        let flow = self.by_source.get_mut(&from)?;
        flow.used.on_sent(to);
        flow.last = Instant::now();
        Some(flow.number)
    }

    /// Returns whose flow has this number, and notes that an answer came.
    fn on_answer(&mut self, number: u64) -> Option<Source> {
        let source = *self.sources.get(&number)?;
        let flow = self.by_source.get_mut(&source)?;
        flow.used.on_answered();
        flow.last = Instant::now();
        Some(source)
    }

    /// Ends flows that are idle.
    fn sweep(&mut self, now: Instant) {
        let Table { by_source, sources, of_a_host, .. } = self;
        by_source.retain(|source, flow| {
            let lasts = now.duration_since(flow.last) < flow.used.idle();
            if !lasts {
                sources.remove(&flow.number);
                if let Some(count) = of_a_host.get_mut(&source.1.ip()) {
                    *count -= 1;
                }
            }
            lasts
        });
        of_a_host.retain(|_, count| *count > 0);
    }
}

/// What the tasks of a client's flows share.
struct Flows {
    handle: Rc<ClientHandle>,
    /// The bundle in which the server carries them now.
    session: Cell<Option<BundleId>>,
    table: RefCell<Table>,
    number: Cell<u32>,
    replies: Impersonator,
    /// For IPv4 and IPv6.
    echoes: [Option<UdpSocket>; 2],
}

/// Carries the datagrams that come to `sockets`, echo requests, and the answers to both, for as
/// long as the client runs.
pub async fn run(
    sockets: Vec<UdpSocket>,
    replies: Impersonator,
    echoes: [Option<UdpSocket>; 2],
    handle: Rc<ClientHandle>,
) {
    let (session, table, number) = (Cell::default(), RefCell::default(), Cell::default());
    let flows = Rc::new(Flows { handle, session, table, number, replies, echoes });
    for socket in sockets {
        spawn_local(flows.clone().take(socket));
    }
    for family in 0..flows.echoes.len() {
        spawn_local(flows.clone().take_echoes(family));
    }
    spawn_local(flows.clone().sweep());
    loop {
        let request = Request::Flows { duplicate: flows.handle.duplicate_udp };
        if let Ok(stream) = ask(&flows.handle, &request, &[]).await {
            flows.session.set(Some(stream.bundle()));
            flows.answer(&stream).await;
            flows.session.set(None);
        }
        sleep(RETRY).await;
    }
}

impl Flows {
    /// Ends idle flows.
    async fn sweep(self: Rc<Flows>) {
        loop {
            sleep(SWEEP).await;
            self.table.borrow_mut().sweep(Instant::now());
        }
    }

    /// Receives datagrams.
    async fn take(self: Rc<Flows>, socket: UdpSocket) {
        let own = socket.local_addr().ok();
        let mut buffer = vec![0; DATAGRAM];
        while socket.readable().await.is_ok() {
            for _ in 0..BATCH {
                let received =
                    socket.try_io(Interest::READABLE, || receive_datagram(&socket, &mut buffer));
                match received {
                    // One that was sent to this port itself was not diverted.
                    Ok(datagram) if datagram.to == own => {}
                    Ok(knee_host::Datagram { len, from, to: Some(peer), tos }) => {
                        let bytes = Bytes::copy_from_slice(&buffer[..len]);
                        let protocol = Protocol::Udp;
                        self.send(from, &Datagram { protocol, tos, peer, bytes });
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // An error of an earlier datagram.
                    Err(_) => {}
                }
            }
            yield_now().await;
        }
    }

    /// Receives echo requests of a family.
    async fn take_echoes(self: Rc<Flows>, family: usize) {
        let Some(socket) = &self.echoes[family] else { return };
        let mut buffer = vec![0; DATAGRAM];
        while socket.readable().await.is_ok() {
            let received = socket
                .try_io(Interest::READABLE, || receive_echo(socket, family == 1, &mut buffer));
            if let Ok(Some(EchoRequest { from, to, id, sequence, tos, begin, end })) = received {
                let bytes = Bytes::copy_from_slice(&buffer[begin..end]);
                let (protocol, peer) = (Protocol::Echo, SocketAddr::new(to, sequence));
                let from = SocketAddr::new(from, id);
                self.send(from, &Datagram { protocol, tos, peer, bytes });
            }
            yield_now().await;
        }
    }

    fn send(&self, from: SocketAddr, datagram: &Datagram) {
        // Without a server it is lost, as on a network without a link.
        let Some(bundle) = self.session.get() else { return };
        let from = (datagram.protocol, from);
        let Some(flow) = self.table.borrow_mut().on_sent(from, datagram.peer) else { return };
        let number = self.number.replace(self.number.get().wrapping_add(1));
        let ClientHandle { engine, duplicate_udp, .. } = &*self.handle;
        engine.send_datagram(&bundle, flow, *duplicate_udp, |most| datagram.messages(number, most));
    }

    /// Gives a datagram to whom it is for. What that has no room for is lost, as on any network.
    fn give(&self, (protocol, to): Source, datagram: &Datagram) {
        let Datagram { peer, tos, bytes, .. } = datagram;
        let _ = match protocol {
            _ if protocol != datagram.protocol => return,
            Protocol::Udp => self.replies.send(*peer, to, *tos, bytes),
            Protocol::Echo => {
                let Some(socket) = &self.echoes[usize::from(to.is_ipv6())] else { return };
                let request = EchoRequest {
                    from: to.ip(),
                    to: peer.ip(),
                    id: to.port(),
                    sequence: peer.port(),
                    tos: *tos,
                    begin: 0,
                    end: 0,
                };
                reply_to_echo(socket, &request, bytes)
            }
        };
    }

    /// Passes answers on until the stream is over.
    async fn answer(&self, stream: &BundleStream) {
        let mut answers = self.handle.engine.datagrams(stream.bundle());
        let mut assembly = Assembly::default();
        loop {
            tokio::select! {
                answer = answers.recv() => {
                    let Some((flow, message)) = answer else { return };
                    let Some(datagram) = assembly.take(flow, &message) else { continue };
                    let to = self.table.borrow_mut().on_answer(flow);
                    if let Some(to) = to {
                        self.give(to, &datagram);
                    }
                }
                said = stream.read(1) => {
                    if !matches!(said, Ok(Some(_))) {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{IDLE, IDLE_UNANSWERED};
    use super::*;

    fn source(host: u8, port: u16) -> Source {
        (Protocol::Udp, SocketAddr::from(([192, 168, 1, host], port)))
    }

    /// A sender keeps its flow whatever the destination; another port is another flow.
    #[test]
    fn a_sender_has_one_flow_whatever_the_destination() {
        let mut table = Table::default();
        let [web, game] = ["192.0.2.1:443", "198.51.100.1:9999"].map(|to| to.parse().unwrap());
        let flow = table.on_sent(source(2, 5000), web);
        assert_eq!(table.on_sent(source(2, 5000), game), flow);
        assert_ne!(table.on_sent(source(2, 5001), web), flow);
        assert_ne!(table.on_sent((Protocol::Echo, source(2, 5000).1), web), flow);
        assert_eq!(table.on_answer(flow.unwrap()), Some(source(2, 5000)));
    }

    /// One machine that opens as many flows as it can leaves room for others, and ended flows make
    /// room.
    #[test]
    fn a_machine_that_opens_many_flows_leaves_room_for_others() {
        let (mut table, began) = (Table::default(), Instant::now());
        let to = "192.0.2.1:443".parse().unwrap();
        let opened = (0..u16::MAX).filter(|port| table.on_sent(source(2, *port), to).is_some());
        assert_eq!(opened.count(), OF_A_HOST_MAX);
        let other = table.on_sent(source(3, 1), to).unwrap();
        table.on_answer(other);
        table.sweep(began + IDLE_UNANSWERED * 2);
        assert_eq!((table.by_source.len(), table.sources.len(), table.of_a_host.len()), (1, 1, 1));
        assert!(table.on_sent(source(2, 1), to).is_some());
        table.sweep(began + IDLE * 2);
        assert!(table.by_source.is_empty() && table.of_a_host.is_empty());
    }
}
