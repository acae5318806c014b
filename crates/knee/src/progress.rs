//! Progress of runs: on a terminal, a bar with an estimate for anything longer than two seconds;
//! for programs, one JSON object per line.

use crate::screen;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use knee_lab::{Handle, Pace, Progress};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, IsTerminal, Read, stderr};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// Delay before a bar appears.
const SHOWN_AFTER: Duration = Duration::from_secs(2);
/// Interval between updates.
const REFRESH: Duration = Duration::from_millis(100);
/// Maximum interval between objects for programs.
const A_SECOND: Duration = Duration::from_secs(1);
/// Resolution of the bar.
const STEPS: f64 = 10_000.0;

/// A progress bar that is shown until it is dropped.
#[derive(Debug)]
pub struct Bar {
    /// Dropped to end the thread.
    _alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// Starts showing progress.
    pub fn over(runs: Handle) -> Bar {
        let for_programs = screen::tells_programs();
        if !for_programs && !stderr().is_terminal() {
            return Bar { _alive: None, thread: None };
        }
        let (alive, ended) = channel();
        let look = if for_programs { tell } else { watch };
        let thread = spawn(move || look(&runs, &ended));
        Bar { _alive: Some(alive), thread: Some(thread) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        drop(self._alive.take());
        // A failed bar must not fail the command.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Reports progress to programs: whenever a run ends, otherwise every second, and once when all are
/// done.
#[expect(clippy::disallowed_methods, reason = "what runs take, for whoever waits for them")]
fn tell(runs: &Handle, ended: &Receiver<()>) {
    let began = Instant::now();
    let mut told: Option<(Progress, Instant)> = None;
    while ended.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
        let Some(now) = runs.progress() else { continue };
        let is_news = told.is_none_or(|(last, at)| {
            (last.pace, last.finished, last.runs) != (now.pace, now.finished, now.runs)
                || at.elapsed() >= A_SECOND
        });
        if is_news {
            screen::tell(&object(&now, began.elapsed()));
            told = Some((now, Instant::now()));
        }
    }
    let elapsed_s = began.elapsed().as_secs_f64();
    screen::tell(&json!({ "progress": "done", "elapsed_s": elapsed_s }));
}

fn object(progress: &Progress, elapsed: Duration) -> Value {
    let Progress { pace, runs, finished, done, left_s } = *progress;
    let estimate = (done > 0.0).then(|| elapsed.as_secs_f64() * (1.0 - done) / done);
    json!({
        "progress": match pace {
            Pace::Virtual => "virtual-time",
            Pace::Real => "real-time",
        },
        "runs": runs,
        "finished": finished,
        "done": done,
        "elapsed_s": elapsed.as_secs_f64(),
        "left_s": left_s.or(estimate),
    })
}

/// Shows a bar for runs in virtual time, then one for runs in real time.
fn watch(runs: &Handle, ended: &Receiver<()>) {
    let (mut bar, mut waited): (Option<(Pace, ProgressBar)>, _) = (None, Duration::ZERO);
    while ended.recv_timeout(REFRESH) == Err(RecvTimeoutError::Timeout) {
        let progress = runs.progress();
        if let Some((_, old)) = bar.take_if(|(pace, _)| progress.map(|now| now.pace) != Some(*pace))
        {
            old.finish_and_clear();
            waited = Duration::ZERO;
        }
        waited += REFRESH;
        if let Some(progress) = progress.filter(|_| waited >= SHOWN_AFTER) {
            let (_, bar) = bar.get_or_insert_with(|| (progress.pace, begun(progress.pace)));
            bar.set_message(message(&progress, bar));
            bar.set_position((progress.done * STEPS) as u64);
        }
    }
    if let Some((_, bar)) = bar {
        bar.finish_and_clear();
    }
}

/// Reads a file behind a bar of how much of it is read, which is drawn on a terminal after two
/// seconds.
pub fn reading(file: File, path: &Path) -> impl Read {
    let length = file.metadata().map_or(0, |about| about.len());
    let bar = ProgressBar::hidden().with_style(
        ProgressStyle::with_template("{bar:32} {percent:>3} % of {msg} · {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.set_length(length);
    bar.set_message(path.display().to_string());
    Reading { file, bar, is_shown: false }
}

struct Reading {
    file: File,
    bar: ProgressBar,
    is_shown: bool,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bar.inc(read as u64);
        if !self.is_shown && self.bar.elapsed() > SHOWN_AFTER {
            self.is_shown = true;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        Ok(read)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn begun(pace: Pace) -> ProgressBar {
    ProgressBar::new(STEPS as u64).with_style(style(pace)).with_elapsed(SHOWN_AFTER)
}

fn message(progress: &Progress, bar: &ProgressBar) -> String {
    let Progress { runs, finished, .. } = *progress;
    match progress.left_s {
        Some(left_s) => format!("{finished} of {runs} in real time · {}", seconds_left(left_s)),
        None if runs == 1 => "1 run".to_string(),
        None => {
            let a_minute = finished as f64 / bar.elapsed().as_secs_f64() * 60.0;
            format!("{finished} of {runs} runs, {a_minute:.0} per minute")
        }
    }
}

fn style(pace: Pace) -> ProgressStyle {
    let style = ProgressStyle::with_template(match pace {
        Pace::Virtual => "{bar:32} {percent:>3} % · {msg} · {left}",
        Pace::Real => "{bar:32} {percent:>3} % · {msg}",
    });
    let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // A bar that cannot be drawn must not fail the command.
        let _ = out.write_str(&left(state.elapsed(), state.fraction()));
    };
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

/// Estimates the remaining time at the average speed so far.
fn left(elapsed: Duration, done: f32) -> String {
    if done <= 0.0 {
        return "no estimate yet".to_string();
    }
    seconds_left(elapsed.as_secs_f64() * f64::from((1.0 - done) / done))
}

/// Formats a remaining time.
pub fn seconds_left(seconds: f64) -> String {
    match seconds.ceil() {
        seconds if seconds < 120.0 => format!("about {seconds:.0} s left"),
        seconds => format!("about {:.0} min left", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_proportional() {
        let after = |seconds, done| left(Duration::from_secs(seconds), done);
        assert_eq!(after(10, 0.25), "about 30 s left");
        assert_eq!(after(60, 0.1), "about 9 min left");
        assert_eq!(after(60, 0.0), "no estimate yet");
        assert_eq!(after(60, 1.0), "about 0 s left");
    }
}
