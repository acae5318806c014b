//! Reports of connections that end, from BPF programs (`bpf/observe.bpf.c`): with the controller
//! and the time at which they began, which reports over sock_diag lack, and without a system call
//! for each report.

use super::object::{map, namespace_cookie, program, words};
use super::{BpfError, refused_to};
use crate::{Heard, TcpInfo, TcpSocket};
use libbpf_rs::{
    Iter, Link, MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};
use nix::time::{ClockId, clock_getres};
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const OBSERVE: &[u8] = include_bytes!(env!("KNEE_BPF_OBSERVE"));
/// Size of `struct ended`, and offsets within it.
const ENDED: usize = 344;
const LOCAL: usize = 8;
const REMOTE: usize = 24;
const COOKIE: usize = 40;
const OPENED: usize = 48;
const ESTABLISHED: usize = 56;
const END: usize = 64;
const CONTROLLER: usize = 72;
const INFO_BYTES: usize = 88;
const INFO: usize = 96;
/// Size of the buffer.
const BUFFER_BYTES: usize = 16 << 20;
/// Interval of looks at an empty buffer, since its reader is never woken.
const LOOK: Duration = Duration::from_millis(100);
const WHAT: &str = "load the observing programs";

/// Programs that report the TCP connections of a network namespace when they end.
pub struct EndedConnections {
    object: Object,
    _ended: Link,
    ring: RingBuffer<'static>,
    /// The records that were read last, one after the other.
    records: Arc<Mutex<Vec<u8>>>,
    not_asked: u64,
    lost: u64,
}

impl EndedConnections {
    /// Loads the programs, for the network namespace of the calling thread, and attaches them to a
    /// group of processes (cgroups(7), version 2). They end with the returned value.
    ///
    /// # Errors
    ///
    /// The host lacks or refuses something.
    pub fn attach(cgroup: &Path) -> Result<EndedConnections, BpfError> {
        if let Some(lack) = super::lack() {
            return Err(lack);
        }
        libbpf_rs::set_print(None);
        let cannot = |error: libbpf_rs::Error| refused(&error);
        let mut object = ObjectBuilder::default().open_memory(OBSERVE).map_err(cannot)?;
        let constants = constants().map_err(|error| BpfError::io(WHAT, &error))?;
        for mut map in object.maps_mut() {
            let holds_constants = map.name().to_string_lossy().ends_with(".rodata");
            if let Some(value) = map.initial_value_mut().filter(|_| holds_constants) {
                value[..constants.len()].copy_from_slice(&constants);
            }
        }
        let object = object.load().map_err(cannot)?;
        let folder = File::open(cgroup).map_err(|error| BpfError::io("open the cgroup", &error))?;
        let ended = program(&object, "knee_ended")?;
        let ended = ended.attach_cgroup(folder.as_raw_fd()).map_err(cannot)?;
        let records = Arc::new(Mutex::new(Vec::new()));
        let ring = ring(&object, records.clone())?;
        let mut ended =
            EndedConnections { object, _ended: ended, ring, records, not_asked: 0, lost: 0 };
        ended.ask()?;
        Ok(ended)
    }

    /// Asks for the reports of connections that are open.
    fn ask(&mut self) -> Result<(), BpfError> {
        let link = program(&self.object, "knee_ask")?.attach().map_err(|error| refused(&error))?;
        let mut pass = Iter::new(&link).map_err(|error| refused(&error))?;
        pass.read_to_end(&mut Vec::new()).map_err(|error| BpfError::io(WHAT, &error))?;
        self.not_asked = self.counts()?[2];
        Ok(())
    }

    /// Returns the number of connections that were open when the programs were attached and whose
    /// end is not reported, because the kernel is older than Linux 6.13.
    pub fn not_asked(&self) -> u64 {
        self.not_asked
    }

    /// Returns the size of the buffer for reports, bytes.
    pub fn buffer_bytes(&self) -> usize {
        BUFFER_BYTES
    }

