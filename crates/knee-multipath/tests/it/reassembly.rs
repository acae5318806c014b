//! Data that arrives over several paths is put in order, and its waiting time counted.

use knee_multipath::Reassembly;
use knee_units::Time;
use proptest::prelude::*;

fn time(ns: u64) -> Time {
    Time::from_nanos(ns)
}

proptest! {
    /// Any order and overlap of arrivals: the delivered data is the longest
    /// range without a gap, and data counted as duplicate arrived twice.
    #[test]
    fn reassembly_agrees_with_a_bitmap(
        pieces in prop::collection::vec((0u64..300, 1u64..40), 1..80)
    ) {
        let mut reassembly = Reassembly::default();
        let mut map = [false; 400];
        let mut duplicate = 0;
        for (step, (offset, len)) in pieces.into_iter().enumerate() {
            let before = map.iter().take_while(|there| **there).count();
            let range = offset as usize..(offset + len) as usize;
            let twice = map[range.clone()].iter().filter(|there| **there).count() as u64;
            map[range].fill(true);
            let after = map.iter().take_while(|there| **there).count();
            duplicate += twice;
            let result = reassembly.insert(time(step as u64), offset, len);
            prop_assert_eq!(result.delivered, (after - before) as u64);
            prop_assert_eq!(result.duplicate, twice);
            prop_assert_eq!(reassembly.next(), after as u64);
            let there = map.iter().filter(|there| **there).count() as u64;
            prop_assert_eq!(reassembly.waiting(), there - after as u64);
        }
        prop_assert_eq!(reassembly.duplicate(), duplicate);
    }
}

/// 100 bytes arrive at 1, 3 and 7 ns and wait until 10 ns for the first 50.
#[test]
fn head_of_line_blocking_is_counted_byte_by_byte() {
    let mut reassembly = Reassembly::default();
    for (at, offset, len) in [(1, 50, 40), (3, 90, 30), (7, 120, 30)] {
        reassembly.insert(time(at), offset, len);
    }
    assert_eq!(reassembly.waiting_peak(), 100);
    assert_eq!(reassembly.insert(time(10), 0, 50).delivered, 150);
    assert_eq!(reassembly.blocked(), 40 * 9 + 30 * 7 + 30 * 3);
}
