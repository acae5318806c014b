//! `knee run`: output and exit codes.

use crate::common::{
    FALSE_CLAIM, SMALL, TRUE_CLAIM, complaint, expect, folder_with, json, knee, run, texts,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const SAME: [&str; 6] = [
    "scenario.toml",
    "flows.parquet",
    "samples.parquet",
    "links.parquet",
    "summary.json",
    "report.html",
];

fn assert_same_run(a: &Path, b: &Path) {
    for name in SAME {
        let read = |folder: &Path| fs::read(folder.join(name)).unwrap();
        assert!(read(a) == read(b), "{name} differs between {} and {}", a.display(), b.display());
    }
}

#[test]
fn jobs_do_not_change_a_byte() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::write(at.join("b.toml"), SMALL.replace("bbr\"", "reno\"")).unwrap();
    let one = expect(at, "run a.toml b.toml --repeat 3 --jobs 1 --out one", 0);
    let two = expect(at, "run a.toml b.toml --repeat 3 --jobs 2 --out two", 0);
    assert_eq!(one.replace("one/", ""), two.replace("two/", ""));
    for name in ["a", "b"] {
        for number in 1..=3 {
            let below = |out: &str| at.join(out).join(name).join(format!("repeat-{number}"));
            assert_same_run(&below("one"), &below("two"));
        }
        let repeats = |out: &str| json(&at.join(out).join(name).join("repeat.json"));
        assert_eq!(repeats("one"), repeats("two"));
        assert_eq!(repeats("one")["seeds"], serde_json::json!([5, 6, 7]));
    }
    let rtt = |name: &str| {
        let repeats = json(&at.join("one").join(name).join("repeat.json"));
        repeats["measures"]["rtt_us.mean"]["mean"].clone()
    };
    assert_ne!(rtt("a"), rtt("b"));
}

#[test]
fn seeds_matter() {
    let folder = folder_with("a.toml", SMALL);
    expect(folder.path(), "run a.toml --out one", 0);
    expect(folder.path(), "run a.toml --out two --seed 6", 0);
    let summary = |out: &str| fs::read(folder.path().join(out).join("summary.json")).unwrap();
    assert_ne!(summary("one"), summary("two"));
}

/// The printed command repeats the run in a shell; so does the resolved scenario alone.
#[test]
fn the_printed_line_repeats_the_run() {
    let folder = folder_with("a b.toml", SMALL);
    let at = folder.path();
    let printed = crate::common::knee(at)
        .args(["run", "a b.toml", "--set", "link.bottleneck.rate=20 Mbit/s", "--seed", "9"])
        .args(["--out", "one"])
        .output()
        .unwrap();
    let (out, err) = texts(&printed);
    assert!(printed.status.success(), "{err}");
    let line = out.lines().find_map(|line| line.strip_prefix("repeat   knee ")).unwrap();
    let line = format!("'{}' {line} --out two", env!("CARGO_BIN_EXE_knee"));
    let again = std::process::Command::new("sh").arg("-c").arg(&line).current_dir(at).output();
    assert!(again.unwrap().status.success(), "{line}");
    assert_same_run(&at.join("one"), &at.join("two"));
    expect(at, "run one/scenario.toml --out three", 0);
    for name in ["scenario.toml", "samples.parquet", "summary.json"] {
        let read = |out: &str| fs::read(at.join(out).join(name)).unwrap();
        assert!(read("one") == read("three"), "{name}");
    }
}

