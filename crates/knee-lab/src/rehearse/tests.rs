//! Blocks made by hand.

use super::*;
use knee_steer::Verdict as Outcome;

const KEY: &str = "all";

fn block(ln_bps: f64, is_void: bool) -> Block {
    let key = (KEY.to_string(), 0);
    let mut block = Block { is_void, ..Block::default() };
    block.classes.insert(key, [Half { count: 10, unfinished: 0, ln_bps: 10.0 * ln_bps }; 2]);
    (0..100).for_each(|at| block.took_us.add(1e6 + 1e4 * f64::from(at)));
    block
}

fn group(void: &[(u64, Treatment)]) -> Group {
    let pair = MixPair {
        name: KEY.to_string(),
        test_flow: "b".to_string(),
        control_flow: "a".to_string(),
        test: "bbr".to_string(),
        control: "cubic".to_string(),
        flows: Vec::new(),
        links: Vec::new(),
    };
    let mut blocks = BTreeMap::new();
    for number in 0..4 {
        let pair = [block(15.0, false), block(15.1, number == 0)];
        blocks.extend((0..).map(|side| Which::Calibration(number, side)).zip(pair));
    }
    for number in 0..8 {
        for treatment in [Treatment::Control, Treatment::Test, Treatment::Half] {
            let is_void = void.contains(&(number, treatment));
            // A block that does not count is absurd.
            let ln_bps = if is_void { 99.0 } else { 15.0 };
            blocks.insert(Which::Triple(number, treatment), block(ln_bps, is_void));
        }
    }
    Group { pairs: vec![pair], blocks }
}

fn scenario(duration_s: u64, warmup_s: u64) -> Scenario {
    Scenario {
        duration: Time::from_secs(duration_s),
        warmup: Time::from_secs(warmup_s),
        ..Scenario::default()
    }
}

fn settings() -> RehearseSettings {
    RehearseSettings {
        on: "kernel".to_string(),
        in_use: None,
        set: Vec::new(),
        seed: None,
        triples: 8,
        calibration: 4,
        truth: 0,
        accepts: Vec::new(),
    }
}

/// A block of a run for which the host was too busy takes its triple with it, in all groups, and
/// nothing else.
#[test]
fn void_blocks_do_not_count() {
    let groups =
        [group(&[(2, Treatment::Half), (2, Treatment::Test)]), group(&[(5, Treatment::Control)])];
    let rehearsed = judge(&groups, &settings(), &scenario(4, 1)).unwrap().unwrap();
    assert_eq!((rehearsed.triples, rehearsed.void), (8, 2));
    let [class] = rehearsed.classes.as_slice() else { panic!("{rehearsed:?}") };
    assert_eq!(class.trial.verdict(), (Outcome::Undecided, 6));
    assert_eq!(class.trial.total().unwrap().mean, 0.0);
    assert_eq!(class.trial.neighbours().unwrap().mean, 0.0);
}

#[test]
fn a_busy_host_proves_nothing() {
    let void: Vec<(u64, Treatment)> = (0..8).map(|number| (number, Treatment::Test)).collect();
    let error = judge(&[group(&void)], &settings(), &scenario(4, 1)).unwrap_err();
    assert!(matches!(error, Error::Rehearse(RehearseError::Busy)), "{error}");
}

/// Completion from 1 to 1.99 s, evenly: the 95th percentile is 1.95 s, so a block takes 5.85 s, and
/// the 90th, the burn-in, 1.9 s; within the 2.2 % of a sketch.
#[test]
fn blocks_too_short_for_their_transfers() {
    let groups = [group(&[])];
    let near = |time: Time, s: f64| (time.as_nanos() as f64 / 1e9 / s - 1.0).abs() < 0.022;
    let (block, burn_in) = too_short(&groups, &scenario(4, 1));
    let (block, burn_in) = (block.unwrap(), burn_in.unwrap());
    assert!(near(block, 5.85) && near(burn_in, 1.9), "{block:?} {burn_in:?}");
    assert_eq!(too_short(&groups, &scenario(7, 2)), (None, None));
    // What is long enough is not named.
    assert!(matches!(too_short(&groups, &scenario(60, 1)), (None, Some(_))));
    assert!(matches!(too_short(&groups, &scenario(4, 2)), (Some(_), None)));
}

