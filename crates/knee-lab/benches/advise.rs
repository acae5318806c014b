//! Accuracy of advice where the truth is known: paths are random, advice sees only 1,500 closed
//! connections of each, and the gain is measured by running all of them under either controller on
//! the path itself.
//!
//! `cargo bench --workspace --bench advise -- [PATHS [SIMULATIONS [SEED]]] [outside|kernel]`
//!
//! With `outside` the paths have CoDel, bursty losses or a rate that varies, which the path model
//! lacks, some of them two of these. With `kernel` the connections are those of Linux's TCP over the
//! emulator, 400 on each path, in real time and as root, and so is the truth: one more run, under
//! BBR. A line for each path and class goes to standard output, the summary follows it.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may panic")]

use knee_advise::{Gain, RuleOfThumb, Verdict};
use knee_lab::record::ConnectionRecord;
use knee_lab::{AdviseSettings, Advised, Candidates, Job, Lab, Observed, ScenarioText};
use knee_units::random::{chance, unit};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::env;

const CONNECTIONS: u32 = 1500;
/// Connections on the kernel ground, and the rates on which it takes a minute or two, Mbit/s.
const CONNECTIONS_KERNEL: u32 = 400;
const RATES_KERNEL: (f64, f64) = (20.0, 90.0);
const TRUTHS: u64 = 5;
/// Gain from which a sign counts.
const SEEN: f64 = 0.03;

/// A path that advice does not see.
struct Hidden {
    rate_mbps: f64,
    rtt_ms: f64,
    loss: f64,
    buffer_bdp: f64,
    load: f64,
    cross: f64,
    /// Effects outside of the model: CoDel, bursty losses, a varying rate.
    outside: [bool; 3],
    connections: u32,
}

/// Where the connections run, and over which paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Model,
    Outside,
    Kernel,
}

impl Hidden {
    fn draw(rng: &mut ChaCha8Rng, setting: Setting, outside: [bool; 3]) -> Hidden {
        let mut between = |low: f64, high: f64| low * (high / low).powf(unit(rng));
        let rates = if setting == Setting::Kernel { RATES_KERNEL } else { (4.0, 120.0) };
        let (rate_mbps, rtt_ms) = (between(rates.0, rates.1), between(4.0, 200.0));
        let (lossy, buffer_bdp) = (between(3e-5, 2e-2), between(0.1, 6.0));
        let load = 0.15 + 0.45 * unit(rng);
        let loss = if chance(rng, 0.35) { 0.0 } else { lossy };
        let cross = if chance(rng, 0.5) { 0.0 } else { 0.35 * unit(rng) };
        let kernel = setting == Setting::Kernel;
        let connections = if kernel { CONNECTIONS_KERNEL } else { CONNECTIONS };
        Hidden { rate_mbps, rtt_ms, loss, buffer_bdp, load, cross, outside, connections }
    }

    fn text(&self, cc: &str, seed: u64) -> String {
        // Mean of a log-normal of median 150 kB and sigma 1.6, at most 20 MB.
        const MEAN_BYTES: f64 = 480e3;
        let sizes = "{ median = \"150 kB\", sigma = 1.6, max = \"20 MB\" }";
        let interval = |share: f64| MEAN_BYTES * 8.0 / (share * self.rate_mbps);
        let span_s = interval(self.load) / 1e6 * f64::from(self.connections);
        let others = if self.cross > 0.0 {
            format!(
                "[[flow]]\nname = \"others\"\ncc = \"cubic\"\nworkload = {{ mix = \
                 {{ arrival_interval = \"{:.0} us\", sizes = {sizes} }} }}\n",
                interval(self.cross)
            )
        } else {
            String::new()
        };
        let [codel, bursts, varying] = self.outside;
        let aqm = if codel { "aqm = \"codel\"\n" } else { "" };
        // Bursts of four packets, at the same mean loss.
        let loss = match bursts && self.loss > 0.0 {
            true => {
                format!("{{ good_to_bad = \"{:.5} %\", bad_to_good = \"25 %\" }}", self.loss * 25.0)
            }
            false => format!("\"{:.4} %\"", self.loss * 100.0),
        };
        // A rate that falls to two thirds and rises by a third in turn, every seven seconds.
        let rate = match varying {
            true => {
                let steps = (0..).map_while(|step| {
                    let at_s = 7.0 * f64::from(step);
                    let part = [2.0 / 3.0, 4.0 / 3.0][step as usize % 2];
                    (at_s < span_s).then(|| {
                        format!(
                            "{{ at = \"{at_s} s\", rate = \"{:.3} Mbit/s\" }}",
                            part * self.rate_mbps
                        )
                    })
                });
                format!("[{}]", steps.collect::<Vec<_>>().join(", "))
            }
            false => format!("\"{:.3} Mbit/s\"", self.rate_mbps),
        };
        let connections = self.connections;
        format!(
            "name = \"hidden\"\nseed = {seed}\nduration = \"{:.0} s\"\nsample_interval = \"1 s\"\n\
             [link.bottleneck]\nrate = {rate}\ndelay = \"{:.3} ms\"\n\
             buffer = \"{:.0} B\"\nloss = {loss}\n{aqm}\
             [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"{:.3} ms\"\n\
             [[flow]]\nname = \"own\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"{:.0} us\", count = {connections}, sizes = {sizes} }} }}\n{others}",
            span_s * 1.05 + 10.0,
            self.rtt_ms / 2.0,
            (self.buffer_bdp * self.rate_mbps * 125.0 * self.rtt_ms).max(3000.0),
            self.rtt_ms / 2.0,
            interval(self.load),
        )
    }
}

