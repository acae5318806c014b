//! The rows of connections compared with the packet log, which is parsed here
//! independently: data sent, retransmitted, acknowledged, reported and marked,
//! and how long there was data to send.

use crate::random::{each_seed, read};
use knee_record::{ConnectionRecord, Records};
use knee_scenario::Scenario;
use knee_sim::Control;
use knee_trials::scenario;
use std::collections::{BTreeMap, BTreeSet};

const SCENARIOS: u64 = 100;

fn logged(scenario: &Scenario) -> (Records, String) {
    let mut log = Vec::new();
    let records = knee_sim::run_logged(scenario, &Control::default(), &mut log)
        .unwrap_or_else(|error| panic!("{error}"));
    (records, String::from_utf8(log).expect("it is text"))
}

/// Counts from the log for the sending end of a plain connection, or for all
/// subflows of a multipath connection.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd)]
struct Counted {
    sent_bytes: u64,
    sent_again_bytes: u64,
    packets: u64,
    packets_again: u64,
    timeouts: u64,
    /// Segments reported by ACKs, cumulatively or selectively.
    reported: u64,
    marked: u64,
    completed_ns: Option<u64>,
    /// For a plain connection.
    acked_bytes: Option<u64>,
}

/// A flow of the log, with segment numbers of its own.
#[derive(Clone, Debug, Default)]
struct Flow {
    connection: Option<u32>,
    lengths: BTreeMap<u32, u64>,
    counted: Counted,
    /// Next segment expected, according to ACKs.
    expected: u32,
    reported: BTreeSet<u32>,
    syn_ns: Option<u64>,
    first_data_ns: Option<u64>,
    syn_ack_ns: Option<u64>,
    /// Smallest one-way delay in each direction.
    there_ns: Option<u64>,
    back_ns: Option<u64>,
    last_ack_ns: u64,
}

fn least(one: &mut Option<u64>, other: u64) {
    *one = Some(one.map_or(other, |one| one.min(other)));
}

/// Times of packets in the network, by their last event.
#[derive(Default)]
struct UnderWay {
    sent: BTreeMap<u64, u64>,
    marked: BTreeSet<u64>,
    /// SYNs, which carry no payload and whose marks do not count.
    syns: BTreeSet<u64>,
    /// Completed connections.
    complete: BTreeSet<u32>,
    acks: BTreeMap<u64, Ack>,
}

/// Time of sending, the next segment expected, and blocks.
type Ack = (u64, u32, Vec<(u32, u32)>);

fn read_log(log: &str) -> BTreeMap<u32, Flow> {
    let mut flows: BTreeMap<u32, Flow> = BTreeMap::new();
    let mut under_way = UnderWay::default();
    for line in log.lines() {
        if let Some(head) = line.strip_prefix("# flow,") {
            let mut cells = head.split(',');
            let number = cells.next().and_then(|cell| cell.parse().ok()).expect("a number");
            let connection = cells.find_map(|cell| cell.strip_prefix("connection="));
            let connection = connection.map(|cell| cell.parse().expect("a number"));
            flows.insert(number, Flow { connection, ..Flow::default() });
        } else if let Some(head) = line.strip_prefix("# connection,") {
            // It may never have a subflow if its paths are absent.
            let number = head.split(',').next().and_then(|cell| cell.parse().ok());
            let number = number.expect("a number");
            flows.insert(number, Flow { connection: Some(number), ..Flow::default() });
        } else if !line.starts_with('#') && !line.starts_with("time_ns") {
            let cells: Vec<&str> = line.split(',').collect();
            take(&mut flows, &mut under_way, &cells);
        }
    }
    flows
}

