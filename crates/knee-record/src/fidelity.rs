//! The simulator against a real kernel: the same scenario on both grounds,
//! measure by measure.
//!
//! The kernel is what is right: a difference is the simulator's value less
//! the kernel's, a relative one is over the kernel's value.

use crate::health::ProbeRecord;
use crate::measures::measure;
use crate::print::Unit;
use crate::view::{RunView, Window};
use crate::{SavedRun, Verdict};
use knee_scenario::{Measure, SizeRange, Statistic};
use knee_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema name of `fidelity.json` beside two runs.
pub const SCHEMA: &str = "knee-fidelity/1";

/// How far the simulator may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A part of the kernel's value.
    Part(f64),
    /// A part of it, or so many per cent points, whichever is more.
    PartOrPoints(f64, f64),
    /// Neither value is more than so many times the other.
    Factor(f64),
}

/// The tolerances, by measure and its name in claims. Repeats of one scenario on Linux differ by
/// under 1 % in goodput and by up to 5 % in median RTT; small ratios of
/// retransmissions and the time until flows converge vary by more. What a flow
/// has no part in (a page's load time, of bulk) is left out.
pub const TOLERANCES: [(&str, Measure, Tolerance); 9] = [
    ("goodput", Measure::Goodput, Tolerance::Part(0.02)),
    ("smoothed_rtt_p50", Measure::SmoothedRtt(Statistic::P50), Tolerance::Part(0.1)),
    ("retransmit_ratio_total", Measure::RetransmitRatioTotal, Tolerance::PartOrPoints(0.2, 0.2)),
    ("convergence_time", CONVERGENCE, Tolerance::Factor(2.0)),
    ("completion_time", Measure::CompletionTime, Tolerance::Part(0.05)),
    ("page_load_time", Measure::PageLoadTime, Tolerance::Part(0.05)),
    ("video_bitrate", Measure::VideoBitrate, Tolerance::Part(0.05)),
    ("video_startup_time", Measure::VideoStartupTime, Tolerance::Part(0.1)),
    ("flow_completion_mean", TRANSFERS, Tolerance::Part(0.1)),
];

/// Within a quarter of the fair share, for two seconds.
const CONVERGENCE: Measure = Measure::ConvergenceTime { band: 0.25, hold: Time::from_millis(2000) };

/// Completion times of all transfers.
const TRANSFERS: Measure =
    Measure::FlowCompletion(Statistic::Mean, SizeRange { at_least: 0, below: None });

impl Tolerance {
    /// Whether a value of the simulator is near enough to the kernel's.
    /// Infinity stands for what did not come about: on both it agrees.
    pub fn accepts(self, sim: f64, kernel: f64) -> bool {
        if sim == kernel {
            return true;
        }
        let off = (sim - kernel).abs();
        match self {
            Tolerance::Part(part) => off <= part * kernel.abs(),
            Tolerance::PartOrPoints(part, points) => {
                off <= (part * kernel.abs()).max(points / 100.0)
            }
            Tolerance::Factor(factor) => sim <= factor * kernel && kernel <= factor * sim,
        }
    }
}

impl Tolerance {
    /// How much of it a finite difference uses: one at its limit.
    fn used(self, sim: f64, kernel: f64) -> f64 {
        let off = (sim - kernel).abs();
        let used = match self {
            Tolerance::Part(part) => off / (part * kernel.abs()),
            Tolerance::PartOrPoints(part, points) => {
                off / (part * kernel.abs()).max(points / 100.0)
            }
            Tolerance::Factor(factor) => (sim / kernel).ln().abs() / factor.ln(),
        };
        if off == 0.0 { 0.0 } else { used.min(1e9) }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tolerance::Part(part) => write!(formatter, "{} %", part * 100.0),
            Tolerance::PartOrPoints(part, points) => {
                write!(formatter, "{} % or {points} points", part * 100.0)
            }
            Tolerance::Factor(factor) => write!(formatter, "a factor of {factor}"),
        }
    }
}

