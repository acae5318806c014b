//! RFC 2883: the sender's response to a segment reported as received twice (RFC
//! 3708 and Linux: if every retransmission was unnecessary, the reduction is
//! undone).

use super::sender::script;

#[test]
fn a_retransmission_reported_as_duplicate_undoes_recovery() {
    script(
        "RFC 2883, section 5.2; Linux: tcp_try_undo_dsack in recovery (the ACK of the original \
         got lost, so that no echo tells)",
        "given data 4
        0    > 0:4
        90   write 20
             > 4:20
        100  < ack 0 sack 1:4
             > 0 again
        201  < ack 4 dsack 0
             > 20:24
             = undone 1, window 20, state open",
    );
}

#[test]
fn a_duplicate_may_be_reported_after_recovery() {
    script(
        "Linux: tcp_try_undo_dsack in the open state",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        200  < ack 20
             > 20:30
             = undone 0, window 10
        210  < ack 20 dsack 0
             > 30:40
             = undone 1, window 20, state open",
    );
}

#[test]
fn one_needless_retransmission_of_two_undoes_nothing() {
    script(
        "RFC 3708, section 3: all retransmissions must be reported",
        "0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
        200  < ack 20
             > 20:30
        210  < ack 20 dsack 1
             = undone 0, window 10",
    );
}

#[test]
fn both_needless_retransmissions_reported_undo_it() {
    script(
        "RFC 3708, section 3",
        "0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
        200  < ack 20
             > 20:30
        210  < ack 20 dsack 0
             = undone 0
        211  < ack 20 dsack 1
             > 30:40
             = undone 1, window 20",
    );
}

#[test]
fn what_the_network_duplicated_before_recovery_says_nothing() {
    script(
        "RFC 2883, section 5.1; Linux: after(end_seq, undo_marker)",
        "0    > 0:20
        100  < ack 1
             > 20
        101  < ack 1 sack 2:5
             > 1 again
        110  < ack 1 sack 2:5 dsack 0 # delivered, says tcp_dsack_seen
             > 21
        201  < ack 21
             > 22:31
             = undone 0, window 10, state open",
    );
}

#[test]
fn what_was_never_sent_again_was_duplicated_by_the_network() {
    script(
        "RFC 2883, section 5.1; Linux: tcp_sacktag_one looks at TCPCB_RETRANS",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        110  < ack 0 sack 1:4 dsack 2  # delivered, says tcp_dsack_seen
             > 20
        200  < ack 20
             > 21:30
             = undone 0, window 10, state open",
    );
}

#[test]
fn a_retransmission_selectively_acknowledged_twice_counts() {
    script(
        "RFC 2883, section 4 (a duplicate above the cumulative ACK); Linux: tcp_sacktag_one",
        "0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
        150  < ack 0 sack 1:6              # the original of 1 was late
        200  < ack 0 sack 1:6 dsack 1
             > 20
        201  < ack 20
             > 21:30
             = undone 0
        202  < ack 20 dsack 0
             > 30:40
             = undone 1, window 20",
    );
}

#[test]
fn a_duplicate_is_no_data() {
    script(
        "RFC 6937, section 2: DeliveredData counts what is newly acknowledged; so does the record \
         (PRR, controllers and rate samples count a duplicate as delivered, as Linux does)",
        "0    > 0:20
        100  < ack 0 sack 1:7
             > 0 again
             > 20:22
             = delivered 6
        150  < ack 0 sack 1:7 dsack 3
             = delivered 6, in_flight 16",
    );
}

#[test]
fn a_probe_reported_as_duplicate_is_not_the_retransmission() {
    script(
        "Linux since 6.12: tcp_init_undo counts a probe that may be reported yet; 3 was lost",
        "given data 5
        0    > 0:5
        100  < ack 3
        302  > 4 again
        402  < ack 3 sack 4:5
             > 3 again
        403  < ack 3 sack 4:5 dsack 4
        502  < ack 5
             = undone 0, window 10, state open",
    );
}

#[test]
fn what_was_received_twice_is_delivered() {
    script(
        "Linux: tcp_dsack_seen, a spurious retransmission is delivered, so that PRR lets data leave \
         for it (RFC 6937, section 3, counts only what is newly acknowledged)",
        "0    > 0:20
        100  < ack 0 sack 2:6
             > 0 again                # 4 x 10 / 20
             > 1 again
             = in_flight 16
        101  < ack 0 sack 1:6         # 5 x 10 / 20 - 2
             = window 15.5
        200  < ack 0 sack 1:6 dsack 1 # 6 x 10 / 20 - 2
             > 20
             = window 16, delivered 5",
    );
}

#[test]
fn more_duplicates_than_retransmissions_tell_nothing() {
    script(
        "RFC 2883, section 5.1: the network duplicated something (Linux: tcp_dsack_seen skips a \
         D-SACK if there were more of them than retransmissions)",
        "given data 4
        0    > 0:4
        100  < ack 0 sack 1:4 dsack 2
             > 0 again
        201  < ack 4 dsack 0 ecr 100
             = undone 0, state open",
    );
}
