//! `knee rank`.

use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, one_ground, tell_unsound, watched};
use crate::print::Print;
use crate::screen;
use knee_lab::command::quoted;
use knee_lab::directory::{DEFAULT, RANK_TABLE, REPORT};
use knee_lab::report::rank_table;
use knee_lab::{Candidates, Rank, RankSettings, Ranked};
use knee_present::Document;
use knee_record::RankSummary;
use std::path::{Path, PathBuf};

/// Ranks controllers over scenarios.
pub fn rank(arguments: &arguments::Rank) -> Result<Ending, Failure> {
    let lab = lab(arguments.output.jobs);
    let on = RankSettings::on(one_ground(&lab.grounds, &arguments.on)?);
    let settings = RankSettings {
        candidates: arguments.cc.clone().unwrap_or_else(Candidates::all),
        rivals: arguments.against.clone().unwrap_or_else(|| on.rivals.clone()),
        set: arguments.set.clone(),
        flow: arguments.flow.clone(),
        seed: arguments.seed,
        repeat: arguments.repeat,
        ..on
    };
    let rank = Rank::of_files(&arguments.files, &settings)?;
    let directory = directory(arguments);
    lab.claim(&directory, [&directory], arguments.output.force)?;
    tell(&rank);
    let ranked = watched(&lab, || lab.rank(&rank, &directory))?;
    let twice = match ranked.summary.runs_finished - ranked.runs {
        0 => String::new(),
        twice => {
            format!(" {twice} of them count twice: beside itself, and beside the rival it is.")
        }
    };
    screen::say(&format!("{} runs in {:.1} s.{twice}", ranked.runs, ranked.wall_s));
    tell_unsound(&ranked.unsound);
    print(arguments, &ranked, &directory)?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

fn directory(arguments: &arguments::Rank) -> PathBuf {
    let below = || {
        let first = arguments.files.first().and_then(|file| file.file_stem());
        let stem = first.unwrap_or_default().to_string_lossy();
        PathBuf::from(DEFAULT).join(format!("rank-{stem}"))
    };
    arguments.output.out.clone().unwrap_or_else(below)
}

/// Reports the files and flows that are left out.
fn tell(rank: &Rank<'_>) {
    for left_out in &rank.not_ranked {
        screen::say(&format!("Left out: {} ({}).", left_out.file, left_out.reason));
    }
    for scenario in rank.ranking.scenarios.iter().filter(|one| !one.left_out.is_empty()) {
        let (file, left_out) = (&scenario.file, scenario.left_out.join(", "));
        screen::say(&format!("{file}: flow {} is ranked; left out: {left_out}.", scenario.flow));
    }
}

fn print(arguments: &arguments::Rank, ranked: &Ranked, directory: &Path) -> Result<(), Failure> {
    let summary = &ranked.summary;
    let shown = |name: &str| directory.join(name).display().to_string();
    let end = format!(
        "\nruns     {} of {}\nreport   {}\ndataset  {}\nrepeat   {}\n",
        summary.runs_finished,
        summary.ranking.runs_planned,
        shown(REPORT),
        shown(RANK_TABLE),
        summary.ranking.command,
    );
    let cases = summary.worst.iter().filter_map(|worst| {
        let file = shown(worst.file.as_ref()?);
        Some(format!("worst    knee run {}  ({})\n", quoted(&file), worst.candidate))
    });
    let end = end + &cases.collect::<String>();
    document(summary).words(end).print(arguments.print.format(), summary)
}

/// The conclusion with its table.
pub fn document(summary: &RankSummary) -> Document {
    let table = rank_table(summary);
    let note = table.note.clone();
    Document::default().said(&summary.says).words("\n").table(table).said(note)
}
