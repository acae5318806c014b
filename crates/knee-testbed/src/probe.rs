//! Independent measurement of the paths: UDP datagrams that one host sends and the other returns,
//! before and during a run.
//!
//! This measures the network as seen by the host's kernel, independent of when our threads wake:
//! the kernel timestamps arrivals (SO_TIMESTAMPNS), and the answer reports the time that a probe
//! spent in the answering thread, which is subtracted, as in TWAMP (RFC 5357, section 4.2.1). The
//! result includes the path from the sending thread into the device, and the emulator's own
//! lateness.

use crate::TestbedError;
use crate::hosts::{End, Family, address};
use knee_emulator::{Clock, age, timespec};
use knee_host::set_option;
use knee_units::{Rate, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendto, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// IP size of a probe, bytes: IPv4, UDP, the time of sending, and the time spent at the far end.
pub const PROBE_BYTES: u64 = 20 + 8 + PAYLOAD_BYTES as u64;

const PAYLOAD_BYTES: usize = 8 + 8;

/// IPv4 and UDP headers, bytes.
const HEADER_BYTES: u32 = 28;
/// Maximum payload of a datagram, bytes.
const DATAGRAM_BYTES_MAX: u32 = 65_535 - HEADER_BYTES;
/// Maximum datagrams per call in Linux (UDP_MAX_SEGMENTS, originally 64).
const SEGMENTS_MAX: u32 = 64;
const PORT: u16 = 9_000;
/// Socket buffer for datagrams that arrive while the thread does not run, bytes.
const SOCKET_BYTES: u32 = 1 << 26;
/// Maximum sleep, and so the delay of a stop.
pub const SLEEP_MAX: Time = Time::from_millis(20);
/// Probes take at most one part in this many of a path's rate.
const SHARE_MAX: u64 = 500;
/// Probing interval of a path that carries nothing at first; its later rate may be low.
const STANDSTILL_INTERVAL: Time = Time::from_secs(1);

/// Round trips of one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathProbe {
    /// Path, by its index in the scenario.
    pub path: usize,
    /// Probes sent.
    pub sent: u64,
    /// Time of sending and round-trip time of each answered probe.
    pub round_trips: Vec<(Time, Time)>,
}

impl PathProbe {
    /// The RTT quantile at `share`, in `0.0..=1.0`, of the answered probes; `None` if none was
    /// answered.
    pub fn rtt_at(&self, share: f64) -> Option<Time> {
        let mut rtts: Vec<Time> = self.round_trips.iter().map(|(_, rtt)| *rtt).collect();
        rtts.sort_unstable();
        let rank = (share * rtts.len() as f64).ceil() as usize;
        rtts.get(rank.saturating_sub(1)).copied()
    }
}

/// Probing interval of a path with this rate at the start of the run: 20 ms, or longer to limit
/// probes to 1/500 of the rate.
pub fn interval(rate: Option<Rate>) -> Time {
    let cost = match rate {
        None => Time::ZERO,
        Some(Rate::ZERO) => STANDSTILL_INTERVAL,
        Some(rate) => rate.time_for(PROBE_BYTES * SHARE_MAX),
    };
    cost.max(Time::from_millis(20))
}

/// Answers probes until told to stop; call it in the receiver's namespace.
pub fn echo(sockets: &[UdpSocket], stop: &AtomicBool) -> Result<(), TestbedError> {
    let mut bytes = [0; PAYLOAD_BYTES];
    while !stop.load(Ordering::Relaxed) {
        for path in wait(sockets, SLEEP_MAX)? {
            while let Some(arrival) = take(&sockets[path], &mut bytes) {
                let Some(from) = arrival.from.filter(|_| arrival.len == PAYLOAD_BYTES) else {
                    continue;
                };
                let stay = arrival.stamp.map_or(Time::ZERO, age);
                bytes[8..].copy_from_slice(&stay.as_nanos().to_ne_bytes());
                // A failure to send counts as a lost probe.
                let _ = sendto(sockets[path].as_raw_fd(), &bytes, &from, MsgFlags::empty());
            }
        }
    }
    Ok(())
}

/// A received datagram.
struct Arrival {
    len: usize,
    from: Option<SockaddrIn>,
    /// Time of arrival in the kernel.
    stamp: Option<TimeSpec>,
}

