//! Parts that share nothing do not affect each other: in random scenarios the
//! records of one island are independent, to the byte, of what else runs, of
//! unused links, of flows that never send, and of the order of the file.
//!
//! `KNEE_SCENARIOS=20000 cargo test -p knee-sim --test it apart::` checks more
//! scenarios; a failure names its seed, and `KNEE_SEED=<seed>` runs that one alone.

use crate::random::{RunRows, each_seed, read, run};
use knee_trials::scenario::{self, Island, Scenario, link_and_path};

/// Scenarios in one test run.
const SCENARIOS: u64 = 200;

fn told(text: &str, scenario: &Scenario) -> RunRows {
    let files: Vec<(&str, &[u8])> = scenario.files().collect();
    let scenario = read(text, &files);
    RunRows::of(&scenario, run(&scenario))
}

/// An unused link, a path that is never present, and a flow on it.
fn idle(prefix: &str) -> Island {
    let tables = [
        format!(
            "[link.{prefix}-unused]\nrate = \"5 Mbit/s\"\nbuffer = \"30 kB\"\nloss = \"3 %\"\n"
        ),
        format!(
            "[link.{prefix}-quiet]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\nbuffer = \"30 kB\"\n"
        ),
        format!(
            "[path.{prefix}-gone]\nforward = [\"{prefix}-quiet\"]\nreverse_delay = \"5 ms\"\n\
             absent = [{{ from = \"0 s\" }}]\n"
        ),
        format!(
            "[[flow]]\nname = \"{prefix}-never\"\ncc = \"cubic\"\npaths = [\"{prefix}-gone\"]\n"
        ),
    ];
    Island { tables: tables.into(), files: Vec::new() }
}

fn check(seed: u64) {
    let alone = Scenario { islands: Vec::new(), ..scenario::random(seed) };
    let duration_ms = alone.duration_ms();
    let island = Island::random("m", duration_ms, seed);
    let alone = Scenario { islands: vec![island.clone()], ..alone };
    // Names before and after those of the island, in the file and in the alphabet.
    let others = if seed.is_multiple_of(2) { ["a", "z"] } else { ["z", "a"] };
    let neighbour = Island::random(others[0], duration_ms, seed + (1 << 32));
    let together = Scenario { islands: vec![idle(others[1]), island, neighbour], ..alone.clone() };
    let expected = told(&alone.text(), &alone).under("m-");
    let found = told(&together.shuffled(seed), &together).under("m-");
    expected.assert_same(&found, &format!("KNEE_SEED={seed}"));
}

#[test]
fn what_shares_nothing_does_not_touch_each_other() {
    each_seed(SCENARIOS, check);
}

/// Keys that cause random draws, or hash a name.
const DRAWING: [&str; 13] = [
    "jitter",
    // The key of a link, not that of a circuit breaker.
    "\nloss = \"",
    "\nloss = [",
    "good_to_bad",
    "super_packets",
    "pie",
    "red\"",
    "fq-codel",
    "mix",
    "bbr",
    "vivace",
    "start_jitter",
    "cc = \"b",
];

/// Without randomness, another name changes nothing.
#[test]
fn another_name_changes_its_own_draws_alone() {
    let mut certain = 0;
    // Only those few run that draw nothing.
    for seed in 0..10 * SCENARIOS {
        let scenario = scenario::random(seed);
        let island = |prefix: &str| {
            let island = Island::random(prefix, scenario.duration_ms(), seed);
            Scenario { islands: vec![island], head: scenario.head.clone() }
        };
        let (one, other) = (island("m"), island("other"));
        if DRAWING.iter().any(|word| one.text().contains(word)) {
            continue;
        }
        certain += 1;
        let expected = told(&one.text(), &one).under("m-");
        let found = told(&other.text(), &other).under("other-");
        expected.assert_same(&found, &format!("KNEE_SEED={seed}"));
    }
    assert!(certain > 30, "{certain} scenarios draw nothing");
}

/// Timers of removed connections once acted on others that had taken their
/// place: a plain mix beside one over two paths ended every run.
#[test]
fn a_mix_beside_a_mix_over_several_paths_runs_to_its_end() {
    let mix = "workload = { mix = { arrival_interval = \"100 ms\", \
               sizes = { median = \"10 kB\", sigma = 1.0, max = \"1 MB\" } } }";
    for seed in 1..=10 {
        let text = format!(
            "duration = \"10 s\"\nseed = {seed}\n{}{}\
             [[flow]]\nname = \"one\"\npath = \"a\"\ncc = \"cubic\"\n{mix}\n\
             [[flow]]\nname = \"two\"\npaths = [\"a\", \"b\"]\ncc = \"cubic\"\n{mix}\n",
            lossy_path("a", 20),
            lossy_path("b", 40),
        );
        let scenario = read(&text, &[]);
        let transfers = run(&scenario).transfers;
        assert!(transfers.iter().filter(|one| one.completion_ns.is_some()).count() > 100);
    }
}

fn lossy_path(name: &str, delay_ms: u32) -> String {
    let link = "buffer = \"0.5 BDP\"\nloss = \"3 %\"";
    link_and_path(name, "2 Mbit/s", &format!("{delay_ms} ms"), link)
}

/// A similar fault, without a panic: a restarted subflow took a slot whose old timers
/// were still queued.
#[test]
fn a_path_that_comes_and_goes_does_not_touch_a_mix_elsewhere() {
    let mix = format!(
        "{}[[flow]]\nname = \"mix\"\npath = \"m\"\ncc = \"cubic\"\nworkload = {{ mix = {{ \
         arrival_interval = \"60 ms\", sizes = {{ median = \"10 kB\", sigma = 1.0, \
         max = \"1 MB\" }} }} }}\n",
        lossy_path("m", 20),
    );
    let bulk = format!(
        "{}{}absent = [{{ from = \"1 s\", until = \"2 s\" }}, {{ from = \"3 s\", \
         until = \"4 s\" }}]\n[[flow]]\nname = \"bulk\"\npaths = [\"n\", \"o\"]\ncc = \"cubic\"\n",
        lossy_path("n", 10),
        lossy_path("o", 30),
    );
    let told = |text: &str| {
        let scenario = read(text, &[]);
        let mut told = RunRows::of(&scenario, run(&scenario));
        told.flows.retain(|(name, _), _| name == "mix");
        told.links.retain(|name, _| name == "m");
        told
    };
    for seed in 1..=40 {
        let head = format!("duration = \"6 s\"\nseed = {seed}\n");
        let alone = told(&format!("{head}{mix}"));
        let beside = told(&format!("{head}{mix}{bulk}"));
        alone.assert_same(&beside, &format!("seed {seed}"));
    }
}
