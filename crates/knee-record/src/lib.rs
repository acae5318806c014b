//! Record schemas, Parquet files, and all measures.
//!
//! A ground fills [`Records`]; [`Summary::new`] measures them and [`write_run`] stores them.
//! Tables, reports and comparisons use only what [`read_run`] returns.
//!
//! This crate never depends on a ground, never prints, and never puts anything of the host or the
//! clock into a summary or a table.

mod answers;
mod applications;
mod bounded;
mod claims;
mod compared;
mod comparison;
mod conclusion;
mod connection;
mod connection_file;
mod control;
mod counters;
mod csv;
mod error;
mod evaluation;
mod fidelity;
mod grid;
mod health;
mod host;
mod log_report;
mod manifest;
mod measures;
mod numbers;
mod observed;
mod offered;
mod over_seeds;
mod part;
mod print;
mod rank;
mod rates;
mod recording;
mod repeat;
mod rows;
mod run;
mod schemas;
mod sections;
mod series;
mod stalled;
mod summary;
mod sweep;
mod table;
mod tables;
mod timed;
mod tolerance;
mod track;
mod view;
mod words;

pub use answers::{
    Answers, MixAnswer, MixClass, MixPair, MixSeed, PathUse, PathsAnswer, PathsOutcome,
    PathsQuestion, PathsRun, Stalls, TransferTime, TransferTimes, read_answers,
};
pub use applications::{APPLICATION_VALUES, ApplicationValue};
pub use bounded::{BoundedRows, Row, RowReceiver, RowSender, row_queue};
pub use claims::{
    ClaimOutcome, NamedRun, Outcome, evaluate, evaluate_in_study, fill_findings, outcome_of,
};
pub use compared::{
    MeasureCompared, Side, SideAgainst, SideRun, TwoCompared, compare_sides, compared_in_words,
};
pub use comparison::{Comparison, Difference, RunIdentity};
pub use conclusion::fill_conclusion;
pub use connection::{
    CONNECTION_COLUMNS, ConnectionColumn, ConnectionRecord, Connections, ControllerSource,
};
pub use connection_file::{
    ConnectionFile, DEFAULT_CONTROLLER, connections_note, each_connection, flow_names,
    read_connections,
};
pub use control::Control;
pub use csv::{csv_line, write_csv};
pub use error::Error;
pub use evaluation::{
    Evaluation, EvaluationAgainst, EvaluationChange, EvaluationGrounds, EvaluationLine,
    EvaluationOutcome, EvaluationPlan, EvaluationRow, EvaluationSeed, EvaluationsCompared,
    GroundsPair, NotComparable, NotTried, SectionAsks, WorstCase, WorstFound, got_worse,
    read_evaluation, write_evaluation,
};
pub use fidelity::{
    Agreement, Fidelity, GroundRun, OverallValues, overall_values, read_fidelity, tolerances,
};
pub use grid::{FidelityGrid, GridCell, GridMedian, JUDGED};
pub use health::{HostHealth, PathCheckRecord, ProbeRecord};
pub use host::{Meter, Usage, rfc3339};
pub use knee_cc::intern_phase;
pub use knee_units::statistics::{
    Better, Interval, Judgement, Paired, PairedScale, RatioInterval, bootstrap_ratio,
};
pub use log_report::{
    LOG_REPORT_SCHEMA, LogBeside, LogCell, LogCourse, LogFile, LogPassedOver, LogPoint, LogReport,
};
pub use manifest::{Brought, Manifest, Program, sha256_hex, sha256_of};
pub use measures::{NotMeasurable, TransferValue, jain_index, measure, transfer_ratio};
pub use observed::{
    OBSERVED_BINS, OBSERVED_REPORT_SCHEMA, ObservedBeside, ObservedBin, ObservedCell,
    ObservedCourse, ObservedHour, ObservedObjectCell, ObservedObjects, ObservedPoint,
    ObservedProvider, ObservedReport, ObservedSpread,
};
pub use offered::{OfferedLoad, OfferedSpan, offered_in_words, offered_load};
pub use over_seeds::{OverSeeds, over_seeds};
pub use part::{PART, Part};
pub use print::{Unit, count};
pub use rank::{
    Competition, RankEntry, RankFigure, RankFigures, RankPlace, RankRun, RankScenario, RankSummary,
    RankTrace, RankWorst, Ranking, read_rank, write_rank,
};
pub use rates::Rates;
pub use recording::{Recording, SampleSink, write_run};
pub use repeat::{ClaimTally, RepeatSummary};
pub use rows::{
    ClassSample, FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, TransferRecord,
};
pub use run::{
    CLASSES, CONNECTIONS, FLOWS, INPUTS, LINKS, MANIFEST, OBJECTS, OUTPUT, PATH_SAMPLES, PATHS,
    SAMPLES, SCENARIO, SUMMARY, SavedRun, TRANSFERS, holds_run_files, read_json, read_manifest,
    read_run, read_summary, write_bytes, write_json, write_text,
};
pub use schemas::json_schemas;
pub use sections::{
    BurstsSummary, PageSummary, PathSummary, SizeClass, TransferSummary, Typical, VideoSummary,
    size_classes,
};
pub use series::Series;
pub use stalled::Stalled;
pub use summary::{
    FlowSummary, GroupSummary, HALF_AND_HALF, LinkSummary, Measures, Spread, Summary, Verdict,
    lockstep_in_words,
};
pub use sweep::{
    GroupMeasures, LeftOut, PointGroup, PointMeasure, SweepKey, SweepMeasure, SweepPair,
    SweepPlace, SweepPoint, SweepRow, SweepRun, SweepRunAt, SweepSummary, SweepVerdict,
    group_measures, read_sweep, read_sweep_runs, sweep_columns, sweep_measures, write_sweep,
};
pub use table::{
    ColumnFile, DeclaredColumn, InMemory, RunTables, TableColumns, ValueKind, Values, is_decoding,
    read_columns, write_columns_durably,
};
pub use timed::{Field, Point, Timed};
pub use tolerance::Tolerance;
pub use track::{Rows, Track, TrackRows};
pub use view::{FlowView, LinkView, PathView, RunView, Window};
pub use words::{capitalised, listed, listed_or, with_interval};

