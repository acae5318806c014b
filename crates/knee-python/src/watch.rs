//! Waits for a run without blocking Python's signals.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use knee_lab::Handle;
use pyo3::prelude::*;

use crate::errors::refused;

/// Interval of checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `work` on another thread with the interpreter released. Ctrl-C stops the work through its
/// handle; the exception is raised once the work has ended.
pub fn watched<T: Send>(
    py: Python<'_>,
    handle: &Handle,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    thread::scope(|scope| {
        let (done, mut ended) = channel();
        let worker = scope.spawn(move || {
            let _ = done.send(work());
        });
        let mut interrupt = None;
        loop {
            let ended = &mut ended;
            match py.detach(move || ended.recv_timeout(LOOK)) {
                Ok(value) => return interrupt.map_or(Ok(value), Err),
                Err(RecvTimeoutError::Disconnected) => {
                    // Or the end of the scope would panic as well.
                    let _ = py.detach(move || worker.join());
                    return Err(refused(
                        "Knee stopped because of a mistake in it: please report it",
                    ));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interrupt.is_none()
                && let Err(raised) = py.check_signals()
            {
                handle.stop();
                interrupt = Some(raised);
            }
        }
    })
}
