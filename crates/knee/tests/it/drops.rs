//! `knee drops`, against counts of the packet log that this file makes itself.

use crate::common::{SMALL, complaint, expect, folder_with, json};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Two flows of which each loses packets at another link, for another reason; a third crosses a
/// link with an AQM, an outage and a policer. ACKs come back over a link that loses some.
const MANY: &str = r#"
name = "Many reasons"
duration = "6 s"
seed = 3

[link.queue]
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "10 packets"

[link.air]
rate = "20 Mbit/s"
delay = "5 ms"
buffer = "4 BDP"
loss = "1 %"

[link.odd]
rate = "8 Mbit/s"
delay = "5 ms"
buffer = "4 BDP"
aqm = "codel"
down = [{ from = "3 s", until = "3200 ms" }]
policer = { rate = "7 Mbit/s", burst = "30 kB" }

[link.back]
rate = "2 Mbit/s"
delay = "5 ms"
buffer = "20 packets"
loss = "0.5 %"

[path.queue]
forward = ["queue"]
reverse_delay = "5 ms"

[path.air]
forward = ["air"]
reverse = ["back"]

[path.odd]
forward = ["odd"]
reverse_delay = "5 ms"

[[flow]]
name = "one"
count = 2
path = "queue"
cc = "cubic"

[[flow]]
name = "two"
path = "air"
cc = "bbr"

[[flow]]
name = "both"
paths = ["queue", "odd"]
scheduler = "minrtt"
cc = "cubic"
"#;

/// What a packet log says, by its own documentation.
#[derive(Debug, Default)]
struct Count {
    /// Packets, bytes, first and last time by link, flow, kind and reason.
    drops: BTreeMap<[String; 4], (u64, u64, u64, u64)>,
    /// Packets sent by flow and kind.
    sent: BTreeMap<(String, String), u64>,
    entered: u64,
    left: u64,
}

fn count(log: &Path, flows: &[&str]) -> Count {
    let mut count = Count::default();
    let (mut links, mut names) = (BTreeMap::new(), BTreeMap::new());
    let text = fs::read_to_string(log).unwrap();
    for line in text.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        match cells[0] {
            "# link" => drop(links.insert(cells[1], cells[2])),
            "# flow" => {
                let of = cells.iter().find_map(|cell| cell.strip_prefix("of=")).unwrap();
                names.insert(cells[1], flows[of.parse::<usize>().unwrap()]);
            }
            _ => {}
        }
        if cells[0].starts_with('#') || cells[0] == "time_ns" {
            continue;
        }
        let flow = || names[cells[3]].to_string();
        match cells[1] {
            "send" => *count.sent.entry((flow(), "data".into())).or_default() += 1,
            "ack_send" => *count.sent.entry((flow(), "ACK".into())).or_default() += 1,
            "enter" => count.entered += 1,
            "leave" => count.left += 1,
            "drop" => {
                let kind = if cells[4] == "ack" { "ACK" } else { "data" };
                let key = [links[cells[2]], &flow(), kind, cells[14]].map(str::to_string);
                let (at, bytes): (u64, u64) =
                    (cells[0].parse().unwrap(), cells[7].parse().unwrap());
                let sum = count.drops.entry(key).or_insert((0, 0, at, at));
                *sum = (sum.0 + 1, sum.1 + bytes, sum.2, at);
            }
            _ => {}
        }
    }
    count
}

fn tables(at: &Path, folder: &str) -> Value {
    serde_json::from_str(&expect(at, &format!("drops {folder} --json"), 0)).unwrap()
}

fn rows<'v>(tables: &'v Value, name: &str) -> &'v Vec<Value> {
    tables["tables"][name].as_array().unwrap_or_else(|| panic!("{tables}"))
}

fn sum(rows: &[Value]) -> u64 {
    rows.iter().map(|row| row["packets"].as_f64().unwrap() as u64).sum()
}