fn take(flows: &mut BTreeMap<u32, Flow>, under_way: &mut UnderWay, cells: &[&str]) {
    let number = |at: usize| cells[at].parse::<u64>().unwrap_or(0);
    let (now, id, segment, bytes) = (number(0), number(5), number(6) as u32, number(7));
    let Ok(serial) = cells[3].parse::<u32>() else { return };
    if cells[1] == "complete" {
        let parts = flows.iter_mut().filter(|(n, flow)| flow.connection.unwrap_or(**n) == serial);
        parts.for_each(|(_, flow)| flow.counted.completed_ns = Some(now));
        under_way.complete.insert(serial);
    }
    let Some(flow) = flows.get_mut(&serial) else { return };
    // Over one path nothing is sent any more; what arrives late does not count. Subflows repeat
    // what another one delivered.
    if flow.connection.is_none() && under_way.complete.contains(&serial) {
        return;
    }
    let of_data = cells[4] == "data";
    match cells[1] {
        "send" if cells[14] == "syn" => {
            under_way.sent.insert(id, now);
            under_way.syns.insert(id);
            flow.syn_ns.get_or_insert(now);
        }
        "send" => {
            under_way.sent.insert(id, now);
            flow.first_data_ns.get_or_insert(now);
            flow.counted.sent_bytes += bytes;
            flow.counted.packets += 1;
            if flow.lengths.insert(segment, bytes).is_some() {
                flow.counted.sent_again_bytes += bytes;
                flow.counted.packets_again += 1;
            }
        }
        "leave" if of_data && !under_way.syns.contains(&id) => {
            // A later link may clear the mark.
            match cells[13] {
                "ce" => under_way.marked.insert(id),
                _ => under_way.marked.remove(&id),
            };
        }
        "receive" => {
            if let Some(at) = under_way.sent.remove(&id) {
                least(&mut flow.there_ns, now - at);
            }
            flow.counted.marked += u64::from(under_way.marked.remove(&id));
        }
        "ack_send" => {
            let block = |text: &str| {
                let (from, to) = text.split_once('-')?;
                Some((from.parse().ok()?, to.parse().ok()?))
            };
            let blocks = cells[14].split(';').filter_map(block).collect();
            under_way.acks.insert(id, (now, segment, blocks));
        }
        "ack_receive" => {
            let Some((at, expected, blocks)) = under_way.acks.remove(&id) else { return };
            least(&mut flow.back_ns, now - at);
            flow.syn_ack_ns.get_or_insert(now);
            flow.last_ack_ns = now;
            flow.expected = flow.expected.max(expected);
            let known = flow.lengths.keys().next_back().map_or(0, |last| last + 1);
            for (from, to) in blocks {
                flow.reported.extend(from..to.min(known));
            }
        }
        "timeout" if cells[14] == "rto" => flow.counted.timeouts += 1,
        _ => {}
    }
}

impl Flow {
    fn counted(&self) -> Counted {
        let acked = self.lengths.range(..self.expected).map(|(_, bytes)| bytes).sum();
        let selectively = self.reported.range(self.expected..).count() as u64;
        Counted {
            reported: u64::from(self.expected) + selectively,
            acked_bytes: self.connection.is_none().then_some(acked),
            ..self.counted.clone()
        }
    }
}

fn told(row: &ConnectionRecord, end_ns: u64) -> Counted {
    let one_path = row.srtt_ns.is_some() || row.busy_ns.is_some();
    Counted {
        sent_bytes: row.sent_bytes.expect("known"),
        sent_again_bytes: row.retransmitted_bytes.expect("known"),
        packets: row.sent_packets.expect("known"),
        packets_again: row.retransmitted_packets.expect("known"),
        timeouts: row.timeouts.expect("known"),
        reported: row.delivered_packets.expect("known"),
        marked: row.marked_packets.expect("known"),
        // A connection that was stopped is complete in the log, which knows no sizes.
        completed_ns: (row.end_ns < end_ns).then_some(row.end_ns),
        acked_bytes: row.acked_bytes.filter(|_| one_path),
    }
}

