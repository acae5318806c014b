//! Terminal, page, CSV and JSON show the same numbers, to the digits shown.

use crate::common::{folder_with, json, knee, texts};
use knee_trials::scenario::random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A shown number: its value in basic units, and half of its last digit.
struct Shown {
    value: f64,
    half: f64,
}

/// Reads `3.16 Mbit/s`, `8.99 %`, `32 ms`, `0.1815`; `None` for a dash or a word.
fn read(text: &str) -> Option<Shown> {
    const UNITS: [(&str, f64); 15] = [
        ("Gbit/s", 1e9),
        ("Mbit/s", 1e6),
        ("kbit/s", 1e3),
        ("bit/s", 1.0),
        ("GB", 1e9),
        ("MB", 1e6),
        ("kB", 1e3),
        ("B", 1.0),
        ("min", 60.0),
        ("ms", 1e-3),
        ("µs", 1e-6),
        ("ns", 1e-9),
        ("s", 1.0),
        ("%", 0.01),
        ("", 1.0),
    ];
    // Below what the page shows.
    if let Some(bound) = text.strip_prefix("&lt; ").or(text.strip_prefix("< ")) {
        let bound = read(bound)?.value;
        return Some(Shown { value: bound / 2.0, half: bound / 2.0 });
    }
    let mut words = text.split([' ', '\u{a0}']).filter(|word| !word.is_empty());
    let (number, unit) = (words.next()?, words.next().unwrap_or(""));
    let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    // Pages divide large numbers into thousands.
    let number = number.replace('\u{202f}', "");
    let value: f64 = number.parse().ok()?;
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    Some(Shown { value: value * scale, half: 0.5 * 10f64.powi(-digits) * scale })
}

/// A column: its head on screen, on the page and in CSV, and its place in the summary, with the
/// factor that makes it basic units. A head is empty where the column is not shown.
type Column = (&'static str, &'static str, &'static str, &'static str, f64);

const FLOWS: [Column; 11] = [
    ("goodput", "goodput", "goodput_bps", "/goodput_bps", 1.0),
    ("", "RTT min", "", "/rtt_us/min", 1e-6),
    ("RTT p50", "median", "rtt_p50_us", "/rtt_us/p50", 1e-6),
    ("RTT p95", "p95", "rtt_p95_us", "/rtt_us/p95", 1e-6),
    ("standing", "standing queue", "standing_us", "/standing_queue_us", 1e-6),
    ("retransmitted", "retransmitted", "retransmitted", "/retransmit_ratio", 1.0),
    ("power", "power", "power", "/power", 1.0),
    ("", "delivered", "", "/delivered_bytes", 1.0),
    ("", "recoveries", "", "/recoveries", 1.0),
    ("", "timeouts", "", "/timeouts", 1.0),
    ("", "completed in", "", "/completion_us", 1e-6),
];

const LINKS: [Column; 9] = [
    ("utilisation", "utilisation", "utilisation", "/utilisation", 1.0),
    ("", "queue mean", "", "/queue_bytes/mean", 1.0),
    ("", "queue p95", "", "/queue_bytes/p95", 1.0),
    ("delay p50", "delay median", "delay_p50_us", "/queueing_delay_us/p50", 1e-6),
    ("delay p95", "delay p95", "delay_p95_us", "/queueing_delay_us/p95", 1e-6),
    ("standing", "", "standing_us", "/standing_queue_us", 1e-6),
    ("dropped", "dropped", "dropped", "/drops", 1.0),
    ("lost", "lost", "lost", "/losses", 1.0),
    ("marked", "marked", "marked", "/marks", 1.0),
];

/// Compares what is shown of one thing with the summary, and counts it.
struct Check<'v> {
    seed: u64,
    of: String,
    value: &'v Value,
    compared: usize,
}

impl Check<'_> {
    fn shown(&mut self, place: &str, column: &Column, text: &str) {
        let exact = self.value.pointer(column.3).and_then(Value::as_f64).map(|v| v * column.4);
        let at = format!("seed {}, {} of {} {place}: {text:?}", self.seed, column.3, self.of);
        match (read(text), exact) {
            (Some(shown), Some(exact)) => {
                let off = (shown.value - exact).abs();
                let most = shown.half + 1e-9 * exact.abs();
                assert!(off <= most, "{at}, in the summary {exact}");
                self.compared += 1;
            }
            (None, None) => {}
            (None, Some(_)) if text.trim().is_empty() => {}
            (_, exact) => panic!("{at}, in the summary {exact:?}"),
        }
    }

    fn exact(&mut self, column: &Column, text: &str) {
        let exact = self.value.pointer(column.3).and_then(Value::as_f64);
        let of = (self.seed, &self.of, column.3);
        assert_eq!(text.parse().ok(), exact, "{of:?} in CSV");
        self.compared += usize::from(exact.is_some());
    }
}

/// The name of a flow as tables show it, or of a link.
fn label(entry: &Value) -> String {
    let name = entry["name"].as_str().unwrap();
    entry["index"].as_u64().map_or_else(|| name.to_string(), |index| format!("{name}[{index}]"))
}

