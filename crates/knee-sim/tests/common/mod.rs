//! Helpers shared by the simulator's tests: one bottleneck as a scenario text,
//! and the measures of its run.

#![allow(dead_code)] // each test program uses a part of it

use knee_record::{Records, RunView, Window, measure};
use knee_scenario::{Embedded, Measure, Scenario, Source, Statistic, parse};
use knee_sim::Control;
use knee_units::Time;

/// Payload bytes of a full segment, the default.
pub const MSS: f64 = 1448.0;
/// Ratio of payload to IP bytes of a full segment with timestamps.
pub const PAYLOAD: f64 = 1448.0 / 1500.0;

/// One bottleneck link, its propagation delay split over both directions.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Rate of the link, IP bytes.
    pub mbit: f64,
    /// Round-trip propagation delay.
    pub rtt_ms: f64,
    /// Buffer, in the syntax of scenarios.
    pub buffer: String,
    /// Additional lines of the link.
    pub link: String,
    /// Settings of all ends: lines of `[transport]`.
    pub transport: String,
    /// Flows: controller (a TOML value), count, seconds between starts.
    pub flows: Vec<(String, usize, f64)>,
    /// Simulated time.
    pub seconds: f64,
    /// Seconds excluded from all measures.
    pub warmup: f64,
    pub seed: u64,
}

impl Dumbbell {
    /// A link with one BDP of buffer, for a minute, five seconds of it excluded.
    pub fn new(mbit: f64, rtt_ms: f64) -> Dumbbell {
        Dumbbell {
            mbit,
            rtt_ms,
            buffer: "1 BDP".to_string(),
            link: String::new(),
            transport: String::new(),
            flows: Vec::new(),
            seconds: 60.0,
            warmup: 5.0,
            seed: 1,
        }
    }

    pub fn buffer(mut self, buffer: &str) -> Dumbbell {
        self.buffer = buffer.to_string();
        self
    }

    pub fn link(mut self, line: &str) -> Dumbbell {
        self.link += line;
        self.link += "\n";
        self
    }

    /// Independent loss in the direction of the data.
    pub fn loss(self, share: f64) -> Dumbbell {
        if share == 0.0 { self } else { self.link(&format!("loss = \"{} %\"", 100.0 * share)) }
    }

    pub fn transport(mut self, line: &str) -> Dumbbell {
        self.transport += line;
        self.transport += "\n";
        self
    }

    pub fn flows(self, controller: &str, count: usize) -> Dumbbell {
        self.staggered(controller, count, 0.0)
    }

    pub fn staggered(mut self, controller: &str, count: usize, interval: f64) -> Dumbbell {
        self.flows.push((format!("{controller:?}"), count, interval));
        self
    }

    pub fn lasting(mut self, seconds: f64, warmup: f64) -> Dumbbell {
        (self.seconds, self.warmup) = (seconds, warmup);
        self
    }

    pub fn seed(mut self, seed: u64) -> Dumbbell {
        self.seed = seed;
        self
    }

    /// Returns the rate times the propagation round-trip time, in IP bytes.
    pub fn bdp(&self) -> f64 {
        self.mbit * 1e6 / 8.0 * self.rtt_ms / 1e3
    }

    pub fn scenario(&self) -> Scenario {
        Dumbbell::read(&self.text())
    }

    /// Returns the scenario with a rate that changes: seconds and Mbit/s.
    pub fn stepping(&self, steps: &[(f64, f64)]) -> Scenario {
        let step =
            |(at, mbit): &(f64, f64)| format!("{{ at = \"{at} s\", rate = \"{mbit} Mbit/s\" }}");
        let steps: Vec<String> = steps.iter().map(step).collect();
        let constant = format!("\nrate = \"{} Mbit/s\"", self.mbit);
        Dumbbell::read(&self.text().replace(&constant, &format!("\nrate = [{}]", steps.join(", "))))
    }

    pub fn read(text: &str) -> Scenario {
        let source = Source { name: "dumbbell.toml", loader: &Embedded(&[]) };
        parse(text, &source, &[]).unwrap_or_else(|errors| panic!("{:?}\n{text}", errors.problems))
    }

    fn text(&self) -> String {
        let one_way = self.rtt_ms / 2.0;
        let mut text = format!(
            "name = \"dumbbell\"\nduration = \"{:.3} s\"\nseed = {}\nwarmup = \"{:.3} s\"\n\
             [transport]\n{}\n\
             [link.bottleneck]\nrate = \"{} Mbit/s\"\ndelay = \"{one_way} ms\"\n\
             buffer = \"{}\"\n{}\n\
             [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"{one_way} ms\"\n",
            self.seconds, self.seed, self.warmup, self.transport, self.mbit, self.buffer, self.link,
        );
        for (number, (controller, count, interval)) in self.flows.iter().enumerate() {
            text += &format!(
                "[[flow]]\nname = \"f{number}\"\ncc = {controller}\ncount = {count}\n\
                 start_interval = \"{interval} s\"\n",
            );
        }
        text
    }

    pub fn run(&self) -> Run {
        let scenario = self.scenario();
        let records = knee_sim::run(&scenario, &Control::default()).unwrap();
        Run { scenario, records }
    }
}

/// Results of a run.
pub struct Run {
    pub scenario: Scenario,
    pub records: Records,
}

impl Run {
    /// Returns a measure of flows or of the link, after the warm-up of the run.
    pub fn measure(&self, of: &str, what: Measure) -> f64 {
        let view = RunView::new(&self.records, Time::ZERO);
        let window = Window { from: Some(self.scenario.warmup), until: None };
        measure(&view, &what, of, window).unwrap()
    }

    /// Returns the payload delivered in order, Mbit/s, by all flows.
    pub fn goodput(&self) -> f64 {
        self.measure("*", Measure::Goodput) / 1e6
    }

    /// Returns the median smoothed RTT, ms.
    pub fn median_rtt(&self) -> f64 {
        1e3 * self.measure("*", Measure::SmoothedRtt(Statistic::P50))
    }

    /// Returns the ratio of retransmitted to sent bytes.
    pub fn retransmitted(&self) -> f64 {
        self.measure("*", Measure::RetransmitRatio)
    }

    pub fn jain(&self) -> f64 {
        self.measure("*", Measure::Jain)
    }
}

/// Returns the median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Maps `work` over the cases on both cores and keeps the order: runs are
/// independent of each other.
pub fn in_parallel<T: Sync, R: Send>(cases: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some((index, cases.get(index)?))
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            while let Some((index, case)) = take() {
                done.push((index, work(case)));
            }
            done
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
