//! Tests the conclusions of sweeps with the code that sweeps use: how often they name a winner
//! where there is none, and how often they find one.
//!
//! `KNEE_SWEEPS=2000` raises the number of sweeps tried.

use knee_record::{GroupMeasures, SweepKey, SweepRun, SweepSummary};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

fn sweeps() -> usize {
    std::env::var("KNEE_SWEEPS").map_or(200, |text| text.parse().unwrap())
}

/// Standard normal value (Box and Muller).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let mut unit = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-2.0 * unit().ln()).sqrt() * (2.0 * std::f64::consts::PI * unit()).cos()
}

/// The measures of a run around one level: rates and times with a log-normal spread, mostly common
/// to both values of a seed; and a count, which is often the same.
fn run(random: &mut ChaCha8Rng, seed: u64, common: f64, spread: f64, factor: f64) -> SweepRun {
    let mut level = |size: f64| size * (common + spread * normal(random)).exp();
    let goodput = level(9e6) * factor;
    let measures = [
        ("goodput_bps", goodput),
        ("power", goodput / 1e7),
        ("rtt_p50_s", level(0.05)),
        ("rtt_p95_s", level(0.09)),
        ("standing_queue_s", level(0.01)),
        ("retransmit_ratio", level(0.002)),
        ("video_switches", (level(3.0) - 2.5).round().max(0.0)),
    ];
    SweepRun {
        repeat: seed,
        seed,
        data_packets: seed,
        groups: vec![GroupMeasures {
            group: "main".to_string(),
            measures: measures.map(|(name, value)| (name.to_string(), value)).into(),
            never: Vec::new(),
        }],
        ..SweepRun::default()
    }
}

/// A sweep over several names of one controller; the first is better by `factor`.
fn sweep(number: u64, names: usize, repeats: u64, spread: f64, factor: f64) -> SweepSummary {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let mut points: Vec<(Vec<usize>, Vec<SweepRun>)> =
        (0..names).map(|name| (vec![name], Vec::new())).collect();
    for seed in 0..repeats {
        let common = 0.3 * normal(&mut random);
        for (name, (_, runs)) in points.iter_mut().enumerate() {
            let factor = if name == 0 { factor } else { 1.0 };
            runs.push(run(&mut random, seed, common, spread, factor));
        }
    }
    let values = (0..names).map(|name| format!("name-{name}")).collect();
    let keys = vec![SweepKey { name: "flow.main.cc".to_string(), values }];
    let command = (String::new(), String::new());
    SweepSummary::new("", command, keys, (repeats, 0), &points, Vec::new())
}

fn names_a_winner(summary: &SweepSummary) -> bool {
    let mut places = summary.verdicts.iter().flat_map(|verdict| &verdict.places);
    places.any(|place| place.best.is_some())
}

/// At most 5 % of the sweeps, plus two standard errors, name a winner by any measure.
#[test]
fn the_same_controller_under_two_names_rarely_wins() {
    let sweeps = sweeps();
    for (names, repeats) in [(2, 2), (2, 3), (2, 5), (2, 20), (4, 5)] {
        let wrong = (0..sweeps as u64)
            .filter(|number| names_a_winner(&sweep(*number, names, repeats, 0.05, 1.0)))
            .count() as f64;
        let most = 0.05 + 2.0 * (0.05 * 0.95 / sweeps as f64).sqrt();
        let part = wrong / sweeps as f64;
        assert!(part <= most, "{names} names, {repeats} repeats: {part}");
    }
}

/// With a few repeats, then as many as the sweep advises for a difference of the size seen, a true
/// difference of 20 % is found in at least 80 % of sweeps. What the pilot runs show may by chance be
/// larger, but so may what they show of the spread.
#[test]
fn a_difference_is_found_with_the_repeats_advised() {
    let sweeps = sweeps();
    let goodput = |summary: &SweepSummary| {
        summary.verdicts.iter().find(|verdict| verdict.measure == "goodput_bps").unwrap().clone()
    };
    for (pilot, spread) in [(3, 0.04), (5, 0.06), (10, 0.10)] {
        let mut found = 0;
        for number in 0..sweeps as u64 {
            let first = goodput(&sweep(number, 2, pilot, spread, 1.2));
            let best = match (first.places[0].best, first.repeats_advised) {
                (None, Some(advised)) => {
                    goodput(&sweep(number, 2, advised.max(pilot), spread, 1.2)).places[0].best
                }
                (best, _) => best,
            };
            found += usize::from(best == Some(0));
        }
        let part = found as f64 / sweeps as f64;
        println!("{pilot} repeats at first, spread {spread}: {part}");
        assert!(part >= 0.8, "{pilot} repeats at first, spread {spread}: {part}");
    }
}

