//! One TCP connection over the sixteen pairs of links of mqvpn's report
//! (<https://github.com/mp0rta/mqvpn>, 0.13): over both, and over each alone in the same minute, with
//! one setting for all. Beside it what mqvpn carries with the best of its schedulers and buffers,
//! chosen by hand for each pair, and over the better link alone.
//!
//! Each run is kept in a file, so that a series that was interrupted goes on.

use super::{ALLOW, BOTH, FIRST, TIMES, lab, median};
use std::fs;
use std::path::{Path, PathBuf};

/// Size of the file that is loaded: 20 MiB.
const BYTES: u64 = 20 << 20;
const SECOND: &str = "link = [{ interface = \"knee1\" }]\n";
/// What runs, by the name in its files, and its links.
const RUNS: [(&str, &str); 3] = [("both", BOTH), ("A", FIRST), ("B", SECOND)];
/// Goals: over the better link in all pairs, in those of equal links, and the share of the gain that
/// an ideal transfer has in those whose links differ.
const NOT_WORSE: f64 = 0.98;
const EQUAL: f64 = 1.85;
const OF_THE_GAIN: f64 = 0.8;

/// A link: Mbit/s, one-way delay in ms, its standard deviation in ms, share of packets lost in %.
#[derive(Clone, Copy, PartialEq)]
struct Link(f64, f64, f64, f64);

/// What is expected of both links together.
#[derive(Clone, Copy, PartialEq)]
enum Goal {
    /// Nearly twice as much.
    Equal,
    /// Most of the gain that an ideal transfer has.
    Gain,
    /// What the better link carries.
    NotWorse,
}

/// A pair of links; mqvpn's rates in Mbit/s by the setting chosen by hand, and over its better link.
struct Pair(&'static str, [Link; 2], Goal, f64, f64);

const fn plain(mbit: f64, delay: f64) -> Link {
    Link(mbit, delay, 0.0, 0.0)
}

const PAIRS: [Pair; 16] = [
    Pair("baseline", [plain(50.0, 20.0); 2], Goal::Equal, 73.9, 40.6),
    Pair("rtt_40", [plain(50.0, 20.0), plain(50.0, 40.0)], Goal::Gain, 49.0, 40.5),
    Pair("rtt_70", [plain(50.0, 20.0), plain(50.0, 70.0)], Goal::Gain, 40.2, 40.6),
    Pair("rtt_120", [plain(50.0, 20.0), plain(50.0, 120.0)], Goal::Gain, 40.6, 40.7),
    Pair("rtt_320", [plain(50.0, 20.0), plain(50.0, 320.0)], Goal::NotWorse, 40.1, 40.3),
    Pair("jit_5", [Link(50.0, 20.0, 5.0, 0.0); 2], Goal::Equal, 61.4, 38.8),
    Pair("jit_20", [Link(50.0, 20.0, 20.0, 0.0); 2], Goal::Equal, 37.6, 17.4),
    Pair("loss_05", [Link(50.0, 20.0, 0.0, 0.5); 2], Goal::Equal, 70.7, 32.2),
    Pair("loss_2", [Link(50.0, 20.0, 0.0, 2.0); 2], Goal::Equal, 29.0, 16.3),
    Pair("bw_4to1", [plain(50.0, 20.0), plain(12.0, 20.0)], Goal::Gain, 39.9, 40.6),
    Pair("bw_10to1", [plain(100.0, 20.0), plain(10.0, 20.0)], Goal::Gain, 70.1, 74.2),
    Pair(
        "dual_lte",
        [Link(40.0, 30.0, 5.0, 0.5), Link(25.0, 45.0, 8.0, 0.5)],
        Goal::Gain,
        29.6,
        29.6,
    ),
    Pair("fiber_lte", [plain(300.0, 8.0), Link(30.0, 40.0, 8.0, 0.5)], Goal::Gain, 212.3, 212.4),
    Pair(
        "lte_starlink",
        [Link(40.0, 35.0, 8.0, 0.0), Link(100.0, 50.0, 25.0, 1.0)],
        Goal::NotWorse,
        27.2,
        29.6,
    ),
    Pair("lte_geo", [plain(40.0, 35.0), Link(20.0, 320.0, 20.0, 0.5)], Goal::NotWorse, 31.5, 31.7),
    Pair(
        "congested",
        [Link(20.0, 50.0, 20.0, 2.0), Link(15.0, 60.0, 25.0, 2.0)],
        Goal::NotWorse,
        6.4,
        6.4,
    ),
];

/// Names of the pairs.
pub fn names() -> impl Iterator<Item = &'static str> {
    PAIRS.iter().map(|pair| pair.0)
}

