//! Pages that browsers recorded. The files are written by hand from the descriptions of their formats;
//! what is expected of them is computed by hand.

use super::tables::packed;
use knee_foreign::{LoadedPage, Protocol, is_loaded_page, read_loaded_page};
use knee_units::Time;
use proptest::prelude::*;
use std::fmt::Write;

fn read(text: &str) -> LoadedPage {
    read_loaded_page(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refused(bytes: &[u8]) -> String {
    read_loaded_page(bytes).expect_err("refused").to_string()
}

/// An entry of HAR 1.2 that begins this many milliseconds after 10:00:01, with further fields.
fn entry(at_ms: u32, time_ms: f64, url: &str, response: &str, more: &str) -> String {
    let (seconds, ms) = (1 + at_ms / 1000, at_ms % 1000);
    format!(
        "{{\"startedDateTime\":\"2026-03-12T10:00:{seconds:02}.{ms:03}Z\",\"time\":{time_ms},\
         \"request\":{{\"method\":\"GET\",\"url\":\"{url}\"}},\"response\":{{{response}}}{more}}}"
    )
}

fn har(entries: &[String]) -> String {
    let entries = entries.join(",");
    format!(
        "{{\"log\":{{\"version\":\"1.2\",\"creator\":{{\"name\":\"x\"}},\"entries\":[{entries}]}}}}"
    )
}

/// The names of the objects, their sizes, what they wait for, and how long after it they are
/// requested, ms.
fn rows(page: &LoadedPage) -> Vec<(&str, u64, &[usize], f64)> {
    let object = page.objects.iter();
    object
        .map(|one| (one.name.as_str(), one.bytes, &one.after[..], one.delay.as_millis_f64()))
        .collect()
}

/// As Chromium exports it. The document arrives at 120 ms; its wait of 60 ms is a round trip of 40
/// (70 of the handshake without 30 of TLS) and 20 of the server. The script is asked for by the
/// document at 150, the image by the script, through a function of its own, at 300; what came from the
/// cache and from an extension is no object.
#[test]
fn a_har_of_chromium_has_initiators() {
    let document = entry(
        0,
        120.0,
        "https://example.org/",
        r#""status":200,"httpVersion":"http/2.0","headersSize":-1,"bodySize":-1,"redirectURL":"",
           "content":{"size":60000},"_transferSize":18400"#,
        r#","timings":{"blocked":5,"dns":3,"connect":70,"ssl":30,"send":1,"wait":60,"receive":1},
           "_initiator":{"type":"other"}"#,
    );
    let script = entry(
        150,
        80.0,
        "https://static.example.org/app.js?v=3",
        r#""status":200,"httpVersion":"h3","_transferSize":30000,"content":{"size":90000}"#,
        r#","timings":{"connect":-1,"wait":40},"_initiator":{"type":"parser","url":"https://example.org/"}"#,
    );
    let image = entry(
        300,
        50.0,
        "https://example.org/logo.png",
        r#""status":200,"httpVersion":"h2","headersSize":100,"bodySize":900"#,
        r#","timings":{"wait":40},"_initiator":{"type":"script","stack":{"callFrames":[{"url":""}],
           "parent":{"callFrames":[{"url":"https://static.example.org/app.js?v=3"}]}}}"#,
    );
    let cached =
        entry(160, 1.0, "https://example.org/a.css", "\"status\":200", ",\"_fromCache\":\"disk\"");
    let own = entry(170, 1.0, "chrome-extension://abc/x.js", "\"status\":200", "");
    let text = har(&[cached, image, document, script, own]);
    let page = read(&text);
    assert_eq!(page.format, "HAR");
    let expected = [
        ("example.org", 18_400, &[][..], 20.0),
        ("app.js", 30_000, &[0], 30.0),
        ("logo.png", 1000, &[1], 70.0),
    ];
    assert_eq!(rows(&page), expected);
    let origins: Vec<(&str, Protocol)> =
        page.origins.iter().map(|origin| (origin.name.as_str(), origin.protocol)).collect();
    let of =
        [("https://example.org", Protocol::Http2), ("https://static.example.org", Protocol::Http3)];
    assert_eq!(origins, of);
    assert_eq!(page.objects[1].origin, 1);
    assert_eq!(page.left_out, [("from the cache", 1), ("not over HTTP", 1)]);
    assert_eq!(
        page.to_string(),
        "HAR, 3 objects of 2 origins (1 HTTP/2, 1 HTTP/3), 49.4 kB; left out: 1 from the cache, 1 not \
         over HTTP"
    );
    assert_eq!(read_loaded_page(&packed(text.as_bytes())), Ok(page.clone()));
    assert_eq!(read_loaded_page(format!("\u{feff}{text}").as_bytes()), Ok(page));
    assert!(is_loaded_page(text.as_bytes()) && !is_loaded_page(b"name,bytes,after\n"));
}

