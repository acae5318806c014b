//! When the blocks of a site begin, by the clocks of its hosts.

use super::{Block, Timeline};
use crate::{Environment, Event, Policy, PolicyError};
use std::time::Duration;

/// Time between looks at the clock while waiting.
const LOOK: Duration = Duration::from_millis(100);
/// Difference between clocks that is tolerated however short the burn-in is.
const APART_MIN: Duration = Duration::from_secs(1);

/// The first block of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub number: u64,
    /// When it was noticed that it had begun, and for how long it had then; `None`: it begins as soon
    /// as everything is prepared.
    pub seen: Option<(Duration, Duration)>,
}

impl First {
    /// The block after those that count.
    pub fn after(blocks: &[Block]) -> First {
        First { number: blocks.last().map_or(0, |block| block.number + 1), seen: None }
    }
}

/// Waits until the next pair or triple of a site begins on all hosts; elsewhere the next block needs
/// no waiting. `None` if it was interrupted. Time is that of the host's clock, so that whoever sets
/// it in the meantime changes the wait.
pub(super) fn first<E: From<PolicyError>>(
    policy: &Policy,
    timeline: &Timeline,
    blocks: &[Block],
    environment: &mut dyn Environment,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<Option<First>, E> {
    let next = First::after(blocks);
    let Some(begins) = policy.begins_unix.map(Duration::from_secs) else {
        return Ok(Some(next));
    };
    let mut announced = None;
    loop {
        // A clock that was set back does not bring a block twice.
        let since = environment.since_1970().saturating_sub(begins);
        let since = since.max(timeline.begin(next.number));
        let begins_now = |number: &u64| {
            since.saturating_sub(timeline.begin(*number)) < (timeline.burn_in / 4).max(2 * LOOK)
        };
        let Some(number) = announced.filter(begins_now).or_else(|| timeline.joined(since)) else {
            return Err(PolicyError::TooLate.into());
        };
        let begin = begins.saturating_add(timeline.begin(number));
        let time = begin.saturating_sub(environment.since_1970());
        if announced != Some(number) {
            announced = Some(number);
            let has_no_pair = number >= 2 * timeline.calibration && blocks.is_empty();
            tell(Event::Waits { number, time, has_no_pair })?;
        }
        if environment.is_stopped() {
            return Ok(None);
        }
        if time.is_zero() {
            let late = environment.since_1970().saturating_sub(begin);
            return Ok(Some(First { number, seen: Some((environment.now(), late)) }));
        }
        environment.sleep(LOOK.min(time));
    }
}

/// Why an experiment cannot go on at a time of the host's clock; `since_first` is the time since the
/// block `first` began, by a clock that nobody sets.
pub(super) fn out_of_time(
    policy: &Policy,
    timeline: &Timeline,
    first: u64,
    since_first: Duration,
    now: Duration,
) -> Option<PolicyError> {
    if policy.expires_unix.is_some_and(|expires| now.as_secs() >= expires) {
        let problem = "the policy has expired".to_string();
        return Some(PolicyError::Lost { problem, advice: "sign it with a later end" });
    }
    let begins = Duration::from_secs(policy.begins_unix?);
    let at = begins.saturating_add(timeline.begin(first)).saturating_add(since_first);
    (now.abs_diff(at) > (timeline.burn_in / 2).max(APART_MIN)).then(|| PolicyError::Lost {
        problem: format!(
            "this host's clock and the blocks of the site are {} s apart",
            now.abs_diff(at).as_secs()
        ),
        advice: "set the clock, and start again to join with the next triple",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(keys: &str) -> Policy {
        let text = format!(
            "name = \"edge\"\n{keys}\n[[group]]\nname = \"web\"\nprefixes = [\"192.0.2.0/24\"]\n\
             controller = \"bbr\"\ncontrol = \"cubic\"\n"
        );
        Policy::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    /// Half of a burn-in of 60 s is tolerated. 2001-09-09T01:46:40Z is a billion seconds after 1970.
    #[test]
    fn an_experiment_ends_if_its_clock_is_set_or_its_policy_expires() {
        let seconds = Duration::from_secs;
        let timeline =
            Timeline { block: seconds(600), burn_in: seconds(60), calibration: 2, triples: 2 };
        let words = |policy: &Policy, now: u64| {
            // 100 s after the begin of the third block.
            let why = out_of_time(policy, &timeline, 2, seconds(100), seconds(now));
            why.map(|error| error.to_string())
        };
        let site = policy("stage = \"site\"\nbegins = 2001-09-09T01:46:40Z");
        let due = 1_000_000_000 + 1200 + 100;
        for now in [due - 30, due, due + 30] {
            assert_eq!(words(&site, now), None);
        }
        for now in [due - 31, due + 31, due + 3600] {
            assert!(words(&site, now).is_some_and(|why| why.contains(" s apart")), "{now}");
        }
        let alone = policy("expires = 2001-09-09T02:46:40Z");
        assert_eq!(words(&alone, 1_000_003_599), None);
        assert!(words(&alone, 1_000_003_600).is_some_and(|why| why.contains("expired")));
    }
}
