//! `knee reproduce` with a study in a folder.

use crate::common::{FALSE_CLAIM, SMALL, complaint, expect, json};
use std::fs;
use std::path::Path;

const STUDY: &str = r#"
name = "Small study"
source = "nobody, 2026"

[[run]]
name = "plain"
file = "small.toml"

[[run]]
name = "fast"
file = "small.toml"
set = { "link.bottleneck.rate" = "20 Mbit/s" }

[[run]]
name = "elsewhere"
file = "small.toml"
on = ["kernel"]

[[model]]
name = "probing"
model = "alternate-probing"
gain = 1.25
start = [0.9, 0.1]
rounds = 60

[[claim]]
id = "S1"
says = "twice the rate, twice the goodput"
measure = "goodput"
of = "fast/*"
relative_to = "plain/*"
at_least = 1.8
at_most = 2.2
source_figure = "2"

[[claim]]
id = "S2"
says = "the prober gets 5/9 of the link"
measure = "model.share_high"
of = "probing"
equals = 0.5556
within = 0.001
"#;

/// A claim measured on a missing ground.
const ELSEWHERE: &str = r#"
[[claim]]
id = "S3"
says = "it works elsewhere"
measure = "goodput"
of = "elsewhere/*"
at_least = "1 bit/s"
outcome = "not tested here"
finding = "The kernel is another ground."
"#;

fn study(text: &str, scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("it can be made");
    let study = folder.path().join("small-study");
    fs::create_dir(&study).expect("it can be written");
    fs::write(study.join("study.toml"), text).unwrap();
    fs::write(study.join("small.toml"), scenario).unwrap();
    folder
}

#[test]
fn claims_runs_and_report() {
    let folder = study(&format!("{STUDY}{ELSEWHERE}"), SMALL);
    let at = folder.path();
    let printed = expect(at, "reproduce ./small-study --jobs 2", 0);
    assert!(
        printed.contains("3 claims: 2 hold, 0 fail, 1 not tested here; all as on record"),
        "{printed}"
    );
    let out = at.join("knee-out/reproduce");
    for name in ["plain", "fast"] {
        let directory = out.join("small-study").join(name);
        assert!(
            directory.join("manifest.json").is_file()
                && directory.join("samples.parquet").is_file()
        );
    }
    assert!(!out.join("small-study/elsewhere").exists());
    let page = fs::read(out.join("report.html")).unwrap();
    fs::remove_file(out.join("report.html")).unwrap();
    expect(at, "report knee-out/reproduce", 0);
    assert!(
        fs::read(out.join("report.html")).unwrap() == page,
        "the report differs from its records"
    );
}

/// The printed document equals the stored one for any number of jobs; its claims and summaries have
/// the form of those in summary.json.
#[test]
fn the_document() {
    let folder = study(STUDY, &format!("{SMALL}{}", crate::common::TRUE_CLAIM));
    let at = folder.path();
    let printed = expect(at, "reproduce small-study --json --jobs 1 --out one", 0);
    assert_eq!(printed, fs::read_to_string(at.join("one/reproduce.json")).unwrap());
    assert_eq!(printed, expect(at, "reproduce small-study --json --jobs 2 --out two", 0));
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let schema = serde_json::from_str(&expect(at, "schema reproduce", 0)).unwrap();
    jsonschema::validate(&schema, &document).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((&document["verdict"], &document["as_recorded"]), (&"valid".into(), &true.into()));
    let study = &document["studies"][0];
    assert_eq!(study["name"], "small-study");
    assert_eq!(study["runs"][1]["summary"], json(&at.join("one/small-study/fast/summary.json")));
    let claims = study["claims"].as_array().unwrap();
    let spoken_of: Vec<_> = claims.iter().map(|claim| claim["of"].as_str().unwrap()).collect();
    assert_eq!(spoken_of, ["fast/*", "probing", "plain/*", "fast/*"]);
    let mut of_run = json(&at.join("one/small-study/plain/summary.json"))["claims"][0].clone();
    of_run["of"] = "plain/*".into();
    assert_eq!(claims[2], of_run);
}

#[test]
fn exits_1_only_if_an_outcome_differs_from_the_record() {
    let failing = FALSE_CLAIM.replace("\"F1\"", "\"F1\"\nof = \"plain/*\"");
    let on_record = format!("{failing}outcome = \"fails\"\nfinding = \"No link is so fast.\"\n");
    for (claim, code) in [(failing, 1), (on_record, 0)] {
        let folder = study(&format!("{STUDY}{claim}"), SMALL);
        let printed = expect(folder.path(), "reproduce ./small-study", code);
        assert_eq!(printed.contains("differs from record: holds"), code == 1, "{printed}");
        assert_eq!(printed.contains("1 differs from the record"), code == 1, "{printed}");
    }
}

