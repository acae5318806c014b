//! Links with back-pressure: what is refused, and what to write instead.

use knee_link::Pause;
use knee_scenario::{Embedded, Override, Source, parse};

const SWITCH: &str = r#"duration = "1 s"

[link.host]
rate = "100 Mbit/s"
delay = "1 ms"
buffer = "64 kB"

[link.switch]
rate = "10 Mbit/s"
delay = "1 ms"
buffer = "100 kB"
pause = { at = "80 %", until = "50 %" }

[path.main]
forward = ["host", "switch"]
reverse_delay = "2 ms"

[[flow]]
cc = "cubic"
"#;

fn read(text: &str, set: &[(&str, &str)]) -> Result<knee_scenario::Scenario, String> {
    let set: Vec<Override> = set.iter().map(|(key, value)| Override::new(key, value)).collect();
    let source = Source { name: "case.toml", loader: &Embedded(&[]) };
    parse(text, &source, &set).map_err(|errors| errors.to_string())
}

#[test]
fn parts_of_the_buffer_are_lengths_of_the_queue() {
    let pause = |set: &[(&str, &str)]| {
        let scenario = read(SWITCH, set).unwrap();
        let [host, switch] = &scenario.links[..] else { panic!("there are two links") };
        assert!(host.config.pausable && !switch.config.pausable);
        let again = read(&scenario.resolved, &[]).unwrap();
        assert_eq!(again.links, scenario.links);
        switch.config.pause.unwrap()
    };
    assert_eq!(pause(&[]), Pause { at: 80_000, until: 50_000 });
    let packets = ("link.switch.buffer", "25 packets");
    assert_eq!(pause(&[packets]), Pause { at: 20, until: 12 });
    let all = ("link.switch.pause", "{ at = \"100 %\", until = \"0 %\" }");
    assert_eq!(pause(&[packets, all]), Pause { at: 25, until: 0 });
}

#[test]
fn impossible_pauses_are_refused() {
    let pause = |value: &'static str| ("link.switch.pause", value);
    for (set, expected) in [
        (
            vec![pause("{ at = \"50 %\", until = \"80 %\" }")],
            ["a pause ends at 80 % of the buffer, and begins at 50 %", "write an until below at"],
        ),
        (
            vec![pause("{ at = \"50 %\", until = \"50 %\" }")],
            ["a pause ends at 50 % of the buffer", "write an until below at"],
        ),
        (vec![pause("{ at = \"50 %\" }")], ["until", "add until"]),
        (
            vec![("link.switch.buffer", "unlimited")],
            ["a queue without a limit never fills", "buffer = \"64 kB\""],
        ),
        (
            vec![("link.switch.buffer", "3 kB")],
            ["80 % of the buffer is less than two segments", "write a larger buffer"],
        ),
        (
            vec![("link.switch.aqm", "codel")],
            ["a link that asks for pauses drops nothing early", "remove aqm, or remove pause"],
        ),
        (
            vec![("path.main.forward", "[\"switch\"]")],
            ["\"switch\" is the first link of path \"main\"", "as in [\"host\", \"switch\"]"],
        ),
        (
            vec![("link.host.aqm", "red")],
            ["\"switch\" asks \"host\" to pause, which has an AQM", "write aqm = \"codel\""],
        ),
        (
            vec![("link.host.aqm", "codel"), ("link.host.device", "16 packets")],
            ["which has a device queue", "remove device there"],
        ),
        (
            vec![("link.host.pause", "{ at = \"80 %\", until = \"50 %\" }")],
            ["\"host\" is the first link of path \"main\"", "add the sending host's own link"],
        ),
    ] {
        let error = read(SWITCH, &set).expect_err(&format!("{set:?} is accepted"));
        assert!(expected.iter().all(|part| error.contains(part)), "{set:?}: {error}");
    }
    let without_rate = SWITCH.replace("rate = \"100 Mbit/s\"\n", "");
    let without_rate = without_rate.replace("buffer = \"64 kB\"\n", "");
    let error = read(&without_rate, &[]).unwrap_err();
    assert!(error.contains("has no rate, so that nothing waits in it"), "{error}");
    let without_rate =
        SWITCH.replace("rate = \"10 Mbit/s\"\n", "").replace("buffer = \"100 kB\"\n", "");
    let error = read(&without_rate, &[]).unwrap_err();
    assert!(error.contains("has no queue and does not take pause"), "{error}");
}

#[test]
fn circles_of_pauses_are_named() {
    let ring = r#"duration = "1 s"

[link.host]
rate = "100 Mbit/s"

[link.a]
rate = "10 Mbit/s"
delay = "1 ms"
buffer = "100 kB"
pause = { at = "80 %", until = "50 %" }

[link.b]
rate = "10 Mbit/s"
delay = "1 ms"
buffer = "100 kB"
pause = { at = "80 %", until = "50 %" }

[path.one]
forward = ["host", "a", "b"]
reverse_delay = "2 ms"

[path.two]
forward = ["host", "b", "a"]
reverse_delay = "2 ms"

[[flow]]
path = "one"
cc = "cubic"
"#;
    let error = read(ring, &[]).unwrap_err();
    assert!(error.contains("\"a\" pauses \"b\" pauses \"a\""), "{error}");
    assert!(error.contains("remove pause from one of them"), "{error}");
    // Without the second path they are in a row.
    assert!(read(ring, &[("path.two.forward", "[\"host\", \"b\"]")]).is_ok());
}
