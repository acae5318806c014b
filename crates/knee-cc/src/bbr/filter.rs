//! The windowed maximum of Kathleen Nichols, as in Linux's `win_minmax`: the
//! best value and two younger runners-up, in constant space.

/// A value and the round it was seen in.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    round: u32,
    value: u32,
}

/// Maximum over a window of rounds. The three entries descend in value and
/// ascend in round; they are kept apart by a quarter of the window, so that
/// a good successor is at hand when the best one leaves the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunningMax([Entry; 3]);

impl RunningMax {
    /// The maximum in force.
    #[inline]
    pub(super) fn get(&self) -> u32 {
        self.0[0].value
    }

    /// Forgets everything but `value`.
    pub(super) fn reset(&mut self, round: u32, value: u32) {
        self.0 = [Entry { round, value }; 3];
    }

    /// Takes `value` into a window of `window` rounds.
    #[inline]
    pub(super) fn update(&mut self, window: u32, round: u32, value: u32) {
        let [best, second, third] = &mut self.0;
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
        self.age(window, new);
    }

    /// Moves the runners-up on as the best grows old.
    #[inline]
    fn age(&mut self, window: u32, new: Entry) {
        let [best, second, third] = &mut self.0;
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
        }
    }

    /// Multiplies all values by `numerator / denominator`.
    pub(super) fn rescale(&mut self, numerator: u64, denominator: u64) {
        for entry in &mut self.0 {
            let scaled = u64::from(entry.value) * numerator / denominator;
            entry.value = scaled.min(u64::from(u32::MAX)) as u32;
        }
    }
}
