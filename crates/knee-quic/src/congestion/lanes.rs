//! Turns of a connection's lanes.
//!
//! The library discards a packet that is more than 128 numbers behind the largest one of its packet
//! number space: it takes it for a duplicate, and the sender has encoded its number in too few bytes
//! (RFC 9000, section 17.1). So a connection whose packets are overtaken by many has several such spaces,
//! one for each path of QUIC's multipath extension, all over the same addresses: in each fewer packets
//! overtake. The library sends what waits on the first of its paths that has a window, so each lane has
//! one in its turn only.

/// Maximum number of lanes.
pub(crate) const LANES_MAX: usize = 16;

/// The lanes of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lanes {
    count: usize,
    turn: usize,
}

impl Lanes {
    /// Adds a lane and returns its number. A path that moves to another address counts again; beyond the
    /// maximum, lanes share their turns.
    pub fn add(&mut self) -> usize {
        let lane = self.count % LANES_MAX;
        self.count += 1;
        lane
    }

    /// Returns whether packets leave on a lane.
    pub fn is_turn_of(&self, lane: usize) -> bool {
        self.turn == lane
    }

    /// Returns the number of lanes, and gives the turn to the next one.
    pub fn next(&mut self) -> usize {
        let count = self.count.clamp(1, LANES_MAX);
        self.turn = (self.turn + 1) % count;
        count
    }
}
