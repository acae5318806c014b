//! What tools measured: files in the formats of those who publish them, with what the numbers in them
//! say, counted by other means.

use knee_foreign::{Bulk, Datagrams, Interval, Measured, Measurement, Probes, read_measurement};

fn read(text: &str) -> Measurement {
    read_measurement(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn bulk(text: &str) -> Bulk {
    match read(text).measured.remove(0) {
        Measured::Bulk(bulk) => bulk,
        other => panic!("{other:?} is no transfer"),
    }
}

fn probes(text: &str) -> Probes {
    match read(text).measured.remove(0) {
        Measured::Probes(probes) => probes,
        other => panic!("{other:?} are no probes"),
    }
}

/// Two connections of iperf3 3.12; of what was written 40 kB had not arrived at the end.
#[test]
fn iperf3_over_tcp() {
    let part = |start: f64, end: f64, bytes: u64, again: u64, omitted: bool| {
        format!(
            "{{\"streams\":[{{\"rtt\":25000}},{{\"rtt\":30000}}],\"sum\":{{\"start\":{start},\"end\":{end},\
             \"seconds\":{},\"bytes\":{bytes},\"bits_per_second\":1,\"retransmits\":{again},\
             \"omitted\":{omitted},\"sender\":true}}}}",
            end - start
        )
    };
    let parts = [
        part(0.0, 1.0, 9_000_000, 90, true),
        part(0.0, 1.0, 1_000_000, 3, false),
        part(1.0, 2.0, 2_000_000, 0, false),
    ];
    let text = format!(
        "{{\"start\":{{\"timestamp\":{{\"timesecs\":1700000000}},\"tcp_mss_default\":1448,\
         \"test_start\":{{\"protocol\":\"TCP\",\"num_streams\":2,\"blksize\":131072,\"omit\":1,\
         \"target_bitrate\":0}}}},\"intervals\":[{}],\"end\":{{\"sum_sent\":{{\"bytes\":3000000}},\
         \"sum_received\":{{\"bytes\":2960000}},\"sender_tcp_congestion\":\"cubic\"}}}}",
        parts.join(",")
    );
    let interval = |bytes: u64, again: u64| Interval {
        seconds: 1.0,
        bytes,
        retransmitted_bytes: Some(again * 1448),
        rtt_s: Some(0.025),
    };
    let expected = Bulk {
        controller: Some("cubic".to_string()),
        streams: 2,
        begun_s: Some(1.7e9),
        segment_bytes: Some(1448),
        is_limited: false,
        omitted_s: 1.0,
        intervals: vec![interval(960_000, 3), interval(2_000_000, 0)],
        rtt_min_s: None,
    };
    assert_eq!(bulk(&text), expected);
    assert!(bulk(&text.replace("\"target_bitrate\":0", "\"target_bitrate\":5000000")).is_limited);
}

#[test]
fn iperf3_over_udp() {
    let text = r#"{"start":{"test_start":{"protocol":"UDP","num_streams":1,"blksize":1448,
        "target_bitrate":1000000}},"intervals":[],"end":{"sum":{"seconds":10.5,"bytes":14480,
        "jitter_ms":0.25,"lost_packets":7,"packets":1000,"lost_percent":0.7}}}"#;
    let expected = Datagrams {
        seconds: 10.5,
        sent: 1000,
        lost: 7,
        payload_bytes: 1448,
        jitter_s: Some(0.000_25),
    };
    assert_eq!(read(text).measured, [Measured::Datagrams(expected)]);
}

#[test]
fn irtt_counts_what_did_not_come_back() {
    let trip = |sent: u64, rtt: u64, lost: &str| {
        format!(
            "{{\"lost\":\"{lost}\",\"timestamps\":{{\"client\":{{\"send\":{{\"wall\":{sent}}}}}}},\
             \"delay\":{{\"rtt\":{rtt}}}}}"
        )
    };
    let trips = [
        trip(1_700_000_000_000_000_000, 30_000_000, "false"),
        trip(1_700_000_000_010_000_000, 0, "true"),
        trip(1_700_000_000_020_000_000, 31_000_000, "false"),
    ];
    let text = format!("{{\"round_trips\":[{}]}}", trips.join(","));
    let answers = vec![(Some(1.7e9), 0.03), (Some(1_700_000_000.02), 0.031)];
    assert_eq!(probes(&text), Probes { sent: Some(3), answers });
}