/// A scenario on the simulator and on the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// `knee-fidelity/1`.
    pub schema: String,
    /// Title of the scenario.
    pub name: String,
    /// Seed of both runs.
    pub seed: u64,
    /// Release of the kernel.
    pub kernel_release: Option<String>,
    /// The run on the simulator.
    pub sim: GroundRun,
    /// The run on the kernel.
    pub kernel: GroundRun,
    /// What both have, all flows together first, then each group.
    pub measures: Vec<Agreement>,
}

/// How a run went on its ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroundRun {
    /// Was the run sound.
    pub verdict: Verdict,
    /// Why it was not.
    pub verdict_reason: Option<String>,
    /// Round trips of an independent probe; none on the simulator.
    pub probes: Vec<ProbeRecord>,
}

/// A measure on both grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// As claims write it: `goodput`, `smoothed_rtt_p50` …
    pub measure: String,
    /// Flows that are measured; `*`: all.
    pub of: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// On the simulator, over repeats their median; null: it did not come
    /// about.
    pub sim: Option<f64>,
    /// Least and most of the simulator's repeats; null: it ran once.
    pub sim_range: Option<[f64; 2]>,
    /// On the kernel; null: it did not come about.
    pub kernel: Option<f64>,
    /// `sim - kernel`; null where one of them is.
    pub difference: Option<f64>,
    /// The same over `kernel`; null also where that is zero.
    pub relative: Option<f64>,
    /// How much it may be, in words.
    pub tolerance: String,
    /// Whether it is no more, over repeats from the one that is nearest to
    /// the kernel; null: a run is invalid and proves nothing.
    pub within: Option<bool>,
    /// The difference over what it may be: above one it is too large; null as
    /// `difference` is.
    pub tolerance_used: Option<f64>,
}

impl Fidelity {
    /// Compares two runs of the same scenario.
    pub fn new(sim: &SavedRun, kernel: &SavedRun) -> Fidelity {
        let warmup = Time::from_nanos((sim.summary.warmup_us * 1e3) as u64);
        let views = [sim, kernel].map(|run| RunView::new(&run.records, warmup));
        let sound = [sim, kernel].iter().all(|run| run.summary.verdict != Verdict::Invalid);
        let targets = targets(sim);
        let measures = targets.iter().flat_map(|of| {
            let views = &views;
            TOLERANCES.iter().filter_map(move |entry| agreement(views, entry, of, sound))
        });
        Fidelity {
            schema: SCHEMA.to_string(),
            name: sim.summary.name.clone(),
            seed: sim.summary.seed,
            kernel_release: kernel.manifest.kernel.clone(),
            sim: GroundRun::of(sim),
            kernel: GroundRun::of(kernel),
            measures: measures.collect(),
        }
    }

    /// A measure of all flows together.
    pub fn overall(&self, measure: &str) -> Option<&Agreement> {
        self.measures.iter().find(|one| one.of == ALL && one.measure == measure)
    }

    /// The same with more runs of the simulator, which differ in chance alone:
    /// what repeats do not agree on among themselves, the kernel's one run
    /// need not agree on either. Each repeat gives its [`overall_values`].
    pub fn with_repeats(mut self, repeats: &[OverallValues]) -> Fidelity {
        for (place, (name, _, tolerance)) in TOLERANCES.iter().enumerate() {
            let found = self.measures.iter_mut().find(|one| one.of == ALL && one.measure == *name);
            let Some(one) = found else { continue };
            let values = repeats.iter().filter_map(|repeat| repeat[place]);
            one.spread_over(values.chain(one.sim).collect(), *tolerance);
        }
        self
    }

    /// Whether every measure is within its tolerance; none: not comparable.
    pub fn within(&self) -> Option<bool> {
        let each: Option<Vec<bool>> = self.measures.iter().map(|one| one.within).collect();
        each.filter(|each| !each.is_empty()).map(|each| each.iter().all(|within| *within))
    }
}

const ALL: &str = "*";

