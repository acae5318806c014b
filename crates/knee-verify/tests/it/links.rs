//! Rate, delay and queue over many packets: exact service passes; service that drifts by a fraction
//! of a nanosecond per packet does not.

use crate::common::COLUMNS;
use knee_verify::{Rule, Violation, check};
use std::fmt::Write;

const PACKETS: u64 = 5000;
const BYTES: u64 = 1500;
const DELAY: u64 = 1000;

/// Makes a log of packets that all enter one link at time zero and leave it at the given times.
fn log(link: &str, leaves: impl Iterator<Item = u64>) -> String {
    let mut text = format!(
        "# knee-packet-log/3\n# link,0,only,{link}\n# path,0,forward=0,reverse=0\n\
         # flow,0,path=0,mss=1448\n{COLUMNS}\n"
    );
    let leaves: Vec<u64> = leaves.collect();
    for id in 0..leaves.len() as u64 {
        let in_flight = (id + 1) * 1448;
        writeln!(text, "0,send,,0,data,{id},{id},1448,{in_flight},{in_flight},,10,,,new")
            .expect("a String takes everything");
        writeln!(text, "0,enter,0,0,data,{id},{id},{BYTES},,,,,,,")
            .expect("a String takes everything");
    }
    for (id, time) in leaves.iter().enumerate() {
        writeln!(text, "{time},leave,0,0,data,{id},{id},{BYTES},,,,,,,")
            .expect("a String takes everything");
        writeln!(text, "{time},receive,,0,data,{id},{id},,,,,,,,")
            .expect("a String takes everything");
        writeln!(text, "{time},deliver,,0,,,{id},1448,,,,,,,1").expect("a String takes everything");
    }
    text
}

fn violations(link: &str, leaves: impl Iterator<Item = u64>) -> Vec<Violation> {
    check(log(link, leaves).as_bytes()).expect("the log is well formed").violations
}

/// A rate at which a packet takes 1 714 285.714 285… ns.
const SEVEN: &str = "rate_bps=7000000,delay_ns=1000";

/// Time of this many packets at 7 Mbit/s, rounded up to the nanosecond.
fn exact(packets: u64) -> u64 {
    (packets * BYTES * 8 * 1000).div_ceil(7)
}

#[test]
fn exact_service_passes() {
    let found = violations(SEVEN, (1..=PACKETS).map(|n| exact(n) + DELAY));
    assert_eq!(found, []);
}

#[test]
fn service_that_rounds_each_packet_down_drifts_and_is_found() {
    let found = violations(SEVEN, (1..=PACKETS).map(|n| n * (BYTES * 8 * 1000 / 7) + DELAY));
    // The first packet is early; the others exceed the rate by 0.7 ns each.
    assert_eq!(found[0].rule, Rule::Early);
    assert!(found.len() > 100 && found[1..].iter().all(|v| v.rule == Rule::Rate));
}

#[test]
fn one_packet_too_soon_in_a_long_busy_period_is_found() {
    let leaves = (1..=PACKETS).map(|n| exact(n) + DELAY - u64::from(n == 3000) * 5);
    let found = violations(SEVEN, leaves);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule, Rule::Rate);
    assert_eq!(found[0].text, "link 0 (only): left 5 ns before what the rate allows");
}

#[test]
fn a_delay_that_varies_may_bunch_packets_by_its_range_and_no_more() {
    // Every other packet 1 ms late, its successor close behind it.
    let link = "rate_bps=7000000,delay_ns=1000,jitter_ns=1000000";
    let late = |n: u64| exact(n) + DELAY + (n % 2) * 1_000_000;
    assert_eq!(violations(link, (1..=100).map(late)), []);
    let tight = link.replace("1000000", "999999");
    let found = violations(&tight, (1..=100).map(late));
    assert!(found.len() == 50 && found.iter().all(|v| v.rule == Rule::Late));
}

