//! Parameters of BBRv3: the draft's constants, and presets for the constants of
//! other versions.

use super::{Gain, Thousandths, UNIT};
use crate::registry::{Build, Entry};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Preset, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "bbr3",
    summary: "BBR version 3: BBR with bounds learnt from loss, over two time scales",
    source: "draft-ietf-ccwg-bbr-06",
    parameters: PARAMETERS,
    presets: &[
        Preset {
            // google/bbr, branch v3, net/ipv4/tcp_bbr.c: bbr_drain_gain,
            // bbr_pacing_gain, bbr_extra_acked_max_us; bbr_check_drain counts
            // no rounds.
            name: "bbr3-linux",
            summary: "bbr3 with the constants of Google's branch v3 of Linux",
            parameters: &[
                ("drain_gain", "0.347"),
                ("drain_rounds", "0"),
                ("probe_gains", "1.25, 0.91"),
                ("extra_acked_limit", "100 ms"),
            ],
        },
        Preset {
            // google/bbr, branch v2alpha: bbr_full_loss_cnt, and
            // bbr_handle_queue_too_high_in_startup, which takes the BDP alone.
            name: "bbr3-loss-v2",
            summary: "bbr3 with version 2's answer to loss in start-up",
            parameters: &[("startup_loss_ranges", "8"), ("startup_keeps_delivered", "false")],
        },
    ],
    build: Build::BuiltIn(super::build),
};

/// The form of `probe_rtt_window_from` that issue 109 of the draft's repository proposes: with
/// intervals and filters of the same length, `min_rtt` expires as PROBE_RTT begins.
const BEFORE: &str = "before";

/// Forms of `startup_loss`. BBR version 1 conserves packets in the first round of every recovery.
const CONSERVE: &str = "conserve";
const AT_ONCE: &str = "at-once";

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "startup_gain",
        kind: Kind::Number { min: 1.1, max: 4.0 },
        default: "2.77",
        summary: "pacing gain of start-up",
    },
    Parameter {
        name: "drain_gain",
        kind: Kind::Number { min: 0.1, max: 1.0 },
        default: "0.5",
        summary: "pacing gain while the queue of start-up drains",
    },
    Parameter {
        name: "drain_rounds",
        kind: Kind::Count { min: 0, max: 1000 },
        default: "3",
        summary: "largest number of round trips of draining; 0 for no limit",
    },
    Parameter {
        name: "probe_gains",
        kind: Kind::Numbers { count: 2, min: 0.1, max: 3.9 },
        default: "1.25, 0.9",
        summary: "pacing gains of PROBE_BW up and down",
    },
    Parameter {
        name: "loss_threshold",
        kind: Kind::Part,
        default: "2 %",
        summary: "loss in a round trip above which a probe went too far",
    },
    Parameter {
        name: "beta",
        kind: Kind::Number { min: 0.1, max: 1.0 },
        default: "0.7",
        summary: "smallest fraction of a bound kept after a round trip with loss",
    },
    Parameter {
        name: "headroom",
        kind: Kind::Part,
        default: "15 %",
        summary: "part of the long-term bound that is left free while cruising",
    },
    Parameter {
        name: "startup_loss_ranges",
        kind: Kind::Count { min: 1, max: 1000 },
        default: "6",
        summary: "separate losses in a round trip that end start-up",
    },
    Parameter {
        name: "startup_keeps_delivered",
        kind: Kind::Switch,
        default: "true",
        summary: "loss in start-up bounds what is in flight by what a round trip delivered, \
                  not by the BDP alone",
    },
    Parameter {
        name: "startup_loss",
        kind: Kind::Word(&["round", CONSERVE, AT_ONCE]),
        default: "round",
        summary: "answer to loss in start-up: it ends after a whole round trip in recovery, as in \
                  the draft, or after one that sends no more than it delivers, or at once",
    },
    Parameter {
        name: "startup_window_gain",
        kind: Kind::Number { min: 1.0, max: 4.0 },
        default: "2",
        summary: "window of start-up, in BDP",
    },
    Parameter {
        name: "extra_acked_limit",
        kind: Kind::DurationOrOff,
        default: "off",
        summary: "time at the estimated bandwidth that the allowance for aggregated ACKs \
                  is limited to",
    },
    Parameter {
        name: "offload_quanta",
        kind: Kind::Count { min: 1, max: 10 },
        default: "3",
        summary: "bursts that the window has room for: 3 with TCP's offload, 1 with QUIC",
    },
    Parameter {
        name: "probe_rtt",
        kind: Kind::Switch,
        default: "true",
        summary: "renew min_rtt at intervals with half a BDP in flight",
    },
    Parameter {
        name: "probe_rtt_interval",
        kind: Kind::Time { min: Time::from_millis(100), max: Time::from_secs(3600) },
        default: "5 s",
        summary: "time between two such renewals, unless a lower RTT is measured",
    },
    Parameter {
        name: "min_rtt_filter",
        kind: Kind::Time { min: Time::from_millis(100), max: Time::from_secs(3600) },
        default: "10 s",
        summary: "time for which min_rtt is remembered",
    },
    Parameter {
        name: "probe_rtt_window_from",
        kind: Kind::Word(&[BEFORE, "after"]),
        default: "after",
        summary: "min_rtt that half a BDP is computed from: that before or after the sample with \
                  which it may have expired",
    },
];

