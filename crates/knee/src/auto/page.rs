//! What `knee steer auto` says: its table, and its page.

use super::decide::Class;
use super::folder::{Folder, Group, Outcome, Stage};
use super::{Found, Run};
use crate::advise::options;
use crate::arguments::{Auto, AutoStage};
use crate::experiment;
use crate::failure::Failure;
use knee_lab::change_words;
use knee_lab::command::quoted;
use knee_lab::directory::REPORT;
use knee_policy::{Block, recorded_blocks};
use knee_present::words::{capitalised, count};
use knee_present::{Cell, Document, Layout, Table, Tone, text};
use knee_record::{rfc3339, write_text};
use knee_report::{SteeringGroup, SteeringPage, SteeringRow, SteeringStage, steering_page};
use std::fs;
use std::path::Path;

/// Columns of the evidence on the page.
const WIDTH: usize = 110;

/// The command that goes on.
pub fn command(arguments: &Auto) -> String {
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let rows: Vec<String> = arguments.rows.iter().map(|rows| path(rows)).collect();
    let mut command = format!("knee steer auto {} --out {}", rows.join(" "), path(&arguments.out));
    if let Some(providers) = &arguments.providers {
        command += &format!(" --providers {}", path(providers));
    }
    if arguments.history {
        command += " --history";
    }
    let schedule = &arguments.schedule;
    command += &options(&arguments.by);
    command += &format!(
        " --block '{}' --burn-in '{}' --triples {} --calibration {}",
        schedule.block, schedule.burn_in, schedule.triples, schedule.calibration
    );
    for limit in &schedule.allow {
        command += &format!(" --allow {}", limit.name());
    }
    for harm in &arguments.accepted.harms {
        command += &format!(" --accept {}", harm.name());
    }
    command
}

/// The decision for a group so far: in words, whether it is changed, and the reason.
fn decision(found: &Found, group: &Group) -> (String, bool, String) {
    let own = |stage: &AutoStage| -> Option<&Outcome> {
        found.stages.get(stage)?.groups.iter().find(|one| one.name == group.name)
    };
    let last = AutoStage::LATER.iter().rev().find_map(|stage| Some((*stage, own(stage)?)));
    let (stage, last) = match last {
        None => (AutoStage::Advise, &group.decision),
        Some((stage, outcome)) => (stage, &outcome.decision),
    };
    let is_changed = last.goes_on && stage == AutoStage::Host;
    let [_, in_use] = &group.in_use;
    let words = match (last.goes_on, &group.candidate) {
        (true, Some([_, candidate])) if is_changed => format!("gets {candidate}"),
        (true, _) => "goes on".to_string(),
        (false, _) if in_use.is_empty() => "stays as it is".to_string(),
        (false, _) => format!("stays with {in_use}"),
    };
    (words, is_changed, format!("{}: {}", stage.name(), last.why))
}

/// The groups with their evidence.
fn groups(found: &Found) -> Vec<SteeringGroup> {
    let classes = |stage: AutoStage, group: &Group| -> Vec<Class> {
        let stage = found.stages.get(&stage);
        let own = stage.and_then(|stage| stage.groups.iter().find(|one| one.name == group.name));
        own.map(|one| one.classes.clone()).unwrap_or_default()
    };
    let group = |group: &Group| {
        let candidate = group.candidate.as_ref().map_or_else(String::new, |[name, _]| name.clone());
        let mut rows: Vec<SteeringRow> = Vec::new();
        for one in &group.expected {
            let change = one.gain.map(|gain| change_words(gain.map(|by| 100.0 * by.exp_m1())));
            rows.push(SteeringRow {
                candidate: one.candidate.clone(),
                objects: one.objects.clone(),
                expected: change.unwrap_or_else(|| one.advice.clone()),
                rehearsed: String::new(),
                measured: String::new(),
            });
        }
        let [rehearsed, measured] =
            [AutoStage::Rehearse, AutoStage::Host].map(|stage| classes(stage, group));
        let mut objects: Vec<&String> = Vec::new();
        for class in rehearsed.iter().chain(&measured) {
            if !objects.contains(&&class.objects) {
                objects.push(&class.objects);
            }
        }
        let of = |all: &[Class], objects: &str| {
            let one = all.iter().find(|class| class.objects == objects);
            one.map(Class::words).unwrap_or_default()
        };
        rows.extend(objects.into_iter().map(|objects| SteeringRow {
            candidate: candidate.clone(),
            objects: objects.clone(),
            expected: String::new(),
            rehearsed: of(&rehearsed, objects),
            measured: of(&measured, objects),
        }));
        let (decision, is_changed, why) = decision(found, group);
        let in_use = group.in_use[0].clone();
        SteeringGroup {
            name: group.name.clone(),
            in_use,
            candidate,
            decision,
            is_changed,
            why,
            rows,
        }
    };
    found.advice.groups.iter().map(group).collect()
}