/// The summary conforms to its published schema, `--json` prints the same bytes, and values that
/// vary between runs are in the manifest.
#[test]
fn documents_are_as_described() {
    let folder = folder_with("a.toml", &format!("{SMALL}{TRUE_CLAIM}"));
    let at = folder.path();
    let printed = expect(at, "run a.toml --json", 0);
    let directory = at.join("knee-out/a");
    assert_eq!(printed, fs::read_to_string(directory.join("summary.json")).unwrap());
    for name in ["summary", "manifest"] {
        let schema = serde_json::from_str(&expect(at, &format!("schema {name}"), 0)).unwrap();
        let document = json(&directory.join(format!("{name}.json")));
        jsonschema::validate(&schema, &document).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let manifest = json(&directory.join("manifest.json"));
    assert!(
        manifest["wall_s"].as_f64() > Some(0.0)
            && manifest["peak_rss_bytes"].as_u64() > Some(1 << 20)
    );
    let packets = manifest["data_packets"].as_f64().unwrap();
    // 3 s at 10 Mbit/s, in packets of 1500 bytes.
    assert!((1000.0..2500.0).contains(&packets), "{packets}");
    assert!(manifest["events"].as_f64().unwrap() >= packets);
    let known = [("summary.json", "knee-summary/1"), ("flows.parquet", "knee-flows/2")];
    assert!(known.iter().all(|(file, schema)| manifest["schemas"][file] == *schema));
    // SHA-256 of the scenario, as computed by coreutils.
    let sum = std::process::Command::new("sha256sum").arg(at.join("a.toml")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert_eq!(manifest["inputs"]["a.toml"].as_str(), sum.split_whitespace().next());
}

#[test]
fn several_files_give_one_document() {
    let folder = folder_with("a.toml", SMALL);
    fs::copy(folder.path().join("a.toml"), folder.path().join("b.toml")).unwrap();
    let printed = expect(folder.path(), "run b.toml a.toml --json", 0);
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(document["schema"], "knee-runs/1");
    let files = document["runs"].as_array().unwrap().iter().map(|run| run["file"].clone());
    assert_eq!(files.collect::<Vec<_>>(), ["b.toml", "a.toml"]);
    assert_eq!(document["runs"][0]["directory"], "knee-out/b");
    assert_eq!(document["runs"][1]["summary"]["name"], "Small");
}

/// A claim that fails as recorded is fine; any other deviation is not.
#[test]
fn exit_code_tells_whether_outcomes_are_as_on_record() {
    let on_record = "outcome = \"fails\"\nfinding = \"No link is faster than itself.\"\n";
    for (claims, code) in [
        (TRUE_CLAIM.to_string(), 0),
        (FALSE_CLAIM.to_string(), 1),
        (format!("{FALSE_CLAIM}{on_record}"), 0),
        (format!("{TRUE_CLAIM}{on_record}"), 1),
    ] {
        let folder = folder_with("a.toml", &format!("{SMALL}{claims}"));
        let printed = expect(folder.path(), "run a.toml", code);
        assert_eq!(printed.contains("differs from record"), code == 1, "{printed}");
    }
}

#[test]
fn nothing_is_overwritten_unless_forced() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let out = at.join("out");
    expect(at, "run a.toml --out out --packet-log", 0);
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let before = fs::read(out.join("summary.json")).unwrap();
    let said = complaint(at, "run a.toml --out out --seed 8", 2);
    assert!(said.contains("out is not empty") && said.contains("--force"), "{said}");
    assert_eq!(fs::read(out.join("summary.json")).unwrap(), before);
    expect(at, "run a.toml --out out --seed 8 --repeat 2 --force", 0);
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&out), ["notes.txt", "repeat-1", "repeat-2", "repeat.json", "report.html"]);
    expect(at, "run a.toml --out out --force", 0);
    assert!(!out.join("repeat-1").exists() && !out.join("packets.csv").exists());
    assert_eq!(fs::read_to_string(out.join("notes.txt")).unwrap(), "mine");
}

/// An independent checker, which shares no code with the simulator, accepts the log.
#[test]
fn the_packet_log_passes_the_checker() {
    let folder = folder_with("a.toml", SMALL);
    expect(folder.path(), "run a.toml --packet-log", 0);
    let log = fs::File::open(folder.path().join("knee-out/a/packets.csv")).unwrap();
    let report = knee_verify::check(std::io::BufReader::new(log)).unwrap();
    assert!(report.violations.is_empty(), "{:?}", report.violations);
}

#[test]
fn traces_go_along() {
    let scenario = SMALL.replace("\"10 Mbit/s\"", "{ trace = \"links/up\" }");
    let folder = folder_with("a.toml", &scenario);
    let at = folder.path();
    let missing = complaint(at, "run a.toml", 2);
    assert!(missing.contains("links/up") && missing.contains("there is no such file"), "{missing}");
    assert!(!at.join("knee-out").exists());
    fs::create_dir(at.join("links")).unwrap();
    // One opportunity per millisecond: 12 Mbit/s.
    fs::write(at.join("links/up"), "1\n").unwrap();
    expect(at, "run a.toml", 0);
    fs::remove_dir_all(at.join("links")).unwrap();
    expect(at, "run knee-out/a/scenario.toml --out again", 0);
    let inputs = &json(&at.join("knee-out/a/manifest.json"))["inputs"];
    assert!(inputs["links/up"].is_string(), "{inputs}");
}

