//! Transfers that arrive at random.

use super::sizes::{Read, SizesFile, sizes};
use super::{Kind, Room};
use crate::check::{Inputs, in_range};
use crate::read::{At, Optional, Required, table};
use crate::source::Reading;
use crate::tree::Span;
use knee_units::Time;
use knee_workload::{Arrivals, Mix, Recorded, Workload};
use std::sync::Arc;

/// Largest expected number of transfers of a group of flows: more than that takes too long to
/// simulate.
const ARRIVALS_MAX: f64 = 10_000_000.0;

table! {
    /// Transfers that arrive as a Poisson process, each over a connection of
    /// its own.
    "a mix" MixFile {
        /// Mean time between two arrivals over this path, not on a whole server. They come
        /// at random; knee check says how much load they make.
        arrival_interval: Optional<Time>,
        /// "log": the transfers arrive at the times of the log given in sizes, each with
        /// its own size, instead of at random. The first one arrives at the start. Mixes
        /// of one process over the same path share the log: each of its transfers is
        /// that of one of them, at random.
        arrivals: Optional<String>,
        /// With arrivals = "log": begin this long after the log's first transfer.
        /// Default: "0 s".
        from: Optional<Time>,
        /// With arrivals = "log": leave out what begins this long after the log's first
        /// transfer, or later. Default: its end.
        until: Optional<Time>,
        /// With arrivals = "log": how many times as fast as in the log the transfers
        /// arrive. Default: 1.0.
        speed: Optional<f64>,
        /// Maximum number of arrivals. Default: unlimited.
        count: Optional<u64>,
        /// Name of the arrival process. Mixes that name the same one see the
        /// same arrivals, to within a millisecond, and the same sizes, as
        /// required of test and control, or share those of a log; their other
        /// settings must be equal too. Default: a process of its own.
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
        let part = self.part(reading)?;
        if let (Some(span), None) = (self.part_span(), self.arrivals.at()) {
            let help = "add arrivals = \"log\", or remove from, until and speed";
            reading.problem(span, "from, until and speed are about the arrivals of a log", help);
        }
        if room.is_after {
            let given = [self.arrival_interval.span(), self.arrivals.span(), self.count.span()];
            let given = given.into_iter().chain([self.process.span(), self.part_span()]);
            if let Some(span) = given.flatten().next() {
                let message = "a mix with after has the arrivals of the flow for which it waits";
                let help =
                    "remove arrival_interval, arrivals, from, until, speed, count and process";
                reading.problem(span, message, help);
            }
            // Those of the other flow, once it is known.
            let arrivals = Arrivals::Recorded(Arc::default());
            let sizes = read?.sizes();
            return Some(Workload::Mix(Mix { arrivals, count: None, sizes, process: None }));
        }
        let arrivals = match (self.arrivals.at(), self.arrival_interval.is_given()) {
            (Some(at), false) if at.value == "log" => {
                let arrivals = follow(at, read.as_ref()?, &part, room, reading)?;
                if let Some(Read::Log(_, name)) = &read {
                    inputs.note(name, &within(&arrivals, count, room));
                }
                Arrivals::Recorded(arrivals.into())
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
        let followed = match (&arrivals, &read) {
            (Arrivals::Recorded(_), Some(Read::Log(_, name))) => Some(name.clone()),
            _ => None,
        };
        let mix =
            Mix { arrivals, count, sizes: read?.sizes(), process: self.process.get().cloned() };
        if let Some(name) = self.process.at() {
            inputs.share(name, &mix, reading);
            if let Some(log) = followed {
                inputs.follows(&name.value, &log);
            }
        }
        Some(Workload::Mix(mix))
    }
}

impl MixFile {
    /// Place of the first of the keys that select a part of a log.
    fn part_span(&self) -> Option<Span> {
        self.from.span().or(self.until.span()).or(self.speed.span())
    }

    /// Checks which part of the log is followed, and how fast.
    fn part(&self, reading: &mut Reading<'_>) -> Option<Part> {
        let from = self.from.get().copied().unwrap_or(Time::ZERO);
        let until = self.until.get().copied().unwrap_or(Time::MAX);
        if until <= from {
            let message = format!("the part of the log from {from} until {until} is empty");
            let span = self.until.span().unwrap_or_default();
            reading.problem(span, message, "write an until after from");
            return None;
        }
        let in_time = in_range(&self.speed, "the speed", SPEED_MIN, SPEED_MAX, reading);
        let speed = self.speed.get().copied().unwrap_or(1.0);
        (in_time || !self.speed.is_given()).then_some(Part { from, until, speed })
    }

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

/// Slowest and fastest replay of a log.
const SPEED_MIN: f64 = 1e-6;
const SPEED_MAX: f64 = 1e6;

/// A part of a log, and how many times as fast it is followed.
struct Part {
    from: Time,
    until: Time,
    speed: f64,
}

impl Part {
    /// Returns when a transfer arrives, by its time since the log's first one; `None` if it is not in
    /// the part.
    fn place(&self, at: Time) -> Option<Time> {
        if !(self.from..self.until).contains(&at) {
            return None;
        }
        let since = at.saturating_sub(self.from);
        // Exact without a speed, which `f64` would round.
        Some(match self.speed == 1.0 {
            true => since,
            false => Time::from_secs_f64(since.as_secs_f64() / self.speed),
        })
    }
}

/// Number of arrivals before the end of the run.
fn begin(arrivals: &Recorded, room: &Room) -> usize {
    arrivals.iter().take_while(|(time, _)| *time < room.life).count()
}

/// Says how many transfers begin within the run, for display.
fn within(arrivals: &Recorded, count: Option<u64>, room: &Room) -> String {
    let all = arrivals.len();
    let begin = begin(arrivals, room);
    let begin = count.map_or(begin, |count| usize::try_from(count).map_or(begin, |c| begin.min(c)));
    match begin == all {
        true => format!("all {all} begin within the run"),
        false => format!("{begin} of {all} begin within the run"),
    }
}

/// Returns the arrivals of a log.
fn follow(
    at: &At<String>,
    read: &Read,
    part: &Part,
    room: &Room,
    reading: &mut Reading<'_>,
) -> Option<Recorded> {
    let Read::Log(log, _) = read else {
        let help = "write sizes = { log = \"access.csv\" }, or an arrival_interval";
        reading.problem(at.span, "there is no log for the arrivals to follow", help);
        return None;
    };
    let arrivals = match log.arrivals(|at| part.place(at)) {
        Ok(arrivals) if arrivals.is_empty() => {
            let help = "write an earlier from or a later until";
            reading.problem(at.span, "no transfer of the log begins in this part of it", help);
            return None;
        }
        Ok(arrivals) => arrivals,
        Err(reason) => {
            let message = format!("arrivals cannot follow the log: {reason}");
            reading.problem(at.span, message, "give every line a time");
            return None;
        }
    };
    let help = "write a shorter duration, or from and until for a part of the log";
    bearable(begin(&arrivals, room) as f64 * room.flows as f64, help, room, reading);
    Some(arrivals)
}
