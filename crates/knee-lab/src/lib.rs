//! Jobs, grounds, repeats, studies, sweeps and comparisons, for any program.
//!
//! A [`Lab`] runs a [`Job`], a scenario on a [`Ground`], and gives a [`Run`]:
//! records, summary, how the host kept up. On top of that stand an
//! [`Experiment`] (a file, on several grounds or with several seeds), studies,
//! sweeps, the fidelity grid and the curve of a path. Each is planned first,
//! which tells all that is wrong; then it runs, which a [`Handle`] stops and
//! watches from another thread; what comes out is a value.
//!
//! What this crate never does: print, ask for a signal, know a ground beyond
//! its trait where it need not, write where it was not told to.

mod both;
mod command;
mod directory;
mod error;
mod experiment;
mod ground;
mod handle;
mod job;
mod lab;
mod load;
mod text;
mod words;

pub use error::Error;
pub use experiment::{Experiment, Outcome, SEED_MAX, Settings, check};
pub use ground::{
    Ended, Ground, GroundError, Grounds, Judged, KERNEL, Output, Pace, Refusal, SIMULATOR,
    Simulator, UnknownGround,
};
#[cfg(feature = "kernel")]
pub use ground::Kernel;
pub use handle::{Handle, Progress};
pub use job::{Job, Run};
pub use lab::Lab;
pub use load::{Load, Written};
pub use text::{Input, ScenarioText};
