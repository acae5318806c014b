//! Columns in and out of Parquet files: all that touches the format itself.
//!
//! Most of what is compiled for Parquet is its encodings, for each type of
//! value. They are instantiated here and nowhere else, so that they can be
//! optimised while the crates above, which know what the columns mean, compile
//! quickly: nothing public is generic but over an iterator.
//!
//! What this crate never does: know a table of Knee, name a path, create a file.

mod cells;
mod reader;
mod writer;

pub use cells::{Cells, Kind, each};
pub use reader::{Group, Reader};
pub use writer::Writer;
