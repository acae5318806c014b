//! Contents of the rules. A rule is a list of expressions: each loads something into a register or
//! compares it, and the rule ends at the first comparison that fails.

use super::local::{REPLY_MARK, ROUTING_MARK};
use super::message::{Attributes, Batch, NewObject};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Hooks of linux/netfilter.h, and priorities of chains there (linux/netfilter_ipv4.h): marking,
/// destination translation and filtering.
const PREROUTING: u32 = 0;
const FORWARD: u32 = 2;
const OUTPUT: u32 = 3;
const MANGLE: i32 = -150;
const TRANSLATION: i32 = -100;
const FILTER: i32 = 0;
/// Verdicts.
const DROP: i32 = 0;
const ACCEPT: i32 = 1;
const RETURN: i32 = -5;
/// Register for all values, and one for the port that belongs to an address; register zero holds the
/// verdict.
const REGISTER: u32 = 1;
const SECOND: u32 = 2;
/// Keys of packet metadata: mark, names of the interfaces, network family and transport protocol.
const MARK: u32 = 3;
const INTERFACE_IN: u32 = 6;
const INTERFACE_OUT: u32 = 7;
const FAMILY: u32 = 15;
const PROTOCOL: u32 = 16;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = libc::IPPROTO_TCP as u8;
const UDP: u8 = libc::IPPROTO_UDP as u8;
const ICMP: u8 = libc::IPPROTO_ICMP as u8;
const ICMPV6: u8 = libc::IPPROTO_ICMPV6 as u8;
/// Family, protocol, and types of echo request and reply (RFC 792, RFC 4443).
const ECHOES: [(u8, u8, u8, u8); 2] = [(IPV4, ICMP, 8, 0), (IPV6, ICMPV6, 128, 129)];
/// Bases of header accesses.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// What the kernel is asked about a destination: the name of the interface to it, or the type of the
/// address. `RTN_LOCAL` is one of this host, `RTN_BROADCAST` to `RTN_MULTICAST` are for several.
const TO_INTERFACE: u32 = 2;
const TYPE: u32 = 3;
const LOCAL: u32 = 2;
const SEVERAL: [u32; 3] = [3, 4, 5];
/// Length of an interface's name in a register (IFNAMSIZ).
const NAME_BYTES: usize = 16;
/// Comparisons.
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
/// DNS (RFC 1035, section 4.2).
const DNS: u16 = 53;
/// Traffic that obtains addresses for links: ports of DHCP (RFC 2131, section 4.1; RFC 8415,
/// section 7.2), local and remote, and types of ICMPv6 for multicast groups (RFC 2710, RFC 3810)
/// and neighbour discovery (RFC 4861).
const DHCP: [(u16, u16); 2] = [(68, 67), (546, 547)];
const NEIGHBOURS: [(u8, u8); 2] = [(130, 137), (143, 143)];

/// Addresses of a link, for which nobody forwards (RFC 3927, RFC 4291).
const OF_LINKS: [&str; 2] = ["169.254.0.0/16", "fe80::/10"];

/// What is diverted, where to, and what is not. Ports are those of this process on loopback, over IPv4
/// and IPv6; what has none is refused.
#[derive(Clone, Debug, Default)]
pub struct DiversionSettings {
    /// Server; UDP to it passes.
    pub server: Option<SocketAddr>,
    /// Prefixes to which everything but DNS passes.
    pub except: Vec<IpNet>,
    /// Interfaces of the house, for whose machines this host forwards.
    pub lan: Vec<String>,
    /// Ports for this host's TCP.
    pub tcp: [Option<u16>; 2],
    /// Ports for this host's DNS, over UDP and TCP.
    pub dns: [Option<u16>; 2],
    /// Ports for UDP, of this host and of the house: transparent sockets.
    pub udp: [Option<u16>; 2],
    /// Ports for TCP of the house: transparent sockets.
    pub lan_tcp: [Option<u16>; 2],
    /// Whether echo requests are taken, of this host and of the house: by raw sockets.
    pub ping: bool,
}

/// Writes the requests that make a table.
pub struct Writer<'a> {
    pub table: &'a str,
    pub flags: u32,
    pub batch: &'a mut Batch,
}

