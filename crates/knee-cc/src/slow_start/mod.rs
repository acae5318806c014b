//! Slow start: how the window grows before the path is known, and what ends it before the first
//! loss. `slow_start` of `reno` and `cubic` chooses one.
//!
//! | `slow_start` | growth per round trip | ends before a loss by |
//! | --- | --- | --- |
//! | `standard` | 2x | nothing |
//! | `hystart` | 2x | ACK trains, or a round's delay |
//! | `hystart++` | 2x, then 1.25x for five rounds | a round's delay |
//! | `search` | 2x | fewer bytes delivered than sent one RTT before |
//! | `rapid-start` | 3x, 2x once a queue forms | nothing; its own first recovery |
//! | `careful-resume` | a jump to half a saved window, else 2x | nothing; its own first recovery |

mod careful_resume;
mod flight;
mod hystart;
mod hystart_plus_plus;
mod rapid_start;
mod search;

use crate::window::{UNLIMITED, Window};
use crate::{Connection, Init, Sample};
use careful_resume::CarefulResume;
use hystart::HyStart;
use hystart_plus_plus::HyStartPlusPlus;
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, SelectionError, Settings};
use rapid_start::RapidStart;
use search::Search;

const NAME: &str = "slow_start";
const STANDARD: &str = "standard";
const HYSTART: &str = "hystart";
const HYSTART_PLUS_PLUS: &str = "hystart++";
const SEARCH: &str = "search";
const RAPID_START: &str = "rapid-start";
const CAREFUL_RESUME: &str = "careful-resume";
const SAVED_WINDOW: &str = "saved_window";
const SAVED_RTT: &str = "saved_rtt";

/// Returns the parameters of a controller whose slow start can be chosen.
pub(crate) const fn parameters(default: &'static str) -> [Parameter; 4] {
    [
        Parameter {
            name: NAME,
            kind: Kind::Word(&[
                STANDARD,
                HYSTART,
                HYSTART_PLUS_PLUS,
                SEARCH,
                RAPID_START,
                CAREFUL_RESUME,
            ]),
            default,
            summary: "how the window grows before the first loss, and what ends that",
        },
        Parameter {
            name: "hystart_low_window",
            kind: Kind::Count { min: 2, max: 100_000 },
            default: "16",
            summary: "segments below which HyStart does not look",
        },
        Parameter {
            name: SAVED_WINDOW,
            kind: Kind::Window,
            default: "",
            summary: "for careful-resume: window of an earlier connection, of which it tries half",
        },
        Parameter {
            name: SAVED_RTT,
            kind: Kind::Time { min: Time::from_micros(1), max: Time::from_secs(3600) },
            default: "",
            summary: "for careful-resume: smallest RTT of that connection; if set, an RTT of at most \
                      half, or of more than ten times, prevents the jump",
        },
    ]
}

/// Checks that what was saved is set for Careful Resume, and only for it.
pub(crate) fn check(settings: &Settings) -> Result<(), SelectionError> {
    let word = settings.word(NAME).unwrap_or(STANDARD);
    let resumes = word == CAREFUL_RESUME;
    if resumes && settings.is_default(SAVED_WINDOW) {
        return Err(SelectionError {
            parameter: Some(NAME.to_owned()),
            problem: format!("{NAME} = \"{word}\" lacks the window of an earlier connection"),
            advice: format!("add {SAVED_WINDOW} = \"1 BDP\", or a number of packets"),
        });
    }
    let saved = [SAVED_WINDOW, SAVED_RTT].into_iter().find(|name| !settings.is_default(name));
    match saved {
        Some(name) if !resumes => Err(SelectionError {
            parameter: Some(name.to_owned()),
            problem: format!("{name} has no effect with {NAME} = \"{word}\""),
            advice: format!("set {NAME} = \"{CAREFUL_RESUME}\", or remove {name}"),
        }),
        _ => Ok(()),
    }
}

/// A slow start with its state.
#[derive(Clone, Debug)]
pub(crate) enum SlowStart {
    /// RFC 5681, section 3.1.
    Standard,
    HyStart(HyStart),
    HyStartPlusPlus(HyStartPlusPlus),
    /// Boxed, because its bins are longer than all else.
    Search(Box<Search>),
    RapidStart(RapidStart),
    CarefulResume(CarefulResume),
}

impl SlowStart {
    /// Creates the slow start that `settings` choose, for a controller that multiplies its window
    /// by `beta` on loss.
    pub(crate) fn new(settings: &Settings, beta: f64, init: &Init) -> SlowStart {
        match settings.word(NAME).unwrap_or(STANDARD) {
            HYSTART => SlowStart::HyStart(HyStart::new(settings.count("hystart_low_window"))),
            HYSTART_PLUS_PLUS => SlowStart::HyStartPlusPlus(HyStartPlusPlus::new()),
            SEARCH => SlowStart::Search(Box::default()),
            RAPID_START => SlowStart::RapidStart(RapidStart::new(beta, init)),
            CAREFUL_RESUME => {
                let window = settings.packets(SAVED_WINDOW).unwrap_or(0);
                let rtt = settings.duration(SAVED_RTT);
                SlowStart::CarefulResume(CarefulResume::new(window, rtt, init))
            }
            _ => SlowStart::Standard,
        }
    }

