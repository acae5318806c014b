//! Scheduling of threads in real time.

use knee_host::set_realtime;
use nix::sys::prctl::set_timerslack;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::fs::{self, File, OpenOptions};
use std::io::Write;

/// Priority of the emulator under SCHED_FIFO.
pub const EMULATOR: i32 = 20;
/// Priority of probes: below the emulator, above everything that is not real-time.
pub const PROBE: i32 = 10;

/// Makes the calling thread run on time, as far as the host permits. Returns what it does not
/// permit as a warning.
pub fn prepare(priority: i32) -> Option<String> {
    // One nanosecond, the minimum; the default of 50 µs would be added to each wait.
    let slack = set_timerslack(1).err().map(|error| format!("timer slack: {error}"));
    let realtime = set_realtime(priority).err().map(|error| {
        format!(
            "SCHED_FIFO is not permitted ({error}), packets will leave late: run as root or with \
             CAP_SYS_NICE, in a control group with cpu.rt_runtime_us above zero"
        )
    });
    realtime.or(slack)
}

/// Keeps idle processors awake for as long as the value lives: waking from sleep takes them tens of
/// microseconds, at each wake-up of a round trip. Linux: Documentation/power/pm_qos_interface.rst.
/// `None` if not permitted: packets are then a little later, and the lateness shows it.
pub fn stay_awake() -> Option<File> {
    let mut device = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    // Maximum wake-up latency in microseconds, a 32-bit integer.
    device.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(device)
}

/// Returns the CPU time of the calling thread, seconds.
pub fn thread_cpu_s() -> f64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0.0, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}

/// CPU time of all processors, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    total: u64,
    stolen: u64,
}

impl CpuTime {
    /// Reads the time so far; zero if `/proc/stat` is unavailable.
    pub fn read() -> CpuTime {
        CpuTime::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Returns the fraction of time that the hypervisor took since `earlier`.
    pub fn stolen_since(self, earlier: CpuTime) -> f64 {
        let total = self.total.saturating_sub(earlier.total).max(1);
        self.stolen.saturating_sub(earlier.stolen) as f64 / total as f64
    }

    /// See proc_stat(5): user, nice, system, idle, iowait, irq, softirq,
    /// steal; guest time is part of user time.
    fn parse(stat: &str) -> CpuTime {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).filter_map(|text| text.parse().ok()).collect();
        CpuTime { total: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_figure() {
        let before = CpuTime::parse("cpu  100 0 50 800 0 0 0 10 7 0\ncpu0 1 2 3\n");
        let after = CpuTime::parse("cpu  150 0 60 830 0 0 0 20 9 0\n");
        assert!((after.stolen_since(before) - 0.1).abs() < 1e-12);
        assert_eq!(CpuTime::parse(""), CpuTime::default());
    }
}
