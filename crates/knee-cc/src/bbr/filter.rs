//! The windowed maximum of Kathleen Nichols, as in Linux's `win_minmax`: the
//! best value and two younger runners-up, in constant space.

/// A value and the round it was seen in.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    round: u32,
    value: u32,
}

/// Maximum over a window of rounds. The three entries descend in value and
/// ascend in round; they are kept a quarter of the window apart, so that a good
/// successor is available when the best one leaves the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningMax {
    entries: [Entry; 3],
    /// Round in which no entry was too old, and for which window: until it ends, a value
    /// below all three changes nothing.
    settled: (u32, u32),
}

impl RunningMax {
    /// Returns the current maximum.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.entries[0].value
    }

    /// Forgets everything but `value`.
    pub(super) fn reset(&mut self, round: u32, value: u32) {
        self.entries = [Entry { round, value }; 3];
        self.settled = (round, 0);
    }

    /// Adds `value` to a window of `window` rounds.
    #[inline]
    pub(crate) fn update(&mut self, window: u32, round: u32, value: u32) {
        let [best, second, third] = &mut self.entries;
        if value < third.value && (round, window) == self.settled {
            return;
        }
        let new = Entry { round, value };
        if value >= best.value || round.wrapping_sub(third.round) > window {
            return self.reset(round, value);
        }
        if value >= second.value {
            *second = new;
            *third = new;
        } else if value >= third.value {
            *third = new;
        }
        let aged = self.age(window, new);
        self.settled = if aged { (round, 0) } else { (round, window) };
    }

    /// Promotes the runners-up as the best ages. Returns whether any was due.
    fn age(&mut self, window: u32, new: Entry) -> bool {
        let [best, second, third] = &mut self.entries;
        let age = new.round.wrapping_sub(best.round);
        if age > window {
            (*best, *second, *third) = (*second, *third, new);
            if new.round.wrapping_sub(best.round) > window {
                (*best, *second, *third) = (*second, *third, new);
            }
        } else if second.round == best.round && age > window / 4 {
            // A quarter of the window without a runner-up: take this one.
            *second = new;
            *third = new;
        } else if third.round == second.round && age > window / 2 {
            *third = new;
        } else {
            return false;
        }
        true
    }

    /// Multiplies all values by `numerator / denominator`.
    pub(super) fn rescale(&mut self, numerator: u64, denominator: u64) {
        for entry in &mut self.entries {
            let scaled = u64::from(entry.value) * numerator / denominator;
            entry.value = scaled.min(u64::from(u32::MAX)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RunningMax;

    const WINDOW: u32 = 10;

    /// A value is remembered for `window` rounds after its own, and no longer,
    /// when everything after it is smaller.
    #[test]
    fn the_best_leaves_after_the_window() {
        for window in [1, 2, 3, WINDOW] {
            let mut filter = RunningMax::default();
            filter.update(window, 5, 1000);
            for round in 6..=5 + window {
                filter.update(window, round, 10);
                assert_eq!(filter.get(), 1000, "round {round}, window {window}");
            }
            filter.update(window, 6 + window, 10);
            assert_eq!(filter.get(), 10, "window {window}");
        }
    }

    /// By hand, with a window of two: each round's largest value and the maximum after it.
    #[test]
    fn a_short_window_follows_a_fall() {
        let rounds = [(100, 100), (90, 100), (80, 100), (70, 90), (60, 80), (75, 75), (74, 75)];
        let mut filter = RunningMax::default();
        for (round, (value, known)) in (1..).zip(rounds) {
            filter.update(2, round, value);
            assert_eq!(filter.get(), known, "round {round}");
        }
    }

    /// The short way for a value below all entries changes nothing: a filter that never
    /// takes it agrees.
    #[test]
    fn what_is_settled_stays() {
        for window_max in [1, 2, WINDOW] {
            let mut state = 1_u32;
            let (mut short, mut long) = (RunningMax::default(), RunningMax::default());
            let mut round = 0_u32;
            for _ in 0..20_000 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                // Several values a round, now and then a gap, and a window that changes within
                // a round.
                round += u32::from(state >> 30 == 0) * (1 + (state >> 20 & 15) / 15 * window_max);
                let window = 1 + (state >> 16 & 15) * window_max / 16;
                let value = 100 + (state >> 10 & 31);
                short.update(window, round, value);
                long.settled = (round.wrapping_sub(1), 0);
                long.update(window, round, value);
                let entries = |filter: &RunningMax| filter.entries.map(|it| (it.round, it.value));
                assert_eq!(entries(&short), entries(&long), "round {round}, window {window}");
            }
        }
    }

    /// After a gap longer than the window, only the newest value counts.
    #[test]
    fn a_gap_empties_the_window() {
        let mut filter = RunningMax::default();
        filter.update(WINDOW, 1, 1000);
        filter.update(WINDOW, 40, 7);
        assert_eq!(filter.get(), 7);
    }

    /// Compared with the exact maximum, for any sequence: never above it, never
    /// below the newest value, and at least the maximum of the youngest quarter
    /// of the window.
    #[test]
    fn stays_close_to_the_exact_maximum() {
        for window in [1, 2, WINDOW] {
            let mut state = 12345_u32;
            let mut filter = RunningMax::default();
            let mut seen: Vec<(u32, u32)> = Vec::new();
            for step in 0..20_000_u32 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (round, value) = (step / 5, state >> 20);
                filter.update(window, round, value);
                seen.push((round, value));
                let since = |rounds: u32| {
                    let young = seen.iter().rev().take_while(|s| round - s.0 <= rounds);
                    young.map(|s| s.1).max().expect("the newest is young")
                };
                assert!(filter.get() <= since(window), "step {step}, window {window}");
                assert!(filter.get() >= value, "step {step}, window {window}");
                assert!(filter.get() >= since(window / 4), "step {step}, window {window}");
            }
        }
    }
}
