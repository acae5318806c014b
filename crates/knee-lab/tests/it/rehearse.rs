//! Experiments over the packet simulator with a known outcome.

use crate::dying::with_dying;
use knee_lab::Simulator;
use knee_lab::scenario::Override;
use knee_lab::{Error, Grounds, Lab, RehearseError, RehearseSettings, Rehearsed, ScenarioText};
use knee_steer::{Guarded, Verdict};
use std::fs;
use std::sync::mpsc;
use std::time::Duration;

/// Transfers of about 1.2 MB over 20 Mbit/s, which keep the link nearly full.
fn scenario(link: &str) -> String {
    let flow = |name: &str, cc: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\npath = \"main\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"1.2 s\", process = \"all\", sizes = {{ median = \"1.2 MB\", \
             sigma = 0.3, max = \"3 MB\" }} }} }}\n"
        )
    };
    format!(
        "name = \"mix\"\nduration = \"40 s\"\nwarmup = \"8 s\"\nsample_interval = \"1 s\"\n\
         [link.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"20 ms\"\n{link}\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"20 ms\"\n{}{}",
        flow("tested", "bbr"),
        flow("usual", "cubic")
    )
}

const DEEP: &str = "buffer = \"20 BDP\"";
const SHALLOW: &str = "buffer = \"0.5 BDP\"";
const LOSSY: &str = "buffer = \"20 BDP\"\nloss = \"1 %\"";

/// Few concurrent transfers.
const SELDOM: [(&str, &str); 2] = [
    ("flow.tested.workload.mix.arrival_interval", "4 s"),
    ("flow.usual.workload.mix.arrival_interval", "4 s"),
];

fn rehearsed(text: &str, set: &[(&str, &str)], jobs: u16) -> Result<Rehearsed, Error> {
    let mut lab = Lab::default();
    lab.parallel = Some(jobs);
    Ok(rehearsed_by(&lab, text, set)?.expect("nobody stops it"))
}

fn rehearsed_by(lab: &Lab, text: &str, set: &[(&str, &str)]) -> Result<Option<Rehearsed>, Error> {
    lab_rehearsed(lab, text, &settings(set))
}

fn settings(set: &[(&str, &str)]) -> RehearseSettings {
    RehearseSettings {
        on: "sim".to_string(),
        in_use: None,
        set: set.iter().map(|(key, value)| Override::new(key, value)).collect(),
        seed: Some(1),
        triples: 24,
        calibration: 8,
        truth: 10,
        accepts: Vec::new(),
    }
}

fn lab_rehearsed(
    lab: &Lab,
    text: &str,
    settings: &RehearseSettings,
) -> Result<Option<Rehearsed>, Error> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mix.toml");
    fs::write(&file, text).unwrap();
    lab.rehearse(&[ScenarioText::read(&file).unwrap()], settings)
}

fn class<'r>(rehearsed: &'r Rehearsed, sizes: &str) -> &'r knee_lab::RehearsedClass {
    rehearsed.classes.iter().find(|class| class.sizes == sizes).unwrap()
}

/// In a deep buffer BBR gains at CUBIC's expense, but is no faster if all flows use it: a split
/// test would be misled, the triples are not.
#[test]
fn what_only_takes_from_its_neighbours_is_no_effect() {
    let rehearsed = rehearsed(&scenario(DEEP), &[], 2).unwrap();
    assert_eq!(rehearsed.void, 0, "no run in virtual time is void");
    let large = class(&rehearsed, "1 to 3 MB");
    assert_eq!(large.trial.verdict(), (Verdict::Undecided, 24));
    let naive = large.trial.naive().unwrap();
    assert!(naive.interval.unwrap().0 > 0.0, "{naive:?}");
    let truth = large.truth.unwrap();
    assert!(truth.high.unwrap() < 0.02, "{truth:?}");
    let (low, high) = large.trial.total().unwrap().interval.unwrap();
    assert!(low < truth.mean && truth.mean < high, "{low} to {high}, {truth:?}");
}

/// At 1 % loss CUBIC is slow and BBR hardly: sqrt(3/2) / (0.04 s sqrt(0.01)) packets per second are
/// at most 3.7 Mbit/s per flow.
#[test]
fn what_is_faster_is_seen() {
    let rehearsed = rehearsed(&scenario(LOSSY), &SELDOM, 2).unwrap();
    let large = class(&rehearsed, "1 to 3 MB");
    let (verdict, after) = large.trial.verdict();
    assert_eq!(verdict, Verdict::More);
    assert!(after < 24, "{after}");
    assert!(large.truth.unwrap().low.unwrap() > 0.1, "{:?}", large.truth);
}

