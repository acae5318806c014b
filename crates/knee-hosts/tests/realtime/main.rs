//! Runs to a server: attacks over loopback, and two hosts with an emulator between them. `main`
//! lists them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod beside;
mod far;
mod limits;

use knee_trials::trials;
use std::process::ExitCode;

fn main() -> ExitCode {
    knee_trials::run(trials![
        attacks::an_unknown_key_is_refused,
        attacks::garbage_is_refused,
        attacks::an_endless_handshake_is_refused,
        attacks::a_silent_connection_is_closed,
        attacks::strangers_do_not_keep_a_client_out,
        attacks::many_strangers_push_out_their_own,
        attacks::a_client_that_begins_and_never_ends_is_refused,
        limits::a_used_up_day_ends_a_run_and_refuses_the_next,
        limits::a_restart_begins_no_new_day,
        limits::a_rate_above_the_limit_ends_a_run,
        limits::too_many_connections_end_a_run,
        limits::closed_hours_refuse_a_run,
        limits::a_new_measurement_ends_the_former,
        limits::a_server_that_stops_says_so,
        limits::files_and_mixes_arrive_to_their_last_byte,
        beside::the_kernel_ground_measures_the_same;
        nightly:
        attacks::a_silent_client_is_given_up,
        beside::four_of_twelve_cells_measure_the_same,
    ])
}
