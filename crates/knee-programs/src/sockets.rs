//! What the kernel at the sending end knows of the flows' TCP connections: `TCP_INFO` over sock_diag,
//! at intervals, and as each connection ends.

use knee_host::{ClosedSockets, HostError, Namespace, TcpInfo, TcpSocket, each_connection};
use knee_testbed::Clock;
use knee_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest interval at which connections are read.
const INTERVAL_MAX: Time = Time::from_millis(100);
/// Shortest one, since a dump takes time.
const INTERVAL_MIN: Time = Time::from_millis(5);
/// States kept of each flow. Whoever asks for a time asks for it at most a quarter of a second later.
const STATES_MAX: usize = 256;
/// Maximum number of connections that are kept; further ones have no more than what an observer sees.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Reports of ended connections that are taken at once.
const REPORTS_MAX: u64 = 4096;

/// State of a flow's connections at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Smoothed RTT of the connection that has sent the most, nanoseconds; zero if none is measured.
    pub srtt_ns: u64,
    /// Its phase.
    pub phase: &'static str,
    /// Its slow-start threshold, bytes; zero if there is none.
    pub threshold_bytes: u64,
    /// Windows of all connections with data in flight, bytes.
    pub window_bytes: u64,
    /// Their bytes in flight.
    pub in_flight_bytes: u64,
}

/// A connection as the kernel reported it last.
#[derive(Clone, Debug)]
pub struct Known {
    /// Final if the connection ended while it was watched.
    pub info: TcpInfo,
    /// The kernel's name of its controller; empty if it ended before it was seen open.
    pub controller: String,
    /// Largest smoothed RTT that was seen, microseconds.
    pub srtt_max_us: u32,
}

/// The connections of all flows.
#[derive(Clone, Debug, Default)]
pub struct Sockets(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    states: BTreeMap<u16, VecDeque<(Time, TcpState)>>,
    connections: BTreeMap<(SocketAddr, SocketAddr), Known>,
}

