//! Addresses, sizes and counters of network devices, over netlink, in the namespace of the calling
//! thread.

use crate::HostError;
use crate::netlink::Netlink;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// A network device, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(u32);

/// A connection to the kernel's network devices and their addresses (rtnetlink(7)).
pub struct Routing {
    netlink: Netlink,
}

impl Routing {
    /// Opens a connection, bound to the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn open() -> Result<Routing, HostError> {
        let netlink = Netlink::open(NETLINK_ROUTE)
            .map_err(|source| HostError::call("open a netlink socket", source))?;
        Ok(Routing { netlink })
    }

    /// Returns the device of that name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn find(&mut self, name: &str) -> Result<Interface, HostError> {
        let (link, _) = self.get(name)?;
        Ok(Interface(link.header.index))
    }

    /// Sets MTU (IP bytes) and queue length (packets) and brings the device up.
    ///
    /// # Errors
    ///
    /// If the process lacks CAP_NET_ADMIN in the namespace.
    pub fn bring_up(
        &mut self,
        interface: Interface,
        mtu: u32,
        queue_packets: u32,
    ) -> Result<(), HostError> {
        let mut message = link_message(interface);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes =
            vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(queue_packets)];
        self.change("bring up a network device", RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Brings up the loopback device.
    ///
    /// # Errors
    ///
    /// The errors of [`Routing::bring_up`].
    pub fn bring_up_loopback(&mut self) -> Result<(), HostError> {
        let mut message = link_message(Interface(1));
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change("bring up loopback", RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Adds an address to a device, through which its subnet is then reached.
    ///
    /// # Errors
    ///
    /// The errors of [`Routing::bring_up`], and an address that the device already has.
    pub fn add_address(
        &mut self,
        interface: Interface,
        address: IpAddr,
        prefix_len: u8,
    ) -> Result<(), HostError> {
        let mut message = AddressMessage::default();
        message.header.index = interface.0;
        message.header.prefix_len = prefix_len;
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        // The link has no other host, so duplicate address detection is pointless.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.change(
            "set the address of a network device",
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Returns the number of packets that did not fit into the queue of a device.
    ///
    /// # Errors
    ///
    /// If there is no device of that name.
    pub fn dropped_packets(&mut self, name: &str) -> Result<u64, HostError> {
        let (_, attributes) = self.get(name)?;
        let stats = attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats.tx_dropped),
            _ => None,
        });
        Ok(stats.unwrap_or(0))
    }

    fn get(&mut self, name: &str) -> Result<(LinkMessage, Vec<LinkAttribute>), HostError> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        let what = "look up a network device";
        match self.netlink.ask(RouteNetlinkMessage::GetLink(message), 0) {
            Ok(Some(RouteNetlinkMessage::NewLink(mut link))) => {
                let attributes = std::mem::take(&mut link.attributes);
                Ok((link, attributes))
            }
            Ok(_) => Err(HostError::call(what, io::ErrorKind::InvalidData)),
            Err(source) => Err(HostError::call(what, source)),
        }
    }

    /// Returns everything that the kernel lists for a request.
    pub(crate) fn listed(
        &mut self,
        request: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, HostError> {
        let listed = self.netlink.list(request);
        listed.map_err(|source| HostError::call("list the links of this host", source))
    }

    fn change(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), HostError> {
        self.netlink
            .ask(message, NLM_F_ACK | flags)
            .map(|_| ())
            .map_err(|source| HostError::refused(what, source, "run as root (CAP_NET_ADMIN)"))
    }
}

fn link_message(interface: Interface) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = interface.0;
    message
}
