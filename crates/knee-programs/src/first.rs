//! The first process of a host: process 1 of its namespace.
//!
//! It waits for the end of its standard input, a pipe that Knee holds. When it ends, the kernel kills
//! every other process of the namespace (pid_namespaces(7)), sessions and daemons included. Until
//! then it takes in what other processes leave behind.
//!
//! It is the running program itself, started again under the name [`NAME`]: its `main` calls [`run`]
//! if [`is_first`].

use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::io::{Write, stdin, stdout};
use std::os::fd::AsFd;

/// Name under which a first process is started.
pub const NAME: &str = "knee-first";
/// What it answers once the host is ready: with a `/proc` of its own, or without.
pub(crate) const READY: u8 = b'r';
pub(crate) const READY_WITHOUT_PROC: u8 = b'-';
/// Longest time for which a process that has ended is kept.
const REAP_MS: u16 = 100;

/// Whether this process was started as the first one of a host.
pub fn is_first(name: &OsStr) -> bool {
    name == NAME
}

/// Runs until the other end of the standard input is closed. Returns the exit code.
pub fn run() -> u8 {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // A container may hide parts of /proc, and then permits no other one. Programs then see the
    // processes of the container.
    let mounted = mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>).is_ok();
    let answer = if mounted { READY } else { READY_WITHOUT_PROC };
    if stdout().write_all(&[answer]).and_then(|()| stdout().flush()).is_err() {
        return 1;
    }
    let input = stdin();
    loop {
        let mut watched = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        // Nothing is ever written: whatever there is to read is the end.
        if matches!(poll(&mut watched, PollTimeout::from(REAP_MS)), Ok(ready) if ready > 0) {
            return 0;
        }
        let ended = || waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG));
        while matches!(ended(), Ok(status) if status != WaitStatus::StillAlive) {}
    }
}