/// Rows of a table on screen by the name in the first column; each has the text that ends below the
/// end of a head. Numbers are flush right.
fn on_screen(printed: &str, first: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut lines = printed.lines().skip_while(|line| !line.starts_with(&format!("{first} ")));
    let Some(head) = lines.next() else { return BTreeMap::new() };
    let mut ends: Vec<(String, usize)> = Vec::new();
    let mut at = 0;
    for part in head.split("  ") {
        at += part.chars().count();
        if !part.trim().is_empty() {
            ends.push((part.trim().to_string(), at));
        }
        at += 2;
    }
    let mut rows = BTreeMap::new();
    for line in lines.skip(1).take_while(|line| !line.trim().is_empty()) {
        let letters: Vec<char> = line.chars().collect();
        let name = line.split("  ").next().unwrap_or_default().to_string();
        let cell = |(head, end): &(String, usize)| {
            let before: String = letters.iter().take(*end).collect();
            let ends_here = before.chars().count() == *end && !before.ends_with(' ');
            let last = before.rsplit("  ").next().unwrap_or_default().to_string();
            (head.clone(), if ends_here { last } else { String::new() })
        };
        rows.insert(name, ends.iter().map(cell).collect());
    }
    rows
}

/// Rows of the tables on a page whose first head is `first`, by the first cell. Heads may occur in
/// several tables: the ones with `also` among them.
fn on_page(page: &str, first: &str, also: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let plain = |inner: &str| {
        let parts = inner.split('<').enumerate();
        let text = parts.map(
            |(at, part)| if at == 0 { part } else { part.split_once('>').map_or("", |p| p.1) },
        );
        let text = text.collect::<String>().replace("&#x2f;", "/").replace("&nbsp;", " ");
        text.replace('\u{a0}', " ").trim().to_string()
    };
    let cells = |row: &str, tag: &str| -> Vec<String> {
        let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
        let cell = |cell: &str| {
            let inner = cell.split_once('>').map_or("", |parts| parts.1);
            plain(inner.split(&close).next().unwrap_or(""))
        };
        row.split(&open).skip(1).map(cell).collect()
    };
    let tables = page.split("<table").skip(1).filter_map(|rest| rest.split("</table>").next());
    for table in tables {
        let (head, body) = table.split_once("</thead>").unwrap_or((table, ""));
        let heads = cells(&head.replace("<thead>", ""), "th");
        if heads.first().is_none_or(|head| head != first) || !heads.iter().any(|one| one == also) {
            continue;
        }
        let rows = body.split("<tr").skip(1).map(|row| cells(row, "td"));
        return rows
            .filter(|row| row.len() == heads.len())
            .map(|row| (row[0].clone(), heads.iter().cloned().zip(row).collect()))
            .collect();
    }
    BTreeMap::new()
}

fn in_csv(text: &str, table: &str, first: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let rows = reader.records().map(|row| {
        let row = row.unwrap();
        let cells = heads.iter().zip(row.iter());
        cells.map(|(head, cell)| (head.to_string(), cell.to_string())).collect::<BTreeMap<_, _>>()
    });
    rows.filter(|row| row["table"] == table).map(|row| (row[first].clone(), row)).collect()
}

/// Compares the four for a random scenario; returns the number of comparisons.
fn compared(seed: u64) -> usize {
    let scenario = random(seed);
    let folder = folder_with("a.toml", &scenario.text());
    let at: &Path = folder.path();
    for (name, bytes) in scenario.files() {
        std::fs::write(at.join(name), bytes).unwrap();
    }
    let line = ["run", "a.toml", "--no-alternatives", "--out"];
    let (printed, err) = texts(&knee(at).args(line).arg("out").output().unwrap());
    assert!(at.join("out/summary.json").is_file(), "seed {seed}: {err}");
    let csv = knee(at).args(line).args(["csv", "--format", "csv"]).output().unwrap();
    let csv = texts(&csv).0;
    let page = std::fs::read_to_string(at.join("out/report.html")).unwrap();
    let summary = json(&at.join("out/summary.json"));
    let mut compared = 0;
    for (table, first, columns, also) in
        [("flows", "flow", &FLOWS[..], "RTT min"), ("links", "link", &LINKS[..], "queue mean")]
    {
        let screen = on_screen(&printed, first);
        let page = on_page(&page, first, also);
        let csv = in_csv(&csv, table, first);
        for value in summary[table].as_array().unwrap() {
            let of = label(value);
            let mut check = Check { seed, of: of.clone(), value, compared: 0 };
            for column in columns {
                let cell = |rows: &BTreeMap<String, BTreeMap<String, String>>, head: &str| {
                    rows.get(&of).and_then(|row| row.get(head)).cloned()
                };
                if let Some(text) = cell(&screen, column.0) {
                    check.shown("on screen", column, &text);
                }
                if let Some(text) = cell(&page, column.1) {
                    // Beside the packets dropped stands their share.
                    let text = text.split(" (").next().unwrap_or_default().to_string();
                    check.shown("on the page", column, &text);
                }
                if let Some(text) = cell(&csv, column.2) {
                    check.exact(column, &text);
                }
            }
            compared += check.compared;
        }
    }
    compared
}

#[test]
fn terminal_page_csv_and_json_show_the_same_numbers() {
    let each: Vec<usize> = (1..=6).map(compared).collect();
    assert!(each.iter().sum::<usize>() > 200, "{each:?}");
}

#[test]
#[ignore = "takes long: .ci/night random"]
fn terminal_page_csv_and_json_show_the_same_numbers_of_200_scenarios() {
    let first = std::env::var("KNEE_FIRST_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = first.unwrap_or(1);
    let all: usize = (first..first + 200).map(compared).sum();
    assert!(all > 6000, "{all}");
}
