//! Active queue management: disciplines that decide on entry, and disciplines
//! that decide when a packet leaves the queue.
//!
//! A new discipline is a file here, with its registry entry, and a line in `disciplines!`.

mod codel;
mod discipline;
mod dualpi2;
mod fq_codel;
#[cfg(test)]
mod lottery;
mod pie;
mod red;
mod registry;
mod threshold;

pub(crate) use discipline::Ledger;
pub use discipline::{CLASS_NAMES, ClassState};
use discipline::{Held, Queue, Waiting};
pub use registry::{AqmEntry, Build, Marks, Place};

use crate::Packet;
use crate::config::{Buffer, Config, RateModel};
use knee_units::{Ecn, Time};
use rand_chacha::ChaCha8Rng;

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// Congestion is signalled: mark the packet.
    Mark,
    /// Congestion is signalled: drop the packet.
    Drop,
}

impl Verdict {
    /// Signals by a mark if the packet and the settings allow it, otherwise by a drop.
    fn signal(may_mark: bool) -> Verdict {
        if may_mark { Verdict::Mark } else { Verdict::Drop }
    }
}

/// State of the queue when a packet enters.
pub(crate) struct Found {
    pub now: Time,
    /// Codepoint of the entering packet.
    pub ecn: Ecn,
    /// Bytes waiting, the packet in transmission not counted.
    pub waiting_bytes: u64,
    /// Whether nothing waits and nothing is in transmission.
    pub idle: bool,
}

/// Settings of a discipline.
pub(crate) trait Settings {
    /// Asserts that its fields meet their requirements.
    fn assert_possible(&self) {}

    /// Returns its description for the packet log.
    fn log(&self) -> String;
}

/// Decides about each packet when it enters.
pub(crate) trait OnEntry: Sized {
    type Settings: Settings;

    /// Creates the state; `own_stream` returns a random stream that nothing else uses.
    fn new(
        settings: &Self::Settings,
        rate: &RateModel,
        own_stream: impl FnOnce() -> ChaCha8Rng,
    ) -> Self;

    /// Decides about a packet. `start(t)` is when the service of a packet that
    /// entered at `t` would begin; `rng` is the link's stream.
    fn judge(
        &mut self,
        found: &Found,
        start: impl Fn(Time) -> Time,
        rng: &mut ChaCha8Rng,
    ) -> Verdict;

    /// Called when the link has work until `end`.
    fn busy_until(&mut self, _end: Time) {}

    /// Called when the link loses its work at `start`; it may have been idle before.
    fn cut_off(&mut self, _start: Time) {}
}

/// Stream number of a discipline under the link's key; the link's own is 0.
const OWN_STREAM: u64 = 1;

/// Returns a discipline's own stream, derived from the link's.
fn own_stream(of_link: &ChaCha8Rng) -> ChaCha8Rng {
    let mut own = of_link.clone();
    own.set_stream(OWN_STREAM);
    own.set_word_pos(0);
    own
}

