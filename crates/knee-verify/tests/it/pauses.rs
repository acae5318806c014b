//! Back-pressure: a host of 8 Gbit/s before a switch of 0.8 Gbit/s that asks it to pause at four
//! packets, until two. The log is made by hand: ten packets of 1000 bytes take 1 and 10 us.

use knee_verify::{Rule, check};

const US: u64 = 1000;

const HEAD: &str = "\
# knee-packet-log/3
# link,0,host,rate_bps=8000000000,delay_ns=1000
# link,1,switch,rate_bps=800000000,delay_ns=0,buffer_packets=20,pause=4:2
# link,2,reverse,rate_bps=,delay_ns=1000
# path,0,forward=0;1,reverse=2
# flow,0,path=0,mss=960,rto_min_ns=200000000,burst_bytes=65536,receive_window=,of=0
time_ns,event,link,flow,kind,id,number,bytes,in_flight,window,pacing_bps,burst,offset,ecn,detail
";

/// When each packet leaves the host. It pauses from 7 us on, when the request of 6 us arrives: a
/// packet that begins at just that moment still goes. From 53 us on it goes on.
const HOST: [u64; 10] = [2, 3, 4, 5, 6, 7, 8, 9, 55, 56];
/// What the switch asks, and when.
const ASKS: [(u64, &str); 4] = [(6, "pause"), (52, "resume"), (56, "pause"), (72, "resume")];

/// A host that does not pause.
const DEAF: [u64; 10] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const OF_DEAF: [(u64, &str); 2] = [(6, "pause"), (72, "resume")];

/// The rows in order of time; at one time, what is asked comes last.
fn log(host: [u64; 10], asks: &[(u64, &str)]) -> String {
    let mut rows: Vec<(u64, u8, String)> = Vec::new();
    for (number, from_host) in host.into_iter().enumerate() {
        let (id, sent) = (number, (number + 1) * 960);
        let packet = format!("0,data,{id},{number}");
        let mut row = |time: u64, rank: u8, text: String| rows.push((time, rank, text));
        row(0, 0, format!("send,,{packet},960,{sent},99999,,64,,,new"));
        row(0, 0, format!("enter,0,{packet},1000,,,,,,,"));
        row(from_host, 1, format!("leave,0,{packet},1000,,,,,,,"));
        row(from_host, 1, format!("enter,1,{packet},1000,,,,,,,"));
        let left = 12 + 10 * number as u64;
        row(left, 1, format!("leave,1,{packet},1000,,,,,,,"));
        row(left, 1, format!("receive,,{packet},,,,,,,,"));
        row(left, 1, format!("deliver,,0,,,{number},960,,,,,,,1"));
    }
    rows.extend(asks.iter().map(|(time, what)| (*time, 2, format!("{what},1,,,,,,,,,,,,"))));
    rows.sort_by_key(|(time, rank, _)| (*time, *rank));
    let rows = rows.into_iter().map(|(time, _, text)| format!("{},{text}\n", time * US));
    HEAD.to_string() + &rows.collect::<String>()
}

fn broken(log: &str) -> Vec<Rule> {
    let report = check(log.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{log}"));
    report.violations.iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_host_that_pauses_breaks_no_rule() {
    let log = log(HOST, &ASKS);
    let report = check(log.as_bytes()).unwrap();
    assert_eq!(report.violations, [], "{log}");
    assert_eq!(report.links[1].left, 10);
}

#[test]
fn a_host_that_does_not_pause_is_found() {
    // The switch asks as it must, and the host sends two packets in the pause.
    let rules = broken(&log(DEAF, &OF_DEAF));
    assert_eq!(rules, [Rule::Pause; 2]);
    // One that takes too long to go on.
    let mut late = HOST;
    (late[8], late[9]) = (58, 59);
    let asks = [(6, "pause"), (52, "resume"), (59, "pause"), (72, "resume")];
    assert_eq!(broken(&log(late, &asks)), [Rule::Late; 2]);
}

#[test]
fn a_switch_that_asks_wrongly_is_found() {
    for at in 0..ASKS.len() {
        let mut fewer = ASKS.to_vec();
        fewer.remove(at);
        assert!(broken(&log(HOST, &fewer)).contains(&Rule::Pause), "without {:?}", ASKS[at]);
        let mut early = ASKS;
        early[at].0 -= 1;
        assert!(broken(&log(HOST, &early)).contains(&Rule::Pause), "{:?} earlier", ASKS[at]);
    }
    let rules = broken(&log(HOST, &ASKS).replace(",pause=4:2", ",pause=5:2"));
    assert!(rules.contains(&Rule::Pause), "{rules:?}");
    let rules = broken(&log(HOST, &ASKS).replace(",pause=4:2", ""));
    assert!(rules.contains(&Rule::Pause) && rules.contains(&Rule::Late), "{rules:?}");
}

#[test]
fn a_pause_without_an_end_is_malformed() {
    let log = log(HOST, &ASKS).replace(",pause=4:2", ",pause=4:4");
    assert!(check(log.as_bytes()).unwrap_err().to_string().contains("ends above"));
}
