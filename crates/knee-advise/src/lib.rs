//! Recommends a controller for a group of connections, from what a host knows of them after they
//! have ended.
//!
//! Rate, loss and buffer of a path cannot be read from such rows: direct estimates miss the gain by
//! a factor of two. So the rows are compared with simulated ones: [`Search`] looks for paths over
//! which the controller in use yields the same [`Statistics`], and the candidates are simulated on
//! these. Where the simulator cannot reproduce the observations it cannot predict, so a large
//! misfit means no advice ([`Verdict::NoAdvice`]).
//!
//! The model is one bottleneck with a constant rate, a drop-tail queue and independent losses,
//! shared by the group's connections, which arrive at random (Poisson), and by cross traffic under
//! CUBIC. The result ranks experiments; it does not replace one.
//!
//! What this crate never does: simulate, read a file, use randomness other than the given seed.

mod advice;
mod linear;
mod path;
mod search;
mod series;
mod statistics;

pub use advice::{
    Answer, Class, Gain, MANY_RETRANSMITTED, MISFIT_MAX, Prediction, Reason, RuleOfThumb,
    SITES_RTT_S, Verdict, operators_rule, rule_of_thumb,
};
pub use path::{Bounds, DIMENSIONS, Path, Point};
pub use search::{Compared, Fit, Misfitting, Search, SearchSettings, Space, misfit};
pub use series::{Figure, Known, LinkBounds, LinkPath, SampleInterval, Series, figures};
pub use statistics::{Connection, LARGE_BYTES, Statistics};
