//! Advice in words, as a policy for the experiment that it asks for, and as a page.

use super::{Advised, AdvisedClass, CONNECTIONS_MIN, Seen};
use crate::directory::{ADVISED_POLICY, REPORT};
use crate::error::Error;
use crate::lab::Lab;
use ipnet::IpNet;
use knee_advise::{Class, Fit, Reason, RuleOfThumb, Verdict};
use knee_present::words::{count as in_figures, time_us};
use knee_present::{Cell, Table, number, text};
use knee_record::write_text;
use knee_report::{AdvicePage, AdviceRow, AdviceWord, advice_page};
use knee_steer::trial_size;
use knee_units::Rate;
use knee_units::statistics::Judgement;
use std::fmt::Write;
use std::path::Path;

/// Kernel names of Knee's own controllers, which `knee cc load` adds.
const LOADED: [(&str, &str); 3] =
    [("bbr3", "knee_bbr3"), ("bbr-low-delay", "bbr_low_delay"), ("copa", "knee_copa")];

impl AdvisedClass {
    /// The sizes of the class's objects.
    pub fn sizes(&self) -> &'static str {
        match self.class {
            Class::Small => "below 3 MB",
            Class::Large => "3 MB and more",
        }
    }

    /// The conclusion in a few words.
    pub fn conclusion(&self, in_use: &str) -> String {
        match &self.verdict {
            Verdict::Try => "try it".to_string(),
            Verdict::Keep => format!("keep {in_use}"),
            Verdict::Unclear => Judgement::Undecided.word().to_string(),
            Verdict::NoAdvice(Reason::Misfit(misfit)) => format!("none: misfit {misfit:.1}"),
            Verdict::NoAdvice(Reason::TooFew(_)) => {
                format!("none: fewer than {CONNECTIONS_MIN} connections")
            }
            Verdict::NoAdvice(Reason::TooRare) => "none: connections are too rare".to_string(),
            Verdict::NoAdvice(Reason::Unknown) => "none: not in the simulator".to_string(),
            Verdict::NoAdvice(Reason::Unseen) => "none: controller not seen".to_string(),
        }
    }

    /// Answer of the rule of thumb; empty without one.
    pub fn rule_of_thumb(&self) -> &'static str {
        answer(self.rule)
    }

    /// Answer of the rule of an operator; empty without one.
    pub fn operators_rule(&self) -> &'static str {
        answer(self.operators)
    }

    /// Expected change of the speed and its 80 % interval, per cent.
    pub fn change(&self) -> Option<[f64; 3]> {
        let gain = self.prediction?.gain;
        Some([gain.mean, gain.low, gain.high].map(|by| 100.0 * by.exp_m1()))
    }

    /// The trial of single connections, assigned at random, that shows the expected gain in four of
    /// five cases, at a level of 5 %; `None` without a prediction, or for too few connections.
    pub fn trial(&self) -> Option<TrialSize> {
        let (gain, spread) = (self.prediction?.gain.mean, self.spread?);
        Some(match gain.exp_m1().abs() < CHANGE_MIN {
            true => TrialSize::NotMeasurable,
            false => TrialSize::Each(trial_size(spread, gain)),
        })
    }

    /// Retransmitted part of the payload, per cent: as observed under the controller in use, and as
    /// expected under the candidate, by the ratio of the two in the simulator.
    pub fn retransmitted(&self) -> Option<[f64; 2]> {
        let [in_use, candidate] = self.prediction?.retransmitted;
        let now = self.retransmitted_now?;
        // Where the controller in use retransmits next to nothing, a ratio says nothing.
        let then = match in_use < RATIO_MIN {
            true => now + candidate - in_use,
            false => now * candidate / in_use,
        };
        Some([now, then.clamp(0.0, 1.0)].map(|part| 100.0 * part))
    }
}

/// Smallest expected change of the speed that a trial is worth, as a part.
const CHANGE_MIN: f64 = 0.005;

/// A trial that would show whether the expected gain is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialSize {
    /// Connections under each of the two controllers.
    Each(u64),
    /// The expected change is below half a per cent.
    NotMeasurable,
}

impl TrialSize {
    /// In words.
    pub fn words(self) -> String {
        match self {
            TrialSize::Each(count) => {
                format!("a trial needs {} connections under each", in_figures(rounded(count)))
            }
            TrialSize::NotMeasurable => "no trial can measure so little".to_string(),
        }
    }
}

