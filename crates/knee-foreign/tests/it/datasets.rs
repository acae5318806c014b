//! Every public data set that docs/traces.md names: a small file in its format, with the totals that
//! the numbers in it have, counted by other means.

use knee_foreign::{Columns, Gap, Quantity, Series, read_series};
use knee_units::Time;

fn columns<'c>(time: &'c str, value: &'c str) -> Columns<'c> {
    Columns { time: Some(time), value: Some(value), ..Columns::default() }
}

fn read(text: &str, quantity: Quantity, columns: &Columns<'_>) -> Series {
    read_series(text.as_bytes(), quantity, columns).unwrap_or_else(|error| panic!("{error}"))
}

/// Amount that a series lets through, in its unit times seconds.
fn total(series: &Series) -> f64 {
    series.mean() * series.span().as_secs_f64()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
}

fn steps(series: &Series) -> Vec<(f64, f64)> {
    let steps = series.steps(series.span(), Time::ZERO, false).expect("few");
    steps.into_iter().map(|(at, value)| (at.as_secs_f64(), value)).collect()
}

/// Pensieve's cooked traces: seconds and Mbit/s, separated by a tab or a space, without a header.
#[test]
fn pensieve() {
    for separator in ['\t', ' '] {
        let text = format!("0.0{0}1.25\n0.5{0}2.5\n1.0{0}0.75\n", separator);
        let series = read(&text, Quantity::Rate, &columns("1 s", "2 Mbit/s"));
        assert_eq!(series.rows, 3);
        assert_eq!(series.span(), Time::from_millis(1500));
        near(total(&series), 0.5 * (1.25e6 + 2.5e6 + 0.75e6));
        assert_eq!(steps(&series), [(0.0, 1.25e6), (0.5, 2.5e6), (1.0, 0.75e6)]);
    }
}

/// Norway's HSDPA logs and Ghent's 4G logs: seconds since 1970, milliseconds of the client, latitude,
/// longitude, bytes since the last row, milliseconds since then. All bytes pass within the spans in
/// which they were counted.
#[test]
fn norway_hsdpa() {
    let rows = [(1_000, 120_000), (1_010, 90_500), (990, 0), (1_000, 200_123)];
    let mut at = 1_289_406_399_000_u64;
    let mut text = String::new();
    for (elapsed, bytes) in rows {
        at += elapsed;
        // The client's clock has a finer time than the first column.
        text += &format!("{} {at} 59.85 10.78 {bytes} {elapsed}\n", at / 1000);
    }
    let series = read(&text, Quantity::Rate, &columns("2 ms", "5 B / 6 ms"));
    assert_eq!(series.rows, 4);
    assert_eq!(series.span(), Time::from_millis(rows.iter().map(|(elapsed, _)| elapsed).sum()));
    let bytes: u64 = rows.iter().map(|(_, bytes)| bytes).sum();
    near(total(&series), bytes as f64 * 8.0);
    near(steps(&series)[1].1, 90_500.0 * 8.0 / 1.01);
}

/// The FCC's `curr_webget`: a header, units in any order of time, a test at each date.
#[test]
fn fcc_curr_webget() {
    let text = "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec,objects,threads\n\
                386,2016-09-01 00:23:11,http://www.example.org,192.0.2.1,2000000,500000,250000,9,2\n\
                386,2016-09-01 01:23:11,http://www.example.org,192.0.2.1,1000000,400000,400000,9,2\n\
                512,2016-09-01 00:40:00,http://www.example.org,192.0.2.1,1000000,90000,90000,9,2\n";
    let of = |unit: &'static str, value: &'static str| {
        let chosen = Columns { rows: Some(unit), ..columns("dtime", value) };
        read(text, Quantity::Rate, &chosen)
    };
    let series = of("unit_id = 386", "bytes_sec B/s");
    assert_eq!((series.rows, series.span()), (2, Time::from_secs(7200)));
    assert_eq!(steps(&series), [(0.0, 2e6), (3600.0, 3.2e6)]);
    // What was fetched over the time that it took is the same, and ends at the date.
    let counted = of("unit_id = 386", "bytes_total B / fetch_time us");
    assert_eq!(counted.span(), Time::from_secs(3602));
    assert_eq!(steps(&counted), [(0.0, 2e6), (3601.0, 3.2e6)]);
    assert_eq!(steps(&of("unit_id = 512", "bytes_sec B/s")), [(0.0, 720_000.0)]);
}

/// The FCC's `curr_httpgetmt`: also with the test's outcome.
#[test]
fn fcc_curr_httpgetmt() {
    let text = "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec,bytes_sec_interval,\
                warmup_time,warmup_bytes,sequence,threads,successes,failures\n\
                7,2016-09-01 00:00:00,a,192.0.2.1,5000000,25000000,5000000,5000000,3,9,0,3,1,0\n\
                7,2016-09-01 00:00:05,a,192.0.2.1,5000000,20000000,4000000,4000000,3,9,1,3,1,0\n";
    let chosen = Columns { rows: Some("unit_id = 7"), ..columns("dtime", "bytes_sec B/s") };
    let series = read(text, Quantity::Rate, &chosen);
    assert_eq!(steps(&series), [(0.0, 4e7), (5.0, 3.2e7)]);
    near(total(&series), 45e6 * 8.0);
}

