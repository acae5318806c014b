//! Tests the page of flows over several paths, pages, videos and mixes.

use crate::columns::decode;
use crate::common::dom::{Element, parse};
use crate::common::{opened, rates, summary};
use knee_record::{FlowRecord, FlowSample, ObjectRecord, PathRecord, Records, TransferRecord};
use knee_report::{Figure, Plot, RunPage, StudyPage, plot_svg, run_page, study_report};
use knee_scenario::{Claim, Measure, Statistic};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const MILLI: u64 = 1_000_000;

fn page(name: &str, records: &Records) -> String {
    let summary = summary(name, records, Vec::new());
    let (scenario, command) = ("name = \"made up\"\n", "knee run parts.toml --seed 1");
    let page =
        RunPage { name: "", summary: &summary, records, lead: None, logs: &[], scenario, command };
    let html = run_page(&page).unwrap();
    let file = format!("{}.html", name.replace(' ', "-"));
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(file), &html).unwrap();
    html
}

fn flow(flow: u32, name: &str, cc: &str, seconds: u64) -> FlowRecord {
    FlowRecord {
        flow,
        name: name.to_string(),
        cc: cc.to_string(),
        path: "edge".to_string(),
        end_ns: seconds * 1000 * MILLI,
        delivered_bytes: 20_000_000,
        sent_bytes: 20_200_000,
        retransmitted_bytes: 200_000,
        base_rtt_ns: 20 * MILLI,
        header_overhead: 1500.0 / 1448.0,
        ..FlowRecord::default()
    }
}

/// Paths of 10 and 5 Mbit/s; the second is absent from 6 s to 9 s.
fn two_paths() -> Records {
    let mut record = flow(0, "file", "cubic", 15);
    record.path = "wifi+lte".to_string();
    record.scheduler = "minrtt".to_string();
    (record.size_bytes, record.completion_ns) = (20_000_000, Some(15_000 * MILLI));
    (record.head_of_line_ns, record.reassembly_peak_bytes) = (Some(12 * MILLI), Some(240_000));
    let mut records = Records { end_ns: 15_000 * MILLI, flows: vec![record], ..Records::default() };
    let path =
        |path: u16, name: &str, rate_bps: u64, delay: u64, delivered_bytes: u64| PathRecord {
            path,
            name: name.to_string(),
            rate_bps,
            one_way_delay_ns: delay * MILLI,
            base_rtt_ns: 2 * delay * MILLI,
            delivered_bytes,
            ..PathRecord::default()
        };
    let (mut first, mut second) = (0, 0);
    for step in 1..=150 {
        let gone = (60..90).contains(&step);
        first += 118_000;
        second += if gone { 0 } else { 58_000 };
        let swing = (step % 20) * MILLI;
        let sample = |path: u16, delivered_bytes: u64, rtt: u64| FlowSample {
            path,
            time_ns: step * 100 * MILLI,
            delivered_bytes,
            in_flight_bytes: if gone && path == 1 { 0 } else { 20_000 + swing / 1000 },
            window_bytes: 60_000,
            rtt_ns: rtt + swing,
            ..FlowSample::default()
        };
        records.path_samples.push(sample(0, first, 20 * MILLI));
        records.path_samples.push(sample(1, second, 60 * MILLI));
        records.samples.push(FlowSample {
            reassembly_bytes: (step % 15) * 16_000,
            ..sample(0, first + second, 20 * MILLI)
        });
    }
    records.rates = rates(&[10e6, 5e6], "scheduler = \"minrtt\"\npaths = [\"p0\", \"p1\"]");
    records.paths =
        vec![path(0, "wifi", 10_000_000, 10, first), path(1, "lte", 5_000_000, 30, second)];
    records
}

fn object(flow: u32, number: u32, name: &str, [asked, first, done]: [u64; 3]) -> ObjectRecord {
    ObjectRecord {
        flow,
        number,
        name: name.to_string(),
        connection: number % 6,
        size_bytes: 1000 * u64::from(number % 17 + 3),
        requested_ns: asked * MILLI,
        first_byte_ns: Some(first * MILLI),
        completed_ns: Some(done * MILLI),
        ..ObjectRecord::default()
    }
}

