//! Contents of the rules. A rule is a list of expressions: each loads something into a register or
//! compares it, and the rule ends at the first comparison that fails.

use super::message::{Attributes, Batch, NewObject};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// Hooks of linux/netfilter.h, and priorities of chains there (linux/netfilter_ipv4.h): destination
/// translation and filtering.
const FORWARD: u32 = 2;
const OUTPUT: u32 = 3;
const TRANSLATION: i32 = -100;
const FILTER: i32 = 0;
/// Verdicts.
const ACCEPT: i32 = 1;
const RETURN: i32 = -5;
/// Register for all values; register zero holds the verdict.
const REGISTER: u32 = 1;
/// Keys of packet metadata: network family and transport protocol.
const FAMILY: u32 = 15;
const PROTOCOL: u32 = 16;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = libc::IPPROTO_TCP as u8;
const UDP: u8 = libc::IPPROTO_UDP as u8;
const ICMPV6: u8 = libc::IPPROTO_ICMPV6 as u8;
/// Bases of header accesses.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// `RTN_LOCAL`: an address of this host.
const LOCAL: u32 = 2;
/// Comparisons.
const EQUAL: u32 = 0;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;
/// DNS (RFC 1035, section 4.2).
const DNS: u16 = 53;
/// Traffic that obtains addresses for links: ports of DHCP (RFC 2131, section 4.1; RFC 8415,
/// section 7.2), local and remote, and types of ICMPv6 for multicast groups (RFC 2710, RFC 3810)
/// and neighbour discovery (RFC 4861).
const DHCP: [(u16, u16); 2] = [(68, 67), (546, 547)];
const NEIGHBOURS: [(u8, u8); 2] = [(130, 137), (143, 143)];

/// What is diverted, where to, and what is not.
#[derive(Clone, Debug)]
pub struct DiversionSettings {
    /// Server; UDP to it passes.
    pub server: SocketAddr,
    /// Prefixes to which everything but DNS passes.
    pub except: Vec<IpNet>,
    /// Local ports for TCP over IPv4 and IPv6; if absent, it is refused.
    pub tcp: [Option<u16>; 2],
    /// Local ports for DNS over UDP and TCP, in the same order.
    pub dns: [Option<u16>; 2],
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
        // Forwarded traffic was not sent by this host, but would leave by its links too.
        for (name, hook) in [("gate", OUTPUT), ("passage", FORWARD)] {
            self.chain(name, "filter", hook, FILTER);
            self.rule(name, own_host(ACCEPT));
            if hook == OUTPUT {
                self.rule(name, to_server(settings.server, ACCEPT));
                addressing().for_each(|rule| self.rule(name, rule));
            }
            // Questions to an excepted resolver would reveal the names.
            for protocol in [UDP, TCP] {
                self.rule(name, Rule::default().protocol(protocol).sent_to_port(DNS).reject());
            }
            excepted(settings, ACCEPT).for_each(|rule| self.rule(name, rule));
            self.rule(name, Rule::default().reject());
        }
    }

    /// Writes the chain that translates destinations.
    fn divert(&mut self, settings: &DiversionSettings) {
        let name = "divert";
        self.chain(name, "nat", OUTPUT, TRANSLATION);
        self.rule(name, own_host(RETURN));
        self.rule(name, to_server(settings.server, RETURN));
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
fn to_server(server: SocketAddr, verdict: i32) -> Rule {
    let host = IpNet::from(server.ip());
    Rule::default().sent_to(host).protocol(UDP).sent_to_port(server.port()).then(verdict)
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
        // Asks for the type (3) of the destination address (2), which the kernel returns in host
        // byte order.
        let data = Attributes::default().number(1, REGISTER).number(2, 3).number(3, 2);
        self.expression("fib", data).compare(EQUAL, &LOCAL.to_ne_bytes())
    }

    fn then(self, verdict: i32) -> Rule {
        let code = Attributes::default().number(1, verdict as u32);
        let verdict = Attributes::default().nested(2, code);
        self.expression("immediate", Attributes::default().number(1, 0).nested(2, verdict))
    }

    /// Redirects to a local port.
    fn redirect(self, port: u16) -> Rule {
        let port = Attributes::default().bytes(1, &port.to_be_bytes());
        let loaded = Attributes::default().number(1, REGISTER).nested(2, port);
        // The register holds the first port of the range; flag 2 says that the range is given.
        let redirect = Attributes::default().number(1, REGISTER).number(3, 2);
        self.expression("immediate", loaded).expression("redir", redirect)
    }

    /// Rejects with "administratively prohibited", so that the sender gets an error.
    fn reject(self) -> Rule {
        self.expression("reject", Attributes::default().number(1, 2).bytes(2, &[3]))
    }
}
