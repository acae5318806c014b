//! Tests of internal state: the example tests of the draft's appendix that name
//! its variables, numbers computed by hand, and traps for implementers.

use super::config::{Config, ENTRY};
use super::{Bbr3, NONE, Phase, UNIT};
use crate::{Connection, Controller, Event, Init, Loss, Recovery, Sample};
use knee_units::Time;
use knee_units::registry::{Selection, Value};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const MSS: u64 = 1200;
/// 100 ms, 12 Mbit/s of payload: one packet per 0.8 ms, a BDP of 125 packets.
const RTT: Time = Time::from_millis(100);
const RATE: u64 = 1_500_000;
const BDP: u64 = 150_000;

/// A connection driven by hand, over a path that delivers [`RATE`].
#[derive(Clone, Debug)]
struct ByHand {
    bbr: Bbr3,
    connection: Connection,
    /// Bytes delivered at the start of the previous round.
    round: u64,
}

impl ByHand {
    fn new() -> ByHand {
        ByHand::with(&[])
    }

    /// With parameters that are not the draft's.
    fn with(parameters: &[(&str, &str)]) -> ByHand {
        let init = Init {
            mss: MSS as u32,
            mtu: 1252,
            initial_window: 10 * MSS,
            rng: ChaCha8Rng::seed_from_u64(7),
        };
        let text =
            |(name, text): &(&str, &str)| ((*name).to_owned(), Value::Text((*text).to_owned()));
        let parameters = parameters.iter().map(text).collect();
        let selection = Selection { name: ENTRY.name.to_owned(), parameters };
        let config = Config::read(&crate::settings(&selection).unwrap());
        let connection = Connection {
            now: Time::from_secs(1),
            mss: MSS as u32,
            mtu: 1252,
            srtt: RTT,
            min_rtt: RTT,
            ..Connection::default()
        };
        let mut by_hand = ByHand { bbr: Bbr3::new(config, init), connection, round: 0 };
        by_hand.tell(Event::Established);
        by_hand
    }

    /// A controller that is cruising, after several rounds at [`RATE`].
    fn cruising() -> ByHand {
        let mut by_hand = ByHand::new();
        for _ in 0..10 {
            by_hand.round(BDP);
        }
        assert_eq!(by_hand.bbr.phase, Phase::Cruise);
        by_hand
    }

    /// A controller that is probing upwards.
    fn probing() -> ByHand {
        let mut by_hand = ByHand::cruising();
        for _ in 0..40 {
            if by_hand.bbr.phase == Phase::Up {
                return by_hand;
            }
            by_hand.round(BDP);
        }
        panic!("no probe begins: {by_hand:?}");
    }

    fn tell(&mut self, event: Event) {
        self.bbr.on_event(event, &self.connection);
    }

    /// A round trip at [`RATE`], in one acknowledgement.
    fn round(&mut self, in_flight: u64) {
        self.ack(Sample { in_flight_at_send: in_flight, ..Sample::default() }, in_flight);
    }

    fn ack(&mut self, sample: Sample, in_flight: u64) {
        self.connection.now += RTT;
        let prior_delivered = self.connection.delivered;
        self.connection.delivered += BDP;
        self.connection.in_flight = in_flight;
        let sample = Sample {
            delivered: BDP,
            prior_delivered,
            interval: RTT,
            rtt: sample.rtt.or(Some(RTT)),
            newly_acked: BDP,
            ..sample
        };
        self.bbr.on_ack(&sample, &self.connection);
        self.round = prior_delivered;
    }

    /// An acknowledgement of data sent one round ago, as for one that reveals losses.
    fn old_ack(&mut self) {
        self.connection.delivered += MSS;
        let sample = Sample {
            delivered: BDP,
            prior_delivered: self.round,
            interval: RTT,
            rtt: Some(RTT),
            newly_acked: MSS,
            ..Sample::default()
        };
        self.bbr.on_ack(&sample, &self.connection);
    }

