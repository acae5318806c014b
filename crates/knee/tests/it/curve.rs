//! `knee curve`: points against theory for a path of constant rate, the picture, and refusals.

use crate::common::{SMALL, complaint, expect, folder_with};
use std::fs;

/// 40 ms and a BDP of 50 kB, with as much buffer.
const PATH: &str = r#"
name = "A path"
duration = "4 s"
warmup = "1 s"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
buffer = "1 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "20 ms"

[[flow]]
name = "flow"
cc = { name = "fixed", window = "20 packets" }
"#;

/// A row: window in packets, in BDP, rate in Mbit/s, RTT in ms, per cent retransmitted.
fn rows(printed: &str) -> Vec<[f64; 5]> {
    let in_units = |value: &str, unit: &str| -> Option<f64> {
        let value: f64 = value.parse().ok()?;
        match unit {
            "Mbit/s" | "ms" | "%" => Some(value),
            "kbit/s" => Some(value / 1e3),
            _ => None,
        }
    };
    let row = |line: &str| -> Option<[f64; 5]> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [window, bdp, rate, rate_unit, rtt, rtt_unit, again, per_cent] = words[..] else {
            return None;
        };
        Some([
            window.parse().ok()?,
            bdp.parse().ok()?,
            in_units(rate, rate_unit)?,
            in_units(rtt, rtt_unit)?,
            in_units(again, per_cent)?,
        ])
    };
    printed.lines().filter_map(row).collect()
}

/// Up to one BDP, one window per round trip; above it, the link rate and the time that the window
/// takes at it; beyond the buffer, losses.
#[test]
fn the_points_are_those_of_the_path() {
    let folder = folder_with("path.toml", PATH);
    let printed = expect(folder.path(), "curve path.toml --out path.svg", 0);
    let rows = rows(&printed);
    assert_eq!(rows.len(), 17, "{printed}");
    for [window, bdp, rate, rtt, again] in rows {
        let bits = window * 12_000.0;
        assert!((bdp - bits / 400_000.0).abs() < 0.006, "{window} packets are {bdp} BDP");
        // With an ACK for every second packet some packets wait, relatively more in small windows.
        let (expected, late) = ((bits / 40e3).min(10.0), 2.0 / window);
        assert!(rate <= 10.01 && rate <= expected * 1.01, "{window}: {rate} Mbit/s");
        assert!(rate >= expected * (1.0 - late) - 0.05, "{window}: {rate} Mbit/s");
        if again < 0.1 {
            // An odd packet waits for the delayed ACK timer, 40 ms.
            let (least, wait) = ((bits / 10e3).max(40.0), if window < 5.0 { 40.0 } else { 8.0 });
            assert!((least * 0.97..least + wait).contains(&rtt), "{window}: {rtt} ms");
        }
        // Path and buffer together hold 66 or 67 packets.
        if window <= 66.0 {
            assert!(again < 0.1, "{window}: {again} % sent again");
        } else {
            assert!(again > 0.5, "{window}: {again} % sent again");
        }
    }
    assert!(printed.contains("picture  path.svg"), "{printed}");
    let picture = fs::read_to_string(folder.path().join("path.svg")).expect("it was written");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    assert!(picture.contains("A path"));
}

#[test]
fn a_picture_is_replaced_only_by_force() {
    let folder = folder_with("path.toml", &PATH.replace("4 s", "2 s"));
    let at = folder.path();
    fs::write(at.join("knee.svg"), "mine").expect("a new file");
    let said = complaint(at, "curve path.toml", 2);
    assert!(said.contains("knee.svg exists") && said.contains("--force"), "{said}");
    assert_eq!(fs::read_to_string(at.join("knee.svg")).expect("still there"), "mine");
    expect(at, "curve path.toml --force", 0);
    assert!(fs::read_to_string(at.join("knee.svg")).expect("replaced").starts_with("<svg"));
}

/// Each refusal says what to write instead; nothing is written.
#[test]
fn what_has_no_curve_is_refused() {
    let refused = |text: &str, options: &str| {
        let folder = folder_with("path.toml", text);
        let said = complaint(folder.path(), &format!("curve path.toml{options}"), 2);
        assert!(!folder.path().join("knee.svg").exists());
        said
    };
    let said = refused(PATH, " --on kernel");
    assert!(said.contains("write --on sim,kernel"), "{said}");
    let said = refused(SMALL, "");
    assert!(said.contains("more than one flow"), "{said}");
    let said =
        refused(&PATH.replace("{ name = \"fixed\", window = \"20 packets\" }", "\"reno\""), "");
    assert!(said.contains("write cc = { name = \"fixed\" }"), "{said}");
    let steps =
        "rate = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"1 s\", rate = \"5 Mbit/s\" }]";
    let said =
        refused(&PATH.replace("rate = \"10 Mbit/s\"", steps).replace("\"1 BDP\"", "\"50 kB\""), "");
    assert!(said.contains("no link with a constant rate"), "{said}");
}
