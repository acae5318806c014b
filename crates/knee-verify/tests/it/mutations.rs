//! A short correct log, in which each rule is violated once: a handshake, four segments of which
//! the bottleneck loses the second, selective acknowledgements, the retransmission. Only the
//! expected violation may be found.

use knee_verify::{Rule, check};

const SOUND: &str = include_str!("../logs/sound.csv");

/// The log in lines, numbered from 1 as in the file.
struct Log(Vec<String>);

impl Log {
    fn sound() -> Log {
        Log(SOUND.lines().map(String::from).collect())
    }

    /// Replaces a part of a line, which must exist.
    fn edit(mut self, line: usize, from: &str, to: &str) -> Log {
        let text = &mut self.0[line - 1];
        assert!(text.contains(from), "line {line} is {text}");
        *text = text.replacen(from, to, 1);
        self
    }

    fn delete(mut self, line: usize) -> Log {
        self.0.remove(line - 1);
        self
    }

    /// Inserts a line, which then has this number.
    fn insert(mut self, line: usize, text: &str) -> Log {
        self.0.insert(line - 1, text.to_string());
        self
    }

    /// Moves a line, which then has this number.
    fn shift(mut self, from: usize, to: usize) -> Log {
        let text = self.0.remove(from - 1);
        self.0.insert(to - 1, text);
        self
    }

    fn violations(&self) -> Vec<(Rule, u64)> {
        let report = check(self.0.join("\n").as_bytes()).expect("the log is well formed");
        report.violations.iter().map(|v| (v.rule, v.line)).collect()
    }

    #[track_caller]
    fn breaks(self, expected: &[(Rule, u64)]) {
        assert_eq!(self.violations(), expected);
    }

    #[track_caller]
    fn breaks_only(self, rule: Rule, line: u64) {
        assert_eq!(self.violations(), [(rule, line)]);
    }
}

#[test]
fn the_sound_log_breaks_no_rule_and_is_counted() {
    let report = check(SOUND.as_bytes()).unwrap();
    assert_eq!(report.violations, []);
    assert!(report.is_sound());
    assert_eq!((report.data_packets_sent, report.data_packets_received), (6, 5));
    assert_eq!((report.acks_sent, report.acks_received), (5, 5));
    assert_eq!((report.segments_delivered, report.bytes_delivered), (4, 3 * 1448 + 1000));
    let counts: Vec<_> =
        report.links.iter().map(|l| (l.name.as_str(), l.entered, l.left, l.dropped)).collect();
    assert_eq!(counts, [("access", 6, 6, 0), ("bottleneck", 6, 5, 1), ("reverse", 5, 5, 0)]);
}

#[test]
fn a_log_cut_off_between_two_moments_is_sound() {
    // Packets are inside links when the run ends.
    let head: String = SOUND.lines().take(34).flat_map(|line| [line, "\n"]).collect();
    let report = check(head.as_bytes()).unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(report.links[1].inside, 3);
}

#[test]
fn time_goes_back() {
    // By one nanosecond, within an exchange that a FIFO pure delay allows.
    Log::sound().edit(37, "34372800,deliver", "34372799,deliver").breaks_only(Rule::Time, 37);
}

#[test]
fn a_packet_id_is_used_twice() {
    let log = Log::sound().edit(54, ",9,1,", ",2,1,").edit(55, ",9,1,", ",2,1,");
    let log = log.edit(56, ",9,1,", ",2,1,").edit(57, ",9,1,", ",2,1,");
    log.edit(58, ",9,1,", ",2,1,").edit(59, ",9,1,", ",2,1,").breaks_only(Rule::Identity, 54);
}

#[test]
fn a_packet_changes_size_in_a_link() {
    Log::sound().edit(35, "1500", "1499").breaks_only(Rule::Unchanged, 35);
}

#[test]
fn a_packet_is_smaller_than_its_payload() {
    let mut log = Log::sound();
    for line in 55..=58 {
        log = log.edit(line, "1500", "1447");
    }
    // Reported at each link that it enters; it also takes too long there.
    log.breaks(&[(Rule::Unchanged, 55), (Rule::Late, 56), (Rule::Unchanged, 57), (Rule::Late, 58)]);
}

#[test]
fn an_ack_arrives_with_another_number() {
    // The sender then considers less acknowledged than it states.
    let log = Log::sound().edit(49, ",6,1,", ",6,0,");
    log.breaks(&[(Rule::Unchanged, 49), (Rule::InFlight, 49)]);
}

