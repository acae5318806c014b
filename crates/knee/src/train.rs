//! `knee train`: trains a rule table for RemyCC.

use crate::arguments::Train;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::out_file::OutFile;
use crate::screen;
use knee_lab::{ScenarioText, TrainSettings, Trained, all_or_every_error, scenario_files};

/// Trains a table and writes it; reports progress after each round.
pub fn train(arguments: &Train) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let out = OutFile::new(&arguments.out, arguments.force)?;
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
    // Stopped before a table was scored: there is nothing to keep.
    let Some(trained) = trained else { return Ok(Ending::Interrupted) };
    out.write_bytes(trained.table.to_string().as_bytes())?;
    screen::print(&result_text(&trained, arguments))?;
    Ok(if trained.stopped { Ending::Interrupted } else { Ending::Done })
}

fn result_text(trained: &Trained, arguments: &Train) -> String {
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
