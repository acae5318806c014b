//! No key of a scenario is used by another ground and ignored here: for each key of the schema, a
//! value is refused, changes the settings, or is what QUIC does anyway.

use super::{QuicError, flows, paths};
use knee_link::Config;
use knee_scenario::{Embedded, Override, Scenario, Source, json_schema, parse};
use knee_testbed::links_and_routes;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

const ONE_PATH: &str = r#"
name = "test"
duration = "1 s"

[link.a]
rate = "10 Mbit/s"
delay = "10 ms"

[link.b]
rate = "10 Mbit/s"
delay = "20 ms"
aqm = "codel"

[link.back]

[link.d]
rate = "5 Mbit/s"
delay = "10 ms"

[path.a]
forward = ["a"]
reverse_delay = "10 ms"

[path.b]
forward = ["b"]
reverse = ["back"]

[path.d]
forward = ["b", "d"]
reverse_delay = "10 ms"

[[flow]]
name = "flow"
count = 2
path = "a"
cc = "cubic"
"#;

fn two_paths() -> String {
    ONE_PATH.replace("path = \"a\"\n", "paths = [\"a\", \"b\"]\nscheduler = \"blest\"\n")
}

use Verdict::{Anyway, Applied, Refused};

/// What happens to a key.
#[derive(Clone, Copy)]
enum Verdict {
    /// It changes the settings of QUIC, the application or the emulator.
    Applied,
    /// QUIC does so anyway.
    Anyway,
    /// The scenario is refused, at this key of a flow.
    Refused(&'static str),
}

/// Transport settings of both ends, in `[transport]` and in a flow.
const TRANSPORT: [(&str, &str, Verdict); 21] = [
    ("mss", "1300 B", Applied),
    ("mss", "1000 B", Refused("mss")),
    ("header", "40 B", Applied),
    ("initial_window", "11", Applied),
    ("acks", "quic", Anyway),
    ("ack_every", "3", Refused("acks")),
    ("ack_bytes", "30 kB", Refused("acks")),
    ("ack_frequency", "{ per_round = 2 }", Refused("acks")),
    ("ack_delay", "20 ms", Refused("acks")),
    ("quick_acks", "8", Refused("acks")),
    ("receiver", "{ conceal_loss = true }", Refused("receiver")),
    ("receive_window", "100 kB", Applied),
    ("pacing", "on", Applied),
    ("pacing", "off", Applied),
    ("ecn", "true", Refused("ecn")),
    ("sampler", "ns3-3.35", Refused("sampler")),
    ("recovery", "quic", Applied),
    ("recovery", "tcp", Applied),
    ("min_rto", "300 ms", Refused("min_rto")),
    ("max_burst", "32 KiB", Applied),
    ("send_jitter", "1 ms", Refused("send_jitter")),
];

/// A value for each other key, by its name for `--set`.
const OTHERS: [(&str, &str, Verdict); 30] = [
    ("seed", "2", Applied),
    ("start_jitter", "500 ms", Applied),
    ("link.a.rate", "5 Mbit/s", Applied),
    ("link.a.delay", "5 ms", Applied),
    ("link.a.jitter", "{ amount = \"1 ms\", share = \"5 %\" }", Applied),
    ("link.a.buffer", "20 packets", Applied),
    ("link.a.aqm", "pie", Applied),
    ("link.b.ecn", "true", Applied),
    ("link.a.loss", "1 %", Applied),
    ("link.a.policer", "{ rate = \"5 Mbit/s\", burst = \"15 kB\" }", Applied),
    ("link.a.down", "[{ from = \"100 ms\", until = \"200 ms\" }]", Applied),
    ("link.a.hold", "[{ from = \"100 ms\", until = \"200 ms\" }]", Applied),
    ("link.b.device", "20 packets", Applied),
    ("link.a.circuit_breaker", "{ interval = \"1 s\" }", Applied),
    ("link.a.ecn_bleached", "true", Applied),
    ("link.d.pause", "{ at = \"80 %\", until = \"50 %\" }", Applied),
    ("path.a.forward", "[\"a\", \"b\"]", Applied),
    ("path.a.reverse_delay", "20 ms", Applied),
    ("path.b.reverse", "[\"a\"]", Applied),
    ("path.a.tunnel", "home", Refused("path")),
    ("flow.flow.name", "other", Applied),
    ("flow.flow.count", "3", Applied),
    ("flow.flow.path", "b", Applied),
    ("flow.flow.cc", "reno", Applied),
    ("flow.flow.program", "{ server = [\"s\"], client = [\"c\"] }", Refused("program")),
    ("flow.flow.workload", "{ file = \"1 MB\" }", Applied),
    ("flow.flow.start", "100 ms", Applied),
    ("flow.flow.start_interval", "100 ms", Applied),
    ("flow.flow.start_jitter", "500 ms", Applied),
    ("flow.flow.stop", "500 ms", Applied),
];

/// Keys of a flow over several paths.
const SEVERAL: [(&str, &str, Verdict); 7] = [
    ("path.a.absent", "[{ from = \"100 ms\" }]", Refused("path")),
    ("flow.flow.paths", "[\"b\", \"a\"]", Applied),
    ("flow.flow.scheduler", "minrtt", Applied),
    ("flow.flow.reinjection", "false", Applied),
    ("flow.flow.backup", "[\"b\"]", Applied),
    ("flow.flow.backup", "[\"a\"]", Applied),
    ("flow.flow.workload", "page", Applied),
];

/// Keys that are not settings of hosts: the run uses `duration` and `sample_interval`, the records
/// use the others.
const OF_EVERY_GROUND: [&str; 5] = ["name", "duration", "sample_interval", "warmup", "claim"];

fn scenario(text: &str, key: &str, value: &str) -> Scenario {
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    parse(text, &source, &[Override::new(key, value)])
        .unwrap_or_else(|errors| panic!("{key} = {value}: {errors}"))
}

/// All that a run takes from a scenario: settings, routes and applications as text; links with
/// their streams.
type Resolved = (String, Vec<(Config, ChaCha8Rng)>);

fn resolved(scenario: &Scenario) -> Result<Resolved, QuicError> {
    let (links, routes) = links_and_routes(scenario);
    let settings = (flows(scenario)?, paths(scenario));
    // The applications take these from the scenario itself.
    let flows = scenario.flows.iter();
    let flows: Vec<_> =
        flows.map(|flow| (&flow.paths, &flow.workload, flow.start, flow.stop)).collect();
    Ok((format!("{settings:?} {routes:?} {flows:?}"), links))
}

fn assert_verdict(text: &str, key: &str, value: &str, verdict: Verdict) {
    let plain = resolved(&scenario(text, "seed", "1")).unwrap();
    match (resolved(&scenario(text, key, value)), verdict) {
        (Ok(changed), Applied) => assert!(changed != plain, "{key} = {value} is ignored"),
        (Ok(changed), Anyway) => assert!(changed == plain, "{key} = {value} changes settings"),
        (Err(QuicError::Unsupported { place, advice, .. }), Refused(at)) => {
            assert_eq!(place, format!("flow \"flow\", {at}"), "{key} = {value}");
            assert!(!advice.is_empty(), "{key} = {value}");
        }
        (other, _) => panic!("{key} = {value}: {:?}", other.map(|resolved| resolved.0)),
    }
}

#[test]
fn each_value_is_carried_or_refused() {
    for (key, value, verdict) in TRANSPORT {
        assert_verdict(ONE_PATH, &format!("flow.flow.{key}"), value, verdict);
        assert_verdict(ONE_PATH, &format!("transport.{key}"), value, verdict);
    }
    OTHERS.iter().for_each(|(key, value, verdict)| assert_verdict(ONE_PATH, key, value, *verdict));
    let text = two_paths();
    SEVERAL.iter().for_each(|(key, value, verdict)| assert_verdict(&text, key, value, *verdict));
}

#[test]
fn flows_that_wait_are_refused() {
    let file = ONE_PATH.replace("count = 2\n", "workload = { file = \"1 MB\" }\n");
    let other = file.split_once("[[flow]]").unwrap().1.replace("\"flow\"", "\"other\"");
    assert_verdict(&format!("{file}[[flow]]{other}"), "flow.flow.after", "other", Refused("after"));
}

#[test]
fn a_ready_made_path_is_its_links() {
    let own = "forward = [\"a\"]\nreverse_delay = \"10 ms\"\n";
    assert!(ONE_PATH.contains(own));
    let ready = ONE_PATH.replace(own, "like = \"leo\"\n");
    let [plain, ready] =
        [ONE_PATH, &ready].map(|text| resolved(&scenario(text, "seed", "1")).unwrap());
    assert!(ready.1 != plain.1, "the links are those of the path before");
}

/// The list covers exactly the keys of the schema.
#[test]
fn each_key_of_the_schema_has_a_value_here() {
    let schema = json_schema();
    let keys = |table: &str| -> BTreeSet<String> {
        let table = if table.is_empty() { &schema } else { &schema["$defs"][table] };
        table["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let examples = OTHERS.iter().chain(&SEVERAL).map(|(key, ..)| *key);
    let transport: BTreeSet<String> = TRANSPORT.map(|(key, ..)| key.to_owned()).into();
    let under = |head: &str| -> BTreeSet<String> {
        let under = examples.clone().map(|key| key.split('.').collect::<Vec<_>>());
        let under = under.filter(|parts| parts.len() == 3 && parts[0] == head);
        under.map(|parts| parts[2].to_owned()).collect()
    };
    let mut top: BTreeSet<String> =
        examples.clone().filter(|key| !key.contains('.')).map(str::to_owned).collect();
    top.extend(OF_EVERY_GROUND.map(str::to_owned));
    top.extend(["transport", "link", "path", "flow"].map(str::to_owned));
    assert_eq!(top, keys(""));
    assert_eq!(transport, keys("TransportFile"));
    assert_eq!(under("link"), keys("LinkFile"));
    let mut path = under("path");
    // Becomes links as the scenario is read: `a_ready_made_path_is_its_links`.
    path.insert("like".to_owned());
    assert_eq!(path, keys("PathFile"));
    let mut flow = under("flow");
    // Needs another flow: `flows_that_wait_are_refused`.
    flow.insert("after".to_owned());
    flow.extend(transport);
    assert_eq!(flow, keys("FlowFile"));
}