#[test]
fn a_packet_arrives_in_the_name_of_another_flow() {
    let log = Log::sound().insert(7, "# flow,1,path=0,mss=1448");
    log.edit(41, "leave,1,0", "leave,1,1").breaks_only(Rule::Unchanged, 41);
}

#[test]
fn a_packet_leaves_a_link_that_it_never_entered() {
    let leave = "22052800,leave,1,0,data,2,0,1500,,,,,,,";
    Log::sound().insert(20, leave).breaks_only(Rule::Conservation, 20);
}

#[test]
fn a_packet_leaves_although_it_was_dropped() {
    let leave = "34372800,leave,1,0,data,3,1,1500,,,,,,,";
    Log::sound().insert(35, leave).breaks_only(Rule::Conservation, 35);
}

#[test]
fn a_packet_is_dropped_twice() {
    let drop = "23292800,drop,1,0,data,3,1,1500,,,,,,,loss";
    Log::sound().insert(31, drop).breaks_only(Rule::Conservation, 31);
}

#[test]
fn a_packet_leaves_twice() {
    let leave = "34372800,leave,1,0,data,2,0,1500,,,,,,,";
    Log::sound().insert(37, leave).breaks_only(Rule::Conservation, 37);
}

#[test]
fn a_packet_comes_from_nowhere() {
    let enter = "34372800,enter,1,0,data,77,9,1500,,,,,,,";
    Log::sound().insert(35, enter).breaks_only(Rule::Path, 35);
}

#[test]
fn a_packet_is_forgotten_between_two_links() {
    // The retransmission leaves the first link and enters no other; the rows after its arrival are
    // cut off.
    let lines =
        SOUND.lines().take(56).chain(["70000000,send,,0,data,11,4,1448,2896,14480,,10,,,new"]);
    let lines = lines.chain(["70000000,enter,0,0,data,11,4,1500,,,,,,,"]);
    Log(lines.map(String::from).collect()).breaks_only(Rule::Path, 57);
}

#[test]
fn a_packet_pauses_between_two_links() {
    let log = Log::sound().edit(57, "48534400", "48534401").edit(58, "59734400", "59734401");
    let log = log.edit(59, "59734400", "59734401").edit(60, "59734400", "59734401");
    let log = log.edit(61, "59734400", "59734401").edit(62, "59734400", "59734401");
    log.edit(63, "70734400", "70734401")
        .edit(64, "70734400", "70734401")
        .breaks_only(Rule::Path, 57);
}

#[test]
fn a_packet_takes_the_links_in_the_wrong_order() {
    let log = Log::sound().edit(5, "forward=0;1", "forward=1;0");
    assert!(log.violations().iter().all(|(rule, _)| *rule == Rule::Path));
    assert_eq!(log.violations().len(), 12, "both entries of each of the 6 packets");
}

#[test]
fn a_packet_is_received_before_it_left_the_last_link() {
    // Without its leave, the retransmission stays in the link too long.
    Log::sound().delete(58).breaks(&[(Rule::Path, 58), (Rule::Late, 57)]);
}

#[test]
fn a_link_exceeds_its_rate_by_a_nanosecond() {
    // The packet of line 32 is served right behind the one of line 27; its own transmission and
    // delay would let it arrive at 34.612800 ms.
    let log = Log::sound().edit(40, "35572800", "35572799").edit(41, "35572800", "35572799");
    log.edit(42, "35572800", "35572799")
        .edit(43, "35572800", "35572799")
        .edit(50, "46572800", "46572799")
        .edit(51, "46572800", "46572799")
        .breaks_only(Rule::Rate, 40);
}

#[test]
fn a_packet_arrives_a_nanosecond_early_on_an_idle_link() {
    let log = Log::sound().edit(58, "59734400", "59734399").edit(59, "59734400", "59734399");
    let log = log.edit(60, "59734400", "59734399").edit(61, "59734400", "59734399");
    let log = log.edit(62, "59734400", "59734399").edit(63, "70734400", "70734399");
    log.edit(64, "70734400", "70734399").breaks_only(Rule::Early, 58);
}

#[test]
fn a_pure_delay_is_cut_short() {
    let log = Log::sound().edit(63, "70734400", "70734399");
    log.edit(64, "70734400", "70734399").breaks_only(Rule::Early, 63);
}

