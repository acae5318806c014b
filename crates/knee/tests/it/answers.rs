//! Answers to a scenario's questions, with a known truth: two links that help, hurt or do not
//! matter together; mixes in which a controller must win, lose or not matter.

use crate::common::{expect, folder_with, json, knee, texts};
use serde_json::Value;
use std::path::Path;

/// A file over two paths, each with a rate and a one-way delay.
fn two_links(file: &str, scheduler: &str, links: [(&str, &str, &str); 2]) -> String {
    let mut text = "name = \"Two links\"\nduration = \"60 s\"\n".to_string();
    for (name, rate, delay) in links {
        text += &format!(
            "[link.{name}]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nbuffer = \"2 BDP\"\n\
             loss = \"0.01 %\"\n\
             [path.{name}]\nforward = [\"{name}\"]\nreverse_delay = \"{delay}\"\n"
        );
    }
    let names = links.map(|(name, ..)| format!("\"{name}\"")).join(", ");
    text + &format!(
        "[[flow]]\nname = \"main\"\npaths = [{names}]\nscheduler = \"{scheduler}\"\ncc = \"cubic\"\n\
         workload = {{ file = \"{file}\" }}\n"
    )
}

/// Runs it; returns the printed text and `answers.json`.
fn answered(text: &str, more: &str) -> (String, Value) {
    let folder = folder_with("a.toml", text);
    let printed = expect(folder.path(), &format!("run a.toml --out out {more}"), 0);
    let answers = json(&folder.path().join("out/answers.json"));
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert_said(&printed, &page, &answers);
    assert_in_markdown(folder.path(), &answers);
    assert_valid(folder.path(), &answers);
    (printed, answers)
}

/// Checks that the document's sentences are on screen and on the page.
fn assert_said(printed: &str, page: &str, answers: &Value) {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (printed, page) = (plain(printed), plain(&page.replace("&#x2f;", "/")));
    let paths = answers["paths"].as_array().unwrap().iter().map(|one| &one["sentence"]);
    let mixes = answers["mix"]["sentences"].as_array().into_iter().flatten();
    let sentences: Vec<&str> = paths.chain(mixes).map(|one| one.as_str().unwrap()).collect();
    assert!(!sentences.is_empty());
    for sentence in sentences.into_iter().map(plain) {
        assert!(printed.contains(&sentence), "{sentence}\n{printed}");
        assert!(page.contains(&sentence), "{sentence} is not on the page");
    }
    // Of times less is better, of rates more: they are drawn apart, and each axis says which.
    for (axis, throughput) in [
        ("completion time, test over control (left is better)", false),
        ("throughput, test over control (right is better)", true),
    ] {
        let mut classes = answers["mix"]["classes"].as_array().into_iter().flatten();
        let has_one = classes.any(|class| {
            let compared = &class["compared"];
            class["throughput"].as_bool().unwrap_or(false) == throughput
                && compared["scale"] == "ratio"
                && ["estimate", "low", "high"].iter().all(|key| compared[key].is_number())
        });
        assert_eq!(page.contains(axis), has_one, "{axis}");
    }
}

/// Checks that Markdown has the same sentences, and each class of a mix.
fn assert_in_markdown(folder: &Path, answers: &Value) {
    let markdown = expect(folder, "report out --markdown", 0).replace('\\', "");
    let paths = answers["paths"].as_array().unwrap().iter().map(|one| &one["sentence"]);
    let mixes = answers["mix"]["sentences"].as_array().into_iter().flatten();
    let sizes = answers["mix"]["classes"].as_array().into_iter().flatten();
    for words in paths.chain(mixes).chain(sizes.map(|class| &class["sizes"])) {
        let words = words.as_str().unwrap();
        assert!(markdown.contains(words), "{words} is not in\n{markdown}");
    }
}

fn assert_valid(folder: &Path, answers: &Value) {
    let schema = expect(folder, "schema answers", 0);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    if let Err(error) = jsonschema::validate(&schema, answers) {
        panic!("{error}");
    }
}

