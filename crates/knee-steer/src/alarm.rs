//! Stops an arm early when windows show that it is clearly worse.

/// Consecutive windows required for an alarm: a single one may be a burst of other traffic.
const IN_A_ROW: u8 = 2;
/// Minimum connections for a window's delay and completion to count.
const CONNECTIONS_MIN: u64 = 10;
/// Limit on the share of unfinished connections: absolute, and as a multiple of A's; the larger
/// applies. The minimum of a window's connections for it to count.
const UNFINISHED: (f64, f64) = (0.05, 3.0);
const UNFINISHED_CONNECTIONS_MIN: u64 = 40;
/// Retransmission limit: absolute, and as a multiple of A's ratio; the larger applies.
const RETRANSMITTED: (f64, f64) = (0.02, 3.0);
/// Minimum bytes retransmitted, about 20 segments: with fewer, a ratio above the limit may be a single
/// burst of losses, or one lost segment of a short connection.
const RETRANSMITTED_MIN_BYTES: u64 = 30_000;
/// Delay limit: increase over A in microseconds, and multiple of A's; the larger applies.
const DELAY_US: (f64, f64) = (20_000.0, 2.0);
/// Completion limit of small transfers: increase in µs, and multiple; the larger applies.
const COMPLETION_US: (f64, f64) = (20_000.0, 2.0);

/// Sums over a window of time, for one group and one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Number of connections that ended.
    pub connections: u64,
    /// Number of them that ended with undelivered data.
    pub unfinished: u64,
    /// Sum of their final smoothed RTTs, microseconds.
    pub rtt_us: f64,
    /// Number of them that sent little.
    pub small: u64,
    /// Sum over small connections of the logarithm of their busy time in microseconds.
    pub small_ln_us: f64,
}

impl Window {
    /// Adds another window.
    pub fn merge(&mut self, other: &Window) {
        self.sent_bytes += other.sent_bytes;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.connections += other.connections;
        self.unfinished += other.unfinished;
        self.rtt_us += other.rtt_us;
        self.small += other.small;
        self.small_ln_us += other.small_ln_us;
    }

    fn unfinished(&self) -> Option<f64> {
        let enough = self.connections >= UNFINISHED_CONNECTIONS_MIN;
        enough.then(|| self.unfinished as f64 / self.connections as f64)
    }

    fn retransmitted(&self) -> Option<f64> {
        (self.sent_bytes > 0).then(|| self.retransmitted_bytes as f64 / self.sent_bytes as f64)
    }

    /// Whether it retransmits more than this ratio; `None` if it sent too little to tell.
    fn retransmits_over(&self, limit: f64) -> Option<bool> {
        let is_over = self.retransmitted()? > limit;
        (!is_over || self.retransmitted_bytes >= RETRANSMITTED_MIN_BYTES).then_some(is_over)
    }

    fn rtt(&self) -> Option<f64> {
        let enough = self.connections >= CONNECTIONS_MIN;
        enough.then(|| self.rtt_us / self.connections as f64)
    }

    fn completion(&self) -> Option<f64> {
        (self.small >= CONNECTIONS_MIN).then(|| self.small_ln_us / self.small as f64)
    }
}

/// The way in which an arm is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Over 5 % of its connections end with undelivered data, and three times A's share.
    Unfinished,
    /// It retransmits over 2 % and three times A's ratio.
    Retransmissions,
    /// Its round trips are twice as long as A's, and 20 ms longer.
    Delay,
    /// Its small transfers take twice as long as A's, and 20 ms longer.
    Completion,
}

/// Stops a harmful arm within three windows of its first packet. Windows with too little traffic to
/// tell are ignored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarm {
    control: Window,
    in_a_row: [u8; 4],
}

impl Alarm {
    /// Creates an alarm; `control` holds the sums for A so far.
    pub fn new(control: Window) -> Alarm {
        Alarm { control, in_a_row: [0; 4] }
    }

