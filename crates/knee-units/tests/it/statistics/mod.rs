//! Statistics over simulated summaries whose truth is known.

mod coverage;
mod outcomes;
