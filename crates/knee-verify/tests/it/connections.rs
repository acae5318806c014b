//! A connection over two paths: its own data is in order, whatever its subflows do.

use crate::common::finds;
use knee_verify::{Rule, check};

/// Two pure delays of 10 and 20 ms; three packets of 1000 bytes, the second
/// over the slower path, so that the third waits for it.
const SOUND: &str = "\
# knee-packet-log/3
# link,0,fast,rate_bps=,delay_ns=10000000
# link,1,slow,rate_bps=,delay_ns=20000000
# link,2,back,rate_bps=,delay_ns=10000000
# path,0,forward=0,reverse=2
# path,1,forward=1,reverse=2
# connection,0,receive_window=3000
# flow,1,path=0,mss=1000,connection=0
# flow,2,path=1,mss=1000,connection=0
time_ns,event,link,flow,kind,id,number,bytes,in_flight,window,pacing_bps,burst,offset,ecn,detail
0,send,,1,data,0,0,1000,1000,9000,,1,0,,new
0,enter,0,1,data,0,0,1052,,,,,,,
0,send,,2,data,1,0,1000,1000,9000,,1,1000,,new
0,enter,1,2,data,1,0,1052,,,,,,,
0,send,,1,data,2,1,1000,2000,9000,,1,2000,,new
0,enter,0,1,data,2,1,1052,,,,,,,
10000000,leave,0,1,data,0,0,1052,,,,,,,
10000000,receive,,1,data,0,0,,,,,,,,
10000000,deliver,,1,,,0,1000,,,,,,,1
10000000,deliver_data,,0,,,,1000,,,,,0,,
10000000,leave,0,1,data,2,1,1052,,,,,,,
10000000,receive,,1,data,2,1,,,,,,,,
10000000,deliver,,1,,,1,1000,,,,,,,1
10000000,ack_send,,1,ack,3,2,,,3000,,,1000,,
10000000,enter,2,1,ack,3,2,52,,,,,,,
20000000,leave,1,2,data,1,0,1052,,,,,,,
20000000,receive,,2,data,1,0,,,,,,,,
20000000,deliver,,2,,,0,1000,,,,,,,1
20000000,deliver_data,,0,,,,2000,,,,,1000,,
20000000,ack_send,,2,ack,4,1,,,3000,,,3000,,
20000000,enter,2,2,ack,4,1,52,,,,,,,
20000000,leave,2,1,ack,3,2,52,,,,,,,
20000000,ack_receive,,1,ack,3,2,,0,,,,,,
20000000,send,,1,data,5,2,1000,1000,9000,,1,3000,,new
20000000,enter,0,1,data,5,2,1052,,,,,,,
";

#[track_caller]
fn edited(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    SOUND.replacen(from, to, 1)
}

#[test]
fn data_is_delivered_in_order_and_counted() {
    let report = check(SOUND.as_bytes()).expect("the log is well formed");
    assert_eq!(report.violations, []);
    assert_eq!((report.bytes_delivered, report.data_delivered), (3000, 3000));
}

#[test]
fn data_is_delivered_before_it_is_complete() {
    // The third packet with the first, across the gap: later data does not follow on.
    let log = edited("deliver_data,,0,,,,1000,,,,,0,,", "deliver_data,,0,,,,3000,,,,,0,,");
    finds(&log, &[Rule::Delivery]);
    let log = edited(
        "10000000,ack_send",
        "10000000,deliver_data,,0,,,,1000,,,,,2000,,\n10000000,ack_send",
    );
    finds(&log, &[Rule::Delivery]);
}

#[test]
fn data_is_delivered_twice() {
    let row = "20000000,deliver_data,,0,,,,2000,,,,,1000,,\n";
    finds(&edited(row, &format!("{row}{row}")), &[Rule::Delivery]);
}

#[test]
fn data_is_held_back() {
    // Reported once, before time moves on; the ACK is correct then.
    let log = edited("20000000,deliver_data,,0,,,,2000,,,,,1000,,\n", "");
    let log = log.replacen("3000,,,3000,,", "3000,,,1000,,", 1);
    finds(&(log + "20000001,complete,,1,,,,2000,,,,,,,\n"), &[Rule::Delivery, Rule::Delivery]);
}

#[test]
fn data_is_acknowledged_that_is_not_there() {
    finds(&edited("3000,,,1000,,", "3000,,,1001,,"), &[Rule::Acknowledgement]);
}

