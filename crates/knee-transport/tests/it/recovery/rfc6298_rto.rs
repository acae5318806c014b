//! RFC 6298: the retransmission timeout.

use super::sender::script;

#[test]
fn the_first_measurement() {
    script(
        "RFC 6298, section 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 * RTTVAR",
        "given rtt 400
        given data 0
        0    = srtt 400, rttvar 200, rto 1200, timer none",
    );
}

#[test]
fn the_smallest_timeout_is_above_the_rtt() {
    script(
        "Linux: SRTT + max(4 * RTTVAR, 200 ms) (RFC 6298, section 2.4: at least one second)",
        "given rtt 10
        given data 0
        0    = srtt 10, rttvar 5, rto 210",
    );
}

#[test]
fn a_later_measurement() {
    script(
        "RFC 6298, section 2.3: RTTVAR = 3/4 * 50 + 1/4 * |100 - 180|, SRTT = 7/8 * 100 + 180/8",
        "given data 1
        0    > 0
        180  < ack 1
             = srtt 110, rttvar 57.5, rto 340",
    );
}

#[test]
fn a_falling_rtt_widens_the_variation_slowly() {
    script(
        "Linux: tcp_rtt_estimator: a deviation downwards counts an eighth (RFC 6298 would say \
         57.5 ms)",
        "given data 1
        0    > 0
        20   < ack 1
             = srtt 90, rttvar 50.9375, rto 293.75",
    );
}

#[test]
fn the_variation_decays_once_a_round() {
    script(
        "Linux: rttvar_us is the largest mdev of a round, and falls by a quarter of the excess \
         (RFC 6298 lets it fall with each measurement)",
        "given data 2
        given rtt 200
        0    > 0:2
             = rto 600
        200  < ack 1
             = rttvar 75, rto 600     # not above rtt_seq: the round has not ended
        201  < ack 2
             = rto 600.125            # SRTT moved
             write 1
             > 2
        402  < ack 3
             = rttvar 42.59375, rto 556.734",
    );
}

#[test]
fn each_timeout_doubles_the_next() {
    script(
        "RFC 6298, section 5.5",
        "given data 5
        0    > 0:5
        202  > 4 again
        502  > 0 again
        1102 > 0 again
        2302 > 0 again
        4702 > 0 again
             = timeouts 4, rto 4800, timer 9502",
    );
}

#[test]
fn an_ack_of_new_data_starts_the_timer_anew() {
    script(
        "RFC 6298, section 5.3",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 2:20
             > 0:2 again
             > 20:38
             = timer 400
        200  < ack 1 sack 2:20
             > 38
             = timer 500, state recovery",
    );
}

#[test]
fn so_does_the_first_measurement_since_the_first_segment_left_again() {
    script(
        "Linux: tcp_clean_rtx_queue, on SACK of what was sent before the first segment left \
         again (RFC 6298, section 5.3, wants new data acknowledged)",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
             = timer 400
        150  < ack 0 sack 1:20
             > 23:39
             = rto 306.25, timer 456.25",
    );
}

#[test]
fn sending_does_not_start_it_anew() {
    script(
        "RFC 6298, section 5.1: if the timer is not running, start it",
        "given fixed 20
        given data 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             = timer 400
        150  write 2
             > 20:22
             = timer 400",
    );
}

#[test]
fn nothing_outstanding_stops_it() {
    script(
        "RFC 6298, section 5.2",
        "given data 3
        0    > 0:3
        100  < ack 3
             = timer none
        500  write 1
             > 3
             = timer 800              # section 5.1, and the probe no later",
    );
}

#[test]
fn a_measurement_ends_the_backoff() {
    script(
        "RFC 6298, section 5, and RFC 7323, section 4: timestamps measure retransmissions, too",
        "given data 5
        0    > 0:5
        202  > 4 again
        502  > 0 again
        1102 > 0 again
             = timer 2302
        1202 < ack 1
             > 1:3 again
             = srtt 100, timer 1502",
    );
}

#[test]
fn retransmissions_are_not_measured_without_timestamps() {
    script(
        "RFC 6298, section 3 (Karn): a SACK of what was sent twice, with nothing acknowledged, \
         measures nothing",
        "given data 5
        0    > 0:5
        202  > 4 again
        450  < ack 0 sack 4:5
             > 0 again
             = srtt 100, rto 300",
    );
}

