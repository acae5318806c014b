//! BOLA: chooses the quality from the buffer level alone (Spiteri, Urgaonkar, Sitaraman: "BOLA:
//! Near-Optimal Bitrate Adaptation for Online Videos", INFOCOM 2016, arXiv:1601.06748), with the
//! placeholder buffer and the parameters of dash.js (same authors with Sparacio: "From Theory to
//! Practice: Improving Bitrate Adaptation in the DASH Reference Player", MMSys 2018).
//!
//! Of the qualities m with bitrate S and utility v = ln(S / lowest S), BOLA chooses the one with
//! the largest (V (v + gp) - level) / S. The placeholder counts as media: it represents time in
//! which the player had no reason to ask and, at the start, the level that a buffer filled at the
//! measured throughput would have.
//!
//! dash.js 5.1 adds one to the utility in the two bounds of the level but not in the score, so
//! there the bounds are V seconds off from the score; here all three use the utility of the paper.

/// Level up to which the lowest quality is preferred and the player never pauses, s
/// (`MINIMUM_BUFFER_S`).
const MINIMUM_BUFFER_S: f64 = 10.0;
/// Minimum room of the buffer for each quality, s (`MINIMUM_BUFFER_PER_BITRATE_LEVEL_S`).
const PER_QUALITY_S: f64 = 2.0;
/// Factor by which the placeholder shrinks with each segment (`PLACEHOLDER_BUFFER_DECAY`).
const PLACEHOLDER_DECAY: f64 = 0.99;

pub(crate) struct Bola {
    ladder_bps: Vec<f64>,
    utilities: Vec<f64>,
    /// Weight of utility against buffer, s: the paper's V.
    weight_s: f64,
    /// Utility of continuous playback: the paper's gamma p.
    playing_on: f64,
    placeholder_s: f64,
    phase: Phase,
}

#[derive(PartialEq)]
enum Phase {
    /// Not asked yet.
    Idle,
    /// The buffer has no information yet, so throughput decides.
    Startup {
        segment_seen: bool,
    },
    Steady,
}

/// Input to a decision of BOLA.
pub(crate) struct View {
    /// Media in the buffer, s.
    pub level_s: f64,
    pub segment_s: f64,
    /// Time since the last segment was complete, s.
    pub idle_s: f64,
    /// Quality of the last segment.
    pub current: usize,
    /// Quality that throughput can sustain, or `None` before any measurement.
    pub sustainable: Option<usize>,
}

impl Bola {
    /// Makes the state for at least two bitrates, ascending, and a buffer of `buffer_s`.
    pub fn new(ladder_bps: Vec<f64>, buffer_s: f64) -> Bola {
        let utilities: Vec<f64> =
            ladder_bps.iter().map(|bitrate| (bitrate / ladder_bps[0]).ln()).collect();
        let best = utilities[utilities.len() - 1];
        // With a continuum of bitrates the score is largest where V (v + gp - 1) is the level, with
        // v one higher than here. V and gp are chosen so that this is the lowest bitrate at the
        // minimum level and the highest at the full buffer.
        let full = buffer_s.max(MINIMUM_BUFFER_S + PER_QUALITY_S * utilities.len() as f64);
        let playing_on = best / (full / MINIMUM_BUFFER_S - 1.0);
        let weight_s = MINIMUM_BUFFER_S / playing_on;
        let phase = Phase::Idle;
        Bola { ladder_bps, utilities, weight_s, playing_on, placeholder_s: 0.0, phase }
    }

    /// Returns the quality of the next segment, and how long to wait before asking for it, s.
    pub fn choose(&mut self, view: &View) -> (usize, f64) {
        if self.phase == Phase::Idle {
            self.phase = Phase::Startup { segment_seen: false };
        }
        match self.phase {
            Phase::Steady => self.steady(view),
            _ => (self.startup(view), 0.0),
        }
    }

    /// Notes that a segment of `quality` is complete; the buffer held `level_s` when it was asked
    /// for.
    pub fn on_segment(&mut self, quality: usize, level_s: f64) {
        if self.phase == Phase::Idle {
            return;
        }
        // The placeholder must not hold more than BOLA would have let the buffer grow to with this
        // quality, which another rule may have chosen.
        let room = (self.highest_level(quality) - level_s).max(0.0);
        self.placeholder_s = (self.placeholder_s * PLACEHOLDER_DECAY).min(room);
        if let Phase::Startup { segment_seen } = &mut self.phase {
            *segment_seen = true;
        }
    }

    /// Clears the placeholder after playback stalled.
    pub fn on_empty(&mut self) {
        if self.phase == Phase::Steady {
            self.placeholder_s = 0.0;
        }
    }

    fn startup(&mut self, view: &View) -> usize {
        let Some(quality) = view.sustainable else { return view.current };
        self.placeholder_s = (self.lowest_level(quality) - view.level_s).max(0.0);
        let primed = view.level_s >= view.segment_s;
        if primed && self.phase == (Phase::Startup { segment_seen: true }) {
            self.phase = Phase::Steady;
        }
        quality
    }

    fn steady(&mut self, view: &View) -> (usize, f64) {
        self.placeholder_s += view.idle_s;
        let effective_s = view.level_s + self.placeholder_s;
        let mut quality = self.best_at(effective_s);
        // BOLA-O: never climb to what the network cannot sustain, which would oscillate; but do not
        // fall for that reason either.
        let sustainable = view.sustainable.unwrap_or(0);
        if quality > view.current && quality > sustainable {
            quality = sustainable.max(view.current);
        }
        let mut wait_s = (effective_s - self.highest_level(quality)).max(0.0);
        let given_back = wait_s.min(self.placeholder_s);
        self.placeholder_s -= given_back;
        wait_s -= given_back;
        // At the top quality there is nothing better to wait for.
        let top = quality + 1 == self.utilities.len();
        (quality, if top { 0.0 } else { wait_s })
    }

