//! Streams: bytes in order, in both directions, each with its own credit.

mod order;
mod receive;
mod send;

pub use order::{Piece, Streams};
pub use receive::{Inserted, ReceiveStream};
pub use send::SendStream;

/// How urgent a stream is. Classes share in deficit round robin, 16 : 4 : 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Somebody waits for each answer.
    Interactive,
    /// Anything else.
    Normal,
    /// Nobody waits for it.
    Bulk,
}

/// All classes, the most urgent first.
pub const CLASSES: [Class; 3] = [Class::Interactive, Class::Normal, Class::Bulk];

/// Name of a stream within its bundle: its number among those that one end
/// opened, its class, and which end that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// The stream of that number among those of its end.
    pub fn new(number: u64, class: Class, by_server: bool) -> StreamId {
        StreamId(number << 3 | (class as u64) << 1 | u64::from(by_server))
    }

    /// The stream of this name on the wire; none: it names no class.
    pub fn read(id: u64) -> Option<StreamId> {
        (id >> 1 & 3 < 3).then_some(StreamId(id))
    }

    /// Its name on the wire.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Number among those that the same end opened.
    pub fn number(self) -> u64 {
        self.0 >> 3
    }

    /// The server opened it.
    pub fn by_server(self) -> bool {
        self.0 & 1 == 1
    }

    /// How urgent it is.
    pub fn class(self) -> Class {
        CLASSES[(self.0 >> 1 & 3).min(2) as usize]
    }
}