    /// Loses `packets` consecutive packets, with `in_flight` bytes in flight.
    fn lose(&mut self, packets: u64, in_flight: u64, app_limited: bool) {
        let lost_at_send = self.connection.lost;
        for packet in 0..packets {
            self.connection.lost += MSS;
            let loss = Loss {
                bytes: MSS,
                sent_at: self.connection.now,
                in_flight_at_send: in_flight + packet * MSS,
                delivered_at_send: self.round,
                lost_at_send,
                app_limited,
            };
            self.bbr.on_loss(&loss, &self.connection);
        }
    }
}

/// Trap: 15 % stay free, not 85 %. By hand: 100 packets leave 85; 5 give the
/// floor of 4; 10 less one and a half give 8.5.
#[test]
fn headroom_is_fifteen_per_cent() {
    let mut bbr = ByHand::cruising().bbr;
    let mut left = |packets: u64| {
        bbr.in_flight_long = packets * MSS;
        bbr.in_flight_with_headroom()
    };
    assert_eq!(left(100), 85 * MSS);
    assert_eq!(left(10), 8 * MSS + MSS / 2);
    assert_eq!(left(6), 5 * MSS);
    assert_eq!(left(5), 4 * MSS);
    assert_eq!(left(1), 4 * MSS);
    bbr.in_flight_long = NONE;
    assert_eq!(bbr.in_flight_with_headroom(), NONE);
}

/// The window while cruising is 0.85 of the bound; while going down it is all of it.
#[test]
fn the_bound_holds_with_headroom_while_cruising() {
    let mut by_hand = ByHand::cruising();
    by_hand.bbr.in_flight_long = 100 * MSS;
    by_hand.round(80 * MSS);
    assert_eq!(by_hand.bbr.window, 85 * MSS);
    by_hand.bbr.phase = Phase::Refill;
    by_hand.round(80 * MSS);
    assert_eq!(by_hand.bbr.phase, Phase::Up);
    assert_eq!(by_hand.bbr.window, 100 * MSS);
}

/// Trap: gains multiply bytes and are not compared with them. The window is two
/// BDP; 2.25 and two packets in a probe; half a BDP in PROBE_RTT; plus the
/// aggregation allowance: here a whole round is one acknowledgement.
#[test]
fn windows_are_gains_times_bytes() {
    let mut by_hand = ByHand::cruising();
    let extra = by_hand.bbr.extra_acked();
    assert_eq!(by_hand.bbr.bdp(RATE), BDP);
    assert_eq!(by_hand.bbr.window, 2 * BDP + extra);
    by_hand = ByHand::probing();
    let extra = by_hand.bbr.extra_acked();
    for _ in 0..2 {
        by_hand.round(BDP);
    }
    assert_eq!(by_hand.bbr.phase, Phase::Up);
    assert_eq!(by_hand.bbr.window, BDP * 9 / 4 + 2 * MSS + extra);
    assert_eq!(by_hand.bbr.probe_rtt_window(), BDP / 2);
    // A Reno flow takes as many rounds as it has packets; here the maximum of 63 applies.
    by_hand = ByHand::cruising();
    by_hand.bbr.cycle.rounds = 3;
    by_hand.round(BDP);
    assert_eq!(by_hand.bbr.phase, Phase::Cruise);
    by_hand.bbr.cycle.rounds = 63;
    by_hand.round(BDP);
    assert_eq!(by_hand.bbr.phase, Phase::Refill);
    // The same with 20 rounds and a window of 20 packets.
    for (rounds, phase) in [(18, Phase::Cruise), (19, Phase::Refill)] {
        let mut by_hand = ByHand::cruising();
        by_hand.bbr.window = 20 * MSS;
        by_hand.bbr.cycle.rounds = rounds; // plus this round
        by_hand.round(BDP);
        assert_eq!(by_hand.bbr.phase, phase, "{rounds}");
    }
}

