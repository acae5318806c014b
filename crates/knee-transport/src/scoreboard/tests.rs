//! Tests of the sums over segments.

use super::*;
use proptest::prelude::*;

/// What is known of a segment, in words instead of flags and sums.
#[derive(Clone, Copy)]
struct Known {
    len: u64,
    is_sacked: bool,
    is_lost: bool,
    is_again_out: bool,
}

impl Known {
    fn in_flight(&self) -> u64 {
        let original = !self.is_sacked && !self.is_lost;
        self.len * (u64::from(original) + u64::from(self.is_again_out))
    }
}

proptest! {
    /// The bytes in flight are those of all segments, counted one by one.
    #[test]
    fn bytes_in_flight_are_those_of_all_segments(
        operations in prop::collection::vec((0u8..8, 0usize..100, 1u16..1500), 0..300)
    ) {
        let mut board = Scoreboard::default();
        let mut known: Vec<Known> = Vec::new();
        let new = |len| Known { len, is_sacked: false, is_lost: false, is_again_out: false };
        for (kind, place, len) in operations {
            let place = place % known.len().max(1);
            let number = board.first().wrapping_add(place as u32);
            match (kind, known.get_mut(place)) {
                (0, _) => {
                    board.push(Sent { len, ..Sent::default() });
                    known.push(new(u64::from(len)));
                }
                (1, _) => {
                    board.push_burst(Sent { len, ..Sent::default() }, 3);
                    known.extend([new(u64::from(len)); 3]);
                }
                (2, Some(_)) => {
                    let end = number.wrapping_add(1);
                    match board.plain_run(end) {
                        Some(run) => board.pop_plain(&run),
                        None => (0..=place).for_each(|_| _ = board.pop()),
                    }
                    known.drain(..=place);
                }
                (3, Some(first)) if place == 0 => {
                    let goes = first.is_sacked && board.get(number).flags == SACKED;
                    prop_assert_eq!(board.pop_sacked(), goes);
                    known.drain(..usize::from(goes));
                }
                (4, Some(segment)) if !segment.is_sacked => {
                    if board.is_plain(number) {
                        board.mark_plain_sacked(number);
                    } else {
                        board.mark_sacked(number);
                    }
                    *segment = Known { is_sacked: true, ..new(segment.len) };
                }
                (5, Some(segment)) if !segment.is_sacked => {
                    let waits = segment.is_lost && !segment.is_again_out;
                    prop_assert_eq!(board.mark_lost(number), (!waits).then_some(segment.len));
                    *segment = Known { is_lost: true, ..new(segment.len) };
                }
                (6, Some(segment)) => {
                    board.unmark_lost(number);
                    segment.is_lost = false;
                }
                (7, Some(segment)) if !segment.is_sacked => {
                    board.mark_retransmitted(number);
                    segment.is_again_out = true;
                }
                _ => {}
            }
            prop_assert_eq!(board.segments() as usize, known.len());
            prop_assert_eq!(board.in_flight(), known.iter().map(Known::in_flight).sum::<u64>());
            prop_assert_eq!(
                board.outstanding_bytes(), known.iter().map(|one| one.len).sum::<u64>()
            );
        }
    }
}
