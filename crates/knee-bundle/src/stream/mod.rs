//! Streams: bytes in order, in both directions, each with its own credit.

mod blocks;
mod order;
mod receive;
mod receiving;
mod send;
mod shares;

pub use blocks::Pool;
pub use order::{Piece, Streams};
pub use receive::{Inserted, ReceiveStream};
pub use receiving::Receiving;
pub use send::SendStream;
pub use shares::{Shares, own_part};

/// Urgency of a stream. Classes share in deficit round robin, 16 : 4 : 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Somebody waits for each answer.
    Interactive,
    /// The default.
    Normal,
    /// Nobody waits for it.
    Bulk,
}

/// All classes, most urgent first.
pub const CLASSES: [Class; 3] = [Class::Interactive, Class::Normal, Class::Bulk];

/// Id of a stream within its bundle: its number among those that one end opened, its class, and
/// which end that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// Makes the id of a stream.
    pub fn new(number: u64, class: Class, by_server: bool) -> StreamId {
        StreamId(number << 3 | (class as u64) << 1 | u64::from(by_server))
    }

    /// Parses the id on the wire; `None` if its class is invalid.
    pub fn read(id: u64) -> Option<StreamId> {
        (id >> 1 & 3 < 3).then_some(StreamId(id))
    }

    /// Returns the id on the wire.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Returns the number among the streams that the same end opened.
    pub fn number(self) -> u64 {
        self.0 >> 3
    }

    /// Returns whether the server opened it.
    pub fn by_server(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns its class.
    pub fn class(self) -> Class {
        CLASSES[(self.0 >> 1 & 3).min(2) as usize]
    }
}