#[test]
fn wrong_studies() {
    let folder = study(&STUDY.replace("fast/*", "fats/*"), SMALL);
    let said = complaint(folder.path(), "reproduce ./small-study", 2);
    assert!(said.contains("fats") && said.contains("study.toml:"), "{said}");
    let said = complaint(folder.path(), "reproduce no-such-study", 2);
    assert!(said.contains("there is no study \"no-such-study\""), "{said}");
    assert!(!folder.path().join("knee-out").exists());
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let folder = study(STUDY, SMALL);
    let at: &Path = folder.path();
    expect(at, "reproduce ./small-study --out out", 0);
    let said = complaint(at, "reproduce ./small-study --out out", 2);
    assert!(said.contains("out is not empty"), "{said}");
    expect(at, "reproduce ./small-study --out out --force", 0);
}

const RECORDED: &str = r#"
[[claim]]
id = "S4"
says = "what the link carries"
measure = "goodput"
of = "plain/*"
at_most = "1 Mbit/s"
outcome = "fails"
finding = "{value}, and {S1} of it at twice the rate."
"#;

/// `--record` stores measured values; later drift is reported, and findings contain the values of
/// the run.
#[test]
fn values_are_kept_on_record() {
    let folder = study(&format!("{STUDY}{RECORDED}"), SMALL);
    let at = folder.path();
    let file = at.join("small-study/study.toml");
    expect(at, "reproduce ./small-study --record --out one", 0);
    let recorded = fs::read_to_string(&file).unwrap();
    assert_eq!(recorded.matches("measured = ").count(), 3, "{recorded}");
    assert_eq!(recorded.matches("drift = \"2 %\"").count(), 3, "{recorded}");
    let printed = expect(at, "reproduce ./small-study --out two", 0);
    let mut words = printed.split("finding on S4: ").nth(1).unwrap().split(' ');
    let value: f64 = words.next().unwrap().parse().expect("the value measured");
    assert!(words.next().unwrap().starts_with("Mbit/s") && value > 1.0, "{printed}");
    // Recording again changes nothing.
    expect(at, "reproduce ./small-study --record --out three", 0);
    assert_eq!(recorded, fs::read_to_string(&file).unwrap());

    let model = "measured = 0.5556\n";
    assert!(recorded.contains(model), "{recorded}");
    fs::write(&file, recorded.replace(model, "measured = 0.54\n")).unwrap();
    let printed = expect(at, "reproduce ./small-study --out four", 1);
    assert!(
        printed.contains("S2 drifted: measured 0.5556, on record 0.54 (± 0.0108)"),
        "{printed}"
    );
    let document = json(&at.join("four/reproduce.json"));
    let claim = &document["studies"][0]["claims"][1];
    assert_eq!((&claim["drifted"], &claim["agrees"]), (&true.into(), &false.into()));
    expect(at, "reproduce ./small-study --record --out five", 0);
    assert_eq!(recorded, fs::read_to_string(&file).unwrap());
}

/// Each claim gets its own value however it is written, and the rest of the file stays.
#[test]
fn values_go_to_their_claims() {
    let text = STUDY.replacen("[[claim]]\nid = \"S1\"", "[[claim]] # the rate\n  id = \"S1\"", 1);
    let text = text.replacen("[[claim]]\nid = \"S2\"", "[[ claim ]]\nid = \"S2\"", 1);
    // On record it never happened; the value has a comment and the key an indent.
    let text = text.replace("within = 0.001", "within = 0.001\n  measured = \"never\" # once");
    let text = format!("{text}{RECORDED}").replace('\n', "\r\n");
    let folder = study(&text, SMALL);
    let at = folder.path();
    expect(at, "reproduce ./small-study --record --out one", 0);
    let recorded = fs::read_to_string(at.join("small-study/study.toml")).unwrap();
    let model = "  measured = 0.5556 # once\r\n  drift = \"2 %\"\r\n";
    assert!(recorded.contains(model), "{recorded}");
    let link = "Mbit/s\"\r\ndrift = \"2 %\"\r\noutcome = \"fails\"\r\n";
    assert!(recorded.contains(link), "{recorded}");
    assert_eq!(recorded.matches("drift = ").count(), 3, "{recorded}");
    let is_new = |line: &&str| line.contains("measured = ") || line.contains("drift = ");
    let kept: String = recorded.split_inclusive('\n').filter(|line| !is_new(line)).collect();
    let before: String = text.split_inclusive('\n').filter(|line| !is_new(line)).collect();
    assert_eq!(kept, before);
    // It is still a study, and agrees with what was measured.
    expect(at, "reproduce ./small-study --out two", 0);
}

