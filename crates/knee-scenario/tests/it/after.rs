//! Flows that wait for the transfers of others: what is refused, and what to write instead.

use knee_scenario::{Embedded, Source, parse};
use knee_workload::{Arrivals, Workload};
use std::sync::Arc;

const NETWORK: &str = r#"duration = "10 s"

[link.wire]
rate = "10 Mbit/s"
delay = "10 ms"

[path.main]
forward = ["wire"]
reverse_delay = "10 ms"
"#;

const ARRIVALS: &str = "arrival_interval = \"1 s\", ";

/// A flow: its name, its further keys, and its workload.
fn flow(name: &str, keys: &str, workload: &str) -> String {
    format!("\n[[flow]]\nname = \"{name}\"\ncc = \"reno\"\n{keys}\nworkload = {{ {workload} }}\n")
}

fn mix(arrivals: &str) -> String {
    format!("mix = {{ {arrivals}sizes = \"30 kB\" }}")
}

fn read(flows: &[String]) -> Result<knee_scenario::Scenario, knee_scenario::Errors> {
    let text = format!("{NETWORK}{}", flows.concat());
    parse(&text, &Source { name: "case.toml", loader: &Embedded(&[]) }, &[])
}

fn complaint(flows: &[String]) -> String {
    read(flows).err().unwrap_or_else(|| panic!("{flows:?} is accepted")).to_string()
}

/// Groups wait flow by flow, and the resolved scenario reads back as the same.
#[test]
fn the_arrivals_are_those_of_the_other_mix() {
    let flows = [
        flow("answers", "after = \"fetches\"\ncount = 2\nstart = \"2 s\"", &mix("")),
        flow("fetches", "count = 2\nstart = \"2 s\"\nstart_jitter = \"1 s\"", &mix(ARRIVALS)),
    ];
    let scenario = read(&flows).unwrap();
    let after: Vec<Option<usize>> = scenario.flows.iter().map(|flow| flow.after).collect();
    assert_eq!(after, [Some(2), Some(3), None, None]);
    for (one, other) in [(0, 2), (1, 3)] {
        let (one, other) = (&scenario.flows[one], &scenario.flows[other]);
        let (Workload::Mix(one_mix), Workload::Mix(other_mix)) = (&one.workload, &other.workload)
        else {
            panic!("both are mixes")
        };
        assert_eq!(one_mix.arrivals, Arrivals::After(Arc::new(other_mix.clone())));
        assert_eq!(one.start, other.start);
    }
    let again =
        parse(&scenario.resolved, &Source { name: "again.toml", loader: &Embedded(&[]) }, &[]);
    assert_eq!(again.unwrap().flows, scenario.flows);
}

#[test]
fn circles_are_named() {
    let after = |name: &str, other: &str| flow(name, &format!("after = \"{other}\""), &mix(""));
    let error = complaint(&[after("a", "b"), after("b", "c"), after("c", "a")]);
    let expected = "the flow \"a\" waits for \"b\", which waits for \"c\", which waits for \"a\"";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("remove after from one of them"), "{error}");
    assert_eq!(error.matches("waits for \"b\"").count(), 1, "{error}");
    let error = complaint(&[after("a", "a")]);
    assert!(error.contains("the flow \"a\" waits for \"a\""), "{error}");
    // A chain that leads to a circle is in none.
    let error = complaint(&[after("x", "a"), after("a", "b"), after("b", "a")]);
    assert!(!error.contains("the flow \"x\""), "{error}");
    let error = complaint(&[after("x", "b"), after("a", "b"), after("b", "a")]);
    assert!(error.contains("the flow \"a\" waits for \"b\", which waits for \"a\""), "{error}");
    assert_eq!(error.matches("waits for \"b\"").count(), 1, "{error}");
}

/// However the groups are ordered, those of a chain have the arrivals of its first.
#[test]
fn a_chain_has_the_arrivals_of_its_first_mix() {
    let after = |name: &str, other: &str| flow(name, &format!("after = \"{other}\""), &mix(""));
    let first = flow("first", "", &mix(ARRIVALS));
    let flows = [after("last", "middle"), first, after("middle", "first")];
    let scenario = read(&flows).unwrap();
    let mixes = scenario.flows.iter().map(|flow| match &flow.workload {
        Workload::Mix(mix) => mix,
        other => panic!("{other:?} is no mix"),
    });
    let [last, first, middle] = mixes.collect::<Vec<_>>()[..] else { panic!("three flows") };
    let waits = Arrivals::After(Arc::new(first.clone()));
    assert_eq!((&last.arrivals, &middle.arrivals), (&waits, &waits));
    let after: Vec<Option<usize>> = scenario.flows.iter().map(|flow| flow.after).collect();
    assert_eq!(after, [Some(2), None, Some(1)]);
}

/// Flows of one name hide a circle: each is followed to the first of that name, which is in none.
#[test]
fn a_circle_through_flows_of_one_name_is_refused() {
    let after = |name: &str, other: &str| flow(name, &format!("after = \"{other}\""), &mix(""));
    let free = flow("x", "", &mix(ARRIVALS));
    let [a, b, d] = [after("a", "b"), after("b", "d"), after("d", "a")];
    let error = complaint(&[free, after("a", "x"), a, b, after("d", "x"), d]);
    assert!(error.contains("two flows are named \"a\""), "{error}");
}

#[test]
fn what_cannot_wait_is_refused() {
    let fetches = flow("fetches", "", &mix(ARRIVALS));
    let after = "after = \"fetches\"";
    for (flows, expected) in [
        (
            vec![flow("a", "after = \"fetchs\"", &mix("")), fetches.clone()],
            ["there is no flow \"fetchs\" to wait for", "did you mean \"fetches\"?"],
        ),
        // Not itself, although it is the only one.
        (
            vec![flow("a", "after = \"b\"", &mix(""))],
            ["there is no flow \"b\" to wait for", "there is none"],
        ),
        (
            vec![flow("a", after, "file = \"1 MB\""), fetches.clone()],
            ["a mix waits for a mix, and a file for a file", "or remove after"],
        ),
        (
            vec![flow("a", &format!("{after}\ncount = 3"), &mix("")), fetches.clone()],
            [
                "the count of \"a\" is 3, and that of \"fetches\", for which it waits, 1",
                "write count = 1",
            ],
        ),
        (
            vec![flow("a", after, &mix(ARRIVALS)), fetches.clone()],
            ["has the arrivals of the flow for which it waits", "remove arrival_interval"],
        ),
        (
            vec![flow("a", after, &mix("count = 3, ")), fetches.clone()],
            ["has the arrivals of the flow for which it waits", "count and process"],
        ),
        (
            vec![flow("a", &format!("{after}\nstart = \"1 s\""), &mix("")), fetches.clone()],
            ["\"a\" does not start with \"fetches\"", "write the same start"],
        ),
        (
            vec![
                flow("a", after, &mix("")),
                flow("fetches", "count = 2\nstart = \"1 s\"", &mix(ARRIVALS)),
            ],
            ["the count of \"a\" is 1, and that of \"fetches\"", "write count = 2"],
        ),
    ] {
        let error = complaint(&flows);
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        // Also where what is meant has its default.
        assert!(!error.contains("case.toml:1:1"), "{error}");
    }
    // A mistake elsewhere is not reported again.
    let wrong = fetches.replace("reno", "renoo");
    let errors = read(&[flow("a", after, &mix("")), wrong]).err().unwrap();
    assert_eq!(errors.problems.len(), 1, "{errors}");
    let error = complaint(&[flow("a", "", &mix(""))]);
    assert!(error.contains("the mix has no arrival times"), "{error}");
}