    /// Adds a window of B. Returns the reason to stop.
    pub fn push(&mut self, window: &Window) -> Option<Harm> {
        let usual = self.control.retransmitted().unwrap_or(0.0);
        let limit = (RETRANSMITTED.1 * usual).max(RETRANSMITTED.0);
        let slow = self.control.rtt().map(|rtt| (DELAY_US.1 * rtt).max(rtt + DELAY_US.0));
        let late = self.control.completion().map(f64::exp);
        let late = late.map(|us| (COMPLETION_US.1 * us).max(us + COMPLETION_US.0).ln());
        let over = |value: Option<f64>, limit: Option<f64>| Some(value? > limit?);
        let cut = self.control.unfinished().map(|cut| (UNFINISHED.1 * cut).max(UNFINISHED.0));
        let over = [
            over(window.unfinished(), cut),
            window.retransmits_over(limit),
            over(window.rtt(), slow),
            over(window.completion(), late),
        ];
        for (in_a_row, over) in self.in_a_row.iter_mut().zip(over) {
            match over {
                Some(true) => *in_a_row += 1,
                Some(false) => *in_a_row = 0,
                None => {}
            }
        }
        let harms = [Harm::Unfinished, Harm::Retransmissions, Harm::Delay, Harm::Completion];
        harms
            .into_iter()
            .zip(self.in_a_row)
            .find(|(_, count)| *count >= IN_A_ROW)
            .map(|(harm, _)| harm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred connections of 50 kB, with 20 ms and 100 ms each.
    fn window(again: u64, rtt_us: f64, small_us: f64) -> Window {
        Window {
            sent_bytes: 5_000_000,
            retransmitted_bytes: again,
            connections: 100,
            unfinished: 2,
            rtt_us: 100.0 * rtt_us,
            small: 100,
            small_ln_us: 100.0 * small_us.ln(),
        }
    }

    fn alarm() -> Alarm {
        Alarm::new(window(50_000, 20_000.0, 100_000.0))
    }

    /// A retransmits 1 %, so the limit is 3 %: 150 kB of 5 MB. RTTs may reach 40 ms, small
    /// transfers 200 ms. A leaves 2 % unfinished, so the limit is 6 %.
    #[test]
    fn limits_by_hand() {
        let cut = |unfinished| Window { unfinished, ..window(0, 20e3, 100e3) };
        for (worse, within, harm) in [
            (cut(7), cut(6), Harm::Unfinished),
            (window(151_000, 20e3, 100e3), window(149_000, 20e3, 100e3), Harm::Retransmissions),
            (window(0, 41e3, 100e3), window(0, 39e3, 100e3), Harm::Delay),
            (window(0, 20e3, 201e3), window(0, 20e3, 199e3), Harm::Completion),
        ] {
            let mut one = alarm();
            assert_eq!([one.push(&worse), one.push(&worse)], [None, Some(harm)]);
            let mut one = alarm();
            assert!((0..50).all(|_| one.push(&within).is_none()), "{harm:?}");
            let mut one = alarm();
            assert_eq!([one.push(&worse), one.push(&within), one.push(&worse)], [None; 3]);
        }
    }

    /// On a short path a multiple may be negligible: 5 ms instead of 1 ms.
    #[test]
    fn little_is_no_harm() {
        let mut one = Alarm::new(window(0, 1e3, 1e3));
        assert!((0..50).all(|_| one.push(&window(0, 5e3, 5e3)).is_none()));
        assert_eq!(one.push(&window(0, 1e3, 22e3)), None);
        assert_eq!(one.push(&window(0, 1e3, 22e3)), Some(Harm::Completion));
    }

    /// A single lost segment of the only connection is 7 % of its bytes, but may happen to any
    /// controller. 20 segments of 1,500 bytes are enough, at twice the limit of 3 %.
    #[test]
    fn few_losses_say_nothing() {
        let control = window(50_000, 20e3, 100e3);
        let sent = |sent_bytes, retransmitted_bytes| Window {
            sent_bytes,
            retransmitted_bytes,
            connections: 1,
            ..Window::default()
        };
        for between in [None, Some(Window::default())] {
            let mut one = Alarm::new(control);
            for window in [Some(sent(20_000, 1_460)), between, Some(sent(20_000, 1_460))] {
                assert_eq!(window.and_then(|window| one.push(&window)), None);
            }
            assert_eq!(one.push(&sent(500_000, 29_999)), None);
            assert_eq!(one.push(&sent(500_000, 30_000)), None);
            assert_eq!(one.push(&sent(500_000, 30_000)), Some(Harm::Retransmissions));
        }
        // Little traffic without losses is none the worse.
        let mut one = Alarm::new(control);
        let windows = [sent(500_000, 30_000), sent(20_000, 0), sent(500_000, 30_000)];
        assert!(windows.iter().all(|window| one.push(window).is_none()));
    }

    #[test]
    fn silence_says_nothing() {
        let (mut one, worse) = (alarm(), window(0, 90e3, 100e3));
        let few = Window { connections: 9, rtt_us: 9.0 * 90e3, ..Window::default() };
        assert_eq!(one.push(&worse), None);
        assert_eq!(one.push(&few), None);
        assert_eq!(one.push(&Window::default()), None);
        assert_eq!(one.push(&worse), Some(Harm::Delay));
        let mut blind = Alarm::new(Window::default());
        assert!((0..9).all(|_| blind.push(&worse).is_none()), "nothing to compare with");
        let mut merged = window(1, 2.0, 3.0);
        merged.merge(&window(1, 2.0, 3.0));
        assert_eq!((merged.connections, merged.retransmitted_bytes), (200, 2));
    }
}
