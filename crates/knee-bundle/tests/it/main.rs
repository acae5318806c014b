//! Tests of `knee-bundle` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bundle;
mod credit;
mod history;
mod lasting;
mod links;
mod loss;
mod one_path;
mod overflow;
mod silence;
mod streams;
mod wire;
mod world;