/// `startup_loss`: as the losses show, before the round is over, "at-once" ends start-up, and
/// "conserve" leaves room for what was delivered; the draft's "round" does neither.
#[test]
fn startup_answers_losses_after_a_round_or_by_conservation_or_at_once() {
    let answered = |form: &str| {
        let mut by_hand = ByHand::with(&[("startup_loss", form)]);
        by_hand.round(BDP);
        for range in 0..6 {
            by_hand.lose(5, BDP / 2 + range * 10 * MSS, false);
        }
        by_hand.connection.recovery = Recovery::Recovery;
        by_hand.tell(Event::RecoveryStart);
        let before = by_hand.bbr.window;
        by_hand.connection.in_flight = BDP / 2;
        let lost = by_hand.connection.lost;
        let sample = Sample { in_flight_at_send: BDP, lost_since_send: lost, ..Sample::default() };
        let sample = Sample { newly_acked: MSS, delivered: MSS, interval: RTT, ..sample };
        by_hand.bbr.on_ack(&sample, &by_hand.connection);
        (by_hand.bbr.phase, by_hand.bbr.window, before)
    };
    let (phase, window, before) = answered("round");
    assert!(phase == Phase::Startup && window >= before, "{window} after {before}");
    assert_eq!(answered("conserve").0, Phase::Startup);
    assert_eq!(answered("conserve").1, BDP / 2 + MSS);
    assert_ne!(answered("at-once").0, Phase::Startup);
}

/// `startup_window_gain` bounds the window of start-up, and of no other phase.
#[test]
fn the_window_of_startup_has_a_gain_of_its_own() {
    let windows = |gain: u32| {
        let mut by_hand = ByHand::new();
        by_hand.bbr.config.startup_window_gain = gain;
        let mut windows = Vec::new();
        for _ in 0..10 {
            by_hand.round(BDP);
            // What one acknowledgement covers is added.
            windows.push((by_hand.bbr.phase, by_hand.bbr.window - by_hand.bbr.extra_acked()));
        }
        windows
    };
    let (four, one) = (windows(4 * UNIT), windows(UNIT));
    assert_eq!(four.last(), one.last());
    assert!(four.iter().zip(&one).any(|(four, one)| four.0 == Phase::Startup && one.1 < four.1));
}

/// Two to three seconds pass between probes, and the waits differ.
#[test]
fn waits_are_random_between_two_and_three_seconds() {
    let mut by_hand = ByHand::cruising();
    let mut begins = Vec::new();
    let mut last = Phase::Cruise;
    for _ in 0..3000 {
        by_hand.bbr.idle_restart = true; // prevents PROBE_RTT
        by_hand.round(BDP);
        if by_hand.bbr.phase == Phase::Refill && last != Phase::Refill {
            begins.push(by_hand.connection.now);
        }
        last = by_hand.bbr.phase;
    }
    // REFILL and UP take at least four rounds; waits end at the end of a round.
    let apart: Vec<f64> = begins.windows(2).map(|b| (b[1] - b[0]).as_secs_f64()).collect();
    assert!(apart.len() > 50, "{}", apart.len());
    assert!(apart.iter().all(|apart| (2.3..4.0).contains(apart)), "{apart:?}");
    let mean = apart.iter().sum::<f64>() / apart.len() as f64;
    assert!((2.7..3.4).contains(&mean), "{mean}");
    assert!(apart.iter().any(|apart| (apart - mean).abs() > 0.25), "{apart:?}");
}

