//! The host of a run, and the resources that the run used, as Linux reports them. Values that are
//! not available are left out.

use nix::sys::resource::{UsageWho, getrusage};
use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Description of the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Host {
    /// Kernel release.
    pub kernel: Option<String>,
    /// CPU model.
    pub cpu: Option<String>,
}

impl Host {
    /// Reads the values of the running system.
    pub fn detect() -> Host {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease");
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Host { kernel: kernel.ok().map(|text| text.trim().to_string()), cpu: cpu_model(&cpus) }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.trim().to_string())
}

/// Resources that a run used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Start of the run, UTC, RFC 3339.
    pub started_at: String,
    /// User-mode CPU time of the thread, seconds.
    pub user_cpu_s: f64,
    /// Elapsed time, seconds.
    pub wall_s: f64,
    /// Largest resident memory of the process so far, bytes.
    pub peak_rss_bytes: u64,
}

/// Measures the resources of a run. Start and stop it on the thread of the run: CPU time is per
/// thread, so that parallel runs do not count each other's.
#[derive(Debug)]
pub struct Meter {
    started_at: SystemTime,
    started: Instant,
    user_cpu_s: f64,
}

impl Meter {
    /// Starts measuring.
    #[expect(
        clippy::disallowed_methods,
        reason = "what a run takes is for the manifest alone; records and summary have no clock"
    )]
    pub fn start() -> Meter {
        Meter {
            started_at: SystemTime::now(),
            started: Instant::now(),
            user_cpu_s: thread_user_cpu_s(),
        }
    }

    /// Returns what was used since the start.
    pub fn stop(&self) -> Usage {
        let began = self.started_at.duration_since(UNIX_EPOCH);
        Usage {
            started_at: rfc3339(began.unwrap_or_default().as_secs()),
            user_cpu_s: thread_user_cpu_s() - self.user_cpu_s,
            wall_s: self.started.elapsed().as_secs_f64(),
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

fn thread_user_cpu_s() -> f64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0.0, |usage| {
        let time = usage.user_time();
        time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
    })
}

/// Linux reports `ru_maxrss` in units of 1024 bytes.
fn peak_rss_bytes() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    usage.map_or(0, |usage| usage.max_rss().unsigned_abs() * 1024)
}

/// Formats seconds since 1970 as RFC 3339 in UTC.
pub fn rfc3339(seconds: u64) -> String {
    let (mut day, rest) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while day >= days_in_year(year) {
        day -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    let day = day + 1;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

fn days_in_year(year: u64) -> u64 {
    (1..=12).map(|month| days_in_month(year, month)).sum()
}

fn days_in_month(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date -u -d @N`.
    #[test]
    fn dates() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(rfc3339(1_795_230_245), "2026-11-21T03:04:05Z");
    }

    #[test]
    fn model_of_the_first_cpu() {
        let text = "processor\t: 0\nmodel name\t: Example 9000 @ 2 GHz\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text).unwrap(), "Example 9000 @ 2 GHz");
        assert_eq!(cpu_model("processor : 0\n"), None);
    }
}
