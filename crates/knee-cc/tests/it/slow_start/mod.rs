//! Each slow start compared with figures of its source, and what all of them must do in the end.
mod careful_resume;
mod hystart;
mod rapid_start;
mod search;

use crate::pipe::{Net, Path, Seen, init};
use crate::wire::Wire;
use knee_cc::{Selection, Value, build, check};
use knee_units::Time;

const ALL: [&str; 6] =
    ["standard", "hystart", "hystart++", "search", "rapid-start", "careful-resume"];

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Returns a controller with a slow start; Careful Resume with a saved window of 200 packets.
fn choose(name: &str, start: &str) -> Selection {
    let chosen = Selection::named(name).with("slow_start", text(start));
    if start == "careful-resume" {
        chosen.with("saved_window", text("200 packets"))
    } else {
        chosen
    }
}

/// Runs one flow for some seconds.
fn run(selection: &Selection, path: Path, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(build(selection, init(1)).unwrap(), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

/// Returns the mean rate of the last `seconds` seconds, as a part of the path's.
fn utilisation(all: &[Seen], path: Path, seconds: u64) -> f64 {
    let last = all.last().unwrap();
    let from = last.now - Time::from_secs(seconds);
    let before = all.iter().rev().find(|seen| seen.now <= from).unwrap();
    let bytes = (last.delivered - before.delivered) as f64;
    bytes / (last.now - before.now).as_secs_f64() / path.payload_rate()
}

/// RFC 5681, section 3.1: the window doubles per round trip; RFC 9406 and SEARCH leave that as it is
/// while the RTT is constant, Careful Resume until its jump, and Rapid Start triples.
#[test]
fn the_window_doubles_or_triples_each_round() {
    for name in ["reno", "cubic"] {
        for start in ALL {
            let factor: f64 = if start == "rapid-start" { 3.0 } else { 2.0 };
            let mut wire = Wire::new(&choose(name, start), 100);
            // The saved path is another one, so that there is no jump.
            if start == "careful-resume" {
                let other = choose(name, start).with("saved_rtt", text("300 ms"));
                wire = Wire::new(&other, 100);
            }
            wire.connection.paced = true;
            for round in 1..=3 {
                wire.round_with_gap(Time::from_millis(3));
                assert_eq!(wire.window(), 10.0 * factor.powi(round), "{name}, {start}");
            }
        }
    }
}

/// Where the buffer is finite, each slow start ends; and without loss at random the link is then
/// full, whether the exit was early or late.
#[test]
fn every_slow_start_ends_and_fills_the_link() {
    let paths = [
        Path { buffer: 60, ..Path::new(10_000_000, 40) },
        Path { buffer: 20, ..Path::new(10_000_000, 40) },
        Path { buffer: 400, ..Path::new(10_000_000, 40) },
        Path { buffer: 50, ack_every: 1, ..Path::new(40_000_000, 10) },
        Path { buffer: 60, ack_bunches: Some(Time::from_millis(10)), ..Path::new(5_000_000, 60) },
        Path { buffer: 3, ..Path::new(1_000_000, 20) },
    ];
    for name in ["reno", "cubic"] {
        for start in ALL {
            for (number, path) in paths.into_iter().enumerate() {
                let all = run(&choose(name, start), path, 30);
                let what = format!("{name}, {start}, path {number}");
                let ended = |seen: &&Seen| seen.state.phase == "congestion_avoidance";
                let end = all.iter().find(ended).unwrap_or_else(|| panic!("{what} never ends"));
                assert!(end.now < Time::from_secs(15), "{what} ends at {}", end.now);
                let used = utilisation(&all, path, 10);
                // What a small buffer costs Reno, more if paced, is not a matter of slow start.
                let enough = if path.buffer < 40 { 0.8 } else { 0.94 };
                assert!(used > enough, "{what}: {used:.3}");
            }
        }
    }
}

/// Without any loss the rate of the link is reached too: an exit too early delays that only.
#[test]
fn without_loss_the_rate_is_reached() {
    for name in ["reno", "cubic"] {
        for start in ALL {
            let path = Path::new(10_000_000, 60);
            // A receive window of four BDP instead of a buffer limits the queue.
            let path = Path { receive_window: 4 * path.bdp() as u64, ..path };
            let all = run(&choose(name, start), path, 20);
            let used = utilisation(&all, path, 5);
            assert!(used > 0.99, "{name}, {start}: {used:.3}");
            assert_eq!(all.last().unwrap().lost, 0, "{name}, {start}");
        }
    }
}

/// A saved window has to be there for Careful Resume, and has no meaning elsewhere.
#[test]
fn what_was_saved_belongs_to_careful_resume() {
    for name in ["reno", "cubic"] {
        let lacking = Selection::named(name).with("slow_start", text("careful-resume"));
        assert_eq!(
            check(&lacking).unwrap_err().to_string(),
            "slow_start = \"careful-resume\" lacks the window of an earlier connection: \
             add saved_window = \"1 BDP\", or a number of packets"
        );
        for (parameter, value) in [("saved_window", "20 packets"), ("saved_rtt", "20 ms")] {
            let useless = choose(name, "search").with(parameter, text(value));
            let error = check(&useless).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "{parameter} has no effect with slow_start = \"search\": \
                     set slow_start = \"careful-resume\", or remove {parameter}"
                )
            );
            assert_eq!(error.parameter.as_deref(), Some(parameter));
        }
        let right = choose(name, "careful-resume").with("saved_rtt", text("20 ms"));
        assert_eq!(check(&right), Ok(()));
        let unknown = Selection::named(name).with("slow_start", text("hystart+"));
        assert!(check(&unknown).unwrap_err().advice.contains("\"hystart++\""));
    }
}
