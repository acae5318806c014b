//! Applies a policy until it is stopped, then reverts everything.

use crate::{
    Actuator, Announcing, Environment, Event, Journal, Means, Plan, Policy, PolicyError,
    Publication, Renewed, treated,
};
use std::path::Path;
use std::time::Duration;

/// Interval of lease renewals.
pub(crate) const RENEWAL: Duration = Duration::from_secs(1);
/// Maximum wait for changes of routes before the stop condition is checked.
const CHECK: Duration = Duration::from_millis(100);
/// Longest wait from one comparison with the host's routes to the next, unless it took longer.
const COMPARISON: Duration = Duration::from_secs(1);

/// How long to wait after a comparison with the host's routes that took this long: they may change all
/// the time, and following them must not take most of a processor.
pub(crate) fn pause_after(took: Duration) -> Duration {
    (10 * took).min(COMPARISON).max(took)
}

/// How a policy is applied.
#[derive(Clone, Copy, Debug)]
pub struct ApplySettings<'s> {
    /// Journal of all changes.
    pub journal: &'s Path,
    /// Where the assignment is published.
    pub publication: Option<&'s Path>,
    /// For how long; `None`: until the environment is stopped.
    pub duration: Option<Duration>,
}

/// Applies a policy, keeps it in line with the host's routes until the environment is stopped, the
/// duration is over or the policy has expired, and reverts everything, whatever happens. What an
/// earlier process left is reverted first. `Ok(Some(plan))` if none of the policy's traffic can be
/// steered: nothing was changed, and the plan says why.
///
/// # Errors
///
/// [`PolicyError`], and those of `tell`. Everything is reverted, except if that fails, too: then the
/// guard goes on.
pub fn apply<E: From<PolicyError>>(
    policy: &Policy,
    settings: &ApplySettings<'_>,
    environment: &mut dyn Environment,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<Option<Plan>, E> {
    let path = settings.journal;
    let (mut journal, before) = Journal::hold_next(path)?;
    if !before.entries.is_empty() {
        let returned = environment.roll_back(&before)?;
        journal.clear()?;
        tell(Event::EarlierReverted(&returned))?;
    }
    // What has changed until now is in the plan, and what changes from now on is noticed.
    environment.has_changed_routes(Duration::ZERO)?;
    let means = Means::of(policy);
    let plan = Plan::by(means, policy, &environment.main_table()?);
    if plan.is_empty() {
        return Ok(Some(plan));
    }
    // Start the guard first, so that journal entries are never without one.
    environment.begin_guard(path)?;
    journal.write(&[Journal::begin(&policy.name, environment.since_1970().as_secs())?])?;
    let steered = steer(policy, means, plan, settings, &mut journal, environment, tell);
    let returned = environment.roll_back(&Journal::read(path)?)?;
    journal.clear()?;
    environment.dismiss_guard();
    let told = tell(Event::Reverted(&returned));
    steered.and(told).map(|()| None)
}

/// The actuator is dropped at the end of it, which ends steering of new connections.
fn steer<E: From<PolicyError>>(
    policy: &Policy,
    means: Means,
    mut plan: Plan,
    settings: &ApplySettings<'_>,
    journal: &mut Journal,
    environment: &mut dyn Environment,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let began = environment.now();
    let mut actuator = environment.prepare(means, policy, journal)?;
    // Ends before the actuator does.
    let mut published = settings.publication.map(Publication::at).transpose()?;
    let applied = actuator.apply(&plan, journal)?;
    if let Some(published) = &mut published {
        published.renew(environment.renew()?)?;
        published.publish(policy, &plan, None, treated(policy))?;
    }
    tell(Event::Applied { plan: &plan, refused: &applied.refused })?;
    let (mut renewed, mut sum) = (environment.now(), Renewed::default());
    let (mut has_changed, mut next) = (false, environment.now());
    let mut known = Vec::new();
    let is_over = |now: Duration| settings.duration.is_some_and(|length| now - began >= length);
    while !environment.is_stopped() && !is_over(environment.now()) {
        if policy.expires_unix.is_some_and(|end| environment.since_1970().as_secs() >= end) {
            tell(Event::Expired)?;
            break;
        }
        let passed = environment.now() - began;
        let left = settings.duration.map(|length| length.saturating_sub(passed));
        has_changed |= environment.has_changed_routes(left.unwrap_or(CHECK).min(CHECK))?;
        // Before anything else after a time in which this process did not run.
        if environment.now() - renewed >= RENEWAL {
            renewed = environment.now();
            let end = environment.renew()?;
            tell_renewed(&mut sum, actuator.renew()?, tell)?;
            if let Some(published) = &mut published {
                published.renew(end)?;
            }
        }
        let compared = environment.now();
        if !has_changed || compared < next {
            continue;
        }
        has_changed = false;
        let former =
            std::mem::replace(&mut plan, Plan::by(means, policy, &environment.main_table()?));
        let applied = if plan == former {
            // What is published remains true, unless something of the plan was missing.
            let applied = actuator.apply(&plan, journal)?;
            let is_whole = applied.added + applied.removed == 0;
            published.iter_mut().filter(|_| !is_whole).for_each(Publication::withdraw);
            applied
        } else {
            Announcing::new(&mut *actuator, published.as_mut()).apply(&plan, journal)?
        };
        if let Some(published) = published.as_mut().filter(|one| !one.is_published()) {
            published.publish(policy, &plan, None, treated(policy))?;
        }
        let now = environment.now();
        next = now + pause_after(now - compared);
        let (added, removed) = (applied.added, applied.removed);
        if added + removed > 0 {
            tell(Event::RoutesChanged { added, removed })?;
        }
        for (_, words) in &applied.refused {
            tell(Event::RouteRefused(words))?;
        }
        if applied.left != known {
            if !applied.left.is_empty() {
                tell(Event::LeftAlone(&applied.left))?;
            }
            known = applied.left;
        }
    }
    Ok(())
}

/// Tells of refusals when they begin, and of open connections once all have their controller.
fn tell_renewed<E>(
    sum: &mut Renewed,
    now: Renewed,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if sum.refused == 0 && now.refused > 0 {
        tell(Event::ControllersRefused(now.refused))?;
    }
    if sum.changed > 0 && now.changed == 0 {
        tell(Event::OpenConnectionsChanged(sum.changed))?;
        sum.changed = 0;
    }
    sum.changed += now.changed;
    sum.refused += now.refused;
    Ok(())
}
