//! Compares the simulator with a real-time ground, usually the kernel, on the same scenario,
//! measure by measure.
//!
//! The real ground is the reference: a difference is the simulator's value minus the kernel's, and
//! a relative difference is divided by the kernel's value. For other grounds, "the kernel" means
//! that ground, because the keys are those of version 1.
//!
//! An agreement is no [`Judgement`](crate::Judgement): neither ground is better, and a difference
//! counts by its size alone, in either direction.

use crate::health::ProbeRecord;
use crate::measures::{JUDGED, judged, measure};
use crate::print::Unit;
use crate::tolerance::Tolerance;
use crate::view::{RunView, Window};
use crate::{Error, SavedRun, Verdict};
use knee_scenario::Measure;
use knee_scenario::measure::Class;
use knee_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Schema name of `fidelity.json` beside two runs.
pub const SCHEMA: &str = "knee-fidelity/1";

/// Returns the measures that are judged and their tolerances, as declared in the table of measures:
/// first those that every flow has, then those that an application waits for. Repeats of one
/// scenario on Linux differ by under 1 % in goodput and by up to 5 % in median RTT; small
/// retransmission ratios and the time until flows converge vary by more. Measures that do not apply
/// to a flow (the load time of a page, for bulk) are left out.
pub fn tolerances() -> [(Measure, Tolerance); JUDGED] {
    const ORDER: [Class; 6] =
        [Class::Rate, Class::Delay, Class::Cost, Class::Fairness, Class::Balance, Class::Waiting];
    let mut judged = judged();
    judged.sort_by_key(|(what, _)| ORDER.iter().position(|one| *one == what.declared().class));
    judged
}

/// A scenario on the simulator and on the kernel, or on another ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// `knee-fidelity/1`.
    pub schema: String,
    /// Title of the scenario.
    pub name: String,
    /// Seed of both runs.
    pub seed: u64,
    /// The ground that the simulator is compared with; if absent, the kernel. Fields named
    /// `kernel` hold this ground's values.
    #[serde(default = "kernel")]
    pub ground: String,
    /// Release of the kernel.
    pub kernel_release: Option<String>,
    /// Verdict on the run on the simulator, and its probes.
    pub sim: GroundRun,
    /// Verdict on the run on the kernel, and its probes.
    pub kernel: GroundRun,
    /// Measures of both runs: all flows together first, then each group.
    pub measures: Vec<Agreement>,
    /// The simulator compared with further grounds; absent without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Fidelity>,
}

fn kernel() -> String {
    "kernel".to_string()
}

/// State of a run on one ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroundRun {
    /// Verdict on the run.
    pub verdict: Verdict,
    /// Reason of the verdict.
    pub verdict_reason: Option<String>,
    /// Round-trip times of an independent probe; none on the simulator.
    pub probes: Vec<ProbeRecord>,
}

/// A measure on both grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Name as in claims: `goodput`, `smoothed_rtt_p50` …
    pub measure: String,
    /// Flows that are measured; `*` for all.
    pub of: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Value on the simulator, the median of repeats; null if the event did not
    /// occur.
    pub sim: Option<f64>,
    /// Smallest and largest value of the simulator's repeats; null for a single
    /// run.
    pub sim_range: Option<[f64; 2]>,
    /// Value on the kernel, the median of repeats; null if the event did not
    /// occur.
    pub kernel: Option<f64>,
    /// Smallest and largest value of the kernel's repeats; null for a single
    /// run.
    pub kernel_range: Option<[f64; 2]>,
    /// `sim - kernel`; null if one of them is null.
    pub difference: Option<f64>,
    /// The same over `kernel`; null also if that is zero.
    pub relative: Option<f64>,
    /// The tolerance, in words.
    pub tolerance: String,
    /// Two standard errors of the difference of the medians; null if a ground
    /// ran once.
    pub noise: Option<f64>,
    /// Whether the difference is within the tolerance, or within the noise of
    /// the repeats; null if a run is invalid.
    pub within: Option<bool>,
    /// The difference over the tolerance; above 1 it is too large; null if
    /// `difference` is null.
    pub tolerance_used: Option<f64>,
}

impl Fidelity {
    /// Compares two runs of the same scenario.
    pub fn new(sim: &SavedRun, kernel: &SavedRun) -> Fidelity {
        let warmup = Time::from_nanos((sim.summary.warmup_us * 1e3) as u64);
        let views = [sim, kernel].map(|run| RunView::new(&run.records, warmup));
        let sound = [sim, kernel].iter().all(|run| run.summary.verdict != Verdict::Invalid);
        let targets = targets(sim);
        let tolerances = tolerances();
        let measures = targets.iter().flat_map(|of| {
            let views = &views;
            tolerances.iter().filter_map(move |entry| agreement(views, entry, of, sound))
        });
        Fidelity {
            schema: SCHEMA.to_string(),
            name: sim.summary.name.clone(),
            seed: sim.summary.seed,
            ground: kernel.summary.ground.clone(),
            kernel_release: kernel.manifest.kernel.clone(),
            sim: GroundRun::of(sim),
            kernel: GroundRun::of(kernel),
            measures: measures.collect(),
            further: Vec::new(),
        }
    }

