//! Reads and writes columns of Parquet files, and keeps rows packed in memory. All code that
//! depends on the format is here.
//!
//! Most of the machine code for Parquet is its encodings, once for each type of value. They are
//! instantiated only here, so that they can be optimised while the crates above, which know what
//! the columns mean, compile quickly. Public items are therefore generic only over iterators.
//!
//! This crate never knows a table of Knee, never names a path, and never creates a file.

mod bits;
mod cells;
mod encoding;
mod packed;
mod reader;
mod writer;

pub use cells::{Cells, Kind, Texts, each, more, more_marks};
pub use packed::{Packed, PackedRows};
pub use reader::{Group, Reader};
pub use writer::Writer;