impl Writer<'_> {
    /// Writes table, chains and rules.
    pub fn write(&mut self, settings: &DiversionSettings) {
        let table = Attributes::default().text(1, self.table).number(2, self.flags);
        self.batch.make(NewObject::Table, table);
        self.divert(settings);
        self.mark(settings);
        self.take(settings);
        // Forwarded traffic was not sent by this host, but would leave by its links too.
        for (name, hook) in [("gate", OUTPUT), ("passage", FORWARD)] {
            self.chain(name, "filter", hook, FILTER);
            if hook == OUTPUT {
                self.replies(settings);
            }
            self.rule(name, own_host(ACCEPT));
            if hook == OUTPUT {
                to_server(settings, ACCEPT).for_each(|rule| self.rule(name, rule));
                addressing().for_each(|rule| self.rule(name, rule));
                self.rule(name, Rule::default().marked().then(ACCEPT));
            }
            to_the_house(settings, hook, ACCEPT).for_each(|rule| self.rule(name, rule));
            // Questions to an excepted resolver would reveal the names.
            for protocol in [UDP, TCP] {
                self.rule(name, Rule::default().protocol(protocol).sent_to_port(DNS).reject());
            }
            excepted(settings, ACCEPT).for_each(|rule| self.rule(name, rule));
            self.rule(name, Rule::default().reject());
        }
    }

    /// Writes the rules for replies to echo requests: this process sends them, and over IPv6 the
    /// kernel would too, in the name of the destination.
    fn replies(&mut self, settings: &DiversionSettings) {
        if settings.ping {
            self.rule("gate", Rule::default().with_mark(REPLY_MARK).then(ACCEPT));
            for (family, protocol, _, reply) in ECHOES {
                let echo = Rule::default().icmp(family, protocol, reply);
                self.rule("gate", echo.sent_by_another().then(DROP));
            }
        }
    }

    /// Writes the chain that marks this host's UDP and echo requests, so that they are routed to this
    /// host itself.
    fn mark(&mut self, settings: &DiversionSettings) {
        let name = "marking";
        self.chain(name, "route", OUTPUT, MANGLE);
        self.rule(name, own_host(RETURN));
        to_server(settings, RETURN).for_each(|rule| self.rule(name, rule));
        addressing().for_each(|rule| self.rule(name, rule));
        for_links_and_several(RETURN).for_each(|rule| self.rule(name, rule));
        to_the_house(settings, OUTPUT, RETURN).for_each(|rule| self.rule(name, rule));
        excepted(settings, RETURN).for_each(|rule| self.rule(name, rule));
        for (family, port) in [IPV4, IPV6].into_iter().zip(settings.udp) {
            if port.is_some() {
                let udp = Rule::default().family(family).protocol(UDP);
                // DNS has a port of its own.
                self.rule(name, udp.clone().sent_to_port(DNS).then(RETURN));
                self.rule(name, udp.mark());
            }
        }
        for (family, protocol, request, _) in ECHOES.into_iter().filter(|_| settings.ping) {
            self.rule(name, Rule::default().icmp(family, protocol, request).mark());
        }
    }

    /// Writes the chain that hands datagrams, and connections of the house, to this process.
    fn take(&mut self, settings: &DiversionSettings) {
        let name = "take";
        self.chain(name, "filter", PREROUTING, MANGLE);
        for (family, port) in [IPV4, IPV6].into_iter().zip(settings.udp) {
            let Some(port) = port else { continue };
            let own = Rule::default().marked().received_on("lo").family(family).protocol(UDP);
            self.rule(name, own.hand_to(family, port).then(ACCEPT));
        }
        if settings.lan.is_empty() {
            return;
        }
        self.rule(name, own_host(ACCEPT));
        for_links_and_several(ACCEPT).for_each(|rule| self.rule(name, rule));
        for lan in &settings.lan {
            self.rule(name, Rule::default().leads_to(lan).then(ACCEPT));
        }
        excepted(settings, ACCEPT).for_each(|rule| self.rule(name, rule));
        for lan in &settings.lan {
            for (family, protocol, request, _) in ECHOES.into_iter().filter(|_| settings.ping) {
                let theirs = Rule::default().received_on(lan).icmp(family, protocol, request);
                self.rule(name, theirs.mark().then(ACCEPT));
            }
            for (protocol, ports) in [(TCP, settings.lan_tcp), (UDP, settings.udp)] {
                for (family, port) in [IPV4, IPV6].into_iter().zip(ports) {
                    let Some(port) = port else { continue };
                    let theirs = Rule::default().received_on(lan).family(family).protocol(protocol);
                    self.rule(name, theirs.hand_to(family, port).mark().then(ACCEPT));
                }
            }
        }
    }

    /// Writes the chain that translates destinations.
    fn divert(&mut self, settings: &DiversionSettings) {
        let name = "divert";
        self.chain(name, "nat", OUTPUT, TRANSLATION);
        self.rule(name, own_host(RETURN));
        to_server(settings, RETURN).for_each(|rule| self.rule(name, rule));
        to_the_house(settings, OUTPUT, RETURN).for_each(|rule| self.rule(name, rule));
        for (family, port) in [IPV4, IPV6].into_iter().zip(settings.dns) {
            let Some(port) = port else { continue };
            for protocol in [UDP, TCP] {
                let rule = Rule::default().family(family).protocol(protocol).sent_to_port(DNS);
                self.rule(name, rule.redirect(port));
            }
        }
        excepted(settings, RETURN).for_each(|rule| self.rule(name, rule));
        for (family, port) in [IPV4, IPV6].into_iter().zip(settings.tcp) {
            let Some(port) = port else { continue };
            self.rule(name, Rule::default().family(family).protocol(TCP).redirect(port));
        }
    }

    fn chain(&mut self, name: &str, kind: &str, hook: u32, priority: i32) {
        let at = Attributes::default().number(1, hook).number(2, priority as u32);
        let chain = Attributes::default().text(1, self.table).text(3, name).nested(4, at);
        self.batch.make(NewObject::Chain, chain.number(5, ACCEPT as u32).text(7, kind));
    }

    fn rule(&mut self, chain: &str, rule: Rule) {
        let said = Attributes::default().text(1, self.table).text(2, chain);
        self.batch.make(NewObject::Rule, said.nested(4, rule.0));
    }
}

