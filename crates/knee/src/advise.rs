//! `knee advise`.

use crate::arguments;
use crate::cell::Cell;
use crate::document::Document;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::table::{Mood, Table};
use knee_advise::{Class, Fit, Gain, Reason, RuleOfThumb, Verdict};
use knee_lab::words::time_us;
use knee_lab::{
    AdviseError, AdviseSettings, Advised, AdvisedClass, CONNECTIONS_MIN, Candidates, Error,
    Observed, ObservedGroup,
};
use knee_units::Rate;

/// Recommends a controller for groups of connections.
pub fn advise(arguments: &arguments::Advise) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let mut observed = Observed::default();
    for path in &arguments.paths {
        observed.read(path)?;
    }
    let groups = observed.groups();
    if groups.is_empty() {
        return Err(Error::from(AdviseError::NoConnections).into());
    }
    let all = groups.len();
    let asked: Vec<ObservedGroup> =
        groups.into_iter().take(usize::from(arguments.groups)).collect();
    let advised = watched(&lab, || {
        let mut advised = Vec::new();
        for group in &asked {
            let settings = AdviseSettings {
                candidates: candidates(arguments, &group.in_use),
                simulations: usize::from(arguments.simulations),
                seed: arguments.seed,
            };
            match lab.advise(group, &settings)? {
                Some(one) => advised.push(one),
                None => break,
            }
        }
        Ok(advised)
    })?;
    let left = all - advised.len();
    document(&advised, left).print_tables(arguments.print.format())?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

/// The candidates; the controller in use is omitted.
fn candidates(arguments: &arguments::Advise, in_use: &str) -> Candidates {
    let otherwise = || Candidates(vec!["bbr".to_string(), "cubic".to_string()]);
    let Candidates(all) = arguments.candidates.clone().unwrap_or_else(otherwise);
    let is_bbr = in_use.starts_with("bbr");
    let by_default = |name: &String| arguments.candidates.is_some() || (name == "cubic") == is_bbr;
    Candidates(all.into_iter().filter(|name| name != in_use && by_default(name)).collect())
}

fn document(advised: &[Advised], left: usize) -> Document {
    let mut table = Table::new(&[
        "connections of",
        "objects",
        "in use",
        "candidate",
        "advice",
        ">speed, 80 % interval",
        ">retransmitted",
        "rule of thumb",
        ">part of the bytes",
    ])
    .called("advice");
    for group in advised {
        for class in &group.classes {
            table.row_with(4, mood(&class.verdict), row(group, class));
        }
    }
    let document = Document::default().table(table).words("\n");
    let document = experiments(advised).into_iter().fold(document, Document::said);
    let document = document.words("\n").table(paths(advised)).said(
        "Of the paths that explain the connections, the best one is shown; the interval includes \
         the spread over the others. Misfit: 0.5 is the best that chance allows; above 1.5 there \
         is no advice. Speed: bytes over the time that they took, geometric mean. Use this to \
         order experiments; an experiment decides (knee steer).",
    );
    match left {
        0 => document,
        1 => document.said("One group with fewer bytes was left out; --groups includes more."),
        left => document
            .said(format!("{left} groups with fewer bytes were left out; --groups includes more.")),
    }
}

fn row(group: &Advised, class: &AdvisedClass) -> [Cell; 9] {
    let per_cent = |part: f64| 100.0 * part;
    let again = class.prediction.map_or_else(Cell::default, |prediction| {
        let [now, then] = prediction.retransmitted.map(per_cent);
        Cell::shown(format!("{now:.2} → {then:.2} %"), then).with("in_use", now)
    });
    [
        group.name.as_str().into(),
        sizes(class.class).into(),
        group.in_use.as_str().into(),
        class.candidate.as_str().into(),
        word(&class.verdict, &group.in_use).into(),
        class.prediction.map_or_else(Cell::default, |prediction| gain(&prediction.gain)),
        again,
        match class.rule {
            Some(RuleOfThumb::Try) => "try",
            Some(RuleOfThumb::Keep) => "keep",
            None => "",
        }
        .into(),
        Cell::shown(format!("{:.0} %", per_cent(class.bytes_share)), class.bytes_share),
    ]
}

