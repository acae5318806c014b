//! The two hosts of a run: a namespace each, and a TUN device at both ends of each path.

use crate::TestbedError;
use knee_emulator::Tun;
use knee_host::{HostError, Namespace, Routing, raise_open_files_limit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Queue length of a TUN device, packets. A host may send a whole window at once, and no link would
/// count an overflow here.
const QUEUE_PACKETS: u32 = 50_000;

/// End of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The host at the start of every forward path.
    Sender,
    /// The host at the end of every forward path.
    Receiver,
}

/// IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, which every path has.
    V4,
    /// IPv6.
    V6,
}

/// Settings of the devices at both ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSettings {
    /// MTU, bytes.
    pub mtu: u32,
    /// Whether a flow uses IPv6.
    pub v6: bool,
}

/// Both hosts, which are removed when this is dropped.
#[derive(Debug)]
pub struct Hosts {
    /// Namespace of the host at [`End::Sender`].
    pub sender: Namespace,
    /// Namespace of the host at [`End::Receiver`].
    pub receiver: Namespace,
    paths: Vec<PathSettings>,
}

impl Hosts {
    /// Sets up both hosts, and the devices between which the emulator runs: for path p the sender's
    /// is 2p, the receiver's 2p + 1.
    ///
    /// `prepare` applies further settings of the ground: it runs once within each host, before the
    /// host has a device. Settings that need devices are applied afterwards, with
    /// [`Namespace::within`] of either host.
    ///
    /// Each connection of a run has a socket at both ends, so this also raises the process's limit of
    /// open files as far as permitted.
    ///
    /// # Errors
    ///
    /// [`TestbedError::Host`] if the host does not permit namespaces or devices, and errors of
    /// `prepare`.
    pub fn create(
        paths: &[PathSettings],
        prepare: impl Fn(End) -> Result<(), HostError> + Sync,
    ) -> Result<(Hosts, Vec<Tun>), TestbedError> {
        // Where the limit is too low for a run, the call that exceeds it reports that.
        let _ = raise_open_files_limit();
        let hosts = Hosts {
            sender: Namespace::create()?,
            receiver: Namespace::create()?,
            paths: paths.to_vec(),
        };
        let set_up = |end| {
            prepare(end)?;
            set_up_paths(paths, end)
        };
        let ours = hosts.sender.within(|| set_up(End::Sender))?;
        let theirs = hosts.receiver.within(|| set_up(End::Receiver))?;
        let devices = ours.into_iter().zip(theirs).flat_map(|(ours, theirs)| [ours, theirs]);
        Ok((hosts, devices.collect()))
    }

    /// Settings of the devices of each path.
    pub fn paths(&self) -> &[PathSettings] {
        &self.paths
    }

    /// Packets dropped by queues of TUN devices.
    pub(crate) fn dropped_packets(&self) -> Result<u64, HostError> {
        let count = || {
            let mut routing = Routing::open()?;
            (0..self.paths.len()).map(|path| routing.dropped_packets(&device_name(path))).sum()
        };
        let (ours, theirs): (u64, u64) = (self.sender.within(count)?, self.receiver.within(count)?);
        Ok(ours + theirs)
    }
}

/// Address of one end of a path.
pub fn address(path: usize, end: End, family: Family) -> IpAddr {
    let host = if end == End::Sender { 1 } else { 2 };
    match family {
        Family::V4 => Ipv4Addr::new(10, 64 + (path >> 8) as u8, path as u8, host).into(),
        Family::V6 => {
            Ipv6Addr::new(0xfd6b, 0x6e65, 0x6500, path as u16, 0, 0, 0, u16::from(host)).into()
        }
    }
}

/// The path to which an address of [`address`] belongs; `None` for other addresses.
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

fn set_up_paths(paths: &[PathSettings], end: End) -> Result<Vec<Tun>, HostError> {
    let mut routing = Routing::open()?;
    routing.bring_up_loopback()?;
    let paths = paths.iter().enumerate();
    paths.map(|(path, plan)| set_up_path(&mut routing, path, plan, end)).collect()
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
