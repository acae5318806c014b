//! Turns of a connection's packet number spaces.
//!
//! The library discards a packet that is more than 128 numbers behind the largest one of its packet
//! number space: it takes it for a duplicate, and the sender has encoded its number in too few bytes
//! (RFC 9000, section 17.1). So a connection whose packets are overtaken by many has several such spaces,
//! one for each path of QUIC's multipath extension, all over the same addresses: in each fewer packets
//! overtake. The library sends what waits on the first of its paths that has a window, so each space
//! has one in its turn only.

/// Maximum number of them.
pub(crate) const NUMBER_SPACES_MAX: usize = 16;

/// The packet number spaces of a connection for its data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NumberSpaces {
    count: usize,
    turn: usize,
}

impl NumberSpaces {
    /// Adds a space and returns its number. A path that moves to another address counts again; beyond
    /// the maximum, spaces share their turns.
    pub fn add(&mut self) -> usize {
        let space = self.count % NUMBER_SPACES_MAX;
        self.count += 1;
        space
    }

    /// Returns whether packets leave on a number space.
    pub fn is_turn_of(&self, space: usize) -> bool {
        self.turn == space
    }

    /// Returns how many there are, and gives the turn to the next one.
    pub fn next(&mut self) -> usize {
        let count = self.count.clamp(1, NUMBER_SPACES_MAX);
        self.turn = (self.turn + 1) % count;
        count
    }
}