/// Rounds up to two digits.
fn rounded(count: u64) -> u64 {
    let step = 10_u64.pow(count.max(10).ilog10() - 1);
    count.div_ceil(step).saturating_mul(step)
}

/// Simulated ratio of retransmissions below which the difference is added, not multiplied.
const RATIO_MIN: f64 = 1e-4;

/// A change of the speed in words.
pub fn change_words(change: [f64; 3]) -> String {
    // Adding zero turns -0 to 0.
    let [mean, low, high] = change.map(|by| by.round() + 0.0);
    format!("{mean:+.0} % ({low:+.0} to {high:+.0})")
}

/// A change of the retransmissions in words.
pub fn retransmitted_words([now, then]: [f64; 2]) -> String {
    format!("{now:.2} → {then:.2} %")
}

/// A fitted path in words: bottleneck, RTT, buffer, loss, others' share, misfit.
fn path_words(Fit { path, misfit, .. }: &Fit) -> [String; 6] {
    // Three significant digits: the estimate is no more precise.
    let digit = 10_f64.powi(path.rate_bps.log10().floor() as i32 - 2);
    let rate = Rate::from_bits_per_second(((path.rate_bps / digit).round() * digit) as u64);
    [
        rate.to_string(),
        time_us(Some(path.rtt_s * 1e6)),
        format!("{:.2} BDP", path.buffer_bdp),
        format!("{:.3} %", 100.0 * path.loss),
        format!("{:.0} %", 100.0 * path.cross),
        format!("{misfit:.2}"),
    ]
}

/// An experiment that promises a gain for some sizes.
#[derive(Clone, Copy, Debug)]
pub struct Recommended<'a> {
    /// The group.
    pub group: &'a Advised,
    /// Candidate and sizes that promise the gain.
    pub class: &'a AdvisedClass,
    /// The other sizes, which lose: a controller steers all sizes of a group.
    pub loses: Option<&'a AdvisedClass>,
    /// Certain gain times the part of the group's bytes, less the expected loss of the others times
    /// theirs.
    pub worth: f64,
}

/// The experiments that promise a gain, in descending order of what they are worth.
fn experiments(advised: &[Advised]) -> Vec<Recommended<'_>> {
    let each =
        advised.iter().flat_map(|group| group.classes.iter().map(move |class| (group, class)));
    let worth =
        each.filter(|(_, class)| class.verdict == Verdict::Try).filter_map(|(group, class)| {
            let others = group.classes.iter().filter(|one| one.candidate == class.candidate);
            let loses = others.into_iter().find(|one| one.verdict == Verdict::Keep);
            let gained = class.prediction?.gain.low * class.bytes_share;
            let lost = loses.and_then(|one| Some(one.prediction?.gain.mean * one.bytes_share));
            Some(Recommended { group, class, loses, worth: gained + lost.unwrap_or(0.0).min(0.0) })
        });
    let mut worth: Vec<Recommended<'_>> = worth.collect();
    worth.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    worth
}

impl Recommended<'_> {
    /// Name of the candidate in the kernel.
    pub fn controller(&self) -> String {
        in_kernel(&self.class.candidate)
    }

    /// What is expected, as a part of a sentence.
    pub fn words(&self) -> String {
        let Recommended { group, class, loses, .. } = self;
        let [mean, ..] = class.change().unwrap_or_default();
        let mut words = format!(
            "{} in place of {} for {} of {}: {mean:+.0} % expected",
            class.candidate,
            group.in_use,
            objects(class.class),
            group.name
        );
        if let Some([now, then]) = class.retransmitted() {
            words += &format!(", with {then:.1} % retransmitted in place of {now:.1} %");
        }
        if let Some(other) = loses {
            let [mean, ..] = other.change().unwrap_or_default();
            words += &format!(
                "; but {mean:+.0} % for {}, {:.0} % of its bytes",
                objects(other.class),
                100.0 * other.bytes_share
            );
        }
        words
    }
}

fn objects(class: Class) -> &'static str {
    match class {
        Class::Small => "objects below 3 MB",
        Class::Large => "objects of 3 MB and more",
    }
}

/// What a trial of each candidate would need, as sentences.
pub fn trials_say(advised: &[Advised]) -> Vec<String> {
    let each = advised.iter().flat_map(|group| group.classes.iter().map(move |one| (group, one)));
    let said = each.filter_map(|(group, class)| {
        let (sizes, trial) = (objects(class.class), class.trial()?.words());
        Some(format!("{} for {sizes} of {}: {trial}.", class.candidate, group.name))
    });
    said.collect()
}

