//! `knee cc` on the running kernel; only with the feature `bpf`.

use crate::common::{complaint, expect, folder_with};
use knee_trials::{Skipped, Trial, trials};
use std::fs;

const OFFERED: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

fn is_offered() -> bool {
    let names = fs::read_to_string(OFFERED).unwrap_or_default();
    names.split_whitespace().any(|name| name == "bbr_low_delay")
}

/// The missing requirement; `None` if there is none.
fn lack() -> Option<&'static str> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.split(' ').nth(1) == Some("/sys/fs/bpf")) {
        return Some("the host lacks a BPF file system at /sys/fs/bpf");
    }
    if is_offered() {
        return Some("bbr_low_delay is loaded already");
    }
    (!nix::unistd::geteuid().is_root()).then_some("the host lacks root")
}

/// The kernel's own list must show the controllers.
fn bpf_controllers_come_and_go() -> Result<(), Skipped> {
    if let Some(lack) = lack() {
        return Err(Skipped::lack(lack));
    }
    let folder = folder_with("a.toml", "");
    let at = folder.path();
    let wrong = complaint(at, "cc load bbr_low_delay --set drain_to_target=maybe", 2);
    assert!(wrong.contains("write true or false"), "{wrong}");
    assert!(!is_offered());
    let loaded = expect(at, "cc load bbr_low_delay --set max_cruise=off", 0);
    assert!(loaded.contains("knee cc unload bbr_low_delay"), "{loaded}");
    assert!(is_offered());
    assert_eq!(expect(at, "cc list", 0), "bbr_low_delay\n");
    let again = complaint(at, "cc load bbr_low_delay", 2);
    assert!(again.contains("knee cc unload bbr_low_delay"), "{again}");
    expect(at, "cc unload bbr_low_delay", 0);
    assert!(!is_offered());
    assert_eq!(expect(at, "cc list", 0), "");
    complaint(at, "cc unload bbr_low_delay", 2);
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![bpf_controllers_come_and_go]
}
