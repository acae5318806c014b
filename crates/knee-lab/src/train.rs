//! Trains rule tables for RemyCC over the simulator. Implements `knee train`.
//!
//! The method is that of RemyCC's authors (Winstein and Balakrishnan, SIGCOMM 2013, section 4.3):
//! the most used rule is improved first, by trying actions near its own until none is better; once
//! all rules have been improved, the most used one is split. Deviations, to save time: a split
//! makes two rules, not eight, at the median of the memory component whose halves gain most at
//! once. Training is deterministic, even with parallel runs: the same scenarios and settings give
//! the same table.

mod score;
mod search;

use crate::command::quoted;
use crate::error::Error;
use crate::experiment::repeat_seed;
use crate::lab::Lab;
use crate::text::{ScenarioText, all_or_every_error};
use knee_cc::remycc::RuleTable;
use knee_scenario::Scenario;

/// The controller that is trained.
const REMYCC: &str = "remycc";

/// Settings of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainSettings {
    /// Seed of the first run of each scenario.
    pub seed: u64,
    /// Number of seeds, consecutive from that one.
    pub seeds: u64,
    /// Number of rounds of improving all rules; each later one begins with a split.
    pub rounds: u32,
    /// Weight of delay against goodput: 1 is power.
    pub delay_weight: f64,
}

impl Default for TrainSettings {
    fn default() -> TrainSettings {
        TrainSettings { seed: 1, seeds: 2, rounds: 4, delay_weight: 1.0 }
    }
}

/// Why training is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// No flow uses the table.
    #[error("{0} has no flow with cc = \"remycc\"")]
    NoFlow(String),
}

/// The plan of a training.
#[derive(Clone, Debug)]
pub struct Train {
    settings: TrainSettings,
    names: Vec<String>,
    /// Each scenario with each seed.
    scenarios: Vec<Scenario>,
}

/// Progress of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainProgress {
    /// Number of the round, from one.
    pub round: u32,
    /// Number of rules in the table.
    pub rules: usize,
    /// Score of the table.
    pub score: f64,
    /// Runs made so far.
    pub runs: usize,
}

/// Outcome of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// The best table, with its provenance.
    pub table: RuleTable,
    /// Mean of `ln(goodput / RTT^w)` over flows and runs, bit/s and seconds, w the
    /// weight of delay.
    pub score: f64,
    /// Score of CUBIC in place of RemyCC; `None` if stopped earlier.
    pub score_of_cubic: Option<f64>,
    /// Number of runs.
    pub runs: usize,
    /// Whether it was stopped; the table is then the best so far.
    pub stopped: bool,
}

impl Train {
    /// Reads and checks the scenarios.
    ///
    /// # Errors
    /// All errors in them, or a [`TrainError`].
    pub fn new(texts: &[ScenarioText], settings: TrainSettings) -> Result<Train, Error> {
        let mut scenarios = Vec::new();
        for (text, first) in
            texts.iter().zip(all_or_every_error(texts.iter().map(|text| text.scenario(&[])))?)
        {
            if !first.flows.iter().any(|flow| flow.controller.name == REMYCC) {
                return Err(TrainError::NoFlow(text.name.clone()).into());
            }
            for number in 0..settings.seeds {
                let seed = crate::experiment::seed(repeat_seed(settings.seed, number));
                let scenario = text.scenario(&[seed])?;
                scenarios.push(Scenario { claims: Vec::new(), ..scenario });
            }
        }
        let names = texts.iter().map(|text| text.name.clone()).collect();
        Ok(Train { settings, names, scenarios })
    }

    /// The command that repeats the training.
    pub fn command(&self) -> String {
        let TrainSettings { seed, seeds, rounds, delay_weight } = self.settings;
        let files: Vec<String> = self.names.iter().map(|name| quoted(name)).collect();
        format!(
            "knee train {} --seed {seed} --seeds {seeds} --rounds {rounds} \
             --delay-weight {delay_weight}",
            files.join(" ")
        )
    }

    /// Header lines of the table's file.
    fn provenance(&self, trained: &Trained, version: &str) -> Vec<(String, String)> {
        let TrainSettings { seed, seeds, delay_weight, .. } = self.settings;
        let last = repeat_seed(seed, seeds.saturating_sub(1));
        let mut lines = vec![
            ("command", self.command()),
            ("knee", version.to_string()),
            ("trained_on", self.names.join(", ")),
            ("seeds", format!("{seed} to {last}")),
            ("objective", format!("mean of ln(goodput / RTT^{delay_weight}), bit/s and s")),
            ("score", trained.score.to_string()),
        ];
        lines.extend(trained.score_of_cubic.map(|score| ("score_of_cubic", score.to_string())));
        lines.push(("runs", trained.runs.to_string()));
        if trained.stopped {
            lines.push((
                "stopped",
                "before it was finished: this is the best table so far".to_string(),
            ));
        }
        lines.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
    }
}

impl Lab {
    /// Trains a table and calls `tell` after each round. After a stop it returns the best table so
    /// far; `None` if no table had been scored by then.
    ///
    /// # Errors
    /// The first failure of a run.
    pub fn train(
        &self,
        train: &Train,
        tell: &dyn Fn(&TrainProgress),
    ) -> Result<Option<Trained>, Error> {
        let mut search = search::Search::new(self, train);
        let score_of_cubic = search.baseline()?;
        search.run(train.settings.rounds, tell)?;
        if !search.score.is_finite() {
            return Ok(None);
        }
        let mut trained = Trained {
            table: search.table,
            score: search.score,
            score_of_cubic,
            runs: search.runs,
            stopped: self.is_stopped(),
        };
        trained.table.provenance = train.provenance(&trained, env!("CARGO_PKG_VERSION"));
        Ok(Some(trained))
    }
}
