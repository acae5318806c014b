//! Which random stream of a run's seed each of its parts draws from: the same
//! on every ground, so that a link loses the same packets of its order on all.
//!
//! Links count from zero, connections from 2^32, each further subflow of a
//! flow one stride on; the jitter of starts has 2^62 and on, applications 2^63.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const FLOWS: u64 = 1 << 32;
const SUBFLOW_STRIDE: u64 = 1 << 33;
const JITTER: u64 = 1 << 62;
const APPLICATIONS: u64 = 1 << 63;

/// Of a link; behind those of the scenario come the ones that a ground adds.
pub fn link_stream(seed: u64, link: usize) -> ChaCha8Rng {
    stream(seed, link as u64)
}

/// Of the `serial`th subflow of a flow, from zero.
pub fn subflow_stream(seed: u64, flow: usize, serial: u64) -> ChaCha8Rng {
    stream(seed, FLOWS + flow as u64 + serial * SUBFLOW_STRIDE)
}

/// Of a flow's application.
pub fn application_stream(seed: u64, flow: usize) -> ChaCha8Rng {
    stream(seed, APPLICATIONS + flow as u64)
}

/// Of the starts of a group of flows.
pub(crate) fn jitter_stream(seed: u64, group: usize) -> ChaCha8Rng {
    stream(seed, JITTER + group as u64)
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    rng
}