/// As Firefox exports it: no initiators, so an object waits for the last one that had arrived. The
/// first two overlap, and so do the last two.
#[test]
fn without_initiators_the_order_of_time_counts() {
    let of = |at, time, name: &str, size: u32| {
        let response = format!(
            "\"status\":200,\"httpVersion\":\"HTTP/1.1\",\"headersSize\":200,\"bodySize\":{size}"
        );
        let more =
            ",\"timings\":{\"blocked\":0,\"dns\":0,\"connect\":0,\"ssl\":0,\"send\":0,\"wait\":20}";
        entry(at, time, &format!("http://example.org/{name}"), &response, more)
    };
    let page = read(&har(&[
        of(0, 100.0, "a.html", 4800),
        of(40, 50.0, "b.css", 800),
        of(110, 60.0, "c.js", 1800),
        of(180, 90.0, "d.png", 2800),
        of(190, 50.0, "e.png", 3800),
    ]));
    let expected = [
        ("a.html", 5000, &[][..], 0.0),
        ("b.css", 1000, &[][..], 40.0),
        ("c.js", 2000, &[0], 10.0),
        ("d.png", 3000, &[2], 10.0),
        ("e.png", 4000, &[2], 20.0),
    ];
    assert_eq!(rows(&page), expected);
    assert_eq!((page.origins.len(), page.origins[0].protocol), (1, Protocol::Http1));
}

/// What follows from a redirection waits for it, and what begins after the load event is not part of
/// the load.
#[test]
fn redirections_are_followed_and_the_load_event_ends_the_page() {
    let moved = r#""status":301,"redirectURL":"/home","headersSize":300,"bodySize":0"#;
    let there = "\"status\":200,\"bodySize\":5000,\"headersSize\":-1";
    let of = |at, time, path: &str, response: &str| {
        entry(at, time, &format!("https://example.org{path}"), response, ",\"pageref\":\"page_1\"")
    };
    let mut text = har(&[
        of(0, 50.0, "/", moved),
        of(51, 100.0, "/home", there),
        of(160, 50.0, "/a.js", there),
        of(900, 50.0, "/late.js", there),
        entry(950, 5.0, "https://example.org/other", there, ",\"pageref\":\"page_2\""),
    ]);
    text = text.replace(
        "\"entries\"",
        "\"pages\":[{\"startedDateTime\":\"2026-03-12T10:00:01.000Z\",\"id\":\"page_1\",\
         \"pageTimings\":{\"onContentLoad\":200,\"onLoad\":400.5}}],\"entries\"",
    );
    let page = read(&text);
    let expected =
        [("example.org", 300, &[][..], 0.0), ("home", 5000, &[0], 1.0), ("a.js", 5000, &[1], 9.0)];
    assert_eq!(rows(&page), expected);
    assert_eq!(page.load, Some(Time::from_micros(400_500)));
    assert_eq!(page.left_out, [("of another page", 1), ("begun after the load event", 1)]);
}

/// A size after decompression counts for want of another, and is counted; what compression saved is
/// subtracted where the file says it.
#[test]
fn sizes_are_those_as_transferred() {
    let of = |response: &str| {
        let page = read(&har(&[entry(0, 9.0, "https://example.org/", response, "")]));
        (page.objects[0].bytes, page.unpacked)
    };
    assert_eq!(of("\"bodySize\":-1,\"headersSize\":-1,\"content\":{\"size\":90000}"), (90_000, 1));
    assert_eq!(
        of("\"bodySize\":-1,\"content\":{\"size\":90000,\"compression\":70000}"),
        (20_000, 0)
    );
    assert_eq!(of("\"bodySize\":\"700\",\"headersSize\":300"), (1000, 0));
    assert_eq!(of("\"_transferSize\":0,\"bodySize\":700,\"headersSize\":300"), (1000, 0));
    assert_eq!(of("\"bodySize\":0,\"headersSize\":0"), (1, 0));
    let none =
        refused(har(&[entry(0, 9.0, "https://example.org/", "\"status\":200", "")]).as_bytes());
    assert_eq!(
        none,
        "line 1: no request in this HAR can be used: 1 without a size; record the page again, from an \
         empty cache"
    );
}

