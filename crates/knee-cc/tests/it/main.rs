//! Tests of `knee-cc` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod application_limited;
mod bbr;
mod bbr3;
mod bbr_changes;
mod bbr_parameters;
mod bbr_probe_loss;
mod copa;
mod coupled;
mod falls;
mod gcc;
mod heavy_loss;
mod ledbat;
mod loss_based;
mod low_delay;
mod pipe;
mod random;
mod registry;
mod remycc;
mod short_paths;
mod slow_start;
mod timeout;
mod vegas;
mod vivace;
mod wire;
