//! Requests with pauses in between.

use super::{Kind, Room, SIZE_MAX, SIZE_MIN};
use crate::check::{Inputs, in_range};
use crate::read::{Optional, Required, table};
use crate::source::Reading;
use knee_units::{Bytes, Time};
use knee_workload::{Bursts, Workload};

/// Largest number of bursts of a group of flows: each is a row.
const BURSTS_MAX: u64 = 1_000_000;

table! {
    /// Requests over one connection, each with an answer of a given size and a
    /// pause before the next.
    "bursts" BurstsFile {
        /// Bytes of each answer.
        size: Required<Bytes>,
        /// From the arrival of an answer's last byte to the next request.
        pause: Required<Time>,
        /// Number of requests. Default: unlimited.
        count: Optional<u64>,
    }
}

impl Kind for BurstsFile {
    fn check(
        &mut self,
        room: &Room,
        _inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload> {
        in_range(&self.size.0, "an answer", SIZE_MIN, SIZE_MAX, reading);
        in_range(&self.pause.0, "the pause", Time::ZERO, room.life, reading);
        in_range(&self.count, "the number of bursts", 1, BURSTS_MAX, reading);
        let (size, pause) = (*self.size.get()?, *self.pause.get()?);
        let count = self.count.get().copied();
        // Without a pause, they follow one another as fast as the path allows.
        let possible = room.life.as_nanos() / pause.as_nanos().max(1);
        let expected = count.unwrap_or(u64::MAX).min(possible).saturating_mul(room.flows);
        if expected > BURSTS_MAX {
            let message = match count {
                Some(_) => format!("{expected} bursts are too many: the limit is {BURSTS_MAX}"),
                None => "the number of bursts is unlimited: there is no count, and almost no pause"
                    .to_owned(),
            };
            reading.problem(room.span, message, "write count = 100, or a longer pause");
        }
        Some(Workload::Bursts(Bursts { size_bytes: size.get(), pause, count }))
    }
}
