//! What a sender may do: window, pacing, timers; and what a sender that has ended may not do.

use crate::common::{COLUMNS, MS, finds};
use knee_verify::Rule;
use std::fmt::Write;

const SOUND: &str = include_str!("../logs/sound.csv");

/// Head of a log with pure delays of 10 ms in each direction.
fn head(flow: &str) -> String {
    format!(
        "# knee-packet-log/3\n# link,0,there,rate_bps=,delay_ns=10000000\n\
         # link,1,back,rate_bps=,delay_ns=10000000\n# path,0,forward=0,reverse=1\n\
         # flow,0,path=0,mss=1000,rto_min_ns=200000000{flow}\n{COLUMNS}\n"
    )
}

#[test]
fn the_congestion_window_holds_what_is_in_flight() {
    let last = "1000,5344,14480";
    assert!(SOUND.contains(last));
    finds(&SOUND.replacen(last, "1000,5344,5344", 1), &[]);
    finds(&SOUND.replacen(last, "1000,5344,5343", 1), &[Rule::Window]);
}

#[test]
fn the_receive_window_holds_what_is_outstanding() {
    let with =
        |window: &str| SOUND.replacen("mss=1448", &format!("mss=1448,receive_window={window}"), 1);
    finds(&with("5344"), &[]);
    finds(&with("5343"), &[Rule::Window]);
}

/// Segments of 1000 bytes sent at the given times with bursts of `burst`, at 8 Mbit/s: a
/// millisecond each, except for the first ten.
fn paced(times: &[u64], burst: u64) -> String {
    let mut log = head(",burst_bytes=4000");
    for (id, at) in times.iter().enumerate() {
        let in_flight = (id + 1) * 1000;
        writeln!(log, "{at},send,,0,data,{id},{id},1000,{in_flight},99000,8000000,{burst},,,new")
            .expect("a String takes everything");
        writeln!(log, "{at},enter,0,0,data,{id},{id},1052,,,,,,,")
            .expect("a String takes everything");
    }
    log
}

#[test]
fn pacing_spaces_segments_after_the_first_ten() {
    let with = |more: &[u64]| [&[0; 10], more].concat();
    finds(&paced(&with(&[0, MS, 2 * MS]), 1), &[]);
    finds(&paced(&with(&[0, MS - 1]), 1), &[Rule::Pacing]);
    // A late burst recovers half of its time, once.
    finds(&paced(&with(&[0, 3 * MS, 3 * MS + MS / 2, 4 * MS + MS / 2]), 1), &[]);
    finds(&paced(&with(&[0, 3 * MS, 3 * MS + MS / 2 - 1]), 1), &[Rule::Pacing]);
}

#[test]
fn a_burst_leaves_at_once_and_takes_the_time_of_all_its_segments() {
    let with = |more: &[u64]| [&[0; 10], more].concat();
    finds(&paced(&with(&[0, 0, 2 * MS, 2 * MS, 4 * MS]), 2), &[]);
    finds(&paced(&with(&[0, 0, 2 * MS - 1]), 2), &[Rule::Pacing]);
    finds(&paced(&with(&[0, 0, 0]), 2), &[Rule::Pacing]);
    finds(&paced(&[0], 4), &[]);
    finds(&paced(&[0], 5), &[Rule::Pacing]);
}

/// Up to a line before the retransmission, and no RTT is below 21 ms.
fn up_to(line: usize) -> String {
    SOUND.lines().take(line).fold(String::new(), |log, line| log + line + "\n")
}

#[test]
fn a_retransmission_timeout_comes_after_its_time_and_backs_off() {
    let timeout = |at: u64| format!("{at},timeout,,0,,,,,,,,,,,rto\n");
    // It counts from the progress; once data beyond a gap was reported, a reordering timer may have
    // run, after which it counts from when the first segment was sent. The log ends with an ACK in
    // flight, which is reported as well.
    for (line, since) in [(49, 45_372_800), (51, 22_052_800)] {
        let first = since + 221 * MS;
        let (late, early) = ([Rule::Late], [Rule::Timeout, Rule::Late]);
        let log = |rows: &[u64]| {
            let rows: String = rows.iter().map(|at| timeout(*at)).collect();
            up_to(line) + &rows
        };
        finds(&log(&[first]), &late);
        finds(&log(&[first - 1]), &early);
        finds(&log(&[first, first + 442 * MS]), &late);
        finds(&log(&[first, first + 442 * MS - 1]), &early);
    }
}

