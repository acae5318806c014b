//! What a configuration allows, and what happens beyond it.

use crate::far::{BULK, Far, flows};
use chrono::{Local, Timelike};
use knee_hosts::{HostsError, Hours, LimitsConfig, Received, run};
use knee_record::{Control, Records};
use knee_trials::{Pauses, Skipped, alone};
use knee_units::{Bytes, Rate};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::thread;

/// A run of ten seconds that something ends before.
fn ended(far: &Far, text: &str) -> (Records, Received) {
    let (records, received) = run(&flows("10 s", text), &far.host(), &Control::default()).unwrap();
    assert!(records.interrupted && records.end_ns < 9_000_000_000, "{}", records.end_ns);
    assert!(records.flows[0].delivered_bytes > 0 && !records.samples.is_empty());
    (records, received)
}

fn refusal(far: &Far) -> String {
    match run(&flows("1 s", BULK), &far.host(), &Control::default()) {
        Err(HostsError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

pub fn a_used_up_day_ends_a_run_and_refuses_the_next() -> Result<(), Skipped> {
    let bytes_per_day = Some(Bytes::new(1_000_000));
    let far = Far::serve(LimitsConfig { bytes_per_day, ..LimitsConfig::default() });
    let (_, received) = ended(&far, BULK);
    let over = received.over.unwrap();
    assert!(over.contains("1 MB in 24 hours is used up"), "{over}");
    // What arrived beyond the limit is what one call of the system returned.
    assert!(received.bytes.is_some_and(|bytes| bytes < 100_000_000), "{:?}", received.bytes);
    assert!(refusal(&far).contains("wait 24 h"));
    Ok(())
}

/// The bytes of a day are used up after a restart too, as far as they were, also if it has no limit in
/// between; a file with something else is an error, not a new day.
pub fn a_restart_begins_no_new_day() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(1000));
    let limited =
        |limit| LimitsConfig { bytes_per_day: Some(Bytes::new(limit)), ..LimitsConfig::default() };
    let again = |far: Far, limits| {
        let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        Far::serve_in(far.end(), at, limits, || {})
    };
    let file = format!("{BULK}workload = {{ file = \"600 kB\" }}\n");
    let whole = |far: &Far| run(&flows("2 s", &file), &far.host(), &Control::default()).unwrap().1;
    let first = Far::serve(limited(1_000_000));
    assert_eq!(whole(&first), Received { bytes: Some(600_000), over: None });
    let second = again(first, limited(1_000_000));
    let over = ended(&second, BULK).1.over.unwrap();
    assert!(over.contains("1 MB in 24 hours is used up"), "{over}");
    let third = again(second, limited(1_000_000));
    assert!(refusal(&third).contains("wait 24 h"));
    let unlimited = again(third, LimitsConfig::default());
    assert_eq!(whole(&unlimited).over, None);
    let fourth = again(unlimited, limited(1_000_000));
    assert!(refusal(&fourth).contains("wait 24 h"));
    // With more bytes a day the rest is left.
    let more = again(fourth, limited(2_000_000));
    assert_eq!(whole(&more), Received { bytes: Some(600_000), over: None });
    Ok(())
}

pub fn a_rate_above_the_limit_ends_a_run() -> Result<(), Skipped> {
    let rate = Some(Rate::from_bits_per_second(8_000_000));
    let far = Far::serve(LimitsConfig { rate, ..LimitsConfig::default() });
    let over = ended(&far, BULK).1.over.unwrap();
    assert!(over.contains("more than its limit of 8 Mbit/s"), "{over}");
    Ok(())
}

pub fn too_many_connections_end_a_run() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig { connections: 2, ..LimitsConfig::default() });
    let two = format!("{BULK}count = 2\n");
    let (_, received) = run(&flows("300 ms", &two), &far.host(), &Control::default()).unwrap();
    assert_eq!(received.over, None);
    let late = "[[flow]]\nname = \"late\"\ncc = \"cubic\"\nstart = \"500 ms\"\n";
    let over = ended(&far, &(two + late)).1.over.unwrap();
    assert!(over.contains("more than 2 connections at a time"), "{over}");
    Ok(())
}

pub fn closed_hours_refuse_a_run() -> Result<(), Skipped> {
    // They begin in two hours.
    let hour = (Local::now().hour() + 2) % 24;
    let hours = Hours::parse(&format!("{hour}:00-{hour}:30")).unwrap();
    let far = Far::serve(LimitsConfig { hours: Some(hours), ..LimitsConfig::default() });
    let reason = refusal(&far);
    assert!(reason.contains(&hours.to_string()), "{reason}");
    assert!(far.said().contains("lab was refused"), "{}", far.said());
    Ok(())
}

/// Two runs with one key would disturb each other.
pub fn a_new_measurement_ends_the_former() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(1000));
    let far = Far::serve(LimitsConfig::default());
    let first = Control::default();
    thread::scope(|scope| {
        let former = scope.spawn(|| run(&flows("30 s", BULK), &far.host(), &first));
        while first.now_ns.load(Ordering::Relaxed) < 200_000_000 {
            thread::yield_now();
        }
        let (_, received) = run(&flows("300 ms", BULK), &far.host(), &Control::default()).unwrap();
        assert_eq!(received.over, None);
        let (records, received) = former.join().unwrap().unwrap();
        assert!(records.interrupted);
        assert!(received.over.unwrap().contains("another measurement with the same key"));
    });
    Ok(())
}

pub fn a_server_that_stops_says_so() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(1000));
    let mut far = Far::serve(LimitsConfig::default());
    let (host, control) = (far.host(), Control::default());
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&flows("30 s", BULK), &host, &control));
        while control.now_ns.load(Ordering::Relaxed) < 200_000_000 {
            thread::yield_now();
        }
        far.stop();
        let (records, received) = running.join().unwrap().unwrap();
        assert!(records.interrupted && records.flows[0].delivered_bytes > 0);
        assert_eq!(received.over.unwrap(), "knee serve was stopped there");
    });
    Ok(())
}

/// What the other machine counts is the size of the files, without greetings.
pub fn files_and_mixes_arrive_to_their_last_byte() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(1000));
    let far = Far::serve(LimitsConfig::default());
    let file = format!("{BULK}count = 3\nworkload = {{ file = \"500 kB\" }}\n");
    let (records, received) = run(&flows("2 s", &file), &far.host(), &Control::default()).unwrap();
    assert_eq!(received, Received { bytes: Some(1_500_000), over: None });
    assert!(!records.interrupted && records.links.is_empty());
    for flow in &records.flows {
        assert_eq!((flow.delivered_bytes, flow.size_bytes), (500_000, 500_000));
        assert!(flow.completion_ns.is_some());
    }
    assert_eq!(records.connections.len(), 3);
    for connection in &records.connections {
        assert_eq!(connection.acked_bytes, Some(500_000));
        assert_eq!(connection.delivered_bytes, Some(500_000));
        assert_eq!(connection.remote_port, Some(far.at.port()));
    }
    let mix = "[[flow]]\nname = \"mix\"\ncc = \"cubic\"\nstop = \"1500 ms\"\n\
               workload = { mix = { arrival_interval = \"50 ms\", sizes = \"30 kB\" } }\n";
    let (records, received) = run(&flows("2 s", mix), &far.host(), &Control::default()).unwrap();
    assert!(records.transfers.len() > 5, "{}", records.transfers.len());
    assert_eq!(received.bytes, Some(records.flows[0].delivered_bytes));
    Ok(())
}
