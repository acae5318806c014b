//! RFC 2018, 2883, 7323, 5681 and 3168: what a receiver acknowledges, and when.

use super::receiver::receiver_script;

#[test]
fn every_second_segment_is_acknowledged() {
    receiver_script(
        "RFC 5681, section 4.2: an ACK for at least every second full segment",
        "0   < 0
         1   < 1
             > ack 2 ecr 0          # RFC 7323, section 4.3: the earlier one's timestamp
         2   < 2
         3   < 3
             > ack 4 ecr 2",
    );
}

#[test]
fn a_lone_segment_is_acknowledged_late() {
    receiver_script(
        "RFC 5681, section 4.2: within 500 ms; Linux: 40 ms",
        "0   < 0
         40  > ack 1 ecr 0
         50  < 1
         90  > ack 2 ecr 50",
    );
}

#[test]
fn the_end_of_a_burst_is_acknowledged_at_once() {
    receiver_script(
        "Linux: tcp_cleanup_rbuf, for a segment with PSH",
        "0   < 0 push
             > ack 1",
    );
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    receiver_script(
        "Linux: quick ACKs",
        "given quick 2
         0   < 0
             > ack 1
         1   < 1
             > ack 2
         2   < 2
         42  > ack 3",
    );
}

#[test]
fn out_of_order_is_acknowledged_at_once() {
    receiver_script(
        "RFC 5681, section 4.2; RFC 2018, section 4: the first block is the latest",
        "0   < 0 push
             > ack 1
         1   < 2
             > ack 1 sack 2:3 ecr 0
         2   < 4
             > ack 1 sack 4:5 2:3 ecr 0
         3   < 6
             > ack 1 sack 6:7 4:5 2:3
         4   < 3
             > ack 1 sack 2:5 6:7   # joined, and the latest",
    );
}

#[test]
fn at_most_three_blocks_fit() {
    receiver_script(
        "RFC 2018, section 3: three beside timestamps",
        "0   < 1
             > ack 0 sack 1:2
         1   < 3
             > ack 0 sack 3:4 1:2
         2   < 5
             > ack 0 sack 5:6 3:4 1:2
         3   < 7
             > ack 0 sack 7:8 5:6 3:4
         4   < 2                      # the oldest was not forgotten
             > ack 0 sack 1:4 7:8 5:6",
    );
}

#[test]
fn a_gap_filled_is_acknowledged_at_once() {
    receiver_script(
        "RFC 5681, section 4.2; RFC 7323, section 4.3: the echo is of what filled the gap",
        "0   < 1
             > ack 0 sack 1:2
         1   < 2
             > ack 0 sack 1:3
         50  < 0
             > ack 3 ecr 50",
    );
}

#[test]
fn part_of_a_gap_filled_is_acknowledged_at_once() {
    receiver_script(
        "RFC 5681, section 4.2",
        "0   < 1
             > ack 0 sack 1:2
         1   < 3
             > ack 0 sack 3:4 1:2
         2   < 0
             > ack 2 sack 3:4 ecr 2",
    );
}

#[test]
fn a_segment_received_before_is_reported() {
    receiver_script(
        "RFC 2883, section 4.1, example 1",
        "0   < 0:2
             > ack 2
         1   < 1
             > ack 2 dsack 1
         2   < 2 push
             > ack 3                # reported once",
    );
}

#[test]
fn a_duplicate_above_a_gap_is_followed_by_its_block() {
    receiver_script(
        "RFC 2883, section 4: the second block is the one that contains the duplicate",
        "0   < 1
             > ack 0 sack 1:2
         1   < 2
             > ack 0 sack 1:3
         2   < 5
             > ack 0 sack 5:6 1:3
         3   < 2
             > ack 0 sack 1:3 5:6 dsack 2",
    );
}

#[test]
fn beside_a_duplicate_two_blocks_fit() {
    receiver_script(
        "RFC 2883, section 4: the duplicate takes the first of the three blocks",
        "0   < 1
             > ack 0 sack 1:2
         1   < 3
             > ack 0 sack 3:4 1:2
         2   < 5
             > ack 0 sack 5:6 3:4 1:2
         3   < 5
             > ack 0 sack 5:6 3:4 dsack 5
         4   < 7
             > ack 0 sack 7:8 5:6 3:4",
    );
}

#[test]
fn an_old_duplicate_does_not_turn_the_timestamp_back() {
    receiver_script(
        "RFC 7323, section 4.3: TS.Recent is replaced by SEG.TSval >= TS.Recent only",
        "0   < 0 push ts 0
             > ack 1
         50  < 1 push ts 50         # a retransmission
             > ack 2 ecr 50
         60  < 1 ts 1               # and the original
             > ack 2 dsack 1 ecr 50",
    );
}

#[test]
fn a_mark_is_echoed_until_the_window_was_reduced() {
    receiver_script(
        "RFC 3168, section 6.1.3",
        "0   < 0 push
             > ack 1
         1   < 1 push ce
             > ack 2 ece
         2   < 2 push
             > ack 3 ece
         3   < 3 push cwr
             > ack 4",
    );
}

#[test]
fn a_change_of_marking_is_acknowledged_at_once() {
    receiver_script(
        "RFC 8257, section 3.2",
        "0   < 0
         1   < 1
             > ack 2
         2   < 2 ce
             > ack 3 ece
         3   < 3 ce
         4   < 4 ce
             > ack 5 ece",
    );
}

#[test]
fn originals_older_than_the_retransmission_that_arrived_are_discarded() {
    receiver_script(
        "RFC 7323, section 5.3, R1: SEG.TSval < TS.Recent, discarded and answered; Linux tolerates a \
         tick (TCP_PAWS_WINDOW) and reports what was received before (tcp_send_dupack)",
        "0   < 0 push ts 0
             > ack 1
         30  < 5 ts 3
             > ack 1 sack 5:6 ecr 0
         50  < 1 ts 40              # a retransmission
             > ack 2 sack 5:6 ecr 40
         52  < 2 ts 2               # originals
             > ack 2 sack 5:6 ecr 40
             < 4 ts 2
             > ack 2 sack 5:6 ecr 40
             < 1 ts 1
             > ack 2 sack 5:6 dsack 1 ecr 40
         60  < 2 ts 39.5            # a tick older
             > ack 3 sack 5:6",
    );
}

#[test]
fn what_is_beyond_a_gap_raises_no_timestamp() {
    receiver_script(
        "RFC 7323, section 4.3: only a segment that spans Last.ACK.sent updates TS.Recent",
        "0   < 0 push ts 0
             > ack 1
         30  < 5 ts 30
             > ack 1 sack 5:6 ecr 0
         31  < 1 ts 2
             > ack 2 sack 5:6 ecr 2",
    );
}

#[test]
fn an_old_duplicate_raises_no_timestamp() {
    receiver_script(
        "RFC 7323, section 5.3: a segment outside the window is rejected before TS.Recent is updated \
         (R2 before R3); Linux looks at what ends before the last ACK (tcp_sequence)",
        "0   < 0 push ts 0
             > ack 1
         30  < 1 push ts 3
             > ack 2 ecr 3
         31  < 3 ts 4
             > ack 2 sack 3:4 ecr 3
         32  < 0 ts 25              # a retransmission in vain
             > ack 2 sack 3:4 dsack 0 ecr 3
         33  < 2 ts 4               # an original
             > ack 4 ecr 4",
    );
}
