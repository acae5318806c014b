//! Claims for display.

use knee_present::{Cell, Document, Table, Tone, text};
use knee_record::{ClaimOutcome, Outcome};

/// A table of claims, followed by the findings; empty without claims.
pub fn document(claims: &[ClaimOutcome]) -> Document {
    if claims.is_empty() {
        return Document::default();
    }
    let sourced = claims.iter().any(|claim| claim.source_figure.is_some());
    let mut table = Table::new(heads(sourced).into_iter().map(text)).called("claims");
    claims.iter().for_each(|claim| table.row_in(tone(claim), row(claim, sourced)));
    let findings: Vec<String> = claims.iter().filter_map(finding).collect();
    let gap = if findings.is_empty() { "" } else { "\n" };
    Document::default().table(table).words(format!("{gap}{}", findings.concat()))
}

/// A table of checks, whose outcomes nothing is on record about.
pub fn outcomes(claims: &[ClaimOutcome]) -> Table {
    let mut table = Table::new(heads(false).into_iter().map(text)).called("claims");
    for claim in claims {
        let tone = if claim.outcome == Outcome::Holds { Tone::Good } else { Tone::Bad };
        let words = [&claim.outcome.to_string(), &claim.id, &claim.says, &claim.expected];
        let cells = words.map(Cell::from).into_iter().chain([measured(claim)]);
        table.row_in(tone, cells);
    }
    table
}

/// Summarises the outcomes in one line, and how they compare with the record.
pub fn tally<'c>(claims: impl IntoIterator<Item = &'c ClaimOutcome>) -> String {
    let claims: Vec<&ClaimOutcome> = claims.into_iter().collect();
    let against = match claims.iter().filter(|claim| !claim.agrees).count() {
        0 => "all as on record".to_string(),
        1 => "1 differs from the record".to_string(),
        more => format!("{more} differ from the record"),
    };
    format!("{}; {against}", counts(claims))
}

/// How many outcomes with other seeds are those on record, and which claims no longer hold.
pub fn against_other_seeds<'c>(claims: impl IntoIterator<Item = &'c ClaimOutcome>) -> String {
    let claims: Vec<&ClaimOutcome> = claims.into_iter().collect();
    let same = claims.iter().filter(|claim| claim.outcome == claim.recorded).count();
    let reversed = claims
        .iter()
        .filter(|claim| (claim.recorded, claim.outcome) == (Outcome::Holds, Outcome::Fails));
    let reversed: Vec<&str> = reversed.map(|claim| claim.id.as_str()).collect();
    let share = 100.0 * same as f64 / claims.len().max(1) as f64;
    format!(
        "seeds    {same} of {} outcomes as on record ({share:.1} %); from holds to fails: {}\n",
        claims.len(),
        if reversed.is_empty() { "none".to_string() } else { reversed.join(", ") },
    )
}

/// Number of claims by outcome.
pub fn counts<'c>(claims: impl IntoIterator<Item = &'c ClaimOutcome>) -> String {
    let claims: Vec<&ClaimOutcome> = claims.into_iter().collect();
    let ended = |outcome: Outcome| claims.iter().filter(|claim| claim.outcome == outcome).count();
    let uncertain = match ended(Outcome::Uncertain) {
        0 => String::new(),
        uncertain => format!(", {uncertain} uncertain"),
    };
    let untested = match ended(Outcome::NotTestedHere) {
        0 => String::new(),
        untested => format!(", {untested} not tested here"),
    };
    format!(
        "{} claim{}: {} hold, {} fail{uncertain}{untested}",
        claims.len(),
        if claims.len() == 1 { "" } else { "s" },
        ended(Outcome::Holds),
        ended(Outcome::Fails),
    )
}

fn heads(sourced: bool) -> Vec<&'static str> {
    let mut heads = vec!["outcome", "id", "claim", "expected", "measured"];
    if sourced {
        heads.insert(3, "source");
    }
    heads
}

fn row(claim: &ClaimOutcome, sourced: bool) -> Vec<Cell> {
    let outcome = match claim.outcome == claim.recorded {
        _ if claim.agrees => claim.outcome.to_string(),
        true => format!("{}, drifted", claim.outcome),
        false => format!("{}, differs from record: {}", claim.outcome, claim.recorded),
    };
    let words = [&outcome, &claim.id, &claim.says, &claim.expected].map(Cell::from);
    let mut row: Vec<Cell> = words.into_iter().chain([measured(claim)]).collect();
    if sourced {
        row.insert(3, claim.source_figure.clone().unwrap_or_default().into());
    }
    row
}

fn measured(claim: &ClaimOutcome) -> Cell {
    Cell::figure(claim.unit, claim.measured).reading(claim.measured_text.clone())
}

fn tone(claim: &ClaimOutcome) -> Tone {
    match (claim.agrees, claim.outcome) {
        (false, _) => Tone::Bad,
        (true, Outcome::Holds) => Tone::Good,
        (true, _) => Tone::Neutral,
    }
}

/// One line for each claim whose value differs from the recorded one.
pub fn drifts<'c>(claims: impl IntoIterator<Item = &'c ClaimOutcome>) -> String {
    let line = |claim: &ClaimOutcome| {
        let about = if claim.id.is_empty() { &claim.says } else { &claim.id };
        let on_record = claim.on_record.as_deref().unwrap_or("nothing");
        format!("{about} drifted: measured {}, on record {on_record}\n", claim.measured_text)
    };
    claims.into_iter().filter(|claim| claim.drifted).map(line).collect()
}

fn finding(claim: &ClaimOutcome) -> Option<String> {
    let finding = claim.finding.as_ref()?;
    let about = if claim.id.is_empty() { &claim.says } else { &claim.id };
    Some(format!("finding on {about}: {}\n", finding.trim()))
}