/// Two equal links carry twice as much as one: the file takes half the time, plus the start-up of
/// both.
#[test]
fn two_equal_links_are_used() {
    let links = [("left", "10 Mbit/s", "10 ms"), ("right", "10 Mbit/s", "10 ms")];
    let (printed, answers) = answered(&two_links("10 MB", "minrtt", links), "");
    let answer = &answers["paths"][0];
    assert_eq!(answer["effect"], "better", "{printed}");
    assert!(printed.contains(": use both, ") && printed.contains(" sooner"), "{printed}");
    let ratio = answer["compared"]["estimate"].as_f64().unwrap();
    assert!((0.49..0.62).contains(&ratio), "{printed}");
    // The minimum for 10 MB in 1448 of every 1500 bytes at 10 Mbit/s.
    let alone = answer["alone"][0]["interval"]["mean"].as_f64().unwrap();
    assert!((8.28..9.5).contains(&alone), "{printed}");
}

/// Round robin over a slow link with a twentieth of the rate and a deep queue, without reinjection:
/// the fast link alone finishes much earlier.
#[test]
fn a_slow_link_that_the_fast_one_waits_for_is_left_alone() {
    let links = [("fast", "20 Mbit/s", "10 ms"), ("slow", "1 Mbit/s", "200 ms")];
    let text = two_links("5 MB", "round-robin", links)
        .replace("2 BDP", "8 BDP")
        .replace("cc = ", "reinjection = false\ncc = ");
    let (printed, answers) = answered(&text, "");
    let answer = &answers["paths"][0];
    assert_eq!((&answer["effect"], &answer["best_alone"]), (&"worse".into(), &0.into()));
    let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("over fast alone: do not use both, "), "{printed}");
    assert!(plain.contains("Data that arrives over fast waits for slow, "), "{printed}");
    assert!(answer["waited_s"].as_f64().unwrap() > 0.01, "{printed}");
}

/// Data within the initial window uses one link, whatever others exist.
#[test]
fn a_link_that_is_not_needed_makes_no_difference() {
    let links = [("fast", "20 Mbit/s", "10 ms"), ("other", "20 Mbit/s", "60 ms")];
    let (printed, answers) = answered(&two_links("10 kB", "minrtt", links), "");
    assert_eq!(answers["paths"][0]["effect"], "alike", "{printed}");
    assert!(printed.contains("over fast alone: alike"), "{printed}");
    assert!(printed.contains("The other paths carry only"), "{printed}");
}

/// A file that finishes over both paths but over neither alone.
#[test]
fn what_ends_over_no_link_alone_is_told() {
    let links = [("left", "10 Mbit/s", "10 ms"), ("right", "10 Mbit/s", "10 ms")];
    let text = two_links("10 MB", "minrtt", links).replace("60 s", "7 s");
    let (printed, answers) = answered(&text, "");
    assert_eq!(answers["paths"][0]["effect"], "better", "{printed}");
    assert!(printed.contains("longer than the run (10 of 10 seeds)"), "{printed}");
}

/// Of more flows over several paths than are answered for, the others are named: on screen and on
/// the page, where each answer says of which flow it is, and none is drawn in silence.
#[test]
fn flows_without_an_answer_are_named() {
    let links = [("left", "10 Mbit/s", "10 ms"), ("right", "10 Mbit/s", "10 ms")];
    let text = two_links("200 kB", "minrtt", links).replacen("\"60 s\"", "\"8 s\"", 1);
    let (before, flow) = text.split_once("[[flow]]").unwrap();
    let flows = (1..=5).map(|number| {
        let name = format!("name = \"f{number}\"\nstart = \"{number} s\"");
        format!("[[flow]]{}", flow.replace("name = \"main\"", &name))
    });
    let text = before.to_string() + &flows.collect::<String>();
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let printed = expect(at, "run a.toml --out out", 0);
    let page = std::fs::read_to_string(at.join("out/report.html")).unwrap();
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [plain(&printed), plain(&page)] {
        assert!(told.contains("with one path alone; not compared: f5."), "{told}");
        assert!(told.contains("f1: Both together ") && told.contains("f4: Both together "));
    }
    assert!(page.contains("first 4 flows are drawn, not those of f5[0]."));
}