#[test]
fn a_timeout_sends_the_earliest_segment() {
    script(
        "RFC 6298, section 5.4; RFC 5681, section 3.1: the loss window is one segment",
        "given receive_window 20
        0    > 0:20
        202  > 19 again
        502  > 0 again
             = window 1, in_flight 1, lost 20, state loss
        602  < ack 1
             > 20
        702  < ack 1 sack 20:21       # F-RTO: it was real
             > 1:4 again
        802  < ack 4 sack 20:21
             > 4:10 again
             = window 6",
    );
}

/// Segments 1 to 4 were marked lost, then the original of 0 arrived: Linux takes the marks back
/// and RACK does not look at these transmissions again (RFC 8985, section 6.2, step 5, would).
const PASSED_OVER: &str = "0    > 0:20
        100  < ack 0 sack 5:8
             > 0 again
             = lost 5
        110  < ack 1 sack 5:8 ecr 0
             > 20:24
             = undone 1, state disorder, timer 411.25
";

#[test]
fn reports_of_newer_data_do_not_start_the_timer_anew() {
    script(
        "RFC 6298, section 5.3: when an ACK acknowledges new data; Linux: tcp_clean_rtx_queue, on \
         SACK only if that data was sent before the first segment was last sent",
        &format!(
            "{PASSED_OVER}
        180  < ack 1 sack 5:20
             > 24:36
             = timer 411.25
        210  < ack 1 sack 5:24
             > 36:40
             = timer 411.25
        280  < ack 1 sack 5:36
             > 40:52
             = timer 411.25
        411.25 > 1 again
             = timeouts 1, state loss"
        ),
    );
}

#[test]
fn after_a_reordering_timer_the_timeout_counts_from_the_first_segment() {
    script(
        "RFC 6298, section 5.1: the timer runs since the segment was sent (Linux: \
         tcp_rack_reo_timeout, tcp_rearm_rto, tcp_rto_delta_us)",
        &format!(
            "{PASSED_OVER}
        180  < ack 1 sack 5:20
             > 24:36
        210  < ack 1 sack 21:24 5:20
             > 36:39
             = timer 235
        235  > 20 again
             = rto 309.707032, timer 309.707032
        309.707032 > 1 again
             = timeouts 1"
        ),
    );
}

#[test]
fn reordering_timers_do_not_put_the_timeout_off() {
    script(
        "RFC 6298, section 5.3: only new data acknowledged restarts the timer. Linux: \
         tcp_rack_mark_lost replaces it by the reordering timer; re-armed by each ACK that leaves \
         another hole, that one would put it off for as long as the path reorders",
        &format!(
            "{PASSED_OVER}
        180  < ack 1 sack 5:20
             > 24:36
        210  < ack 1 sack 5:24
             > 36:40
        300  < ack 1 sack 5:36
             > 40:52
        310  < ack 1 sack 5:40
             > 52:56
        400  < ack 1 sack 41:42 5:40      # RACK would wait for 40 until 425
             > 56
             = timer 411.25
        411.25 > 1 again
             = timeouts 1"
        ),
    );
}

#[test]
fn the_first_segment_sent_again_starts_the_timer_anew() {
    script(
        "Linux: tcp_xmit_retransmit_queue (RFC 6298, section 5.1, starts it only if it is not \
         running, and would time out a retransmission before its ACK is due)",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:20
             > 0 again
             > 20:39
             = timer 400
        200  < ack 0 sack 1:21
             > 0 again
             > 39
             = timer 500",
    );
}

#[test]
fn a_measurement_by_sack_ends_the_backoff() {
    script(
        "RFC 6298, section 5: a new measurement collapses the timeout that was backed off; \
         Linux: tcp_ack_update_rtt, also for data that is selectively acknowledged",
        "given fixed 20
        given data 5
        0    > 0:5
        202  > 4 again
        502  > 0:5 again
        1102 > 0:5 again
             = rto 1200, timer 2302
        1200 write 1
             > 5
        1300 < ack 0 sack 5:6
             > 0:5 again
             = rto 300, timer 1600",
    );
}

#[test]
fn a_retransmitted_segment_gives_no_sample_beside_an_original() {
    script(
        "RFC 6298, section 3 (Karn's rule): the sample is of segment 0, the last that was \
         acknowledged and never retransmitted (Linux: last_ackt of tcp_clean_rtx_queue)",
        "given data 3
        0    > 0:3
        202  > 2 again
        209  < ack 1 sack 2:3      # of the original
             = min_rtt 100",
    );
}
