//! RemyCC (Winstein and Balakrishnan, "TCP ex Machina: Computer-Generated
//! Congestion Control", SIGCOMM 2013): a table of rules that a program found,
//! and the controller that executes it.
//!
//! ```text
//!   memory  = (ack_ewma, send_ewma, rtt / least rtt)     per acknowledgement
//!   action  = table[memory]
//!   W       = multiple W + increment                     per segment acknowledged
//!   segments leave at least intersend apart
//! ```
//! The weight of the newest interval is 1/8 (section 4.1), and the memory is
//! initially zero. An acknowledgement of several segments counts as one for
//! each, at equal distances, so that a table does not depend on how the
//! receiver acknowledges; segments beyond [`SEGMENTS_MAX`] do not count.
//!
//! Loss is ignored, as in the paper: with a queue of fewer packets than the table's
//! window, most packets are dropped as long as the flow lasts, and a lost segment may be
//! repeated for twenty round trips until it arrives. A timeout restarts the controller,
//! as in the authors' port to ns-2. Nothing is left out: the authors did not keep any of
//! the paper's other signals either.

mod table;

pub use table::{Action, Dimension, Memory, RuleTable, TableError, VERSION};

use crate::pacing::SendQuantum;
use crate::registry::{Build, Entry};
use crate::{Connection, Controller, Decision, Event, Init, Needs, Sample, State};
use knee_units::registry::{Kind, Parameter, SelectionError, Settings};
use knee_units::{Rate, Time};
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

pub(crate) const ENTRY: Entry = Entry {
    name: "remycc",
    summary: "follows a trained rule table; knee train creates one",
    source: "Winstein and Balakrishnan, SIGCOMM 2013",
    parameters: &[Parameter {
        name: TABLE,
        kind: Kind::File,
        default: BUILT_IN,
        summary: "file of the rule table; built-in: the one that Knee trained",
    }],
    presets: &[],
    build: Build::Checked(check, build),
};

/// Name of the parameter, and its default.
const TABLE: &str = "table";
const BUILT_IN: &str = "built-in";

static TRAINED: LazyLock<Result<Arc<RuleTable>, TableError>> =
    LazyLock::new(|| RuleTable::read(include_str!("../../tables/knee.table")).map(Arc::new));

fn table(settings: &Settings) -> Result<Arc<RuleTable>, TableError> {
    match settings.file(TABLE) {
        BUILT_IN => TRAINED.clone(),
        text => RuleTable::read(text).map(Arc::new),
    }
}

/// Checks that the table can be read.
fn check(settings: &Settings) -> Result<(), SelectionError> {
    table(settings).map(|_| ()).map_err(|error| SelectionError {
        parameter: Some(TABLE.to_owned()),
        problem: format!("the rule table is damaged in line {}: {}", error.line, error.problem),
        advice: error.advice,
    })
}

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    // The registry has checked the table before it builds.
    let table = table(settings).unwrap_or_else(|_| Arc::new(RuleTable::single(CAREFUL)));
    Box::new(RemyCc::new(table, None, &init))
}

/// Reno's increase, if nothing else is known.
const CAREFUL: Action = Action { multiple: 1.0, increment: 0.1, intersend_ms: 1.0 };

/// Returns a controller that follows `table`; with a tally, it counts how the
/// table is used.
pub fn with_table(
    table: Arc<RuleTable>,
    tally: Option<Arc<Mutex<Tally>>>,
    init: &Init,
) -> Box<dyn Controller> {
    Box::new(RemyCc::new(table, tally, init))
}

/// How often the rules of a table were used, and with which memories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Uses, by number of the rule.
    pub uses: Vec<u64>,
    /// An even sample of the memories, by number of the rule.
    pub memories: Vec<Vec<Memory>>,
}

impl Tally {
    /// One memory in this many is kept.
    const STRIDE: u64 = 16;
    /// Largest number of memories kept for a rule.
    const KEPT_MAX: usize = 4096;

    /// Creates a tally for a table of this size.
    pub fn new(table: &RuleTable) -> Tally {
        let size = table.size();
        Tally { uses: vec![0; size], memories: vec![Vec::new(); size] }
    }

    fn count(&mut self, rule: usize, memory: &Memory) {
        let (uses, kept) = (&mut self.uses[rule], &mut self.memories[rule]);
        if uses.is_multiple_of(Tally::STRIDE) && kept.len() < Tally::KEPT_MAX {
            kept.push(*memory);
        }
        *uses += 1;
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Tally) {
        for rule in 0..self.uses.len().min(other.uses.len()) {
            self.uses[rule] += other.uses[rule];
            self.memories[rule].extend_from_slice(&other.memories[rule]);
        }
    }
}

/// Weight of the newest interval (section 4.1).
const WEIGHT: f64 = 1.0 / 8.0;
/// Largest number of segments of one acknowledgement that count: more make no
/// difference to means with weight 1/8.
const SEGMENTS_MAX: u64 = 64;
/// Smallest window, in segments: a single segment would wait for a delayed acknowledgement.
const SMALLEST: f64 = 2.0;
/// Largest window, in segments.
const LARGEST: f64 = 1e6;