/// Events of the network in a trace of the performance panel. The document is redirected at 30 ms
/// and arrives at 110, though the page's thread notes it at 115: the wait of 35 ms is a round trip
/// of 30 and 5 of the server; a script of it asks for an image 10 ms later.
#[test]
fn a_trace_has_the_same() {
    let mut text = String::from("{\"metadata\":{\"source\":\"DevTools\"},\"traceEvents\":[");
    let mut add = |ms: f64, name: &str, data: &str| {
        let data = data.replace('\'', "\"");
        let ts = 1_000_000.0 + 1000.0 * ms;
        let _ = write!(
            text,
            "{{\"args\":{{\"data\":{{{data}}}}},\"cat\":\"devtools.timeline\",\"name\":\"{name}\",\
             \"ph\":\"I\",\"pid\":7,\"ts\":{ts}}},"
        );
    };
    add(0.0, "ResourceSendRequest", "'requestId':'1','url':'https://example.org/'");
    add(30.0, "ResourceSendRequest", "'requestId':'1','url':'https://example.org/home'");
    add(40.0, "ParseHTML", "'url':7,'requestId':['x'],'timing':'none'");
    add(
        100.0,
        "ResourceReceiveResponse",
        "'requestId':'1','statusCode':200,'protocol':'h2','encodedDataLength':150,'fromCache':false,
         'timing':{'connectStart':2,'connectEnd':50,'sslStart':32,'sslEnd':50,'sendEnd':51,
         'receiveHeadersEnd':86}",
    );
    add(105.0, "ResourceReceivedData", "'requestId':'1','encodedDataLength':850");
    add(
        115.0,
        "ResourceFinish",
        "'requestId':'1','encodedDataLength':12000,'didFail':false,'finishTime':1.11",
    );
    add(
        120.0,
        "ResourceSendRequest",
        "'requestId':'2.1','url':'https://example.org/a.png','stackTrace':[{'url':'https://example.org/home'}]",
    );
    add(121.0, "ResourceSendRequest", "'requestId':'3','url':'https://example.org/b.png'");
    add(122.0, "ResourceSendRequest", "'requestId':'4','url':'data:image/png;base64,AAAA'");
    add(123.0, "ResourceMarkAsCached", "'requestId':'3'");
    for id in ["2.1", "3", "4"] {
        add(150.0, "ResourceReceiveResponse", &format!("'requestId':'{id}','statusCode':200"));
        add(160.0, "ResourceReceivedData", &format!("'requestId':'{id}','encodedDataLength':700"));
        add(160.0, "ResourceReceivedData", &format!("'requestId':'{id}','encodedDataLength':50"));
        add(170.0, "ResourceFinish", &format!("'requestId':'{id}','didFail':false"));
    }
    add(175.0, "MarkLoad", "'isMainFrame':false");
    add(200.0, "MarkLoad", "'isMainFrame':true");
    add(900.0, "ResourceSendRequest", "'requestId':'5','url':'https://example.org/poll'");
    let text = text.trim_end_matches(',').to_owned() + "]}";
    let page = read(&text);
    let expected = [
        ("example.org", 500, &[][..], 0.0),
        ("home", 12_000, &[0], 5.0),
        ("a.png", 750, &[1], 10.0),
    ];
    assert_eq!(rows(&page), expected);
    assert_eq!(page.load, Some(Time::from_millis(200)));
    let left_out = [("from the cache", 1), ("not over HTTP", 1), ("without an answer", 1)];
    assert_eq!(page.left_out, left_out);
    assert_eq!(page.origins[0].protocol, Protocol::Http2);
    let list = text.split_once("\"traceEvents\":").expect("it has events").1.trim_end_matches('}');
    let as_list = read(list);
    assert_eq!(as_list, page);
}

