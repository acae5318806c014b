//! Requirements of the grounds on the host, one function for each.

use super::host::{Capability, Host};
use crate::build;
use knee_cc::is_in_linux;
use serde::Serialize;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Everything is present.
    Ready,
    /// Something is missing.
    Lacking,
    /// The host does not provide the information.
    Unknown,
}

/// Result of one check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The requirement.
    pub what: &'static str,
    /// Its state.
    pub state: State,
    /// What was found.
    pub found: String,
    /// The ground that needs it, and the purpose.
    pub needed_for: &'static str,
    /// Advice if it is missing.
    pub advice: String,
}

/// Runs all checks.
pub fn examine(host: &Host) -> Vec<Finding> {
    vec![
        features(),
        simulator(),
        kernel(host),
        namespaces(host),
        tun(host),
        scheduling(host),
        bpf(host, cfg!(feature = "bpf")),
        btf(host),
        steering(host),
        mptcp(host),
        controllers(host),
    ]
}

/// Optional parts of the program, which the build decides.
fn features() -> Finding {
    Finding {
        what: "build",
        state: State::Ready,
        found: match build::FEATURES {
            "" => "no features".to_string(),
            features => format!("features: {}", features.replace(',', ", ")),
        },
        needed_for: "bpf, bond, live, pdf, png, quic, upload: optional parts",
        advice: String::new(),
    }
}

fn simulator() -> Finding {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Finding {
        what: "simulator",
        state: State::Ready,
        found: format!("{cpus} runs at a time"),
        needed_for: "sim",
        advice: String::new(),
    }
}

