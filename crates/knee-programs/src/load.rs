//! Whether programs had the processor when they wanted it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Maximum number of tasks that are looked at.
const TASKS_MAX: usize = 4096;
/// Part of a flow's time in which a task waited for a processor, or used one, from which on the
/// program lacked it: what was measured is then the host.
const WAITED_MAX: f64 = 0.05;
const BUSY_MAX: f64 = 0.9;
/// Time below which neither means anything.
const TIME_MIN: Duration = Duration::from_millis(200);

/// Time of the tasks of a program, by task.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Nanoseconds on a processor, and runnable without one.
    tasks: BTreeMap<u32, (u64, u64)>,
}

impl Load {
    /// Reads the tasks of a host's processes; `first` is its first process. Those that have ended keep
    /// what was read last.
    pub fn read(&mut self, first: u32) {
        // The host's own view, in which only its processes are.
        let processes = numbers(Path::new(&format!("/proc/{first}/root/proc")));
        for process in processes.into_iter().filter(|process| *process != 1) {
            let folder = format!("/proc/{first}/root/proc/{process}/task");
            for task in numbers(Path::new(&folder)) {
                let text = fs::read_to_string(format!("{folder}/{task}/schedstat"));
                let Some(times) = text.ok().as_deref().and_then(schedstat) else { continue };
                if self.tasks.len() < TASKS_MAX || self.tasks.contains_key(&task) {
                    self.tasks.insert(task, times);
                }
            }
        }
    }

    /// Says how a program lacked the processor during this time, if it did.
    pub fn lacked(&self, time: Duration) -> Option<String> {
        if time < TIME_MIN {
            return None;
        }
        let share = |nanos: Option<u64>| nanos.unwrap_or(0) as f64 / time.as_nanos() as f64;
        let waited = share(self.tasks.values().map(|(_, waited)| *waited).max());
        let busy = share(self.tasks.values().map(|(busy, _)| *busy).max());
        let percent = |share: f64| (100.0 * share).min(100.0).round();
        if waited > WAITED_MAX {
            return Some(format!("lacked the processor for {} % of its time", percent(waited)));
        }
        (busy > BUSY_MAX).then(|| {
            format!("lacked the processor: it used all of one for {} % of its time", percent(busy))
        })
    }
}

/// Returns the entries of a folder that are numbers.
pub fn numbers(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.take(TASKS_MAX).collect()
}

/// Parses /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst): time on a
/// processor, time runnable without one, number of times.
fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_and_a_busy_task_are_both_a_lack() {
        let load = |tasks: &[(u64, u64)]| {
            let ms = |(busy, waited): &(u64, u64)| (busy * 1_000_000, waited * 1_000_000);
            let tasks = (0..).zip(tasks.iter().map(ms)).collect();
            Load { tasks }.lacked(Duration::from_secs(10))
        };
        assert_eq!(load(&[]), None);
        assert_eq!(load(&[(8_000, 400), (5_000, 400)]), None);
        let waited = load(&[(10, 0), (1_000, 700)]).unwrap();
        assert_eq!(waited, "lacked the processor for 7 % of its time");
        let busy = load(&[(9_600, 0)]).unwrap();
        assert_eq!(busy, "lacked the processor: it used all of one for 96 % of its time");
        let short = Load { tasks: BTreeMap::from([(1, (100_000_000, 0))]) };
        assert_eq!(short.lacked(Duration::from_millis(100)), None);
    }

    /// The fields of a task of this process.
    #[test]
    fn the_kernel_writes_what_is_read() {
        let text = fs::read_to_string("/proc/self/schedstat");
        // A kernel without CONFIG_SCHED_INFO has none.
        if let Ok(text) = text {
            assert!(schedstat(&text).is_some_and(|(busy, _)| busy > 0), "{text}");
        }
        assert_eq!(schedstat("12"), None);
    }
}
