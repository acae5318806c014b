//! Multipath packet schedulers as pure state machines: which path takes the
//! next packet of a connection.
//!
//! Whenever a path may send, the connection passes a [`View`] and a [`Scheduler`]
//! returns a [`Decision`]. Units are bytes of payload and integer nanoseconds.
//!
//! What this module never does: perform I/O, read a clock, allocate per packet
//! (a [`Recorder`] does), know its ground or who owns the paths: it does not
//! distinguish TCP subflows, QUIC paths and tunnels.

use knee_units::{NANOS_PER_SECOND, Rate, Time};

/// Largest number of paths of one connection.
pub const PATHS_MAX: usize = 32;

/// Status of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Established and responsive.
    #[default]
    Active,
    /// Established, to be used only when no other path is active (RFC 8684,
    /// section 3.3.8).
    Backup,
    /// Established, but silent for too long: avoided until it answers.
    Suspect,
    /// Not established yet, or gone.
    Down,
}

/// One path of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Its status.
    pub status: Status,
    /// Whether it may take a packet now: it is established, its window has
    /// room, pacing allows it, and no lost data waits for retransmission.
    pub ready: bool,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Time,
    /// RTT variation (RFC 6298).
    pub rtt_variation: Time,
    /// Smallest RTT measured.
    pub min_rtt: Time,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Measured delivery rate; `None` before the first sample.
    pub rate: Option<Rate>,
    /// Total bytes given to the path, including duplicates.
    pub sent: u64,
    /// Largest recent rate of a train of acknowledgements: what the path can
    /// carry, even while the window keeps the delivery rate below it. `None`
    /// before the first train, and for a scheduler that does not [look
    /// ahead](Scheduler::looks_ahead).
    pub capacity: Option<Rate>,
    /// Whether its window doubles in each round trip: slow start, or startup.
    /// False for a scheduler that does not look ahead.
    pub doubles: bool,
}

impl Path {
    /// Whether it is established and not silent; a backup counts only without others.
    pub fn is_usable(&self) -> bool {
        matches!(self.status, Status::Active | Status::Backup)
    }
    /// Returns the time to carry `bytes` bytes at its capacity; zero if the
    /// capacity is unknown.
    #[inline]
    pub fn time_to_carry(&self, bytes: u64) -> Time {
        let Some(capacity) = self.capacity else { return Time::ZERO };
        let bits = 8.0 * bytes as f64;
        let rate = capacity.as_bits_per_second().max(1) as f64;
        Time::from_nanos((bits * NANOS_PER_SECOND as f64 / rate) as u64)
    }
    /// Returns the free window in bytes.
    pub fn free(&self) -> u64 {
        self.window.saturating_sub(self.in_flight)
    }
}

/// Set of paths, as bits by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSet(pub u32);

const _: () = assert!(PATHS_MAX == u32::BITS as usize);

impl PathSet {
    /// Returns the set of the paths before `count`.
    #[inline]
    pub fn first_of(count: usize) -> PathSet {
        PathSet(1_u32.checked_shl(count as u32).unwrap_or(0).wrapping_sub(1))
    }
    /// Adds a path if `is_in`; without a branch.
    #[inline]
    pub fn insert_if(&mut self, path: usize, is_in: bool) {
        self.0 |= u32::from(is_in) << path;
    }
    /// Adds a path.
    #[inline]
    pub fn insert(&mut self, path: usize) {
        self.0 |= 1 << path;
    }
    /// Removes a path.
    #[inline]
    pub fn remove(&mut self, path: usize) {
        self.0 &= !(1 << path);
    }
    /// Whether it contains only this path.
    #[inline]
    pub fn is_only(self, path: usize) -> bool {
        self.0 == 1 << path
    }
    /// Returns the first path.
    #[inline]
    pub fn first(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as usize)
    }
    /// Whether it contains a path.
    #[inline]
    pub fn contains(self, path: usize) -> bool {
        self.0 & (1 << path) != 0
    }
    /// Whether it is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Returns the paths of either set.
    #[inline]
    pub fn union(self, other: PathSet) -> PathSet {
        PathSet(self.0 | other.0)
    }
    /// Returns the paths, ascending.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let path = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(path)
        })
    }
}

/// The oldest unacknowledged packet of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// The path to which it was last given.
    pub holder: usize,
    /// All paths to which it was given.
    pub sent_on: PathSet,
}

/// State that a connection passes to the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The current time.
    pub now: Time,
    /// Payload bytes of a full packet.
    pub mss: u64,
    /// Bytes written and not yet given to any path.
    pub unsent: u64,
    /// Unsent bytes that the shared window allows: those beyond the highest byte
    /// sent, and the gaps below it left by sending elsewhere than at the head.
    pub window_left: u64,
    /// Bytes from the oldest unacknowledged to the highest sent.
    pub outstanding: u64,
    /// The oldest unacknowledged packet, if any is outstanding.
    pub oldest: Option<Oldest>,
    /// The paths that have a packet to repeat, that is an outstanding one that
    /// was never given to them ([`Decision::Repeat`] would find one). Filled in
    /// while nothing new may be sent, and always for a scheduler that [repeats
    /// beside new data](Scheduler::repeats_beside_new).
    pub can_repeat: PathSet,
    /// The paths, by index.
    pub paths: &'a [Path],
}