/// Lumos5G: a row a second with `Throughput` in Mbit/s; a number for each walk.
#[test]
fn lumos5g() {
    let text = "run_num,seq_num,abstractSignalStr,latitude,longitude,movingSpeed,nrStatus,\
                Throughput,mobility_mode\n\
                1,1,2,44.9,-93.2,1.1,NOT_RESTRICTED,28.0,walking\n\
                1,2,2,44.9,-93.2,1.1,CONNECTED,412.5,walking\n\
                1,3,2,44.9,-93.2,1.1,CONNECTED,1201,walking\n\
                2,1,2,44.9,-93.2,1.1,CONNECTED,7,driving\n";
    let all = columns("seq_num s", "Throughput Mbit/s");
    let series = read(text, Quantity::Rate, &Columns { rows: Some("run_num = 1"), ..all });
    assert_eq!((series.rows, series.span()), (3, Time::from_secs(3)));
    near(total(&series), (28.0 + 412.5 + 1201.0) * 1e6);
    let error = read_series(text.as_bytes(), Quantity::Rate, &all).unwrap_err();
    assert_eq!(error.line, 5);
    assert!(error.to_string().contains("the time goes back"), "{error}");
}

/// Raca's 4G and 5G traces from G-NetTrack: dates of its own, kbit/s a second, other columns often
/// `-`.
#[test]
fn raca() {
    let text = "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,\
                RSSI,DL_bitrate,UL_bitrate,State,PINGAVG,PINGMIN\n\
                2019.12.16_13.40.04,-8.4,51.8,0,B,11,5G,-96,-12,3.0,8,-80,0,1,I,-,-\n\
                2019.12.16_13.40.05,-8.4,51.8,0,B,11,5G,-96,-,-,8,-,1200,1,D,31,30\n\
                2019.12.16_13.40.06,-8.4,51.8,0,B,11,5G,-96,-12,3.0,8,-80,-,1,D,-,-\n\
                2019.12.16_13.40.08,-8.4,51.8,0,B,11,LTE,-96,-12,3.0,8,-80,42100,1,D,45.5,31\n";
    let series = read(text, Quantity::Rate, &columns("Timestamp", "DL_bitrate kbit/s"));
    assert_eq!((series.rows, series.span()), (3, Time::from_secs(5)));
    assert_eq!(series.passed_over[0].lines, 1);
    // The value of the second second stays for three.
    near(total(&series), 3.0 * 1.2e6 + 42.1e6);
    let zero = Columns { gap: Gap::Zero, ..columns("Timestamp", "DL_bitrate kbit/s") };
    let series = read(text, Quantity::Rate, &zero);
    assert_eq!(steps(&series), [(0.0, 0.0), (1.0, 1.2e6), (2.0, 0.0), (4.0, 42.1e6)]);
    let delay = read(text, Quantity::Delay, &columns("Timestamp", "PINGAVG ms"));
    assert_eq!(steps(&delay), [(0.0, 0.031), (3.0, 0.0455)]);
}

/// Drives over Starlink and cellular networks: comma-separated values with the time of UDP
/// throughput, and of pings beside it.
#[test]
fn starlink_drives() {
    let text = "time,dl_throughput_mbps,rtt_ms\n\
                2023-05-01 10:00:00.000,120.5,45.1\n\
                2023-05-01 10:00:00.500,0,\n\
                2023-05-01 10:00:01.000,200,51.9\n";
    let series = read(text, Quantity::Rate, &columns("time", "dl_throughput_mbps Mbit/s"));
    assert_eq!(series.span(), Time::from_millis(1500));
    near(total(&series), 0.5 * 320.5e6);
    let delay = read(text, Quantity::Delay, &columns("time", "rtt_ms ms"));
    assert_eq!((delay.rows, delay.passed_over[0].lines), (2, 1));
    assert_eq!(steps(&delay), [(0.0, 0.0451), (1.0, 0.0519)]);
}

