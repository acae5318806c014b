//! Options that several commands share: where they write, how they report progress, and
//! how they print results.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// How a command runs and where it writes.
#[derive(Debug, Args)]
pub struct Output {
    /// Runs at the same time. Default: one per CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Where to write. Default: below knee-out/
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
    /// Replace the files of an earlier run
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub progress: Progress,
}

/// How a command reports progress.
#[derive(Debug, Args)]
pub struct Progress {
    /// Progress: a bar, or json (one object per line on standard error)
    #[arg(long, value_name = "FORM", default_value = "bar", hide_default_value = true,
        hide_possible_values = true, value_parser = ["bar", "json"])]
    progress: String,
}

impl Progress {
    /// Whether another program reads the progress.
    pub fn is_json(&self) -> bool {
        self.progress == "json"
    }
}

/// How a command prints results.
#[derive(Clone, Debug, Args)]
pub struct Print {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: Format,
    /// Short for --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,
}

impl Print {
    /// The requested format.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "csv", "markdown", "latex", "json"]).map(|name| {
        match name.as_str() {
            "csv" => Format::Csv,
            "markdown" => Format::Markdown,
            "latex" => Format::Latex,
            "json" => Format::Json,
            _ => Format::Text,
        }
    })
}

/// Forms of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people, within the width of the terminal
    Text,
    /// The tables, comma-separated, every number in full (RFC 4180)
    Csv,
    /// The same as Markdown
    Markdown,
    /// The same for LaTeX, with numbers as they are shown
    Latex,
    /// One document with everything
    Json,
}
