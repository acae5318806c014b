//! When the blocks of a site begin, by the clocks of its hosts.

use crate::failure::Failure;
use crate::screen;
use knee_lab::Handle;
use knee_policy::{Block, Policy, Timeline};
use knee_present::words::time_us;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time between looks at the clock while waiting.
const PATIENCE: Duration = Duration::from_millis(100);
/// Difference between clocks that is tolerated however short the burn-in is.
const APART_MIN: Duration = Duration::from_secs(1);

/// The first block of this process.
#[derive(Clone, Copy)]
pub struct First {
    pub number: u64,
    /// When it begins; `None`: as soon as everything is prepared.
    pub at: Option<Instant>,
}

impl First {
    /// The block after those that count.
    pub fn after(blocks: &[Block]) -> First {
        First { number: blocks.last().map_or(0, |block| block.number + 1), at: None }
    }
}

/// Waits until the next pair or triple of a site begins on all hosts; elsewhere the next block needs
/// no waiting. `None` if it was interrupted. Time is that of the host's clock, so that whoever sets
/// it in the meantime changes the wait.
#[expect(clippy::disallowed_methods, reason = "blocks are stretches of real time")]
pub fn first(
    policy: &Policy,
    timeline: &Timeline,
    blocks: &[Block],
    handle: &Handle,
) -> Result<Option<First>, Failure> {
    let next = First::after(blocks);
    let Some(begins) = policy.begins_unix.map(Duration::from_secs) else {
        return Ok(Some(next));
    };
    let mut announced = None;
    loop {
        // A clock that was set back does not bring a block twice.
        let since = since_1970().saturating_sub(begins).max(timeline.begin(next.number));
        let begins_now = |number: &u64| {
            since.saturating_sub(timeline.begin(*number)) < (timeline.burn_in / 4).max(2 * PATIENCE)
        };
        let Some(number) = announced.filter(begins_now).or_else(|| timeline.joined(since)) else {
            let what = "the last triple of this site has begun already";
            let help =
                "knee steer judge FILES prints the result; a new experiment needs a later begins";
            return Err(Failure::Usage(what.to_string(), help.to_string()));
        };
        let begin = begins.saturating_add(timeline.begin(number));
        let wait = begin.saturating_sub(since_1970());
        if announced != Some(number) {
            announced = Some(number);
            let time = time_us(Some(wait.as_secs_f64() * 1e6));
            screen::say(&format!("Block {} of this site begins in {time}.", number + 1));
            if number >= 2 * timeline.calibration && blocks.is_empty() {
                screen::say(
                    "This host has no pair of blocks before the first triple. It keeps step with \
                     the others, but its connections have no part in the result.",
                );
            }
        }
        if handle.is_stopped() {
            return Ok(None);
        }
        if wait.is_zero() {
            let late = since_1970().saturating_sub(begin);
            return Ok(Some(First { number, at: Instant::now().checked_sub(late) }));
        }
        std::thread::sleep(PATIENCE.min(wait));
    }
}

/// Time of the host's clock.
#[expect(clippy::disallowed_methods, reason = "the hosts of a site have the time in common")]
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Why an experiment cannot go on at a time of the host's clock; `since_first` is the time since the
/// block `first` began, by a clock that nobody sets.
pub fn out_of_time(
    policy: &Policy,
    timeline: &Timeline,
    first: u64,
    since_first: Duration,
    now: Duration,
) -> Option<Failure> {
    if policy.expires_unix.is_some_and(|expires| now.as_secs() >= expires) {
        let what = "the policy has expired";
        return Some(Failure::Host(what.to_string(), "sign it with a later end".to_string()));
    }
    let begins = Duration::from_secs(policy.begins_unix?);
    let at = begins.saturating_add(timeline.begin(first)).saturating_add(since_first);
    (now.abs_diff(at) > (timeline.burn_in / 2).max(APART_MIN)).then(|| {
        let what = format!(
            "this host's clock and the blocks of the site are {} s apart",
            now.abs_diff(at).as_secs()
        );
        Failure::Host(
            what,
            "set the clock, and start again to join with the next triple".to_string(),
        )
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

    fn said(failure: Failure) -> String {
        match failure {
            Failure::Host(what, _) | Failure::Usage(what, _) => what,
            other => panic!("{other:?}"),
        }
    }

    /// Half of a burn-in of 60 s is tolerated. 2001-09-09T01:46:40Z is a billion seconds after 1970.
    #[test]
    fn clocks_that_are_set_and_policies_that_expire() {
        let seconds = Duration::from_secs;
        let timeline =
            Timeline { block: seconds(600), burn_in: seconds(60), calibration: 2, triples: 2 };
        let words = |policy: &Policy, now: u64| {
            // 100 s after the begin of the third block.
            let why = out_of_time(policy, &timeline, 2, seconds(100), seconds(now));
            why.map(said)
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

    /// A host that was there waits for the block after its own; one whose blocks are over is refused.
    #[test]
    fn who_comes_too_late_is_refused() {
        let second = Duration::from_secs(1);
        let timeline = Timeline { block: second, burn_in: second / 2, calibration: 2, triples: 1 };
        let site = policy("stage = \"site\"\nbegins = 2001-09-09T01:46:40Z");
        let late = first(&site, &timeline, &[], &Handle::default()).map(|found| found.is_some());
        assert!(late.is_err_and(|why| said(why).contains("last triple")));
        let alone = first(&policy(""), &timeline, &[], &Handle::default());
        assert!(alone.is_ok_and(|found| found.is_some_and(|one| one.at.is_none())));
        let stopped = Handle::default();
        stopped.stop();
        let future = policy("stage = \"site\"\nbegins = 2999-09-09T01:46:40Z");
        assert!(first(&future, &timeline, &[], &stopped).is_ok_and(|found| found.is_none()));
    }
}
