//! Applications as state machines that any ground can drive: bulk, file, bursts, web page, DASH
//! video, a Poisson mix of transfers.
//!
//! An [`Application`] runs at the receiving end, where the user waits. The ground polls it for
//! [`Action`]s, carries them out, and reports what arrived. Times are integer nanoseconds since the
//! start of the application.
//!
//! What this crate never does: I/O, read a clock, draw randomness that was not passed to it, depend
//! on its ground.

mod access_log;
mod answers;
mod bulk;
mod bursts;
mod dash;
mod default_page;
mod dependencies;
mod file;
mod ladders;
mod mix;
mod page;
mod page_file;
mod sizes;
mod workload;

pub use access_log::{AccessLog, LogChoice, NotChosen, log_format, read_access_log};
pub use bursts::Bursts;
pub use dash::{Dash, Rule, Segments};
pub use default_page::default_page;
pub use dependencies::{Cycle, check_dependencies};
pub use ladders::{ladder_beyond_one_link, ladder_measured, ladder_of_study};
pub use mix::{Arrivals, Mix, Recorded};
pub use page::{Http, Page, PageObject};
pub use page_file::{PageFile, read_page};
pub use sizes::Sizes;
pub use workload::{Properties, Workload, build};

pub use knee_foreign::Protocol;

/// Why an access log cannot be used.
pub type AccessLogError = knee_foreign::FileError;

/// Why the description of a page cannot be used.
pub type PageFileError = knee_foreign::FileError;

use knee_units::Time;

/// An action that an application requests from its ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection. Numbers ascend from zero and are never reused.
    Open {
        /// Its number.
        connection: u32,
    },
    /// The sending end sends this many bytes on its own; `u64::MAX` means without end.
    Push {
        /// Number of the connection.
        connection: u32,
        /// Number of bytes.
        bytes: u64,
    },
    /// Request this many bytes from the sending end: the request travels to it first. Answers come
    /// in the order of the requests.
    Request {
        /// Number of the connection.
        connection: u32,
        /// Number of bytes.
        bytes: u64,
    },
    /// No more will be requested: the connection ends when everything is delivered.
    Close {
        /// Its number.
        connection: u32,
    },
}

/// A transfer that an application requested: an object of a page, a segment of a video, a burst.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Number within the application, from zero.
    pub number: u32,
    /// Its kind: `html`, `css`, `image`, `segment 12` …
    pub name: String,
    /// Connection that carried it.
    pub connection: u32,
    /// Size, bytes.
    pub bytes: u64,
    /// When it was requested.
    pub requested: Time,
    /// When its first byte was delivered in order, or `None` before that.
    pub first_byte: Option<Time>,
    /// When its last byte was delivered in order, or `None` before that.
    pub completed: Option<Time>,
    /// For video: number of the quality, from zero, the lowest.
    pub quality: Option<u32>,
    /// For video: bitrate of the quality, bit/s; otherwise zero.
    pub bitrate_bps: u64,
    /// For video: media in the player's buffer when it was complete.
    pub buffer: Time,
    /// For video: how long playback stalled waiting for it; for the first segment, the start-up
    /// time.
    pub stalled: Time,
}

/// Prefix of the name of a burst, followed by its number.
pub const BURST: &str = "burst ";

/// An application as a state machine.
pub trait Application: Send {
    /// Returns the next action; called until it returns `None`: at the start, after each event and
    /// when [`timer`](Self::timer) is due.
    fn poll(&mut self, now: Time) -> Option<Action>;
    /// Returns when to poll again without an event; [`Time::MAX`] means never.
    fn timer(&self) -> Time;
    /// Notes that a transfer arrived at the mix that this one follows ([`Arrivals::After`]).
    fn on_arrival(&mut self) {}
    /// Notes that `bytes` more were delivered in order on a connection. Called only if
    /// [`wants_deliveries`](Self::wants_deliveries).
    fn on_delivered(&mut self, now: Time, connection: u32, bytes: u64);
    /// Notes that everything on a closed connection was acknowledged.
    fn on_closed(&mut self, _now: Time, _connection: u32) {}
    /// Stops the application: it requests nothing more.
    fn stop(&mut self, now: Time);
    /// Returns whether it needs [`on_delivered`](Self::on_delivered).
    fn wants_deliveries(&self) -> bool;
    /// Returns whether nothing more will be requested and everything has arrived.
    fn is_complete(&self) -> bool;
    /// Returns what was requested so far, by number; empty for applications without objects.
    fn objects(&self) -> &[Object] {
        &[]
    }
}