#[derive(Clone, Debug)]
struct RemyCc {
    table: Arc<RuleTable>,
    tally: Option<Arc<Mutex<Tally>>>,
    mss: u32,
    /// In segments.
    window: f64,
    intersend_ms: f64,
    memory: Memory,
    least_rtt: Time,
    /// When the last acknowledgement arrived, and when the data it acknowledged was sent.
    acked_at: Option<Time>,
    sent_at: Time,
    quantum: SendQuantum,
    decision: Decision,
}

impl RemyCc {
    fn new(table: Arc<RuleTable>, tally: Option<Arc<Mutex<Tally>>>, init: &Init) -> RemyCc {
        let mss = init.mss.max(1);
        let first = table.action(table.find(&Memory::default()));
        let mut remy = RemyCc {
            table,
            tally,
            mss,
            window: init.initial_window as f64 / f64::from(mss),
            intersend_ms: first.intersend_ms,
            memory: Memory::default(),
            least_rtt: Time::MAX,
            acked_at: None,
            sent_at: Time::ZERO,
            quantum: SendQuantum::default(),
            decision: Decision::default(),
        };
        remy.decide();
        remy
    }

    /// Section 4.1: updates the three signals, after an acknowledgement of `segments`.
    fn remember(&mut self, rtt: Time, sample: &Sample, now: Time, segments: u64) {
        self.least_rtt = self.least_rtt.min(rtt).max(Time::from_nanos(1));
        let ratio = rtt.as_secs_f64() / self.least_rtt.as_secs_f64();
        self.memory.rtt_ratio = ratio.max(1.0);
        if let Some(before) = self.acked_at {
            let each = |time: Time| time.as_secs_f64() * 1e3 / segments as f64;
            let ack_ms = each(now.saturating_sub(before));
            let send_ms = each(sample.sent_at.saturating_sub(self.sent_at));
            for _ in 0..segments {
                self.memory.ack_ewma_ms += WEIGHT * (ack_ms - self.memory.ack_ewma_ms);
                self.memory.send_ewma_ms += WEIGHT * (send_ms - self.memory.send_ewma_ms);
            }
        }
        self.acked_at = Some(now);
        self.sent_at = self.sent_at.max(sample.sent_at);
    }

    /// Section 4.2: applies the action once for each segment.
    fn act(&mut self, segments: u64, connection: &Connection) {
        let rule = self.table.find(&self.memory);
        if let Some(tally) = &self.tally {
            tally.lock().unwrap_or_else(PoisonError::into_inner).count(rule, &self.memory);
        }
        let action = self.table.action(rule);
        self.intersend_ms = action.intersend_ms;
        let before = self.window;
        for _ in 0..segments {
            let next = action.multiple * self.window + action.increment;
            self.window = next.clamp(SMALLEST, LARGEST);
        }
        // An unused window proves nothing (RFC 7661, section 4).
        if connection.app_limited {
            self.window = self.window.min(before);
        }
    }

    fn begin_anew(&mut self) {
        self.memory = Memory::default();
        self.acked_at = None;
    }

    fn decide(&mut self) -> Decision {
        self.window = self.window.clamp(SMALLEST, LARGEST);
        let mss = f64::from(self.mss);
        let rate = ((mss * 1e3 / self.intersend_ms) as u64).max(1);
        let quantum = self.quantum.segments(rate, Time::ZERO, self.mss, 1);
        self.decision = Decision {
            window: (self.window * mss) as u64,
            pacing_rate: Some(Rate::from_bytes_per_second(rate)),
            send_quantum: u64::from(quantum) * u64::from(self.mss),
            ..Decision::default()
        };
        self.decision
    }
}

impl Controller for RemyCc {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let mss = connection.mss.max(1);
        if mss != self.mss {
            self.window *= f64::from(self.mss) / f64::from(mss);
            self.mss = mss;
        }
        if let Some(rtt) = sample.rtt
            && sample.newly_acked > 0
        {
            let segments = sample.newly_acked.div_ceil(u64::from(mss)).min(SEGMENTS_MAX);
            self.remember(rtt, sample, connection.now, segments);
            self.act(segments, connection);
        }
        self.decide()
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Timeout => {
                self.begin_anew();
                self.window = SMALLEST;
            }
            Event::Penalised => self.window /= 2.0,
            // A pause of the application does not count as an interval between two
            // acknowledgements.
            Event::SentAfterIdle if connection.app_limited => self.acked_at = None,
            Event::SentAfterIdle
            | Event::Established
            | Event::RecoveryStart
            | Event::CongestionEcho
            | Event::RecoveryEnd
            | Event::SpuriousRecovery => {}
        }
        self.decide()
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let known = self.least_rtt < Time::MAX;
        let min_rtt = known.then_some(self.least_rtt);
        State { phase: "rules", min_rtt, ..State::default() }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, ..Needs::default() }
    }
}
