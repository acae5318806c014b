//! Running an experiment, on a machine without processes and waiting.

use crate::environment::{Call, Machine, SECOND};
use crate::experiment::block;
use knee_policy::{
    Block, BlockFile, Event, ExperimentEnd, ExperimentFiles, Journal, Policy, PolicyError, SoFar,
    Timeline, run_experiment, so_far,
};
use knee_steer::{Design, Treatment};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const TRIPLES: u64 = 12;

/// Two groups, or the first of them, by programs, which need no route of their own for each part.
fn policy(keys: &str, groups: usize) -> Policy {
    let group = |(name, net): (&str, &str)| {
        format!(
            "[[group]]\nname = \"{name}\"\nprefixes = [\"{net}\"]\ncontroller = \"bbr\"\n\
             control = \"cubic\"\n"
        )
    };
    let groups = [("web", "192.0.2.0/25"), ("api", "192.0.2.128/25")].into_iter().take(groups);
    let groups: String = groups.map(group).collect();
    let text = format!("name = \"edge\"\nactuator = \"bpf\"\nseed = 7\n{keys}\n{groups}");
    Policy::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

struct Files {
    _folder: TempDir,
    blocks: PathBuf,
    journal: PathBuf,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let [blocks, journal] = ["blocks", "journal"].map(|name| folder.path().join(name));
        Files { _folder: folder, blocks, journal }
    }

    /// Runs an experiment; returns the numbers of the blocks that ended, other events, and the end.
    fn run(&self, policy: &Policy, timeline: Timeline, machine: &mut Machine) -> Ran {
        let files =
            ExperimentFiles { blocks: &self.blocks, journal: &self.journal, publication: None };
        let (mut numbers, mut told) = (Vec::new(), Vec::new());
        let end = run_experiment(policy, timeline, &files, machine, &mut |event| {
            match event {
                Event::BlockEnded(blocks) => numbers.push(blocks.last().unwrap().number),
                other => told.push(format!("{other:?}")),
            }
            Ok(())
        });
        Ran { numbers, told, end }
    }
}

struct Ran {
    numbers: Vec<u64>,
    told: Vec<String>,
    end: Result<Option<(Vec<Block>, ExperimentEnd)>, PolicyError>,
}

impl Ran {
    fn is_done(&self) -> bool {
        matches!(self.end, Ok(Some((_, ExperimentEnd::Done))))
    }
}

/// Short blocks: the process looks every 30 s, the longest time for which it may be silent.
fn timeline(calibration: u64, triples: u64) -> Timeline {
    let block = 120 * SECOND;
    Timeline { block, burn_in: block / 10, calibration, triples }
}

fn machine() -> Machine {
    Machine::new(30 * SECOND)
}

/// Each block is run once, the guard is there before the first change, and in the end everything is
/// reverted. Interrupted in a triple, the next process repeats that triple and goes on.
#[test]
fn all_blocks_are_run_and_an_interrupted_triple_is_repeated() {
    let (policy, files) = (policy("", 1), Files::new());
    let mut first = Machine { stops_at: Some(7 * 60 * SECOND), ..machine() };
    let ran = files.run(&policy, timeline(1, 2), &mut first);
    assert!(matches!(ran.end, Ok(Some((_, ExperimentEnd::Interrupted)))));
    assert_eq!(ran.numbers, [0, 1, 2]);
    let mut second = machine();
    let ran = files.run(&policy, timeline(1, 2), &mut second);
    assert!(ran.is_done());
    assert_eq!(ran.numbers, [2, 3, 4, 5, 6, 7]);
    for machine in [first, second] {
        let calls = machine.calls();
        let ([Call::GuardBegun, Call::Prepared, ..], [.., a, b, c]) = (&calls[..], &calls[..])
        else {
            panic!("{calls:?}");
        };
        let end = [Call::ActuatorDropped, Call::RolledBack(1), Call::GuardDismissed];
        assert_eq!([a, b, c].map(Clone::clone), end);
    }
    assert!(Journal::read(&files.journal).unwrap().entries.is_empty());
    // Nothing is left to do.
    let ran = files.run(&policy, timeline(1, 2), &mut machine());
    assert!(ran.is_done() && ran.numbers.is_empty());
}

