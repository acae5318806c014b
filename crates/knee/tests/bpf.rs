//! `knee cc` on the running kernel; with the feature `bpf` alone.
#![cfg(feature = "bpf")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says why")]

mod common;

use common::{complaint, expect, folder_with};
use std::fs;

const OFFERED: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

fn is_offered() -> bool {
    let names = fs::read_to_string(OFFERED).unwrap_or_default();
    names.split_whitespace().any(|name| name == "bbr_low_delay")
}

/// What the machine lacks, as the program says it; none: nothing.
fn lack() -> Option<&'static str> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    if !mounts.lines().any(|line| line.split(' ').nth(1) == Some("/sys/fs/bpf")) {
        return Some("a BPF file system at /sys/fs/bpf");
    }
    if is_offered() {
        return Some("bbr_low_delay is loaded already");
    }
    (!nix::unistd::geteuid().is_root()).then_some("root")
}

/// The kernel itself says what it offers.
#[test]
fn bpf_controllers_come_and_go() {
    if let Some(lack) = lack() {
        let required = std::env::var_os("KNEE_REQUIRE_ROOT_TESTS").is_some();
        assert!(!required, "bpf_controllers_come_and_go: {lack}");
        println!("test bpf_controllers_come_and_go ... ignored, {lack}");
        return;
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
}