macro_rules! disciplines {
    (
        on leaving { $($(#[$late_if:meta])* $late:ident in $late_file:ident: $queue:ident;)* }
        on entry { $($(#[$entry_if:meta])* $entry:ident in $entry_file:ident: $entry_state:ident;)* }
    ) => {
        $($(#[$entry_if])* pub use $entry_file::$entry;)*
        $($(#[$late_if])* pub use $late_file::$late;)*

        /// The discipline that decides about dropping and marking.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Aqm {
            /// Drops packets that do not fit.
            DropTail,
            $($(#[$entry_if])* #[doc = concat!("See [`", stringify!($entry), "`].")]
            $entry($entry),)*
            $($(#[$late_if])* #[doc = concat!("See [`", stringify!($late), "`].")]
            $late($late),)*
        }

        impl Aqm {
            /// Returns the description for the packet log.
            pub fn log(&self) -> String {
                match self {
                    Aqm::DropTail => String::new(),
                    $($(#[$entry_if])* Aqm::$entry(settings) => settings.log(),)*
                    $($(#[$late_if])* Aqm::$late(settings) => settings.log(),)*
                }
            }

            /// Whether it decides when packets leave the queue rather than when
            /// they enter: only then can there be a separate device queue.
            pub fn decides_on_leaving(&self) -> bool {
                match self {
                    $($(#[$late_if])* Aqm::$late(_) => true,)*
                    _ => false,
                }
            }

            /// Asserts that its fields meet their requirements.
            pub(crate) fn assert_possible(&self) {
                match self {
                    Aqm::DropTail => {}
                    $($(#[$entry_if])* Aqm::$entry(settings) => settings.assert_possible(),)*
                    $($(#[$late_if])* Aqm::$late(settings) => settings.assert_possible(),)*
                }
            }
        }

        /// Returns all AQMs, those with the fewest requirements first.
        pub fn aqms() -> &'static [AqmEntry] {
            &[
                registry::DROP_TAIL,
                $($(#[$late_if])* $late_file::ENTRY,)*
                $($(#[$entry_if])* $entry_file::ENTRY,)*
            ]
        }

        /// A discipline that decides about each packet when it enters.
        pub(crate) enum EntryAqm {
            None,
            $($(#[$entry_if])* $entry($entry_file::$entry_state),)*
        }

        impl EntryAqm {
            pub fn new(aqm: &Aqm, rate: &RateModel, of_link: &ChaCha8Rng) -> EntryAqm {
                if *rate == RateModel::Unlimited {
                    return EntryAqm::None;
                }
                match aqm {
                    $($(#[$entry_if])* Aqm::$entry(settings) => {
                        EntryAqm::$entry(OnEntry::new(settings, rate, || own_stream(of_link)))
                    })*
                    _ => EntryAqm::None,
                }
            }

            /// See [`OnEntry::judge`].
            pub fn decide(
                &mut self,
                found: &Found,
                start: impl Fn(Time) -> Time,
                rng: &mut ChaCha8Rng,
            ) -> Verdict {
                match self {
                    EntryAqm::None => Verdict::Pass,
                    $($(#[$entry_if])* EntryAqm::$entry(state) => state.judge(found, start, rng),)*
                }
            }

            /// See [`OnEntry::busy_until`].
            pub fn busy_until(&mut self, end: Time) {
                match self {
                    EntryAqm::None => {}
                    $($(#[$entry_if])* EntryAqm::$entry(state) => OnEntry::busy_until(state, end),)*
                }
            }

            /// See [`OnEntry::cut_off`].
            pub fn cut_off(&mut self, start: Time) {
                match self {
                    EntryAqm::None => {}
                    $($(#[$entry_if])* EntryAqm::$entry(state) => OnEntry::cut_off(state, start),)*
                }
            }
        }

        /// A discipline that decides which packet leaves next.
        pub(crate) enum Discipline<P> {
            /// Drop-tail on a link that pauses or is paused, whose departures are not known on entry.
            DropTail(Waiting<P>),
            $($(#[$late_if])* $late($late_file::$queue<P>),)*
        }

        impl<P: Packet> Discipline<P> {
            /// Creates the discipline, or returns `None` if departures are known on entry.
            pub fn new(config: &Config, of_link: &ChaCha8Rng) -> Option<Discipline<P>> {
                let rate = &config.rate;
                let pauses = config.pausable || config.pause.is_some();
                match &config.aqm {
                    _ if *rate == RateModel::Unlimited => None,
                    Aqm::DropTail => pauses.then(|| Discipline::DropTail(Waiting::default())),
                    $($(#[$late_if])* Aqm::$late(settings) => Some(Discipline::$late(
                        Queue::<P>::new(settings, rate, || own_stream(of_link)),
                    )),)*
                    _ => None,
                }
            }

            /// See [`Queue::enqueue`].
            pub fn enqueue(
                &mut self,
                packet: P,
                buffer: Buffer,
                ledger: &mut Ledger<'_, P>,
            ) -> Result<(), P> {
                let held = Held { entered: ledger.now, packet };
                match self {
                    Discipline::DropTail(queue) => queue.accept(held, buffer),
                    $($(#[$late_if])* Discipline::$late(q) => q.enqueue(held, buffer, ledger),)*
                }
            }

            /// See [`Queue::dequeue`].
            pub fn dequeue(&mut self, ledger: &mut Ledger<'_, P>) -> Option<Held<P>> {
                match self {
                    Discipline::DropTail(queue) => queue.pop(),
                    $($(#[$late_if])* Discipline::$late(queue) => queue.dequeue(ledger),)*
                }
            }

            /// See [`Queue::remove`].
            pub fn remove(&mut self) -> Option<P> {
                match self {
                    Discipline::DropTail(queue) => queue.pop().map(|held| held.packet),
                    $($(#[$late_if])* Discipline::$late(queue) => queue.remove(),)*
                }
            }

            pub fn bytes(&self) -> u64 {
                match self {
                    Discipline::DropTail(queue) => queue.bytes(),
                    $($(#[$late_if])* Discipline::$late(queue) => queue.bytes(),)*
                }
            }

            pub fn packets(&self) -> u64 {
                match self {
                    Discipline::DropTail(queue) => queue.packets(),
                    $($(#[$late_if])* Discipline::$late(queue) => queue.packets(),)*
                }
            }

            /// See [`Queue::classes`].
            pub fn classes(&self, now: Time) -> Vec<ClassState> {
                match self {
                    Discipline::DropTail(_) => Vec::new(),
                    $($(#[$late_if])* Discipline::$late(queue) => queue.classes(now),)*
                }
            }
        }
    };
}

disciplines! {
    on leaving {
        Codel in codel: CodelQueue;
        DualPi2 in dualpi2: DualPi2Queue;
        FqCodel in fq_codel: FqCodelState;
        #[cfg(test)]
        Lottery in lottery: LotteryQueue;
    }
    on entry {
        Pie in pie: PieState;
        Red in red: RedState;
        Threshold in threshold: ThresholdState;
    }
}
