//! The exact output of commands in every format, while tables and documents move to
//! `knee-present`: `tests/net`. `KNEE_WRITE_NET=1` rewrites it; read the difference before you
//! commit it.
//!
//! The scenarios are tiny. Of a page the file holds the tables, and a hash of the whole; of a JSON
//! document with records only a hash. Whole pages and documents are in `target/tmp/net`, so two
//! versions can be compared with `diff -r`.

#![cfg(target_os = "linux")]

mod golden;

use crate::common::{json, knee};
use golden::{hash, of_page};
use knee_lab::fidelity::page;
use knee_lab::record::{Fidelity, FidelityGrid, GridCell, Verdict};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Longest JSON document that is kept whole, bytes.
const JSON_MAX: usize = 6_000;

/// A flow without end and a file over a link of 10 Mbit/s, with claims.
const GOOD: &str = include_str!("../../cmd/outputs.in/good.toml");

/// An application of each kind.
const APPS: &str = r#"
name = "Applications"
duration = "4 s"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"

[[flow]]
name = "file"
cc = "reno"
workload = { file = "100 kB" }

[[flow]]
name = "endless"
cc = "reno"
start = "1 s"
workload = { file = "100 MB" }

[[flow]]
name = "bursts"
cc = "reno"
workload = { bursts = { size = "20 kB", pause = "200 ms", count = 5 } }

[[flow]]
name = "page"
cc = "cubic"
workload = "page"

[[flow]]
name = "video"
cc = "cubic"
workload = { dash = { ladder = ["400 kbit/s", "1300 kbit/s"], segment = "1 s", media = "3 s", buffer = "3 s" } }

[[flow]]
name = "mix"
cc = "reno"
workload = { mix = { arrival_interval = "100 ms", sizes = { median = "10 kB", sigma = 1.0, max = "100 kB" } } }
"#;

/// Groups of flows, a flow alone, and two links.
const MANY: &str = r#"
name = "Many flows"
duration = "2 s"

[link.access]
rate = "20 Mbit/s"
delay = "5 ms"
buffer = "1 BDP"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[path.main]
forward = ["access", "bottleneck"]
reverse_delay = "10 ms"

[[flow]]
name = "files"
cc = "reno"
count = 8
start_jitter = "100 ms"
workload = { file = "50 kB" }

[[flow]]
name = "bulk"
cc = "cubic"
count = 2

[[flow]]
name = "alone"
cc = "reno"
"#;

/// Two controllers for the same traffic, which `knee run` compares.
const MIX: &str = r#"
name = "Mix"
duration = "6 s"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"

[[flow]]
name = "tested"
cc = "reno"
workload = { mix = { arrival_interval = "150 ms", process = "all", sizes = { median = "30 kB", sigma = 1.0, max = "300 kB" } } }

[[flow]]
name = "usual"
cc = "cubic"
workload = { mix = { arrival_interval = "150 ms", process = "all", sizes = { median = "30 kB", sigma = 1.0, max = "300 kB" } } }
"#;

/// Enough connections for advice.
const DENSE: &str = r#"
name = "Many connections"
duration = "6 s"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"

[[flow]]
cc = "reno"
workload = { mix = { arrival_interval = "20 ms", sizes = { median = "10 kB", sigma = 1.0, max = "100 kB" } } }
"#;

/// A file over two paths.
const PATHS: &str = r#"
name = "Two paths"
duration = "5 s"

[link.a]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[link.b]
rate = "5 Mbit/s"
delay = "20 ms"
buffer = "2 BDP"

[path.a]
forward = ["a"]
reverse_delay = "10 ms"

[path.b]
forward = ["b"]
reverse_delay = "20 ms"

[[flow]]
name = "main"
paths = ["a", "b"]
scheduler = "minrtt"
cc = "cubic"
workload = { file = "500 kB" }
"#;

/// A single flow with a constant window.
const FIXED: &str = r#"
name = "Constant window"
duration = "3 s"

