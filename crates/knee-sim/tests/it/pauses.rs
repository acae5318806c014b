//! Links with back-pressure: what does not fit waits where it came from.

use knee_record::{LinkSample, Records};
use knee_scenario::{Embedded, Override, Source, parse};
use knee_sim::Control;
use knee_verify::check;

/// Runs a scenario, and has its packet log checked.
fn run(text: &str, set: &[(&str, &str)]) -> Records {
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    let set: Vec<Override> = set.iter().map(|(key, value)| Override::new(key, value)).collect();
    let scenario = parse(text, &source, &set).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let mut log = Vec::new();
    let records = knee_sim::run_logged(&scenario, &Control::default(), &mut log).unwrap();
    let report = check(log.as_slice()).unwrap();
    assert!(report.is_sound(), "{:#?}", &report.violations[..report.violations.len().min(5)]);
    records
}

/// A host before a switch with a port of a tenth of its rate.
const SWITCH: &str = r#"
duration = "6 s"
sample_interval = "1 ms"

[link.host]
rate = "100 Mbit/s"
delay = "100 us"
buffer = "unlimited"

[link.switch]
rate = "10 Mbit/s"
delay = "100 us"
buffer = "100 kB"
pause = { at = "80 %", until = "50 %" }

[path.main]
forward = ["host", "switch"]
reverse_delay = "100 us"

[[flow]]
name = "a"
cc = "cubic"
receive_window = "4 MB"
"#;

fn rows(records: &Records, name: &str) -> Vec<LinkSample> {
    let index = records.link_names.iter().position(|link| link == name).unwrap() as u32;
    records.links.iter().filter(|row| row.link == index).collect()
}

fn dropped(records: &Records, name: &str) -> u64 {
    rows(records, name).last().unwrap().dropped_packets
}

/// The queue of the switch swings between the two lengths: above, what the host sends until the
/// request has reached it and what is on the wire then; below, what the switch sends while the
/// host's first packet is on its way. Nothing is dropped, and the switch is never idle.
#[test]
fn the_queue_stays_between_its_limits_and_nothing_is_dropped() {
    let records = run(SWITCH, &[]);
    assert_eq!(dropped(&records, "switch"), 0);
    assert_eq!(records.flows[0].retransmitted_bytes, 0);
    // 200 us there and back, at 100 and at 10 Mbit/s; each side has a packet in transmission.
    let (packet, above, below) = (1500, 200 * 100 / 8, 200 * 10 / 8);
    let steady = rows(&records, "switch").into_iter().filter(|row| row.time_ns > 2_000_000_000);
    let steady: Vec<LinkSample> = steady.collect();
    let queues: Vec<u64> = steady.iter().map(|row| row.queue_bytes).collect();
    let (least, most) = (*queues.iter().min().unwrap(), *queues.iter().max().unwrap());
    assert!(most <= 80_000 + above + 3 * packet && most >= 78_000, "{most} bytes");
    assert!(least >= 50_000 - below - 3 * packet && least <= 53_000, "{least} bytes");
    let (first, last) = (steady.first().unwrap(), steady.last().unwrap());
    let bits = (last.departed_bytes - first.departed_bytes) as f64 * 8.0;
    let rate = bits / (last.time_ns - first.time_ns) as f64 * 1e9;
    assert!((rate / 10e6 - 1.0).abs() < 1e-3, "{rate} bit/s");
    // Without the pause, the same switch drops.
    let text = SWITCH.replace("pause = { at = \"80 %\", until = \"50 %\" }\n", "");
    assert!(dropped(&run(&text, &[]), "switch") > 0);
}

/// A buffer without room above the threshold for what is on the wire still drops: 100 Mbit/s over
/// 2 x 5 ms are 125 kB, of which a tenth leaves.
#[test]
fn without_headroom_it_drops() {
    let records = run(SWITCH, &[("link.host.delay", "5 ms")]);
    assert!(dropped(&records, "switch") > 0);
    let wide = [("link.host.delay", "5 ms"), ("link.switch.buffer", "700 kB")];
    assert_eq!(dropped(&run(SWITCH, &wide), "switch"), 0);
}

