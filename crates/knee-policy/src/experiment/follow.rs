//! The routes of an experiment, or the prefixes of its programs, which follow the host's routes.

use crate::apply::pause_after;
use crate::{Actuator, Applied, Environment, Event, Journal, Means, Plan, Policy, PolicyError};
use ipnet::IpNet;
use std::time::Duration;

/// Keeps the routes of an experiment, or the prefixes of its programs, in line with the routes of the
/// host, whoever changes them.
pub(super) struct Follower<'f> {
    policy: &'f Policy,
    means: Means,
    left: Vec<(u32, IpNet)>,
    next: Option<Duration>,
}

impl<'f> Follower<'f> {
    /// Applies the plan of the time before the first block, a block under A.
    pub fn begin<E: From<PolicyError>>(
        policy: &'f Policy,
        means: Means,
        environment: &mut dyn Environment,
        journal: &mut Journal,
        actuator: &mut dyn Actuator,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(Follower<'f>, Plan), E> {
        // What changes from now on is noticed.
        environment.has_changed_routes(Duration::ZERO)?;
        let mut plan = Plan::for_experiment_checked(means, policy, &environment.main_table()?)?;
        let applied = actuator.apply(&plan, journal)?;
        if let Some((_, problem)) = applied.refused.into_iter().next() {
            let advice = "knee steer plan shows the routes; all changes were reverted";
            return Err(PolicyError::Lost { problem, advice }.into());
        }
        let mut follower = Follower { policy, means, left: Vec::new(), next: None };
        let applied = Applied { refused: Vec::new(), ..applied };
        follower.leave(&mut plan, applied, tell)?;
        Ok((follower, plan))
    }

    /// Whether the experiment is carried out by routes.
    pub fn is_by_routes(&self) -> bool {
        self.means == Means::Routes
    }

    /// Follows changes since the last call. Returns what has changed for the experiment.
    pub fn follow<E: From<PolicyError>>(
        &mut self,
        plan: &mut Plan,
        environment: &mut dyn Environment,
        journal: &mut Journal,
        actuator: &mut dyn Actuator,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<Option<&'static str>, E> {
        // Also true after the routes got the controllers of a block.
        let began = environment.now();
        if self.next.is_some_and(|next| began < next)
            || !environment.has_changed_routes(Duration::ZERO)?
        {
            return Ok(None);
        }
        let main = environment.main_table()?;
        let alone = plan.left_alone();
        let next = Plan::for_experiment(self.means, self.policy, &main)?;
        // Programs need nothing new for most changes, and nobody else changes what they have.
        if !self.is_by_routes() && next.places == plan.places {
            let now = environment.now();
            self.next = Some(now + pause_after(now - began));
            return Ok(None);
        }
        *plan = next;
        let applied = actuator.apply(plan, journal)?;
        let is_changed = applied.added + applied.removed > 0;
        let now = environment.now();
        self.next = Some(now + pause_after(now - began));
        if self.leave(plan, applied, tell)? {
            return Ok(Some("somebody changed a route of the experiment"));
        }
        // Programs also get prefixes that change nothing for anybody.
        let is_changed = self.is_by_routes() && is_changed || plan.left_alone() != alone;
        Ok(is_changed.then_some("the host's routes have changed"))
    }

    /// Excludes what was left alone or refused. Returns whether somebody has changed more since.
    fn leave<E>(
        &mut self,
        plan: &mut Plan,
        applied: Applied,
        tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        plan.leave(&applied);
        for (_, words) in &applied.refused {
            tell(Event::RouteRefused(words))?;
        }
        let mut new = applied.left.clone();
        new.retain(|at| !self.left.contains(at));
        if !new.is_empty() {
            tell(Event::LeftAlone(&new))?;
        }
        self.left = applied.left;
        Ok(!new.is_empty())
    }
}
