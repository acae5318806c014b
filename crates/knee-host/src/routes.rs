//! Routes, and the rules that choose a routing table (ip-route(8), ip-rule(8)), over rtnetlink, in
//! the namespace of the calling thread.

use crate::HostError;
use crate::netlink::Netlink;
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::net::if_::if_indextoname;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Default routing table.
pub const TABLE_MAIN: u32 = 254;

/// `RTAX_CC_ALGO` of linux/rtnetlink.h; its bit says that programs must not choose.
const CONTROLLER_LOCK: u32 = 1 << 16;
/// Flags of a request that makes something new.
const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// `RTNLGRP_IPV4_ROUTE` and `RTNLGRP_IPV6_ROUTE`.
const ROUTE_GROUPS: [u32; 2] = [7, 11];

/// A route of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    message: RouteMessage,
    destination: IpNet,
}

impl Route {
    /// Reads a message, or returns `None` for a route that a table of unicast routes cannot hold.
    fn of(message: RouteMessage) -> Option<Route> {
        let unspecified: IpAddr = match message.header.address_family {
            AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
            AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => return None,
        };
        let address = message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => Some((*address).into()),
            RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some((*address).into()),
            _ => None,
        });
        let length = message.header.destination_prefix_length;
        let destination = IpNet::new(address.unwrap_or(unspecified), length).ok()?;
        Some(Route { message, destination })
    }

    /// Makes a throw route: packets that match it continue with the next table.
    pub fn throw(destination: IpNet, table: u32, protocol: u8) -> Route {
        let (scope, kind) = (RouteScope::Universe, RouteType::Throw);
        let header = RouteHeader { scope, kind, ..Default::default() };
        Route::new(header, Vec::new(), destination, table, protocol)
    }

    /// Makes a route to neighbours on a network device, by its index.
    pub fn on_device(destination: IpNet, table: u32, protocol: u8, device: u32) -> Route {
        let (scope, kind) = (RouteScope::Link, RouteType::Unicast);
        let header = RouteHeader { scope, kind, ..Default::default() };
        Route::new(header, vec![RouteAttribute::Oif(device)], destination, table, protocol)
    }

    /// Copies this route's next hop for a different destination and table, with a congestion
    /// controller for connections that begin on it, in place of its own.
    pub fn with_controller(
        &self,
        destination: IpNet,
        table: u32,
        protocol: u8,
        controller: &str,
    ) -> Route {
        let mut header = self.message.header.clone();
        header.flags &= RouteFlags::Onlink;
        let by_object = self.next_hop_object().is_some();
        let mut metrics = vec![RouteMetric::CcAlgo(controller.to_string())];
        let mut attributes = Vec::new();
        for attribute in &self.message.attributes {
            match attribute {
                RouteAttribute::Metrics(own) => {
                    let others = |metric: &&RouteMetric| !matches!(metric, RouteMetric::CcAlgo(_));
                    metrics.extend(own.iter().filter(others).cloned());
                }
                RouteAttribute::Gateway(_) | RouteAttribute::Via(_) | RouteAttribute::Oif(_)
                    if by_object => {}
                RouteAttribute::Gateway(_)
                | RouteAttribute::Via(_)
                | RouteAttribute::Oif(_)
                | RouteAttribute::PrefSource(_)
                | RouteAttribute::NhId(_)
                | RouteAttribute::EncapType(_)
                | RouteAttribute::Encap(_)
                | RouteAttribute::Realm(_) => attributes.push(attribute.clone()),
                _ => {}
            }
        }
        attributes.push(RouteAttribute::Metrics(metrics));
        Route::new(header, attributes, destination, table, protocol)
    }

    fn new(
        mut header: RouteHeader,
        mut attributes: Vec<RouteAttribute>,
        destination: IpNet,
        table: u32,
        protocol: u8,
    ) -> Route {
        header.address_family = family(&destination);
        header.destination_prefix_length = destination.prefix_len();
        header.source_prefix_length = 0;
        header.tos = 0;
        header.table = RouteHeader::RT_TABLE_UNSPEC;
        header.protocol = RouteProtocol::from(protocol);
        attributes.push(RouteAttribute::Destination(destination.network().into()));
        attributes.push(RouteAttribute::Table(table));
        let mut message = RouteMessage::default();
        message.header = header;
        message.attributes = attributes;
        Route { message, destination }
    }

    /// Returns the destination.
    pub fn destination(&self) -> IpNet {
        self.destination
    }

    /// Returns the number of its table.
    pub fn table(&self) -> u32 {
        let table = self.message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Table(table) => Some(*table),
            _ => None,
        });
        table.unwrap_or(u32::from(self.message.header.table))
    }

    /// Returns its origin (`RTPROT_…` of linux/rtnetlink.h).
    pub fn protocol(&self) -> u8 {
        self.message.header.protocol.into()
    }

    /// Returns whether a routing daemon made it and may change it at any time.
    pub fn is_of_a_daemon(&self) -> bool {
        use RouteProtocol::{
            Babel, Bgp, Bird, Eigrp, Gated, Isis, Mrouted, Ospf, Rip, Xorp, Zebra,
        };
        matches!(
            self.message.header.protocol,
            Gated | Zebra | Bird | Xorp | Mrouted | Babel | Bgp | Isis | Ospf | Rip | Eigrp
        )
    }

    /// Returns the metric; of several routes to a destination, the lowest applies.
    pub fn metric(&self) -> u32 {
        let metric = self.message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Priority(metric) => Some(*metric),
            _ => None,
        });
        metric.unwrap_or(0)
    }

    /// Returns the congestion controller that it sets.
    pub fn controller(&self) -> Option<&str> {
        self.metrics().find_map(|metric| match metric {
            RouteMetric::CcAlgo(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns whether programs cannot choose a different controller.
    pub fn is_locked(&self) -> bool {
        let locked = |metric: &RouteMetric| match metric {
            RouteMetric::Lock(bits) => bits & CONTROLLER_LOCK != 0,
            _ => false,
        };
        self.metrics().any(locked)
    }

    fn metrics(&self) -> impl Iterator<Item = &RouteMetric> {
        let each = self.message.attributes.iter().filter_map(|attribute| match attribute {
            RouteAttribute::Metrics(metrics) => Some(metrics.iter()),
            _ => None,
        });
        each.flatten()
    }

    /// Returns whether it leads to other hosts.
    pub fn is_unicast(&self) -> bool {
        self.message.header.kind == RouteType::Unicast
    }

    /// Returns whether it is a throw route.
    pub fn is_throw(&self) -> bool {
        self.message.header.kind == RouteType::Throw
    }

    /// Returns whether it has several next hops that share packets or connections.
    pub fn has_several_ways(&self) -> bool {
        let several = |attribute: &RouteAttribute| matches!(attribute, RouteAttribute::MultiPath(hops) if hops.len() > 1);
        self.message.attributes.iter().any(several)
    }

    /// Returns whether it depends on more than the destination: on the source or the type of
    /// service.
    pub fn asks_for_more(&self) -> bool {
        self.message.header.source_prefix_length > 0 || self.message.header.tos != 0
    }

    fn next_hop_object(&self) -> Option<u32> {
        self.message.attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::NhId(number) => Some(*number),
            _ => None,
        })
    }

    /// Returns whether it has the same next hop as another route.
    pub fn leads_as(&self, other: &Route) -> bool {
        let hops = |route: &Route| -> Vec<RouteAttribute> {
            let is_hop = |attribute: &&RouteAttribute| {
                use RouteAttribute::{Gateway, MultiPath, Oif, Via};
                matches!(attribute, Gateway(_) | Via(_) | Oif(_) | MultiPath(_))
            };
            route.message.attributes.iter().filter(is_hop).cloned().collect()
        };
        match (self.next_hop_object(), other.next_hop_object()) {
            (None, None) => {
                let (own, others) = (hops(self), hops(other));
                own.len() == others.len() && own.iter().all(|hop| others.contains(hop))
            }
            // The kernel also lists what the object leads to.
            (own, others) => own == others,
        }
    }

    /// Formats the next hop as ip-route(8) does: `via 192.0.2.1 dev eth0`.
    pub fn way(&self) -> String {
        if let Some(object) = self.next_hop_object() {
            return format!("nhid {object}");
        }
        let mut words = Vec::new();
        for attribute in &self.message.attributes {
            match attribute {
                RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => {
                    words.push(format!("via {gateway}"));
                }
                RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => {
                    words.push(format!("via {gateway}"));
                }
                RouteAttribute::Oif(number) => {
                    let name = if_indextoname(*number).map_or(None, |name| name.into_string().ok());
                    words.push(format!("dev {}", name.unwrap_or_else(|| number.to_string())));
                }
                _ => {}
            }
        }
        words.sort_by_key(|word| word.starts_with("dev"));
        words.join(" ")
    }
}

/// A rule that directs the TCP connections of this host to a routing table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Whether it is for IPv6 rather than IPv4.
    pub ipv6: bool,
    /// Priority; rules are evaluated in ascending order.
    pub priority: u32,
    /// Number of the table.
    pub table: u32,
    /// Origin of the rule.
    pub protocol: u8,
    /// Restricts the rule to connections with this local port.
    pub local_port: Option<u16>,
}

