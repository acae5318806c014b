//! Memory of a bundle whose reader stops, as counted by the allocator: at most two windows and 2
//! MiB at each end.

#![allow(clippy::unwrap_used, reason = "a test ends there")]
#![allow(clippy::disallowed_methods, reason = "QUIC counts from it; the clock is virtual")]
#![allow(clippy::print_stdout, reason = "how much it is, is worth a look")]

#[path = "it/world/mod.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod world;

use knee_bundle::Class;
use knee_units::Time;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use world::{ID, World, way};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Window of all streams of a host, and its send buffer for one stream.
const WINDOW: u64 = 4 << 20;

/// Both, one after the other, because the allocator counts for the whole program.
#[test]
fn a_reader_that_stops_costs_two_windows_at_most() {
    readers_that_never_read();
    readers_that_stop_while_much_is_in_flight();
}

/// Three fast transfers begin one after another, and the reader of each stops. What is held then is
/// written, so buffers that grew while much was in flight must have shrunk.
fn readers_that_stop_while_much_is_in_flight() {
    const WINDOW: u64 = 16 << 20;
    let ways = [way(300.0, 50, 8_000_000), way(300.0, 50, 8_000_000)];
    let mut world = World::with(&ways, "bbr", "minrtt", WINDOW, 4 << 20);
    world.for_a_while(Time::from_secs(1));
    let region = Region::new(ALLOCATOR);
    let chunk = vec![0_u8; 1 << 16];
    for _ in 0..3 {
        let id = world.hosts[0].bundle(&ID).unwrap().open(Class::Normal).unwrap();
        for step in 0..150 {
            world.reads = step < 100;
            let bundle = world.hosts[0].bundle(&ID).unwrap();
            while bundle.write(id, &chunk) == chunk.len() {}
            world.for_a_while(Time::from_millis(10));
        }
    }
    let change = region.change();
    let held = change.bytes_allocated as u64 - change.bytes_deallocated as u64;
    let content = [0, 1].map(|end| world.hosts[end].bundle(&ID).unwrap().held());
    println!("{held} held, content {content:?}");
    // Beside the content of the receiver; some 7 MB are for packets and what is known of them.
    assert!(held - content[1] <= WINDOW, "{held}, content {content:?}");
}

/// Ten streams share the window of all.
fn readers_that_never_read() {
    let ways = [way(50.0, 10, 128_000), way(20.0, 20, 128_000)];
    let mut world = World::with(&ways, "bbr", "just-in-time", WINDOW, WINDOW / 4);
    world.for_a_while(Time::from_secs(1));
    let bundle = world.hosts[0].bundle(&ID).unwrap();
    let ids: Vec<_> = (0..10).map(|_| bundle.open(Class::Normal).unwrap()).collect();
    let region = Region::new(ALLOCATOR);
    let held = |region: &Region<'_, System>| {
        let change = region.change();
        change.bytes_allocated as i64 - change.bytes_deallocated as i64
    };
    let chunk = vec![0_u8; 1 << 16];
    world.reads = false;
    let (mut written, mut most) = (0, 0);
    for _ in 0..200 {
        let bundle = world.hosts[0].bundle(&ID).unwrap();
        for id in &ids {
            loop {
                let taken = bundle.write(*id, &chunk);
                written += taken as u64;
                if taken < chunk.len() {
                    break;
                }
            }
        }
        world.for_a_while(Time::from_millis(50));
        most = most.max(held(&region));
    }
    // One window has arrived, another one waits.
    assert!(written >= 2 * WINDOW - (1 << 18), "{written}");
    // The allocator does not distinguish the ends; each end has at most what is left after
    // subtracting the other's content.
    let [sender, receiver] = [0, 1].map(|end| world.hosts[end].bundle(&ID).unwrap().held());
    println!("{written} bytes written, {most} held at most, content {sender} and {receiver}");
    assert!(sender <= WINDOW + (1 << 18) && receiver <= WINDOW, "{sender} {receiver}");
    assert!(most as u64 - sender.min(receiver) <= 2 * WINDOW + (2 << 20), "{most}");
    // It completes when the reader continues.
    world.reads = true;
    // Streams reported as readable while nobody read are not reported again.
    let bundle = world.hosts[1].bundle(&ID).unwrap();
    let mut read = 0;
    for id in &ids {
        while let Some(bytes) = bundle.read(*id, usize::MAX) {
            read += bytes.len() as u64;
        }
    }
    world.for_a_while(Time::from_secs(10));
    assert_eq!(world.received + read, written);
    // A receiver keeps 256 KiB of blocks for later.
    assert!(held(&region) < (2 << 20) + (1 << 18), "{}", held(&region));
}
