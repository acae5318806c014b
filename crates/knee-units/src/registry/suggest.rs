//! "Did you mean": finds the known name nearest to an unknown one.

/// Largest number of names compared with a wrong one.
const COMPARED_MAX: usize = 1000;
/// Number of characters of a wrong name that are compared.
const LENGTH_MAX: usize = 64;
/// Largest number of names listed: more than there are controllers or measures.
const LISTED_MAX: usize = 100;

/// Returns what to write instead of `wrong`: the nearest of `known`, or a list of all if none is
/// near. Of more than a hundred, which only a large scenario has, it counts the rest.
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

/// Returns the nearest known name, if a typing error explains the difference: at most one character
/// in three was left out, added, replaced or swapped with its neighbour.
pub fn nearest<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let wrong = normal(wrong);
    let slip = (wrong.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::osa_distance(&wrong, &normal(name));
    let known = known.into_iter().take(COMPARED_MAX);
    let (name, edits) = known.map(|name| (name, distance(name))).min_by_key(|(_, d)| *d)?;
    (edits <= slip).then_some(name)
}

/// Ignores case and the difference between `-` and `_`, which are never the actual mistake.
fn normal(name: &str) -> String {
    name.to_lowercase().replace('-', "_").chars().take(LENGTH_MAX).collect()
}

/// Lists the first names in quotes.
fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(LISTED_MAX).map(|name| format!("\"{name}\"")).collect();
    let more = match names.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(" or {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    /// A list that is cut does not say what to write.
    #[test]
    fn all_choices_are_named() {
        let names: Vec<String> = (0..90).map(|number| format!("name-{number}")).collect();
        let advice = did_you_mean("entirely else", names.iter().map(String::as_str));
        assert!(names.iter().all(|name| advice.contains(&format!("\"{name}\""))), "{advice}");
        assert!(!advice.contains('…') && !advice.contains("more"), "{advice}");
        let many: Vec<String> = (0..150).map(|number| format!("name-{number}")).collect();
        let advice = did_you_mean("entirely else", many.iter().map(String::as_str));
        assert!(advice.ends_with("\"name-99\" or 50 more"), "{advice}");
    }
}
