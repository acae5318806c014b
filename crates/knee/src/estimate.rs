//! How much runs will write, before they begin.

use crate::progress::rate_bps;
use crate::screen;
use crate::workers::Job;
use knee_scenario::{Ground, Scenario};

/// No word is said of less.
const WARN_BYTES: f64 = 10e9;
/// A row of a time series on disk, compressed; measured between 12 and 25.
const ROW_BYTES: f64 = 25.0;
/// All rows of a packet log that come of one data packet over one link, with
/// its acknowledgement.
const LOGGED_PACKET_BYTES: f64 = 300.0;
/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// Says how much `jobs` will write, if it is a lot.
pub fn warn(jobs: &[Job<'_>]) {
    let kept = jobs.iter().filter(|job| job.directory.is_some());
    let samples: f64 = kept.clone().map(|job| samples(job.scenario)).sum();
    let logged = kept.filter(|job| job.packet_log && job.ground == Ground::Sim);
    let logs: f64 = logged.map(|job| packet_log(job.scenario)).sum();
    if samples + logs > WARN_BYTES {
        let advice = match samples > logs {
            true => "a longer sample_interval makes it less",
            false => "without --packet-log it is less",
        };
        let gigabytes = (samples + logs) / 1e9;
        screen::say(&format!("This will write about {gigabytes:.0} GB; {advice}."));
    }
}

/// Bytes of the time series of flows, their paths and links.
fn samples(scenario: &Scenario) -> f64 {
    let several = scenario.flows.iter().filter(|flow| flow.multipath.is_some());
    let paths: usize = several.map(|flow| flow.paths.len()).sum();
    let rows = scenario.flows.len() + paths + scenario.links.len();
    let instants =
        scenario.duration.as_secs_f64() / scenario.sample_interval.as_secs_f64().max(1e-9);
    rows as f64 * instants * ROW_BYTES
}

/// Bytes of a packet log when every link with a rate is full.
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

    /// Four hours have 14,400 seconds: so many thousand rows of the flow and
    /// of the link at a sample a millisecond.
    #[test]
    fn rows_are_counted() {
        let hours = scenario("duration = \"240 min\"\nsample_interval = \"1 ms\"");
        assert!((samples(&hours) / (2.0 * 14.4e6 * ROW_BYTES) - 1.0).abs() < 1e-9);
        // 100 Mbit/s over a minute are half a million packets.
        let minute = scenario("duration = \"60 s\"");
        assert!((packet_log(&minute) / (5e5 * LOGGED_PACKET_BYTES) - 1.0).abs() < 1e-9);
    }
}
