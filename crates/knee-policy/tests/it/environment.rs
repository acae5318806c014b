//! A machine without processes, changes and waiting, whose clock goes on by itself.

use knee_host::Route;
use knee_policy::{
    Actuator, Applied, Choice, Environment, Journal, Means, Plan, Planned, Policy, PolicyError,
    Recorded, Renewed, Returned,
};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

pub const SECOND: Duration = Duration::from_secs(1);

/// What was asked of it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    GuardBegun,
    Prepared,
    /// A plan with this many routes with a controller, or places.
    Applied(usize),
    LeaseRenewed(Duration),
    ActuatorDropped,
    /// Reverted a journal with this many entries.
    RolledBack(usize),
    GuardDismissed,
}

#[derive(Debug, Default)]
pub struct Machine {
    pub calls: Rc<RefCell<Vec<Call>>>,
    /// Time of the clock that nobody sets, and what it goes on by with each question whether to stop,
    /// unless it has gone on since the last one.
    pub now: Cell<Duration>,
    pub step: Duration,
    pub went_on: Cell<bool>,
    /// What the host's clock is ahead of the other, and by how much it is set at which time.
    pub unix_at_start: Duration,
    pub set: Option<(Duration, Duration)>,
    pub stops_at: Option<Duration>,
    /// From when on the main table has a second route.
    pub second_route_at: Option<Duration>,
    pub knows_second: bool,
    /// From when on the lease cannot be renewed.
    pub lost_at: Option<Duration>,
    /// The actuator refuses its first plan.
    pub refuses: bool,
    pub is_guarded: bool,
}

impl Machine {
    pub fn new(step: Duration) -> Machine {
        Machine { step, unix_at_start: 1_000_000_000 * SECOND, ..Machine::default() }
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.borrow().clone()
    }

    fn has_come(&self, at: Duration) -> bool {
        self.now.get() >= at
    }

    fn note(&self, call: Call) {
        self.calls.borrow_mut().push(call);
    }
}

/// The routes of a main table with one network, or two.
fn routes(count: u8) -> Vec<Route> {
    let net = |number: u8| format!("192.0.{number}.0/24").parse().unwrap();
    (2..2 + count).map(|number| Route::on_device(net(number), 254, 3, 1)).collect()
}

impl Environment for Machine {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn since_1970(&self) -> Duration {
        let set =
            self.set.filter(|(at, _)| self.has_come(*at)).map_or(Duration::ZERO, |(_, by)| by);
        self.unix_at_start + self.now.get() + set
    }

    fn is_stopped(&self) -> bool {
        let is_stopped = self.stops_at.is_some_and(|at| self.has_come(at));
        if !self.went_on.replace(false) {
            self.now.set(self.now.get() + self.step);
        }
        is_stopped
    }

    fn sleep(&mut self, time: Duration) {
        self.now.set(self.now.get() + time);
        self.went_on.set(true);
    }

    fn main_table(&mut self) -> Result<Vec<Route>, PolicyError> {
        self.knows_second = self.second_route_at.is_some_and(|at| self.has_come(at));
        Ok(routes(if self.knows_second { 2 } else { 1 }))
    }

    fn has_changed_routes(&mut self, _: Duration) -> Result<bool, PolicyError> {
        Ok(!self.knows_second && self.second_route_at.is_some_and(|at| self.has_come(at)))
    }

    fn prepare(
        &mut self,
        _: Means,
        _: &Policy,
        _: &mut Journal,
    ) -> Result<Box<dyn Actuator>, PolicyError> {
        self.note(Call::Prepared);
        Ok(Box::new(Kernel { calls: self.calls.clone(), refuses: self.refuses }))
    }

    fn begin_guard(&mut self, _: &Path) -> Result<(), PolicyError> {
        self.is_guarded = true;
        self.note(Call::GuardBegun);
        Ok(())
    }

    fn renew(&mut self) -> Result<Duration, PolicyError> {
        if self.lost_at.is_some_and(|at| self.has_come(at)) {
            let problem = "the guard is gone".to_string();
            return Err(PolicyError::Lost { problem, advice: "start again" });
        }
        if self.is_guarded {
            self.note(Call::LeaseRenewed(self.now.get()));
        }
        Ok(self.now.get() + 30 * SECOND)
    }

    fn roll_back(&mut self, recorded: &Recorded) -> Result<Returned, PolicyError> {
        self.note(Call::RolledBack(recorded.entries.len()));
        Ok(Returned { routes: recorded.entries.len(), ..Returned::default() })
    }

    fn dismiss_guard(&mut self) {
        self.is_guarded = false;
        self.note(Call::GuardDismissed);
    }
}

/// An actuator that changes nothing.
struct Kernel {
    calls: Rc<RefCell<Vec<Call>>>,
    refuses: bool,
}

impl Actuator for Kernel {
    fn apply(&mut self, plan: &Plan, _: &mut Journal) -> Result<Applied, PolicyError> {
        let steers = |planned: &&Planned| planned.route.controller().is_some();
        let count = plan.routes.iter().filter(steers).count() + plan.places.len();
        self.calls.borrow_mut().push(Call::Applied(count));
        if self.refuses {
            let problem = "it refuses everything".to_string();
            return Err(PolicyError::Programs { problem, advice: String::new() });
        }
        Ok(Applied { added: count, ..Applied::default() })
    }

    fn choose(&mut self, _: Vec<Choice>) -> Result<(), PolicyError> {
        Ok(())
    }

    fn renew(&mut self) -> Result<Renewed, PolicyError> {
        Ok(Renewed::default())
    }

    fn stop(&mut self) {}
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.calls.borrow_mut().push(Call::ActuatorDropped);
    }
}
