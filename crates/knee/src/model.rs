//! `knee model`: BBR flows that probe in turn, as arithmetic.

use crate::arguments::Model;
use crate::failure::{Ending, Failure};
use crate::out_file::OutFile;
use crate::picture::Picture;
use crate::print::Print;
use knee_lab::{Converged, Probing, draw_starts};
use knee_present::words::{NONE, counted};
use knee_present::{Cell, Document, Table, number, text};
use knee_report::probing_svg;

/// Computes the model from each start; prints a table and writes a picture.
pub fn model(arguments: &Model) -> Result<Ending, Failure> {
    let probing = probing(arguments)?;
    let picture = Picture::of_file(&arguments.out)?;
    let out = OutFile::new(&arguments.out, arguments.force)?;
    let ends = probing.converge();
    let svg = probing_svg(&probing.picture(&ends), f64::from(arguments.width));
    out.write_bytes(&picture.encode(svg)?)?;
    let document = Document::default()
        .table(table(&ends))
        .words(format!("\n{}", conclusion(&probing, &ends)))
        .words(format!("\npicture  {}\n", arguments.out.display()));
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

fn probing(arguments: &Model) -> Result<Probing, Failure> {
    let starts = match arguments.start.as_slice() {
        [] => {
            let (flows, count) = (usize::from(arguments.flows), usize::from(arguments.starts));
            draw_starts(flows, count, arguments.seed)
        }
        given => given.iter().map(|start| start.0.clone()).collect(),
    };
    if let Some(other) = starts.iter().find(|start| start.len() != starts[0].len()) {
        let what = format!("a start has {} flows, another {}", starts[0].len(), other.len());
        return Err(Failure::Usage(what, "give each the same number of values".to_string()));
    }
    let Model { gain, tolerance, rounds, .. } = *arguments;
    Ok(Probing { gain, starts, rounds: usize::from(rounds), tolerance })
}

/// Returns one row for each start.
fn table(ends: &[Converged]) -> Table {
    let heads = [
        text("start"),
        number("rounds to fairness"),
        number("smallest share"),
        number("largest share"),
        number("largest estimate"),
        number("sum of estimates"),
    ];
    let mut table = Table::new(heads).called("starts");
    let share = |value: f64| Cell::shown(format!("{value:.4}"), value);
    for end in ends {
        let start: Vec<String> = end.start.iter().map(|part| format!("{part:.4}")).collect();
        table.row([
            start.join(" ").into(),
            end.rounds.map_or_else(|| NONE.into(), |rounds| Cell::count(rounds as u64)),
            share(end.shares[0]),
            share(end.shares[1]),
            share(end.estimates.iter().copied().fold(0.0, f64::max)),
            share(end.estimates.iter().sum()),
        ]);
    }
    table
}

/// Says where the flows end by the formula, and after how many rounds.
fn conclusion(probing: &Probing, ends: &[Converged]) -> String {
    let (flows, point) = (probing.flows(), probing.fixed_point());
    let mut rounds: Vec<usize> = ends.iter().filter_map(|end| end.rounds).collect();
    rounds.sort_unstable();
    let of = ends.len();
    let soon = match rounds.as_slice() {
        [] => format!("Within {} rounds no start is fair.", probing.rounds),
        [one] if of == 1 => format!("It is fair after {}.", counted(*one, "round")),
        all => format!(
            "{} of {of} starts are fair within {} rounds: after {} to {}, in the median {}.",
            all.len(),
            probing.rounds,
            all[0],
            all[all.len() - 1],
            all[(all.len() - 1) / 2]
        ),
    };
    format!(
        "With {flows} flows and a gain g of {}, estimates end at g/(g + {}) = {point:.4} of the link, \
         together {:.4}. {soon}\n",
        probing.gain,
        flows - 1,
        point * flows as f64
    )
}
