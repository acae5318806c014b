//! Runs of cells, in parallel.

use knee_record::{Records, RunView, Window, measure};
use knee_scenario::{Embedded, Loader, Measure, Scenario, Source};
use knee_sim::Control;
use knee_units::Time;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A scheduler of the table: its label, its notation in a scenario, and whether reinjection is on.
pub struct Contender {
    pub label: String,
    pub scheduler: String,
    pub reinjection: bool,
}

impl Contender {
    /// Parses `name`, or `name-` for one without reinjection; `name { key = value }` with
    /// parameters.
    pub fn read(text: &str) -> Contender {
        let (name, reinjection) = match text.strip_suffix('-') {
            Some(name) => (name, false),
            None => (text, true),
        };
        let scheduler = match name.split_once(' ') {
            Some((name, parameters)) => {
                let inner = parameters.trim().trim_start_matches('{').trim_end_matches('}');
                format!("{{ name = \"{name}\", {inner} }}")
            }
            None => format!("\"{name}\""),
        };
        Contender { label: text.to_owned(), scheduler, reinjection }
    }
}

/// Runs a scenario without files.
pub fn run(text: &str) -> Records {
    run_with(text, &Embedded(&[]))
}

/// Runs a scenario.
pub fn run_with(text: &str, loader: &dyn Loader) -> Records {
    let scenario = read(text, loader);
    knee_sim::run(&scenario, &Control::default()).expect("it runs")
}

/// Parses a scenario without files.
pub fn scenario_of(text: &str) -> Scenario {
    read(text, &Embedded(&[]))
}

fn read(text: &str, loader: &dyn Loader) -> Scenario {
    let source = Source { name: "scheduling.toml", loader };
    knee_scenario::parse(text, &source, &[])
        .unwrap_or_else(|errors| panic!("{:?}\n{text}", errors.problems))
}

/// Returns the seconds until the only file of a run is complete.
pub fn completion(records: &Records) -> f64 {
    records.flows[0].completion_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e9)
}

/// Returns a measure of the only flow of a run.
pub fn value(records: &Records, what: &Measure) -> f64 {
    let view = RunView::new(records, Time::ZERO);
    measure(&view, what, "flow", Window::default()).unwrap_or(f64::NAN)
}

/// Maps items on all cores, and keeps the order.
pub fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        Some((index, items.get(index)?))
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            while let Some((index, item)) = take() {
                done.push((index, work(item)));
            }
            done
        };
        let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no run panics")).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
