//! `knee sweep`.

pub mod text;

use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, one_ground, tell_unsound, watched};
use crate::print::Print;
use crate::screen;
use knee_lab::directory::{DEFAULT, REPORT};
use knee_lab::{
    Error, Found, ScenarioText, Sweep, SweepSettings, SweepStore, Swept, TABLE, program_hash,
};
use std::path::{Path, PathBuf};

/// Runs a scenario at every combination of some settings.
pub fn sweep(arguments: &arguments::Sweep) -> Result<Ending, Failure> {
    let lab = lab(arguments.output.jobs);
    let text = ScenarioText::read(&arguments.file).map_err(Error::from)?;
    let settings = SweepSettings {
        set: arguments.set.clone(),
        seed: arguments.seed,
        repeat: arguments.repeat,
        skip_invalid: arguments.skip_invalid,
        about: arguments.about.clone(),
        ..SweepSettings::on(one_ground(&lab.grounds, &arguments.on)?, arguments.vary.clone())
    };
    let plan = Sweep::new(text, settings)?;
    let directory = directory(arguments, &plan);
    let force = arguments.output.force;
    let mut store = SweepStore::open(&lab, directory.clone(), program_hash()?, force)?;
    tell(&plan, &store.found(&plan));
    let swept = watched(&lab, || lab.sweep(&plan, &mut store))?;
    tell_speed(&swept);
    tell_unsound(&swept.unsound);
    print(arguments, &swept, &directory)?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

/// The output directory: `knee-out/sweep-NAME`, or the next number without another sweep.
fn directory(arguments: &arguments::Sweep, plan: &Sweep<'_>) -> PathBuf {
    if let Some(out) = &arguments.output.out {
        return out.clone();
    }
    // Also with --force, which is to replace this sweep, and no other.
    SweepStore::place(&PathBuf::from(DEFAULT).join(format!("sweep-{}", plan.text.stem())), plan)
}

/// Reports the plan, and the reasons for repeating runs.
fn tell(plan: &Sweep<'_>, found: &Found) {
    let left_out = plan.left_out.len();
    if left_out > 0 {
        let all = plan.points.len() + left_out;
        screen::say(&format!("{left_out} of {all} points are left out:"));
        plan.reasons().iter().for_each(|reason| screen::say(&format!("  {reason}")));
    }
    let runs = plan.runs.len();
    if found.finished > 0 {
        screen::say(&format!("{} of {runs} runs exist already.", found.finished));
    }
    let again = |count: usize, why: &str| {
        if count > 0 {
            screen::say(&format!("{count} of {runs} runs are repeated: {why}."));
        }
    };
    again(found.of_another_program, "another build of Knee wrote them");
    again(found.of_another_scenario, "the scenario or a file that it names has changed");
}

/// Reports the speed, unless the sweep is too short for the resolution of CPU time.
fn tell_speed(swept: &Swept) {
    let Swept { runs, packets, cpu_s, wall_s, .. } = *swept;
    if runs == 0 {
        return;
    }
    let speed = (cpu_s >= 0.2).then(|| {
        let millions = packets as f64 / cpu_s / 1e6;
        format!(": {millions:.1} million packets per CPU second")
    });
    let plural = if runs == 1 { "" } else { "s" };
    screen::say(&format!("{runs} run{plural} in {wall_s:.1} s{}.", speed.unwrap_or_default()));
}

fn print(arguments: &arguments::Sweep, swept: &Swept, directory: &Path) -> Result<(), Failure> {
    let summary = &swept.summary;
    let shown = |name: &str| directory.join(name).display().to_string();
    let end = format!(
        "\nruns     {} of {}\nreport   {}\ndataset  {}\nrepeat   {}\n",
        summary.runs_finished,
        summary.runs_planned,
        shown(REPORT),
        shown(TABLE),
        summary.command,
    );
    text::document(summary).words(end).print(arguments.print.format(), summary)
}
