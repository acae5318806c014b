//! RFC 6675: the scoreboard's state, and which segment is sent next. (IsLost is
//! RACK's; see `rfc8985_rack`.)

use super::sender::script;

#[test]
fn the_lowest_lost_segment_goes_first() {
    script(
        "RFC 6675, section 4, NextSeg rule 1: the smallest sequence number",
        "0    > 0:20
        100  < ack 0 sack 17:20
             > 0:3 again
        200  < ack 0 sack 1:2 17:20     # its retransmission is lost; 3 to 16 still wait
             > 0 again
             = lost 18, in_flight 2",
    );
}

#[test]
fn in_flight_is_what_is_neither_acknowledged_nor_lost_and_what_was_sent_again() {
    script(
        "RFC 6675, section 4, SetPipe",
        "given fixed 20
        0    > 0:20
        100  < ack 2 sack 5:10       # 2, 3, 4 lost: 10 left of the first 20
             > 2:5 again
             > 20:27
             = lost 3, in_flight 20, delivered 7, resent 3
        150  < ack 2 sack 10:15 5:10
             > 27:32
             = in_flight 20, delivered 12",
    );
}

#[test]
fn the_first_two_selective_acknowledgements_let_new_data_leave() {
    script(
        "RFC 3042, section 2, limited transmit, by the scoreboard: RFC 6675, section 5, step 3",
        "0    > 0:20
        100  < ack 0 sack 1:2
             > 20
        101  < ack 0 sack 1:3
             > 21
             = state disorder, window 20, in_flight 20",
    );
}

#[test]
fn what_was_selectively_acknowledged_is_never_sent_again() {
    script(
        "RFC 6675, section 5.1: the scoreboard survives a timeout (RFC 2018, section 8, let it \
         be cleared); window of one, then slow start",
        "given data 6
        0    > 0:6
        202  > 5 again
        302  < ack 0 sack 5:6
             > 0 again
             = lost 5
        602  > 0 again
             = timeouts 1, window 1
        702  < ack 1 sack 5:6 ecr 602
             > 1:3 again
        802  < ack 3 sack 5:6
             > 3:5 again
        902  < ack 6
             = state open, resent 7, timer none",
    );
}

#[test]
fn a_partial_ack_does_not_end_recovery() {
    script(
        "RFC 6675, section 5, step C: until HighACK reaches RecoveryPoint",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:5 6:10
             > 0 5 again
             > 20:28
        150  < ack 0 sack 6:20 1:5
             > 28:38
        200  < ack 5 sack 6:20
             > 38
             = state recovery
        201  < ack 20
             > 39
             = state open, recoveries 1",
    );
}

#[test]
fn new_data_follows_when_nothing_lost_waits() {
    script(
        "RFC 6675, section 4, NextSeg rule 2",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
             > 20:24
        101  < ack 0 sack 2:7
             > 24",
    );
}

#[test]
fn lost_segments_wait_for_room() {
    script(
        "RFC 6675, section 5, step C: only while cwnd - pipe >= 1 SMSS",
        "given fixed 5
        0    > 0:5
        100  < ack 0 sack 1:4
             > 0 again
             > 5:8
             = in_flight 5
        200  < ack 0 sack 5:8 1:4
             > 0 4 again
             > 8:11
             = in_flight 5, lost 3",
    );
}

#[test]
fn one_reduction_for_all_losses_of_a_window() {
    script(
        "RFC 6675, section 5, step 4.2: on entering recovery only",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        101  < ack 0 sack 5:6 1:4
             > 4 again
        102  < ack 0 sack 7:8 5:6 1:4
        103  < ack 0 sack 7:9 5:6 1:4
             > 6 again
        200  < ack 20
             > 20:30
             = state open, window 10, recoveries 1",
    );
}

#[test]
fn losses_of_two_windows_cost_two_reductions() {
    script(
        "RFC 5681, section 4.3: loss in two successive windows is two indications",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        200  < ack 20
             > 20:30
             = window 10
        300  < ack 20 sack 21:24
             > 20 again
        400  < ack 30
             > 30:35
             = window 5, recoveries 2, state open",
    );
}
