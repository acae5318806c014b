//! Parameters of BBR, and the preset that combines the five changes.

use super::low_delay::{LITERAL, OWN};
use super::{Gain, UNIT};
use crate::registry::{Build, Entry};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Preset, SelectionError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "bbr",
    summary: "BBR version 1: pace at the bottleneck's bandwidth, window of two BDP",
    source: "Cardwell et al., ACM Queue 14(5), 2016; Linux tcp_bbr.c",
    parameters: PARAMETERS,
    presets: &[Preset {
        name: "bbr-low-delay",
        summary: "bbr with its five published changes and a window of one BDP",
        parameters: &[
            ("drain_to_target", "true"),
            ("probe_up_exit_early", "true"),
            ("probe_rtt_exit_early", "true"),
            ("shrink_window", "true"),
            ("keep_bw_over_probe_rtt", "true"),
            ("max_cruise", "400 ms"),
            ("probe_gains", "1.2, 0.8"),
            ("window_gain", "1"),
        ],
    }],
    build: Build::Checked(check, super::build),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "drain_to_target",
        kind: Kind::Switch,
        default: "false",
        summary: "the phase below gain 1 lasts until in flight is down to one BDP",
    },
    Parameter {
        name: "probe_up_exit_early",
        kind: Kind::Switch,
        default: "false",
        summary: "the upward probe ends with its target reached, without waiting for a full \
                  min_rtt",
    },
    Parameter {
        name: "probe_rtt_exit_early",
        kind: Kind::Switch,
        default: "false",
        summary: "PROBE_RTT ends after probe_rtt_rounds, without waiting for 200 ms",
    },
    Parameter {
        name: "probe_rtt_rounds",
        kind: Kind::Count { min: 1, max: 1000 },
        default: "1",
        summary: "round trips that PROBE_RTT lasts at least, once its window is reached",
    },
    Parameter {
        name: "probe_rtt_join",
        kind: Kind::Switch,
        default: "false",
        summary: "enter PROBE_RTT when the RTT suddenly falls, as it does when other flows have \
                  entered it, if min_rtt is at least five seconds old",
    },
    Parameter {
        name: "shrink_window",
        kind: Kind::SwitchOrWord(&[LITERAL]),
        default: "false",
        summary: "gradually remove packets that only queue from the window; \"literal\": by the \
                  published rule alone, without Knee's additions to it",
    },
    Parameter {
        name: "keep_bw_over_probe_rtt",
        kind: Kind::Switch,
        default: "false",
        summary: "keep the bandwidth estimate across PROBE_RTT",
    },
    Parameter {
        name: "max_cruise",
        kind: Kind::DurationOrOff,
        default: "off",
        summary: "longest time at gain 1 before the next probe",
    },
    Parameter {
        name: "delay_lower_bound",
        kind: Kind::Time { min: Time::ZERO, max: Time::from_secs(3600) },
        default: "10 ms",
        summary: "queueing delay that shrink_window leaves alone",
    },
    Parameter {
        name: "cwnd_pace",
        kind: Kind::Count { min: 1, max: 1000 },
        default: "30",
        summary: "round trips over which shrink_window removes an excess",
    },
    Parameter {
        name: "shrink_decay",
        kind: Kind::Switch,
        default: "true",
        summary: "what shrink_window has removed decays over cwnd_pace round trips",
    },
    Parameter {
        name: "shrink_return",
        kind: Kind::Count { min: 0, max: 1000 },
        default: "4",
        summary: "packets that shrink_window gives back over cwnd_pace round trips while the \
                  queueing delay is within delay_lower_bound",
    },
    Parameter {
        name: "shrink_return_empty",
        kind: Kind::Count { min: 1, max: 100 },
        default: "4",
        summary: "factor on shrink_return while the queueing delay is below half of \
                  delay_lower_bound",
    },
    Parameter {
        name: "shrink_excess_only",
        kind: Kind::Switch,
        default: "false",
        summary: "shrink_window counts only the packets queued beyond delay_lower_bound, not all",
    },
    Parameter {
        name: "shrink_allowance",
        kind: Kind::Count { min: 0, max: 1000 },
        default: "4",
        summary: "packets above the BDP that shrink_window allows, or two bursts or the ACK \
                  aggregation if they are more; 0: none of these",
    },
    Parameter {
        name: "shrink_probe_window",
        kind: Kind::Switch,
        default: "true",
        summary: "the window of shrink_window has the gain of the upward probe and room for bursts",
    },
    Parameter {
        name: "shrink_probe_ends",
        kind: Kind::Switch,
        default: "true",
        summary: "the upward probe ends once the window of shrink_window is in use",
    },
    Parameter {
        name: "shrink_limit",
        kind: Kind::Number { min: 0.0, max: 100.0 },
        default: "0.5",
        summary: "most that shrink_window removes, in BDP",
    },
    Parameter {
        name: "shrink_steady",
        kind: Kind::Number { min: 0.0, max: 1000.0 },
        default: "0.3",
        summary: "spread of the RTT over its mean up to which shrink_window judges the queue",
    },
    Parameter {
        name: "shrink_by_variance",
        kind: Kind::Switch,
        default: "false",
        summary: "the spread is the variance, of RTTs in milliseconds, not the mean deviation",
    },
    Parameter {
        name: "shrink_settling_rounds",
        kind: Kind::Count { min: 0, max: 1000 },
        default: "8",
        summary: "round trips after DRAIN or PROBE_RTT in which shrink_window does not change \
                  what it removes",
    },
    Parameter {
        name: "shrink_before_probe_rtt",
        kind: Kind::Time { min: Time::ZERO, max: Time::from_secs(10) },
        default: "500 ms",
        summary: "time before PROBE_RTT in which shrink_window does not change what it removes",
    },
    Parameter {
        name: "probe_gains",
        kind: Kind::Numbers { count: 2, min: 0.1, max: 3.9 },
        default: "1.25, 0.75",
        summary: "pacing gains of the first two phases of the cycle, up and down",
    },
    Parameter {
        name: "window_gain",
        kind: Kind::Number { min: 0.5, max: 3.9 },
        default: "2",
        summary: "window in PROBE_BW, in BDP",
    },
    Parameter {
        name: "bandwidth_window",
        kind: Kind::Count { min: 1, max: 1000 },
        default: "10",
        summary: "round trips that the bandwidth filter remembers",
    },
    Parameter {
        name: "probe_loss_gain",
        kind: Kind::Number { min: 0.1, max: 1.0 },
        default: "1",
        summary: "factor on the pacing rate after an upward probe that lost packets; one that \
                  lost none raises the rate again by its gain",
    },
    Parameter {
        name: "detect_policers",
        kind: Kind::Switch,
        default: "true",
        summary: "pace at the rate of a policer while one seems to be at work",
    },
    Parameter {
        name: "allow_for_aggregation",
        kind: Kind::Switch,
        default: "true",
        summary: "widen the window for ACK aggregation",
    },
    Parameter {
        name: "allow_for_bursts",
        kind: Kind::Switch,
        default: "true",
        summary: "widen window and targets by three bursts, and two packets in a probe",
    },
    Parameter {
        name: "probe_rtt",
        kind: Kind::Switch,
        default: "true",
        summary: "renew a min_rtt that is ten seconds old, with little in flight",
    },
    Parameter {
        name: "probe_rtt_gain",
        kind: Kind::Number { min: 0.0, max: 0.9 },
        default: "0",
        summary: "window in PROBE_RTT as a part of the BDP, at least four packets",
    },
    Parameter {
        name: "gamma_gains",
        kind: Kind::Switch,
        default: "false",
        summary: "probing gains that depend on the queue's share of the RTT, for RTT fairness (BBR-GC)",
    },
    Parameter {
        name: "inverse_gains",
        kind: Kind::Switch,
        default: "false",
        summary: "probing gains by the inverse of the RTT, fair to short RTTs (BBR-A)",
    },
    Parameter {
        name: "delay_aware_window",
        kind: Kind::Switch,
        default: "false",
        summary: "window between one and two BDP by the queueing delay (DA-BBR)",
    },
    Parameter {
        name: "scale_window",
        kind: Kind::Switch,
        default: "false",
        summary: "window scaled by losses and RTT, to share with loss-based flows (BBR-CWS)",
    },
    Parameter {
        name: "tobit_filter",
        kind: Kind::Switch,
        default: "false",
        summary: "bandwidth by a Tobit Kalman filter in place of the maximum (BBR-S)",
    },
    Parameter {
        name: "window_machine",
        kind: Kind::Switch,
        default: "false",
        summary: "a window of one BDP and a little more in place of all else (TCP D*)",
    },
];

