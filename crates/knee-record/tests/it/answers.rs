//! Answers from records in which the end of the run cuts something off: it must not decide by what
//! it hides.

use crate::common::{SECOND, flow, records, transfer};
use knee_record::{
    Judgement, MixAnswer, MixPair, MixSeed, ObjectRecord, PathsAnswer, PathsQuestion, PathsRun,
    Records, RunView, TransferRecord,
};
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
    PathsAnswer::new(&question, &paths, &runs(together), &alone.map(runs), &[]).unwrap()
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
    assert_eq!(answer.effect, Judgement::Better, "{}", answer.sentence);
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
    assert_eq!((answer.effect, answer.best_alone), (Judgement::Worse, 0), "{}", answer.sentence);
}

/// The same, but the small ones wait so much longer that the mean is larger: neither is better.
#[test]
fn a_mean_against_the_number_that_finish_depends() {
    let [both, one] = [with(transfers(Some(300), Some(8900))), with(transfers(Some(80), None))];
    let answer = compare(&mix(), &both, [&one, &one]);
    assert_eq!(answer.effect, Judgement::Undecided, "{}", answer.sentence);
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
    crate::common::close(answer.alone[1].values[0], 0.1);
}

/// A file that finishes in no alternative, and a mix of which no transfer does: nothing is known.
#[test]
fn a_run_that_is_too_short_for_either_side_tells_nothing() {
    let mut short = with(Vec::new());
    short.flows[0].size_bytes = 10_000_000;
    let answer = compare(&workload("{ file = \"10 MB\" }"), &short, [&short, &short]);
    let words = "Both together, and each path alone, finish in longer than the run (10 of 10 \
                 seeds): the run is too short to tell.";
    assert_eq!(answer.sentence, words);
    assert_eq!(answer.effect, Judgement::TooShort);
    let none = with(transfers(None, None));
    let answer = compare(&mix(), &none, [&none, &none]);
    assert!(answer.sentence.ends_with(": the run is too short to tell."), "{}", answer.sentence);
}

/// A video whose segments of 4 s have this bitrate; the second arrives `stall_s` late.
fn video(bitrate_bps: u64, stall_s: u64) -> Records {
    let segment = |number: u32, stalled_s: u64, at_s: u64| ObjectRecord {
        number,
        size_bytes: bitrate_bps * 4 / 8,
        requested_ns: 0,
        completed_ns: Some(at_s * SECOND),
        quality: Some(0),
        bitrate_bps,
        buffer_ns: 4 * SECOND,
        stalled_ns: stalled_s * SECOND,
        ..ObjectRecord::default()
    };
    let objects = vec![segment(0, 0, 0), segment(1, stall_s, 4 + stall_s)];
    Records { objects, ..run() }
}

fn dash() -> Workload {
    workload("\"dash\"")
}

/// The path alone has the higher bitrate and stands still for 3 of 10 s.
#[test]
fn stalls_decide_before_the_bitrate() {
    let (steady, stalling) = (video(1_000_000, 0), video(2_000_000, 3));
    let answer = compare(&dash(), &steady, [&stalling, &stalling]);
    assert_eq!(answer.effect, Judgement::Better);
    assert_eq!(
        answer.sentence,
        "Both together play the video at 1 Mbit/s, compared with 2 Mbit/s over left alone: use \
         both: the video does not stall, compared with 3 s over left alone, although the bitrate \
         is 50 % less."
    );
    let answer = compare(&dash(), &stalling, [&steady, &steady]);
    assert_eq!(answer.effect, Judgement::Worse);
    let words = ": do not use both: the video stalls for 3 s, compared with none over left alone, \
                 although the bitrate is 100 % more.";
    assert!(answer.sentence.contains(words), "{}", answer.sentence);
    assert_eq!((answer.together.stalled_s, answer.alone[0].stalled_s), (Some(3.0), Some(0.0)));
}

/// The path with the higher bitrate is not the best if it stalls; among paths that stall alike the
/// bitrate decides, and the sentence does not speak of stalls.
#[test]
fn the_best_path_for_a_video_is_one_that_does_not_stall() {
    let (steady, stalling) = (video(1_000_000, 0), video(4_000_000, 3));
    let answer = compare(&dash(), &video(2_000_000, 0), [&stalling, &steady]);
    assert_eq!((answer.best_alone, answer.effect), (1, Judgement::Better), "{}", answer.sentence);
    assert_eq!(
        answer.sentence,
        "Both together play the video at 2 Mbit/s, compared with 1 Mbit/s over right alone: use \
         both, 100 % more. Over left alone it plays at 4 Mbit/s, but stalls for 3 s."
    );
}