/// All errors in all files are reported, and nothing runs.
#[test]
fn every_mistake_is_told_at_once() {
    let wrong = SMALL.replace("\"3 s\"", "3").replace("cc = \"bbr\"", "cc = \"brr\"");
    let folder = folder_with("a.toml", &wrong);
    fs::write(folder.path().join("b.toml"), SMALL.replace("[path.main]", "[path.mian")).unwrap();
    let said = complaint(folder.path(), "run a.toml b.toml none.toml", 2);
    assert!(said.contains("none.toml"), "{said}");
    fs::write(folder.path().join("none.toml"), SMALL).unwrap();
    let said = complaint(folder.path(), "run a.toml b.toml none.toml", 2);
    for part in ["a.toml:3:", "brr", "b.toml:12:"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!folder.path().join("knee-out").exists());
}

#[test]
fn same_names_do_not_share_a_directory() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::create_dir(at.join("other")).unwrap();
    fs::copy(at.join("a.toml"), at.join("other/a.toml")).unwrap();
    let said = complaint(at, "run a.toml other/a.toml", 2);
    assert!(said.contains("two scenarios have the same output folder, knee-out/a"), "{said}");
}

#[test]
fn colour_is_for_terminals() {
    let folder = folder_with("a.toml", &format!("{SMALL}{FALSE_CLAIM}"));
    let (out, err) = texts(&run(folder.path(), "run a.toml"));
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "{out}{err}");
}

/// Without --out nothing is refused or lost: each run gets a folder.
#[test]
fn runs_are_numbered_where_nobody_says_where() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    for (seed, name) in [(5, "a"), (6, "a-2"), (7, "a-3")] {
        let printed = expect(at, &format!("run a.toml --seed {seed}"), 0);
        assert!(printed.contains(&format!("report   knee-out/{name}/report.html")), "{printed}");
        assert_eq!(json(&at.join("knee-out").join(name).join("summary.json"))["seed"], seed);
    }
    // A given name is used as is.
    expect(at, "run a.toml --seed 8 --force", 0);
    assert_eq!(json(&at.join("knee-out/a/summary.json"))["seed"], 8);
    assert_eq!(json(&at.join("knee-out/a-2/summary.json"))["seed"], 6);
}

/// One repeat is a run with its own page; several have groups, and a page that agrees with the
/// document.
#[test]
fn repeats_have_a_page_with_groups() {
    let text = SMALL.replacen("cc = \"bbr\"", "cc = \"bbr\"\ncount = 9", 1);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let printed = expect(at, "run a.toml --repeat 1 --out one", 0);
    assert!(printed.contains("1 run, seed 5") && at.join("one/report.html").is_file(), "{printed}");
    let printed = expect(at, "run a.toml --repeat 3 --out three", 0);
    assert!(printed.contains("bbr: goodput"), "{printed}");
    assert!(!printed.contains("bbr[0]"), "{printed}");
    let repeats = json(&at.join("three/repeat.json"));
    let of = |number: u32| {
        let run = json(&at.join(format!("three/repeat-{number}/summary.json")));
        let flows = run["flows"].as_array().unwrap().clone();
        let members = flows.iter().filter(|flow| flow["name"] == "bbr");
        members.map(|flow| flow["goodput_bps"].as_f64().unwrap()).sum::<f64>()
    };
    let mean = (of(1) + of(2) + of(3)) / 3.0;
    let told = repeats["measures"]["group.bbr.goodput_bps"]["mean"].as_f64().unwrap();
    assert!((told / mean - 1.0).abs() < 0.01, "{told} is not {mean}");
    let page = fs::read(at.join("three/report.html")).unwrap();
    expect(at, "report three", 0);
    let again = String::from_utf8(fs::read(at.join("three/report.html")).unwrap()).unwrap();
    assert!(again.contains("<td>bbr: goodput</td>") && !page.is_empty());
    // With many flows, a single run shows its groups first.
    let printed = expect(at, "run a.toml --out plain", 0);
    assert!(printed.contains("bbr × 9") && !printed.contains("bbr[0]"), "{printed}");
}

