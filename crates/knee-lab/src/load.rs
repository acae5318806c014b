//! Expected cost of runs, used to start the costliest first and to report progress.

use crate::ground::{Ground, Pace};
use crate::job::Job;
use knee_link::RateModel;
use knee_scenario::Scenario;

/// Size of a compressed time-series row on disk, bytes; measured between 12 and 25.
const ROW_BYTES: f64 = 25.0;
/// Packet log rows of one data packet over one link with its acknowledgement, bytes.
const LOGGED_PACKET_BYTES: f64 = 300.0;
/// Size of a full packet, bits.
const PACKET_BITS: f64 = 12_000.0;

/// Expected cost of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Whether its time is virtual or real.
    pub pace: Pace,
    /// Length of the scenario, nanoseconds.
    pub duration_ns: u64,
    /// Real time of its setup, seconds.
    pub setup_s: f64,
    /// Cost of the whole run relative to others of its pace.
    pub weight: f64,
}

impl Load {
    /// Estimates the load of a scenario on a ground.
    pub fn of(scenario: &Scenario, ground: &dyn Ground) -> Load {
        let duration_ns = scenario.duration.as_nanos();
        let weight = match ground.pace() {
            Pace::Real => duration_ns as f64,
            Pace::Virtual => weight(scenario),
        };
        Load { pace: ground.pace(), duration_ns, setup_s: ground.setup_s(), weight }
    }
}

/// Cost grows with the packets of the fastest link; an unlimited link counts as 100 Mbit/s.
fn weight(scenario: &Scenario) -> f64 {
    let rates = scenario.links.iter().filter_map(|link| rate_bps(&link.config.rate));
    let fastest = rates.max().unwrap_or(100_000_000);
    let seconds = scenario.duration.as_nanos() as f64 / 1e9;
    seconds * (fastest as f64 + 1e5 * scenario.flows.len() as f64)
}

/// Maximum rate of a link; `None` if unlimited.
fn rate_bps(rate: &RateModel) -> Option<u64> {
    match rate {
        RateModel::Unlimited => None,
        RateModel::Constant(rate) => Some(rate.as_bits_per_second()),
        RateModel::Steps(steps) => steps.0.iter().map(|(_, rate)| rate.as_bits_per_second()).max(),
        RateModel::Trace(trace) => {
            let seconds = f64::from(*trace.opportunities_ms.last()?) / 1e3;
            Some((trace.opportunities_ms.len() as f64 * 12_000.0 / seconds) as u64)
        }
    }
}

/// Estimated output of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Written {
    /// Time series, bytes.
    pub samples_bytes: f64,
    /// Packet logs, bytes.
    pub logs_bytes: f64,
}

impl Written {
    /// Estimates the output of all `jobs` that are stored.
    pub fn by(jobs: &[Job<'_>]) -> Written {
        let kept = jobs.iter().filter(|job| job.directory.is_some());
        let logged = kept.clone().filter(|job| job.packet_log && job.ground.writes_packet_log());
        Written {
            samples_bytes: kept.map(|job| samples(job.scenario)).sum(),
            logs_bytes: logged.map(|job| packet_log(job.scenario)).sum(),
        }
    }

    /// Total, bytes.
    pub fn bytes(&self) -> f64 {
        self.samples_bytes + self.logs_bytes
    }
}

/// Size of the time series of flows, their paths and links, bytes.
fn samples(scenario: &Scenario) -> f64 {
    let several = scenario.flows.iter().filter(|flow| flow.multipath.is_some());
    let paths: usize = several.map(|flow| flow.paths.len()).sum();
    let rows = scenario.flows.len() + paths + scenario.links.len();
    let instants =
        scenario.duration.as_secs_f64() / scenario.sample_interval.as_secs_f64().max(1e-9);
    rows as f64 * instants * ROW_BYTES
}

/// Size of a packet log if every link with a rate is full, bytes.
fn packet_log(scenario: &Scenario) -> f64 {
    let rates = scenario.links.iter().filter_map(|link| rate_bps(&link.config.rate));
    let packets = rates.sum::<u64>() as f64 * scenario.duration.as_secs_f64() / PACKET_BITS;
    packets * LOGGED_PACKET_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::{Embedded, Source, parse};

    fn scenario(changes: &str) -> Scenario {
        let text = format!(
            "{changes}\n[link.a]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n\
             [path.a]\nforward = [\"a\"]\nreverse_delay = \"5 ms\"\n\
             [[flow]]\ncc = \"cubic\"\npath = \"a\"\n"
        );
        parse(&text, &Source { name: "a.toml", loader: &Embedded(&[]) }, &[]).unwrap()
    }

    /// Four hours are 14,400 s: at one sample per ms, 14.4 million rows of the flow and as many of
    /// the link.
    #[test]
    fn rows_are_counted() {
        let hours = scenario("duration = \"240 min\"\nsample_interval = \"1 ms\"");
        assert!((samples(&hours) / (2.0 * 14.4e6 * ROW_BYTES) - 1.0).abs() < 1e-9);
        // 100 Mbit/s for a minute are half a million packets.
        let minute = scenario("duration = \"60 s\"");
        assert!((packet_log(&minute) / (5e5 * LOGGED_PACKET_BYTES) - 1.0).abs() < 1e-9);
    }
}
