//! RFC 8985: how RACK detects that a path reorders, and the consequences.

use super::sender::script;

/// Segment 0 arrives after 1: reordering. Then 2 to 5 are late, are retransmitted
/// unnecessarily, and the duplicate of 2 is reported: the window is half of the
/// minimum RTT from 227 ms on.
const WIDENED: &str = "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:2
             > 20
        101  < ack 2
             > 21
        102  < ack 2 sack 6:7
             > 22
             = timer 127
        127  > 2:6 again
        130  < ack 20 ecr 0
             > 23:40
             = state open, undone 1
        202  < ack 23
             > 40:43
        227  < ack 23 dsack 2
";

#[test]
fn an_original_that_fills_a_hole_is_reordering() {
    script(
        "RFC 8985, section 6.2, step 3: delivered below RACK.fack and never retransmitted; \
         step 4: then DupThresh does not end the wait",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:2
             > 20
        101  < ack 2
             > 21
        102  < ack 2 sack 3:6
             > 22:25
             = lost 0, state disorder, timer 127
        127  > 2 again
             = lost 1, state recovery",
    );
}

#[test]
fn a_segment_selectively_acknowledged_below_the_highest_is_reordering() {
    script(
        "RFC 8985, section 6.2, step 3",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 2:3
             > 20
        101  < ack 0 sack 1:3
             > 21
        102  < ack 0 sack 1:6
             > 22:25
             = lost 0, timer 127
        127  > 0 again",
    );
}

#[test]
fn two_blocks_new_in_one_ack_are_no_reordering() {
    script(
        "RFC 8985, section 6.2, step 3: in ascending order of sequence numbers, though \
         RFC 2018 reports the latest block first",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 5:6 2:3
             > 20:22
        101  < ack 0 sack 5:7 2:3
             > 0:2 3:5 again
             > 22
             = lost 4",
    );
}

#[test]
fn a_block_beyond_what_an_ack_acknowledges_is_no_reordering() {
    script(
        "RFC 8985, section 6.2, step 3, ascending: 0 to 2 arrived before 5 (an ACK was lost); \
         Linux: prior_fack",
        "given fixed 20
        0    > 0:20
        100  < ack 3 sack 5:6
             > 20:24
        101  < ack 3 sack 5:8
             > 3:5 again
             > 24:26
             = lost 2",
    );
}

#[test]
fn a_hole_filled_by_its_retransmission_is_no_reordering() {
    script(
        "RFC 8985, section 6.2, step 3: Segment.retransmitted is FALSE",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
        200  < ack 20 ecr 100
             > 23:40
        300  < ack 23
             > 40:43
        301  < ack 23 sack 24:27
             > 23 again
             > 43:46
             = lost 2",
    );
}

#[test]
fn a_hole_filled_by_the_original_after_its_retransmission_is_reordering() {
    script(
        "Linux: tcp_try_undo_partial calls tcp_check_sack_reordering (RFC 8985 cannot tell)",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
        101  < ack 4 ecr 0
             > 23
             = undone 1, state open
        102  < ack 4 sack 5:8
             > 24:27
             = lost 1, timer 127",
    );
}

#[test]
fn a_reported_duplicate_widens_the_window() {
    script(
        "RFC 8985, section 6.2, step 4: RACK.reo_wnd_mult += 1",
        &format!(
            "{WIDENED}
        230  < ack 23 sack 24:25
             > 43
             = timer 280
        280  > 23 again"
        ),
    );
}

#[test]
fn duplicates_widen_the_window_once_a_round() {
    script(
        "RFC 8985, section 6.2, step 4: RACK.dsack_round",
        &format!(
            "{WIDENED}
        228  < ack 23 dsack 3
        230  < ack 23 sack 24:25
             > 43
             = timer 280
        280  > 23 again"
        ),
    );
}

#[test]
fn a_duplicate_in_the_next_round_widens_it_further() {
    script(
        "RFC 8985, section 6.2, step 4: a round ends when SND.UNA reaches RACK.dsack_round",
        &format!(
            "{WIDENED}
        230  < ack 40
             > 43:60
        302  < ack 43
             > 60:63
        330  < ack 60 dsack 3
             > 63:80
        402  < ack 60 sack 61:62
             > 80
             = timer 477          # 302 + 100 + 75
        477  > 60 again"
        ),
    );
}

#[test]
fn the_window_is_at_most_the_smoothed_rtt() {
    script(
        "RFC 8985, section 6.2, step 4: reo_wnd = MIN(reo_wnd, SRTT), here instead of 125 ms",
        &format!(
            "{WIDENED}
        230  < ack 40
             > 43:60
        302  < ack 43
             > 60:63
        330  < ack 60 dsack 3
             > 63:80
        402  < ack 63
             > 80:83
        430  < ack 80 dsack 4
             > 83:100
        502  < ack 83
             > 100:103
        530  < ack 100 dsack 5
             > 103:120
        602  < ack 103
             > 120:123
        630  < ack 103 sack 104:105
             > 123
             = srtt 101.144, timer 731.144"
        ),
    );
}

