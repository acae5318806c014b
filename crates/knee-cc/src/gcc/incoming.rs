//! The incoming rate over a window (section 5.5).

use knee_units::Time;

/// Window, T: the minimum that section 5.6 recommends, so that a decrease uses a current
/// rate.
pub(super) const WINDOW: Time = Time::from_millis(500);
/// Marks within a window: its length is exact to a tenth.
const PER_WINDOW: u64 = 10;
/// Number of marks kept: a window's, one before it, and a reserve.
const MARKS: usize = 16;

/// Bytes delivered, at some of the last acknowledgements.
#[derive(Clone, Debug, Default)]
pub(super) struct Incoming {
    marks: [(Time, u64); MARKS],
    next: usize,
    count: usize,
}

impl Incoming {
    fn newest_first(&self) -> impl Iterator<Item = (Time, u64)> {
        (1..=self.count).map(|back| self.marks[(self.next + MARKS - back) % MARKS])
    }

    /// Records the bytes delivered.
    pub(super) fn take(&mut self, now: Time, delivered: u64) {
        let recent = now.saturating_sub(WINDOW / PER_WINDOW);
        if self.newest_first().next().is_some_and(|(at, _)| at > recent) {
            return;
        }
        self.marks[self.next] = (now, delivered);
        self.next = (self.next + 1) % MARKS;
        self.count = (self.count + 1).min(MARKS);
    }

    /// Discards everything if nothing has been delivered for a window: there was nothing
    /// to send.
    pub(super) fn pause(&mut self, now: Time) {
        let newest = self.newest_first().next();
        if newest.is_some_and(|(at, _)| now.saturating_sub(at) >= WINDOW) {
            self.count = 0;
        }
    }

    /// Returns R_hat in bit/s, over the shortest time from an acknowledgement on that
    /// covers the window; none before there is one.
    pub(super) fn rate(&self, now: Time, delivered: u64) -> Option<f64> {
        let mut marks = self.newest_first();
        let (at, before) = marks.find(|(at, _)| now.saturating_sub(*at) >= WINDOW)?;
        let bytes = delivered.saturating_sub(before);
        Some(bytes as f64 * 8.0 / (now - at).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes each 10 ms are 800 kbit/s; each 90 ms, 88.9 kbit/s.
    #[test]
    fn the_rate_is_what_arrives() {
        for (gap_ms, rate) in [(10, 800_000.0), (90, 88_889.0)] {
            let mut incoming = Incoming::default();
            let mut last = None;
            for number in 0..200_u64 {
                let now = Time::from_millis(1000 + gap_ms * number);
                last = incoming.rate(now, number * 1000);
                incoming.take(now, number * 1000);
                assert_eq!(last.is_some(), gap_ms * number >= 500, "{number}");
            }
            let last = last.unwrap();
            assert!((last - rate).abs() < 1.0, "{last}");
        }
    }

    /// From 800 to 400 kbit/s: known after a window and a mark.
    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let mut incoming = Incoming::default();
        let mut delivered = 0;
        let mut rate = None;
        for number in 0..255_u64 {
            let now = Time::from_millis(10 * number);
            delivered += if number < 200 { 1000 } else { 500 };
            rate = incoming.rate(now, delivered);
            incoming.take(now, delivered);
        }
        assert!((rate.unwrap() - 400_000.0).abs() < 1.0, "{rate:?}");
    }
}