    /// Waits up to `patience` for a connection to end, then passes it and all others so far to the
    /// callback, with the times at which it was opened and established, since the boot.
    ///
    /// # Errors
    ///
    /// If reading fails.
    #[expect(clippy::disallowed_methods, reason = "the programs never wake their reader")]
    pub fn hear(
        &mut self,
        patience: Duration,
        mut each: impl FnMut(TcpSocket<'_>),
    ) -> io::Result<Heard> {
        let mut heard = Heard::default();
        if !self.read()? && patience > Duration::ZERO {
            thread::sleep(LOOK.min(patience));
            self.read()?;
        }
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records.chunks_exact(ENDED) {
            heard.reports += 1;
            each(decode(record));
        }
        records.clear();
        drop(records);
        let lost = self.counts().map_err(io::Error::other)?[0];
        heard.dropped = lost - self.lost;
        self.lost = lost;
        Ok(heard)
    }

    /// Reads what there is, and returns whether there was anything.
    fn read(&mut self) -> io::Result<bool> {
        self.ring.consume().map_err(io::Error::other)?;
        Ok(!self.records.lock().unwrap_or_else(PoisonError::into_inner).is_empty())
    }

    /// Lost reports; open connections that are reported, and that are not.
    fn counts(&self) -> Result<[u64; 3], BpfError> {
        let counted = map(&self.object, "counters")?.lookup(&[0; 4], MapFlags::ANY);
        let counted = counted.map_err(|error| refused(&error))?.unwrap_or_default();
        let mut counts = [0; 3];
        counts.iter_mut().zip(words(&counted)).for_each(|(count, word)| *count = word);
        Ok(counts)
    }
}

/// The constants of the programs: cookie of the namespace, and length of a tick of `jiffies`.
fn constants() -> io::Result<Vec<u8>> {
    // This clock ticks with jiffies.
    let tick = Duration::from(clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)?);
    let tick_us = u32::try_from(tick.as_micros()).unwrap_or(u32::MAX);
    Ok([&namespace_cookie()?.to_ne_bytes()[..], &tick_us.to_ne_bytes()].concat())
}

fn ring(object: &Object, records: Arc<Mutex<Vec<u8>>>) -> Result<RingBuffer<'static>, BpfError> {
    let buffer = map(object, "ended_connections")?;
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&buffer, move |record| {
            let whole = &record[..record.len().min(ENDED)];
            records.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(whole);
            0
        })
        .map_err(|error| refused(&error))?;
    builder.build().map_err(|error| refused(&error))
}

/// Parses `struct ended`.
fn decode(record: &[u8]) -> TcpSocket<'_> {
    let word = |at: usize| u32::from_ne_bytes(array(record, at));
    let long = |at: usize| u64::from_ne_bytes(array(record, at));
    let is_four = word(0) as i32 == libc::AF_INET;
    let address = |at: usize| match is_four {
        true => IpAddr::V4(Ipv4Addr::from(array::<4>(record, at))),
        false => IpAddr::V6(Ipv6Addr::from(array::<16>(record, at))).to_canonical(),
    };
    let port = |at: usize| u16::from_ne_bytes(array(record, at));
    let name = &record[CONTROLLER..CONTROLLER + 16];
    let name = name.split(|byte| *byte == 0).next().unwrap_or(name);
    let since = |at: usize| Some(long(at)).filter(|time| *time > 0).map(Duration::from_nanos);
    let info = &record[INFO..];
    TcpSocket {
        local: SocketAddr::new(address(LOCAL), port(4)),
        remote: SocketAddr::new(address(REMOTE), port(6)),
        cookie: long(COOKIE),
        info: Some(TcpInfo::decode(&info[..info.len().min(word(INFO_BYTES) as usize)])),
        controller: std::str::from_utf8(name).ok().filter(|name| !name.is_empty()),
        mark: None,
        cgroup: None,
        opened: since(OPENED),
        established: since(ESTABLISHED),
        ended: since(END),
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

fn refused(error: &libbpf_rs::Error) -> BpfError {
    refused_to(WHAT, error, "it needs Linux 5.11 or later with CONFIG_BPF_JIT=y")
}
