//! What applications do with connections, as state machines that any ground
//! can drive: bulk, file, bursts, web page, DASH video, a Poisson mix of
//! transfers.
//!
//! An [`Application`] stands at the receiving end, where a person waits. The
//! ground asks it for [`Action`]s, carries them out, and tells it what
//! arrived. Times are integer nanoseconds since the start of the application.
//!
//! What this crate never does: I/O, read a clock, draw randomness that was
//! not given to it, know its ground.

mod access_log;
mod answers;
mod bulk;
mod bursts;
mod csv;
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

pub use access_log::{AccessLog, LogChoice, NotChosen, PassedOver, read_access_log};
pub use bursts::Bursts;
pub use csv::{AccessLogError, CsvError, PageFileError};
pub use dash::{Dash, Rule};
pub use default_page::default_page;
pub use dependencies::{Cycle, check_dependencies};
pub use ladders::{ladder_beyond_one_link, ladder_measured, ladder_of_study};
pub use mix::{Arrivals, Mix};
pub use page::{Http, Page, PageObject};
pub use page_file::read_page;
pub use sizes::Sizes;
pub use workload::{Properties, Workload, build};

use knee_units::Time;

/// What an application wants of its ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection. Numbers ascend from zero and are never used again.
    Open {
        /// Its number.
        connection: u32,
    },
    /// The sending end sends so many bytes on its own; `u64::MAX`: for ever.
    Push {
        /// On which connection.
        connection: u32,
        /// How many.
        bytes: u64,
    },
    /// Ask the sending end for so many bytes: the request travels to it
    /// first. Answers come in the order of the requests.
    Request {
        /// On which connection.
        connection: u32,
        /// How many.
        bytes: u64,
    },
    /// What was asked for is all: the connection ends when it is delivered.
    Close {
        /// Its number.
        connection: u32,
    },
}

/// A transfer that an application asked for: an object of a page, a segment
/// of a video, one of several bursts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Number within the application, from zero.
    pub number: u32,
    /// What it is: `html`, `css`, `image`, `segment 12` …
    pub name: String,
    /// Connection that carried it.
    pub connection: u32,
    /// Its size.
    pub bytes: u64,
    /// When it was asked for.
    pub requested: Time,
    /// When its first byte was delivered in order; none: not yet.
    pub first_byte: Option<Time>,
    /// When its last byte was delivered in order; none: not yet.
    pub completed: Option<Time>,
    /// Of video: number of the quality, from zero, the lowest.
    pub quality: Option<u32>,
    /// Of video: bitrate of the quality, bit/s; else zero.
    pub bitrate_bps: u64,
    /// Of video: media in the player's buffer when it was complete.
    pub buffer: Time,
    /// Of video: how long playback stood still waiting for it; the first
    /// segment's is the start-up time.
    pub stalled: Time,
}

/// What the name of an answer among bursts begins with; its number follows.
pub const BURST: &str = "burst ";

/// An application as a state machine.
pub trait Application: Send {
    /// What to do now; called until it answers none: at the start, after
    /// each event and when [`timer`](Self::timer) is due.
    fn poll(&mut self, now: Time) -> Option<Action>;
    /// When to poll again without an event; [`Time::MAX`]: never.
    fn timer(&self) -> Time;
    /// So many bytes more were delivered in order on a connection. Told only
    /// if [`wants_deliveries`](Self::wants_deliveries).
    fn on_delivered(&mut self, now: Time, connection: u32, bytes: u64);
    /// Everything of a connection that was closed is acknowledged.
    fn on_closed(&mut self, _now: Time, _connection: u32) {}
    /// The application is told to end: it asks for nothing more.
    fn stop(&mut self, now: Time);
    /// It needs [`on_delivered`](Self::on_delivered).
    fn wants_deliveries(&self) -> bool;
    /// Nothing more will be asked for and everything has arrived.
    fn is_complete(&self) -> bool;
    /// What was asked for so far, by number; empty for applications that
    /// are not made of objects.
    fn objects(&self) -> &[Object] {
        &[]
    }
}
