//! Measures with varying rates: random steps, traces, outages and absent paths,
//! compared with an integration that shares no code with the product.
//!
//! `KNEE_RATE_TRIALS=20000 cargo test -p knee-sim --test it rates::` runs more.

use crate::common::in_parallel;
use knee_record::{Records, RunView, Summary, Window, measure};
use knee_scenario::{Embedded, Measure, Scenario, Source, parse};
use knee_sim::Control;
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const MS: u64 = 1_000_000;

/// Speed of a link: rates with their start times, or opportunities. Times in milliseconds.
enum Speed {
    Steps(Vec<(u64, u64)>),
    Trace { opportunities: Vec<u64>, offset: u64 },
}

struct Link {
    speed: Speed,
    delay_ms: u64,
    /// Spans in which the link or its path is absent.
    gone: Vec<(u64, u64)>,
    /// Lines in the scenario.
    text: String,
}

impl Link {
    /// Returns the IP bytes that can leave after `from` and up to `until`.
    fn allows(&self, from: u64, until: u64) -> f64 {
        match &self.speed {
            Speed::Steps(steps) => self.by_pieces(steps, from, until),
            Speed::Trace { opportunities, offset } => {
                let period = *opportunities.last().unwrap();
                let repetitions = (until / MS + offset) / period + 1;
                let times = (0..repetitions)
                    .flat_map(|n| opportunities.iter().map(move |at| n * period + at))
                    .filter(|at| at >= offset)
                    .map(|at| (at - offset) * MS);
                let served = |at: &u64| {
                    let lost = |(a, b): &(u64, u64)| a * MS < *at && *at <= b * MS;
                    from < *at && *at <= until && !self.gone.iter().any(lost)
                };
                1500.0 * times.filter(served).count() as f64
            }
        }
    }

    /// Rate times time, summed over every span without a change.
    fn by_pieces(&self, steps: &[(u64, u64)], from: u64, until: u64) -> f64 {
        let changes = steps.iter().map(|(at, _)| at * MS);
        let gone = self.gone.iter().flat_map(|(a, b)| [a * MS, b * MS]);
        let mut cuts: Vec<u64> = changes.chain(gone).chain([from, until]).collect();
        cuts.retain(|at| (from..=until).contains(at));
        cuts.sort_unstable();
        let piece = |pair: &[u64]| {
            let lost = |(a, b): &(u64, u64)| (a * MS..b * MS).contains(&pair[0]);
            if self.gone.iter().any(lost) {
                return 0.0;
            }
            let rate = steps.iter().rev().find(|(at, _)| at * MS <= pair[0]).unwrap().1;
            rate as f64 / 8.0 * (pair[1] - pair[0]) as f64 / 1e9
        };
        cuts.windows(2).map(piece).sum()
    }
}

/// Returns the minimum over a path's links, each over the time in which it can be used.
fn path_allows(path: &[Link], from: u64, until: u64, with_delays: bool) -> f64 {
    let delay: u64 = path.iter().map(|link| link.delay_ms * MS).sum();
    if with_delays && until < from + delay {
        return 0.0;
    }
    let mut before = 0;
    let links = path.iter().map(|link| {
        let (begin, end) = if with_delays { (before, delay - before) } else { (0, 0) };
        before += link.delay_ms * MS;
        link.allows(from + begin, until - end)
    });
    links.fold(f64::INFINITY, f64::min)
}

struct Trial {
    text: String,
    traces: Vec<(String, Vec<u8>)>,
    paths: Vec<Vec<Link>>,
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn from(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.0.next_u64() % (range.end - range.start)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.from(0..n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.from(0..from.len() as u64) as usize]
    }

    /// Returns disjoint spans, ascending.
    fn spans(&mut self, count: u64) -> Vec<(u64, u64)> {
        let mut at = 0;
        let mut span = |draw: &mut Draw| {
            let from = at + draw.from(1..1500);
            at = from + draw.from(1..900);
            (from, at)
        };
        (0..count).map(|_| span(self)).collect()
    }
}

fn spans_text(key: &str, spans: &[(u64, u64)]) -> String {
    let one =
        |(from, until): &(u64, u64)| format!("{{ from = \"{from} ms\", until = \"{until} ms\" }}");
    let all: Vec<String> = spans.iter().map(one).collect();
    if all.is_empty() { String::new() } else { format!("{key} = [{}]\n", all.join(", ")) }
}

