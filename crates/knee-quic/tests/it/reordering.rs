//! Paths that reorder: uniform jitter on the way to the server, and normal jitter in both directions.

use crate::world::{ID, Way, World, way};
use knee_units::Time;

/// Payload bytes of a queue of a thousand full packets.
const QUEUE: u64 = 1_500_000;

/// A file over a path that reorders.
struct Cell {
    mbit: f64,
    one_way_ms: u64,
    jitter_ms: u64,
    loss: f64,
    cc: &'static str,
}

/// Outcome of a cell.
#[derive(Debug)]
struct Outcome {
    /// Goodput, Mbit/s.
    goodput: f64,
    /// Share of the packets sent that the link lost.
    dropped: f64,
    /// Share of the packets sent that the congestion control declared lost.
    lost: f64,
    /// Share of the bundle's datagrams that were repeated although they arrived.
    needless: f64,
}

impl Cell {
    /// Sends a file.
    fn run(&self, megabytes: u64) -> Outcome {
        let Cell { mbit, one_way_ms, jitter_ms, loss, cc } = *self;
        let jitter = Time::from_millis(jitter_ms);
        let way = Way { loss, jitter, ..way(mbit, one_way_ms, QUEUE) };
        let (took, world) = World::new(&[way], cc, "minrtt", 1 << 24).file(megabytes * 1_000_000);
        let (seen, counts) = (world.observe(0), world.hosts[0].counters(&ID));
        let link = world.links[0][0].counters();
        let dropped = link.dropped_packets + link.lost_packets;
        Outcome {
            goodput: megabytes as f64 * 8.0 / took.as_secs_f64(),
            dropped: dropped as f64 / seen.sent_packets as f64,
            lost: seen.lost_packets as f64 / seen.sent_packets as f64,
            needless: counts.late as f64 / counts.sent as f64,
        }
    }
}

/// What the kernel's TCP carries with the same controllers over the same links without loss is at
/// least nine tenths of their rate.
#[test]
fn reordering_costs_little_goodput_and_few_retransmissions() {
    for (mbit, one_way_ms, jitter_ms) in [(50.0, 20, 20), (50.0, 20, 5), (40.0, 35, 8)] {
        for cc in ["bbr", "cubic"] {
            let outcome = Cell { mbit, one_way_ms, jitter_ms, loss: 0.0, cc }.run(60);
            assert!(outcome.goodput > 0.9 * mbit, "{cc}, {jitter_ms} ms of jitter: {outcome:?}");
            assert!(outcome.lost < 0.02 && outcome.needless < 0.02, "{cc}: {outcome:?}");
        }
    }
}

/// With loss besides, a path carries what it carries without reordering, and nearly only what it lost
/// is declared lost and repeated. Without reordering only that is declared lost.
#[test]
fn reordering_costs_little_beside_loss() {
    for (mbit, one_way_ms, jitter_ms, loss) in
        [(40.0, 30, 5, 0.005), (50.0, 50, 25, 0.01), (20.0, 50, 20, 0.02)]
    {
        for (cc, megabytes) in [("bbr", mbit * 1.2), ("cubic", mbit * 0.1)] {
            let run =
                |jitter_ms| Cell { mbit, one_way_ms, jitter_ms, loss, cc }.run(megabytes as u64);
            let (ordered, outcome) = (run(0), run(jitter_ms));
            // The link loses acknowledgements too, of which nothing is declared lost.
            assert!(ordered.lost <= ordered.dropped, "{ordered:?}");
            assert!(outcome.lost < outcome.dropped + 0.005, "{outcome:?}");
            assert!(outcome.needless < 0.005, "{outcome:?}");
            assert!(outcome.goodput > 0.85 * ordered.goodput, "{outcome:?} beside {ordered:?}");
        }
    }
}

/// Delays that are normal around their mean in both directions, as netem draws them. The second of the
/// paths reaches three quarters of its rate in ten seconds.
#[test]
fn normal_jitter_leaves_most_of_the_rate() {
    for (mbit, one_way_ms, deviation_ms, loss, megabytes, least) in [
        (50.0, 20, 5, 0.0, 12, 0.75),
        (100.0, 50, 25, 0.01, 24, 0.25),
        (20.0, 50, 20, 0.02, 10, 0.6),
        (15.0, 60, 25, 0.02, 8, 0.55),
    ] {
        let deviation = Time::from_millis(deviation_ms);
        let way = Way { loss, deviation, ..way(mbit, one_way_ms, QUEUE) };
        let world = World::bonded(&[way], "bbr", "minrtt", 1 << 24);
        let (took, world) = world.file(megabytes * 1_000_000);
        let share = megabytes as f64 * 8.0 / took.as_secs_f64() / mbit;
        let (seen, counts) = (world.observe(0), world.hosts[0].counters(&ID));
        let needless = counts.late as f64 / counts.sent as f64;
        println!("{mbit} Mbit/s, {deviation_ms} ms: {share:.2} of the rate");
        assert!(share > least, "{deviation_ms} ms: {share} of the rate, {seen:?}");
        assert!(needless < 0.01, "{deviation_ms} ms: {needless}");
    }
}
