//! Tests valid scenarios against numbers calculated by hand.

use crate::common::{FILES, FILM, FULL, again, assert_resolves_to_itself, read, with_files};
use knee_link::{Aqm, Buffer, CircuitBreaker, Device, Loss, Normal, Pause, RateModel, Steps};
use knee_scenario::{
    Embedded, Flow, Folder, Measure, ModelKind, Outcome, Override, Program, Ready, Scenario,
    SizeRange, Source, Starts, Statistic, StudyChanges, Workload, load_study, parse, read_study,
    template,
};
use knee_transport::ReceiveWindow;
use knee_units::{Packed, Rate, Time};
use knee_workload::{Arrivals, Bursts, Dash, Http, Mix, Page, Rule, Segments, Sizes};
use std::sync::Arc;

const DUMBBELL: &str = r#"
duration = "60 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
buffer = "8 BDP"
[link.access]
delay = "10 ms"
[path.short]
forward = ["bottleneck"]
reverse_delay = "40 ms"
[path.long]
forward = ["access", "bottleneck"]
reverse_delay = "100 ms"
[[flow]]
cc = "cubic"
path = "short"
"#;

fn changed(part: &str, replacement: &str) -> Scenario {
    assert!(DUMBBELL.contains(part), "{part}");
    read(&DUMBBELL.replacen(part, replacement, 1))
}

fn buffer_of(scenario: &Scenario) -> Buffer {
    scenario.links[0].config.buffer
}

/// A window of one BDP equals a buffer of one BDP, in segments: 10 Mbit/s x (20 + 40) ms = 75 kB =
/// 50 x 1500 B.
#[test]
fn a_window_in_bdp_becomes_packets() {
    let window = |cc: &str| {
        let scenario = changed("cc = \"cubic\"", &format!("cc = {cc}"));
        assert_resolves_to_itself(&scenario);
        format!("{}", scenario.flows[0].controller.parameters["window"])
    };
    assert_eq!(window("{ name = \"fixed\", window = \"1 BDP\" }"), "\"50 packets\"");
    assert_eq!(window("{ name = \"fixed\", window = \"0.25 BDP\" }"), "\"13 packets\"");
    assert_eq!(window("{ name = \"fixed\", window = \"0.001 BDP\" }"), "\"1 packet\"");
    assert_eq!(window("{ name = \"fixed\", window = \"7 packets\" }"), "\"7 packets\"");
}

#[test]
fn one_bdp_is_rate_times_smallest_propagation() {
    // 8 x 10 Mbit/s x (20 + 40) ms = 8 x 75 kB; the other path is longer.
    assert_eq!(buffer_of(&changed("\n", "\n")), Buffer::Bytes(600_000));
    // With the other path as the shorter one: 10 Mbit/s x (10 + 20 + 100) ms.
    let long = changed("reverse_delay = \"40 ms\"", "reverse_delay = \"200 ms\"");
    assert_eq!(buffer_of(&long), Buffer::Bytes(8 * 162_500));
    // The default is one BDP.
    assert_eq!(buffer_of(&changed("buffer = \"8 BDP\"\n", "")), Buffer::Bytes(75_000));
    // The rate of a trace is its mean: 4500 B in 9 ms = 500 B/ms, times 60 ms.
    let trace = changed("\"10 Mbit/s\"", "{ trace = \"lte.down\" }");
    assert_eq!(buffer_of(&trace), Buffer::Bytes(8 * 30_000));
    // The rate of steps is the first one.
    let steps = "[{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"1 s\", rate = \"9 Mbit/s\" }]";
    assert_eq!(buffer_of(&changed("\"10 Mbit/s\"", steps)), Buffer::Bytes(60_000));
    assert_eq!(buffer_of(&changed("8 BDP", "200 packets")), Buffer::Packets(200));
    assert_eq!(buffer_of(&changed("8 BDP", "unlimited")), Buffer::Unlimited);
}

#[test]
fn base_rtt_and_path_rate_over_empty_queues() {
    let scenario = read(DUMBBELL);
    // A segment of 1500 B takes 1.2 ms at 10 Mbit/s.
    assert_eq!(scenario.base_rtt(0), Time::from_micros(61_200));
    assert_eq!(scenario.base_rtt(1), Time::from_micros(131_200));
    assert_eq!(scenario.path_rate(1), Some(Rate::from_bits_per_second(10_000_000)));
    // ACKs of 52 B over a link of 1 Mbit/s take 0.416 ms.
    let back = changed("delay = \"10 ms\"", "rate = \"1 Mbit/s\"\ndelay = \"10 ms\"")
        .resolved
        .replacen("reverse_delay = \"40 ms\"", "reverse = [\"access\"]", 1);
    assert_eq!(read(&back).base_rtt(0), Time::from_micros(20_000 + 1_200 + 10_000 + 416));
    // Half the segment, half the time.
    let small = changed("cc = ", "mss = \"698 B\"\ncc = ");
    assert_eq!(small.flow_base_rtt(0), Time::from_micros(60_600));
    let pure =
        changed("rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"8 BDP\"", "delay = \"20 ms\"");
    assert_eq!((pure.base_rtt(0), pure.path_rate(0)), (Time::from_millis(60), None));
}

