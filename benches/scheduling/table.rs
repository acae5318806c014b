//! Distributions as a table.

/// Ratios over all cells.
pub struct Column {
    pub mean: f64,
    sorted: Vec<f64>,
}

impl Column {
    pub fn of(mut ratios: Vec<f64>) -> Column {
        ratios.sort_by(f64::total_cmp);
        Column { mean: ratios.iter().sum::<f64>() / ratios.len() as f64, sorted: ratios }
    }

    /// Returns the value below which this fraction lies.
    pub fn quantile(&self, part: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1) as f64;
        self.sorted.get((part * last).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// Returns how many ratios are above a value.
    pub fn above(&self, value: f64) -> usize {
        self.sorted.iter().filter(|ratio| **ratio > value).count()
    }
}

/// Prints a row: its name, then times relative to T*, to the best single path and to T_cc.
pub fn print(title: &str, cells: usize, rows: &[(String, Column, Column, Column)]) {
    println!("{title} ({cells} cells)\n");
    println!(
        "| scheduler | over T*: mean / median / p95 / worst | over best single: median / p95 / \
         worst | cells > 1.02 | over T_cc: mean / median / p95 / worst |\n\
         | --- | --- | --- | --- | --- |"
    );
    for (name, bound, best, perfect) in rows {
        println!(
            "| {name} | {:.3} / {} | {} | {} | {} |",
            bound.mean,
            spread(bound),
            spread(best),
            best.above(1.02),
            if perfect.mean.is_nan() {
                String::new()
            } else {
                format!("{:.3} / {}", perfect.mean, spread(perfect))
            },
        );
    }
    println!();
}

fn spread(column: &Column) -> String {
    let [median, high, worst] = [0.5, 0.95, 1.0].map(|part| column.quantile(part));
    format!("{median:.3} / {high:.2} / {worst:.2}")
}