[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"

[[flow]]
cc = { name = "fixed", window = "2 packets" }
"#;

const STUDY: &str = r#"
name = "Small study"
source = "nobody, 2026"
conclusion = "Twice the rate is {S1} of the goodput."

[[run]]
name = "plain"
file = "good.toml"

[[run]]
name = "fast"
file = "good.toml"
set = { "link.bottleneck.rate" = "20 Mbit/s" }

[[claim]]
id = "S1"
says = "twice the rate, twice the goodput"
measure = "goodput"
of = "fast/cubic"
relative_to = "plain/cubic"
at_least = 1.5
source_figure = "2"

[[claim]]
id = "S2"
says = "a slow start"
measure = "goodput"
of = "plain/cubic"
at_most = "1 Mbit/s"
"#;

/// Runs commands, one a line, in a folder with the scenarios, and compares what they print. The
/// line `page FILE` adds a page.
fn net(topic: &str, lines: &str) {
    let folder = prepared();
    let mut commands = BTreeSet::new();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("net").join(topic);
    let _ = fs::remove_dir_all(&kept);
    fs::create_dir_all(&kept).unwrap();
    let mut all = String::new();
    for (number, line) in (1..).zip(lines.lines().map(str::trim).filter(|line| !line.is_empty())) {
        let (text, ending, whole) = match line.split_once(' ') {
            Some(("page", file)) => {
                let page = fs::read_to_string(folder.path().join(file)).unwrap();
                (of_page(&page), "html", page)
            }
            _ => {
                let printed = printed(folder.path(), line);
                let is_long = printed.starts_with('{') && printed.len() > JSON_MAX;
                let text = if is_long { hash(&printed) } else { printed.clone() };
                (text, "txt", printed)
            }
        };
        commands.extend(printed_commands(line, &whole));
        fs::write(kept.join(format!("{number:02}.{ending}")), whole).unwrap();
        all += &format!("$ {line}\n{text}\n");
    }
    for (number, (inside, command)) in commands.iter().enumerate() {
        runs(&folder.path().join(inside), command, &folder.path().join(format!("again-{number}")));
    }
    golden::compare(&format!("{topic}.txt"), &all);
}

/// The commands in what a command printed or on a page, each with the folder in which it is to run:
/// those that stand in a line of their own, perhaps behind a label, in a cell of a table, or in an
/// element `code`. A file in `inputs` is one of the folder that is shown.
fn printed_commands(line: &str, printed: &str) -> BTreeSet<(String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let shown = match words.as_slice() {
        ["page", file] => file.rsplit_once('/').map_or("", |(folder, _)| folder),
        ["report", folder, ..] => folder,
        _ => "",
    };
    let plain = |text: &str| {
        [("&#x2f;", "/"), ("&#x27;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&amp;", "&")]
            .iter()
            .fold(text.to_string(), |text, (escaped, plain)| text.replace(escaped, plain))
    };
    let of_page = printed.split("<code>").skip(1).filter_map(|rest| rest.split('<').next());
    let of_text = printed.lines().flat_map(|line| {
        let cells = line.strip_prefix('|').into_iter().flat_map(|cells| cells.split('|'));
        let labelled = line.split_once("  ").map(|(_, rest)| rest.trim_start());
        let said = line.split_once(": ").map(|(_, rest)| rest);
        cells.map(str::trim).chain([line]).chain(labelled).chain(said)
    });
    let found: Vec<&str> = match words.first() {
        Some(&"page") => of_page.collect(),
        _ => of_text.collect(),
    };
    let all = found.into_iter().filter(|text| text.starts_with("knee "));
    // A list has a description behind the command.
    let all = all.map(|text| plain(text.split("  ").next().unwrap_or(text).trim_end()));
    all.map(|command| {
        let inside = if command.contains(" inputs/") { shown } else { "" };
        (inside.to_string(), command)
    })
    .collect()
}

/// Runs a command as the shell does, with its results in a folder of their own.
fn runs(at: &Path, command: &str, out: &Path) {
    let program = env!("CARGO_BIN_EXE_knee");
    let line = command.replacen("knee ", &format!("{program} "), 1);
    let writes = ["run", "sweep", "rank", "evaluate", "reproduce", "compare"];
    let writes = writes.iter().any(|name| command.starts_with(&format!("knee {name} ")));
    let out = if writes { format!(" --out '{}'", out.display()) } else { String::new() };
    let done = Command::new("sh").args(["-c", &(line + &out)]).current_dir(at).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        matches!(done.status.code(), Some(0 | 1)),
        "printed, but does not run: {command}\n{errors}"
    );
}

