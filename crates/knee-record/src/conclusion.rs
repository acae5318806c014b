//! The conclusion of a study: a paragraph whose figures come from its claims.

use crate::{ClaimOutcome, Outcome};
use knee_scenario::placeholders;

/// Fills the placeholders of a study's conclusion with values, outcomes and counts of `claims`:
/// `{A3}`, `{A3.outcome}`, `{claims}`, `{holds}`, `{fails}`, `{uncertain}`, `{untested}`, and the
/// ids of the claims that hold or fail, `{holding}` and `{failing}`.
pub fn fill_conclusion(text: &str, claims: &[ClaimOutcome]) -> String {
    placeholders(text).fold(text.to_string(), |filled, placeholder| {
        let name = placeholder.trim_matches(['{', '}']);
        match stands_for(name, claims) {
            Some(words) => filled.replace(placeholder, &words),
            None => filled,
        }
    })
}

fn stands_for(name: &str, claims: &[ClaimOutcome]) -> Option<String> {
    let ended = |outcome| claims.iter().filter(move |claim| claim.outcome == outcome);
    let count = |outcome| ended(outcome).count().to_string();
    let ids = |outcome| match ended(outcome).map(|claim| claim.id.as_str()).collect::<Vec<_>>() {
        ids if ids.is_empty() => "none".to_string(),
        ids => ids.join(", "),
    };
    let claim = |id: &str| claims.iter().find(|claim| claim.id == id);
    Some(match name {
        "claims" => claims.len().to_string(),
        "holds" => count(Outcome::Holds),
        "fails" => count(Outcome::Fails),
        "uncertain" => count(Outcome::Uncertain),
        "untested" => count(Outcome::NotTestedHere),
        "holding" => ids(Outcome::Holds),
        "failing" => ids(Outcome::Fails),
        id => match id.strip_suffix(".outcome") {
            Some(id) => claim(id)?.outcome.to_string(),
            None => claim(id)?.value_text(),
        },
    })
}
