//! An application that produces less than the path carries proves nothing about the path (RFC
//! 7661, section 4; Linux's `tcp_is_cwnd_limited`): no controller grows on its acknowledgements.
use crate::pipe::{MSS, Net, Path, controller};
use knee_cc::controllers;
use knee_units::Time;

/// Segments that a controller may allow after 30 s: three times the initial window. Growth by one
/// segment in each round trip would reach 750, slow start the limit of any counter.
const MOST: u64 = 30;

/// A path of 50 Mbit/s and 40 ms, and 1 Mbit/s from the application: four segments in flight.
#[test]
fn what_is_allowed_stays_small() {
    let mut wrong = Vec::new();
    for entry in controllers().iter().filter(|entry| entry.name != "fixed") {
        for name in [entry.name].into_iter().chain(entry.presets.iter().map(|one| one.name)) {
            let path = Path { application: Some(125_000), ..Path::new(50_000_000, 40) };
            let mut net = Net::new(path);
            net.add(controller(name, 1), Time::ZERO, Time::MAX);
            let mut last = None;
            net.run(Time::from_secs(30), |seen| last = Some(*seen));
            let decision = last.unwrap().decision;
            // A rate below the window's limits as well: what leaves in a round trip.
            let paced = decision.pacing_rate.map_or(u64::MAX, |rate| rate.bytes_in(path.rtt));
            let allowed = decision.window.min(paced) / MSS;
            if allowed > MOST {
                wrong.push(format!("{name}: {allowed} segments"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
