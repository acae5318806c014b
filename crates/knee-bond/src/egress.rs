//! Destinations that a server connects to for its clients. Whatever is not on the open Internet is
//! denied unless allowed explicitly: a server must not be a way into its own network.
//!
//! Names are resolved first, and the address that is checked is the one connected to. Sources: the
//! registries of special-purpose addresses (RFC 6890 and its updates), and the addresses of cloud
//! metadata services.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, PoisonError, RwLock};

/// Port of SMTP, the most abused.
const MAIL: u16 = 25;

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(first: u16, second: u16, third: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, third, 0, 0, 0, 0, 0), length)
}

/// Denied IPv4 prefixes, with the reason.
const DENIED_4: [(Ipv4Net, &str); 18] = [
    (v4(0, 0, 0, 0, 8), "it refers to this host or network"),
    (v4(10, 0, 0, 0, 8), PRIVATE),
    (v4(100, 64, 0, 0, 10), "it is behind a carrier's NAT"),
    (v4(127, 0, 0, 0, 8), LOOPBACK),
    (v4(168, 63, 129, 16, 32), METADATA),
    (v4(169, 254, 0, 0, 16), LINK_LOCAL),
    (v4(172, 16, 0, 0, 12), PRIVATE),
    (v4(192, 0, 0, 0, 24), RESERVED),
    (v4(192, 0, 2, 0, 24), DOCUMENTATION),
    (v4(192, 31, 196, 0, 24), RESERVED),
    (v4(192, 52, 193, 0, 24), RESERVED),
    (v4(192, 88, 99, 0, 24), RESERVED),
    (v4(192, 168, 0, 0, 16), PRIVATE),
    (v4(198, 18, 0, 0, 15), "it is for benchmarks"),
    (v4(198, 51, 100, 0, 24), DOCUMENTATION),
    (v4(203, 0, 113, 0, 24), DOCUMENTATION),
    (v4(224, 0, 0, 0, 4), MULTICAST),
    (v4(240, 0, 0, 0, 4), RESERVED),
];

/// Denied IPv6 prefixes. Anything outside global unicast (2000::/3) is denied as well.
const DENIED_6: [(Ipv6Net, &str); 9] = [
    (v6(0xfc00, 0, 0, 7), PRIVATE),
    (v6(0xfe80, 0, 0, 10), LINK_LOCAL),
    (v6(0xfec0, 0, 0, 10), PRIVATE),
    (v6(0xff00, 0, 0, 8), MULTICAST),
    // Covers Teredo (hides an IPv4 address), ORCHID (not an address), benchmarks, documentation.
    (v6(0x2001, 0, 0, 23), RESERVED),
    (v6(0x2001, 0x0db8, 0, 32), DOCUMENTATION),
    (v6(0x2620, 0x004f, 0x8000, 48), RESERVED),
    (v6(0x3fff, 0, 0, 20), DOCUMENTATION),
    (v6(0x5f00, 0, 0, 16), RESERVED),
];

const PRIVATE: &str = "it is private";
const LOOPBACK: &str = "it is the server itself";
const LINK_LOCAL: &str = "it is a link-local address, where metadata services serve secrets";
const METADATA: &str = "it is the address of a metadata service, which serves secrets";
const MULTICAST: &str = "it is multicast";
const RESERVED: &str = "it is reserved";
const DOCUMENTATION: &str = "it is for documentation";

/// What a server allows beyond the open Internet, and its own addresses.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    /// Prefixes that clients may reach although they are denied by default.
    pub allow: Vec<IpNet>,
    /// Ports that clients may reach; if empty, all but that of SMTP.
    pub ports: Vec<u16>,
    /// Addresses of the server, which may change while it runs.
    pub own: Arc<RwLock<BTreeSet<IpAddr>>>,
}

impl Egress {
    /// Returns why a client may not reach an address, or `None` if it may.
    pub fn refusal(&self, address: IpAddr, port: u16) -> Option<&'static str> {
        let is_port = if self.ports.is_empty() { port != MAIL } else { self.ports.contains(&port) };
        if !is_port || port == 0 {
            return Some("its port is not allowed");
        }
        self.refusal_of_host(address)
    }

    /// Returns why a client may not reach an address by a protocol without ports, or `None` if it may.
    pub fn refusal_of_host(&self, address: IpAddr) -> Option<&'static str> {
        let address = plain(address);
        if self.allow.iter().any(|prefix| prefix.contains(&address)) {
            return None;
        }
        // An embedded address must not bypass the rules, so both are checked.
        let inner = embedded(address);
        [Some(address), inner].into_iter().flatten().find_map(|address| self.denied(address))
    }

    fn denied(&self, address: IpAddr) -> Option<&'static str> {
        let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
        if own.iter().any(|own| plain(*own) == address) {
            return Some("it is the server's own");
        }
        match address {
            IpAddr::V4(address) => {
                DENIED_4.iter().find(|(prefix, _)| prefix.contains(&address)).map(|(_, why)| *why)
            }
            IpAddr::V6(address) => DENIED_6
                .iter()
                .find(|(prefix, _)| prefix.contains(&address))
                .map(|(_, why)| *why)
                .or_else(|| address.is_loopback().then_some(LOOPBACK))
                .or_else(|| {
                    (address.segments()[0] >> 13 != 1 && !is_nat64(address)).then_some(RESERVED)
                }),
        }
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Tests for the well-known prefix of NAT64 (RFC 6052, section 2.1).
fn is_nat64(address: Ipv6Addr) -> bool {
    address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0]
}

/// Returns the IPv4 address at which packets to an IPv6 address end up: 6to4 (RFC 3056), NAT64 (RFC
/// 6052), ISATAP (RFC 5214, section 6.1) and IPv4-compatible addresses (RFC 4291, section 2.5.5.1).
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let segments = address.segments();
    let join = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
    };
    match segments {
        [0x2002, high, low, ..] => join(high, low),
        [0, 0, 0, 0, 0, 0, high, low] => join(high, low),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => join(high, low),
        [.., high, low] if is_nat64(address) => join(high, low),
        _ => None,
    }
}