/// The class is judged by the blocks before the first triple alone: a triple in which it has no
/// transfer is left out, and neither the threshold nor a verdict reached before changes.
#[test]
fn later_blocks_do_not_change_what_was_said() {
    let with = |triples: u64| {
        let mut group = group(&[]);
        group.blocks.retain(|which, _| !matches!(which, Which::Triple(at, _) if *at >= triples));
        let key = (KEY.to_string(), 1);
        for (which, block) in &mut group.blocks {
            // A second class, of which the seventh triple has nothing.
            if !matches!(which, Which::Triple(6, Treatment::Half)) {
                let half = block.classes[&(KEY.to_string(), 0)];
                block.classes.insert(key.clone(), half);
            }
            // And B is faster by far.
            if matches!(which, Which::Triple(_, Treatment::Test)) {
                for halves in block.classes.values_mut() {
                    halves.iter_mut().for_each(|half| half.ln_bps += 50.0);
                }
            }
        }
        judge(&[group], &RehearseSettings { triples: 8, ..settings() }, &scenario(4, 1))
            .unwrap()
            .unwrap()
    };
    let (before, after) = (with(7), with(8));
    assert_eq!((before.classes.len(), after.classes.len()), (2, 2));
    assert_eq!((before.classes[1].left_out, after.classes[1].left_out), (1, 1));
    for (before, after) in before.classes.iter().zip(&after.classes) {
        assert_eq!(before.trial.threshold(), after.trial.threshold());
    }
    assert_eq!(with(7).classes[0].trial.verdict(), (Outcome::More, 7));
    assert_eq!(after.classes[0].trial.verdict(), (Outcome::More, 7));
    // The other class has a triple less.
    assert_eq!(after.classes[1].trial.verdict(), (Outcome::More, 7));
    assert_eq!(before.classes[1].trial.verdict().0, Outcome::TooFew);
}

/// All transfers that count have a tenth of the block until its end.
#[test]
fn transfers_count_if_they_have_time_to_finish() {
    let tail = |duration_s, warmup_s| Counted::of(&scenario(duration_s, warmup_s)).tail;
    assert_eq!(tail(40, 8), Time::from_secs(4));
    assert_eq!(tail(40, 0), Time::from_secs(4));
    assert_eq!(tail(40, 36), Time::from_secs(2));
}

/// Each order of a triple's blocks occurs, and each of a pair's: what a path does meanwhile must not
/// fall on one controller.
#[test]
fn blocks_take_place_in_the_order_that_is_drawn() {
    let settings = RehearseSettings { triples: 100, truth: 100, ..settings() };
    let mut runs = plan(&settings, 1, 0);
    runs.sort_by_key(Planned::turn);
    let counts = |stage: u8, size: usize| {
        let of = runs.iter().filter(|planned| planned.which.turn().0 == stage);
        let treatments: Vec<Treatment> = of.map(|planned| planned.treatment).collect();
        let mut counts: BTreeMap<Vec<Treatment>, u32> = BTreeMap::new();
        for block in treatments.chunks(size) {
            *counts.entry(block.to_vec()).or_default() += 1;
        }
        counts.into_values().collect::<Vec<_>>()
    };
    // With 100 triples in six orders, 16.7 each and 3.7 of standard deviation; 50 and 5 for pairs.
    let triples = counts(1, 3);
    assert!(
        triples.len() == 6 && triples.iter().all(|count| (5..=28).contains(count)),
        "{triples:?}"
    );
    let pairs = counts(2, 2);
    assert!(pairs.len() == 2 && pairs.iter().all(|count| (35..=65).contains(count)), "{pairs:?}");
    let seeds = |of: fn(&Planned) -> bool| {
        let seeds = runs.iter().filter(|planned| of(planned)).map(|planned| planned.seed);
        seeds.collect::<std::collections::BTreeSet<u64>>().len()
    };
    assert_eq!(seeds(|planned| planned.which.turn().0 < 2), 300 + 8, "each block is another time");
    assert_eq!(
        seeds(|planned| planned.which.turn().0 == 2),
        100,
        "each pair has the same arrivals"
    );
}
