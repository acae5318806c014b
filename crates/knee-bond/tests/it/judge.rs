//! Harmful links are left out, and no others. The inputs follow from the given rates; there is no
//! clock.

use knee_bond::judge::{Judge, Seen, Verdict};
use knee_units::Time;

/// A link that loses this many of a hundred packets, with its RTT in ms and its cost.
#[derive(Clone, Copy)]
struct Course {
    per_second: u64,
    lost_percent: u64,
    srtt_ms: u64,
    cost: u8,
}

fn seen(number: usize, course: Course, second: u64) -> Seen {
    let sent = course.per_second * second;
    let lost = sent * course.lost_percent / 100;
    Seen { number, sent, lost, srtt: Time::from_millis(course.srtt_ms), cost: course.cost }
}

/// Returns the verdicts on these links, with the second of each.
fn judged(
    judge: &mut Judge,
    courses: &[Course],
    seconds: std::ops::Range<u64>,
) -> Vec<(u64, Verdict)> {
    let mut said = Vec::new();
    for second in seconds {
        let links: Vec<Seen> = courses
            .iter()
            .enumerate()
            .map(|(number, course)| seen(number, *course, second))
            .collect();
        let verdicts = judge.look(Time::from_secs(second), &links);
        said.extend(verdicts.into_iter().map(|verdict| (second, verdict)));
    }
    said
}

const GOOD: Course = Course { per_second: 500, lost_percent: 0, srtt_ms: 20, cost: 0 };
const LOSSY: Course = Course { per_second: 500, lost_percent: 43, srtt_ms: 20, cost: 0 };

#[test]
fn a_link_that_loses_two_fifths_is_left_out_and_tried_again() {
    let mut judge = Judge::default();
    let said = judged(&mut judge, &[GOOD, LOSSY], 0..60);
    let [(second, Verdict::LeaveOut(1, why))] = &said[..] else { panic!("{said:?}") };
    assert!(*second <= 10, "{second}");
    assert!(why.contains("43 %") && why.contains("60 s"), "{why}");
    assert_eq!(judge.why(1), Some(why.as_str()));
    // It is taken back after a minute, found unchanged, and left out for two.
    let said = judged(&mut judge, &[GOOD, LOSSY], 60..200);
    let kinds: Vec<(u64, bool)> =
        said.iter().map(|(at, verdict)| (*at, matches!(verdict, Verdict::TakeBack(1)))).collect();
    let [(back, true), (again, false), (back_again, true), ..] = kinds[..] else {
        panic!("{said:?}")
    };
    assert_eq!(back, second + 60);
    assert!(again - back <= 10);
    assert_eq!(back_again, again + 120);
}

#[test]
fn a_link_that_got_better_stays() {
    let mut judge = Judge::default();
    judged(&mut judge, &[GOOD, LOSSY], 0..20);
    assert!(judge.why(1).is_some());
    // Unchanged, except that the losses have ended; the counts continue.
    let ended = seen(1, LOSSY, 20);
    for second in 20..400 {
        let now = Seen { sent: ended.sent + 500 * (second - 20), ..ended };
        judge.look(Time::from_secs(second), &[seen(0, GOOD, second), now]);
    }
    assert_eq!(judge.why(1), None);
}

#[test]
fn links_that_are_as_bad_as_each_other_are_used() {
    for course in [LOSSY, Course { srtt_ms: 4000, ..GOOD }] {
        let mut judge = Judge::default();
        assert_eq!(judged(&mut judge, &[course, course], 0..100), []);
        assert_eq!(judged(&mut Judge::default(), &[course], 0..100), []);
    }
}

#[test]
fn what_profiles_of_links_have_is_no_harm() {
    // Loss, RTT and rate of the links of the benchmark that lose most and differ most.
    let unlike = [
        Course { per_second: 30, lost_percent: 2, srtt_ms: 200, cost: 0 },
        Course { per_second: 9000, lost_percent: 0, srtt_ms: 4, cost: 0 },
        Course { per_second: 900, lost_percent: 10, srtt_ms: 90, cost: 0 },
    ];
    assert_eq!(judged(&mut Judge::default(), &unlike, 0..300), []);
}

#[test]
fn a_link_whose_round_trips_take_seconds_is_left_out() {
    let slow = Course { srtt_ms: 3000, ..GOOD };
    let said = judged(&mut Judge::default(), &[slow, GOOD], 0..30);
    let [(10, Verdict::LeaveOut(0, why))] = &said[..] else { panic!("{said:?}") };
    assert!(why.contains("3.0 s"), "{why}");
}

#[test]
fn a_few_packets_say_nothing() {
    let few = Course { per_second: 5, lost_percent: 60, srtt_ms: 20, cost: 0 };
    assert_eq!(judged(&mut Judge::default(), &[few, GOOD], 0..120), []);
}

/// A link that nobody has used says nothing of its loss, and one with a cost is not used merely
/// because of that.
#[test]
fn an_idle_link_with_a_cost_does_not_replace_a_lossy_one() {
    let idle = Course { per_second: 1, ..GOOD };
    let metered = Course { cost: 1, ..idle };
    assert_eq!(judged(&mut Judge::default(), &[LOSSY, metered], 0..120), []);
    // The same link without a cost does, and so does one with a cost that carries packets.
    for other in [idle, Course { cost: 1, ..GOOD }] {
        let said = judged(&mut Judge::default(), &[LOSSY, other], 0..30);
        let [(_, Verdict::LeaveOut(0, _))] = &said[..] else { panic!("{said:?}") };
    }
}