/// Sums subflows by their connection; plain connections are unchanged.
fn by_connection(flows: &BTreeMap<u32, Flow>) -> Vec<Counted> {
    let mut sums: BTreeMap<u32, Counted> = BTreeMap::new();
    for (number, flow) in flows {
        let (one, key) = (flow.counted(), flow.connection.unwrap_or(*number));
        let sum = sums.entry(key).or_default();
        *sum = Counted {
            sent_bytes: sum.sent_bytes + one.sent_bytes,
            sent_again_bytes: sum.sent_again_bytes + one.sent_again_bytes,
            packets: sum.packets + one.packets,
            packets_again: sum.packets_again + one.packets_again,
            timeouts: sum.timeouts + one.timeouts,
            reported: sum.reported + one.reported,
            marked: sum.marked + one.marked,
            completed_ns: sum.completed_ns.or(one.completed_ns),
            acked_bytes: one.acked_bytes,
        };
    }
    sums.into_values().collect()
}

fn check_counts(seed: u64) {
    let random = scenario::random(seed);
    let files: Vec<(&str, &[u8])> = random.files().collect();
    let scenario = read(&random.text(), &files);
    let (records, log) = logged(&scenario);
    let mut counted = by_connection(&read_log(&log));
    let mut told: Vec<Counted> = {
        let rows = records.connections.iter();
        rows.map(|row| told(row, scenario.duration.as_nanos())).collect()
    };
    let order = |one: &Counted, other: &Counted| one.partial_cmp(other).expect("no floats");
    counted.sort_by(order);
    told.sort_by(order);
    assert_eq!(told.len(), counted.len(), "KNEE_SEED={seed}: connections\n{}", random.text());
    for (row, log) in told.iter().zip(&counted) {
        assert_eq!(row, log, "KNEE_SEED={seed}: the row, then the log\n{}", random.text());
    }
}

/// Checks every connection of every random scenario, plain or multipath.
#[test]
fn rows_count_what_the_packet_log_shows() {
    each_seed(SCENARIOS, check_counts);
}

fn scenario_of(link: &str, flow: &str) -> Scenario {
    read(
        &format!(
            "duration = \"20 s\"\nseed = 5\n[link.a]\n{link}\n\
             [path.a]\nforward = [\"a\"]\nreverse_delay = \"20 ms\"\n[[flow]]\n{flow}\n"
        ),
        &[],
    )
}

const LINK: &str = "rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"1 BDP\"\nloss = \"1 %\"";

/// For a connection that is written to once: it is busy from its first segment to
/// the last ACK, and its RTTs are between the path's delay and the handshake's RTT.
#[test]
fn times_are_those_of_the_packet_log() {
    let mix = "mix = { arrival_interval = \"150 ms\", sizes = { median = \"30 kB\", \
               sigma = 1.0, max = \"1 MB\" } }";
    for workload in ["\"bulk\"".to_string(), "{ file = \"3 MB\" }".into(), format!("{{ {mix} }}")] {
        let flow = format!("cc = \"cubic\"\nworkload = {workload}");
        let scenario = scenario_of(LINK, &flow);
        let (records, log) = logged(&scenario);
        let flows = read_log(&log);
        // In the order of their start, as numbered in the log.
        let mut rows = records.connections;
        rows.sort_by_key(|row| row.connection);
        assert_eq!(rows.len(), flows.len(), "{workload}");
        for (row, flow) in rows.iter().zip(flows.values()) {
            let Some(first) = flow.first_data_ns else { continue };
            assert_eq!(row.start_ns, flow.syn_ns, "{workload}");
            assert_eq!(row.busy_ns, Some(row.end_ns - first), "{workload}: {row:?}");
            let path = flow.there_ns.unwrap_or(0) + flow.back_ns.unwrap_or(0);
            let syn = flow.syn_ack_ns.unwrap() - flow.syn_ns.unwrap();
            let (least, smooth) = (row.rtt_min_ns.unwrap(), row.srtt_ns.unwrap());
            // For an ACK of a retransmitted segment the timestamp has
            // millisecond resolution.
            assert!(least + 1_000_000 >= path && least <= syn + 1000, "{path} <= {least} <= {syn}");
            assert!(least >= 40_000_000 && smooth >= least - 1000, "{row:?}");
            // A sample over less than the minimum RTT does not count.
            let rate = row.delivery_rate_bps.unwrap_or(10_001);
            assert!(row.delivery_rate_bps.is_some() || row.acked_bytes < Some(50_000), "{row:?}");
            // ACKs may be slightly closer together than segments were sent.
            assert!(rate > 10_000 && rate < 11_000_000, "{rate}");
        }
    }
}

