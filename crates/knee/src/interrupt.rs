//! Ctrl-C: the first asks the runs to stop and keep what they have, the
//! second ends the process.

use crate::control::Control;
use crate::failure::{Failure, INTERRUPTED};
use crate::screen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static CONTROLS: Mutex<Vec<Arc<Control>>> = Mutex::new(Vec::new());

/// From here on, an interrupt stops the runs that `controls` are in hand of.
pub fn stops(controls: &[Arc<Control>]) -> Result<(), Failure> {
    *CONTROLS.lock().unwrap_or_else(PoisonError::into_inner) = controls.to_vec();
    ctrlc::set_handler(interrupted)
        .map_err(|error| Failure::Host(format!("cannot listen for Ctrl-C: {error}"), String::new()))
}

/// Whether an interrupt came.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

fn interrupted() {
    if REQUESTED.swap(true, Ordering::SeqCst) {
        // What is being written does not pass for a run: the manifest, which
        // comes last, is not there yet.
        std::process::exit(i32::from(INTERRUPTED));
    }
    screen::say("Stopping; what there is will be kept. Once more to stop at once.");
    let controls = CONTROLS.lock().unwrap_or_else(PoisonError::into_inner);
    controls.iter().for_each(|control| control.stop());
}