impl Trial {
    fn draw(seed: u64) -> Trial {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let mut trial = Trial { text: String::new(), traces: Vec::new(), paths: Vec::new() };
        let count = draw.from(1..4);
        let mut names = Vec::new();
        for path in 0..count {
            // A single-path flow has no absent path.
            let absent = if count > 1 && draw.one_in(3) { draw.spans(1) } else { Vec::new() };
            let links: Vec<Link> = (0..draw.from(1..3))
                .map(|number| trial.draw_link(&mut draw, &format!("l{path}-{number}"), &absent))
                .collect();
            let over: Vec<String> =
                (0..links.len()).map(|number| format!("\"l{path}-{number}\"")).collect();
            trial.text.extend(links.iter().map(|link| link.text.as_str()));
            trial.text += &format!(
                "[path.p{path}]\nforward = [{}]\nreverse_delay = \"{} ms\"\n{}",
                over.join(", "),
                draw.from(0..60),
                spans_text("absent", &absent)
            );
            names.push(format!("\"p{path}\""));
            trial.paths.push(links);
        }
        let warmup = if draw.one_in(2) { 0 } else { draw.from(1..1500) };
        let over = match names.as_slice() {
            [one] => format!("path = {one}"),
            several => format!(
                "paths = [{}]\nscheduler = \"{}\"",
                several.join(", "),
                draw.pick(&["minrtt", "round-robin", "redundant", "blest", "sctc", "ecf"])
            ),
        };
        let work = match draw.one_in(3) {
            true => "\"bulk\"".to_string(),
            false => format!("{{ file = \"{} B\" }}", draw.from(1_000..1_500_000)),
        };
        trial.text = format!(
            "duration = \"{} ms\"\nsample_interval = \"{} ms\"\nwarmup = \"{warmup} ms\"\n\
             {}[[flow]]\nname = \"flow\"\ncc = \"{}\"\nstart = \"{} ms\"\nworkload = {work}\n\
             {over}\n",
            draw.from(2_500..6_000),
            draw.pick(&[10, 100, 400, 1000]),
            trial.text,
            draw.pick(&["reno", "cubic", "bbr"]),
            draw.from(0..1000)
        );
        trial
    }

    fn draw_link(&mut self, draw: &mut Draw, name: &str, absent: &[(u64, u64)]) -> Link {
        let kbit = |draw: &mut Draw| draw.pick(&[0, 300, 1_000, 2_500, 6_000, 12_000]) * 1000;
        let (speed, rate) = if draw.one_in(2) {
            let last = draw.from(1..2000);
            let mut opportunities: Vec<u64> =
                (0..draw.from(1..900)).map(|_| draw.from(0..last)).chain([last]).collect();
            opportunities.sort_unstable();
            let lines: Vec<String> = opportunities.iter().map(u64::to_string).collect();
            self.traces.push((format!("{name}.trace"), lines.join("\n").into_bytes()));
            let offset = if draw.one_in(2) { 0 } else { draw.from(0..last) };
            let text = format!("{{ trace = \"{name}.trace\", offset = \"{offset} ms\" }}");
            (Speed::Trace { opportunities, offset }, text)
        } else {
            let mut steps = vec![(0, kbit(draw))];
            for _ in 0..draw.from(0..5) {
                steps.push((steps.last().unwrap().0 + draw.from(1..1500), kbit(draw)));
            }
            steps.push((steps.last().unwrap().0 + draw.from(1..1500), 2_000_000));
            let one = |(at, rate): &(u64, u64)| {
                format!("{{ at = \"{at} ms\", rate = \"{rate} bit/s\" }}")
            };
            let text = format!("[{}]", steps.iter().map(one).collect::<Vec<_>>().join(", "));
            (Speed::Steps(steps), text)
        };
        let down = if draw.one_in(3) { draw.spans(2) } else { Vec::new() };
        let (delay_ms, buffer) = (draw.from(0..120), draw.from(5..200) * 1500);
        let text = format!(
            "[link.{name}]\nrate = {rate}\ndelay = \"{delay_ms} ms\"\nbuffer = \"{buffer} B\"\n{}",
            spans_text("down", &down)
        );
        Link { speed, delay_ms, gone: [&down, absent].concat(), text }
    }

    fn scenario(&self) -> Scenario {
        let files: Vec<(&str, &[u8])> =
            self.traces.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        let source = Source { name: "rates.toml", loader: &Embedded(&files) };
        parse(&self.text, &source, &[]).unwrap_or_else(|errors| panic!("{errors}\n{}", self.text))
    }

    /// Ratio of IP bytes of a full segment to its payload: with several paths,
    /// 20 bytes more give the position of the data (RFC 8684).
    fn overhead(&self) -> f64 {
        if self.paths.len() > 1 { 1500.0 / 1428.0 } else { 1500.0 / 1448.0 }
    }

    /// Checks the records; returns a message for each violation.
    fn judge(&self, scenario: &Scenario, records: &Records, draw: &mut Draw) -> Vec<String> {
        let summary = Summary::new(scenario, "sim", records);
        let mut wrong = Vec::new();
        let flow = &summary.flows[0];
        let parts = [
            ("aggregation ratio", flow.aggregation_ratio),
            ("power", flow.power),
            ("power of all", summary.measures.power),
            ("share of the capacity", summary.measures.capacity_share),
        ];
        let links = summary.links.iter().map(|link| ("utilisation", link.utilisation));
        for (name, value) in parts.into_iter().chain(links) {
            wrong.extend(above_one(name, value));
        }
        wrong.extend(self.judge_windows(records, draw));
        wrong.extend(self.judge_whole(scenario, records));
        wrong.extend(self.judge_bound(&summary, records));
        wrong
    }

