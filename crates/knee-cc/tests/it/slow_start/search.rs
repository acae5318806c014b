//! SEARCH, draft-chung-ccwg-search-09: W = 10 bins, a window of 3.5 times the first RTT,
//! EXTRA_BINS = 15, THRESH = 0.26.
use super::{choose, run};
use crate::pipe::{MSS, Path};
use crate::wire::Wire;
use knee_cc::Sample;
use knee_units::Time;

/// Sends 100 kB per millisecond, of which `missing` never arrives; returns the milliseconds until
/// slow start ends, if it does within 10 s.
fn exit_ms(missing: f64, first_rtt_ms: u64, rtt_ms: u64) -> Option<u64> {
    let mut wire = Wire::new(&choose("reno", "search"), first_rtt_ms);
    wire.connection.window_limited = false;
    for ms in 0..10_000 {
        let sent = 100_000 * ms;
        let delivered = (sent as f64 * (1.0 - missing)) as u64;
        wire.connection.now = Time::from_secs(1) + Time::from_millis(ms);
        wire.connection.sent = sent;
        wire.connection.delivered = delivered;
        wire.connection.acknowledged = delivered;
        let rtt = Time::from_millis(if ms == 0 { first_rtt_ms } else { rtt_ms });
        let sample = Sample { newly_acked: MSS, rtt: Some(rtt), ..Sample::default() };
        wire.controller.on_ack(&sample, &wire.connection);
        if wire.phase() != "slow_start" {
            return Some(ms);
        }
    }
    None
}

/// THRESH: 26 % less delivered than sent an RTT before.
#[test]
fn slow_start_ends_if_26_per_cent_are_missing() {
    assert_eq!(exit_ms(0.0, 100, 100), None);
    assert_eq!(exit_ms(0.25, 100, 100), None);
    assert!(exit_ms(0.27, 100, 100).is_some());
}

/// The first window that ends an RTT (two whole bins of 0.35 RTT) ago and has a bin before it, for
/// the interpolation, ends with the thirteenth bin: after 13 x 3.5 / 10 = 4.55 times the first RTT.
#[test]
fn a_window_is_ten_bins_of_035_rtt() {
    for rtt_ms in [20, 100, 400] {
        let expected = 13 * rtt_ms * 35 / 100;
        let exit = exit_ms(0.5, rtt_ms, rtt_ms).unwrap();
        // An acknowledgement comes each millisecond.
        assert!((expected..=expected + 2).contains(&exit), "{rtt_ms} ms: {exit}, {expected}");
    }
}

/// EXTRA_BINS: an RTT of 15 bins, 5.25 times the first, is too long to look back.
#[test]
fn an_rtt_of_fifteen_bins_cannot_be_judged() {
    assert!(exit_ms(0.5, 100, 524).is_some());
    assert_eq!(exit_ms(0.5, 100, 525), None);
}

/// The authors' claim (abstract): it exits after the congestion point is reached, but before packets
/// are lost. In a fluid model, where each byte acknowledged releases two, 26 % are missing once 5.5
/// BDP are in flight: the claim needs a buffer of 4.5 BDP.
#[test]
fn the_exit_is_after_the_bottleneck_is_full_and_before_a_loss_in_a_deep_buffer() {
    for (rate, rtt_ms) in [(10_000_000, 40), (50_000_000, 30), (50_000_000, 100), (5_000_000, 600)]
    {
        let path = Path::new(rate, rtt_ms);
        let path = Path { buffer: (5.5 * path.bdp() / MSS as f64) as usize, ..path };
        let all = run(&choose("reno", "search"), path, 12 * rtt_ms / 40 + 2);
        let exit = all.iter().find(|seen| seen.state.phase != "slow_start").unwrap();
        let threshold = exit.state.slow_start_threshold.unwrap() as f64 / path.bdp();
        assert!((4.5..6.5).contains(&threshold), "{rate}, {rtt_ms}: {threshold:.2} BDP");
        // What was dropped until the exit would be reported within the RTT of that time.
        let soon = exit.now + exit.rtt * 2;
        let lost = all.iter().find(|seen| seen.now > soon).unwrap().lost;
        assert_eq!(lost, 0, "{rate}, {rtt_ms}: {threshold:.2} BDP");
    }
}
