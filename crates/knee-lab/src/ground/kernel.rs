//! The ground "kernel": `knee-kernel`.

use super::{Ended, Ground, GroundError, KERNEL, Output, Pace, Refusal, testbed};
use knee_cc::{is_in_bpf, is_in_linux};
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

    fn captures(&self) -> bool {
        true
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
        let observing = testbed::observing(&output)?;
        let played = knee_kernel::run_to(scenario, control, output.samples, observing)?;
        testbed::ended(scenario, played)
    }
}

/// Ways to get a controller that the kernel lacks, each followed by a comma.
fn ways_to_get(name: &str) -> String {
    let module = if is_in_linux(name) { "load its module, " } else { "" };
    let program = match is_in_bpf(name) {
        false => "",
        // It was not loaded because the host lacks something.
        true if cfg!(feature = "bpf") => "see what BPF needs (knee doctor), ",
        true => "build Knee with --features bpf, ",
    };
    format!("{module}{program}")
}

/// Returns whether Linux cannot have a controller.
fn is_nowhere(name: &str) -> bool {
    !is_in_linux(name) && !is_in_bpf(name)
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
                        ways_to_get(&name),
                        if is_nowhere(&name) { ": no release of Linux has it" } else { "" }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_what_provides_a_controller() {
        for name in ["gcc", "prague", "remycc"] {
            assert!(is_nowhere(name) && ways_to_get(name).is_empty(), "{name}");
        }
        assert_eq!(ways_to_get("vegas"), "load its module, ");
        for name in ["copa", "bbr3", "bbr3-linux", "bbr-low-delay", "fixed"] {
            let ways = ways_to_get(name);
            assert!(!is_nowhere(name) && !ways.contains("module"), "{name}");
            assert!(ways.to_lowercase().contains("bpf"), "{name}: {ways}");
        }
        let both = ways_to_get("bbr");
        assert!(both.contains("module") && both.to_lowercase().contains("bpf"), "{both}");
    }
}