/// Trap: the initial rate is based on the first RTT, not on the assumed 1 ms.
#[test]
fn the_initial_rate_waits_for_the_first_rtt() {
    let mut by_hand = ByHand::new();
    let paced = |by_hand: &ByHand| by_hand.bbr.pacing.rate as f64;
    let expected = 2.77 * 10.0 * MSS as f64 / 0.1;
    assert!((paced(&by_hand) / expected - 1.0).abs() < 0.001, "{}", paced(&by_hand));
    // Without a handshake RTT, the first acknowledgement sets the rate.
    by_hand = ByHand { bbr: Bbr3::new(by_hand.bbr.config, init()), ..by_hand };
    assert!((paced(&by_hand) / (100.0 * expected) - 1.0).abs() < 0.001);
    by_hand.connection.srtt = RTT;
    let limited = Sample { app_limited: true, ..Sample::default() };
    let quiet = Sample { interval: Time::ZERO, newly_acked: 0, ..limited };
    by_hand.bbr.on_ack(&quiet, &by_hand.connection);
    assert!((paced(&by_hand) / expected - 1.0).abs() < 0.001, "{}", paced(&by_hand));
}

fn init() -> Init {
    let rng = ChaCha8Rng::seed_from_u64(7);
    Init { mss: MSS as u32, mtu: 1252, initial_window: 10 * MSS, rng }
}

/// Trap: an application-limited sample counts as bandwidth only if it is larger.
#[test]
fn limited_samples_raise_the_estimate_alone() {
    let mut by_hand = ByHand::new();
    by_hand.ack(Sample { app_limited: true, ..Sample::default() }, BDP);
    assert_eq!(by_hand.bbr.bandwidth.max(), RATE, "the first is more than nothing");
    let limited = |by_hand: &mut ByHand, interval| {
        let prior_delivered = by_hand.connection.delivered;
        by_hand.connection.now += RTT;
        by_hand.connection.delivered += BDP;
        let sample = Sample {
            delivered: BDP,
            prior_delivered,
            interval,
            rtt: Some(RTT),
            newly_acked: BDP,
            app_limited: true,
            ..Sample::default()
        };
        by_hand.bbr.on_ack(&sample, &by_hand.connection);
    };
    for _ in 0..30 {
        limited(&mut by_hand, Time::from_secs(1));
        assert_eq!(by_hand.bbr.bandwidth.max(), RATE);
    }
    assert_eq!(by_hand.bbr.phase, Phase::Startup, "nor a plateau");
    limited(&mut by_hand, Time::from_millis(50));
    assert_eq!(by_hand.bbr.bandwidth.max(), 2 * RATE);
    // The filter does not forget either, over many cycles.
    let mut by_hand = ByHand::cruising();
    let mut probes = 0;
    let mut last = by_hand.bbr.phase;
    for _ in 0..300 {
        by_hand.bbr.idle_restart = true; // prevents PROBE_RTT
        limited(&mut by_hand, Time::from_secs(1));
        probes += u32::from(by_hand.bbr.phase != last && by_hand.bbr.phase == Phase::Refill);
        last = by_hand.bbr.phase;
        // A probe that only the application limits does not end.
        if last == Phase::Up {
            by_hand.bbr.start_down(&by_hand.connection.clone());
        }
    }
    assert!(probes >= 5, "{probes}");
    assert_eq!(by_hand.bbr.bandwidth.max(), RATE);
}

/// "Exiting STARTUP on Bandwidth Plateau", steps 4 and 5.
#[test]
fn three_rounds_without_growth_fill_the_pipe() {
    let mut by_hand = ByHand::new();
    for rounds in 0..3 {
        by_hand.round(2 * BDP);
        assert_eq!(by_hand.bbr.full_pipe.rounds, rounds);
        assert_eq!(by_hand.bbr.phase, Phase::Startup);
    }
    by_hand.round(2 * BDP);
    assert!(by_hand.bbr.full_pipe.now && by_hand.bbr.full_pipe.reached);
    assert_eq!(by_hand.bbr.phase, Phase::Drain);
}

/// A round in start-up with `ranges` lost ranges of `size` packets each.
fn lossy_startup(ranges: u64, size: u64, recovering: bool) -> Bbr3 {
    let mut by_hand = ByHand::new();
    by_hand.round(BDP);
    for range in 0..ranges {
        by_hand.lose(size, BDP / 2 + range * 10 * MSS, false);
    }
    if recovering {
        by_hand.connection.recovery = Recovery::Recovery;
        by_hand.tell(Event::RecoveryStart);
    }
    by_hand.old_ack();
    // Data sent after the losses were detected.
    let lost = by_hand.connection.lost;
    let sample = Sample { in_flight_at_send: BDP, lost_since_send: lost, ..Sample::default() };
    by_hand.ack(sample, BDP * 3);
    by_hand.bbr
}