    /// Returns the quality with the largest score; of equals, the higher one.
    fn best_at(&self, level_s: f64) -> usize {
        let score =
            |quality: usize| (self.highest_level(quality) - level_s) / self.ladder_bps[quality];
        (1..self.utilities.len()).fold(
            0,
            |best, other| {
                if score(other) >= score(best) { other } else { best }
            },
        )
    }

    /// Returns the level above which the score is negative and asking does not pay, s.
    fn highest_level(&self, quality: usize) -> f64 {
        self.weight_s * (self.utilities[quality] + self.playing_on)
    }

    /// Returns the level from which a quality beats all lower ones, s: where its score equals
    /// theirs.
    fn lowest_level(&self, quality: usize) -> f64 {
        let (bitrate, utility) = (self.ladder_bps[quality], self.utilities[quality]);
        let equal = |lower: usize| {
            let (less, lower) = (self.ladder_bps[lower], self.utilities[lower]);
            let crossing = (bitrate * lower - less * utility) / (bitrate - less);
            self.weight_s * (self.playing_on + crossing)
        };
        (0..quality).map(equal).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(level_s: f64, current: usize, sustainable: usize) -> View {
        View { level_s, segment_s: 4.0, idle_s: 0.0, current, sustainable: Some(sustainable) }
    }

    /// Makes a state in steady state without a placeholder, by a startup at the lowest quality,
    /// which needs none.
    fn steady(ladder_bps: &[f64]) -> Bola {
        let mut bola = Bola::new(ladder_bps.to_vec(), 18.0);
        assert_eq!(bola.choose(&view(0.0, 0, 0)).0, 0);
        bola.on_segment(0, 0.0);
        assert_eq!(bola.choose(&view(4.0, 0, 0)).0, 0);
        assert!(bola.phase == Phase::Steady && bola.placeholder_s == 0.0);
        bola
    }

    /// By hand, for 1 and 2 Mbit/s and a buffer of 18 s: gamma p is
    /// ln 2 / (18/10 - 1) = 0.8664 and V = 10 / 0.8664 = 11.54 s. The scores
    /// (10 - Q) / 1 and (18 - Q) / 2 are equal at Q = 2 s; beyond 10 s the
    /// lower quality is not worth asking for, the higher one up to 18 s.
    #[test]
    fn two_qualities_by_hand() {
        let ladder = [1e6, 2e6];
        let choice = |level_s| steady(&ladder).choose(&view(level_s, 0, 1));
        assert_eq!(choice(1.99), (0, 0.0));
        assert_eq!(choice(2.01), (1, 0.0));
        // The network cannot sustain the higher one, so the lower is kept, and asked for once the
        // buffer is down to 10 s.
        let (quality, wait_s) = steady(&ladder).choose(&view(13.0, 0, 0));
        assert_eq!(quality, 0);
        assert!((wait_s - 3.0).abs() < 1e-9, "{wait_s}");
        // The current quality is not given up for that reason.
        assert_eq!(steady(&ladder).choose(&view(13.0, 1, 0)), (1, 0.0));
    }

    /// Levels at which the largest of the paper's scores moves from one quality to the next, for
    /// the measured ladder and 20 s (10 s and 2 s for each quality): gamma p = 2.4204, V = 4.1316
    /// s; found by scanning the formula with another program.
    #[test]
    fn thresholds_of_the_measured_ladder() {
        let ladder = [400e3, 750e3, 1300e3, 2500e3, 4500e3];
        for (above, threshold_s) in [(1, 7.032), (2, 9.499), (3, 11.943), (4, 14.536)] {
            let choice = |level_s| steady(&ladder).choose(&view(level_s, 0, 4)).0;
            assert_eq!(choice(threshold_s - 0.01), above - 1);
            assert_eq!(choice(threshold_s + 0.01), above);
            let lowest_s = steady(&ladder).lowest_level(above);
            assert!((lowest_s - threshold_s).abs() < 0.001, "{lowest_s}");
        }
    }

    /// At the start throughput decides, and the placeholder lets BOLA continue with that quality
    /// although the buffer is nearly empty.
    #[test]
    fn the_placeholder_carries_the_start_over() {
        let mut bola = Bola::new(vec![400e3, 750e3, 1300e3, 2500e3, 4500e3], 18.0);
        assert_eq!(bola.choose(&view(0.0, 1, 3)).0, 3);
        bola.on_segment(3, 0.0);
        assert_eq!(bola.choose(&view(4.0, 3, 3)).0, 3);
        // 11.943 s are needed, and 4 are there.
        assert!((bola.placeholder_s - 7.943).abs() < 0.001, "{}", bola.placeholder_s);
        bola.on_segment(3, 4.0);
        assert!((bola.placeholder_s - 7.943 * 0.99).abs() < 0.001);
        assert_eq!(bola.choose(&view(6.0, 3, 3)).0, 3);
        // Without it, the same level justifies only the lowest quality.
        bola.on_empty();
        assert_eq!(bola.choose(&view(6.0, 3, 3)).0, 0);
    }

    /// Time in which the player had no reason to ask does not lower quality.
    #[test]
    fn waiting_counts_as_media() {
        let mut bola = steady(&[1e6, 2e6]);
        let waited = View { idle_s: 1.5, ..view(1.0, 1, 1) };
        assert_eq!(bola.choose(&waited).0, 1);
        assert_eq!(steady(&[1e6, 2e6]).choose(&view(1.0, 1, 1)).0, 0);
    }
}
