//! The file formats: every table, with its keys, their types and their meaning, is declared once
//! for reader, writer and JSON Schema. Whether the values make sense together is checked elsewhere.

mod aqm;
mod claim;
mod flow;
mod link;
mod path;
mod program;
mod selection;
mod series;
mod study;
mod transport;

pub(crate) use aqm::AqmFile;
pub(crate) use claim::{BoundFile, ClaimFile, OutcomeWord};
pub(crate) use flow::{FLOWS_MAX, FlowFile, PathName};
pub(crate) use link::{
    AmountFile, AmountStepFile, CircuitBreakerFile, DelayFile, DelayStepFile, DistributionWord,
    DownFile, HoldFile, INTERVALS_MAX, JitterFile, LinkFile, LossFile, LossStepFile, LossTable,
    OffsetFile, OffsetWord, PauseFile, PolicerFile, RateFile, RateStepFile, SteadyLossFile,
};
pub(crate) use path::{AbsentFile, PathFile};
pub(crate) use program::{ProgramFile, ReadyFile};
pub(crate) use selection::{Choice, ControllerFile, SchedulerFile, SelectionFile};
pub(crate) use series::{DelaySeriesFile, GapWord, SeriesFile};
pub(crate) use study::{GroundWord, ModelFile, ModelWord, RunFile, StudyFile};
pub(crate) use transport::{
    AckFrequencyFile, AcksWord, PacingWord, ReceiverFile, RecoveryWord, SamplerWord, TransportFile,
    WindowFile, WindowWord,
};

use crate::read::{List, Named, Optional, Required, table};
use knee_units::Time;

table! {
    /// One experiment: links, paths over them, flows over the paths, and claims
    /// about the results.
    "a scenario" ScenarioFile {
        /// Title. Default: the file's name.
        name: Optional<String>,
        /// Simulated time, at most four hours.
        duration: Required<Time>,
        /// Seed of all randomness. Default: 1.
        seed: Optional<u64>,
        /// Time between two rows of a time series. Default: 100 ms.
        sample_interval: Optional<Time>,
        /// Time after the start of a flow that its measures exclude. Default: 0
        /// s.
        warmup: Optional<Time>,
        /// Each flow starts later by a random time up to this, drawn from
        /// the seed; a flow group can have its own. Default: 0 s.
        start_jitter: Optional<Time>,
        /// Settings of both ends of every flow; a flow can have its own.
        /// Defaults: Linux's.
        transport: Optional<TransportFile>,
        /// Links by name: each is one direction of one hop.
        link: Named<LinkFile>,
        /// Paths by name: the links from sender to receiver, and the reverse
        /// direction.
        path: Named<PathFile>,
        /// Groups of flows with the same settings.
        flow: List<FlowFile>,
        /// Statements to check against the records of the run.
        claim: List<ClaimFile>,
    }
}