#[test]
fn alternatives_can_be_left_out_and_survive_the_page() {
    let links = [("left", "10 Mbit/s", "10 ms"), ("right", "10 Mbit/s", "10 ms")];
    let folder = folder_with("a.toml", &two_links("1 MB", "minrtt", links));
    let at = folder.path();
    let printed = expect(at, "run a.toml --out plain --no-alternatives", 0);
    assert!(!printed.contains("together") && !at.join("plain/answers.json").exists());
    expect(at, "run a.toml --out out --repeat 2", 0);
    let page = std::fs::read(at.join("out/repeat-2/report.html")).unwrap();
    assert!(String::from_utf8_lossy(&page).contains("Both together finish in"));
    let markdown = expect(at, "report out --markdown", 0);
    assert!(markdown.contains("Both together finish in"), "{markdown}");
    expect(at, "report out/repeat-2", 0);
    let again = String::from_utf8(std::fs::read(at.join("out/repeat-2/report.html")).unwrap());
    assert!(again.unwrap().contains("Both together finish in"));
    // Other values of `--jobs` give the same bytes.
    expect(at, "run a.toml --out one --jobs 1", 0);
    expect(at, "run a.toml --out two --jobs 2", 0);
    let read = |out: &str| std::fs::read(at.join(out).join("answers.json")).unwrap();
    assert_eq!(read("one"), read("two"));
}

/// Two halves of one process over a link; `sizes` applies to all transfers.
fn mix(ours: &str, theirs: &str, link: &str, sizes: &str, interval: &str) -> String {
    let flow = |name: &str, cc: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"{interval}\", process = \"clients\", sizes = {sizes} }} }}\n"
        )
    };
    format!(
        "name = \"Mix\"\nduration = \"60 s\"\nwarmup = \"5 s\"\nsample_interval = \"1 s\"\n\
         [link.mile]\n{link}\n[path.main]\nforward = [\"mile\"]\nreverse_delay = \"40 ms\"\n{}{}",
        flow("test", ours),
        flow("control", theirs)
    )
}

/// A long path with 2 % random loss and spare capacity. By the response function of RFC 9438 CUBIC
/// gets about 1 Mbit/s; BBR version 1 does not respond to loss.
const LOSSY: &str = "rate = \"200 Mbit/s\"\ndelay = \"40 ms\"\nbuffer = \"4 BDP\"\nloss = \"2 %\"";
/// The same path without loss and almost without load.
const CLEAN: &str = "rate = \"1 Gbit/s\"\ndelay = \"40 ms\"\nbuffer = \"4 BDP\"";

fn effects(answers: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let classes = answers["mix"]["classes"].as_array().unwrap();
    classes.iter().map(|class| (text(&class["sizes"]), text(&class["effect"]))).collect()
}

#[test]
fn bbr_wins_large_objects_over_a_lossy_path() {
    let sizes = "\"5 MB\"";
    let (printed, answers) = answered(&mix("bbr", "cubic", LOSSY, sizes, "3 s"), "");
    assert_eq!(effects(&answers), [("3 to 30 MB".into(), "better".into())], "{printed}");
    assert!(printed.contains("clients: use bbr: it is better for 3 to 30 MB"), "{printed}");
    assert_eq!(answers["mix"]["classes"][0]["throughput"], true);
}

/// Test and control swapped: the result is reversed.
#[test]
fn what_wins_as_test_loses_as_test_when_sides_change() {
    let text = mix("reno", "bbr", LOSSY, "\"5 MB\"", "3 s");
    let (printed, answers) = answered(&text, "");
    assert_eq!(effects(&answers), [("3 to 30 MB".into(), "worse".into())], "{printed}");
    assert!(printed.contains("clients: keep bbr: reno is worse for 3 to 30 MB"), "{printed}");
}

/// A constant window of one segment takes a round trip for each: small objects take many times as
/// long as under CUBIC.
#[test]
fn a_window_of_one_segment_loses_small_objects() {
    let one = "fixed\", window = \"1 packets";
    let text = mix("cc", "cubic", CLEAN, "\"50 kB\"", "500 ms").replacen(
        "cc = \"cc\"",
        &format!("cc = {{ name = \"{one}\" }}"),
        1,
    );
    let (printed, answers) = answered(&text, "");
    assert_eq!(effects(&answers), [("under 100 kB".into(), "worse".into())], "{printed}");
    assert!(printed.contains("clients: keep cubic: fixed is worse for under 100 kB"), "{printed}");
}

/// Small objects fit into the initial window, so controllers do not matter.
#[test]
fn small_objects_within_the_first_window_make_no_difference() {
    let (printed, answers) = answered(&mix("bbr", "cubic", CLEAN, "\"8 kB\"", "200 ms"), "");
    assert_eq!(effects(&answers), [("under 100 kB".into(), "alike".into())], "{printed}");
    let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("clients: bbr and cubic are alike for under 100 kB"), "{printed}");
}

