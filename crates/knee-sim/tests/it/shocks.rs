//! After a shock to its path each controller soon uses half of the link again.
//!
//! Every run of the tests has one shock and round-trip time per controller and preset, drawn from
//! `KNEE_FIRST_SEED`. `cargo test --release -p knee-sim --test it every_shock -- --ignored
//! --nocapture` has all of them with three seeds, and prints the table.

use crate::common::in_parallel;
use crate::random::{first_seed, read, run};
use knee_record::Records;
use knee_trials::controllers;
use knee_trials::shocks::{RTTS_MS, Shock, shocks};
use std::fmt;
use std::ops::RangeInclusive;

/// Half of what the payload of a full segment is of 20 Mbit/s, Mbit/s.
const HALF: f64 = 10.0 * crate::common::PAYLOAD;

/// Time after which half of the link is used, seconds.
const SOON_S: f64 = 30.0;

/// Time for which it must be, seconds.
const LASTING_S: f64 = 10.0;

/// One flow and its shock.
struct Trial<'a> {
    cc: &'static str,
    shock: &'a Shock,
    rtt_ms: u32,
    seed: u64,
}

/// What a flow did after the shock.
struct After {
    /// Time from the end of the shock to the end of the first second in which half of the link was
    /// used, seconds.
    again_s: f64,
    /// Goodput from half a minute after the shock on, Mbit/s; `None` if the application has sent
    /// everything by then.
    goodput: Option<f64>,
}

impl After {
    fn is_stuck(&self, within_s: f64) -> bool {
        let slow = within_s.is_finite() && self.goodput.is_some_and(|goodput| goodput < HALF);
        self.again_s > within_s || slow
    }
}

impl fmt::Display for After {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "half after {:.1} s", self.again_s)?;
        self.goodput.map_or(Ok(()), |goodput| write!(formatter, ", then {goodput:.2} Mbit/s"))
    }
}

impl Trial<'_> {
    fn run(&self) -> After {
        let within_s = Some(within_s(self)).filter(|time| time.is_finite()).unwrap_or(SOON_S);
        let after_s = (within_s + LASTING_S) as u32;
        let text = self.shock.text(self.cc, self.rtt_ms, after_s, self.seed);
        let records = run(&read(&text, &[]));
        let ends_s = match self.shock.pauses {
            // When the application goes on.
            true => {
                records.objects.get(1).map_or(f64::INFINITY, |burst| seconds(burst.requested_ns))
            }
            false => f64::from(self.shock.ends_s),
        };
        let rate = |from: f64, until: f64| {
            (delivered(&records, ends_s + until) - delivered(&records, ends_s + from)) * 8e-6
                / (until - from)
        };
        let mut moments = (10..=10 * after_s).map(|tenths| f64::from(tenths) / 10.0);
        After {
            again_s: moments.find(|at| rate(at - 1.0, *at) >= HALF).unwrap_or(f64::INFINITY),
            goodput: (!self.shock.pauses).then(|| rate(within_s, within_s + LASTING_S)),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the payload delivered up to a time in seconds, bytes.
pub fn delivered(records: &Records, at: f64) -> f64 {
    let rows = records.samples.iter().take_while(|row| seconds(row.time_ns) <= at + 1e-6);
    rows.last().map_or(0.0, |row| row.delivered_bytes as f64)
}

/// A controller that is slower by its own rule.
struct Slower {
    cc: &'static str,
    /// After which shock; `None` for any.
    shock: Option<&'static str>,
    rtts_ms: RangeInclusive<u32>,
    /// Time until half of the link is used, seconds; infinite if it need never be.
    within_s: f64,
}

/// The rules:
///
/// - RemyCC in crates/knee-cc/tables/knee.table: the rule for RTTs of less than 1.0086 times the
///   smallest sends a segment each 1.69 ms, 6.85 Mbit/s, which leaves no queue and so keeps the rule
///   in force. Whatever empties the queue for a while leads there.
/// - LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus-01, section 4: at 40 ms it grows by a third of a
///   segment in each round trip, GAIN = 1 / ceil(2 · 60 ms / 40 ms), and halves at each loss. A
///   policer has losses and no queue.
const SLOWER: [Slower; 2] = [
    Slower { cc: "remycc", shock: None, rtts_ms: 1..=40, within_s: f64::INFINITY },
    Slower { cc: "ledbat++", shock: Some("policer"), rtts_ms: 40..=40, within_s: f64::INFINITY },
];

/// Returns within how many seconds a controller uses half of the link again.
fn within_s(trial: &Trial<'_>) -> f64 {
    let own = SLOWER.iter().find(|one| {
        let same = one.shock.is_none_or(|shock| shock == trial.shock.name);
        one.cc == trial.cc && same && one.rtts_ms.contains(&trial.rtt_ms)
    });
    own.map_or(SOON_S, |own| own.within_s)
}

/// Runs trials and returns a line for each, and whether it is stuck.
fn outcomes(trials: &[Trial<'_>]) -> Vec<(String, bool)> {
    in_parallel(trials, |trial| {
        let after = trial.run();
        let Trial { cc, shock, rtt_ms, seed } = trial;
        let line = format!("{cc:14} {:22} {rtt_ms:2} ms, seed {seed}: {after}", shock.name);
        (line, after.is_stuck(within_s(trial)))
    })
}

/// Returns the lines of those that are stuck.
pub fn failed(outcomes: &[(String, bool)]) -> Vec<&str> {
    outcomes.iter().filter(|(_, failed)| *failed).map(|(line, _)| line.as_str()).collect()
}

#[test]
fn after_a_shock_half_of_the_link_is_used_within_half_a_minute() {
    let (shocks, seed) = (shocks(), first_seed());
    let trial = |(number, cc): (usize, &'static str)| {
        // Each number of a stride without common factors names another pair.
        let drawn = (seed as usize).wrapping_add(number).wrapping_mul(23);
        let shock = &shocks[drawn % shocks.len()];
        Trial { cc, shock, rtt_ms: RTTS_MS[drawn / shocks.len() % RTTS_MS.len()], seed }
    };
    let trials: Vec<Trial<'_>> = controllers().into_iter().enumerate().map(trial).collect();
    let outcomes = outcomes(&trials);
    outcomes.iter().for_each(|(line, _)| println!("{line}"));
    assert!(failed(&outcomes).is_empty(), "\n{}", failed(&outcomes).join("\n"));
}

#[test]
#[ignore = "takes long: .ci/night random"]
fn after_every_shock_half_of_the_link_is_used_within_half_a_minute() {
    let (shocks, first) = (shocks(), first_seed());
    let mut trials = Vec::new();
    for cc in controllers() {
        for shock in &shocks {
            for rtt_ms in RTTS_MS {
                trials.extend((first..first + 3).map(|seed| Trial { cc, shock, rtt_ms, seed }));
            }
        }
    }
    let outcomes = outcomes(&trials);
    outcomes.iter().for_each(|(line, _)| println!("{line}"));
    println!("{} of {} are stuck", failed(&outcomes).len(), trials.len());
    assert!(failed(&outcomes).is_empty(), "\n{}", failed(&outcomes).join("\n"));
}
