//! Allocations of the simulator: none per packet in steady state, and little
//! memory per flow.

use knee_cc::{Init, Selection};
use knee_scenario::{Embedded, Scenario, Source};
use knee_sim::Control;
use knee_transport::{Receiver, Sender};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use std::alloc::System;
use std::sync::Mutex;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The allocator counts for the whole process: one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn scenario(text: &str) -> Scenario {
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    knee_scenario::parse(text, &source, &[]).expect("the scenario is right")
}

/// Returns the allocations of a run and the packets that it delivered.
fn cost(text: &str) -> (Stats, u64) {
    let scenario = scenario(text);
    let region = Region::new(ALLOCATOR);
    let records = knee_sim::run(&scenario, &Control::default()).expect("it runs");
    let stats = region.change();
    (stats, records.cost.data_packets)
}

fn bulk(cc: &str, loss: &str, seconds: u32) -> String {
    format!(
        "duration = \"{seconds} s\"\nsample_interval = \"1 s\"\n\
         [link.l]\nrate = \"50 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"2 BDP\"\nloss = \"{loss}\"\n\
         [path.p]\nforward = [\"l\"]\nreverse_delay = \"10 ms\"\n\
         [[flow]]\ncc = \"{cc}\"\ncount = 4\n"
    )
}

#[test]
fn nothing_is_allocated_per_packet_in_steady_state() {
    let _alone = ONE_AT_A_TIME.lock();
    // Coupled controllers need several paths, and a fixed window has no default.
    let apart = ["balia", "fixed", "lia", "olia"];
    let all = knee_cc::controllers().iter().map(|entry| entry.name);
    let controllers: Vec<&str> = all.filter(|name| !apart.contains(name)).collect();
    for (cc, loss) in controllers.into_iter().flat_map(|cc| [(cc, "0 %"), (cc, "1 %")]) {
        let (short, packets_short) = cost(&bulk(cc, loss, 60));
        let (long, packets_long) = cost(&bulk(cc, loss, 120));
        let packets = packets_long - packets_short;
        let calls = |stats: Stats| stats.allocations + stats.reallocations;
        let more = calls(long).saturating_sub(calls(short));
        assert!(packets > 10_000, "{cc}, {loss}: the longer run must deliver more");
        // Rings may still double once or twice for rare bursts.
        assert!(more <= 40, "{cc}, {loss}: {more} allocations for {packets} packets more");
    }
}

/// With any scheduler, over two unlike paths.
#[test]
fn no_scheduler_allocates_per_packet() {
    let _alone = ONE_AT_A_TIME.lock();
    for scheduler in knee_multipath::sched::schedulers() {
        let name = scheduler.name;
        let text = |seconds: u32| {
            format!(
                "duration = \"{seconds} s\"\nsample_interval = \"1 s\"\n\
                 [link.a]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n\
                 [link.b]\nrate = \"5 Mbit/s\"\ndelay = \"50 ms\"\n\
                 [path.a]\nforward = [\"a\"]\nreverse_delay = \"10 ms\"\n\
                 [path.b]\nforward = [\"b\"]\nreverse_delay = \"50 ms\"\n\
                 [[flow]]\npaths = [\"a\", \"b\"]\nscheduler = \"{name}\"\ncc = \"cubic\"\n"
            )
        };
        let (short, packets_short) = cost(&text(60));
        let (long, packets_long) = cost(&text(120));
        let calls = |stats: Stats| stats.allocations + stats.reallocations;
        let more = calls(long).saturating_sub(calls(short));
        let packets = packets_long - packets_short;
        assert!(packets > 10_000, "{name}: the longer run must deliver more");
        // Three rings and three time series that may double.
        assert!(more <= 100, "{name}: {more} allocations for {packets} packets more");
    }
}

/// Memory of a flow that has sent nothing: both ends and the controller. The
/// simulator adds about 80 bytes for its timers and its route.
#[test]
fn an_idle_flow_takes_at_most_two_kilobytes() {
    const FLOWS: usize = 1_000;
    let _alone = ONE_AT_A_TIME.lock();
    for name in ["bbr", "bbr3", "cubic", "reno", "bbr-low-delay"] {
        let selection = Selection { name: name.to_string(), parameters: Default::default() };
        let config = knee_transport::Config::default();
        let init = |_| Init {
            mss: config.mss,
            mtu: config.mss + config.header,
            initial_window: 10 * u64::from(config.mss),
            rng: ChaCha8Rng::seed_from_u64(1),
        };
        let region = Region::new(ALLOCATOR);
        let flow = |number| {
            let controller = knee_cc::build(&selection, init(number)).expect("it exists");
            (Sender::new(&config, controller), Receiver::new(&config))
        };
        let flows: Vec<_> = (0..FLOWS).map(flow).collect();
        let stats = region.change();
        let bytes = (stats.bytes_allocated - stats.bytes_deallocated) / flows.len();
        assert!(bytes >= size_of::<Sender>() + size_of::<Receiver>(), "the count is broken");
        assert!(bytes <= 2_048 - 80, "{name}: {bytes} bytes per idle flow");
    }
}
