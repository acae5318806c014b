//! Tests of `knee` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod advise;
mod answers;
mod auto;
#[cfg(feature = "bond")]
mod bond;
mod commands;
mod common;
mod compare;
mod curve;
mod drops;
mod evaluate;
mod export;
mod fit;
mod force;
mod host;
#[cfg(feature = "bond")]
mod hosts;
mod inputs;
mod interrupt;
mod logs;
mod model;
mod net;
mod numbers;
mod play;
mod plot;
mod provenance;
mod rank;
mod reference;
mod reproduce;
mod run;
mod signed;
mod snapshots;
mod sweep;
mod words;