impl Rule {
    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header.family = if self.ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        message.header.action = RuleAction::ToTable;
        message.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(RouteProtocol::from(self.protocol)),
            RuleAttribute::IpProtocol(IpProtocol::Tcp),
        ];
        message.attributes.extend(
            self.local_port.map(|port| {
                RuleAttribute::SourcePortRange(RulePortRange { start: port, end: port })
            }),
        );
        message
    }

    /// Reads a message, or returns `None` for a rule that does not direct TCP to a table.
    fn of(message: &RuleMessage) -> Option<Rule> {
        let mut rule = Rule {
            ipv6: message.header.family == AddressFamily::Inet6,
            priority: 0,
            table: u32::from(message.header.table),
            protocol: 0,
            local_port: None,
        };
        let mut tcp = false;
        for attribute in &message.attributes {
            match attribute {
                RuleAttribute::Priority(priority) => rule.priority = *priority,
                RuleAttribute::Table(table) => rule.table = *table,
                RuleAttribute::Protocol(protocol) => rule.protocol = (*protocol).into(),
                RuleAttribute::IpProtocol(protocol) => tcp = *protocol == IpProtocol::Tcp,
                RuleAttribute::SourcePortRange(ports) => rule.local_port = Some(ports.start),
                _ => {}
            }
        }
        (tcp && message.header.action == RuleAction::ToTable).then_some(rule)
    }
}

