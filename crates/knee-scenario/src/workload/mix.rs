//! Transfers that arrive at random.

use super::sizes::{SizesFile, sizes};
use super::{Kind, Room};
use crate::check::{Inputs, in_range};
use crate::read::{Optional, Required, table};
use crate::source::Reading;
use knee_units::Time;
use knee_workload::{Mix, Workload};

/// Transfers that a group of flows may be expected to start: what a run of
/// some minutes can still simulate.
const ARRIVALS_MAX: f64 = 10_000_000.0;

table! {
    /// Transfers that arrive as a Poisson process, each over a connection of
    /// its own.
    "a mix" MixFile {
        /// Mean time between two arrivals.
        arrival_interval: Required<Time>,
        /// How many arrive at most. Default: as many as the time brings.
        count: Optional<u64>,
        /// Name of the arrival process. Mixes that name the same one see the
        /// same arrivals, to within a millisecond, and the same sizes, as
        /// test and control should; all else of them must be equal too.
        /// Default: a process of its own.
        process: Optional<String>,
        /// How large they are: "1 MB", { median = "30 kB", sigma = 2.0,
        /// max = "1 GB" }, { min = "4 kB", shape = 1.2, max = "1 GB" } or
        /// { log = "access.csv" }.
        sizes: Required<SizesFile>,
    }
}

impl Kind for MixFile {
    fn check(
        &mut self,
        room: &Room,
        inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload> {
        in_range(&self.count, "the number of arrivals", 1, i64::MAX as u64, reading);
        let shortest = Time::from_nanos(1);
        // A longer one would bring less than one arrival.
        let entry = &self.arrival_interval.0;
        let possible = in_range(entry, "the arrival interval", shortest, room.life, reading);
        let count = self.count.get().copied();
        let sizes = match &mut self.sizes.0 {
            Optional::Given(at) => sizes(at, inputs, reading),
            _ => None,
        };
        let arrivals_per_second = 1.0 / self.arrival_interval.get()?.as_secs_f64();
        let each = arrivals_per_second * room.life.as_secs_f64();
        let expected = count.map_or(each, |count| each.min(count as f64)) * room.flows as f64;
        if possible && expected > ARRIVALS_MAX {
            let message =
                format!("about {expected:.0} transfers would arrive, at most 10000000 may");
            let help = "write a longer arrival_interval, or a smaller count";
            reading.problem(room.span, message, help);
        }
        let mix =
            Mix { arrivals_per_second, count, sizes: sizes?, process: self.process.get().cloned() };
        if let Some(name) = self.process.at() {
            inputs.share(name, &mix, reading);
        }
        Some(Workload::Mix(mix))
    }
}
