//! Experiments from blocks made by hand, without a host.

use knee_policy::{
    Block, Experiment, GroupBlock, Judged, Policy, Sums, Timeline, Times, Unchanged, certain_harm,
    check, judge, noise,
};
use knee_steer::{Design, Guarded, Treatment, Verdict};
use std::time::Duration;

const TRIPLES: u64 = 24;

fn timeline() -> Timeline {
    let block = Duration::from_secs(600);
    Timeline { block, burn_in: block / 10, calibration: 4, triples: TRIPLES }
}

/// A block of a hundred connections with these RTTs and busy times, milliseconds: of ninety, and of
/// the ten in the tail.
pub fn block(number: u64, half: bool, rtt_ms: [f64; 2], busy_ms: [f64; 2]) -> Block {
    let mut times = Times { rtt_min_us: Some(20_000), ..Times::default() };
    for at in 0..100 {
        let late = usize::from(at >= 90);
        // Variation of 1 %, so that no bucket holds all of them.
        let apart = 1.0 + 1e-4 * f64::from(at);
        times.rtt_us.add(1e3 * rtt_ms[late] * apart);
        times.small_us.add(1e3 * busy_ms[late] * apart);
    }
    let sums = Sums { count: 100, unfinished: 0, ln_bps: 100.0 * 15.0 };
    let mut group = GroupBlock { times, bytes: [1_000, 1_000_000], ..GroupBlock::default() };
    group.classes[0] = if half { [sums; 2] } else { [sums, Sums::default()] };
    Block { number, groups: vec![group], reports: 100, ..Block::default() }
}

/// Blocks in which B has other times than A, whose noise is 2 %.
fn judged(rtt_ms: [f64; 2], busy_ms: [f64; 2]) -> Judged {
    let (timeline, design) = (timeline(), Design::new(7));
    let usual = |number: u64, half| {
        let noise = if number.is_multiple_of(2) { 1.0 } else { 1.02 };
        block(number, half, [30.0, 60.0 * noise], [50.0, 100.0 * noise])
    };
    let mut blocks: Vec<Block> = (0..8).map(|number| usual(number, false)).collect();
    for triple in 0..TRIPLES {
        for treatment in design.order("web", triple) {
            let number = blocks.len() as u64;
            blocks.push(match treatment {
                Treatment::Control => usual(number, false),
                Treatment::Test => block(number, false, rtt_ms, busy_ms),
                Treatment::Half => usual(number, true),
            });
        }
    }
    let mut judged = judge(&[&blocks], &timeline, &design, &["web".to_string()], &[]).unwrap();
    assert_eq!(judged.len(), 1);
    judged.remove(0)
}

/// The path has 20 ms. With 60 ms at the 95th percentile, 40 ms are queueing; with 75 ms 55, which
/// is 56 / 41 = 1.37 times as much with the millisecond added, over the margin of 1.2. The mean
/// rate is the same throughout.
#[test]
fn tails_of_blocks_stop_an_experiment() {
    for (rtt_ms, busy_ms, verdict) in [
        ([30.0, 60.0], [50.0, 100.0], Verdict::Alike),
        ([30.0, 64.0], [50.0, 100.0], Verdict::Alike),
        ([30.0, 75.0], [50.0, 100.0], Verdict::Stopped(Guarded::Delay)),
        ([30.0, 60.0], [50.0, 130.0], Verdict::Stopped(Guarded::Completion)),
        ([30.0, 40.0], [50.0, 80.0], Verdict::Alike),
    ] {
        let judged = judged(rtt_ms, busy_ms);
        assert_eq!(judged.trial.verdict().0, verdict, "{rtt_ms:?} {busy_ms:?}");
        let delay = judged.trial.guards().each().find(|(harm, _)| *harm == Guarded::Delay);
        let mean = delay.unwrap().1.mean().unwrap();
        let by_hand = ((rtt_ms[1] - 19.0) / 41.0_f64).ln();
        assert!((mean - by_hand).abs() < 0.05, "{mean} {by_hand}");
    }
}

