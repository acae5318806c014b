//! The routes of an experiment, or the prefixes of its programs, which follow the host's routes.

use crate::failure::Failure;
use crate::policy::{pause_after, place};
use crate::screen;
use ipnet::IpNet;
use knee_host::RouteChanges;
use knee_policy::{Actuator, Applied, Host, Journal, Means, Plan, Policy};
use std::time::{Duration, Instant};

/// Plans an experiment and refuses one that this host cannot carry out; changes nothing.
pub fn plan(policy: &Policy, means: Means, host: &mut Host) -> Result<Plan, Failure> {
    let plan = Plan::for_experiment(means, policy, &host.main_table()?)?;
    if means == Means::Routes {
        plan.check_halves(policy)?;
    }
    Ok(plan)
}

/// Why this host cannot carry out an experiment with a policy, if it cannot.
pub fn obstacle(policy: &Policy) -> Result<Option<String>, Failure> {
    match plan(policy, Means::of(policy), &mut Host::open()?) {
        Ok(_) => Ok(None),
        Err(Failure::Host(what, advice)) => Ok(Some(format!("{what}; {advice}"))),
        Err(other) => Err(other),
    }
}

/// What a policy with two controllers for each group needs as an experiment by routes.
pub fn planned(policy: &Policy, means: Means) -> Result<Option<String>, Failure> {
    let mut policy = policy.clone();
    policy.groups.retain(|group| group.control.is_some());
    if policy.groups.is_empty() || means != Means::Routes {
        return Ok(None);
    }
    Ok(Some(match plan(&policy, means, &mut Host::open()?) {
        Ok(plan) => format!("As an experiment (knee steer run): {} routes.", plan.routes.len()),
        Err(Failure::Host(what, advice)) => format!("Not as an experiment: {what}; {advice}."),
        Err(other) => return Err(other),
    }))
}

/// Keeps the routes of an experiment, or the prefixes of its programs, in line with the routes of the
/// host, whoever changes them.
pub struct Follower<'f> {
    policy: &'f Policy,
    means: Means,
    host: &'f mut Host,
    journal: &'f mut Journal,
    changes: RouteChanges,
    left: Vec<(u32, IpNet)>,
    next: Option<Instant>,
}

impl<'f> Follower<'f> {
    /// Applies the plan of the time before the first block, a block under A.
    pub fn begin(
        policy: &'f Policy,
        means: Means,
        host: &'f mut Host,
        journal: &'f mut Journal,
        actuator: &mut dyn Actuator,
    ) -> Result<(Follower<'f>, Plan), Failure> {
        // Before the plan, so that no change is missed.
        let changes = RouteChanges::listen()?;
        let mut plan = plan(policy, means, host)?;
        let applied = actuator.apply(&plan, journal)?;
        if let Some((_, words)) = applied.refused.into_iter().next() {
            let advice = "knee steer plan shows the routes; all changes were reverted";
            return Err(Failure::Host(words, advice.to_string()));
        }
        let mut follower =
            Follower { policy, means, host, journal, changes, left: Vec::new(), next: None };
        let applied = Applied { refused: Vec::new(), ..applied };
        follower.leave(&mut plan, applied);
        Ok((follower, plan))
    }

    /// Whether the experiment is carried out by routes.
    pub fn is_by_routes(&self) -> bool {
        self.means == Means::Routes
    }

    /// Follows changes since the last call. Returns what has changed for the experiment.
    #[expect(clippy::disallowed_methods, reason = "a host's routes may change all the time")]
    pub fn follow(
        &mut self,
        plan: &mut Plan,
        actuator: &mut dyn Actuator,
    ) -> Result<Option<&'static str>, Failure> {
        // Also true after the routes got the controllers of a block.
        let began = Instant::now();
        if self.next.is_some_and(|next| began < next) || !self.changes.wait(Duration::ZERO)? {
            return Ok(None);
        }
        let main = self.host.main_table()?;
        let alone = plan.left_alone();
        let next = Plan::for_experiment(self.means, self.policy, &main)?;
        // Programs need nothing new for most changes, and nobody else changes what they have.
        if !self.is_by_routes() && next.places == plan.places {
            self.next = Some(Instant::now() + pause_after(began.elapsed()));
            return Ok(None);
        }
        *plan = next;
        let applied = actuator.apply(plan, self.journal)?;
        let is_changed = applied.added + applied.removed > 0;
        self.next = Some(Instant::now() + pause_after(began.elapsed()));
        if self.leave(plan, applied) {
            Ok(Some("somebody changed a route of the experiment"))
        } else {
            // Programs also get prefixes that change nothing for anybody.
            let is_changed = self.is_by_routes() && is_changed || plan.left_alone() != alone;
            Ok(is_changed.then_some("the host's routes have changed"))
        }
    }

    /// Excludes what was left alone or refused. Returns whether somebody has changed more since.
    fn leave(&mut self, plan: &mut Plan, applied: Applied) -> bool {
        plan.leave(&applied);
        for (_, words) in &applied.refused {
            screen::complain(words);
        }
        let new: Vec<String> =
            applied.left.iter().filter(|at| !self.left.contains(at)).map(place).collect();
        if !new.is_empty() {
            screen::complain(&format!(
                "Changed by others, so left as they are: {}.",
                new.join(", ")
            ));
        }
        self.left = applied.left;
        !new.is_empty()
    }
}
