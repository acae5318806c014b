//! Jobs, grounds, repeats, studies, sweeps and comparisons, for any program.
//!
//! A [`Lab`] runs a [`Job`], a scenario on a [`Ground`], and returns a [`Run`]: records, summary,
//! and how the host kept up. Built on it are [`Experiment`] (a file, on several grounds or with
//! several seeds), studies, sweeps, rankings, evaluations, advice, the fidelity grid and the curve
//! of a path. Each is planned first, which reports all errors, and then runs; a [`Handle`] monitors
//! and stops it from another thread. Results are values.
//!
//! What this crate never does: print, install a signal handler, depend on a specific ground where
//! the trait suffices, or write outside the given directories.

mod advise;
mod answers;
pub mod both;
pub mod command;
mod compare;
mod curve;
pub mod directory;
mod drops;
mod error;
mod evaluate;
mod experiment;
pub mod fidelity;
mod fit;
mod given;
mod ground;
mod handle;
mod job;
mod lab;
mod load;
mod models;
mod origin;
mod packet_log;
mod page;
mod perfect;
#[cfg(feature = "play")]
pub mod play;
mod qlog;
mod rank;
mod rehearse;
mod repeat_page;
mod reproduce;
mod rerun;
mod studies;
mod study_page;
mod study_record;
mod suites;
mod sweep;
mod text;
mod train;
mod update;
pub mod words;

pub use advise::{
    AdviseError, AdviseSettings, Advised, AdvisedClass, AdvisedPath, AdvisedTransfer, History,
    Observed, ObservedGroup, Recommended, Rehearsal, SPREAD_MIN, Seen, TransferAdvice, TrialSize,
    advice_says, advised_paths, advised_policy, change_words, recommended, retransmitted_words,
    speed_spread, trials_say,
};
pub use compare::{CompareError, ComparedRuns, RunsCompared, compare_runs, with_rates};
pub use curve::{Curve, CurveError, CurvePath, Measured};
pub use drops::{DropKind, DropLine, RunDrops, TIMELINE_SPANS, drops};
pub use error::Error;
pub use evaluate::{
    EVALUATE_SEEDS_REAL, Evaluate, EvaluateBoth, EvaluateError, EvaluateSettings, SEARCH_SCENARIOS,
    evaluate_seeds,
};
pub use experiment::{
    Experiment, ExperimentError, ExperimentOutcome, ExperimentSettings, SEED_MAX, check_jobs,
};
pub use fidelity::{Cells, Grid, GridError, GridSettings, KERNEL_RUNS};
pub use fit::{Compared, Estimate, FITTED_RUN, FitError, FitSettings, Fitted, MeasuredFit};
pub use given::DifferingInput;
#[cfg(feature = "hosts")]
pub use ground::Hosts;
pub use ground::{
    Ended, Ground, GroundError, Grounds, HOSTS, Judged, KERNEL, Output, PROGRAMS, Pace, Refusal,
    SIMULATOR, Simulator, UnknownGround,
};
#[cfg(feature = "kernel")]
pub use ground::{Kernel, shell};
pub use handle::{Handle, Progress};
pub use job::{Job, Run};
pub use lab::{Classes, Lab};
pub use load::{Load, Written};
pub use models::{Converged, Probing, TOLERANCE, draw_starts};
pub use origin::{KeptFile, KeptScenario, Origin, OriginSettings};
pub use packet_log::PacketLogError;
pub use page::{Saved, rewrite_page, saved, saved_answers};
pub use qlog::{QlogError, write_qlog};
pub use rank::{
    Candidates, NotRanked, PlannedRank, Rank, RankError, RankSettings, Ranked, scenario_files,
};
pub use rehearse::{RehearseError, RehearseSettings, Rehearsed, RehearsedClass};
pub use reproduce::{Reproduction, Scope};
pub use rerun::{Again, Changed, FileAgain, Rerun, RerunError, RerunPlan};
pub use studies::{
    NamedStudy, STUDY, StudyError, built_in_studies, choose_studies, load_built_in_study,
    read_study,
};
pub use study_record::{GroundRecord, NotRun, RunRecord, StudyRecord, StudyRecords};
pub use suites::{built_in_suites, load_suite};
pub use sweep::{
    Found, PlannedRun, Point, Sweep, SweepError, SweepSettings, SweepStore, Swept, TABLE, Vary,
    VaryError, program_hash, set_program_file,
};
pub use text::{Input, ScenarioText, all_or_every_error};
pub use train::{Train, TrainError, TrainProgress, TrainSettings, Trained};
pub use update::{check_files, put_on_record};
pub use {
    knee_present as present, knee_record as record, knee_report as report,
    knee_scenario as scenario,
};

/// The program in `docs/library.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Library;

/// The program in `docs/write-your-own.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-your-own.md")]
struct WriteYourOwn;