/// As Chromium writes it, the page notes the request for its document only once the answer is there:
/// here 90 ms after it was sent.
#[test]
fn a_document_is_requested_before_its_page_notes_it() {
    let text = "[{\"name\":\"ResourceSendRequest\",\"ts\":2000000,\"args\":{\"data\":{\"requestId\":\"A\",\
                \"url\":\"http://example.org/\"}}},{\"name\":\"ResourceReceiveResponse\",\"ts\":2000010,\
                \"args\":{\"data\":{\"requestId\":\"A\",\"statusCode\":200,\"timing\":{\"requestTime\":1.91,\
                \"sendEnd\":1,\"receiveHeadersEnd\":41}}}},{\"name\":\"ResourceFinish\",\"ts\":2010000,\
                \"args\":{\"data\":{\"requestId\":\"A\",\"encodedDataLength\":700}}},\
                {\"name\":\"MarkLoad\",\"ts\":2110000,\"args\":{\"data\":{}}}]";
    let page = read(text);
    assert_eq!(page.load, Some(Time::from_millis(200)));
    assert_eq!(rows(&page), [("example.org", 700, &[][..], 0.0)]);
}

/// Deferred scripts run in their order: what the first one asks for waits for those before it, too.
/// The first script arrives at 200 ms, another at 300; at 310 the image is asked for. A second
/// image is asked for at once, and waits for the document alone; a style sheet that comes later
/// does not count.
#[test]
fn what_a_script_asks_for_waits_for_the_scripts_before_it() {
    let by = |url: &str| format!(",\"_initiator\":{{\"url\":\"https://example.org/{url}\"}}");
    let of = |at, time, url: &str, kind: &str, initiator: &str| {
        let response = format!("\"bodySize\":700,\"content\":{{\"mimeType\":\"{kind}\"}}");
        entry(at, time, &format!("https://example.org/{url}"), &response, initiator)
    };
    let page = read(&har(&[
        of(0, 100.0, "", "text/html", ""),
        of(105, 95.0, "a.js", "text/javascript", &by("")),
        of(105, 195.0, "b.js", "text/javascript", &by("")),
        of(106, 100.0, "c.png", "image/png", &by("")),
        of(106, 900.0, "d.css", "text/css", &by("")),
        of(310, 50.0, "e.png", "image/png", &by("a.js")),
    ]));
    let expected = [
        ("example.org", 700, &[][..], 0.0),
        ("a.js", 700, &[0], 5.0),
        ("b.js", 700, &[0], 5.0),
        ("c.png", 700, &[0], 6.0),
        ("d.css", 700, &[0], 6.0),
        ("e.png", 700, &[1, 2], 10.0),
    ];
    assert_eq!(rows(&page), expected);
}

#[test]
fn what_is_no_page_is_named() {
    let known = "write the name of a HAR (in the browser's developer tools: Network, Export HAR), or of a \
                 trace that the performance panel saved";
    for (text, problem) in [
        ("{\"log\":{\"entries\":[]}}", "line 1: this HAR has no request; "),
        ("{\"log\":7}", "line 1: this HAR has no request; "),
        ("[]", "line 1: this trace of a browser has no request; "),
        ("{\"traceEvents\":[7,null,\"x\"]}", "line 1: this trace of a browser has no request; "),
    ] {
        assert_eq!(
            refused(text.as_bytes()),
            format!("{problem}record the page again, from an empty cache"),
            "{text}"
        );
    }
    for (text, problem) in [
        (
            "{\"constants\":{},\"events\":[]}",
            "line 1: it is a NetLog of Chromium, which does not say \
                                              what a page waited for; ",
        ),
        ("{\"a\":1}", "line 1: this is JSON with the keys a, which is not known; "),
        ("<MPD/>", "line 1: it is no HAR and no trace of a browser; "),
    ] {
        assert_eq!(refused(text.as_bytes()), format!("{problem}{known}"), "{text}");
    }
    assert_eq!(refused(b""), "line 1: it is empty; record it again");
    assert_eq!(
        refused(b"{\"log\":\0"),
        "line 1: it contains NUL bytes; write the name of a text file"
    );
    assert_eq!(refused(b"\xff\xfe{\0"), "line 1: it is text in UTF-16; save it as UTF-8");
    let half = "{\"log\":\n{\"entries\":[{\"time\":1";
    let message = refused(half.as_bytes());
    assert!(message.starts_with("line 2: this is no whole JSON file (EOF while"), "{message}");
    let trace = "{\"traceEvents\":{}}";
    let message = refused(trace.as_bytes());
    assert!(message.contains("expected a list of events"), "{message}");
    let apart = har(&[
        entry(0, 1.0, "https://example.org/", "\"bodySize\":9", ""),
        entry(0, 1.0, "https://example.org/", "\"bodySize\":9", "").replace("03-12", "03-14"),
    ]);
    assert_eq!(
        refused(apart.as_bytes()),
        "line 1: the requests in this HAR are more than a day apart; record one page"
    );
    let many = vec![entry(0, 1.0, "https://example.org/", "\"bodySize\":9", ""); 10_001];
    let message = refused(har(&many).as_bytes());
    assert!(message.contains("a list of more than 10000 objects"), "{message}");
    let deep = format!("{{\"log\":{}", "[".repeat(100_000));
    let message = refused(deep.as_bytes());
    assert!(message.starts_with("line 1: this is no whole JSON file"), "{message}");
}