/// The stage observe has no guard and no journal, and asks for no actuator.
#[test]
fn observing_changes_nothing() {
    let (policy, files) = (policy("stage = \"observe\"", 1), Files::new());
    let mut machine = machine();
    let ran = files.run(&policy, timeline(0, 1), &mut machine);
    assert!(ran.is_done());
    assert_eq!((ran.numbers, machine.calls()), (vec![0, 1, 2], Vec::new()));
    assert!(!files.journal.exists());
}

/// Without a lease, or after the policy's end, it stops and says why; everything is reverted.
#[test]
fn an_experiment_that_cannot_go_on_is_reverted() {
    let at = 150 * SECOND;
    for (keys, machine, why) in [
        ("", Machine { lost_at: Some(at), ..machine() }, "the guard is gone"),
        ("expires = 2001-09-09T01:49:10Z", machine(), "the policy has expired"),
        (
            "stage = \"site\"\nbegins = 2001-09-09T01:46:40Z",
            Machine { set: Some((at, 3600 * SECOND)), ..machine() },
            "this host's clock and the blocks of the site are 3600 s apart",
        ),
    ] {
        let (files, mut machine) = (Files::new(), machine);
        let ran = files.run(&policy(keys, 1), timeline(1, 1), &mut machine);
        let Ok(Some((_, ExperimentEnd::Lost(lost)))) = ran.end else {
            panic!("{why}: {:?}", ran.end);
        };
        assert_eq!(lost.to_string(), why);
        assert_eq!(ran.numbers, [0], "{why}");
        let calls = machine.calls();
        assert_eq!(calls.last(), Some(&Call::GuardDismissed), "{why}");
        assert!(calls.contains(&Call::RolledBack(1)), "{why}");
    }
}

/// A host waits for the next pair or triple of its site. One whose blocks are over is refused, and one
/// that is stopped meanwhile changes nothing.
#[test]
fn a_site_begins_at_its_time() {
    let keys = "stage = \"site\"\nbegins = 2001-09-09T01:56:40Z";
    let (files, mut waits) = (Files::new(), machine());
    let ran = files.run(&policy(keys, 1), timeline(1, 1), &mut waits);
    assert!(ran.is_done());
    assert_eq!(ran.numbers, [0, 1, 2, 3, 4]);
    assert!(ran.told[0].contains("number: 0, time: 600s, has_no_pair: false"), "{:?}", ran.told);
    // In the middle of the first pair: joins with the triple, in which it has no part.
    let (files, mut late) = (Files::new(), machine());
    late.unix_at_start += 630 * SECOND;
    let ran = files.run(&policy(keys, 1), timeline(1, 1), &mut late);
    assert_eq!(ran.numbers, [2, 3, 4]);
    assert!(ran.told[0].contains("number: 2, time: 210s, has_no_pair: true"), "{:?}", ran.told);
    let (files, mut over) = (Files::new(), machine());
    over.unix_at_start += 4000 * SECOND;
    let ran = files.run(&policy(keys, 1), timeline(1, 1), &mut over);
    assert!(matches!(ran.end, Err(PolicyError::TooLate)));
    let (files, mut stopped) = (Files::new(), machine());
    stopped.stops_at = Some(60 * SECOND);
    let ran = files.run(&policy(keys, 1), timeline(1, 1), &mut stopped);
    assert!(matches!(ran.end, Ok(None)));
    for (machine, files) in [(over, Files::new()), (stopped, files)] {
        assert_eq!(machine.calls(), Vec::new());
        assert!(Journal::read(&files.journal).is_ok_and(|recorded| recorded.entries.is_empty()));
    }
}