/// A window of 25 kB over 40 ms allows 5 of 100 Mbit/s: except in the first
/// rounds the receiver is the limit, as a goodput of window over RTT shows.
/// With room for everything in flight it never is.
#[test]
fn the_receivers_window_limits_what_it_should() {
    let link = "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"2 BDP\"";
    let run = |window: &str| {
        let flow = format!("cc = \"reno\"\nworkload = \"bulk\"\nreceive_window = \"{window}\"");
        logged(&scenario_of(link, &flow)).0.connections.remove(0)
    };
    let narrow = run("25 kB");
    let (busy, limited) = (narrow.busy_ns.unwrap(), narrow.receive_limited_ns.unwrap());
    let bound = 25_000.0 / 0.040 * 20.0;
    let acked = narrow.acked_bytes.unwrap() as f64;
    assert!(acked <= bound && acked >= 0.85 * bound, "{acked} of {bound}");
    assert!(limited <= busy && limited as f64 > 0.9 * busy as f64, "{limited} of {busy}");
    let wide = run("100 MB");
    assert_eq!((wide.receive_limited_ns, wide.send_buffer_limited_ns), (Some(0), None));
}

/// Ten flows that never end and one file: one row each, with and without an
/// end, and without the fields that only a live host has.
#[test]
fn every_connection_has_a_row() {
    let text = "duration = \"5 s\"\n[link.a]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
                [path.a]\nforward = [\"a\"]\nreverse_delay = \"5 ms\"\n\
                [[flow]]\nname = \"bulk\"\ncc = \"bbr\"\ncount = 10\n\
                [[flow]]\nname = \"file\"\ncc = \"cubic\"\nworkload = { file = \"10 kB\" }\n\
                [[flow]]\nname = \"page\"\ncc = \"reno\"\nworkload = { page = {} }\n";
    let records = crate::random::run(&read(text, &[]));
    let of = |name: &str| {
        records.connections.iter().filter(|row| &*row.workload == name).collect::<Vec<_>>()
    };
    let (bulk, file, page) = (of("bulk"), of("file"), of("page"));
    assert_eq!((bulk.len(), file.len()), (10, 1));
    assert!(page.len() > 1, "a page has several connections");
    for row in bulk {
        assert_eq!((row.completion_ns, row.size_bytes, row.end_ns), (None, None, 5_000_000_000));
        assert_eq!(&*row.cc, "bbr");
        assert!(row.pacing_rate_bps.is_some(), "{row:?}");
        assert_eq!(row.app_limited, row.delivery_rate_bps.map(|_| false));
    }
    assert_eq!(file[0].acked_bytes, Some(10_000));
    assert!(file[0].completion_ns.is_some() && &*file[0].cc == "cubic");
    for row in &records.connections {
        let live = (&*row.prefix, row.local_port, row.remote_port, &*row.group, row.block);
        assert_eq!(live, ("", None, None, "", None));
        assert_eq!((&*row.arm, row.weight, row.received_bytes), ("", None, None));
        assert_eq!(row.cc_source.name(), "scenario");
    }
    let sent: u64 = records.connections.iter().filter_map(|row| row.sent_bytes).sum();
    assert_eq!(sent, records.flows.iter().map(|flow| flow.sent_bytes).sum::<u64>());
}
