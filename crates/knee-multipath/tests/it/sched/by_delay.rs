//! Schedulers that compare delays, checked against decisions computed by hand
//! from their papers' rules. Windows are in packets of 1000 bytes, RTTs in ms.
use crate::sched::common::{
    blocked_by, busy, head, ms, path, scheduler, scheduler_with, view, with_status,
};
use knee_multipath::sched::{Decision, Path, Scheduler, Status, Value, View};

const WAIT: Decision = Decision::Wait;

#[test]
fn minrtt_takes_the_lowest_rtt_with_room() {
    let mut minrtt = scheduler("minrtt");
    let paths = [path(50, 10, 3), path(20, 10, 3), path(20, 10, 0)];
    assert_eq!(minrtt.schedule(&view(&paths)), head(1), "of equals the first");
    let paths = [path(50, 10, 3), path(20, 10, 10), path(90, 10, 0)];
    assert_eq!(minrtt.schedule(&view(&paths)), head(0));
    let unmeasured = [path(0, 10, 0), path(90, 10, 0)];
    assert_eq!(minrtt.schedule(&view(&unmeasured)), head(1), "no sample is no low RTT");
}

#[test]
fn backups_and_silent_paths_are_the_last_resort() {
    let of = |status| with_status(path(10, 10, 0), status);
    let full = path(50, 10, 10);
    let mut minrtt = scheduler("minrtt");
    let mut ask = |paths: &[Path]| minrtt.schedule(&view(paths));
    assert_eq!(ask(&[of(Status::Backup), full]), WAIT, "an active path is full, not gone");
    assert_eq!(ask(&[of(Status::Suspect), of(Status::Backup)]), head(1));
    assert_eq!(ask(&[of(Status::Suspect), with_status(full, Status::Down)]), head(0));
}

/// Linux MPTCP fork: the packet was never sent on the path, and the holder's
/// window is at most 4 packets or its RTT more than 4 times as long.
#[test]
fn opportunistic_retransmission_needs_a_much_slower_or_tiny_holder() {
    let mut minrtt = scheduler_with("minrtt", "opportunistic_retransmission", Value::Switch(true));
    let mut ask = |holder: Path| minrtt.schedule(&blocked_by(1, &[path(10, 10, 5), holder]));
    assert_eq!(ask(path(40, 5, 5)), WAIT, "exactly four times");
    assert_eq!(ask(path(41, 5, 5)), Decision::Repeat(0));
    assert_eq!(ask(path(11, 4, 4)), Decision::Repeat(0), "tiny window");

    let paths = [path(10, 10, 5), path(90, 10, 10)];
    assert_eq!(scheduler("minrtt").schedule(&blocked_by(1, &paths)), WAIT, "switched off");
    assert_eq!(minrtt.schedule(&blocked_by(0, &paths)), WAIT, "its own packet");
    let tail = View { unsent: 0, ..blocked_by(1, &paths) };
    assert_eq!(minrtt.schedule(&tail), WAIT, "nothing is blocked");
}

#[test]
fn penalisation_comes_once_per_rtt_of_the_fast_path() {
    let mut minrtt = scheduler("minrtt-penalising");
    let paths = [path(10, 10, 5), path(90, 10, 10)];
    let mut at = |now| minrtt.schedule(&View { now: ms(now), ..blocked_by(1, &paths) });
    let penalise = Decision::RepeatAndPenalise { path: 0, holder: 1 };
    assert_eq!(at(1000), penalise);
    assert_eq!(at(1000), Decision::Repeat(0));
    assert_eq!(at(1009), Decision::Repeat(0));
    assert_eq!(at(1010), penalise);
    // A faster path with a tiny window is rescued but not penalised.
    let paths = [path(10, 10, 5), path(8, 4, 4)];
    assert_eq!(minrtt.schedule(&blocked_by(1, &paths)), Decision::Repeat(0));
}

/// Fast 10 ms, 10 packets, full; slow 100 ms, 10 packets.
fn fast_full() -> [Path; 2] {
    [path(10, 10, 10), path(100, 10, 0)]
}

/// 10 (k + 10) < 10 x 100, that is k < 90 packets; while waiting the right-hand
/// side is 1.25 times as large, that is k < 115.
#[test]
fn ecf_waits_and_waits_longer_once_it_does() {
    let mut ecf = scheduler("ecf");
    let paths = fast_full();
    let mut queued = |bytes| ecf.schedule(&View { unsent: bytes, ..view(&paths) });
    assert_eq!(queued(90_000), head(1));
    assert_eq!(queued(114_999), head(1), "not waiting: no hysteresis");
    assert_eq!(queued(89_999), WAIT);
    assert_eq!(queued(114_999), WAIT, "waiting: the bound is 115 packets");
    assert_eq!(queued(115_000), head(1));
    assert_eq!(queued(90_000), head(1), "and the waiting is over");

    let mut firm = scheduler_with("ecf", "beta", Value::Number(0.0));
    let mut queued = |bytes| firm.schedule(&View { unsent: bytes, ..view(&paths) });
    assert_eq!((queued(89_999), queued(90_000)), (WAIT, head(1)));
}