fn sizes(class: Class) -> &'static str {
    match class {
        Class::Small => "below 3 MB",
        Class::Large => "3 MB and more",
    }
}

fn word(verdict: &Verdict, in_use: &str) -> String {
    match verdict {
        Verdict::Try => "try it".to_string(),
        Verdict::Keep => format!("keep {in_use}"),
        Verdict::Unclear => "unclear".to_string(),
        Verdict::NoAdvice(Reason::Misfit(misfit)) => format!("none: misfit {misfit:.1}"),
        Verdict::NoAdvice(Reason::TooFew(_)) => {
            format!("none: fewer than {CONNECTIONS_MIN} connections")
        }
        Verdict::NoAdvice(Reason::Unknown) => "none: not in the simulator".to_string(),
    }
}

fn mood(verdict: &Verdict) -> Mood {
    match verdict {
        Verdict::Try => Mood::Good,
        Verdict::Keep | Verdict::Unclear => Mood::Neutral,
        Verdict::NoAdvice(_) => Mood::Bad,
    }
}

/// Formats a difference of logarithms as a change in per cent.
fn gain(gain: &Gain) -> Cell {
    let [mean, low, high] = [gain.mean, gain.low, gain.high].map(|by| 100.0 * by.exp_m1());
    Cell::shown(format!("{mean:+.0} % ({low:+.0} to {high:+.0})"), mean)
        .with("low", low)
        .with("high", high)
}

/// The recommended experiments, in descending order of guaranteed gain times share of bytes.
fn experiments(advised: &[Advised]) -> Vec<String> {
    let mut worth: Vec<(f64, String)> = Vec::new();
    for group in advised {
        for class in &group.classes {
            let Some(prediction) = class.prediction else { continue };
            if class.verdict != Verdict::Try {
                continue;
            }
            let [now, then] = prediction.retransmitted.map(|part| 100.0 * part);
            let text = format!(
                "{} in place of {} for {} of {}: {:+.0} % expected, with {then:.1} % \
                 retransmitted in place of {now:.1} %",
                class.candidate,
                group.in_use,
                match class.class {
                    Class::Small => "objects below 3 MB",
                    Class::Large => "objects of 3 MB and more",
                },
                group.name,
                100.0 * prediction.gain.mean.exp_m1(),
            );
            worth.push((prediction.gain.low * class.bytes_share, text));
        }
    }
    worth.sort_by(|a, b| b.0.total_cmp(&a.0));
    if worth.is_empty() {
        return vec!["No experiment promises a gain.".to_string()];
    }
    let numbered = (1..).zip(worth).map(|(number, (_, text))| format!("{number}. Try {text}."));
    std::iter::once("Experiments worth making, in this order:".to_string())
        .chain(numbered)
        .collect()
}

fn paths(advised: &[Advised]) -> Table {
    let mut table = Table::new(&[
        "connections of",
        ">connections",
        ">bottleneck",
        ">RTT",
        ">buffer",
        ">loss",
        ">others",
        ">misfit",
    ])
    .called("paths");
    for group in advised {
        let count = Cell::count(group.connections as u64);
        let mut cells = vec![group.name.as_str().into(), count];
        match group.fits.first() {
            Some(fit) => cells.extend(path(fit)),
            None => cells.extend((0..6).map(|_| Cell::default())),
        }
        table.row(cells);
    }
    table
}

fn path(Fit { path, misfit, .. }: &Fit) -> [Cell; 6] {
    // Three significant digits: the estimate is no more precise.
    let digit = 10_f64.powi(path.rate_bps.log10().floor() as i32 - 2);
    let rate = Rate::from_bits_per_second(((path.rate_bps / digit).round() * digit) as u64);
    [
        Cell::shown(rate.to_string(), path.rate_bps),
        Cell::shown(time_us(Some(path.rtt_s * 1e6)), path.rtt_s),
        Cell::shown(format!("{:.2} BDP", path.buffer_bdp), path.buffer_bdp),
        Cell::shown(format!("{:.3} %", 100.0 * path.loss), path.loss),
        Cell::shown(format!("{:.0} %", 100.0 * path.cross), path.cross),
        Cell::shown(format!("{misfit:.2}"), *misfit),
    ]
}
