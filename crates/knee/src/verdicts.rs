//! Verdicts of experiments in words, and the tables that rehearsals and experiments on hosts share.

use knee_present::{Cell, Document, Table, Tone, number, text};
use knee_steer::{Effect, Guard, Guarded, Trial, Verdict};
use knee_units::statistics::Judgement;

/// How B compares with A.
pub fn judgement(verdict: Verdict) -> Judgement {
    match verdict {
        Verdict::More => Judgement::Better,
        Verdict::Less | Verdict::Stopped(_) => Judgement::Worse,
        Verdict::Alike => Judgement::Alike,
        Verdict::Undecided => Judgement::Undecided,
        Verdict::TooFew => Judgement::TooShort,
        Verdict::RecordsLost | Verdict::UnlikeHalves => Judgement::CouldNotBeTried,
    }
}

/// Formats a verdict, with its reason.
pub fn word(trial: &Trial) -> String {
    let (verdict, after) = trial.verdict();
    let word = judgement(verdict).word();
    match verdict {
        Verdict::More | Verdict::Less | Verdict::Alike | Verdict::Undecided => word.to_string(),
        Verdict::TooFew => format!("{word}: {after} of {} triples", trial.planned()),
        Verdict::Stopped(harm) => format!("{word}: {}", short(harm)),
        Verdict::RecordsLost => format!("{word}: records lost"),
        Verdict::UnlikeHalves => format!("{word}: unlike halves"),
    }
}

/// Colour of a verdict.
pub fn tone(verdict: Verdict) -> Tone {
    match judgement(verdict) {
        Judgement::Better => Tone::Good,
        Judgement::Worse | Judgement::CouldNotBeTried => Tone::Bad,
        _ => Tone::Neutral,
    }
}

/// What a guard looks for, in a word or two.
fn short(harm: Guarded) -> &'static str {
    match harm {
        Guarded::Unfinished => "unfinished transfers",
        Guarded::Retransmissions => "retransmissions",
        Guarded::Delay => "queueing delay",
        Guarded::Completion => "small transfers",
    }
}

/// Name of a guard in tables.
pub fn name(harm: Guarded) -> &'static str {
    match harm {
        Guarded::Delay => "queueing delay, 95th percentile",
        Guarded::Completion => "transfers under 100 kB, 95th percentile",
        other => short(other),
    }
}

/// Formats an e-value.
pub fn evidence(value: f64) -> String {
    if value < 1e4 { format!("{value:.1}") } else { format!("{value:.0e}") }
}

/// Formats an effect as a change in per cent.
pub fn effect(effect: Option<Effect>) -> Cell {
    effect.map_or_else(Cell::default, |Effect { mean, interval }| change(mean, interval))
}

/// Formats a difference of logarithms as a change in per cent.
pub fn change(mean: f64, interval: Option<(f64, f64)>) -> Cell {
    let text = match interval {
        Some((low, high)) => format!("{} % ({} to {})", shown(mean), shown(low), shown(high)),
        None => format!("{} %", shown(mean)),
    };
    let cell = Cell::shown(text, per_cent(mean));
    match interval {
        Some((low, high)) => cell.with("low", per_cent(low)).with("high", per_cent(high)),
        None => cell,
    }
}

fn per_cent(ln: f64) -> f64 {
    100.0 * ln.exp_m1()
}

fn shown(ln: f64) -> String {
    match per_cent(ln) {
        small if small.abs() < 9.95 => format!("{small:+.1}"),
        large => format!("{large:+.0}"),
    }
}

/// The amount by which B is worse, in the unit of a guard.
pub fn amount(harm: Guarded, value: f64) -> Cell {
    match harm {
        Guarded::Unfinished | Guarded::Retransmissions => {
            Cell::shown(format!("{:+.2} points", 100.0 * value), 100.0 * value)
        }
        Guarded::Delay | Guarded::Completion => change(value, None),
    }
}