#[test]
fn two_packets_of_a_fifo_change_places() {
    // On the reverse path, which has no rate limit: the first ACK after the second, which still
    // waits for its delay.
    let log = Log::sound().edit(48, "45372800", "46572800").edit(49, "45372800", "46572800");
    let log = log.shift(50, 48).shift(51, 49).edit(49, ",2448", ",3896");
    log.edit(51, ",3896", ",2448").breaks_only(Rule::Fifo, 48);
}

#[test]
fn reordering_is_fine_where_a_link_may_reorder() {
    let log = Log::sound().edit(48, "45372800", "46572800").edit(49, "45372800", "46572800");
    let log = log.shift(50, 48).shift(51, 49).edit(49, ",2448", ",3896");
    let log =
        log.edit(51, ",3896", ",2448").edit(4, "11000000", "11000000,jitter_ns=1200000,reorder=1");
    assert_eq!(log.violations(), []);
}

#[test]
fn a_queue_holds_a_byte_more_than_its_buffer() {
    // When the second of them enters, 1500 and 1052 bytes wait behind a packet in transmission.
    Log::sound().edit(3, "buffer_bytes=2552", "buffer_bytes=2551").breaks_only(Rule::Buffer, 34);
}

#[test]
fn a_segment_is_left_out() {
    // Segment 3 becomes 4, so less is in flight than was sent.
    let mut log = Log::sound().edit(24, ",5,3,", ",5,4,");
    for line in [25, 33, 34, 44, 45] {
        log = log.edit(line, ",5,3,", ",5,4,");
    }
    log = log.edit(46, "2-4", "2-3;4-5").edit(60, "3896,,,,,,,3", "2896,,,,,,,2");
    for line in [61, 62, 63, 64] {
        log = log.edit(line, ",10,4,", ",10,3,");
    }
    log.breaks(&[(Rule::SendOrder, 24), (Rule::InFlight, 24), (Rule::InFlight, 49)]);
}

#[test]
fn a_segment_is_sent_again_after_it_was_acknowledged() {
    let log = Log::sound().insert(65, "70734400,send,,0,data,11,0,1448,0,14480,,10,,,again");
    log.insert(66, "70734400,enter,0,0,data,11,0,1500,,,,,,,").breaks_only(Rule::SendOrder, 65);
}

#[test]
fn a_retransmission_has_another_length() {
    Log::sound().edit(54, ",1,1448,1448", ",1,1447,1447").breaks_only(Rule::SegmentLength, 54);
}

#[test]
fn a_segment_exceeds_the_mss() {
    // Only the last segment may be smaller than the MSS.
    let log = Log::sound().edit(6, "mss=1448", "mss=1447");
    let lines: Vec<_> = log.violations();
    let expected = [18, 20, 22, 54].map(|line| (Rule::SegmentLength, line));
    assert_eq!(lines, expected);
}

#[test]
fn bytes_are_delivered_twice() {
    let again = "59734400,deliver,,0,,,1,3896,,,,,,,3";
    Log::sound().insert(61, again).breaks_only(Rule::Delivery, 61);
}

#[test]
fn a_gap_is_delivered() {
    let deliver = "35572800,deliver,,0,,,1,2896,,,,,,,2";
    // What is delivered correctly afterwards is not a repetition: delivery stopped where the gap
    // begins.
    Log::sound().insert(42, deliver).breaks_only(Rule::Delivery, 42);
}

#[test]
fn a_segment_is_skipped_in_delivery() {
    let log = Log::sound().edit(60, ",1,3896,,,,,,,3", ",2,2448,,,,,,,2");
    log.breaks_only(Rule::Delivery, 60);
}

#[test]
fn fewer_bytes_are_delivered_than_were_sent() {
    Log::sound().edit(60, "3896", "3895").breaks_only(Rule::Delivery, 60);
}

#[test]
fn what_arrived_in_order_is_never_delivered() {
    // Reported before time moves on.
    Log::sound().delete(60).breaks_only(Rule::Delivery, 62);
}

#[test]
fn an_ack_covers_a_segment_that_is_missing() {
    // Segment 1 was lost; the ACK for segment 2 covers it.
    let mut log = Log::sound();
    for line in [42, 43, 50, 51] {
        log = log.edit(line, ",7,1,", ",7,2,");
    }
    let all = log.violations();
    assert_eq!(all[0], (Rule::Acknowledgement, 42));
    // The next ACK retracts it; the sender believed the first one and sends a segment that it must
    // consider acknowledged.
    assert_eq!(all[1..], [(Rule::Acknowledgement, 46), (Rule::SendOrder, 54)]);
}