/// A connection to the kernel's routes and rules.
pub struct Routes {
    netlink: Netlink,
}

impl Routes {
    /// Opens a connection, bound to the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn open() -> Result<Routes, HostError> {
        let netlink = Netlink::open(NETLINK_ROUTE)
            .and_then(|netlink| netlink.strict().map(|()| netlink))
            .map_err(|source| HostError::call("open a netlink socket", source))?;
        Ok(Routes { netlink })
    }

    /// Returns the unicast, throw and rejecting routes of a table, IPv4 and IPv6.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn table(&mut self, table: u32) -> Result<Vec<Route>, HostError> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            message.attributes = vec![RouteAttribute::Table(table)];
            let listed = match self.netlink.list(RouteNetlinkMessage::GetRoute(message)) {
                // The table never had a route.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Vec::new(),
                Err(source) => return Err(HostError::call("list routes", source)),
                Ok(listed) => listed,
            };
            let routes = listed.into_iter().filter_map(|message| match message {
                RouteNetlinkMessage::NewRoute(message) => Route::of(message),
                _ => None,
            });
            found.extend(routes.filter(|route| route.table() == table));
        }
        Ok(found)
    }

    /// Returns the rules that direct TCP to a table, IPv4 and IPv6.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn rules(&mut self) -> Result<Vec<Rule>, HostError> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut message = RuleMessage::default();
            message.header.family = family;
            let listed = self
                .netlink
                .list(RouteNetlinkMessage::GetRule(message))
                .map_err(|source| HostError::call("list routing rules", source))?;
            found.extend(listed.iter().filter_map(|message| match message {
                RouteNetlinkMessage::NewRule(message) => Rule::of(message),
                _ => None,
            }));
        }
        Ok(found)
    }

    /// Adds a route; does not replace one with the same destination in the same table.
    ///
    /// # Errors
    ///
    /// If the kernel refuses: the controller does not exist, the next hop is unreachable, the route
    /// exists, CAP_NET_ADMIN is lacking.
    pub fn add(&mut self, route: &Route) -> Result<(), HostError> {
        let message = RouteNetlinkMessage::NewRoute(route.message.clone());
        self.change(&format!("add a route to {}", route.destination), message, NEW)
    }

    /// Replaces the route with the same destination in the same table: at any time a packet finds
    /// one of the two. Returns false if there was none.
    ///
    /// # Errors
    ///
    /// The errors of [`Routes::add`]; the former route stays.
    pub fn replace(&mut self, route: &Route) -> Result<bool, HostError> {
        let message = RouteNetlinkMessage::NewRoute(route.message.clone());
        let what = format!("replace the route to {}", route.destination);
        gone(self.change(&what, message, NLM_F_REPLACE), libc::ENOENT)
    }

    /// Removes a route. Returns false if there was none.
    ///
    /// # Errors
    ///
    /// The errors of [`Routes::add`].
    pub fn remove(&mut self, route: &Route) -> Result<bool, HostError> {
        let message = RouteNetlinkMessage::DelRoute(route.message.clone());
        let what = format!("remove the route to {}", route.destination);
        gone(self.change(&what, message, 0), libc::ESRCH)
    }

    /// Adds a rule.
    ///
    /// # Errors
    ///
    /// The errors of [`Routes::add`].
    pub fn add_rule(&mut self, rule: &Rule) -> Result<(), HostError> {
        self.change("add a routing rule", RouteNetlinkMessage::NewRule(rule.message()), NEW)
    }

    /// Removes a rule. Returns false if there was none.
    ///
    /// # Errors
    ///
    /// The errors of [`Routes::add`].
    pub fn remove_rule(&mut self, rule: &Rule) -> Result<bool, HostError> {
        let message = RouteNetlinkMessage::DelRule(rule.message());
        gone(self.change("remove a routing rule", message, 0), libc::ENOENT)
    }

    fn change(
        &mut self,
        what: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), HostError> {
        self.netlink.ask(message, NLM_F_ACK | flags).map(|_| ()).map_err(|source| {
            let advice = match source.raw_os_error() {
                Some(libc::EPERM) => "run as root (CAP_NET_ADMIN)",
                Some(libc::EEXIST) => "it exists already: remove it, or keep it",
                _ => "check the kernel's routes: ip route show table all, ip rule",
            };
            HostError::refused(what, source, advice)
        })
    }
}

/// Returns whether something was removed; `missing` is the errno if there was nothing.
fn gone(result: Result<(), HostError>, missing: i32) -> Result<bool, HostError> {
    match result {
        Ok(()) => Ok(true),
        Err(HostError::Refused { source, .. }) if source.raw_os_error() == Some(missing) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Notifications about routes that change.
pub struct RouteChanges {
    netlink: Netlink,
}

impl RouteChanges {
    /// Starts listening in the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn listen() -> Result<RouteChanges, HostError> {
        let call = |source: io::Error| HostError::call("listen for changes of routes", source);
        let mut netlink = Netlink::open(NETLINK_ROUTE).map_err(call)?;
        for group in ROUTE_GROUPS {
            netlink.join(group).map_err(call)?;
        }
        Ok(RouteChanges { netlink })
    }

    /// Waits for a change. Returns false if there was none in that time, or on a signal.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn wait(&mut self, patience: Duration) -> Result<bool, HostError> {
        let heard = self.netlink.heard(patience);
        heard.map_err(|source| HostError::call("listen for changes of routes", source))
    }
}

fn family(prefix: &IpNet) -> AddressFamily {
    match prefix {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    }
}
