//! Two seconds in which every third packet is lost, and then none: each controller has half of the
//! link again within half a minute. What is in flight is less than a segment in a round trip
//! meanwhile, so that each packet follows an empty network.
use crate::pipe::{Net, Path, Seen, controller};
use knee_cc::controllers;
use knee_units::Time;

#[test]
fn half_of_the_link_is_used_again() {
    let mut wrong = Vec::new();
    for entry in controllers().iter().filter(|entry| !matches!(entry.name, "fixed" | "gcc")) {
        for name in [entry.name].into_iter().chain(entry.presets.iter().map(|one| one.name)) {
            // RemyCC's table spaces segments for 6.9 Mbit/s, with losses and without.
            let least = if name == "remycc" { 0.3 } else { 0.5 };
            for rtt_ms in [2, 10, 20, 40] {
                let clean = Path { buffer: 100, ..Path::new(20_000_000, rtt_ms) };
                let mut net = Net::new(Path { drop_every: Some(3), ..clean });
                net.add(controller(name, 1), Time::ZERO, Time::MAX);
                net.run(Time::from_secs(2), |_| {});
                net.set_path(clean);
                net.run(Time::from_secs(30), |_| {});
                let mut late: Vec<Seen> = Vec::new();
                net.run(Time::from_secs(32), |seen| late.push(*seen));
                let bytes = late.last().map_or(0, |last| last.delivered - late[0].delivered);
                let used = bytes as f64 / 2.0 / clean.payload_rate();
                if used < least {
                    wrong.push(format!("{name}, {rtt_ms} ms: {used:.2}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
