//! What the kernel cannot be set to is refused, with its place and what to write
//! instead: no key of a flow is read by the simulator and ignored here.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use knee_kernel::{KernelError, check_scenario};
use knee_scenario::{Embedded, Override, Scenario, Source, parse};

const TEXT: &str = r#"
name = "Two links"
duration = "1 s"

[link.a]
rate = "10 Mbit/s"
delay = "10 ms"

[link.b]
rate = "10 Mbit/s"
delay = "20 ms"

[path.a]
forward = ["a"]
reverse_delay = "10 ms"

[path.b]
forward = ["b"]
reverse_delay = "20 ms"

[[flow]]
name = "flow"
path = "a"
cc = "cubic"
"#;

const TWO_PATHS: &str = r#"paths = ["a", "b"]
scheduler = "blest""#;

fn scenario(text: &str, key: &str, value: &str) -> Scenario {
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    let set = Override::new(&format!("flow.flow.{key}"), value);
    parse(text, &source, &[set]).unwrap_or_else(|errors| panic!("{key} = {value}: {errors}"))
}

fn assert_refused(text: &str, key: &str, value: &str) {
    let place = format!("flow \"flow\", {key}");
    match check_scenario(&scenario(text, key, value)) {
        Err(KernelError::Unsupported { place: found, advice, .. }) => {
            assert_eq!(found, place);
            assert!(!advice.is_empty(), "{key}");
        }
        other => panic!("{key} = {value}: {other:?}"),
    }
}

/// Everything that a flow's transport can be set to and Linux's cannot.
#[test]
fn settings_of_one_path() {
    let settings = [
        ("header", "41 B"),
        ("mss", "80 B"),
        ("initial_window", "11"),
        ("ack_every", "3"),
        ("ack_delay", "20 ms"),
        ("min_rto", "300 ms"),
        ("max_burst", "32 KiB"),
        ("recovery", "quic"),
        ("sampler", "ns3-3.35"),
    ];
    check_scenario(&scenario(TEXT, "ack_every", "2")).unwrap();
    for (key, value) in settings {
        assert_refused(TEXT, key, value);
    }
}

#[test]
fn settings_of_several_paths() {
    let text = TEXT.replace("path = \"a\"", TWO_PATHS);
    check_scenario(&scenario(&text, "reinjection", "true")).unwrap();
    for (key, value) in [("reinjection", "false"), ("scheduler", "minrtt"), ("backup", "[\"b\"]")] {
        assert_refused(&text, key, value);
    }
}
