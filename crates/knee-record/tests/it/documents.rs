//! Tests the summary against its schema, and schemas and documents against the code.

use crate::common::{flow, records, with_link};
use knee_record::{
    Better, CONNECTION_COLUMNS, Comparison, ConnectionColumn, LinkSample, Manifest, Meter, Outcome,
    RepeatSummary, Summary, TwoCompared, Verdict, json_schemas, sweep_measures, tolerances,
};
use knee_scenario::measure::{self, Declared, MEASURES};
use knee_scenario::{Claim, Measure, Scenario, Statistic};
use knee_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn claim(measure: Measure, of: &str, at_most: f64) -> Claim {
    Claim { id: "A1".to_string(), at_most: Some(at_most), ..crate::common::claim(measure, of) }
}

fn summary(seed: u64) -> Summary {
    let scenario = Scenario {
        name: "Example".to_string(),
        seed,
        warmup: Time::from_secs(1),
        claims: vec![
            claim(Measure::Rtt(Statistic::P50), "a", 0.08),
            claim(Measure::Drops, "nowhere", 1.0),
        ],
        ..Scenario::default()
    };
    let records = records(&[flow("a", 0, |t| 1e6 * t), flow("b", 0, |t| 2e5 * t)]);
    let records = with_link(records, |t| LinkSample {
        queue_bytes: (t * 1000.0) as u64,
        departed_bytes: (t * 1.2e6) as u64,
        used_bytes: (t * 1.2e6) as u64,
        capacity_bytes: (t * 1.25e6) as u64,
        ..LinkSample::default()
    });
    Summary::new(&scenario, "sim", &records)
}

fn schema(file: &str) -> Value {
    let known = json_schemas();
    let (_, schema) = known.iter().find(|(name, _)| *name == file).unwrap();
    serde_json::to_value(schema).unwrap()
}

