//! Ctrl-C: the first asks the runs to stop and keep what they have, the
//! second ends the process.

use crate::failure::{Failure, INTERRUPTED};
use crate::screen;
use knee_lab::Handle;

/// From here on, an interrupt stops the runs that `handle` has hold of.
pub fn stops(handle: Handle) -> Result<(), Failure> {
    stops_with(handle, "Stopping; what there is will be kept. Once more to stop at once.")
}

/// As [`stops`], with other words for what comes of it.
pub fn stops_with(handle: Handle, words: &'static str) -> Result<(), Failure> {
    ctrlc::set_handler(move || interrupted(&handle, words))
        .map_err(|error| Failure::Host(format!("cannot listen for Ctrl-C: {error}"), String::new()))
}

fn interrupted(handle: &Handle, words: &str) {
    if handle.is_stopped() {
        // What is being written does not pass for a run: the manifest, which
        // comes last, is not there yet.
        std::process::exit(i32::from(INTERRUPTED));
    }
    screen::say(words);
    handle.stop();
}
