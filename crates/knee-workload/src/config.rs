//! What an application is set to, as a scenario says it, checked.

use knee_units::Time;

/// What the application of a flow does.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Sends all the time.
    Bulk,
    /// One transfer of so many bytes.
    File(u64),
    /// A web page.
    Page(Page),
    /// Segmented video with an adaptive player.
    Dash(Dash),
    /// Transfers that arrive at random, each over a connection of its own.
    Mix(Mix),
}

/// A web page: objects that depend on others.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The objects; the first that depend on none are asked for at once.
    pub objects: Vec<PageObject>,
    /// How they are fetched.
    pub http: Http,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageObject {
    /// What it is.
    pub name: String,
    /// Its size with headers.
    pub bytes: u64,
    /// Objects, by index, that must have arrived before it is known.
    pub after: Vec<usize>,
}

/// How the objects of a page are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// One request at a time on each of up to so many connections kept open
    /// (browsers: 6).
    Version1 {
        /// Connections at most.
        connections: u32,
    },
    /// All requests at once on one connection, answered in the order of
    /// asking.
    Multiplexed,
}

/// Segmented video.
#[derive(Clone, Debug, PartialEq)]
pub struct Dash {
    /// Bitrates of the qualities, bit/s, ascending.
    pub ladder_bps: Vec<u64>,
    /// Media time of a segment.
    pub segment: Time,
    /// Media time of the whole.
    pub media: Time,
    /// Media that the player keeps in its buffer below the top quality, where
    /// it does not ask for more beyond (dash.js: 12 s in version 4, 18 s in
    /// version 5). At the top quality it keeps 30 s, or 60 s of media of ten
    /// minutes and more, if that is longer, as dash.js does.
    pub buffer: Time,
    /// How it chooses.
    pub rule: Rule,
}

/// How a player chooses the quality of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The highest bitrate below the throughput measured, with a margin.
    Throughput,
    /// BOLA (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016).
    Bola,
    /// Throughput at start-up and at low buffer, BOLA above, as dash.js
    /// does by default.
    Dynamic,
}

/// Transfers that arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Mean arrivals per second.
    pub arrivals_per_second: f64,
    /// How many arrive at most; none: as many as the run's time brings.
    pub count: Option<u64>,
    /// Their sizes.
    pub sizes: Sizes,
    /// Name of the process that they come from: mixes of one process see the
    /// same arrivals and sizes. None: of one of its own.
    pub process: Option<String>,
}

/// A distribution of sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All the same.
    Fixed(u64),
    /// Log-normal.
    LogNormal {
        /// The median.
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// None is larger.
        max: u64,
    },
    /// Pareto, bounded.
    Pareto {
        /// The smallest.
        min: u64,
        /// The exponent (1.1 to 1.5 for files on the web).
        shape: f64,
        /// The largest.
        max: u64,
    },
    /// Drawn from observed sizes, evenly.
    Empirical(Vec<u64>),
}
