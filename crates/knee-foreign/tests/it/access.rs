//! Access logs: what is read from each published format, and what is said of others.

use flate2::Compression;
use flate2::write::GzEncoder;
use knee_foreign::{AccessLines, Extent, FileError, Moment, PassedOver, Protocol, Transfer};
use proptest::prelude::*;
use std::io::{Read, Write};

struct Log {
    format: &'static str,
    transfers: Vec<Transfer>,
    passed_over: Vec<PassedOver>,
}

fn read(content: impl Read) -> Result<Log, FileError> {
    let mut lines = AccessLines::open(content, Extent::Whole)?;
    let mut transfers = Vec::new();
    while let Some(transfer) = lines.next_transfer()? {
        transfers.push(transfer.clone());
    }
    Ok(Log { format: lines.format(), transfers, passed_over: lines.passed_over() })
}

/// Reads the only transfer of a log.
fn one(text: &str) -> Transfer {
    let log = read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(log.transfers.len(), 1, "{text}");
    log.transfers.into_iter().next().expect("there is one")
}

fn problem(content: &[u8]) -> String {
    read(content).err().map(|error| error.to_string()).unwrap_or_default()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

const MS: u64 = 1_000_000;
/// `date -u -d '2026-03-12 10:00:01' +%s`.
const AT_S: i64 = 1_773_309_601;

fn at_ms(ms: i64) -> Option<Moment> {
    Some(Moment::Instant(AT_S * 1_000_000_000 + ms * 1_000_000))
}

/// Fields of the standard log, in the order of CloudFront's documentation.
const CLOUDFRONT: &str = "#Version: 1.0\n\
    #Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status \
    cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id \
    x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher \
    x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port \
    time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start \
    sc-range-end\n\
    2026-03-12\t10:00:01\tFRA2\t4000000\t192.0.2.1\tGET\td1.example.net\t/a.mp4\t200\t-\tagent\t-\t-\t\
    Hit\tid==\td1.example.net\thttps\t421\t0.500\t-\tTLSv1.3\tTLS_AES_128_GCM_SHA256\tHit\tHTTP/3.0\t-\t\
    -\t50123\t0.125\tHit\tvideo/mp4\t3999000\t-\t-\n";

#[test]
fn cloudfront_is_read() {
    let found = one(CLOUDFRONT);
    let expected = Transfer {
        line: 3,
        bytes: 4_000_000,
        at: at_ms(0),
        duration_ns: Some(500 * MS),
        server_ns: Some(125 * MS),
        client: Some("192.0.2.1".parse().unwrap()),
        port: Some(50123),
        class: "video/mp4".to_string(),
        protocol: Protocol::Http3,
        ..Transfer::default()
    };
    assert_eq!(found, expected);
}

/// IIS counts in milliseconds, as its first line tells.
#[test]
fn iis_is_read() {
    let found = one("#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n\
                     #Fields: date time c-ip cs-version sc-status sc-bytes time-taken\r\n\
                     2026-03-12 10:00:01 2001:db8::1 HTTP/2.0 200 5312 15\r\n");
    assert_eq!((found.bytes, found.at, found.duration_ns), (5312, at_ms(0), Some(15 * MS)));
    assert_eq!((found.protocol, found.client), (Protocol::Http2, "2001:db8::1".parse().ok()));
}

/// Each notation of JSON lines: size, time, duration, the server's part, round-trip time, protocol.
#[test]
fn json_of_servers_and_networks_is_read() {
    use Protocol::{Http1, Http2, Http3, Unknown};
    let none = None::<u64>;
    for (name, line, size, at, duration, server, rtt, protocol) in [
        (
            "Logpush, RFC 3339",
            r#"{"ClientIP":"192.0.2.1","EdgeResponseBytes":900,"EdgeStartTimestamp":"2026-03-12T10:00:01Z","EdgeEndTimestamp":"2026-03-12T10:00:02Z","EdgeTimeToFirstByteMs":250,"ClientTCPRTTMs":18,"ClientRequestProtocol":"HTTP/3"}"#,
            900,
            at_ms(0),
            Some(1000 * MS),
            Some(250 * MS),
            Some(18 * MS),
            Http3,
        ),
        (
            "Logpush, unixnano",
            r#"{"ClientIP":"192.0.2.1","EdgeResponseBytes":900,"EdgeStartTimestamp":1773309601000000000,"EdgeEndTimestamp":1773309601250000000,"ClientTCPRTTMs":0,"ClientRequestProtocol":"HTTP/2"}"#,
            900,
            at_ms(0),
            Some(250 * MS),
            none,
            none,
            Http2,
        ),
        (
            "Akamai",
            r#"{"version":"1","bytes":"4995","totalBytes":"5200","cliIP":"192.0.2.1","reqTimeSec":"1773309601.250","proto":"HTTPS","turnAroundTimeMSec":"11","transferTimeMSec":"125","statusCode":"206"}"#,
            5200,
            at_ms(250),
            Some(136 * MS),
            Some(11 * MS),
            none,
            Unknown,
        ),
        (
            "Fastly",
            r#"{"time_start":1773309601000,"time_elapsed":125000,"client_ip":"192.0.2.1","protocol":"HTTP/1.1","response_body_size":6904}"#,
            6904,
            at_ms(0),
            Some(125 * MS),
            none,
            none,
            Http1,
        ),
        (
            "Fastly, ISO 8601",
            r#"{"timestamp":"2026-03-12T10:00:01+0000","client_ip":"192.0.2.1","request_protocol":"h2","response_body_size":6904,"time_elapsed_ms":12.5}"#,
            6904,
            at_ms(0),
            Some(12_500_000),
            none,
            none,
            Http2,
        ),
        (
            "Caddy",
            r#"{"level":"info","ts":1773309601.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.1","remote_port":"50000","proto":"HTTP/2.0","method":"GET","uri":"/","headers":{"Size":["7"]}},"bytes_read":0,"duration":0.002,"size":1024,"status":200}"#,
            1024,
            at_ms(250),
            Some(2 * MS),
            none,
            none,
            Http2,
        ),
        (
            "Caddy, durations as text",
            r#"{"ts":"2026-03-12T10:00:01Z","request":{"remote_ip":"192.0.2.1","proto":"HTTP/3.0"},"bytes_read":0,"duration":"2.5ms","size":1024}"#,
            1024,
            at_ms(0),
            Some(2_500_000),
            none,
            none,
            Http3,
        ),
        (
            "Envoy",
            r#"{"start_time":"2026-03-12T10:00:01.250Z","protocol":"HTTP/2","response_code":200,"response_flags":"-","bytes_received":0,"bytes_sent":154,"duration":226,"upstream_service_time":"100","downstream_remote_address":"192.0.2.1:50000"}"#,
            154,
            at_ms(250),
            Some(226 * MS),
            Some(100 * MS),
            none,
            Http2,
        ),
        (
            "Traefik",
            r#"{"ClientAddr":"192.0.2.1:50000","ClientHost":"192.0.2.1","DownstreamContentSize":1234,"DownstreamStatus":200,"Duration":15000000,"OriginDuration":9000000,"RequestProtocol":"HTTP/2.0","StartUTC":"2026-03-12T10:00:01.25Z","time":"2026-03-12T10:00:01Z"}"#,
            1234,
            at_ms(250),
            Some(15 * MS),
            Some(9 * MS),
            none,
            Http2,
        ),
        (
            "nginx",
            r#"{"time_local":"12/Mar/2026:11:00:01 +0100","msec":"1773309601.250","remote_addr":"192.0.2.1","body_bytes_sent":"5000","bytes_sent":"5300","request_time":"0.125","upstream_response_time":"0.010, 0.020","tcpinfo_rtt":"38000","connection":"7","request":"GET / HTTP/2.0"}"#,
            5300,
            at_ms(250),
            Some(125 * MS),
            Some(30 * MS),
            Some(38 * MS),
            Http2,
        ),
        (
            "h2o",
            r#"{"time":"2026-03-12T10:00:01Z","remote_addr":"192.0.2.1","bytes":5300,"duration":0.125,"process-time":0.025,"connect-time":0.010,"cc.name":"bbr","delivery-rate":1250000,"protocol":"HTTP/3"}"#,
            5300,
            at_ms(0),
            Some(125 * MS),
            Some(25 * MS),
            none,
            Http3,
        ),
        (
            "Google",
            r#"{"timestamp":"2026-03-12T10:00:01.25Z","httpRequest":{"responseSize":"6904","remoteIp":"192.0.2.1","latency":"0.125s","protocol":"HTTP/2"}}"#,
            6904,
            at_ms(250),
            Some(125 * MS),
            none,
            none,
            Http2,
        ),
    ] {
        let log = read(line.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = &log.transfers[0];
        assert_eq!((log.format, found.bytes, found.at), ("JSON lines", size, at), "{name}");
        let spans = (found.duration_ns, found.server_ns, found.rtt_ns);
        assert_eq!(spans, (duration, server, rtt), "{name}");
        let client = "192.0.2.1".parse().ok();
        assert_eq!((found.protocol, found.client), (protocol, client), "{name}");
        if name == "h2o" {
            // TCP_INFO counts in bytes per second.
            assert_eq!((&*found.controller, found.delivery_rate_bps), ("bbr", Some(1e7)));
        }
    }
}

/// Text formats, as servers write them by default or with fields of `log_format` after them.
#[test]
fn text_of_servers_is_read() {
    use Protocol::{Http1, Http2, Unknown};
    let none = None::<u64>;
    let combined = r#"192.0.2.1 - - [12/Mar/2026:10:00:01 +0000] "GET /a\"b HTTP/2.0" 200 5300 "-" "agent x=1""#;
    let with = |more: &str| format!("{combined} {more}");
    for (format, line, size, at, duration, server, rtt, protocol) in [
        ("Combined Log Format", combined.to_string(), 5300, at_ms(0), none, none, none, Http2),
        (
            "Combined Log Format",
            with("0.125 0.020"),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        ("Combined Log Format", with("0.125 -"), 5300, at_ms(0), Some(125 * MS), none, none, Http2),
        (
            "Combined Log Format",
            with(r#"rt=0.125 uct="0.000" uht="0.020" urt="0.100" tcpinfo_rtt=38000 cc=bbr"#),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), Some(38 * MS), Http2,
        ),
        // Several servers behind it, and a redirect within it, without quotes.
        (
            "Combined Log Format",
            with("request_time=0.125 uht=0.004 : 0.012, 0.004 rtt=x"),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        (
            "Combined Log Format",
            with("0.125 0.008, 0.012 \"-\""),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        (
            "Combined Log Format",
            with("request_time=0.125, \"a\" upstream_header_time=0.020, -"),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        // varnishncsa with D=%D ttfb=%{Varnish:time_firstbyte}x.
        (
            "Combined Log Format",
            with("D=125000 ttfb=0.020"),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        // Traefik's common format.
        (
            "Combined Log Format",
            with(r#"17 "app@docker" "http://10.0.0.2:80" 125ms"#),
            5300, at_ms(0), Some(125 * MS), none, none, Http2,
        ),
        (
            "Common Log Format",
            r#"192.0.2.1 - - [12/Mar/2026:11:00:01 +0100] "GET / HTTP/1.1" 200 5300"#.to_string(),
            5300, at_ms(0), none, none, none, Http1,
        ),
        (
            "HAProxy's HTTP log",
            r#"192.0.2.1:50000 [12/Mar/2026:10:00:01.250] web~ app/s1 1/2/3/14/125 200 5300 - - ---- 3/2/1/0/0 0/0 {a} {} "GET / HTTP/2.0""#
                .to_string(),
            5300, at_ms(250), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        // Never answered; a line written before the end.
        (
            "HAProxy's HTTP log",
            r#"192.0.2.1:50000 [12/Mar/2026:10:00:01.250] web~ app/<NOSRV> 1/-1/-1/-1/125 503 217 - - SC-- 3/2/1/0/0 0/0 "GET / HTTP/1.1""#
                .to_string(),
            217, at_ms(250), Some(125 * MS), none, none, Http1,
        ),
        (
            "HAProxy's HTTP log",
            r#"192.0.2.1:50000 [12/Mar/2026:10:00:01.250] web~ app/s1 1/2/3/14/+20 200 +5300 - - ---- 3/2/1/0/0 0/0 "GET / HTTP/1.1""#
                .to_string(),
            5300, at_ms(250), none, Some(20 * MS), none, Http1,
        ),
        (
            "Squid's native log",
            "1773309601.250    125 192.0.2.1 TCP_MISS/200 5300 GET http://a.example/ - HIER_DIRECT/198.51.100.1 text/html"
                .to_string(),
            5300, at_ms(250), Some(125 * MS), none, none, Unknown,
        ),
        (
            "Envoy's log format",
            r#"[2026-03-12T10:00:01.250Z] "GET /a HTTP/2" 200 - 0 5300 125 20 "192.0.2.1" "agent" "id" "a.example" "10.0.2.1:80""#
                .to_string(),
            5300, at_ms(250), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        // Istio's, with three more fields.
        (
            "Envoy's log format",
            r#"[2026-03-12T10:00:01.250Z] "GET /a HTTP/2" 200 - via_upstream - "-" 0 5300 125 20 "192.0.2.1" "agent" "id" "a.example" "10.0.2.1:80" inbound"#
                .to_string(),
            5300, at_ms(250), Some(125 * MS), Some(20 * MS), none, Http2,
        ),
        (
            "Akamai's structured log",
            "1 12345 123456 1239f220 1773309601 4995 192.0.2.1 206 HTTPS a.example GET /a 443 5000 text/html agent 0 TLSv1 484 484 232 5300 q=1 //BC/%5B en-US cookie 37334-42356 https%3A%2F%2Fa 198.51.100.1 3600 3 - 20 105 50 1 198.51.100.2 IN"
                .to_string(),
            5300, at_ms(0), Some(125 * MS), Some(20 * MS), none, Unknown,
        ),
    ] {
        for head in ["", "Mar 12 10:00:01 edge program[412]: ", "<134>1 2026-03-12T10:00:01Z edge nginx 1 - - "] {
            let line = format!("{head}{line}");
            let log = read(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
            let found = &log.transfers[0];
            assert_eq!((log.format, found.bytes, found.at), (format, size, at), "{line}");
            let spans = (found.duration_ns, found.server_ns, found.rtt_ns);
            assert_eq!(spans, (duration, server, rtt), "{line}");
            let client = "192.0.2.1".parse().ok();
            assert_eq!((found.protocol, found.client), (protocol, client), "{line}");
        }
        let docker = format!("{{\"log\":{:?},\"stream\":\"stdout\",\"time\":\"x\"}}\n", line + "\n");
        assert_eq!(one(&docker).bytes, size, "{docker}");
    }
}

#[test]
fn objects_are_read_behind_any_text() {
    assert_eq!(one("<134>proxy: {\"bytes\":5}\n").bytes, 5);
}

/// `duration` is in seconds, milliseconds or nanoseconds, depending on the program: of an unknown one
/// it is left out, and said to be.
#[test]
fn a_duration_of_an_unknown_unit_is_left_out() {
    let found = one("{\"bytes\":5,\"duration\":250}\n");
    assert_eq!((found.duration_ns, found.is_without_unit), (None, true));
    assert_eq!(one("{\"bytes\":5,\"duration\":\"250 ms\"}\n").duration_ns, Some(250 * MS));
    assert!(!one("{\"bytes\":5,\"duration_ms\":250}\n").is_without_unit);
    let found = one("bytes,duration\n5,250\n");
    assert_eq!((found.duration_ns, found.is_without_unit), (None, true));
}

/// Damaged lines are passed over and counted, wherever they stand, the first one too: a file may be
/// the second half of another.
#[test]
fn damaged_lines_are_counted_with_the_first() {
    let line = r#"192.0.2.1 - - [12/Mar/2026:10:00:01 +0000] "GET / HTTP/1.1" 200 53"#;
    let half = &line[40..];
    for text in [
        format!("{half}\n{line}\n{line}\n{}", &line[..50]),
        format!("{half}\r\n\r\n{line}\r\n{line}\r\n{}\r\n", &line[..50]),
        format!("\u{feff}{half}\n{line}\n{line}\n{}\0{}", &line[..9], &line[9..]),
    ] {
        for content in [text.as_bytes().to_vec(), packed(text.as_bytes())] {
            let log = read(&content[..]).unwrap();
            assert_eq!((log.transfers.len(), log.transfers[0].bytes), (2, 53), "{text:?}");
            let first = PassedOver { reason: "not in this format", lines: 2, first: 1 };
            assert_eq!(log.passed_over, [first], "{text:?}");
        }
    }
    // A file that was cut off while it was written has NUL bytes there.
    let cut = format!("\0\0\0\0{line}\n");
    assert_eq!(one(&cut).bytes, 53);
    let mostly = format!("{line}\nwhat\nis\nthis\n");
    assert!(
        problem(mostly.as_bytes()).starts_with("line 2: 3 lines, from here on, are not Common")
    );
}

/// What is no log of text is named as what it is; a line without end is refused at the limit.
#[test]
fn other_files_are_named() {
    let utf16: Vec<u8> = "\u{feff}bytes".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bare_utf16: Vec<u8> = "bytes\n5\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content, said) in [
        (&b""[..], "line 1: there is no line in it"),
        (b"\n \r\n", "line 1: there is no line in it"),
        (&utf16, "line 1: it is text in UTF-16; save it as UTF-8"),
        (&bare_utf16, "line 1: it has NUL bytes, as text in UTF-16 has; save it as UTF-8"),
        (
            &packed(&packed(b"bytes\n5\n")),
            "line 1: it is a gzip file within a gzip file; decompress",
        ),
        (&packed(b"bytes\n5\n")[..15], "line 1: it is no whole gzip file"),
        (b"[{\"bytes\":5}]", "line 1: it is a list in JSON"),
        (b"ESTAB 0 0 192.0.2.1:443\n", "line 1: it is in no format that is known here (\"ESTAB 0"),
        (b"\x7fELF\x02\x01", "line 1: it is a program"),
        (b"{\"a\":1}\n", "line 1: none of the keys a is a size"),
        (b"#Version: 1.0\n5 6\n", "line 2: no line \"#Fields: "),
    ] {
        let found = problem(content);
        assert!(found.starts_with(said), "{found}\nnot {said}");
    }
    let endless = std::io::repeat(b'x');
    let error = read(endless).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("line 1: the line is longer than 4 MiB"), "{error}");
    let half = "{\"bytes\":5}\n".repeat(3);
    let later = half.as_bytes().chain(std::io::repeat(b' '));
    let error = read(later).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("line 4: the line is longer than 4 MiB"), "{error}");
}

/// Zones count, and times that go back are those of the line.
#[test]
fn times_are_those_of_the_line() {
    let line = |time: &str| format!("192.0.2.1 - - [{time}] \"GET / HTTP/1.1\" 200 5\n");
    let text: String = [
        "12/Mar/2026:10:00:01 +0000",
        "12/Mar/2026:12:00:00 +0200",
        "12/Mar/2026:02:59:59 -0700",
        "32/Mar/2026:10:00:01 +0000",
    ]
    .map(line)
    .concat();
    let log = read(text.as_bytes()).unwrap();
    let times: Vec<Option<Moment>> = log.transfers.iter().map(|one| one.at).collect();
    assert_eq!(times, [at_ms(0), at_ms(-1000), at_ms(-2000), None]);
}

/// More lines than a reader that keeps them takes, in constant memory: the generator makes them as
/// they are read.
#[test]
fn only_what_is_kept_is_limited_in_lines() {
    let text = "{\"bytes\":5}\n".repeat(4);
    let mut kept = AccessLines::open(text.as_bytes(), Extent::Kept).unwrap();
    let mut count = 0;
    while kept.next_transfer().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 4);
}

proptest! {
    /// Any bytes are read, or refused in one line.
    #[test]
    fn any_bytes_are_read_or_refused(
        head in prop::sample::select(vec!["", "{", "#Fields: bytes time\n", "1773309601.250 1 a b/200 ",
            "a:1 [", "[2026", "a - - [x] \"", "bytes,duration\n", "{\"log\":\"", "<1>1 "]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let content = [head.as_bytes(), &rest].concat();
        match read(&content[..]) {
            Ok(log) => prop_assert!(log.transfers.iter().all(|one| one.bytes > 0)),
            Err(error) => {
                let said = error.to_string();
                prop_assert!(!said.contains('\n') && said.len() < 600, "{}", said);
            }
        }
    }
}