#[test]
fn ping_counts_what_did_not_come_back() {
    let head = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
                [1700000000.5] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=30.0 ms\n\
                [1700000002.5] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=57 time=31.5 ms\n";
    let end = "\n--- 192.0.2.1 ping statistics ---\n\
               4 packets transmitted, 2 received, 50% packet loss, time 3003ms\n\
               rtt min/avg/max/mdev = 30.000/30.750/31.500/0.750 ms\n";
    let answers = vec![(Some(1_700_000_000.5), 0.03), (Some(1_700_000_002.5), 0.0315)];
    let whole = Probes { sent: Some(4), answers: answers.clone() };
    assert_eq!(probes(&format!("{head}{end}")), whole);
    // Stopped before it wrote its last lines: the third was the last that is known.
    assert_eq!(probes(head), Probes { sent: Some(3), answers });
    let none = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\n--- 192.0.2.1 ping statistics ---\n\
                10 packets transmitted, 0 received, 100% packet loss, time 9000ms\n";
    assert_eq!(probes(none), Probes { sent: Some(10), answers: vec![] });
    let undated = "64 bytes from ::1: icmp_seq=1 ttl=64 time=0.5 ms\n";
    assert_eq!(probes(undated), Probes { sent: Some(1), answers: vec![(None, 0.0005)] });
}

#[test]
fn ndt7() {
    let snapshot = |ms: u64, acked: u64, again: u64| {
        format!(
            "{{\"TCPInfo\":{{\"ElapsedTime\":{},\"BytesAcked\":{acked},\"BytesRetrans\":{again},\
             \"RTT\":40000,\"MinRTT\":25000,\"SndMSS\":1448}},\"BBRInfo\":{{\"BW\":1}}}}",
            ms * 1000
        )
    };
    let all =
        [snapshot(250, 1000, 0), snapshot(500, 501_000, 1448), snapshot(1000, 1_501_000, 1448)];
    let text = format!(
        "{{\"UUID\":\"x\",\"Download\":{{\"ServerMeasurements\":[{}],\"ClientMeasurements\":null}}}}",
        all.join(",")
    );
    let bulk = bulk(&text);
    assert_eq!((bulk.controller.as_deref(), bulk.rtt_min_s), (Some("bbr"), Some(0.025)));
    let interval = |seconds: f64, bytes: u64, again: u64| Interval {
        seconds,
        bytes,
        retransmitted_bytes: Some(again),
        rtt_s: Some(0.04),
    };
    assert_eq!(bulk.intervals, [interval(0.25, 500_000, 1448), interval(0.5, 1_000_000, 0)]);
}

/// A test of flent begins with pings, and its transfers follow 5 s later.
#[test]
fn flent() {
    let text = r#"{"version":4,"metadata":{"T0":"2026-03-12T10:00:00.000000Z","STEP_SIZE":0.5},
        "x_values":[0.0,0.5,1.0,1.5],"results":{
        "Ping (ms) ICMP":[20.0,null,45.5,60.0],
        "TCP download BE":[null,null,8.0,16.0],"TCP download BK":[null,null,8.0,null],
        "TCP download sum":[null,null,16.0,16.0],"TCP upload BE":[null,1.0,1.0,1.0]}}"#;
    let Measurement { format, measured } = read(text);
    let [Measured::Bulk(bulk), Measured::Probes(ping)] = &measured[..] else {
        panic!("{measured:?}")
    };
    let begun = 1_773_309_600.0;
    assert_eq!((format, bulk.streams, bulk.begun_s), ("flent", 2, Some(begun + 1.0)));
    let bytes: Vec<u64> = bulk.intervals.iter().map(|one| one.bytes).collect();
    assert_eq!(bytes, [1_000_000, 1_000_000]);
    assert_eq!(bulk.controller, None);
    let answers = vec![(Some(begun), 0.02), (Some(begun + 1.0), 0.0455), (Some(begun + 1.5), 0.06)];
    assert_eq!(*ping, Probes { sent: None, answers });
}

/// `while sleep 0.5; do date +%s.%N; ss -tin; done`, with a second connection that sends little.
#[test]
fn ss_in_a_loop() {
    let snapshot = |at: &str, acked: u64, again: u64| {
        format!(
            "{at}\nState Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
             ESTAB 0 0 192.0.2.1:443 192.0.2.9:5000\n\t cubic rto:204 rtt:1/1 mss:536 bytes_acked:5\n\
             ESTAB 0 9 192.0.2.1:443 192.0.2.2:5555\n\t cubic wscale:7,7 rto:204 rtt:3.5/1.2 mss:1448 \
             bytes_sent:9 bytes_retrans:{again} bytes_acked:{acked} delivery_rate 3.2Mbps minrtt:3.1\n"
        )
    };
    let text = snapshot("1700000000.25", 1000, 0)
        + &snapshot("1700000000.75", 201_000, 1448)
        + &snapshot("1700000001.75", 601_000, 1448);
    let bulk = bulk(&text);
    assert_eq!((bulk.controller.as_deref(), bulk.segment_bytes), (Some("cubic"), Some(1448)));
    assert_eq!(bulk.rtt_min_s, Some(0.0031));
    assert!((bulk.begun_s.unwrap() - 1_700_000_000.25).abs() < 1e-6);
    let interval = |seconds: f64, bytes: u64, again: u64| Interval {
        seconds,
        bytes,
        retransmitted_bytes: Some(again),
        rtt_s: Some(0.0035),
    };
    assert_eq!(bulk.intervals, [interval(0.5, 200_000, 1448), interval(1.0, 400_000, 0)]);
}

