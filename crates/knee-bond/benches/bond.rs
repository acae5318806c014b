//! `knee bond` over two links between namespaces, compared with the better link alone in the same
//! minute. Run `benches/bond` from the root of the project, as root, on a quiet host. Arguments
//! select groups of rows ([`GROUPS`]). Two run only when named: `long`, 10 GB in a few minutes, every
//! byte compared, with a link that is down every other 20 s; and `sixteen`, the pairs of links of
//! another program's report, or those that are named after it.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "real time passes here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]
#![allow(clippy::print_stderr, reason = "so is what the host lacks")]
#![allow(dead_code, reason = "the tests use more of the lab")]

#[path = "../tests/realtime/lab/mod.rs"]
mod lab;
#[path = "bond/sixteen.rs"]
mod sixteen;

use knee_testbed::Health;
use knee_trials::Skipped;
use lab::{Lab, measured};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Groups of rows.
const GROUPS: [&str; 9] =
    ["files", "failures", "hundreds", "fast", "profiles", "calls", "RTT", "long", "sixteen"];
/// Runs of each row; the median is reported.
const TIMES: usize = 3;
/// The round trip of a datagram that did not come back.
const NEVER: Duration = Duration::MAX;
const ALLOW: &str = "[egress]\nallow = [\"10.99.0.0/16\"]\n";
const BOTH: &str = "link = [{ interface = \"knee0\" }, { interface = \"knee1\" }]\n";
const JITTER_5: &str = "jitter = { amount = \"5 ms\", reorder = true }";
const JITTER_20: &str = "jitter = { amount = \"20 ms\", reorder = true }";
const FIRST: &str = "link = [{ interface = \"knee0\" }]\n";

