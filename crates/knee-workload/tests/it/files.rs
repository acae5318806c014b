//! User files: what is accepted, and the messages with which others are refused.

use flate2::Compression;
use flate2::write::GzEncoder;
use knee_units::Time;
use knee_workload::{
    AccessLog, AccessLogError, LogChoice, NotChosen, PageFileError, PageObject, check_dependencies,
    default_page, read_access_log,
};
use proptest::prelude::*;
use std::io::Write;

/// The objects of a page.
fn read_page(text: &str) -> Result<Vec<PageObject>, PageFileError> {
    knee_workload::read_page(text.as_bytes()).map(|page| page.objects)
}

fn read_sizes(text: &str) -> Result<Vec<u64>, AccessLogError> {
    read_access_log(text.as_bytes()).map(|log| sizes(&log))
}

fn sizes(log: &AccessLog) -> Vec<u64> {
    log.sizes.iter().collect()
}

fn arrivals_of(log: &AccessLog) -> Result<Vec<(Time, u64)>, NotChosen> {
    log.arrivals(Some).map(|arrivals| arrivals.iter().collect())
}

/// The lines with which Apache's documentation shows the formats, a request that contains a quote,
/// "not modified", and a truncated line.
const COMMON: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326
10.0.0.7 - - [10/Oct/2000:13:55:37 -0700] "GET /a\"b HTTP/1.1" 200 512

