//! Streams over several paths that carry unreliable datagrams, such as the DATAGRAM frames of QUIC
//! connections (RFC 9221).
//!
//! | part | what it does |
//! |---|---|
//! | [`Frame`], [`Join`] | the wire format |
//! | [`Outstanding`], [`LossRule`], [`Rtt`] | datagrams sent on a path: acknowledged, or lost |
//! | [`Arrivals`] | datagrams received on a path, and when an ACK is due |
//! | [`Streams`], [`SendStream`] | what is sent next: deficit round robin over classes and streams |
//! | [`ReceiveStream`] | reassembly of a stream, its credit and its end |
//! | [`Bundle`] | all of it: streams and messages over several paths under a scheduler |
//!
//! The congestion controllers of the paths are not here, but in the connections below.
//! `tests/links.rs` runs everything over simulated links. Left out: a cap on a quiet path, which so
//! far is only avoided for acknowledgements.
//!
//! What this crate never does: I/O, read a clock, draw randomness, depend on QUIC, read anything
//! but a JOIN from a path that has not joined.

mod bundle;
mod control;
mod frame;
mod join;
mod message;
mod path;
mod spans;
mod stream;
mod varint;

pub use bundle::{
    Bundle, BundleCounters, BundleSettings, DATAGRAM_MIN, Event, Limits, PathUse, Violation,
    message_max,
};
pub use frame::{
    ACK_RANGES_MAX, AckRanges, Frame, HEADER, Malformed, REASON_MAX, expand, stream_overhead,
};
pub use join::{Answer, Join, LABEL_MAX, VERSION};
pub use path::{ACK_DELAY, Arrivals, Fate, LossRule, NeverSent, Outstanding, Rtt};
pub use stream::{
    CLASSES, Class, Inserted, Piece, Pool, ReceiveStream, SendStream, StreamId, Streams,
};
pub use varint::{Reader, VARINT_MAX, put_varint, varint_len};

/// Largest number of paths of a bundle; on the wire no path has this number or a larger one. Fewer
/// than a scheduler could serve, as every datagram may carry ACKs for each of them.
pub const PATHS_MAX: usize = 8;

const _: () = assert!(PATHS_MAX <= knee_multipath::sched::PATHS_MAX);
