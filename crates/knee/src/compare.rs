//! `knee compare`.

use crate::arguments::Compare;
use crate::failure::{Ending, Failure};
use crate::figures::{is_headline, named};
use crate::screen;
use crate::table::Table;
use knee_lab::words::NONE;
use knee_record::{Comparison, Difference, PairedScale, RunIdentity, Unit};

/// Prints two runs, or the repeats of two, number by number.
pub fn compare(arguments: &Compare) -> Result<Ending, Failure> {
    let comparison = knee_lab::compare(&arguments.before, &arguments.after)?;
    if arguments.json {
        screen::print_json(&comparison)?;
    } else {
        screen::print(&text(&comparison, arguments.all))?;
    }
    Ok(Ending::Done)
}

fn text(comparison: &Comparison, all: bool) -> String {
    let mut table = match comparison.pairs {
        0 => Table::new(&["measure", ">before", ">after", ">change", ">relative"]),
        _ => Table::new(&["measure", ">before", ">after", ">after over before", "difference"]),
    };
    let shown = comparison.differences.iter().filter(|one| all || is_headline(&one.measure));
    shown.for_each(|difference| match comparison.pairs {
        0 => table.row(row(difference)),
        _ => table.row(paired_row(difference)),
    });
    let mut text = format!(
        "before  {}\nafter   {}\n\n{}",
        identity(&comparison.before, comparison.pairs),
        identity(&comparison.after, comparison.pairs),
        table.text()
    );
    for (only, names) in [("before", &comparison.only_before), ("after", &comparison.only_after)] {
        let names: Vec<&str> =
            names.iter().filter(|name| all || is_headline(name)).map(String::as_str).collect();
        if !names.is_empty() {
            text += &format!("only {only}: {}\n", names.join(", "));
        }
    }
    text + &note(comparison)
}

fn note(comparison: &Comparison) -> String {
    match comparison.pairs {
        0 => "One run each: what differs may be chance. Run both with --repeat 5.\n".to_string(),
        pairs => format!(
            "{pairs} pairs of runs with the same seed; means, ratios with their 95 % intervals. \
             A difference is one with all {} comparisons considered (Holm).\n",
            comparison.comparisons
        ),
    }
}

fn identity(run: &RunIdentity, pairs: usize) -> String {
    match pairs {
        0 => format!("{} · {} · seed {}", run.name, run.ground, run.seed),
        pairs => format!("{} · {} · {pairs} runs", run.name, run.ground),
    }
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

fn paired_row(difference: &Difference) -> [String; 5] {
    let show = |value: f64| named(&difference.measure, value);
    let number = |value: f64| Unit::Number.show((value * 1e3).round() / 1e3);
    let pairs = difference.compared.as_ref();
    let ratio = pairs.filter(|pairs| pairs.scale == PairedScale::Ratio).and_then(|pairs| {
        let (low, high) = pairs.low.zip(pairs.high)?;
        Some(format!("{} ({} to {})", number(pairs.estimate?), number(low), number(high)))
    });
    let verdict = match (pairs, difference.repeats_advised) {
        (Some(pairs), _) if pairs.is_same() => "the same".to_string(),
        (Some(pairs), _) if pairs.differs() && pairs.first_is_more() => "more".to_string(),
        (Some(pairs), _) if pairs.differs() => "less".to_string(),
        (Some(pairs), Some(needed)) if needed > pairs.pairs as u64 => {
            format!("none seen; --repeat {needed} would show 5 %")
        }
        (Some(_), Some(_)) => "none of 5 %".to_string(),
        _ => "none seen".to_string(),
    };
    let ratio = ratio.unwrap_or_else(|| NONE.to_string());
    [difference.measure.clone(), show(difference.before), show(difference.after), ratio, verdict]
}
