//! `knee advise`.

mod measured;

use crate::arguments::{self, Advising};
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::print::Print;
use ipnet::IpNet;
use knee_advise::Verdict;
use knee_lab::command::quoted;
use knee_lab::directory::{ADVISED_POLICY, REPORT};
use knee_lab::{
    AdviseError, AdviseSettings, Advised, AdvisedClass, Candidates, Error, Lab, Observed,
    ObservedGroup, advice_says, advised_paths, change_words, retransmitted_words, trials_say,
};
use knee_present::{Cell, Document, Table, Tone, number, text};
use knee_record::read_summary;
use std::path::PathBuf;

/// Recommends a controller for groups of connections.
pub fn advise(arguments: &arguments::Advise) -> Result<Ending, Failure> {
    let lab = lab(arguments.by.jobs);
    if measured::are_measured(&arguments.paths)? {
        return measured::advise(&lab, arguments);
    }
    if let Some(out) = &arguments.out {
        lab.keep_apart(out, &arguments.paths)?;
    }
    let (groups, cautions) = observed(&arguments.paths, arguments.by.in_use.clone(), &|_| None)?;
    let all = groups.len();
    if let Some(out) = &arguments.out {
        lab.claim(out, [out], arguments.force)?;
    }
    let asked: Vec<ObservedGroup> =
        groups.into_iter().take(usize::from(arguments.by.groups)).collect();
    let advised = watched(&lab, || advise_groups(&lab, &asked, &arguments.by))?;
    let left = all - advised.len();
    let says: Vec<String> = advice_says(&advised).into_iter().chain(cautions).collect();
    let mut document = document(&advised, &says, left);
    if let Some(out) = &arguments.out {
        let has_policy = lab.keep_advice(&advised, &says, &command(arguments), out)?;
        let page = format!("\nreport   {}\n", out.join(REPORT).display());
        document = document.words(page);
        if has_policy {
            let policy = out.join(ADVISED_POLICY);
            document = document.words(format!("policy   {}\n", policy.display()));
        }
    }
    document.print_tables(arguments.print.format())?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

/// Reads the connections of folders and files by group, the one with the most bytes first, with
/// cautions about them. `provider` names what the clients of a prefix have in common with those of
/// others, such as their provider, if they are grouped by it.
pub fn observed(
    paths: &[PathBuf],
    in_use: Option<String>,
    provider: &dyn Fn(IpNet) -> Option<String>,
) -> Result<(Vec<ObservedGroup>, Vec<String>), Failure> {
    let mut observed = Observed::assuming(in_use);
    let mut cautions: Vec<String> = Vec::new();
    for path in paths {
        if !path.exists() {
            let what = format!("there is no {}", path.display());
            let advice = "name a folder of knee observe or of a run, a file of connections, or what a tool \
                          measured";
            return Err(Failure::Usage(what, advice.to_string()));
        }
        if path.is_dir() && knee_live::is_begun(path) && !knee_live::holds_observed(path) {
            return Err(crate::report::unfinished(path));
        }
        observed.read_by(path, provider)?;
        let shares = read_summary(path).is_ok_and(|summary| summary.is_half_and_half());
        if shares {
            cautions.push(format!(
                "In {} two controllers share a path, half and half: its records show who takes \
                 from whom. Which of the two is better, the answer of knee run says.",
                path.display()
            ));
        }
    }
    let groups = observed.groups();
    if groups.is_empty() {
        return Err(Error::from(AdviseError::NoConnections).into());
    }
    Ok((groups, cautions))
}

/// Advises each group; fewer of them if it was stopped.
pub fn advise_groups(
    lab: &Lab,
    groups: &[ObservedGroup],
    by: &Advising,
) -> Result<Vec<Advised>, Error> {
    let mut advised = Vec::new();
    for group in groups {
        let settings = AdviseSettings {
            candidates: candidates(by, &group.in_use),
            simulations: usize::from(by.simulations),
            seed: by.seed,
            algorithms: None,
        };
        match lab.advise(group, &settings)? {
            Some(one) => advised.push(one),
            None => break,
        }
    }
    Ok(advised)
}

/// The command that repeats the advice.
fn command(arguments: &arguments::Advise) -> String {
    let paths: Vec<String> =
        arguments.paths.iter().map(|path| quoted(&path.to_string_lossy())).collect();
    format!("knee advise {}{}", paths.join(" "), options(&arguments.by))
}

/// The options of the advice, each after a space.
pub fn options(by: &Advising) -> String {
    let Advising { candidates, in_use, groups, simulations, seed, .. } = by;
    let candidates = candidates
        .as_ref()
        .map_or_else(String::new, |Candidates(names)| format!(" --candidates {}", names.join(",")));
    let in_use = in_use.as_ref().map_or_else(String::new, |name| format!(" --in-use {name}"));
    format!("{candidates}{in_use} --groups {groups} --simulations {simulations} --seed {seed}")
}

/// The candidates; the controller in use is omitted.
fn candidates(by: &Advising, in_use: &str) -> Candidates {
    let otherwise = || Candidates(vec!["bbr".to_string(), "cubic".to_string()]);
    let Candidates(all) = by.candidates.clone().unwrap_or_else(otherwise);
    let is_bbr = in_use.starts_with("bbr");
    let by_default = |name: &String| by.candidates.is_some() || (name == "cubic") == is_bbr;
    Candidates(all.into_iter().filter(|name| name != in_use && by_default(name)).collect())
}

fn document(advised: &[Advised], says: &[String], left: usize) -> Document {
    let mut table = Table::new([
        text("connections of"),
        text("objects"),
        text("in use"),
        text("candidate"),
        text("advice"),
        number("speed, 80 % interval"),
        number("retransmitted"),
        text("rule of thumb"),
        text("rule of an operator"),
        number("part of the bytes"),
    ])
    .called("advice");
    for group in advised {
        for class in &group.classes {
            table.row_with(4, tone(&class.verdict), row(group, class));
        }
    }
    let document = Document::default().table(table).words("\n");
    let document = says.iter().chain(&trials_say(advised)).fold(document, Document::said);
    let document = document.words("\n").table(advised_paths(advised)).said(
        "Of the paths that explain the connections, the best one is shown; the interval includes \
         the spread over the others. Misfit: about 0.5 is what chance alone leaves; above 1.5 \
         there is no advice. Speed: bytes over the time that they took, geometric mean. \
         Retransmitted: as observed, and as expected by the ratio of the two in the simulator. A \
         trial: connections under each controller, assigned at random, that show the expected speed in \
         four of five trials. Rule of thumb: by the size alone, without a simulation. Rule of an operator: that of a delivery \
         network, by size, RTT and retransmissions (docs/advise.md). This tells you which experiment to run \
         first; only the experiment decides (knee steer).",
    );
    match left {
        0 => document,
        1 => document.said("One group with fewer bytes was left out; --groups includes more."),
        left => document
            .said(format!("{left} groups with fewer bytes were left out; --groups includes more.")),
    }
}

fn row(group: &Advised, class: &AdvisedClass) -> [Cell; 10] {
    let changed = class.change().map_or_else(Cell::default, |change| {
        let [mean, low, high] = change;
        Cell::shown(change_words(change), mean).with("low", low).with("high", high)
    });
    let again = class.retransmitted().map_or_else(Cell::default, |parts| {
        let [now, then] = parts;
        Cell::shown(retransmitted_words(parts), then).with("in_use", now)
    });
    [
        group.name.as_str().into(),
        class.sizes().into(),
        group.in_use.as_str().into(),
        class.candidate.as_str().into(),
        class.conclusion(&group.in_use).into(),
        changed,
        again,
        class.rule_of_thumb().into(),
        class.operators_rule().into(),
        Cell::shown(format!("{:.0} %", 100.0 * class.bytes_share), class.bytes_share),
    ]
}

fn tone(verdict: &Verdict) -> Tone {
    match verdict {
        Verdict::Try => Tone::Good,
        Verdict::Keep | Verdict::Unclear => Tone::Neutral,
        Verdict::NoAdvice(_) => Tone::Bad,
    }
}