/// A trial and the connections that it is about.
pub struct Shown<'t> {
    /// Traffic or group.
    pub of: &'t str,
    /// Range of sizes.
    pub sizes: &'t str,
    /// The experiment.
    pub trial: &'t Trial,
}

/// Adds what the experiments could have seen, and who takes from whom. `of` heads the column of
/// traffic or groups; `what` is compared.
pub fn beside(document: Document, [of, what]: [&str; 2], all: &[Shown<'_>]) -> Document {
    document
        .words("\nWhat the experiment could have seen:\n")
        .table(visible(all))
        .said(VISIBLE)
        .words("\nHalf and half: shows who takes from whom, not which is better\n")
        .table(halves(of, all))
        .said(format!(
            "Split test: {what} under B against those under A beside them. Neighbours: what those \
             under A lose or gain beside B."
        ))
}

fn halves(of: &str, all: &[Shown<'_>]) -> Table {
    let heads = [text(of), text("objects"), number("split test"), number("neighbours")];
    let row = |one: &Shown<'_>| {
        let (split, neighbours) = (one.trial.naive(), one.trial.neighbours());
        [Cell::from(one.of), one.sizes.into(), effect(split), effect(neighbours)]
    };
    Table::new(heads).called("halves").with_rows(all.iter().map(row))
}

/// Returns the smallest effect and harms that the experiment shows: by its plan, and by the triples
/// so far. Guards other than that of unfinished transfers are those of all sizes together.
fn visible(all: &[Shown<'_>]) -> Table {
    let mut table = Table::new([
        text("traffic"),
        text("objects"),
        text("what"),
        number("B is worse by"),
        number("margin"),
        number("visible, as planned"),
        number("visible so far"),
    ])
    .called("visible");
    let seen = |value: Option<Cell>| value.unwrap_or_else(|| "nothing".into());
    for one in all {
        table.row([
            Cell::from(one.of),
            one.sizes.into(),
            "speed".into(),
            Cell::default(),
            Cell::default(),
            seen(one.trial.smallest_planned().map(|least| change(-least, None))),
            seen(one.trial.smallest_so_far().map(|least| change(-least, None))),
        ]);
        guard_rows(&mut table, one, |harm| harm == Guarded::Unfinished);
    }
    let mut of: Vec<&str> = Vec::new();
    for one in all {
        if !of.contains(&one.of) {
            of.push(one.of);
            let one = Shown { sizes: "all", ..*one };
            guard_rows(&mut table, &one, |harm| harm != Guarded::Unfinished);
        }
    }
    table
}

fn guard_rows(table: &mut Table, one: &Shown<'_>, is_shown: impl Fn(Guarded) -> bool) {
    for (harm, guard) in one.trial.guards().each().filter(|(harm, _)| is_shown(*harm)) {
        let cell = |value: Option<f64>| value.map_or("nothing".into(), |by| amount(harm, by));
        table.row([
            one.of.into(),
            one.sizes.into(),
            name(harm).into(),
            guard.mean().map_or_else(Cell::default, |by| amount(harm, by)),
            margin(harm, guard),
            cell(one.trial.smallest_harm_planned(guard)),
            cell(guard.smallest_so_far()),
        ]);
    }
}

/// The margin of a guard. That of an accepted harm is not used, and remains a number for programs.
fn margin(harm: Guarded, guard: &Guard) -> Cell {
    let Cell { shown, numbers } = amount(harm, guard.margin());
    let shown = if guard.is_accepted() { "accepted".to_string() } else { shown };
    Cell { shown, numbers }
}

/// What the columns of [`visible`] mean.
const VISIBLE: &str = "Visible: the smallest effect or harm that is seen in four of five \
                           experiments; a smaller one may be there unseen. As planned: in all \
                           triples, by the noise of the blocks before the first. So far: by that of \
                           the triples. Four times as many triples show half as much.";