/// HTML, then style sheets and scripts, then images, six at a time.
fn applications() -> Records {
    let mut flows = vec![flow(0, "page", "cubic", 60), flow(1, "video", "bbr", 60)];
    flows[0].end_ns = 4000 * MILLI;
    let mut objects = vec![object(0, 0, "html", [0, 62, 110])];
    for number in 1..53 {
        let slot = u64::from((number - 1) / 6);
        let asked =
            if number < 7 { 110 } else { 240 + slot * 380 - 380 } + u64::from(number % 6) * 9;
        let name = if number < 4 {
            "css"
        } else if number < 7 {
            "script"
        } else {
            "image"
        };
        objects.push(object(0, number, name, [asked, asked + 70, asked + 300 + slot * 5]));
    }
    let ladder = [400_000, 750_000, 1_300_000, 2_500_000, 4_500_000];
    let mut at = 0;
    for number in 0..14u32 {
        let quality = [0, 1, 2, 3, 3, 3, 4, 4, 2, 1, 2, 3, 3, 3][number as usize];
        let took = if number == 8 { 9000 } else { 2500 };
        let done = at + took;
        objects.push(ObjectRecord {
            quality: Some(quality),
            bitrate_bps: ladder[quality as usize],
            size_bytes: ladder[quality as usize] / 2,
            buffer_ns: if number == 8 { 4000 } else { 4000 + 900 * u64::from(number % 8) } * MILLI,
            stalled_ns: [2500, 0, 0, 0, 0, 0, 0, 0, 1400, 0, 0, 0, 0, 0][number as usize] * MILLI,
            ..object(1, number, &format!("segment {number}"), [at, at + 60, done])
        });
        at = done + if number > 4 { 1500 } else { 0 };
    }
    Records { flows, objects, end_ns: 60_000 * MILLI, ..Records::default() }
}

/// 50,000 transfers of each of two classes, log-normal over five decades; those under test are a
/// tenth faster.
fn mix() -> Records {
    let flows = vec![flow(0, "control", "cubic", 600), flow(1, "test", "bbr", 600)];
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut unit = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut transfers = Vec::new();
    for number in 0..100_000u32 {
        let normal = |unit: &mut dyn FnMut() -> f64| (0..12).map(|_| unit()).sum::<f64>() - 6.0;
        let size = (60_000.0 * (1.9 * normal(&mut unit)).exp()).max(200.0);
        let faster = if number % 2 == 1 { 0.9 } else { 1.0 };
        let mut seconds = 0.05 + 8.0 * size / (30e6 * (0.5 * normal(&mut unit)).exp());
        seconds *= faster;
        transfers.push(TransferRecord {
            flow: number % 2,
            number: number / 2,
            start_ns: u64::from(number) * 5 * MILLI,
            size_bytes: size as u64,
            delivered_bytes: size as u64,
            completion_ns: (number % 997 != 0).then_some((seconds * 1e9) as u64),
            ..TransferRecord::default()
        });
    }
    Records { flows, transfers, end_ns: 600_000 * MILLI, ..Records::default() }
}

/// A study draws its claims of test over control with their intervals.
#[test]
fn a_study_draws_test_over_control() {
    let records = mix();
    let sizes = knee_scenario::SizeRange { at_least: 3_000_000, below: None };
    let measure = Measure::FlowThroughput(Statistic::Mean, sizes);
    let claim = Claim {
        of: "test".to_string(),
        relative_to: Some("control".to_string()),
        ..crate::common::claim("E1", "large objects gain", measure, 2.0)
    };
    let summary = summary("network", &records, vec![claim]);
    let (scenario, command) = ("", "");
    let run = RunPage {
        name: "mix",
        summary: &summary,
        records: &records,
        lead: None,
        logs: &[],
        scenario,
        command,
    };
    let (name, source) = ("delivery", "a report");
    let claims = &summary.claims;
    let study = StudyPage {
        name,
        title: "",
        source,
        about: "",
        conclusion: "",
        lead: None,
        claims,
        on_kernel: Vec::new(),
        runs: vec![run],
        command,
    };
    let html = study_report(&[study], "knee reproduce").unwrap();
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("network.html"), &html)
        .unwrap();
    let elements = parse(&opened(&html));
    assert!(titles(&elements).iter().any(|title| title.starts_with("E1 test: 1.")));
    assert!(main_text(&elements).contains("times (95 %: 1.0"));
}

fn main_text(elements: &[Element]) -> &str {
    &elements.iter().find(|element| element.name == "main").unwrap().text
}

fn titles(elements: &[Element]) -> Vec<&str> {
    elements.iter().filter(|e| e.name == "title").map(|e| e.text.as_str()).collect()
}

#[test]
fn each_path_has_its_strip() {
    let records = two_paths();
    let elements = parse(&page("several paths", &records));
    let strips = elements.iter().filter(|e| e.attribute("class") == "strip").collect::<Vec<_>>();
    assert_eq!(strips.len(), 2);
    // 17.7 MB and 6.96 MB.
    assert!(strips[0].text.contains("wifi") && strips[0].text.contains("71.8 %"));
    assert!(strips[1].text.contains("lte") && strips[1].text.contains("28.2 %"));
    let series = elements.iter().find(|e| e.attribute("class") == "series").unwrap();
    let series: serde_json::Value = serde_json::from_str(&series.text).unwrap();
    let shown = &series["multipath"][0];
    let (delivered, _) = decode(&shown["paths"][1]["delivered_bytes"]);
    assert_eq!(*delivered.last().unwrap() as u64, records.paths[1].delivered_bytes);
    let (waiting, _) = decode(&shown["reassembly_bytes"]);
    assert_eq!(waiting.iter().max(), Some(&(14 * 16_000)));
}

