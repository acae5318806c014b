//! Transfers that arrive at random.

use super::sizes::{SizesFile, sizes};
use super::{Kind, Room};
use crate::check::{Inputs, in_range};
use crate::read::{At, Optional, Required, table};
use crate::source::Reading;
use knee_units::Time;
use knee_workload::{Arrivals, Mix, NotChosen, Workload};

/// Largest expected number of transfers of a group of flows: more than that takes too long to
/// simulate.
const ARRIVALS_MAX: f64 = 10_000_000.0;

table! {
    /// Transfers that arrive as a Poisson process, each over a connection of
    /// its own.
    "a mix" MixFile {
        /// Mean time between two arrivals, which come at random.
        arrival_interval: Optional<Time>,
        /// "log": the transfers arrive at the times of the log given in sizes, each with
        /// its own size, instead of at random. The first one arrives at the start.
        arrivals: Optional<String>,
        /// Maximum number of arrivals. Default: unlimited.
        count: Optional<u64>,
        /// Name of the arrival process. Mixes that name the same one see the
        /// same arrivals, to within a millisecond, and the same sizes, as
        /// required of test and control; their other settings must be equal
        /// too. Default: a process of its own.
        process: Optional<String>,
        /// Sizes of the transfers: "1 MB", { median = "30 kB", sigma = 2.0, max
        /// = "1 GB" }, { min = "4 kB", shape = 1.2, max = "1 GB" } or { log =
        /// "access.csv" }.
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
        let count = self.count.get().copied();
        let read = match &mut self.sizes.0 {
            Optional::Given(at) => sizes(at, inputs, reading),
            _ => None,
        };
        let (sizes, recorded) = match read {
            Some(read) => (Some(read.sizes), read.arrivals),
            None => (None, None),
        };
        let arrivals = match (self.arrivals.at(), self.arrival_interval.is_given()) {
            (Some(at), false) if at.value == "log" => {
                follow(at, recorded, sizes.is_some(), room, reading)?
            }
            (Some(at), _) => {
                let help = "write arrivals = \"log\", or an arrival_interval, and not both";
                reading.problem(at.span, "arrivals either follow the log or are random", help);
                return None;
            }
            (None, false) => {
                let help = "write arrival_interval = \"100 ms\", or arrivals = \"log\"";
                reading.problem(room.span, "the mix has no arrival times", help);
                return None;
            }
            (None, true) => self.at_random(room, count, reading)?,
        };
        let mix = Mix { arrivals, count, sizes: sizes?, process: self.process.get().cloned() };
        if let Some(name) = self.process.at() {
            inputs.share(name, &mix, reading);
        }
        Some(Workload::Mix(mix))
    }
}

impl MixFile {
    /// Returns a Poisson process; reports more arrivals than a run can handle.
    fn at_random(
        &self,
        room: &Room,
        count: Option<u64>,
        reading: &mut Reading<'_>,
    ) -> Option<Arrivals> {
        let shortest = Time::from_nanos(1);
        // A longer interval would mean less than one arrival.
        let entry = &self.arrival_interval;
        let possible = in_range(entry, "the arrival interval", shortest, room.life, reading);
        let per_second = 1.0 / entry.get()?.as_secs_f64();
        let each = per_second * room.life.as_secs_f64();
        let expected = count.map_or(each, |count| each.min(count as f64)) * room.flows as f64;
        if possible {
            bearable(
                expected,
                "write a longer arrival_interval, or a smaller count",
                room,
                reading,
            );
        }
        Some(Arrivals::Poisson { per_second })
    }
}

fn bearable(expected: f64, help: &str, room: &Room, reading: &mut Reading<'_>) {
    if expected > ARRIVALS_MAX {
        let message = format!("about {expected:.0} transfers are too many: the limit is 10000000");
        reading.problem(room.span, message, help);
    }
}

/// Returns the arrivals of a log, up to the end of the run.
fn follow(
    at: &At<String>,
    recorded: Option<Result<Vec<(Time, u64)>, NotChosen>>,
    read: bool,
    room: &Room,
    reading: &mut Reading<'_>,
) -> Option<Arrivals> {
    let arrivals = match recorded {
        Some(Ok(arrivals)) => arrivals,
        Some(Err(reason)) => {
            let message = format!("arrivals cannot follow the log: {reason}");
            reading.problem(at.span, message, "give every line a time");
            return None;
        }
        None => {
            if read {
                let help = "write sizes = { log = \"access.csv\" }, or an arrival_interval";
                reading.problem(at.span, "there is no log for the arrivals to follow", help);
            }
            return None;
        }
    };
    let within = arrivals.iter().take_while(|(time, _)| *time < room.life).count();
    let help = "write a shorter duration, or use a part of the log";
    bearable(within as f64 * room.flows as f64, help, room, reading);
    Some(Arrivals::Recorded(arrivals.into()))
}
