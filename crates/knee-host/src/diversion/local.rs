//! Routing of marked packets to this host, whatever their destination: without it a packet for
//! another host never reaches a socket of this one (linux/Documentation/networking/tproxy.rst). Two
//! rules and two routes in a table of their own.
//!
//! The kernel does not remove them with the process. Nothing sets the mark without the table of
//! nf_tables, which it does remove, so those that a killed process left have no effect, and the next
//! one takes them over.

use crate::HostError;
use crate::netlink::Netlink;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::net::if_::if_nametoindex;
use std::io;

/// Mark of packets that are routed to this host: "kneb" in ASCII, so that nobody else has it.
pub(super) const ROUTING_MARK: u32 = 0x6b6e_6562;
/// Mark of what this process sends in the name of others, besides UDP, which needs none.
pub(super) const REPLY_MARK: u32 = ROUTING_MARK + 1;
/// The routing table, the priority of its rules, and the origin by which ip(8) shows them.
const TABLE: u32 = 0x6b6e;
const PRIORITY: u32 = 107;
const PROTOCOL: u8 = 222;
const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

/// Rules and routes that exist until this is dropped.
pub(super) struct LocalDelivery {
    /// Removes them in the namespace in which they were made.
    netlink: Netlink,
    /// What removes those that are this process's.
    removals: Vec<RouteNetlinkMessage>,
}

impl LocalDelivery {
    /// Makes those that do not exist yet.
    pub fn begin() -> Result<LocalDelivery, HostError> {
        let call = |source: io::Error| HostError::call("route marked packets to this host", source);
        let netlink = Netlink::open(NETLINK_ROUTE).map_err(call)?;
        let mut delivery = LocalDelivery { netlink, removals: Vec::new() };
        let mut complete = 0;
        let mut last = None;
        let loopback = if_nametoindex("lo").map_err(|error| call(error.into()))?;
        for family in FAMILIES {
            // A host may lack IPv6.
            match delivery.add(family, loopback) {
                Ok(()) => complete += 1,
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) if complete == 0 => {
                let advice =
                    "bring the interface lo up; the kernel needs CONFIG_IP_MULTIPLE_TABLES";
                Err(HostError::refused("route marked packets to this host", error, advice))
            }
            _ => Ok(delivery),
        }
    }

    fn add(&mut self, family: AddressFamily, loopback: u32) -> io::Result<()> {
        let (route, rule) = (route(family, loopback), rule(family));
        for (made, removal) in [
            (RouteNetlinkMessage::NewRoute(route.clone()), RouteNetlinkMessage::DelRoute(route)),
            (RouteNetlinkMessage::NewRule(rule.clone()), RouteNetlinkMessage::DelRule(rule)),
        ] {
            match self.netlink.ask(made, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL) {
                Ok(_) => self.removals.push(removal),
                // Of another process, which may need it.
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes over those that a killed process left. Nobody else uses them once the table of nf_tables
    /// is this process's.
    pub fn take_over(&mut self) {
        let loopback = if_nametoindex("lo").unwrap_or_default();
        self.removals = FAMILIES
            .into_iter()
            .flat_map(|family| {
                [
                    RouteNetlinkMessage::DelRoute(route(family, loopback)),
                    RouteNetlinkMessage::DelRule(rule(family)),
                ]
            })
            .collect();
    }
}

impl Drop for LocalDelivery {
    fn drop(&mut self) {
        for removal in self.removals.drain(..).rev() {
            // What is gone already needs no removal.
            let _ = self.netlink.ask(removal, NLM_F_ACK);
        }
    }
}

/// A route of all addresses to this host.
fn route(family: AddressFamily, loopback: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.kind = RouteType::Local;
    message.header.scope = RouteScope::Host;
    message.header.protocol = RouteProtocol::from(PROTOCOL);
    message.attributes = vec![RouteAttribute::Table(TABLE), RouteAttribute::Oif(loopback)];
    message
}

/// A rule that sends marked packets to the table.
fn rule(family: AddressFamily) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = family;
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Priority(PRIORITY),
        RuleAttribute::Table(TABLE),
        RuleAttribute::Protocol(RouteProtocol::from(PROTOCOL)),
        RuleAttribute::FwMark(ROUTING_MARK),
    ];
    message
}
