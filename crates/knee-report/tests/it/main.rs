//! Tests of `knee-report` that need no real time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod columns;
mod common;
mod parts_page;
mod plot_file;
mod run_page;
mod study_report;
mod sweep_page;
