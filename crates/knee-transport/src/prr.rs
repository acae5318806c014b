//! Proportional rate reduction (RFC 6937 bis): spreads the reduction of the
//! window over one round of recovery.

/// State of one reduction, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reduction {
    /// Window before the reduction (RecoverFS in the RFC is the data in
    /// flight; Linux takes the window).
    prior_window: u64,
    /// Bytes delivered since the reduction began.
    delivered: u64,
    /// Bytes sent since the reduction began.
    out: u64,
    /// The current window.
    pub window: u64,
}

impl Reduction {
    /// Begins a reduction.
    pub fn start(prior_window: u64) -> Reduction {
        Reduction { prior_window: prior_window.max(1), delivered: 0, out: 0, window: prior_window }
    }

    /// Notes that `bytes` were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Sets the window after an ACK that delivered `delivered` bytes.
    /// `progress` means that it advanced the cumulative point and marked
    /// nothing lost, so that one more segment may be sent than was delivered
    /// (the RFC's slow-start reduction bound).
    pub fn on_ack(
        &mut self,
        delivered: u64,
        in_flight: u64,
        target: u64,
        mss: u64,
        progress: bool,
    ) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let mut send = if in_flight > target {
            (target * self.delivered).div_ceil(self.prior_window).saturating_sub(self.out)
        } else {
            let bound = self.delivered.saturating_sub(self.out).max(delivered);
            (bound + if progress { mss } else { 0 }).min(target - in_flight)
        };
        // The first retransmission is sent at once.
        if self.out == 0 {
            send = send.max(mss);
        }
        // Below a segment nothing would leave, and no ACK would change that (RFC 5681, 3.1).
        self.window = (in_flight + send).max(mss);
    }
}