#[test]
fn after_sixteen_recoveries_without_a_duplicate_the_window_narrows() {
    let mut text = format!("{WIDENED}\n302 < ack 43\n> 43:63\n");
    let (mut at, mut first) = (302, 43);
    for recovery in 1..=17 {
        let window = if recovery <= 16 { 50 } else { 25 };
        let (next, lost_at) = (first + 20, at + 100 + window);
        // All but the first arrive; it is retransmitted when the window has passed.
        text += &format!("{} < ack {first} sack {}:{next}\n", at + 100, first + 1);
        text += &format!("> {next}:{}\n{lost_at} > {first} again\n", next + 19);
        at = lost_at + 100;
        first = next + 19;
        text += &format!("{at} < ack {first} ecr {lost_at}\n> {first}:{}\n", first + 20);
        text += &format!("= state open, recoveries {}\n", recovery + 1);
    }
    script("RFC 8985, section 6.2, step 4: RACK.reo_wnd_persist", &text);
}

#[test]
fn without_reordering_a_duplicate_widens_nothing() {
    script(
        "Linux: tcp_dsack_seen looks at reord_seen first (RFC 8985 widens the window)",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             > 20:23
        200  < ack 20 dsack 0 ecr 100
             > 23:40
        300  < ack 23
             > 40:43
        301  < ack 23 sack 24:25
             > 43
             = timer 326          # sent after 200 ms, RACK.rtt is 101
        326  > 23 again",
    );
}

#[test]
fn the_duplicate_of_a_probe_widens_nothing() {
    script(
        "Linux: FLAG_DSACK_TLP; a probe is sent by a timer, not by RACK's judgement",
        "given fixed 20
        given data 5
        0    > 0:5
        100  < ack 0 sack 1:2
             < ack 4                # reordering
             = timer 400
        400  > 4 again
        401  < ack 5 ecr 0
        500  < ack 5 dsack 4
        600  write 5
             > 5:10
        700  < ack 5 sack 6:7
             = timer 725
        725  > 5 again",
    );
}

#[test]
fn the_duplicate_of_a_segment_above_a_hole_is_reordering() {
    script(
        "Linux: tcp_sacktag_one, a D-SACK for a segment retransmitted and already selectively \
         acknowledged (RFC 8985 looks at segments never retransmitted only)",
        "given fixed 20
        0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
             > 20:24
        101  < ack 0 sack 1:6
             > 24
             = reorderings 0
        200  < ack 0 sack 1:6 dsack 1
             = reorderings 1",
    );
}

#[test]
fn a_round_of_the_window_is_counted_by_deliveries() {
    script(
        "Linux: tcp_rack_update_reo_wnd, a round ends when data is delivered that was sent after the \
         window widened, even above a hole (RFC 8985, section 6.2, step 4: when SND.UNA reaches \
         RACK.dsack_round)",
        &format!(
            "{WIDENED}
        230  < ack 23 sack 24:25     # 23 and this were delivered when the window widened
             > 43
        240  < ack 25
             > 44
        241  < ack 25 sack 26:40
             > 45:59
        291  > 25 again
        302  < ack 25 sack 26:43
             > 59:62
        330  < ack 25 sack 26:44
             > 62
        331  < ack 25 sack 26:44 dsack 3
        340  < ack 25 sack 26:45     # sent after the window widened
             > 63
        341  < ack 25 sack 46:47 26:45
             > 64
             = timer 416             # 45: 241 + 100 + 75"
        ),
    );
}

#[test]
fn a_recovery_that_is_undone_does_not_narrow_the_window() {
    let mut text = format!("{WIDENED}\n302 < ack 43\n> 43:63\n");
    let (mut at, mut first) = (302, 43);
    for recovery in 1..=17 {
        let (next, lost_at) = (first + 20, at + 100 + 50);
        // The first is late: it arrives in time to show that its retransmission was needless.
        text += &format!("{} < ack {first} sack {}:{next}\n", at + 100, first + 1);
        text += &format!("> {next}:{}\n{lost_at} > {first} again\n", next + 19);
        let sent_at = at;
        at = lost_at + 100;
        first = next + 19;
        text += &format!("{at} < ack {first} ecr {sent_at}\n> {first}:{}\n", first + 20);
        text += &format!("= state open, recoveries {0}, undone {0}\n", recovery + 1);
    }
    script(
        "Linux: tcp_try_undo_recovery counts for reo_wnd_persist only what is not undone",
        &text,
    );
}