    /// Adds comparisons with further grounds.
    pub fn beside(self, further: Vec<Fidelity>) -> Fidelity {
        Fidelity { further, ..self }
    }

    /// Returns the comparisons with each ground.
    pub fn all(&self) -> impl Iterator<Item = &Fidelity> {
        std::iter::once(self).chain(&self.further)
    }

    /// Returns a measure of all flows together.
    pub fn overall(&self, measure: &str) -> Option<&Agreement> {
        self.measures.iter().find(|one| one.of == ALL && one.measure == measure)
    }

    /// Compares the medians of repeats, which differ from these runs only by chance and are given
    /// by their [`overall_values`]. `kernel` holds all valid kernel runs, including the first if it
    /// is valid; `sim` holds the simulator's runs without the first.
    pub fn with_repeats(mut self, sim: &[OverallValues], kernel: &[OverallValues]) -> Fidelity {
        for (place, (what, tolerance)) in tolerances().into_iter().enumerate() {
            let name = what.name();
            let found = self.measures.iter_mut().find(|one| one.of == ALL && one.measure == name);
            let Some(one) = found else { continue };
            let sims = sim.iter().filter_map(|repeat| repeat[place]).chain(one.sim).collect();
            let kernels = kernel.iter().filter_map(|repeat| repeat[place]).collect();
            one.repeat(sims, kernels, tolerance);
        }
        self
    }

    /// Returns whether every measure is within its tolerance; `None` if not comparable.
    pub fn within(&self) -> Option<bool> {
        let each: Option<Vec<bool>> = self.measures.iter().map(|one| one.within).collect();
        each.filter(|each| !each.is_empty()).map(|each| each.iter().all(|within| *within))
    }
}

const ALL: &str = "*";

/// Returns all flows, and each group if there are several.
fn targets(run: &SavedRun) -> Vec<String> {
    let mut targets = vec![ALL.to_string()];
    for flow in &run.summary.flows {
        if !targets.contains(&flow.name) {
            targets.push(flow.name.clone());
        }
    }
    if targets.len() == 2 {
        targets.pop();
    }
    targets
}

impl GroundRun {
    fn of(run: &SavedRun) -> GroundRun {
        let health = run.manifest.health.as_ref();
        GroundRun {
            verdict: run.summary.verdict,
            verdict_reason: run.summary.verdict_reason.clone(),
            probes: health.map_or_else(Vec::new, |health| health.probes.clone()),
        }
    }
}

/// Compares a measure, or returns `None` if a ground lacks it: a single flow cannot converge.
fn agreement(
    [sim, kernel]: &[RunView<'_>; 2],
    (what, tolerance): &(Measure, Tolerance),
    of: &str,
    sound: bool,
) -> Option<Agreement> {
    if matches!(what, Measure::ConvergenceTime { .. }) && (of != ALL || sim.flows.len() < 2) {
        return None;
    }
    let value = |view| measure(view, what, of, Window::default()).ok();
    let values = [value(sim)?, value(kernel)?];
    Some(Agreement::new(&what.name(), of, Unit::of(what), values, *tolerance, sound))
}

impl Agreement {
    /// Compares a measure; `sound` means that neither run is invalid.
    pub(crate) fn new(
        measure: &str,
        of: &str,
        unit: Unit,
        [sim, kernel]: [f64; 2],
        tolerance: Tolerance,
        sound: bool,
    ) -> Agreement {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let difference = finite(sim - kernel);
        Agreement {
            measure: measure.to_string(),
            of: of.to_string(),
            unit,
            sim: finite(sim),
            sim_range: None,
            kernel: finite(kernel),
            kernel_range: None,
            difference,
            relative: difference.filter(|_| kernel != 0.0).map(|off| off / kernel.abs()),
            tolerance: tolerance.to_string(),
            noise: None,
            within: sound.then(|| tolerance.accepts(sim, kernel)),
            tolerance_used: difference.map(|_| tolerance.used(sim, kernel)),
        }
    }

    /// Replaces the single values with those of several runs on each ground.
    fn repeat(&mut self, sim: Vec<f64>, kernel: Vec<f64>, tolerance: Tolerance) {
        let (Some(sim), Some(kernel)) = (Repeats::of(sim), Repeats::of(kernel)) else { return };
        let medians = [sim.median, kernel.median];
        let noise = sim.noise_against(&kernel);
        let one = Agreement::new(&self.measure, &self.of, self.unit, medians, tolerance, true);
        let chance = noise.zip(one.difference).is_some_and(|(noise, off)| off.abs() <= noise);
        *self = Agreement {
            sim_range: Some(sim.range),
            kernel_range: Some(kernel.range),
            noise,
            within: one.within.map(|within| within || chance),
            ..one
        };
    }

    /// Returns the simulator's error: relative to the kernel's value, or absolute for fractions.
    pub fn off(&self) -> Option<f64> {
        match self.unit {
            Unit::Fraction => self.difference,
            _ => self.relative,
        }
    }
}

/// Values of runs that differ only by chance.
struct Repeats {
    count: usize,
    median: f64,
    range: [f64; 2],
    standard_deviation: f64,
}

impl Repeats {
    /// Describes the values, or returns `None` if there are none or one is infinite.
    fn of(mut values: Vec<f64>) -> Option<Repeats> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Repeats {
            count: values.len(),
            range: [*values.first()?, *values.last()?],
            standard_deviation: (squares / (values.len() - 1).max(1) as f64).sqrt(),
            median: median(values)?,
        })
    }

    /// Returns two standard errors of the difference between the two medians. The larger of the two
    /// standard deviations is used for both, because three runs may lie close together by chance.
    fn noise_against(&self, other: &Repeats) -> Option<f64> {
        if self.count < 2 || other.count < 2 {
            return None;
        }
        let deviation = self.standard_deviation.max(other.standard_deviation);
        let runs = 1.0 / self.count as f64 + 1.0 / other.count as f64;
        Some(2.0 * MEDIAN_OVER_MEAN * deviation * runs.sqrt())
    }
}

