//! `knee report` on access logs.

use crate::common::{complaint, expect, knee, texts};
use std::fs;
use std::io::Write;
use std::path::Path;

/// A line every ten seconds for ten minutes, over HTTP/2 and HTTP/3 in turn: 100 ms for 4 MB, and
/// half of that after five minutes.
fn log() -> String {
    let line = |number: u32| {
        let (at, ms) = (1_773_309_600 + 10 * number, if number < 30 { 100 } else { 50 });
        let protocol = ["HTTP/2", "HTTP/3"][(number % 2) as usize];
        let client = ["192.0.2.7", "198.51.100.9"][(number / 2 % 2) as usize];
        format!(
            "{{\"ts\":{at},\"bytes\":4000000,\"duration_ms\":{ms},\"client_ip\":\"{client}\",\
             \"protocol\":\"{protocol}\"}}\n"
        )
    };
    (0..60).map(line).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    fs::write(folder.path().join("a.log"), log()).expect("written");
    let table = "prefix,asn,name\n198.51.100.0/24,64496,Example Net\n";
    fs::write(folder.path().join("networks.csv"), table).expect("written");
    folder
}

/// The answer is the first sentence, on the terminal and on the page, which marks the moment.
#[test]
fn before_and_after_a_moment() {
    let folder = folder();
    let at = folder.path();
    let line = "report a.log --since 2026-03-12T10:05 --group office=192.0.2.0/24 --providers networks.csv";
    let said = expect(at, line, 0);
    let first =
        "Transfers from 2026-03-12 10:05 on, in the median and against before: those of 3 MB and";
    assert!(said.starts_with(first), "{said}");
    for part in
        ["2.0 times", "After against before", "HTTP/3 against HTTP/2", "Example Net (AS64496)"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let page = fs::read_to_string(at.join("knee-out/a.log/report.html")).expect("there is a page");
    let lead = page.split("class=\"result\">").nth(1).expect("there is an answer");
    assert!(lead.starts_with("Transfers from 2026-03-12 10:05 on,"), "{lead}");
    assert!(page.contains("class=\"moment\"") && page.contains("--since 2026-03-12T10:05:00"));
    let json = expect(at, "report a.log --since 2026-03-12T10:05 --format json", 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["schema"], "knee-log-report/1");
    let pair = &json["beside"][0]["pairs"][0];
    assert_eq!((&pair[0]["transfers"], &pair[1]["transfers"]), (&30.into(), &30.into()));
    // 4 MB in 100 ms are 320 Mbit/s.
    let before = pair[0]["throughput_bps"]["p50"].as_f64().expect("a number");
    assert!((before / 3.2e8 - 1.0).abs() < 0.045, "{before}");
    let schema = expect(at, "schema logs", 0);
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("it is JSON");
    jsonschema::validate(&schema, &json).expect("it has this schema");
}

/// Several logs, packed or not, are one; a page elsewhere.
#[test]
fn several_logs_are_one() {
    let folder = folder();
    let at = folder.path();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(log().as_bytes()).expect("memory takes it");
    fs::write(at.join("b.log.gz"), packed.finish().expect("memory takes it")).expect("written");
    let said = expect(at, "report a.log b.log.gz --out out", 0);
    assert!(said.contains("120 transfers; half of those of 3 MB and more"), "{said}");
    assert!(said.contains("b.log.gz: JSON lines, 60 transfers"), "{said}");
    assert!(at.join("out/report.html").exists() && !Path::new(&at.join("knee-out")).exists());
    let csv = expect(at, "report a.log b.log.gz --format csv", 0);
    assert!(csv.contains("prefix") && csv.contains("198.51.100.0/24"), "{csv}");
}

#[test]
fn what_is_no_log_is_named() {
    let folder = folder();
    let at = folder.path();
    let write = |name: &str, content: &[u8]| fs::write(at.join(name), content).expect("written");
    write("empty", b"");
    write("words", b"what is this\n");
    write("iperf3.json", br#"{"start":{},"intervals":[]}"#);
    write("page.har", br#"{"log":{"entries":[]}}"#);
    write("film.mpd", b"<MPD>\n</MPD>\n");
    write("ping.txt", b"PING a (192.0.2.1) 56(84) bytes of data.\n");
    write("utf16", &[0xff, 0xfe, b'a', 0]);
    fs::create_dir(at.join("dir")).expect("created");
    for (line, said) in [
        ("report empty", "empty is no access log: there is no line in it"),
        ("report words", "words is no access log: it is in no format that is known here"),
        ("report iperf3.json", "iperf3.json is no access log, but a result of iperf3"),
        ("report iperf3.json", "knee fit iperf3.json"),
        ("report ping.txt", "ping.txt is no access log, but what ping printed"),
        ("report page.har", "workload = { page = { objects = \"page.har\" } } in a scenario"),
        ("report film.mpd", "workload = { dash = { manifest = \"film.mpd\" } } in a scenario"),
        ("fit page.har", "it is a HAR; load the page over other paths with"),
        ("fit film.mpd", "it is XML, such as the manifest of a video"),
        ("report utf16", "it is text in UTF-16; save it as UTF-8"),
        ("report a.log none.log", "cannot read none.log"),
        ("report a.log dir", "cannot read dir: it is a folder"),
        ("report dir --since 2026-03-12", "--since is for access logs, and dir is a folder"),
        ("report a.log --period 2026-03-12/2026-03-13", "--period is for a folder of knee observe"),
        ("report a.log --since yesterday", "write a date such as 2026-11-24"),
        ("report a.log --group office", "it has no ="),
    ] {
        let error = complaint(at, line, 2);
        assert!(error.contains(said), "{line}: {error}");
    }
    assert!(!at.join("knee-out").exists(), "nothing is written for a log that cannot be read");
    let output = knee(at).args(["report", "/dev/zero"]).output().expect("it runs");
    assert!(texts(&output).1.contains("not a regular file"), "{output:?}");
}
