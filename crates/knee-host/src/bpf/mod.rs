//! Controllers in BPF (`bpf/`), loaded into the running kernel.
//!
//! A loaded controller is a name that every TCP connection of the machine can choose
//! (`TCP_CONGESTION`), in any namespace. [`load`] leaves it in the kernel, held by a link pinned in
//! the BPF file system, until [`unload`] or a restart; connections that use it keep it to their
//! end. What [`register`] offers, under any name, ends with the process.

mod ended;
mod error;
mod object;
mod states;
mod steering;
mod switches;

pub use ended::EndedConnections;
pub use error::BpfError;
pub use states::ConnectionStates;
pub use steering::{Done, GROUPS_MAX, Hint, Place, Steering};

use crate::privileges::{NET_ADMIN, SYS_ADMIN, capabilities, in_user_namespace};
use error::PERMISSION;
use knee_cc::{Selection, SelectionError};
use libbpf_rs::{ErrorKind, Link, MapCore, MapType, Object, ObjectBuilder, OpenObject};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Controllers that can be loaded, by their names in the kernel.
pub const NAMES: [&str; 3] = crate::BPF_CONTROLLERS;

const BBR_LOW_DELAY: &[u8] = include_bytes!(env!("KNEE_BPF_BBR_LOW_DELAY"));
const BBR3: &[u8] = include_bytes!(env!("KNEE_BPF_BBR3"));
const COPA: &[u8] = include_bytes!(env!("KNEE_BPF_COPA"));
const FIXED: &[u8] = include_bytes!(env!("KNEE_BPF_FIXED"));

/// Time between two looks at whether the kernel has withdrawn a name, and how many there are.
const WITHDRAWAL_LOOK: Duration = Duration::from_millis(5);
const WITHDRAWAL_LOOKS: u32 = 2000;

/// An algorithm of `knee-cc` in BPF.
struct Program {
    /// Name in `knee-cc`.
    algorithm: &'static str,
    object: &'static [u8],
    /// Name that it was compiled with.
    compiled: &'static str,
    /// Makes its constants from a selection.
    constants: fn(&Selection) -> Result<Vec<u8>, SelectionError>,
}

const PROGRAMS: [Program; 4] = [
    Program {
        algorithm: switches::ALGORITHM,
        object: BBR_LOW_DELAY,
        compiled: NAMES[0],
        constants: |selection| Ok(switches::constants(selection)?.to_vec()),
    },
    Program {
        algorithm: "bbr3",
        object: BBR3,
        compiled: NAMES[1],
        constants: switches::constants_of_bbr3,
    },
    Program {
        algorithm: "copa",
        object: COPA,
        compiled: NAMES[2],
        constants: switches::constants_of_copa,
    },
    Program {
        algorithm: "fixed",
        object: FIXED,
        compiled: "knee_fixed",
        constants: switches::constants_of_fixed,
    },
];

/// Types of the running kernel, needed for relocation.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Mount point of the BPF file system.
const BPF_FS: &str = "/sys/fs/bpf";
/// Folder of Knee's links in the BPF file system.
const FOLDER: &str = "/sys/fs/bpf/knee";

/// A controller that the kernel offers until this is dropped.
#[derive(Debug)]
pub struct Registration {
    link: Link,
    states: Option<ConnectionStates>,
}

impl Registration {
    /// Returns the states of its connections; `None` if it is not BBRv3.
    pub fn states(&self) -> Option<&ConnectionStates> {
        self.states.as_ref()
    }
}

/// Offers the controller `name` to this machine's connections until [`unload`] or a restart.
/// `changes` are parameters that differ from `knee-cc`'s preset of that name: `[("drain_to_target",
/// "false")]`.
///
/// # Errors
/// The name, a parameter or its value does not exist, a controller of the name is already loaded,
/// or the host lacks something.
pub fn load(name: &str, changes: &[(String, String)]) -> Result<(), BpfError> {
    let name = known(name)?;
    // Checked first: a controller that cannot be kept is not worth loading.
    let folder = folder()?;
    let Registration { mut link, .. } = register(name, &switches::selection(name, changes))?;
    fs::create_dir_all(&folder).map_err(|error| BpfError::io("make /sys/fs/bpf/knee", &error))?;
    link.pin(folder.join(name)).map_err(|error| refused(&error))
}

