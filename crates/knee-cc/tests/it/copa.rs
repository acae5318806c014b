//! Copa: its steps compared with sequences computed by hand from section 2 of
//! the paper, and its two modes on the pipe.
use crate::pipe::{MSS, Net, Path, Seen, controller, init};
use knee_cc::{Connection, Controller, Event, Recovery, Sample, Selection, Value, build};
use knee_units::Time;

/// Acknowledgements of one segment each, with RTTs chosen by the test.
struct Wire {
    controller: Box<dyn Controller>,
    connection: Connection,
}

impl Wire {
    fn new(segments: u64) -> Wire {
        let connection = Connection {
            now: Time::from_secs(1),
            mss: MSS as u32,
            mtu: crate::pipe::MTU as u32,
            srtt: Time::from_millis(100),
            min_rtt: Time::from_millis(100),
            window_limited: true,
            ..Connection::default()
        };
        let init = knee_cc::Init { initial_window: segments * MSS, ..init(1) };
        // The RTTs of these tests never show an empty queue.
        let selection = Selection::named("copa").with("competitive", Value::Switch(false));
        let mut controller = build(&selection, init).unwrap();
        controller.on_event(Event::Established, &connection);
        Wire { controller, connection }
    }

    fn window(&self) -> f64 {
        self.controller.decision().window as f64 / MSS as f64
    }

    fn ack(&mut self, rtt_ms: u64, gap: Time) -> f64 {
        self.connection.now += gap;
        self.connection.acknowledged += MSS;
        self.connection.delivered += MSS;
        self.connection.in_flight = (self.window() * MSS as f64) as u64;
        self.connection.sent = self.connection.acknowledged + self.connection.in_flight;
        let rtt = Some(Time::from_millis(rtt_ms));
        let sample = Sample { newly_acked: MSS, rtt, ..Sample::default() };
        self.controller.on_ack(&sample, &self.connection);
        self.window()
    }
}

fn assert_near(got: f64, expected: f64) {
    // Windows are reported in whole bytes.
    assert!((got - expected).abs() < 0.002, "{got} for {expected}");
}

/// d = 100 ms and RTT_standing = 200 ms: the target is 1 / (0.5 x 0.1 s) = 20
/// packets per second; 11 packets per 200 ms are 55, so each ACK subtracts 1 /
/// (0.5 W) = 2 / W. With d = 0 each ACK adds the same amount.
#[test]
fn steps_are_those_of_the_paper() {
    let mut wire = Wire::new(10);
    assert_near(wire.ack(100, Time::from_millis(1)), 11.0);
    let down = [10.81818, 10.63331, 10.44522, 10.25374];
    assert_near(wire.ack(200, Time::from_millis(100)), down[0]);
    for expected in &down[1..] {
        assert_near(wire.ack(200, Time::from_millis(1)), *expected);
    }
    for expected in [10.44879, 10.64020, 10.82817] {
        assert_near(wire.ack(100, Time::from_millis(1)), expected);
    }
}

/// Section 2: at the target itself the window grows. d = 20 ms: the target is
/// 100 packets per second, equal to 12 packets per 120 ms.
#[test]
fn the_target_is_one_over_delta_times_the_delay() {
    for (segments, grows) in [(11, true), (13, false)] {
        let mut wire = Wire::new(segments - 1);
        wire.ack(100, Time::from_millis(1));
        let before = wire.window();
        let after = wire.ack(120, Time::from_millis(100));
        assert_eq!(after > before, grows, "{segments}: {before} to {after}");
    }
}

/// Section 2.1: v = 1 for three windows in one direction, then it doubles with
/// each window; a window changes by v / delta = 2 v segments.
#[test]
fn the_velocity_doubles_after_three_windows() {
    let mut wire = Wire::new(1000);
    wire.ack(100, Time::from_millis(1));
    wire.ack(200, Time::from_millis(200));
    let mut changes = Vec::new();
    for _ in 0..6 {
        let before = wire.window();
        for _ in 0..before.round() as u64 {
            wire.ack(200, Time::from_micros(100));
        }
        changes.push(before - wire.window());
    }
    for (change, expected) in changes.iter().zip([2.0, 2.0, 2.0, 4.0, 8.0, 16.0]) {
        assert!((change / expected - 1.0).abs() < 0.1, "{changes:?}");
    }
    // In the other direction v = 1 at once.
    for _ in 0..wire.window() as u64 + 10 {
        wire.ack(100, Time::from_micros(100));
    }
    let before = wire.window();
    (0..500).for_each(|_| {
        wire.ack(100, Time::from_micros(100));
    });
    let change = wire.window() - before;
    assert!((change - 1.0).abs() < 0.2, "{change} in half a window");
}