#[test]
fn what_says_nothing_of_a_path_is_named() {
    for (text, expected) in [
        ("", "line 1: it is empty; record it again"),
        (
            "a,b\n1,2\n",
            "line 1: it is in no format that is known here; write the name of a file of \
            iperf3 -J, ping -D, irtt client -o, flent, NDT7, or of ss -ti with times",
        ),
        (
            "{\"a\":1}",
            "line 1: this is JSON with the keys a, which is not known; write the name of a \
            file of iperf3 -J, ping -D, irtt client -o, flent, NDT7, or of ss -ti with times",
        ),
        (
            "{\"start\":{},\"intervals\":[],\"error\":\"unable to connect\"}",
            "line 1: the test failed \
            (unable to connect); run it again",
        ),
        (
            "{\"start\":{\"version\":\"iperf 3.9\"},\"intervals\":[{\"sum\":{\"bits_per_second\":1.2e7}}]}",
            "line 1: it does not say whether it is of TCP or UDP; use a whole file of iperf3 -J",
        ),
        ("{\"round_trips\":[]}", "line 1: no packet was sent; write the name of another file"),
        (
            "{\"Download\":{}}",
            "line 1: it has no snapshots of TCPInfo of a download; write the name of \
            a file with a download at the server",
        ),
        (
            "{\"x_values\":[0.0],\"results\":{}}",
            "line 1: it has fewer than two times; record a longer \
            test",
        ),
        (
            "{\"x_values\":[0.0,1.0],\"results\":{\"CPU\":[1.0]}}",
            "line 1: it has no series of TCP or \
            ping, but CPU; write the name of a test such as tcp_download or rrul",
        ),
        (
            "ESTAB 0 0 192.0.2.1:443 192.0.2.2:5555\n\t cubic rto:204 rtt:3.5/1.2 bytes_acked:5\n",
            "line 2: the snapshots have no times; write the time before each, as in while sleep 0.1; do \
            date +%s.%N; ss -tin; done",
        ),
    ] {
        let error = read_measurement(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, expected, "{text:?}");
    }
}

/// Every file that is cut anywhere is read or refused, and so is one with any byte changed.
#[test]
fn half_files_are_read_or_refused() {
    let whole = [
        "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
         [1700000000.5] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=30.0 ms\n",
        "{\"round_trips\":[{\"lost\":\"false\",\"timestamps\":{\"client\":{\"send\":{\"wall\":5}}},\
         \"delay\":{\"rtt\":7}}]}",
        "1700000000.25\nESTAB 0 0 192.0.2.1:443 192.0.2.9:5000\n\t cubic rto:204 rtt:1/1 bytes_acked:5\n",
    ];
    for text in whole {
        for at in 0..text.len() {
            let mut changed = text.as_bytes().to_vec();
            changed[at] = b'9';
            for bytes in [&text.as_bytes()[..at], &changed] {
                if let Err(error) = read_measurement(bytes) {
                    let message = error.to_string();
                    assert!(!message.contains('\n') && message.len() < 600, "{message}");
                }
            }
        }
    }
}

/// Files for something else are named, with what takes them.
#[test]
fn what_is_for_something_else_is_named() {
    for (text, what, takes) in [
        ("{\"log\":{\"entries\":[]}}", "a HAR", "page"),
        ("{\"traceEvents\":[]}", "a trace of a browser", "page"),
        ("{\"StaticBwConfig\":{}}", "a trace of netem-trace", "table"),
        ("\u{feff}<?xml version=\"1.0\"?><MPD/>", "XML, such as the manifest of a video", "dash"),
        ("#EXTM3U\n", "a playlist of HLS", "dash"),
    ] {
        let error = read_measurement(text.as_bytes()).unwrap_err();
        assert_eq!(error.problem, format!("it is {what}"), "{text}");
        assert!(error.advice.contains(takes), "{text}: {}", error.advice);
    }
    let of = |text: &str| knee_foreign::purpose(text.as_bytes()).map(|purpose| purpose.what);
    assert_eq!(of("{\"start\":{},\"intervals\":[]}"), Some("a result of iperf3"));
    assert_eq!(of("PING a (192.0.2.1) 56(84) bytes of data.\n"), Some("what ping printed"));
    for text in ["", "a,b\n1,2\n", "{\"a\":1}", "{\"log\":", "\u{0}"] {
        assert_eq!(of(text), None, "{text}");
    }
}
