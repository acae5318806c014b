//! "Did you mean": the known name nearest to an unknown one.

/// Names that are compared with a wrong one.
const COMPARED_MAX: usize = 1000;

/// What to write instead of `wrong`: the nearest of `known`, or all of them
/// when none is near and they are few.
pub(crate) fn instead<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(near) = nearest(wrong, &known) {
        return format!("did you mean \"{near}\"?");
    }
    match known.as_slice() {
        [] => "there is none".to_string(),
        [one] => format!("write \"{one}\""),
        many => format!("write one of {}", listed(many)),
    }
}

/// Names in quotes, at most twenty.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(20).map(|name| format!("\"{name}\"")).collect();
    let more = if names.len() > 20 { " …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The known name that is nearest, if a slip of the fingers explains the
/// difference.
fn nearest<'n>(wrong: &str, known: &[&'n str]) -> Option<&'n str> {
    let wrong: String = wrong.to_lowercase().chars().take(64).collect();
    let distance = |name: &str| edits(&wrong, &name.to_lowercase());
    let slip = (wrong.chars().count() / 3).max(1);
    let known = known.iter().take(COMPARED_MAX);
    let (name, edits) = known.map(|name| (*name, distance(name))).min_by_key(|(_, d)| *d)?;
    (edits <= slip).then_some(name)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one
/// text into the other (optimal string alignment).
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}
