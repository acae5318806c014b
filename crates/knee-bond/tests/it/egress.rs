//! Egress rules compared with lists of addresses that were written by hand from the registries and
//! from known ways around such rules.

use knee_bond::egress::Egress;
use std::net::IpAddr;
use std::sync::{Arc, RwLock};

fn refusal(address: &str, port: u16) -> Option<&'static str> {
    let own = ["198.41.0.4", "2620:fe::9"].map(|own| own.parse().unwrap());
    let own = Arc::new(RwLock::new(own.into()));
    let address: IpAddr = address.parse().unwrap();
    Egress { own, ..Egress::default() }.refusal(address, port)
}

/// Private networks, this host, cloud metadata; then the same addresses in other notations.
const DENIED: [&str; 46] = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "198.41.0.4",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:198.41.0.4",
    "::127.0.0.1",
    "::10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::8.8.8.8",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::1",
    "2001:0:53aa:64c:0:78b8:80ff:fffe",
    "2001:db8::1",
    "2a00:1450::5efe:10.0.0.1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "ff02::1",
    "2620:fe::9",
];

const ALLOWED: [&str; 10] = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "172.32.0.1",
    "192.167.255.255",
    "::ffff:8.8.8.8",
    "2606:4700:4700::1111",
    "64:ff9b::8.8.8.8",
];

#[test]
fn inner_addresses_are_denied_in_all_their_clothes() {
    for address in DENIED {
        assert!(refusal(address, 443).is_some(), "{address}");
    }
}

#[test]
fn the_open_internet_is_allowed() {
    for address in ALLOWED {
        assert_eq!(refusal(address, 443), None, "{address}");
    }
}

#[test]
fn mail_between_servers_and_no_port_are_denied() {
    for port in [0, 25] {
        assert!(refusal("8.8.8.8", port).is_some(), "{port}");
    }
    assert_eq!(refusal("8.8.8.8", 587), None);
}

#[test]
fn what_is_named_is_allowed_and_nothing_beside_it() {
    let allow = vec!["10.1.0.0/16".parse().unwrap()];
    let egress = Egress { allow, ports: vec![22, 443], ..Egress::default() };
    let may = |address: &str, port| egress.refusal(address.parse().unwrap(), port).is_none();
    assert!(may("10.1.2.3", 22) && may("::ffff:10.1.2.3", 443) && may("8.8.8.8", 443));
    assert!(!may("10.2.0.1", 22) && !may("10.1.2.3", 80) && !may("8.8.8.8", 80));
}
