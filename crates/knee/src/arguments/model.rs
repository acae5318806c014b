//! Arguments of `knee model`.

use super::output::Print;
use clap::{Args, ValueHint};
use std::path::PathBuf;

pub const HELP: &str = "\
Examples:
  knee model                                    two flows, ten starts drawn
  knee model --start 0.9,0.1 --start 0.6,0.4    these starts
  knee model --flows 5 --starts 100 --out five.png

A probing flow sends its estimate times the gain, the others send theirs, and each
gets its part of the link. An estimate is the most that a flow got in the last probe
of every flow. In a round each flow probes once.";

/// `knee model`.
#[derive(Debug, Args)]
pub struct Model {
    /// Initial estimates, one for each flow, as parts of the link; may be repeated
    #[arg(long, value_name = "A,B,…", value_parser = start,
        conflicts_with_all = ["flows", "starts", "seed"])]
    pub start: Vec<Start>,
    /// Flows
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u16).range(2..=50))]
    pub flows: u16,
    /// Starts to draw, each division of the link as likely as any other
    #[arg(long, value_name = "COUNT", default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub starts: u16,
    /// Seed of the starts drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Pacing gain of a probe, above 1 and at most 10
    #[arg(long, value_name = "GAIN", default_value_t = 1.25, value_parser = gain)]
    pub gain: f64,
    /// Most rounds
    #[arg(long, value_name = "ROUNDS", default_value_t = 1000,
        value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub rounds: u16,
    /// Largest distance from the final shares that counts as fair, as a part of the link
    #[arg(long, value_name = "PART", default_value_t = knee_lab::TOLERANCE, value_parser = tolerance)]
    pub tolerance: f64,
    /// File to write, in the format of its ending: .svg, .pdf or .png
    #[arg(long, value_name = "FILE", default_value = "model.svg", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Width of the picture in pixels; the height follows
    #[arg(long, value_name = "PIXELS", default_value_t = 760,
        value_parser = clap::value_parser!(u16).range(100..=20_000))]
    pub width: u16,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub print: Print,
}

/// Initial estimates of the flows.
#[derive(Clone, Debug)]
pub struct Start(pub Vec<f64>);

fn start(text: &str) -> Result<Start, String> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    let possible = |part: &f64| *part > 0.0 && *part <= 10.0;
    match parts {
        Some(parts) if (2..=50).contains(&parts.len()) && parts.iter().all(possible) => {
            Ok(Start(parts))
        }
        _ => Err("write 2 to 50 numbers above 0 and at most 10, such as 0.9,0.1".to_string()),
    }
}

fn gain(text: &str) -> Result<f64, String> {
    within(text, 1.001, 10.0)
}

fn tolerance(text: &str) -> Result<f64, String> {
    within(text, 1e-9, 0.5)
}

fn within(text: &str, min: f64, max: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| format!("write a number from {min} to {max}"))
}
