//! Accuracy of advice where the truth is known: paths are random, advice sees only 1,500 closed
//! connections of each, and the gain is measured by running all of them under either controller on
//! the path itself.
//!
//! `cargo bench --workspace --bench advise -- [PATHS [SIMULATIONS [SEED [outside]]]]`
//!
//! With `outside` the paths have CoDel, bursty losses or both, which the path model lacks.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may panic")]

use knee_lab::record::ConnectionRecord;
use knee_lab::{AdviseSettings, Advised, Candidates, Job, Lab, Observed, ScenarioText};
use knee_random::{chance, unit};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::env;

const CONNECTIONS: u32 = 1500;
const TRUTHS: u64 = 5;

/// A path that advice does not see.
struct Hidden {
    rate_mbps: f64,
    rtt_ms: f64,
    loss: f64,
    buffer_bdp: f64,
    load: f64,
    cross: f64,
    /// Effects outside of the model: CoDel, bursty losses.
    outside: [bool; 2],
}

impl Hidden {
    fn draw(rng: &mut ChaCha8Rng, outside: [bool; 2]) -> Hidden {
        let mut between = |low: f64, high: f64| low * (high / low).powf(unit(rng));
        let (rate_mbps, rtt_ms) = (between(4.0, 120.0), between(4.0, 200.0));
        let (lossy, buffer_bdp) = (between(3e-5, 2e-2), between(0.1, 6.0));
        let load = 0.15 + 0.45 * unit(rng);
        let loss = if chance(rng, 0.35) { 0.0 } else { lossy };
        let cross = if chance(rng, 0.5) { 0.0 } else { 0.35 * unit(rng) };
        Hidden { rate_mbps, rtt_ms, loss, buffer_bdp, load, cross, outside }
    }

    fn text(&self, cc: &str, seed: u64) -> String {
        // Mean of a log-normal of median 150 kB and sigma 1.6, at most 20 MB.
        const MEAN_BYTES: f64 = 480e3;
        let sizes = "{ median = \"150 kB\", sigma = 1.6, max = \"20 MB\" }";
        let interval = |share: f64| MEAN_BYTES * 8.0 / (share * self.rate_mbps);
        let span_s = interval(self.load) / 1e6 * f64::from(CONNECTIONS);
        let others = if self.cross > 0.0 {
            format!(
                "[[flow]]\nname = \"others\"\ncc = \"cubic\"\nworkload = {{ mix = \
                 {{ arrival_interval = \"{:.0} us\", sizes = {sizes} }} }}\n",
                interval(self.cross)
            )
        } else {
            String::new()
        };
        let [codel, bursts] = self.outside;
        let aqm = if codel { "aqm = \"codel\"\n" } else { "" };
        // Bursts of four packets, at the same mean loss.
        let loss = match bursts && self.loss > 0.0 {
            true => {
                format!("{{ good_to_bad = \"{:.5} %\", bad_to_good = \"25 %\" }}", self.loss * 25.0)
            }
            false => format!("\"{:.4} %\"", self.loss * 100.0),
        };
        format!(
            "name = \"hidden\"\nseed = {seed}\nduration = \"{:.0} s\"\nsample_interval = \"1 s\"\n\
             [link.bottleneck]\nrate = \"{:.3} Mbit/s\"\ndelay = \"{:.3} ms\"\n\
             buffer = \"{:.0} B\"\nloss = {loss}\n{aqm}\
             [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"{:.3} ms\"\n\
             [[flow]]\nname = \"own\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"{:.0} us\", count = {CONNECTIONS}, sizes = {sizes} }} }}\n{others}",
            span_s * 1.05 + 10.0,
            self.rate_mbps,
            self.rtt_ms / 2.0,
            (self.buffer_bdp * self.rate_mbps * 125.0 * self.rtt_ms).max(3000.0),
            self.rtt_ms / 2.0,
            interval(self.load),
        )
    }
}

/// Mean gain of large and small connections, all under BBR against all under CUBIC.
fn truth(lab: &Lab, hidden: &Hidden, seed: u64) -> [f64; 2] {
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for number in 0..TRUTHS {
        let speeds = ["cubic", "bbr"].map(|cc| {
            let run = run(lab, &hidden.text(cc, seed + number));
            let own = run.into_iter().filter(|row| row.flow == Some(0));
            let speed = |row: ConnectionRecord| {
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

fn run(lab: &Lab, text: &str) -> Vec<ConnectionRecord> {
    let scenario = ScenarioText::new("hidden.toml", text).scenario(&[]).unwrap();
    let ground = lab.grounds.get("sim").unwrap();
    lab.run(&Job::new(&scenario, ground)).unwrap().records.connections
}

fn main() {
    let arguments: Vec<u64> = env::args().skip(1).filter_map(|one| one.parse().ok()).collect();
    let of = |index: usize, otherwise: u64| arguments.get(index).copied().unwrap_or(otherwise);
    let (paths, simulations, seed) = (of(0, 60), of(1, 108) as usize, of(2, 1));
    let outside = env::args().any(|one| one == "outside");
    let lab = Lab::default();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    println!(
        "path,rate,rtt,loss,buffer,load,cross,misfit,fit_rate,fit_loss,fit_buffer,fit_cross,class,true,found,low,high,retr,retr_bbr,verdict"
    );
    for number in 0..paths {
        let odd = [number % 3 != 1, number % 3 != 0].map(|one| one && outside);
        let hidden = Hidden::draw(&mut rng, odd);
        let mut observed = Observed::default();
        observed.add(&run(&lab, &hidden.text("cubic", 1000 + number)));
        let truth = truth(&lab, &hidden, 2000 + number * 10);
        let groups = observed.groups();
        let own = groups.iter().find(|group| group.name == "flow 0").unwrap();
        let settings = AdviseSettings {
            candidates: Candidates(vec!["bbr".to_string()]),
            simulations,
            seed: 7 + number,
        };
        let Advised { fits, classes, .. } = lab.advise(own, &settings).unwrap().unwrap();
        for (class, one) in classes.iter().enumerate() {
            let Some(found) = one.prediction else { continue };
            let best = fits[0];
            println!(
                "{number},{:.2},{:.1},{:.5},{:.2},{:.2},{:.2},{:.3},{:.2},{:.5},{:.2},{:.2},{class},{:.3},{:.3},{:.3},{:.3},{:.4},{:.4},{:?}",
                hidden.rate_mbps,
                hidden.rtt_ms,
                hidden.loss,
                hidden.buffer_bdp,
                hidden.load,
                hidden.cross,
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
        }
    }
}