#[test]
fn the_shared_window_is_kept_and_moves_with_the_data() {
    finds(&edited("receive_window=3000", "receive_window=2999"), &[Rule::Window]);
    // The last packet exceeds 3000; an ACK allowed up to 4000.
    finds(&edited("3,2,,,3000,,,1000", "3,2,,,2999,,,1000"), &[Rule::Window]);
}

#[test]
fn a_segment_carries_other_data_when_it_is_sent_again() {
    let again = "20000000,send,,2,data,5,0,1000,2000,9000,,1,1000,,again\n\
                 20000000,enter,1,2,data,5,0,1052,,,,,,,\n20000000,send,,1,data,6,2";
    let log = edited("20000000,send,,1,data,5,2", again);
    let log = log.replace("0,1,data,5,2", "0,1,data,6,2");
    // Nothing calls for it, which is found as well.
    finds(&log, &[Rule::Retransmission]);
    let both = [Rule::Retransmission, Rule::Mapping];
    finds(&log.replace(",1,1000,,again", ",1,2000,,again"), &both);
    finds(&log.replace(",1,1000,,again", ",1,,,again"), &both);
}

#[test]
fn a_subflow_sends_what_belongs_to_no_data() {
    finds(&edited("1,3000,,new", "1,,,new"), &[Rule::Mapping]);
}

/// The second segment of the connection, which the third and the first adjoin, and the third.
#[test]
fn the_offset_of_a_subflow_is_off_by_one() {
    let second = ("0,send,,2,data,1,0", "1000,,new");
    for ((row, cell), shifted, line) in [
        (second, "1001,,new", 15),
        (second, "999,,new", 13),
        (("0,send,,1,data,2,1", "2000,,new"), "1999,,new", 15),
        // It adjoins nothing, and leaves a byte out; the last one follows it.
        (("0,send,,1,data,2,1", "2000,,new"), "2001,,new", 34),
    ] {
        let sound = SOUND.lines().find(|line| line.starts_with(row)).expect("the row is there");
        let log = edited(sound, &sound.replace(cell, shifted));
        let report = check(log.as_bytes()).expect("the log is well formed");
        let found = report.violations.iter().find(|found| found.rule == Rule::Mapping);
        assert_eq!(found.map(|found| found.line), Some(line), "{:?}", report.violations);
    }
}

/// What is not acknowledged may be sent on the other subflow, by a segment of the same bytes.
#[test]
fn data_is_repeated_on_another_subflow_in_the_same_pieces() {
    let again = "20000000,send,,1,data,5,2,1000,1000,9000,,1,2000,,new";
    let log = edited("20000000,send,,1,data,5,2,1000,1000,9000,,1,3000,,new", again);
    finds(&log, &[]);
    for other in [",1,2001,,new", ",1,1999,,new", ",1,0,,new"] {
        finds(&log.replace(again, &again.replace(",1,2000,,new", other)), &[Rule::Mapping]);
    }
}

#[test]
fn a_connection_is_complete_with_its_own_data() {
    let log = |bytes: u64| format!("{SOUND}20000000,complete,,0,,,,{bytes},,,,,,,\n");
    finds(&log(3000), &[]);
    finds(&log(2000), &[Rule::Delivery]);
}

/// The subflow of the slower path ends; its ACK is discarded.
#[test]
fn a_late_packet_of_a_subflow_that_is_gone_is_discarded() {
    let end = "25000000,end,,2,,,,,,,,,,,\n";
    let rest = "30000000,leave,0,1,data,5,2,1052,,,,,,,\n30000000,receive,,1,data,5,2,,,,,,,,\n\
                30000000,deliver,,1,,,2,1000,,,,,,,1\n30000000,deliver_data,,0,,,,1000,,,,,3000,,\n\
                30000000,leave,2,2,ack,4,1,52,,,,,,,\n";
    let log = |row: &str| format!("{SOUND}{end}{rest}30000000,{row},,2,ack,4,1,,0,,,,,,\n");
    finds(&log("discard"), &[]);
    finds(&log("ack_receive"), &[Rule::Ended]);
    // Nothing is known of it afterwards.
    finds(&(log("discard") + "30000000,timeout,,2,,,,,,,,,,,rto\n"), &[Rule::Ended]);
}

#[test]
fn a_connection_that_is_gone_delivers_nothing() {
    let complete = "20000000,complete,,0,,,,3000,,,,,,,\n";
    let log = format!("{SOUND}{complete}20000000,end,,0,,,,,,,,,,,\n");
    finds(&log, &[]);
    finds(&log.replace(complete, ""), &[Rule::Completion]);
    finds(&(log + "20000000,deliver_data,,0,,,,1,,,,,3000,,\n"), &[Rule::Ended]);
}
