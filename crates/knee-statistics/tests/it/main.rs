//! Statistics over simulated summaries whose truth is known.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod coverage;
mod outcomes;