/// Everything that a ground returns when a run ends or is interrupted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// One row per flow.
    pub flows: Vec<FlowRecord>,
    /// Time series of flows, ascending in time.
    pub samples: Rows<FlowSample>,
    /// Time series of links, ascending in time.
    pub links: Rows<LinkSample>,
    /// Time series of the traffic classes of links whose queue has several, ascending in time.
    pub classes: Rows<ClassSample>,
    /// Names of the links, by index.
    pub link_names: Vec<String>,
    /// One row per path of each flow over several paths.
    pub paths: Vec<PathRecord>,
    /// Time series of those paths, ascending in time; each row is of one path of a flow.
    pub path_samples: Rows<FlowSample>,
    /// One row per object of a page and segment of a video.
    pub objects: Vec<ObjectRecord>,
    /// One row per connection, in the order in which they ended; at most the first 65,536.
    pub connections: Vec<ConnectionRecord>,
    /// What measures need of each transfer of a mix, in the order in which they ended.
    pub transfers: Vec<TransferRecord>,
    /// Epoch of the connections' times, nanoseconds since 1970 (UTC); zero for virtual time.
    pub epoch_unix_ns: u64,
    /// Rates of the paths over time. They are in no table, because the resolved scenario defines
    /// them.
    pub rates: Rates,
    /// End of the run, nanoseconds; earlier than the scenario's duration if it was interrupted.
    pub end_ns: u64,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Cost of the run, for the manifest.
    pub cost: Cost,
}

/// Cost of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Events processed.
    pub events: u64,
    /// Data packets delivered in order.
    pub data_packets: u64,
}