#[test]
fn a_small_packet_may_overtake_a_large_one_where_order_is_not_kept() {
    // The 70 bytes of a handshake, 80 us at 7 Mbit/s, right behind 1500 bytes that the jitter holds
    // back until both leave together.
    let both = exact(1) + 80_000 + DELAY;
    let log = |reorder: u8| {
        format!(
            "# knee-packet-log/3\n\
             # link,0,only,rate_bps=7000000,delay_ns=1000,jitter_ns=80000,reorder={reorder}\n\
             # path,0,forward=0,reverse=0\n# flow,0,path=0,mss=1448\n{COLUMNS}\n\
             0,send,,0,data,0,0,1448,1448,1448,,10,,,new\n0,enter,0,0,data,0,0,1500,,,,,,,\n\
             0,send,,0,data,1,0,0,1448,1448,,10,,,syn\n0,enter,0,0,data,1,0,70,,,,,,,\n\
             {both},leave,0,0,data,1,0,70,,,,,,,\n{both},receive,,0,data,1,0,,,,,,,,\n\
             {both},leave,0,0,data,0,0,1500,,,,,,,\n{both},receive,,0,data,0,0,,,,,,,,\n\
             {both},deliver,,0,,,0,1448,,,,,,,1\n"
        )
    };
    let rules = |log: String| -> Vec<Rule> {
        let report = check(log.as_bytes()).expect("the log is well formed");
        report.violations.iter().map(|violation| violation.rule).collect()
    };
    assert_eq!(rules(log(1)), []);
    assert_eq!(rules(log(0)), [Rule::Fifo]);
}

#[test]
fn the_packet_in_transmission_does_not_count_as_waiting() {
    let link = |buffer: u64| format!("rate_bps=7000000,delay_ns=1000,buffer_bytes={buffer}");
    let leaves = || (1..=10).map(|n| exact(n) + DELAY);
    assert_eq!(violations(&link(9 * BYTES), leaves()), []);
    let found = violations(&link(9 * BYTES - 1), leaves());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule, Rule::Buffer);
    // The row at fault is the tenth entry: 5 lines of head, 2 per packet.
    assert_eq!((found[0].line, found[0].time_ns), (25, 0));
}

#[test]
fn packets_count_where_a_buffer_counts_packets() {
    let link = |buffer: u64| format!("rate_bps=7000000,delay_ns=1000,buffer_packets={buffer}");
    let leaves = || (1..=10).map(|n| exact(n) + DELAY);
    assert_eq!(violations(&link(9), leaves()), []);
    let found = violations(&link(8), leaves());
    assert_eq!(found.iter().map(|v| (v.rule, v.line)).collect::<Vec<_>>(), [(Rule::Buffer, 25)]);
}

#[test]
fn a_rate_in_steps_is_followed_to_the_nanosecond() {
    // Half a packet at 6 Mbit/s, a pause, the other half at 3 Mbit/s.
    let link = "rate_bps=0:6000000;1000000:0;5000000:3000000,delay_ns=1000";
    let leaves = [7_000_000, 11_000_000, 15_000_000].map(|departure| departure + DELAY);
    assert_eq!(violations(link, leaves.into_iter()), []);
    for (shift, rule) in [(-1, Rule::Rate), (1, Rule::Late)] {
        let moved =
            leaves.map(|at| if at == leaves[1] { at.saturating_add_signed(shift) } else { at });
        let found = violations(link, moved.into_iter());
        assert_eq!(found.iter().map(|v| v.rule).collect::<Vec<_>>(), [rule]);
    }
}

#[test]
fn a_trace_serves_at_its_opportunities_and_repeats() {
    let link = "trace_ms=2;5;5;9,delay_ns=1000";
    let leaves = [2, 5, 5, 9, 11].map(|ms| ms * 1_000_000 + DELAY);
    assert_eq!(violations(link, leaves.into_iter()), []);
    let late = [2, 5, 5, 9, 14].map(|ms| ms * 1_000_000 + DELAY);
    let found = violations(link, late.into_iter());
    assert_eq!(found.iter().map(|v| v.rule).collect::<Vec<_>>(), [Rule::Late]);
    // From 5 ms on, the opportunities come after 0, 0, 4, 6, 9 ms; one at the moment of entry
    // serves no packet.
    let link = "trace_ms=2;5;5;9,trace_offset_ns=5000000,delay_ns=1000";
    let leaves = [4, 6, 9, 9, 13].map(|ms| ms * 1_000_000 + DELAY);
    assert_eq!(violations(link, leaves.into_iter()), []);
}