/// Claims as inline tables.
#[test]
fn values_are_recorded_between_braces() {
    let (runs, _) = STUDY.split_once("[[claim]]").unwrap();
    let model = "id = \"S2\", says = \"5/9\", measure = \"model.share_high\", of = \"probing\", \
                 equals = 0.5556, within = 0.001";
    let text = format!("claim = [{{ {model} }}, {{ {} }}]\n{runs}", model.replace("S2", "S3"));
    let folder = study(&text, SMALL);
    let at = folder.path();
    expect(at, "reproduce ./small-study --record --out one", 0);
    let recorded = fs::read_to_string(at.join("small-study/study.toml")).unwrap();
    let added = "within = 0.001, measured = 0.5556, drift = \"2 %\" }";
    assert_eq!(recorded.matches(added).count(), 2, "{recorded}");
    expect(at, "reproduce ./small-study --out two", 0);
}

#[test]
fn a_study_of_the_program_has_no_file_to_record_in() {
    let folder = tempfile::tempdir().unwrap();
    let said = complaint(folder.path(), "reproduce improved-bbr --record", 2);
    assert!(said.contains("knee reproduce studies/improved-bbr --record"), "{said}");
}

const CONCLUSION: &str = "conclusion = \"Of {claims} claims {holds} hold: {S1}, {S2.outcome}.\"\n";

/// The conclusion is printed first, with values of this run, and is also in the document and on the
/// page.
#[test]
fn the_conclusion_comes_first() {
    let text = STUDY.replacen("\n[[run]]", &format!("{CONCLUSION}\n[[run]]"), 1);
    let folder = study(&text, SMALL);
    let at = folder.path();
    let printed = expect(at, "reproduce ./small-study --out out", 0);
    let first = printed.lines().nth(1).unwrap();
    assert!(printed.starts_with("Small study\n"), "{printed}");
    assert!(first.starts_with("Of 2 claims 2 hold: "), "{first}");
    assert!(first.ends_with(" times, holds."), "{first}");
    let study = &json(&at.join("out/reproduce.json"))["studies"][0];
    assert_eq!(study["conclusion"].as_str(), Some(first));
    // The page keeps a number and its unit on one line.
    let page = fs::read_to_string(at.join("out/report.html")).unwrap();
    assert!(page.replace('\u{a0}', " ").contains(first));

    fs::write(at.join("small-study/study.toml"), text.replace("{S1}", "{S7}")).unwrap();
    let said = complaint(at, "reproduce ./small-study --out other", 2);
    assert!(said.contains("the conclusion names {S7}, but no claim has this id"), "{said}");
}

#[test]
fn a_measure_that_compares_needs_something_to_compare_with() {
    let claim = "[[claim]]\nid = \"S3\"\nsays = \"x\"\nmeasure = \"objects_earlier\"\n\
                 of = \"plain/*\"\nat_least = \"90 %\"\n";
    let folder = study(&format!("{STUDY}{claim}"), SMALL);
    let said = complaint(folder.path(), "reproduce ./small-study", 2);
    assert!(said.contains("objects_earlier compares") && said.contains("relative_to"), "{said}");
}

