//! Multipath packet schedulers as pure state machines: which path takes the
//! next packet of a connection.
//!
//! Whenever a path may send, the connection shows a [`View`] and a
//! [`Scheduler`] answers with a [`Decision`]. Units are bytes of payload and
//! integer nanoseconds.
//!
//! What this crate never does: I/O, read a clock, allocate per packet (a
//! [`Recorder`] does), know its ground or who owns the paths: TCP subflows,
//! QUIC paths and tunnels are the same to it.

use knee_units::{NANOS_PER_SECOND, Rate, Time};

/// Most paths of one connection.
pub const PATHS_MAX: usize = 8;

/// What became of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Established and heard from.
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
    /// What became of it.
    pub status: Status,
    /// It may take a packet now: established, its window has room, pacing
    /// lets it go, nothing lost waits to be sent again.
    pub ready: bool,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Time,
    /// RTT variation (RFC 6298).
    pub rtt_variation: Time,
    /// Smallest RTT seen.
    pub min_rtt: Time,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Delivery rate measured; none before the first sample.
    pub rate: Option<Rate>,
    /// Bytes ever given to the path, duplicates included.
    pub sent: u64,
    /// Largest rate at which a train of acknowledgements came back lately:
    /// what the path carries, also while the window keeps the delivery rate
    /// below it. None until there was one, and for a scheduler that does not
    /// [look ahead](Scheduler::looks_ahead).
    pub capacity: Option<Rate>,
    /// Its window doubles in each round trip: slow start, or startup. False
    /// for a scheduler that does not look ahead.
    pub doubles: bool,
}

impl Path {
    /// Established and not silent; a backup counts only without others.
    pub fn is_usable(&self) -> bool {
        matches!(self.status, Status::Active | Status::Backup)
    }
    /// How long it takes to carry so many bytes at its capacity; no time while
    /// that is not known.
    pub fn time_to_carry(&self, bytes: u64) -> Time {
        let Some(capacity) = self.capacity else { return Time::ZERO };
        let bits = 8.0 * bytes as f64;
        let rate = capacity.as_bits_per_second().max(1) as f64;
        Time::from_nanos((bits * NANOS_PER_SECOND as f64 / rate) as u64)
    }
    /// Free window in bytes.
    pub fn free(&self) -> u64 {
        self.window.saturating_sub(self.in_flight)
    }
}

/// Paths by index, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSet(pub u8);

impl PathSet {
    /// Adds a path.
    #[inline]
    pub fn insert(&mut self, path: usize) {
        self.0 |= 1 << path;
    }
    /// Whether it holds a path.
    #[inline]
    pub fn contains(self, path: usize) -> bool {
        self.0 & (1 << path) != 0
    }
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The paths, ascending.
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

/// The oldest packet of the connection that is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// The path that was given it last.
    pub holder: usize,
    /// All paths that were given it.
    pub sent_on: PathSet,
}

/// What a connection shows when it asks.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The current time.
    pub now: Time,
    /// Payload bytes of a full packet.
    pub mss: u64,
    /// Bytes written and not yet given to any path.
    pub unsent: u64,
    /// Bytes not yet sent that the shared window lets through: those beyond
    /// the highest byte sent, and the gaps below it that sending elsewhere
    /// than at the head left.
    pub window_left: u64,
    /// Bytes from the oldest unacknowledged to the highest sent.
    pub outstanding: u64,
    /// The oldest packet not acknowledged, if any is outstanding.
    pub oldest: Option<Oldest>,
    /// Filled in while nothing new may be sent, and always for a scheduler
    /// that [repeats beside new data](Scheduler::repeats_beside_new). For
    /// each path: it has a packet to repeat, that is one outstanding
    /// which it was never given ([`Decision::Repeat`] would find one).
    pub can_repeat: PathSet,
    /// The paths, by index.
    pub paths: &'a [Path],
}

impl View<'_> {
    /// New data may be sent: there is some, and the shared window has room
    /// for a packet of it.
    pub fn has_new(&self) -> bool {
        self.unsent > 0 && self.window_left >= self.mss.min(self.unsent)
    }
    /// New data waits, but the shared window is full.
    pub fn is_blocked(&self) -> bool {
        self.unsent > 0 && !self.has_new()
    }
}

/// Which part of the data that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The next packet.
    Head,
    /// The last packet of what was written so far.
    Tail,
    /// The packet so many unsent bytes after the head.
    Ahead(u64),
}

/// Answer of a scheduler. The connection carries it out and asks again,
/// until the answer is [`Wait`](Decision::Wait) or no path is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Give new data to a path that is ready.
    Send(usize, Place),
    /// Give the next new packet to all of these paths, which are ready.
    Duplicate(PathSet),
    /// Give to a path that is ready the oldest outstanding packet that it
    /// was never given.
    Repeat(usize),
    /// The same, and halve the window of the packet's holder, which holds
    /// the connection up (`Event::Penalised` of knee-cc).
    RepeatAndPenalise {
        /// The path that repeats.
        path: usize,
        /// The path that is slowed down.
        holder: usize,
    },
    /// Nothing until something changes.
    Wait,
}

/// A packet scheduler.
pub trait Scheduler: Send {
    /// Chooses for the next packet. Asked only when a path is ready and
    /// either there is new data ([`View::has_new`]), or the connection is
    /// blocked, or something can be repeated.
    fn schedule(&mut self, view: &View<'_>) -> Decision;
    /// The set of paths or the status of one changed.
    fn on_paths_changed(&mut self, _paths: &[Path]) {}
    /// It may answer [`Decision::Repeat`] also while new data may be sent.
    fn repeats_beside_new(&self) -> bool {
        false
    }
    /// Once it gave the head of new data to a path, it gives the next one to
    /// the same, as long as nothing happened but that the packet was sent, there
    /// is new data and the path is ready. Then it need not be asked again.
    fn keeps_choice(&self) -> bool {
        false
    }
    /// It looks at [`Path::capacity`] and [`Path::doubles`], which are not
    /// measured for others.
    fn looks_ahead(&self) -> bool {
        false
    }
    /// What it gives to a path arrives there when it is due. What is not
    /// acknowledged then is worth sending again on another path; before that,
    /// while new data waits for the shared window, only the first packet is, and
    /// what will be late because its path turned out slow.
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

pub use knee_registry::{Kind, Parameter, Preset, Selection, SelectionError, Value};
pub use record::Recorder;
pub use registry::{
    Build, Entry, Make, Registry, build, check, check_paths, check_paths_of, schedulers,
};