/// The loss goes where the queue has moved: to the host, once that has a limit.
#[test]
fn a_full_host_drops_instead() {
    let records = run(SWITCH, &[("link.host.buffer", "200 kB")]);
    assert_eq!(dropped(&records, "switch"), 0);
    assert!(dropped(&records, "host") > 0);
}

/// A flow to another port of the switch waits behind the first at the paused host: both have the
/// same window of packets in one queue there, so both get the rate of the slow port.
#[test]
fn the_paused_host_blocks_the_other_flow() {
    let other = SWITCH.to_string()
        + "\n[link.other]\nrate = \"100 Mbit/s\"\ndelay = \"100 us\"\n\n[path.other]\n\
           forward = [\"host\", \"other\"]\nreverse_delay = \"100 us\"\n\n[[flow]]\nname = \"b\"\n\
           path = \"other\"\ncc = { name = \"fixed\", window = \"200 packets\" }\n";
    let text = other.replace(
        "cc = \"cubic\"\n",
        "path = \"main\"\ncc = { name = \"fixed\", window = \"200 packets\" }\n",
    );
    let goodput = |records: &Records| records.flows[1].delivered_bytes as f64 * 8.0 / 6.0;
    let paused = goodput(&run(&text, &[]));
    assert!((5e6..20e6).contains(&paused), "{paused} bit/s");
    let free = text.replace("pause = { at = \"80 %\", until = \"50 %\" }\nbuffer", "buffer");
    let free =
        goodput(&run(&free.replace("pause = { at = \"80 %\", until = \"50 %\" }\n", ""), &[]));
    assert!(free > 60e6, "{free} bit/s");
}

/// Pauses are passed back over several links, of any queue that can wait, over rates that change,
/// traces, outages, jitter, and with the ACKs of others in the same queue; the checker finds all as
/// it must be.
#[test]
fn chains_of_paused_links_follow_the_rules() {
    let chain = r#"
duration = "3 s"

[link.host]
rate = "60 Mbit/s"
delay = "300 us"
buffer = "2 MB"
HOST

[link.first]
rate = "40 Mbit/s"
delay = "1 ms"
buffer = "90 packets"
pause = { at = "40 %", until = "20 %" }
FIRST

[link.second]
rate = "8 Mbit/s"
delay = "2 ms"
buffer = "200 kB"
pause = { at = "60 %", until = "10 %" }
SECOND

[path.main]
forward = ["host", "first", "second"]
reverse_delay = "3 ms"

[path.beside]
forward = ["host", "first"]
reverse = ["host"]

[[flow]]
name = "a"
path = "main"
cc = "bbr"
count = 2

[[flow]]
name = "b"
path = "beside"
cc = "cubic"
"#;
    let down = "down = [{ from = \"1 s\", until = \"1050 ms\" }]";
    let jitter = "jitter = { amount = \"500 us\", reorder = true }";
    let cases = [
        ("", "", ""),
        ("aqm = \"codel\"", "", jitter),
        ("aqm = \"fq-codel\"", down, ""),
        ("loss = \"1 %\"", jitter, down),
        ("", "policer = { rate = \"30 Mbit/s\", burst = \"60 kB\" }", "loss = { every = 50 }"),
    ];
    for (host, first, second) in cases {
        let text = chain.replace("HOST", host).replace("FIRST", first).replace("SECOND", second);
        let records = run(&text, &[]);
        for name in ["first", "second"] {
            let queue_full = dropped(&records, name);
            let may = first.contains("policer") && name == "first";
            assert!(may || queue_full == 0, "{host} {first} {second}: {name} drops {queue_full}");
        }
        let steps = "[{ at = \"0 s\", rate = \"8 Mbit/s\" }, { at = \"1 s\", rate = \"0 bit/s\" }, \
                     { at = \"1200 ms\", rate = \"20 Mbit/s\" }]";
        run(&text.replace("rate = \"8 Mbit/s\"", &format!("rate = {steps}")), &[]);
    }
}