/// The order of the experiments worth making, as sentences.
pub fn advice_says(advised: &[Advised]) -> Vec<String> {
    let (worth, costly): (Vec<_>, Vec<_>) =
        experiments(advised).into_iter().partition(|one| one.worth > 0.0);
    let mut says = Vec::new();
    match worth.is_empty() {
        true => says.push("No experiment promises a gain.".to_string()),
        false => says.push("Experiments worth making, in this order:".to_string()),
    }
    let numbered = (1..).zip(worth).map(|(number, one)| format!("{number}. Try {}.", one.words()));
    says.extend(numbered);
    says.extend(costly.iter().map(|one| {
        format!(
            "Not for all of a group, since what loses outweighs what gains; a service of its own, \
             on its own port, could try {}.",
            one.words()
        )
    }));
    says.extend(advised.iter().flat_map(cautions));
    says
}

/// What limits the advice on a group.
fn cautions(group: &Advised) -> Vec<String> {
    let Advised { name, seen: Seen { all, unseen, assumed }, .. } = group;
    let mut says = Vec::new();
    match assumed {
        Some(assumed) if *unseen > 0 => says.push(format!(
            "{name}: no scan saw the controller of {unseen} of {all} connections; it is taken to be \
             {assumed}. knee observe --bpf sees it, and --in-use names it."
        )),
        None if group.in_use.is_empty() => says.push(format!(
            "{name}: no scan saw the controller of {unseen} of {all} connections. knee observe --bpf \
             sees it; or name it, for example with --in-use cubic."
        )),
        _ => {}
    }
    if group.classes.is_empty() {
        says.push(format!(
            "{name}: {} is in use, and no other candidate was named: --candidates names some.",
            group.in_use
        ));
    }
    let is_misfit =
        |class: &AdvisedClass| matches!(class.verdict, Verdict::NoAdvice(Reason::Misfit(_)));
    if group.classes.iter().any(is_misfit) {
        let least: Vec<String> = group
            .misfitting
            .iter()
            .take(3)
            .map(|one| {
                let than = if one.errors > 0.0 { "above" } else { "below" };
                let errors = one.errors.abs();
                format!("{} ({errors:.0} standard errors {than} what was observed)", one.name)
            })
            .collect();
        let least = match least.is_empty() {
            true => String::new(),
            false => format!(" Its best path is furthest off in: {}.", least.join("; ")),
        };
        says.push(format!(
            "{name}: no simulated path explains these connections.{least} Connections over several \
             paths, or limited by the application or the receiver, do not fit: divide them with \
             knee observe --group, or observe for longer."
        ));
    }
    for class in &group.classes {
        let Some(prediction) = class.prediction.filter(|one| one.leaves_more_unfinished()) else {
            continue;
        };
        let [now, then] = prediction.unfinished.map(|part| 100.0 * part);
        says.push(format!(
            "{name}: {} is worse for {}: it leaves {then:.0} % of them unfinished, and {} {now:.0} %.",
            class.candidate,
            objects(class.class),
            group.in_use
        ));
    }
    says
}

/// Returns the first experiments worth making, one for each group of which the clients' prefixes are
/// known, in descending order of what they are worth; of groups with clients in common only the first.
pub fn recommended(advised: &[Advised]) -> Vec<Recommended<'_>> {
    let mut taken: Vec<Recommended<'_>> = Vec::new();
    for one in experiments(advised).into_iter().filter(|one| one.worth > 0.0) {
        let is_new = !taken.iter().any(|other| one.group.overlaps(other.group));
        if is_new && !one.group.prefixes.is_empty() {
            taken.push(one);
        }
    }
    taken
}

/// Returns the policy of the first experiments worth making, one for each group of which the
/// clients' prefixes are known, as TOML for `knee steer run`. `None` if there are none: connections
/// of a run have no prefixes.
pub fn advised_policy(advised: &[Advised]) -> Option<String> {
    let mut text = "\
# Written by knee advise: the experiments that it expects to be worth making.
# An experiment decides. The stage observe only looks at the traffic; then change
# it to canary, host or site, of which the last needs a time: begins.
#   knee steer plan advised.toml
#   knee steer run advised.toml --blocks observed.jsonl
name = \"advised\"
stage = \"observe\"
"
    .to_string();
    let taken = recommended(advised);
    for one in &taken {
        let group = one.group;
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let prefixes = group.prefixes.iter().map(|net| quoted(&net.to_string()));
        let ports = group.port.map_or_else(String::new, |port| format!("ports = [{port}]\n"));
        let candidate = one.controller();
        let is_loaded = LOADED.iter().any(|(_, kernel)| *kernel == candidate);
        let load = if is_loaded { format!("   # knee cc load {candidate}") } else { String::new() };
        // Written to a String, which does not fail.
        let _ = write!(
            text,
            "\n# {}.\n[[group]]\nname = {}\nprefixes = [{}]\n{ports}controller = {}{load}\n\
             control = {}\n",
            one.words().replace(char::is_control, " "),
            quoted(&group.name),
            prefixes.collect::<Vec<_>>().join(", "),
            quoted(&candidate),
            quoted(&group.in_kernel),
        );
    }
    (!taken.is_empty()).then_some(text)
}

