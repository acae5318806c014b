//! After a retransmission timeout a controller sends next to nothing until something is
//! acknowledged (the loss window of RFC 5681, section 3.1).
use crate::pipe::{MSS, controller};
use knee_cc::{Connection, Event, Sample, controllers};
use knee_units::Time;

/// Returns a connection with ten segments in flight and an RTT of 50 ms.
fn connection_at(now: Time, delivered: u64) -> Connection {
    Connection {
        now,
        mss: MSS as u32,
        mtu: MSS as u32 + 52,
        in_flight: 10 * MSS,
        delivered,
        acknowledged: delivered,
        sent: delivered + 10 * MSS,
        srtt: Time::from_millis(50),
        min_rtt: Time::from_millis(50),
        window_limited: true,
        ..Connection::default()
    }
}

#[test]
fn after_a_timeout_two_segments_at_most() {
    for entry in controllers() {
        // Its window never changes, as its name says.
        if entry.name == "fixed" {
            continue;
        }
        let names = [entry.name].into_iter().chain(entry.presets.iter().map(|preset| preset.name));
        for name in names {
            let mut controller = controller(name, 1);
            let mut connection = connection_at(Time::from_millis(50), 0);
            controller.on_event(Event::Established, &connection);
            for number in 1..=100_u64 {
                connection = connection_at(Time::from_millis(50 + number), number * MSS);
                let sample = Sample {
                    newly_acked: MSS,
                    newly_acked_segments: 1,
                    rtt: Some(Time::from_millis(50)),
                    sent_at: Time::from_millis(number),
                    ..Sample::default()
                };
                controller.on_ack(&sample, &connection);
            }
            let before = controller.decision();
            if name == "gcc" {
                // It limits by its rate, and its window is a bound of several round trips
                // of it: at most half of the rate is left.
                connection.now = Time::from_secs(1);
                let after = controller.on_event(Event::Timeout, &connection);
                let rates = [before, after].map(|one| one.pacing_rate.unwrap());
                let [before, after] = rates.map(|rate| rate.as_bits_per_second());
                assert!(2 * after <= before, "{name}: {after} of {before} bit/s after a timeout");
                continue;
            }
            let before = before.window;
            assert!(before > 4 * MSS, "{name}: {before} before the timeout");
            connection.now = Time::from_secs(1);
            connection.in_flight = 0;
            let after = controller.on_event(Event::Timeout, &connection).window;
            println!("{name}: {before} bytes, {after} after a timeout");
            assert!(after <= 2 * MSS, "{name}: {after} of {before} bytes after a timeout");
        }
    }
}
