//! The page of one run.

use crate::columns::decode;
use crate::common::dom::{Element, parse};
use crate::common::{Dumbbell, claim, dumbbell, summary};
use knee_record::{FlowSample, Records, Summary};
use knee_report::{RunPage, run_page};
use knee_scenario::{Measure, Statistic};
use serde_json::Value;

const COMMAND: &str = "knee run two-flows.toml --seed 1";

fn page(summary: &Summary, records: &Records) -> String {
    let page = RunPage {
        name: "",
        summary,
        records,
        lead: None,
        logs: &[],
        scenario: "name = \"Two flows\"\n",
        command: COMMAND,
    };
    run_page(&page).unwrap()
}

fn keep(name: &str, html: &str) {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, html).unwrap();
}

fn series(elements: &[Element]) -> Value {
    let mut scripts = elements.iter().filter(|element| element.attribute("class") == "series");
    let script = scripts.next().expect("the page embeds its series");
    serde_json::from_str(&script.text).expect("which are JSON")
}

fn all_text(elements: &[Element]) -> &str {
    &elements.iter().find(|element| element.name == "main").unwrap().text
}

/// Compares every value of every column with the rows it came from.
#[test]
fn the_page_holds_the_series_of_each_flow() {
    let records = dumbbell(Dumbbell { seconds: 20, ..Dumbbell::default() });
    let html = page(&summary("Two flows", &records, Vec::new()), &records);
    keep("two-flows.html", &html);
    let series = series(&parse(&html));
    for (index, flow) in series["flows"].as_array().unwrap().iter().enumerate() {
        assert_eq!(flow["label"], format!("bbr[{index}]"));
        let rows: Vec<FlowSample> =
            records.samples.iter().filter(|row| row.flow == index as u32).collect();
        let same = |column: &str, value: fn(&FlowSample) -> u64| {
            let (decoded, quantum) = decode(&flow[column]);
            let largest = rows.iter().map(&value).max().unwrap();
            assert!(quantum == 1 || quantum as u64 * 1_000_000 <= largest, "{column}: {quantum}");
            assert_eq!(decoded.len(), rows.len(), "{column}");
            for (decoded, row) in decoded.iter().zip(&rows) {
                assert!((decoded - value(row) as i64).abs() * 2 <= quantum, "{column}");
            }
        };
        same("delivered_bytes", |row| row.delivered_bytes);
        same("rtt_ns", |row| row.rtt_ns);
        same("window_bytes", |row| row.window_bytes);
        same("in_flight_bytes", |row| row.in_flight_bytes);
        same("bandwidth_estimate_bps", |row| row.bandwidth_estimate_bps);
        same("min_rtt_estimate_ns", |row| row.min_rtt_estimate_ns);
        let (times, _) = decode(&flow["time_ns"]);
        assert!(times.iter().zip(&rows).all(|(time, row)| *time == row.time_ns as i64));
        phases_agree(flow, &series["phases"], &rows);
    }
}

/// Replays the spans and compares the phase of every row.
fn phases_agree(flow: &Value, legend: &Value, rows: &[FlowSample]) {
    let (at, _) = decode(&flow["phases"]["at"]);
    let (phase, _) = decode(&flow["phases"]["phase"]);
    for row in rows {
        let span = at.partition_point(|begin| *begin <= row.time_ns as i64) - 1;
        let words = legend[phase[span] as usize]["words"].as_str().unwrap();
        let expected = row.phase.rsplit('_').next().unwrap();
        let expected = if row.phase == "startup" { "start-up" } else { expected };
        let expected = if row.phase == "probe_rtt" { "probe RTT" } else { expected };
        assert!(words.contains(expected), "{words} for {}", row.phase);
    }
}

#[test]
fn five_flows_for_a_minute_stay_under_three_megabytes() {
    for sample_ms in [20, 10, 1] {
        let records = dumbbell(Dumbbell { flows: 5, sample_ms, ..Dumbbell::default() });
        let html = page(&summary("Five flows", &records, Vec::new()), &records);
        keep(&format!("five-flows-{sample_ms}ms.html"), &html);
        assert!(html.len() < 3_000_000, "{sample_ms} ms: {} bytes", html.len());
    }
}