/// "Exiting STARTUP on Loss": all three criteria are needed; none suffices alone.
#[test]
fn six_ranges_and_two_per_cent_in_recovery_end_startup() {
    assert_eq!(lossy_startup(6, 1, true).phase, Phase::Drain);
    assert_eq!(lossy_startup(5, 1, true).phase, Phase::Startup, "five ranges");
    assert_eq!(lossy_startup(1, 20, true).phase, Phase::Startup, "one burst");
    assert_eq!(lossy_startup(6, 1, false).phase, Phase::Startup, "no recovery");
    let bbr = lossy_startup(6, 1, true);
    assert!(bbr.full_pipe.now && bbr.full_pipe.reached);
    // max(BDP, delivered in the round).
    assert_eq!(bbr.in_flight_long, BDP);
    assert_eq!(bbr.undo.phase, Some(Phase::Startup));
}

/// Six ranges of less than 2 % of what was in flight do not end STARTUP.
#[test]
fn six_ranges_below_the_threshold_do_not_end_startup() {
    let mut by_hand = ByHand::new();
    by_hand.round(BDP);
    for range in 0..6 {
        by_hand.lose(1, BDP + range * 10 * MSS, false);
    }
    by_hand.connection.recovery = Recovery::Recovery;
    by_hand.tell(Event::RecoveryStart);
    by_hand.old_ack();
    let lost = by_hand.connection.lost;
    let sample =
        Sample { in_flight_at_send: lost * 50, lost_since_send: lost, ..Sample::default() };
    by_hand.ack(sample, 3 * BDP);
    assert_eq!(by_hand.bbr.phase, Phase::Startup);
}

/// "Exiting DRAIN Based on Time": after three round trips, not two.
#[test]
fn drain_lasts_three_rounds_with_a_queue() {
    let mut by_hand = ByHand::new();
    for _ in 0..4 {
        by_hand.round(2 * BDP);
    }
    assert_eq!(by_hand.bbr.phase, Phase::Drain);
    for _ in 0..3 {
        by_hand.round(2 * BDP);
        assert_eq!(by_hand.bbr.phase, Phase::Drain);
    }
    by_hand.round(2 * BDP);
    assert_eq!(by_hand.bbr.phase, Phase::Down);
}

/// "Handling Loss During PROBE_UP After inflight_longterm is Set", with the
/// numbers of section 5.5.10.2: of 200 packets in flight, 10 are lost. The
/// fifth exceeds 2 % of the 204 in flight with it: 4 were lost before it and
/// 4.08 of 204 are allowed, so another 0.08 / 0.98 of a packet fits.
#[test]
fn loss_in_a_probe_lowers_the_bound_and_ends_it() {
    let mut by_hand = ByHand::probing();
    by_hand.bbr.in_flight_long = 300 * MSS;
    by_hand.lose(10, 200 * MSS, false);
    assert_eq!(by_hand.bbr.phase, Phase::Down);
    let expected = 203.0 + (0.02 * 203.0 - 4.0) / 0.98;
    let bound = by_hand.bbr.in_flight_long as f64 / MSS as f64;
    assert!((bound - expected).abs() < 0.01, "{bound} of {expected}");
    assert!(by_hand.bbr.cycle.too_high);
    assert!(!by_hand.bbr.cycle.samples_probe, "one answer for each probe");

    // Never below 0.7 of the BDP.
    let mut by_hand = ByHand::probing();
    by_hand.lose(10, 50 * MSS, false);
    assert_eq!(by_hand.bbr.in_flight_long, BDP * 7 / 10);
}