/// Matches traffic that stays on this host.
fn own_host(verdict: i32) -> Rule {
    Rule::default().sent_to_this_host().then(verdict)
}

/// Matches the bundle's own traffic.
fn to_server(settings: &DiversionSettings, verdict: i32) -> impl Iterator<Item = Rule> {
    settings.server.into_iter().map(move |server| {
        let host = Rule::default().sent_to(IpNet::from(server.ip()));
        host.protocol(UDP).sent_to_port(server.port()).then(verdict)
    })
}

/// Matches traffic to the house, of this host or within the house.
fn to_the_house(
    settings: &DiversionSettings,
    hook: u32,
    verdict: i32,
) -> impl Iterator<Item = Rule> {
    let inside = |rule: Rule| match hook {
        FORWARD => settings.lan.iter().map(|lan| rule.clone().received_on(lan)).collect(),
        _ => vec![rule],
    };
    let to = |lan: &String| inside(Rule::default().sent_on(lan));
    let all: Vec<Rule> = settings.lan.iter().flat_map(to).collect();
    all.into_iter().map(move |rule| rule.then(verdict))
}

/// Matches what is for several hosts, or for neighbours on a link.
fn for_links_and_several(verdict: i32) -> impl Iterator<Item = Rule> {
    let several = SEVERAL.into_iter().map(|kind| Rule::default().sent_to_type(kind));
    let of_links = OF_LINKS.into_iter().filter_map(|prefix| prefix.parse().ok());
    several
        .chain(of_links.map(|prefix| Rule::default().sent_to(prefix)))
        .map(move |rule| rule.then(verdict))
}

fn excepted(settings: &DiversionSettings, verdict: i32) -> impl Iterator<Item = Rule> {
    settings.except.iter().map(move |prefix| Rule::default().sent_to(*prefix).then(verdict))
}

/// Matches the traffic without which links get no addresses.
fn addressing() -> impl Iterator<Item = Rule> {
    let dhcp = DHCP.into_iter().map(|(from, to)| {
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        Rule::default().protocol(UDP).load(TRANSPORT, 0, 4).compare(EQUAL, &ports)
    });
    let neighbours = NEIGHBOURS.into_iter().map(|(first, last)| {
        let kind = Rule::default().family(IPV6).protocol(ICMPV6).load(TRANSPORT, 0, 1);
        kind.compare(AT_LEAST, &[first]).compare(AT_MOST, &[last])
    });
    dhcp.chain(neighbours).map(|rule| rule.then(ACCEPT))
}

/// The expressions of a rule.
#[derive(Clone, Default)]
struct Rule(Attributes);

impl Rule {
    fn expression(self, name: &str, data: Attributes) -> Rule {
        let expression = Attributes::default().text(1, name).nested(2, data);
        Rule(self.0.nested(1, expression))
    }

    fn compare(self, how: u32, value: &[u8]) -> Rule {
        let value = Attributes::default().bytes(1, value);
        let data = Attributes::default().number(1, REGISTER).number(2, how).nested(3, value);
        self.expression("cmp", data)
    }

    fn meta(self, key: u32) -> Rule {
        self.expression("meta", Attributes::default().number(1, REGISTER).number(2, key))
    }

    fn family(self, family: u8) -> Rule {
        self.meta(FAMILY).compare(EQUAL, &[family])
    }

    fn protocol(self, protocol: u8) -> Rule {
        self.meta(PROTOCOL).compare(EQUAL, &[protocol])
    }

    fn load(self, header: u32, offset: u32, len: u32) -> Rule {
        let data = Attributes::default().number(1, REGISTER).number(2, header);
        self.expression("payload", data.number(3, offset).number(4, len))
    }

