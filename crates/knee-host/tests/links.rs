//! The links of this host compared with what ip(8) lists, or with the kernel's own files if ip is
//! missing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use knee_host::Routing;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn interfaces_are_those_of_the_kernel_each_time_one_asks() {
    let listed: BTreeSet<String> = fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("ifindex").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let mut routing = Routing::open().unwrap();
    for time in 0..3 {
        let links = routing.links().unwrap();
        let names: BTreeSet<String> = links.iter().map(|link| link.name.clone()).collect();
        assert_eq!(names, listed, "time {time}");
        let loopback = links.iter().find(|link| link.name == "lo").unwrap();
        assert!(!loopback.is_physical && !loopback.has_default_route);
        // 127.0.0.1 leads to no other host.
        assert!(loopback.addresses.iter().all(|address| !address.is_loopback()));
    }
    // The default route of IPv4: destination and mask of zero.
    let routes = fs::read_to_string("/proc/net/route").unwrap();
    let defaults: BTreeSet<&str> = routes
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|fields| fields[1] == "00000000" && fields[7] == "00000000")
        .map(|fields| fields[0])
        .collect();
    let links = routing.links().unwrap();
    for name in defaults {
        assert!(links.iter().any(|link| link.name == name && link.has_default_route), "{name}");
    }
}
