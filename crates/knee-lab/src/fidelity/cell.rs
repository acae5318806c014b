//! A cell: a scenario that runs repeatedly on both grounds.

use crate::ground::KERNEL;
use knee_record::{Fidelity, GridCell, GroundRun, Verdict};
use knee_scenario::{Embedded, Errors, Scenario, Source, parse};
use std::sync::Arc;

/// Delay of a second flow's start, so that two flows are not synchronised to the nanosecond, as
/// real ones never are; and its increment per repeat.
const LATER_MS: u64 = 100;
const LATER_MORE_MS: u64 = 7;

/// Parameters of a cell's link; of the first, if there are several.
#[derive(Clone, Copy, Debug)]
pub struct Factors {
    pub mbit: f64,
    pub rtt_ms: f64,
    pub buffer_bdp: f64,
    pub loss_percent: f64,
    /// Largest random delay by which packets overtake each other; 0 for none.
    pub reordering_ms: f64,
}

/// A cell of the grid, or of the extended one.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the cell and of its directory.
    pub name: String,
    pub factors: Factors,
    pub flows: usize,
    pub cc: String,
    pub duration_ms: u64,
    pub warmup_ms: u64,
    /// Links, paths and flows in scenario syntax; `LATER` stands for the delay that distinguishes
    /// repeats beside the seed.
    pub body: String,
    /// A recorded link that the body refers to.
    pub trace: Option<(String, Arc<[u8]>)>,
}

impl Cell {
    /// A cell of flows over one link, with a count for each controller.
    pub fn bottleneck(name: &str, factors: Factors, flows: &[(&str, usize)]) -> Cell {
        let rate = format!("\"{} Mbit/s\"", factors.mbit);
        Cell::over(name, factors, &link("bottleneck", &rate, factors), flows)
    }

    /// A cell of flows over a given link, in scenario syntax, with a count for each controller.
    pub fn over(name: &str, factors: Factors, link: &str, flows: &[(&str, usize)]) -> Cell {
        let path = path("main", "bottleneck", factors.rtt_ms);
        let mut body = format!("{link}{path}");
        for (number, (cc, count)) in flows.iter().enumerate() {
            let group = if flows.len() == 1 { "flow".to_string() } else { format!("flow-{cc}") };
            let start = if number == 0 { "" } else { "start = \"LATER ms\"\n" };
            body += &format!(
                "[[flow]]\nname = \"{group}\"\n{start}count = {count}\n\
                 start_interval = \"LATER ms\"\ncc = \"{cc}\"\n"
            );
        }
        let controllers: Vec<&str> = flows.iter().map(|(cc, _)| *cc).collect();
        Cell {
            name: name.to_string(),
            factors,
            flows: flows.iter().map(|(_, count)| count).sum(),
            cc: controllers.join(", "),
            duration_ms: 10_000,
            warmup_ms: 2_500,
            body,
            trace: None,
        }
    }

    /// The scenario of a repeat, numbered from zero. Repeats differ only in the seed and in the
    /// delay of the later flows.
    pub fn scenario(&self, repeat: u64) -> Result<Scenario, Errors> {
        let later = (LATER_MS + LATER_MORE_MS * repeat).to_string();
        let text = format!(
            "name = \"{}\"\nduration = \"{} ms\"\nwarmup = \"{} ms\"\n\
             sample_interval = \"20 ms\"\nseed = {}\n{}",
            self.name,
            self.duration_ms,
            self.warmup_ms,
            1 + repeat,
            self.body.replace("LATER", &later),
        );
        let trace = self.trace.iter().map(|(name, bytes)| (name.as_str(), &bytes[..]));
        let files: Vec<(&str, &[u8])> = trace.collect();
        parse(&text, &Source { name: "cell.toml", loader: &Embedded(&files) }, &[])
    }

    /// The factors, with an empty comparison.
    pub fn described(&self) -> GridCell {
        GridCell {
            name: self.name.clone(),
            rate_bps: self.factors.mbit * 1e6,
            rtt_us: self.factors.rtt_ms * 1e3,
            buffer_bdp: self.factors.buffer_bdp,
            loss_ratio: self.factors.loss_percent / 100.0,
            reordering_us: self.factors.reordering_ms * 1e3,
            flows: self.flows,
            cc: self.cc.clone(),
            kernel_runs: Vec::new(),
            fidelity: nothing(),
        }
    }
}

/// A link with half of the RTT; `rate` is in scenario syntax.
pub fn link(name: &str, rate: &str, factors: Factors) -> String {
    let one_way = factors.rtt_ms / 2.0;
    let bytes = factors.mbit * 1e6 / 8.0 * factors.rtt_ms / 1e3 * factors.buffer_bdp;
    let jitter = match factors.reordering_ms {
        0.0 => String::new(),
        ms => format!("jitter = {{ amount = \"{ms} ms\", reorder = true }}\n"),
    };
    format!(
        "[link.{name}]\nrate = {rate}\ndelay = \"{one_way} ms\"\nbuffer = \"{bytes:.0} B\"\n\
         loss = \"{} %\"\n{jitter}",
        factors.loss_percent,
    )
}

/// A path over a link; its reverse delay is the other half of the RTT.
pub fn path(name: &str, link: &str, rtt_ms: f64) -> String {
    let one_way = rtt_ms / 2.0;
    format!("[path.{name}]\nforward = [\"{link}\"]\nreverse_delay = \"{one_way} ms\"\n")
}

fn nothing() -> Fidelity {
    let run = GroundRun { verdict: Verdict::Valid, verdict_reason: None, probes: Vec::new() };
    Fidelity {
        schema: String::new(),
        name: String::new(),
        seed: 0,
        ground: KERNEL.to_string(),
        kernel_release: None,
        sim: run.clone(),
        kernel: run,
        measures: Vec::new(),
        further: Vec::new(),
    }
}