    /// Ports have the same offset in UDP and TCP.
    fn sent_to_port(self, port: u16) -> Rule {
        self.load(TRANSPORT, 2, 2).compare(EQUAL, &port.to_be_bytes())
    }

    /// Matches destinations in a prefix, by masking the other bits.
    fn sent_to(self, prefix: IpNet) -> Rule {
        let bytes = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let (network, mask) = (bytes(prefix.network()), bytes(prefix.netmask()));
        let (family, offset) = if mask.len() == 4 { (IPV4, 16) } else { (IPV6, 24) };
        let len = mask.len() as u32;
        let data = |value: &[u8]| Attributes::default().bytes(1, value);
        let masked = Attributes::default().number(1, REGISTER).number(2, REGISTER).number(3, len);
        let masked = masked.nested(4, data(&mask)).nested(5, data(&vec![0; mask.len()]));
        let loaded = self.family(family).load(NETWORK, offset, len);
        loaded.expression("bitwise", masked).compare(EQUAL, &network)
    }

    fn sent_to_this_host(self) -> Rule {
        self.sent_to_type(LOCAL)
    }

    /// Asks the kernel about the destination (2).
    fn asked(self, what: u32) -> Rule {
        let data = Attributes::default().number(1, REGISTER).number(2, what).number(3, 2);
        self.expression("fib", data)
    }

    fn sent_to_type(self, kind: u32) -> Rule {
        // The kernel returns it in host byte order.
        self.asked(TYPE).compare(EQUAL, &kind.to_ne_bytes())
    }

    fn named(self, name: &str) -> Rule {
        let mut padded = [0; NAME_BYTES];
        let len = name.len().min(NAME_BYTES - 1);
        padded[..len].copy_from_slice(&name.as_bytes()[..len]);
        self.compare(EQUAL, &padded)
    }

    /// Matches destinations to which an interface leads.
    fn leads_to(self, name: &str) -> Rule {
        self.asked(TO_INTERFACE).named(name)
    }

    fn received_on(self, name: &str) -> Rule {
        self.meta(INTERFACE_IN).named(name)
    }

    fn sent_on(self, name: &str) -> Rule {
        self.meta(INTERFACE_OUT).named(name)
    }

    fn marked(self) -> Rule {
        self.with_mark(ROUTING_MARK)
    }

    fn with_mark(self, mark: u32) -> Rule {
        self.meta(MARK).compare(EQUAL, &mark.to_ne_bytes())
    }

    fn icmp(self, family: u8, protocol: u8, kind: u8) -> Rule {
        self.family(family).protocol(protocol).load(TRANSPORT, 0, 1).compare(EQUAL, &[kind])
    }

    /// Matches packets whose source is no address of this host. Asks for the type of the source (1).
    fn sent_by_another(self) -> Rule {
        let data = Attributes::default().number(1, REGISTER).number(2, TYPE).number(3, 1);
        self.expression("fib", data).compare(UNEQUAL, &LOCAL.to_ne_bytes())
    }

    fn value(self, register: u32, value: &[u8]) -> Rule {
        let value = Attributes::default().bytes(1, value);
        let data = Attributes::default().number(1, register).nested(2, value);
        self.expression("immediate", data)
    }

    /// Sets the mark.
    fn mark(self) -> Rule {
        let data = Attributes::default().number(2, MARK).number(3, REGISTER);
        self.value(REGISTER, &ROUTING_MARK.to_ne_bytes()).expression("meta", data)
    }

    /// Hands packets to a transparent socket of a port on loopback.
    fn hand_to(self, family: u8, port: u16) -> Rule {
        let loaded = if family == IPV4 {
            self.value(REGISTER, &Ipv4Addr::LOCALHOST.octets())
        } else {
            self.value(REGISTER, &Ipv6Addr::LOCALHOST.octets())
        };
        let data = Attributes::default().number(1, family.into()).number(2, REGISTER);
        loaded.value(SECOND, &port.to_be_bytes()).expression("tproxy", data.number(3, SECOND))
    }

    fn then(self, verdict: i32) -> Rule {
        let code = Attributes::default().number(1, verdict as u32);
        let verdict = Attributes::default().nested(2, code);
        self.expression("immediate", Attributes::default().number(1, 0).nested(2, verdict))
    }

    /// Redirects to a local port.
    fn redirect(self, port: u16) -> Rule {
        // The register holds the first port of the range; flag 2 says that the range is given.
        let redirect = Attributes::default().number(1, REGISTER).number(3, 2);
        self.value(REGISTER, &port.to_be_bytes()).expression("redir", redirect)
    }

    /// Rejects with "administratively prohibited", so that the sender gets an error.
    fn reject(self) -> Rule {
        self.expression("reject", Attributes::default().number(1, 2).bytes(2, &[3]))
    }
}
