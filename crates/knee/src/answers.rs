//! Answers to a scenario's questions, as text.

use knee_present::words::{capitalised, time_us};
use knee_present::{Cell, Document, Table, Tone, number, text};
use knee_record::{
    Answers, Judgement, MixAnswer, MixClass, Paired, PairedScale, Unit, offered_in_words,
};

/// Adds the answers, if any, before and after the figures.
pub fn around(answers: Option<&Answers>, figures: Document) -> Document {
    match answers {
        Some(found) => table(found).then(figures).then(sentences(found)),
        None => figures,
    }
}

/// Says that a stop left the questions of a scenario unanswered.
pub fn stopped() -> Document {
    none("No answer: stopped before all alternatives had run.")
}

/// Says why there is no answer.
pub fn none(reason: &str) -> Document {
    Document::default().said(reason).words("\n")
}

/// Says by how much chance alone moves the figures of a single run.
pub fn noise(answers: &Answers) -> Document {
    let mix = answers.mix.iter();
    let lines = mix.flat_map(|mix| mix.pairs.iter().zip(&mix.noise)).filter_map(|(pair, noise)| {
        Some(format!(
            "One run on each ground: from seed to seed the mean time of transfers of {} differs by \
             {} (standard deviation, {} seeds on the simulator), so smaller differences between \
             the grounds are chance.",
            pair.name,
            Unit::Fraction.show(((*noise)? * 1e2).round() / 1e2),
            answers.seeds.len()
        ))
    });
    lines.fold(Document::default(), Document::said)
}

/// The part before the figures: the mix, as a table with its advice.
fn table(answers: &Answers) -> Document {
    let Some(mix) = &answers.mix else { return Document::default() };
    let mut table = Table::new([
        text("traffic"),
        text("objects"),
        text("what"),
        number("ratio (95 % interval)"),
        text("outcome"),
        number("retransmitted"),
        number("others' queue"),
        number("half and half"),
        number("transfers"),
    ])
    .called("classes");
    let mut before = "";
    for class in &mix.classes {
        let first = class.pair != before;
        before = &class.pair;
        table.row_with(4, tone(class.effect), row(mix, class, first));
    }
    let legend = format!(
        "Ratio: {}, all transfers under one against all under the other: completion time, or \
         throughput where it says rate; {} seeds, the same arrivals and sizes; 95 % \
         intervals for all rows together. Others' queue: the longest on the path, 95th \
         percentile. Half and half: both in one run, which shows who takes from whom.",
        mix.over(),
        answers.seeds.len()
    );
    let mut document = Document::default().said(mix_title(mix)).words("\n");
    if let Some(load) = offered_in_words(&answers.load) {
        document = document.said(capitalised(&load) + ".").words("\n");
    }
    let [before, after] = mix.before_and_after();
    let say = |document: Document, sentences: Vec<&str>| match sentences.is_empty() {
        true => document,
        false => sentences.into_iter().fold(document, Document::said).words("\n"),
    };
    let document = say(document, before);
    let document = match mix.classes.is_empty() {
        true => document,
        false => document.table(table).said(legend).words("\n"),
    };
    say(document, after)
}

fn mix_title(mix: &MixAnswer) -> String {
    let mut names: Vec<String> = Vec::new();
    for pair in &mix.pairs {
        let name = format!("{} against {}", pair.test, pair.control);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    format!("Which controller for which traffic: {}, on the simulator", names.join(", "))
}

fn row(mix: &MixAnswer, class: &MixClass, first: bool) -> [Cell; 9] {
    let at = mix.pairs.iter().position(|pair| pair.name == class.pair);
    let queue = at.and_then(|at| mix.queue_s.get(at)).filter(|_| first);
    let queue = queue.map(|queue| queue.map(|delay| time_us(Some(delay * 1e6))).join(" / "));
    let pair = Cell::from(if first { class.pair.as_str() } else { "" });
    let [ours, theirs] = class.retransmitted;
    [
        pair,
        (&class.sizes).into(),
        if class.throughput { "rate" } else { "time" }.into(),
        ratio(class.ratio(), Some(&class.compared)),
        class.effect.word().into(),
        Cell::from(class.again()).with("test", ours).with("control", theirs),
        queue.unwrap_or_default().into(),
        ratio(class.split_ratio(), class.split.as_ref()),
        Cell::from(class.counted()).with("", class.number() as f64),
    ]
}

/// Formats a ratio with its interval.
fn ratio(shown: String, pairs: Option<&Paired>) -> Cell {
    let mut cell = Cell::from(shown);
    let pairs = pairs.filter(|pairs| pairs.scale == PairedScale::Ratio);
    for (part, value) in pairs
        .into_iter()
        .flat_map(|pairs| [("", pairs.estimate), ("low", pairs.low), ("high", pairs.high)])
    {
        if let Some(value) = value {
            cell = cell.with(part, value);
        }
    }
    cell
}

fn tone(effect: Judgement) -> Tone {
    match effect {
        Judgement::Better => Tone::Good,
        Judgement::Worse => Tone::Bad,
        _ => Tone::Neutral,
    }
}

/// The part after the figures: sentences about paths.
fn sentences(answers: &Answers) -> Document {
    let seeds = answers.seeds.len();
    let lines = answers.paths_say().into_iter();
    let lines = lines.map(|said| format!("{said} ({seeds} seeds each, on the simulator.)"));
    let lines = lines.chain(answers.unanswered_words());
    let document = Document::default();
    if answers.paths.is_empty() {
        return document;
    }
    lines.fold(document.words("\n"), |document, line| document.said(line))
}