/// `struct_ops` for congestion control requires Linux 5.6; the features that Knee's BPF controllers
/// use (`cong_control` with arguments) require 6.10.
fn kernel(host: &Host) -> Finding {
    let release = host.text("proc/sys/kernel/osrelease");
    let version = release.as_deref().and_then(version);
    Finding {
        what: "kernel",
        state: match version {
            Some(version) if version >= (6, 10) => State::Ready,
            Some(_) => State::Lacking,
            None => State::Unknown,
        },
        found: release.unwrap_or_else(|| "not Linux".to_string()),
        needed_for: "kernel: BPF controllers",
        advice: "use Linux 6.10 or later; earlier kernels run only their own controllers"
            .to_string(),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

fn namespaces(host: &Host) -> Finding {
    let has = host.has("proc/self/ns/net");
    let administrator = host.may(Capability::SysAdmin);
    let (state, found) = match (has, administrator, refuses_user_namespaces(host)) {
        (false, ..) => (State::Lacking, "the kernel has no network namespaces"),
        (true, true, _) => (State::Ready, "may make network namespaces"),
        (true, false, false) => {
            (State::Ready, "may make them inside a user namespace, which Knee creates")
        }
        (true, false, true) => (State::Lacking, "only the administrator may make them"),
    };
    Finding {
        what: "network namespaces",
        state,
        found: found.to_string(),
        needed_for: "kernel, quic, programs, shell: a network of its own",
        advice: "run as root, or permit user namespaces: sysctl user.max_user_namespaces=10000, \
                 and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container, add \
                 --cap-add SYS_ADMIN"
            .to_string(),
    }
}

fn refuses_user_namespaces(host: &Host) -> bool {
    host.number("proc/sys/user/max_user_namespaces") == Some(0)
        || host.number("proc/sys/kernel/unprivileged_userns_clone") == Some(0)
        || host.number("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1)
}

fn tun(host: &Host) -> Finding {
    const DEVICE: &str = "dev/net/tun";
    let (state, found) = match (host.has(DEVICE), host.opens(DEVICE)) {
        (false, _) => (State::Lacking, "there is no /dev/net/tun".to_string()),
        (true, Ok(())) if !host.may(Capability::NetAdmin) && refuses_user_namespaces(host) => {
            (State::Lacking, "/dev/net/tun opens, but CAP_NET_ADMIN is missing".to_string())
        }
        (true, Ok(())) => (State::Ready, "may make TUN devices".to_string()),
        (true, Err(error)) => (State::Lacking, format!("/dev/net/tun: {error}")),
    };
    Finding {
        what: "TUN",
        state,
        found,
        needed_for: "kernel, quic, programs, shell: the emulator",
        advice: "run as root; modprobe tun; in a container, add --device /dev/net/tun and \
                 --cap-add NET_ADMIN"
            .to_string(),
    }
}

fn scheduling(host: &Host) -> Finding {
    let limit = host.limit("Max realtime priority");
    let allowed = limit.as_deref().is_some_and(|limit| limit != "0");
    let no_time = host.number("proc/sys/kernel/sched_rt_runtime_us") == Some(0);
    let (state, found) = match (host.may(Capability::SysNice), allowed) {
        _ if no_time => (State::Lacking, "kernel.sched_rt_runtime_us is 0".to_string()),
        (true, _) => (State::Ready, "may use real-time priorities (CAP_SYS_NICE)".to_string()),
        (false, true) => (State::Ready, "real-time priorities are allowed".to_string()),
        (false, false) if limit.is_none() => (State::Unknown, "unknown".to_string()),
        (false, false) => (State::Lacking, "no real-time priority is allowed".to_string()),
    };
    Finding {
        what: "SCHED_FIFO",
        state,
        found,
        needed_for: "kernel, quic, programs, shell: an emulator that is never late",
        advice: "run as root, or raise the limit: ulimit -r 50 (limits.conf: rtprio); sysctl \
                 kernel.sched_rt_runtime_us=950000"
            .to_string(),
    }
}

/// `has_programs` says whether this build has any.
fn bpf(host: &Host, has_programs: bool) -> Finding {
    let may = host.may(Capability::Bpf) || host.may(Capability::SysAdmin);
    let there = host.has("proc/sys/kernel/unprivileged_bpf_disabled");
    let (state, found) = match (may, there) {
        (_, false) => (State::Lacking, "the kernel has no BPF"),
        (false, true) => (State::Lacking, "BPF is available, but this user may not use it"),
        (true, true) if !host.may(Capability::NetAdmin) => {
            (State::Lacking, "CAP_NET_ADMIN is missing")
        }
        (true, true) if !has_programs => {
            (State::Lacking, "may load programs, but this build of Knee has none")
        }
        (true, true) => (State::Ready, "may load programs"),
    };
    let can = may && there && host.may(Capability::NetAdmin);
    Finding {
        what: "BPF",
        state,
        found: found.to_string(),
        needed_for: "kernel: BPF controllers; steer; observe --bpf",
        advice: match can {
            true => build::with("bpf"),
            false => "run as root, or with CAP_BPF and CAP_NET_ADMIN, on a kernel with \
                      CONFIG_BPF_SYSCALL"
                .to_string(),
        },
    }
}

fn btf(host: &Host) -> Finding {
    let there = host.has("sys/kernel/btf/vmlinux");
    let found = if there { "/sys/kernel/btf/vmlinux" } else { "no /sys/kernel/btf/vmlinux" };
    Finding {
        what: "BTF",
        state: if there { State::Ready } else { State::Lacking },
        found: found.to_string(),
        needed_for: "kernel: BPF controllers",
        advice: "use a kernel with CONFIG_DEBUG_INFO_BTF; those of the distributions have it"
            .to_string(),
    }
}

/// Steering programs attach to a control group, and the pins that undo them live in the BPF file
/// system.
fn steering(host: &Host) -> Finding {
    let mounts = host.text("proc/self/mounts");
    // Where a file system of this kind is.
    let place = |kind: &str| {
        let mut lines = mounts.as_deref().unwrap_or_default().lines();
        lines.find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?;
            (words.next() == Some(kind)).then_some(place)
        })
    };
    let (groups, programs) = (place("cgroup2"), place("bpf"));
    let lacking = match (&mounts, groups, programs) {
        (None, ..) => "no /proc/self/mounts",
        (_, None, None) => "no control groups of version 2, no BPF file system",
        (_, None, Some(_)) => "no control groups of version 2",
        (_, Some(_), None) => "no BPF file system",
        (_, Some(_), Some(_)) => "BPF file system",
    };
    let there = groups.map(|at| format!("control groups of version 2 at {at}; "));
    // What is there stays as it is: a second mount over control groups would hide them.
    let mut advice = Vec::new();
    advice.extend(groups.is_none().then_some(knee_host::MOUNT_CGROUPS));
    advice.extend(programs.is_none().then_some("mount -t bpf bpf /sys/fs/bpf"));
    Finding {
        what: "steering",
        state: match (&mounts, groups.and(programs)) {
            (None, _) => State::Unknown,
            (_, None) => State::Lacking,
            (_, Some(_)) => State::Ready,
        },
        found: there.unwrap_or_default() + lacking,
        needed_for: "steer: BPF programs; routes do without",
        advice: advice.join("; "),
    }
}

fn mptcp(host: &Host) -> Finding {
    let (state, found) = match host.number("proc/sys/net/mptcp/enabled") {
        Some(1) => (State::Ready, "on"),
        Some(_) => (State::Lacking, "off"),
        None => (State::Lacking, "the kernel has no MPTCP"),
    };
    Finding {
        what: "MPTCP",
        state,
        found: found.to_string(),
        needed_for: "kernel: multipath",
        advice: "sysctl net.mptcp.enabled=1, on a kernel with CONFIG_MPTCP".to_string(),
    }
}

/// Controllers that measurements on the kernel ground compare with.
const NEEDED: [&str; 3] = ["bbr", "cubic", "reno"];

/// Controllers in the kernel, and available as modules; and those that other kernels have.
fn controllers(host: &Host) -> Finding {
    let now = host.text("proc/sys/net/ipv4/tcp_available_congestion_control");
    let release = host.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let modules = host.files(&format!("lib/modules/{release}/kernel/net/ipv4"), "tcp_");
    let loadable: Vec<&str> = modules
        .iter()
        .filter_map(|name| name.strip_prefix("tcp_")?.split('.').next())
        .filter(|name| *name != "diag")
        .collect();
    let has = |name: &str| {
        now.as_deref().is_some_and(|now| now.split_whitespace().any(|known| known == name))
            || loadable.contains(&name)
    };
    let mut found = now.clone().unwrap_or_else(|| "unknown".to_string());
    if !loadable.is_empty() {
        found += &format!("; as modules: {}", loadable.join(", "));
    }
    let lacking = knee_cc::controllers().iter().map(|entry| entry.name);
    let lacking = lacking.filter(|name| is_in_linux(name) && !has(name) && !NEEDED.contains(name));
    let lacking: Vec<&str> = lacking.collect();
    if now.is_some() && !lacking.is_empty() {
        found += &format!("; not in this kernel: {}", lacking.join(", "));
    }
    Finding {
        what: "controllers",
        state: match (&now, NEEDED.into_iter().all(has)) {
            (None, _) => State::Unknown,
            (_, true) => State::Ready,
            (_, false) => State::Lacking,
        },
        found,
        needed_for: "kernel: bbr, cubic and reno to measure against",
        advice: "modprobe tcp_bbr, on a kernel with CONFIG_TCP_CONG_BBR".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    const RELEASE: &str = "6.18.0-1-amd64";

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A fully equipped desktop with an unprivileged user.
    fn desktop() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("proc/sys/kernel/osrelease", RELEASE),
            ("proc/self/ns/net", ""),
            ("proc/sys/user/max_user_namespaces", "63000\n"),
            ("dev/net/tun", ""),
            ("proc/self/status", "Name:\tknee\nCapEff:\t0000000000000000\n"),
            (
                "proc/self/mounts",
                "none /sys/fs/cgroup cgroup2 rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\n",
            ),
            ("proc/self/limits", "Max realtime priority     0                    0\n"),
            ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
            ("sys/kernel/btf/vmlinux", ""),
            ("proc/sys/net/mptcp/enabled", "1\n"),
            ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n"),
            ("lib/modules/6.18.0-1-amd64/kernel/net/ipv4/tcp_bbr.ko.xz", ""),
        ] {
            write(folder.path(), name, text);
        }
        folder
    }

    fn lacking(root: &Path) -> Vec<&'static str> {
        // As in a build with BPF programs.
        let host = Host::below(root);
        let findings = examine(&host).into_iter().map(|one| match one.what {
            "BPF" => bpf(&host, true),
            _ => one,
        });
        findings.filter(|one| one.state == State::Lacking).map(|one| one.what).collect()
    }

    /// Networks and devices are created in a user namespace.
    #[test]
    fn a_user_lacks_privileges_on_the_host_only() {
        assert_eq!(lacking(desktop().path()), ["SCHED_FIFO", "BPF"]);
        let hardened = desktop();
        write(hardened.path(), "proc/sys/user/max_user_namespaces", "0\n");
        let expected = ["network namespaces", "TUN", "SCHED_FIFO", "BPF"];
        assert_eq!(lacking(hardened.path()), expected);
    }

    /// Capability bits 12, 21, 23 and 39, numbered as in capabilities(7).
    #[test]
    fn root_lacks_nothing() {
        let host = desktop();
        write(host.path(), "proc/self/status", "CapEff:\t0000008000a01000\n");
        assert_eq!(lacking(host.path()), [""; 0]);
    }

    #[test]
    fn file_systems_that_steering_needs_are_told() {
        let host = desktop();
        for mounts in ["none /sys/fs/cgroup cgroup2 rw 0 0", "bpf /sys/fs/bpf bpf rw 0 0"] {
            write(host.path(), "proc/self/mounts", mounts);
            assert!(lacking(host.path()).contains(&"steering"), "{mounts}");
        }
    }

    /// Only what is missing is to be mounted: where control groups of version 1 are at their usual
    /// place, and those of version 2 below it, a mount there would hide both.
    #[test]
    fn only_what_is_missing_is_to_be_mounted() {
        let host = desktop();
        let unified = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                       cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                       cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        write(host.path(), "proc/self/mounts", unified);
        let found = steering(&Host::below(host.path()));
        assert_eq!(found.state, State::Lacking);
        assert_eq!(
            found.found,
            "control groups of version 2 at /sys/fs/cgroup/unified; no BPF file system"
        );
        assert_eq!(found.advice, "mount -t bpf bpf /sys/fs/bpf");
        write(host.path(), "proc/self/mounts", "bpf /sys/fs/bpf bpf rw 0 0");
        let advice = steering(&Host::below(host.path())).advice;
        assert!(!advice.contains("/sys/fs/cgroup") && !advice.contains("-t bpf"), "{advice}");
    }

    /// A host that may load programs is no use to a build that has none.
    #[test]
    fn builds_without_bpf_programs_lack_them() {
        let host = desktop();
        write(host.path(), "proc/self/status", "CapEff:\t0000008000a01000\n");
        let found = bpf(&Host::below(host.path()), false);
        assert_eq!(found.state, State::Lacking);
        assert!(found.advice.contains("--features"), "{}", found.advice);
        assert_eq!(bpf(&Host::below(host.path()), true).state, State::Ready);
    }

    /// With a zero budget, SCHED_FIFO is granted but never runs.
    #[test]
    fn real_time_without_time_is_lacking() {
        let host = desktop();
        write(host.path(), "proc/self/status", "CapEff:\t0000008000a01000\n");
        write(host.path(), "proc/sys/kernel/sched_rt_runtime_us", "0\n");
        assert_eq!(lacking(host.path()), ["SCHED_FIFO"]);
    }

    #[test]
    fn an_empty_host_lacks_everything_that_it_is_known_to_lack() {
        let host = tempfile::tempdir().unwrap();
        assert_eq!(lacking(host.path()), ["network namespaces", "TUN", "BPF", "BTF", "MPTCP"]);
    }

    #[test]
    fn hardened_hosts_refuse_user_namespaces() {
        for (name, value) in [
            ("proc/sys/user/max_user_namespaces", "0"),
            ("proc/sys/kernel/unprivileged_userns_clone", "0"),
            ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
        ] {
            let host = desktop();
            write(host.path(), name, value);
            assert!(lacking(host.path()).contains(&"network namespaces"), "{name}");
        }
    }

    #[test]
    fn what_is_lacking_has_an_advice() {
        let host = tempfile::tempdir().unwrap();
        for finding in examine(&Host::below(host.path())) {
            assert!(finding.state == State::Ready || !finding.advice.is_empty(), "{finding:?}");
        }
    }

    /// Only controllers that the kernel lacks also as a module are listed.
    #[test]
    fn controllers_that_the_kernel_lacks_are_named() {
        let host = desktop();
        let found = || controllers(&Host::below(host.path())).found;
        assert!(found().ends_with("not in this kernel: dctcp, vegas"), "{}", found());
        let module = "lib/modules/6.18.0-1-amd64/kernel/net/ipv4/tcp_dctcp.ko";
        write(host.path(), module, "");
        assert!(found().ends_with("not in this kernel: vegas"), "{}", found());
    }

    #[test]
    fn kernels_before_6_10_are_told() {
        let host = desktop();
        write(host.path(), "proc/sys/kernel/osrelease", "6.8.0-40-generic");
        assert!(lacking(host.path()).contains(&"kernel"));
    }
}
