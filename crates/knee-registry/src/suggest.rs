//! "Did you mean": the nearest known name to a mistyped one.

/// A sentence that names the word nearest to `given`, or all of them when
/// none is near.
pub fn did_you_mean<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let wanted = normalise(given);
    let nearest = known.iter().min_by_key(|k| distance(&wanted, &normalise(k)));
    match nearest {
        Some(name) if distance(&wanted, &normalise(name)) <= 1 + given.len() / 4 => {
            format!("did you mean \"{name}\"?")
        }
        Some(_) => format!("write one of {}", known.join(", ")),
        None => "it takes no parameters".to_owned(),
    }
}

/// Case and the choice between `-` and `_` are never the mistake that counts.
fn normalise(word: &str) -> Vec<char> {
    word.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Edit distance of Levenshtein.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