/// Receives the next datagram; `None` if none is waiting.
fn take(socket: &UdpSocket, bytes: &mut [u8]) -> Option<Arrival> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(bytes)];
    let message = recvmsg::<SockaddrIn>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT,
    );
    let message = message.ok()?;
    let stamp = message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    });
    Some(Arrival { len: message.bytes, from: message.address, stamp })
}

/// Creates the sockets of [`echo`], one per path.
pub fn echo_sockets(paths: usize) -> Result<Vec<UdpSocket>, TestbedError> {
    (0..paths).map(|path| socket(path, End::Receiver, PORT)).collect()
}

/// Creates the sockets of [`Prober`], one per path.
pub fn probe_sockets(paths: usize) -> Result<Vec<UdpSocket>, TestbedError> {
    let connected = |path| {
        let socket = socket(path, End::Sender, 0)?;
        let to = (address(path, End::Receiver, Family::V4), PORT);
        socket.connect(to).map_err(|source| TestbedError::call("connect a probe", source))?;
        Ok(socket)
    };
    (0..paths).map(connected).collect()
}

fn socket(path: usize, end: End, port: u16) -> Result<UdpSocket, TestbedError> {
    let open = || {
        let socket = UdpSocket::bind((address(path, end, Family::V4), port))?;
        socket.set_nonblocking(true)?;
        // Forced if privileged, otherwise limited by net.core.rmem_max.
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, SOCKET_BYTES)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, SOCKET_BYTES))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        Ok(socket)
    };
    open().map_err(|source: io::Error| TestbedError::call("open a probe's socket", source))
}

/// Waits for sockets with datagrams to read.
fn wait(sockets: &[UdpSocket], span: Time) -> Result<Vec<usize>, TestbedError> {
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
    match ppoll(&mut polled, Some(timespec(span)), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(TestbedError::call("wait for probes", error)),
    }
    let ready = |path: &usize| polled[*path].any().unwrap_or(false);
    Ok((0..sockets.len()).filter(ready).collect())
}

/// Sends probes over all paths from the sender's host.
pub struct Prober {
    sockets: Vec<UdpSocket>,
    intervals: Vec<Time>,
    clock: Clock,
    paths: Vec<PathProbe>,
}

impl Prober {
    /// Creates a prober with an interval for each path.
    pub fn new(sockets: Vec<UdpSocket>, intervals: Vec<Time>, clock: Clock) -> Prober {
        let paths = (0..sockets.len()).map(|path| PathProbe { path, ..PathProbe::default() });
        Prober { paths: paths.collect(), sockets, intervals, clock }
    }

    /// Probes until `until` or a stop, without waiting for the last answers. Paths take turns within
    /// an interval, because they may share a link on which probes would wait for each other.
    pub fn run(mut self, until: Time, stop: &AtomicBool) -> Result<Vec<PathProbe>, TestbedError> {
        let paths = self.intervals.len() as f64;
        let turns = self.intervals.iter().enumerate();
        let mut due: Vec<Time> =
            turns.map(|(path, interval)| interval.scale(path as f64 / paths)).collect();
        let mut now = self.clock.now();
        while now < until && !stop.load(Ordering::Relaxed) {
            for (path, due) in due.iter_mut().enumerate() {
                if *due <= now {
                    self.send(path);
                    *due = next_turn(*due, self.intervals[path], now);
                }
            }
            let next = due.iter().copied().min().unwrap_or(until).min(until);
            let span = next.saturating_sub(self.clock.now()).min(SLEEP_MAX);
            for path in wait(&self.sockets, span)? {
                self.receive(path);
            }
            now = self.clock.now();
        }
        Ok(self.paths)
    }

    fn send(&mut self, path: usize) {
        let mut bytes = [0; PAYLOAD_BYTES];
        bytes[..8].copy_from_slice(&self.clock.now().as_nanos().to_ne_bytes());
        // A failure to send counts as a loss.
        let _ = self.sockets[path].send(&bytes);
        self.paths[path].sent += 1;
    }