#[test]
fn commands_are_found_where_they_are_printed() {
    let text = "\nreport   e/report.html\nrepeat   knee run a.toml\n\n| x | knee run inputs/b.toml |\n\
                Again: knee rank c.toml --cc 'a b'\n  knee run d.toml\n\
                Knee 0.1.0; knee rerun checks whether a folder is reproduced.\n";
    let found = printed_commands("report e --markdown", text);
    let wanted = [
        ("", "knee rank c.toml --cc 'a b'"),
        ("", "knee run a.toml"),
        ("", "knee run d.toml"),
        ("e", "knee run inputs/b.toml"),
    ];
    let wanted = wanted.map(|(inside, command)| (inside.to_string(), command.to_string()));
    assert_eq!(found, BTreeSet::from(wanted));
    let page = "<p>knee run x</p><code>knee run inputs&#x2f;a.toml</code>";
    let wanted = ("out".to_string(), "knee run inputs/a.toml".to_string());
    assert_eq!(printed_commands("page out/report.html", page), BTreeSet::from([wanted]));
}

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("good.toml", GOOD),
        ("apps.toml", APPS),
        ("many.toml", MANY),
        ("mix.toml", MIX),
        ("dense.toml", DENSE),
        ("paths.toml", PATHS),
        ("fixed.toml", FIXED),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("study")).unwrap();
    fs::write(folder.path().join("study/study.toml"), STUDY).unwrap();
    fs::write(folder.path().join("study/good.toml"), GOOD).unwrap();
    folder
}

