//! Runs random scenarios, and collects what each part of them recorded, by name.

use knee_record::{
    ConnectionRecord, FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, Records,
};
use knee_scenario::{Embedded, Scenario, Source};
use knee_sim::Control;
use std::collections::BTreeMap;
use std::io::Write;

/// Scenarios after which a test of more than usual says how far it is.
const PROGRESS_STEP: u64 = 1000;

/// Runs the seeds of a test: `count` from zero, or as set in the environment:
/// `KNEE_SCENARIOS=20000` for more, which says how far it is, `KNEE_FIRST_SEED=5000` to begin there,
/// `KNEE_SEED=17` for a single one.
pub fn each_seed(count: u64, check: impl Fn(u64) + Sync) {
    if let Some(seed) = number("KNEE_SEED") {
        return check(seed);
    }
    let wanted = number("KNEE_SCENARIOS");
    let (first, count) = (first_seed(), wanted.unwrap_or(count));
    for done in 1..=count {
        let seed = first + done - 1;
        check(seed);
        if wanted.is_some() && (done % PROGRESS_STEP == 0 || done == count) {
            tell_progress(&format!("{done} of {count} scenarios, the last KNEE_SEED={seed}"));
        }
    }
}

/// Writes past the test harness, which keeps what the macros print until a test fails.
fn tell_progress(words: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("one of several threads");
    writeln!(std::io::stderr(), "{test}: {words}").expect("standard error takes it");
}

/// Returns the seed with which random tests begin: zero, or `KNEE_FIRST_SEED`.
pub fn first_seed() -> u64 {
    number("KNEE_FIRST_SEED").unwrap_or(0)
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

pub fn read(text: &str, files: &[(&str, &[u8])]) -> Scenario {
    let source = Source { name: "random.toml", loader: &Embedded(files) };
    knee_scenario::parse(text, &source, &[]).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

pub fn run(scenario: &Scenario) -> Records {
    knee_sim::run(scenario, &Control::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Records of one flow.
#[derive(Debug, Default, PartialEq)]
pub struct FlowTold {
    pub record: FlowRecord,
    pub samples: Vec<FlowSample>,
    pub paths: Vec<PathRecord>,
    pub path_samples: Vec<FlowSample>,
    pub objects: Vec<ObjectRecord>,
    pub connections: Vec<ConnectionRecord>,
}

/// Records of everything, by name; without the positions in the file.
#[derive(Debug, Default, PartialEq)]
pub struct RunRows {
    pub flows: BTreeMap<(String, u32), FlowTold>,
    pub links: BTreeMap<String, Vec<LinkSample>>,
}

impl RunRows {
    pub fn of(scenario: &Scenario, records: Records) -> RunRows {
        let key = |flow: u32| {
            let flow = &scenario.flows[flow as usize];
            (flow.name.clone(), flow.index as u32)
        };
        // Paths are numbered within their flow.
        let path = |flow: u32, path: u16| {
            let paths = &scenario.flows[flow as usize].paths;
            paths.iter().position(|known| *known == usize::from(path)).expect("it is the flow's")
        };
        let mut told = RunRows::default();
        for record in records.flows {
            let flow = told.flows.entry(key(record.flow)).or_default();
            flow.record = FlowRecord { flow: 0, ..record };
        }
        for row in records.samples.iter() {
            let position = path(row.flow, row.path) as u16;
            told.flow(key(row.flow)).samples.push(FlowSample { flow: 0, path: position, ..row });
        }
        for row in records.path_samples.iter() {
            let position = path(row.flow, row.path) as u16;
            told.flow(key(row.flow)).path_samples.push(FlowSample {
                flow: 0,
                path: position,
                ..row
            });
        }
        // Rows of one time are in the order of all paths of the scenario.
        for flow in told.flows.values_mut() {
            flow.path_samples.sort_by_key(|row| (row.time_ns, row.path));
        }
        for row in records.paths {
            let position = path(row.flow, row.path) as u16;
            told.flow(key(row.flow)).paths.push(PathRecord { flow: 0, path: position, ..row });
        }
        for row in records.objects {
            told.flow(key(row.flow)).objects.push(ObjectRecord { flow: 0, ..row });
        }
        for row in records.connections {
            let flow = row.flow.expect("it is a flow's");
            told.flow(key(flow)).connections.push(ConnectionRecord { flow: None, ..row });
        }
        for row in records.links.iter() {
            let rows = told.links.entry(records.link_names[row.link as usize].clone()).or_default();
            rows.push(LinkSample { link: 0, ..row });
        }
        told
    }

    fn flow(&mut self, key: (String, u32)) -> &mut FlowTold {
        self.flows.get_mut(&key).expect("each flow has a record")
    }

    /// Returns the records of parts whose names begin with `prefix`, without the prefix.
    pub fn under(mut self, prefix: &str) -> RunRows {
        let short = |name: &str| name.replace(prefix, "");
        let flows = std::mem::take(&mut self.flows).into_iter();
        let links = std::mem::take(&mut self.links).into_iter();
        let flows = flows.filter(|((name, _), _)| name.starts_with(prefix));
        RunRows {
            flows: flows
                .map(|((name, index), mut told)| {
                    told.record.name = short(&told.record.name);
                    told.record.path = short(&told.record.path);
                    told.paths.iter_mut().for_each(|path| path.name = short(&path.name));
                    ((short(&name), index), told)
                })
                .collect(),
            links: links
                .filter(|(name, _)| name.starts_with(prefix))
                .map(|(name, rows)| (short(&name), rows))
                .collect(),
        }
    }

    /// Reports the first difference; printing everything would be too much.
    pub fn assert_same(&self, other: &RunRows, what: &str) {
        let names = |told: &RunRows| told.flows.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(other), "{what}");
        for (name, told) in &self.flows {
            let other = &other.flows[name];
            assert_eq!(told.record, other.record, "{what}: flow {name:?}");
            assert_same_rows(&told.connections, &other.connections, what, name);
            assert_same_rows(&told.objects, &other.objects, what, name);
            assert_same_rows(&told.paths, &other.paths, what, name);
            assert_same_rows(&told.samples, &other.samples, what, name);
            assert_same_rows(&told.path_samples, &other.path_samples, what, name);
        }
        for (name, rows) in &self.links {
            assert_same_rows(rows, &other.links[name], what, name);
        }
        assert_eq!(self.links.len(), other.links.len(), "{what}");
    }
}

fn assert_same_rows<T: PartialEq + std::fmt::Debug>(
    rows: &[T],
    others: &[T],
    what: &str,
    name: &impl std::fmt::Debug,
) {
    for (row, other) in rows.iter().zip(others) {
        assert_eq!(row, other, "{what}: {name:?}");
    }
    assert_eq!(rows.len(), others.len(), "{what}: rows of {name:?}");
}
