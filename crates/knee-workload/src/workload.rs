//! The workloads: what each is, and the application that does it. One more has
//! its settings and its application in a file of its own and its lines here.

use crate::{Application, Bursts, Dash, Mix, Page, bulk, bursts, dash, file, mix, page};
use rand_chacha::ChaCha8Rng;

/// What the application of a flow does.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Sends all the time.
    Bulk,
    /// One transfer of so many bytes.
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

/// What is certain of a workload before it begins: grounds and records ask for
/// this, and never which workload it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The sending end opens the connections and pushes; otherwise the receiving
    /// end opens them and requests.
    pub pushes: bool,
    /// One connection carries all of it, opened at the start.
    pub single: bool,
    /// Connections come and go: each is recorded as a transfer and forgotten
    /// once it is acknowledged to its end.
    pub transient: bool,
    /// It ends by itself, and the time until then is the flow's completion time.
    pub ends: bool,
    /// Size of the whole, where that is known.
    pub bytes: Option<u64>,
}

impl Workload {
    /// What is certain of it before it begins.
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

    /// What scenarios and records call it.
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

    /// Name of the random process that it shares with other flows; none: its
    /// draws are its own.
    pub fn process(&self) -> Option<&str> {
        match self {
            Workload::Mix(mix) => mix.process.as_deref(),
            _ => None,
        }
    }
}

/// The application that does what `workload` says. Only a mix draws from
/// `rng`.
///
/// # Panics
///
/// If the settings are impossible: a page whose objects wait for one that it
/// does not have, a video without qualities or with segments of no length.
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
