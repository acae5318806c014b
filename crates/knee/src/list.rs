//! `knee list`.

mod keys;
mod measures;
mod registered;

use crate::arguments::{List, Listed};
use crate::failure::{Ending, Failure};
use crate::print::Print;
use knee_lab::{Grounds, built_in_studies, load_built_in_study};
use knee_present::{Cell, Document, Table, number, text};
use knee_scenario::{ReadyPath, ready_paths};

/// Lists the names that a scenario can use, or the studies.
pub fn list(arguments: &List) -> Result<Ending, Failure> {
    let document = match arguments.what {
        None => everything(),
        Some(Listed::Controllers) => registered::document(knee_cc::controllers()),
        Some(Listed::Schedulers) => registered::document(knee_multipath::sched::schedulers()),
        Some(Listed::Workloads) => keys::workloads(),
        Some(Listed::Measures) => measures::document(),
        Some(Listed::Aqm) => registered::document(knee_link::aqms()),
        Some(Listed::Keys) => keys::document(),
        Some(Listed::Paths) => paths(),
        Some(Listed::Studies) => studies()?,
    };
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

/// Names only, one paragraph for each list.
fn everything() -> Document {
    let lines = [
        ("controllers", registered::names(knee_cc::controllers())),
        ("schedulers", registered::names(knee_multipath::sched::schedulers())),
        ("workloads", keys::workload_names()),
        ("measures", measures::names()),
        ("aqm", registered::names(knee_link::aqms())),
        ("keys", keys::section_names()),
        ("paths", ready_paths().iter().map(|path| path.name.to_string()).collect()),
        ("studies", built_in_studies().into_iter().map(str::to_string).collect()),
    ];
    let mut table = Table::new([text("knee list"), text("names")]).called("names");
    lines.into_iter().for_each(|(what, names)| table.row([what.to_string(), names.join(", ")]));
    Document::default().table(table)
}

/// Ready-made paths: whose measurement each stands for, and its links.
fn paths() -> Document {
    let path = |path: ReadyPath| {
        let ReadyPath { name, says, source, measured, assumed, links } = path;
        let mut table = Table::new(["link", "key", "value"].map(text)).called(name);
        let mut link = "";
        for line in links.lines().filter(|line| !line.is_empty()) {
            match line.split_once(" = ") {
                Some((key, value)) => table.row([link, key, value]),
                None => link = line.trim_matches(['[', ']']),
            }
        }
        let words = format!(
            "{name}: {says}\n  measured: {measured}\n  assumed: {assumed}\n  source: {source}\n\n"
        );
        Document::default().words(words).table(table)
    };
    let all = ready_paths().into_iter().map(path);
    all.reduce(|all, next| all.words("\n").then(next)).unwrap_or_default()
}

fn studies() -> Result<Document, Failure> {
    let mut table = Table::new([
        text("study"),
        text("title"),
        number("runs"),
        number("claims"),
        text("source"),
    ])
    .called("studies");
    let grounds = Grounds::built_in();
    for name in built_in_studies() {
        let study = load_built_in_study(name, &grounds, 0)
            .map_err(|errors| Failure::Files(vec![errors]))?
            .study;
        let of_runs: usize = study.runs.iter().map(|run| run.scenario.claims.len()).sum();
        table.row([
            Cell::from(name),
            study.name.into(),
            Cell::count(study.runs.len() as u64),
            Cell::count((study.claims.len() + of_runs) as u64),
            study.source.into(),
        ]);
    }
    Ok(Document::default().table(table))
}
