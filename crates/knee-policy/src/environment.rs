//! What the loops of this crate ask of the machine on which they run.

use crate::{
    Actuator, GuardProcess, Host, Journal, Means, Policy, PolicyError, Recorded, Returned,
};
use knee_host::{Route, RouteChanges};
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Clocks, routes, actuators, and the guard of a machine. [`LiveEnvironment`] is this one; tests have
/// others, without processes, changes and waiting.
pub trait Environment {
    /// Time by a clock that nobody sets.
    fn now(&self) -> Duration;

    /// Time since 1970 by the clock of the host, which may be set.
    fn since_1970(&self) -> Duration;

    /// Whether the caller wants an end.
    fn is_stopped(&self) -> bool;

    /// Lets this time pass.
    fn sleep(&mut self, time: Duration);

    /// The routes of the main table.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    fn main_table(&mut self) -> Result<Vec<Route>, PolicyError>;

    /// Waits for a change of the host's routes since the last call. Returns false if there was none in
    /// that time. The first call only begins to listen, and returns false.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    fn has_changed_routes(&mut self, longest: Duration) -> Result<bool, PolicyError>;

    /// Prepares the mechanism that carries out a policy.
    ///
    /// # Errors
    ///
    /// Those of [`Means::prepare`].
    fn prepare(
        &mut self,
        means: Means,
        policy: &Policy,
        journal: &mut Journal,
    ) -> Result<Box<dyn Actuator>, PolicyError>;

    /// Starts the guard, which reverts what the journal lists if this process falls silent or ends.
    ///
    /// # Errors
    ///
    /// If there can be none: nothing may be changed then.
    fn begin_guard(&mut self, journal: &Path) -> Result<(), PolicyError>;

    /// Renews the lease, if there is a guard. Returns the time, since the boot, until which all
    /// that is applied stays so, whatever happens to this process; tell it to others only after the
    /// actuator has been renewed as well.
    ///
    /// # Errors
    ///
    /// If the guard has ended, or may have reverted all changes since this process has not run for
    /// some time. Everything must be reverted then.
    fn renew(&mut self) -> Result<Duration, PolicyError>;

    /// Reverts a journal's changes.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    fn roll_back(&mut self, recorded: &Recorded) -> Result<Returned, PolicyError>;

    /// Tells the guard that nothing is left to revert, and waits for its end.
    fn dismiss_guard(&mut self);
}

/// This machine.
pub struct LiveEnvironment<'e> {
    host: Host,
    changes: Option<RouteChanges>,
    epoch: Instant,
    is_stopped: &'e dyn Fn() -> bool,
    guard_command: &'e dyn Fn(&Path) -> io::Result<Command>,
    guard: Option<GuardProcess>,
}

impl<'e> LiveEnvironment<'e> {
    /// This machine, until `is_stopped`. The command of a guard process for a journal comes from
    /// `guard_command`; it calls [`crate::guard`].
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    #[expect(clippy::disallowed_methods, reason = "it tells the time")]
    pub fn open(
        is_stopped: &'e dyn Fn() -> bool,
        guard_command: &'e dyn Fn(&Path) -> io::Result<Command>,
    ) -> Result<LiveEnvironment<'e>, PolicyError> {
        Ok(LiveEnvironment {
            host: Host::open()?,
            changes: None,
            epoch: Instant::now(),
            is_stopped,
            guard_command,
            guard: None,
        })
    }
}

impl Environment for LiveEnvironment<'_> {
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn since_1970(&self) -> Duration {
        since_1970()
    }

    fn is_stopped(&self) -> bool {
        (self.is_stopped)()
    }

    #[expect(clippy::disallowed_methods, reason = "it waits")]
    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn main_table(&mut self) -> Result<Vec<Route>, PolicyError> {
        self.host.main_table()
    }

    fn has_changed_routes(&mut self, longest: Duration) -> Result<bool, PolicyError> {
        match &mut self.changes {
            Some(changes) => Ok(changes.wait(longest)?),
            None => {
                self.changes = Some(RouteChanges::listen()?);
                Ok(false)
            }
        }
    }

    fn prepare(
        &mut self,
        means: Means,
        policy: &Policy,
        journal: &mut Journal,
    ) -> Result<Box<dyn Actuator>, PolicyError> {
        means.prepare(policy, journal)
    }

    fn begin_guard(&mut self, journal: &Path) -> Result<(), PolicyError> {
        self.guard = Some(GuardProcess::start((self.guard_command)(journal))?);
        Ok(())
    }

    fn renew(&mut self) -> Result<Duration, PolicyError> {
        self.guard.as_mut().map_or(Ok(Duration::ZERO), GuardProcess::renew)
    }

    fn roll_back(&mut self, recorded: &Recorded) -> Result<Returned, PolicyError> {
        self.host.roll_back(recorded)
    }

    fn dismiss_guard(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

/// Time since 1970 (Unix time) by this host's clock.
#[expect(clippy::disallowed_methods, reason = "it tells the time")]
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