/// Groups of many flows have rows for what their applications waited for, also over repeats: the mean
/// of the flows' page load times.
#[test]
fn repeats_of_groups_say_what_their_workload_is_run_for() {
    let text = SMALL.replacen("cc = \"bbr\"", "cc = \"bbr\"\ncount = 9\nworkload = \"page\"", 1);
    let text = text.replace("3 s", "20 s").replace("10 Mbit/s", "100 Mbit/s");
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let printed = expect(at, "run a.toml --repeat 2 --out two", 0);
    assert!(printed.contains("bbr: page load time"), "{printed}");
    let repeats = json(&at.join("two/repeat.json"));
    let told = &repeats["measures"]["group.bbr.page.load_us"];
    let mean = |number: u32| {
        let run = json(&at.join(format!("two/repeat-{number}/summary.json")));
        let flows = run["flows"].as_array().unwrap().clone();
        let pages = flows.iter().filter(|flow| flow["name"] == "bbr");
        pages.map(|flow| flow["page"]["load_us"].as_f64().unwrap()).sum::<f64>() / 9.0
    };
    let (least, most) = (mean(1).min(mean(2)), mean(1).max(mean(2)));
    assert!((told["min"].as_f64().unwrap() / least - 1.0).abs() < 1e-9, "{told}");
    assert!((told["max"].as_f64().unwrap() / most - 1.0).abs() < 1e-9, "{told}");
    expect(at, "report two", 0);
    let page = fs::read_to_string(at.join("two/report.html")).unwrap();
    assert!(page.contains("<td>bbr: page load time</td>"));
}

/// The table has the measures of bursts, a page, a video and a mix.
#[test]
fn the_table_says_what_the_workload_is_run_for() {
    let with = |workload: &str| {
        let flow = format!("cc = \"cubic\"\nworkload = {workload}");
        SMALL.replacen("cc = \"cubic\"", &flow, 1).replace("3 s", "20 s")
    };
    let mix = "{ mix = { arrival_interval = \"200 ms\", sizes = \"20 kB\" } }";
    let bursts = "{ bursts = { size = \"20 kB\", pause = \"100 ms\" } }";
    for (workload, heads) in [
        (bursts, vec!["answered in"]),
        ("\"page\"", vec!["loaded in"]),
        ("\"dash\"", vec!["bitrate", "stalled", "started in"]),
        (mix, vec!["transfers", "mean time"]),
    ] {
        let folder = folder_with("a.toml", &with(workload));
        let printed = expect(folder.path(), "run a.toml", 0);
        let head = printed.lines().find(|line| line.starts_with("flow ")).unwrap();
        assert!(heads.iter().all(|name| head.contains(name)), "{printed}");
    }
}

/// The time to answer a request is in the table of a run, also for programs, and of repeats.
#[test]
fn bursts_are_in_all_tables() {
    let bursts = "workload = { bursts = { size = \"20 kB\", pause = \"100 ms\" } }";
    let text = SMALL.replacen("cc = \"cubic\"", &format!("cc = \"cubic\"\n{bursts}"), 1);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let csv = expect(at, "run a.toml --out one --format csv", 0);
    let mean = |run: &str| {
        let summary = json(&at.join(run).join("summary.json"));
        summary["flows"][1]["bursts"]["time_us"]["mean"].as_f64().unwrap()
    };
    assert_eq!(row_of(&csv, "cubic[0]")["answered_in_us"], mean("one"), "{csv}");
    assert!(!row_of(&csv, "bbr[0]").contains_key("answered_in_us"), "{csv}");
    let csv = expect(at, "run a.toml --repeat 2 --out two --format csv", 0);
    let row = csv.lines().find(|line| line.starts_with("flow.cubic[0].bursts.time_us.mean,"));
    let shown: f64 = row.unwrap().split(',').nth(1).unwrap().parse().unwrap();
    let both = (mean("two/repeat-1") + mean("two/repeat-2")) / 2.0;
    assert!((shown - both).abs() < 1e-6 * both, "{shown} is not {both}");
    let page = fs::read_to_string(at.join("two/report.html")).unwrap();
    assert!(page.contains("<td>cubic[0]: bursts, mean time to answer a request</td>"));
}

/// Ten flows in three groups: transfers, pages and videos.
const GROUPS: &str = r#"
duration = "10 s"

[link.b]
rate = "20 Mbit/s"
delay = "10 ms"
aqm = "fq-codel"

[path.main]
forward = ["b"]
reverse_delay = "10 ms"

[[flow]]
name = "mix"
cc = "cubic"
count = 3
workload = { mix = { arrival_interval = "200 ms", sizes = "20 kB" } }

[[flow]]
name = "page"
cc = "cubic"
count = 5
workload = "page"

[[flow]]
name = "video"
cc = "cubic"
count = 2
workload = "dash"
"#;