/// With several seeds a claim uses all of them, ratios being taken per seed.
#[test]
fn several_seeds_give_an_interval() {
    let text = STUDY.replace("file = \"small.toml\"\n", "file = \"small.toml\"\nseeds = 5\n");
    let folder = study(&text, SMALL);
    let at = folder.path();
    let printed = expect(at, "reproduce ./small-study --out several --json", 0);
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let claim = &document["studies"][0]["claims"][0];
    let values: Vec<f64> =
        claim["seeds"]["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert_eq!(values.len(), 5, "{claim}");
    let geometric = values.iter().map(|v| v.ln()).sum::<f64>() / 5.0;
    assert!((claim["measured"].as_f64().unwrap() / geometric.exp() - 1.0).abs() < 1e-9, "{claim}");
    assert!(claim["measured_text"].as_str().unwrap().ends_with("; 5 seeds)"), "{claim}");
    // The stored run is that of the first seed.
    assert!(at.join("several/small-study/plain/summary.json").is_file());
    assert_eq!(document["studies"][0]["runs"].as_array().unwrap().len(), 2);
}

/// Claims that the conclusion does not cite, and runs that only they need, are left to `--all`; the
/// conclusion counts them as on record.
#[test]
fn by_default_the_claims_that_the_conclusion_cites_are_run() {
    let conclusion = "conclusion = \"{holds} of {claims} hold: {S1}.\"\n";
    let text =
        format!("{conclusion}{STUDY}{RECORDED}").replace("of = \"plain/*\"", "of = \"slow/*\"");
    let slow = "[[run]]\nname = \"slow\"\nfile = \"small.toml\"\n\n[[model]]";
    let folder = study(&text.replacen("[[model]]", slow, 1), SMALL);
    let at = folder.path();
    let printed = expect(at, "reproduce ./small-study --out some", 0);
    assert!(printed.contains("2 of 3 hold: "), "{printed}");
    assert!(printed.contains("\n1 claim: 1 hold, 0 fail; all as on record\n"), "{printed}");
    assert!(
        printed.contains("\n1 of 3 claims were run, those that the conclusions cite"),
        "{printed}"
    );
    assert!(at.join("some/small-study/fast").is_dir());
    assert!(!at.join("some/small-study/slow").exists());
    let printed = expect(at, "reproduce ./small-study --all --out all", 0);
    assert!(printed.contains("\n3 claims: 2 hold, 1 fail; all as on record\n"), "{printed}");
    assert!(printed.contains("\nrepeat   knee reproduce --all "), "{printed}");
    assert!(at.join("all/small-study/slow").is_dir());
    // A record has the value of every claim.
    expect(at, "reproduce ./small-study --record --out recorded", 0);
    let recorded = fs::read_to_string(at.join("small-study/study.toml")).unwrap();
    assert_eq!(recorded.matches("measured = ").count(), 3, "{recorded}");
}

/// A claim that continues the sentence of one that is not shown is told whole; beside it, it is not.
#[test]
fn a_claim_is_told_with_the_beginning_of_its_sentence() {
    let further = "\n[[claim]]\nid = \"S5\"\nsays = \"... and the other as much\"\nmeasure = \
                   \"model.share_high\"\nof = \"probing\"\nequals = 0.5556\nwithin = 0.001\n";
    let says = |cited: &str| {
        let text = format!("conclusion = \"It holds: {cited}.\"\n{STUDY}{further}");
        let folder = study(&text, SMALL);
        let told = expect(folder.path(), "reproduce ./small-study --json --out out", 0);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let claims = told["studies"][0]["claims"].as_array().unwrap().clone();
        claims.iter().map(|claim| claim["says"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let (begins, continues) = ("the prober gets 5/9 of the link", "... and the other as much");
    assert_eq!(says("{S5}"), [format!("{begins} {continues}")]);
    assert_eq!(says("{S2} {S5}"), [begins, continues]);
    assert_eq!(says("{S1} {S5}")[1], format!("{begins} {continues}"));
}

/// With shifted seeds outcomes are compared with those on record, values are not.
#[test]
fn a_shift_moves_all_seeds() {
    let study_of = |outcome: &str| {
        let folder = study(&format!("{STUDY}{RECORDED}"), SMALL);
        let file = folder.path().join("small-study/study.toml");
        expect(folder.path(), "reproduce ./small-study --record --out recorded", 0);
        let text = fs::read_to_string(&file).unwrap();
        let claim = text.replacen("measured = 0.5556", "measured = 0.4", 1);
        fs::write(&file, claim.replace("outcome = \"fails\"", outcome)).unwrap();
        folder
    };
    let folder = study_of("outcome = \"fails\"");
    let printed = expect(folder.path(), "reproduce ./small-study --seed-shift 70 --out out", 0);
    let told = "seeds    3 of 3 outcomes as on record (100.0 %); from holds to fails: none\n";
    assert!(printed.ends_with(told), "{printed}");
    assert!(printed.contains("\nrepeat   knee reproduce --seed-shift 70 "), "{printed}");
    let run =
        fs::read_to_string(folder.path().join("out/small-study/plain/scenario.toml")).unwrap();
    assert!(run.contains("seed = 75\n"), "{run}");
    let folder = study_of("outcome = \"holds\"");
    let printed = expect(folder.path(), "reproduce ./small-study --seed-shift 70 --out out", 1);
    assert!(printed.ends_with("2 of 3 outcomes as on record (66.7 %); from holds to fails: S4\n"));
    let said = complaint(folder.path(), "reproduce ./small-study --seed-shift 70 --record", 2);
    assert!(said.contains("cannot be used with"), "{said}");
}