/// "Exiting PROBE_UP on Loss When Application-Limited": the probe ends, and the
/// bound stays.
#[test]
fn limited_loss_in_a_probe_ends_it_and_leaves_the_bound() {
    let mut by_hand = ByHand::probing();
    by_hand.bbr.in_flight_long = 300 * MSS;
    by_hand.lose(10, 200 * MSS, true);
    assert_eq!((by_hand.bbr.phase, by_hand.bbr.in_flight_long), (Phase::Down, 300 * MSS));
}

/// Section 5.3.3.6: after a probe that lost too much, the next one ends as soon as
/// it reaches the bound; if the path sustains that, another probe follows at once.
#[test]
fn after_loss_a_probe_is_a_precaution() {
    let mut by_hand = ByHand::probing();
    by_hand.lose(10, 140 * MSS, false);
    let bound = by_hand.bbr.in_flight_long;
    while by_hand.bbr.phase != Phase::Up {
        by_hand.bbr.idle_restart = true;
        by_hand.round(100 * MSS);
    }
    by_hand.round(bound);
    assert_eq!(by_hand.bbr.phase, Phase::Down);
    assert!(by_hand.bbr.cycle.precautionary && !by_hand.bbr.cycle.too_high);
    by_hand.round(bound - MSS);
    assert_eq!(by_hand.bbr.phase, Phase::Refill);
    assert!(!by_hand.bbr.cycle.precautionary);
}

/// "Increasing Bandwidth 10x", step 3: the bound grows by 1, 2, 4, 8 packets in
/// each round in which it holds the window.
#[test]
fn the_bound_grows_twice_as_fast_with_each_round() {
    let mut by_hand = ByHand::probing();
    let window = 100 * MSS;
    by_hand.bbr.in_flight_long = window;
    by_hand.bbr.window = window;
    by_hand.connection.window_limited = true;
    // The slope of the first round is based on this window.
    by_hand.bbr.cycle.acked_per_packet = window;
    let mut grown = Vec::new();
    for _ in 0..5 {
        let before = by_hand.bbr.in_flight_long;
        // A window of data in ten acknowledgements; the first begins a round.
        by_hand.connection.now += Time::from_millis(90);
        let prior_delivered = by_hand.connection.delivered;
        for part in 0..10 {
            by_hand.connection.now += Time::from_millis(1);
            by_hand.connection.delivered += before / 10;
            let sample = Sample {
                delivered: before,
                prior_delivered: if part == 9 { prior_delivered } else { prior_delivered - 1 },
                interval: RTT,
                rtt: Some(RTT),
                newly_acked: before / 10,
                in_flight_at_send: before,
                ..Sample::default()
            };
            by_hand.bbr.on_ack(&sample, &by_hand.connection);
        }
        assert_eq!(by_hand.bbr.phase, Phase::Up);
        grown.push((by_hand.bbr.in_flight_long - before) / MSS);
    }
    for (round, grown) in grown.iter().enumerate() {
        let expected = 1_u64 << round;
        assert!(grown.abs_diff(expected) <= 1 + expected / 4, "round {round}: {grown}");
    }
}

