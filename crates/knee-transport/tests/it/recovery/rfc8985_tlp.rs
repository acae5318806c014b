//! RFC 8985: tail loss probes.

use super::sender::script;

#[test]
fn a_probe_leaves_after_two_round_trips() {
    script(
        "RFC 8985, section 7.2: PTO = 2 * SRTT; Linux adds two ticks against an ACK just late",
        "given data 5
        0    > 0:5
             = timer 202
        202  > 4 again
             = probes 1, timeouts 0, state open",
    );
}

#[test]
fn a_single_segment_is_given_time_for_a_delayed_ack() {
    script(
        "RFC 8985, section 7.2: FlightSize of one segment, PTO += max. delay of an ACK (200 ms)",
        "given data 1
        given rtt 300
        0    > 0
             = rto 900, timer 800
        800  > 0 again
             = probes 1",
    );
}

#[test]
fn a_probe_is_not_later_than_the_timeout_would_be() {
    script(
        "RFC 8985, section 7.2: if PTO > TCP_RTO_expiration(), the probe leaves then",
        "given data 1
        0    > 0
             = timer 300        # 2 * SRTT + 200 ms would be 400
        300  > 0 again
             = probes 1, timeouts 0
        600  > 0 again
             = timeouts 1",
    );
}

#[test]
fn new_data_does_not_put_a_probe_off_beyond_the_timeout() {
    script(
        "RFC 8985, section 7.2: the timeout counts from the first segment outstanding \
         (Linux: tcp_rto_delta_us)",
        "given data 2
        0    > 0:2
        150  write 1
             > 2
             = timer 300        # not 150 + 202
        250  write 1
             > 3
             = timer 300
        300  > 3 again
             = probes 1",
    );
}

#[test]
fn new_data_does_not_put_a_probe_off_beyond_a_timeout_that_was_restarted() {
    script(
        "RFC 8985, section 7.2: no later than the timeout, which an ACK restarted; Linux has no \
         bound once the first segment is older than a timeout (tcp_schedule_loss_probe)",
        "given data 3
        0    > 0:3
        100  < ack 2
             = rto 300, timer 400
        310  write 1
             > 3
             = timer 400        # not 310 + 202
        350  write 1
             > 4
             = timer 400
        400  > 4 again
             = probes 1",
    );
}

#[test]
fn new_data_starts_the_probe_time_anew() {
    script(
        "RFC 8985, section 7.2: scheduled when new data was transmitted",
        "given data 2
        0    > 0:2
        50   write 1
             > 2
             = timer 252",
    );
}

#[test]
fn new_data_starts_a_probe_in_place_of_the_timeout() {
    script(
        "RFC 8985, section 7.2, and Linux's tcp_write_xmit: after each transmission of new data",
        "given data 3
        0    > 0:3
        202  > 2 again
        210  write 2
             > 3:5
        302  < ack 3 ecr 202
             = timer 602
        304  < ack 3 dsack 2        # which ends the probe and leaves the timer
             = timer 602
        306  write 1
             > 5
             = timer 508",
    );
}

#[test]
fn a_probe_carries_new_data_though_the_window_is_full() {
    script(
        "RFC 8985, section 7.3: new data if there is any, and the congestion window is ignored",
        "given window 5
        0    > 0:5
        202  > 5
             = probes 1, window 5, in_flight 6",
    );
}

#[test]
fn a_probe_respects_the_receive_window() {
    script(
        "RFC 8985, section 7.3: new data only if the receive window permits",
        "given receive_window 5
        0    > 0:5
        202  > 4 again",
    );
}

#[test]
fn after_one_probe_comes_the_timeout() {
    script(
        "RFC 8985, section 7.3: one probe at a time, and the timer is armed from when it left",
        "given data 5
        0    > 0:5
        202  > 4 again
             = timer 502
        502  > 0 again
             = probes 1, timeouts 1, state loss",
    );
}

#[test]
fn selective_acknowledgement_of_the_probe_lets_rack_judge() {
    script(
        "RFC 8985, section 7.4.1: a tail of two lost segments",
        "given data 5
        0    > 0:5
        100  < ack 3
             = timer 302
        302  > 4 again
        402  < ack 3 sack 4:5
             > 3 again
             = state recovery, window 1, timeouts 0
        502  < ack 5
             = state open, window 10",
    );
}

#[test]
fn a_loss_repaired_by_the_probe_costs_its_reduction() {
    script(
        "RFC 8985, section 7.4.2, case 3: known once an ACK goes beyond the probe",
        "given data 5
        0    > 0:5
        100  < ack 4
             = timer 400
        400  > 4 again
        500  < ack 5 ecr 400
             = window 20
        600  write 5
             > 5:10
        700  < ack 6
             = window 10, state open",
    );
}

#[test]
fn a_probe_reported_as_duplicate_repaired_nothing() {
    script(
        "RFC 8985, section 7.4.2, case 1: D-SACK of the probe",
        "given data 5
        0    > 0:5
        100  < ack 4
        400  > 4 again
        401  < ack 5 ecr 0
        500  < ack 5 dsack 4
        600  write 5
             > 5:10
        700  < ack 6
             = window 20, state open",
    );
}

#[test]
fn a_duplicate_ack_for_the_probe_tells_that_it_repaired_nothing() {
    script(
        "RFC 8985, section 7.4.2, case 2: a duplicate ACK without SACK",
        "given data 5
        0    > 0:5
        100  < ack 4
        400  > 4 again
        401  < ack 5 ecr 0
        500  < ack 5
        600  write 5
             > 5:10
        700  < ack 6
             = window 20, state open",
    );
}

#[test]
fn a_duplicate_of_something_else_says_nothing_of_the_probe() {
    script(
        "RFC 8985, section 7.4.2, case 1: the D-SACK must match TLP.end_seq",
        "given data 5
        0    > 0:5
        100  < ack 4
        400  > 4 again
        450  < ack 4 dsack 2        # the network sent it twice
        500  < ack 5 ecr 400
        600  write 5
             > 5:10
        700  < ack 6
             = window 10, state open",
    );
}

#[test]
fn a_probe_of_new_data_repairs_nothing() {
    script(
        "RFC 8985, section 7.4.2: TLP.is_retrans is false",
        "given window 5
        0    > 0:5
        202  > 5
        302  < ack 6
             > 6:11
             = window 5, state open",
    );
}

#[test]
fn no_probe_while_something_is_selectively_acknowledged() {
    script(
        "RFC 8985, section 7.2: no SACKed sequences, not in recovery",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             = timer 400
        400  > 0 again
             = probes 0, timeouts 1",
    );
}
