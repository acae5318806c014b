//! One evaluation on several grounds: a folder for each, and the agreement between the simulator
//! and the others.

use super::plan::{Evaluate, EvaluateSettings};
use crate::directory::GROUNDS;
use crate::error::Error;
use crate::ground::{Ground, Pace};
use crate::lab::Lab;
use knee_record::{EvaluationsCompared, Program, write_json};
use std::path::{Path, PathBuf};

/// An evaluation on several grounds.
#[derive(Debug)]
pub struct EvaluateBoth<'g> {
    plans: Vec<(String, Evaluate<'g>)>,
    real: u64,
}

impl<'g> EvaluateBoth<'g> {
    /// Plans the evaluation on each of these grounds, over the cases that all of them support. The
    /// first ground is the reference. On real-time grounds each case has `real` seeds.
    ///
    /// # Errors
    /// See [`Evaluate::new`].
    pub fn new(
        settings: &EvaluateSettings<'g>,
        grounds: &[&'g dyn Ground],
        real: u64,
    ) -> Result<EvaluateBoth<'g>, Error> {
        let plans = grounds.iter().map(|on| {
            let repeat = match on.pace() {
                Pace::Real => real,
                Pace::Virtual => settings.repeat,
            };
            let own =
                EvaluateSettings { on: *on, repeat, beside: grounds.to_vec(), ..settings.clone() };
            Ok((on.name().to_string(), Evaluate::new(&own)?))
        });
        Ok(EvaluateBoth { plans: plans.collect::<Result<_, Error>>()?, real })
    }

    /// Number of runs in real time, and their total time in seconds.
    pub fn real_time(&self) -> (usize, f64) {
        let real = self.plans.iter().filter(|(_, plan)| plan.real_time_s() > 0.0);
        real.fold((0, 0.0), |(runs, seconds), (_, plan)| {
            (runs + plan.order().len(), seconds + plan.real_time_s())
        })
    }

    /// Takes over what an interrupted evaluation left below a folder: see [`Evaluate::resume`].
    pub fn resume(&mut self, program: &Program, directory: &Path) -> usize {
        let plans = self.plans.iter_mut();
        plans.map(|(name, plan)| plan.resume(program, &directory.join(name.as_str()))).sum()
    }

    /// Folder of each ground.
    pub fn directories(&self, directory: &Path) -> Vec<PathBuf> {
        self.plans.iter().map(|(name, _)| directory.join(name)).collect()
    }
}

impl Lab {
    /// Evaluates on every ground, writes each evaluation into its folder below `directory`, and
    /// `grounds.json` into `directory`. The folders must have been [`Lab::claim`]ed.
    ///
    /// # Errors
    /// See [`Lab::evaluate`]; [`Error::Stopped`] after a stop.
    pub fn evaluate_both(
        &self,
        both: &EvaluateBoth<'_>,
        directory: &Path,
    ) -> Result<EvaluationsCompared, Error> {
        let evaluated = both
            .plans
            .iter()
            .map(|(name, plan)| Ok((name.as_str(), self.evaluate(plan, &directory.join(name))?)));
        let evaluated: Vec<_> = evaluated.collect::<Result<_, Error>>()?;
        if self.is_stopped() {
            return Err(Error::Stopped);
        }
        let mut compared = EvaluationsCompared::new(&evaluated);
        compared.command += &format!(" --repeat-real {}", both.real);
        write_json(&directory.join(GROUNDS), &compared)?;
        Ok(compared)
    }
}
