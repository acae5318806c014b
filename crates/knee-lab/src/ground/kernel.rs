//! The ground "kernel": `knee-kernel`.

use super::{Ended, Ground, GroundError, KERNEL, Output, Pace, Refusal, testbed};
use knee_kernel::KernelError;
use knee_record::Control;
use knee_scenario::Scenario;

/// Linux TCP over an emulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Ground for Kernel {
    fn name(&self) -> &str {
        KERNEL
    }

    fn summary(&self) -> &str {
        "Linux's TCP over an emulator"
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    fn setup_s(&self) -> f64 {
        testbed::SETUP_S
    }

    /// Enters a user namespace where network namespaces require one; the system permits that only
    /// for a single-threaded process.
    fn prepare_process(&self) {
        let _ = knee_testbed::enter_user_namespace();
    }

    fn check_host(&self) -> Result<(), GroundError> {
        Ok(knee_testbed::check_host()?)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        Ok(knee_kernel::check_scenario(scenario)?)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let (records, health) = knee_kernel::run(scenario, control)?;
        testbed::ended(scenario, records, &health, output)
    }
}

/// Advice that depends on whether this build has BPF.
const BPF: &str = if cfg!(feature = "bpf") {
    "load its module, "
} else {
    "load its module, build Knee with --features bpf, "
};

/// Controllers of Knee that neither a Linux release nor Knee's BPF programs provide.
const LINUX_LACKS: [&str; 8] =
    ["balia", "copa", "gcc", "ledbat++", "lia", "olia", "prague", "vivace"];

/// Advice on how to load a controller that the kernel lacks.
fn way_to_load(name: &str) -> &'static str {
    match name {
        _ if LINUX_LACKS.contains(&name) => "",
        _ if name.starts_with("bbr") && !name.starts_with("bbr3") || name == "fixed" => BPF,
        _ => "load its module, ",
    }
}

impl From<KernelError> for GroundError {
    fn from(error: KernelError) -> GroundError {
        let whole = error.to_string();
        match error {
            KernelError::Testbed(error) => error.into(),
            KernelError::Controller { flow, name, available } => GroundError::Host(
                Refusal::new(
                    format!("flow \"{flow}\": this kernel has no controller \"{name}\""),
                    format!(
                        "use one of {available}, {}or run on sim{}",
                        way_to_load(&name),
                        if LINUX_LACKS.contains(&name.as_str()) {
                            ": no release of Linux has it"
                        } else {
                            ""
                        }
                    ),
                )
                .because(format!("the kernel has no controller {name}")),
            ),
            KernelError::Unsupported { place, problem, advice } => {
                let what = format!("{place}: {problem}");
                GroundError::Scenario(Refusal::new(what.clone(), advice).because(what))
            }
            KernelError::Flow { .. } => GroundError::Host(Refusal::new(whole, "run it again")),
        }
    }
}
