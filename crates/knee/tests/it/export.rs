//! Output for other programs: CSV and Markdown contain exactly the numbers of the JSON document.

use crate::common::{SMALL, TRUE_CLAIM, complaint, expect, folder_with, json};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A table as read by an independent parser.
#[derive(Debug, PartialEq)]
struct Read {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Read {
    fn csv(text: &str) -> Read {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let fields = |record: &csv::StringRecord| record.iter().map(str::to_string).collect();
        let heads = fields(reader.headers().unwrap());
        Read { heads, rows: reader.records().map(|record| fields(&record.unwrap())).collect() }
    }

    /// Parses tables of a Markdown text, following GitHub's specification.
    fn markdown(text: &str) -> Vec<Read> {
        let cells = |line: &str| -> Vec<String> {
            let inner = line.trim().strip_prefix("| ").unwrap().strip_suffix(" |").unwrap();
            let cells = inner.replace("\\|", "\u{1}");
            let plain = |cell: &str| cell.trim().replace('\u{1}', "|").replace('\\', "");
            cells.split(" | ").map(plain).collect()
        };
        let mut tables: Vec<Read> = Vec::new();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("| ")) {
            match at.checked_sub(1).is_some_and(|before| lines[before].starts_with("| ")) {
                false => tables.push(Read { heads: cells(line), rows: Vec::new() }),
                true if line.starts_with("| ---") => {}
                true => tables.last_mut().unwrap().rows.push(cells(line)),
            }
        }
        tables
    }

    fn column(&self, name: &str) -> usize {
        let at = self.heads.iter().position(|head| head == name);
        at.unwrap_or_else(|| panic!("{name} is not in {:?}", self.heads))
    }

    fn number(&self, row: usize, column: &str) -> Option<f64> {
        let text = &self.rows[row][self.column(column)];
        (!text.is_empty()).then(|| text.parse().unwrap())
    }
}

/// Collects all numbers of a document.
fn numbers(document: &Value, found: &mut BTreeSet<u64>) {
    match document {
        Value::Number(number) => {
            // Maps minus zero to zero.
            found.insert((number.as_f64().unwrap() + 0.0).to_bits());
        }
        Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        Value::Object(entries) => entries.values().for_each(|value| numbers(value, found)),
        _ => {}
    }
}

/// Prints the same result in all formats. `OUT` in `line` stands for the output folder.
fn check(at: &Path, line: &str, code: i32) -> Read {
    let print = |format: &str| {
        let command = line.split(' ').next().unwrap();
        let line = line.replace("OUT", &format!("{command}-{format}"));
        expect(at, &format!("{line} --format {format}"), code)
    };
    let (csv, markdown) = (Read::csv(&print("csv")), Read::markdown(&print("markdown")));
    let document: Value = serde_json::from_str(&print("json")).unwrap();
    let mut known = BTreeSet::new();
    numbers(&document, &mut known);
    let mut count = 0;
    for cell in csv.rows.iter().flatten().filter(|cell| !cell.is_empty()) {
        if let Ok(number) = cell.parse::<f64>() {
            assert!(known.contains(&(number + 0.0).to_bits()), "{line}: {cell} is not in the JSON");
            count += 1;
        }
    }
    assert!(count > 0, "{line}: {csv:?}");
    // Markdown has the same cells, table by table.
    let in_markdown: Vec<&String> = markdown.iter().flat_map(|t| &t.rows).flatten().collect();
    let several = csv.heads[0] == "table";
    let names: Vec<&String> = markdown.iter().flat_map(|table| &table.heads).collect();
    for row in &csv.rows {
        for (head, cell) in csv.heads.iter().zip(row).skip(usize::from(several)) {
            assert!(names.contains(&head), "{line}: {head}");
            let shown = cell.replace('\n', " ").replace('\\', "");
            assert!(cell.is_empty() || in_markdown.contains(&&shown), "{line}: {head} {cell}");
        }
    }
    assert_eq!(csv.rows.len(), markdown.iter().map(|table| table.rows.len()).sum::<usize>());
    csv
}

