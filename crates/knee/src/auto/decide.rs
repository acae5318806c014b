//! What `knee steer auto` decides for a group: functions of the evidence alone.

use crate::verdicts::{self, change};
use knee_advise::Verdict as Advice;
use knee_lab::{Advised, AdvisedClass, Recommended, SPREAD_MIN, change_words};
use knee_policy::Timeline;
use knee_present::words::count;
use knee_steer::{Effect, Guarded, Trial, Verdict, smallest_effect};
use knee_units::statistics::{Interval, Judgement, LEVEL};
use serde::{Deserialize, Serialize};

/// Smallest effect of interest, a difference of logarithms: about 3 %.
pub const EFFECT_MIN: f64 = 0.03;
/// Largest loss of some sizes, a difference of logarithms, that the gain of others makes up for.
const LOSS_MAX: f64 = 0.02;

/// What a stage decides for a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Whether the group goes on to the next stage, and after the stage host gets the controller.
    pub goes_on: bool,
    /// The reason, a part of a sentence.
    pub why: String,
}

/// Result for a class of sizes: B, on trial, compared with A, in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Range of sizes.
    pub objects: String,
    /// How B compares with A.
    pub judgement: Judgement,
    /// The guard that stopped B.
    pub stopped: Option<String>,
    /// B minus A, a difference of logarithms of the rate.
    pub effect: Option<f64>,
    /// Interval of the effect, valid at any time.
    pub interval: Option<(f64, f64)>,
    /// Smallest effect that the planned triples show with a probability of 0.8, by the noise.
    pub visible: Option<f64>,
    /// What the simulator knows besides: the effect with the same arrivals under A and under B, with
    /// its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<[f64; 3]>,
}

impl Class {
    /// Reads the result of a trial.
    pub fn of(objects: &str, trial: &Trial) -> Class {
        let (verdict, _) = trial.verdict();
        let stopped = match verdict {
            Verdict::Stopped(harm) => Some(verdicts::name(harm).to_string()),
            _ => None,
        };
        let total = trial.total();
        Class {
            objects: objects.to_string(),
            judgement: verdicts::judgement(verdict),
            stopped,
            effect: total.map(|Effect { mean, .. }| mean),
            interval: total.and_then(|Effect { interval, .. }| interval),
            visible: trial.smallest_planned(),
            truth: None,
        }
    }

    /// Adds what the simulator knows.
    pub fn with_truth(self, truth: Option<Interval>) -> Class {
        let all = |one: Interval| Some([one.mean, one.low?, one.high?]);
        Class { truth: truth.and_then(all), ..self }
    }

    /// The effect in words, with its interval if there is one.
    pub fn words(&self) -> String {
        let effect = self.effect.map(|effect| change(effect, self.interval).shown);
        let word = match &self.stopped {
            Some(guard) => format!("{}: {guard}", self.judgement.word()),
            None => self.judgement.word().to_string(),
        };
        effect.map_or(word.clone(), |effect| format!("{word}, {effect}"))
    }
}

fn goes_on(why: impl Into<String>) -> Decision {
    Decision { goes_on: true, why: why.into() }
}

/// The group keeps its controller.
pub fn stays(why: impl Into<String>) -> Decision {
    Decision { goes_on: false, why: why.into() }
}

