//! RFC 8985: when RACK considers a segment lost.

use super::sender::script;

#[test]
fn one_delivered_later_sets_the_reordering_timer() {
    script(
        "RFC 8985, section 6.2, steps 4 and 5: reo_wnd is a quarter of the minimum RTT",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:2
             > 20
             = lost 0, state disorder, timer 125
        125  > 0 again
             = lost 1, state recovery",
    );
}

#[test]
fn three_delivered_later_leave_no_window() {
    script(
        "RFC 8985, section 6.2, step 4: segs_sacked >= DupThresh and no reordering seen",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
             = lost 1, state recovery, in_flight 20",
    );
}

#[test]
fn all_sent_before_the_delivered_one_are_judged() {
    script(
        "RFC 8985, section 6.2, step 5: of one instant, the lower sequence was sent first",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 5:8
             > 0:5 again
             > 20:23
             = lost 5",
    );
}

#[test]
fn in_recovery_a_second_hole_needs_no_three() {
    script(
        "RFC 8985, section 6.2, step 4: in loss recovery reo_wnd is zero",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
        101  < ack 0 sack 5:6 1:4
             > 4 again
             > 23
             = lost 2",
    );
}

#[test]
fn a_retransmission_is_lost_when_what_was_sent_after_it_arrives() {
    script(
        "RFC 8985, sections 3.1 and 6.2: lost retransmissions",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:20
             > 0 again
             > 20:39
        200  < ack 0 sack 1:21
             > 0 again
             > 39
             = lost 2",
    );
}

#[test]
fn data_sent_before_a_retransmission_in_the_same_instant_says_nothing_of_it() {
    script(
        "RFC 8985, section 6.2, step 2: transmissions are ordered by time, here by number too",
        "given fixed 20
        0    > 0:20
        100  < ack 1
             > 20
             < ack 1 sack 2:5
             > 1 again
             > 21:24
        200  < ack 1 sack 2:21
             > 24:40
             = lost 1
        201  < ack 1 sack 2:22      # 21 left after the retransmission
             > 1 again
             > 40
             = lost 2",
    );
}

#[test]
fn the_timer_waits_for_the_hole_not_for_what_was_delivered() {
    script(
        "RFC 8985, section 6.2, step 5: timeout = xmit_ts of the hole + RACK.rtt + reo_wnd",
        "given data 1
        0    > 0
        10   write 1
             > 1
        110  < ack 0 sack 1:2
             = timer 125
        125  > 0 again",
    );
}

#[test]
fn of_several_holes_the_timer_waits_for_the_last() {
    script(
        "RFC 8985, section 6.2, step 5: timeout = MAX(remaining, timeout)",
        "given fixed 20
        given data 1
        0    > 0
        10   write 1
             > 1
        20   write 1
             > 2
        30   write 1
             > 3
        120  < ack 0 sack 2:3
             = timer 135
        135  > 0:2 again
             = lost 2, in_flight 3",
    );
}

#[test]
fn an_ack_that_may_be_for_the_original_does_not_count_for_the_retransmission() {
    script(
        "RFC 8985, section 6.2, step 2: retransmitted, and rtt < RACK.min_RTT",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
        110  < ack 10 ecr 0         # 10 to 19 were sent before the retransmission
             > 23:30
             = lost 1, state open",
    );
}

#[test]
fn an_ambiguous_retransmission_does_not_hide_what_else_an_ack_delivers() {
    script(
        "RFC 8985, section 6.2, step 2: for each segment newly acknowledged. The timeout was \
         spurious (the echo is older); 1 is lost all the same: sent before 2 and 3",
        "given data 5
        0    > 0:5
        202  > 4 again
        502  > 0 again
        510  < ack 1 sack 2:5 ecr 0
             > 1 again
             = undone 1, state recovery",
    );
}

#[test]
fn a_timeout_spares_what_was_sent_within_a_round_trip() {
    script(
        "RFC 8985, section 6.3: the first segment, and those older than RACK.rtt + reo_wnd \
         (Linux: older than RACK.rtt)",
        "given data 2
        0    > 0:2
        100  < ack 1
             = timer 400
        400  > 1 again              # probe
        650  write 1
             > 2
        700  > 1 again              # timeout
             = timeouts 1, lost 1, in_flight 2, state loss",
    );
}

#[test]
fn after_an_undo_only_the_timeout_takes_the_same_segments_for_lost() {
    script(
        "Linux: tcp_undo_cwnd_reduction takes the marks back, and tcp_rack_detect_loss has \
         taken what it marked off its list (RFC 8985 would look at them again)",
        "given window 20
        0    > 0:20
        100  < ack 0 sack 5:8
             > 0 again
             = lost 5
        110  < ack 1 sack 5:8 ecr 0
             > 20:24
             = undone 1, state disorder, in_flight 20
        180  < ack 1 sack 5:9
             > 24
             = lost 5, state disorder",
    );
}

/// All six are marked lost by a timeout; then the original of 0 arrives.
const TIMEOUT_UNDONE: &str = "given data 6
        0    > 0:6
        202  > 5 again
        502  > 0 again
             = state loss, lost 6
        505  < ack 0
        510  < ack 1 ecr 0
             = state open, undone 1, in_flight 5
";

#[test]
fn what_only_a_timeout_had_marked_is_judged_once_the_timeout_is_undone() {
    script(
        "RFC 8985, section 6.2, step 5: each segment not acknowledged; Linux: \
         tcp_rack_detect_loss passes over what is marked lost, but leaves it in the list",
        &format!(
            "{TIMEOUT_UNDONE}
        512  < ack 1 sack 3:6
             > 1:3 again
             = state recovery, lost 8"
        ),
    );
}

#[test]
fn a_retransmission_that_only_a_timeout_had_marked_is_judged_as_well() {
    script(
        "RFC 8985, section 6.2, step 5: each segment not acknowledged, by when it was sent last",
        "0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
             < ack 0 sack 2:8
             > 20
             = timer 400
        400  > 0 again
             = state loss
        410  < ack 1 ecr 0
             > 21:27
             = undone 1
        415  < ack 1 sack 20:21 2:8
             > 1 again",
    );
}

#[test]
fn an_original_acknowledged_after_its_retransmission_does_not_date_the_latter() {
    script(
        "RFC 8985, section 6.2, step 2: ignored if the echoed timestamp is older than the \
         retransmission, which an age of one minimum RTT alone would not show (Linux: \
         tcp_skb_spurious_retrans)",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
        205  < ack 4 ecr 0
             > 23
             = undone 1
        206  < ack 4 sack 5:6        # overtakes 4; 6 to 19 left before the retransmission did
             > 24
        231  > 4 again
             = lost 2",
    );
}

#[test]
fn a_retransmission_overtakes_what_was_sent_before_it() {
    script(
        "RFC 8985, section 6.2, step 5: at the ACK that ends recovery too, although nothing is \
         selectively acknowledged (Linux: tcp_fastretrans_alert falls through to \
         tcp_identify_packet_loss)",
        "given fixed 20
        given data 3
        0    > 0:3
        50   write 3
             > 3:6
        100  < ack 0 sack 1:3
             = timer 125
        125  > 0 again
             = state recovery
        130  write 1
             > 6
        150  < ack 0 sack 1:3 4:6
             > 3 again
        225  < ack 3 sack 4:6
        250  < ack 6
             = state open, timer 255
        255  > 6 again
             = state recovery",
    );
}
