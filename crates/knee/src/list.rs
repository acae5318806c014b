//! `knee list`.

mod keys;
mod measures;
mod registered;

use crate::arguments::{List, Listed};
use crate::failure::{Ending, Failure};
use crate::screen;
use crate::table::Table;
use knee_lab::{Grounds, built_in_studies, load_built_in_study};

/// Lists what a scenario can name, or the studies.
pub fn list(arguments: &List) -> Result<Ending, Failure> {
    let text = match arguments.what {
        None => everything(),
        Some(Listed::Controllers) => registered::text(knee_cc::controllers()),
        Some(Listed::Schedulers) => registered::text(knee_sched::schedulers()),
        Some(Listed::Workloads) => keys::workloads(),
        Some(Listed::Measures) => measures::text(),
        Some(Listed::Aqm) => registered::text(knee_link::aqms()),
        Some(Listed::Keys) => keys::text(),
        Some(Listed::Studies) => studies()?,
    };
    screen::print(&text)?;
    Ok(Ending::Done)
}

/// Names alone, a paragraph for each list.
fn everything() -> String {
    let lines = [
        ("controllers", registered::names(knee_cc::controllers())),
        ("schedulers", registered::names(knee_sched::schedulers())),
        ("workloads", keys::workload_names()),
        ("measures", measures::names()),
        ("aqm", registered::names(knee_link::aqms())),
        ("keys", keys::section_names()),
        ("studies", built_in_studies().into_iter().map(str::to_string).collect()),
    ];
    let mut table = Table::new(&["knee list", "names"]);
    lines.into_iter().for_each(|(what, names)| table.row([what.to_string(), names.join(", ")]));
    table.text()
}

fn studies() -> Result<String, Failure> {
    let mut table = Table::new(&["study", "title", ">runs", ">claims", "source"]);
    let grounds = Grounds::built_in();
    for name in built_in_studies() {
        let study = load_built_in_study(name, &grounds)
            .map_err(|errors| Failure::Files(vec![errors]))?
            .study;
        let of_runs: usize = study.runs.iter().map(|run| run.scenario.claims.len()).sum();
        table.row([
            name.to_string(),
            study.name,
            study.runs.len().to_string(),
            (study.claims.len() + of_runs).to_string(),
            study.source,
        ]);
    }
    Ok(table.text())
}