/// Thinning keeps extreme values.
#[test]
fn the_one_extreme_sample_among_many_is_on_the_page() {
    let mut records = dumbbell(Dumbbell { flows: 1, sample_ms: 1, ..Dumbbell::default() });
    assert!(records.samples.len() > 50_000);
    let peak = 7_654_321_000;
    let rows = records.samples.iter().enumerate();
    let raised = rows.map(|(number, row)| match number {
        31_337 => FlowSample { rtt_ns: peak, ..row },
        _ => row,
    });
    records.samples = raised.collect();
    let html = page(&summary("A peak", &records, Vec::new()), &records);
    let elements = parse(&html);
    let (rtts, quantum) = decode(&series(&elements)["flows"][0]["rtt_ns"]);
    assert!(rtts.len() < 10_000);
    assert!(rtts.iter().any(|rtt| (rtt - peak as i64).abs() <= quantum));
    assert!(all_text(&elements).contains("Each pair of points shows the smallest and the largest"));
}

/// Compares each interval of a band with the percentiles of the flows' rows.
#[test]
fn many_flows_are_a_band_for_each_group() {
    let flows = 60;
    let mut records =
        dumbbell(Dumbbell { flows, seconds: 10, sample_ms: 20, ..Dumbbell::default() });
    for flow in &mut records.flows {
        flow.name = if flow.flow < 50 { "many" } else { "few" }.to_string();
        flow.index = if flow.flow < 50 { flow.flow } else { flow.flow - 50 };
    }
    let html = page(&summary("A crowd", &records, Vec::new()), &records);
    keep("crowd.html", &html);
    let elements = parse(&html);
    let series = series(&elements);
    let labels = |list: &str| -> Vec<String> {
        let all = series[list].as_array().unwrap().iter();
        all.map(|one| one["label"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(labels("groups"), ["many: 50 flows", "few: 10 flows"]);
    assert_eq!(labels("flows").len(), 24);
    assert!(labels("flows").iter().any(|label| label.starts_with("few")));
    assert!(all_text(&elements).contains("24 of 60 flows can be drawn individually"));
    let edge = |name: &str| decode(&series["groups"][1]["rtt_ns"][name]);
    let (times, _) = decode(&series["groups"][1]["time_ns"]);
    assert!((400..=502).contains(&times.len()), "{}", times.len());
    let width = times[1] - times[0];
    for (piece, time) in times.iter().enumerate() {
        let own = |row: &FlowSample| {
            let at = row.time_ns as i64;
            row.flow >= 50 && at > time - width && at <= *time
        };
        // The last row of each flow in the interval.
        let last_rows: std::collections::BTreeMap<u32, u64> =
            records.samples.iter().filter(own).map(|row| (row.flow, row.rtt_ns)).collect();
        let mut rtts: Vec<u64> = last_rows.into_values().filter(|rtt| *rtt > 0).collect();
        rtts.sort_unstable();
        let Some(last) = rtts.len().checked_sub(1) else { continue };
        for (name, part) in [("low", 0.05), ("median", 0.5), ("high", 0.95)] {
            let (line, quantum) = edge(name);
            let place = part * last as f64;
            let between = rtts[place as usize] as i64..=rtts[place.ceil() as usize] as i64;
            let value = line[piece];
            let near = [between.start(), between.end()].map(|end| (value - end).abs() <= quantum);
            assert!(between.contains(&value) || near.contains(&true), "{name} at {time}: {value}");
        }
    }
    // Bands are drawn, but no single flow.
    let drawn = |class: &str| elements.iter().filter(|e| e.attribute("class") == class).count();
    assert!(drawn("band c0") >= 4 && drawn("band c1") >= 4);
    assert_eq!(drawn("c2"), 0);
    assert!(html.len() < 1_200_000, "{} bytes", html.len());
    assert!(all_text(&elements).contains("10 more are in the records"));
}

/// The page contains the pictures before any script runs.
#[test]
fn charts_are_drawn_in_the_page() {
    let records = dumbbell(Dumbbell { seconds: 20, ..Dumbbell::default() });
    let elements = parse(&page(&summary("Two flows", &records, Vec::new()), &records));
    let charts: Vec<&Element> =
        elements.iter().filter(|e| e.attribute("class") == "chart").collect();
    let specs = series(&elements)["charts"].as_array().unwrap().len();
    assert!(specs >= 9 && charts.len() == specs, "{} of {specs}", charts.len());
    assert!(charts.iter().all(|chart| !chart.attribute("aria-label").is_empty()));
    let lines = elements.iter().filter(|e| e.name == "path" && e.attribute("class") == "c0");
    let drawn = lines.filter(|line| line.attribute("d").len() > 200).count();
    assert!(drawn >= 4, "{drawn}");
}

/// A flow that ends long before the run leaves no empty frame behind it.
#[test]
fn the_time_axis_ends_where_things_do() {
    let mut records = dumbbell(Dumbbell { seconds: 20, ..Dumbbell::default() });
    records.end_ns = 200_000_000_000;
    let series = series(&parse(&page(&summary("Short", &records, Vec::new()), &records)));
    let whole = &series["charts"][0]["x"]["whole"];
    let end = whole[1].as_f64().unwrap();
    assert!((20.0..21.0).contains(&end), "{end}");
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script><!--\" onload='x'>&amp;";
    let mut records = dumbbell(Dumbbell { seconds: 2, ..Dumbbell::default() });
    for flow in &mut records.flows {
        flow.name = hostile.to_string();
        flow.cc = hostile.to_string();
    }
    records.link_names = vec![hostile.to_string()];
    let mut hostile_claim = claim(hostile, hostile, Measure::Goodput, 1.0);
    hostile_claim.source = hostile.to_string();
    hostile_claim.finding = Some(hostile.to_string());
    let summary = summary(hostile, &records, vec![hostile_claim]);
    let page = RunPage {
        name: hostile,
        summary: &summary,
        records: &records,
        lead: None,
        logs: &[],
        scenario: hostile,
        command: hostile,
    };
    let elements = parse(&run_page(&page).unwrap());
    let scripts: Vec<&Element> = elements.iter().filter(|e| e.name == "script").collect();
    assert_eq!(scripts.len(), 2, "the series and the page's own script");
    assert!(scripts.iter().all(|script| !script.text.starts_with("alert")));
    let handlers = |e: &&Element| e.attributes.keys().any(|name| name.starts_with("on"));
    assert_eq!(elements.iter().filter(handlers).count(), 0);
    let heading = elements.iter().find(|e| e.name == "h1").unwrap();
    assert_eq!(heading.text, hostile);
    assert_eq!(series(&elements)["flows"][1]["label"], format!("{hostile}[1]"));
}

#[test]
fn nothing_is_fetched() {
    let records = dumbbell(Dumbbell { seconds: 2, ..Dumbbell::default() });
    let html = page(&summary("Offline", &records, Vec::new()), &records);
    let elements = parse(&html);
    for element in &elements {
        for name in ["src", "srcset", "data", "action", "poster", "xlink:href"] {
            assert!(!element.attributes.contains_key(name), "{} has {name}", element.name);
        }
        let href = element.attribute("href");
        assert!(href.is_empty() || href.starts_with('#'), "{href}");
        assert!(!["link", "iframe", "object", "embed", "img", "base"].contains(&&*element.name));
        if element.name == "style" {
            assert!(!element.text.contains("url(") && !element.text.contains("@import"));
        }
    }
    let policy = elements.iter().find(|e| e.attribute("http-equiv") == "Content-Security-Policy");
    assert!(policy.unwrap().attribute("content").starts_with("default-src 'none'"));
}

#[test]
fn empty_records_say_so() {
    let records = Records::default();
    let html = page(&summary("Nothing", &records, Vec::new()), &records);
    keep("empty.html", &html);
    let elements = parse(&html);
    let text = all_text(&elements);
    for sentence in [
        "This run has no flows.",
        "The links of the path are not known.",
        "No flow delivered anything.",
        "No flow measured an RTT.",
        "No flow left samples.",
        "No link left samples.",
        "No flow has both a goodput and an RTT.",
    ] {
        assert!(text.contains(sentence), "{sentence}");
    }
    let frames = elements.iter().filter(|e| e.attribute("class") == "plot").count();
    // The controller's charts are absent too, so no frame is left empty.
    assert_eq!(frames, 0);
}

#[test]
fn an_interrupted_run_says_so() {
    let mut records = dumbbell(Dumbbell { seconds: 5, ..Dumbbell::default() });
    records.interrupted = true;
    let html = page(&summary("Cut short", &records, Vec::new()), &records);
    assert!(all_text(&parse(&html)).contains("run degraded: interrupted after 5 s"));
}

#[test]
fn each_claim_stands_there_with_its_outcome() {
    let records = dumbbell(Dumbbell { seconds: 20, ..Dumbbell::default() });
    let mut fails = claim("A2", "the RTT stays low", Measure::Rtt(Statistic::P50), 0.01);
    fails.finding = Some("two flows keep a standing queue".to_string());
    let mut untested = claim("A3", "the link is full", Measure::Utilisation, 1.0);
    untested.of = "nowhere".to_string();
    let holds = claim("A1", "all is fair", Measure::Jain, 1.0);
    let summary = summary("Claims", &records, vec![holds, fails, untested]);
    let html = page(&summary, &records);
    keep("claims.html", &html);
    let elements = parse(&html);
    let bodies: Vec<&str> = elements
        .iter()
        .filter(|e| e.name == "tbody" && e.attribute("id").contains("claim"))
        .map(|e| e.text.as_str())
        .collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies[0].contains("all is fair") && bodies[0].contains("✓ holds"));
    assert!(bodies[1].contains("✗ fails") && bodies[1].contains("a standing queue"));
    assert!(bodies[1].contains("70 to 90 ms") && bodies[1].contains("on record: holds"));
    assert!(bodies[2].contains("not tested here") && bodies[2].contains("nowhere"));
}

#[test]
fn the_result_says_what_the_model_was_made_to_do() {
    let records = dumbbell(Dumbbell::default());
    let html = page(&summary("Two flows", &records, Vec::new()), &records);
    let elements = parse(&html);
    let result = elements.iter().find(|e| e.attribute("class") == "result").unwrap();
    assert!(result.text.starts_with("Two bbr flows deliver 9."), "{}", result.text);
    assert!(result.text.contains("\u{a0}% of what the path could deliver, "), "{}", result.text);
    assert!(result.text.contains("is queue"), "{}", result.text);
    assert!(elements.iter().any(|e| e.name == "code" && e.text == COMMAND));
    assert!(elements.iter().any(|e| e.name == "pre" && e.text == "name = \"Two flows\"\n"));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let records = dumbbell(Dumbbell { seconds: 5, flows: 12, ..Dumbbell::default() });
    let summary = summary("Again", &records, Vec::new());
    assert_eq!(page(&summary, &records), page(&summary, &records));
}

/// Of two flows with one goodput, the one that is measured for three times as long delivers three
/// quarters of the bytes.
#[test]
fn parts_are_those_of_the_bytes() {
    let records = dumbbell(Dumbbell::default());
    let mut summary = summary("Two controllers", &records, Vec::new());
    summary.warmup_us = 1e6;
    for (flow, (cc, end_us)) in summary.flows.iter_mut().zip([("cubic", 6e6), ("bbr", 16e6)]) {
        flow.cc = cc.to_string();
        (flow.start_us, flow.end_us, flow.goodput_bps) = (0.0, end_us, Some(5e6));
    }
    let elements = parse(&page(&summary, &records));
    let result = &elements.iter().find(|e| e.attribute("class") == "result").unwrap().text;
    assert!(result.contains("cubic taking 25"), "{result}");
    assert!(result.contains("bbr 75"), "{result}");
}

/// After a warm-up, more than the path's rate can arrive, from data already in flight; the sentence
/// must not give a part larger than the whole.
#[test]
fn the_figures_of_the_result_agree() {
    let records = dumbbell(Dumbbell::default());
    let mut summary = summary("Two flows", &records, Vec::new());
    summary.measures.goodput_bps = Some(9.72e6);
    summary.measures.capacity_bps = Some(9.65e6);
    summary.measures.capacity_share = Some(0.991);
    let elements = parse(&page(&summary, &records));
    let result = &elements.iter().find(|e| e.attribute("class") == "result").unwrap().text;
    assert!(result.contains("9.72\u{a0}Mbit/s") && result.contains("99.1\u{a0}%"), "{result}");
    let words: Vec<&str> = result.split_whitespace().collect();
    let rates: Vec<f64> = words
        .windows(2)
        .filter(|pair| pair[1].starts_with("Mbit/s"))
        .map(|pair| pair[0].trim_start_matches('(').parse().unwrap())
        .collect();
    for pair in rates.windows(2) {
        assert!((pair[0] / pair[1] - 0.991).abs() < 0.001, "{result}");
    }
}
