//! Records a host's own TCP connections: one row for each that ends, aggregates per minute,
//! rotating files, and reports on a folder of these; and those that are open, at intervals, with
//! where their packets were lost. It also reports on access logs.
//!
//! [`Observer`] is notified by the kernel of every connection that ends; it needs no privilege.
//! Reports that the kernel dropped are counted, so that a part is never taken for the whole.
//!
//! What this crate never does: change anything on the host, keep full addresses unless asked to,
//! print.

mod access;
mod assigned;
mod cells;
mod error;
mod files;
mod group;
mod listed;
mod live;
mod minutes;
mod observer;
mod open;
#[cfg(feature = "page")]
pub mod page;
mod queue;
mod report;
mod row;
mod source;
#[cfg(feature = "upload")]
mod upload;

pub use access::{LogReader, LogSettings};
pub use cells::{Cell, Kind, LOST_MAX};
pub use error::LiveError;
pub use files::Written;
pub use group::{Group, Groups};
pub use live::{Counts, Live, LiveReport};
pub use minutes::MINUTES_SCHEMA;
pub use observer::{Observed, Observer, Settings};
pub use open::{
    COUNTERS_SCHEMA, Change, HOP_INTERVAL, Hop, Hops, HopsSeen, HostChange, InterfaceChange, Look,
    Lost, OPEN_SCHEMA, OpenConnection, OpenObserver, OpenSettings, Place, QdiscChange,
};
pub use queue::{Queue, Stored};
pub use report::{
    AccessLog, Period, Providers, ReportSettings, holds_observed, holds_open, is_begun, report,
    unix_s,
};
pub use row::{connection_record, counters_record};
pub use source::Reports;
#[cfg(feature = "upload")]
pub use upload::{Upload, UploadError, upload_host, upload_place};
