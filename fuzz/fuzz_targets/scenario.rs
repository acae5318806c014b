//! Scenarios: reading any input gives a scenario that resolves to itself, or problems with their
//! places and what to write instead.

#![no_main]

use knee_scenario::{Embedded, Errors, Scenario, Source, load_study, parse};
use libfuzzer_sys::fuzz_target;

const FILES: &[(&str, &[u8])] = &[("a.down", b"1\n5\n9\n"), ("a.loss", b"0010")];

fn read(text: &str) -> Result<Scenario, Errors> {
    parse(text, &Source { name: "fuzz.toml", loader: &Embedded(FILES) }, &[])
}

/// Reads a resolved scenario, next to copies of its files.
fn read_again(scenario: &Scenario) -> Result<Scenario, Errors> {
    let files: Vec<(&str, &[u8])> =
        scenario.files.iter().map(|file| (file.name.as_str(), &file.bytes[..])).collect();
    parse(&scenario.resolved, &Source { name: "fuzz.toml", loader: &Embedded(&files) }, &[])
}

fn check(errors: &Errors) {
    assert!(!errors.problems.is_empty());
    for problem in &errors.problems {
        assert!(errors.source_of(problem).text.get(problem.span.clone()).is_some());
        assert!(!problem.message.contains('\n'), "{}", problem.message);
    }
    assert!(!errors.to_string().is_empty());
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match read(text) {
        Ok(scenario) => {
            let again = read_again(&scenario).expect("a resolved scenario is right");
            assert_eq!(again.resolved, scenario.resolved);
            for path in 0..scenario.paths.len() {
                let _ = (scenario.base_rtt(path), scenario.path_rate(path));
            }
        }
        Err(errors) => check(&errors),
    }
    let study = Embedded(&[("study.toml", data), ("a.toml", data)]);
    if let Err(errors) = load_study(&study, "study.toml", &[]) {
        check(&errors);
    }
});