/// Changes that BBR in BPF does not implement; grounds that use it refuse them.
pub(crate) const ONLY_HERE: [&str; 20] = [
    "probe_rtt_rounds",
    "probe_rtt_join",
    "shrink_decay",
    "shrink_return",
    "shrink_return_empty",
    "shrink_excess_only",
    "shrink_allowance",
    "shrink_probe_window",
    "shrink_probe_ends",
    "shrink_limit",
    "shrink_steady",
    "shrink_by_variance",
    "shrink_settling_rounds",
    "shrink_before_probe_rtt",
    "gamma_gains",
    "inverse_gains",
    "delay_aware_window",
    "scale_window",
    "tobit_filter",
    "window_machine",
];

/// The form of `shrink_window` that BBR in BPF does not implement.
pub(crate) const LITERAL_WINDOW: &str = "shrink_window = \"literal\"";

/// Switches that control the same thing: at most one of each group may be on.
const RIVALS: [&[&str]; 2] =
    [&["gamma_gains", "inverse_gains"], &["shrink_window", "delay_aware_window", "scale_window"]];

/// Rejects switches that control the same thing.
fn check(settings: &Settings) -> Result<(), SelectionError> {
    for rivals in RIVALS {
        let mut on = rivals.iter().filter(|name| settings.switch(name));
        if let (Some(first), Some(second)) = (on.next(), on.next()) {
            return Err(SelectionError {
                parameter: Some((*second).to_owned()),
                problem: format!("{first} and {second} are mutually exclusive"),
                advice: format!("leave one of {} on", rivals.join(", ")),
            });
        }
    }
    if settings.word("shrink_window") == Some(LITERAL)
        && let Some(name) = OWN.into_iter().find(|name| !settings.is_default(name))
    {
        return Err(SelectionError {
            parameter: Some(name.to_owned()),
            problem: format!("shrink_window = \"{LITERAL}\" has no {name}"),
            advice: format!("remove {name}, or write shrink_window = true"),
        });
    }
    let switches =
        PARAMETERS.iter().filter(|one| matches!(one.kind, Kind::Switch | Kind::SwitchOrWord(_)));
    let mut others = switches.filter(|one| one.name != "window_machine");
    match others.find(|one| settings.switch(one.name) != (one.default == "true")) {
        Some(Parameter { name, .. }) if settings.switch("window_machine") => Err(SelectionError {
            parameter: Some((*name).to_owned()),
            problem: format!("window_machine has no {name}"),
            advice: "leave the other switches as they are".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// A gain above all that `probe_rtt_gain` may have.
pub(super) const NO_PROBE_RTT: u8 = u8::MAX;

/// The parameters as the algorithm uses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) drain_to_target: bool,
    pub(super) probe_up_exit_early: bool,
    pub(super) probe_rtt_exit_early: bool,
    pub(super) probe_rtt_join: bool,
    pub(super) keep_bw_over_probe_rtt: bool,
    /// [`Time::MAX`]: no limit.
    pub(super) max_cruise: Time,
    pub(super) probe_rtt_rounds: u16,
    pub(super) gain_up: Gain,
    pub(super) gain_down: Gain,
    pub(super) window_gain: Gain,
    /// Round trips.
    pub(super) bandwidth_window: u16,
    pub(super) probe_loss_gain: Gain,
    pub(super) detect_policers: bool,
    pub(super) allow_for_aggregation: bool,
    pub(super) allow_for_bursts: bool,
    /// In units of a gain, as a byte because every flow has a copy. Zero: four packets, as published;
    /// [`NO_PROBE_RTT`] if `probe_rtt` is off.
    pub(super) probe_rtt_gain: u8,
}

impl Config {
    pub(super) fn read(settings: &Settings) -> Config {
        let gains = settings.numbers("probe_gains");
        Config {
            drain_to_target: settings.switch("drain_to_target"),
            probe_up_exit_early: settings.switch("probe_up_exit_early"),
            probe_rtt_exit_early: settings.switch("probe_rtt_exit_early"),
            probe_rtt_join: settings.switch("probe_rtt_join"),
            keep_bw_over_probe_rtt: settings.switch("keep_bw_over_probe_rtt"),
            max_cruise: settings.duration("max_cruise").unwrap_or(Time::MAX),
            probe_rtt_rounds: settings.count("probe_rtt_rounds") as u16,
            gain_up: in_units(gains[0]),
            gain_down: in_units(gains[1]),
            window_gain: in_units(settings.number("window_gain")),
            bandwidth_window: settings.count("bandwidth_window") as u16,
            probe_loss_gain: in_units(settings.number("probe_loss_gain")),
            detect_policers: settings.switch("detect_policers"),
            allow_for_aggregation: settings.switch("allow_for_aggregation"),
            allow_for_bursts: settings.switch("allow_for_bursts"),
            probe_rtt_gain: if settings.switch("probe_rtt") {
                in_units(settings.number("probe_rtt_gain")) as u8
            } else {
                NO_PROBE_RTT
            },
        }
    }
}

/// Returns a gain in units of 1/256.
pub(super) fn in_units(gain: f64) -> Gain {
    (gain * f64::from(UNIT)).round() as Gain
}
