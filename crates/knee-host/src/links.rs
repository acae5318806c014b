//! Links of a host: its interfaces, and whether they lead to other hosts.

use crate::HostError;
use crate::interface::Routing;
use crate::netlink::Netlink;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Name of the interface.
    pub name: String,
    /// Whether it is up and has a carrier.
    pub is_up: bool,
    /// Whether its type is that of a physical link (Ethernet, raw IP or PPP), unlike that of a
    /// tunnel or of loopback.
    pub is_physical: bool,
    /// Addresses with more than link scope.
    pub addresses: BTreeSet<IpAddr>,
    /// Whether a default route leads through it, in any table.
    pub has_default_route: bool,
}

impl Routing {
    /// Returns the interfaces of the namespace, ordered by index.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn links(&mut self) -> Result<Vec<Link>, HostError> {
        let mut links = BTreeMap::new();
        for message in self.listed(RouteNetlinkMessage::GetLink(LinkMessage::default()))? {
            let RouteNetlinkMessage::NewLink(message) = message else { continue };
            let header = &message.header;
            let name = message.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name.clone()),
                _ => None,
            });
            let Some(name) = name else { continue };
            let link = Link {
                name,
                is_up: header.flags.contains(LinkFlags::Up | LinkFlags::Running),
                is_physical: matches!(
                    header.link_layer_type,
                    LinkLayerType::Ether | LinkLayerType::Rawip | LinkLayerType::Ppp
                ),
                addresses: BTreeSet::new(),
                has_default_route: false,
            };
            links.insert(header.index, link);
        }
        for (index, scope, address) in self.all_addresses()? {
            if let Some(link) = links.get_mut(&index).filter(|_| scope == AddressScope::Universe) {
                link.addresses.insert(address);
            }
        }
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RouteMessage::default();
            request.header.address_family = family;
            for message in self.listed(RouteNetlinkMessage::GetRoute(request))? {
                let RouteNetlinkMessage::NewRoute(message) = message else { continue };
                let header = &message.header;
                if header.destination_prefix_length > 0 || header.kind != RouteType::Unicast {
                    continue;
                }
                for attribute in &message.attributes {
                    if let RouteAttribute::Oif(index) = attribute
                        && let Some(link) = links.get_mut(index)
                    {
                        link.has_default_route = true;
                    }
                }
            }
        }
        Ok(links.into_values().collect())
    }

    /// Returns the addresses of the namespace, whatever their scope.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn addresses(&mut self) -> Result<BTreeSet<IpAddr>, HostError> {
        Ok(self.all_addresses()?.into_iter().map(|(_, _, address)| address).collect())
    }

    /// Returns the addresses of the namespace, each with the index of its interface and its scope.
    fn all_addresses(&mut self) -> Result<Vec<(u32, AddressScope, IpAddr)>, HostError> {
        let mut all = Vec::new();
        for message in self.listed(RouteNetlinkMessage::GetAddress(AddressMessage::default()))? {
            let RouteNetlinkMessage::NewAddress(message) = message else { continue };
            let attributes = message.attributes.iter();
            // On a point-to-point interface IFA_ADDRESS is the peer's.
            let local = attributes.clone().find_map(|attribute| match attribute {
                AddressAttribute::Local(address) => Some(*address),
                _ => None,
            });
            let address = attributes.clone().find_map(|attribute| match attribute {
                AddressAttribute::Address(address) => Some(*address),
                _ => None,
            });
            let address =
                local.or(address).map(|it| (message.header.index, message.header.scope, it));
            all.extend(address);
        }
        Ok(all)
    }
}

/// RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE and RTNLGRP_IPV6_ROUTE (linux/rtnetlink.h).
const LINKS_AND_ROUTES: [u32; 3] = [1, 7, 11];
/// RTNLGRP_IPV4_IFADDR and RTNLGRP_IPV6_IFADDR.
const ADDRESSES: [u32; 2] = [5, 9];

/// Notifications about links, addresses and routes that change.
pub struct LinkChanges {
    netlink: Netlink,
}

impl LinkChanges {
    /// Starts listening in the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn listen() -> Result<LinkChanges, HostError> {
        LinkChanges::of(LINKS_AND_ROUTES.into_iter().chain(ADDRESSES))
    }

    /// Starts listening for changes of addresses alone: a router's routes change all the time.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn listen_for_addresses() -> Result<LinkChanges, HostError> {
        LinkChanges::of(ADDRESSES)
    }

    fn of(groups: impl IntoIterator<Item = u32>) -> Result<LinkChanges, HostError> {
        let call = |source: io::Error| HostError::call("listen for changes of links", source);
        let mut netlink = Netlink::open(NETLINK_ROUTE).map_err(call)?;
        for group in groups {
            netlink.join(group).map_err(call)?;
        }
        Ok(LinkChanges { netlink })
    }

    /// Waits for a change. Returns false if there was none in that time, or on a signal.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn wait(&mut self, patience: Duration) -> Result<bool, HostError> {
        let heard = self.netlink.heard(patience);
        heard.map_err(|source| HostError::call("listen for changes of links", source))
    }
}
