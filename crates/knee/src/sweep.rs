//! `knee sweep`.

mod plan;
mod store;
mod text;
mod vary;

pub use vary::Vary;

use crate::arguments::Sweep;
use crate::control::Control;
use crate::directory::{self, REPORT, SWEEP};
use crate::failure::{Ending, Failure};
use crate::input::ScenarioText;
use crate::interrupt;
use crate::progress::Load;
use crate::run::quoted;
use crate::screen;
use crate::workers::{Job, costliest_first, execute, side_by_side};
use knee_record::{Meter, SweepRow, SweepRun, SweepSummary, write_json, write_sweep, write_text};
use knee_report::sweep_page;
use knee_scenario::Ground;
use plan::{Plan, PlannedRun};
use std::collections::BTreeSet;
use std::path::PathBuf;
use store::{Found, Store, TABLE};

/// Runs a scenario at every combination of some settings.
pub fn sweep(arguments: &Sweep) -> Result<Ending, Failure> {
    let text =
        ScenarioText::read(&arguments.file).map_err(|errors| Failure::Files(vec![errors]))?;
    let plan = Plan::new(arguments, text)?;
    let mut store = Store::open(directory(arguments, &plan), arguments.output.force)?;
    tell(&plan, &store.found(&plan));
    store.begin(&summary(arguments, &plan, &store))?;
    carry_out(arguments, &plan, &store)?;
    store.refresh()?;
    let summary = summary(arguments, &plan, &store);
    gather(&plan, &store, &summary)?;
    print(arguments, &summary, &store)?;
    Ok(if interrupt::requested() { Ending::Interrupted } else { Ending::Done })
}

fn directory(arguments: &Sweep, plan: &Plan) -> PathBuf {
    let below = || PathBuf::from(directory::DEFAULT).join(format!("sweep-{}", plan.text.stem()));
    arguments.output.out.clone().unwrap_or_else(below)
}

/// What will be done, and why again.
fn tell(plan: &Plan, found: &Found) {
    let left_out = plan.left_out.len();
    if left_out > 0 {
        let all = plan.points.len() + left_out;
        screen::say(&format!("{left_out} of {all} points are left out:"));
        plan.reasons().iter().for_each(|reason| screen::say(&format!("  {reason}")));
    }
    let runs = plan.runs.len();
    if found.finished > 0 {
        screen::say(&format!("{} of {runs} runs are there already.", found.finished));
    }
    let again = |count: usize, why: &str| {
        if count > 0 {
            screen::say(&format!("{count} of {runs} runs are done again: {why}."));
        }
    };
    again(found.of_another_program, "another build of Knee made them");
    again(found.of_another_scenario, "the scenario or a file that it names has changed");
}

/// Does what is not there yet: all points of the first repeat, then of the
/// second …, in each the costliest first. A run that several points share is
/// done once.
fn carry_out(arguments: &Sweep, plan: &Plan, store: &Store) -> Result<(), Failure> {
    let mut ids = BTreeSet::new();
    let todo = plan.runs.iter().filter(|run| store.finished(run).is_none());
    let todo: Vec<&PlannedRun> = todo.filter(|run| ids.insert(&run.id)).collect();
    let loads: Vec<Load> = todo.iter().map(|run| run.load).collect();
    let mut order = costliest_first(&loads, 0..todo.len());
    order.sort_by_key(|number| todo[*number].repeat);
    let meter = Meter::start();
    let done = side_by_side(&loads, order, arguments.output.jobs, |number, control| {
        carry_out_one(plan, store, todo[number], control)
    })?;
    let done: Vec<(u64, f64)> = done.into_iter().flatten().collect();
    let seconds = meter.stop().wall_s;
    let packets: u64 = done.iter().map(|(packets, _)| packets).sum();
    let cpu_s: f64 = done.iter().map(|(_, cpu_s)| cpu_s).sum();
    if !done.is_empty() {
        // CPU time ticks too coarsely to tell the speed of a short sweep.
        let speed = (cpu_s >= 0.2).then(|| {
            let runs = done.len() as f64 / seconds * 60.0;
            let thousands = packets as f64 / cpu_s / 1e3;
            format!(": {runs:.0} runs a minute, {thousands:.0} thousand packets per CPU second")
        });
        let plural = if done.len() == 1 { "" } else { "s" };
        let speed = speed.unwrap_or_default();
        screen::say(&format!("{} run{plural} in {seconds:.1} s{speed}.", done.len()));
    }
    Ok(())
}