/// Decides by the advice: what it recommends goes on. `needed` connections would decide.
pub fn advised(one: &Advised, recommended: &[Recommended<'_>], needed: Option<u64>) -> Decision {
    if let Some(found) = recommended.iter().find(|other| other.group.name == one.name) {
        return goes_on(found.words());
    }
    let with = |verdict: Advice| -> Vec<&AdvisedClass> {
        one.classes.iter().filter(|class| class.verdict == verdict).collect()
    };
    let listed = |classes: &[&AdvisedClass]| -> String {
        let words = classes.iter().filter_map(|class| {
            let change = change_words(class.change()?);
            Some(format!("{} for objects of {}: {change}", class.candidate, class.sizes()))
        });
        words.collect::<Vec<_>>().join("; ")
    };
    let would = match needed {
        Some(needed) => {
            let [needed, have] = [needed, one.connections as u64].map(count);
            format!("an experiment with {needed} connections would decide; {have} were observed")
        }
        None if one.connections < SPREAD_MIN => {
            "so few do not say how many an experiment needs".to_string()
        }
        None => "so few triples show no effect".to_string(),
    };
    let [tries, unclear, keeps] = [Advice::Try, Advice::Unclear, Advice::Keep].map(with);
    match one.classes.first() {
        None => stays(format!("{} is in use, and no other candidate was named", one.in_use)),
        Some(first) if matches!(first.verdict, Advice::NoAdvice(_)) => {
            let why = first.conclusion(&one.in_use);
            stays(format!("no advice: {}; {would}", why.trim_start_matches("none: ")))
        }
        Some(_) if !tries.is_empty() => {
            let others = recommended.iter().find(|other| other.group.overlaps(one));
            stays(match others {
                _ if one.prefixes.is_empty() => {
                    "its clients have no prefixes, which a policy needs".to_string()
                }
                Some(other) => format!("it has clients in common with {}", other.group.name),
                None => {
                    format!("what loses outweighs what gains: {}", listed(&[tries, keeps].concat()))
                }
            })
        }
        Some(_) if !unclear.is_empty() => {
            stays(format!("undecided, {}; {would}", listed(&unclear)))
        }
        Some(_) => stays(format!("a loss is expected, {}", listed(&keeps))),
    }
}

/// Decides by the experiment itself. `stopped` is why B was stopped in the group.
pub fn measured(classes: &[Class], stopped: Option<&str>) -> Decision {
    if let Some(why) = stopped {
        return stays(format!("worse: stopped, {why}"));
    }
    let listed = |classes: &[&Class]| -> String {
        let words = classes.iter().map(|class| {
            let effect = class.effect.map(|effect| change(effect, None).shown);
            format!("{} for {}", effect.unwrap_or_default(), class.objects)
        });
        words.collect::<Vec<_>>().join(", ")
    };
    if let Some(class) = classes.iter().find(|class| class.stopped.is_some()) {
        let guard = class.stopped.as_deref().unwrap_or_default();
        let gains: Vec<&Class> =
            classes.iter().filter(|one| one.effect.is_some_and(|by| by >= EFFECT_MIN)).collect();
        let accepted = Guarded::ACCEPTABLE.into_iter().find(|harm| verdicts::name(*harm) == guard);
        let otherwise = match accepted {
            Some(harm) if !gains.is_empty() => format!(
                "; the gain was {}: if that is worth it, begin again with --accept {} and another \
                 --out",
                listed(&gains),
                harm.name()
            ),
            _ => String::new(),
        };
        return stays(format!("worse: stopped by the guard of {guard}{otherwise}"));
    }
    let of = |judgement: Judgement| -> Vec<&Class> {
        classes.iter().filter(|class| class.judgement == judgement).collect()
    };
    if classes.is_empty() {
        return stays("no result: no class of sizes has five connections in a block");
    }
    if !of(Judgement::CouldNotBeTried).is_empty() {
        return stays("it could not be tried: records were lost, or the halves differ too much");
    }
    let [better, worse, undecided] =
        [Judgement::Better, Judgement::Worse, Judgement::Undecided].map(of);
    let costly: Vec<&Class> =
        worse.iter().copied().filter(|one| one.effect.is_none_or(|by| by < -LOSS_MAX)).collect();
    match (better.is_empty(), costly.is_empty(), worse.is_empty()) {
        (false, true, true) => goes_on(format!("better, {}", listed(&better))),
        (false, true, false) => goes_on(format!(
            "better, {}; the loss of others is within 2 %, {}",
            listed(&better),
            listed(&worse)
        )),
        (false, false, _) => stays(format!(
            "better, {}, but worse, {}: a controller steers all sizes of a group",
            listed(&better),
            listed(&costly)
        )),
        (true, _, false) => stays(format!("worse, {}", listed(&worse))),
        (true, ..) if !undecided.is_empty() => {
            let visible = undecided.iter().filter_map(|class| class.visible).reduce(f64::min);
            let seen = visible.map_or_else(String::new, |least| {
                format!("; a gain of {} would have been seen", change(least, None).shown)
            });
            stays(format!("undecided{seen}"))
        }
        (true, ..) if of(Judgement::Alike).len() == classes.len() => {
            stays("alike: there is nothing to gain")
        }
        (true, ..) => stays("too short: so few triples show no effect"),
    }
}

/// Decides by the rehearsal. A block on the host has `larger` times as many connections, so that an
/// experiment may be worth making although its rehearsal is undecided: if the effect with the same
/// arrivals is certain, large enough for the host's blocks, and no other class certainly loses.
pub fn rehearsed(classes: &[Class], larger: f64) -> Decision {
    let decision = measured(classes, None);
    let is_harmful = classes.iter().any(|class| {
        class.stopped.is_some() || class.judgement == Judgement::Worse && !decision.goes_on
    });
    if decision.goes_on || is_harmful {
        return decision;
    }
    // The noise of a block's mean falls with the square root of its connections.
    let seen =
        classes.iter().filter(|class| class.judgement == Judgement::Undecided).find_map(|class| {
            let ([effect, low, _], visible) = (class.truth?, class.visible? / larger.sqrt());
            (low > 0.0 && effect >= visible).then_some((class, effect, visible))
        });
    let loses = |class: &Class| class.truth.is_some_and(|[.., high]| high < -LOSS_MAX);
    match seen.filter(|_| !classes.iter().any(loses)) {
        Some((class, effect, visible)) => goes_on(format!(
            "undecided in blocks of so few connections, but those of the host show a gain of {}, and \
             {} is expected for {}",
            change(visible, None).shown,
            change(effect, None).shown,
            class.objects
        )),
        None => decision,
    }
}

/// Decides by blocks in which nothing was changed: there must be no effect, and the noise must not
/// hide the `expected` gain, the largest that the advice holds possible.
pub fn observed(classes: &[Class], expected: Option<f64>) -> Decision {
    if classes.is_empty() {
        return stays("no class of sizes has five connections in a block");
    }
    let is_false = |class: &&Class| class.judgement.differs() || class.stopped.is_some();
    if let Some(class) = classes.iter().find(is_false) {
        return stays(format!(
            "an effect was seen although nothing was changed, for {}: {}",
            class.objects,
            class.words()
        ));
    }
    if classes.iter().any(|class| class.judgement == Judgement::CouldNotBeTried) {
        return stays("records were lost, or the halves differ too much");
    }
    let visible = classes.iter().filter_map(|class| class.visible).reduce(f64::min);
    match (visible, expected) {
        (None, _) => stays("so few triples show no effect, however large"),
        (Some(visible), Some(expected)) if visible > expected => stays(format!(
            "the noise hides it: so many triples show a gain of {} or more, and at most {} is \
             expected; {} times as many triples would show it",
            change(visible, None).shown,
            change(expected, None).shown,
            (visible / expected).powi(2).ceil()
        )),
        (Some(visible), _) => goes_on(format!(
            "nothing was changed and nothing seen; a gain of {} or more is visible",
            change(visible, None).shown
        )),
    }
}

/// Decides by the canary. `is_able`: every guard could have stopped it.
pub fn canary(stopped: Option<&str>, is_able: bool) -> Decision {
    match (stopped, is_able) {
        (Some(why), _) => stays(format!("it does harm: {why}")),
        (None, true) => goes_on("no harm was found"),
        (None, false) => {
            goes_on("no harm was found, but not every guard had enough connections to see some")
        }
    }
}

/// Number of connections that an experiment with this schedule needs to show [`EFFECT_MIN`] with a
/// probability of 0.8, if the logarithms of their rates vary by `deviation` and blocks differ by
/// their connections alone. `None` if so few triples show nothing.
pub fn connections_needed(deviation: f64, timeline: &Timeline) -> Option<u64> {
    // Both directions of one class.
    let threshold = 2.0 / LEVEL;
    // In units of the deviation of B minus A.
    let visible = smallest_effect(1.0, 1.0, timeline.triples as usize, threshold)?;
    // The difference of the means of two blocks of m connections varies by deviation √(2/m).
    let of_a_block = 2.0 * (visible * deviation / EFFECT_MIN).powi(2);
    let blocks = 2 * timeline.calibration + 3 * timeline.triples;
    Some((of_a_block * blocks as f64).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_advise::{Class as Sizes, Gain, Prediction, Reason};
    use knee_lab::{Seen, recommended};
    use std::time::Duration;

    fn class(judgement: Judgement, effect: f64) -> Class {
        Class {
            objects: "1 to 10 MB".to_string(),
            judgement,
            stopped: None,
            effect: Some(effect),
            interval: None,
            visible: Some(0.05),
            truth: None,
        }
    }

    fn known(judgement: Judgement, truth: [f64; 3]) -> Class {
        Class { truth: Some(truth), ..class(judgement, 0.3) }
    }

    fn stopped(guard: &str) -> Class {
        Class { stopped: Some(guard.to_string()), ..class(Judgement::Worse, 0.4) }
    }

    fn assert_decided(decision: Decision, goes_on: bool, part: &str) {
        assert_eq!(decision.goes_on, goes_on, "{decision:?}");
        assert!(decision.why.contains(part), "{part}: {decision:?}");
    }

    #[test]
    fn only_what_is_better_and_costs_nobody_over_two_per_cent_gets_the_controller() {
        use Judgement::{Alike, Better, CouldNotBeTried, TooShort, Undecided, Worse};
        for (classes, goes_on, part) in [
            (vec![class(Better, 0.2)], true, "better, +22 % for 1 to 10 MB"),
            (vec![class(Better, 0.2), class(Undecided, -0.1)], true, "better"),
            (vec![class(Better, 0.2), class(Worse, -0.019)], true, "within 2 %, -1.9 %"),
            (vec![class(Better, 0.2), class(Worse, -0.021)], false, "steers all sizes"),
            (
                vec![class(Better, 0.2), stopped("queueing delay, 95th percentile")],
                false,
                "guard of queueing delay, 95th percentile; the gain was +22 % for 1 to 10 MB, \
                 +49 % for 1 to 10 MB: if that is worth it, begin again with --accept queueing-delay",
            ),
            (
                vec![Class { effect: Some(0.0), ..stopped("retransmissions") }],
                false,
                "retransmissions",
            ),
            (vec![stopped("unfinished transfers")], false, "guard of unfinished transfers"),
            (vec![class(Better, 0.2), class(CouldNotBeTried, 0.0)], false, "could not be tried"),
            (vec![class(Worse, -0.01)], false, "worse, -1.0 %"),
            (vec![class(Worse, -0.3), class(Alike, 0.0)], false, "worse, -26 %"),
            (vec![class(Alike, 0.001), class(Alike, 0.0)], false, "nothing to gain"),
            (vec![class(Alike, 0.0), class(Undecided, 0.02)], false, "a gain of +5.1 % would"),
            (vec![class(TooShort, 0.3)], false, "too short"),
            (vec![], false, "no class of sizes"),
        ] {
            assert_decided(measured(&classes, None), goes_on, part);
        }
        let why = "it retransmits over 2 %";
        assert_decided(measured(&[class(Better, 0.2)], Some(why)), false, why);
    }

    /// With four times the connections half the effect is visible.
    #[test]
    fn a_rehearsal_counts_the_connections_of_the_host() {
        use Judgement::{Alike, Better, Undecided, Worse};
        for (one, larger, goes_on, part) in [
            (class(Better, 0.2), 1.0, true, "better"),
            (known(Undecided, [0.03, 0.01, 0.05]), 1.0, false, "undecided"),
            (
                known(Undecided, [0.03, 0.01, 0.05]),
                4.0,
                true,
                "show a gain of +2.5 %, and +3.0 % is expected",
            ),
            (known(Undecided, [0.03, -0.01, 0.07]), 4.0, false, "undecided"),
            (known(Undecided, [0.02, 0.01, 0.03]), 4.0, false, "undecided"),
            // What was seen in the triples alone is noise.
            (class(Undecided, 0.3), 4.0, false, "undecided"),
            (class(Alike, 0.03), 100.0, false, "nothing to gain"),
            (class(Worse, -0.03), 100.0, false, "worse"),
            (stopped("retransmissions"), 100.0, false, "guard of retransmissions"),
        ] {
            assert_decided(rehearsed(&[one], larger), goes_on, part);
        }
        let gains = known(Undecided, [0.2, 0.1, 0.3]);
        let mixed = [gains.clone(), class(Worse, -0.1)];
        assert_decided(rehearsed(&mixed, 100.0), false, "worse");
        let costly = [gains.clone(), known(Undecided, [-0.1, -0.15, -0.05])];
        assert_decided(rehearsed(&costly, 100.0), false, "undecided");
        let unclear = [gains, known(Undecided, [-0.1, -0.2, 0.01])];
        assert_decided(rehearsed(&unclear, 100.0), true, "is expected");
    }

    #[test]
    fn nothing_may_be_seen_where_nothing_was_changed() {
        use Judgement::{Better, CouldNotBeTried, TooShort, Undecided};
        let unseen = Class { visible: None, ..class(TooShort, 0.0) };
        for (classes, expected, goes_on, part) in [
            (vec![class(Undecided, 0.01)], Some(0.2), true, "+5.1 % or more is visible"),
            (vec![class(Undecided, 0.01)], None, true, "visible"),
            (vec![class(Undecided, 0.01)], Some(0.02), false, "7 times as many triples"),
            (vec![class(Better, 0.2)], Some(0.2), false, "although nothing was changed"),
            (vec![stopped("queueing delay")], Some(0.2), false, "although nothing was changed"),
            (vec![class(CouldNotBeTried, 0.0)], Some(0.2), false, "records were lost"),
            (vec![unseen], Some(0.2), false, "so few triples"),
            (vec![], Some(0.2), false, "five connections"),
        ] {
            assert_decided(observed(&classes, expected), goes_on, part);
        }
    }

    #[test]
    fn a_canary_only_looks_for_harm() {
        assert_decided(canary(Some("it retransmits"), true), false, "it retransmits");
        assert_decided(canary(None, true), true, "no harm");
        assert_decided(canary(None, false), true, "not every guard");
    }

    fn of(sizes: Sizes, verdict: Advice, mean: f64) -> AdvisedClass {
        let gain = Gain { mean, low: mean - 0.05, high: mean + 0.05 };
        AdvisedClass {
            candidate: "bbr".to_string(),
            class: sizes,
            connections: 500,
            bytes_share: 0.5,
            rule: None,
            operators: None,
            retransmitted_now: None,
            spread: None,
            prediction: Some(Prediction { gain, retransmitted: [0.0; 2], unfinished: [0.0; 2] }),
            verdict,
        }
    }

    fn group(name: &str, prefix: &str, classes: Vec<AdvisedClass>) -> Advised {
        Advised {
            name: name.to_string(),
            in_use: "cubic".to_string(),
            in_kernel: "cubic".to_string(),
            prefixes: prefix.parse().into_iter().collect(),
            port: Some(443),
            connections: 1000,
            seen: Seen::default(),
            misfitting: Vec::new(),
            fits: Vec::new(),
            classes,
        }
    }

    #[test]
    fn what_has_no_advice_says_how_many_connections_would_decide() {
        use Sizes::{Large, Small};
        let tries = |mean| of(Large, Advice::Try, mean);
        let keeps = |mean| of(Small, Advice::Keep, mean);
        let none = of(Small, Advice::NoAdvice(Reason::TooFew(90)), 0.0);
        let all = [
            group("better", "192.0.2.0/24", vec![tries(0.3), keeps(-0.1)]),
            group("within it", "192.0.2.0/25", vec![tries(0.1)]),
            group("costly", "198.51.100.0/24", vec![tries(0.1), keeps(-0.3)]),
            group("worse", "203.0.113.0/24", vec![keeps(-0.1)]),
            group("unclear", "2001:db8::/32", vec![of(Small, Advice::Unclear, 0.01)]),
            group("few", "2001:db8:1::/48", vec![none]),
            group("no prefix", "", vec![tries(0.5)]),
            group("alone", "2001:db8:2::/48", vec![]),
        ];
        let worth = recommended(&all);
        let decided: Vec<Decision> =
            all.iter().map(|one| advised(one, &worth, Some(100_000))).collect();
        for (decision, (goes_on, part)) in decided.into_iter().zip([
            (true, "bbr in place of cubic"),
            (false, "in common with better"),
            (false, "outweighs what gains: bbr for objects of 3 MB and more: +11 % (+5 to +16)"),
            (false, "a loss is expected, bbr for objects of below 3 MB: -10 %"),
            (false, "undecided, bbr for objects of below 3 MB: +1 % (-4 to +6); an experiment"),
            (false, "no advice: fewer than 200 connections; an experiment with 100"),
            (false, "no prefixes"),
            (false, "no other candidate"),
        ]) {
            assert_decided(decision, goes_on, part);
        }
        assert_decided(advised(&all[5], &worth, None), false, "so few triples show no effect");
    }

    /// Of so many connections, whose blocks differ by their connections alone, the planned experiment
    /// shows the effect of interest, and with 5 % fewer it does not.
    #[test]
    fn the_needed_connections_show_the_effect_of_interest() {
        let second = Duration::from_secs(1);
        let timeline = Timeline { block: second, burn_in: second, calibration: 8, triples: 48 };
        let needed = connections_needed(0.8, &timeline).unwrap();
        let visible = |connections: f64| {
            let of_a_block = connections / 160.0;
            let deviation = 0.8 * (2.0 / of_a_block).sqrt();
            smallest_effect(deviation, deviation, 48, 40.0).unwrap()
        };
        assert!(visible(needed as f64) <= EFFECT_MIN + 1e-9);
        assert!(visible(0.95 * needed as f64) > EFFECT_MIN);
        // A single test of this level and power needs 7.85 · 2 σ² / δ² of each, half as many triples.
        let single = 7.85 * 2.0 * (0.8_f64 / EFFECT_MIN).powi(2) * 160.0 / 48.0;
        let ratio = needed as f64 / single;
        assert!((1.0..3.0).contains(&ratio), "{ratio}");
        let short = Timeline { triples: 5, ..timeline };
        assert_eq!(connections_needed(0.8, &short), None);
    }
}