#[test]
fn groups_start_one_after_the_other() {
    let scenario = changed("cc = ", "count = 3\nstart = \"1 s\"\nstart_interval = \"2 s\"\ncc = ");
    let starts: Vec<u64> = scenario.flows.iter().map(|flow| flow.start.as_micros()).collect();
    assert_eq!(starts, [1_000_000, 3_000_000, 5_000_000]);
    assert_eq!(scenario.flows.iter().map(|flow| flow.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(scenario.flows.iter().all(|flow| flow.name == "cubic"));
}

#[test]
fn start_jitter_is_uniform_and_comes_from_the_seed() {
    let starts = |seed: u64| -> Vec<f64> {
        let keys = format!("seed = {seed}\nstart_jitter = \"10 ms\"\nduration");
        let text =
            DUMBBELL.replacen("duration", &keys, 1).replacen("cc =", "count = 4000\ncc =", 1);
        read(&text).flows.iter().map(|flow| flow.start.as_millis_f64()).collect()
    };
    let first = starts(1);
    assert_eq!(first, starts(1));
    assert_ne!(first, starts(2));
    assert!(first.iter().all(|start| (0.0..=10.0).contains(start)));
    // The mean of 4000 uniform numbers in 0..10 is 5 with a standard deviation of 10 / sqrt(12 *
    // 4000) = 0.046; a deviation of four of them is rare.
    let mean = first.iter().sum::<f64>() / 4000.0;
    assert!((mean - 5.0).abs() < 0.19, "{mean}");
    let below = first.iter().filter(|start| **start < 1.0).count();
    assert!((324..=476).contains(&below), "{below} of 4000 in the first tenth");
}

#[test]
fn claims_have_bounds_in_si_units() {
    let claims = read(FULL).claims;
    assert_eq!(claims[0].measure, Measure::QueueingDelay(Statistic::P95));
    assert_eq!((claims[0].at_least, claims[0].at_most), (Some(0.001), Some(0.02)));
    assert_eq!(claims[0].recorded, Outcome::Fails);
    assert_eq!((claims[1].at_least, claims[1].at_most), (Some(0.5), Some(2.0)));
    let hold = Time::from_secs(2);
    assert_eq!(claims[1].measure, Measure::ConvergenceTime { band: 0.25, hold });
    let (least, most) = (claims[2].at_least.unwrap(), claims[2].at_most.unwrap());
    assert!((least - 0.54).abs() < 1e-12 && (most - 0.66).abs() < 1e-12, "{least} {most}");
    assert_eq!(claims[3].measure, Measure::PathShare("one".to_string()));
    assert_eq!(claims[4].measure, Measure::VideoQualityShare(1));
    let sizes = SizeRange { at_least: 10_000, below: Some(3_000_000) };
    assert_eq!(claims[5].measure, Measure::FlowCompletion(Statistic::P95, sizes));
    assert!(sizes.contains(10_000) && !sizes.contains(9_999) && !sizes.contains(3_000_000));
    assert!(SizeRange::default().contains(0) && SizeRange::default().contains(u64::MAX));
    assert_eq!(claims[6].at_most, Some(256_000.0));
    let (phase, next) = ("startup".to_string(), "drain".to_string());
    assert_eq!(claims[7].measure, Measure::PhaseFollowedBy { phase, next });
    assert_eq!(claims[8].at_least, Some(0.98));
}

#[test]
fn every_key_arrives() {
    let scenario = read(FULL);
    let [steps, trace, other, mark, air, dual, host, port, drive, sky] = &scenario.links[..] else {
        panic!("ten links")
    };
    assert!(matches!(&steps.config.rate, RateModel::Steps(steps) if steps.0.len() == 2));
    assert_eq!(steps.config.delay.base.0[1], (Time::from_millis(1500), Time::from_millis(20)));
    let jitter = steps.config.delay.jitter.as_ref().unwrap();
    let amounts = [(0, 5), (4, 0)].map(|(at, ms)| (Time::from_secs(at), Time::from_millis(ms)));
    assert!(jitter.reorder && jitter.amount.0 == amounts && jitter.normal.is_none());
    let jitter = dual.config.delay.jitter.as_ref().unwrap();
    let normal = Normal { mean: Time::from_millis(3), deviation: Time::from_micros(500) };
    assert_eq!((jitter.normal, jitter.least, jitter.share), (Some(normal), Time::ZERO, 1.0));
    assert_eq!(jitter.amount.0, [(Time::ZERO, Time::from_millis(5))]);
    assert!(matches!(steps.config.aqm, Aqm::Red(red) if red.ecn && red.weight == 0.01));
    let down = [(10, 11), (20, 21)].map(|(a, b)| (Time::from_secs(a), Time::from_secs(b)));
    assert_eq!(steps.config.down, down);
    let hold = [(22, 23), (30, 31)].map(|(a, b)| (Time::from_secs(a), Time::from_secs(b)));
    assert_eq!(steps.config.hold, hold);
    assert_eq!(trace.config.device, Some(Device::Bytes(30_000)));
    let breaker = |interval, loss, intervals, reset: Option<u64>| CircuitBreaker {
        interval: Time::from_secs(interval),
        loss,
        intervals,
        reset_after: reset.map(Time::from_secs),
    };
    assert_eq!(steps.config.circuit_breaker, Some(breaker(2, 0.05, 4, Some(10))));
    assert_eq!(mark.config.circuit_breaker, Some(breaker(5, 0.1, 3, None)));
    assert_eq!(trace.config.circuit_breaker, None);
    assert!(steps.config.ecn_bleached && !trace.config.ecn_bleached);
    let losses = [(0, Loss::Independent(0.0)), (3, Loss::Periodic(9))];
    let losses = losses.map(|(at, loss)| (Time::from_secs(at), loss)).to_vec();
    assert_eq!(air.config.loss, Loss::Steps(Steps(losses)));
    assert_eq!(steps.config.policer.map(|policer| policer.burst), Some(64_000));
    assert!(matches!(steps.config.loss, Loss::GilbertElliott { loss_bad: 0.8, .. }));
    assert!(matches!(trace.config.aqm, Aqm::FqCodel(fq) if fq.flows == 16 && fq.quantum == 300));
    assert_eq!(trace.config.loss, Loss::Recorded([false, false, true, false].into()));
    assert!(matches!(other.config.aqm, Aqm::Pie(pie) if pie.burst == Time::from_millis(100)));
    assert_eq!(other.config.loss, Loss::Periodic(1000));
    assert!(matches!(mark.config.aqm, Aqm::Threshold(_)));
    assert_eq!(mark.config.loss, Loss::Independent(0.0025));
    assert_eq!(host.config.loss, Loss::SuperPackets(0.001));
    assert_eq!((&air.config.rate, air.config.buffer), (&RateModel::Unlimited, Buffer::Unlimited));
    let Aqm::DualPi2(pair) = &dual.config.aqm else { panic!("DualPI2") };
    assert_eq!((pair.step, pair.classic_share), (Time::from_millis(1), 0.1));
    assert_eq!(port.config.pause, Some(Pause { at: 750, until: 500 }));
    assert_eq!((host.config.pausable, port.config.pausable), (true, false));
    every_key_of_tables_arrives(drive, sky);

    let many = &scenario.flows[2];
    assert_eq!(many.workload, Workload::File(1_500_000));
    assert!(many.start >= Time::from_secs(5) && many.start <= Time::from_millis(5500));
    assert_eq!((many.transport.mss, many.transport.header), (500, 40));
    assert_eq!(many.transport.receive_window, ReceiveWindow::Unlimited);
    let reno = &scenario.flows[3];
    assert_eq!(
        (reno.transport.mss, reno.transport.receive_window),
        (1000, ReceiveWindow::Fixed(1 << 20))
    );
    assert_eq!(reno.paths, [0]);
    assert_eq!(reno.multipath, None);
}

/// Rows of 8, 4 and 6 Mbit/s at 0, 1 and 3 s: the second row is 2 s before the third, the usual
/// interval is 1 s.
fn every_key_of_tables_arrives(drive: &knee_scenario::Link, sky: &knee_scenario::Link) {
    let seconds = Time::from_secs;
    let mbit = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
    let rates = [(0, mbit(2)), (1, Rate::ZERO), (2, mbit(3)), (3, Rate::ZERO)];
    let rates = rates.map(|(at, rate)| (seconds(at), rate)).to_vec();
    assert_eq!(drive.config.rate, RateModel::Steps(Steps(rates)));
    // (8 + 4 + 6) / 2 Mbit in 4 s.
    assert_eq!(drive.nominal_rate, Some(Rate::from_bits_per_second(2_250_000)));
    let delays = [(0, 20), (1, 30), (3, 25), (4, 20), (5, 30), (7, 25), (8, 20)];
    let delays = delays.map(|(at, ms)| (seconds(at), Time::from_millis(ms)));
    assert_eq!(drive.config.delay.base.0[..7], delays);
    assert!(drive.config.delay.reorder && drive.config.delay.jitter.is_none());
    let Loss::Steps(losses) = &drive.config.loss else { panic!("a loss in steps") };
    let expected = [(0, Loss::None), (1, Loss::Independent(0.02)), (3, Loss::Independent(0.01))];
    assert_eq!(losses.0[..3], expected.map(|(at, loss)| (seconds(at), loss)));
    // 1 BDP: 2.25 Mbit/s over the smallest delay, 20 ms, and 1 ms back: below ten segments of 1040 B.
    assert_eq!(drive.config.buffer, Buffer::Bytes(10 * 1040));
    // The path is like that of a satellite; its rate is written.
    assert_eq!((sky.name.as_str(), &sky.config.rate), ("sky", &RateModel::Constant(mbit(20))));
    assert_eq!(sky.config.delay.base.0[1], (seconds(15), Time::from_micros(27_500)));
    assert!(!sky.config.delay.reorder);
}

fn packed<const N: usize>(values: [u64; N]) -> Arc<Packed> {
    Arc::new(values.into_iter().collect())
}

#[test]
fn every_key_of_paths_and_workloads_arrives() {
    let scenario = read(FULL);
    let seconds = Time::from_secs;
    let absent = [(seconds(2), seconds(5)), (seconds(30), Time::MAX)];
    assert_eq!(scenario.paths[1].absent, absent);
    assert!(scenario.paths[0].absent.is_empty());
    assert_eq!(scenario.paths[1].tunnel.as_deref(), Some("home"));
    assert_eq!(scenario.paths[0].tunnel, None);

    let [both, reading, watching, asking, small, heavy, logged, replayed, answering, stack] =
        &scenario.flows[4..]
    else {
        panic!("ten flows after the first four")
    };
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
    let program = Program {
        server: words(&["qs", "--listen", "{here}:{port}", "--cc={cc}"]),
        client: words(&["qc", "https://{peer}:{port}/{bytes}"]),
        bytes: Some(20_000_000),
        ready: Ready::Line("ready".to_string()),
        timeout: seconds(9),
    };
    assert_eq!((&stack.program, &stack.workload), (&Some(program), &Workload::File(20_000_000)));
    assert_eq!(answering.program, None);
    // Without one a program is never late before the run ends, whenever it starts.
    let later = FULL.replace("name = \"stack\"\n", "name = \"stack\"\nstart = \"2 s\"\n");
    let later = read(&later.replace("timeout = \"9 s\"\n", ""));
    let stack = later.flows.last().unwrap();
    assert_eq!(stack.program.as_ref().unwrap().timeout, later.duration);
    // The program knows what Knee does not.
    let stack_cc = "name = \"stack\"\npath = \"one\"\ncc = ";
    let labelled = FULL.replace(&format!("{stack_cc}\"cubic\""), &format!("{stack_cc}\"newreno\""));
    assert_eq!(read(&labelled).flows.last().unwrap().controller.name, "newreno");
    assert_eq!(both.paths, [1, 0]);
    let multipath = both.multipath.as_ref().unwrap();
    assert_eq!(multipath.scheduler.name, "ecf");
    assert_eq!(multipath.scheduler.parameters["beta"], knee_cc::Value::Number(0.5));
    assert!(!multipath.reinjection);
    assert_eq!(multipath.backup, [1]);

    assert_eq!(reading.multipath.as_ref().unwrap().scheduler.name, "minrtt");
    assert!(reading.multipath.as_ref().unwrap().reinjection);
    let Workload::Page(page) = &reading.workload else { panic!("a page") };
    assert_eq!(page.origins, [Http::Version1 { connections: 2 }]);
    assert_eq!(page.objects[2].after, [0, 1]);
    let dash = Dash {
        ladder_bps: vec![400_000, 1_300_000],
        segment: seconds(2),
        // What is written goes before what the manifest says.
        segments: None,
        media: seconds(30),
        buffer: seconds(12),
        rule: Rule::Bola,
    };
    assert_eq!(watching.workload, Workload::Dash(dash));
    let pause = Time::from_millis(300);
    let bursts = Bursts { size_bytes: 20_000, pause, count: Some(12) };
    assert_eq!(asking.workload, Workload::Bursts(bursts));
    let sizes = Sizes::LogNormal { median: 30_000, sigma: 2.0, max: 1_000_000_000 };
    let mix = Mix {
        arrivals: Arrivals::Poisson { per_second: 20.0 },
        count: Some(9),
        sizes,
        process: Some("clients".to_string()),
    };
    assert_eq!(small.workload, Workload::Mix(mix));
    let sizes = Sizes::Pareto { min: 4000, shape: 1.2, max: 1_000_000_000 };
    let mix =
        Mix { arrivals: Arrivals::Poisson { per_second: 1.0 }, count: None, sizes, process: None };
    assert_eq!(heavy.workload, Workload::Mix(mix.clone()));
    assert_eq!((answering.after, heavy.after), (Some(9), None));
    let waits = Arrivals::After(Arc::new(mix));
    let mix = Mix { arrivals: waits, count: None, sizes: Sizes::Fixed(30_000), process: None };
    assert_eq!(answering.workload, Workload::Mix(mix));
    let mix = Mix {
        arrivals: Arrivals::Poisson { per_second: 1.0 },
        count: None,
        sizes: Sizes::Empirical(packed([700, 90])),
        process: None,
    };
    assert_eq!(logged.workload, Workload::Mix(mix));
    let mix = Mix {
        arrivals: Arrivals::Recorded(Arc::new([(Time::ZERO, 90)].into_iter().collect())),
        count: None,
        sizes: Sizes::Empirical(packed([90])),
        process: None,
    };
    assert_eq!(replayed.workload, Workload::Mix(mix));
}

/// Wi-Fi with a delay of 5 ms each way, LTE with 30 ms, and a slow backup.
const TWO_LINKS: &str = r#"
duration = "10 s"
[link.wifi]
delay = "5 ms"
[link.lte]
delay = "30 ms"
[path.wifi]
forward = ["wifi"]
reverse_delay = "5 ms"
[path.lte]
forward = ["lte"]
reverse_delay = "30 ms"
[[flow]]
name = "plain"
cc = "cubic"
path = "lte"
[[flow]]
name = "both"
cc = "cubic"
paths = ["lte", "wifi"]
"#;

#[test]
fn segments_over_several_paths_have_room_for_the_option() {
    let sizes = |text: &str| {
        let scenario = read(text);
        assert_resolves_to_itself(&scenario);
        let size = |flow: &Flow| (flow.transport.mss, flow.transport.header);
        [size(&scenario.flows[0]), size(&scenario.flows[1])]
    };
    // 1500 bytes in total, 20 of them the data sequence signal.
    assert_eq!(sizes(TWO_LINKS), [(1448, 52), (1428, 72)]);
    let all = TWO_LINKS.replace("[link.wifi]", "[transport]\nmss = \"1000 B\"\n[link.wifi]");
    assert_eq!(sizes(&all), [(1000, 52), (1000, 72)]);
    let own = format!("{TWO_LINKS}mss = \"1400 B\"\nheader = \"60 B\"");
    assert_eq!(sizes(&own), [(1448, 52), (1400, 60)]);
}

#[test]
fn receive_windows_of_several_paths_tune_themselves() {
    let windows = |text: &str| {
        let flows = read(text).flows;
        [flows[0].transport.receive_window, flows[1].transport.receive_window]
    };
    // 6 MiB: third value of Linux's net.ipv4.tcp_rmem.
    let auto = ReceiveWindow::Auto { max: 6_291_456 };
    assert_eq!(windows(TWO_LINKS), [ReceiveWindow::Unlimited, auto]);
    let own = format!("{TWO_LINKS}receive_window = \"64 KiB\"");
    assert_eq!(windows(&own), [ReceiveWindow::Unlimited, ReceiveWindow::Fixed(65_536)]);
    let all =
        TWO_LINKS.replace("[link.wifi]", "[transport]\nreceive_window = \"1 MiB\"\n[link.wifi]");
    assert_eq!(windows(&all), [ReceiveWindow::Fixed(1 << 20); 2]);
}

/// A receiver that conceals losses has 6 MiB, whatever the transport's window; an honest one in the
/// same scenario has the transport's. Reading the resolved scenario gives the same.
#[test]
fn only_who_conceals_losses_has_a_window_of_its_own() {
    let all = "[transport]\nreceiver = { conceal_loss = true }\n[link.wifi]";
    let text = TWO_LINKS.replace("[link.wifi]", all);
    let text = text.replace("paths = [\"lte\", \"wifi\"]", "path = \"wifi\"\nreceiver = {}");
    let scenario = read(&text);
    let windows = scenario.flows.iter().map(|flow| flow.transport.receive_window);
    let expected = [ReceiveWindow::Fixed(6_291_456), ReceiveWindow::Unlimited];
    assert_eq!(windows.collect::<Vec<_>>(), expected);
    assert_resolves_to_itself(&scenario);
}

#[test]
fn a_flow_over_several_paths_is_as_near_as_its_nearest() {
    let scenario = read(TWO_LINKS);
    let ms = Time::from_millis;
    assert_eq!([scenario.base_rtt(0), scenario.base_rtt(1)], [ms(10), ms(60)]);
    assert_eq!([scenario.flow_base_rtt(0), scenario.flow_base_rtt(1)], [ms(60), ms(10)]);
}

#[test]
fn workloads_have_defaults() {
    let workload = |value: &str| {
        let scenario = read(&format!("{TWO_LINKS}workload = {value}"));
        assert_resolves_to_itself(&scenario);
        scenario.flows[1].workload.clone()
    };
    let Workload::Page(page) = workload("\"page\"") else { panic!("a page") };
    // The page described in the specification of workloads.
    assert_eq!(page.objects.len(), 53);
    assert_eq!(page.origins, [Http::Version1 { connections: 6 }]);
    let Workload::Dash(dash) = workload("\"dash\"") else { panic!("a video") };
    assert_eq!(dash.segment, Time::from_secs(4));
    assert_eq!(dash.ladder_bps.last(), Some(&4_500_000));
    assert_eq!(workload("{ page = { http = \"multiplexed\" } }"), {
        Workload::Page(Page { origins: vec![Http::Multiplexed], ..page })
    });
    let same = workload("{ mix = { arrival_interval = \"1 ms\", sizes = \"1 MB\" } }");
    let sizes = Sizes::Fixed(1_000_000);
    assert_eq!(
        same,
        Workload::Mix(Mix {
            arrivals: Arrivals::Poisson { per_second: 1000.0 },
            count: None,
            sizes,
            process: None
        })
    );
}

/// A page as a browser recorded it has the protocol of each origin; http, connections and an override
/// go before that.
#[test]
fn a_page_that_a_browser_recorded_has_its_origins() {
    let entry = |host: &str, version: &str| {
        format!(
            "{{\"startedDateTime\":\"2026-03-12T10:00:01Z\",\"time\":9,\"request\":{{\"url\":\"https://{host}/\"}},\
             \"response\":{{\"httpVersion\":\"{version}\",\"bodySize\":700}}}}"
        )
    };
    let entries =
        [entry("a", "h2"), entry("b", "HTTP/1.1"), entry("c", "unknown"), entry("d", "h3")];
    let har = format!("{{\"log\":{{\"entries\":[{}]}}}}", entries.join(","));
    let files: &[(&str, &[u8])] = &[("p.har", har.as_bytes())];
    let page = |settings: &str| {
        let text =
            format!("{TWO_LINKS}workload = {{ page = {{ objects = \"p.har\"{settings} }} }}");
        let scenario = with_files(&text, files, &[]).unwrap();
        assert_resolves_to_itself(&scenario);
        let read_as = scenario.files[0].read_as.clone();
        match scenario.flows[1].workload.clone() {
            Workload::Page(page) => (page, read_as),
            other => panic!("{other:?}"),
        }
    };
    let browsers = |connections| Http::Version1 { connections };
    let (recorded, read_as) = page("");
    assert_eq!(
        read_as,
        "HAR, 4 objects of 4 origins (1 HTTP/1.1, 1 HTTP/2, 1 HTTP/3, 1 an unknown protocol), 2.8 kB"
    );
    let own = [Http::Multiplexed, browsers(6), browsers(6), Http::Multiplexed];
    assert_eq!((recorded.origins, recorded.objects[2].origin), (own.to_vec(), 2));
    let own = [Http::Multiplexed, browsers(3), browsers(3), Http::Multiplexed];
    assert_eq!(page(", connections = 3").0.origins, own);
    assert_eq!(page(", http = \"1.1\"").0.origins, [browsers(6); 4]);
    assert_eq!(page(", http = \"multiplexed\"").0.origins, [Http::Multiplexed; 4]);
}

/// What a manifest says of a video, and what goes before it.
#[test]
fn a_manifest_has_ladder_segments_and_media() {
    let part = |bytes: u32| format!("#EXT-X-BYTERANGE:{bytes}\n#EXTINF:3,\na.mp4\n");
    let playlist = |bytes| format!("#EXTM3U\n{}{}#EXT-X-ENDLIST\n", part(bytes), part(2 * bytes));
    let (low, high) = (playlist(150_000), playlist(300_000));
    let variants = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=600000\nlow.m3u8\n\
                    #EXT-X-STREAM-INF:BANDWIDTH=1200000\nhigh.m3u8\n";
    let files: &[(&str, &[u8])] = &[
        ("film.mpd", FILM),
        ("master.m3u8", variants.as_bytes()),
        ("low.m3u8", low.as_bytes()),
        ("high.m3u8", high.as_bytes()),
    ];
    let video = |settings: &str| {
        let text = format!("{TWO_LINKS}workload = {{ dash = {{ {settings} }} }}");
        let scenario = with_files(&text, files, &[]).unwrap();
        assert_resolves_to_itself(&scenario);
        match scenario.flows[1].workload.clone() {
            Workload::Dash(dash) => dash,
            other => panic!("{other:?}"),
        }
    };
    let seconds = Time::from_secs;
    let segments = |lengths: &[u64], bytes: &[&[u64]]| {
        let lengths = lengths.iter().map(|length| seconds(*length)).collect();
        Some(Arc::new(Segments { lengths, bytes: bytes.iter().map(|one| one.to_vec()).collect() }))
    };
    let film = video("manifest = \"film.mpd\"");
    let expected = Dash {
        ladder_bps: vec![700_000, 1_500_000, 3_000_000],
        segment: seconds(4),
        segments: segments(&[4, 4, 2], &[]),
        media: seconds(10),
        buffer: seconds(18),
        rule: Rule::Dynamic,
    };
    assert_eq!(film, expected);
    let shorter = video("manifest = \"film.mpd\", segment = \"2 s\", media = \"9 s\"");
    let own = Dash { segment: seconds(2), segments: None, media: seconds(9), ..expected.clone() };
    assert_eq!(shorter, own);
    let ladder = video("manifest = \"film.mpd\", ladder = [\"1 Mbit/s\"]");
    assert_eq!(ladder, Dash { ladder_bps: vec![1_000_000], ..expected });
    let alone = video("manifest = \"master.m3u8\"");
    assert_eq!((alone.ladder_bps, alone.segment), (vec![600_000, 1_200_000], seconds(4)));
    assert_eq!((alone.segments, alone.media), (None, seconds(120)));
    let whole = video("manifest = [\"master.m3u8\", \"high.m3u8\", \"low.m3u8\"]");
    let sizes: [&[u64]; 2] = [&[150_000, 300_000], &[300_000, 600_000]];
    assert_eq!((whole.segments, whole.media), (segments(&[3, 3], &sizes), seconds(6)));
    let other =
        video("manifest = [\"master.m3u8\", \"high.m3u8\", \"low.m3u8\"], ladder = \"study\"");
    assert_eq!(other.segments, segments(&[3, 3], &[]), "sizes are those of the manifest's ladder");
}

#[test]
fn overrides_reach_into_what_is_named_by_a_word() {
    let text = format!("{TWO_LINKS}scheduler = \"ecf\"\nworkload = \"dash\"");
    let set = |text: &str| text.parse::<Override>().unwrap();
    let overrides = [set("flow.both.scheduler.beta=0.1"), set("flow.both.workload.dash.rule=bola")];
    let scenario = with_files(&text, FILES, &overrides).unwrap();
    let flow = &scenario.flows[1];
    let scheduler = &flow.multipath.as_ref().unwrap().scheduler;
    assert_eq!(
        (&*scheduler.name, &scheduler.parameters["beta"]),
        ("ecf", &knee_cc::Value::Number(0.1))
    );
    assert!(matches!(&flow.workload, Workload::Dash(dash) if dash.rule == Rule::Bola));
}

#[test]
fn resolved_scenarios_read_back() {
    let scenario = read(FULL);
    // Two files with the same name get different names.
    let names: Vec<&str> = scenario.files.iter().map(|file| file.name.as_str()).collect();
    let expected = [
        "drive.csv",
        "leo-handover.csv",
        "page.csv",
        "film.mpd",
        "access.csv",
        "lte.down",
        "lost.txt",
        "2-lte.down",
    ];
    assert_eq!(names, expected.map(|name| format!("inputs/{name}")));
    assert_resolves_to_itself(&scenario);
    assert_eq!(again(&scenario).resolved, scenario.resolved);
    assert_resolves_to_itself(&read(template()));
}

#[test]
fn overrides_are_read_like_the_file() {
    let set = |text: &str| text.parse::<Override>().unwrap();
    let overrides = [
        set("seed=3"),
        set("duration=30 s"),
        set("link.bottleneck.rate=20 Mbit/s"),
        set("flow.cubic.cc=bbr"),
        set("flow.cubic.count = 2"),
        Override::new("flow.cubic.ack_every", "1"),
        set("transport.quick_acks=0"),
        set("path.short.reverse_delay=\"60 ms\""),
    ];
    // The second override of cc finds the flow by the new name of its controller.
    let overrides = [&overrides[..3], &overrides[4..], &overrides[3..4]].concat();
    let overrides = [overrides, vec![set("flow.bbr.cc.drain_to_target=true")]].concat();
    let scenario = with_files(DUMBBELL, FILES, &overrides).unwrap();
    assert_eq!((scenario.seed, scenario.duration), (3, Time::from_secs(30)));
    // 8 x 20 Mbit/s x 80 ms.
    assert_eq!(buffer_of(&scenario), Buffer::Bytes(1_600_000));
    assert_eq!(scenario.flows.len(), 2);
    let flow = &scenario.flows[0];
    assert_eq!((flow.transport.ack_every, flow.transport.quick_acks), (1, 0));
    let expected =
        knee_cc::Selection::named("bbr").with("drain_to_target", knee_cc::Value::Switch(true));
    assert_eq!(flow.controller, expected);
    for wrong in ["seed", "=3", " = 3", ""] {
        assert!(wrong.parse::<Override>().is_err(), "{wrong}");
    }
}

const STUDY: &str = r#"
name = "Two controllers"
source = "a paper of 2022"
summary = "Which one is better?"

[[run]]
name = "plain"
file = "scenarios/base.toml"

[[run]]
name = "fast"
file = "scenarios/base.toml"
seed = 9
on = ["sim", "kernel"]

[run.set]
link.bottleneck.rate = { trace = "../lte.down" }
"flow.cubic.cc" = { name = "bbr", drain_to_target = true }

[[model]]
name = "pair"
model = "alternate-probing"
gain = 1.25
start = [0.9, 0.1]
rounds = 40

[[claim]]
says = "the fast one is faster"
measure = "goodput"
of = "fast/bbr"
relative_to = "plain/*"
at_least = 1.5

[[claim]]
says = "the smaller share is 4/9"
measure = "model.share_low"
of = "pair"
equals = 0.4444
within = 0.0005
"#;

fn assert_is_the_study(study: &knee_scenario::Study) {
    assert_eq!(study.name, "Two controllers");
    let [plain, fast] = &study.runs[..] else { panic!("two runs") };
    assert_eq!((plain.scenario.seed, fast.scenario.seed), (1, 9));
    assert_eq!(plain.grounds, ["sim"]);
    assert_eq!(fast.grounds, ["sim", "kernel"]);
    assert_eq!(fast.scenario.flows[0].controller.name, "bbr");
    assert!(matches!(fast.scenario.links[0].config.rate, RateModel::Trace(_)));
    assert_resolves_to_itself(&fast.scenario);
    let starts = Starts::At(vec![0.9, 0.1]);
    let kind = ModelKind::AlternateProbing { gain: 1.25, starts, rounds: 40 };
    assert_eq!(study.models[0].kind, kind);
    assert_eq!(study.claims[0].relative_to.as_deref(), Some("plain/*"));
    assert_eq!(study.claims[1].measure, Measure::Model("share_low".to_string()));
}

#[test]
fn a_study_reads_from_a_program_and_from_a_folder() {
    let trace: &[u8] = FILES[0].1;
    let files: &[(&str, &[u8])] = &[
        ("duel/study.toml", STUDY.as_bytes()),
        ("duel/scenarios/base.toml", DUMBBELL.as_bytes()),
        ("duel/scenarios/../lte.down", trace),
    ];
    let embedded = load_study(
        &knee_scenario::Embedded(files),
        "duel/study.toml",
        &[],
        &StudyChanges::default(),
    )
    .unwrap();
    assert_is_the_study(&embedded);

    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("duel");
    std::fs::create_dir_all(folder.join("scenarios")).unwrap();
    std::fs::write(folder.join("study.toml"), STUDY).unwrap();
    std::fs::write(folder.join("scenarios/base.toml"), DUMBBELL).unwrap();
    std::fs::write(folder.join("lte.down"), trace).unwrap();
    assert_is_the_study(&read_study(&folder).unwrap());

    let base = folder.join("scenarios/base.toml");
    let scenario = knee_scenario::read(&base, &[]).unwrap();
    assert_eq!(scenario.name, "base");
    let missing = knee_scenario::read(&folder.join("no.toml"), &[]).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "no.toml: cannot read it: there is no such file\n  write the name of a file that exists"
    );
    assert!(knee_scenario::Loader::load(&Folder(folder.clone()), "scenarios").is_err());
}

/// Three seeds are the run's own and the two after it; more than a hundred are refused.
#[test]
fn a_run_of_a_study_has_several_seeds() {
    let shifted = |seeds: &str, shift: u64| {
        let run = "[[run]]\nname = \"a\"\nfile = \"base.toml\"\nseed = 7\n";
        let text = format!("name = \"n\"\nsource = \"s\"\n{run}{seeds}");
        let files: &'static [(&'static str, &'static [u8])] = Box::leak(Box::new([
            ("s/study.toml", Box::leak(text.into_boxed_str()).as_bytes()),
            ("s/base.toml", DUMBBELL.as_bytes()),
        ]));
        load_study(
            &knee_scenario::Embedded(files),
            "s/study.toml",
            &[],
            &StudyChanges { seed_shift: shift, set: &[] },
        )
    };
    let study = |seeds: &str| shifted(seeds, 0);
    let seeds = |text: &str| {
        let run = study(text).unwrap().runs.remove(0);
        let further: Vec<u64> = run.further_seeds.iter().map(|one| one.seed).collect();
        (run.scenario.seed, further)
    };
    assert_eq!(seeds(""), (7, vec![]));
    assert_eq!(seeds("seeds = 3"), (7, vec![8, 9]));
    let moved = shifted("seeds = 2", 100).unwrap().runs.remove(0);
    assert_eq!((moved.scenario.seed, moved.further_seeds[0].seed), (107, 108));
    assert!(moved.scenario.resolved.contains("seed = 107"), "{}", moved.scenario.resolved);
    for wrong in ["seeds = 0", "seeds = 1001"] {
        let errors = study(wrong).unwrap_err();
        assert_eq!(errors.problems.len(), 1, "{errors}");
        assert!(errors.to_string().contains("the number of seeds must be at"), "{errors}");
    }
}