#[test]
fn a_link_that_idles_while_packets_wait_is_found() {
    let leaves = (1..=100).map(|n| exact(n) + DELAY + u64::from(n > 50) * 2_000_000);
    let found = violations(SEVEN, leaves);
    assert!(found.len() == 50 && found.iter().all(|v| v.rule == Rule::Late));
}

#[test]
fn a_packet_that_never_leaves_is_found() {
    let mut log = log(SEVEN, (1..=2).map(|n| exact(n) + DELAY));
    log = log.lines().take(9).map(|line| format!("{line}\n")).collect();
    log += "9000000,end,,0,,,,,,,,,,,\n";
    let found = check(log.as_bytes()).expect("the log is well formed").violations;
    let found: Vec<_> = found.iter().map(|v| (v.rule, v.line)).collect();
    assert_eq!(found, [(Rule::Completion, 10), (Rule::Late, 7)]);
}

#[test]
fn violations_beyond_a_thousand_are_counted_only() {
    // Each packet takes no time at all.
    let report = check(log(SEVEN, (0..PACKETS).map(|_| DELAY)).as_bytes()).unwrap();
    assert_eq!(report.violations.len(), 1000);
    assert_eq!(report.violations_omitted, PACKETS - 1000);
    assert!(!report.is_sound());
}

/// Packets that would arrive from 4 to 9 ms arrive at 9 ms, neither before nor after.
#[test]
fn a_hold_is_kept_to_the_nanosecond() {
    let link = "rate_bps=7000000,delay_ns=1000,hold_ns=4000000-9000000";
    let free = |n: u64| exact(n) + DELAY;
    let held = |n: u64| if (4_000_000..9_000_000).contains(&free(n)) { 9_000_000 } else { free(n) };
    assert_eq!(violations(link, (1..=20).map(held)), []);
    let among = || (1..=20).filter(|n| held(*n) == 9_000_000);
    let (first, last) = (among().min().expect("some"), among().max().expect("some"));
    for (at, moved, rule) in [(first, free(first), Rule::Rate), (last, 9_000_001, Rule::Late)] {
        let found = violations(link, (1..=20).map(|n| if n == at { moved } else { held(n) }));
        assert_eq!(found.iter().map(|v| v.rule).collect::<Vec<_>>(), [rule]);
    }
}

/// Half of the packets are late by 10 to 20 us.
#[test]
fn a_share_that_is_late_is_late_by_its_least() {
    let link = "rate_bps=7000000,delay_ns=1000,jitter_ns=20000,reorder=1,\
                jitter_least_ns=10000,jitter_share=0.5";
    let leaves = |by: [u64; 2]| (1..=20).map(move |n| exact(n) + DELAY + by[n as usize % 2]);
    assert_eq!(violations(link, leaves([0, 10_000])), []);
    let found = violations(link, leaves([0, 9_999]));
    assert!(found.len() == 10 && found.iter().all(|v| v.rule == Rule::Early), "{found:?}");
}

/// Of 20 packets all or none are late although the share is small, which chance does not explain.
#[test]
fn as_many_are_late_as_the_share_says() {
    let link = |share: &str| {
        format!("rate_bps=7000000,delay_ns=1000,jitter_ns=20000,reorder=1,jitter_share={share}")
    };
    let all = || (1..=20).map(|n| exact(n) + DELAY + 10_000);
    assert_eq!(violations(&link("0.9"), all()), []);
    let found = violations(&link("0.02"), all());
    assert_eq!(found.iter().map(|v| v.rule).collect::<Vec<_>>(), [Rule::Late], "{found:?}");
}

/// Up to 20 us late in the first 10 ms, then not at all.
#[test]
fn jitter_in_steps_bounds_what_departs_then() {
    let link = "rate_bps=7000000,delay_ns=1000,jitter_ns=0:20000;10000000:0";
    let late = |n: u64, by: u64| exact(n) + DELAY + by;
    let leaves =
        |by: u64| (1..=20).map(move |n| late(n, if exact(n) < 10_000_000 { 20_000 } else { by }));
    assert_eq!(violations(link, leaves(0)), []);
    let found = violations(link, leaves(1));
    assert!(found.len() > 5 && found.iter().all(|v| v.rule == Rule::Late), "{found:?}");
}
