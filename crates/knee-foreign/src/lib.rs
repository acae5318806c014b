//! Readers of files that other programs wrote: tables of a path's rate, delay or loss over time, what
//! tools measured on it, access logs, pages as browsers loaded them, and manifests of videos.
//!
//! A format is recognised by content, never by the file's name. Lines that are damaged are passed
//! over and counted. An error names the line, what is wrong there, and what to write instead.
//!
//! What this crate never does: open a file, read a clock, keep more than a bounded amount of what a
//! file contains.

mod access;
mod cells;
mod columns;
mod error;
mod flent;
mod instant;
mod iperf;
mod irtt;
mod json;
mod loose;
mod measured;
mod ndt7;
mod netem_trace;
mod page;
mod ping;
mod purpose;
mod quantity;
mod rows;
mod series;
mod size;
mod ss;
mod unpack;
mod video;

pub use access::{AccessLines, DayClock, Either, Extent, Moment, Protocol, Transfer};
pub use columns::{Columns, Gap};
pub use error::{FileError, shorten};
pub use measured::{Bulk, Datagrams, Interval, Measured, Measurement, Probes, read_measurement};
pub use page::{LoadedObject, LoadedPage, Origin, is_loaded_page, read_loaded_page};
pub use purpose::{Purpose, purpose};
pub use quantity::Quantity;
pub use rows::{Row, Rows, rows};
pub use series::{PassedOver, STEPS_MAX, Series, read_series};
pub use size::whole_bytes;
pub use video::{Manifest, Quality, join_manifests, read_manifest};