/// RFC 6298, section 5.4: the first segment is sent again whatever window and pacing say; once.
#[test]
fn only_the_segment_that_timed_out_ignores_the_window() {
    let again = |id: u64, in_flight: u64| {
        format!(
            "260000000,send,,0,data,{id},1,1448,{in_flight},1447,,10,,,again\n\
             260000000,enter,0,0,data,{id},1,1500,,,,,,,\n"
        )
    };
    let late = [Rule::Late; 1];
    let timeout = "260000000,timeout,,0,,,,,,,,,,,rto\n";
    finds(&(up_to(51) + timeout + &again(9, 1448)), &late);
    finds(&(up_to(51) + &again(9, 1448)), &[Rule::Window, Rule::Late]);
    let twice = up_to(51) + timeout + &again(9, 1448) + &again(10, 1448);
    finds(&twice, &[Rule::Retransmission, Rule::Window, Rule::Late]);
}

/// A log like the sound one, whose first missing segment, the second, is lost for good while the ACK
/// in line 51 and later ones report what is beyond it. The largest RTT is 25.4 ms, or 26.4 ms by
/// timestamps that count milliseconds, and the timeout 200 ms above it. The ACK in line 49 restarted
/// it: it is due at 271.7 ms at the latest.
#[test]
fn what_is_missing_times_out_while_acks_arrive() {
    let due = 45_372_800 + 200 * MS + 26_361_600;
    let tail =
        |at: u64, what: &str| format!("{}{what}{at},timeout,,0,,,,,,,,,,,probe\n", up_to(53));
    let timeout = |at: u64| format!("{at},timeout,,0,,,,,,,,,,,rto\n");
    finds(&tail(due, ""), &[]);
    finds(&tail(due + 1, ""), &[Rule::Liveness]);
    // A timeout in time doubles the next.
    let after = |at: u64| tail(at, &timeout(due));
    finds(&after(due + 2 * (due - 45_372_800)), &[]);
    finds(&after(due + 2 * (due - 45_372_800) + 1), &[Rule::Liveness]);
    // It is found at the end of the log as well, and once for each period.
    let more = format!("{}{}", tail(due + 1, ""), "280000000,timeout,,0,,,,,,,,,,,probe\n");
    finds(&more, &[Rule::Liveness]);
}

/// New segments go on leaving, each paced, and are reported: the first missing one has to time out.
#[test]
fn paced_data_does_not_put_the_timeout_off() {
    let log = |until_ms: u64| {
        let mut log = up_to(53);
        for (id, ms) in (9..).zip((50..until_ms).step_by(2)) {
            let (at, number) = (ms * MS, id - 5);
            write!(
                log,
                "{at},send,,0,data,{id},{number},1,{},14480,4000,1,,,new\n\
                 {at},enter,0,0,data,{id},{number},53,,,,,,,\n\
                 {},leave,0,0,data,{id},{number},53,,,,,,,\n\
                 {},enter,1,0,data,{id},{number},53,,,,,,,\n\
                 {},drop,1,0,data,{id},{number},53,,,,,,,loss\n",
                id - 8,
                at + 1_004_240,
                at + 1_004_240,
                at + 1_004_240,
            )
            .expect("a String takes everything");
        }
        log
    };
    finds(&log(272), &[]);
    finds(&log(276), &[Rule::Liveness]);
}

#[test]
fn a_handshake_is_repeated_after_a_second_and_then_two() {
    let log = |second: u64, third: u64| {
        let mut log = head("").replacen("delay_ns=10000000", "delay_ns=10000000,loss=random", 1);
        for (id, at) in [0, second, third].into_iter().enumerate() {
            if at > 0 {
                writeln!(log, "{at},timeout,,0,,,,,,,,,,,syn").expect("a String takes everything");
            }
            write!(
                log,
                "{at},send,,0,data,{id},0,0,0,9000,,1,,,syn\n{at},enter,0,0,data,{id},0,60,,,,,,,\n\
                 {at},drop,0,0,data,{id},0,60,,,,,,,loss\n"
            )
            .expect("a String takes everything");
        }
        log
    };
    let sound = log(1000 * MS, 3000 * MS);
    finds(&sound, &[]);
    // Without its timeout the handshake is not repeated.
    let timeout = format!("{},timeout,,0,,,,,,,,,,,syn\n", 1000 * MS);
    assert!(sound.contains(&timeout));
    finds(&sound.replace(&timeout, ""), &[Rule::Timeout]);
    finds(&log(1000 * MS - 1, 3000 * MS), &[Rule::Timeout]);
    finds(&log(1000 * MS, 3000 * MS - 1), &[Rule::Timeout]);
}

#[test]
fn a_probe_needs_a_timeout_two_round_trips_after_the_last_segment() {
    let log = |at: u64, timeout: bool| {
        let mut log = head("")
            + "0,send,,0,data,0,0,1000,1000,9000,,1,,,new\n0,enter,0,0,data,0,0,1052,,,,,,,\n\
               10000000,leave,0,0,data,0,0,1052,,,,,,,\n10000000,receive,,0,data,0,0,,,,,,,,\n\
               10000000,deliver,,0,,,0,1000,,,,,,,1\n";
        if timeout {
            writeln!(log, "{at},timeout,,0,,,,,,,,,,,probe").expect("a String takes everything");
        }
        write!(
            log,
            "{at},send,,0,data,1,0,1000,2000,999,,1,,,probe\n{at},enter,0,0,data,1,0,1052,,,,,,,\n"
        )
        .expect("a String takes everything");
        log
    };
    // Beyond the window, which does not apply to a probe.
    finds(&log(38 * MS, true), &[]);
    finds(&log(38 * MS - 1, true), &[Rule::Timeout]);
    finds(&log(38 * MS, false), &[Rule::Timeout]);
}

