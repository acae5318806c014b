//! Many scenarios from one text: what is read and parsed once, and that nothing else differs.

use knee_scenario::{Algorithms, FileCache, Loader, Override, Source, parse, parse_cached};
use std::cell::RefCell;
use std::collections::BTreeMap;

const TEXT: &str = "\
    duration = \"20 s\"\n\
    start_jitter = \"1 s\"\n\
    [link.a]\n\
    rate = { trace = \"a.trace\", offset = \"random\" }\n\
    loss = { file = \"a.loss\" }\n\
    buffer = \"50 kB\"\n\
    [path.a]\n\
    forward = [\"a\"]\n\
    reverse_delay = \"5 ms\"\n\
    [[flow]]\n\
    path = \"a\"\n\
    cc = \"cubic\"\n\
    count = 3\n\
    workload = { mix = { arrival_interval = \"100 ms\", sizes = { log = \"a.log\" } } }\n\
    [[flow]]\n\
    name = \"page\"\n\
    path = \"a\"\n\
    cc = \"cubic\"\n\
    workload = { page = { objects = \"a.csv\" } }\n";

/// The files of the text; counts how often each is loaded.
#[derive(Default)]
struct Counted(RefCell<BTreeMap<String, usize>>);

impl Loader for Counted {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        *self.0.borrow_mut().entry(name.to_string()).or_default() += 1;
        let text = match name {
            "a.trace" => "1\n2\n3\n900\n",
            "a.loss" => "0\n1\n0\n",
            "a.log" => "1000\n2000\n",
            "a.csv" => "name,bytes,after\na,5000,\nb,6000,a\n",
            _ => return Err("there is no such file".to_string()),
        };
        Ok(text.as_bytes().to_vec())
    }
}

fn with_seed(seed: u64) -> [Override; 1] {
    [Override::new("seed", &seed.to_string())]
}

#[test]
fn scenarios_of_all_seeds_load_each_file_once() {
    let (files, cache) = (Counted::default(), FileCache::default());
    let source = Source { name: "a.toml", loader: &files };
    let cached = |overrides: &[Override]| {
        parse_cached(TEXT, &source, overrides, Algorithms::built_in(), &cache)
    };
    let all: Vec<_> = (1..=10).map(|seed| cached(&with_seed(seed)).unwrap()).collect();
    let counts: Vec<usize> = files.0.borrow().values().copied().collect();
    assert_eq!(counts, [1; 4]);
    // Start times and the offset in the trace are drawn anew for each seed.
    let starts = |at: usize| all[at].flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    assert_ne!(starts(0), starts(1));
    for (seed, scenario) in (1..).zip(&all) {
        assert_eq!(*scenario, parse(TEXT, &source, &with_seed(seed)).unwrap());
    }
    // As does any other override.
    let other = [Override::new("link.a.delay", "7 ms")];
    assert_eq!(cached(&other).unwrap(), parse(TEXT, &source, &other).unwrap());
    // A mistake is reported in the same place, with or without what was read before.
    let mistake = [Override::new("flow.page.cc", "cubicle")];
    let [known, anew] = [cached(&mistake), parse(TEXT, &source, &mistake)]
        .map(|read| read.unwrap_err().to_string());
    assert_eq!(known, anew);
}

#[test]
fn a_file_that_cannot_be_read_is_tried_once() {
    let (files, cache) = (Counted::default(), FileCache::default());
    let text = TEXT.replace("a.log", "missing.log");
    let source = Source { name: "a.toml", loader: &files };
    let read = || parse_cached(&text, &source, &[], Algorithms::built_in(), &cache);
    let [first, second] = [read(), read()].map(|read| read.unwrap_err().to_string());
    assert!(first.contains("missing.log") && first == second, "{first}");
    assert_eq!(files.0.borrow()["missing.log"], 1);
}
