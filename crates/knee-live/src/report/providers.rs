//! Clients' networks: a table of prefixes and AS numbers.

use crate::LiveError;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const COLUMNS: &str = "begin the file with the line prefix,asn,name";

/// Networks by prefix.
#[derive(Clone, Debug, Default)]
pub struct Providers {
    networks: Vec<(u32, String)>,
    /// Indices into `networks`, by prefix length in descending order.
    prefixes: Vec<(u8, BTreeMap<IpNet, usize>)>,
}

impl Providers {
    /// Reads a CSV table with the columns `prefix`, `asn` and, optionally, `name`. AS numbers may
    /// be prefixed with `AS`. The longest matching prefix determines an address's network.
    ///
    /// # Errors
    /// [`LiveError::Table`] with the line number.
    pub fn read(path: &Path, text: &str) -> Result<Providers, LiveError> {
        let wrong = |line: u64, problem: String, advice: &str| LiveError::Table {
            path: path.to_path_buf(),
            line,
            problem,
            advice: advice.to_string(),
        };
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|e| wrong(1, e.to_string(), COLUMNS))?.clone();
        let place = |name: &str| heads.iter().position(|head| head.eq_ignore_ascii_case(name));
        let (Some(prefix), Some(asn)) = (place("prefix"), place("asn")) else {
            let problem = "it has no columns prefix and asn".to_string();
            return Err(wrong(1, problem, COLUMNS));
        };
        let name = place("name");
        let mut providers = Providers::default();
        let mut known: BTreeMap<(u32, String), usize> = BTreeMap::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(0, csv::Position::line);
                wrong(line, error.to_string(), "give each line as many fields as the first")
            })?;
            let line = record.position().map_or(0, csv::Position::line);
            let field = |at: usize| record.get(at).unwrap_or_default();
            let net: IpNet = field(prefix).parse().map_err(|_| {
                let problem = format!("{:?} is not a prefix", field(prefix));
                wrong(line, problem, "write it as 192.0.2.0/24")
            })?;
            let digits = field(asn).trim_start_matches(['A', 'S', 'a', 's']);
            let number: u32 = digits.parse().map_err(|_| {
                let problem = format!("{:?} is not an AS number", field(asn));
                wrong(line, problem, "write it as 64496 or AS64496")
            })?;
            let title = name.map_or("", field).to_string();
            let at = *known.entry((number, title.clone())).or_insert_with(|| {
                providers.networks.push((number, title));
                providers.networks.len() - 1
            });
            providers.add(net.trunc(), at);
        }
        providers.prefixes.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        Ok(providers)
    }

    fn add(&mut self, net: IpNet, at: usize) {
        let length = net.prefix_len();
        match self.prefixes.iter_mut().find(|(known, _)| *known == length) {
            Some((_, nets)) => _ = nets.insert(net, at),
            None => self.prefixes.push((length, BTreeMap::from([(net, at)]))),
        }
    }

    /// Returns the names of all providers: that of each network, or `AS` and its number if it has
    /// none.
    pub fn names(&self) -> BTreeSet<String> {
        (0..self.networks.len()).map(|at| self.name(at)).collect()
    }

    /// Returns the name of the provider of all clients of a prefix; `None` if no line has them.
    pub fn name_of(&self, kept: IpNet) -> Option<String> {
        self.of(kept).map(|at| self.name(at))
    }

    /// Returns the prefixes of a provider's clients, by its name, or by its AS number as `AS64496`:
    /// what its lines contain, less what longer prefixes give to others; as few as cover the same
    /// addresses. Empty if no line names it.
    pub fn prefixes_of(&self, provider: &str) -> Vec<IpNet> {
        let is_named = |at: usize| {
            let (number, title) = self.network(at);
            !title.is_empty() && title == provider
                || format!("AS{number}").eq_ignore_ascii_case(provider)
        };
        let all: BTreeMap<IpNet, bool> = self
            .prefixes
            .iter()
            .flat_map(|(_, nets)| nets.iter().map(|(net, at)| (*net, is_named(*at))))
            .collect();
        let mut own = Vec::new();
        for (net, _) in all.iter().filter(|(_, is_own)| **is_own) {
            // Networks are ordered so that those within one follow it.
            let within = all.range(net..).take_while(|(other, _)| net.contains(*other));
            let others = within.filter(|(_, is_own)| !**is_own).map(|(other, _)| *other);
            cut(*net, &others.collect::<Vec<_>>(), &mut own);
        }
        IpNet::aggregate(&own)
    }

    fn name(&self, at: usize) -> String {
        match self.network(at) {
            (number, "") => format!("AS{number}"),
            (_, title) => title.to_string(),
        }
    }

    /// Index of the network that contains a whole prefix; `None` if no line does.
    pub(crate) fn of(&self, kept: IpNet) -> Option<usize> {
        let shorter = self.prefixes.iter().filter(|(length, _)| *length <= kept.prefix_len());
        let mut found = shorter.filter_map(|(length, nets)| {
            let net = IpNet::new(kept.addr(), *length).ok()?.trunc();
            nets.get(&net).copied()
        });
        found.next()
    }

    /// AS number and name of a network.
    pub(crate) fn network(&self, at: usize) -> (u32, &str) {
        let (number, name) = &self.networks[at];
        (*number, name)
    }

    /// Number of prefixes longer than the truncated addresses.
    pub(crate) fn longer_than(&self, ipv4_bits: u8, ipv6_bits: u8) -> u64 {
        let is_longer = |net: &IpNet| match net {
            IpNet::V4(net) => net.prefix_len() > ipv4_bits,
            IpNet::V6(net) => net.prefix_len() > ipv6_bits,
        };
        let nets = self.prefixes.iter().flat_map(|(_, nets)| nets.keys());
        nets.filter(|net| is_longer(net)).count() as u64
    }
}

