//! Both ends of a connection as state machines.
//!
//! What this crate never does: I/O, read a clock, allocate per packet in
//! steady state, know the ground it runs on.

mod config;

pub use config::{Config, Pacing, Sampler};