/// Mean gain of small and large connections, all under BBR against all under CUBIC: of those that
/// ended under both.
fn gains(pairs: &[[Vec<ConnectionRecord>; 2]]) -> [f64; 2] {
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for pair in pairs {
        let speeds = pair.each_ref().map(|rows| {
            let own = rows.iter().filter(|row| row.flow == Some(0));
            let speed = |row: &ConnectionRecord| {
                let took = row.completion_ns?;
                let bytes = row.size_bytes?;
                Some((row.connection, (bytes, bytes as f64 / took as f64)))
            };
            own.filter_map(speed).collect::<BTreeMap<_, _>>()
        });
        for (connection, (bytes, cubic)) in &speeds[0] {
            let Some((_, bbr)) = speeds[1].get(connection) else { continue };
            let class = usize::from(*bytes >= 3_000_000);
            sums[class] += (bbr / cubic).ln();
            counts[class] += 1.0;
        }
    }
    [sums[0] / counts[0], sums[1] / counts[1]]
}

fn run(lab: &Lab, ground: &str, text: &str) -> Vec<ConnectionRecord> {
    let scenario = ScenarioText::new("hidden.toml", text).scenario(&[]).unwrap();
    let ground = lab.grounds.get(ground).unwrap();
    lab.run(&Job::new(&scenario, ground)).unwrap().records.connections
}

/// The connections that advice sees, and the true gains.
fn tried(lab: &Lab, hidden: &Hidden, setting: Setting, number: u64) -> (Observed, [f64; 2]) {
    let mut observed = Observed::default();
    if setting == Setting::Kernel {
        let both = ["cubic", "bbr"].map(|cc| run(lab, "kernel", &hidden.text(cc, 1000 + number)));
        observed.add(&both[0]);
        return (observed, gains(&[both]));
    }
    observed.add(&run(lab, "sim", &hidden.text("cubic", 1000 + number)));
    let pair = |truth: u64| {
        let seed = 2000 + number * 10 + truth;
        ["cubic", "bbr"].map(|cc| run(lab, "sim", &hidden.text(cc, seed)))
    };
    (observed, gains(&(0..TRUTHS).map(pair).collect::<Vec<_>>()))
}

/// What came of the advice for a class on a path.
struct Came {
    truth: f64,
    found: Gain,
    verdict: Verdict,
    rule: Option<RuleOfThumb>,
}

impl Came {
    /// The gain from doing what the advice says, and where it says nothing, the rule of thumb; and
    /// the gain from the rule alone.
    fn gained(&self) -> [f64; 2] {
        let by_rule = if self.rule == Some(RuleOfThumb::Try) { self.truth } else { 0.0 };
        let by_advice = match self.verdict {
            Verdict::Try => self.truth,
            Verdict::Keep => 0.0,
            Verdict::Unclear | Verdict::NoAdvice(_) => by_rule,
        };
        [by_advice, by_rule]
    }
}