/// Standard error of a median over that of a mean, for normally distributed values: the square root
/// of pi / 2.
const MEDIAN_OVER_MEAN: f64 = 1.253_314_137;

/// A value for each of [`tolerances`]; `None` if the run does not have it.
pub type OverallValues = [Option<f64>; JUDGED];

/// Measures all flows of a run together.
pub fn overall_values(run: &RunView<'_>) -> OverallValues {
    tolerances().map(|(what, _)| measure(run, &what, ALL, Window::default()).ok())
}

/// Returns the median; for an even number of values, the mean of the middle two.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

/// Reads `fidelity.json` of a run on both grounds.
///
/// # Errors
/// If the file is missing, damaged, or of another version.
pub fn read_fidelity(path: &Path) -> Result<Fidelity, Error> {
    crate::run::read_json(path, SCHEMA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_of_the_kernels_value() {
        let [goodput, rtt, ratio, convergence] = [0, 1, 2, 3].map(|place| tolerances()[place].1);
        assert!(goodput.accepts(98.0, 100.0) && !goodput.accepts(97.9, 100.0));
        assert!(rtt.accepts(0.110, 0.100) && !rtt.accepts(0.1101, 0.100));
        // Small ratios in percentage points, large ones relative.
        assert!(ratio.accepts(0.0, 0.002) && !ratio.accepts(0.0, 0.0021));
        assert!(ratio.accepts(0.06, 0.05) && !ratio.accepts(0.061, 0.05));
        assert!(convergence.accepts(2.0, 4.0) && !convergence.accepts(1.9, 4.0));
        assert!(convergence.accepts(8.0, 4.0) && !convergence.accepts(8.1, 4.0));
    }

    #[test]
    fn what_never_comes_about_agrees_with_itself_alone() {
        let tolerance = Tolerance::Factor(2.0);
        assert!(tolerance.accepts(f64::INFINITY, f64::INFINITY));
        assert!(!tolerance.accepts(f64::INFINITY, 3.0) && !tolerance.accepts(3.0, f64::INFINITY));
    }

    /// Compares these values of both grounds, as a measure with a tolerance of 2 %.
    fn compared(sim: &[f64], kernel: &[f64]) -> Agreement {
        let tolerance = Tolerance::Part(0.02);
        let first = [sim[0], kernel[0]];
        let mut one = Agreement::new("goodput", ALL, Unit::BitsPerSecond, first, tolerance, true);
        one.repeat(sim.to_vec(), kernel.to_vec(), tolerance);
        one
    }

    #[test]
    fn medians_are_compared() {
        let one = compared(&[90.0, 101.0, 100.0], &[100.5, 130.0, 100.0]);
        assert_eq!((one.sim, one.kernel), (Some(100.0), Some(100.5)));
        assert_eq!(one.sim_range, Some([90.0, 101.0]));
        assert_eq!(one.kernel_range, Some([100.0, 130.0]));
        assert_eq!((one.difference, one.within), (Some(-0.5), Some(true)));
        assert!(one.tolerance_used.is_some_and(|used| used < 1.0));
    }

    /// Standard deviations of 1 and 2, three runs and two: the noise is 2 sqrt(pi / 2) * 2 sqrt(1 /
    /// 3 + 1 / 2), 4.576.
    #[test]
    fn what_is_less_than_the_noise_is_no_difference() {
        let kernel = [99.0, 100.0, 101.0];
        let sim = |around: f64| [around - 2.0_f64.sqrt(), around + 2.0_f64.sqrt()];
        let near = compared(&sim(104.5), &kernel);
        assert!((near.noise.unwrap() - 4.576).abs() < 1e-3, "{near:?}");
        assert_eq!(near.within, Some(true));
        assert!(near.tolerance_used.is_some_and(|used| used > 1.0));
        assert_eq!(compared(&sim(104.6), &kernel).within, Some(false));
    }

    #[test]
    fn without_repeats_there_is_no_noise_to_hide_in() {
        let one = compared(&[97.9, 97.0, 98.8], &[100.0]);
        assert_eq!((one.noise, one.within), (None, Some(false)));
    }
}