/// Data packets and CPU time; nothing for a run that was stopped.
fn carry_out_one(
    plan: &Plan,
    store: &Store,
    run: &PlannedRun,
    control: &Control,
) -> Result<Option<(u64, f64)>, Failure> {
    let point = &plan.points[run.point];
    let seed = Some(run.seed);
    let scenario = plan.scenario(point, seed).map_err(|errors| Failure::Files(vec![errors]))?;
    if plan::id(&scenario) != run.id {
        let what = format!("a file that {} names has changed meanwhile", plan.text.name);
        return Err(Failure::Usage(what, "run the sweep again".to_string()));
    }
    let ground = Ground::Sim;
    let job = Job { scenario: &scenario, ground, directory: None, packet_log: false };
    let finished = execute(&job, control).map_err(|failure| at_point(failure, &point.label))?;
    if finished.records.interrupted {
        return Ok(None);
    }
    let measured = (&finished.records, &finished.summary);
    let cpu_s = finished.usage.user_cpu_s;
    let kept = SweepRun::new(
        &store.program,
        (&run.id, &point.label, run.repeat),
        &scenario,
        measured,
        cpu_s,
    );
    store.keep(&kept)?;
    Ok(Some((kept.data_packets, cpu_s)))
}

fn at_point(failure: Failure, label: &str) -> Failure {
    match failure {
        Failure::Usage(what, advice) => Failure::Usage(format!("at {label}: {what}"), advice),
        Failure::Internal(what) => Failure::Internal(format!("at {label}: {what}")),
        other => other,
    }
}

/// What came out so far.
fn summary(arguments: &Sweep, plan: &Plan, store: &Store) -> SweepSummary {
    let mut runs: Vec<(Vec<usize>, Vec<SweepRun>)> =
        plan.points.iter().map(|point| (point.at.clone(), Vec::new())).collect();
    for run in &plan.runs {
        runs[run.point].1.extend(store.finished(run).cloned());
    }
    runs.retain(|(_, runs)| !runs.is_empty());
    SweepSummary::new(
        &plan.name,
        (command(arguments, plan), command_of_a_run(arguments, plan)),
        plan.keys.clone(),
        (arguments.repeat.unwrap_or(1), plan.runs.len()),
        &runs,
        plan.left_out.clone(),
    )
}

/// Table, document and page.
fn gather(plan: &Plan, store: &Store, summary: &SweepSummary) -> Result<(), Failure> {
    let mut runs: Vec<&PlannedRun> = plan.runs.iter().collect();
    runs.sort_by_key(|run| (run.point, run.repeat));
    let rows = runs.into_iter().flat_map(|run| {
        let groups = store.finished(run).map(|kept| &kept.groups);
        groups.into_iter().flatten().map(|group| SweepRow {
            run: &run.id,
            at: &plan.points[run.point].at,
            repeat: run.repeat,
            seed: run.seed,
            group,
        })
    });
    let rows: Vec<SweepRow<'_>> = rows.collect();
    write_sweep(&store.directory.join(TABLE), &plan.keys, &rows)?;
    write_json(&store.directory.join(SWEEP), summary)?;
    write_text(&store.directory.join(REPORT), &sweep_page(summary)?)?;
    Ok(())
}

/// The line that repeats or resumes the sweep.
fn command(arguments: &Sweep, plan: &Plan) -> String {
    let mut words = vec!["knee".to_string(), "sweep".to_string(), quoted(&plan.text.name)];
    for vary in &arguments.vary {
        words.extend(["--vary".to_string(), quoted(&vary.text)]);
    }
    words.extend(settings(arguments));
    words.extend(arguments.seed.iter().flat_map(|n| ["--seed".to_string(), n.to_string()]));
    words.extend(arguments.repeat.iter().flat_map(|k| ["--repeat".to_string(), k.to_string()]));
    if arguments.skip_invalid {
        words.push("--skip-invalid".to_string());
    }
    words.join(" ")
}

/// What all runs of the sweep share, for a line that repeats one of them.
fn command_of_a_run(arguments: &Sweep, plan: &Plan) -> String {
    let words = ["knee".to_string(), "run".to_string(), quoted(&plan.text.name)];
    words.into_iter().chain(settings(arguments)).collect::<Vec<_>>().join(" ")
}

fn settings(arguments: &Sweep) -> impl Iterator<Item = String> {
    arguments.set.iter().flat_map(|set| ["--set".to_string(), quoted(&set.text)])
}

fn print(arguments: &Sweep, summary: &SweepSummary, store: &Store) -> Result<(), Failure> {
    if arguments.json {
        return screen::print_json(summary);
    }
    let shown = |name: &str| store.directory.join(name).display().to_string();
    screen::print(&format!(
        "{}\n\n{}{}\nruns     {} of {}\nreport   {}\ndataset  {}\nrepeat   {}\n",
        summary.name,
        text::text(summary),
        text::verdicts(summary),
        summary.runs_finished,
        summary.runs_planned,
        shown(REPORT),
        shown(TABLE),
        summary.command,
    ))
}