/// Prints how a class of sizes fared.
fn summarise(class: &str, paths: u64, all: &[Came]) {
    let passed: Vec<&Came> =
        all.iter().filter(|one| !matches!(one.verdict, Verdict::NoAdvice(_))).collect();
    let errors = passed.iter().map(|one| (one.found.mean - one.truth).abs());
    let mut errors: Vec<f64> = errors.collect();
    errors.sort_by(f64::total_cmp);
    let seen: Vec<&&Came> = passed.iter().filter(|one| one.truth.abs() >= SEEN).collect();
    let signs = seen.iter().filter(|one| one.truth.signum() == one.found.mean.signum()).count();
    let covered =
        passed.iter().filter(|one| (one.found.low..=one.found.high).contains(&one.truth)).count();
    let near = errors.iter().filter(|error| **error < 0.25).count();
    let pairs: Vec<(f64, f64)> = passed.iter().map(|one| (one.truth, one.found.mean)).collect();
    let gained = all.iter().map(Came::gained).fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
    let closed = all.len() - passed.len();
    println!(
        "{class}: gate passes {} of {paths}; rank correlation {:.2}; sign right {signs} of {}; \
         median error {:.3}; below 0.25 or no advice {} of {}; the 80 % interval covers {covered} \
         of {} ({:.0} %); gain in total by advice {:+.2}, by the rule of thumb {:+.2}",
        passed.len(),
        rank_correlation(&pairs),
        seen.len(),
        errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN),
        near + closed,
        all.len(),
        passed.len(),
        100.0 * covered as f64 / passed.len().max(1) as f64,
        gained[0],
        gained[1],
    );
}

/// Spearman's rank correlation.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |of: &dyn Fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let below = |one| pairs.iter().filter(|other| of(other) < of(one)).count() as f64;
        pairs.iter().map(below).collect()
    };
    let (a, b) = (ranks(&|pair| pair.0), ranks(&|pair| pair.1));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

fn main() {
    let arguments: Vec<u64> = env::args().skip(1).filter_map(|one| one.parse().ok()).collect();
    let of = |index: usize, otherwise: u64| arguments.get(index).copied().unwrap_or(otherwise);
    let is = |word: &str| env::args().any(|one| one == word);
    let setting = match (is("outside"), is("kernel")) {
        (true, _) => Setting::Outside,
        (_, true) => Setting::Kernel,
        _ => Setting::Model,
    };
    let otherwise = if setting == Setting::Kernel { 8 } else { 60 };
    let (paths, simulations, seed) = (of(0, otherwise), of(1, 108) as usize, of(2, 1));
    let lab = Lab::default();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    println!(
        "path,rate,rtt,loss,buffer,load,cross,outside,misfit,fit_rate,fit_loss,fit_buffer,fit_cross,class,true,found,low,high,retr,retr_bbr,verdict"
    );
    let mut came: [Vec<Came>; 2] = Default::default();
    for number in 0..paths {
        // One of the three, or two of them, in turn.
        let odd = [[0, 0], [1, 1], [2, 2], [0, 1], [1, 2], [2, 0]][number as usize % 6];
        let is_odd = [0, 1, 2].map(|one| setting == Setting::Outside && odd.contains(&one));
        let hidden = Hidden::draw(&mut rng, setting, is_odd);
        let (observed, truth) = tried(&lab, &hidden, setting, number);
        let groups = observed.groups();
        let own = groups.iter().find(|group| group.name == "flow 0").unwrap();
        let settings = AdviseSettings {
            algorithms: None,
            candidates: Candidates(vec!["bbr".to_string()]),
            simulations,
            seed: 7 + number,
        };
        let Advised { fits, classes, .. } = lab.advise(own, &settings).unwrap().unwrap();
        for (class, one) in classes.iter().enumerate() {
            let Some(found) = one.prediction.filter(|_| truth[class].is_finite()) else { continue };
            let best = fits[0];
            println!(
                "{number},{:.2},{:.1},{:.5},{:.2},{:.2},{:.2},{},{:.3},{:.2},{:.5},{:.2},{:.2},{class},{:.3},{:.3},{:.3},{:.3},{:.4},{:.4},{:?}",
                hidden.rate_mbps,
                hidden.rtt_ms,
                hidden.loss,
                hidden.buffer_bdp,
                hidden.load,
                hidden.cross,
                is_odd.map(|one| if one { "1" } else { "0" }).concat(),
                best.misfit,
                best.path.rate_bps / 1e6,
                best.path.loss,
                best.path.buffer_bdp,
                best.path.cross,
                truth[class],
                found.gain.mean,
                found.gain.low,
                found.gain.high,
                found.retransmitted[0],
                found.retransmitted[1],
                one.verdict
            );
            came[class].push(Came {
                truth: truth[class],
                found: found.gain,
                verdict: one.verdict,
                rule: one.rule,
            });
        }
    }
    for (class, all) in ["below 3 MB", "3 MB and more"].into_iter().zip(&came) {
        summarise(class, paths, all);
    }
}