/// The file took 15 s; at 15 Mbit/s it would take 10.67 s. The first path is known to be done after
/// 12 s, the second by its samples, the last of which is at 15 s.
#[test]
fn each_path_has_a_bar_until_it_is_done() {
    let mut records = two_paths();
    records.paths[0].finished_ns = Some(12_000 * MILLI);
    let plot = Plot { figure: Figure::Finish, flow: None, link: None, width: 720.0, marks: &[] };
    let file = plot_svg(&records, &plot).unwrap();
    assert!(
        file.contains("<title>wifi: 12 s</title>") && file.contains("<title>lte: 15 s</title>")
    );
    assert!(file.contains("file[0], minrtt"));
    let bars = file.lines().filter(|line| line.starts_with("<rect class=\"waiting\""));
    let widths: Vec<&str> =
        bars.map(|bar| bar.split("width=\"").nth(1).unwrap().split('"').next().unwrap()).collect();
    // The axis ends at 15 s, 560 units from zero.
    assert_eq!(widths, ["448", "560"]);
    let bits = 8.0 * 20e6 * records.flows[0].header_overhead.max(1.0);
    let ideal = 130.0 + 560.0 * (bits / 15e6) / 15.0;
    assert!(file.contains(&format!("<polyline class=\"edge\" points=\"{ideal:.1},")));
    let of = |flow| plot_svg(&records, &Plot { flow: Some(flow), ..plot.clone() });
    assert_eq!(of("file[0]").unwrap(), file);
    let unknown = of("other").unwrap_err().to_string();
    assert!(unknown.contains("other to draw: it has file[0]"), "{unknown}");
    let single = Records { paths: Vec::new(), path_samples: Default::default(), ..records };
    let refused = plot_svg(&single, &plot).unwrap_err().to_string();
    assert!(refused.contains("no flow over several paths"), "{refused}");
}

#[test]
fn each_object_has_its_bars() {
    let elements = parse(&page("applications", &applications()));
    let titles = titles(&elements);
    let of = |what: &str| titles.iter().filter(|title| title.contains(what)).count();
    // Waiting and receiving of each.
    assert_eq!((of("html"), of("css"), of("image")), (2, 6, 92));
    assert_eq!(of("segment "), 14);
    assert!(titles.contains(&"stall: 1.4 s") && titles.contains(&"start-up: 2.5 s"));
    assert!(main_text(&elements).contains("53 of 53 objects arrived"));
    assert!(main_text(&elements).contains("stalled for 1.4 s"));
}

#[test]
fn what_did_not_arrive_is_told() {
    let mut records = applications();
    for object in &mut records.objects {
        (object.first_byte_ns, object.completed_ns) = (None, None);
    }
    let elements = parse(&page("nothing arrived", &records));
    assert!(main_text(&elements).contains("Not fully loaded, 0 of 53 objects arrived"));
    assert!(main_text(&elements).contains("No segment arrived."));
}

/// Every finished transfer is in one bin of the map, and the page is small.
#[test]
fn many_transfers_are_counted_and_compared() {
    let records = mix();
    let html = page("a mix", &records);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    let elements = parse(&html);
    let heat = elements.iter().filter(|e| e.name == "rect" && e.attribute("class") == "heat");
    let plain = |text: &str| text.replace('\u{202f}', "");
    let counted: usize = heat
        .map(|bin| plain(&bin.text).split(" of ").next().unwrap().parse::<usize>().unwrap())
        .sum();
    let finished = records.transfers.iter().filter(|row| row.completion_ns.is_some()).count();
    assert_eq!(counted, finished);
    assert!(main_text(&elements).contains("test[0] against control[0]"));
    // A tenth less time, whatever the size.
    let told: Vec<&str> = titles(&elements);
    let small = told.iter().find(|told| told.starts_with("under 100 kB: completion time, mean"));
    let small = small.expect("the class is compared").split(": ").last().unwrap();
    let numbers: Vec<f64> = small
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .filter_map(|text| text.parse().ok())
        .collect();
    let [ratio, low, high] = numbers[..] else { panic!("{small}") };
    assert!(low <= ratio && ratio <= high && low < high, "{small}");
    assert!((0.895..0.905).contains(&ratio) && high - low < 0.01, "{small}");
}