/// Flows and links of a run, column by column.
#[test]
fn a_run_reads_back() {
    let folder = folder_with("a.toml", &format!("{SMALL}{TRUE_CLAIM}"));
    let at = folder.path();
    let table = check(at, "run a.toml --out OUT", 0);
    let summary = json(&at.join("run-csv/summary.json"));
    for (row, flow) in summary["flows"].as_array().unwrap().iter().enumerate() {
        assert_eq!(table.rows[row][table.column("table")], "flows");
        for (column, value) in [
            ("goodput_bps", &flow["goodput_bps"]),
            ("rtt_p50_us", &flow["rtt_us"]["p50"]),
            ("rtt_p95_us", &flow["rtt_us"]["p95"]),
            ("standing_us", &flow["standing_queue_us"]),
            ("retransmitted", &flow["retransmit_ratio"]),
            ("power", &flow["power"]),
        ] {
            assert_eq!(table.number(row, column), value.as_f64(), "{column}");
        }
    }
    let link = table.rows.iter().position(|row| row[0] == "links").unwrap();
    let known = &summary["links"][0];
    assert_eq!(table.number(link, "utilisation"), known["utilisation"].as_f64());
    assert_eq!(table.number(link, "delay_p95_us"), known["queueing_delay_us"]["p95"].as_f64());
    assert_eq!(table.number(link, "dropped"), known["drops"].as_f64());
    let claim = table.rows.iter().position(|row| row[0] == "claims").unwrap();
    assert_eq!(table.rows[claim][table.column("id")], "T1");
    assert_eq!(table.number(claim, "measured_bps"), summary["claims"][0]["measured"].as_f64());
}

#[test]
fn repeats_comparisons_and_sweeps_read_back() {
    let folder = folder_with("a.toml", &format!("{SMALL}{TRUE_CLAIM}"));
    let at = folder.path();
    let table = check(at, "run a.toml --repeat 3 --out OUT", 0);
    let repeats = json(&at.join("run-csv/repeat.json"));
    let known = &repeats["measures"]["flow.bbr[0].goodput_bps"];
    let name = table.column("measure");
    let row = table.rows.iter().position(|row| row[name] == "flow.bbr[0].goodput_bps").unwrap();
    for (column, value) in [("mean", "mean"), ("95_interval_of_it_low", "low"), ("max", "max")] {
        assert_eq!(table.number(row, column), known[value].as_f64(), "{column}");
    }
    expect(at, "run a.toml --repeat 3 --out b --set flow.bbr.cc=reno", 0);
    let table = check(at, "compare run-csv b --all", 0);
    assert!(table.heads.contains(&"after_over_before_low".to_string()), "{:?}", table.heads);
    check(at, "compare run-csv/repeat-1 b/repeat-1 b/repeat-2 --all", 0);
    let table = check(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --repeat 3 --out OUT", 0);
    let swept = json(&at.join("sweep-csv/sweep.json"));
    let of = |value: &str| {
        swept["points"][0]["groups"][0]["measures"]["goodput_bps"]["interval"][value].as_f64()
    };
    assert_eq!(table.number(0, "goodput_bps"), of("mean"));
    assert_eq!(table.number(0, "goodput_bps_high"), of("high"));
    check(at, "rank a.toml --cc bbr,reno --repeat 3 --out OUT", 0);
}

#[test]
fn the_other_tables_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    check(at, "list studies", 0);
    let study = "name = \"S\"\nsource = \"nobody\"\n[[run]]\nname = \"r\"\nfile = \"a.toml\"\n";
    fs::write(at.join("study.toml"), study).unwrap();
    fs::write(at.join("a.toml"), format!("{SMALL}{TRUE_CLAIM}")).unwrap();
    let claims = check(at, "reproduce . --out OUT", 0);
    assert_eq!(claims.rows[0][claims.column("id")], "T1");
    let path = SMALL.replace("cc = \"bbr\"", "cc = { name = \"fixed\", window = \"1 BDP\" }");
    let (one, _) = path.rsplit_once("[[flow]]").unwrap();
    fs::write(at.join("path.toml"), one.replace("loss = \"0.1 %\"", "")).unwrap();
    check(at, "curve path.toml --out OUT", 0);
    for what in ["", " controllers", " keys", " measures", " workloads", " aqm", " schedulers"] {
        let document = expect(at, &format!("list{what} --format json"), 0);
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["schema"], "knee-tables/2");
        let rows = Read::csv(&expect(at, &format!("list{what} --format csv"), 0)).rows.len();
        let tables = document["tables"].as_object().unwrap().values();
        assert_eq!(rows, tables.map(|rows| rows.as_array().unwrap().len()).sum::<usize>());
    }
    let findings = Read::csv(&expect(at, "doctor --format csv", 0));
    assert_eq!(findings.heads, ["state", "what", "found", "for"]);
}