/// LENS: what irtt records, in JSON compressed by gzip, and ping with its times.
#[test]
fn lens() {
    let trip = |sent: u64, rtt: u64, lost: &str| {
        format!(
            "{{\"seqno\":0,\"lost\":\"{lost}\",\"timestamps\":{{\"client\":{{\"send\":{{\"wall\":\
             {sent},\"monotonic\":{sent}}},\"receive\":{{}}}},\"server\":{{\"receive\":{{}},\
             \"send\":{{}}}}}},\"delay\":{{\"receive\":1,\"rtt\":{rtt},\"send\":1}},\"ipdv\":{{}}}}"
        )
    };
    let trips = [
        trip(1_000_000_000, 30_000_000, "false"),
        trip(1_010_000_000, 0, "true_down"),
        trip(1_020_000_000, 42_500_000, "false"),
    ];
    let text = format!("{{\"version\":{{}},\"round_trips\":[{}]}}", trips.join(","));
    let check = |bytes: &[u8]| {
        let series = read_series(bytes, Quantity::Delay, &Columns::default()).unwrap();
        assert_eq!((series.format, series.rows, series.passed_over[0].lines), ("irtt", 2, 1));
        assert_eq!(steps(&series), [(0.0, 0.03), (0.02, 0.0425)]);
    };
    check(text.as_bytes());
    check(&super::tables::packed(text.as_bytes()));

    let text = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
                [1700000000.000000] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=30.0 ms\n\
                [1700000000.010000] no answer yet for icmp_seq=2\n\
                [1700000000.020000] 64 bytes from 192.0.2.1: icmp_seq=3 ttl=57 time=45.5 ms\n\
                \n--- 192.0.2.1 ping statistics ---\n\
                3 packets transmitted, 2 received, 33.3333% packet loss, time 20ms\n";
    let series = read(text, Quantity::Delay, &Columns::default());
    assert_eq!((series.format, series.rows), ("ping", 2));
    assert_eq!(steps(&series), [(0.0, 0.03), (0.02, 0.0455)]);
}

/// LeoEM's tables: time, RTT and bandwidth, separated by spaces.
#[test]
fn leoem() {
    let text = "# time(s) rtt(ms) bw(Mbit/s)\n0 24.5 150\n15 31.25 120\n30 22 90\n";
    let rate = read(text, Quantity::Rate, &columns("1 s", "3 Mbit/s"));
    near(total(&rate), 15.0 * 360e6);
    let delay = read(text, Quantity::Delay, &columns("1 s", "2 ms"));
    assert_eq!(steps(&delay), [(0.0, 0.0245), (15.0, 0.03125), (30.0, 0.022)]);
    assert_eq!(delay.span(), Time::from_secs(45));
}

/// netem-trace and rattan: typed pieces of bandwidth, delay and loss.
#[test]
fn netem_trace() {
    let none = Columns::default();
    let text = r#"{"RepeatedBwPatternConfig":{"pattern":[
        {"StaticBwConfig":{"bw":{"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}},
        {"StaticBwConfig":{"bw":"24Mbps","duration":"2s"}}],"count":2}}"#;
    let rate = read(text, Quantity::Rate, &none);
    assert_eq!(rate.span(), Time::from_secs(6));
    near(total(&rate), 2.0 * (12e6 + 48e6));
    let text = r#"{"TraceBwConfig":{"pattern":[["1ms",["2Mbps","4Mbps"]],["2ms",["1Mbps"]]]}}"#;
    let rate = read(text, Quantity::Rate, &none);
    assert_eq!(steps(&rate), [(0.0, 2e6), (0.001, 4e6), (0.002, 1e6)]);
    assert_eq!(rate.span(), Time::from_millis(4));
    let text = r#"{"RepeatedDelayPatternConfig":{"pattern":[
        {"StaticDelayConfig":{"delay":{"secs":0,"nanos":10000000},"duration":{"secs":15,"nanos":0}}},
        {"StaticDelayConfig":{"delay":"35ms","duration":"15s"}}],"count":0}}"#;
    let delay = read(text, Quantity::Delay, &none);
    assert_eq!(steps(&delay), [(0.0, 0.01), (15.0, 0.035)]);
    let text = r#"{"RepeatedLossPatternConfig":{"pattern":[
        {"StaticLossConfig":{"loss":[0.02],"duration":"1s"}},
        {"StaticLossConfig":{"loss":[],"duration":"1s"}}],"count":1}}"#;
    let loss = read(text, Quantity::Loss, &none);
    assert_eq!(steps(&loss), [(0.0, 0.02), (1.0, 0.0)]);
}

/// iperf3: the rate of all streams in each interval, and the RTT of the first.
#[test]
fn iperf3() {
    let part = |start: f64, end: f64, rate: f64| {
        format!(
            "{{\"streams\":[{{\"socket\":5,\"start\":{start},\"end\":{end},\"rtt\":25000}}],\
             \"sum\":{{\"start\":{start},\"end\":{end},\"bits_per_second\":{rate}}}}}"
        )
    };
    let parts = [part(0.0, 1.0, 8e6), part(1.0, 2.0, 9.5e6), part(2.0, 2.5, 4e6)].join(",");
    let text = format!("{{\"start\":{{}},\"intervals\":[{parts}],\"end\":{{}}}}");
    let rate = read(&text, Quantity::Rate, &Columns::default());
    assert_eq!((rate.format, rate.span()), ("iperf3", Time::from_millis(2500)));
    near(total(&rate), 8e6 + 9.5e6 + 2e6);
    let delay = read(&text, Quantity::Delay, &Columns::default());
    assert_eq!(steps(&delay), [(0.0, 0.025)]);
}