10.0.0.7 - - [10/Oct/2000:13:55:38 -0700] "GET /a HTTP/1.1" 304 -
10.0.0.7 - - [10/Oct/2000:13:55:39 -0700] "HEAD /a HTTP/1.1" 200 0
10.0.0.7 - - [10/Oct/2000:13:5
"#;
const COMBINED: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"
"#;
const JSON: &str = r#"{"ts":1.5,"body_bytes_sent":900,"uri":"/a"}
{"ts":1.6,"body_bytes_sent":"31","uri":"/b"}
{"ts":1.7,"body_bytes_sent":0}
{"ts":1.8}
{"ts":1.9,"body_bytes_sent"
"#;

#[test]
fn servers_formats_are_read_line_by_line() {
    let common = read_access_log(COMMON.as_bytes()).unwrap();
    assert_eq!((common.format, &sizes(&common)[..]), ("Common Log Format", &[2326, 512][..]));
    assert_eq!(
        common.to_string(),
        "Common Log Format, 2 lines taken, 3 not: 1 not in this format (first: line 6), 2 without \
         a body (first: line 4)"
    );
    let combined = read_access_log(COMBINED.as_bytes()).unwrap();
    assert_eq!((combined.format, &sizes(&combined)[..]), ("Combined Log Format", &[2326][..]));
    let json = read_access_log(JSON.as_bytes()).unwrap();
    assert_eq!((json.format, &sizes(&json)[..]), ("JSON lines", &[900, 31][..]));
    let over: Vec<(&str, usize, usize)> =
        json.passed_over.iter().map(|over| (over.reason, over.lines, over.first)).collect();
    let expected =
        [("not in this format", 1, 5), ("without a body", 1, 3), ("without a size", 1, 4)];
    assert_eq!(over, expected);
    let values = read_access_log(b"time,bytes\n1,5\n2,0\n3,-\n").unwrap();
    assert_eq!(
        values.to_string(),
        "comma-separated values, 1 lines taken, 2 not: 2 without a body (first: line 3)"
    );
}

/// Times, classes and client round-trip times are read if the log has them, and can select lines.
#[test]
fn what_else_a_log_says_is_read() {
    let text = "timestamp,bytes,service,tcpinfo_rtt\n\
                2024-05-01T10:00:02Z,300,video,60000\n\
                2024-05-01T10:00:00Z,100,page,20000\n\
                2024-05-01T10:00:01Z,200,page,-\n";
    let log = read_access_log(text.as_bytes()).unwrap();
    let seconds = |at: u64| Time::from_millis(1000 * at);
    let times: Vec<Time> = log.times_ns.iter().map(Time::from_nanos).collect();
    assert_eq!(times, [seconds(2), seconds(0), seconds(1)]);
    assert_eq!(log.class_names, ["video", "page"]);
    assert_eq!(log.rtts_ns.iter().collect::<Vec<_>>(), [60_000_000, 20_000_000, 0]);
    assert_eq!(log.more(), "over 2 s; classes: video 1, page 2; client RTT 60 ms in the median");
    let arrivals = [(seconds(0), 100), (seconds(1), 200), (seconds(2), 300)];
    assert_eq!(arrivals_of(&log), Ok(arrivals.to_vec()));

    let of = |choice: LogChoice| log.clone().choose(&choice).map(|log| sizes(&log));
    let class = |name: &str| LogChoice { class: Some(name.to_string()), ..LogChoice::default() };
    assert_eq!(of(class("page")).unwrap(), [100, 200]);
    assert_eq!(of(LogChoice::default()).unwrap(), [300, 100, 200]);
    let rtt = |least: u64, below: u64| LogChoice {
        rtt_at_least: Some(Time::from_millis(least)),
        rtt_below: Some(Time::from_millis(below)),
        class: None,
    };
    assert_eq!(of(rtt(20, 60)).unwrap(), [100], "from the least, below the most");
    let error = of(class("api")).unwrap_err().to_string();
    assert!(error.contains("there are video, page"), "{error}");
    let error = of(rtt(100, 200)).unwrap_err().to_string();
    assert!(error.contains("they are from 20 ms to 60 ms"), "{error}");
    // Times of a class count from its own first line.
    let video = log.choose(&class("video")).unwrap();
    assert_eq!(arrivals_of(&video), Ok(vec![(seconds(0), 300)]));
    let no_times = read_access_log(b"time,bytes\nlater,5\n1,6\n").unwrap();
    assert!(no_times.times_ns.is_empty() && arrivals_of(&no_times).is_err());
}

/// A log that mostly does not match is refused, not thinned out.
#[test]
fn a_log_that_is_mostly_something_else_is_refused() {
    let text = format!("{COMBINED}one\ntwo\n");
    let error = read_sizes(&text).unwrap_err();
    assert_eq!(error.line, 2);
    assert!(error.to_string().contains("2 lines, from here on, are not Combined"), "{error}");
}

/// Compressed or not, in one gzip member or several: the same sizes.
#[test]
fn compressed_logs_are_the_same() {
    let packed = |text: &str| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    for text in [COMMON, COMBINED, JSON, "1\n20\n300\n"] {
        assert_eq!(read_access_log(&packed(text)), read_access_log(text.as_bytes()));
    }
    let parts = [packed("1\n20\n"), packed("300\n")].concat();
    assert_eq!(sizes(&read_access_log(&parts).unwrap()), [1, 20, 300]);
    let cut = &packed(COMMON)[..40];
    assert!(read_access_log(cut).unwrap_err().to_string().contains("no whole gzip file"));
}

#[test]
fn sizes_are_read_from_logs() {
    let cases: [(&str, &[u64]); 7] = [
        ("1\n20\n300\n", &[1, 20, 300]),
        ("\u{feff}bytes\r\n5\r\n\r\n6\r\n", &[5, 6]),
        ("date,sc-bytes,agent\n1,15,\"a, \"\"b\"\"\"\n2,0,c\n3,-,c\n4, 16 ,c", &[15, 16]),
        ("agent,Body_Bytes_Sent\n\"x\",\"77\"", &[77]),
        // A quoted field may span several lines.
        ("agent,bytes\n\"x\ny\", 78\n", &[78]),
        ("-\n9", &[9]),
        ("object_size\n1000000000000000", &[1_000_000_000_000_000]),
    ];
    for (text, sizes) in cases {
        assert_eq!(read_sizes(text).expect(text), sizes, "{text}");
    }
}

/// Lines that end in CR alone, as files of old programs do, are lines in every format.
#[test]
fn lines_end_in_cr_as_well() {
    for text in [COMMON, COMBINED, JSON, "time,bytes\n1,\"5\"\n2,0\n3,-\n", "1\n20\n"] {
        let expected = read_access_log(text.as_bytes());
        for end in ["\r", "\r\n"] {
            assert_eq!(read_access_log(text.replace('\n', end).as_bytes()), expected, "{end:?}");
        }
    }
    let page = "name,bytes,after\na,1,\nb,2,a\n";
    assert_eq!(read_page(&page.replace('\n', "\r")), read_page(page));
}

/// A date in a column of its own is part of the time: 5 s from the last second of February on, in
/// each notation that servers use.
#[test]
fn a_column_of_dates_belongs_to_the_time() {
    let rows = [("29", "23:59:58", 4), ("29", "23:59:59", 9), ("01", "00:00:03", 7)];
    let date = |day: &str| format!("2024-{}-{day}", if day == "29" { "02" } else { "03" });
    let separated = |with: &str| -> String {
        let header = ["date", "time", "cs-method", "sc-bytes"].join(with);
        let row = |(day, time, size): &(&str, &str, u64)| {
            [date(day), time.to_string(), "GET".into(), size.to_string()].join(with) + "\r\n"
        };
        format!("\u{feff}{header}\r\n{}", rows.iter().map(row).collect::<String>())
    };
    let json: String = rows
        .iter()
        .map(|(day, time, size)| {
            format!("{{\"date\":\"{}\",\"time\":\"{time}\",\"size\":{size}}}\n", date(day))
        })
        .collect();
    let extended = |with: &str| -> String {
        let lines = separated(with).replace("date", "#Version: 1.0\n#Fields: date");
        // The directive has spaces between the names, whatever the lines have.
        lines.lines().take(2).map(|line| line.replace(with, " ") + "\n").collect::<String>()
            + &lines.lines().skip(2).collect::<Vec<_>>().join("\n")
    };
    for (format, text) in [
        ("comma-separated values", separated(",")),
        ("tab-separated values", separated("\t")),
        ("semicolon-separated values", separated(";")),
        ("JSON lines", json),
        ("W3C extended log format", extended("\t")),
        ("W3C extended log format", extended(" ")),
    ] {
        let log = read_access_log(text.as_bytes()).expect(&text);
        assert_eq!((log.format, &sizes(&log)[..]), (format, &[4, 9, 7][..]), "{text}");
        assert_eq!(log.more(), "over 5 s", "{text}");
    }
}

/// Times of day go on past midnight in the order of the file; hours back are ambiguous.
#[test]
fn times_of_day_go_on_past_midnight() {
    let values = "time,bytes\n23:59:58,5\n00:00:02,6\n";
    let json = "{\"time\":\"23:59:58\",\"bytes\":5}\n{\"time\":\"00:00:02\",\"bytes\":6}\n";
    for text in [values, json] {
        let log = read_access_log(text.as_bytes()).unwrap();
        assert_eq!(arrivals_of(&log), Ok(vec![(Time::ZERO, 5), (Time::from_millis(4000), 6)]));
    }
    let log = read_access_log(b"time,bytes\n20:00:00,5\n09:00:00,6\n").unwrap();
    let error = arrivals_of(&log).unwrap_err().to_string();
    assert!(error.contains("back by hours in line 3; add a column \"date\""), "{error}");
}

/// The extended format may name other fields on the way, and has comments between.
#[test]
fn fields_of_the_extended_format_may_change() {
    let text = "#Software: a server\n#Fields: time sc-bytes\n10:00:00 5\n#Remark: again\n\
                #Fields: sc-status sc-bytes time\n200 7 10:00:01\n200 7\n";
    let log = read_access_log(text.as_bytes()).unwrap();
    assert_eq!((&sizes(&log)[..], log.more().as_str()), (&[5, 7][..], "over 1 s"));
    assert_eq!(log.passed_over[0].reason, "not in this format");
    let error = read_sizes("#Version: 1.0\n10:00:00 5\n").unwrap_err().to_string();
    assert!(error.contains("names the fields; add one"), "{error}");
}

/// Sizes are whole bytes in every format, and programs write them with a fraction of zero.
#[test]
fn one_rule_for_sizes_in_all_formats() {
    assert_eq!(read_sizes("ts,bytes\n1,1234.0\n2,1.5e6\n").unwrap(), [1234, 1_500_000]);
    let json = "{\"bytes\":1234.0}\n{\"bytes\":\"7.0\"}\n{\"bytes\":1.5}\n{\"bytes\":null}\n";
    let log = read_access_log(json.as_bytes()).unwrap();
    assert_eq!(sizes(&log), [1234, 7]);
    let over: Vec<&str> = log.passed_over.iter().map(|over| over.reason).collect();
    assert_eq!(over, ["whose size is no whole number of bytes", "without a body"]);

    let two = "\"bytes\" and \"size\" could both be the sizes; rename the one that is not meant";
    for text in
        ["bytes,size\n5,300\n", "{\"bytes\":5,\"size\":300}\n", "#Fields: bytes size\n5 300\n"]
    {
        assert_eq!(read_sizes(text).unwrap_err().to_string(), format!("line 1: {two}"), "{text}");
        // nginx logs both, without and with headers: the larger one is what was sent.
        let both = text.replace("bytes", "body_bytes_sent").replace("size", "bytes_sent");
        assert_eq!(read_sizes(&both).unwrap(), [300], "{both}");
    }
}

/// The logs that `knee report` reads give sizes, times and classes for a mix, too.
#[test]
fn logs_of_servers_and_delivery_networks_make_a_mix() {
    let cloudfront = "#Version: 1.0\n#Fields: date time sc-bytes c-ip time-taken sc-content-type\n\
                      2026-03-12\t23:59:59\t4000\t192.0.2.1\t0.500\tvideo/mp4\n\
                      2026-03-13\t00:00:01\t70000\t192.0.2.1\t0.500\ttext/html\n";
    let log = read_access_log(cloudfront.as_bytes()).unwrap();
    assert_eq!((log.format, &sizes(&log)[..]), ("W3C extended log format", &[4000, 70_000][..]));
    assert_eq!(log.more(), "over 2 s; classes: video/mp4 1, text/html 1");
    let haproxy = |second: u32, bytes: u32| {
        format!(
            "Mar 12 10:00:00 edge haproxy[1]: 192.0.2.1:5 [12/Mar/2026:10:00:0{second}.500] web app/s \
             0/0/1/11/40 200 {bytes} - - ---- 3/2/1/0/0 0/0 \"GET / HTTP/1.1\"\n"
        )
    };
    let log = read_access_log((haproxy(1, 4000) + &haproxy(3, 70_000)).as_bytes()).unwrap();
    assert_eq!((log.format, log.more().as_str()), ("HAProxy's HTTP log", "over 2 s"));
    assert_eq!(sizes(&log), [4000, 70_000]);
}

/// Names of delivery networks are known; of others the keys are named.
#[test]
fn keys_without_a_size_are_named() {
    let cloudflare = "{\"EdgeResponseBytes\":900,\"EdgeStartTimestamp\":\"2026-03-12T10:00:00Z\",\
                      \"ClientTCPRTTMs\":18}\n";
    let log = read_access_log(cloudflare.as_bytes()).unwrap();
    assert_eq!((sizes(&log), log.rtts_ns.get(0)), (vec![900], Some(18_000_000)));
    let error = read_sizes("\n{\"octets\":900,\"when\":1}\n").unwrap_err().to_string();
    let expected = "line 2: none of the keys octets, when is a size; rename the key of sizes to \
                    \"bytes\" (also known: size, ";
    assert!(error.starts_with(expected), "{error}");
    // Each name that the message offers is read.
    let (_, names) = error.split_once("known: ").unwrap();
    let names: Vec<&str> = names.trim_end_matches(')').split(", ").collect();
    assert_eq!(names.len(), 10, "{error}");
    for name in names {
        assert_eq!(read_sizes(&format!("{{\"{name}\":900}}\n")).unwrap(), [900], "{name}");
        assert_eq!(read_sizes(&format!("when,{name}\n1,900\n")).unwrap(), [900], "{name}");
    }
}

/// What is not read is named as what it is.
#[test]
fn other_formats_are_refused_by_their_names() {
    let packed = |bytes: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let list = b"[{\"bytes\": 100}]";
    let unknown = b"Mar 12 10:00:00 edge proxy[1]: 1.2.3.4:5 web 200 1500 \"GET / HTTP/1.1\"\n";
    let utf16: Vec<u8> = "\u{feff}bytes".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, reason) in [
        (&[0x28, 0xb5, 0x2f, 0xfd, 4, 0][..], "it is a Zstandard file; decompress it with zstd -d"),
        (b"\xfd7zXZ\0\0\x04", "it is an xz file; decompress it with xz -d"),
        (&utf16, "it is text in UTF-16; save it as UTF-8"),
        (list, "it is a list in JSON; write one object per line"),
        (unknown, "it is in no format that is known here"),
        (&packed(&packed(b"bytes\n1\n")), "it is a gzip file within a gzip file"),
        (&packed(&[0x28, 0xb5, 0x2f, 0xfd, 4]), "it is a Zstandard file within a gzip file"),
    ] {
        let error = read_access_log(bytes).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 1: {reason}")), "{error}");
    }
}

#[test]
fn mistakes_in_logs_are_named_with_their_line_and_remedy() {
    let whole = "write whole bytes without a unit, such as 1500000 for 1.5 MB";
    let fields = "complete or delete the line; put fields that contain a comma in quotes";
    let cases = [
        (
            "",
            "line 1: there is no line in it; write one size in bytes per line, or a log of a web \
             server"
                .into(),
        ),
        ("bytes\n1\nx y\n", format!("line 3: \"x y\" is not a size; {whole}")),
        ("1\n\n1.5", format!("line 3: \"1.5\" is not a size; {whole}")),
        ("a,bytes\n1,\n", format!("line 2: the size is missing; {whole}")),
        ("a,bytes\n1,2\n3\n", format!("line 3: 1 fields where the first line has 2; {fields}")),
        ("1\n-3", format!("line 2: \"-3\" is not a size; {whole}")),
        (
            "1\n1700000000000000000",
            format!("line 2: 1700000000000000000 is beyond any size (1 PB); {whole}"),
        ),
        (
            "bytes,size\n1,2",
            "line 1: \"bytes\" and \"size\" could both be the sizes; rename the one that is not \
             meant"
                .into(),
        ),
        ("bytes\n\"1", "line 2: a quoted field has no end; close it with a \"".into()),
        (
            "bytes\n\"1\"2",
            "line 2: \"2\" follows the end of a quoted field; put a comma there, or write \"\" \
             for a quote"
                .into(),
        ),
        (
            "agent,bytes\n\"x\",1\nx, \"2\"",
            "line 3: a quote stands within a field; put the whole field in quotes, without \
             spaces around them"
                .into(),
        ),
        // Messages count lines, not rows.
        ("agent,bytes\n\"x\ny\",1\nx,z", format!("line 4: \"z\" is not a size; {whole}")),
        ("bytes\n0\n", "line 1: from here on there is no size above 0; add at least one".into()),
    ];
    for (text, message) in cases {
        assert_eq!(read_sizes(text).expect_err(text).to_string(), message, "{text}");
    }
    let error = read_sizes("time,status\n1,2").unwrap_err().to_string();
    let begins = "line 1: none of the columns \"time,status\" is a size; rename the column of sizes \
                  to \"bytes\" (also known: ";
    let ends = "), or write one number per line and nothing else";
    assert!(error.starts_with(begins) && error.ends_with(ends), "{error}");
}

#[test]
fn pages_are_read() {
    let text = "name,bytes,after\nlogo.png,5300,index.html style.css\nindex.html,900,\n\
                style.css,20,index.html\n";
    let object = |name: &str, bytes, after: &[usize]| PageObject {
        name: name.into(),
        bytes,
        after: after.to_vec(),
        ..PageObject::default()
    };
    let expected = [
        object("logo.png", 5300, &[1, 2]),
        object("index.html", 900, &[]),
        object("style.css", 20, &[1]),
    ];
    assert_eq!(read_page(text).expect("well-formed"), expected);
}

/// A page as a browser recorded it, with what a list of objects cannot say: origins, and the time that
/// the browser took. Others than text are named.
#[test]
fn pages_that_browsers_recorded_are_read() {
    let entry = |at: &str, url: &str| {
        format!(
            "{{\"startedDateTime\":\"2026-03-12T10:00:{at}Z\",\"time\":100,\"request\":{{\"url\":\"{url}\"}},\
             \"response\":{{\"httpVersion\":\"h2\",\"bodySize\":700}}}}"
        )
    };
    let entries =
        [entry("01.000", "https://a.example/x.html"), entry("01.150", "https://b.example/y.js")];
    let text = format!("{{\"log\":{{\"entries\":[{}]}}}}", entries.join(","));
    let page = knee_workload::read_page(text.as_bytes()).expect("a page");
    let object = |name: &str, after: &[usize], delay_ms, origin| PageObject {
        name: name.into(),
        bytes: 700,
        after: after.to_vec(),
        delay: Time::from_millis(delay_ms),
        origin,
    };
    assert_eq!(page.objects, [object("x.html", &[], 0, 0), object("y.js", &[0], 50, 1)]);
    assert_eq!(page.origins, [knee_workload::Protocol::Http2; 2]);
    assert_eq!(page.read_as, "HAR, 2 objects of 2 origins (HTTP/2), 1.4 kB");
    let utf16 = knee_workload::read_page(b"\xff\xfen\0").unwrap_err().to_string();
    assert_eq!(utf16, "line 1: it is text in UTF-16; save it as UTF-8");
}

#[test]
fn the_default_page_reads_back() {
    let objects = default_page();
    let names = |after: &[usize]| {
        after.iter().map(|&place| objects[place].name.as_str()).collect::<Vec<_>>().join(" ")
    };
    let rows = objects.iter().map(|o| format!("{},{},{}\n", o.name, o.bytes, names(&o.after)));
    let text = format!("name,bytes,after\n{}", rows.collect::<String>());
    assert_eq!(read_page(&text).expect("well-formed"), objects);
}

#[test]
fn mistakes_in_pages_are_named_with_their_line_and_remedy() {
    let example = "begin with the line name,bytes,after and write a line for each object, such \
                   as logo.png,5300,index.html style.css; or write the name of a HAR";
    let cases = [
        ("", format!("line 1: there is no line in it; {example}")),
        ("a,1,\n", format!("line 1: \"a,1,\" is not name,bytes,after; {example}")),
        ("name,bytes,after\n", format!("line 1: no object follows; {example}")),
        (
            "\u{feff} <MPD/>",
            format!("line 1: it is XML or a playlist, not the objects of a page; {example}"),
        ),
        (
            "name,bytes,after\na,1\n",
            "line 2: 2 fields instead of name,bytes,after; write all three, with spaces between \
             several names in the last; an object that comes after none ends in a comma"
                .into(),
        ),
        (
            "name,bytes,after\na b,1,\n",
            "line 2: \"a b\" is not a name; write one word, such as logo.png".into(),
        ),
        (
            "name,bytes,after\na,1 kB,\n",
            "line 2: \"1 kB\" is not a size; write whole bytes without a unit, such as 1500000 \
             for 1.5 MB"
                .into(),
        ),
        (
            "name,bytes,after\na,0,\n",
            "line 2: \"a\" has no bytes; write at least 1: an answer has a header".into(),
        ),
        (
            "name,bytes,after\na,1,\n\na,2,\n",
            "line 4: \"a\" stands on line 2 already; give each object its own name".into(),
        ),
        (
            "name,bytes,after\na,1,\nb,2,a c\n",
            "line 3: \"b\" comes after \"c\", which is no object of the page; write names from \
             the first column, separated by spaces"
                .into(),
        ),
        (
            "name,bytes,after\na,1,a\n",
            "line 2: \"a\" waits for itself; take one name out of what one of them comes after"
                .into(),
        ),
        (
            "name,bytes,after\nx,1,\nend,1,b\na,1,c x\nb,1,x a\nc,1,b\n",
            "line 5: \"b\" waits for \"a\", which waits for \"c\", which waits for the first; \
             take one name out of what one of them comes after"
                .into(),
        ),
    ];
    for (text, message) in cases {
        assert_eq!(read_page(text).expect_err(text).to_string(), message, "{text}");
    }
}

proptest! {
    /// Any input is accepted, or refused with a message of one line.
    #[test]
    fn nothing_makes_a_reader_panic(text in "(?s).{0,200}") {
        let lines = knee_units::lines(&text).count().max(1);
        if let Err(error) = read_sizes(&text) {
            prop_assert!((1..=lines).contains(&error.line) && !error.to_string().contains('\n'));
        }
        if let Err(error) = read_page(&text) {
            prop_assert!((1..=lines).contains(&error.line) && !error.to_string().contains('\n'));
        }
    }

    /// A text that resembles a page file is accepted, or refused at one of its lines.
    #[test]
    fn nothing_near_a_page_makes_it_panic(
        text in "name,bytes,after\n([a-d]{1,2},[0-9]{1,20},([a-d]{1,2} ?){0,3}\"?\n){0,8}",
    ) {
        match read_page(&text) {
            Ok(objects) => prop_assert_eq!(check_dependencies(&objects), Ok(())),
            Err(error) => prop_assert!(error.line <= text.lines().count().max(1)),
        }
    }

    /// Logs written with everything that RFC 4180 allows.
    #[test]
    fn logs_read_back(rows in prop::collection::vec((1_u64..1_000_000_000, "[ -~]{0,12}"), 1..20)) {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let line = |(bytes, agent): &(u64, String)| format!("{},{bytes}\n", quoted(agent));
        let text = format!("agent,bytes\n{}", rows.iter().map(line).collect::<String>());
        let sizes: Vec<u64> = rows.iter().map(|(bytes, _)| *bytes).collect();
        prop_assert_eq!(read_sizes(&text), Ok(sizes));
    }

    /// A cycle is reported if and only if there is one, and the reported objects form one.
    #[test]
    fn cycles_are_cycles(after in prop::collection::vec(prop::collection::vec(0_usize..9, 0..3), 9)) {
        let object = |(place, after): (usize, &Vec<usize>)| PageObject {
            name: place.to_string(), bytes: 1, after: after.clone(), ..PageObject::default()
        };
        let objects: Vec<PageObject> = after.iter().enumerate().map(object).collect();
        // An object from which a walk of nine steps leads is on a cycle, or before one.
        let mut reached = vec![true; 9];
        for _ in 0..9 {
            reached = (0..9).map(|place| after[place].iter().any(|&next| reached[next])).collect();
        }
        match check_dependencies(&objects) {
            Ok(()) => prop_assert!(!reached.contains(&true)),
            Err(cycle) => {
                prop_assert!(reached.contains(&true));
                let next = cycle.objects.iter().cycle().skip(1);
                for (place, next) in cycle.objects.iter().zip(next) {
                    prop_assert!(after[*place].contains(next), "{cycle}");
                }
            }
        }
    }
}