/// Both directions of a link: Mbit/s, one-way delay in ms, queue in bytes, and additional keys for
/// the direction that carries the data.
struct Way(f64, u32, u32, &'static str);

fn links(ways: &[Way]) -> String {
    let link = |(n, Way(mbit, delay, queue, more)): (usize, &Way)| {
        let keys =
            format!("rate = \"{mbit} Mbit/s\"\ndelay = \"{delay} ms\"\nbuffer = \"{queue} B\"");
        format!("[link.a{n}]\n{keys}\n[link.b{n}]\n{keys}\n{more}\n")
    };
    ways.iter().enumerate().map(link).collect()
}

/// Duration of each run, in seconds.
fn times(ways: &[Way], links_of_client: &str, run: impl Fn(&Lab) -> Duration + Sync) -> Vec<f64> {
    times_so_often(TIMES, ways, links_of_client, run)
}

fn times_so_often(
    times: usize,
    ways: &[Way],
    links_of_client: &str,
    run: impl Fn(&Lab) -> Duration + Sync,
) -> Vec<f64> {
    let count = links_of_client.matches("interface").count();
    let once = |_| {
        let mut took = 0.0;
        let done = measured(&links(ways), ways.len(), |lab| {
            let (_server, client) = lab.pair(ALLOW, links_of_client);
            client.wait_for_links(count);
            took = run(lab).as_secs_f64();
        });
        say_health(done);
        took
    };
    (0..times).map(once).collect()
}

/// Says what was wrong with the host during a run, if anything was.
fn say_health(done: Result<Health, Skipped>) {
    match done.map(|health| health.verdict()) {
        Ok((_, why)) if why.is_empty() => {}
        Ok((verdict, why)) => println!("    {verdict}: {why}"),
        Err(Skipped(why)) => {
            eprintln!("this host cannot: {why}");
            std::process::exit(3);
        }
    }
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn row(what: &str, goal: &str, unit: &str, figures: &[f64]) {
    let all: Vec<String> = figures.iter().map(|figure| format!("{figure:.2}")).collect();
    println!("{what:<52} {goal:<22} {:>8.2} {unit:<7} {}", median(figures), all.join(" "));
}

fn rates(bytes: u64, seconds: &[f64]) -> Vec<f64> {
    seconds.iter().map(|seconds| bytes as f64 * 8.0 / seconds / 1e6).collect()
}

/// Rate divided by the rate of the better link alone, for pairs of runs.
fn beside_the_better(ways: &[Way], bytes: u64) -> Vec<f64> {
    let both = times(ways, BOTH, |lab| lab.load(bytes));
    let one = times(ways, FIRST, |lab| lab.load(bytes));
    both.iter().zip(one).map(|(both, one)| one / both).collect()
}

fn main() {
    // `cargo bench` adds this one.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let words: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let known: Vec<&str> = match words.first() {
        Some(&"sixteen") => sixteen::names().collect(),
        _ => GROUPS.to_vec(),
    };
    let given = if words.first() == Some(&"sixteen") { &words[1..] } else { &words };
    if let Some(unknown) = given.iter().find(|word| !known.contains(word)) {
        eprintln!("there are no rows {unknown:?}; there are: {}", known.join(", "));
        std::process::exit(2);
    }
    if words.first() == Some(&"sixteen") {
        return sixteen::run(given);
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    println!("{:<52} {:<22} {:>8} {:<7} runs", "what", "goal", "median", "");

    if is_wanted("files") {
        let ways = [Way(10.0, 10, 25_000, ""), Way(5.0, 10, 20_000, "")];
        let took = times(&ways, BOTH, |lab| lab.load(20_000_000));
        row(
            "20 MB over 10 + 5 Mbit/s, 10 ms",
            "at least 14.0",
            "Mbit/s",
            &rates(20_000_000, &took),
        );
        let ways = [Way(10.0, 5, 20_000, ""), Way(1.0, 100, 50_000, "")];
        let both = times(&ways, BOTH, |lab| lab.load(1_000_000));
        row("1 MB over 10 Mbit/s, 5 ms + 1 Mbit/s, 100 ms", "at most 0.83", "s", &both);
        row(
            "    the same, over the better one alone",
            "",
            "s",
            &times(&ways, FIRST, |lab| lab.load(1_000_000)),
        );
    }
    if is_wanted("failures") {
        for (bytes, what, goal) in [
            (5_000_000, "5 MB, first link dead at 2 s", "at most 5.0"),
            (20_000_000, "20 MB, first link dead from 2 to 6 s", "at most 14.8"),
        ] {
            let took = times(&[Way(10.0, 10, 25_000, ""), Way(5.0, 10, 20_000, "")], BOTH, |lab| {
                thread::scope(|scope| {
                    let load = scope.spawn(|| lab.load(bytes));
                    thread::sleep(Duration::from_secs(2));
                    lab.cut(0);
                    if bytes > 5_000_000 {
                        thread::sleep(Duration::from_secs(4));
                        lab.mend(0);
                    }
                    load.join().unwrap()
                })
            });
            row(what, goal, "s", &took);
        }
    }
    if is_wanted("hundreds") {
        let ways = [Way(100.0, 25, 625_000, ""), Way(100.0, 25, 625_000, "")];
        let (mut bond, mut kernel) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            bond.extend(times_so_often(1, &ways, BOTH, |lab| lab.load(1_400_000_000)));
            kernel.extend(times_so_often(1, &ways, BOTH, |lab| lab.load_straight(700_000_000)));
        }
        let what = "2 x 100 Mbit/s, 25 ms, one connection, 60 s";
        row(what, "at least 187", "Mbit/s", &rates(1_400_000_000, &bond));
        // What this host carries in the same minute.
        let what = "    the kernel's TCP, a connection over each link";
        row(what, "", "Mbit/s", &rates(1_400_000_000, &kernel));
        let fair = times(&ways, BOTH, |lab| {
            let loads: Vec<f64> = thread::scope(|scope| {
                let all: Vec<_> =
                    (0..8).map(|_| scope.spawn(|| lab.load_for(Duration::from_secs(15)))).collect();
                all.into_iter().map(|load| load.join().unwrap() as f64).collect()
            });
            let (sum, squares) = loads.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
            // A ratio, returned as seconds.
            Duration::from_secs_f64(sum * sum / (8.0 * squares))
        });
        row("    eight connections: Jain's index", "at least 0.95", "", &fair);
    }
    if is_wanted("fast") {
        let ways = [Way(300.0, 10, 750_000, ""), Way(80.0, 30, 600_000, "")];
        let took = times(&ways, BOTH, |lab| lab.load(200_000_000));
        row(
            "300 Mbit/s, 10 ms + 80 Mbit/s, 30 ms, 200 MB",
            "at least 330",
            "Mbit/s",
            &rates(200_000_000, &took),
        );
    }
    if is_wanted("profiles") {
        for (name, goal, ways) in [
            (
                "equal, 20 + 20 Mbit/s, 20 ms",
                "at least 1.75",
                [Way(20.0, 20, 100_000, ""), Way(20.0, 20, 100_000, "")],
            ),
            (
                "0.5 % loss on both",
                "at least 1.75",
                [
                    Way(20.0, 20, 100_000, "loss = \"0.5 %\""),
                    Way(20.0, 20, 100_000, "loss = \"0.5 %\""),
                ],
            ),
            (
                "2 % loss on both",
                "at least 1.75",
                [
                    Way(20.0, 20, 100_000, "loss = \"2 %\""),
                    Way(20.0, 20, 100_000, "loss = \"2 %\""),
                ],
            ),
            (
                "jitter of 5 ms that reorders",
                "at least 0.97",
                [Way(20.0, 20, 100_000, JITTER_5), Way(20.0, 20, 100_000, JITTER_5)],
            ),
            (
                "jitter of 20 ms that reorders",
                "at least 0.97",
                [Way(20.0, 20, 100_000, JITTER_20), Way(20.0, 20, 100_000, JITTER_20)],
            ),
            (
                "delays of 20 and 40 ms",
                "at least 0.97",
                [Way(20.0, 20, 100_000, ""), Way(20.0, 40, 200_000, "")],
            ),
            (
                "delays of 20 and 70 ms",
                "at least 0.97",
                [Way(20.0, 20, 100_000, ""), Way(20.0, 70, 350_000, "")],
            ),
            (
                "rates 4 : 1",
                "at least 0.97",
                [Way(40.0, 20, 200_000, ""), Way(10.0, 20, 50_000, "")],
            ),
            (
                "rates 10 : 1",
                "at least 0.97",
                [Way(50.0, 20, 250_000, ""), Way(5.0, 20, 25_000, "")],
            ),
            (
                "fibre and LTE",
                "at least 0.97",
                [Way(100.0, 5, 125_000, ""), Way(30.0, 40, 300_000, "loss = \"0.2 %\"")],
            ),
        ] {
            row(
                &format!("{name}: over the better one"),
                goal,
                "times",
                &beside_the_better(&ways, 20 << 20),
            );
        }
    }
    if is_wanted("calls") {
        let loss = "loss = \"5 %\"";
        let ways = [Way(10.0, 10, 25_000, loss), Way(10.0, 10, 25_000, loss)];
        for (what, goal, keys) in [
            (
                "1 kB every 20 ms, 5 % loss, over both: p99 of RTT",
                "at most 33",
                "duplicate_udp = true\n",
            ),
            ("    the same, over one at a time", "", ""),
        ] {
            let figures = times(&ways, &format!("{keys}{BOTH}"), |lab| {
                let mut took = lab.call(1500);
                took.resize(1500, NEVER);
                took.sort_unstable();
                took[1484]
            });
            let ms = |s: &f64| if *s < NEVER.as_secs_f64() { s * 1e3 } else { f64::INFINITY };
            row(what, goal, "ms", &figures.iter().map(ms).collect::<Vec<f64>>());
        }
    }
    if !wanted.is_empty() && is_wanted("long") {
        let ways = [Way(300.0, 10, 750_000, ""), Way(300.0, 10, 750_000, "")];
        let took = times_so_often(1, &ways, BOTH, |lab| {
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_secs(20));
                        lab.cut(0);
                        thread::sleep(Duration::from_secs(20));
                        lab.mend(0);
                    }
                });
                let took = lab.load(10_000_000_000);
                done.store(true, Ordering::Relaxed);
                took
            })
        });
        row("10 GB, a link gone every other 20 s, each byte", "same", "s", &took);
    }
    if is_wanted("RTT") {
        let ways = [Way(50.0, 10, 125_000, ""), Way(20.0, 40, 200_000, "")];
        let off = times(&ways, BOTH, |lab| {
            thread::sleep(Duration::from_secs(2));
            lab.load(100_000);
            let links = lab.status("client").bundles[0].links.clone();
            let worst = links.iter().map(|link| {
                let truth = if link.name == "knee0" { 20.0 } else { 80.0 };
                (link.min_rtt_ms / truth - 1.0).abs()
            });
            Duration::from_secs_f64(worst.fold(0.0, f64::max) * 100.0)
        });
        row("RTT of a path, off by", "at most 3", "%", &off);
    }
}