/// Under B a quarter of the connections that wrote 1 to 10 MB do not finish. Those that do are faster,
/// and the retransmissions, delays and small transfers are as under A: only the guard of unfinished
/// transfers sees it, in the class that has them, and stops the group, whatever the seed.
#[test]
fn unfinished_transfers_stop_an_experiment() {
    let timeline = timeline();
    for seed in [1, 2, 3] {
        let design = Design::new(seed);
        let of = |number: u64, treatment: Treatment| {
            let noise = if number.is_multiple_of(2) { 1.0 } else { 1.02 };
            let half = treatment == Treatment::Half;
            let mut block = block(number, half, [30.0, 60.0], [50.0, 100.0 * noise]);
            let cut = if treatment == Treatment::Test { 15 } else { 0 };
            let faster = if treatment == Treatment::Test { 0.2 } else { 0.0 };
            let mean = 16.0 + 0.02 * noise + faster;
            let sums = Sums { count: 60, unfinished: cut, ln_bps: 60.0 * mean };
            block.groups[0].classes[2] = [sums; 2];
            block
        };
        let mut blocks: Vec<Block> = (0..8).map(|number| of(number, Treatment::Control)).collect();
        for triple in 0..TRIPLES {
            for treatment in design.order("web", triple) {
                blocks.push(of(blocks.len() as u64, treatment));
            }
        }
        let judged = judge(&[&blocks], &timeline, &design, &["web".to_string()], &[]).unwrap();
        let [small, large] = judged.as_slice() else { panic!("{judged:?}") };
        assert_eq!(large.trial.verdict(), (Verdict::Stopped(Guarded::Unfinished), 7));
        assert_eq!(small.trial.verdict().0, Verdict::Alike);
        let harmed = certain_harm(&judged);
        assert!(harmed[&0].contains("unfinished"), "{harmed:?}");
        let first =
            judge(&[&blocks[..8 + 18]], &timeline, &design, &["web".to_string()], &[]).unwrap();
        assert_eq!(first[1].trial.verdict().0, Verdict::TooFew);
    }
}

