//! Applications over the simulated network, compared with real browsers,
//! players and queueing theory.

use knee_record::{ObjectRecord, Records};
use knee_scenario::{Embedded, Source, parse};
use knee_sim::Control;
use knee_trials::scenario::link_and_path;
use std::collections::BTreeMap;

fn run(text: &str) -> Records {
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    let scenario = parse(text, &source, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    knee_sim::run(&scenario, &Control::default()).unwrap()
}

/// One link and its return direction, 20 ms of RTT.
fn network(rate: &str, seconds: u32) -> String {
    let way = link_and_path("p", rate, "10 ms", "buffer = \"4 BDP\"");
    format!("duration = \"{seconds} s\"\n{way}")
}

/// A real page of 53 objects and 2.3 MB takes 3.9 s over 5 Mbit/s, with both
/// HTTP/1.1 and HTTP/2.
#[test]
fn a_page_takes_as_long_as_in_a_browser() {
    for http in ["1.1", "multiplexed"] {
        let flow =
            format!("[[flow]]\ncc = \"cubic\"\nworkload = {{ page = {{ http = \"{http}\" }} }}\n");
        let records = run(&(network("5 Mbit/s", 30) + &flow));
        let took = records.flows[0].completion_ns.unwrap() as f64 / 1e9;
        assert_eq!(records.objects.len(), 53);
        assert!((3.7..=4.1).contains(&took), "{http}: {took:.2} s");
        let size: u64 = records.objects.iter().map(|object| object.size_bytes).sum();
        assert_eq!(records.flows[0].delivered_bytes, size);
        for object in &records.objects {
            let (first, last) = (object.first_byte_ns.unwrap(), object.completed_ns.unwrap());
            // A request and its answer cross the path once each.
            assert!(first >= object.requested_ns + 20_000_000, "{}", object.name);
            let serialised = object.size_bytes as f64 * 8e9 * 1500.0 / 1448.0 / 5e6;
            let least = object.requested_ns as f64 + 2e7 + serialised;
            assert!(last as f64 >= least, "{} beats its link", object.name);
        }
    }
}

/// dash.js 5.2 over one real link: mean bitrates in kbit/s, no stalls.
#[test]
fn video_plays_as_in_a_real_player() {
    for (rate, low, high) in [(1, 590.0, 761.0), (5, 2417.0, 2515.0), (10, 4282.0, 4456.0)] {
        for rule in ["throughput", "bola", "dynamic"] {
            let ladder =
                "\"400 kbit/s\", \"750 kbit/s\", \"1300 kbit/s\", \"2500 kbit/s\", \"4500 kbit/s\"";
            let flow = format!(
                "[[flow]]\ncc = \"cubic\"\nworkload = {{ dash = {{ ladder = [{ladder}], \
                 media = \"120 s\", rule = \"{rule}\" }} }}\n"
            );
            let records = run(&(network(&format!("{rate} Mbit/s"), 200) + &flow));
            let count = records.objects.len() as f64;
            let mean =
                records.objects.iter().map(|o| o.bitrate_bps as f64 / 1e3).sum::<f64>() / count;
            assert!((low..=high).contains(&mean), "{rate} Mbit/s, {rule}: {mean:.0} kbit/s");
            let stalled: u64 = records.objects.iter().skip(1).map(|o| o.stalled_ns).sum();
            assert_eq!(stalled, 0, "{rate} Mbit/s, {rule}");
        }
    }
}

const MIX: &str = "[[flow]]\ncc = \"cubic\"\nworkload = { mix = { arrival_interval = \"20 ms\", \
                   sizes = { median = \"30 kB\", sigma = 1.5, max = \"100 MB\" } } }\n";

/// The first answer of 100 kB, 69 segments over 20 ms, waits for the handshake
/// and begins slow start: 10, 20 and 39 segments take three more round trips.
/// Later answers find the earlier window, unless a pause longer than the
/// timeout has reduced it (RFC 5681, section 4.1): one round trip plus the time
/// on the link of 50 Mbit/s.
#[test]
fn bursts_find_the_window_that_the_last_one_left() {
    let times = |pause: &str| {
        let flow = format!(
            "[[flow]]\ncc = \"reno\"\nworkload = {{ bursts = {{ size = \"100 kB\", \
             pause = \"{pause}\", count = 5 }} }}\n"
        );
        let records = run(&(network("50 Mbit/s", 30) + &flow));
        let took = |row: &ObjectRecord| (row.completed_ns.unwrap() - row.requested_ns) as f64 / 1e6;
        assert_eq!(records.flows[0].delivered_bytes, 500_000);
        assert!(records.flows[0].completion_ns.is_some());
        let gaps = records.objects.windows(2);
        let gaps: Vec<u64> =
            gaps.map(|two| two[1].requested_ns - two[0].completed_ns.unwrap()).collect();
        (records.objects.iter().map(took).collect::<Vec<f64>>(), gaps)
    };
    let (times, gaps) = times("50 ms");
    assert_eq!(gaps, [50_000_000; 4]);
    let on_the_link = 69.0 * 1500.0 * 8.0 / 50e3;
    assert!((80.0..80.0 + on_the_link).contains(&times[0]), "{times:?}");
    for later in &times[1..] {
        assert!((20.0..20.0 + on_the_link + 8.0).contains(later), "{times:?}");
    }
}

/// Arrivals are Poisson, nothing is lost, and no transfer is faster than its link.
#[test]
fn a_mix_delivers_what_arrives() {
    let records = run(&(network("50 Mbit/s", 60) + MIX));
    let arrived = records.transfers.len() as f64;
    // Five standard deviations of a Poisson count.
    assert!((arrived - 3000.0).abs() < 5.0 * 3000f64.sqrt(), "{arrived} arrivals");
    let mut delivered = 0;
    for transfer in &records.transfers {
        delivered += transfer.delivered_bytes;
        if let Some(took) = transfer.completion_ns {
            assert_eq!(transfer.delivered_bytes, transfer.size_bytes);
            // The handshake, then half a round trip there and half back.
            let serialised = transfer.size_bytes as f64 * 8e9 / 50e6;
            assert!(took as f64 >= 4e7 + serialised, "{transfer:?}");
        }
    }
    assert_eq!(records.flows[0].delivered_bytes, delivered);
    let mut numbers: Vec<u32> = records.transfers.iter().map(|t| t.number).collect();
    numbers.sort_unstable();
    assert!(numbers.iter().enumerate().all(|(index, number)| index as u32 == *number));
}

/// Multipath under every application.
#[test]
fn every_application_runs_over_several_paths() {
    let network = format!(
        "duration = \"40 s\"\n{}absent = [{{ from = \"3 s\", until = \"8 s\" }}]\n{}",
        link_and_path("a", "10 Mbit/s", "10 ms", "buffer = \"2 BDP\""),
        link_and_path("b", "5 Mbit/s", "30 ms", "buffer = \"2 BDP\"\nloss = \"0.5 %\""),
    );
    for workload in [
        "\"page\"",
        "{ page = { http = \"multiplexed\" } }",
        "{ dash = { media = \"20 s\" } }",
        "{ mix = { arrival_interval = \"100 ms\", count = 200, sizes = \"40 kB\" } }",
        "{ file = \"10 MB\" }",
        "{ bursts = { size = \"200 kB\", pause = \"300 ms\", count = 20 } }",
        "\"bulk\"",
    ] {
        let flow = format!(
            "[[flow]]\npaths = [\"a\", \"b\"]\nscheduler = \"ecf\"\ncc = \"cubic\"\nworkload = {workload}\n"
        );
        let records = run(&format!("{network}{flow}"));
        let unfinished = records.transfers.iter().filter(|t| t.completion_ns.is_none()).count();
        assert_eq!(unfinished, 0, "{workload}");
        let whole = records.objects.iter().all(|object| object.completed_ns.is_some());
        assert!(whole && records.flows[0].delivered_bytes > 1_000_000, "{workload}");
        let both = records.paths.iter().all(|path| path.delivered_bytes > 0);
        assert!(both, "{workload}: a path was not used");
    }
}

/// A file that is stopped before its end has no completion time, on one path or
/// several; one that is stopped after its end has one.
#[test]
fn what_is_stopped_before_its_end_was_not_completed() {
    let two = link_and_path("q", "5 Mbit/s", "10 ms", "buffer = \"4 BDP\"");
    for paths in ["path = \"p\"", "paths = [\"p\", \"q\"]"] {
        for (bytes, is_whole) in [(10_000_000, false), (100_000, true)] {
            let flow = format!(
                "[[flow]]\n{paths}\ncc = \"cubic\"\nstop = \"2 s\"\nworkload = {{ file = \"{bytes} B\" }}\n"
            );
            let records = run(&(network("5 Mbit/s", 20) + &two + &flow));
            let flow = &records.flows[0];
            assert_eq!(flow.completion_ns.is_some(), is_whole, "{paths}, {bytes} bytes");
            assert_eq!(flow.delivered_bytes == bytes, is_whole, "{paths}, {bytes} bytes");
        }
    }
}

/// A connection whose only requests were made before its handshake, or whose last
/// request reaches the sender together with an ACK, answers all of them before it ends.
#[test]
fn every_request_is_answered_before_the_connection_ends() {
    let two = link_and_path("q", "5 Mbit/s", "10 ms", "buffer = \"4 BDP\"");
    let once = "{ bursts = { size = \"100 kB\", pause = \"1 s\", count = 1 } }";
    let again = "{ bursts = { size = \"1 kB\", pause = \"0 s\", count = 3 } }";
    let segment = "{ dash = { segment = \"4 s\", media = \"4 s\" } }";
    for paths in ["path = \"p\"", "paths = [\"p\", \"q\"]"] {
        for (workload, bytes) in [(once, Some(100_000)), (again, Some(3_000)), (segment, None)] {
            let flow = format!("[[flow]]\n{paths}\ncc = \"cubic\"\nworkload = {workload}\n");
            let records = run(&(network("5 Mbit/s", 20) + &two + &flow));
            let (flow, row) = (&records.flows[0], &records.connections[0]);
            assert!(flow.completion_ns.is_some(), "{paths}, {workload}: {flow:?}");
            let size = records.objects.iter().map(|object| object.size_bytes).sum();
            assert_eq!(flow.delivered_bytes, size, "{paths}, {workload}");
            assert_eq!(bytes.unwrap_or(size), size, "{paths}, {workload}");
            assert!(size > 0 && row.size_bytes == Some(size), "{paths}, {workload}");
            assert!(row.completion_ns.is_some(), "{paths}, {workload}");
        }
    }
}

/// A flow whose data is still under way after its stop, at the end of the run too, gets no more
/// than the link can carry.
#[test]
fn a_flow_that_was_stopped_ends_with_its_data() {
    let deep = network("10 Mbit/s", 10).replace("4 BDP", "8 MB");
    let flow = "[[flow]]\ncc = \"reno\"\ninitial_window = 1000\nworkload = \"bulk\"\n";
    for (seconds, stop) in [(10, "8 s"), (3, "2 s"), (10, "100 ms")] {
        let text = deep.replace("10 s\"", &format!("{seconds} s\""));
        let flow = &run(&format!("{text}{flow}stop = \"{stop}\"\n")).flows[0];
        let rate = flow.delivered_bytes as f64 * 8e9 / flow.end_ns as f64;
        assert!(rate < 10e6, "stop {stop}: {rate} bit/s until {} ns", flow.end_ns);
        // Until then the link is full.
        assert!(rate > 9e6, "stop {stop}: {rate} bit/s until {} ns", flow.end_ns);
    }
}

/// Transfers of a mix that a `stop` cuts off have no completion time, those that
/// arrived whole have one.
#[test]
fn transfers_that_are_stopped_have_no_completion_time() {
    let two = link_and_path("q", "5 Mbit/s", "10 ms", "buffer = \"4 BDP\"");
    for paths in ["path = \"p\"", "paths = [\"p\", \"q\"]"] {
        let flow = format!(
            "[[flow]]\n{paths}\ncc = \"cubic\"\nstop = \"2 s\"\nworkload = {{ mix = {{ \
             arrival_interval = \"100 ms\", sizes = \"200 kB\" }} }}\n"
        );
        let records = run(&(network("5 Mbit/s", 20) + &two + &flow));
        let mut whole = 0;
        for row in &records.connections {
            let is_whole = row.delivered_bytes >= row.size_bytes;
            assert_eq!(row.completion_ns.is_some(), is_whole, "{paths}: {row:?}");
            whole += usize::from(is_whole);
        }
        assert!(whole > 0 && whole < records.connections.len(), "{paths}: {whole}");
    }
}

/// A request that is under way when the application stops is not answered.
#[test]
fn a_request_under_way_is_not_answered_after_the_stop() {
    let two = link_and_path("q", "5 Mbit/s", "10 ms", "buffer = \"4 BDP\"");
    // The handshake takes 20 ms, and the request 10 ms more.
    for (paths, stop) in [
        ("path = \"p\"", "10 ms"),
        ("path = \"p\"", "25 ms"),
        ("paths = [\"p\", \"q\"]", "10 ms"),
        ("paths = [\"p\", \"q\"]", "25 ms"),
    ] {
        let flow = format!(
            "[[flow]]\n{paths}\ncc = \"cubic\"\nstop = \"{stop}\"\nworkload = {{ \
             bursts = {{ size = \"100 kB\", pause = \"1 ms\" }} }}\n"
        );
        let records = run(&(network("5 Mbit/s", 5) + &two + &flow));
        assert_eq!(records.flows[0].delivered_bytes, 0, "{paths}, {stop}");
        assert_eq!(records.connections[0].completion_ns, None, "{paths}, {stop}");
    }
}

/// Test and control that name the same process see the same sizes and, to
/// within a millisecond, the same arrivals; a mix of another process does not.
#[test]
fn test_and_control_of_one_process_see_the_same_transfers() {
    let flow = |name: &str, cc: &str, process: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"50 ms\", process = \"{process}\", \
             sizes = {{ median = \"10 kB\", sigma = 1.0, max = \"1 MB\" }} }} }}\n"
        )
    };
    let flows = [("test", "bbr", "p"), ("control", "cubic", "p"), ("other", "cubic", "q")];
    let flows: String = flows.map(|(name, cc, process)| flow(name, cc, process)).concat();
    let records = run(&(network("50 Mbit/s", 20) + &flows));
    let of = |flow: u32| {
        let rows = records.transfers.iter().filter(move |row| row.flow == flow);
        rows.map(|row| (row.number, (row.size_bytes, row.start_ns))).collect::<BTreeMap<_, _>>()
    };
    let (test, control, other) = (of(0), of(1), of(2));
    let both = || test.iter().filter_map(|(number, row)| Some((row, control.get(number)?)));
    assert!(both().count() > 300);
    assert!(both().all(|(a, b)| a.0 == b.0 && a.1.abs_diff(b.1) <= 1_000_000));
    let same = test.iter().filter(|(number, row)| other.get(number).map(|r| r.0) == Some(row.0));
    assert!(same.count() < 10);
}
