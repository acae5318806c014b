//! Groups of prefixes, and truncation of addresses.

use crate::LiveError;
use ipnet::IpNet;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

/// Default number of address bits kept: the longest prefixes announced to the Internet.
pub(crate) const IPV4_BITS: u8 = 24;
pub(crate) const IPV6_BITS: u8 = 48;
/// Group of addresses that are in no other.
const OTHERS: &str = "others";

/// A prefix with the name of its group: `eyeballs=203.0.113.0/24`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Group name, which several prefixes may share.
    pub name: Arc<str>,
    /// The prefix.
    pub prefix: IpNet,
}

impl FromStr for Group {
    type Err = LiveError;

    fn from_str(text: &str) -> Result<Group, LiveError> {
        let wrong = |problem: &str| LiveError::Group {
            text: text.to_string(),
            problem: format!("{problem}; write NAME=PREFIX, such as office=192.0.2.0/24"),
        };
        let (name, prefix) = text.split_once('=').ok_or_else(|| wrong("it has no ="))?;
        let prefix: IpNet = prefix.parse().map_err(|_| wrong("its prefix is invalid"))?;
        if name.is_empty() || name == OTHERS {
            return Err(wrong(
                "it needs a name other than `others`, which stands for clients in no group",
            ));
        }
        if prefix != prefix.trunc() {
            let whole = prefix.trunc();
            return Err(wrong(&format!("{prefix} has bits beyond its length, unlike {whole}")));
        }
        Ok(Group { name: name.into(), prefix })
    }
}

/// Maps addresses to groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Groups in descending order of prefix length.
    groups: Vec<Group>,
    /// Name of addresses that are in none of them.
    rest: Arc<str>,
}

impl Groups {
    /// Creates groups; the longest matching prefix determines an address's group.
    ///
    /// # Errors
    ///
    /// [`LiveError::Twice`].
    pub fn new(mut groups: Vec<Group>) -> Result<Groups, LiveError> {
        let key = |group: &Group| (u8::MAX - group.prefix.prefix_len(), group.prefix);
        groups.sort_by_key(key);
        for two in groups.windows(2) {
            if two[0].prefix == two[1].prefix {
                return Err(LiveError::Twice {
                    prefix: two[0].prefix,
                    first: two[0].name.to_string(),
                    second: two[1].name.to_string(),
                });
            }
        }
        let rest = if groups.is_empty() { "" } else { OTHERS }.into();
        Ok(Groups { groups, rest })
    }

    /// The group of an address: `others` if none matches, empty if there are no groups.
    pub fn of(&self, address: IpAddr) -> Arc<str> {
        let found = self.groups.iter().find(|group| group.prefix.contains(&address));
        found.map_or(&self.rest, |group| &group.name).clone()
    }
}

/// Truncates a client's address to its /24 or /48, or keeps it whole.
pub(crate) fn kept(address: IpAddr, whole: bool) -> IpNet {
    let bits = match address {
        IpAddr::V4(_) if whole => 32,
        IpAddr::V4(_) => IPV4_BITS,
        IpAddr::V6(_) if whole => 128,
        IpAddr::V6(_) => IPV6_BITS,
    };
    // Never fails: no address has fewer bits.
    IpNet::new(address, bits).map_or(address.into(), |net| net.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(texts: &[&str]) -> Result<Groups, LiveError> {
        Groups::new(texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
    }

    #[test]
    fn the_longest_prefix_counts() {
        let texts =
            ["all=0.0.0.0/0", "office=192.0.2.0/24", "desk=192.0.2.7/32", "six=2001:db8::/32"];
        let groups = groups(&texts).unwrap();
        let of = |address: &str| groups.of(address.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.7"), "desk");
        assert_eq!(of("192.0.2.8"), "office");
        assert_eq!(of("198.51.100.1"), "all");
        assert_eq!(of("2001:db8:1::1"), "six");
        assert_eq!(of("2001:db9::1"), "others");
        assert_eq!(&*Groups::default().of("192.0.2.1".parse().unwrap()), "");
    }

    #[test]
    fn what_is_no_group_is_named() {
        for (text, part) in [
            ("192.0.2.0/24", "no ="),
            ("a=192.0.2.0/33", "prefix is invalid"),
            ("a=192.0.2.1/24", "unlike 192.0.2.0/24"),
            ("=192.0.2.0/24", "needs a name"),
            ("others=192.0.2.0/24", "needs a name"),
        ] {
            let error = text.parse::<Group>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
        let error = groups(&["a=192.0.2.0/24", "b=192.0.2.0/24"]).unwrap_err();
        assert!(error.to_string().contains("in two groups, a and b"), "{error}");
    }

    /// Addresses of RFC 5737 and 3849, truncated to the longest announced prefix.
    #[test]
    fn addresses_are_cut() {
        let cut = |address: &str, whole| kept(address.parse().unwrap(), whole).to_string();
        assert_eq!(cut("192.0.2.77", false), "192.0.2.0/24");
        assert_eq!(cut("192.0.2.77", true), "192.0.2.77/32");
        assert_eq!(cut("2001:db8:1:2::3", false), "2001:db8:1::/48");
        assert_eq!(cut("2001:db8:1:2::3", true), "2001:db8:1:2::3/128");
    }
}
