//! `knee steer auto`: from observed connections to a policy, in stages.
//!
//! The result of each stage is a file, written once: the same command goes on where it ended.

mod ask;
mod decide;
mod folder;
mod live;
mod page;
mod simulated;

use crate::arguments::{Auto, AutoStage};
use crate::experiment;
use crate::failure::{Ending, Failure};
use crate::laboratory::lab;
use crate::print::Print;
use crate::{interrupt, screen};
use ask::{Consent, ask};
use folder::{Advice, Folder, Group, Planned, Stage};
use knee_lab::directory::REPORT;
use knee_lab::{Handle, Lab};
use std::collections::BTreeMap;

/// What is decided so far.
struct Found {
    advice: Advice,
    stages: BTreeMap<AutoStage, Stage>,
}

impl Found {
    /// The groups that go on, by what they are worth.
    fn going(&self) -> Vec<&Group> {
        let goes_on = |group: &&Group| {
            let mut results = self.stages.values().flat_map(|stage| &stage.groups);
            group.decision.goes_on
                && results.all(|one| one.name != group.name || one.decision.goes_on)
        };
        self.advice.groups.iter().filter(goes_on).collect()
    }
}

/// What all stages have in common.
struct Run<'r> {
    arguments: &'r Auto,
    lab: Lab,
    handle: Handle,
    folder: Folder,
}

/// How a stage ends.
enum Next {
    /// It is decided.
    Decided(Stage),
    /// It was interrupted: the same command goes on with it.
    Interrupted,
}

/// Leads from observed connections to a policy.
pub fn auto(arguments: &Auto) -> Result<Ending, Failure> {
    let lab = lab(arguments.by.jobs);
    lab.keep_apart(&arguments.out, &arguments.rows)?;
    let planned = Planned::of(&experiment::timeline(&arguments.schedule)?);
    let folder = Folder::open(&arguments.out)?;
    let handle = lab.handle();
    let words = "Stopping; all changes are reverted, and what is decided is kept.";
    interrupt::stops_with(handle.clone(), words)?;
    let run = Run { arguments, lab, handle, folder };
    let advice = match run.folder.read::<Advice>(AutoStage::Advise)? {
        Some(advice) => same(advice, planned, arguments)?,
        None => match simulated::advise(&run, planned)? {
            Some(advice) => {
                run.folder.write(AutoStage::Advise, &advice)?;
                advice
            }
            None => return Ok(Ending::Interrupted),
        },
    };
    let mut found = Found { advice, stages: BTreeMap::new() };
    for stage in AutoStage::LATER {
        if let Some(done) = run.folder.read::<Stage>(stage)? {
            found.stages.insert(stage, done);
        }
    }
    run.show(&found)?;
    let ending = run.stages(&mut found)?;
    run.show(&found)?;
    page::document(&found)
        .words(format!("\nreport   {}\n", run.folder.file(REPORT).display()))
        .print_tables(arguments.print.format())?;
    Ok(ending)
}

/// Refuses to go on with another schedule or other guards: that is another experiment.
fn same(advice: Advice, planned: Planned, arguments: &Auto) -> Result<Advice, Failure> {
    if advice.schedule == planned && advice.accepts == arguments.accepted.harms {
        return Ok(advice);
    }
    let what = match advice.schedule == planned {
        true => format!("{} was begun with other accepted harms", arguments.out.display()),
        false => format!("{} was begun with other blocks", arguments.out.display()),
    };
    Err(Failure::Usage(what, format!("repeat it as it was begun: {}", advice.command)))
}

impl Run<'_> {
    /// Goes through the stages that are not decided.
    fn stages(&self, found: &mut Found) -> Result<Ending, Failure> {
        let until = self.arguments.until.unwrap_or(AutoStage::Policy);
        for stage in AutoStage::LATER.into_iter().filter(|stage| *stage <= until) {
            if found.going().is_empty() {
                screen::say("No group goes on: everything stays as it is.");
                return Ok(Ending::Done);
            }
            if stage == AutoStage::Policy {
                return self.policy(found);
            }
            if found.stages.contains_key(&stage) {
                continue;
            }
            let next = match stage {
                AutoStage::Rehearse => simulated::rehearse(self, found)?,
                _ => {
                    if !self.consents(stage, &live::warning(self, found, stage)?) {
                        return Ok(Ending::Done);
                    }
                    live::experiment(self, found, stage)?
                }
            };
            match next {
                Next::Interrupted => {
                    screen::say(&format!("Stage {} goes on by: {}", stage.name(), self.again()));
                    return Ok(Ending::Interrupted);
                }
                Next::Decided(done) => {
                    self.folder.write(stage, &done)?;
                    screen::say(&format!("Stage {}: {}", stage.name(), done.done));
                    for one in &done.groups {
                        let stays = if one.decision.goes_on { "" } else { "stays as it is: " };
                        screen::say(&format!("  {}: {stays}{}.", one.name, one.decision.why));
                    }
                    found.stages.insert(stage, done);
                    self.show(found)?;
                }
            }
        }
        Ok(Ending::Done)
    }

    /// Writes the policy, and applies it.
    fn policy(&self, found: &Found) -> Result<Ending, Failure> {
        live::keep_policy(self, found)?;
        self.show(found)?;
        if !self.consents(AutoStage::Policy, &live::warning(self, found, AutoStage::Policy)?) {
            return Ok(Ending::Done);
        }
        live::apply(self)
    }

    /// Says what a stage changes and, if it changes something, asks.
    fn consents(&self, stage: AutoStage, warning: &str) -> bool {
        screen::say(&screen::wrapped(&format!("Stage {}. {warning}", stage.name())));
        if stage == AutoStage::Observe || self.arguments.yes {
            return true;
        }
        let consent = ask(stage.name(), &self.handle);
        match consent {
            Consent::Given => {}
            Consent::Refused => screen::say(&format!(
                "Nothing was changed. This stage can still begin: {}",
                self.again()
            )),
            Consent::Nobody => screen::say(&format!(
                "Nobody can be asked here, so nothing was changed. On a terminal, or with --yes: {}",
                self.again()
            )),
        }
        consent == Consent::Given
    }

    /// The command that goes on.
    fn again(&self) -> String {
        page::command(self.arguments)
    }

    /// Writes the page.
    fn show(&self, found: &Found) -> Result<(), Failure> {
        page::write(self, found)
    }
}