/// Runs the pairs with these names, or all, and prints their rows.
pub fn run(wanted: &[&str]) {
    let kept = PathBuf::from("target/bond-sixteen");
    fs::create_dir_all(&kept).unwrap();
    println!(
        "Mbit/s, medians of {TIMES}. Runs are kept in {}: remove it to begin anew.",
        kept.display()
    );
    println!(
        "{:<13} {:>7} {:>7} {:>7} {:>8} {:>8}  {:<8} mqvpn by hand, its better link; runs",
        "pair", "both", "A", "B", "times", "goal", ""
    );
    for pair in PAIRS.iter().filter(|pair| wanted.is_empty() || wanted.contains(&pair.0)) {
        row(pair, &kept);
    }
}

fn row(pair: &Pair, kept: &Path) {
    let Pair(name, links, _, by_hand, single) = pair;
    let mut rates = [const { Vec::new() }; RUNS.len()];
    // One after the other, so that each minute has all three.
    for time in 1..=TIMES {
        for ((what, interfaces), rates) in RUNS.iter().zip(&mut rates) {
            let file = kept.join(format!("{name}-{what}-{time}"));
            rates.push(BYTES as f64 * 8.0 / 1e6 / seconds(&file, links, interfaces));
        }
    }
    let [both, first, second] = rates.each_ref().map(|rates| median(rates));
    let (times, goal) = (both / first.max(second), goal(pair));
    let met = match (times >= goal, both >= *by_hand) {
        (true, true) => "met",
        (true, false) => "mqvpn",
        (false, _) => "MISSED",
    };
    let all: Vec<String> = rates.iter().flatten().map(|rate| format!("{rate:.1}")).collect();
    println!(
        "{name:<13} {both:>7.1} {first:>7.1} {second:>7.1} {times:>8.2} {goal:>8.2}  {met:<8} \
         {by_hand:.1}, {single:.1}; {}",
        all.join(" ")
    );
}

/// Returns what both links must carry, over the better one alone.
fn goal(Pair(_, links, goal, ..): &Pair) -> f64 {
    let alone = links.iter().map(|link| ideal(&[*link])).fold(f64::INFINITY, f64::min);
    match goal {
        Goal::Equal => EQUAL,
        Goal::Gain => 1.0 + OF_THE_GAIN * (alone / ideal(links) - 1.0),
        Goal::NotWorse => NOT_WORSE,
    }
}

/// Returns the time, in seconds, after which the file has arrived that fills each link from the start:
/// what the links carry by then, each less its delay, is the file.
fn ideal(links: &[Link]) -> f64 {
    let mut links = links.to_vec();
    links.sort_by(|a, b| a.1.total_cmp(&b.1));
    let with = |count: usize| {
        let used = &links[..count];
        let rate: f64 = used.iter().map(|link| link.0 * 1e6).sum();
        let late: f64 = used.iter().map(|link| link.0 * 1e6 * link.1 / 1e3).sum();
        (BYTES as f64 * 8.0 + late) / rate
    };
    (1..=links.len()).map(with).fold(f64::INFINITY, f64::min)
}

/// Returns the duration of a run that was kept, or runs it.
fn seconds(file: &Path, links: &[Link; 2], interfaces: &str) -> f64 {
    let kept = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    kept.unwrap_or_else(|| {
        let mut took = 0.0;
        let count = interfaces.matches("interface").count();
        let done = lab::measured(&scenario(links), links.len(), |lab| {
            let (_server, client) = lab.pair(ALLOW, interfaces);
            client.wait_for_links(count);
            took = lab.load(BYTES).as_secs_f64();
        });
        super::say_health(done);
        fs::write(file, format!("{took}\n")).unwrap();
        took
    })
}

/// Both directions of each link. Delay and jitter are those of both, the loss that of the data.
fn scenario(links: &[Link; 2]) -> String {
    let direction = |name: String, Link(mbit, delay, deviation, loss): Link, is_data: bool| {
        let delay = if deviation > 0.0 {
            format!(
                "delay = \"0 ms\"\njitter = {{ distribution = \"normal\", mean = \"{delay} ms\", \
                 deviation = \"{deviation} ms\", reorder = true }}"
            )
        } else {
            format!("delay = \"{delay} ms\"")
        };
        let loss = if is_data { loss } else { 0.0 };
        format!(
            "[link.{name}]\nrate = \"{mbit} Mbit/s\"\n{delay}\nbuffer = \"1000 packets\"\n\
             loss = \"{loss} %\"\n"
        )
    };
    let both = |(n, link): (usize, &Link)| {
        direction(format!("a{n}"), *link, false) + &direction(format!("b{n}"), *link, true)
    };
    links.iter().enumerate().map(both).collect()
}
