//! RFC 9002, section 7.3.2: recovery that lasts a round trip.

use super::sender::script;

#[test]
fn recovery_ends_when_something_sent_during_it_is_acknowledged() {
    script(
        "RFC 9002, section 7.3.2: a recovery period ends when a packet sent during the recovery \
         period is acknowledged. This is slightly different from TCP",
        "given fixed 20
        given quic
        0    > 0:20
        100  < ack 0 sack 1:5 6:10
             > 0 5 again
             > 20:28
             = state recovery, recoveries 1
        150  < ack 0 sack 6:20 1:5   # all sent before it
             > 28:38
             = state recovery
        200  < ack 5 sack 6:20       # the second 0: sent in it; 5 is still missing
             > 38
             = state disorder, recoveries 1, in_flight 20",
    );
}

#[test]
fn the_loss_of_what_was_sent_during_it_begins_the_next() {
    script(
        "RFC 9002, section 7.3.2 and appendix B.6: no congestion event unless the lost packet \
         was sent after the start of the period",
        "given fixed 20
        given quic
        0    > 0:20
        100  < ack 0 sack 1:5 6:10
             > 0 5 again
             > 20:28
        150  < ack 0 sack 6:20 1:5
             > 28:38
        200  < ack 5 sack 6:20
             > 38
        201  < ack 5 sack 6:23       # 20 left after the second 5, which is lost
             > 5 again
             > 39:42
             = state recovery, recoveries 2, lost 3",
    );
}

#[test]
fn the_loss_of_what_was_sent_before_it_begins_none() {
    script(
        "RFC 9002, appendix B.6, OnCongestionEvent: no reaction if already in a recovery period",
        "given fixed 20
        given quic
        0    > 0:20
        100  < ack 0 sack 1:5
             > 0 again
             > 20:24
             = recoveries 1, lost 1
        200  < ack 5                 # the second 0; 5 to 19 left long before it
             > 5:20 again
             > 24
             = state disorder, recoveries 1, lost 16",
    );
}

#[test]
fn one_reduction_answers_all_losses_of_a_period() {
    script(
        "RFC 9002, section 7.3.2: the window changes only once during a recovery period",
        "given window 20
        given quic
        0    > 0:20
        100  < ack 0 sack 1:2 17:20  # 0 and 2 to 16 are lost
             > 0 2 3 4 again
             = state recovery, recoveries 1
        200  < ack 2 sack 17:20
             > 5:12 again            # into 3 in flight: half of 20
             = window 10, in_flight 10, recoveries 1",
    );
}

#[test]
fn a_congestion_echo_counts_when_it_is_for_what_was_sent_during_it() {
    script(
        "RFC 9002, section 7.3.2 and appendix B.7, ProcessECN: by the time at which the largest \
         acknowledged packet was sent",
        "given fixed 20
        given quic
        given ecn
        0    > 0:20
        100  < ack 2 ece
             > 20 cwr
             > 21
             = state cwr
        150  < ack 4 ece
             > 22:24
             = state cwr
        200  < ack 21 ece            # the echo is for 20, too: the next
             > 24 cwr
             > 25:41
             = state cwr
        250  < ack 22
             > 41
             = state cwr
        300  < ack 25
             > 42:45
             = state open",
    );
}

#[test]
fn nothing_is_undone() {
    script(
        "RFC 9002 knows no undo; TCP's is Eifel's here (RFC 3522)",
        "given fixed 20
        given quic
        0    > 0:20
        100  < ack 0 sack 1:5
             > 0 again
             > 20:24
        101  < ack 5 ecr 0           # the first 0 was only late
             > 24
             = state recovery, undone 0
        200  < ack 21
             > 25:41
             = state open, undone 0, recoveries 1",
    );
}
