//! What a trial in real time needs of the host, measured while it runs.
//!
//! A pause is the time that a thread on one processor waits after its sleep has ended: because of
//! other programs, or because a hypervisor runs another guest.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Time between two looks at the clock. Shorter pauses are found in part only.
const INTERVAL: Duration = Duration::from_millis(1);

/// Which pauses of the host a trial tolerates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pauses {
    /// Any: it waits for what must happen, however long that takes.
    Any,
    /// Up to this many milliseconds. If it fails and the host paused for longer, it is repeated.
    UpToMs(u64),
}

thread_local! {
    /// Why the host was at fault in the last measurement that ended on this thread.
    static EXCUSE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Takes the reason why the host did not give what the last trial on this thread needed.
pub(crate) fn take_excuse() -> Option<String> {
    EXCUSE.take()
}

/// Measures the longest pause of each processor until it is dropped.
#[derive(Debug)]
pub(crate) struct Meter {
    tolerated: Pauses,
    stop: Arc<AtomicBool>,
    longest_ns: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Meter {
    /// Starts one thread per processor that this process may use, unless any pause is tolerated.
    pub(crate) fn start(tolerated: Pauses) -> Meter {
        EXCUSE.take();
        let (stop, longest_ns) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let processors = match tolerated {
            Pauses::Any => Vec::new(),
            Pauses::UpToMs(_) => processors(),
        };
        let watch = |processor| {
            let (stop, longest_ns) = (Arc::clone(&stop), Arc::clone(&longest_ns));
            spawn(move || watch(processor, &stop, &longest_ns))
        };
        let threads = processors.into_iter().map(watch).collect();
        Meter { tolerated, stop, longest_ns, threads }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let Pauses::UpToMs(limit_ms) = self.tolerated else { return };
        let longest = Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed));
        if longest > Duration::from_millis(limit_ms) {
            let ms = longest.as_secs_f64() * 1e3;
            let why = format!("the host paused for {ms:.1} ms, the trial tolerates {limit_ms} ms");
            EXCUSE.set(Some(why));
        }
    }
}

/// Processors that this thread may use.
fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|one| allowed.is_set(*one).unwrap_or(false)).collect()
}

#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn watch(processor: usize, stop: &AtomicBool, longest_ns: &AtomicU64) {
    let mut only = CpuSet::new();
    if only.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only)).is_err() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        let due = Instant::now() + INTERVAL;
        sleep(INTERVAL);
        let late = u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX);
        longest_ns.fetch_max(late, Ordering::Relaxed);
    }
}