/// The first triples, in which B has these RTTs in the tail of each group.
fn blocks(policy: &Policy, timeline: &Timeline, rtt_ms: &[f64]) -> Vec<Block> {
    let design = Design::new(policy.seed);
    let all = 2 * timeline.calibration + 3 * timeline.triples;
    let of = |number: u64| {
        let usual = 60.0 + (number % 2) as f64;
        let groups = policy.groups.iter().zip(rtt_ms).flat_map(|(group, bad)| {
            let since = number.checked_sub(2 * timeline.calibration);
            let treatment = since.map_or(Treatment::Control, |since| {
                design.order(&group.name, since / 3)[(since % 3) as usize]
            });
            let tail = if treatment == Treatment::Test { *bad } else { usual };
            let half = treatment == Treatment::Half;
            block(number, half, [30.0, tail], [50.0, 100.0]).groups
        });
        Block { number, groups: groups.collect(), reports: 100, ..Block::default() }
    };
    (0..all).map(of).collect()
}

/// Certain harm in one of two groups stops B there and goes on in the other; in both, or in the only
/// group of a canary, it ends the experiment. A site is not judged by one of its hosts.
#[test]
fn certain_harm_ends_an_experiment_by_its_stage() {
    let length = 600 * SECOND;
    let timeline =
        Timeline { block: length, burn_in: length / 10, calibration: 4, triples: TRIPLES + 1 };
    let judged = Timeline { triples: TRIPLES, ..timeline };
    let all = 8 + 3 * TRIPLES as usize;
    for (keys, groups, rtt_ms, is_over, stopped) in [
        ("", 2, [60.0, 60.0], false, &[][..]),
        ("", 2, [90.0, 60.0], false, &["web"]),
        ("", 2, [90.0, 90.0], true, &[]),
        ("stage = \"canary\"", 1, [90.0, 60.0], true, &[]),
        ("stage = \"site\"\nbegins = 2001-09-09T01:46:40Z", 2, [90.0, 90.0], false, &[]),
    ] {
        let (files, policy) = (Files::new(), policy(keys, groups));
        let (mut file, _) = BlockFile::open(&files.blocks, &policy, &timeline).unwrap();
        for block in &blocks(&policy, &judged, &rtt_ms) {
            file.push(block).unwrap();
        }
        drop(file);
        // The last triple of a site begins now.
        let mut machine = Machine { stops_at: Some(Duration::ZERO), ..Machine::new(SECOND) };
        if keys.contains("site") {
            machine.stops_at = Some(SECOND);
            machine.unix_at_start += timeline.begin(all as u64);
        }
        let ran = files.run(&policy, timeline, &mut machine);
        assert_eq!(ran.is_done(), is_over, "{keys} {rtt_ms:?} {:?}", ran.end);
        let stops: Vec<&String> =
            ran.told.iter().filter(|told| told.starts_with("Stopped")).collect();
        assert_eq!(stops.len(), stopped.len(), "{keys} {rtt_ms:?} {stops:?}");
        assert!(stops.iter().zip(stopped).all(|(told, name)| told.contains(name)), "{stops:?}");
    }
}

/// Within a triple nothing is judged.
#[test]
fn only_whole_triples_are_judged() {
    let length = 600 * SECOND;
    let timeline =
        Timeline { block: length, burn_in: length / 10, calibration: 4, triples: TRIPLES };
    let policy = policy("", 2);
    let blocks = blocks(&policy, &timeline, &[90.0, 60.0]);
    for missing in 1..3 {
        let known = &blocks[..blocks.len() - missing];
        assert_eq!(so_far(&policy, &timeline, known), SoFar::default());
    }
    let whole = so_far(&policy, &timeline, &blocks);
    assert_eq!(whole.harmed.into_keys().collect::<Vec<_>>(), [0]);
}
