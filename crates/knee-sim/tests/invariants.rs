//! Random scenarios, each checked by a program that shares no code with the
//! simulator: `knee-verify` reads the packet log and knows what no network
//! can do.
//!
//! A failure prints the seed and the scenario; `KNEE_SEED=<seed>` runs that
//! one alone.

use knee_scenario::{Embedded, Source};
use knee_sim::Control;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::fmt::Write as _;

/// Scenarios in one test run.
const SCENARIOS: u64 = 150;

/// Draws the parts of a scenario and writes them down.
struct Draw {
    rng: ChaCha8Rng,
    text: String,
}

impl Draw {
    fn between(&mut self, from: u32, to: u32) -> u32 {
        from + self.rng.next_u32() % (to - from + 1)
    }
    fn one_in(&mut self, n: u32) -> bool {
        self.between(1, n) == 1
    }
    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.between(0, choices.len() as u32 - 1) as usize]
    }
    fn line(&mut self, line: String) {
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn scenario(seed: u64) -> String {
        let mut draw = Draw { rng: ChaCha8Rng::seed_from_u64(seed), text: String::new() };
        draw.line(format!("name = \"random {seed}\"\nduration = \"4 s\"\nseed = {seed}"));
        let (links, paths) = (draw.between(1, 5), draw.between(1, 4));
        for link in 0..links {
            draw.link(link);
        }
        for path in 0..paths {
            draw.path(path, links);
        }
        for flow in 0..draw.between(1, 6) {
            draw.flow(flow, paths);
        }
        draw.text
    }

    fn link(&mut self, link: u32) {
        self.line(format!("\n[link.l{link}]"));
        let (rate, later, at) = (self.between(1, 40), self.between(0, 40), self.between(1, 3900));
        if self.one_in(5) {
            self.steps("rate", &format!("{rate} Mbit/s"), at, &format!("{later} Mbit/s"));
        } else {
            self.line(format!("rate = \"{rate} Mbit/s\""));
        }
        let (delay, later) = (self.between(0, 60_000), self.between(0, 80_000));
        if self.one_in(5) {
            self.steps("delay", &format!("{delay} us"), at, &format!("{later} us"));
        } else {
            self.line(format!("delay = \"{delay} us\""));
        }
        let (packets, bytes) = (self.between(2, 200), self.between(3, 400));
        let buffer = match self.between(0, 2) {
            0 => format!("{packets} packets"),
            1 => format!("{bytes} kB"),
            _ => "unlimited".to_string(),
        };
        self.line(format!("buffer = \"{buffer}\""));
        self.loss();
        self.features();
    }

    fn steps(&mut self, key: &str, first: &str, at: u32, then: &str) {
        self.line(format!(
            "{key} = [{{ at = \"0 s\", {key} = \"{first}\" }}, \
             {{ at = \"{at} ms\", {key} = \"{then}\" }}]"
        ));
    }

    fn loss(&mut self) {
        let (percent, every, back) =
            (self.between(1, 12), self.between(5, 400), self.between(10, 60));
        match self.between(0, 4) {
            0 => self.line(format!("loss = \"{percent} %\"")),
            1 => self.line(format!("loss = {{ every = {every} }}")),
            2 => self.line(format!(
                "loss = {{ good_to_bad = \"{percent} %\", bad_to_good = \"{back} %\" }}"
            )),
            _ => {}
        }
    }

    fn features(&mut self) {
        if self.one_in(3) {
            let aqm = self.of(&["codel", "fq-codel", "pie", "threshold"]);
            if aqm == "threshold" {
                let delay = self.between(1, 30);
                self.line(format!("aqm = {{ name = \"threshold\", delay = \"{delay} ms\" }}"));
            } else {
                let ecn = self.one_in(2);
                self.line(format!("aqm = \"{aqm}\"\necn = {ecn}"));
            }
        }
        let (amount, rate, burst) =
            (self.between(1, 20), self.between(1, 20), self.between(3, 200));
        if self.one_in(5) {
            let reorder = self.one_in(2);
            self.line(format!("jitter = {{ amount = \"{amount} ms\", reorder = {reorder} }}"));
        }
        if self.one_in(6) {
            self.line(format!("policer = {{ rate = \"{rate} Mbit/s\", burst = \"{burst} kB\" }}"));
        }
        if self.one_in(5) {
            let from = self.between(1, 3000);
            let until = from + self.between(1, 900);
            self.line(format!("down = [{{ from = \"{from} ms\", until = \"{until} ms\" }}]"));
        }
    }

    fn path(&mut self, path: u32, links: u32) {
        self.line(format!("\n[path.p{path}]"));
        let forward = self.row_of_links(links);
        self.line(format!("forward = [{forward}]"));
        if self.one_in(3) {
            let reverse = self.row_of_links(links);
            self.line(format!("reverse = [{reverse}]"));
        } else {
            let delay = self.between(0, 100);
            self.line(format!("reverse_delay = \"{delay} ms\""));
        }
    }

    /// Some links in ascending order, at least one.
    fn row_of_links(&mut self, links: u32) -> String {
        let first = self.between(0, links - 1);
        let mut row = format!("\"l{first}\"");
        for link in first + 1..links {
            if self.one_in(2) {
                write!(row, ", \"l{link}\"").expect("a string takes all");
            }
        }
        row
    }

    /// One path, or several with a scheduler.
    fn way(&mut self, path: u32, paths: u32) -> String {
        if paths < 2 || !self.one_in(3) {
            return format!("path = \"p{path}\"");
        }
        let other = (path + 1) % paths;
        let scheduler = self.of(&[
            "minrtt",
            "minrtt-penalising",
            "round-robin",
            "redundant",
            "opportunistic-redundant",
            "sctc",
            "ecf",
            "blest",
            "daps",
            "dems",
            "capacity",
        ]);
        let reinjection = self.one_in(2);
        format!(
            "paths = [\"p{path}\", \"p{other}\"]\nscheduler = \"{scheduler}\"\n\
             reinjection = {reinjection}"
        )
    }

    fn flow(&mut self, flow: u32, paths: u32) {
        let cc = self.of(&["reno", "cubic", "bbr", "bbr-low-delay", "lia", "olia", "balia"]);
        let (path, start) = (self.between(0, paths - 1), self.between(0, 2000));
        let (count, ack_every) = (self.between(1, 3), self.between(1, 4));
        let way = self.way(path, paths);
        self.line(format!(
            "\n[[flow]]\nname = \"f{flow}\"\ncc = \"{cc}\"\n{}\n\
             start = \"{start} ms\"\ncount = {count}\nack_every = {ack_every}",
            way
        ));
        let (bytes, stop) = (self.between(1, 900_000), start + self.between(1, 1900));
        match self.between(0, 5) {
            0 | 1 => self.line(format!("workload = {{ file = \"{bytes} B\" }}")),
            2 | 3 => self.line(format!("stop = \"{stop} ms\"")),
            _ => {}
        }
        if self.one_in(3) {
            self.line("ecn = true".to_string());
        }
        let window = self.between(10, 400);
        if self.one_in(4) {
            self.line(format!("receive_window = \"{window} kB\""));
        }
        if self.one_in(4) {
            let pacing = self.of(&["on", "off"]);
            self.line(format!("pacing = \"{pacing}\""));
        }
    }
}