impl Advised {
    /// Whether a connection may be in both groups, which a policy refuses.
    pub fn overlaps(&self, other: &Advised) -> bool {
        let ports = self.port.is_none() || other.port.is_none() || self.port == other.port;
        let net = |a: &IpNet| other.prefixes.iter().any(|b| a.contains(b) || b.contains(a));
        self.name == other.name || ports && self.prefixes.iter().any(net)
    }
}

/// Name of a controller in the kernel.
fn in_kernel(name: &str) -> String {
    let loaded = LOADED.iter().find(|(ours, _)| *ours == name);
    loaded.map_or_else(|| name.replace('-', "_"), |(_, kernel)| (*kernel).to_string())
}

impl Lab {
    /// Writes the page of the advice with the sentences `says` ([`advice_says`] first) and, if it
    /// names an experiment on a host, the policy. Returns whether there is one. `command` repeats the
    /// advice.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_advice(
        &self,
        advised: &[Advised],
        says: &[String],
        command: &str,
        directory: &Path,
    ) -> Result<bool, Error> {
        let policy = advised_policy(advised);
        if let Some(policy) = &policy {
            write_text(&directory.join(ADVISED_POLICY), policy)?;
        }
        let page = AdvicePage {
            says,
            rows: &advised.iter().flat_map(rows).collect::<Vec<_>>(),
            paths: advised_paths(advised),
            policy: policy.as_deref(),
            command,
        };
        write_text(&directory.join(REPORT), &advice_page(&page)?)?;
        Ok(policy.is_some())
    }
}

fn answer(rule: Option<RuleOfThumb>) -> &'static str {
    match rule {
        Some(RuleOfThumb::Try) => "try",
        Some(RuleOfThumb::Keep) => "keep",
        None => "",
    }
}

fn rows(group: &Advised) -> impl Iterator<Item = AdviceRow> {
    group.classes.iter().map(|class| AdviceRow {
        group: group.name.clone(),
        objects: class.sizes(),
        in_use: group.in_use.clone(),
        candidate: class.candidate.clone(),
        advice: class.conclusion(&group.in_use),
        word: match class.verdict {
            Verdict::Try => AdviceWord::Try,
            Verdict::Keep => AdviceWord::Keep,
            Verdict::Unclear | Verdict::NoAdvice(_) => AdviceWord::Unclear,
        },
        speed: class.change().map(|change| change.map(|by| 1.0 + by / 100.0)),
        change: class.change().map_or_else(String::new, change_words),
        retransmitted: class.retransmitted().map_or_else(String::new, retransmitted_words),
        rule_of_thumb: class.rule_of_thumb(),
        operators_rule: class.operators_rule(),
        bytes: format!("{:.0} %", 100.0 * class.bytes_share),
    })
}

/// Table of the path that explains each group best.
pub fn advised_paths(advised: &[Advised]) -> Table {
    let figures = ["connections", "bottleneck", "RTT", "buffer", "loss", "others", "misfit"];
    let heads = std::iter::once(text("connections of")).chain(figures.map(number));
    let row = |group: &Advised| {
        let path = group.fits.first().map_or_else(<[Cell; 6]>::default, path);
        let connections = Cell::count(group.connections as u64);
        [Cell::from(&group.name), connections].into_iter().chain(path)
    };
    Table::new(heads).called("paths").with_rows(advised.iter().map(row))
}

fn path(fit: &Fit) -> [Cell; 6] {
    let Fit { path, misfit, .. } = fit;
    let values = [path.rate_bps, path.rtt_s, path.buffer_bdp, path.loss, path.cross, *misfit];
    let mut shown = path_words(fit).into_iter().zip(values);
    std::array::from_fn(|_| shown.next().map_or_else(Cell::default, |(a, b)| Cell::shown(a, b)))
}
