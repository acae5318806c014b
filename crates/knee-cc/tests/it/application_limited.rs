//! A sender that is limited by its application or by the receive window proves nothing about the
//! path (RFC 7661, section 4; Linux's `tcp_is_cwnd_limited`): no controller grows on its
//! acknowledgements.
use crate::pipe::{MSS, Net, Path, controller};
use knee_cc::controllers;
use knee_units::Time;

/// Asserts that each controller allows `most` segments in flight at the most after 30 s.
#[track_caller]
fn allow_at_most(most: u64, path: Path) {
    let mut wrong = Vec::new();
    for entry in controllers().iter().filter(|entry| entry.name != "fixed") {
        for name in [entry.name].into_iter().chain(entry.presets.iter().map(|one| one.name)) {
            let mut net = Net::new(path);
            net.add(controller(name, 1), Time::ZERO, Time::MAX);
            let mut last = None;
            net.run(Time::from_secs(30), |seen| last = Some(*seen));
            let decision = last.unwrap().decision;
            // A rate limits as well: what leaves in a round trip.
            let paced = decision.pacing_rate.map_or(u64::MAX, |rate| rate.bytes_in(path.rtt));
            let allowed = decision.window.min(paced) / MSS;
            if allowed > most {
                wrong.push(format!("{name}: {allowed} segments"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Of 50 Mbit/s, 40 ms and 1 Mbit/s from the application: four segments in flight. Three times
/// the initial window; growth by one segment in each round trip would reach 750.
#[test]
fn the_application_limits() {
    allow_at_most(30, Path { application: Some(125_000), ..Path::new(50_000_000, 40) });
}

/// A receive window of 40 segments, a quarter of the BDP. Windows of a multiple of the BDP, and
/// slow start before the limit is reached, may have up to three times as much.
#[test]
fn the_receive_window_limits() {
    allow_at_most(120, Path { receive_window: 40 * MSS, ..Path::new(50_000_000, 40) });
}