/// All flows, and each group where there are several.
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

/// None where a ground cannot measure it: one flow alone does not converge.
fn agreement(
    [sim, kernel]: &[RunView<'_>; 2],
    (name, what, tolerance): &(&str, Measure, Tolerance),
    of: &str,
    sound: bool,
) -> Option<Agreement> {
    if matches!(what, Measure::ConvergenceTime { .. }) && (of != ALL || sim.flows.len() < 2) {
        return None;
    }
    let value = |view| measure(view, what, of, Window::default()).ok();
    let values = [value(sim)?, value(kernel)?];
    Some(Agreement::new(name, of, Unit::of(what), values, *tolerance, sound))
}

impl Agreement {
    /// Compares a measure; `sound`: neither run is invalid.
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
            difference,
            relative: difference.filter(|_| kernel != 0.0).map(|off| off / kernel.abs()),
            tolerance: tolerance.to_string(),
            within: sound.then(|| tolerance.accepts(sim, kernel)),
            tolerance_used: difference.map(|_| tolerance.used(sim, kernel)),
        }
    }

    /// Takes the values of several runs of the simulator for that of one.
    fn spread_over(&mut self, mut values: Vec<f64>, tolerance: Tolerance) {
        values.sort_by(f64::total_cmp);
        let (Some(low), Some(high), Some(sim), Some(kernel)) =
            (values.first(), values.last(), median(&values), self.kernel)
        else {
            return;
        };
        let nearest = kernel.clamp(*low, *high);
        let sound = self.within.is_some();
        *self = Agreement {
            sim_range: Some([*low, *high]),
            within: sound.then(|| tolerance.accepts(nearest, kernel)),
            tolerance_used: Some(tolerance.used(nearest, kernel)),
            ..Agreement::new(&self.measure, &self.of, self.unit, [sim, kernel], tolerance, sound)
        };
    }

    /// How far off the simulator is: as a part of the kernel's value, of
    /// ratios as it is.
    pub fn off(&self) -> Option<f64> {
        match self.unit {
            Unit::Fraction => self.difference,
            _ => self.relative,
        }
    }
}

/// A value for each of [`TOLERANCES`]; none: the run does not have it.
pub type OverallValues = [Option<f64>; TOLERANCES.len()];

/// What all flows of a run together have.
pub fn overall_values(run: &RunView<'_>) -> OverallValues {
    std::array::from_fn(|place| measure(run, &TOLERANCES[place].1, ALL, Window::default()).ok())
}

/// Of an even number of values in ascending order, the mean of the middle two.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_of_the_kernels_value() {
        let [goodput, rtt, ratio, convergence] = [0, 1, 2, 3].map(|place| TOLERANCES[place].2);
        assert!(goodput.accepts(98.0, 100.0) && !goodput.accepts(97.9, 100.0));
        assert!(rtt.accepts(0.110, 0.100) && !rtt.accepts(0.1101, 0.100));
        // Small ratios in points, large ones in parts.
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

    /// A kernel within the simulator's own spread agrees; one beyond it is
    /// compared with the nearest repeat, and the difference is the median's.
    #[test]
    fn chance_is_no_difference() {
        let against = |kernel: f64| {
            let tolerance = Tolerance::Part(0.02);
            let values = [100.0, kernel];
            let mut one =
                Agreement::new("goodput", ALL, Unit::BitsPerSecond, values, tolerance, true);
            one.spread_over(vec![90.0, 98.0, 100.0, 106.0], tolerance);
            one
        };
        let inside = against(95.0);
        assert_eq!((inside.sim, inside.sim_range), (Some(99.0), Some([90.0, 106.0])));
        assert_eq!((inside.within, inside.tolerance_used), (Some(true), Some(0.0)));
        assert_eq!(inside.difference, Some(4.0));
        assert_eq!(against(107.0).within, Some(true));
        assert_eq!(against(110.0).within, Some(false));
        assert_eq!(against(85.0).within, Some(false));
    }
}