fn check(seed: u64) {
    let text = Draw::scenario(seed);
    let source = Source { name: "random.toml", loader: &Embedded(&[]) };
    let scenario = knee_scenario::parse(&text, &source, &[])
        .unwrap_or_else(|errors| panic!("KNEE_SEED={seed}\n{text}\n{errors:#?}"));
    let mut log = Vec::new();
    let records = knee_sim::run_logged(&scenario, &Control::default(), &mut log)
        .unwrap_or_else(|error| panic!("KNEE_SEED={seed}\n{text}\n{error}"));
    let report = knee_verify::check(log.as_slice())
        .unwrap_or_else(|error| panic!("KNEE_SEED={seed}\n{text}\n{error}"));
    assert!(
        report.violations.is_empty(),
        "KNEE_SEED={seed}\n{text}\n{:#?}",
        &report.violations[..report.violations.len().min(5)]
    );
    // The log and the records tell the same story. The log tells what each
    // subflow delivered, twice what came over two.
    let single = records.flows.iter().filter(|flow| flow.scheduler.is_empty());
    let delivered: u64 = single.map(|flow| flow.delivered_bytes).sum();
    let delivered = delivered + records.paths.iter().map(|path| path.delivered_bytes).sum::<u64>();
    for flow in records.flows.iter().filter(|flow| !flow.scheduler.is_empty()) {
        let paths = records.paths.iter().filter(|path| path.flow == flow.flow);
        let subflows: u64 = paths.map(|path| path.delivered_bytes).sum();
        let waiting = subflows - flow.duplicate_bytes - flow.delivered_bytes;
        assert!(waiting <= flow.reassembly_peak_bytes, "KNEE_SEED={seed}\n{text}");
    }
    assert_eq!(report.bytes_delivered, delivered, "KNEE_SEED={seed}\n{text}");
    assert_eq!(report.segments_delivered, records.cost.data_packets, "KNEE_SEED={seed}\n{text}");
}

#[test]
fn random_scenarios_obey_the_rules_of_any_network() {
    if let Ok(seed) = std::env::var("KNEE_SEED") {
        return check(seed.parse().expect("KNEE_SEED is a number"));
    }
    for seed in 0..SCENARIOS {
        check(seed);
    }
}