/// A guard is certain of harm in one of two groups: B is stopped there, in every later block, and goes
/// on in the other. The first block without B tells of it, so the triples before it are those judged.
#[test]
fn certain_harm_stops_a_group() {
    let (timeline, names) = (timeline(), ["web", "api"].map(str::to_string));
    let text = "name = \"edge\"\nseed = 7\n[[group]]\nname = \"web\"\nprefixes = [\"192.0.2.0/25\"]\n\
                controller = \"bbr\"\ncontrol = \"cubic\"\n[[group]]\nname = \"api\"\n\
                prefixes = [\"192.0.2.128/25\"]\ncontroller = \"bbr\"\ncontrol = \"cubic\"\n";
    let policy = Policy::parse(text).unwrap();
    let design = Design::new(policy.seed);
    let of = |number: u64, treatment: Treatment, tail_ms: f64| {
        let noise = if number.is_multiple_of(2) { 1.0 } else { 1.02 };
        let tail = if treatment == Treatment::Test { tail_ms } else { 60.0 * noise };
        block(number, treatment == Treatment::Half, [30.0, tail], [50.0, 100.0 * noise])
    };
    let both = |number: u64, [web, api]: [Treatment; 2]| {
        let (mut block, other) = (of(number, web, 90.0), of(number, api, 60.0));
        block.groups.extend(other.groups);
        block
    };
    let mut blocks: Vec<Block> =
        (0..8).map(|number| both(number, [Treatment::Control; 2])).collect();
    let harmed = (0..TRIPLES).find_map(|triple| {
        let orders = ["web", "api"].map(|name| design.order(name, triple));
        for place in 0..3 {
            blocks.push(both(blocks.len() as u64, orders.map(|order| order[place])));
        }
        let judged = judge(&[&blocks], &timeline, &design, &names, &[]).unwrap();
        Some(certain_harm(&judged)).filter(|harmed| !harmed.is_empty())
    });
    let harmed = harmed.unwrap();
    assert_eq!(harmed.keys().collect::<Vec<_>>(), [&0]);
    assert!(harmed[&0].contains("queueing delay"), "{harmed:?}");

    let first = blocks.len() as u64;
    let arms_until = |first: u64, blocks: &[Block], stops: Option<Duration>| {
        let begun = Experiment::begin(&policy, timeline, Vec::new(), blocks, first);
        let (mut experiment, mut seen, mut ended) = (begun.unwrap(), Vec::new(), Vec::new());
        for number in 0..9 {
            let now = number * timeline.block;
            if stops == Some(Duration::ZERO) && number == 0 {
                experiment.stop(0, &harmed[&0], &mut Unchanged).unwrap();
            }
            ended.extend(experiment.step(now, &mut Unchanged).unwrap().block);
            if stops == Some(now) && number > 0 {
                assert!(experiment.stop(0, &harmed[&0], &mut Unchanged).unwrap());
                assert!(!experiment.stop(0, "again", &mut Unchanged).unwrap());
            }
            let arms = experiment.assigned().1;
            seen.push([0, 1].map(|group| arms[group].arms[0].clone()));
        }
        (seen, ended)
    };
    // At the beginning of a process, and in its fourth block.
    for stopped_in in [0, 3] {
        let stops = u32::try_from(stopped_in).unwrap() * timeline.block;
        let (seen, ended) = arms_until(first, &blocks, Some(stops));
        assert!(seen[stopped_in..].iter().all(|[web, _]| web == "A"), "{seen:?}");
        assert!(seen.iter().any(|[_, api]| api == "B"), "{seen:?}");
        let told = ended.iter().position(|block| block.groups[0].stopped.is_some());
        assert_eq!(told, Some(stopped_in));
        assert!(ended.iter().all(|block| block.groups[1].stopped.is_none()));
        // The next process knows from the blocks.
        let all: Vec<Block> = blocks.iter().cloned().chain(ended).collect();
        let (seen, _) = arms_until(all.len() as u64, &all, None);
        assert!(seen.iter().all(|[web, _]| web == "A"), "{seen:?}");
    }
    let (seen, _) = arms_until(first, &blocks, None);
    assert!(seen.iter().any(|[web, _]| web == "B"), "{seen:?}");
}

/// Times survive the file of blocks; blocks without them, of an earlier version, are readable.
#[test]
fn times_are_kept() {
    let block = block(3, true, [30.0, 60.0], [50.0, 100.0]);
    let line = serde_json::to_string(&block).unwrap();
    let again: Block = serde_json::from_str(&line).unwrap();
    assert_eq!(again, block);
    let mut older: serde_json::Value = serde_json::from_str(&line).unwrap();
    older["groups"][0].as_object_mut().unwrap().remove("times");
    let older: Block = serde_json::from_value(older).unwrap();
    assert_eq!(older.groups[0].times, Times::default());
}

/// Level of a block of 10 min, of which a day has 144: the same from day to day.
fn daily(number: u64) -> f64 {
    let of_day = number % 144;
    // A sequence of no simple pattern, from -0.5 to 0.5.
    (of_day * 89 % 144) as f64 / 144.0 - 0.5
}

/// Blocks of three days of 10 min under labels of this design, with an effect of B.
fn days(timeline: &Timeline, design: &Design, effect: f64, repeats: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut push = |part: f64| {
        let number = blocks.len() as u64;
        // Without repetition each day has other blocks: shifted by 7.
        let level = daily(if repeats { number } else { number + 7 * (number / 144) });
        // Noise of 1 %, of another period.
        let noise = 0.01 * ((number * 31 % 17) as f64 / 8.0 - 1.0);
        let mean = 15.0 + level + noise + part * effect;
        let sums = Sums { count: 50, unfinished: 0, ln_bps: 50.0 * mean };
        let mut group = GroupBlock { bytes: [1_000, 1_000_000], ..GroupBlock::default() };
        group.parts = [50, 50];
        group.classes[0] = [sums; 2];
        blocks.push(Block { number, groups: vec![group], reports: 100, ..Block::default() });
    };
    (0..2 * timeline.calibration).for_each(|_| push(0.0));
    for triple in 0..timeline.triples {
        for treatment in design.order("web", triple) {
            push(match treatment {
                Treatment::Control => 0.0,
                Treatment::Test => 1.0,
                Treatment::Half => 0.5,
            });
        }
    }
    blocks
}