/// Every ready-made path runs as it is, and says whose measurement it stands for; its RTT is the one
/// that it states, if it states one.
#[test]
fn ready_made_paths_are_scenarios() {
    let all = knee_scenario::ready_paths();
    assert_eq!(all.len(), 12);
    for path in all {
        let text = format!(
            "duration = \"130 s\"\n[path.main]\nlike = \"{}\"\n[[flow]]\ncc = \"cubic\"\n",
            path.name
        );
        let scenario = read(&text);
        assert_resolves_to_itself(&scenario);
        assert!(
            ![&path.says, &path.source, &path.measured, &path.assumed].iter().any(|s| s.is_empty())
        );
        let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["main", "main-back"], "{}", path.name);
        let delay = scenario.one_way_delay(0) + scenario.way_back(0);
        let stated = path.measured.split("RTT ").nth(1).filter(|_| path.name != "data-centre");
        if let Some(stated) = stated.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok()) {
            // Of a range, or of what is only part of the way, the RTT is at least that.
            let rtt_ms = delay.as_millis_f64();
            assert!((stated..=1.5 * stated).contains(&rtt_ms), "{}: {rtt_ms} ms", path.name);
        }
        for (table, span) in [("train", 20), ("leo-handover", 120)] {
            let Some(file) = scenario.files.iter().find(|file| file.name.contains(table)) else {
                continue;
            };
            let over = format!("rows over {span} s");
            assert!(file.read_as.contains(&over), "{}: {}", path.name, file.read_as);
        }
    }
    let over = |set: &str| {
        let text = "duration = \"9 s\"\n[path.main]\nlike = \"geo\"\n[[flow]]\ncc = \"cubic\"\n";
        let set = [set.parse::<Override>().unwrap()];
        let source = Source { name: "a.toml", loader: &Embedded(&[]) };
        parse(text, &source, &set).unwrap().one_way_delay(0)
    };
    assert_eq!(over("path.main.like=lte"), Time::from_millis(35));
    assert_eq!(over("link.main.delay=7 ms"), Time::from_millis(7));
}