/// Section 5.5.10.3, by hand: without a probe, a round with loss leaves 0.7 of
/// each bound, or what the round delivered if that is more.
#[test]
fn loss_between_probes_lowers_the_short_term_bounds() {
    let mut by_hand = ByHand::cruising();
    let window = by_hand.bbr.window;
    let slowly = |by_hand: &mut ByHand, lost: bool| {
        if lost {
            by_hand.lose(1, BDP, false);
        }
        let prior_delivered = by_hand.connection.delivered;
        by_hand.connection.now += RTT;
        by_hand.connection.delivered += BDP / 2;
        let sample = Sample {
            delivered: BDP / 2,
            prior_delivered,
            interval: RTT,
            rtt: Some(RTT),
            newly_acked: BDP / 2,
            ..Sample::default()
        };
        by_hand.bbr.on_ack(&sample, &by_hand.connection);
    };
    slowly(&mut by_hand, false);
    slowly(&mut by_hand, true);
    assert_eq!(by_hand.bbr.rate_short, RATE * 7 / 10);
    assert_eq!(by_hand.bbr.in_flight_short, window * 7 / 10);
    assert_eq!(by_hand.bbr.bw, RATE * 7 / 10);
    slowly(&mut by_hand, true);
    assert_eq!(by_hand.bbr.rate_short, RATE / 2, "0.49 is less than was delivered");
    slowly(&mut by_hand, false);
    assert_eq!(by_hand.bbr.rate_short, RATE / 2, "a round without loss leaves them");
    // The next probe resets them.
    by_hand.bbr.cycle.rounds = 63;
    slowly(&mut by_hand, false);
    assert_eq!(by_hand.bbr.phase, Phase::Refill);
    assert_eq!((by_hand.bbr.rate_short, by_hand.bbr.in_flight_short), (NONE, NONE));
}

/// "Handling Spurious Fast Recovery" and "... RTO Recovery": a probe that loss
/// ended is resumed with its earlier state.
#[test]
fn a_spurious_recovery_is_undone() {
    for timeout in [false, true] {
        let mut by_hand = ByHand::probing();
        by_hand.bbr.in_flight_long = 300 * MSS;
        by_hand.bbr.rate_short = 2 * RATE;
        by_hand.bbr.in_flight_short = 290 * MSS;
        let window = by_hand.bbr.window;
        by_hand.lose(10, 200 * MSS, false);
        if timeout {
            by_hand.connection.in_flight = 0;
            by_hand.tell(Event::Timeout);
            assert_eq!(by_hand.bbr.window, MSS);
            by_hand.connection.recovery = Recovery::Loss;
        } else {
            by_hand.connection.recovery = Recovery::Recovery;
            by_hand.tell(Event::RecoveryStart);
        }
        if timeout {
            by_hand.old_ack();
        } else {
            // A round of recovery, with more loss, lowers the bounds.
            by_hand.round(100 * MSS);
            by_hand.lose(3, 100 * MSS, false);
            by_hand.round(100 * MSS);
            assert!(by_hand.bbr.rate_short < 2 * RATE && by_hand.bbr.in_flight_short < 290 * MSS);
        }
        assert!(by_hand.bbr.in_flight_long < 300 * MSS && by_hand.bbr.window < window);
        by_hand.tell(Event::SpuriousRecovery);
        let bbr = &by_hand.bbr;
        assert_eq!(bbr.phase, Phase::Refill, "the probe begins again");
        assert_eq!(bbr.in_flight_long, 300 * MSS);
        assert!(bbr.window >= window, "{} of {window}", bbr.window);
        // Refilling resets the short-term bounds.
        assert_eq!(bbr.rate_short, NONE);
        assert_eq!(bbr.full_pipe.rounds, 0);
        assert!(!bbr.signals.lost_in_round);
    }
}

/// Start-up continues if the loss that ended it was spurious.
#[test]
fn a_spurious_end_of_startup_is_undone() {
    let mut bbr = lossy_startup(6, 1, true);
    assert_eq!(bbr.phase, Phase::Drain);
    bbr.on_event(Event::SpuriousRecovery, &Connection::default());
    assert_eq!(bbr.phase, Phase::Startup);
    assert!(!bbr.full_pipe.reached);
    assert_eq!(bbr.in_flight_long, NONE);
}

/// While cruising, a spurious recovery restores the short-term bounds, and the
/// phase does not change.
#[test]
fn a_spurious_recovery_gives_back_the_short_term_bounds() {
    let mut by_hand = ByHand::cruising();
    by_hand.bbr.rate_short = RATE * 9 / 10;
    by_hand.bbr.in_flight_short = 240 * MSS;
    by_hand.lose(1, BDP, false);
    by_hand.connection.recovery = Recovery::Recovery;
    by_hand.tell(Event::RecoveryStart);
    by_hand.bbr.rate_short = RATE / 2;
    by_hand.bbr.in_flight_short = 100 * MSS;
    by_hand.tell(Event::SpuriousRecovery);
    let bbr = &by_hand.bbr;
    assert_eq!(bbr.phase, Phase::Cruise);
    assert_eq!((bbr.rate_short, bbr.in_flight_short), (RATE * 9 / 10, 240 * MSS));
}

