//! L4S end to end: Prague and CUBIC share a link through DualPI2 (RFC 9332),
//! and the packet log shows how long each of them waited.
use knee_scenario::{Embedded, Scenario, Source, parse};
use knee_sim::Control;
use std::collections::BTreeMap;

const MBIT: f64 = 40.0;
const SECONDS: f64 = 40.0;
const WARMUP: f64 = 10.0;
const PROPAGATION_MS: f64 = 1.0;

/// A scenario of flows, each with a path of its own RTT over one link.
fn scenario(flows: &[(&str, f64)], aqm: &str) -> Scenario {
    let mut text = format!(
        "name = \"l4s\"\nduration = \"{SECONDS} s\"\n[transport]\necn = true\n\
         [link.bottleneck]\nrate = \"{MBIT} Mbit/s\"\ndelay = \"1 ms\"\n\
         buffer = \"1000 packets\"\naqm = {aqm}\n"
    );
    for (number, (cc, rtt_ms)) in flows.iter().enumerate() {
        text += &format!(
            "[path.p{number}]\nforward = [\"bottleneck\"]\nreverse_delay = \"{} ms\"\n\
             [[flow]]\nname = \"f{number}\"\ncc = \"{cc}\"\npath = \"p{number}\"\n",
            rtt_ms - 1.0
        );
    }
    let source = Source { name: "l4s.toml", loader: &Embedded(&[]) };
    parse(&text, &source, &[]).unwrap_or_else(|errors| panic!("{:?}\n{text}", errors.problems))
}

/// A flow's results after the warm-up, from the packet log only.
#[derive(Debug, Default)]
struct Got {
    mbit: f64,
    /// Times in the queue and on the wire, ms, ascending.
    delays: Vec<f64>,
}

impl Got {
    fn percentile(&self, part: f64) -> f64 {
        self.delays[((self.delays.len() - 1) as f64 * part) as usize]
    }
}

fn run(flows: &[(&str, f64)], aqm: &str) -> Vec<Got> {
    let mut log = Vec::new();
    knee_sim::run_logged(&scenario(flows, aqm), &Control::default(), &mut log).unwrap();
    let text = String::from_utf8(log).unwrap();
    let mut rows = text.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = rows.next().unwrap().split(',').collect();
    let place = |name: &str| header.iter().position(|known| *known == name).unwrap();
    let [time, event, flow, kind, id, bytes] =
        ["time_ns", "event", "flow", "kind", "id", "bytes"].map(place);
    let mut got: Vec<Got> = flows.iter().map(|_| Got::default()).collect();
    let mut entered = BTreeMap::new();
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        if fields[kind] != "data" {
            continue;
        }
        let (now, packet) = (fields[time].parse::<f64>().unwrap() / 1e9, fields[id]);
        match fields[event] {
            "enter" => {
                entered.insert(packet, now);
            }
            "leave" if now > WARMUP => {
                let got = &mut got[fields[flow].parse::<usize>().unwrap()];
                got.mbit += fields[bytes].parse::<f64>().unwrap() * 8.0 / 1e6 / (SECONDS - WARMUP);
                got.delays.push(1e3 * (now - entered[packet]) - PROPAGATION_MS);
            }
            _ => {}
        }
    }
    for flow in &mut got {
        flow.delays.sort_by(f64::total_cmp);
    }
    got
}

/// RFC 9332, sections 1.1 and 2.1: about equal rates without the classic
/// queue's delay, at any RTT; the link is full, and the classic queue is kept
/// near its target of 15 ms.
#[test]
fn prague_and_cubic_share_a_dualpi2_link() {
    for rtt_ms in [5.0, 15.0, 50.0] {
        println!("RTT {rtt_ms} ms");
        let got = run(&[("prague", rtt_ms), ("cubic", rtt_ms)], "\"dualpi2\"");
        let [prague, cubic] = &got[..] else { panic!("two flows") };
        let ratio = prague.mbit / cubic.mbit;
        assert!((0.5..2.0).contains(&ratio), "{rtt_ms} ms: {ratio}");
        assert!(prague.percentile(0.99) < 5.0, "{rtt_ms} ms: {}", prague.percentile(0.99));
        assert!(prague.mbit + cubic.mbit > 0.9 * MBIT, "{rtt_ms} ms");
        let classic = cubic.percentile(0.5);
        assert!((5.0..30.0).contains(&classic), "{rtt_ms} ms: {classic}");
    }
}