/// With half a BDP of buffer BBR retransmits much: a guard stops it.
#[test]
fn what_retransmits_is_stopped() {
    let rehearsed = rehearsed(&scenario(SHALLOW), &[], 2).unwrap();
    assert!(
        rehearsed.hard_stop.is_some_and(|(triple, _)| triple <= 3),
        "{:?}",
        rehearsed.hard_stop
    );
    for class in &rehearsed.classes {
        let (verdict, _) = class.trial.verdict();
        assert_eq!(verdict, Verdict::Stopped(Guarded::Retransmissions), "{}", class.sizes);
    }
}

/// The true effect is exactly zero, none is found, and parallelism changes nothing.
#[test]
fn one_controller_under_two_names_has_no_effect() {
    let same = [("flow.tested.cc", "cubic")];
    let all = [1, 3].map(|jobs| rehearsed(&scenario(DEEP), &same, jobs).unwrap());
    for class in &all[0].classes {
        assert_eq!(class.trial.verdict(), (Verdict::Undecided, 24), "{}", class.sizes);
        let truth = class.truth.unwrap();
        assert!(truth.min == 0.0 && truth.max == 0.0, "{truth:?}");
    }
    assert_eq!(format!("{:?}", all[0]), format!("{:?}", all[1]));
}

/// Whenever it is stopped, the results rest on whole triples and all runs before them. With unknown
/// noise, the first two differences of opposite sign would leave no evidence at all.
#[test]
fn a_stop_keeps_whole_triples_or_nothing() {
    for steps in 0..10_u64 {
        let lab = Lab::default();
        let handle = lab.handle();
        let stopped = std::thread::scope(|scope| {
            scope.spawn(move || {
                // Nothing is sent: this waits for the timeout.
                let (_kept, never) = mpsc::channel::<()>();
                let _ = never.recv_timeout(Duration::from_millis(60 * steps));
                handle.stop();
            });
            rehearsed_by(&lab, &scenario(DEEP), &[("flow.tested.cc", "cubic")]).unwrap()
        });
        let Some(stopped) = stopped else { continue };
        for class in &stopped.classes {
            let (verdict, after) = class.trial.verdict();
            let is_open = matches!(verdict, Verdict::Undecided | Verdict::TooFew);
            assert!(is_open, "{verdict:?}");
            assert_eq!(after as u64, stopped.triples);
            assert!(class.trial.evidence() > 0.01, "{:?}", class.trial);
        }
    }
}

#[test]
fn what_cannot_be_rehearsed_is_refused() {
    let first = scenario(DEEP).split("[[flow]]").take(2).collect::<Vec<_>>().join("[[flow]]");
    let error = rehearsed(&first, &[], 2).unwrap_err();
    assert!(matches!(error, Error::Rehearse(RehearseError::NoPair(_))), "{error}");
    let on_nothing = RehearseSettings { on: "moon".to_string(), ..settings(&[]) };
    let error = lab_rehearsed(&Lab::default(), &scenario(DEEP), &on_nothing).unwrap_err();
    assert!(error.to_string().contains("moon"), "{error}");
    let error = rehearsed(&scenario(DEEP), &[("duration", "9 s")], 2).unwrap_err();
    assert!(matches!(error, Error::Rehearse(RehearseError::TooFew)), "{error}");
}

/// A quarter of the connections under B die after 900 kB. By the transfers that finish B is faster,
/// since they have the link to themselves; with those that do not, the truth says that it is slower,
/// and the guard of unfinished transfers stops it within the 24 triples: the harm is 0.16 to 0.21, and
/// [`smallest_in`](knee_steer::Guard::smallest_in) says that so many show 0.18 to 0.21. The triples
/// until then agree with the truth.
#[test]
fn unfinished_transfers_count_and_stop_it() {
    let (algorithms, name) = with_dying();
    let text = scenario(DEEP).replace("cc = \"bbr\"", &format!("cc = \"{name}\""));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mix.toml");
    fs::write(&file, text).unwrap();
    let text = ScenarioText::read(&file).unwrap().with_algorithms(algorithms.clone());
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms)));
    for seed in [1, 2, 3] {
        let settings = RehearseSettings { seed: Some(seed), ..settings(&[]) };
        let rehearsed = lab.rehearse(std::slice::from_ref(&text), &settings).unwrap().unwrap();
        let large = class(&rehearsed, "1 to 3 MB");
        let (verdict, _) = large.trial.verdict();
        assert_eq!(verdict, Verdict::Stopped(Guarded::Unfinished), "seed {seed}");
        let truth = large.truth.unwrap();
        assert!(truth.high.unwrap() < -0.1, "seed {seed}: {truth:?}");
        let (low, high) = large.trial.total().unwrap().interval.unwrap();
        let overlap = low < truth.high.unwrap() && truth.low.unwrap() < high;
        assert!(overlap, "seed {seed}: {low} {high} {truth:?}");
    }
}
