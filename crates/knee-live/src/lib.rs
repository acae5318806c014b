//! What a host's own TCP connections tell: one row for each that ends, aggregates per
//! minute, files that rotate, and the report of a folder of these.
//!
//! [`Observer`] hears from the kernel of every connection that ends; it needs no
//! privilege. What the kernel had no room to tell is counted, so that nobody takes a
//! part for the whole.
//!
//! What this crate never does: change anything of the host, keep an address unless it
//! was asked to, print.

mod cells;
mod error;
mod files;
mod group;
mod live;
mod minutes;
mod observer;
#[cfg(feature = "page")]
pub mod page;
mod report;
mod row;

pub use cells::{Cell, Kind, LOST_MAX};
pub use error::LiveError;
pub use files::Written;
pub use group::{Group, Groups};
pub use live::{Counts, Live, LiveReport};
pub use minutes::MINUTES_SCHEMA;
pub use observer::{Observed, Observer, Settings};
pub use report::{AccessLog, Period, Providers, ReportSettings, holds_observed, report};
pub use row::{counted, told};