    fn receive(&mut self, path: usize) {
        let mut bytes = [0; PAYLOAD_BYTES];
        while let Some(arrival) = take(&self.sockets[path], &mut bytes) {
            if arrival.len != PAYLOAD_BYTES {
                continue;
            }
            let [sent_at, stay] = [0, 8].map(|at| {
                let mut word = [0; 8];
                word.copy_from_slice(&bytes[at..at + 8]);
                Time::from_nanos(u64::from_ne_bytes(word))
            });
            let came_at = self.clock.at(arrival.stamp);
            let rtt = came_at.saturating_sub(sent_at).saturating_sub(stay);
            self.paths[path].round_trips.push((sent_at, rtt));
        }
    }
}

/// Returns the first turn after `now`. A late thread skips turns but changes none, or paths would
/// take theirs at the same time from then on.
fn next_turn(due: Time, interval: Time, now: Time) -> Time {
    let missed = now.saturating_sub(due).as_nanos() / interval.as_nanos().max(1);
    due.saturating_add(Time::from_nanos(interval.as_nanos().saturating_mul(missed + 1)))
}

/// Sends datagrams of `ip_bytes` as fast as possible: many per call (UDP segmentation offload), to
/// exceed the rate of the link.
pub fn send_burst(socket: &UdpSocket, ip_bytes: u32, packets: u32) -> Result<(), TestbedError> {
    let payload = ip_bytes - HEADER_BYTES;
    let segment = |bytes: u32| {
        set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes)
            .map_err(|source| TestbedError::call("switch on UDP segmentation", source))
    };
    segment(payload)?;
    let at_once = (DATAGRAM_BYTES_MAX / payload).min(SEGMENTS_MAX);
    let bytes = vec![0; (at_once * payload) as usize];
    let mut left = packets;
    while left > 0 {
        let now = left.min(at_once);
        // TUN accepts everything; a rejected datagram shows as missing later.
        let _ = socket.send(&bytes[..(now * payload) as usize]);
        left -= now;
    }
    segment(0)
}

/// Rate at which a burst of such datagrams arrives, from the first to the last; `None` if some are
/// missing at `until`.
pub fn receive_burst(
    socket: &UdpSocket,
    (ip_bytes, packets): (u32, u32),
    until: Time,
    clock: Clock,
) -> Result<Option<Rate>, TestbedError> {
    let (mut first, mut count) = (Time::ZERO, 0);
    let mut bytes = [0; 65_536];
    while clock.now() < until {
        wait(std::slice::from_ref(socket), SLEEP_MAX)?;
        while let Some(arrival) = take(socket, &mut bytes) {
            // Skips probes.
            if arrival.len + HEADER_BYTES as usize != ip_bytes as usize {
                continue;
            }
            let came_at = clock.at(arrival.stamp);
            count += 1;
            if count == 1 {
                first = came_at;
            }
            if count == packets {
                let bytes = u64::from(packets - 1) * u64::from(ip_bytes);
                return Ok(Some(Rate::over(bytes, came_at.saturating_sub(first))));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 44 bytes at 10 Mbit/s take 35.2 µs, and 500 times that is 17.6 ms; at 1 Mbit/s it is 176 ms.
    #[test]
    fn probes_are_a_small_part_of_the_load() {
        let every = |mbit: u64| interval(Some(Rate::from_bits_per_second(mbit * 1_000_000)));
        assert_eq!(every(10), Time::from_millis(20));
        assert_eq!(every(1), Time::from_millis(176));
        assert_eq!(interval(None), Time::from_millis(20));
    }

    /// A link whose rate starts at zero carries more later, so the path is probed, but not as fast as
    /// possible.
    #[test]
    fn a_path_that_stands_still_at_first_is_probed_slowly() {
        let every = interval(Some(Rate::ZERO));
        assert!((Time::from_millis(20)..=Time::from_secs(1)).contains(&every), "{every:?}");
    }

    #[test]
    fn a_late_probe_does_not_move_the_next_ones() {
        let next = |now: u64| {
            next_turn(Time::from_millis(3), Time::from_millis(10), Time::from_millis(now))
        };
        assert_eq!([3, 12, 13, 47].map(next), [13, 13, 23, 53].map(Time::from_millis));
        let end = next_turn(Time::ZERO, Time::MAX, Time::from_secs(1));
        assert_eq!(end, Time::MAX);
    }
}
