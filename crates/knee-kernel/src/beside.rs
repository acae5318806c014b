//! Flows of Knee's own beside programs, on hosts that both share.

use crate::flows::{Applications, Receivers, RunningFlow, listen};
use crate::settings::Settings;
use crate::{KernelError, hosts};
use knee_emulator::{Clock, Tun, realtime};
use knee_host::HostError;
use knee_record::{Records, RowSender};
use knee_scenario::Scenario;
use knee_testbed::{Hosts, PathSettings};
use std::sync::atomic::AtomicBool;

/// The flows of a scenario that are no programs.
#[derive(Debug)]
pub struct OwnFlows {
    settings: Settings,
}

impl OwnFlows {
    /// Checks whether the kernel supports them.
    ///
    /// # Errors
    ///
    /// A setting that it does not support, with advice.
    pub fn new(scenario: &Scenario) -> Result<OwnFlows, KernelError> {
        Ok(OwnFlows { settings: Settings::of_own_flows(scenario)? })
    }

    /// Creates both hosts, with the settings that these flows need after those of `prepare`.
    ///
    /// # Errors
    ///
    /// The host does not permit namespaces or devices, and errors of `prepare`.
    pub fn create_hosts(
        &self,
        paths: &[PathSettings],
        prepare: impl Fn() -> Result<(), HostError> + Sync,
    ) -> Result<(Hosts, Vec<Tun>), KernelError> {
        hosts::create_with(&self.settings, paths, prepare)
    }

    /// Makes their listeners, and loads their controllers if they are in BPF.
    ///
    /// # Errors
    ///
    /// A port or a controller that the host refuses.
    pub fn listen<'a>(
        &'a mut self,
        scenario: &'a Scenario,
        hosts: &'a Hosts,
    ) -> Result<Listening<'a>, KernelError> {
        #[cfg(feature = "bpf")]
        let registered = crate::run::register_bpf_controllers(&mut self.settings)?;
        let flows = listen(scenario, &self.settings, Receivers::Testbed(hosts))?;
        Ok(Listening {
            scenario,
            hosts,
            flows,
            #[cfg(feature = "bpf")]
            registered,
        })
    }
}

/// Flows that are ready to run.
pub struct Listening<'a> {
    scenario: &'a Scenario,
    hosts: &'a Hosts,
    flows: Vec<RunningFlow<'a>>,
    /// Unloads the controllers when it is dropped.
    #[cfg(feature = "bpf")]
    registered: Vec<knee_host::bpf::Registration>,
}

impl Listening<'_> {
    /// Runs them until the end of the scenario, or until `stop`. Returns the records of flows, paths
    /// and objects, with the flows' places in the scenario.
    ///
    /// # Errors
    ///
    /// A connection that broke.
    pub fn run(
        self,
        clock: Clock,
        stop: &AtomicBool,
        rows: RowSender,
    ) -> Result<Records, KernelError> {
        let Listening { scenario, hosts, flows, .. } = self;
        if flows.is_empty() {
            return Ok(Records::default());
        }
        #[cfg(feature = "bpf")]
        let _registered = self.registered;
        let _awake = realtime::stay_awake();
        Applications::new(scenario, Receivers::Testbed(hosts), flows, (clock, stop), rows).run()
    }
}