impl View<'_> {
    /// Whether new data may be sent: there is some, and the shared window has
    /// room for a packet of it.
    #[inline]
    pub fn has_new(&self) -> bool {
        self.unsent > 0 && self.window_left >= self.mss.min(self.unsent)
    }
    /// Whether new data waits but the shared window is full.
    pub fn is_blocked(&self) -> bool {
        self.unsent > 0 && !self.has_new()
    }
}

/// Position in the waiting data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The next packet.
    Head,
    /// The last packet of the data written so far.
    Tail,
    /// The packet this many unsent bytes after the head.
    Ahead(u64),
}

/// A scheduler's decision. The connection carries it out and calls again, until
/// the decision is [`Wait`](Decision::Wait) or no path is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Give new data to a ready path.
    Send(usize, Place),
    /// Give the next new packet to all of these ready paths.
    Duplicate(PathSet),
    /// Give a ready path the oldest outstanding packet that was never given to it.
    Repeat(usize),
    /// Repeat as with [`Repeat`](Decision::Repeat), and halve the window of the packet's
    /// holder, which holds up the connection (`Event::Penalised` of knee-cc).
    RepeatAndPenalise {
        /// The path that repeats.
        path: usize,
        /// The path that is slowed down.
        holder: usize,
    },
    /// Send nothing until something changes.
    Wait,
}

/// A packet scheduler.
pub trait Scheduler: Send {
    /// Decides about the next packet. Called only if a path is ready and either
    /// there is new data ([`View::has_new`]), or the connection is blocked, or
    /// something can be repeated.
    fn schedule(&mut self, view: &View<'_>) -> Decision;
    /// Called when the set of paths or the status of one has changed.
    fn on_paths_changed(&mut self, _paths: &[Path]) {}
    /// Whether it may return [`Decision::Repeat`] even while new data may be sent.
    fn repeats_beside_new(&self) -> bool {
        false
    }
    /// Whether, after giving the head of new data to a path, it gives the next
    /// packet to the same path, as long as nothing has happened except sending
    /// the packet, there is new data and the path is ready. Then it need not be
    /// called again.
    fn keeps_choice(&self) -> bool {
        false
    }
    /// Whether it gives the head of new data to a path whenever that path is the only
    /// one that is ready, and active. Then it need not be called. Counts only together
    /// with [`keeps_choice`](Self::keeps_choice).
    fn takes_only_choice(&self) -> bool {
        false
    }
    /// Whether it uses [`Path::capacity`] and [`Path::doubles`], which are not
    /// measured otherwise.
    fn looks_ahead(&self) -> bool {
        false
    }
    /// Whether it plans arrivals: what it gives to a path arrives when it is
    /// due. Data not acknowledged by then is worth repeating on another path;
    /// before that, while new data waits for the shared window, only the first
    /// packet is, and data that will be late because its path turned out slow.
    fn plans_order(&self) -> bool {
        false
    }
}

impl<S: Scheduler + ?Sized> Scheduler for Box<S> {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        (**self).schedule(view)
    }
    fn on_paths_changed(&mut self, paths: &[Path]) {
        (**self).on_paths_changed(paths);
    }
    fn repeats_beside_new(&self) -> bool {
        (**self).repeats_beside_new()
    }
    fn keeps_choice(&self) -> bool {
        (**self).keeps_choice()
    }
    fn takes_only_choice(&self) -> bool {
        (**self).takes_only_choice()
    }
    fn looks_ahead(&self) -> bool {
        (**self).looks_ahead()
    }
    fn plans_order(&self) -> bool {
        (**self).plans_order()
    }
}

mod blest;
mod capacity;
mod choice;
mod daps;
mod dems;
mod ecf;
mod just_in_time;
mod minrtt;
mod opportunistic_redundant;
pub mod record;
mod redundant;
mod registry;
mod round_robin;
mod sctc;

/// All schedulers of this crate by their names, each with its `mod` above.
static ENTRIES: &[Entry] = &[
    blest::ENTRY,
    capacity::ENTRY,
    daps::ENTRY,
    dems::ENTRY,
    ecf::ENTRY,
    just_in_time::ENTRY,
    minrtt::ENTRY,
    opportunistic_redundant::ENTRY,
    redundant::ENTRY,
    round_robin::ENTRY,
    sctc::ENTRY,
];

pub use knee_units::registry::{Kind, Parameter, Preset, Selection, SelectionError, Value};
pub use record::Recorder;
pub use registry::{
    Build, Entry, Make, Registry, build, check, check_paths, check_paths_of, schedulers,
};