/// The offset of a trace is given, drawn from seed and name, or absent; the resolved scenario keeps
/// `random` as written.
#[test]
fn a_trace_begins_at_its_offset() {
    let offset = |text: &str| {
        let scenario = read(text);
        assert_resolves_to_itself(&scenario);
        match &scenario.links[0].config.rate {
            RateModel::Trace(trace) => trace.offset,
            other => panic!("{other:?} is no trace"),
        }
    };
    let with = |offset: &str| {
        DUMBBELL.replace("\"10 Mbit/s\"", &format!("{{ trace = \"lte.down\"{offset} }}"))
    };
    assert_eq!(offset(&with("")), Time::ZERO);
    assert_eq!(offset(&with(", offset = \"8.5 ms\"")), Time::from_micros(8_500));
    let drawn = |seed: u64, name: &str| {
        let text = with(", offset = \"random\"").replace("bottleneck", name);
        offset(&format!("seed = {seed}\n{text}"))
    };
    let of_seeds: std::collections::BTreeSet<Time> =
        (0..200).map(|seed| drawn(seed, "bottleneck")).collect();
    let whole: Vec<Time> = (0..9).map(Time::from_millis).collect();
    assert_eq!(of_seeds.into_iter().collect::<Vec<_>>(), whole, "any millisecond of the trace");
    assert_eq!(drawn(3, "bottleneck"), drawn(3, "bottleneck"));
    assert!((0..20).any(|seed| drawn(seed, "bottleneck") != drawn(seed, "air")));
}