#[track_caller]
fn validates(file: &str, document: Value) {
    let errors: Vec<String> = jsonschema::validator_for(&schema(file))
        .unwrap()
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn documents_validate_against_their_schemas() {
    let (one, other) = (summary(1), summary(2));
    let records = knee_record::Records::default();
    let manifest = Manifest::new(&one, &records, vec![], &[], &Meter::start().stop());
    validates("summary.schema.json", json!(one));
    validates("manifest.schema.json", json!(manifest));
    validates("repeat.schema.json", json!(RepeatSummary::new(&[one.clone(), other.clone()])));
    let two = TwoCompared { comparison: Comparison::new(&one, &other), measures: vec![] };
    validates("comparison.schema.json", json!(two));
}

#[test]
fn the_summary_schema_refuses_what_is_no_summary() {
    let validator = jsonschema::validator_for(&schema("summary.schema.json")).unwrap();
    let good = json!(summary(1));
    assert!(validator.is_valid(&good));
    for (pointer, wrong) in [
        ("/verdict", json!("fine")),
        ("/flows/0/sent_bytes", json!(-1)),
        ("/flows/0/rtt_us", json!(60_000)),
        ("/claims/0/outcome", json!("perhaps")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(!validator.is_valid(&bad), "{pointer}");
    }
    let mut bad = good.clone();
    bad["flows"][0].as_object_mut().unwrap().remove("goodput_bps");
    assert!(!validator.is_valid(&bad), "a missing key");
}

/// The keys that external readers rely on.
#[test]
fn the_summary_has_its_promised_keys() {
    let summary = json!(summary(1));
    let has = |value: &Value, keys: &[&str]| {
        for key in keys {
            assert!(value.get(key).is_some(), "{key}");
        }
    };
    has(
        &summary,
        &["schema", "name", "ground", "seed", "verdict", "flows", "links", "measures", "claims"],
    );
    let flow = &summary["flows"][0];
    has(
        flow,
        &[
            "name",
            "index",
            "cc",
            "goodput_bps",
            "rtt_us",
            "retransmit_ratio",
            "sent_bytes",
            "retransmitted_bytes",
            "delivered_bytes",
            "completion_us",
        ],
    );
    has(&flow["rtt_us"], &["min", "p5", "p50", "p95", "p99", "max", "mean"]);
    has(&summary["links"][0], &["name", "utilisation", "queue_bytes", "drops"]);
    has(
        &summary["claims"][0],
        &["id", "says", "expected", "measured", "outcome", "finding", "source"],
    );
    assert_eq!(summary["schema"], "knee-summary/1");
    assert_eq!(flow["goodput_bps"], 8e6);
    assert_eq!(flow["rtt_us"]["p50"], 60_000.0);
    assert_eq!(summary["links"][0]["utilisation"], 0.96);
}

#[test]
fn claims_in_the_summary() {
    let summary = summary(1);
    let [measured, absent] = &summary.claims[..] else { panic!("two claims") };
    assert_eq!((measured.measured, measured.measured_text.as_str()), (Some(0.06), "60 ms"));
    assert_eq!(measured.expected, "at most 80 ms");
    assert!(measured.agrees && measured.outcome.to_string() == "holds");
    assert_eq!((absent.measured, absent.outcome.to_string().as_str()), (None, "not tested here"));
    assert!(!absent.agrees && absent.measured_text.contains("nowhere"));
}

#[test]
fn repeats_and_comparison_name_their_numbers() {
    let (one, mut other) = (summary(1), summary(2));
    other.flows[0].goodput_bps = Some(4e6);
    other.links.clear();
    let repeat = RepeatSummary::new(&[one.clone(), other.clone()]).unwrap();
    let goodput = repeat.measures["flow.a[0].goodput_bps"];
    assert_eq!((goodput.runs, goodput.mean), (2, 6e6));
    assert_eq!((repeat.claims[0].holds, repeat.claims[1].not_tested), (2, 2));
    let comparison = Comparison::new(&one, &other);
    let named = |name: &str| comparison.differences.iter().find(|d| d.measure == name).unwrap();
    let goodput = named("flow.a[0].goodput_bps");
    assert_eq!((goodput.absolute, goodput.relative), (-4e6, Some(-0.5)));
    assert_eq!(named("flow.b[0].goodput_bps").absolute, 0.0);
    assert!(comparison.only_before.contains(&"link.bottleneck.utilisation".to_string()));
    assert!(comparison.only_after.is_empty());
}

/// Numbers of an invalid run, of one that the host made, and of one that was cut short are no evidence.
#[test]
fn repeats_are_those_that_can_be_used() {
    let whole = [summary(1), summary(2)];
    let mut cut = summary(3);
    cut.verdict_reason = Some("interrupted after 2 s of the scenario".to_string());
    cut.verdict = Verdict::Degraded;
    cut.flows[0].goodput_bps = Some(1.0);
    let mut invalid = summary(4).judged(Verdict::Invalid, "the host was too busy");
    invalid.flows[0].goodput_bps = Some(2.0);
    let mut reserved = summary(5).judged(Verdict::Degraded, "a few packets were late");
    reserved.flows[0].goodput_bps = None;
    let mut hosts = summary(6).judged(Verdict::Degraded, "the program lacked the processor");
    hosts.unsound = true;
    let [one, other] = whole;
    let runs = [invalid.clone(), one, cut, other, reserved, hosts];
    let repeat = RepeatSummary::new(&runs).unwrap();
    validates("repeat.schema.json", json!(repeat));
    assert_eq!((repeat.seeds.len(), repeat.left_out.as_slice()), (6, [4, 3, 6].as_slice()));
    assert_eq!((repeat.used(), repeat.verdict), (3, Verdict::Invalid));
    let goodput = repeat.measures["flow.a[0].goodput_bps"];
    assert_eq!((goodput.runs, goodput.mean), (2, 8e6));
    assert_eq!(repeat.partial(&goodput).as_deref(), Some("2 of 3"));
    assert_eq!(repeat.partial(&repeat.measures["flow.b[0].goodput_bps"]), None);
    assert_eq!((repeat.claims[0].holds, repeat.claims[0].not_tested), (3, 0));
    let none = RepeatSummary::new(&[invalid]).unwrap();
    assert!(none.measures.is_empty() && none.used() == 0, "{none:?}");
    assert_eq!(none.claims[0].outcome, Outcome::NotTestedHere);
}

/// `KNEE_WRITE_SCHEMAS=1 cargo test -p knee-record --test it documents::` rewrites them.
#[test]
fn checked_in_schemas_are_current() {
    for (name, schema) in json_schemas() {
        let path = repository().join("schemas").join(name);
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("KNEE_WRITE_SCHEMAS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == text, "{name} is out of date: set KNEE_WRITE_SCHEMAS=1 and run again");
    }
}

/// Markers around a table generated from the declarations.
const BEGIN: &str = "<!-- from the table of measures: begin -->\n";
const END: &str = "<!-- end -->";

/// The tables of docs/measures.md match the declarations, in every chapter that has any.
#[test]
fn the_page_of_measures_is_current() {
    let path = repository().join("docs/measures.md");
    let kept = std::fs::read_to_string(&path).unwrap();
    let mut shown: Vec<&str> = Vec::new();
    let page: String = kept
        .split_inclusive("\n## ")
        .map(|section| {
            let chapter = section.lines().next().unwrap_or_default();
            let rows: Vec<&Declared> =
                MEASURES.iter().filter(|measure| measure.chapter == chapter).collect();
            let Some((before, rest)) = section.split_once(BEGIN) else {
                return section.to_string();
            };
            let (_, after) = rest.split_once(END).unwrap();
            shown.extend(rows.iter().map(|measure| measure.name));
            let rows: String = rows.into_iter().map(row).collect();
            let head = "| name | unit | better | definition |\n| --- | --- | --- | --- |\n";
            format!("{before}{BEGIN}{head}{rows}{END}{after}")
        })
        .collect();
    if std::env::var_os("KNEE_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let declared: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
    assert_eq!(shown, declared, "each chapter of the declarations has its table on the page");
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == page, "docs/measures.md is out of date: set KNEE_WRITE_SCHEMAS=1, run again");
}

/// Returns a row of a table on the page.
fn row(measure: &Declared) -> String {
    let unit = match measure.unit {
        measure::Unit::BitsPerSecond => "bit/s",
        measure::Unit::Seconds => "s",
        measure::Unit::Bytes => "bytes",
        measure::Unit::Fraction => "part",
        measure::Unit::Number => "1",
    };
    let better = match measure.better {
        measure::Better::More => "more",
        measure::Better::Less => "less",
        measure::Better::Neither => "",
    };
    let definition = measure.definition().replace('|', "\\|");
    format!("| `{}` | {unit} | {better} | {definition} |\n", measure.name)
}

/// The schemas of scenario and study allow a claim to name every declared measure.
#[test]
fn the_schemas_name_the_measures() {
    for schema in [knee_scenario::json_schema(), knee_scenario::study_json_schema()] {
        let names = &schema["$defs"]["ClaimFile"]["properties"]["measure"]["enum"];
        let names: Vec<&str> =
            names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for measure in MEASURES {
            let end = if measure.is_distribution() { "_p95" } else { "" };
            assert!(names.contains(&format!("{}{end}", measure.name).as_str()), "{}", measure.name);
        }
        assert!(!names.contains(&"rtt") && !names.contains(&"goodput_p50"), "{names:?}");
    }
}

/// Sweeps and fidelity use declared measures, no column twice, with the declared direction.
#[test]
fn sweeps_and_fidelity_take_what_is_declared() {
    let columns = sweep_measures();
    let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names.len(), columns.len());
    let better =
        |name: &str| columns.iter().find(|column| column.name == name).map(|column| column.better);
    assert_eq!(better("goodput_bps"), Some(Better::More));
    assert_eq!(better("completion_s"), Some(Better::Less));
    assert_eq!(columns[0].name, "completion_s");
    let claimed = Measure::names();
    for (measure, _) in tolerances() {
        assert!(claimed.contains(&measure.name()), "{}", measure.name());
    }
    assert_eq!(tolerances()[1].0, Measure::SmoothedRtt(Statistic::P50));
    assert_eq!(tolerances()[1].0.name(), "smoothed_rtt_p50");
}

/// The table of docs/connections.md matches the columns that are written.
#[test]
fn the_page_of_connections_is_current() {
    let path = repository().join("docs/connections.md");
    let kept = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = kept.split_once(COLUMNS).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let row = |column: &ConnectionColumn| {
        let ConnectionColumn { name, meaning, tcp_info, estats, null } = column;
        let (unit, info, estats) = (unit_of(name), code(tcp_info), code(estats));
        format!("| `{name}` | {unit} | {meaning} | {info} | {estats} | {null} |\n")
    };
    let rows: String = CONNECTION_COLUMNS.iter().map(row).collect();
    let head = "| column | type | meaning | `linux/tcp.h` | RFC 4898 | null on |\n\
                | --- | --- | --- | --- | --- | --- |\n";
    let page = format!("{before}{COLUMNS}{head}{rows}{END}{after}");
    if std::env::var_os("KNEE_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == page, "docs/connections.md is out of date: set KNEE_WRITE_SCHEMAS=1");
}

const COLUMNS: &str = "<!-- from the columns of a connection: begin -->\n";

/// Returns the type of a column, with the unit in which its name ends.
fn unit_of(name: &str) -> &'static str {
    const TEXTS: [&str; 7] = ["workload", "cc", "cc_source", "prefix", "group", "arm", "flow_name"];
    match name {
        "app_limited" => "bool",
        "weight" => "float64",
        _ if TEXTS.contains(&name) => "text",
        _ if name.ends_with("_ns") => "int64, ns",
        _ if name.ends_with("_bytes") => "int64, bytes",
        _ if name.ends_with("_bps") => "int64, bit/s",
        _ if name.ends_with("_packets") => "int64, segments",
        _ => "int64",
    }
}
