//! The random stream that each part of a run draws from. It is the same on every ground, so that a
//! link loses the same packets in order on all of them.
//!
//! A stream is keyed by the kind and the name of the part, not by its position in the file: the
//! draws do not depend on what else a scenario contains, nor on its order. The key of ChaCha8 is
//! the SHA-256 of the run's seed and the number within the group, eight bytes each, the lowest
//! first, and then of the part and the names, each preceded by its length.

use crate::model::{Flow, Scenario};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};

/// Returns the stream of a link, for loss, queue and jitter. A pure delay that a ground adds draws
/// nothing.
pub fn link_stream(seed: u64, name: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("link", seed, 0, &[name]))
}

/// Returns the stream of a flow's application. Mixes of one process share a key, and each has its
/// own stream of it; `knee_workload` draws what they share from the stream of the process.
pub fn application_stream(seed: u64, flow: &Flow) -> ChaCha8Rng {
    let own = key("application", seed, flow.index, &[&flow.name]);
    let Some(process) = flow.workload.process() else { return ChaCha8Rng::from_seed(own) };
    let mut rng = ChaCha8Rng::from_seed(key("process", seed, 0, &[process]));
    let [a, b, c, d, e, f, g, h, ..] = own;
    rng.set_stream(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    rng
}

/// Returns the stream for a link's offset in its trace.
pub(crate) fn offset_stream(seed: u64, name: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("offset", seed, 0, &[name]))
}

/// Returns the stream for the start times of a group of flows.
pub(crate) fn jitter_stream(seed: u64, group: &str) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("start", seed, 0, &[group]))
}

/// Returns the stream for the delays of a flow's sending host.
pub fn send_stream(seed: u64, flow: &Flow) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(key("send", seed, flow.index, &[&flow.name]))
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The streams of a flow's controllers on one of its paths.
#[derive(Clone, Debug)]
pub struct ControllerStreams {
    key: [u8; 32],
}

impl ControllerStreams {
    /// Returns the streams for the path at `position` among those of the flow.
    pub fn new(scenario: &Scenario, flow: &Flow, position: usize) -> ControllerStreams {
        let path = &scenario.paths[flow.paths[position]].name;
        let key = key("controller", scenario.seed, flow.index, &[&flow.name, path]);
        ControllerStreams { key }
    }

    /// Returns the stream of a connection's controller on its `begin`th subflow, from zero. A path
    /// that returns after an absence begins another subflow.
    pub fn stream(&self, connection: u32, begin: u32) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(u64::from(begin) << 32 | u64::from(connection));
        rng
    }

    /// Returns a hash that identifies the packets of that subflow, for queues that separate flows.
    pub fn hash(&self, connection: u32, begin: u32) -> u32 {
        let [a, b, c, d, e, f, g, h, ..] = self.key;
        let number = u64::from(begin) << 32 | u64::from(connection);
        let mixed = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ number;
        // Fibonacci hashing, applied twice, so that every bit of the number counts.
        let once = mixed.wrapping_mul(GOLDEN);
        ((once ^ once >> 32).wrapping_mul(GOLDEN) >> 32) as u32
    }
}

/// Tells the packets of a tunnel from others, for queues that separate flows.
pub fn tunnel_hash(seed: u64, name: &str) -> u32 {
    let [a, b, c, d, ..] = key("tunnel", seed, 0, &[name]);
    u32::from_le_bytes([a, b, c, d])
}

fn key(part: &str, seed: u64, index: usize, names: &[&str]) -> [u8; 32] {
    // Hashed at once, because the library takes longer for each piece than for its bytes.
    let mut hashed = Vec::with_capacity(128);
    hashed.extend(seed.to_le_bytes());
    hashed.extend((index as u64).to_le_bytes());
    for text in std::iter::once(&part).chain(names) {
        hashed.extend((text.len() as u64).to_le_bytes());
        hashed.extend_from_slice(text.as_bytes());
    }
    Sha256::digest(hashed).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashed bytes, written by hand.
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

    /// Names are delimited, so that no two parts share a stream.
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
