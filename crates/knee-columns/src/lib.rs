//! Reads and writes columns of Parquet files: all code that depends on the format.
//!
//! Most of the code generated for Parquet is its encodings, for each type of value. They are
//! instantiated only here, so that they can be optimised while the crates above, which know what
//! the columns mean, compile quickly: public items are generic only over iterators.
//!
//! This crate never knows a table of Knee, never names a path, and never creates a file.

mod cells;
mod reader;
mod writer;

pub use cells::{Cells, Kind, each};
pub use reader::{Group, Reader};
pub use writer::Writer;
