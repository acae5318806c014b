//! The ground `quic`: a scenario over QUIC connections and bundles between two hosts with
//! the emulator between them.
//!
//! A connection of an application is a bundle with one stream, over a QUIC connection on
//! each of its paths. The end that wants the first byte opens it. So it costs what TCP's
//! costs: one round trip before the first byte, and its congestion control begins anew.
//!
//! What is not as on the other grounds: the bytes that records count as sent or lost are
//! those of QUIC packets, with their headers and with what the bundle says of itself; a
//! packet has the size of the scenario's `mss` and `header` together, but `mss` has no
//! meaning of its own.

mod applications;
mod flow;
mod records;
mod settings;

use applications::Applications;
use knee_emulator::realtime;
use knee_record::{Control, Records};
use knee_scenario::Scenario;
use knee_testbed::{Health, Hosts, Testbed, TestbedError};
use settings::FlowSettings;
use std::io;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum QuicError {
    /// The two hosts, or what lies between them.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A flow cannot be carried so.
    #[error("{place}: {problem}: {advice}")]
    Unsupported {
        /// Where in the scenario.
        place: String,
        /// What is asked for.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// A socket or a connection broke, which no emulated path should do.
    #[error("flow \"{flow}\" broke: {problem}")]
    Flow {
        /// Name of the flow.
        flow: String,
        /// How.
        problem: String,
    },
}

impl QuicError {
    fn socket(flow: &str, source: &io::Error) -> QuicError {
        QuicError::Flow { flow: flow.to_owned(), problem: source.to_string() }
    }
}

/// Runs a scenario to its end, or until `control` says to stop.
///
/// # Errors
///
/// What the scenario asks and QUIC cannot do, or what the host does not permit; each says
/// what to do.
pub fn run(scenario: &Scenario, control: &Control) -> Result<(Records, Health), QuicError> {
    let flows = settings::flows(scenario)?;
    let _awake = realtime::stay_awake();
    let (hosts, devices) = Hosts::create(&settings::paths(scenario), |_| Ok(()))?;
    let testbed = Testbed { scenario, hosts: &hosts };
    let checked = testbed.self_check(devices)?;
    let applications = Applications::new(scenario, &hosts, flows)?;
    testbed.play(checked, control, |clock, stop| applications.run(clock, stop))
}

/// Whether a scenario can be carried by QUIC; runs nothing.
///
/// # Errors
///
/// As [`run`], but for what only making the network tells.
pub fn check_scenario(scenario: &Scenario) -> Result<(), QuicError> {
    settings::flows(scenario).map(|_: Vec<FlowSettings>| ())
}