    /// No share exceeds one in any part of the run either.
    fn judge_windows(&self, records: &Records, draw: &mut Draw) -> Vec<String> {
        let view = RunView::new(records, Time::ZERO);
        let mut wrong = Vec::new();
        for _ in 0..8 {
            let from = draw.from(0..4000);
            let until = from + draw.from(1..3000);
            let [from, until] = [from, until].map(|at| Some(Time::from_millis(at)));
            let window = Window { from, until };
            for what in [Measure::AggregationRatio, Measure::Power, Measure::Share] {
                let value = measure(&view, &what, "flow", window).ok();
                wrong.extend(above_one(&format!("{what:?} in {window:?}"), value));
            }
            for link in &records.link_names {
                let value = measure(&view, &Measure::Utilisation, link, window).ok();
                wrong.extend(above_one(&format!("utilisation in {window:?}"), value));
            }
        }
        wrong
    }

    /// Over a whole life the share is the delivered data over the integral.
    fn judge_whole(&self, scenario: &Scenario, records: &Records) -> Option<String> {
        let whole = Scenario { warmup: Time::ZERO, ..scenario.clone() };
        let summary = Summary::new(&whole, "sim", records);
        let record = &records.flows[0];
        let life = (record.start_ns, record.end_ns);
        let allowed: f64 =
            self.paths.iter().map(|path| path_allows(path, life.0, life.1, false)).sum();
        let measured = summary.measures.capacity_share?;
        let expected = record.delivered_bytes as f64 * self.overhead() / allowed;
        let wrong = (measured - expected).abs() > 1e-9;
        wrong.then(|| format!("the share of the capacity is {measured}, not {expected}"))
    }

    /// All paths together reach the size exactly at the bound.
    fn judge_bound(&self, summary: &Summary, records: &Records) -> Vec<String> {
        let (record, flow) = (&records.flows[0], &summary.flows[0]);
        let (Some(over), Some(completion)) = (flow.completion_over_bound, record.completion_ns)
        else {
            return Vec::new();
        };
        let bound = (completion as f64 / over).round() as u64;
        let by = |time: u64| -> f64 {
            let until = record.start_ns + time;
            self.paths.iter().map(|path| path_allows(path, record.start_ns, until, true)).sum()
        };
        let size = record.size_bytes as f64 * self.overhead();
        let mut wrong = Vec::new();
        // Rounded to the nanosecond; rates reach 12 Mbit/s.
        if by(bound + 2) < size - 0.01 || by(bound.saturating_sub(2)) > size + 0.01 {
            wrong.push(format!("{size} bytes are not what is there by {bound} ns"));
        }
        if over < 1.0 {
            wrong.push(format!("it finished in {over} times the shortest time possible"));
        }
        if flow.completion_over_best_path.is_some_and(|alone| alone > over) {
            wrong.push("one path alone is faster than all".to_string());
        }
        wrong
    }
}

fn above_one(name: &str, value: Option<f64>) -> Option<String> {
    value.filter(|value| *value > 1.0 + 1e-9).map(|value| format!("{name} is {value}"))
}

#[test]
fn nothing_exceeds_what_the_paths_allow() {
    let given = std::env::var("KNEE_RATE_TRIALS").ok();
    let count = given.map_or(500, |count| count.parse().expect("a number of trials"));
    let seeds: Vec<u64> = (0..count).collect();
    let judged = in_parallel(&seeds, |seed| {
        let trial = Trial::draw(*seed);
        let scenario = trial.scenario();
        let records = knee_sim::run(&scenario, &Control::default()).unwrap();
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed ^ 0x5eed));
        let wrong = trial.judge(&scenario, &records, &mut draw);
        let bound = Summary::new(&scenario, "sim", &records).flows[0].completion_over_bound;
        (wrong, bound.is_some(), records.flows[0].delivered_bytes > 0)
    });
    for (seed, (wrong, _, _)) in seeds.iter().zip(&judged) {
        let text = Trial::draw(*seed).text;
        assert!(wrong.is_empty(), "trial {seed}: {}\n{text}", wrong.join("; "));
    }
    // Enough of them contain something to check.
    let with_bound = judged.iter().filter(|(_, bound, _)| *bound).count();
    let with_data = judged.iter().filter(|(_, _, data)| *data).count();
    assert!(4 * with_bound > seeds.len(), "{with_bound} of {count} files were over a bound");
    assert!(10 * with_data > 9 * seeds.len(), "{with_data} of {count} delivered anything");
}
