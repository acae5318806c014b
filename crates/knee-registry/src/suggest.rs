//! "Did you mean": the known name nearest to an unknown one.

/// Names that are compared with a wrong one.
const COMPARED_MAX: usize = 1000;
/// Characters of a wrong name that are compared.
const LENGTH_MAX: usize = 64;
/// Names that are listed.
const LISTED_MAX: usize = 20;

/// What to write instead of `wrong`: the nearest of `known`, or all of them
/// when none is near and they are few.
pub fn did_you_mean<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(near) = nearest(wrong, known.iter().copied()) {
        return format!("did you mean \"{near}\"?");
    }
    match known.as_slice() {
        [] => "there is none".to_owned(),
        [one] => format!("write \"{one}\""),
        many => format!("write one of {}", listed(many)),
    }
}

/// The known name that is nearest, if a slip of the fingers explains the
/// difference: one character in three was left out, added, replaced or swapped
/// with its neighbour.
pub fn nearest<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let wrong = normal(wrong);
    let slip = (wrong.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::osa_distance(&wrong, &normal(name));
    let known = known.into_iter().take(COMPARED_MAX);
    let (name, edits) = known.map(|name| (name, distance(name))).min_by_key(|(_, d)| *d)?;
    (edits <= slip).then_some(name)
}

/// Case and the choice between `-` and `_` are never the mistake that counts.
fn normal(name: &str) -> String {
    name.to_lowercase().replace('-', "_").chars().take(LENGTH_MAX).collect()
}

/// Names in quotes, the first of them.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(LISTED_MAX).map(|name| format!("\"{name}\"")).collect();
    let more = if names.len() > LISTED_MAX { " …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