/// The sentence states what was found, or what it would take to find it.
#[test]
fn verdicts_say_what_was_found() {
    let says = |summary: SweepSummary| {
        let verdicts = summary.verdicts.into_iter();
        verdicts.map(|verdict| (verdict.measure, verdict.says)).collect::<BTreeMap<_, _>>()
    };
    let twice = &says(sweep(7, 2, 10, 0.02, 2.0))["goodput_bps"];
    assert!(twice.starts_with("Goodput: best with flow.main.cc = name-0, "), "{twice}");
    assert!(twice.contains("times name-1, "), "{twice}");
    let same = &says(sweep(7, 2, 5, 0.05, 1.0))["goodput_bps"];
    let between = "Goodput: undecided between flow.main.cc = name-0 and name-1 (";
    assert!(same.starts_with(between) && same.contains(" % apart), with 5 repeats; "), "{same}");
    let advice = "would decide a difference of this size.";
    assert!(same.contains("--repeat ") && same.ends_with(advice), "{same}");
    let alike = &says(sweep(7, 2, 40, 0.005, 1.0))["goodput_bps"];
    let between = "Goodput: alike within 1 % with flow.main.cc = name-0 and name-1 (";
    assert!(alike.starts_with(between) && alike.ends_with(")."), "{alike}");
    let one = &says(sweep(7, 2, 1, 0.05, 2.0))["goodput_bps"];
    assert_eq!(one, "Goodput: undecided with one run each; add --repeat 5.");
}

/// A sweep over values of one key, each with its goodput by seed.
fn by_goodput(values: &[&str], goodputs: &[&[f64]]) -> SweepSummary {
    let run = |seed: usize, goodput: f64| SweepRun {
        seed: seed as u64,
        data_packets: seed as u64,
        groups: vec![GroupMeasures {
            group: "main".to_string(),
            measures: [("goodput_bps".to_string(), goodput)].into(),
            never: Vec::new(),
        }],
        ..SweepRun::default()
    };
    let point = |(value, goodputs): (usize, &&[f64])| {
        let runs = goodputs.iter().enumerate().map(|(seed, goodput)| run(seed, *goodput));
        (vec![value], runs.collect())
    };
    let points: Vec<(Vec<usize>, Vec<SweepRun>)> = goodputs.iter().enumerate().map(point).collect();
    let values = values.iter().map(|value| value.to_string()).collect();
    let keys = vec![SweepKey { name: "cc".to_string(), values }];
    SweepSummary::new("", Default::default(), keys, (8, 0), &points, Vec::new())
}

/// Values are called ahead of the rest only if each of them beats each other value, among those
/// that have been run.
#[test]
fn values_are_ahead_of_those_that_they_beat() {
    let says = |values: &[&str], goodputs: &[&[f64]]| {
        let verdicts = by_goodput(values, goodputs).verdicts;
        verdicts.into_iter().find(|one| one.measure == "goodput_bps").unwrap().says
    };
    let a = [9.0e6, 9.1e6, 9.2e6, 9.0e6, 9.1e6, 9.3e6, 9.0e6, 9.2e6];
    let like_a = [9.1e6, 9.0e6, 9.2e6, 9.1e6, 9.0e6, 9.2e6, 9.1e6, 9.1e6];
    let noise = [1.0, 1.001, 0.999, 1.0, 1.002, 0.998, 1.0, 1.001];
    let less: Vec<f64> = a.iter().zip(noise).map(|(a, noise)| 0.8 * a * noise).collect();
    let unsteady = [2e6, 20e6, 5e6, 14e6, 3e6, 19e6, 4e6, 16e6];
    let all = says(&["a", "b", "c"], &[&a, &like_a, &less]);
    assert!(all.contains("cc = a and b (") && all.contains("), better than the rest"), "{all}");
    let missing = says(&["a", "b", "c"], &[&a, &like_a]);
    assert!(missing.contains("cc = a and b (") && !missing.contains("rest"), "{missing}");
    let some = says(&["a", "b", "c"], &[&a, &unsteady, &less]);
    assert!(some.contains("; c cannot be told from all of them, with 8 repeats"), "{some}");
}