/// Numbers of the rows of a CSV table whose first column has this name, by head.
fn row_of(csv: &str, name: &str) -> BTreeMap<String, f64> {
    let heads: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let at = heads.iter().position(|head| *head == "flow").unwrap();
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.find(|row| row[at] == name).unwrap();
    let numbers = heads.iter().zip(row);
    numbers.filter_map(|(head, cell)| Some((head.to_string(), cell.parse().ok()?))).collect()
}

/// The row of a group has what its applications waited for: sums of counts, means of the others.
#[test]
fn groups_say_what_their_workload_is_run_for() {
    let folder = folder_with("a.toml", GROUPS);
    let at = folder.path();
    let csv = expect(at, "run a.toml --out out --format csv", 0);
    let summary = json(&at.join("out/summary.json"));
    let flows = summary["flows"].as_array().unwrap();
    let of = |name: &str, pointer: &str| -> Vec<f64> {
        let members = flows.iter().filter(|flow| flow["name"] == name);
        members.map(|flow| flow.pointer(pointer).unwrap().as_f64().unwrap()).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let near = |row: &BTreeMap<String, f64>, head: &str, value: f64| {
        let shown = row.get(head).copied();
        assert!(shown.is_some_and(|shown| (shown - value).abs() <= 1e-9 * value), "{head}\n{csv}");
    };
    let row = row_of(&csv, "page × 5");
    near(&row, "loaded_in_us", mean(&of("page", "/page/load_us")));
    assert!(!row.contains_key("bitrate_bps") && !row.contains_key("transfers"), "{csv}");
    let row = row_of(&csv, "video × 2");
    near(&row, "bitrate_bps", mean(&of("video", "/video/bitrate_bps")));
    near(&row, "stalled_us", mean(&of("video", "/video/stall_us")));
    near(&row, "started_in_us", mean(&of("video", "/video/startup_us")));
    let row = row_of(&csv, "mix × 3");
    let finished = of("mix", "/transfers/0/finished");
    let times = of("mix", "/transfers/0/completion_us/mean");
    let count: f64 = finished.iter().sum();
    near(&row, "transfers", count);
    let total: f64 = finished.iter().zip(&times).map(|(count, time)| count * time).sum();
    near(&row, "mean_time_us", total / count);
}

/// A time that one flow of a group did not see the end of is missing from its group, as from the
/// flow's own row.
#[test]
fn groups_have_no_time_that_a_flow_lacks() {
    let late = GROUPS.replace("count = 5\n", "count = 5\nstart_interval = \"2.4 s\"\n");
    let folder = folder_with("a.toml", &late);
    let csv = expect(folder.path(), "run a.toml --out out --format csv", 0);
    let summary = json(&folder.path().join("out/summary.json"));
    let pages = summary["flows"].as_array().unwrap().iter().filter(|flow| flow["name"] == "page");
    let loaded: Vec<bool> = pages.map(|flow| flow["page"]["load_us"].is_number()).collect();
    assert_eq!(loaded, [true, true, true, true, false]);
    assert!(!row_of(&csv, "page × 5").contains_key("loaded_in_us"), "{csv}");
    let shown = expect(folder.path(), "run a.toml --out again", 0);
    let row = shown.lines().find(|line| line.starts_with("page × 5")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..5], ["page", "×", "5", "cubic", "–"], "{shown}");
}

/// A server's log is read, and the lines used and skipped are reported.
#[test]
fn access_logs_are_read_and_told() {
    let mix = "{ mix = { arrival_interval = \"100 ms\", sizes = { log = \"access.log\" } } }";
    let text = SMALL.replacen("cc = \"cubic\"", &format!("cc = \"cubic\"\nworkload = {mix}"), 1);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let line = |what: &str| {
        format!("10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" {what}\n")
    };
    let log = [line("200 2326"), line("200 9000"), line("304 -"), "cut o\n".to_string()].concat();
    fs::write(at.join("access.log"), log).unwrap();
    let told = "access.log: Common Log Format, 2 lines taken, 2 not: 1 not in this format (first: \
                line 4), 1 without a body (first: line 3)";
    assert!(expect(at, "check a.toml", 0).contains(told));
    let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain(expect(at, "run a.toml --out out", 0)).contains(told));
    for command in ["run", "check", "rank"] {
        let said = complaint(at, &format!("{command} access.log"), 2);
        assert!(said.contains("is an access log (Common Log Format), not a scenario"), "{said}");
        assert!(said.contains("sizes = { log = \"access.log\" }"), "{said}");
    }
    // The folder contains the log and repeats the run.
    expect(at, "run out/scenario.toml --out again", 0);
    let read = |out: &str| fs::read(at.join(out).join("summary.json")).unwrap();
    assert_eq!(read("out"), read("again"));
}