/// What a loss in start-up leads to, until enough is lost to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartupLoss {
    /// The window stays as it is until a whole round trip of recovery is over.
    Round,
    /// Likewise, but what is sent in recovery is no more than what is delivered.
    Conserve,
    /// Start-up ends with the acknowledgement that shows enough losses.
    AtOnce,
}

/// The parameters as the algorithm uses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub(super) startup_gain: Gain,
    pub(super) drain_gain: Gain,
    /// `u32::MAX`: no limit.
    pub(super) drain_rounds: u32,
    pub(super) gain_up: Gain,
    pub(super) gain_down: Gain,
    pub(super) loss_threshold: Thousandths,
    pub(super) beta: Thousandths,
    pub(super) headroom: Thousandths,
    pub(super) startup_loss_ranges: u32,
    pub(super) startup_keeps_delivered: bool,
    pub(super) startup_loss: StartupLoss,
    pub(super) startup_window_gain: Gain,
    /// [`Time::MAX`]: no limit.
    pub(super) extra_acked_limit: Time,
    pub(super) offload_quanta: u8,
    pub(super) probe_rtt: bool,
    pub(super) probe_rtt_interval: Time,
    pub(super) min_rtt_filter: Time,
    /// Whether the window of PROBE_RTT is computed from the estimate before it expired.
    pub(super) probe_rtt_window_before: bool,
}

impl Config {
    pub(super) fn read(settings: &Settings) -> Config {
        let gains = settings.numbers("probe_gains");
        let drain_rounds = settings.count("drain_rounds");
        Config {
            startup_gain: in_units(settings.number("startup_gain")),
            drain_gain: in_units(settings.number("drain_gain")),
            drain_rounds: if drain_rounds == 0 { u32::MAX } else { drain_rounds },
            gain_up: in_units(gains[0]),
            gain_down: in_units(gains[1]),
            loss_threshold: in_units(settings.part("loss_threshold").get()),
            beta: in_units(settings.number("beta")),
            headroom: in_units(settings.part("headroom").get()),
            startup_loss_ranges: settings.count("startup_loss_ranges"),
            startup_keeps_delivered: settings.switch("startup_keeps_delivered"),
            startup_loss: match settings.word("startup_loss") {
                Some(CONSERVE) => StartupLoss::Conserve,
                Some(AT_ONCE) => StartupLoss::AtOnce,
                _ => StartupLoss::Round,
            },
            startup_window_gain: in_units(settings.number("startup_window_gain")),
            extra_acked_limit: settings.duration("extra_acked_limit").unwrap_or(Time::MAX),
            offload_quanta: settings.count("offload_quanta") as u8,
            probe_rtt: settings.switch("probe_rtt"),
            probe_rtt_interval: settings.time("probe_rtt_interval"),
            min_rtt_filter: settings.time("min_rtt_filter"),
            probe_rtt_window_before: settings.word("probe_rtt_window_from") == Some(BEFORE),
        }
    }
}

fn in_units(value: f64) -> u32 {
    (value * f64::from(UNIT)).round() as u32
}