/// RFC 8985, section 7.2: a probe comes no later than the retransmission
/// timeout, which counts from the first outstanding segment.
#[test]
fn a_new_segment_does_not_put_a_probe_off_beyond_the_timeout() {
    let log = |second: u64, probe: u64| {
        let mut log = head("").replacen("delay_ns=10000000", "delay_ns=10000000,loss=random", 1);
        for (id, at, how) in [(0, 0, "new"), (1, second, "new"), (2, probe, "probe")] {
            if how == "probe" {
                writeln!(log, "{at},timeout,,0,,,,,,,,,,,probe")
                    .expect("a String takes everything");
            }
            let (number, in_flight) = (id.min(1), 1000 * (id + 1));
            write!(
                log,
                "{at},send,,0,data,{id},{number},1000,{in_flight},9000,,1,,,{how}\n\
                 {at},enter,0,0,data,{id},{number},1052,,,,,,,\n\
                 {at},drop,0,0,data,{id},{number},1052,,,,,,,loss\n"
            )
            .expect("a String takes everything");
        }
        log
    };
    // 38 ms after the second, or 219 ms after the first.
    for (second, probe) in [(150, 188), (180, 218), (182, 219), (210, 219)] {
        finds(&log(second * MS, probe * MS), &[]);
        finds(&log(second * MS, probe * MS - 1), &[Rule::Timeout]);
    }
}

#[test]
fn all_is_in_flight_until_something_may_be_lost() {
    // 4344 bytes after the third segment, with nothing lost so far.
    let sent = "1448,4344,";
    assert!(SOUND.contains(sent));
    finds(&SOUND.replacen(sent, "1448,4343,", 1), &[Rule::InFlight]);
}

#[test]
fn what_is_complete_was_delivered_and_acknowledged() {
    let log = |bytes: u64| format!("{SOUND}70734400,complete,,0,,,,{bytes},,,,,,,\n");
    finds(&log(5344), &[]);
    finds(&log(5345), &[Rule::Delivery]);
    // One line earlier, the last ACK is still in flight.
    let lines: Vec<&str> = SOUND.lines().collect();
    let early = lines[..62].join("\n") + "\n59734400,complete,,0,,,,5344,,,,,,,\n";
    finds(&early, &[Rule::Delivery]);
}

/// A flow may end at the time at which a packet reached it, while others are in flight.
#[test]
fn what_ends_as_it_receives_is_asked_for_nothing_more() {
    let lines: Vec<&str> = SOUND.lines().collect();
    let log = lines[..62].join("\n") + "\n59734400,end,,0,,,,,,,,,,,\n" + lines[62] + "\n";
    let gone = log + "70734400,discard,,0,ack,10,4,,,,,,,,\n";
    finds(&gone, &[Rule::Completion]);
}

/// The flow ends while its second ACK is in flight: packets that arrive later are discarded.
#[test]
fn what_is_gone_discards_and_does_nothing_else() {
    let lines: Vec<&str> = SOUND.lines().collect();
    let base = lines[..62].join("\n") + "\n60000000,end,,0,,,,,,,,,,,\n" + lines[62] + "\n";
    let log = |row: &str| format!("{base}{row}\n");
    // It is not complete either.
    let early = Rule::Completion;
    finds(&log("70734400,discard,,0,ack,10,4,,,,,,,,"), &[early]);
    finds(&log("70734400,ack_receive,,0,ack,10,4,,0,,,,,,"), &[early, Rule::Ended]);
    finds(&log("70734400,timeout,,0,,,,,,,,,,,rto"), &[early, Rule::Ended, Rule::Path]);
    let sends = "70734400,discard,,0,ack,10,4,,,,,,,,\n70734400,send,,0,data,11,4,1,1,9,,1,,,new";
    finds(&log(sends), &[early, Rule::Ended]);
    // A flow that has not ended may not discard.
    let alive =
        log("70734400,discard,,0,ack,10,4,,,,,,,,").replace("60000000,end,,0,,,,,,,,,,,\n", "");
    finds(&alive, &[Rule::Ended]);
}

/// PAWS (RFC 7323, section 5.3): only what is older than something received is discarded.
#[test]
fn only_an_old_segment_is_discarded() {
    // All segments left at one time.
    let lines: Vec<&str> = SOUND.lines().take(36).collect();
    finds(&(lines.join("\n") + "old\n"), &[Rule::Delivery]);
}
