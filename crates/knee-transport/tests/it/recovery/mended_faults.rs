//! Faults of loss recovery that were fixed before there were scripts. Each test
//! fails if its fault is reintroduced.

use super::receiver::receiver_script;
use super::sender::script;

#[test]
fn what_left_in_one_instant_left_in_an_order() {
    script(
        "Commit ec00914: transmissions of one instant were ordered by sequence number, so that \
         20 seemed to have left after 1 was sent again",
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
        201  < ack 1 sack 2:22
             > 1 again
             > 40
             = lost 2",
    );
}

#[test]
fn what_is_held_beyond_the_ranges_reported_is_delivered() {
    receiver_script(
        "Commit ec00914: with no range left to report, the receiver overlooked the fifth",
        "0   < 0 push
             > ack 1
         1   < 11
             > ack 1 sack 11:12
         2   < 9
             > ack 1 sack 9:10 11:12
         3   < 7
             > ack 1 sack 7:8 9:10 11:12
         4   < 5
             > ack 1 sack 5:6 7:8 9:10
         5   < 3
             > ack 1 sack 3:4 5:6 7:8
         6   < 1 push
             > ack 2 sack 3:4 5:6 7:8
         7   < 2 push
             > ack 4 sack 5:6 7:8 9:10
         8   < 4 push
             > ack 6 sack 7:8 9:10
         9   < 6 push
             > ack 8 sack 9:10
         10  < 8 push
             > ack 10
         11  < 10 push
             > ack 12",
    );
}

/// Recovery of 0; then 20 and 21, sent after recovery began, are lost too, and
/// apparently the first retransmission of 0. It was only late: its ACK ends the
/// recovery while 20 and 21 are marked lost and retransmitted.
const SECOND_RECOVERY: &str = "
        0    > 0:20
        100  < ack 0 sack 1:20
             > 0 again
             > 20:29
        200  < ack 0 sack 22:29 1:20
             > 0 20:22 again
             > 29:36
             = lost 4, in_flight 10
        210  < ack 20 sack 22:29
             > 36
             = state recovery, recoveries 2
";

#[test]
fn a_recovery_follows_on_the_ack_that_ends_another() {
    script(
        "Commit 0374912; Linux: tcp_time_to_recover, as soon as recovery has ended: no \
         controller sees an open state between, and the window is halved twice",
        &format!(
            "{SECOND_RECOVERY}
        300  < ack 36 ecr 200
             > 37:41
             = state open, window 5, undone 0"
        ),
    );
}

#[test]
fn retransmissions_of_an_earlier_recovery_count_one_by_one() {
    script(
        "Commit 0374912; Linux: tcp_init_undo: undo_retrans = retrans_out, here two",
        &format!(
            "{SECOND_RECOVERY}
        250  < ack 20 sack 22:29 dsack 20
        300  < ack 36 ecr 200
             > 37:41
             = undone 0, window 5"
        ),
    );
}

#[test]
fn retransmissions_of_an_earlier_recovery_keep_their_time() {
    script(
        "Commit 0374912; Linux: retrans_stamp stays while retransmissions are out, so that the \
         echo of one sent before this recovery began is no original's",
        &format!(
            "{SECOND_RECOVERY}
        300  < ack 29 ecr 200
             = undone 0, state recovery"
        ),
    );
}

#[test]
fn the_last_duplicate_may_come_after_recovery() {
    script(
        "Commit c0fb0b3; Linux: tcp_try_undo_dsack in the open state",
        "0    > 0:20
        100  < ack 0 sack 2:6
             > 0:2 again
        199  < ack 20 dsack 0
             > 20:30
             = undone 0, window 10
        200  < ack 20 dsack 1
             > 30:40
             = undone 1, window 20",
    );
}
