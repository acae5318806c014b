//! Ctrl-C: the first asks the runs to stop and keep their results, the second ends the process.

use crate::failure::{Failure, INTERRUPTED};
use crate::screen;
use knee_lab::Handle;

/// Makes an interrupt stop the runs of `handle`.
pub fn stops(handle: Handle) -> Result<(), Failure> {
    stops_with(handle, "Stopping; results so far are kept. Press Ctrl-C again to quit at once.")
}

/// Does what [`stops`] does, with a different message.
pub fn stops_with(handle: Handle, words: &'static str) -> Result<(), Failure> {
    ctrlc::set_handler(move || interrupted(&handle, words))
        .map_err(|error| Failure::Host(format!("cannot listen for Ctrl-C: {error}"), String::new()))
}

fn interrupted(handle: &Handle, words: &str) {
    if handle.is_stopped() {
        // A partial run is recognisable: its manifest, written last, is missing.
        std::process::exit(i32::from(INTERRUPTED));
    }
    screen::say(words);
    handle.stop();
}
