//! RFC 6937 (and RFC 9937, its revision, where Linux follows that):
//! proportional rate reduction, from 20 segments to 10.
//!
//! RecoverFS is the window before the reduction, as in Linux. The arithmetic is
//! in bytes, as in the RFC: Linux counts segments and rounds up, so that there
//! the first segment after the retransmission is sent one ACK earlier.

use super::sender::script;

#[test]
fn every_other_delivery_lets_a_segment_leave() {
    script(
        "RFC 6937, section 3: sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out",
        "0    > 0:20
        100  < ack 0 sack 1:2
             > 20
        101  < ack 0 sack 1:3
             > 21
        102  < ack 0 sack 1:4       # 1/2 delivered, and a fast retransmit
             > 0 again
             = window 19, in_flight 19
        103  < ack 0 sack 1:5       # 2/2 - 1
             = window 18
        104  < ack 0 sack 1:6       # 3/2 - 1
             = window 17.5
        105  < ack 0 sack 1:7       # 4/2 - 1
             > 22
             = window 17
        106  < ack 0 sack 1:8
        107  < ack 0 sack 1:9       # 6/2 - 2
             > 23
             = window 16, in_flight 16",
    );
}

#[test]
fn at_the_end_of_a_round_trip_the_threshold_is_in_flight() {
    let mut text = "0 > 0:20\n100 < ack 0 sack 1:4\n> 0 again\n".to_owned();
    // Every other delivery while more than 10 segments are in flight (until
    // 16 are delivered and 7 sent), then one for one.
    let mut next = 20;
    for delivered in 4..20 {
        text += &format!("{} < ack 0 sack 1:{}\n", 97 + delivered, delivered + 1);
        if [4, 6, 8, 10, 12, 14, 17, 18, 19].contains(&delivered) {
            text += &format!("> {next}\n");
            next += 1;
        }
    }
    text += "= in_flight 10, window 10\n";
    text += "200 < ack 20\n> 29\n= state open, window 10, in_flight 10";
    script("RFC 6937, section 4: in flight converges to ssthresh", &text);
}

#[test]
fn the_first_retransmission_does_not_wait() {
    script(
        "RFC 6937, section 3.1: a fast retransmit is forced on entering recovery (Linux: \
         prr_out ? 0 : 1)",
        "0    > 0:20
        100  < ack 0 sack 1:2
             > 20
             = timer 125
        125  > 0 again
             = window 20, in_flight 20",
    );
}

#[test]
fn below_the_threshold_as_much_leaves_as_was_delivered() {
    script(
        "RFC 6937, section 3: pipe <= ssthresh, limit is what was delivered (CRB) when the \
         ACK advances nothing",
        "0    > 0:20
        100  < ack 0 sack 17:20
             > 0:3 again
             = window 3, in_flight 3, lost 17",
    );
}

#[test]
fn an_ack_that_advances_without_loss_adds_one_segment() {
    script(
        "RFC 6937, section 3: slow-start reduction bound, MAX(...) + MSS; RFC 9937, section 6: \
         SafeACK advances and tells of no loss",
        "0    > 0:20
        100  < ack 0 sack 17:20
             > 0:3 again
        200  < ack 1 sack 17:20 ecr 100
             > 3:5 again
             = in_flight 4
        201  < ack 2 sack 17:20 ecr 100
             > 5:7 again
             = in_flight 5",
    );
}

#[test]
fn an_ack_that_advances_and_tells_of_a_loss_adds_none() {
    script(
        "RFC 9937, section 6: no SafeACK with further losses: what was delivered, not one more",
        "0    > 0:20
        100  < ack 0 sack 17:20
             > 0:3 again
        200  < ack 1 sack 2:3 17:20 ecr 100   # the retransmission of 1 is lost, too
             > 1 3 again
             = in_flight 2, lost 18",
    );
}

#[test]
fn it_never_exceeds_the_threshold() {
    script(
        "RFC 6937, section 3: sndcnt = MIN(ssthresh - pipe, limit)",
        "0    > 0:20
        100  < ack 0 sack 1:20
             > 0 again
             > 20:29
             = in_flight 10, window 10",
    );
}

#[test]
fn what_delivers_nothing_lets_nothing_leave() {
    script(
        "RFC 6937, section 3: DeliveredData of zero (RFC 9937, section 6.2: splitting ACKs)",
        "0    > 0:20
        100  < ack 0 sack 1:7
             > 0 again
             > 20:22
             = in_flight 16, window 16
        101  < ack 0 sack 1:7
             < ack 0 sack 1:7
             = in_flight 16, window 16",
    );
}

#[test]
fn recovery_ends_at_the_threshold() {
    script(
        "RFC 6937, section 3: cwnd = ssthresh when recovery is complete",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        200  < ack 20 ecr 100
             > 20:30
             = state open, window 10, recoveries 1",
    );
}

#[test]
fn a_congestion_echo_reduces_the_same_way() {
    script(
        "RFC 6937, section 1: also for ECN; RFC 3168, section 6.1.2: once a window",
        "given ecn
        0    > 0:20
        100  < ack 1 ece            # 1/2: one is forced
             > 20 cwr
             = state cwr, window 20
        101  < ack 2 ece
             = window 19
        102  < ack 3
        103  < ack 4                # 4/2 - 1
             > 21
             = window 18
        200  < ack 21
             > 22:31
             = state open, window 10, recoveries 0, lost 0",
    );
}

#[test]
fn a_spurious_loss_does_not_undo_the_reduction_for_an_echo() {
    script(
        "RFC 3168, section 6.1.2: the reduction is for the echo, which was no mistake; Linux's \
         tcp_enter_recovery leaves prior_ssthresh at 0 in a reduction",
        "given ecn
        0    > 0:20
        100  < ack 1 ece
             > 20 cwr
             = state cwr, window 20
        101  < ack 1 sack 2:5
             > 1 again
             = state recovery
        110  < ack 5 ecr 0
             = state open, undone 1, window 10",
    );
}

#[test]
fn a_reduction_for_a_loss_is_announced_too() {
    script(
        "RFC 3168, section 6.1.2: CWR on the first new segment after a reduction for any reason",
        "given ecn
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        101  < ack 0 sack 1:5
             > 20 cwr",
    );
}

#[test]
fn the_window_is_never_less_than_a_segment() {
    script(
        "RFC 5681, section 3.1: the smallest window is one full-sized segment; Linux: tcp_cwnd_test \
         counts packets",
        "given fixed 0
        given data 3
        0    > 0
        100  < ack 1
             > 1
        200  < ack 2
             > 2",
    );
}
