//! The ground `quic`: a scenario over QUIC connections and bundles between two hosts with the
//! emulator between them.
//!
//! A connection of an application is a bundle with one stream, over a QUIC connection on each of
//! its paths. The end that wants the first byte opens it. So it costs as much as a TCP connection:
//! one round trip before the first byte, and a fresh congestion controller.
//!
//! Differences from the other grounds: the bytes that records count as sent or lost are those of
//! QUIC packets, with their headers and the bundle's own frames; the size of a packet is the
//! scenario's `mss` and `header` together, but `mss` has no meaning of its own.

mod applications;
mod flow;
mod records;
mod settings;

use applications::Applications;
use knee_emulator::realtime;
use knee_record::{Control, Records, SampleSink};
use knee_scenario::Scenario;
use knee_testbed::{Health, Hosts, Observing, Played, Testbed, TestbedError};
use settings::FlowSettings;
use std::io;

/// Why a run was not possible.
#[derive(Debug, thiserror::Error)]
pub enum QuicError {
    /// The two hosts or the network between them cannot be created.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// QUIC cannot carry a flow.
    #[error("{place}: {problem}: {advice}")]
    Unsupported {
        /// Place in the scenario.
        place: String,
        /// What cannot be carried.
        problem: String,
        /// What to write instead.
        advice: String,
    },
    /// A socket or a connection failed, which must not happen on an emulated path.
    #[error("flow \"{flow}\" broke: {problem}")]
    Flow {
        /// Name of the flow.
        flow: String,
        /// What failed.
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
/// If QUIC cannot do what the scenario asks for, or the host does not permit it; each error
/// contains advice.
pub fn run(scenario: &Scenario, control: &Control) -> Result<(Records, Health), QuicError> {
    run_observed(scenario, control, None).map(|played| (played.records, played.health))
}

/// Runs a scenario as [`run`] does, with an observer in the emulator on request.
///
/// # Errors
///
/// The same errors as [`run`].
pub fn run_observed(
    scenario: &Scenario,
    control: &Control,
    observing: Option<Observing>,
) -> Result<Played, QuicError> {
    run_to(scenario, control, &mut (), observing)
}

/// Runs a scenario as [`run_observed`] does. Every row goes to `samples` during the run, because the
/// records of a long run hold only some of them.
///
/// # Errors
///
/// The same errors as [`run`], and a row that cannot be stored.
pub fn run_to(
    scenario: &Scenario,
    control: &Control,
    samples: &mut dyn SampleSink,
    observing: Option<Observing>,
) -> Result<Played, QuicError> {
    let flows = settings::flows(scenario)?;
    let _awake = realtime::stay_awake();
    let (hosts, devices) = Hosts::create(&settings::paths(scenario), |_| Ok(()))?;
    let testbed = Testbed { scenario, hosts: &hosts };
    let checked = testbed.self_check(devices)?;
    let applications = Applications::new(scenario, &hosts, flows)?;
    testbed.play(checked, control, samples, observing, |clock, stop, rows| {
        applications.run(clock, stop, &rows)
    })
}

/// Checks whether QUIC can carry a scenario, without running anything.
///
/// # Errors
///
/// The same errors as [`run`], except those that show only when the network is created.
pub fn check_scenario(scenario: &Scenario) -> Result<(), QuicError> {
    settings::flows(scenario).map(|_: Vec<FlowSettings>| ())
}