fn printed(folder: &Path, line: &str) -> String {
    let mut command = knee(folder);
    let output = command.args(line.split_whitespace()).env("COLUMNS", "110").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // One: a claim fails.
    assert!(matches!(output.status.code(), Some(0 | 1)), "knee {line}\n{errors}");
    assert!(!output.stdout.is_empty(), "knee {line}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn runs_print_the_same() {
    net(
        "run",
        "check good.toml mix.toml
         run good.toml --out one
         page one/report.html
         run good.toml --out csv --format csv
         run good.toml --out markdown --format markdown
         run good.toml --out json --format json
         report one --markdown
         run apps.toml --out apps --no-alternatives
         page apps/report.html
         run apps.toml --out apps-csv --format csv --no-alternatives
         run many.toml --out many
         page many/report.html
         run many.toml fixed.toml --out two --format markdown
         rerun one --out again",
    );
}

#[test]
fn answers_print_the_same() {
    net(
        "answers",
        "run mix.toml --out mix
         page mix/report.html
         run mix.toml --out csv --format csv
         report mix --markdown
         run mix.toml --out repeat --repeat 2
         page repeat/report.html
         run paths.toml --out paths
         page paths/report.html",
    );
}

#[test]
fn repeats_and_comparisons_print_the_same() {
    net(
        "repeat",
        "run good.toml --out a --repeat 3
         page a/report.html
         run good.toml --out a-csv --repeat 3 --format csv
         run good.toml --out a-markdown --repeat 3 --format markdown
         report a --markdown
         run good.toml --out b --repeat 3 --set link.bottleneck.rate=8Mbit/s
         run many.toml --out many --repeat 2
         page many/report.html
         compare a b --out compared
         page compared/report.html
         report compared --markdown
         run fixed.toml --out c --repeat 3
         run fixed.toml --out d --repeat 3 --set link.bottleneck.rate=3Mbit/s
         compare c d --all
         compare c d --all --format csv
         compare c/repeat-1 d/repeat-1 --all
         compare c/repeat-1 d/repeat-1 --all --format markdown
         compare c/repeat-1 c/repeat-2 d/repeat-1 --all --format csv
         compare a/repeat-1 a/repeat-2 b/repeat-1 --all
         compare a/repeat-1 b/repeat-1 --format json",
    );
}

#[test]
fn sweeps_print_the_same() {
    net(
        "sweep",
        "sweep many.toml --vary link.bottleneck.rate=5Mbit/s,10Mbit/s --vary flow.bulk.cc=cubic,reno --repeat 2 --out s
         page s/report.html
         report s --markdown
         sweep many.toml --vary link.bottleneck.rate=5Mbit/s,10Mbit/s --vary flow.bulk.cc=cubic,reno --repeat 2 --out s --format csv
         sweep many.toml --vary link.bottleneck.rate=5Mbit/s,10Mbit/s --vary flow.bulk.cc=cubic,reno --repeat 2 --out s --format markdown
         sweep many.toml --vary link.bottleneck.rate=5Mbit/s,10Mbit/s --vary flow.bulk.cc=cubic,reno --repeat 2 --out s --format json",
    );
}

#[test]
fn rankings_print_the_same() {
    net(
        "rank",
        "rank fixed.toml --cc reno,cubic,vegas --repeat 2 --out r
         page r/report.html
         report r --markdown
         rank fixed.toml --cc reno,cubic,vegas --repeat 2 --out csv --format csv
         rank fixed.toml --cc reno,cubic,vegas --repeat 2 --out markdown --format markdown
         rank fixed.toml --cc reno,cubic --out json --format json",
    );
}

#[test]
fn evaluations_print_the_same() {
    net(
        "evaluate",
        "evaluate cubic --quick --section 6.3 --repeat 2 --out e
         page e/report.html
         report e --markdown
         evaluate cubic --quick --section 6.3 --repeat 2 --out e-csv --format csv
         evaluate cubic --quick --section 6.3 --repeat 2 --out e-json --format json",
    );
}

#[test]
fn curves_studies_and_lists_print_the_same() {
    net(
        "curve",
        "curve fixed.toml --out curve.svg
         curve fixed.toml --out csv.svg --format csv
         curve fixed.toml --out json.svg --format json
         reproduce study --all --out s
         page s/report.html
         report s --markdown
         reproduce study --all --out s-csv --format csv
         reproduce study --all --out s-json --format json
         list
         list studies --format csv
         list studies --format json
         list aqm --format markdown",
    );
}

#[test]
fn advice_and_rehearsals_print_the_same() {
    net(
        "advise",
        "run dense.toml --out dense --no-alternatives
         advise dense --candidates cubic --out advice --simulations 20
         page advice/report.html
         advise dense --candidates cubic --simulations 20 --format csv
         advise dense --candidates cubic --simulations 20 --format json
         steer rehearse mix.toml --triples 2 --calibration 2 --truth 2
         steer rehearse mix.toml --triples 2 --calibration 2 --truth 2 --format csv",
    );
}

/// The simulator twice, once under the name of the kernel, with other values.
#[test]
fn grounds_beside_each_other_print_the_same() {
    let folder = prepared();
    let at = folder.path();
    printed(at, "run good.toml --out both/sim");
    printed(at, "run good.toml --out both/kernel --set link.bottleneck.rate=9.5Mbit/s");
    let file = at.join("both/kernel/summary.json");
    let mut summary = json(&file);
    summary["ground"] = "kernel".into();
    fs::write(&file, summary.to_string()).unwrap();
    let fidelity = knee_lab::both::compare(&at.join("both"), "knee run good.toml").unwrap();
    let page = fs::read_to_string(at.join("both/report.html")).unwrap();
    // Its commands name the folder, which the template escapes.
    let page = page.replace(&at.to_str().unwrap().replace('/', "&#x2f;"), "FOLDER");
    let mut text = printed(at, "report both --markdown") + "\n" + &of_page(&page) + "\n";
    let grid = FidelityGrid::new(2, vec![cell("one", &fidelity), cell("other", &fidelity)]);
    text += &page::markdown(&grid);
    text += &format!("\n{}", of_page(&page::page(&grid, "knee fidelity").unwrap()));
    golden::compare("grounds.txt", &text);
}

fn cell(name: &str, fidelity: &Fidelity) -> GridCell {
    GridCell {
        name: name.to_string(),
        rate_bps: 1e7,
        rtt_us: 20_000.0,
        buffer_bdp: 2.0,
        loss_ratio: 0.0,
        reordering_us: 0.0,
        flows: 2,
        cc: "cubic".to_string(),
        kernel_runs: vec![Verdict::Valid, Verdict::Degraded],
        fidelity: fidelity.clone(),
    }
}