/// A part of a log, replayed faster: the times count from the beginning of the part, and the report
/// says how many transfers begin within the run.
#[test]
fn part_and_speed_of_a_log_are_followed() {
    let lines: String = (0..100).map(|n| format!("{n},{}\n", 1000 + n)).collect();
    let log = format!("time,bytes\n{lines}");
    let files = [("access.csv", log.as_bytes())];
    let read = |keys: &str| {
        let text = format!(
            "duration = \"10 s\"\n[link.l]\ndelay = \"1 ms\"\n[path.main]\nforward = [\"l\"]\n\
             reverse_delay = \"1 ms\"\n[[flow]]\ncc = \"cubic\"\nworkload = {{ mix = {{ {keys} \
             sizes = {{ log = \"access.csv\" }} }} }}\n"
        );
        parse(&text, &Source { name: "a.toml", loader: &Embedded(&files) }, &[])
    };
    let told = |keys: &str| read(keys).unwrap().files[0].read_as.clone();
    assert!(told("arrivals = \"log\",").ends_with("; 10 of 100 begin within the run"));
    assert!(told("arrivals = \"log\", speed = 2.0,").ends_with("; 20 of 100 begin within the run"));
    let part = "arrivals = \"log\", from = \"20500 ms\", until = \"30 s\", speed = 0.5,";
    assert!(told(part).ends_with("; 5 of 9 begin within the run"));
    let all = "arrivals = \"log\", from = \"90 s\", speed = 4.0,";
    assert!(told(all).ends_with("; all 10 begin within the run"));
    let scenario = read(part).unwrap();
    let Workload::Mix(mix) = &scenario.flows[0].workload else { panic!() };
    let Arrivals::Recorded(arrivals) = &mix.arrivals else { panic!() };
    assert_eq!(arrivals.get(0), Some((Time::from_millis(1000), 1021)));
    assert_eq!(arrivals.get(8), Some((Time::from_millis(17_000), 1029)));
    for (keys, problem) in [
        ("arrivals = \"log\", from = \"100 s\",", "no transfer of the log begins in this part"),
        ("arrivals = \"log\", from = \"9 s\", until = \"9 s\",", "write an until after from"),
        ("arrivals = \"log\", speed = 0.0,", "the speed"),
        ("arrival_interval = \"1 s\", speed = 2.0,", "are about the arrivals of a log"),
    ] {
        let errors = read(keys).unwrap_err().to_string();
        assert!(errors.contains(problem), "{errors}");
    }
}
