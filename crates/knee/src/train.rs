//! `knee train`: trains a rule table for RemyCC.

use crate::advice::cannot_write;
use crate::arguments::Train;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::screen;
use knee_lab::{ScenarioText, TrainSettings, Trained, all_or_every_error, scenario_files};
use std::fs::{self, File};
use std::io::Write;

/// Trains a table and writes it; reports progress after each round.
pub fn train(arguments: &Train) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let out = &arguments.out;
    if out.exists() && !arguments.force {
        let what = format!("{} exists", out.display());
        return Err(Failure::Usage(what, "name another file, or add --force".to_string()));
    }
    let files = scenario_files(&arguments.files)?;
    let texts = all_or_every_error(files.iter().map(|file| ScenarioText::read(file)))?;
    let settings = TrainSettings {
        seed: arguments.seed,
        seeds: arguments.seeds,
        rounds: arguments.rounds,
        delay_weight: arguments.delay_weight,
    };
    let train = knee_lab::Train::new(&texts, settings)?;
    let trained = watched(&lab, || {
        lab.train(&train, &|at| {
            screen::say(&format!(
                "round {}: {} rules, score {:.3}, {} runs so far",
                at.round, at.rules, at.score, at.runs
            ));
        })
    })?;
    write(arguments, &trained)?;
    screen::print(&told(&trained, arguments))?;
    Ok(if trained.stopped { Ending::Interrupted } else { Ending::Done })
}

fn told(trained: &Trained, arguments: &Train) -> String {
    let Trained { table, score, score_of_cubic, runs, .. } = trained;
    let rules = table.rules().count();
    let beside = score_of_cubic.map_or_else(String::new, |cubic| {
        format!("; CUBIC {cubic:.3}, lower by a factor of {:.2}", (score - cubic).exp())
    });
    format!(
        "rules    {rules}\nscore    {score:.3}{beside}\nruns     {runs}\ntable    {}\n",
        arguments.out.display()
    )
}

fn write(arguments: &Train, trained: &Trained) -> Result<(), Failure> {
    let path = &arguments.out;
    if arguments.force {
        // Never overwrite in place: the file could be a link.
        let _ = fs::remove_file(path);
    }
    File::create_new(path)
        .and_then(|mut file| file.write_all(trained.table.to_string().as_bytes()))
        .map_err(|error| cannot_write(path, &error))
}