/// Values that are alike and better than the others are tied; 0.5 % is no difference, however
/// certain.
#[test]
fn values_within_the_margin_are_tied() {
    let said = |goodputs: &[&[f64]]| {
        let verdicts = by_goodput(&["a", "b", "c"], goodputs).verdicts;
        verdicts.into_iter().find(|one| one.measure == "goodput_bps").unwrap().says
    };
    let noise = [1.0, 1.001, 0.999, 1.0, 1.002, 0.998, 1.0, 1.001];
    let of = |goodput: f64| noise.map(|noise| goodput * noise);
    assert_eq!(
        said(&[&of(9.05e6), &of(9e6), &of(8e6)]),
        "Goodput: tied for best, within 1 %: cc = a and b (9 to 9.05 Mbit/s, 0.6 % apart), \
         better than the rest."
    );
}

/// Two runs each in which nothing is random differ with certainty; two identical results among runs
/// that do vary are too few to tell.
#[test]
fn without_chance_two_repeats_are_certain() {
    let constant = |vary: bool| {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let point = |value: usize, random: &mut ChaCha8Rng| {
            let mut runs: Vec<SweepRun> =
                (0..2).map(|seed| run(random, seed, 0.0, 0.0, 1.0)).collect();
            for run in &mut runs {
                let goodput = if value == 0 { 9e6 } else { 6e6 };
                run.groups[0].measures.insert("goodput_bps".to_string(), goodput);
                run.data_packets = if vary { run.seed } else { 5 };
            }
            (vec![value], runs)
        };
        let points = [point(0, &mut random), point(1, &mut random)];
        let values = ["a", "b"].map(str::to_string).to_vec();
        let keys = vec![SweepKey { name: "flow.main.cc".to_string(), values }];
        SweepSummary::new("", Default::default(), keys, (2, 4), &points, Vec::new())
    };
    let best = |summary: SweepSummary| {
        let mut verdicts = summary.verdicts.into_iter();
        verdicts.find(|verdict| verdict.measure == "goodput_bps").unwrap().places[0].best
    };
    assert_eq!(best(constant(false)), Some(0));
    assert_eq!(best(constant(true)), None);
}

/// A measure whose event occurred in no run is not called the same with all values.
#[test]
fn verdicts_say_if_no_run_got_there() {
    let says = |values: &[&str], loads: &[Option<f64>]| {
        let run = |seed: u64, load: Option<f64>| SweepRun {
            seed,
            data_packets: seed,
            groups: vec![GroupMeasures {
                group: "main".to_string(),
                measures: load.map(|load| ("page_load_s".to_string(), load)).into_iter().collect(),
                never: load.map_or(vec!["page_load_s".to_string()], |_| Vec::new()),
            }],
            ..SweepRun::default()
        };
        let point = |(value, load): (usize, &Option<f64>)| {
            (vec![value], vec![run(1, *load), run(2, *load)])
        };
        let points: Vec<(Vec<usize>, Vec<SweepRun>)> =
            loads.iter().enumerate().map(point).collect();
        let values = values.iter().map(|value| value.to_string()).collect();
        let keys = vec![SweepKey { name: "cc".to_string(), values }];
        let summary = SweepSummary::new("", Default::default(), keys, (2, 4), &points, Vec::new());
        summary.verdicts.into_iter().next().unwrap().says
    };
    assert_eq!(
        says(&["cubic", "bbr"], &[None, None]),
        "Page load time: not finished within the run with cc = cubic or bbr."
    );
    assert_eq!(
        says(&["cubic", "bbr", "reno"], &[None; 3]),
        "Page load time: not finished within the run with cc = cubic, bbr or reno."
    );
    let same = says(&["cubic", "bbr"], &[Some(2.0), Some(2.0)]);
    assert_eq!(same, "Page load time: the same with cc = cubic and bbr (2 s).");
    let one = says(&["cubic", "bbr"], &[None, Some(2.0)]);
    assert!(!one.contains("not finished"), "{one}");
}

/// More values than are compared are not passed over in silence.
#[test]
fn too_many_values_are_told() {
    let of = |count: usize| sweep(7, count, 2, 0.05, 1.0);
    assert!(of(10).not_compared().is_empty() && !of(10).verdicts.is_empty());
    let eleven = of(11);
    assert!(eleven.verdicts.is_empty());
    assert_eq!(
        eleven.not_compared(),
        ["The 11 values of flow.main.cc are too many to compare each with every other one; the \
          table and the report have the figures. For answers, give at most 10 values."]
    );
}
