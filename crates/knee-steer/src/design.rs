//! Random assignment of treatments.

use ipnet::IpNet;
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher24;
use std::f64::consts::SQRT_2;
use std::net::IpAddr;
use std::time::Duration;

/// Minimum length of a block; at least three times the 95th percentile of flow durations, so that
/// few flows cross block boundaries.
const BLOCK_MIN: Duration = Duration::from_secs(600);
/// Minimum time for effects of the previous block to fade.
const BURN_IN_MIN: Duration = Duration::from_secs(60);

/// Probability with which chance alone makes halves differ as much as unlike ones.
const UNLIKE_LEVEL: f64 = 0.001;

/// Treatment of a group's connections in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Treatment {
    /// All under the controller in use (A).
    Control,
    /// All under the controller on trial (B).
    Test,
    /// Half of the clients under each.
    Half,
}

/// Random draws of an experiment, reproducible from the seed on any host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    seed: u64,
}

impl Design {
    /// Creates the design of an experiment. Log the seed before the first block.
    pub fn new(seed: u64) -> Design {
        Design { seed }
    }

    /// Order of a triple's blocks; the six orders are equally likely and independent.
    pub fn order(&self, group: &str, triple: u64) -> [Treatment; 3] {
        use Treatment::{Control, Half, Test};
        const ORDERS: [[Treatment; 3]; 6] = [
            [Control, Test, Half],
            [Control, Half, Test],
            [Test, Control, Half],
            [Test, Half, Control],
            [Half, Control, Test],
            [Half, Test, Control],
        ];
        ORDERS[(self.draw("order", group, triple, &[]) % 6) as usize]
    }

    /// Whether a client, identified by its address, gets the controller on trial in a triple's
    /// half-and-half block.
    pub fn is_tested(&self, group: &str, triple: u64, client: &[u8]) -> bool {
        self.draw("half", group, triple, client) & 1 == 1
    }

    /// Whether a client or prefix is held out permanently; a fraction `share` of them is.
    pub fn is_held_out(&self, group: &str, client: &[u8], share: f64) -> bool {
        (self.draw("hold-out", group, 0, client) as f64) < share * 2f64.powi(64)
    }

    /// Key of a half-and-half block's assignment, for [`in_half`].
    pub fn half_key(&self, group: &str, triple: u64) -> [u8; 16] {
        let hash = self.hash("halves", group, triple, &[]);
        std::array::from_fn(|index| hash[index])
    }

