//! `knee compare`.

use crate::arguments::Compare;
use crate::failure::{Ending, Failure};
use crate::figures::{NONE, is_headline, named};
use crate::screen;
use crate::table::Table;
use knee_record::{Comparison, Difference, RunIdentity, read_summary};

/// Prints two runs number by number.
pub fn compare(arguments: &Compare) -> Result<Ending, Failure> {
    let (before, after) = (read_summary(&arguments.before)?, read_summary(&arguments.after)?);
    let comparison = Comparison::new(&before, &after);
    if arguments.json {
        screen::print_json(&comparison)?;
    } else {
        screen::print(&text(&comparison, arguments.all))?;
    }
    Ok(Ending::Done)
}

fn text(comparison: &Comparison, all: bool) -> String {
    let mut table = Table::new(&["measure", ">before", ">after", ">change", ">relative"]);
    let shown = comparison.differences.iter().filter(|one| all || is_headline(&one.measure));
    shown.for_each(|difference| table.row(row(difference)));
    let mut text = format!(
        "before  {}\nafter   {}\n\n{}",
        identity(&comparison.before),
        identity(&comparison.after),
        table.text()
    );
    for (only, names) in [("before", &comparison.only_before), ("after", &comparison.only_after)] {
        let names: Vec<&str> =
            names.iter().filter(|name| all || is_headline(name)).map(String::as_str).collect();
        if !names.is_empty() {
            text += &format!("only {only}: {}\n", names.join(", "));
        }
    }
    text
}

fn identity(run: &RunIdentity) -> String {
    format!("{} · {} · seed {}", run.name, run.ground, run.seed)
}

fn row(difference: &Difference) -> [String; 5] {
    let show = |value: f64| named(&difference.measure, value);
    let sign = if difference.absolute > 0.0 { "+" } else { "" };
    let relative = difference.relative.map(|part| format!("{:+.1} %", part * 100.0));
    [
        difference.measure.clone(),
        show(difference.before),
        show(difference.after),
        format!("{sign}{}", show(difference.absolute)),
        relative.unwrap_or_else(|| NONE.to_string()),
    ]
}
