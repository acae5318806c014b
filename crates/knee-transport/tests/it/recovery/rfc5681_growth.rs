//! RFC 5681: which ACKs let the window grow, on a path that reorders.
//!
//! Linux (`tcp_may_raise_cwnd`) grows it on any ACK that delivers data once the path has reordered
//! by more than three segments; until then only on ACKs that advance.

use super::sender::script;

#[test]
fn an_ack_that_only_reports_selectively_grows_no_window() {
    script(
        "RFC 5681, section 3.1: cwnd grows on ACKs that cumulatively acknowledge new data",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 5:6
             > 20
        102  < ack 0 sack 5:7
             > 21
             = window 20",
    );
}

#[test]
fn it_grows_the_window_once_the_path_reordered_by_more_than_three() {
    script(
        "Linux: tcp_check_sack_reordering, the end of the highest selectively acknowledged segment \
         less the late one, here 4; tcp_may_raise_cwnd then takes FLAG_DATA_SACKED too",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 3:4
             > 20
        102  < ack 1 sack 3:4
             > 21:23
             = window 21
        104  < ack 1 sack 3:5
             > 23:25
             = window 22, lost 0",
    );
}

#[test]
fn reordering_by_three_is_no_reason() {
    script(
        "Linux: net.ipv4.tcp_reordering is 3, and must be exceeded",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 2:3
             > 20
        102  < ack 1 sack 2:3
             > 21:23
             = window 21
        104  < ack 1 sack 2:4
             > 23
             = window 21, lost 0",
    );
}

#[test]
fn a_segment_reported_below_the_highest_counts_too() {
    script(
        "Linux: tcp_sacktag_one notes the lowest such segment, 2 here; the highest ends 7 beyond it",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 8:9
             > 20
        102  < ack 0 sack 2:3 8:9
             > 21:23
             = window 21, lost 0",
    );
}

#[test]
fn a_hole_filled_by_the_original_after_its_retransmission_counts_too() {
    script(
        "Linux: tcp_try_undo_partial, with the distance of all that it acknowledges",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 1:6
             > 0 again
             > 20
        102  < ack 6 ecr 0
             > 21:27
             = undone 1, window 21
        104  < ack 6 sack 7:8
             > 27:29
             = window 22, lost 1",
    );
}

#[test]
fn nothing_that_was_known_grows_it() {
    script(
        "Linux: FLAG_FORWARD_PROGRESS is newly acknowledged data",
        "given reno 20
        0    > 0:20
        100  < ack 0 sack 5:6
             > 20
        102  < ack 1 sack 5:6
             > 21:23
        104  < ack 1 sack 5:6
             = window 21",
    );
}