/// A qlog that cannot be written to its end leaves the earlier one as it was.
#[test]
fn a_failed_export_replaces_nothing() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --packet-log --out o", 0);
    expect(at, "export qlog o --flow bbr --out bbr.qlog", 0);
    let before = fs::read(at.join("bbr.qlog")).unwrap();
    let said = complaint(at, "export qlog o --flow bbr --out bbr.qlog", 2);
    assert!(said.contains("bbr.qlog exists") && said.contains("--force"), "{said}");
    let mut log = fs::read_to_string(at.join("o/packets.csv")).unwrap();
    log.truncate(log.len() / 2);
    log.push_str("\nnot a row\n");
    fs::write(at.join("o/packets.csv"), log).unwrap();
    for line in
        ["export qlog o --flow bbr", "export qlog o --flow nobody", "export qlog none --flow bbr"]
    {
        complaint(at, &format!("{line} --out bbr.qlog --force"), 2);
        assert!(fs::read(at.join("bbr.qlog")).unwrap() == before, "{line}");
    }
    assert!(!at.join("bbr.qlog.part").exists());
}

/// `--json` is short for `--format json`; giving both is an error.
#[test]
fn one_form_at_a_time() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let long = expect(at, "run a.toml --format json --out a", 0);
    assert_eq!(long, expect(at, "run a.toml --json --out b", 0));
    assert!(complaint(at, "run a.toml --json --format csv --out c", 2).contains("--format"));
}

/// Markdown for pull requests has text and rounded numbers, for every kind of folder.
#[test]
fn a_pull_request_gets_what_people_read() {
    let folder = folder_with("a.toml", &format!("{SMALL}{TRUE_CLAIM}"));
    let at = folder.path();
    expect(at, "run a.toml --out run", 0);
    expect(at, "run a.toml --repeat 2 --out repeats", 0);
    expect(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --repeat 2 --out sweep", 0);
    expect(at, "rank a.toml --cc bbr,reno --repeat 2 --out rank", 0);
    for (name, part) in [
        ("run", "the run is valid"),
        ("repeats", "| measure | mean | 95 % interval of it |"),
        ("sweep", "| flow.bbr.cc |"),
        ("rank", "| controller |"),
    ] {
        let before = fs::read(at.join(name).join("report.html")).unwrap();
        let text = expect(at, &format!("report {name} --markdown"), 0);
        assert!(text.contains(part), "{name}: {text}");
        let tables = Read::markdown(&text);
        assert!(!tables.is_empty() && tables.iter().all(|t| !t.rows.is_empty()), "{text}");
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.heads.len()), "{text}");
        }
        assert!(text.contains(" Mbit/s") || name == "rank", "{text}");
        assert_eq!(before, fs::read(at.join(name).join("report.html")).unwrap());
    }
}

/// Progress for programs: every line is an object, including messages and errors, and `done` never
/// decreases.
#[test]
fn progress_is_an_object_a_line() {
    // Long enough for several progress reports on a fast machine.
    let folder = folder_with("a.toml", &SMALL.replace("3 s", "900 s"));
    let at = folder.path();
    let lines = |line: &str, code: i32| -> Vec<Value> {
        let err = complaint(at, line, code);
        let parsed = err.lines().map(|line| serde_json::from_str(line).expect(line));
        parsed.collect()
    };
    let told = lines("run a.toml --repeat 6 --jobs 1 --out a --progress json", 0);
    let done: Vec<f64> = told.iter().filter_map(|one| one["done"].as_f64()).collect();
    assert!(done.len() > 1 && done.is_sorted(), "{told:?}");
    assert!(done.iter().all(|done| (0.0..=1.0).contains(done)), "{told:?}");
    assert!(told.iter().all(|one| one["runs"].is_null() || one["runs"] == 6), "{told:?}");
    assert_eq!(told.last().unwrap()["progress"], "done");
    let told = lines("sweep a.toml --vary duration='2s','3s' --out b --progress json", 0);
    assert!(told.iter().any(|one| one["message"].is_string()), "{told:?}");
    let told = lines("run a.toml --out a --progress json", 2);
    assert!(told[0]["error"].as_str().unwrap().contains("not empty"), "{told:?}");
    let told = lines("run none.toml --progress json", 2);
    assert!(told.iter().any(|one| one.to_string().contains("none.toml")), "{told:?}");
}

