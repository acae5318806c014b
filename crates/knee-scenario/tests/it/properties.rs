//! Tests with generated scenarios: a valid one resolves to itself, an invalid one is reported, and
//! nothing panics.

use crate::common::{FILES, FULL, assert_resolves_to_itself, read, with_files};
use knee_scenario::{Embedded, Errors, Override, StudyChanges, load_study};
use proptest::prelude::*;

/// An optional key.
fn maybe(key: &'static str, value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    proptest::option::of(value).prop_map(move |value| match value {
        Some(value) => format!("{key} = {value}\n"),
        None => String::new(),
    })
}

fn quantity(range: std::ops::Range<u64>, unit: &'static str) -> impl Strategy<Value = String> {
    (range, 0u32..1000).prop_map(move |(n, milli)| format!("\"{n}.{milli:03} {unit}\""))
}

fn whole(range: std::ops::Range<u64>, unit: &'static str) -> impl Strategy<Value = String> {
    range.prop_map(move |n| format!("\"{n} {unit}\""))
}

fn percent() -> impl Strategy<Value = String> {
    (0.0..100.0f64).prop_map(|part| format!("\"{part} %\""))
}

fn rate() -> impl Strategy<Value = String> {
    let steps = proptest::collection::vec((1u64..9_000, quantity(1..100, "Mbit/s")), 0..4);
    prop_oneof![
        quantity(1..2000, "Mbit/s"),
        Just("{ trace = \"lte.down\" }".to_string()),
        (1u64..4000).prop_map(|ms| format!(
            "{{ table = \"drive.csv\", time = \"t s\", value = \"rate Mbit/s\", \
             rows = \"run = 1\", offset = \"{} ms\" }}",
            ms - 1
        )),
        steps.prop_map(|steps| {
            let mut at = 0;
            let step = |(after, rate): (u64, String)| {
                at += after;
                format!(", {{ at = \"{at} ms\", rate = {rate} }}")
            };
            let steps: String = steps.into_iter().map(step).collect();
            format!("[{{ at = \"0 s\", rate = \"5 Mbit/s\" }}{steps}]")
        }),
    ]
}

fn aqm() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec!["\"codel\"", "\"fq-codel\"", "\"pie\"", "\"red\""])
            .prop_map(str::to_string),
        quantity(1..50, "ms").prop_map(|t| format!("{{ name = \"codel\", target = {t} }}")),
        quantity(0..50, "ms").prop_map(|t| format!("{{ name = \"threshold\", delay = {t} }}")),
        percent().prop_map(|p| format!("{{ name = \"red\", max_probability = {p} }}")),
    ]
}

fn loss() -> impl Strategy<Value = String> {
    let steps = (steady_loss(), 1u64..9, steady_loss()).prop_map(|(first, at, then)| {
        format!("[{{ at = \"0 s\", loss = {first} }}, {{ at = \"{at} s\", loss = {then} }}]")
    });
    prop_oneof![3 => steady_loss(), 1 => steps]
}

fn steady_loss() -> impl Strategy<Value = String> {
    prop_oneof![
        percent(),
        (1u64..100_000).prop_map(|n| format!("{{ every = {n} }}")),
        Just("{ file = \"lost.txt\" }".to_string()),
        percent().prop_map(|part| format!("{{ super_packets = {part} }}")),
        (percent(), percent())
            .prop_map(|(a, b)| format!("{{ good_to_bad = {a}, bad_to_good = {b} }}")),
    ]
}

fn buffer() -> impl Strategy<Value = String> {
    prop_oneof![quantity(100..9000, "kB"), quantity(100..300, "BDP"), whole(40..900, "packets")]
}

fn link() -> impl Strategy<Value = String> {
    let steps = (quantity(0..9, "ms"), quantity(0..9, "ms")).prop_map(|(first, then)| {
        format!("[{{ at = \"0 s\", amount = {first} }}, {{ at = \"1 s\", amount = {then} }}]")
    });
    let amount = prop_oneof![quantity(1..9, "ms"), steps];
    let jitter = (amount, any::<bool>(), percent()).prop_map(|(amount, reorder, share)| {
        format!("{{ amount = {amount}, reorder = {reorder}, share = {share} }}")
    });
    let breaker = (quantity(10..60, "s"), percent(), 1u64..9).prop_map(|(interval, loss, n)| {
        format!("{{ interval = {interval}, loss = {loss}, intervals = {n} }}")
    });
    (
        rate().prop_map(|rate| format!("rate = {rate}\n")),
        quantity(1..500, "ms").prop_map(|delay| format!("delay = {delay}\n")),
        maybe("jitter", jitter),
        maybe("buffer", buffer()),
        maybe("aqm", aqm()),
        maybe("loss", loss()),
        maybe("policer", Just("{ rate = \"3 Mbit/s\", burst = \"70 kB\" }".to_string())),
        maybe("down", Just("[{ from = \"1 s\", until = \"1.5 s\" }]".to_string())),
        maybe("hold", Just("[{ from = \"500 ms\", until = \"1 s\" }]".to_string())),
        maybe("circuit_breaker", breaker),
        maybe("ecn_bleached", any::<bool>().prop_map(|bleached| bleached.to_string())),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i, j, k)| [a, b, c, d, e, f, g, h, i, j, k].concat())
}