/// d = 20 ms: 10 (k + 10) < 10 (100 + 20), that is k < 110 packets.
#[test]
fn ecf_counts_the_larger_variation() {
    for varying in [0, 1] {
        let mut paths = fast_full();
        paths[varying].rtt_variation = ms(20);
        let mut ecf = scheduler("ecf");
        assert_eq!(ecf.schedule(&View { unsent: 110_000, ..view(&paths) }), head(1));
        assert_eq!(ecf.schedule(&View { unsent: 109_999, ..view(&paths) }), WAIT);
    }
}

/// The second comparison: 60 x 10 < 10 (2 x 50 + 0), so the slow path finishes
/// before the fast one has its second round. It leaves `waiting` unchanged.
#[test]
fn ecf_uses_a_slow_path_that_is_done_in_time() {
    let mut ecf = scheduler("ecf");
    let near = [path(50, 10, 10), path(101, 10, 0)];
    fn one(paths: &[Path]) -> View<'_> {
        View { unsent: 1000, ..view(paths) }
    }
    assert_eq!(ecf.schedule(&one(&near)), WAIT, "101 x 10 >= 10 x 100");
    let nearer = [path(45, 10, 10), path(91, 10, 0)];
    assert_eq!(ecf.schedule(&one(&nearer)), WAIT, "91 >= 90");
    let mut done = [path(45, 10, 10), path(91, 10, 0)];
    done[0].rtt_variation = ms(2);
    assert_eq!(ecf.schedule(&one(&done)), head(1), "91 < 92");
    done[1].srtt = ms(92);
    assert_eq!(ecf.schedule(&one(&done)), WAIT, "92 = 92");
    // Still waiting: 10 (k + 10) < 10 x 100 x 1.25 at k = 100 packets.
    let paths = fast_full();
    assert_eq!(ecf.schedule(&View { unsent: 100_000, ..view(&paths) }), WAIT);
}

#[test]
fn ecf_does_not_wait_for_a_path_that_holds_nothing() {
    let mut ecf = scheduler("ecf");
    let paths = [busy(path(10, 10, 0)), path(100, 10, 0)];
    assert_eq!(ecf.schedule(&View { unsent: 1000, ..view(&paths) }), head(1));
}

/// r = 100 / 10: X = (10 + 4.5) x 10 = 145 packets; at lambda 1.2 that is
/// 174, so a send window of 175 (one for the packet itself) still has room.
const ROOM_AT_START: u64 = 175_000;

fn blest_at(blest: &mut dyn Scheduler, now: u64, send_window: u64) -> Decision {
    let paths = fast_full();
    let outstanding = 10_000;
    let window_left = send_window - outstanding;
    blest.schedule(&View { now: ms(now), outstanding, window_left, ..view(&paths) })
}

#[test]
fn blest_waits_where_the_slow_path_would_block() {
    let mut blest = scheduler("blest");
    assert_eq!(blest_at(&mut blest, 0, ROOM_AT_START), head(1));
    assert_eq!(blest_at(&mut blest, 0, ROOM_AT_START - 1), WAIT);
    // Four packets in flight on the slow path use part of the window.
    let paths = [path(10, 10, 10), path(100, 10, 4)];
    let window = |total: u64| View { now: ms(0), window_left: total - 14_000, ..view(&paths) };
    assert_eq!(blest.schedule(&window(ROOM_AT_START + 4_000)), head(1));
    assert_eq!(blest.schedule(&window(ROOM_AT_START + 3_999)), WAIT);
}

/// lambda is updated once per slow round of 100 ms: 145 packets x lambda + 1.
#[test]
fn blest_learns_lambda() {
    let mut blest = scheduler("blest");
    let bound = |blest: &mut Box<dyn Scheduler>, now, room: u64| {
        assert_eq!(blest_at(blest, now, room), head(1), "at {now} ms with {room}");
        assert_eq!(blest_at(blest, now, room - 1), WAIT, "at {now} ms below {room}");
    };
    bound(&mut blest, 0, ROOM_AT_START);
    bound(&mut blest, 99, ROOM_AT_START);
    bound(&mut blest, 100, 173_550);
    // While blocked, the fast path rescues the slow one's packet: a step up.
    let paths = [path(10, 10, 5), path(100, 10, 10)];
    let blocked = View { now: ms(150), ..blocked_by(1, &paths) };
    assert_eq!(blest.schedule(&blocked), Decision::Repeat(0));
    bound(&mut blest, 200, 179_350);
    bound(&mut blest, 300, 177_900);
    // Never below 1.0 nor above 1.3.
    for round in 4..40 {
        blest_at(&mut blest, round * 100, ROOM_AT_START);
    }
    bound(&mut blest, 4000, 146_000);
    for round in 41..60 {
        blest.schedule(&View { now: ms(round * 100 - 50), ..blocked_by(1, &paths) });
        blest_at(&mut blest, round * 100, ROOM_AT_START);
    }
    bound(&mut blest, 5950, 189_500);
}
