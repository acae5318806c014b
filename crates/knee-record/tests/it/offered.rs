//! The load that a scenario offers to its links, against figures worked out by hand.

use knee_record::{OfferedLoad, offered_in_words, offered_load};
use knee_scenario::{Embedded, Scenario, Source, parse};

/// A scenario of 60 s over a link `mile` of 10 Mbit/s and an unlimited one.
fn scenario(link: &str, flows: &str, files: &[(&str, &[u8])]) -> Scenario {
    let text = format!(
        "duration = \"60 s\"\n[link.access]\ndelay = \"1 ms\"\n[link.mile]\ndelay = \"9 ms\"\n\
         {link}\n[path.main]\nforward = [\"access\", \"mile\"]\nreverse_delay = \"10 ms\"\n{flows}"
    );
    parse(&text, &Source { name: "load.toml", loader: &Embedded(files) }, &[]).unwrap()
}

const TEN: &str = "rate = \"10 Mbit/s\"";

fn flow(name: &str, more: &str, workload: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\ncc = \"cubic\"\n{more}\nworkload = {workload}\n")
}

fn mix(name: &str, more: &str, keys: &str) -> String {
    flow(name, more, &format!("{{ mix = {{ {keys} }} }}"))
}

fn only(scenario: &Scenario) -> OfferedLoad {
    let mut loads = offered_load(scenario);
    assert_eq!(loads.len(), 1, "{loads:?}");
    loads.pop().unwrap()
}

fn close(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} for {expected}");
}

/// 50 kB every 100 ms are 4 Mbit/s; two such groups, one of two flows, are 12.
#[test]
fn random_arrivals_offer_their_expected_size() {
    let keys = "arrival_interval = \"100 ms\", sizes = \"50 kB\"";
    let load = only(&scenario(TEN, &mix("one", "", keys), &[]));
    assert_eq!((load.link.as_str(), load.busiest, load.requests_bps), ("mile", None, 0.0));
    close(load.whole.offered_bps, 4e6);
    close(load.whole.of_rate.unwrap(), 0.4);
    assert!(!load.is_overloaded());
    assert_eq!(load.in_words(), "4 Mbit/s on mile, 40 % of its rate");
    let both = mix("one", "", keys) + &mix("two", "count = 2", keys);
    let load = only(&scenario(TEN, &both, &[]));
    close(load.whole.offered_bps, 12e6);
    assert!(load.is_overloaded());
    assert_eq!(
        offered_in_words(&[load]).unwrap(),
        "offered load: 12 Mbit/s on mile, 120 % of its rate"
    );
}

/// Above 95 %, not at it.
#[test]
fn a_link_is_overloaded_above_95_per_cent() {
    for (interval, is_overloaded) in [("42.2 ms", false), ("42 ms", true)] {
        let keys = format!("arrival_interval = \"{interval}\", sizes = \"50 kB\"");
        let load = only(&scenario(TEN, &mix("one", "", &keys), &[]));
        assert_eq!(load.is_overloaded(), is_overloaded, "{load:?}");
    }
}

/// What sends as fast as the path allows has no offered load; requests have a rate over the idle
/// path, 25 kB in each 200 ms + 20 ms + 20 ms, however many there are, but do not overload it.
#[test]
fn only_arrivals_overload() {
    let video = flow("video", "", "\"dash\"");
    let flows = flow("bulk", "", "\"bulk\"") + &flow("file", "", "{ file = \"1 GB\" }") + &video;
    assert_eq!(offered_load(&scenario(TEN, &flows, &[])), []);
    let bursts = "{ bursts = { size = \"25 kB\", pause = \"200 ms\" } }";
    let load = only(&scenario(TEN, &flow("many", "count = 20", bursts), &[]));
    close(load.requests_bps, 20.0 * 200_000.0 / 0.24);
    assert_eq!((load.whole.offered_bps, load.is_overloaded()), (0.0, false));
    assert_eq!(load.in_words(), "requests for up to 16.7 Mbit/s on mile");
    let count = "{ bursts = { size = \"25 kB\", pause = \"200 ms\", count = 3 } }";
    close(only(&scenario(TEN, &flow("few", "", count), &[])).requests_bps, 200_000.0 / 0.24);
}

/// 10 Mbit/s, but 2 Mbit/s from 40 s on: 3 Mbit/s are 41 % of it on average and 150 % at the end.
#[test]
fn a_link_that_is_too_slow_for_a_while_is_overloaded() {
    let steps =
        "rate = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"40 s\", rate = \"2 Mbit/s\" }]";
    let keys = "arrival_interval = \"100 ms\", sizes = \"37500 B\"";
    let load = only(&scenario(steps, &mix("one", "", keys), &[]));
    close(load.whole.of_rate.unwrap(), 180.0 / 440.0);
    let busiest = load.busiest.unwrap();
    close(busiest.of_rate.unwrap(), 1.5);
    assert!(busiest.from_s >= 40.0 && busiest.until_s <= 60.0);
    assert!(load.is_overloaded());
    assert!(load.in_words().contains("(150 % of its rate from "), "{}", load.in_words());
}