fn alone(selection: &Selection, path: Path, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(build(selection, init(1)).unwrap(), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

fn path() -> Path {
    Path { ack_every: 1, ..Path::new(20_000_000, 40) }
}

/// Section 2.2: the queue varies between zero and about 2.5 / delta packets with a
/// period of five RTTs; the link stays full, and the mode stays the default.
#[test]
fn alone_it_keeps_a_few_packets_and_empties_the_queue() {
    for (delta, most) in [(0.5, 8.0), (0.1, 35.0)] {
        let selection = Selection::named("copa").with("delta", Value::Number(delta));
        let seen = alone(&selection, path(), 30);
        let late: Vec<&Seen> = seen.iter().filter(|s| s.now > Time::from_secs(10)).collect();
        assert!(late.iter().all(|s| s.state.phase == "default"));
        let packet = 1500.0 * 8.0 / 20e6;
        let queue = |s: &Seen| (s.rtt.as_secs_f64() - 0.04) / packet - 1.0;
        let mean = late.iter().map(|s| queue(s)).sum::<f64>() / late.len() as f64;
        assert!(mean < most, "delta {delta}: {mean} packets");
        // Nearly empty once in five RTTs, with some margin.
        for part in late.chunk_by(|a, b| a.now.as_micros() / 300_000 == b.now.as_micros() / 300_000)
        {
            let least = part.iter().map(|s| queue(s)).fold(f64::MAX, f64::min);
            assert!(least < 2.0 + 0.3 / delta, "delta {delta}: {least}");
        }
        let bytes = late.last().unwrap().delivered - late[0].delivered;
        let share = bytes as f64 / 20.0 / path().payload_rate();
        assert!(share > 0.95, "delta {delta}: {share}");
        assert_eq!(seen.last().unwrap().lost, 0);
    }
}

/// Two flows reach about the same rate, however unequal they were at first. If
/// one of them measures a minimum RTT one packet longer than the other, that is
/// a third of the delay.
#[test]
fn flows_converge() {
    let mut net = Net::new(path());
    net.add(controller("copa", 1), Time::ZERO, Time::MAX);
    net.add(controller("copa", 2), Time::from_secs(5), Time::MAX);
    let mut at = [[0_u64; 2]; 2];
    net.run(Time::from_secs(20), |s| at[0][s.flow] = s.delivered);
    net.run(Time::from_secs(60), |s| at[1][s.flow] = s.delivered);
    let [first, second] = [0, 1].map(|f| (at[1][f] - at[0][f]) as f64);
    let jain = (first + second).powi(2) / (2.0 * (first * first + second * second));
    assert!(jain > 0.9, "{first} and {second}: {jain}");
    assert!(first + second > 0.95 * 40.0 * path().payload_rate());
}

/// Section 3: beside Reno it competes, gets its share, and returns to short
/// queues once Reno has stopped. Without the switch Reno takes the link.
#[test]
fn it_competes_only_where_it_must() {
    let path = Path { buffer: 134, ..path() };
    let share = |competitive: bool| {
        let selection = Selection::named("copa").with("competitive", Value::Switch(competitive));
        let mut net = Net::new(path);
        net.add(build(&selection, init(1)).unwrap(), Time::ZERO, Time::MAX);
        net.add(controller("reno", 2), Time::from_secs(5), Time::from_secs(60));
        let mut at = [[0_u64; 2]; 2];
        let mut phases = [0_u64; 2];
        net.run(Time::from_secs(15), |s| at[0][s.flow] = s.delivered);
        net.run(Time::from_secs(60), |s| {
            at[1][s.flow] = s.delivered;
            if s.flow == 0 {
                phases[usize::from(s.state.phase == "competitive")] += 1;
            }
        });
        let mut last = None;
        net.run(Time::from_secs(63), |s| last = (s.flow == 0).then_some(*s).or(last));
        assert_eq!(last.unwrap().state.phase, "default");
        let [copa, reno] = [0, 1].map(|f| (at[1][f] - at[0][f]) as f64);
        (copa / (copa + reno), phases[1] as f64 / (phases[0] + phases[1]) as f64)
    };
    let ((with, competed), (without, never)) = (share(true), share(false));
    println!("share {with:.3} competing {competed:.3} of the time, else {without:.3}");
    assert!((0.25..0.75).contains(&with), "{with}");
    assert!(competed > 0.6, "{competed}");
    assert_eq!(never, 0.0);
    assert!(without < 0.5 * with, "{without} against {with}");
}

/// Random loss does not slow it down; only competitive mode responds to loss.
#[test]
fn random_loss_costs_no_more_than_itself() {
    let path = Path { drop_every: Some(50), ..path() };
    let seen = alone(&Selection::named("copa"), path, 20);
    let rate = seen.last().unwrap().delivered as f64 / 20.0 / path.payload_rate();
    assert!(rate > 0.85, "{rate}");
}

/// A timeout restarts the controller.
#[test]
fn a_timeout_restarts_from_two_segments() {
    let mut wire = Wire::new(50);
    wire.ack(100, Time::from_millis(1));
    wire.controller.on_event(Event::Timeout, &wire.connection);
    assert_eq!(wire.window(), 2.0);
    assert_eq!(wire.controller.state().phase, "slow_start");
}

/// Timeouts of one episode, of which the connection tells by its recovery, are one loss:
/// what was spurious is undone to the window before the first.
#[test]
fn a_second_timeout_of_an_episode_is_undone_with_the_first() {
    let mut wire = Wire::new(100);
    wire.controller.on_event(Event::Timeout, &wire.connection);
    wire.connection.recovery = Recovery::Loss;
    wire.controller.on_event(Event::Timeout, &wire.connection);
    assert_eq!(wire.window(), 2.0);
    wire.controller.on_event(Event::SpuriousRecovery, &wire.connection);
    assert!(wire.window() >= 100.0, "{}", wire.window());
}