/// Every file that is cut anywhere, or with any byte changed, is read or refused.
#[test]
fn half_pages_are_read_or_refused() {
    let text = har(&[entry(
        0,
        9.0,
        "https://example.org/",
        "\"status\":200,\"bodySize\":9,\"content\":{\"size\":7}",
        ",\"timings\":{\"wait\":7},\"_initiator\":{\"stack\":{\"callFrames\":[{\"url\":\"x\"}]}}",
    )]);
    for at in 0..text.len() {
        for byte in [b'9', b'"', b'-', b'{'] {
            let mut changed = text.as_bytes().to_vec();
            changed[at] = byte;
            for bytes in [&text.as_bytes()[..at], &changed] {
                if let Err(error) = read_loaded_page(bytes) {
                    let message = error.to_string();
                    assert!(!message.contains('\n') && message.len() < 600, "{message}");
                }
            }
        }
    }
}

/// An object of a page as it is: what it waits for, how long the browser needs from there to the
/// request, and how long the answer takes, ms.
fn page_as_it_is() -> impl Strategy<Value = Vec<(prop::sample::Index, u32, u32)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0..200_u32, 1..300_u32), 1..40)
}

proptest! {
    /// Whatever the page, its recording says what each object waited for, and how long after that it
    /// was requested: computed here from the page as it is.
    #[test]
    fn what_each_object_waited_for_is_recovered(page in page_as_it_is()) {
        let mut made: Vec<(u32, u32, Option<usize>, u32)> = Vec::new();
        for (number, (before, think_ms, took_ms)) in page.iter().enumerate() {
            let after = (number > 0).then(|| before.index(number));
            let known = after.map_or(0, |before| made[before].1);
            let begun = if after.is_none() { 0 } else { known + think_ms };
            made.push((begun, begun + took_ms, after, if after.is_none() { 0 } else { *think_ms }));
        }
        let url = |number: usize| format!("https://example.org/o{number}");
        let entries: Vec<String> = made.iter().enumerate().map(|(number, (begun, ended, after, _))| {
            let by = after.map_or(String::new(), |before| {
                format!(",\"_initiator\":{{\"url\":\"{}\"}}", url(before))
            });
            let more = format!(",\"timings\":{{\"wait\":1}}{by}");
            entry(*begun, f64::from(ended - begun), &url(number), "\"bodySize\":9", &more)
        }).rev().collect();
        let page = read(&har(&entries));
        prop_assert_eq!(page.objects.len(), made.len());
        for object in &page.objects {
            let number: usize = object.name[1..].parse().unwrap();
            let (.., after, think_ms) = made[number];
            let names: Vec<&str> = object.after.iter().map(|before| &page.objects[*before].name[..]).collect();
            let expected: Vec<String> = after.iter().map(|before| format!("o{before}")).collect();
            prop_assert_eq!(names, expected);
            prop_assert_eq!(object.delay, Time::from_millis(u64::from(think_ms)));
        }
    }
}
