//! Histories in which each of the [ways](super::naive::Ways) matters, and what they are written in.

use super::{Fate, Plan};

pub const LOST: Fate = Fate { lost: true, twice: false, delay_ms: 0 };

pub fn late(delay_ms: u8) -> Fate {
    Fate { delay_ms, ..Fate::default() }
}

pub fn twice(delay_ms: u8) -> Fate {
    Fate { twice: true, delay_ms, ..Fate::default() }
}

fn fates(given: &[(usize, Fate)]) -> Vec<Fate> {
    let length = given.last().map_or(0, |last| last.0 + 1);
    let mut fates = vec![Fate::default(); length];
    for (index, fate) in given {
        fates[*index] = *fate;
    }
    fates
}

pub fn history(
    segments: u64,
    runt_bytes: u64,
    window: u64,
    reacts: bool,
    (ack_every, batch_ms): (u32, u64),
    data: &[(usize, Fate)],
    acks: &[(usize, Fate)],
) -> Plan {
    let (data, acks) = (fates(data), fates(acks));
    Plan { segments, runt_bytes, window, reacts, ack_every, batch_ms, data, acks }
}

/// A history in which each way matters, the smallest that was found.
pub fn histories() -> Vec<(&'static str, Plan)> {
    vec![
        (
            "lost_on_timeout",
            history(
                41,
                700,
                17,
                true,
                (1, 25),
                &[
                    (4, twice(1)),
                    (7, late(3)),
                    (13, LOST),
                    (14, twice(1)),
                    (18, late(255)),
                    (19, LOST),
                    (20, LOST),
                    (42, late(255)),
                    (46, LOST),
                ],
                &[(17, late(255))],
            ),
        ),
        (
            "rack_echo",
            history(19, 700, 18, false, (3, 0), &[(7, LOST), (8, LOST), (20, LOST)], &[]),
        ),
        ("same_instant", history(16, 700, 6, false, (1, 0), &[(0, late(255))], &[])),
        ("plain_ack", history(1, 700, 2, false, (2, 0), &[(1, LOST)], &[(0, twice(2))])),
        (
            "frto_whole",
            history(
                47,
                700,
                2,
                false,
                (3, 5),
                &[(8, LOST), (11, late(255)), (18, LOST), (31, late(1)), (32, late(255))],
                &[(27, LOST), (30, LOST), (31, LOST)],
            ),
        ),
        (
            "reordering_bounded",
            history(
                59,
                0,
                23,
                true,
                (1, 25),
                &[
                    (3, LOST),
                    (9, late(3)),
                    (12, late(1)),
                    (15, LOST),
                    (18, twice(0)),
                    (35, twice(11)),
                    (37, late(11)),
                    (38, late(255)),
                    (46, late(26)),
                    (49, late(1)),
                    (54, late(255)),
                    (55, LOST),
                    (64, LOST),
                ],
                &[],
            ),
        ),
        (
            "reordering_rearmed",
            history(
                54,
                700,
                28,
                false,
                (1, 0),
                &[
                    (5, late(30)),
                    (13, LOST),
                    (14, LOST),
                    (19, late(255)),
                    (22, LOST),
                    (24, LOST),
                    (27, twice(22)),
                    (28, LOST),
                    (30, LOST),
                    (32, LOST),
                    (46, late(255)),
                    (47, LOST),
                    (48, LOST),
                    (51, late(20)),
                    (52, late(20)),
                    (55, late(1)),
                    (57, LOST),
                    (58, late(255)),
                    (59, late(1)),
                    (66, LOST),
                    (69, LOST),
                    (70, LOST),
                ],
                &[(17, LOST), (18, LOST)],
            ),
        ),
        (
            "probe_sacked",
            history(39, 700, 19, false, (1, 0), &[(33, late(1)), (38, LOST), (39, LOST)], &[]),
        ),
        (
            "stamp_in_recovery",
            history(30, 0, 13, false, (1, 0), &[(0, LOST), (6, late(255)), (16, LOST)], &[]),
        ),
        (
            "stamp_in_timeout",
            history(
                40,
                0,
                2,
                true,
                (2, 0),
                &[
                    (4, twice(10)),
                    (13, late(255)),
                    (17, LOST),
                    (22, late(255)),
                    (34, late(255)),
                    (40, LOST),
                    (41, LOST),
                    (42, LOST),
                ],
                &[(36, late(255))],
            ),
        ),
        (
            "stamp_in_loss_undo",
            history(
                43,
                0,
                10,
                true,
                (2, 0),
                &[(4, twice(1)), (6, LOST), (7, LOST), (17, late(51)), (18, late(11)), (36, LOST)],
                &[(13, LOST), (19, LOST)],
            ),
        ),
        (
            "old_ack",
            history(
                37,
                700,
                24,
                false,
                (1, 25),
                &[
                    (5, late(255)),
                    (6, late(1)),
                    (11, twice(1)),
                    (12, LOST),
                    (13, LOST),
                    (18, LOST),
                    (19, late(1)),
                    (21, late(255)),
                    (22, LOST),
                    (23, late(1)),
                    (26, LOST),
                    (27, LOST),
                    (28, LOST),
                    (29, twice(1)),
                    (30, late(1)),
                    (31, late(1)),
                    (33, LOST),
                    (34, LOST),
                    (36, LOST),
                    (37, LOST),
                    (39, LOST),
                    (41, LOST),
                ],
                &[(23, LOST), (24, LOST), (25, twice(1))],
            ),
        ),
        (
            "probe_undo",
            history(
                16,
                700,
                3,
                false,
                (3, 5),
                &[
                    (0, LOST),
                    (3, twice(15)),
                    (4, LOST),
                    (10, LOST),
                    (11, LOST),
                    (16, LOST),
                    (22, late(255)),
                    (23, late(51)),
                ],
                &[(5, LOST), (14, twice(28))],
            ),
        ),
        (
            "ever_resent",
            history(3, 0, 2, false, (1, 0), &[(0, LOST), (3, late(255))], &[(0, LOST), (1, LOST)]),
        ),
        ("dsack_seen", history(41, 0, 2, false, (1, 0), &[(26, late(51)), (40, twice(23))], &[])),
        ("dsack_beyond", history(12, 0, 2, true, (1, 25), &[(0, twice(24)), (4, late(255))], &[])),
        ("undone_timed", history(3, 0, 3, true, (1, 0), &[(0, late(37)), (1, LOST)], &[])),
        (
            "frto_again",
            history(
                28,
                0,
                6,
                true,
                (1, 0),
                &[(5, LOST), (23, LOST), (27, LOST), (28, LOST), (29, LOST)],
                &[],
            ),
        ),
        (
            "lost_again_recovers",
            history(5, 0, 1, true, (1, 0), &[(0, LOST), (1, LOST), (5, LOST)], &[]),
        ),
        (
            "probe_lost",
            history(
                12,
                0,
                2,
                false,
                (1, 0),
                &[(9, late(34)), (11, LOST), (13, late(255))],
                &[(5, LOST)],
            ),
        ),
        ("rto_from", history(33, 0, 3, true, (1, 0), &[(31, LOST)], &[])),
        (
            "rto_restart",
            history(5, 0, 5, false, (3, 0), &[(1, LOST)], &[(0, late(18)), (1, late(25))]),
        ),
        (
            "dsack_round",
            history(
                35,
                0,
                10,
                true,
                (2, 0),
                &[
                    (1, LOST),
                    (11, LOST),
                    (15, twice(14)),
                    (17, late(49)),
                    (23, late(6)),
                    (36, twice(5)),
                ],
                &[],
            ),
        ),
        (
            "every_ack",
            history(
                21,
                0,
                15,
                false,
                (3, 0),
                &[
                    (2, late(59)),
                    (7, late(10)),
                    (8, late(50)),
                    (10, LOST),
                    (12, late(42)),
                    (13, LOST),
                    (14, late(255)),
                    (15, late(55)),
                    (17, LOST),
                    (23, LOST),
                ],
                &[(2, late(56)), (3, late(6)), (9, late(49))],
            ),
        ),
        ("sack_restarts", history(5, 0, 5, true, (1, 0), &[(0, late(22))], &[])),
        (
            "undo_reordering",
            history(
                20,
                0,
                6,
                true,
                (1, 0),
                &[(0, LOST), (16, late(58)), (17, LOST), (20, LOST)],
                &[],
            ),
        ),
        (
            "dsack_reordering",
            history(21, 0, 8, false, (1, 0), &[(2, late(54)), (6, twice(9)), (21, twice(28))], &[]),
        ),
        ("head_restarts", history(2, 0, 1, true, (1, 0), &[(0, late(255))], &[])),
    ]
}
