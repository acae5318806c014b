//! Switches of BBR whose model counts single packets, where a BDP is a few of them.
use crate::pipe::seen::{several, with};
use crate::pipe::{MSS, Net, Path, Seen};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

fn on(name: &str) -> Selection {
    with(name, Value::Switch(true))
}

/// Returns the payload delivered after `from` as a fraction of the link's capacity.
fn use_of(all: &[Seen], path: Path, from: Time) -> f64 {
    let mut late = all.iter().filter(|seen| seen.now > from);
    let first = late.next().unwrap();
    let last = late.next_back().unwrap();
    let time = (last.now - first.now).as_secs_f64();
    (last.delivered - first.delivered) as f64 / time / path.payload_rate()
}

/// At 100 Mbit/s a BDP is 8 packets for each millisecond. An acknowledgement covers two and comes
/// that much later than the minimum RTT, and the flight is one burst: neither is taken for a slow
/// path.
#[test]
fn short_paths_are_used() {
    let mut wrong = Vec::new();
    for name in ["window_machine", "tobit_filter"] {
        for ms in [1, 2, 3, 4, 6, 10] {
            let path = Path::new(100_000_000, ms);
            let path = Path { buffer: (4.0 * path.bdp()) as usize / MSS as usize, ..path };
            let used = use_of(&several(&on(name), path, 1, 20), path, Time::from_secs(4));
            if used < 0.9 {
                wrong.push(format!("{name}, {ms} ms: {used:.3}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A link becomes a hundred times as fast. From a window of a few packets on, growth is four packets
/// in two round trips at first, and a sixteenth from 64 packets on: 333 in less than five seconds.
#[test]
fn the_window_machine_finds_a_faster_link() {
    let path = Path { buffer: 833, ..Path::new(1_000_000, 40) };
    let mut net = Net::new(path);
    net.add(build(&on("window_machine"), crate::pipe::init(1)).unwrap(), Time::ZERO, Time::MAX);
    net.run(Time::from_secs(10), |_| {});
    let fast = Path { rate: 100_000_000, ..path };
    net.set_path(fast);
    let mut all = Vec::new();
    net.run(Time::from_secs(20), |seen| all.push(*seen));
    let used = use_of(&all, fast, Time::from_secs(15));
    assert!(used > 0.9, "{used:.3}");
}