/// The CSV of a table has the columns and values of the Parquet file, as the library reads them.
#[test]
fn a_table_of_records_is_written_as_csv() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out a", 0);
    let records = knee_record::read_run(&at.join("a")).unwrap().records;
    let samples = Read::csv(&expect(at, "export csv a", 0));
    assert_eq!(samples.heads[..3], ["flow", "path", "time_ns"]);
    let names = samples.rows.iter().map(|row| row[samples.column("flow_name")].as_str());
    assert_eq!(names.collect::<BTreeSet<_>>(), BTreeSet::from(["bbr[0]", "cubic[0]"]));
    for flow in 0..2 {
        let mut own =
            (0..samples.rows.len()).filter(|row| samples.rows[*row][0] == flow.to_string());
        let last = own.next_back().unwrap();
        let delivered = samples.number(last, "delivered_bytes").unwrap();
        assert_eq!(delivered, records.flows[flow].delivered_bytes as f64);
    }
    // CUBIC estimates no bandwidth: what does not exist is empty.
    let estimate = |row: &&Vec<String>| !row[samples.column("bandwidth_estimate_bps")].is_empty();
    let with = samples.rows.iter().filter(estimate);
    assert!(with.map(|row| row[0].as_str()).collect::<BTreeSet<_>>() == BTreeSet::from(["0"]));
    assert!(expect(at, "export csv a --table links --out links.csv", 0).contains(" rows"));
    let links = Read::csv(&fs::read_to_string(at.join("links.csv")).unwrap());
    assert_eq!(links.rows[0][links.column("link_name")], "bottleneck");
    let said = complaint(at, "export csv a --table ../a/links", 2);
    assert!(said.contains("connections, flows, links, samples"), "{said}");
    assert!(complaint(at, "export csv none", 2).contains("name the directory of a run"));
}

/// A document for LaTeX has the figures of the terminal, and nothing that LaTeX would read otherwise.
#[test]
fn tables_are_written_for_latex() {
    let folder = folder_with("a.toml", SMALL);
    let text = expect(folder.path(), "run a.toml --format latex", 0);
    assert_eq!(text.matches("\\begin{tabular}").count(), text.matches("\\end{tabular}").count());
    assert!(text.contains("\\begin{tabular}{ll") && text.contains("bottleneck & "), "{text}");
    assert!(text.contains(" Mbit/s & ") && text.contains(" \\% "), "{text}");
    let escaped = text.replace("\\%", "").replace("\\_", "").replace("\\,", "");
    assert!(!escaped.contains('%') && !escaped.contains('_') && text.is_ascii(), "{text}");
}

/// What a controller has removed from its window is a column of runs with such a controller, null
/// for the flows of others, and the measure is its distribution.
#[test]
fn what_is_removed_from_the_window_is_a_column() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out plain", 0);
    let plain = Read::csv(&expect(at, "export csv plain", 0));
    assert!(!plain.heads.iter().any(|head| head == "shrink_bytes"), "{:?}", plain.heads);
    expect(at, "run a.toml --set flow.bbr.cc=bbr-low-delay --out low", 0);
    let low = Read::csv(&expect(at, "export csv low", 0));
    let (name, shrink) = (low.column("flow_name"), low.column("shrink_bytes"));
    for row in &low.rows {
        assert_eq!(row[name] == "bbr[0]", !row[shrink].is_empty(), "{row:?}");
    }
    assert!(low.rows.iter().any(|row| row[shrink] == "0"));
}
