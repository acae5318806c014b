//! What becomes of the data that is in flight when a recovery begins.

use crate::{Connection, Sample};

/// The data in flight when a recovery began. TCP's recovery lasts until all retransmissions have
/// arrived too; their acknowledgements do not say what the path held, so they do not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Bytes neither acknowledged nor found lost.
    left: u64,
    /// [`Connection::lost`] at the last acknowledgement.
    lost: u64,
}

impl Flight {
    /// Begins with the data in flight, and what was found lost since `lost` bytes had been.
    pub(super) fn begin(connection: &Connection, lost: u64) -> Flight {
        let found = connection.lost.saturating_sub(lost);
        Flight { left: connection.in_flight.saturating_add(found), lost }
    }

    /// Returns how many of its bytes an acknowledgement covers, and how many were found lost since
    /// the last one.
    pub(super) fn take(&mut self, sample: &Sample, connection: &Connection) -> (u64, u64) {
        let lost = connection.lost.saturating_sub(self.lost).min(self.left);
        self.lost = connection.lost;
        self.left -= lost;
        let acked = sample.newly_acked.min(self.left);
        self.left -= acked;
        (acked, lost)
    }
}