/// Section 5.6.4.4: a timeout leaves one packet, and its end restores the window.
#[test]
fn a_timeout_cuts_the_window_and_its_end_restores_it() {
    let mut by_hand = ByHand::cruising();
    let window = by_hand.bbr.window;
    by_hand.connection.in_flight = 0;
    by_hand.tell(Event::Timeout);
    assert_eq!(by_hand.bbr.window, MSS);
    by_hand.connection.recovery = Recovery::Loss;
    // A second timeout in the episode does not save the cut window.
    by_hand.tell(Event::Timeout);
    assert_eq!(by_hand.bbr.window, MSS);
    by_hand.tell(Event::RecoveryEnd);
    assert_eq!(by_hand.bbr.window, window);
}

/// Consecutive lost packets form one range, in either order; others do not.
#[test]
fn loss_ranges_are_told_apart() {
    let count = |ends: &[u64]| {
        let mut ranges = super::LossRanges::default();
        for end in ends {
            ranges.note(&Loss { bytes: 10, in_flight_at_send: *end, ..Loss::default() });
        }
        ranges.count
    };
    assert_eq!(count(&[]), 0);
    assert_eq!(count(&[10, 20, 30]), 1);
    assert_eq!(count(&[30, 20, 10]), 1);
    assert_eq!(count(&[10, 30, 40, 60]), 3);
    assert_eq!(count(&[10]), 1);
}

/// Rounds until PROBE_RTT, in which the RTT is three times what it was in the first second.
fn until_probe_rtt(mut by_hand: ByHand) -> (u32, ByHand) {
    let mut rounds = 0;
    while by_hand.bbr.phase != Phase::ProbeRtt {
        assert!(rounds < 1000, "{:?}", by_hand.bbr.phase);
        let rtt = if rounds < 10 { RTT } else { RTT * 3 };
        by_hand.ack(Sample { rtt: Some(rtt), ..Sample::default() }, BDP);
        rounds += 1;
    }
    (rounds, by_hand)
}

/// Issue 109 of the draft's repository: with a filter as long as the interval, `min_rtt` expires as
/// PROBE_RTT begins. Half a BDP of the RTT with a queue would leave that queue where it is.
#[test]
fn the_window_of_probe_rtt_is_computed_before_or_after_min_rtt_expires() {
    let both = [("probe_rtt_interval", "10 s"), ("min_rtt_filter", "10 s")];
    let [after, before] = ["after", "before"].map(|from| {
        let parameters = [&both[..], &[("probe_rtt_window_from", from)]].concat();
        let (rounds, by_hand) = until_probe_rtt(ByHand::with(&parameters));
        assert!(RTT * u64::from(rounds) > Time::from_secs(10), "{rounds}");
        assert_eq!(by_hand.bbr.min_rtt.value, RTT * 3);
        by_hand.bbr.probe_rtt_window()
    });
    assert_eq!((before, after), (BDP / 2, BDP * 3 / 2));
    // The draft's filter is longer than its interval: there is no difference.
    let (rounds, by_hand) = until_probe_rtt(ByHand::new());
    assert!(RTT * u64::from(rounds) < Time::from_secs(10), "{rounds}");
    assert_eq!(by_hand.bbr.probe_rtt_window(), BDP / 2);
}

/// Most of the memory of a flow in a large simulation is its controller's state.
#[test]
fn the_state_stays_small() {
    let bytes = size_of::<Bbr3>();
    assert!(bytes <= 800, "{bytes} bytes");
}