/// Adds what is left of a network without the others, which are within it.
fn cut(net: IpNet, others: &[IpNet], left: &mut Vec<IpNet>) {
    if others.is_empty() {
        left.push(net);
    } else if !others.contains(&net) {
        let halves = net.subnets(net.prefix_len() + 1).into_iter().flatten();
        for half in halves {
            let within: Vec<IpNet> =
                others.iter().filter(|other| half.contains(*other)).copied().collect();
            cut(half, &within, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Providers, LiveError> {
        Providers::read(Path::new("networks.csv"), text)
    }

    /// Prefixes of RFC 5737 and 3849, AS numbers of RFC 5398.
    #[test]
    fn the_longest_prefix_counts() {
        let providers = read(
            "name, prefix, asn\nOne,198.51.0.0/16,AS64496\n\"Two, Ltd\",198.51.100.0/24,64497\n\
             One,2001:db8::/32,64496\nSmall,192.0.2.128/25,64498\n",
        )
        .unwrap();
        let of = |net: &str| {
            providers.of(net.parse().unwrap()).map(|at| providers.network(at).1.to_string())
        };
        assert_eq!(of("198.51.100.0/24").as_deref(), Some("Two, Ltd"));
        assert_eq!(of("198.51.7.0/24").as_deref(), Some("One"));
        assert_eq!(of("2001:db8:9::/48").as_deref(), Some("One"));
        // Only a part of the prefix is in that network.
        assert_eq!(of("192.0.2.0/24"), None);
        assert_eq!(of("192.0.2.200/32").as_deref(), Some("Small"));
        assert_eq!(of("203.0.113.0/24"), None);
        assert_eq!((providers.networks.len(), providers.longer_than(24, 48)), (3, 1));
    }

    /// A /24 within a /16, and a /25 of the first provider within that, by hand: the rest of the /16
    /// are the prefixes from /17 to /24 that do not contain the /24.
    #[test]
    fn prefixes_of_a_provider_leave_those_of_others_out() {
        let providers = read(
            "prefix,asn,name\n198.51.0.0/16,64496,One\n198.51.100.0/24,64497,Two\n\
             198.51.100.128/25,64496,One\n2001:db8::/32,64496,One\n192.0.2.0/24,64498,\n",
        )
        .unwrap();
        let of = |name: &str| {
            let nets = providers.prefixes_of(name);
            nets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let one = "198.51.0.0/18 198.51.64.0/19 198.51.96.0/22 198.51.100.128/25 198.51.101.0/24 \
                   198.51.102.0/23 198.51.104.0/21 198.51.112.0/20 198.51.128.0/17 2001:db8::/32";
        assert_eq!((of("One"), of("as64496")), (one.to_string(), one.to_string()));
        assert_eq!((&*of("Two"), &*of("AS64498")), ("198.51.100.0/25", "192.0.2.0/24"));
        assert_eq!((of("Three"), of("")), (String::new(), String::new()));
        assert_eq!(Vec::from_iter(providers.names()), ["AS64498", "One", "Two"]);
        let name = |net: &str| providers.name_of(net.parse().unwrap());
        assert_eq!(name("198.51.100.0/26").as_deref(), Some("Two"));
        assert_eq!(name("192.0.2.0/24").as_deref(), Some("AS64498"));
        assert_eq!(name("203.0.113.0/24"), None);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, part) in [
            ("192.0.2.0/24,64496\n", 1, "no columns prefix and asn"),
            ("prefix,asn\n192.0.2.0/33,1\n", 2, "\"192.0.2.0/33\" is not a prefix"),
            ("prefix,asn\n192.0.2.0/24,1\n192.0.2.0/24,x\n", 3, "\"x\" is not an AS number"),
            ("prefix,asn\n192.0.2.0/24\n", 2, "fields"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains(&format!("line {line}:")), "{said}");
        }
    }
}