impl Sockets {
    /// Reads the connections from these ports of a host until `done`, at the times of `clock`.
    ///
    /// # Errors
    ///
    /// The kernel has no sock_diag, or the namespace may not be entered.
    pub fn watch(
        &self,
        network: &Namespace,
        ports: RangeInclusive<u16>,
        (clock, interval): (Clock, Time),
        done: &AtomicBool,
    ) -> Result<(), HostError> {
        let interval = interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        network.within(|| {
            let mut closed = ClosedSockets::listen()?;
            let is_ours = |socket: &TcpSocket<'_>| ports.contains(&socket.local.port());
            let mut hear = |wait: Time| {
                let heard = closed.hear(
                    Duration::from_nanos(wait.as_nanos()),
                    REPORTS_MAX,
                    |socket: TcpSocket<'_>| {
                        if let (true, Some(info)) = (is_ours(&socket), socket.info) {
                            self.kept().note(&socket, info);
                        }
                    },
                );
                let failed = |source| HostError::call("read reports of connections", source);
                heard.map(drop).map_err(failed)
            };
            let mut next = clock.now();
            while !done.load(Ordering::Relaxed) {
                let now = clock.now();
                if next <= now {
                    let mut open: BTreeMap<u16, Vec<TcpInfo>> = BTreeMap::new();
                    each_connection(|socket| {
                        if let (true, Some(info)) = (is_ours(&socket), socket.info) {
                            open.entry(socket.local.port()).or_default().push(info);
                            self.kept().note(&socket, info);
                        }
                    })?;
                    self.kept().add_states(now, &open);
                    next = now + interval;
                }
                hear(next.saturating_sub(clock.now()))?;
            }
            hear(Time::ZERO)
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last state from before or at a time of the connections from this port; `None` if
    /// there was none.
    pub fn state(&self, port: u16, at: Time) -> Option<TcpState> {
        let kept = self.kept();
        let states = kept.states.get(&port)?.iter();
        states.rev().find(|(time, _)| *time <= at).map(|(_, state)| *state)
    }

    /// Returns what is known of a connection, by the address of this end and that of the other one.
    pub fn known(&self, local: SocketAddr, remote: SocketAddr) -> Option<Known> {
        self.kept().connections.get(&(local, remote)).cloned()
    }

    /// Returns what is known of all connections from this port.
    pub fn known_of(&self, port: u16) -> Vec<Known> {
        let kept = self.kept();
        let ours = kept.connections.iter().filter(|((local, _), _)| local.port() == port);
        ours.map(|(_, known)| known.clone()).collect()
    }
}

impl Kept {
    fn note(&mut self, socket: &TcpSocket<'_>, info: TcpInfo) {
        let key = (plain(socket.local), plain(socket.remote));
        let is_full = self.connections.len() >= CONNECTIONS_MAX;
        if is_full && !self.connections.contains_key(&key) {
            return;
        }
        let known = self.connections.entry(key).or_insert_with(|| Known {
            info,
            controller: String::new(),
            srtt_max_us: 0,
        });
        known.info = info;
        known.srtt_max_us = known.srtt_max_us.max(info.srtt_us);
        if let Some(controller) = socket.controller {
            controller.clone_into(&mut known.controller);
        }
    }

    fn add_states(&mut self, now: Time, open: &BTreeMap<u16, Vec<TcpInfo>>) {
        for (port, infos) in open {
            let states = self.states.entry(*port).or_default();
            if states.len() == STATES_MAX {
                states.pop_front();
            }
            states.push_back((now, state(infos)));
        }
    }
}

/// An address of IPv4 as such, also of a socket for IPv6.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn state(infos: &[TcpInfo]) -> TcpState {
    let main = infos.iter().max_by_key(|info| info.sent_bytes).copied().unwrap_or_default();
    let bytes = |info: &TcpInfo, packets: u32| u64::from(packets) * u64::from(info.mss);
    let busy = || infos.iter().filter(|info| info.unacked > 0);
    let windows: u64 = busy().map(|info| bytes(info, info.window)).sum();
    TcpState {
        srtt_ns: u64::from(main.srtt_us) * 1000,
        phase: main.phase(),
        threshold_bytes: main.threshold_packets().map_or(0, |packets| bytes(&main, packets)),
        window_bytes: if windows > 0 { windows } else { bytes(&main, main.window) },
        in_flight_bytes: busy().map(|info| bytes(info, info.in_flight_packets())).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(sent_bytes: u64, unacked: u32, window: u32, srtt_us: u32) -> TcpInfo {
        let mut info = TcpInfo::default();
        (info.sent_bytes, info.unacked, info.mss) = (sent_bytes, unacked, 1000);
        (info.window, info.srtt_us) = (window, srtt_us);
        info
    }

    /// A control connection beside the one with the data changes neither RTT nor window.
    #[test]
    fn a_state_is_that_of_the_connections_with_data() {
        let found = state(&[info(300, 0, 10, 900), info(70_000, 20, 30, 40_000)]);
        assert_eq!((found.srtt_ns, found.window_bytes), (40_000_000, 30_000));
        assert_eq!(found.in_flight_bytes, 20_000);
        let idle = state(&[info(300, 0, 10, 900)]);
        assert_eq!((idle.window_bytes, idle.in_flight_bytes), (10_000, 0));
        assert_eq!(
            state(&[]),
            TcpState { phase: TcpInfo::default().phase(), ..TcpState::default() }
        );
    }

    #[test]
    fn a_state_is_the_last_one_before_its_time() {
        let sockets = Sockets::default();
        let at = Time::from_millis;
        for ms in 0..2 * STATES_MAX as u64 {
            let open = BTreeMap::from([(7, vec![info(ms, 1, ms as u32, 1000)])]);
            sockets.kept().add_states(at(10 * ms), &open);
        }
        let last = 2 * STATES_MAX as u64 - 1;
        let window = |time| sockets.state(7, time).map(|state| state.window_bytes / 1000);
        assert_eq!(window(at(10 * last + 99)), Some(last));
        assert_eq!(window(at(10 * last - 1)), Some(last - 1));
        assert_eq!(window(at(10 * last - 10)), Some(last - 1));
        // Bounded: the first half is gone.
        assert_eq!((window(at(9)), sockets.state(8, at(99))), (None, None));
    }
}