/// The result in sentences.
fn says(found: &Found, groups: &[SteeringGroup]) -> Vec<String> {
    let changed: Vec<String> = groups
        .iter()
        .filter(|group| group.is_changed)
        .map(|group| {
            format!("{} gets {} in place of {}", group.name, group.candidate, group.in_use)
        })
        .collect();
    let going = found.going().len();
    let last = AutoStage::LATER.iter().rev().find(|stage| found.stages.contains_key(stage));
    let mut says = vec![match (going, last) {
        (0, _) => "Everything stays as it is.".to_string(),
        (_, Some(AutoStage::Host)) => format!("{}.", changed.join("; ")),
        (going, last) => format!(
            "{going} of {} groups {} on after the stage {}.",
            groups.len(),
            if going == 1 { "goes" } else { "go" },
            last.copied().unwrap_or(AutoStage::Advise).name()
        ),
    }];
    match found.advice.left_out {
        0 => {}
        1 => says.push("One group with fewer bytes was not examined; --groups has more.".into()),
        left => says.push(format!(
            "{} groups with fewer bytes were not examined; --groups has more.",
            count(left as u64)
        )),
    }
    says
}

/// The table of the groups.
pub fn document(found: &Found) -> Document {
    let groups = groups(found);
    let mut table = Table::new([
        text("group"),
        text("today"),
        text("candidate"),
        text("decision"),
        text("reason"),
    ])
    .called("groups");
    for group in &groups {
        let tone = if group.is_changed { Tone::Good } else { Tone::Neutral };
        let SteeringGroup { name, in_use, candidate, decision, why, .. } = group;
        table.row_with(
            3,
            tone,
            [name, in_use, candidate, decision, why].map(|text| Cell::from(text.as_str())),
        );
    }
    says(found, &groups).into_iter().fold(Document::default().table(table), Document::said)
}

/// Writes the page.
pub fn write(run: &Run<'_>, found: &Found) -> Result<(), Failure> {
    let groups = groups(found);
    let policy = fs::read_to_string(run.folder.of(AutoStage::Policy, "toml")).ok();
    let mut stages = vec![advised(found)];
    for stage in AutoStage::LATER {
        if let Some(done) = found.stages.get(&stage) {
            stages.push(shown(&run.folder, stage, done));
        }
    }
    let page = SteeringPage {
        says: &says(found, &groups),
        groups: &groups,
        stages: &stages,
        policy: policy.as_deref(),
        command: &command(run.arguments),
    };
    let page = steering_page(&page).map_err(knee_lab::Error::from)?;
    Ok(write_text(&run.folder.file(REPORT), &page)?)
}

fn advised(found: &Found) -> SteeringStage {
    let reasons = found.advice.groups.iter();
    SteeringStage {
        name: AutoStage::Advise.name().to_string(),
        ended: String::new(),
        done:
            "Paths were fitted to the connections of each group, and the candidates simulated on \
               them. Nothing was changed."
                .to_string(),
        reasons: reasons.map(|one| reason(&one.name, &one.decision)).collect(),
        evidence: String::new(),
    }
}

fn reason(name: &str, decision: &super::decide::Decision) -> String {
    let stays = if decision.goes_on { "goes on" } else { "stays as it is" };
    format!("{name} {stays}: {}.", decision.why)
}

fn shown(folder: &Folder, stage: AutoStage, done: &Stage) -> SteeringStage {
    SteeringStage {
        name: stage.name().to_string(),
        ended: rfc3339(done.ended_unix),
        done: format!("{}.", capitalised(&done.done)),
        reasons: done.groups.iter().map(|one| reason(&one.name, &one.decision)).collect(),
        evidence: evidence(folder, stage).unwrap_or_default(),
    }
}

/// The tables of a stage's blocks, as `knee steer judge` prints them; `None` without blocks.
fn evidence(folder: &Folder, stage: AutoStage) -> Option<String> {
    let recorded = recorded_blocks(&[folder.of(stage, "jsonl")]).ok()?;
    let hosts: Vec<&[Block]> = recorded.hosts.iter().map(Vec::as_slice).collect();
    let document = experiment::document(&recorded.policy, &recorded.timeline, &hosts);
    Some(document.text(Layout { width: WIDTH, colour: false }))
}