/// Link, flow, kind, reason, packets, bytes, times and shares are those of the log; and what entered
/// the links is what left them, was dropped, or was in them at the end.
#[test]
fn the_table_is_the_count_of_the_packet_log() {
    let folder = folder_with("many.toml", MANY);
    let at = folder.path();
    expect(at, "run many.toml --out many --packet-log --no-alternatives", 0);
    let flows = ["one[0]", "one[1]", "two[0]", "both[0]"];
    let counted = count(&at.join("many/packets.csv"), &flows);
    let words = BTreeMap::from([
        ("queue full", "queue"),
        ("AQM", "aqm"),
        ("policer", "policer"),
        ("link loss", "loss"),
        ("outage", "down"),
    ]);
    let tables = tables(at, "many");
    let mut seen = BTreeMap::new();
    for row in rows(&tables, "drops") {
        let text = |name: &str| row[name].as_str().unwrap().to_string();
        let number = |name: &str| row[name].as_f64().unwrap();
        let ns = |name: &str| (number(name) * 1e9).round() as u64;
        let (flow, kind) = (text("flow"), text("packet"));
        let sent = counted.sent[&(flow.clone(), kind.clone())] as f64;
        assert!((number("of_sent") - number("packets") / sent).abs() < 1e-12, "{row}");
        let reason = words[text("reason").as_str()].to_string();
        let found =
            (number("packets") as u64, number("size_bytes") as u64, ns("first_s"), ns("last_s"));
        seen.insert([text("link"), flow, kind, reason], found);
    }
    assert_eq!(seen, counted.drops);
    let reasons: Vec<&String> = seen.keys().map(|key| &key[3]).collect();
    for reason in words.values() {
        assert!(reasons.iter().any(|found| found == reason), "no {reason}: {seen:?}");
    }
    assert!(seen.keys().any(|key| key[2] == "ACK"), "{seen:?}");
    // The links count for themselves, and packets are conserved.
    let summary = json(&at.join("many/summary.json"));
    let links = summary["links"].as_array().unwrap();
    let of_links = |name: &str| links.iter().map(|link| link[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum(rows(&tables, "drops")), of_links("drops") + of_links("losses"));
    let inside = counted.entered - counted.left - sum(rows(&tables, "drops"));
    assert!(inside < 2000, "{inside} packets are inside the links at the end");
    // The timeline has the same packets, within the bounds of the run.
    let timeline = rows(&tables, "timeline");
    assert_eq!(sum(timeline), sum(rows(&tables, "drops")));
    for row in timeline {
        let (from, until) = (row["from_s"].as_f64().unwrap(), row["until_s"].as_f64().unwrap());
        let inside =
            counted.drops.iter().filter(|(key, _)| key[0] == row["link"].as_str().unwrap());
        let within = |time: u64| time as f64 / 1e9 >= from && time as f64 / 1e9 <= until;
        let (first, last): (Vec<u64>, Vec<u64>) =
            inside.map(|(_, (_, _, first, last))| (*first, *last)).unzip();
        assert!((until - from - 0.6).abs() < 1e-9, "{row}");
        let (first, last) = (first.into_iter().min().unwrap(), last.into_iter().max().unwrap());
        assert!(within(first) || first as f64 / 1e9 <= from, "{row}");
        assert!(within(last) || last as f64 / 1e9 >= until, "{row}");
    }
}

/// Without the log the totals are the same, and what the scenario decides is known: the reason at a
/// link that has one, the flow at a link that one crosses. The command for the rest is printed, and
/// it works.
#[test]
fn without_a_packet_log_the_links_are_counted() {
    let folder = folder_with("many.toml", MANY);
    let at = folder.path();
    expect(at, "run many.toml --out many --no-alternatives", 0);
    let tables = tables(at, "many");
    let counted = rows(&tables, "counted");
    let summary = json(&at.join("many/summary.json"));
    for link in summary["links"].as_array().unwrap() {
        let of = counted.iter().filter(|row| row["link"] == link["name"]).cloned();
        let total = link["drops"].as_u64().unwrap() + link["losses"].as_u64().unwrap();
        assert_eq!(sum(&of.collect::<Vec<_>>()), total, "{link}");
    }
    let row = |link: &str, reason: &str| {
        let found = counted.iter().find(|row| row["link"] == link && row["reason"] == reason);
        found.unwrap_or_else(|| panic!("{link}, {reason}: {tables}"))
    };
    assert_eq!(row("air", "link loss")["flow"], "two[0]");
    assert_eq!(row("back", "link loss")["packet"], "ACK");
    assert_eq!(row("queue", "queue full")["flow"], "one[0], one[1] or both[0]");
    row("odd", "queue full, AQM or policer");
    let text = expect(at, "drops many", 0);
    let unwrapped = text.replace('\n', " ");
    let command = unwrapped.split_once("knee run ").unwrap().1.split_once("--packet-log").unwrap();
    expect(at, &format!("run {} --packet-log --no-alternatives --out again", command.0), 0);
    assert_eq!(sum(rows(&self::tables(at, "again"), "drops")), sum(counted));
}

#[test]
fn without_drops_it_says_so() {
    let lossless = SMALL.replace("loss = \"0.1 %\"", "").replace("2 BDP", "100 MB");
    let folder = folder_with("a.toml", &lossless);
    let at = folder.path();
    for log in ["", " --packet-log"] {
        expect(at, &format!("run a.toml --out a --force{log}"), 0);
        let text = expect(at, "drops a", 0);
        assert!(text.starts_with("Nothing was dropped: "), "{text}");
        let expected = if log.is_empty() { "counted" } else { "drops" };
        assert!(rows(&tables(at, "a"), expected).is_empty());
    }
}

/// The sentence says how many were dropped where most were, unless that is where all were.
#[test]
fn the_sentence_names_the_part_of_the_link_with_most_drops() {
    let folder = folder_with("many.toml", MANY);
    let at = folder.path();
    expect(at, "run many.toml --out many --packet-log --no-alternatives", 0);
    let text = expect(at, "drops many", 0).replace('\n', " ");
    assert!(text.contains(" packets were dropped, ") && text.contains(" of them by "), "{text}");
    let folder = folder_with("a.toml", &SMALL.replace("loss = \"0.1 %\"", ""));
    let at = folder.path();
    expect(at, "run a.toml --out a --no-alternatives", 0);
    let text = expect(at, "drops a", 0).replace('\n', " ");
    assert!(text.contains(" packets were dropped by "), "{text}");
}

/// Repeats: one row for each run.
#[test]
fn repeats_are_listed_run_by_run() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --out a --repeat 2 --packet-log", 0);
    let tables = tables(at, "a");
    for number in [1, 2] {
        let name = format!("repeat-{number}");
        let of = rows(&tables, "drops").iter().filter(|row| row["run"] == *name).cloned();
        let log = count(&at.join("a").join(&name).join("packets.csv"), &["bbr[0]", "cubic[0]"]);
        let total = log.drops.values().map(|(packets, ..)| packets).sum::<u64>();
        assert_eq!(sum(&of.collect::<Vec<_>>()), total);
    }
    let csv = expect(at, "drops a --format csv", 0);
    assert!(
        csv.starts_with("table,run,link,flow,packet,reason,packets,size_bytes,of_sent,"),
        "{csv}"
    );
}