fn sizes() -> impl Strategy<Value = String> {
    prop_oneof![
        whole(1..1 << 40, "B"),
        Just("{ log = \"old/access.csv\" }".to_string()),
        (whole(1..1000, "B"), 0.0..9.0f64).prop_map(|(median, sigma)| {
            format!("{{ median = {median}, sigma = {sigma}, max = \"1 GB\" }}")
        }),
        (whole(1..1000, "B"), 0.1..9.0f64).prop_map(|(min, shape)| {
            format!("{{ min = {min}, shape = {shape}, max = \"1 GB\" }}")
        }),
    ]
}

fn workload() -> impl Strategy<Value = String> {
    let pages = ["{}", "{ objects = \"page.csv\" }", "{ http = \"multiplexed\" }"];
    let rule = proptest::sample::select(vec!["throughput", "bola", "dynamic"]);
    prop_oneof![
        whole(1..1 << 40, "B").prop_map(|size| format!("{{ file = {size} }}")),
        proptest::sample::select(pages.to_vec()).prop_map(|page| format!("{{ page = {page} }}")),
        Just("{ dash = { manifest = \"film.mpd\" } }".to_string()),
        (quantity(1..9, "s"), rule).prop_map(|(segment, rule)| {
            format!("{{ dash = {{ segment = {segment}, rule = \"{rule}\", media = \"60 s\" }} }}")
        }),
        (quantity(1..900, "ms"), sizes()).prop_map(|(interval, sizes)| {
            format!("{{ mix = {{ arrival_interval = {interval}, sizes = {sizes} }} }}")
        }),
    ]
}

fn program() -> impl Strategy<Value = String> {
    let ready = ["\"tcp\"", "\"udp\"", "\"line: it is {ready}\"", "\"after 1.5 s\""];
    let keys = (
        maybe("ready", proptest::sample::select(ready.to_vec()).prop_map_into()),
        maybe("bytes", whole(1..1 << 40, "B")),
        maybe("timeout", quantity(1..9, "s")),
    );
    keys.prop_map(|(a, b, c)| {
        let keys: Vec<String> = [a, b, c].iter().map(|key| key.trim().to_string()).collect();
        let given: Vec<&str> =
            keys.iter().map(String::as_str).filter(|key| !key.is_empty()).collect();
        let commands = "server = [\"s\", \"{port}\"], client = [\"c\", \"{peer}\", \"{ a: 1 }\"]";
        format!("{{ {} }}", [&[commands], &given[..]].concat().join(", "))
    })
}

/// A flow over one of two paths, or over both.
fn route() -> impl Strategy<Value = String> {
    let schedulers = ["\"sctc\"", "\"dems\"", "{ name = \"ecf\", beta = 0.5 }", "\"round-robin\""];
    let several = (
        proptest::sample::select(vec!["\"p\", \"q\"", "\"q\", \"p\""]),
        maybe("scheduler", proptest::sample::select(schedulers.to_vec()).prop_map_into()),
        maybe("reinjection", any::<bool>().prop_map(|on| on.to_string())),
        maybe("backup", Just("[\"p\"]".to_string())),
    );
    prop_oneof![
        // The other one is absent for a while, which a flow over one path does not take.
        Just("path = \"p\"\n".to_string()),
        several.prop_map(|(paths, a, b, c)| format!("paths = [{paths}]\n{a}{b}{c}")),
    ]
}

fn flow() -> impl Strategy<Value = String> {
    let cc = proptest::sample::select(vec![
        "\"cubic\"",
        "\"reno\"",
        "\"bbr\"",
        "\"bbr-low-delay\"",
        "{ name = \"bbr\", drain_to_target = true }",
    ]);
    let first = (cc, route()).prop_map(|(cc, route)| format!("cc = {cc}\n{route}"));
    (
        first,
        maybe("count", (1u64..6).prop_map(|n| n.to_string())),
        prop_oneof![3 => maybe("workload", workload()), 1 => maybe("program", program())],
        maybe("start", quantity(0..9, "s")),
        maybe("start_interval", quantity(0..2, "s")),
        maybe("start_jitter", quantity(0..5, "s")),
        maybe("stop", quantity(40..50, "s")),
        maybe("mss", whole(64..3000, "B")),
        maybe("ack_every", (1u64..9).prop_map(|n| n.to_string())),
        maybe("receive_window", whole(4..1000, "kB")),
        maybe("pacing", proptest::sample::select(vec!["\"on\"", "\"off\""]).prop_map_into()),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i, j, k)| [a, b, c, d, e, f, g, h, i, j, k].concat())
}

