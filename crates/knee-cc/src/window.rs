//! A congestion window in segments, with Linux's arithmetic: growth below one
//! segment is saved as credit (`tcp_slow_start`, `tcp_cong_avoid_ai`).

/// "Infinity" of the slow-start threshold, in segments (Linux's
/// `TCP_INFINITE_SSTHRESH`).
pub(crate) const UNLIMITED: u32 = 0x7fff_ffff;

/// Larger than the rounding error of sums of fractions of a segment.
const ROUNDING: f64 = 1e-9;

/// Payload bytes of a segment before and after the MTU changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) old: u32,
    pub(crate) new: u32,
}

impl Sizes {
    /// Converts a number of segments.
    pub(crate) fn convert(self, segments: u32) -> u32 {
        let converted = u64::from(segments) * u64::from(self.old) / u64::from(self.new);
        converted.min(u64::from(UNLIMITED)) as u32
    }
}

/// A congestion window in segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The window in segments.
    pub(crate) segments: u32,
    /// Segments acknowledged that have not yet grown the window.
    credit: u32,
    /// Fraction of a segment by which [`advance`](Self::advance) has not yet
    /// changed the window.
    fraction: f64,
    /// Slow-start threshold.
    pub(crate) threshold: u32,
}

impl Window {
    pub(crate) fn new(segments: u32) -> Window {
        Window { segments: segments.max(1), credit: 0, fraction: 0.0, threshold: UNLIMITED }
    }

    /// Whether the window is below the threshold (RFC 5681, section 3.1).
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// Grows by what was acknowledged, up to the threshold; returns the rest.
    #[inline]
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.segments.saturating_add(acked).min(self.threshold);
        let rest = acked - (grown - self.segments);
        self.segments = grown;
        rest
    }

    /// Grows by one segment for each `per_segment` acknowledged.
    #[inline]
    pub(crate) fn additive(&mut self, per_segment: u32, acked: u32) {
        let per_segment = per_segment.max(1);
        // Credit saved at a larger interval is applied gently.
        if self.credit >= per_segment {
            self.credit = 0;
            self.segments += 1;
        }
        self.credit += acked;
        if self.credit >= per_segment {
            let steps = self.credit / per_segment;
            self.credit -= steps * per_segment;
            self.segments = self.segments.saturating_add(steps).min(UNLIMITED);
        }
    }

    /// Grows or shrinks by `segments`; fractions are kept until they add up to
    /// a whole segment.
    #[inline]
    pub(crate) fn advance(&mut self, segments: f64) {
        self.fraction += segments;
        // A sum of n times 1 / n may stay just below one.
        let whole = (self.fraction + ROUNDING.copysign(self.fraction)).trunc();
        if whole == 0.0 {
            return;
        }
        self.fraction -= whole;
        let moved = f64::from(self.segments) + whole;
        self.segments = moved.clamp(1.0, f64::from(UNLIMITED)) as u32;
        // Below the threshold it would be in slow start again.
        self.threshold = self.threshold.min(self.segments);
    }

    /// Converts window and threshold to segments of another size; an unlimited threshold
    /// stays so.
    pub(crate) fn convert(&mut self, sizes: Sizes) {
        self.set(sizes.convert(self.segments));
        if self.threshold != UNLIMITED {
            self.threshold = sizes.convert(self.threshold).max(1);
        }
    }

    /// Sets the window, to at least one segment, and discards saved fractions.
    pub(crate) fn set(&mut self, segments: u32) {
        self.segments = segments.max(1);
        self.credit = 0;
        self.fraction = 0.0;
    }
}
