//! What an experiment on this host says, by stage.

use crate::verdicts::{self, Shown, amount, effect, evidence, tone, word};
use knee_policy::{
    Block, CLASSES, Checked, Judged, Policy, Slot, Stage, Stopped, Timeline, check, judged, noise,
};
use knee_present::words::time_us;
use knee_present::{Cell, Document, Table, Tone, number, text};
use knee_steer::{GUARD_LEVEL, Guarded, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Random labellings of observed blocks: enough that two standard errors of 5 % are 1.4 points.
const LABELLINGS: u64 = 1000;
/// Largest share of them with an effect: 5 % and two standard errors.
const SEEN_MAX: f64 = 0.064;
/// Changes of the rate for which observed blocks say how many triples they need.
const CHANGES: [f64; 3] = [0.03, 0.05, 0.1];

/// Result of the blocks so far, of one host or of a site's hosts.
pub fn document(policy: &Policy, timeline: &Timeline, hosts: &[&[Block]]) -> Document {
    let done: BTreeSet<u64> =
        hosts.iter().flat_map(|blocks| whole_triples(timeline, blocks)).collect();
    let length = |time: Duration| time_us(Some(time.as_secs_f64() * 1e6));
    let stage = match policy.stage {
        Stage::Observe => ", observed",
        Stage::Canary => ", canary",
        Stage::Host => "",
        Stage::Site => ", site",
    };
    let title = format!(
        "{}{stage}: {} of {} triples of blocks of {}, burn-in {}, seed {}.",
        policy.name,
        done.len(),
        timeline.triples,
        length(timeline.block),
        length(timeline.burn_in),
        policy.seed
    );
    let document = Document::default().said(title);
    let Some(judged) = judged(policy, timeline, hosts).filter(|all| !all.is_empty()) else {
        return stopped_without_result(document, policy, hosts).said(
            "There is no result: the blocks before the first triple are not finished, or no class \
             has five connections in a block.",
        );
    };
    match policy.stage {
        Stage::Observe => observed(document, policy, timeline, hosts[0], &judged),
        Stage::Canary => canary(document, policy, &judged),
        Stage::Host => compared_classes(document, policy, &judged),
        Stage::Site if hosts.len() > 1 => compared_classes(document, policy, &judged),
        Stage::Site => compared_classes(document, policy, &judged).said(
            "This is what one host alone says. The site's result is that of the blocks of all hosts: \
             knee steer judge FILES.",
        ),
    }
}

/// Where B was stopped, of an experiment whose other blocks do not suffice for a result.
fn stopped_without_result(document: Document, policy: &Policy, hosts: &[&[Block]]) -> Document {
    policy.groups.iter().enumerate().fold(document, |all, (at, group)| {
        let mut blocks = hosts.iter().copied().flatten();
        let why = blocks.find_map(|block| block.groups.get(at)?.stopped.clone());
        match why {
            Some(why) => all.said(format!("B is worse in {}, and was stopped: {why}.", group.name)),
            None => all,
        }
    })
}

/// The part of each host in a site's result.
pub fn hosts(timeline: &Timeline, files: &[PathBuf], hosts: &[&[Block]]) -> Document {
    let mut table = Table::new([
        text("host"),
        number("pairs"),
        number("triples"),
        number("void blocks"),
        number("connections"),
        text("B stopped"),
    ])
    .called("hosts");
    for (file, blocks) in files.iter().zip(hosts) {
        let pairs: BTreeSet<u64> = blocks
            .iter()
            .map(|block| block.number)
            .filter(|one| *one < 2 * timeline.calibration)
            .collect();
        let whole = pairs.iter().filter(|one| *one % 2 == 0 && pairs.contains(&(*one + 1))).count();
        let void = blocks.iter().filter(|block| block.void.is_some()).count();
        let groups = || blocks.iter().flat_map(|block| &block.groups);
        let counted = groups().flat_map(|group| group.classes.as_flattened());
        let stopped =
            blocks.iter().find(|block| block.groups.iter().any(|group| group.stopped.is_some()));
        let stopped = stopped.and_then(|block| match timeline.slot(block.number)? {
            Slot::Triple { triple, .. } => Some(triple + 1),
            Slot::Calibration { .. } => None,
        });
        let tone = if stopped.is_some() { Tone::Bad } else { Tone::Neutral };
        let cells = [
            Cell::from(file.display().to_string().as_str()),
            Cell::count(whole as u64),
            Cell::count(whole_triples(timeline, blocks).len() as u64),
            Cell::count(void as u64),
            Cell::count(counted.map(|sums| sums.count).sum::<u64>()),
            stopped.map_or_else(|| "no".into(), |triple| format!("in triple {triple}").into()),
        ];
        table.row_with(5, tone, cells);
    }
    Document::default().table(table).said(
        "Each host is weighted by its connections in the pairs before the first triple; without a \
         pair it has no part in the result. If a host missed a triple or has a void block in it, it \
         is left out of that triple.",
    )
}

/// The triples of which a host has all blocks.
fn whole_triples(timeline: &Timeline, blocks: &[Block]) -> BTreeSet<u64> {
    let mut counts = BTreeMap::new();
    for block in blocks {
        if let Some(Slot::Triple { triple, .. }) = timeline.slot(block.number) {
            *counts.entry(triple).or_insert(0) += 1;
        }
    }
    counts.into_iter().filter(|(_, count)| *count == 3).map(|(triple, _)| triple).collect()
}

/// Result of the stage observe: false effects, and how many triples an experiment needs.
fn observed(
    document: Document,
    policy: &Policy,
    timeline: &Timeline,
    blocks: &[Block],
    judged: &[Judged],
) -> Document {
    let mut table = Table::new([
        text("group"),
        text("objects"),
        text("as labelled"),
        number("connections"),
        number("halves differ by"),
        number("blocks differ by"),
        number("triples for 3 %"),
        number("for 5 %"),
        number("for 10 %"),
    ])
    .called("noise");
    for one in judged {
        let Some(noise) = noise(blocks, timeline, one.group, one.class) else { continue };
        let [small, middle, large] = CHANGES.map(|change| Cell::count(noise.triples_for(change)));
        let differ = 100.0 * noise.deviation;
        let verdict = one.trial.verdict().0;
        let is_none = matches!(verdict, Verdict::Alike | Verdict::Undecided | Verdict::TooFew);
        let tone = if is_none { Tone::Good } else { Tone::Bad };
        let cells = [
            Cell::from(policy.groups[one.group].name.as_str()),
            CLASSES[one.class].1.into(),
            word(&one.trial).into(),
            Cell::shown(format!("{:.0}", one.connections), one.connections),
            effect(one.trial.naive()),
            Cell::shown(format!("{differ:.1} %"), differ),
            small,
            middle,
            large,
        ];
        table.row_with(2, tone, cells);
    }
    let document = document.table(table).said(
        "Nothing was changed. As labelled: what an experiment of this seed would have said, which must \
         not be better or worse. Connections: mean number that count in a block. Halves differ by: B's half \
         of the clients from A's, whose interval has to include zero. Blocks differ by: standard \
         deviation of the difference of two blocks of a triple. Triples: number that shows \
         a change of the rate by so much with power 0.8; write no fewer than 16 as --triples.",
    );
    // Each triple at most doubles the evidence.
    let needed = judged.first().map_or(0.0, |one| one.trial.threshold().log2().ceil());
    let most = judged.iter().map(|one| one.trial.verdict().1).max().unwrap_or(0);
    if (most as f64) < needed {
        return document.said(format!(
            "No check for false effects: none can be seen in fewer than {needed} triples."
        ));
    }
    let names: Vec<String> = policy.groups.iter().map(|group| group.name.clone()).collect();
    let Some(checked) = check(blocks, timeline, &names, LABELLINGS) else {
        return document.said("There is no triple yet to check for false effects.");
    };
    let Checked { labellings, seen, stopped } = checked;
    let share = seen as f64 / labellings as f64;
    let result = match share <= SEEN_MAX {
        true => "That is as it should be.",
        false => {
            "That is a fault in Knee, since it cannot depend on the traffic: please report it."
        }
    };
    document.said(format!(
        "Under {labellings} random labels {seen} had an effect, {:.1} % (at most 5 % are expected, \
         and 1.4 points more by chance), and {stopped} were stopped by a guard. {result}",
        100.0 * share
    ))
}

/// Result of the stage canary: the guards alone.
fn canary(document: Document, policy: &Policy, judged: &[Judged]) -> Document {
    // Every class of a group has the same guards; the one with most connections, most triples.
    let most = judged.iter().max_by(|a, b| a.connections.total_cmp(&b.connections));
    let Some(most) = most else { return document };
    let group = &policy.groups[most.group];
    let mut table = Table::new([
        text("guard"),
        text("result"),
        number("evidence"),
        number("B is worse by"),
        number("margin"),
        number("visible so far"),
    ])
    .called("guards");
    let mut ended = most.stopped.is_some();
    let mut is_able = true;
    for harm in Guarded::ALL {
        let name = verdicts::name(harm);
        let guard = most.trial.guards().each().find(|(of, _)| *of == harm);
        let Some((_, guard)) = guard.filter(|(_, guard)| guard.mean().is_some()) else {
            is_able = false;
            let cells = [name.into(), "not measured".into()];
            let none = (0..4).map(|_| Cell::default());
            table.row_with(1, Tone::Bad, cells.into_iter().chain(none));
            continue;
        };
        let (result, tone) = match (guard.has_stopped(), guard.is_able()) {
            _ if guard.is_accepted() => ("accepted", Tone::Neutral),
            (true, _) => ("stopped", Tone::Bad),
            (false, true) => ("none seen", Tone::Good),
            (false, false) => ("too short", Tone::Neutral),
        };
        ended |= guard.has_stopped();
        is_able &= guard.is_able() || guard.is_accepted();
        let proof = guard.evidence();
        let cells = [
            name.into(),
            result.into(),
            Cell::shown(evidence(proof), proof),
            guard.mean().map_or_else(Cell::default, |by| amount(harm, by)),
            amount(harm, guard.margin()),
            guard.smallest_so_far().map_or("nothing".into(), |by| amount(harm, by)),
        ];
        table.row_with(1, tone, cells);
    }
    let (b, a) = (group.arm(), group.control.as_deref().unwrap_or(""));
    let mut document = document.table(table).said(format!(
        "{b} (B) against {a} (A) in {}, {} triples left out. A canary looks for harm beyond the \
         margin, and says nothing about the effect. A guard stops at an evidence of {:.0}, which \
         takes seven triples at least; a percentile needs 20 connections in a block. Visible: the \
         smallest harm that stops four of five experiments of so many triples.",
        group.name,
        most.left_out,
        1.0 / GUARD_LEVEL
    ));
    if let Some(Stopped { why, triple, .. }) = &most.stopped {
        document = document.said(format!("B was stopped in triple {triple}: {why}."));
    }
    let next = match (ended, is_able) {
        (true, _) => "B does harm: keep A.",
        (false, true) => {
            "No harm beyond what is visible was found. The next stage is host: write stage = \"host\"."
        }
        (false, false) => {
            "Not every guard could have stopped it: run more triples or longer blocks."
        }
    };
    document.said(next)
}

/// Result of the stage host: the effect by group and class.
fn compared_classes(document: Document, policy: &Policy, judged: &[Judged]) -> Document {
    let mut table = Table::new([
        text("group"),
        text("B against A"),
        text("objects"),
        text("verdict"),
        number("evidence"),
        number("B minus A"),
        number("left out"),
    ])
    .called("classes");
    for one in judged {
        let group = &policy.groups[one.group];
        let (verdict, after) = one.trial.verdict();
        let pair = format!("{}, {}", group.arm(), group.control.as_deref().unwrap_or(""));
        // The guards of any class stop the whole group.
        let is_guarded = judged
            .iter()
            .filter(|other| other.group == one.group)
            .any(|other| other.trial.guards().each().any(|(_, guard)| guard.has_stopped()));
        let (words, tone) = match &one.stopped {
            Some(_) if is_guarded => ("worse: stopped".to_string(), Tone::Bad),
            Some(_) => ("worse: stopped at once".to_string(), Tone::Bad),
            None => (word(&one.trial), tone(verdict)),
        };
        let proof = one.trial.evidence();
        table.row_with(
            3,
            tone,
            [
                Cell::from(group.name.as_str()),
                pair.as_str().into(),
                CLASSES[one.class].1.into(),
                words.into(),
                Cell::shown(evidence(proof), proof).with("after", after as f64),
                effect(one.trial.total()),
                Cell::count(one.left_out),
            ],
        );
    }
    let threshold = judged.first().map_or(0.0, |one| one.trial.threshold());
    let stopped: Vec<String> = judged
        .iter()
        .filter_map(|one| {
            let Stopped { why, triple, .. } = one.stopped.as_ref()?;
            let group = &policy.groups[one.group].name;
            Some(format!("B was stopped in {group}, in triple {triple}: {why}."))
        })
        .collect();
    let mut document = document.table(table).said(format!(
        "Rate of a connection: bytes delivered over the time with data to send, geometric mean. B \
         minus A: all under B compared with all under A. An effect is significant with evidence \
         of {threshold:.0} or more. Left out: triples with a block that is void or without a \
         connection of the class. Connections that end, or are open at the end of their block, with \
         undelivered data are unfinished: they count with what they have delivered."
    ));
    for one in judged {
        if let Some(remains) = one.trial.covariate().remains() {
            let (group, class) = (&policy.groups[one.group].name, CLASSES[one.class].1);
            document = document.said(format!(
                "{group}, {class}: what the same hours of the day before explain is removed, {:.0} % \
                 of the variance.",
                100.0 * (1.0 - remains)
            ));
        }
    }
    let mut said = Vec::new();
    for words in stopped {
        if !said.contains(&words) {
            said.push(words.clone());
            document = document.said(words);
        }
    }
    let name = |one: &Judged| policy.groups[one.group].name.clone();
    let named: Vec<(String, &Judged)> = judged.iter().map(|one| (name(one), one)).collect();
    let shown = named.iter().map(|(group, one)| Shown {
        of: group,
        sizes: CLASSES[one.class].1,
        trial: &one.trial,
    });
    verdicts::beside(document, ["group", "connections"], &shown.collect::<Vec<_>>())
}