#[test]
fn an_ack_covers_a_segment_never_sent() {
    let mut log = Log::sound();
    for line in [61, 62, 63] {
        log = log.edit(line, ",10,4,", ",10,5,");
    }
    log = log.edit(64, ",10,4,", ",10,5,");
    assert_eq!(log.violations(), [(Rule::Acknowledgement, 61), (Rule::Acknowledgement, 64)]);
}

#[test]
fn a_sack_block_covers_a_segment_that_is_missing() {
    Log::sound().edit(46, "2-4", "2-5").breaks_only(Rule::Acknowledgement, 46);
    Log::sound().edit(46, "2-4", "1-4").breaks_only(Rule::Acknowledgement, 46);
}

#[test]
fn a_sack_block_is_empty() {
    Log::sound().edit(42, "2-3", "2-2").breaks_only(Rule::Acknowledgement, 42);
}

#[test]
fn a_duplicate_is_reported_below_the_cumulative_acknowledgement() {
    // D-SACK, RFC 2883, is allowed.
    assert_eq!(Log::sound().edit(61, ",4,,,,,,,,", ",4,,,,,,,,0-1").violations(), []);
}

#[test]
fn an_ack_takes_back_an_earlier_one() {
    let mut log = Log::sound();
    for line in [46, 47, 52, 53] {
        log = log.edit(line, ",8,1,", ",8,0,");
    }
    log.breaks_only(Rule::Acknowledgement, 46);
}

#[test]
fn in_flight_exceeds_what_was_sent() {
    Log::sound().edit(24, "1000,5344", "1000,5345").breaks_only(Rule::InFlight, 24);
}

#[test]
fn in_flight_exceeds_what_is_not_acknowledged() {
    Log::sound().edit(49, ",3896", ",3897").breaks_only(Rule::InFlight, 49);
    Log::sound().edit(64, ",4,,0", ",4,,1").breaks_only(Rule::InFlight, 64);
}

#[test]
fn in_flight_counts_a_retransmission_but_not_twice() {
    // 3896 bytes are not acknowledged, 1448 of them retransmitted.
    assert_eq!(Log::sound().edit(54, "1448,1448", "1448,5344").violations(), []);
    Log::sound().edit(54, "1448,1448", "1448,5345").breaks_only(Rule::InFlight, 54);
}

#[test]
fn in_flight_is_negative_or_has_wrapped() {
    Log::sound().edit(53, ",1,,0", ",1,,-1448").breaks_only(Rule::InFlight, 53);
    let wrapped = ",1,,18446744073709550168";
    Log::sound().edit(53, ",1,,0", wrapped).breaks_only(Rule::InFlight, 53);
}

#[test]
fn a_first_transmission_is_labelled_as_a_repetition() {
    Log::sound().edit(24, ",new", ",again").breaks_only(Rule::Retransmission, 24);
}

#[test]
fn a_retransmission_needs_a_timeout_or_a_report_of_a_later_segment() {
    // Without the SACK blocks nothing says that segments 2 and 3 arrived.
    let log = Log::sound().edit(42, "2-3", "").edit(46, "2-4", "").edit(51, "2448", "3896");
    let log = log.edit(53, ",1,,0", ",1,,3896").edit(54, "1448,1448", "1448,5344");
    log.breaks_only(Rule::Retransmission, 54);
}

#[test]
fn an_ack_number_is_one_too_low() {
    let log = |lines: &[usize], from: &str, to: &str| {
        lines.iter().fold(Log::sound(), |log, line| log.edit(*line, from, to))
    };
    // The first ACK of data, and the last; the sender's bytes in flight tell as well.
    let first = log(&[38, 39, 48, 49], ",6,1,", ",6,0,").violations();
    assert_eq!(first[0], (Rule::Acknowledgement, 38));
    let last = log(&[61, 62, 63, 64], ",10,4,", ",10,3,").edit(64, ",3,,0", ",3,,1000");
    last.breaks_only(Rule::Acknowledgement, 61);
}

