//! Drops and marks: those of each discipline pass, those without a cause do not.
//!
//! One link of 12 Mbit/s, on which 1500 bytes take a millisecond, and packets
//! that enter at given times.

use crate::common::{COLUMNS, MS};
use knee_verify::{Rule, check};
use std::fmt::Write;

/// What becomes of a packet that enters at a time.
#[derive(Clone, Copy)]
enum Fate {
    Leaves(u64),
    Marked(u64),
    Dropped(u64, &'static str),
}
use Fate::{Dropped, Leaves, Marked};

/// Makes the log of such packets; `ecn` says whether they are ECN-capable.
fn log(link: &str, ecn: bool, packets: &[(u64, Fate)]) -> String {
    let mut text = format!(
        "# knee-packet-log/3\n# link,0,only,rate_bps=12000000,delay_ns=0,{link}\n\
         # path,0,forward=0,reverse=0\n# flow,0,path=0,mss=1448\n{COLUMNS}\n"
    );
    let ect = if ecn { "ect" } else { "" };
    // Entries come before other events at the same time.
    let mut rows: Vec<(u64, u8, String)> = Vec::new();
    for (id, (entry, fate)) in packets.iter().enumerate() {
        let row = |event: &str, ecn: &str, detail: &str| {
            format!("{event},0,0,data,{id},{id},1500,,,,,,{ecn},{detail}\n")
        };
        let sent = format!("send,,0,data,{id},{id},0,0,0,,10,,{ect},new\n{entry},");
        rows.push((*entry, 1, sent + &row("enter", ect, "")));
        let (at, event) = match fate {
            Leaves(at) => (*at, row("leave", ect, "")),
            Marked(at) => (*at, row("leave", "ce", "")),
            Dropped(at, why) => (*at, row("drop", "", why)),
        };
        let order = if matches!(fate, Dropped(..)) { 1 + u8::from(at > *entry) } else { 3 };
        rows.push((at, if at == *entry { 1 } else { order }, event));
        if !matches!(fate, Dropped(..)) {
            rows.push((at, 3, format!("receive,,0,data,{id},{id},,,,,,,,\n")));
        }
    }
    rows.sort_by_key(|(at, order, _)| (*at, *order));
    for (at, _, row) in rows {
        write!(text, "{at},{row}").expect("a String takes everything");
    }
    text
}

#[track_caller]
fn finds(link: &str, ecn: bool, packets: &[(u64, Fate)], expected: &[Rule]) {
    crate::common::finds(&log(link, ecn, packets), expected);
}

/// Packets that enter every 900 us from zero on and leave every millisecond:
/// the n-th waits n times 100 us.
fn building_up(count: u64) -> Vec<(u64, Fate)> {
    (0..count).map(|n| (n * 900_000, Leaves((n + 1) * MS))).collect()
}

#[test]
fn a_loss_needs_a_loss_model() {
    let packets = [(0, Leaves(MS)), (5 * MS, Dropped(5 * MS, "loss"))];
    finds("loss=random", false, &packets, &[]);
    finds("loss=none", false, &packets, &[Rule::Drop]);
    finds("loss=every:2", false, &packets, &[]);
    // The second packet should be lost, and the third is not the one dropped.
    finds("loss=every:3", false, &packets, &[Rule::Drop]);
    finds("loss=every:1", false, &packets, &[Rule::Drop]);
    finds("loss=recorded:01", false, &packets, &[]);
    finds("loss=recorded:10", false, &packets, &[Rule::Drop, Rule::Drop]);
}

/// Packets of one flow that enter at one time are lost all or none, those of other times apart.
#[test]
fn what_is_lost_with_a_super_packet_is_all_of_it() {
    let lost = |at: u64| (at, Dropped(at, "loss"));
    let loss = "loss=super-packets";
    finds(loss, false, &[(0, Leaves(MS)), (0, Leaves(2 * MS)), lost(5 * MS), lost(5 * MS)], &[]);
    finds(loss, false, &[(0, Leaves(MS)), lost(MS)], &[]);
    finds(loss, false, &[(0, Leaves(MS)), lost(0)], &[Rule::Drop]);
    finds(loss, false, &[lost(0), (0, Leaves(MS))], &[Rule::Drop]);
}

#[test]
fn a_policer_drops_what_exceeds_its_bucket_and_nothing_else() {
    // 3000 bytes at first, 1500 more every 10 ms.
    let link = "policer=1200000:3000";
    let packets = [
        (0, Leaves(MS)),
        (MS, Leaves(2 * MS)),
        (5 * MS, Dropped(5 * MS, "policer")),
        (10 * MS, Leaves(11 * MS)),
    ];
    finds(link, false, &packets, &[]);
    finds("policer=1200000:4500", false, &packets, &[Rule::Drop]);
    finds("policer=1200000:2999", false, &packets, &[Rule::Drop]);
}

#[test]
fn an_outage_drops_all_that_has_not_departed() {
    let link = "down_ns=2500000-6000000";
    let packets = [
        (0, Leaves(MS)),
        (2 * MS, Dropped(2_500_000, "down")),
        (2_100_000, Dropped(2_500_000, "down")),
        (4 * MS, Dropped(4 * MS, "down")),
        (6 * MS, Leaves(7 * MS)),
    ];
    finds(link, false, &packets, &[]);
    // Down for longer: the last one should not have entered.
    finds("down_ns=2500000-6000001", false, &packets, &[Rule::Drop]);
    // The link is no longer down when the fourth enters.
    finds("down_ns=2500000-4000000", false, &packets, &[Rule::Drop]);
    // The link goes down later than the drops.
    let found = [Rule::Drop, Rule::Drop, Rule::Drop];
    finds("down_ns=2500001-6000000", false, &packets[..3], &found[..2]);
    // A packet that was in the queue survives.
    let mut survivor = packets;
    survivor[2].1 = Leaves(7 * MS);
    survivor[4].1 = Leaves(8 * MS);
    let rules = |packets: &[(u64, Fate)]| {
        let report = check(log(link, false, packets).as_bytes()).expect("well formed");
        report.violations.iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(&survivor)[0], Rule::Drop);
}

/// Two packets share the opportunity at which the link goes down: both get away.
#[test]
fn what_departs_as_the_link_goes_down_arrives() {
    let link = "trace_ms=5;9,down_ns=5000000-6000000";
    let log = |link: &str| {
        let packets = [(0, Leaves(5 * MS)), (1, Leaves(5 * MS)), (2, Dropped(5 * MS, "down"))];
        let log = log(link, false, &packets).replace("rate_bps=12000000,", "");
        log.replace(",1500,", ",700,")
    };
    let rules = |link: &str| {
        let report = check(log(link).as_bytes()).expect("well formed");
        report.violations.iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(link), []);
    assert_eq!(rules(&link.replace("5000000-", "4999999-"))[0], Rule::Drop);
}

/// What FQ-CoDel served when the link went down is never known; what it dropped before was not
/// dropped by the outage.
#[test]
fn fq_codel_makes_room_before_an_outage() {
    let link = "aqm=fq-codel,target_ns=5000000,interval_ns=10000000,buffer_packets=2,\
                down_ns=1500000-2000000";
    let packets = [
        (0, Leaves(MS)),
        (100_000, Dropped(1_500_000, "down")),
        (200_000, Dropped(1_200_001, "queue")),
        (1_200_000, Dropped(1_500_000, "down")),
        (1_200_001, Dropped(1_500_000, "down")),
        (3 * MS, Leaves(4 * MS)),
    ];
    finds(link, false, &packets, &[]);
}

/// On a link that chooses and reorders, neither order nor service can be checked; its outages can.
#[test]
fn a_link_without_any_order_goes_down() {
    let link = "aqm=fq-codel,target_ns=5000000,interval_ns=10000000,jitter_ns=1000000,reorder=1";
    let packets = [
        (0, Leaves(MS)),
        (2 * MS, Dropped(2_500_000, "down")),
        (4 * MS, Dropped(4 * MS, "down")),
        (6 * MS, Leaves(7 * MS)),
    ];
    finds(&format!("{link},down_ns=2500000-6000000"), false, &packets, &[]);
    finds(&format!("{link},down_ns=2500000-4000000"), false, &packets, &[Rule::Drop]);
}

#[test]
fn a_queue_drops_only_when_it_is_full() {
    // One in transmission, one waiting; the third finds room or does not.
    let packets = [(0, Leaves(MS)), (0, Leaves(2 * MS)), (0, Dropped(0, "queue"))];
    finds("buffer_packets=1", false, &packets, &[]);
    finds("buffer_packets=2", false, &packets, &[Rule::Drop]);
    finds("buffer_bytes=2999", false, &packets, &[]);
    finds("buffer_bytes=3000", false, &packets, &[Rule::Drop]);
    finds("", false, &packets, &[Rule::Drop]);
}

#[test]
fn no_other_discipline_drops_as_an_aqm() {
    let packets = [(0, Leaves(MS)), (500_000, Dropped(500_000, "aqm"))];
    finds("", false, &packets, &[Rule::Drop]);
    let packets = [(0, Leaves(MS)), (500_000, Dropped(MS, "aqm"))];
    finds("", false, &packets, &[Rule::Drop]);
    // In transmission by then, and last in the log.
    let packets = [(0, Leaves(MS)), (500_000, Dropped(1_200_000, "aqm"))];
    finds("", false, &packets, &[Rule::Drop]);
}

#[test]
fn a_threshold_marks_beyond_its_delay_and_must() {
    // The twelfth packet waits 1.1 ms.
    let link = "aqm=threshold,target_ns=1050000";
    let mut packets = building_up(12);
    finds(link, false, &packets, &[]);
    finds(link, true, &packets, &[Rule::Mark]);
    packets[11].1 = Marked(12 * MS);
    finds(link, true, &packets, &[]);
    finds(link, false, &packets, &[Rule::Mark]);
    packets[10].1 = Marked(11 * MS);
    finds(link, true, &packets, &[Rule::Mark]);
}

/// Sojourns grow by 100 us a packet: above 5 ms from the 51st on, which is
/// taken at 50 ms; an interval of 10 ms later, at 60 ms, CoDel may act.
#[test]
fn codel_acts_after_an_interval_above_its_target() {
    let link = "aqm=codel,target_ns=5000000,interval_ns=10000000,ecn=1";
    let with = |victim: u64| -> Vec<(u64, Fate)> {
        (0..100)
            .map(|n| match n.cmp(&victim) {
                std::cmp::Ordering::Less => (n * 900_000, Leaves((n + 1) * MS)),
                std::cmp::Ordering::Equal => (n * 900_000, Dropped(n * MS, "aqm")),
                std::cmp::Ordering::Greater => (n * 900_000, Leaves(n * MS)),
            })
            .collect()
    };
    finds(link, false, &with(60), &[]);
    finds(link, false, &with(75), &[]);
    finds(link, false, &with(59), &[Rule::Drop]);
    finds(link, false, &with(40), &[Rule::Drop]);
    // ECN-capable packets are marked, not dropped.
    finds(link, true, &with(60), &[Rule::Drop]);
    let mut marked = building_up(100);
    marked[60].1 = Marked(61 * MS);
    finds(link, true, &marked, &[]);
    marked[59].1 = Marked(60 * MS);
    finds(link, true, &marked, &[Rule::Mark]);
    finds(&link.replace("ecn=1", "ecn=0"), true, &marked, &[Rule::Mark, Rule::Mark]);
    // A drop at a time at which no packet departs.
    let mut odd = with(60);
    odd[60].1 = Dropped(60 * MS + 1, "aqm");
    let report = check(log(link, false, &odd).as_bytes()).expect("well formed");
    assert_eq!(report.violations[0].rule, Rule::Drop);
}

#[test]
fn fq_codel_acts_after_an_interval_above_its_target() {
    let link = "aqm=fq-codel,target_ns=5000000,interval_ns=10000000,ecn=0";
    let with = |victim: u64| -> Vec<(u64, Fate)> {
        (0..100)
            .map(|n| match n.cmp(&victim) {
                std::cmp::Ordering::Less => (n * 900_000, Leaves((n + 1) * MS)),
                std::cmp::Ordering::Equal => (n * 900_000, Dropped(n * MS, "aqm")),
                std::cmp::Ordering::Greater => (n * 900_000, Leaves(n * MS)),
            })
            .collect()
    };
    finds(link, false, &with(60), &[]);
    finds(link, false, &with(59), &[Rule::Drop]);
    finds(link, false, &with(40), &[Rule::Drop]);
}

#[test]
fn fq_codel_makes_room_when_it_is_full_only() {
    let full =
        [(0, Leaves(MS)), (0, Dropped(1, "queue")), (0, Leaves(2 * MS)), (1, Leaves(3 * MS))];
    finds(
        "aqm=fq-codel,target_ns=5000000,interval_ns=10000000,buffer_packets=2",
        false,
        &full,
        &[],
    );
    finds(
        "aqm=fq-codel,target_ns=5000000,interval_ns=10000000,buffer_packets=3",
        false,
        &full,
        &[Rule::Drop],
    );
    finds(
        "aqm=fq-codel,target_ns=5000000,interval_ns=10000000,buffer_packets=1",
        false,
        &full,
        &[Rule::Buffer, Rule::Buffer],
    );
}

/// Ten packets wait: with a weight of 1, the average is the queue that a packet finds.
#[test]
fn red_acts_between_its_thresholds_and_must_beyond_them() {
    let link =
        |min: u64, max: u64| format!("aqm=red,min_bytes={min},max_bytes={max},weight=1,ecn=1");
    let mut packets: Vec<(u64, Fate)> = (0..11).map(|n| (0, Leaves((n + 1) * MS))).collect();
    packets.push((1, Dropped(1, "aqm")));
    // Ten packets of 1500 bytes wait behind the one in transmission.
    finds(&link(14_999, 40_000), false, &packets, &[]);
    finds(&link(15_001, 40_000), false, &packets, &[Rule::Drop]);
    // An ECN-capable packet is dropped only beyond twice the upper threshold.
    finds(&link(14_999, 40_000), true, &packets, &[Rule::Drop]);
    finds(&link(6_999, 7_499), true, &packets[..11], &[]);
    packets[11].1 = Leaves(12 * MS);
    finds(&link(14_999, 40_000), false, &packets, &[]);
    finds(&link(6_000, 7_499), false, &packets, &[Rule::Drop]);
    packets[11].1 = Marked(12 * MS);
    finds(&link(14_999, 40_000), true, &packets, &[]);
    finds(&link(15_001, 40_000), true, &packets, &[Rule::Mark]);
}

/// 400 packets at once wait up to 400 ms; RFC 8033 allows a burst of 150 ms, then the delay is far
/// above the target.
#[test]
fn pie_acts_after_its_burst_and_on_a_queue_only() {
    let link = "aqm=pie,target_ns=15000000,update_ns=15000000,burst_ns=150000000,ecn=0";
    let with = |at: u64, waiting: u64| {
        let mut packets: Vec<(u64, Fate)> = (0..400).map(|n| (0, Leaves((n + 1) * MS))).collect();
        packets.retain(|(_, fate)| matches!(fate, Leaves(leaves) if *leaves <= at + waiting * MS));
        packets.push((at, Dropped(at, "aqm")));
        packets
    };
    finds(link, false, &with(200 * MS + 1, 100), &[]);
    finds(link, false, &with(149 * MS + 1, 100), &[Rule::Drop]);
    // Two waiting packets are not a queue.
    finds(link, false, &with(200 * MS + 1, 3), &[Rule::Drop]);
    finds(link, false, &[(0, Leaves(MS)), (200 * MS, Dropped(200 * MS, "aqm"))], &[Rule::Drop]);
}

#[test]
fn a_mark_is_kept_and_needs_an_aqm() {
    finds("", true, &[(0, Marked(MS))], &[Rule::Mark]);
    finds("", false, &[(0, Marked(MS))], &[Rule::Mark]);
}

/// RFC 9332, appendix A: the probability is zero as long as nothing has waited; after that it may
/// be anything.
#[test]
fn dualpi2_signals_only_once_something_has_waited() {
    let link = "aqm=dualpi2,target_ns=15000000";
    let alone = |fate| [(0, Leaves(MS)), (2 * MS, fate), (5 * MS, Leaves(6 * MS))];
    finds(link, false, &alone(Leaves(3 * MS)), &[]);
    finds(link, false, &alone(Dropped(2 * MS, "aqm")), &[Rule::Drop]);
    finds(link, true, &alone(Marked(3 * MS)), &[Rule::Mark]);
    let behind = |fate| [(0, Leaves(MS)), (500_000, fate)];
    finds(link, false, &behind(Dropped(MS, "aqm")), &[]);
    finds(link, true, &behind(Marked(2 * MS)), &[]);
    finds(link, false, &behind(Marked(2 * MS)), &[Rule::Mark]);
}

/// An outage cuts off packets, so that they are never known to have been taken; then a packet that
/// finds the link idle is dropped. RFC 9332, appendix A: the probability stays above zero if any
/// had waited; one in service had not.
#[test]
fn dualpi2_remembers_what_waited_before_an_outage() {
    let rules = |link: &str, before: &[(u64, Fate)], cut_off: &[u64]| {
        let down = |entry: &u64| (*entry, Dropped(1_500_000, "down"));
        let mut packets = before.to_vec();
        packets.extend(cut_off.iter().map(down));
        packets.push((5 * MS, Dropped(5 * MS, "aqm")));
        let found = |packets: &[(u64, Fate)]| {
            let log = log(&format!("aqm=dualpi2,target_ns=15000000,{link}"), false, packets);
            let traced = link.contains("trace");
            let log = if traced { log.replace("rate_bps=12000000,", "") } else { log };
            let report = check(log.as_bytes()).expect("well formed");
            report.violations.iter().map(|violation| violation.rule).collect::<Vec<_>>()
        };
        // The drop is judged alike whether it is last in the log or the link goes on, with a trace
        // at an opportunity.
        let last = found(&packets);
        let next = if link.contains("trace") { 16 } else { 11 };
        packets.push((10 * MS, Leaves(next * MS)));
        assert_eq!(found(&packets), last, "{link}");
        last
    };
    let link = "down_ns=1500000-4000000";
    assert_eq!(rules(link, &[], &[MS]), [Rule::Drop]);
    assert_eq!(rules(link, &[], &[MS, 1_200_000]), []);
    // One that departed had been in service until a millisecond.
    let before = [(0, Leaves(MS))];
    assert_eq!(rules(link, &before, &[500_000]), []);
    assert_eq!(rules(link, &before, &[1_200_000]), [Rule::Drop]);
    // Until an opportunity comes, the device holds two; a third waits for it above.
    let link = "trace_ms=7;9,device_packets=2,down_ns=1500000-4000000";
    assert_eq!(rules(link, &[], &[0, MS]), [Rule::Drop]);
    assert_eq!(rules(link, &[], &[0, MS, MS + 1]), []);
}