prop_compose! {
    fn scenario()(
        seed in 0..=i64::MAX as u64,
        links in proptest::collection::vec(link(), 1..4),
        flows in proptest::collection::vec(flow(), 1..4),
        back in quantity(0..100, "ms"),
    ) -> String {
        let mut text = format!("duration = \"60 s\"\nseed = {seed}\n");
        let mut forward = Vec::new();
        for (number, link) in links.iter().enumerate() {
            text += &format!("[link.l{number}]\n{link}");
            forward.push(format!("\"l{number}\""));
        }
        let forward = forward.join(", ");
        for path in ["p", "q"] {
            text += &format!("[path.{path}]\nforward = [{forward}]\nreverse_delay = {back}\n");
        }
        text += "tunnel = \"under\"\n";
        text += "absent = [{ from = \"1 s\", until = \"2 s\" }, { from = \"3 s\" }]\n";
        for (number, flow) in flows.iter().enumerate() {
            text += &format!("[[flow]]\nname = \"f{number}\"\n{flow}");
        }
        text + "[[claim]]\nsays = \"x\"\nmeasure = \"goodput\"\nof = \"f0\"\nat_least = \"1 Mbit/s\"\n"
    }
}

/// Asserts that every place lies in its text and every problem has a message.
fn assert_told(errors: &Errors) {
    assert!(!errors.problems.is_empty());
    for problem in &errors.problems {
        assert!(errors.source_of(problem).text.get(problem.span.clone()).is_some());
        let (line, column) = errors.line_column(problem);
        assert!(line > 0 && column > 0);
    }
    assert!(!errors.to_string().is_empty());
}

/// Tokens that make a text nearly valid.
fn token() -> impl Strategy<Value = String> {
    let tokens = [
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        ".",
        "\n",
        "\u{e4}",
        "\0",
        "[[flow]]",
        "[link.x]",
        "[run]",
        "count = 99999",
        "\"18446744073709551615 ns\"",
        "\"1 BDP\"",
        "\"1e9 s\"",
        "nan",
        "inf",
        "-1",
        "9223372036854775808",
        "\"100000 s\"",
        "2024-01-01",
        "[[[[",
        "a.b.c = 1",
        "\"9999999999999 packets\"",
        "\"99999999999999999999999999 %\"",
    ];
    proptest::sample::select(tokens.to_vec()).prop_map(str::to_string)
}

fn spoil(text: &str, edits: &[(usize, usize, String)]) -> String {
    let mut spoilt: Vec<char> = text.chars().collect();
    for (at, length, token) in edits {
        let at = at % (spoilt.len() + 1);
        let end = (at + length).min(spoilt.len());
        spoilt.splice(at..end, token.chars());
    }
    spoilt.into_iter().collect()
}

proptest! {
    #[test]
    fn right_scenarios_resolve_to_themselves(text in scenario()) {
        let scenario = read(&text);
        assert_resolves_to_itself(&scenario);
        for flow in 0..scenario.flows.len() {
            prop_assert!(scenario.flow_base_rtt(flow) > scenario.links[0].config.delay.base.0[0].1);
        }
    }

    #[test]
    fn spoilt_scenarios_are_told(
        edits in proptest::collection::vec((any::<usize>(), 0usize..30, token()), 1..4)
    ) {
        match with_files(&spoil(FULL, &edits), FILES, &[]) {
            Ok(scenario) => assert_resolves_to_itself(&scenario),
            Err(errors) => assert_told(&errors),
        }
    }

    #[test]
    fn any_text_is_told(text in "\\PC{0,200}|([a-z]{1,8} ?= ?[\"\\[{0-9a-z]{0,9}\n?){0,9}") {
        if let Err(errors) = with_files(&text, &[], &[]) {
            assert_told(&errors);
        }
        if let Err(errors) = load_study(&Embedded(&[("s.toml", text.as_bytes())]), "s.toml", &[], &StudyChanges::default()) {
            assert_told(&errors);
        }
    }

    #[test]
    fn any_override_is_told(
        key in "(link|flow|path|claim|transport|seed|duration)(\\.[a-z.]{0,9}){0,3}|\\PC{1,9}",
        value in "\\PC{0,20}|[0-9]{1,5} ?(s|Mbit/s|BDP)?",
    ) {
        if let Ok(given) = format!("{key}={value}").parse::<Override>()
            && let Err(errors) = with_files(FULL, FILES, &[given])
        {
            assert_told(&errors);
        }
    }
}
