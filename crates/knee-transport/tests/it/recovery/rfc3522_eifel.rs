//! RFC 3522 (Eifel detection) and RFC 4015 (its response): an echoed timestamp
//! older than the first retransmission belongs to an original.

use super::sender::script;

#[test]
fn an_echo_from_before_the_retransmission_undoes_recovery() {
    script(
        "RFC 3522, section 3.2, steps 4 and 5; RFC 4015, section 3.2: the window as it was",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
             = window 17.5
        110  < ack 4 ecr 0
             > 20:24
             = state open, undone 1, window 20",
    );
}

#[test]
fn an_echo_of_the_retransmission_undoes_nothing() {
    script(
        "RFC 3522, section 3.2, step 4: the echo is not smaller than RetransmitTS",
        "0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        200  < ack 20 ecr 100
             > 20:30
             = state open, undone 0, window 10",
    );
}

#[test]
fn of_several_retransmissions_the_first_counts() {
    script(
        "RFC 3522, section 3.2, step 1: RetransmitTS is that of the first retransmission",
        "0    > 0:20
        100  < ack 0 sack 1:20
             > 0 again
             > 20:29
        200  < ack 0 sack 1:21
             > 0 again
             > 29
        201  < ack 21 ecr 100       # the first retransmission, not the original
             > 30
             = undone 0, window 10, state open",
    );
}

#[test]
fn a_spurious_timeout_is_undone() {
    script(
        "RFC 3522, section 3.2, for the timeout; RFC 4015, section 3.2: nothing more is sent \
         again, and the timeout is not backed off any more",
        "given receive_window 20
        0    > 0:20
        202  > 19 again
        502  > 0 again
             = state loss, window 1, in_flight 1
        510  < ack 1 ecr 0
             > 20
             = state open, undone 1, window 20, in_flight 20",
    );
}

#[test]
fn the_undo_waits_while_retransmissions_are_out() {
    script(
        "Linux: tcp_try_undo_partial: new data is clocked out, no more is taken for lost",
        "0    > 0:20
        100  < ack 0 sack 15:20
             > 0:5 again
             = lost 15, window 5
        110  < ack 1 sack 15:20 ecr 0
             > 20:22
             = undone 0, state recovery, window 6
        111  < ack 5 sack 15:20 ecr 0
             > 22:30
             = undone 1, state disorder, window 20",
    );
}

#[test]
fn what_was_marked_and_not_sent_again_is_in_flight_again() {
    script(
        "Linux: tcp_undo_cwnd_reduction(unmark_loss)",
        "0    > 0:20
        100  < ack 0 sack 5:8
             > 0 again
             = lost 5, in_flight 13
        110  < ack 1 sack 5:8 ecr 0
             > 20:24
             = undone 1, in_flight 20, resent 1",
    );
}

#[test]
fn nothing_sent_again_yet_and_acknowledged_was_delayed() {
    script(
        "Linux since 6.12: tcp_packet_delayed with retrans_stamp zero (pacing held the \
         retransmission back)",
        "given window 10
        given pace 10
        0    > 0:10
        99   < ack 1
             > 10
        100  < ack 1 sack 2:5
             = lost 1, state recovery, resent 0
        102  < ack 5
             = undone 1, state open, window 10
        104  > 11
        114  > 12",
    );
}

#[test]
fn reno_returns_to_its_window() {
    script(
        "RFC 4015, section 3.2, with Reno: slow start, as before, and grown by this ACK \
         (RFC 5681, section 3.1)",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 1:4
             > 0 again
        110  < ack 4 ecr 0
             > 20:24               # the last waits for a longer burst
             = state open, undone 1, window 21",
    );
}

#[test]
fn an_outage_of_half_the_clock_is_no_sign_of_a_mistake() {
    // Timestamps of 32 bits count microseconds: half of them are 35.8 minutes.
    let mut text = "given data 20\n0 > 0:20\n202 > 19 again\n502 > 0 again\n".to_owned();
    let (mut at, mut timeout) = (502, 600);
    while at < 40 * 60 * 1000 {
        at += timeout;
        timeout = (2 * timeout).min(120_000);
        text += &format!("{at} > 0 again\n");
    }
    let back = at + 100;
    text += &format!("{back} < ack 1 ecr {at}\n> 1:3 again\n= state loss, undone 0, window 2");
    script("RFC 3522, section 3.2, step 4: the echo is that of the retransmission", &text);
}
