//! RFC 5682, section 3.1: F-RTO with SACK. Timestamps give the same information
//! (see `rfc3522_eifel`) unless the echo is that of the retransmission, as here.
//!
//! 21 segments are sent: 20, and a probe with new data after 202 ms. The
//! timeout occurs 300 ms after the probe, and segment 0 is retransmitted.

use super::sender::script;

const TIMEOUT: &str = "given window 20
        0    > 0:20
        202  > 20
        502  > 0 again
             = state loss, window 1, lost 21, in_flight 1
";

#[test]
fn after_the_first_ack_new_data_leaves_and_the_second_ack_decides() {
    script(
        "RFC 5682, section 3.1, steps 2b and 3b: data never sent again is acknowledged",
        &format!(
            "{TIMEOUT}
        602  < ack 1
             > 21:23
        603  < ack 2 ecr 502
             = undone 1, state open, window 20, in_flight 21"
        ),
    );
}

#[test]
fn selective_acknowledgement_of_the_new_data_alone_shows_that_the_loss_was_real() {
    script(
        "RFC 5682, section 3.1, step 3a",
        &format!(
            "{TIMEOUT}
        602  < ack 1
             > 21:23
        702  < ack 1 sack 21:22
             > 1:3 again
             = undone 0, state loss
        703  < ack 1 sack 10:11 21:22    # an original, but step 3 is over
             > 3 again
             = undone 0, state loss"
        ),
    );
}

#[test]
fn an_ack_of_everything_shows_it_if_it_acknowledges_an_original() {
    script(
        "Linux: tcp_process_loss looks for FLAG_ORIG_SACK_ACKED before it looks whether recovery is \
         complete (RFC 5682, section 3.1, step 2a: an ACK up to RecoveryPoint decides nothing)",
        &format!(
            "{TIMEOUT}
        602  < ack 21
             > 21:41
             = undone 1, state open, window 20"
        ),
    );
}

#[test]
fn an_ack_of_retransmissions_alone_ends_the_doubt() {
    script(
        "RFC 5682, section 3.1, step 2a: the ACK reaches RecoveryPoint",
        "given data 1
        0    > 0
        300  > 0 again
        600  > 0 again
             = state loss, timeouts 1
        700  < ack 1
             = undone 0, state open",
    );
}

#[test]
fn without_new_data_lost_segments_are_sent_again() {
    script(
        "RFC 5682, section 3.1, step 2b: no new data, so conventional recovery",
        "given data 20
        0    > 0:20
        202  > 19 again
        502  > 0 again
        602  < ack 1
             > 1:3 again
             = state loss, window 2",
    );
}

#[test]
fn one_new_segment_is_enough() {
    script(
        "RFC 5682, section 3.1, step 2b: up to two new segments, as the receiver permits",
        "given receive_window 19
        0    > 0:19
        202  > 18 again
        502  > 0 again
        602  < ack 1 ecr 502
             > 19                  # the ACK opened the window for one
        702  < ack 1 sack 19:20
             > 1:4 again
             = state loss, undone 0",
    );
}

#[test]
fn a_selectively_acknowledged_original_shows_it_at_once() {
    script(
        "Linux: FLAG_ORIG_SACK_ACKED (RFC 5682 waits for the cumulative ACK of step 2)",
        &format!(
            "{TIMEOUT}
        510  < ack 0 sack 1:2 ecr 502
             = undone 1, state disorder, window 20, in_flight 21"
        ),
    );
}

#[test]
fn a_timeout_within_recovery_is_never_in_doubt() {
    script(
        "RFC 5682, section 3.1, step 1: not when loss recovery is under way",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        400  > 0 again
             = state loss, timeouts 1
        410  < ack 0 sack 1:5 ecr 400
             > 5 again
             = undone 0, state loss",
    );
}

#[test]
fn a_second_timeout_may_be_spurious_as_well() {
    script(
        "RFC 5682, section 3.1, step 2: if the timer expires again, go to step 1",
        &format!(
            "{TIMEOUT}
        1102 > 0 again
             = timeouts 2
        1110 < ack 0 sack 1:2 ecr 1102
             = undone 1, state disorder, window 20"
        ),
    );
}

#[test]
fn a_timeout_in_a_reduced_window_reduces_it_no_further() {
    script(
        "RFC 3168, section 6.1.2, and Linux's tcp_enter_loss: one reduction of ssthresh a window",
        "given ecn
        given data 20
        0    > 0:20
        100  < ack 1 ece
             = state cwr
        302  > 19 again
        602  > 1 again
             = state loss, window 1
        702  < ack 2 ecr 602
             > 2:4 again
        802  < ack 4
             > 4:8 again
        902  < ack 8
             > 8:16 again
        1002 < ack 16
             = window 10           # and not 5
             > 16:20 again",
    );
}
