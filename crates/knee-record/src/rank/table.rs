//! `rank.parquet`: a row per run.

use super::summary::Ranking;
use super::{Competition, RankFigures, RankRun};
use crate::Error;
use crate::table::write_columns;
use knee_columns::{Cells, Kind};
use std::path::Path;

/// Schema name of the table.
const SCHEMA: &str = "knee-rank/1";

/// A column of figures: its name and the function that reads its value.
type Figure = (&'static str, fn(&RankFigures) -> Option<f64>);

const FIGURES: [Figure; 10] = [
    ("goodput_bps", |run| run.goodput_bps),
    ("capacity_bps", |run| run.capacity_bps),
    ("capacity_share", |run| run.capacity_share),
    ("rtt_p50_s", |run| run.rtt_p50_s),
    ("rtt_p95_s", |run| run.rtt_p95_s),
    ("base_rtt_s", |run| Some(run.base_rtt_s)),
    ("power", |run| run.power),
    ("retransmit_ratio", |run| run.retransmit_ratio),
    ("share", |run| run.share),
    ("jain", |run| run.jain),
];

/// Writes the table. The file appears whole or not at all, and the same runs give the same bytes.
///
/// # Errors
/// [`Error::Io`] with the path.
pub fn write_rank(path: &Path, ranking: &Ranking, runs: &[RankRun]) -> Result<(), Error> {
    let text = |name: &str, values: Vec<&str>| {
        (name.to_string(), Kind::Text, Cells::texts(values.into_iter()))
    };
    let integer = |name: &str, get: fn(&RankRun) -> u64| {
        let values = runs.iter().map(|run| i64::try_from(get(run)).unwrap_or(i64::MAX));
        let cells = Cells::Integers(values.collect(), None);
        (name.to_string(), Kind::Integer { nullable: false }, cells)
    };
    let float = |(name, get): &Figure| {
        let cells = Cells::floats(runs.iter().map(|run| get(&run.figures)));
        (name.to_string(), Kind::Float { nullable: true }, cells)
    };
    let company = |run: &RankRun| match run.company {
        Competition::Alone => "alone",
        Competition::Itself => "itself",
        Competition::Rival(rival) => ranking.rivals[rival].as_str(),
    };
    let scenario = |run: &RankRun| &ranking.scenarios[run.scenario];
    let mut columns = vec![
        text("scenario", runs.iter().map(|run| scenario(run).name.as_str()).collect()),
        text("file", runs.iter().map(|run| scenario(run).file.as_str()).collect()),
        text("candidate", runs.iter().map(|run| &*ranking.candidates[run.candidate]).collect()),
        text("company", runs.iter().map(company).collect()),
        integer("repeat", |run| run.repeat),
        integer("seed", |run| run.seed),
    ];
    columns.extend(FIGURES.iter().map(float));
    write_columns(path, SCHEMA, &columns)
}