/// The records separate the classes as the packet log does: the low-latency queue
/// is short, the classic one near its target of 15 ms, and their sum is the link.
#[test]
fn the_records_tell_the_classes_apart() {
    let scenario = scenario(&[("prague", 15.0), ("cubic", 15.0)], "\"dualpi2\"");
    let records = knee_sim::run(&scenario, &Control::default()).unwrap();
    let of = |name: &str| {
        let rows = records.classes.iter().filter(|row| row.name == name);
        rows.filter(|row| row.time_ns as f64 > WARMUP * 1e9).collect::<Vec<_>>()
    };
    let (low, classic) = (of("low-latency"), of("classic"));
    let percentile = |rows: &[knee_record::ClassSample], part: f64| {
        let mut delays: Vec<f64> = rows.iter().map(|row| row.queue_delay_ns as f64 / 1e6).collect();
        delays.sort_by(f64::total_cmp);
        delays[((delays.len() - 1) as f64 * part) as usize]
    };
    assert!(low.len() > 250 && classic.len() == low.len(), "{}", low.len());
    assert!(percentile(&low, 0.99) < 5.0, "{}", percentile(&low, 0.99));
    let middle = percentile(&classic, 0.5);
    assert!((5.0..30.0).contains(&middle), "{middle}");
    let links = records.links.iter().filter(|row| row.link == 0);
    for link in links.filter(|row| row.time_ns as f64 > WARMUP * 1e9) {
        let at = records.classes.iter().filter(|row| row.time_ns == link.time_ns);
        let at: Vec<_> = at.collect();
        let sum = |value: fn(&knee_record::ClassSample) -> u64| at.iter().map(value).sum::<u64>();
        assert_eq!(sum(|row| row.marked_packets), link.marked_packets);
        // At most one packet is on the wire, which the link's queue also counts.
        let wire = sum(|row| row.departed_bytes) - link.departed_bytes;
        assert!(wire <= 1500, "{wire}");
        assert_eq!(sum(|row| row.queue_bytes) + wire, link.queue_bytes);
    }
    let (first, last) = (low[0], low[low.len() - 1]);
    assert!(last.marked_packets > first.marked_packets && last.dropped_packets == 0);
}

/// The draft, section 2.4.4: below 25 ms the rate no longer depends on the RTT.
/// DCTCP, which has no such rule, gives the flow with the shorter RTT far more.
#[test]
fn prague_does_not_depend_on_short_rtts() {
    let ratio = |cc: &str| {
        let got = run(&[(cc, 4.0), (cc, 20.0)], "{ name = \"threshold\", delay = \"1 ms\" }");
        got[0].mbit / got[1].mbit
    };
    let (prague, dctcp) = (ratio("prague"), ratio("dctcp"));
    println!("prague {prague:.2}, dctcp {dctcp:.2}");
    assert!((0.6..1.7).contains(&prague), "{prague}");
    assert!(dctcp > 2.0 * prague, "{dctcp} against {prague}");
}

/// A single flow fills the link with the queue of the step.
#[test]
fn prague_fills_a_link_with_a_short_queue() {
    for rtt_ms in [5.0, 15.0, 50.0] {
        let got = run(&[("prague", rtt_ms)], "\"dualpi2\"");
        assert!(got[0].mbit > 0.93 * MBIT, "{rtt_ms} ms: {}", got[0].mbit);
        assert!(got[0].percentile(0.99) < 5.0, "{rtt_ms} ms: {}", got[0].percentile(0.99));
    }
}