    /// The first 64 bits of SHA-256 over the seed and the parameters, each prefixed with its
    /// length.
    fn draw(&self, what: &str, group: &str, triple: u64, client: &[u8]) -> u64 {
        let bytes = self.hash(what, group, triple, client);
        bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn hash(&self, what: &str, group: &str, triple: u64, client: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        let (seed, triple) = (self.seed.to_be_bytes(), triple.to_be_bytes());
        for part in [&seed, what.as_bytes(), group.as_bytes(), &triple, client] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// Whether clients of a prefix get the controller on trial in the half-and-half block of this key:
/// if the most significant bit of SipHash-2-4 of the network address is zero. IPv4 addresses are
/// mapped into IPv6 (RFC 4291, section 2.5.5.2). Kernel programs can compute the same.
pub fn in_half(key: &[u8; 16], part: IpNet) -> bool {
    is_second(key, part, 1 << 31)
}

/// Whether clients of a prefix get the second of two controllers, which a share of the prefixes
/// gets, in 2^-32: if the upper half of SipHash-2-4 of the network address is below it.
pub fn is_second(key: &[u8; 16], part: IpNet, share: u32) -> bool {
    draw(key, part) < share
}

fn draw(key: &[u8; 16], part: IpNet) -> u32 {
    let address = match part.network() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    (SipHasher24::new_with_key(key).hash(&address.octets()) >> 32) as u32
}

/// Length of a block, from the 95th percentile of flow durations.
pub fn block_length(flow_p95: Duration) -> Duration {
    BLOCK_MIN.max(flow_p95.saturating_mul(3))
}

/// Length of the burn-in, during which flows do not count, from the 90th percentile of flow
/// durations.
pub fn burn_in(flow_p90: Duration) -> Duration {
    BURN_IN_MIN.max(flow_p90)
}

/// Whether the halves of a block differ, in clients or flows, more than occurs by chance in one of
/// a thousand: then something other than the draw determined the assignment, and the experiment
/// proves nothing. Of `together` sets of halves that are checked in one experiment, each needs as
/// many times less chance (Bonferroni); a chi-square test with one degree of freedom.
pub fn sample_ratio_is_off(halves: [u64; 2], together: usize) -> bool {
    let [control, test] = halves.map(|count| count as f64);
    let all = control + test;
    let deviations = (control - test).abs() / all.sqrt();
    all > 0.0 && libm::erfc(deviations / SQRT_2) < UNLIKE_LEVEL / together.max(1) as f64
}

/// Number of triples that show an effect of `smallest` with power 0.8 at a level of 5 %, if B minus
/// A varies by `deviation` between triples: twice the number of a test that is evaluated once.
pub fn triples_needed(deviation: f64, smallest: f64) -> u64 {
    twice_a_single_test(deviation, smallest)
}

/// Returns the connections that each of two controllers needs in a trial which assigns connections
/// at random, to show a difference of `smallest` with power 0.8 at a level of 5 %, if single
/// connections vary by `deviation`. The difference of two means varies twice as much as each.
pub fn trial_size(deviation: f64, smallest: f64) -> u64 {
    twice_a_single_test(deviation, smallest)
}

/// Twice the number of values of which a test evaluated once shows with power 0.8 at a level of 5 %
/// that their mean is at least `smallest`: 7.85 is the square of the sum of the normal quantiles 1.96
/// and 0.84.
fn twice_a_single_test(deviation: f64, smallest: f64) -> u64 {
    (2.0 * 7.85 * (deviation / smallest).powi(2)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Four standard errors of a share of one sixth over 60,000 draws: 0.0061.
    #[test]
    fn each_order_is_as_likely_and_depends_on_everything() {
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for triple in 0..60_000 {
            let order = Design::new(7).order("wireless", triple);
            *seen.entry(format!("{order:?}")).or_default() += 1;
        }
        assert_eq!(seen.len(), 6);
        for (order, count) in seen {
            let share = f64::from(count) / 60_000.0;
            assert!((share - 1.0 / 6.0).abs() < 0.0061, "{order}: {share}");
        }
        let orders = |seed, group| (0..50).map(|k| Design::new(seed).order(group, k)).collect();
        let first: Vec<[Treatment; 3]> = orders(7, "wireless");
        assert_eq!(first, orders(7, "wireless"));
        assert_ne!(first, orders(8, "wireless"));
        assert_ne!(first, orders(7, "cable"));
    }

    /// Four standard errors of a half over 20,000 clients: 0.0142. Each triple tests other clients.
    #[test]
    fn halves_are_drawn_anew_for_each_triple() {
        let design = Design::new(1);
        let tested = |triple: u64| -> Vec<bool> {
            let of = |client: u32| design.is_tested("all", triple, &client.to_be_bytes());
            (0..20_000).map(of).collect()
        };
        let (first, second) = (tested(0), tested(1));
        let share = |all: &[bool]| all.iter().filter(|is| **is).count() as f64 / 20_000.0;
        assert!((share(&first) - 0.5).abs() < 0.0142, "{}", share(&first));
        let same: Vec<bool> = first.iter().zip(&second).map(|(a, b)| a == b).collect();
        assert!((share(&same) - 0.5).abs() < 0.0142, "{}", share(&same));
    }

    /// Vector 16 of SipHash's authors: `vectors_sip64` of their reference implementation, for the
    /// key 00 … 0f and the message 00 … 0f, is db 9b c2 57 7f cc 2a 3f, whose most significant bit
    /// is 0. And a share: four standard errors of a half over 20,000 prefixes are 0.0142.
    #[test]
    fn halves_by_the_hash_of_a_prefix() {
        let key = std::array::from_fn(|index| index as u8);
        let message: [u8; 16] = std::array::from_fn(|index| index as u8);
        let hash = SipHasher24::new_with_key(&key).hash(&message);
        assert_eq!(hash.to_le_bytes(), [0xdb, 0x9b, 0xc2, 0x57, 0x7f, 0xcc, 0x2a, 0x3f]);
        assert!(in_half(&key, IpNet::new(IpAddr::from(message), 128).unwrap()));
        let key = Design::new(1).half_key("all", 0);
        let part = |n: u16| IpNet::new([10, (n >> 8) as u8, n as u8, 0].into(), 24).unwrap();
        let tested = (0..20_000).filter(|n| in_half(&key, part(*n))).count() as f64 / 20_000.0;
        assert!((tested - 0.5).abs() < 0.0142, "{tested}");
        assert_ne!(key, Design::new(1).half_key("all", 1));
        assert_ne!(key, Design::new(2).half_key("all", 0));
    }

    #[test]
    fn blocks_are_long_beside_flows() {
        assert_eq!(block_length(Duration::from_secs(10)), Duration::from_secs(600));
        assert_eq!(block_length(Duration::from_secs(400)), Duration::from_secs(1200));
        assert_eq!(burn_in(Duration::from_secs(2)), Duration::from_secs(60));
        assert_eq!(burn_in(Duration::from_secs(90)), Duration::from_secs(90));
    }

    /// The tables' quantiles of chi-square: 10.828 for a probability of 0.001, 19.511 for 0.00001.
    /// By hand: (552 - 448)^2 / 1000 = 10.816, (553 - 447)^2 / 1000 = 11.236; (569 - 431)^2 / 1000 =
    /// 19.044, (570 - 430)^2 / 1000 = 19.6.
    #[test]
    fn unlike_halves_are_seen() {
        assert!(!sample_ratio_is_off([552, 448], 1));
        assert!(sample_ratio_is_off([553, 447], 1));
        assert!(!sample_ratio_is_off([569, 431], 100));
        assert!(sample_ratio_is_off([430, 570], 100));
        assert!(sample_ratio_is_off([0, 20], 1));
        assert!(!sample_ratio_is_off([0, 0], 1));
    }

    /// The specification's example: a deviation of 0.088 and an effect of 5 % need about 50
    /// triples.
    #[test]
    fn a_size_by_hand() {
        assert_eq!(triples_needed(0.088, 0.05), 49);
    }

    /// Cohen (1988), table 2.4.1: half a deviation needs 64 in each group by Student's t, whose normal
    /// approximation is one less; a fifth of one needs 393.
    #[test]
    fn a_trial_is_as_large_as_tables_say() {
        assert_eq!([trial_size(1.0, 0.5), trial_size(1.0, -0.2)], [63, 393]);
        assert_eq!(trial_size(0.0, 0.1), 0);
    }
}
