//! Runs all schedulers over all cells, and prints the tables.

use crate::cells::{Cell, Condition};
use crate::perfect::Curves;
use crate::runs::{Contender, completion, run, side_by_side, value};
use crate::table::{Column, print};
use knee_scenario::Measure;
use std::collections::BTreeMap;

/// Returns whether a cell belongs to a group of the table.
type Belongs = fn(&Cell) -> bool;

/// References for a cell, seconds.
struct Baseline {
    /// T*, the lower bound for any scheduler and controller.
    bound: f64,
    best_path: f64,
    /// T_cc; absent with a small window, which it does not model.
    perfect: Option<f64>,
}

/// Times of one scheduler, cell by cell; absent if it does not support that many paths.
type Times = Vec<Option<f64>>;

/// Runs everything and prints the tables.
pub fn compare(cells: &[Cell], contenders: &[Contender], worst: usize) {
    let baselines = baselines(cells);
    let mut jobs: Vec<(usize, usize)> = Vec::new();
    for (number, contender) in contenders.iter().enumerate() {
        let serves = |cell: &Cell| contender.label != "dems" || cell.paths.len() == 2;
        let served = (0..cells.len()).filter(|cell| serves(&cells[*cell]));
        jobs.extend(served.map(|cell| (cell, number)));
    }
    // The longest first, so that none runs alone at the end.
    jobs.sort_by_key(|(cell, _)| std::cmp::Reverse(cells[*cell].bytes));
    let done = side_by_side(&jobs, |(cell, number)| {
        let cell = &cells[*cell];
        mean_of_seeds(cell, |seed| completion(&run(&cell.over_all(seed, &contenders[*number]))))
    });
    let mut times: Vec<Times> = vec![vec![None; cells.len()]; contenders.len()];
    for ((cell, number), time) in jobs.iter().zip(done) {
        times[*number][*cell] = Some(time);
    }
    let groups: [(&str, Belongs); 3] = [
        ("All cells", |_| true),
        ("Two paths", |cell| cell.paths.len() == 2),
        ("64 KiB", |cell| cell.condition == Condition::Small),
    ];
    for (title, belongs) in groups {
        let chosen: Vec<usize> = (0..cells.len()).filter(|cell| belongs(&cells[*cell])).collect();
        table(title, &chosen, &baselines, contenders, &times);
    }
    within_two_per_cent(cells, contenders, &times);
    if let Some((first, times)) = contenders.first().zip(times.first()) {
        list_worst(cells, &first.label, times, &baselines, worst);
    }
}

fn mean_of_seeds(cell: &Cell, time: impl Fn(u64) -> f64) -> f64 {
    (1..=cell.seeds()).map(time).sum::<f64>() / cell.seeds() as f64
}

fn baselines(cells: &[Cell]) -> Vec<Baseline> {
    // The curves of paths do not depend on the size, so one run serves all sizes.
    let mut groups: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        if cell.condition != Condition::Small {
            let group = groups.entry(cell.always_fed(0, 0, 0)).or_insert((index, 0));
            group.1 = group.1.max(cell.bytes);
        }
    }
    let keys: Vec<(String, usize, u64)> =
        groups.into_iter().map(|(key, (cell, bytes))| (key, cell, bytes)).collect();
    let curves: BTreeMap<&str, Vec<Curves>> = {
        let of = |(_, cell, bytes): &(String, usize, u64)| {
            let cell = &cells[*cell];
            (1..=cell.seeds()).map(|seed| Curves::of(cell, seed, *bytes)).collect()
        };
        let curves: Vec<Vec<Curves>> = side_by_side(&keys, of);
        keys.iter().map(|(key, ..)| key.as_str()).zip(curves).collect()
    };
    side_by_side(cells, |cell| {
        let alone = (0..cell.paths.len())
            .map(|path| mean_of_seeds(cell, |seed| completion(&run(&cell.over_one(seed, path)))));
        let records = run(&cell.over_all(1, &Contender::read("minrtt")));
        let perfect = curves.get(cell.always_fed(0, 0, 0).as_str()).filter(|_| {
            // With a small window, a cell would share its name with the curves of an ample one.
            cell.condition != Condition::Small
        });
        Baseline {
            bound: completion(&records) / value(&records, &Measure::CompletionOverBound),
            best_path: alone.fold(f64::INFINITY, f64::min),
            perfect: perfect.map(|curves| {
                let sum: f64 = curves.iter().map(|curves| curves.completion(cell.bytes)).sum();
                sum / curves.len() as f64
            }),
        }
    })
}

fn table(
    title: &str,
    chosen: &[usize],
    baselines: &[Baseline],
    contenders: &[Contender],
    times: &[Times],
) {
    let mut rows = Vec::new();
    for (contender, times) in contenders.iter().zip(times) {
        let served: Option<Vec<(f64, &Baseline)>> =
            chosen.iter().map(|cell| Some((times[*cell]?, &baselines[*cell]))).collect();
        // A scheduler that does not support all of them is not compared.
        if let Some(served) = served {
            rows.push(row(&contender.label, &served));
        }
    }
    rows.sort_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let best: Vec<(f64, &Baseline)> =
        chosen.iter().map(|cell| (baselines[*cell].best_path, &baselines[*cell])).collect();
    rows.push(row("best single path", &best));
    let perfect: Vec<(f64, &Baseline)> = chosen
        .iter()
        .filter_map(|cell| Some((baselines[*cell].perfect?, &baselines[*cell])))
        .collect();
    if !perfect.is_empty() {
        rows.push(row("T_cc (ample and lossy)", &perfect));
    }
    print(title, chosen.len(), &rows);
}

fn row(label: &str, served: &[(f64, &Baseline)]) -> (String, Column, Column, Column) {
    let over = |against: &dyn Fn(&Baseline) -> Option<f64>| {
        Column::of(served.iter().filter_map(|(time, base)| Some(time / against(base)?)).collect())
    };
    (
        label.to_owned(),
        over(&|base| Some(base.bound)),
        over(&|base| Some(base.best_path)),
        over(&|base| base.perfect),
    )
}

/// Prints how often each scheduler is within 2 % of the best of all.
fn within_two_per_cent(cells: &[Cell], contenders: &[Contender], times: &[Times]) {
    let best =
        |cell: usize| times.iter().filter_map(|times| times[cell]).fold(f64::INFINITY, f64::min);
    let parts: Vec<String> = contenders
        .iter()
        .zip(times)
        .map(|(contender, times)| {
            let near = |cell: &usize| times[*cell].is_some_and(|time| time <= 1.02 * best(*cell));
            format!("{} {}", contender.label, (0..cells.len()).filter(near).count())
        })
        .collect();
    println!("Within 2 % of the best of these, of {}: {}\n", cells.len(), parts.join(", "));
}

fn list_worst(cells: &[Cell], label: &str, times: &Times, baselines: &[Baseline], count: usize) {
    let mut behind: Vec<(f64, usize)> = times
        .iter()
        .enumerate()
        .filter_map(|(cell, time)| Some(((*time)? / baselines[cell].best_path, cell)))
        .collect();
    behind.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{label}, most behind the best single path:");
    for (ratio, cell) in behind.iter().take(count) {
        let (time, best) = (times[*cell].unwrap_or(f64::NAN), baselines[*cell].best_path);
        println!("  {ratio:.3}  {time:.4} s for {best:.4} s  {}", cells[*cell].name());
    }
}