/// A policer below the rate is the limit; an outage takes from what may pass.
#[test]
fn policers_and_outages_are_limits() {
    let keys = "arrival_interval = \"100 ms\", sizes = \"50 kB\"";
    let policed = format!("{TEN}\npolicer = {{ rate = \"5 Mbit/s\", burst = \"50 kB\" }}");
    let load = only(&scenario(&policed, &mix("one", "", keys), &[]));
    close(load.whole.of_rate.unwrap(), 0.8);
    let down = format!("{TEN}\ndown = [{{ from = \"30 s\", until = \"42 s\" }}]");
    let load = only(&scenario(&down, &mix("one", "", keys), &[]));
    close(load.whole.of_rate.unwrap(), 0.5);
    let busiest = load.busiest.unwrap();
    assert_eq!(busiest.of_rate, None);
    assert!(load.is_overloaded());
    assert!(load.in_words().contains("(while nothing passes from 3"), "{}", load.in_words());
}

/// Only while the flow lasts: 4 Mbit/s from 20 s to 40 s.
#[test]
fn the_load_counts_from_the_first_arrival_to_the_last() {
    let keys = "arrival_interval = \"100 ms\", sizes = \"50 kB\"";
    let load = only(&scenario(TEN, &mix("one", "start = \"20 s\"\nstop = \"40 s\"", keys), &[]));
    assert_eq!((load.whole.from_s, load.whole.until_s, load.busiest), (20.0, 40.0, None));
    close(load.whole.offered_bps, 4e6);
    let count = "arrival_interval = \"100 ms\", sizes = \"50 kB\", count = 150";
    let load = only(&scenario(TEN, &mix("one", "", count), &[]));
    close(load.whole.offered_bps, 1e6);
    close(load.busiest.unwrap().offered_bps, 4e6);
}

/// A log of 100 transfers of 200 kB, 90 of them from 30 s to 39 s: 2.7 Mbit/s on average, over 10 s
/// 14.4. Two mixes of one process are the log once.
#[test]
fn arrivals_of_a_log_are_counted_when_they_come() {
    let rare = (0..10).map(|n| f64::from(n) * 6.0);
    let dense = (0..90).map(|n| 30.0 + f64::from(n) * 0.1);
    let mut times: Vec<f64> = rare.chain(dense).collect();
    times.sort_by(f64::total_cmp);
    let lines: String = times.iter().map(|time| format!("{time},200000\n")).collect();
    let log = format!("time,bytes\n{lines}");
    let files: &[(&str, &[u8])] = &[("log.csv", log.as_bytes())];
    let keys = "arrivals = \"log\", sizes = { log = \"log.csv\" }";
    let alone = only(&scenario(TEN, &mix("one", "", keys), files));
    close(alone.whole.offered_bps, 100.0 * 1.6e6 / 60.0);
    let busiest = alone.busiest.unwrap();
    assert!((14.0e6..16.0e6).contains(&busiest.offered_bps), "{busiest:?}");
    assert!(alone.is_overloaded());
    let keys = format!("process = \"all\", {keys}");
    let pair = mix("one", "", &keys) + &mix("two", "", &keys);
    let pair = only(&scenario(TEN, &pair, files));
    close(pair.whole.offered_bps, alone.whole.offered_bps);
    close(pair.busiest.unwrap().offered_bps, busiest.offered_bps);
}

/// Over two paths of 30 and 10 Mbit/s a flow offers each a share of its rate.
#[test]
fn several_paths_share_the_load() {
    let text = "duration = \"60 s\"\n[link.wide]\nrate = \"30 Mbit/s\"\n[link.narrow]\nrate = \"10 \
                Mbit/s\"\n[path.a]\nforward = [\"wide\"]\nreverse_delay = \"10 ms\"\n[path.b]\n\
                forward = [\"narrow\"]\nreverse_delay = \"10 ms\"\n[[flow]]\npaths = [\"a\", \
                \"b\"]\nscheduler = \"minrtt\"\ncc = \"cubic\"\nworkload = { mix = { \
                arrival_interval = \"100 ms\", sizes = \"250 kB\" } }\n";
    let source = Source { name: "load.toml", loader: &Embedded(&[]) };
    let loads = offered_load(&parse(text, &source, &[]).unwrap());
    let [wide, narrow] = &loads[..] else { panic!("{loads:?}") };
    close(wide.whole.offered_bps, 15e6);
    close(narrow.whole.offered_bps, 5e6);
    close(narrow.whole.of_rate.unwrap(), 0.5);
}
