//! Asks before a stage that changes something.

use crate::screen;
use knee_lab::Handle;
use std::io::{BufRead, IsTerminal, stdin};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::spawn;
use std::time::Duration;

/// Interval between looks at whether it was interrupted.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Whether a stage may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Yes was written.
    Given,
    /// Something else was written, or Ctrl-C.
    Refused,
    /// There is no terminal.
    Nobody,
}

/// Asks on the terminal.
pub fn ask(stage: &str, handle: &Handle) -> Consent {
    if !stdin().is_terminal() {
        return Consent::Nobody;
    }
    screen::say(&format!("Begin the stage {stage}? [y/N]"));
    let (answer, answered) = channel();
    // A line that is never written must not keep the process after Ctrl-C.
    spawn(move || {
        let mut line = String::new();
        let read = stdin().lock().read_line(&mut line);
        let _ = answer.send(read.map_or_else(|_| String::new(), |_| line));
    });
    loop {
        match answered.recv_timeout(CHECK_INTERVAL) {
            Ok(line) => return consent(&line),
            Err(RecvTimeoutError::Timeout) if !handle.is_stopped() => {}
            Err(_) => return Consent::Refused,
        }
    }
}

/// What an answer means: only yes is yes.
fn consent(line: &str) -> Consent {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Consent::Given,
        _ => Consent::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        for yes in ["y\n", "Y\r\n", " yes \n", "YES"] {
            assert_eq!(consent(yes), Consent::Given, "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yeah\n", "ja\n", "y y\n"] {
            assert_eq!(consent(no), Consent::Refused, "{no:?}");
        }
    }
}