/// The same controller on both sides, under load and loss, for all sizes.
#[test]
fn the_same_controller_on_both_sides_makes_no_difference() {
    let link = "rate = \"30 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"0.5 BDP\"\nloss = \"0.1 %\"";
    let sizes = "{ median = \"60 kB\", sigma = 2.0, max = \"40 MB\" }";
    let (printed, answers) = answered(&mix("cubic", "cubic", link, sizes, "400 ms"), "");
    let effects = effects(&answers);
    assert!(effects.len() >= 2, "{printed}");
    assert!(effects.iter().all(|(_, effect)| effect == "alike"), "{printed}");
    let classes = answers["mix"]["classes"].as_array().unwrap();
    assert!(classes.iter().all(|class| class["compared"]["estimate"] == 1.0), "{printed}");
}

/// Three controllers under test, each against the control alone, with the truth known of
/// each. A window of 100 segments sends 50 kB in one round trip, where slow start from 10
/// segments (RFC 6928) needs several; a window of one segment needs one for each segment;
/// CUBIC against CUBIC is the same run twice. The groups of the same controller are told
/// apart by their names.
#[test]
fn three_controllers_under_test_have_an_answer_each() {
    let flow = |name: &str, cc: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\ncc = {cc}\nworkload = {{ mix = {{ \
             arrival_interval = \"1 s\", process = \"clients\", sizes = \"50 kB\" }} }}\n"
        )
    };
    let fixed = |packets: u64| format!("{{ name = \"fixed\", window = \"{packets} packets\" }}");
    let text = format!(
        "name = \"Mix\"\nduration = \"40 s\"\nwarmup = \"5 s\"\nsample_interval = \"1 s\"\n\
         [link.mile]\n{CLEAN}\n[path.main]\nforward = [\"mile\"]\nreverse_delay = \"40 ms\"\n\
         {}{}{}{}",
        flow("wide", &fixed(100)),
        flow("narrow", &fixed(1)),
        flow("control", "\"cubic\""),
        flow("twin", "\"cubic\""),
    );
    let (printed, answers) = answered(&text, "");
    let mix = &answers["mix"];
    let names = ["clients, wide", "clients, narrow", "clients, cubic"];
    let told = |key: &str, of: &str| -> Vec<String> {
        let all = mix[key].as_array().unwrap().iter();
        all.map(|one| one[of].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(told("pairs", "name"), names);
    assert_eq!(told("pairs", "control_flow"), ["control"; 3]);
    assert_eq!(told("classes", "pair"), names);
    assert_eq!(told("classes", "effect"), ["better", "worse", "alike"], "{printed}");
    let classes = mix["classes"].as_array().unwrap();
    assert_eq!(classes[2]["compared"]["estimate"], 1.0);
    // All four parts of the process count: 4 a second for 35 s, ten seeds.
    for class in classes {
        let counted = class["transfers"].as_u64().unwrap();
        assert!((1200..1600).contains(&counted), "{counted}");
    }
    let sentences = mix["sentences"].as_array().unwrap();
    let begins = [
        "clients, wide: use fixed: it is better for under 100 kB",
        "clients, narrow: keep cubic: fixed is worse for under 100 kB",
        "clients, cubic: cubic and cubic are alike for under 100 kB",
    ];
    for (sentence, begin) in sentences.iter().zip(begins) {
        assert!(sentence.as_str().unwrap().starts_with(begin), "{sentence}");
    }
    assert_eq!(sentences.len(), 3);
    // A row each in the table, before the sentences.
    let (table, _) = printed.split_once("Ratio: the controller under test over").unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("clients,")).collect();
    // Its last column follows below.
    assert_eq!(rows.len() % 3, 0, "{printed}");
    for (row, word) in rows.iter().zip(["better", "worse", "alike"]) {
        assert!(row.contains(word), "{row}");
    }
}

/// The page of the same question has a row for each, under its own name.
#[test]
fn the_page_has_a_row_for_each_controller_under_test() {
    let text = mix("bbr", "cubic", CLEAN, "\"50 kB\"", "1 s").replacen(
        "[[flow]]",
        "[[flow]]\nname = \"third\"\ncc = \"reno\"\nworkload = { mix = { arrival_interval = \
         \"1 s\", process = \"clients\", sizes = \"50 kB\" } }\n[[flow]]",
        1,
    );
    let folder = folder_with("a.toml", &text.replacen("\"60 s\"", "\"20 s\"", 1));
    expect(folder.path(), "run a.toml --out out", 0);
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    let page = page.replace("&#x2f;", "/");
    let rows: Vec<usize> = ["clients, reno: reno / cubic", "clients, bbr: bbr / cubic"]
        .iter()
        .map(|name| page.find(&format!("<b>{name}</b>")).unwrap_or_else(|| panic!("{name}")))
        .collect();
    assert!(rows[0] < rows[1]);
}

/// The classes are the documented ones, and nearly empty ones are merged with a neighbour.
#[test]
fn rare_sizes_stand_in_one_row() {
    let sizes = "{ median = \"20 kB\", sigma = 1.6, max = \"2 MB\" }";
    let (printed, answers) = answered(&mix("bbr", "cubic", CLEAN, sizes, "300 ms"), "");
    let names: Vec<String> = effects(&answers).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["under 100 kB", "100 kB to 3 MB"], "{printed}");
    let counted: u64 = answers["mix"]["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["transfers"].as_u64().unwrap())
        .sum();
    // Two halves, one arrival per 300 ms for 55 s after the warm-up, ten seeds.
    assert!((3300..4000).contains(&counted), "{counted}");
}

/// The table precedes the figures, and no line is wider than the terminal.
#[test]
fn the_answer_stands_first_and_fits() {
    let text = mix("bbr", "cubic", LOSSY, "\"5 MB\"", "3 s");
    let folder = folder_with("a.toml", &text);
    for width in [60, 80, 100, 160] {
        let output = knee(folder.path())
            .env("COLUMNS", width.to_string())
            .args(["run", "a.toml", "--force"])
            .output()
            .unwrap();
        let (printed, complaint) = texts(&output);
        assert!(printed.starts_with("Which controller for which traffic"), "{printed}{complaint}");
        for line in printed.lines() {
            let path = line.starts_with("report") || line.starts_with("repeat");
            assert!(path || line.chars().count() <= width, "{width}: {line}");
        }
        // Of a pipe the width is that of COLUMNS, also beyond the usual one.
        let is_wide = printed.lines().any(|line| line.chars().count() > 120);
        assert_eq!(is_wide, width > 120, "{printed}");
    }
}

/// A link of 50 Mbit/s; 417 kB in each interval, for each of the two mixes.
fn loaded(interval: &str) -> String {
    let link = "rate = \"50 Mbit/s\"\ndelay = \"15 ms\"\nbuffer = \"1 BDP\"\nloss = \"0.05 %\"";
    mix("bbr", "cubic", link, "\"417 kB\"", interval).replacen("\"60 s\"", "\"20 s\"", 1)
}

/// 2 x 417 kB in 100 ms are 66.7 Mbit/s: check says so, and the answer is that there is none, on
/// screen, on the page and in the document. What arrives in the run is what was announced.
#[test]
fn an_overloaded_link_has_no_answer() {
    let (printed, answers) = answered(&loaded("100 ms"), "");
    let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let load = "ffered load: 66.7 Mbit/s on mile, 133 % of its rate";
    assert!(plain.contains(&format!("O{load}.")), "{printed}");
    assert!(plain.contains(&format!("clients: no answer: overloaded, o{load}.")), "{printed}");
    assert_eq!(effects(&answers), [("100 kB to 1 MB".into(), "overloaded".into())], "{printed}");
    let verdict = plain.find("clients: no answer").unwrap();
    assert!(verdict < plain.find("traffic objects what").unwrap(), "before the table: {printed}");
    for word in ["keep cubic", "use bbr", "is better for", "is worse for"] {
        assert!(!printed.contains(word), "{word}: {printed}");
    }
    let stated = answers["load"][0]["whole"]["offered_bps"].as_f64().unwrap();
    assert!((stated - 66.72e6).abs() < 1e3, "{stated}");

    let folder = folder_with("a.toml", &loaded("100 ms"));
    let at = folder.path();
    let checked = expect(at, "check a.toml", 0);
    let checked = checked.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(checked.contains(&format!("o{load}: overloaded")), "{checked}");
    let checked = expect(at, "check a.toml --set link.mile.rate=500Mbit/s", 0);
    assert!(checked.contains("66.7 Mbit/s on mile, 13 % of its rate\n"), "{checked}");
    expect(at, "run a.toml --no-alternatives --out out", 0);
    let transfers = knee_record::read_run(&at.join("out")).unwrap().records.transfers;
    let arrived: u64 = transfers.iter().map(|row| row.size_bytes).sum();
    // 400 arrivals: a standard deviation is 5 %.
    let arrived_bps = arrived as f64 * 8.0 / 20.0;
    assert!((arrived_bps / stated - 1.0).abs() < 0.2, "{arrived_bps}");
}

/// The same file with a fortieth of the arrivals has an answer, and says its load.
#[test]
fn the_load_stands_beside_an_answer() {
    let (printed, answers) = answered(&loaded("4 s"), "");
    let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("Offered load: 1.67 Mbit/s on mile, 3.3 % of its rate."), "{printed}");
    assert!(effects(&answers).iter().all(|(_, effect)| effect != "overloaded"), "{printed}");
    assert!(answers["mix"].get("overloaded").is_none());
}

/// Two links of 10 Mbit/s and 12 Mbit/s of transfers: both carry it, one alone does not; 24 are too
/// many for both.
#[test]
fn load_on_several_paths_counts_for_all_and_for_each() {
    let links = [("left", "10 Mbit/s", "10 ms"), ("right", "10 Mbit/s", "10 ms")];
    let mix = |interval: &str| {
        let workload =
            format!("{{ mix = {{ arrival_interval = \"{interval}\", sizes = \"150 kB\" }} }}");
        two_links("1 MB", "minrtt", links)
            .replace("{ file = \"1 MB\" }", &workload)
            .replacen("\"60 s\"", "\"20 s\"", 1)
    };
    let (printed, answers) = answered(&mix("100 ms"), "");
    assert_eq!(answers["paths"][0]["effect"], "better", "{printed}");
    let sentence = answers["paths"][0]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains(" alone the link is overloaded (offered load: 12 Mbit/s"),
        "{sentence}"
    );
    let (printed, answers) = answered(&mix("50 ms"), "");
    assert_eq!(answers["paths"][0]["effect"], "overloaded", "{printed}");
    let sentence = answers["paths"][0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("no answer, the links are overloaded"), "{sentence}");
    assert!(!sentence.contains("use both"), "{sentence}");
}

/// Test and control that follow a log are the log once: each line is a transfer of one of them.
#[test]
fn test_and_control_share_the_lines_of_a_log() {
    let workload = "workload = { mix = { process = \"clients\", arrivals = \"log\", sizes = { log \
                    = \"log.csv\" } } }\n";
    let text = format!(
        "name = \"Log\"\nduration = \"20 s\"\n[link.mile]\n{CLEAN}\n[path.main]\nforward = \
         [\"mile\"]\nreverse_delay = \"40 ms\"\n[[flow]]\nname = \"test\"\ncc = \"bbr\"\n\
         {workload}[[flow]]\nname = \"control\"\ncc = \"cubic\"\n{workload}"
    );
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let lines: String =
        (0..200).map(|n| format!("{},{}\n", f64::from(n) / 20.0, 1000 + n)).collect();
    std::fs::write(at.join("log.csv"), format!("time,bytes\n{lines}")).unwrap();
    let checked = expect(at, "check a.toml", 0);
    let told = "all 200 begin within the run; dealt at random among 2 flows";
    assert!(checked.contains(told), "{checked}");
    let printed = expect(at, "run a.toml --out out", 0);
    let rows = knee_record::read_run(&at.join("out")).unwrap().records.transfers;
    let mut sizes: Vec<u64> = rows.iter().map(|row| row.size_bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, (1000..1200).collect::<Vec<u64>>());
    let of_first = rows.iter().filter(|row| row.flow == rows[0].flow).count();
    assert!((70..130).contains(&of_first), "{of_first}");
    // Each of 200 transfers with each of ten seeds is compared with itself.
    let answers = json(&at.join("out/answers.json"));
    assert_eq!(answers["mix"]["classes"][0]["transfers"], 2000, "{printed}");
    assert_eq!(answers["mix"]["classes"][0]["split"], Value::Null, "{printed}");
}

/// Without a process in common two mixes are not test and control: a line says so.
#[test]
fn mixes_without_a_process_in_common_are_told() {
    let text = mix("bbr", "cubic", CLEAN, "\"8 kB\"", "200 ms")
        .replace("process = \"clients\", ", "")
        .replacen("\"60 s\"", "\"6 s\"", 1);
    let folder = folder_with("a.toml", &text);
    let printed = expect(folder.path(), "run a.toml --out out", 0);
    let plain = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "No answer: test and control have no process in common, so they are not test and \
                control; write process = \"main\" in both.";
    assert!(plain.starts_with(told), "{printed}");
    assert!(!folder.path().join("out/answers.json").exists());
    // The arrivals of one that waits are the other's: it can have no process.
    let (before, control) = text.split_once("name = \"control\"").unwrap();
    let waits = control.replace("arrival_interval = \"200 ms\", ", "");
    let waits = format!("{before}name = \"control\"\nafter = \"test\"{waits}");
    std::fs::write(folder.path().join("waits.toml"), &waits).unwrap();
    let printed = expect(folder.path(), "run waits.toml --out waits", 0);
    assert!(!printed.contains("No answer"), "{printed}");
}

/// What two halves of one run show is said wherever they stand side by side.
#[test]
fn two_controllers_in_one_run_are_called_half_and_half() {
    let text = mix("bbr", "cubic", CLEAN, "\"50 kB\"", "200 ms").replacen("60 s", "10 s", 1);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let said = "half and half: shows who takes from whom, not which is better";
    let printed = expect(at, "run a.toml --out out", 0);
    let (_, after) = printed.split_once("seed 1").unwrap();
    assert!(
        after.trim_start_matches(|c| c != '\n').trim().starts_with("One run, half"),
        "{printed}"
    );
    assert!(printed.contains(said), "{printed}");
    let page = std::fs::read_to_string(at.join("out/report.html")).unwrap();
    assert!(page.contains(said) && page.contains("test[0] against control[0], half and half"));
    // The sentence counts transfers, not flows.
    assert!(page.contains(" transfers under bbr and ") && !page.contains("One bbr flow"));
    let same = mix("cubic", "cubic", CLEAN, "\"50 kB\"", "200 ms").replacen("60 s", "10 s", 1);
    std::fs::write(at.join("b.toml"), same).unwrap();
    assert!(!expect(at, "run b.toml --out same --no-alternatives", 0).contains(said));
}

/// The page of repeats has the answer as the page of a run has it, with its pictures, and the first
/// run with all of its figures.
#[test]
fn the_page_of_repeats_is_no_poorer_than_that_of_a_run() {
    let text = mix("bbr", "cubic", CLEAN, "\"50 kB\"", "200 ms").replacen("60 s", "10 s", 1);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    expect(at, "run a.toml --out one", 0);
    let printed = expect(at, "run a.toml --out many --repeat 3", 0);
    assert!(!printed.contains("flow.test[0]"), "{printed}");
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let seeds = "The answer is based on 10 seeds, which is the minimum; the figures of the runs are \
                 those of the 3 seeds of --repeat.";
    assert!(plain(&printed).contains(seeds), "{printed}");
    let page = |out: &str| std::fs::read_to_string(at.join(out).join("report.html")).unwrap();
    let (one, many) = (page("one"), page("many"));
    assert!(!one.contains("--repeat.") && plain(&many).contains(seeds));
    for part in ["others’ queue", "mean time or rate", "cut off", "class=\"effect ", "<svg"] {
        assert!(one.contains(part) && many.contains(part), "{part}");
    }
    assert!(many.contains("Size and serving time") && !many.contains("flow.test[0].transfers"));
    expect(at, "report many", 0);
    assert_eq!(page("many").matches("<svg").count(), many.matches("<svg").count());
}

/// Mean over mean is the ratio beside it: readers divide.
#[test]
fn means_divide_to_the_ratio() {
    let (_, answers) = answered(&mix("bbr", "cubic", LOSSY, "\"2 MB\"", "3 s"), "");
    for class in answers["mix"]["classes"].as_array().unwrap() {
        let [ours, theirs] = [0, 1].map(|side| class["means"][side].as_f64().unwrap());
        let ratio = class["compared"]["estimate"].as_f64().unwrap();
        assert!((ours / theirs / ratio - 1.0).abs() < 1e-9, "{class}");
    }
}