/// A segment that never arrives stalls the video until the end: the last one played until 4 s.
#[test]
fn a_segment_that_never_arrives_is_a_stall() {
    let mut dead = video(4_000_000, 0);
    dead.objects[1].completed_ns = None;
    let steady = video(1_000_000, 0);
    let answer = compare(&dash(), &steady, [&dead, &dead]);
    assert_eq!((answer.effect, answer.alone[0].stalled_s), (Judgement::Better, Some(6.0)));
    // Nothing arrived at all.
    dead.objects.remove(0);
    let answer = compare(&dash(), &steady, [&dead, &dead]);
    assert_eq!((answer.effect, answer.alone[0].stalled_s), (Judgement::Better, Some(10.0)));
}

fn pair() -> MixPair {
    MixPair {
        name: "clients".to_string(),
        test_flow: "f".to_string(),
        control_flow: "f".to_string(),
        test: "bbr".to_string(),
        control: "cubic".to_string(),
        flows: vec!["f".to_string()],
        links: Vec::new(),
    }
}

/// Compares mixes under test and control, ten seeds that are all the same.
fn compare_mixes(test: &Records, control: &Records) -> MixAnswer {
    let [test, control] = [test, control].map(|records| RunView::new(records, Time::ZERO));
    let seed = MixSeed::new(&pair(), &test, [&test, &control]);
    MixAnswer::new(vec![pair()], &vec![vec![seed]; SEEDS], &[]).unwrap()
}

/// Transfers of 10 kB and five of 10 MB of which some finish.
fn classes(small_ms: u64, large_ms: [Option<u64>; 5]) -> Records {
    let mut all = transfers(Some(small_ms), None);
    all.pop();
    let large = (9..).zip(large_ms);
    all.extend(
        large
            .map(|(number, ms)| transfer(number, 10_000_000, 1000, ms.map(|ms| ms * MILLISECONDS))),
    );
    with(all)
}

/// Large transfers that only one controller finishes have a class of their own, and are better
/// under it.
#[test]
fn a_controller_is_not_kept_for_what_it_does_not_finish() {
    let test = classes(100, [Some(4000), Some(5000), Some(6000), Some(8000), Some(4500)]);
    let control = classes(50, [None; 5]);
    let answer = compare_mixes(&test, &control);
    let rows: Vec<(&str, Judgement, u64, u64)> = answer
        .classes
        .iter()
        .map(|class| (class.sizes.as_str(), class.effect, class.transfers, class.on_one_side))
        .collect();
    let expected =
        [("under 100 kB", Judgement::Worse, 90, 0), ("3 to 30 MB", Judgement::Better, 0, 50)];
    assert_eq!(rows, expected, "{}", answer.sentences[0]);
    assert_eq!(answer.classes[1].cut_off, [0, 50]);
    let words = "clients: it depends on the size: bbr is better for 3 to 30 MB (";
    assert!(answer.sentences[0].starts_with(words), "{}", answer.sentences[0]);
    let words = " For 3 to 30 MB, the end of the run cuts off 0 transfers under bbr and 50 under \
                 cubic; where one is cut off that finishes on the other side, the time until \
                 then counts.";
    assert!(answer.sentences[0].contains(words), "{}", answer.sentences[0]);
    assert!(
        answer.sentences[0].contains(": 140 transfers on each side."),
        "{}",
        answer.sentences[0]
    );
}

/// In one class with the small ones, so few are they: the mean is against the controller that
/// finishes more.
#[test]
fn a_mean_against_the_number_that_finish_does_not_keep_a_controller() {
    let [test, control] = [with(transfers(Some(300), Some(8900))), with(transfers(Some(80), None))];
    let answer = compare_mixes(&test, &control);
    assert_eq!(answer.classes.len(), 1);
    assert_eq!(answer.classes[0].effect, Judgement::Undecided);
    let words = "clients: neither bbr nor cubic is better in every respect. It cannot be told for \
                 under 30 MB: bbr takes 19 % longer, but the end of the run cuts off 0 \
                 transfers under bbr and 10 under cubic;";
    assert!(answer.sentences[0].starts_with(words), "{}", answer.sentences[0]);
}

/// Nothing finishes on either side.
#[test]
fn a_mix_of_which_nothing_finishes_is_told() {
    let none = with(transfers(None, None));
    let answer = compare_mixes(&none, &none);
    assert_eq!(
        answer.sentences,
        ["clients: the run is too short to tell: none of 100 transfers finishes within it, \
          neither under bbr nor under cubic. This is based on 10 seeds."]
    );
    assert!(answer.classes.is_empty());
    let same = with(transfers(Some(50), None));
    let answer = compare_mixes(&same, &same);
    let words = "clients: bbr and cubic are alike for under 30 MB. For under 30 MB, the \
                 end of the run cuts off 10 transfers under bbr and 10 under cubic; only those \
                 that finish on both sides count. bbr retransmits";
    assert!(answer.sentences[0].starts_with(words), "{}", answer.sentences[0]);
    let whole = with(transfers(Some(50), Some(3000)));
    let sentence = &compare_mixes(&whole, &whole).sentences[0];
    assert!(sentence.contains("under 30 MB. bbr retransmits"), "{sentence}");
}
