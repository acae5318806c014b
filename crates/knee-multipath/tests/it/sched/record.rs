//! Recording, writing, reading and replaying decisions.
use crate::sched::common::{Ground, line, names, path, scheduler, view, with_status};
use knee_multipath::sched::record::{Trace, replay};
use knee_multipath::sched::{Decision, Recorder, Scheduler, Status, View};
use knee_units::{Rate, Time};
use proptest::prelude::*;

fn recorded(name: &str) -> Trace {
    let lines = [line(20, 10), line(60, 4), line(90, 30)];
    let mut recorder = Recorder::new(scheduler(name));
    Ground::new(&lines, 300, 40).run(&mut recorder).unwrap();
    recorder.take_trace()
}

#[test]
fn a_replay_answers_the_same_after_a_round_trip() {
    for name in names() {
        let trace = recorded(name);
        assert!(trace.len() > 100, "{name}");
        let read: Trace = trace.to_string().parse().unwrap();
        assert_eq!(read, trace, "{name}");
        assert_eq!(replay(&read, &mut scheduler(name)), None, "{name}");
    }
}

/// Every decision and every kind of field, written and read.
#[test]
fn the_text_is_what_its_documentation_says() {
    let mut recorder = Recorder::new(scheduler("minrtt-penalising"));
    let mut slow = with_status(path(90, 10, 10), Status::Active);
    slow.rate = Some(Rate::from_bits_per_second(5_000_000));
    slow.sent = 77;
    slow.capacity = Some(Rate::from_bits_per_second(6_000_000));
    slow.doubles = true;
    let paths = [path(10, 10, 5), slow];
    recorder.on_paths_changed(&paths[..1]);
    recorder.schedule(&crate::sched::common::blocked_by(1, &paths));
    recorder.schedule(&View { now: Time::from_nanos(7), unsent: 1, ..view(&paths[..1]) });
    let text = "knee-decisions 2\n\
        changed,active ready 10000000 0 10000000 10000 5000 - 0 - -\n\
        asked,1000000000,1000,1000000,0,15000,1 2,1,repeat 0 penalise 1,\
        active ready 10000000 0 10000000 10000 5000 - 0 - -,\
        active busy 90000000 0 90000000 10000 10000 5000000 77 6000000 doubles\n\
        asked,7,1000,1,10000000,5000,-,0,send 0 head,\
        active ready 10000000 0 10000000 10000 5000 - 0 - -\n";
    assert_eq!(recorder.trace().to_string(), text);
    let others = ["send 0 tail", "send 0 ahead 2800", "duplicate 1", "repeat 0", "wait"];
    for decision in others {
        let text = text.replace("send 0 head", decision);
        assert_eq!(text.parse::<Trace>().unwrap().to_string(), text, "{decision}");
    }
}

#[test]
fn a_changed_scheduler_is_found_where_it_first_differs() {
    let trace = recorded("ecf");
    let difference = replay(&trace, &mut scheduler("minrtt")).unwrap();
    assert_eq!(difference.recorded, Decision::Wait, "ecf waits where minrtt sends");
    assert!(matches!(difference.answered, Decision::Send(..)));
    let (view, decision) = trace.decisions().nth(difference.row).unwrap();
    assert_eq!((view.now, decision), (difference.now, difference.recorded));
    let mut earlier = trace.decisions().take(difference.row);
    let mut fresh = scheduler("minrtt");
    assert!(earlier.all(|(view, decision)| fresh.schedule(&view) == decision));
}

#[test]
fn broken_texts_are_refused_with_place_and_advice() {
    let good = "asked,7,1000,1,10,0,-,0,wait,active ready 1 0 1 10 5 - 0 - -";
    let cases = [
        ("asked", "asked_", "cannot read \"asked_\": begin the line with asked or changed"),
        (",wait", "", "write a decision, such as \"send 0 head\" or \"wait\""),
        ("wait", "send 1 head", "path 1 is named, but the line shows 1: count paths from 0"),
        ("1000", "-4", "cannot read \"-4\": write a whole number in range"),
        ("1000", "0", "write the payload of a full packet, in bytes"),
        ("active ready", "active maybe", "write status, ready or busy"),
        (",active ready 1 0 1 10 5 - 0 - -", "", "0 paths: end the line with from 1 to 32 paths"),
        (
            "10,0,-,0,wait,active ready 1 0 1 10 5 - 0 - -",
            "10",
            "fields are missing: asked,now_ns,",
        ),
        ("10 5 - 0", "10 5 - 0 9", "with spaces between them"),
    ];
    for (from, to, message) in cases {
        let text = format!("knee-decisions 2\n\n{}\n", good.replacen(from, to, 1));
        let error = text.parse::<Trace>().unwrap_err().to_string();
        assert!(error.starts_with("line 3: ") && error.contains(message), "{to}: {error}");
    }
    let newer = "knee-decisions 3\n".parse::<Trace>().unwrap_err();
    assert!(newer.to_string().contains("begin with \"knee-decisions 2\""), "{newer}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No text makes the reader panic, including near misses of a valid one.
    #[test]
    fn the_reader_never_panics(at in 0..4000_usize, with in "[ -~\\n]{0,6}", noise in ".{0,80}") {
        let _ = noise.parse::<Trace>();
        let mut text = recorded("minrtt").to_string();
        let at = at.min(text.len());
        text.replace_range(at..(at + 3).min(text.len()), &with);
        let _ = text.parse::<Trace>();
    }
}