#[test]
fn other_folders_and_damaged_logs_are_refused() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let error = complaint(at, "drops .", 2);
    assert!(error.contains("is not a run directory"), "{error}");
    expect(at, "rank a.toml --cc bbr,cubic --flow bbr --out rank", 0);
    let error = complaint(at, "drops rank", 2);
    assert!(
        error.contains("rank holds a ranking, not the records of one scenario; run one"),
        "{error}"
    );
    expect(at, "run a.toml --out a --packet-log", 0);
    let log = at.join("a/packets.csv");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen(",drop,0,", ",drop,7,", 1)).unwrap();
    let error = complaint(at, "drops a", 2);
    assert!(error.contains("a link is not in the head; run it again with --packet-log"), "{error}");
    // Two drops of the largest number that can be written.
    let row = text.lines().find(|line| line.contains(",drop,")).unwrap();
    let mut cells: Vec<&str> = row.split(',').collect();
    cells[7] = "18446744073709551615";
    let row = cells.join(",");
    fs::write(&log, format!("{text}{row}\n{row}\n")).unwrap();
    let error = complaint(at, "drops a", 2);
    assert!(error.contains("a size is impossible"), "{error}");
    // A log that ends with a whole line, but before the run does.
    let half: String = text.split_inclusive('\n').take(text.lines().count() / 2).collect();
    for cut in [&half, text.strip_suffix(&format!("{}\n", last_entry(&text))).unwrap_or(&half)] {
        fs::write(&log, cut).unwrap();
        let error = complaint(at, "drops a", 2).replace('\n', " ");
        assert!(error.contains("the log is cut off, or of another run: "), "{error}");
    }
    for other in [text.replacen("log/3", "log/9", 1), String::new()] {
        fs::write(&log, other).unwrap();
        let error = complaint(at, "drops a", 2);
        assert!(error.contains("line 1: it does not begin with # knee-packet-log/3"), "{error}");
    }
}

/// From the last packet that entered a link to the end.
fn last_entry(log: &str) -> &str {
    let at = log.rfind(",enter,").unwrap();
    let begin = log[..at].rfind('\n').unwrap() + 1;
    log[begin..].trim_end()
}