#[test]
fn a_broken_log_that_two_mixes_name_is_told_once() {
    let mix = "{ mix = { arrival_interval = \"100 ms\", sizes = { log = \"access.csv\" } } }";
    let text = ["bbr", "cubic"].into_iter().fold(SMALL.to_string(), |text, cc| {
        let cc = format!("cc = \"{cc}\"\n");
        text.replacen(&cc, &format!("{cc}workload = {mix}\n"), 1)
    });
    let folder = folder_with("a.toml", &text);
    fs::write(folder.path().join("access.csv"), "date,octets\n1,2\n").unwrap();
    let said = complaint(folder.path(), "check a.toml", 2);
    assert_eq!(said.matches("none of the columns").count(), 1, "{said}");
}

/// Transfers follow the times and sizes of the log; the page draws the log.
#[test]
fn arrivals_follow_the_log() {
    let mix =
        "{ mix = { arrivals = \"log\", sizes = { log = \"access.csv\", class = \"page\" } } }";
    let text = SMALL.replacen("cc = \"cubic\"", &format!("cc = \"cubic\"\nworkload = {mix}"), 1);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    let log = "time,bytes,class\n5.0,700,video\n5.5,4000,page\n7.0,60000,page\n6.25,900,page\n";
    fs::write(at.join("access.csv"), log).unwrap();
    expect(at, "run a.toml --out out", 0);
    let mut rows = knee_record::read_run(&at.join("out")).unwrap().records.transfers;
    rows.sort_by_key(|row| row.number);
    let sizes: Vec<u64> = rows.iter().map(|row| row.size_bytes).collect();
    assert_eq!(sizes, [4000, 900, 60_000]);
    let since: Vec<u64> = rows.iter().map(|row| (row.start_ns - rows[0].start_ns) / 1000).collect();
    assert_eq!(since, [0, 750_000, 1_500_000], "microseconds");
    let page = fs::read_to_string(at.join("out/report.html")).unwrap();
    assert!(page.contains("Access log: access.csv") && page.contains("classes: video 1, page 3"));
    expect(at, "report out", 0);
    let again = fs::read_to_string(at.join("out/report.html")).unwrap();
    assert!(again.contains("Access log: access.csv"), "from the copy in the folder");
    // A log without times cannot be followed.
    fs::write(at.join("access.csv"), "bytes,class\n700,page\n").unwrap();
    let said = complaint(at, "check a.toml", 2);
    assert!(said.contains("arrivals cannot follow the log"), "{said}");
}

#[test]
fn a_count_below_zero_names_the_limits() {
    let folder =
        folder_with("a.toml", &SMALL.replacen("cc = \"bbr\"", "cc = \"bbr\"\ncount = -1", 1));
    let said = complaint(folder.path(), "check a.toml", 2);
    assert!(said.contains("expected a whole number from 1 to 100000, found -1"), "{said}");
}

/// The timeout of 220 ms is doubled up to 120 s, so that ten of them have passed after some five
/// minutes (RFC 6298, section 5.5). A link that carries nothing is no fault of the run.
#[test]
fn a_flow_that_stalls_is_told_beside_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let scenario = |name: &str, link: &str| {
        let text = format!(
            "duration = \"400 s\"\n[link.wire]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n{link}\n\
             [path.main]\nforward = [\"wire\"]\nreverse_delay = \"10 ms\"\n\
             [[flow]]\nname = \"f\"\ncc = \"reno\"\n"
        );
        fs::write(at.join(format!("{name}.toml")), text).unwrap();
        let output =
            knee(at).args(["run", &format!("{name}.toml"), "--out", name]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary = json(&at.join(name).join("summary.json"));
        assert_eq!(summary["verdict"], "valid");
        (String::from_utf8(output.stdout).unwrap(), summary["stalled"].clone())
    };
    let (text, stalled) = scenario("dead", "down = [{ from = \"10 s\", until = \"400 s\" }]");
    assert_eq!(stalled[0]["flow"], "f[0]");
    let timeouts = stalled[0]["timeouts"].as_f64().unwrap();
    assert!((10.0..12.0).contains(&timeouts), "{stalled}");
    let said = "verdict  valid\nwarning  flow f[0] sent for 1";
    assert!(text.contains(said), "{text}");
    let (text, stalled) = scenario("outage", "down = [{ from = \"10 s\", until = \"40 s\" }]");
    assert!(stalled.is_null() && !text.contains("warning"), "{text}");
}
