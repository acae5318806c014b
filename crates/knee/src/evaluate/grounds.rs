//! `knee evaluate --on sim,kernel`: agreement between grounds.

use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::watched;
use crate::print::Print;
use crate::progress::seconds_left;
use crate::screen;
use knee_lab::directory::{GROUNDS, REPORT};
use knee_lab::report::evaluation_figures as figures;
use knee_lab::{EvaluateBoth, EvaluateSettings, Ground, Lab, SIMULATOR};
use knee_present::{Document, Table, Tone, number, text};
use knee_record::{EvaluationGrounds, EvaluationsCompared, GroundsPair};
use std::path::Path;

/// Evaluates on the simulator and on other grounds.
pub fn evaluate<'g>(
    arguments: &arguments::Evaluate,
    lab: &'g Lab,
    settings: EvaluateSettings<'g>,
    grounds: &[&'g dyn Ground],
    directory: &Path,
) -> Result<Ending, Failure> {
    let usage = |what: &str, advice: &str| Failure::Usage(what.to_string(), advice.to_string());
    if grounds.len() < 2 || grounds[0].name() != SIMULATOR {
        let advice = "write --on sim,kernel";
        return Err(usage("a ground in real time needs the simulator for comparison", advice));
    }
    let asked =
        [arguments.against.is_some(), arguments.search.is_some(), arguments.report.is_some()];
    if asked.contains(&true) {
        let advice = "remove --on";
        return Err(usage("--against, --search and --report work only on the simulator", advice));
    }
    let settings = EvaluateSettings { quick: true, ..settings };
    let mut both = EvaluateBoth::new(&settings, grounds, arguments.repeat_real)?;
    let force = arguments.output.force;
    let resumed = if force { 0 } else { both.resume(&lab.program, directory) };
    let directories = both.directories(directory);
    lab.claim(directory, &directories, force || resumed > 0)?;
    let (runs, seconds) = both.real_time();
    say_how_long(runs, seconds, resumed, directory);
    let compared = watched(lab, || lab.evaluate_both(&both, directory))?;
    let mut document = document(&compared, directory);
    for folder in &directories {
        document = document.words(format!("report   {}\n", folder.join(REPORT).display()));
    }
    let words = format!("repeat   {}\n", compared.command);
    document.words(words).print(arguments.print.format(), &compared)?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

/// Says how many runs in real time are to be made, and how many an interrupted evaluation has left.
pub fn say_how_long(runs: usize, seconds: f64, resumed: usize, directory: &Path) {
    if resumed > 0 {
        let (runs, are) = if resumed == 1 { ("run", "is") } else { ("runs", "are") };
        let there = directory.display();
        screen::say(&format!("{resumed} {runs} {are} in {there} already, not to be repeated."));
    }
    screen::say(&format!("{runs} runs in real time, {}.", seconds_left(seconds)));
}

fn document(compared: &EvaluationsCompared, directory: &Path) -> Document {
    let mut document = Document::default();
    for one in &compared.compared {
        document = document.said(headline(one)).words("\n").table(table(one)).words("\n");
        if !one.without_value.is_empty() {
            let lines = one.without_value.join("; ");
            document = document
                .said(format!("Lines without values of all controllers on both grounds: {lines}."));
        }
    }
    document.words(format!("\ndata     {}\n", directory.join(GROUNDS).display()))
}

fn headline(one: &EvaluationGrounds) -> String {
    let [first, second] = &one.grounds;
    format!(
        "{first} and {second} agree about {} in {} of {} pairwise comparisons ({}): the same one \
         is ahead on both, or neither.",
        one.controllers.join(", "),
        one.agree,
        one.pairs.len(),
        one.share().map_or_else(|| "none".to_string(), |share| format!("{:.0} %", 100.0 * share)),
    )
}

/// Table of all comparisons; those where the grounds differ are highlighted.
fn table(one: &EvaluationGrounds) -> Table {
    let heads = ["§", "criterion", "controllers"].map(text).into_iter();
    let heads = heads.chain(one.grounds.iter().map(number)).chain([text("same")]);
    let mut table = Table::new(heads).called("grounds");
    for pair in &one.pairs {
        let GroundsPair { section, title, controllers, ratios, agrees, .. } = pair;
        let tone = if *agrees { Tone::Neutral } else { Tone::Bad };
        let cells = [
            section.clone(),
            title.clone(),
            format!("{} / {}", controllers[0], controllers[1]),
            figures(ratios[0]),
            figures(ratios[1]),
            if *agrees { "yes" } else { "no" }.to_string(),
        ];
        table.row_in(tone, cells);
    }
    table
}
