//! Just in time: how long data waits at the receiver for preceding data, over
//! lossless bottlenecks of known rate.
//!
//! The ground here has one queue and one delay per path, independent of the
//! scheduler's model.
use crate::sched::common::{MSS, scheduler};
use knee_multipath::sched::{Decision, Path, PathSet, Place, View};
use knee_units::{Rate, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A path whose bottleneck takes `service` ns per packet.
#[derive(Clone, Copy, Debug)]
struct Line {
    service: u64,
    /// One-way delay, ns.
    delay: u64,
    /// Window in packets.
    window: u64,
}

impl Line {
    fn shortest(&self) -> u64 {
        2 * self.delay + self.service
    }

    /// Returns the round-trip time with a full window.
    fn round_trip(&self) -> u64 {
        self.shortest().max(self.window * self.service)
    }

    fn view(&self, in_flight: u64) -> Path {
        Path {
            ready: in_flight < self.window,
            // Its window is full from the start.
            srtt: Time::from_nanos(self.round_trip()),
            min_rtt: Time::from_nanos(self.shortest()),
            window: self.window * MSS,
            in_flight: in_flight * MSS,
            capacity: Some(Rate::over(MSS, Time::from_nanos(self.service))),
            ..Path::default()
        }
    }
}

/// Returns when each packet arrives if `packets` are sent.
fn arrivals(lines: &[Line], packets: u64) -> BTreeMap<u64, u64> {
    let mut just_in_time = scheduler("just-in-time");
    let mut unsent: BTreeSet<u64> = (0..packets).collect();
    let mut in_flight = vec![0; lines.len()];
    let mut free_at = vec![0; lines.len()];
    let mut acks: BTreeSet<(u64, usize, u64)> = BTreeSet::new();
    let mut arrived = BTreeMap::new();
    let mut now = 0;
    loop {
        loop {
            let paths: Vec<Path> =
                lines.iter().zip(&in_flight).map(|(line, held)| line.view(*held)).collect();
            if unsent.is_empty() || !paths.iter().any(|path| path.ready) {
                break;
            }
            let view = View {
                now: Time::from_nanos(now),
                mss: MSS,
                unsent: unsent.len() as u64 * MSS,
                window_left: u64::MAX / 2,
                outstanding: acks.len() as u64 * MSS,
                oldest: None,
                can_repeat: PathSet::default(),
                paths: &paths,
            };
            let Decision::Send(path, place) = just_in_time.schedule(&view) else { break };
            let packet = match place {
                Place::Ahead(bytes) => *unsent.iter().nth((bytes / MSS) as usize).unwrap(),
                _ => *unsent.first().unwrap(),
            };
            unsent.remove(&packet);
            free_at[path] = free_at[path].max(now) + lines[path].service;
            let arrival = free_at[path] + lines[path].delay;
            arrived.insert(packet, arrival);
            in_flight[path] += 1;
            acks.insert((arrival + lines[path].delay, path, packet));
        }
        let Some((at, path, _)) = acks.pop_first() else { return arrived };
        now = at;
        in_flight[path] -= 1;
    }
}

/// Returns the longest time for which a packet waits for those before it.
fn longest_wait(arrived: &BTreeMap<u64, u64>) -> u64 {
    let (mut all_before, mut longest) = (0, 0);
    for arrival in arrived.values() {
        all_before = all_before.max(*arrival);
        longest = longest.max(all_before - arrival);
    }
    longest
}

/// Lines with full windows: each bottleneck always has packets to serve.
fn any_line() -> impl Strategy<Value = Line> {
    (100_000_u64..12_000_000, 1_000_000_u64..150_000_000, 1_u64..40).prop_map(
        |(service, delay, more)| {
            let bdp = (2 * delay + service).div_ceil(service);
            Line { service, delay, window: bdp + more }
        },
    )
}

fn longest(lines: &[Line], of: impl Fn(&Line) -> u64) -> u64 {
    lines.iter().map(of).max().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Once each path has been full for a round trip, and until close to the
    /// end, nothing waits for longer than the slower of two paths takes for a
    /// packet. Each additional path adds the duration of its own packets.
    #[test]
    fn nothing_waits_for_longer_than_a_packet_takes(
        lines in proptest::collection::vec(any_line(), 2..5),
        packets in 2000_u64..6000,
    ) {
        let round = longest(&lines, |line| line.window * line.service);
        let mut arrived = arrivals(&lines, packets);
        // At the end, a path that would be late with the rest is not used.
        let windows: u64 = lines.iter().map(|line| line.window).sum();
        arrived.retain(|packet, at| *at > 3 * round && packet + 2 * windows < packets);
        let wait = longest_wait(&arrived);
        let packet = match lines.len() {
            2 => longest(&lines, |line| line.service),
            _ => lines.iter().map(|line| line.service).sum(),
        };
        prop_assert!(wait <= packet, "{wait} ns of {packet}");
    }

    /// Before that, the data that a path holds is assumed to be spread over its
    /// round trip, but was sent in a burst: it arrives later than calculated,
    /// by at most a round trip.
    #[test]
    fn what_follows_the_first_burst_waits_for_a_round_trip_at_most(
        lines in proptest::collection::vec(any_line(), 2..5),
        packets in 100_u64..3000,
    ) {
        let wait = longest_wait(&arrivals(&lines, packets));
        let round = longest(&lines, Line::round_trip);
        let packet = longest(&lines, |line| line.service);
        prop_assert!(wait <= round + packet, "{wait} ns of {round} and {packet}");
    }
}