/// Returns the names of the controllers that [`load`] has left in the kernel.
///
/// # Errors
/// The BPF file system cannot be read.
pub fn list() -> Result<Vec<String>, BpfError> {
    let entries = match fs::read_dir(folder()?) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BpfError::io("list the loaded controllers", &error)),
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}

/// Unloads a controller, and waits until the kernel does not offer it any more, which is some time
/// after its link is gone. Connections that use it keep it.
///
/// # Errors
/// It is not loaded, or the kernel still offers it after ten seconds.
#[expect(clippy::disallowed_methods, reason = "the kernel tells nobody when it is done")]
pub fn unload(name: &str) -> Result<(), BpfError> {
    if !list()?.iter().any(|loaded| loaded == name) {
        return Err(BpfError::NotLoaded(name.to_owned()));
    }
    fs::remove_file(Path::new(FOLDER).join(name))
        .map_err(|error| BpfError::io("unload the controller", &error))?;
    // Fails if the folder is in use or not empty; then it stays.
    let _ = fs::remove_dir(FOLDER);
    for _ in 0..WITHDRAWAL_LOOKS {
        if !in_kernel(name) {
            return Ok(());
        }
        thread::sleep(WITHDRAWAL_LOOK);
    }
    let problem = "the kernel still offers it".to_owned();
    Err(BpfError::Refused("unload the controller", problem, "find what holds it: bpftool link"))
}

/// Returns whether [`register`] can offer the selection: BBR, BBRv3, Copa or a fixed window, with
/// any parameters.
pub fn can_register(selection: &Selection) -> bool {
    program(selection).is_some()
}

/// Returns whether the selection paces.
pub fn paces(selection: &Selection) -> bool {
    program(selection).is_some_and(|program| program.algorithm != "fixed")
}

/// Returns the program of the selected algorithm or preset.
fn program(selection: &Selection) -> Option<&'static Program> {
    const { &PROGRAMS }.iter().find(|program| {
        let mut entries = knee_cc::controllers().iter();
        let named = |name: &str| name == selection.name;
        entries.any(|entry| {
            entry.name == program.algorithm
                && (named(entry.name) || entry.presets.iter().any(|preset| named(preset.name)))
        })
    })
}

/// Offers the selection under a name of at most 15 bytes, to every connection of the machine, until
/// the returned value is dropped or the process ends.
///
/// # Errors
/// No program has the algorithm ([`can_register`]), a parameter or its value does not exist, the
/// kernel has the name already, or the host lacks something.
///
/// # Panics
/// If the name is longer.
pub fn register(name: &str, selection: &Selection) -> Result<Registration, BpfError> {
    // Checked first: a wrong parameter is wrong on every host.
    let program = program(selection).ok_or_else(|| BpfError::Unknown(selection.name.clone()))?;
    let mut object = opened_with(program.object, &(program.constants)(selection)?)?;
    if in_kernel(name) {
        return Err(BpfError::AlreadyLoaded(name.to_owned()));
    }
    if let Some(lack) = lack() {
        return Err(lack);
    }
    rename(&mut object, program.compiled, name);
    let mut object = object.load().map_err(|error| refused(&error))?;
    let states = if program.algorithm == "bbr3" { ConnectionStates::of(&object) } else { None };
    Ok(Registration { link: attached(&mut object)?, states })
}

/// Returns what this host is found to lack for [`Steering`], or `None`.
pub fn steering_lack() -> Option<BpfError> {
    lack().or_else(|| (!has_file_system()).then_some(LACKS_FILE_SYSTEM))
}

/// Returns what this host is found to lack for [`load`], or `None`.
pub fn lack() -> Option<BpfError> {
    if !Path::new(BTF).exists() {
        let advice = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y";
        return Some(BpfError::Lacks("BTF (/sys/kernel/btf/vmlinux)", advice));
    }
    (!permitted()).then_some(PERMISSION)
}