    /// Whether it needs pacing, and reduces the window itself in the first recovery.
    pub(crate) fn recovers(&self) -> bool {
        matches!(self, SlowStart::RapidStart(_) | SlowStart::CarefulResume(_))
    }

    /// Processes the end of the handshake.
    pub(crate) fn on_established(&mut self, window: &mut Window, connection: &Connection) {
        if let SlowStart::RapidStart(rapid) = self {
            rapid.on_established(window, connection);
        }
    }

    /// Processes an acknowledgement before the window grows by it; `settled` is false while a loss
    /// still inflates the RTT.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        window: &mut Window,
        sample: &Sample,
        connection: &Connection,
        settled: bool,
    ) {
        match self {
            SlowStart::Standard => {}
            SlowStart::HyStart(hystart) => {
                if settled && let Some(rtt) = sample.rtt {
                    hystart.observe(window, rtt, connection);
                }
            }
            SlowStart::HyStartPlusPlus(hystart) => hystart.observe(window, sample, connection),
            SlowStart::Search(search) => {
                if window.threshold == UNLIMITED
                    && let Some(rtt) = sample.rtt
                    && search.pipe_is_full(rtt, connection)
                {
                    window.threshold = window.segments;
                }
            }
            SlowStart::RapidStart(rapid) => rapid.observe(window, sample, connection),
            SlowStart::CarefulResume(resume) => resume.observe(window, sample, connection),
        }
    }

    /// Grows a window that is in slow start; returns the rest of `acked` if that reaches the
    /// threshold.
    #[inline]
    pub(crate) fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) -> u32 {
        match self {
            SlowStart::Standard | SlowStart::HyStart(_) | SlowStart::Search(_) => {
                window.slow_start(acked)
            }
            SlowStart::HyStartPlusPlus(hystart) => hystart.grow(window, acked, connection),
            SlowStart::RapidStart(rapid) => rapid.grow(window, acked),
            SlowStart::CarefulResume(resume) => resume.grow(window, acked),
        }
    }

    /// Processes the first loss or mark of a window of data; returns true if it has set window and
    /// threshold itself.
    pub(crate) fn on_congestion(&mut self, window: &mut Window, connection: &Connection) -> bool {
        match self {
            SlowStart::RapidStart(rapid) => rapid.on_congestion(window, connection),
            SlowStart::CarefulResume(resume) => resume.on_congestion(window, connection),
            _ => false,
        }
    }

    /// Processes the end of recovery; returns the segments that the path was found to hold, if
    /// slow start itself had reduced the window.
    pub(crate) fn on_recovery_end(
        &mut self,
        window: &mut Window,
        connection: &Connection,
    ) -> Option<u32> {
        match self {
            SlowStart::RapidStart(rapid) => rapid.on_recovery_end(window),
            SlowStart::CarefulResume(resume) => resume.on_recovery_end(window, connection),
            _ => None,
        }
    }

    /// Processes a timeout, when the threshold has been reduced.
    pub(crate) fn on_timeout(&mut self, window: &mut Window, connection: &Connection) {
        match self {
            SlowStart::HyStart(hystart) => hystart.restart(connection),
            SlowStart::Search(search) => search.restart(),
            SlowStart::RapidStart(rapid) => rapid.stop(),
            SlowStart::CarefulResume(resume) => resume.on_timeout(window, connection),
            SlowStart::Standard | SlowStart::HyStartPlusPlus(_) => {}
        }
    }

    /// Processes that the last reduction was undone.
    pub(crate) fn on_undo(&mut self) {
        match self {
            SlowStart::RapidStart(rapid) => rapid.stop(),
            SlowStart::CarefulResume(resume) => resume.stop(),
            _ => {}
        }
    }

    /// Returns the percentage of the window per RTT at which to pace, if it differs from the
    /// usual one.
    #[inline]
    pub(crate) fn pacing(&self) -> Option<u64> {
        match self {
            SlowStart::RapidStart(rapid) => rapid.pacing(),
            SlowStart::CarefulResume(resume) => resume.pacing(),
            _ => None,
        }
    }

    /// Returns the name of its phase, if it has one of its own.
    pub(crate) fn phase(&self) -> Option<&'static str> {
        match self {
            SlowStart::HyStartPlusPlus(hystart) => hystart.phase(),
            SlowStart::CarefulResume(resume) => resume.phase(),
            _ => None,
        }
    }
}
