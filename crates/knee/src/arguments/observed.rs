//! Options of `knee report` for a folder of `knee observe`.

use super::{Format, Print};
use clap::{Args, ValueHint};
use knee_live::Period;
use std::path::PathBuf;
use std::str::FromStr;

const HEADING: &str = "Options for a folder of knee observe";
const BOTH: &str = "Options for a folder of knee observe, and for access logs";

/// What the report covers.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct OfObserved {
    /// Only connections that ended in this period (UTC); two periods are compared
    #[arg(long, value_name = "FROM/TO")]
    pub period: Vec<Period>,
    /// Compare two controllers
    #[arg(long, value_name = "A,B")]
    pub controllers: Option<Two>,
    /// Table of networks, comma-separated: prefix,asn,name
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = BOTH)]
    pub providers: Option<PathBuf>,
    /// Access log of a proxy on that host, with the clients' ports
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    #[command(flatten, next_help_heading = BOTH)]
    pub print: Print,
}

impl OfObserved {
    /// The first option that differs from its default, if any.
    pub fn given(&self) -> Option<&'static str> {
        let both = [
            ("--providers", self.providers.is_some()),
            ("--format", self.print.format() != Format::Text),
        ];
        let both = both.iter().find(|(_, given)| *given).map(|(option, _)| *option);
        self.only_for_observed().or(both)
    }

    /// The first option that access logs have no use for, if any.
    pub fn only_for_observed(&self) -> Option<&'static str> {
        let options = [
            ("--period", !self.period.is_empty()),
            ("--controllers", self.controllers.is_some()),
            ("--log", self.log.is_some()),
        ];
        options.iter().find(|(_, given)| *given).map(|(option, _)| *option)
    }
}

/// Names of two controllers.
#[derive(Clone, Debug)]
pub struct Two(pub [String; 2]);

impl FromStr for Two {
    type Err = String;

    fn from_str(text: &str) -> Result<Two, String> {
        match text.split_once(',') {
            Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains(',') && a != b => {
                Ok(Two([a.to_string(), b.to_string()]))
            }
            _ => Err("write two names with a comma between them, such as cubic,bbr".to_string()),
        }
    }
}
