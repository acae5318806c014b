//! The two hosts of a run: a namespace each, and a TUN device at both ends of
//! each path.

use crate::settings::{Family, PathSettings, Settings};
use knee_emulator::Tun;
use knee_host::mptcp::{self, Announced};
use knee_host::{HostError, Namespace, Routing, set_sysctl};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Packets that a TUN device's queue holds. A host may send a whole window at
/// once, and what overflows here no link would count.
const QUEUE_PACKETS: u32 = 50_000;
/// What a socket may hold at most; windows end where the buffers do.
const SOCKET_BYTES_MAX: u64 = 1 << 29;

/// Which end of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

/// Both hosts; dropping this takes them down.
#[derive(Debug)]
pub struct Hosts {
    pub sender: Namespace,
    pub receiver: Namespace,
    paths: usize,
}

impl Hosts {
    /// Sets up both, and the devices between which the emulator stands: of
    /// path p the sender's is 2p, the receiver's 2p + 1.
    pub fn create(settings: &Settings) -> Result<(Hosts, Vec<Tun>), HostError> {
        let hosts = Hosts {
            sender: Namespace::create()?,
            receiver: Namespace::create()?,
            paths: settings.paths.len(),
        };
        let ours = hosts.sender.within(|| set_up(settings, End::Sender))?;
        let theirs = hosts.receiver.within(|| set_up(settings, End::Receiver))?;
        let devices = ours.into_iter().zip(theirs).flat_map(|(ours, theirs)| [ours, theirs]);
        Ok((hosts, devices.collect()))
    }

    /// Packets that queues of TUN devices have dropped.
    pub fn dropped_packets(&self) -> Result<u64, HostError> {
        let count = || {
            let mut routing = Routing::open()?;
            (0..self.paths).map(|path| routing.dropped_packets(&device_name(path))).sum()
        };
        let (ours, theirs): (u64, u64) = (self.sender.within(count)?, self.receiver.within(count)?);
        Ok(ours + theirs)
    }
}

/// The address of one end of a path.
pub fn address(path: usize, end: End, family: Family) -> IpAddr {
    let host = if end == End::Sender { 1 } else { 2 };
    match family {
        Family::V4 => Ipv4Addr::new(10, 64 + (path >> 8) as u8, path as u8, host).into(),
        Family::V6 => {
            Ipv6Addr::new(0xfd6b, 0x6e65, 0x6500, path as u16, 0, 0, 0, u16::from(host)).into()
        }
    }
}

/// The path to which an address of [`address`] belongs; none: another's.
pub fn path_of(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(v4) => {
            let [_, high, low, _] = v4.octets();
            Some(usize::from(high.checked_sub(64)?) << 8 | usize::from(low))
        }
        IpAddr::V6(v6) => Some(usize::from(v6.segments()[3])),
    }
}

fn device_name(path: usize) -> String {
    format!("knee{path}")
}

fn set_up(settings: &Settings, end: End) -> Result<Vec<Tun>, HostError> {
    set_sysctls(settings)?;
    let mut routing = Routing::open()?;
    routing.bring_up_loopback()?;
    let paths = settings.paths.iter().enumerate();
    let devices = paths.map(|(path, plan)| set_up_path(&mut routing, path, plan, end));
    let devices = devices.collect::<Result<_, _>>()?;
    if let Some(flow) = settings.flows.iter().find(|flow| flow.is_multipath()) {
        mptcp::allow_subflows()?;
        if end == End::Receiver {
            let joined = flow.multipath[1..].iter().map(|path| Announced {
                address: address(*path, end, flow.family),
                backup: flow.backup.contains(path),
            });
            let joined: Vec<Announced> = joined.collect();
            mptcp::announce(&joined)?;
        }
    }
    Ok(devices)
}

fn set_up_path(
    routing: &mut Routing,
    path: usize,
    plan: &PathSettings,
    end: End,
) -> Result<Tun, HostError> {
    let name = device_name(path);
    let tun = Tun::create(&name)?;
    let interface = routing.find(&name)?;
    routing.bring_up(interface, plan.mtu, QUEUE_PACKETS)?;
    routing.add_address(interface, address(path, end, Family::V4), 24)?;
    if plan.v6 {
        routing.add_address(interface, address(path, end, Family::V6), 64)?;
    }
    Ok(tun)
}

/// All of these are the namespace's own.
fn set_sysctls(settings: &Settings) -> Result<(), HostError> {
    let switch = |on: bool| if on { "1" } else { "0" };
    set_sysctl("net.ipv4.tcp_rmem", &format!("4096 131072 {SOCKET_BYTES_MAX}"))?;
    set_sysctl("net.ipv4.tcp_wmem", &format!("4096 16384 {SOCKET_BYTES_MAX}"))?;
    // What one connection learned of the path must not help the next.
    set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
    set_sysctl("net.ipv4.tcp_timestamps", switch(settings.timestamps))?;
    set_sysctl("net.ipv4.tcp_ecn", switch(settings.ecn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_tells_its_path() {
        for path in [0, 1, 255, 256, 1000] {
            for (end, family) in [(End::Sender, Family::V4), (End::Receiver, Family::V6)] {
                assert_eq!(path_of(address(path, end, family)), Some(path));
            }
        }
        assert_eq!(path_of(Ipv4Addr::new(10, 0, 0, 1).into()), None);
    }
}
