//! Answers from records in which the end of the run cuts something off: it must not decide by what
//! it hides.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{flow, records, transfer};
use knee_record::{Effect, PathsAnswer, PathsQuestion, PathsRun, Records, RunView, TransferRecord};
use knee_scenario::{Embedded, Source, Workload, parse};
use knee_units::Time;

const MILLISECONDS: u64 = 1_000_000;
const SEEDS: usize = 10;

/// The workload that a line of a scenario describes.
fn workload(line: &str) -> Workload {
    let text = format!(
        "duration = \"10 s\"\n[link.l]\nrate = \"1 Mbit/s\"\n[path.p]\nforward = [\"l\"]\n\
         reverse_delay = \"1 ms\"\n[[flow]]\nname = \"f\"\ncc = \"reno\"\nworkload = {line}\n"
    );
    let source = Source { name: "answers.toml", loader: &Embedded(&[]) };
    parse(&text, &source, &[]).unwrap().flows[0].workload.clone()
}

/// A run of one flow, `f`, from 0 s to 10 s.
fn run() -> Records {
    records(&[flow("f", 0, |t| 1e5 * t)])
}

/// Nine transfers of 10 kB, one each half second, and one of 10 MB at 1 s; the times that they take
/// in milliseconds, `None` if cut off.
fn transfers(small_ms: Option<u64>, large_ms: Option<u64>) -> Vec<TransferRecord> {
    let took = |ms: Option<u64>| ms.map(|ms| ms * MILLISECONDS);
    let small =
        (0..9).map(|number| transfer(number, 10_000, u64::from(number) * 500, took(small_ms)));
    small.chain([transfer(9, 10_000_000, 1000, took(large_ms))]).collect()
}

fn with(transfers: Vec<TransferRecord>) -> Records {
    Records { transfers, ..run() }
}

/// Compares runs over two paths together with each alone, ten seeds that are all the same.
fn compare(workload: &Workload, together: &Records, alone: [&Records; 2]) -> PathsAnswer {
    let question = PathsQuestion::new("f", workload);
    let runs = |records: &Records| -> Vec<PathsRun> {
        vec![question.of(&RunView::new(records, Time::ZERO)).unwrap(); SEEDS]
    };
    let paths = ["left".to_string(), "right".to_string()];
    PathsAnswer::new(&question, &paths, &runs(together), &alone.map(runs)).unwrap()
}

fn mix() -> Workload {
    workload("{ mix = { arrival_interval = \"500 ms\", sizes = \"10 kB\" } }")
}

/// The large transfer finishes only over both paths together. It takes the better part of the run
/// there, and no less alone.
#[test]
fn paths_are_not_better_alone_by_what_they_do_not_finish() {
    let [both, one] = [with(transfers(Some(100), Some(8000))), with(transfers(Some(80), None))];
    let answer = compare(&mix(), &both, [&one, &one]);
    assert_eq!(answer.effect, Effect::Better, "{}", answer.sentence);
    // 9 s from its start to the end.
    let alone = answer.alone[0].interval.unwrap().mean;
    assert!((alone - (9.0 * 0.08 + 9.0) / 10.0).abs() < 1e-9, "{alone}");
    assert_eq!(
        (answer.transfers, answer.together.finished, answer.alone[0].finished),
        (Some(100), Some(100), Some(90))
    );
    assert!(answer.sentence.contains("use both"), "{}", answer.sentence);
    assert!(!answer.sentence.contains("do not use both"), "{}", answer.sentence);
    let counted = "Of 100 transfers, 100 finish over both together and 90 over left alone";
    assert!(answer.sentence.contains(counted), "{}", answer.sentence);
    // The other way round.
    let answer = compare(&mix(), &one, [&both, &one]);
    assert_eq!((answer.effect, answer.best_alone), (Effect::Worse, 0), "{}", answer.sentence);
}

/// The same, but the small ones wait so much longer that the mean is larger: neither is better.
#[test]
fn a_mean_against_the_number_that_finish_depends() {
    let [both, one] = [with(transfers(Some(300), Some(8900))), with(transfers(Some(80), None))];
    let answer = compare(&mix(), &both, [&one, &one]);
    assert_eq!(answer.effect, Effect::NoDifference, "{}", answer.sentence);
    let words = ": it depends, together is 19 % later, but more transfers finish. Of 100";
    assert!(answer.sentence.contains(words), "{}", answer.sentence);
}

/// A transfer that finishes in no alternative shows nothing; without any other, all means are as if
/// it were not there.
#[test]
fn what_finishes_in_no_alternative_does_not_count() {
    let [both, one] = [with(transfers(Some(50), None)), with(transfers(Some(100), None))];
    let answer = compare(&mix(), &both, [&one, &one]);
    assert_eq!(
        answer.sentence,
        "Both together finish a transfer, on average, in 50 ms, compared with 100 ms over left \
         alone: use both, 50 % sooner."
    );
    common::close(answer.alone[1].values[0], 0.1);
}
