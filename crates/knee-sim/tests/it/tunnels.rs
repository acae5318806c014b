//! Tunnels and circuit breakers end to end: what a fair queue sees of a tunnel, what a
//! sender hears of marks that are taken off, and when a breaker trips. The checker of
//! packet logs, which shares no code, finds nothing wrong with any of it.
use knee_record::{Records, RunView, Window, measure};
use knee_scenario::{Embedded, Measure, Scenario, Source, parse};
use knee_sim::Control;
use knee_units::Time;

fn scenario(text: &str) -> Scenario {
    let source = Source { name: "tunnels.toml", loader: &Embedded(&[]) };
    parse(text, &source, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Records and packet log, which is sound.
fn run(text: &str) -> (Records, String) {
    let (scenario, mut log) = (scenario(text), Vec::new());
    let records = knee_sim::run_logged(&scenario, &Control::default(), &mut log).unwrap();
    let report = knee_verify::check(&log[..]).unwrap();
    assert_eq!(report.violations, [], "{text}");
    (records.with_rates(&scenario), String::from_utf8(log).unwrap())
}

fn value(records: &Records, of: &str, what: Measure) -> f64 {
    let view = RunView::new(records, Time::from_secs(5));
    measure(&view, &what, of, Window::default()).unwrap()
}

/// One flow beside three over a link that serves flows in turns.
fn shared(tunnel: &str) -> String {
    format!(
        "duration = \"30 s\"\nwarmup = \"5 s\"\n\
         [link.fair]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"1000 packets\"\n\
         aqm = \"fq-codel\"\n\
         [path.plain]\nforward = [\"fair\"]\nreverse_delay = \"10 ms\"\n\
         [path.inside]\nforward = [\"fair\"]\nreverse_delay = \"10 ms\"\n{tunnel}\
         [[flow]]\nname = \"alone\"\npath = \"plain\"\ncc = \"cubic\"\n\
         [[flow]]\nname = \"three\"\ncount = 3\npath = \"inside\"\ncc = \"cubic\"\n"
    )
}

/// Of two that are served in turns each gets a half; of four, a quarter.
#[test]
fn a_tunnel_is_one_flow_to_a_fair_queue() {
    let (inside, log) = run(&shared("tunnel = \"home\"\n"));
    let share = value(&inside, "alone", Measure::Share);
    assert!((share - 0.5).abs() < 0.02, "{share} beside a tunnel");
    assert!(log.contains("# path,0,forward=0,reverse=1\n"), "{}", &log[..400]);
    assert!(log.contains("# path,1,forward=0,reverse=2,tunnel=1\n"), "{}", &log[..400]);
    let (apart, _) = run(&shared(""));
    let share = value(&apart, "alone", Measure::Share);
    assert!((share - 0.25).abs() < 0.02, "{share} beside three flows");
}

/// What two senders hand over at one time is lost apart, in a tunnel too: of sixteen that begin
/// together, half lose their first packet.
#[test]
fn senders_in_a_tunnel_lose_super_packets_of_their_own() {
    let text = shared("tunnel = \"home\"\n")
        .replace("aqm = \"fq-codel\"", "loss = { super_packets = \"50 %\" }")
        .replace("count = 3", "count = 16");
    let (_, log) = run(&text);
    let at_start = |line: &&str| line.starts_with("0,drop,0,") && line.ends_with(",loss");
    let lost = log.lines().filter(at_start).count();
    assert!((4..=13).contains(&lost), "{lost} of 17 first packets were lost");
    // Nor does a queue that takes the tunnel for one flow join them.
    run(&text.replace("buffer =", "aqm = \"fq-codel\"\nbuffer ="));
}

/// A log whose head denies the tunnel is unsound: packets of one flow pass others that
/// wait in the same queue.
#[test]
fn two_paths_share_a_tunnel_by_its_name() {
    let both =
        shared("tunnel = \"home\"\n").replace("[path.inside]", "tunnel = \"home\"\n[path.inside]");
    let (_, log) = run(&both);
    assert!(log.contains("# path,0,forward=0,reverse=1,tunnel=0\n"), "{}", &log[..400]);
    assert!(log.contains("# path,1,forward=0,reverse=2,tunnel=0\n"), "{}", &log[..400]);
}

/// A queue that is said to see a tunnel, and serves its flows in turns, is found out.
#[test]
fn flows_served_apart_are_no_tunnel() {
    let mut log = Vec::new();
    knee_sim::run_logged(&scenario(&shared("")), &Control::default(), &mut log).unwrap();
    let log = String::from_utf8(log).unwrap();
    let line = "# path,1,forward=0,reverse=2\n";
    let claimed = log.replacen(line, "# path,1,forward=0,reverse=2,tunnel=1\n", 1);
    assert_ne!(claimed, log);
    let report = knee_verify::check(claimed.as_bytes()).unwrap();
    let fifo = report.violations.iter().filter(|found| found.rule == knee_verify::Rule::Fifo);
    assert!(fifo.count() > 100);
}

/// A queue that marks, behind it a link that may bleach.
fn bleached(cc: &str, end: &str, buffer: &str) -> String {
    format!(
        "duration = \"30 s\"\nwarmup = \"5 s\"\n[transport]\necn = true\n\
         [link.queue]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"{buffer}\"\n\
         aqm = \"codel\"\necn = true\n{end}\
         [path.main]\nforward = [\"queue\"]\nreverse_delay = \"10 ms\"\n\
         [[flow]]\nname = \"f\"\ncc = \"{cc}\"\n"
    )
}

/// The link marks, the sender hears of none of it, and is held back by the buffer alone:
/// it fills the link, as without ECN, and does not stall.
#[test]
fn marks_are_lost_and_the_path_is_used() {
    for cc in ["reno", "cubic", "prague"] {
        let (kept, _) = run(&bleached(cc, "", "1 BDP"));
        let (lost, log) = run(&bleached(cc, "ecn_bleached = true\n", "1 BDP"));
        let marks = |records: &Records| records.links.last().unwrap().marked_packets;
        assert!(marks(&kept) > 10 && marks(&lost) > 10, "{cc}");
        assert!(kept.flows[0].marked_bytes > 0 && lost.flows[0].marked_bytes == 0, "{cc}");
        assert!(!log.contains(",ce,"), "{cc}: a mark is on the far side");
        let goodput = value(&lost, "f", Measure::Goodput);
        assert!(goodput > 0.9 * 20e6 * 1448.0 / 1500.0, "{cc}: {goodput}");
        // Only a full buffer drops now.
        let drops = value(&lost, "queue", Measure::Drops);
        assert!(drops > 0.0 && value(&kept, "queue", Measure::Drops) == 0.0, "{cc}: {drops}");
    }
}

/// A window of 500 packets over a path and buffer of some 50, once nine tenths of the
/// rate are gone.
const DEAF: &str = "duration = \"40 s\"\n\
    [link.narrow]\nrate = [{ at = \"0 s\", rate = \"200 Mbit/s\" }, \
    { at = \"10 s\", rate = \"2 Mbit/s\" }]\ndelay = \"10 ms\"\nbuffer = \"300 packets\"\n\
    circuit_breaker = {}\n\
    [path.main]\nforward = [\"narrow\"]\nreverse_delay = \"10 ms\"\n\
    [[flow]]\nname = \"f\"\ncc = { name = \"fixed\", window = \"500 packets\" }\n";

/// Three intervals of 5 s after 10 s: it trips at 25 s, and from then on nothing gets in.
#[test]
fn a_breaker_trips_and_the_measure_says_when() {
    let (records, log) = run(DEAF);
    assert_eq!(value(&records, "narrow", Measure::BreakerTrip), 25.0);
    assert!(value(&records, "narrow", Measure::BreakerLoss) > 0.1);
    let cut = log.lines().filter(|row| row.ends_with(",breaker"));
    let times: Vec<u64> = cut.map(|row| row.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(times.len() > 3 && times[0] > 25_000_000_000, "{times:?}");
    assert!(times[0] < 26_000_000_000, "{times:?}");
    let delivered = |at: u64| {
        records.samples.iter().filter(|row| row.time_ns <= at).last().unwrap().delivered_bytes
    };
    assert_eq!(delivered(27_000_000_000), delivered(40_000_000_000));
}

/// CUBIC answers losses, and it never does.
#[test]
fn a_breaker_does_not_trip_by_congestion_control() {
    let (records, log) =
        run(&DEAF.replace("{ name = \"fixed\", window = \"500 packets\" }", "\"cubic\""));
    assert_eq!(value(&records, "narrow", Measure::BreakerTrip), f64::INFINITY);
    let closest = value(&records, "narrow", Measure::BreakerLoss);
    assert!(closest < 0.1, "{closest}");
    assert!(!log.contains(",breaker\n"));
}

#[test]
fn a_link_without_a_breaker_has_none_to_measure() {
    let (records, _) = run(&DEAF.replace("circuit_breaker = {}\n", ""));
    let view = RunView::new(&records, Time::ZERO);
    let why = measure(&view, &Measure::BreakerTrip, "narrow", Window::default()).unwrap_err();
    assert_eq!(why.0, "link narrow has no circuit breaker");
}
