//! A run from beginning to end.

use crate::flows::{Applications, Receivers, listen};
use crate::settings::Settings;
use crate::{Control, Health, KernelError, hosts};
use knee_emulator::{Tun, realtime};
use knee_record::{Records, SampleSink};
use knee_scenario::Scenario;
use knee_testbed::{Hosts, Observing, Played, Testbed};

/// Runs a scenario to its end, or until `control` says to stop.
///
/// # Errors
///
/// A setting of the scenario that the kernel does not support, or something that the host does not
/// permit; each error contains advice.
pub fn run(scenario: &Scenario, control: &Control) -> Result<(Records, Health), KernelError> {
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
) -> Result<Played, KernelError> {
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
) -> Result<Played, KernelError> {
    #[cfg_attr(not(feature = "bpf"), expect(unused_mut, reason = "nothing is registered"))]
    let mut settings = settings(scenario)?;
    #[cfg(feature = "bpf")]
    let _registered = register_bpf_controllers(&mut settings)?;
    let _awake = realtime::stay_awake();
    let (hosts, devices) = hosts::create(&settings)?;
    let testbed = Testbed { scenario, hosts: &hosts };
    let checked = testbed.self_check(devices)?;
    let receivers = Receivers::Testbed(&hosts);
    let flows = listen(scenario, &settings, receivers)?;
    testbed.play(checked, control, samples, observing, |clock, stop, rows| {
        Applications::new(scenario, receivers, flows, (clock, stop), rows).run()
    })
}

/// Creates the two hosts on which [`run`] runs a scenario, with the same settings, and the devices
/// between which an emulator runs; to compare what else runs there.
///
/// # Errors
///
/// The same errors as [`run`] before it begins.
pub fn create_hosts(scenario: &Scenario) -> Result<(Hosts, Vec<Tun>), KernelError> {
    hosts::create(&settings(scenario)?)
}

/// Checks whether the kernel supports all settings of a scenario, without running anything.
///
/// # Errors
///
/// The same errors as [`run`], except those that show only when the network is created.
pub fn check_scenario(scenario: &Scenario) -> Result<(), KernelError> {
    settings(scenario).map(drop)
}

pub(crate) fn settings(scenario: &Scenario) -> Result<Settings, KernelError> {
    Settings::new(scenario)
}

/// Registers the BPF controllers, whose flows can then see their states; they are unloaded when the
/// result is dropped or the process ends.
#[cfg(feature = "bpf")]
pub(crate) fn register_bpf_controllers(
    settings: &mut Settings,
) -> Result<Vec<knee_host::bpf::Registration>, KernelError> {
    let each = settings.bpf_controllers.iter();
    let registered = each.map(|one| knee_host::bpf::register(&one.name, &one.selection));
    let registered: Vec<_> =
        registered.collect::<Result<_, _>>().map_err(|error| KernelError::Unsupported {
            place: "cc".to_owned(),
            problem: error.problem(),
            advice: error.advice(),
        })?;
    for (one, registration) in settings.bpf_controllers.iter().zip(&registered) {
        let flows = settings.flows.iter_mut().filter(|flow| flow.controller == one.name);
        flows.for_each(|flow| flow.states = registration.states().cloned());
    }
    Ok(registered)
}
