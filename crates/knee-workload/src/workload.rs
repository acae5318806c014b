//! The workloads and their applications. A new one has its settings and its application in a file
//! of its own, and its lines here.

use crate::{Application, Bursts, Dash, Mix, Page, bulk, bursts, dash, file, mix, page};
use rand_chacha::ChaCha8Rng;

/// Workload of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// An endless transfer.
    Bulk,
    /// One transfer of this many bytes.
    File(u64),
    /// Requests with pauses in between.
    Bursts(Bursts),
    /// A web page.
    Page(Page),
    /// Segmented video with an adaptive player.
    Dash(Dash),
    /// Transfers that arrive at random, each over a connection of its own.
    Mix(Mix),
}

/// Properties of a workload that are known before it begins. Grounds and records query these, never
/// the kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Whether the sending end opens the connections and pushes; otherwise the receiving end opens
    /// them and sends requests.
    pub pushes: bool,
    /// Whether one connection, opened at the start, carries everything.
    pub single: bool,
    /// Whether connections come and go; each is recorded as a transfer and forgotten once it is
    /// acknowledged to its end.
    pub transient: bool,
    /// Whether it ends by itself, so that the flow has a completion time.
    pub ends: bool,
    /// Total size, if known.
    pub bytes: Option<u64>,
}

impl Workload {
    /// Returns its properties.
    pub fn properties(&self) -> Properties {
        match self {
            Workload::Bulk => bulk::PROPERTIES,
            Workload::File(bytes) => file::properties(*bytes),
            Workload::Bursts(bursts) => bursts::properties(bursts),
            Workload::Page(_) => page::PROPERTIES,
            Workload::Dash(_) => dash::PROPERTIES,
            Workload::Mix(_) => mix::PROPERTIES,
        }
    }

    /// Returns its name in scenarios and records.
    pub fn name(&self) -> &'static str {
        match self {
            Workload::Bulk => "bulk",
            Workload::File(_) => "file",
            Workload::Bursts(_) => "bursts",
            Workload::Page(_) => "page",
            Workload::Dash(_) => "dash",
            Workload::Mix(_) => "mix",
        }
    }

    /// Returns the name of the random process that it shares with other flows, if any.
    pub fn process(&self) -> Option<&str> {
        match self {
            Workload::Mix(mix) => mix.process.as_deref(),
            _ => None,
        }
    }
}

/// Builds the application of a workload. Only a mix draws from `rng`.
///
/// # Panics
///
/// If the settings are impossible: a page with a dependency on an object that does not exist, a
/// video without qualities or with segments of zero length.
pub fn build(workload: &Workload, rng: ChaCha8Rng) -> Box<dyn Application> {
    match workload {
        Workload::Bulk => Box::new(bulk::Bulk::default()),
        Workload::File(bytes) => Box::new(file::File::new(*bytes)),
        Workload::Bursts(bursts) => Box::new(bursts::Requests::new(*bursts)),
        Workload::Page(page) => Box::new(page::WebPage::new(page.clone())),
        Workload::Dash(dash) => Box::new(dash::Player::new(dash.clone())),
        Workload::Mix(mix) => Box::new(mix::PoissonMix::new(mix.clone(), rng)),
    }
}