#[test]
fn a_dividing_receiver_repeats_a_number_before_the_next() {
    let part = "59734400,ack_send,,0,ack,10,1,,,,,,,,";
    let mut log = Log::sound().edit(6, "mss=1448", "mss=1448,divides_acks=1");
    for line in 61..=64 {
        log = log.edit(line, ",10,4,", ",11,4,");
    }
    let log = log.insert(61, part).insert(62, "59734400,enter,2,0,ack,10,1,52,,,,,,,");
    let log = log.insert(65, "70734400,leave,2,0,ack,10,1,52,,,,,,,");
    let log = log.insert(66, "70734400,ack_receive,,0,ack,10,1,,1448,,,,,,");
    assert_eq!(log.violations(), []);
    log.edit(6, ",divides_acks=1", "").breaks_only(Rule::Acknowledgement, 61);
}

/// The sound log with ECN, in which the bottleneck, whose threshold is zero, marks segment 2.
fn marked() -> Log {
    let mut log = Log::sound().edit(3, "loss=random", "loss=random,aqm=threshold,target_ns=0");
    for line in [18, 19, 20, 21, 22, 23, 24, 25, 54, 55, 56, 57, 58] {
        let text = log.0[line - 1].clone();
        let mut cells: Vec<&str> = text.split(',').collect();
        cells[13] = "ect";
        log.0[line - 1] = cells.join(",");
    }
    for line in (26..=35).chain([40, 44]) {
        let text = log.0[line - 1].clone();
        let mut cells: Vec<&str> = text.split(',').collect();
        // Segments 2 and 3 wait behind another.
        cells[13] = if matches!(line, 40 | 44) { "ce" } else { "ect" };
        log.0[line - 1] = cells.join(",");
    }
    log.edit(42, ",,2-3", ",1448,2-3").edit(46, ",,2-4", ",2448,2-4")
}

#[test]
fn acks_count_the_marked_bytes() {
    assert_eq!(marked().violations(), []);
    let too_few = marked().edit(42, ",1448,2-3", ",1447,2-3");
    too_few.breaks(&[(Rule::Mark, 42), (Rule::Mark, 46)]);
    // An ACK that does not count conceals what it does not report.
    marked().edit(42, ",1448,2-3", ",,2-3").breaks_only(Rule::Mark, 42);
}

#[test]
fn a_mark_is_removed_or_added() {
    // Where an AQM may mark as it likes, only the count tells.
    let red = |log: Log| {
        let aqm = "aqm=red,min_bytes=-1,max_bytes=1,weight=0.000001,ecn=1";
        log.edit(3, "aqm=threshold,target_ns=0", aqm)
    };
    assert_eq!(red(marked()).violations(), []);
    red(marked().edit(40, ",ce,", ",ect,")).breaks_only(Rule::Mark, 42);
    let all = marked().edit(40, ",ce,", ",ect,").edit(44, ",ce,", ",ect,");
    assert_eq!(red(all).violations()[0], (Rule::Mark, 42));
    red(marked().edit(58, ",ect,", ",ce,")).breaks_only(Rule::Mark, 61);
}

/// All but the first segment are lost, and the second is retransmitted after a timeout, which is
/// line 44.
fn timed_out() -> Log {
    let sound = Log::sound();
    let row = |line: usize| sound.0[line - 1].clone();
    let mut rows: Vec<String> = (1..=39).map(row).collect();
    rows.insert(34, "23496960,drop,1,0,data,5,3,1052,,,,,,,loss".to_string());
    rows.insert(32, "23412800,drop,1,0,data,4,2,1500,,,,,,,loss".to_string());
    rows.extend([row(48), row(49), "266372800,timeout,,0,,,,,,,,,,,rto".to_string()]);
    rows.push("266372800,send,,0,data,9,1,1448,1448,14480,,10,,,again".to_string());
    rows.push("266372800,enter,0,0,data,9,1,1500,,,,,,,".to_string());
    Log(rows)
}

#[test]
fn a_timeout_is_deleted() {
    assert_eq!(timed_out().violations(), []);
    timed_out().delete(44).breaks_only(Rule::Retransmission, 44);
}

#[test]
fn a_connection_ends_only_when_it_is_complete() {
    let complete = "70734400,complete,,0,,,,5344,,,,,,,";
    let log = || Log::sound().insert(65, complete).insert(66, "70734400,end,,0,,,,,,,,,,,");
    assert_eq!(log().violations(), []);
    log().delete(65).breaks_only(Rule::Completion, 65);
}
