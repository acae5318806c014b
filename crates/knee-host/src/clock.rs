//! A clock that all processes of the host share, and locks that show which of them still run.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::time::Duration;

/// Returns the time since the boot (`CLOCK_BOOTTIME`, as `bpf_ktime_get_boot_ns` returns it), which
/// setting the host's time does not change.
///
/// # Errors
///
/// If the kernel has no such clock (Linux before 2.6.39).
pub fn since_boot() -> io::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from)?)
}

/// Returns whether another process holds an exclusive lock (flock(2)) on an open file. The kernel
/// releases it when that process ends, however it ends.
///
/// # Errors
///
/// If the file system has no locks.
pub fn is_locked(file: &File) -> io::Result<bool> {
    match Flock::lock(file.try_clone()?, FlockArg::LockSharedNonblock) {
        // Dropping it unlocks.
        Ok(_) => Ok(false),
        Err((_, Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, error)) => Err(error.into()),
    }
}