/// What the day before explains is removed from each difference, also in the presence of an effect;
/// days that are not alike explain nothing. The variance of two levels is 2 / 12, that of the noise
/// under 1 % of it.
#[test]
fn the_day_before_is_a_forecast() {
    let timeline = Timeline { triples: 140, ..timeline() };
    let (design, names) = (Design::new(7), ["web".to_string()]);
    let judged =
        |blocks: &[Block]| judge(&[blocks], &timeline, &design, &names, &[]).unwrap().remove(0);
    for effect in [0.0, 0.02] {
        let blocks = days(&timeline, &design, effect, true);
        let trial = judged(&blocks).trial;
        assert!(trial.covariate().remains().unwrap() < 0.05, "{:?}", trial.covariate());
        let verdict = if effect > 0.0 { Verdict::More } else { Verdict::Undecided };
        assert_eq!(trial.verdict().0, verdict);
        // The first day is too short for forecasts.
        let first = judged(&blocks[..150]).trial;
        assert_eq!(first.covariate().remains(), None);
        let other = judged(&days(&timeline, &design, effect, false)).trial;
        assert_eq!(other.covariate().remains(), None, "{:?}", other.covariate());
    }
    // Blocks of the day before that are void forecast nothing.
    let mut blocks = days(&timeline, &design, 0.0, true);
    for block in &mut blocks[8..8 + 3 * 92] {
        block.void = Some("late".to_string());
    }
    assert_eq!(judged(&blocks).trial.covariate(), &knee_steer::Covariate::default());
}

/// Random labels on blocks without an effect see one in at most 5 % and two standard errors, but in
/// some, so the check could find more. The noise is computed here from its definition.
#[test]
fn observed_blocks_show_few_effects() {
    let timeline = Timeline { triples: 90, ..timeline() };
    let names = ["web".to_string()];
    let blocks = days(&timeline, &Design::new(7), 0.0, false);
    let checked = check(&blocks, &timeline, &names, 1000).unwrap();
    assert!((1..=64).contains(&checked.seen), "{checked:?}");
    assert!(checked.stopped <= 64 && checked.labellings == 1000, "{checked:?}");
    // With an effect of the labels that were drawn, only these show it.
    let tried = days(&timeline, &Design::new(7), 0.5, false);
    let judged = judge(&[&tried], &timeline, &Design::new(7), &names, &[]).unwrap().remove(0);
    assert_eq!(judged.trial.verdict().0, Verdict::More);
    assert!(check(&tried, &timeline, &names, 1000).unwrap().seen <= 64);
    let found = noise(&blocks, &timeline, 0, 0).unwrap();
    let mean = |block: &Block| block.groups[0].classes[0][0].ln_bps / 50.0;
    let squares: Vec<f64> = blocks[8..]
        .chunks(3)
        .flat_map(|three| [(0, 1), (1, 2), (2, 0)].map(|(a, b)| mean(&three[a]) - mean(&three[b])))
        .map(|difference| difference * difference)
        .collect();
    let deviation = (squares.iter().sum::<f64>() / squares.len() as f64).sqrt();
    assert!((found.deviation - deviation).abs() < 1e-12 && found.triples == 90, "{found:?}");
    // 2 * 7.85 * (sd / ln 1.05)^2.
    let by_hand = (15.7 * (deviation / 0.048_790).powi(2)).ceil();
    assert!((found.triples_for(0.05) as f64 - by_hand).abs() <= 1.0, "{found:?}");
    assert_eq!(check(&blocks[..10], &timeline, &names, 10), None);
}
