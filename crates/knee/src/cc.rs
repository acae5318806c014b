//! `knee cc`.

use crate::arguments::Cc;
use crate::failure::{Ending, Failure};

/// Loads, lists or unloads controllers of the kernel.
#[cfg(feature = "bpf")]
pub fn cc(arguments: &Cc) -> Result<Ending, Failure> {
    use crate::arguments::CcAction;
    use crate::screen;
    use knee_host::bpf;
    match &arguments.action {
        CcAction::Load { name, set } => {
            bpf::load(name, set)?;
            screen::print(&format!("{name} is loaded; unload it with: knee cc unload {name}\n"))?;
        }
        CcAction::List => {
            let names = bpf::list()?;
            screen::print(&names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
        }
        CcAction::Unload { name } => bpf::unload(name)?,
    }
    Ok(Ending::Done)
}

/// Names the build that supports it.
#[cfg(not(feature = "bpf"))]
pub fn cc(_arguments: &Cc) -> Result<Ending, Failure> {
    Err(Failure::Host(
        "this build of Knee has no BPF support".to_owned(),
        format!("install one that has: {}", crate::build::with("bpf")),
    ))
}

#[cfg(feature = "bpf")]
impl From<knee_host::bpf::BpfError> for Failure {
    fn from(error: knee_host::bpf::BpfError) -> Failure {
        use knee_host::bpf::BpfError;
        match error {
            BpfError::Lacks(..) | BpfError::Refused(..) => {
                Failure::Host(error.problem(), error.advice())
            }
            _ => Failure::Usage(error.problem(), error.advice()),
        }
    }
}