/// Returns whether this process has the host's capabilities for BPF, performance monitoring and
/// network administration, or CAP_SYS_ADMIN (capability.h).
fn permitted() -> bool {
    const PERFMON: u64 = 1 << 38;
    const BPF: u64 = 1 << 39;
    let (held, needed) = (capabilities(), NET_ADMIN | PERFMON | BPF);
    !in_user_namespace() && (held & SYS_ADMIN != 0 || held & needed == needed)
}

fn known(name: &str) -> Result<&'static str, BpfError> {
    let found = NAMES.into_iter().find(|known| *known == name);
    found.ok_or_else(|| BpfError::Unknown(name.to_owned()))
}

fn in_kernel(name: &str) -> bool {
    let available = crate::sysctl("net.ipv4.tcp_available_congestion_control");
    available.is_ok_and(|names| names.split_whitespace().any(|known| known == name))
}

fn folder() -> Result<PathBuf, BpfError> {
    if has_file_system() { Ok(PathBuf::from(FOLDER)) } else { Err(LACKS_FILE_SYSTEM) }
}

/// Returns whether the BPF file system is mounted.
fn has_file_system() -> bool {
    statfs(BPF_FS).is_ok_and(|found| found.filesystem_type() == BPF_FS_MAGIC)
}

const LACKS_FILE_SYSTEM: BpfError =
    BpfError::Lacks("a BPF file system at /sys/fs/bpf", "mount it: mount -t bpf bpf /sys/fs/bpf");

/// Opens an object of `bpf/` with the selected algorithm, and sets its constants.
///
/// # Errors
/// A parameter or its value does not exist, or the object is invalid.
pub fn opened(object: &[u8], selection: &Selection) -> Result<OpenObject, BpfError> {
    let program = program(selection).ok_or_else(|| BpfError::Unknown(selection.name.clone()))?;
    opened_with(object, &(program.constants)(selection)?)
}

fn opened_with(object: &[u8], constants: &[u8]) -> Result<OpenObject, BpfError> {
    // Only the command line prints.
    libbpf_rs::set_print(None);
    let mut object =
        ObjectBuilder::default().open_memory(object).map_err(|error| refused(&error))?;
    for mut map in object.maps_mut() {
        let holds_constants = map.name().to_string_lossy().ends_with(".rodata");
        if let Some(value) = map.initial_value_mut().filter(|_| holds_constants) {
            value[..constants.len()].copy_from_slice(constants);
        }
    }
    Ok(object)
}

/// Replaces the name that the controller was compiled with.
fn rename(object: &mut OpenObject, compiled: &str, name: &str) {
    /// Length of `tcp_congestion_ops.name`, including the terminating zero.
    const FIELD: usize = 16;
    assert!(name.len() < FIELD, "{name} is too long for the kernel");
    let compiled = compiled.as_bytes();
    for mut map in object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        let Some(value) = map.initial_value_mut() else { continue };
        let place = value.windows(compiled.len()).position(|bytes| bytes == compiled);
        let place = place.expect("the object holds its controller's name");
        let field = &mut value[place..place + FIELD];
        field.fill(0);
        field[..name.len()].copy_from_slice(name.as_bytes());
    }
}

fn attached(object: &mut Object) -> Result<Link, BpfError> {
    let mut maps = object.maps_mut();
    let controller = maps.find(|map| map.map_type() == MapType::StructOps);
    let mut controller = controller.expect("the object holds a controller");
    controller.attach_struct_ops().map_err(|error| refused(&error))
}

fn refused(error: &libbpf_rs::Error) -> BpfError {
    let advice = "it needs Linux 6.10 or later with CONFIG_BPF_JIT=y";
    refused_to("load the controller", error, advice)
}

fn refused_to(what: &'static str, error: &libbpf_rs::Error, advice: &'static str) -> BpfError {
    match error.kind() {
        ErrorKind::PermissionDenied => PERMISSION,
        _ => BpfError::Refused(what, format!("{error:#}"), advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advice of builds without BPF names the same controllers.
    #[test]
    fn the_programs_are_those_that_the_registry_names() {
        for entry in knee_cc::controllers() {
            let presets = entry.presets.iter().map(|preset| preset.name);
            for name in presets.chain([entry.name]) {
                let is_here = can_register(&Selection::named(name));
                assert_eq!(is_here, knee_cc::is_in_bpf(name), "{name}");
            }
        }
    }
}
