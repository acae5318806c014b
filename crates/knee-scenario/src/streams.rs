//! Which random stream each part of a run draws from: the same on every
//! ground, so that a link loses the same packets of its order on all.
//!
//! A stream is keyed by what the part is and by its name, not by where it
//! stands in the file: what else a scenario contains, and in which order,
//! moves no draw. The key of ChaCha8 is the SHA-256 of the part, the run's
//! seed and the names, each behind its length.

use crate::model::{Flow, Scenario};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};

/// Of a link: loss, queue and jitter. A pure delay that a ground adds draws
/// nothing.
pub fn link_stream(seed: u64, name: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("link", seed, 0, &[name]))
}

/// Of a flow's application. Mixes of one process have one key and a stream of
/// it each: `knee_workload` draws what they share from that of the process.
pub fn application_stream(seed: u64, flow: &Flow) -> ChaCha8Rng {
    let own = key("application", seed, flow.index, &[&flow.name]);
    let Some(process) = flow.workload.process() else { return ChaCha8Rng::from_seed(own) };
    let mut rng = ChaCha8Rng::from_seed(key("process", seed, 0, &[process]));
    let [a, b, c, d, e, f, g, h, ..] = own;
    rng.set_stream(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    rng
}

/// Of where in its trace a link begins.
pub(crate) fn offset_stream(seed: u64, name: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("offset", seed, 0, &[name]))
}

/// Of the starts of a group of flows.
pub(crate) fn jitter_stream(seed: u64, group: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("start", seed, 0, &[group]))
}

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The streams of the controllers that a flow has on one of its paths.
#[derive(Clone, Debug)]
pub struct ControllerStreams {
    key: [u8; 32],
}

impl ControllerStreams {
    /// Of the path at this position among those of the flow.
    pub fn new(scenario: &Scenario, flow: &Flow, position: usize) -> ControllerStreams {
        let path = &scenario.paths[flow.paths[position]].name;
        let key = key("controller", scenario.seed, flow.index, &[&flow.name, path]);
        ControllerStreams { key }
    }

    /// Of the controller of a connection on its `begin`th subflow there, from
    /// zero: a path that was gone and comes back begins another one.
    pub fn stream(&self, connection: u32, begin: u32) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(u64::from(begin) << 32 | u64::from(connection));
        rng
    }

    /// Tells the packets of that subflow from others, for queues that
    /// separate flows.
    pub fn hash(&self, connection: u32, begin: u32) -> u32 {
        let [a, b, c, d, e, f, g, h, ..] = self.key;
        let number = u64::from(begin) << 32 | u64::from(connection);
        let mixed = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ number;
        // Fibonacci hashing, twice, so that every bit of the number counts.
        let once = mixed.wrapping_mul(GOLDEN);
        ((once ^ once >> 32).wrapping_mul(GOLDEN) >> 32) as u32
    }
}

fn key(part: &str, seed: u64, index: usize, names: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update((index as u64).to_le_bytes());
    for text in std::iter::once(&part).chain(names) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is hashed, written out by hand.
    #[test]
    fn a_key_is_the_hash_of_seed_number_part_and_names() {
        let mut bytes = vec![7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"link");
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"a");
        let expected: [u8; 32] = Sha256::digest(&bytes).into();
        assert_eq!(key("link", 7, 2, &["a"]), expected);
    }

    /// No two parts share a stream because their names run into each other.
    #[test]
    fn names_do_not_run_into_each_other() {
        let keys = [
            key("link", 1, 0, &["ab", "c"]),
            key("link", 1, 0, &["a", "bc"]),
            key("link", 1, 0, &["abc"]),
            key("linka", 1, 0, &["bc"]),
            key("link", 1, 1, &["abc"]),
            key("link", 2, 0, &["abc"]),
        ];
        for (number, key) in keys.iter().enumerate() {
            assert!(!keys[..number].contains(key), "key {number} is there twice");
        }
    }
}
