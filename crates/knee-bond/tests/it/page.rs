//! The page of an end: who may read it, and that another program can parse the metrics.

use chrono::NaiveDate;
use knee_bond::page::{families, serve};
use knee_bond::quota::CapStatus;
use knee_bond::status::{BundleStatus, LinkStatus, Status, Unused};
use knee_page::written;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

fn state() -> Status {
    let link = |name: &str, sent_packets| LinkStatus {
        name: name.to_owned(),
        address: "192.0.2.1:4433".to_owned(),
        silent: false,
        backup: false,
        left_out: None,
        cost: 0,
        rtt_ms: 20.5,
        min_rtt_ms: 20.0,
        sent_bytes: 1_000_000,
        received_bytes: 3_000_000,
        sent_packets,
        lost_packets: 7,
        window_bytes: 30_000,
        phase: "probe_bw".to_owned(),
        packet_bytes: 1452,
    };
    Status {
        role: "client".to_owned(),
        version: "0".to_owned(),
        running_s: 12.5,
        listen: "127.0.0.1:1080".to_owned(),
        bundles: vec![BundleStatus {
            peer: "a \"peer\" with \\ and\na line".to_owned(),
            number: 0,
            links: vec![link("eth0", 700), link("wwan0", 300)],
            held_bytes: 0,
            unread: None,
            waiting_for_peer: 0,
        }],
        unused: vec![Unused { name: "usb0".to_owned(), why: "it has no address".to_owned() }],
        transparent: false,
        carried: Vec::new(),
        caps: vec![CapStatus {
            name: "wwan0".to_owned(),
            used_bytes: 5,
            cap_bytes: 20_000_000_000,
            since: NaiveDate::from_ymd_opt(2026, 11, 5).unwrap(),
            resets: NaiveDate::from_ymd_opt(2026, 12, 5).unwrap(),
        }],
    }
}

/// Requests a path over a real socket, and returns the status code and the body.
fn asked(place: &str) -> (u16, String) {
    let listener = knee_page::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    write!(socket, "GET {place} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let reading = thread::spawn(move || {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let reading = tokio::task::spawn_blocking(|| reading.join().unwrap());
        tokio::select! {
            () = serve(TcpListener::from_std(listener).unwrap(), state) => panic!("it has ended"),
            answer = reading => answer.unwrap(),
        }
    });
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn an_end_shows_its_state() {
    let (code, body) = asked("/status");
    assert_eq!((code, serde_json::from_str::<Status>(&body).unwrap()), (200, state()));
    for (place, part) in [
        ("/", "<title>Knee bond</title>"),
        ("/page.css", "font"),
        ("/page.js", "use strict"),
        ("/metrics", "knee_bond_link_rtt_seconds"),
    ] {
        let (code, body) = asked(place);
        assert!(code == 200 && body.contains(part), "{place}: {code} {body}");
    }
    assert_eq!(asked("/other").0, 404);
}

/// Parses OpenMetrics strictly: each family in one piece, with its help, type and unit, then its
/// samples. Returns the sum of each family's samples by name.
fn read(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with its end");
    assert!(!body.contains("# EOF") && body.ends_with('\n'), "{text}");
    let mut sums = BTreeMap::new();
    let (mut family, mut kind) = ("", "");
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, rest) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            match what {
                "HELP" => {
                    assert!(sums.insert(name.to_owned(), 0.0).is_none(), "{name} comes twice");
                    family = name;
                }
                "TYPE" => {
                    assert_eq!(name, family);
                    kind = rest;
                }
                "UNIT" => assert!(name == family && name.ends_with(&format!("_{rest}")), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (name, rest) = line.split_once('{').unwrap();
        let suffix = if kind == "counter" { "_total" } else { "" };
        assert_eq!(name, format!("{family}{suffix}"), "{line}");
        // Within quotation marks only \\, \" and \n are escaped.
        let (mut quoted, mut escaped, mut end) = (false, false, None);
        for (place, letter) in rest.char_indices() {
            match (quoted, escaped, letter) {
                (true, true, '\\' | '"' | 'n') => escaped = false,
                (true, true, _) => panic!("{line}"),
                (true, false, '\\') => escaped = true,
                (_, _, '"') => quoted = !quoted,
                (false, _, '}') => end = Some(place),
                _ => {}
            }
        }
        let value = rest[end.unwrap() + 1..].strip_prefix(' ').unwrap();
        *sums.get_mut(family).unwrap() += value.parse::<f64>().unwrap();
    }
    sums
}

#[test]
fn the_metrics_say_what_the_state_says() {
    let text = written(families(&state()));
    let sums = read(&text);
    for (name, sum) in [
        ("knee_bond_link_usable", 2.0),
        ("knee_bond_link_sent_packets", 1000.0),
        ("knee_bond_link_lost_packets", 14.0),
        ("knee_bond_link_received_bytes", 6_000_000.0),
        ("knee_bond_link_rtt_seconds", 0.041),
        ("knee_bond_cap_bytes", 20e9),
        ("knee_bond_bundles", 1.0),
    ] {
        assert!((sums[name] - sum).abs() < 1e-9, "{name}: {text}");
    }
    // OpenMetrics, section "Label": the labels of samples of a family must differ.
    let mut twice = state();
    twice.bundles.push(BundleStatus { number: 1, ..twice.bundles[0].clone() });
    let text = written(families(&twice));
    let named = |line: &str| line.rsplit_once(' ').unwrap().0.to_owned();
    let mut samples = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(samples.insert(named(line)), "{line} comes twice");
    }
    assert!(!text.contains("192.0.2.1"), "an address is nobody's business: {text}");
}
