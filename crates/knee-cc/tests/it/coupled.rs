//! LIA, OLIA and BALIA compared with their published formulas, computed by
//! hand, with Reno on one path, and with a Reno flow on a shared bottleneck.
use crate::pipe::MSS;
use knee_cc::{Connection, Controller, Event, Peer, Sample};
use knee_units::Time;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

const COUPLED: [&str; 3] = ["lia", "olia", "balia"];

/// A path's controller and the state of its transport.
struct Subflow {
    controller: Box<dyn Controller>,
    connection: Connection,
}

impl Subflow {
    /// In slow start, with ten segments.
    fn new(name: &str) -> Subflow {
        let connection = Connection {
            now: Time::from_secs(1),
            mss: MSS as u32,
            mtu: crate::pipe::MTU as u32,
            srtt: Time::from_millis(100),
            min_rtt: Time::from_millis(100),
            window_limited: true,
            ..Connection::default()
        };
        Subflow { controller: crate::pipe::controller(name, 1), connection }
    }

    /// In congestion avoidance, with `segments`: at least five.
    fn avoiding(name: &str, segments: u64) -> Subflow {
        let mut subflow = Subflow::new(name);
        while subflow.window() < 2 * segments {
            subflow.ack(1);
        }
        subflow.lose();
        assert_eq!(subflow.window(), segments);
        subflow
    }

    fn window(&self) -> u64 {
        self.controller.decision().window / MSS
    }

    fn ack(&mut self, segments: u64) {
        self.connection.acknowledged += segments * MSS;
        self.connection.delivered += segments * MSS;
        let sample = Sample { newly_acked: segments * MSS, ..Sample::default() };
        self.controller.on_ack(&sample, &self.connection);
    }

    /// A loss with an instantaneous recovery.
    fn lose(&mut self) {
        self.controller.on_event(Event::RecoveryStart, &self.connection);
        self.controller.on_event(Event::RecoveryEnd, &self.connection);
    }

    fn peer(&self) -> Peer {
        Peer { srtt: self.connection.srtt, ..self.controller.peer() }
    }

    /// Returns the acknowledgements until the window changes, and the change;
    /// `None` if `limit` of them change nothing.
    fn acks_until_change(&mut self, limit: u64) -> Option<(u64, i64)> {
        let before = self.window();
        for acks in 1..=limit {
            self.ack(1);
            if self.window() != before {
                return Some((acks, self.window() as i64 - before as i64));
            }
        }
        None
    }
}

/// A path: window in segments, RTT in milliseconds, bytes between losses.
type Path = (u64, u64, u64);

fn peers(paths: &[Path]) -> Vec<Peer> {
    let peer = |&(window, rtt_ms, loss_interval): &Path| Peer {
        window: window * MSS,
        srtt: Time::from_millis(rtt_ms),
        loss_interval,
    };
    paths.iter().map(peer).collect()
}

/// Returns the change of the window of path `own`: segments gained or lost, and
/// the number of acknowledgements until then.
fn change(name: &str, paths: &[Path], own: usize) -> Option<(u64, i64)> {
    let mut subflow = Subflow::avoiding(name, paths[own].0);
    subflow.controller.on_peers(&peers(paths), own);
    subflow.acks_until_change(100_000)
}

/// Growth per acknowledged segment.
fn growth(name: &str, paths: &[Path], own: usize) -> f64 {
    change(name, paths, own).map_or(0.0, |(acks, segments)| segments as f64 / acks as f64)
}

/// RFC 6356, section 3. The rates are 4000 segments per second each, and w /
/// rtt^2 is largest on the first path, 80,000: alpha = 600 * 80,000 / 8000^2 =
/// 0.75, and each path grows by 0.75 / 600 = 1 / 800.
#[test]
fn lia_grows_by_alpha_of_the_total() {
    let paths = [(200, 50, 0), (400, 100, 0)];
    assert_eq!(change("lia", &paths, 0), Some((800, 1)));
    assert_eq!(change("lia", &paths, 1), Some((800, 1)));
}

/// Rates of 10,000 and 1000, largest w / rtt^2 10^6: alpha / total = 10^6 /
/// 11,000^2 = 1 / 121, more than Reno's 1 / 1000 on the slow path.
#[test]
fn lia_is_capped_by_reno() {
    let paths = [(100, 10, 0), (1000, 1000, 0)];
    assert_eq!(change("lia", &paths, 0), Some((121, 1)));
    assert_eq!(change("lia", &paths, 1), Some((1000, 1)));
}

/// Draft, section 2: the path with the small window loses least, so it takes
/// 1/3 from the two with large ones, which give 1/6 each. The linked increases
/// are w / 100^2: 0.004 and 0.002. So the large windows change by 0.004 - 1/6 /
/// 40 = -1/6000, the small one by 0.002 + 1/3 / 20 = 1 / 53.6.
#[test]
fn olia_moves_window_to_the_best_path() {
    let paths = [(40, 100, 1_000_000), (40, 100, 1_000_000), (20, 100, 4_000_000)];
    assert_eq!(change("olia", &paths, 0), Some((6000, -1)));
    assert_eq!(change("olia", &paths, 1), Some((6000, -1)));
    assert_eq!(change("olia", &paths, 2), Some((54, 1)));
}

/// A window that shrinks without a loss stays in congestion avoidance.
#[test]
fn olia_does_not_return_to_slow_start() {
    let paths = [(40, 100, 1_000_000), (40, 100, 1_000_000), (20, 100, 4_000_000)];
    let mut subflow = Subflow::avoiding("olia", 40);
    subflow.controller.on_peers(&peers(&paths), 0);
    assert_eq!(subflow.acks_until_change(6000), Some((6000, -1)));
    assert_eq!(subflow.controller.state().phase, "congestion_avoidance");
    assert_eq!(subflow.acks_until_change(100), None, "back in slow start");
}

/// Which paths give and which take, case by case from the draft's definition of
/// the sets; the sum is zero. RTTs count squared: twice the RTT needs four
/// times the bytes between losses.
#[test]
fn olia_alphas_follow_the_sets_and_sum_to_zero() {
    let cases: [(&[Path], &[f64]); 5] = [
        // The best path has the largest window: nothing is moved.
        (&[(500, 100, 9_000), (300, 100, 1_000)], &[0.0, 0.0]),
        // The best path has the smaller window.
        (&[(500, 100, 1_000), (400, 100, 9_000)], &[-0.5, 0.5]),
        // Two paths share what one gives; a path in neither set is unchanged.
        (
            &[(500, 100, 1_000), (300, 100, 9_000), (450, 100, 2_000), (300, 100, 9_000)],
            &[-0.25, 0.125, 0.0, 0.125],
        ),
        // 4000 / 200^2 = 1000 / 100^2: both are best, and the one with the
        // smaller window takes.
        (&[(500, 200, 4_000), (400, 100, 1_000)], &[-0.5, 0.5]),
        // 3000 / 200^2 < 1000 / 100^2: the first is not best, and the second is
        // also largest.
        (&[(400, 200, 3_000), (500, 100, 1_000)], &[0.0, 0.0]),
    ];
    for (paths, expected) in cases {
        let total: f64 = paths.iter().map(|(w, rtt, _)| *w as f64 / *rtt as f64).sum();
        let mut sum = 0.0;
        for (own, expected) in expected.iter().enumerate() {
            let (window, rtt) = (paths[own].0 as f64, paths[own].1 as f64);
            let linked = window / (rtt * rtt) / (total * total);
            let alpha = (growth("olia", paths, own) - linked) * window;
            assert!((alpha - expected).abs() < 0.01, "{paths:?}, path {own}: {alpha}");
            sum += alpha;
        }
        assert!(sum.abs() < 0.01, "{paths:?}: {sum}");
    }
}

/// Draft, section 3, with x = 2000 and 1000. First path: alpha = 1, 2000 /
/// 0.1 / 3000^2 = 1 / 450. Second: alpha = 2, half of that times 3/2 * 6/5.
#[test]
fn balia_grows_as_its_draft_says() {
    let paths = [(200, 100, 0), (100, 100, 0)];
    assert_eq!(change("balia", &paths, 0), Some((450, 1)));
    assert_eq!(change("balia", &paths, 1), Some((500, 1)));
}

/// A loss takes w/2 * min (alpha, 1.5).
#[test]
fn balia_decreases_more_on_the_slower_path() {
    let cases: [(&[Path], usize, u64); 4] = [
        (&[(200, 100, 0), (100, 100, 0)], 0, 100), // alpha = 1
        (&[(200, 100, 0), (100, 100, 0)], 1, 25),  // alpha = 2, capped
        (&[(120, 100, 0), (100, 100, 0)], 1, 40),  // alpha = 1.2
        (&[(120, 100, 0), (100, 80, 0)], 0, 57),   // alpha = 1250 / 1200, 57.5
    ];
    for (paths, own, left) in cases {
        let mut subflow = Subflow::avoiding("balia", paths[own].0);
        subflow.controller.on_peers(&peers(paths), own);
        subflow.lose();
        assert_eq!(subflow.window(), left, "{paths:?}, path {own}");
    }
}

/// RFC 6356, section 3: slow start is the same as on a single path, and so is
/// the reduction, except BALIA's.
#[test]
fn slow_start_is_not_coupled() {
    for name in COUPLED {
        let mut subflow = Subflow::new(name);
        subflow.controller.on_peers(&peers(&[(10, 100, 0), (900, 10, 1_000)]), 0);
        for _ in 0..10 {
            subflow.ack(1);
        }
        assert_eq!(subflow.window(), 20, "{name}");
    }
}

/// A path without an RTT does not count; a path whose own RTT is unknown acts alone.
#[test]
fn paths_without_an_rtt_do_not_count() {
    for name in COUPLED {
        let known = [(200, 50, 500), (400, 100, 2_000)];
        let with_unknown = [(200, 50, 500), (5_000, 0, 90_000), (400, 100, 2_000)];
        assert_eq!(change(name, &known, 1), change(name, &with_unknown, 2), "{name}");
        assert_eq!(change(name, &[(200, 0, 500), (400, 100, 2_000)], 0), Some((200, 1)), "{name}");
    }
}

/// OLIA's l: bytes between the last two losses, or since the last one if that
/// is more; a spurious loss does not end an interval.
#[test]
fn loss_intervals_are_counted_in_bytes() {
    let mut subflow = Subflow::new("olia");
    let interval = |subflow: &Subflow| subflow.peer().loss_interval / MSS;
    subflow.ack(30);
    assert_eq!(interval(&subflow), 30);
    subflow.lose();
    subflow.ack(20);
    assert_eq!(interval(&subflow), 30);
    subflow.ack(20);
    assert_eq!(interval(&subflow), 40);
    subflow.lose();
    assert_eq!(interval(&subflow), 40);
    subflow.controller.on_event(Event::SpuriousRecovery, &subflow.connection);
    subflow.ack(1);
    assert_eq!(interval(&subflow), 41);
}

fn several_paths() -> impl Strategy<Value = Vec<Path>> {
    prop::collection::vec((5..300u64, 1..500u64, 0..1_000_000u64), 2..=8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// RFC 6356, section 2, goal 2: no more than a TCP flow on any path. OLIA
    /// satisfies it except for its alpha: 1/n of TCP's growth with n paths, as
    /// in both its sources.
    #[test]
    fn no_path_grows_faster_than_reno(paths in several_paths()) {
        for name in COUPLED {
            let alpha = if name == "olia" { 1.0 / paths.len() as f64 } else { 0.0 };
            for (own, path) in paths.iter().enumerate() {
                let grown = growth(name, &paths, own) * path.0 as f64;
                prop_assert!(grown <= 1.0 + alpha + 1e-9, "{name}, path {own}: {grown}");
            }
        }
    }

    /// With one path, the windows are Reno's in all cases.
    #[test]
    fn one_path_is_reno(
        steps in prop::collection::vec((1..4u64, 0..100u32), 1..3000),
        rtt_ms in 0..500u64,
    ) {
        for name in COUPLED {
            let mut reno = Subflow::new("reno");
            let mut single = Subflow::new(name);
            single.connection.srtt = Time::from_millis(rtt_ms);
            for &(acked, dice) in &steps {
                let shown = single.peer();
                single.controller.on_peers(&[shown], 0);
                for subflow in [&mut reno, &mut single] {
                    match dice {
                        0 => subflow.lose(),
                        1 => {
                            subflow.controller.on_event(Event::Timeout, &subflow.connection);
                            subflow.controller.on_event(Event::RecoveryEnd, &subflow.connection);
                        }
                        _ => subflow.ack(acked),
                    }
                }
                let (a, b) = (reno.window(), single.window());
                prop_assert!(a.abs_diff(b) <= 1, "reno {a}, {name} {b}");
            }
        }
    }
}

/// Which flows lose when the bottleneck overflows.
#[derive(Clone, Copy, PartialEq)]
enum Losses {
    /// One of them, with a probability equal to its share of the packets.
    InProportion,
    /// All of them at once.
    Synchronised,
}

/// Packets that the bottleneck and its queue hold.
const CAPACITY: u64 = 100;

/// Enough for a thousand losses, which determine the share to about 0.01.
const ROUNDS: u64 = 20_000;

/// Returns the share of a bottleneck that two subflows of `name` take from one
/// Reno flow: each acknowledges one window per round, and losses occur when it
/// overflows.
fn share_of_two(name: &str, losses: Losses) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut flows = [name, name, "reno"].map(|name| Subflow::avoiding(name, CAPACITY / 3));
    let (mut taken, mut all) = (0, 0);
    for _ in 0..ROUNDS {
        for flow in 0..3 {
            acknowledge_window(&mut flows, flow);
        }
        let windows = [0, 1, 2].map(|flow: usize| flows[flow].window());
        let total: u64 = windows.iter().sum();
        taken += windows[0] + windows[1];
        all += total;
        if total <= CAPACITY {
            continue;
        }
        let packet = random.next_u64() % total;
        let hit = match packet {
            p if p < windows[0] => 0,
            p if p < windows[0] + windows[1] => 1,
            _ => 2,
        };
        for (flow, subflow) in flows.iter_mut().enumerate() {
            if losses == Losses::Synchronised || flow == hit {
                subflow.lose();
            }
        }
    }
    taken as f64 / all as f64
}

/// One round of one flow; the first two are coupled.
fn acknowledge_window(flows: &mut [Subflow; 3], flow: usize) {
    for _ in 0..flows[flow].window() {
        if flow < 2 {
            let shown = [flows[0].peer(), flows[1].peer()];
            flows[flow].controller.on_peers(&shown, flow);
        }
        flows[flow].ack(1);
    }
}

/// Goal 2 on a shared bottleneck: about half; uncoupled paths take two thirds.
#[test]
fn two_coupled_paths_take_about_half_of_a_shared_bottleneck() {
    let uncoupled = share_of_two("reno", Losses::InProportion);
    assert!((uncoupled - 2.0 / 3.0).abs() < 0.03, "{uncoupled}");
    for name in COUPLED {
        let share = share_of_two(name, Losses::InProportion);
        assert!((0.4..0.55).contains(&share), "{name}: {share}");
    }
}

/// If every flow loses at every overflow, a window is proportional to its
/// growth per round over the fraction that it loses; Reno's is 1 over 1/2.
///
/// - LIA: `w_r max w / w_total^2`. Equal windows stay equal and grow by 1/4
///   each: a third of the bottleneck.
/// - OLIA: `w_r^2 / w_total^2`. The larger subflow wins eventually and grows
///   like Reno: half.
/// - BALIA: `(w_r + max w) (4 w_r + max w) / 10 w_total^2`, and the smaller
///   subflow loses 3/4. With windows 1 and q: `(1 + q) (1 + 4q) / 10 = 1.5 q`,
///   so q = 0.104. The ratio of the sum to Reno is 1 / (1 + q) to 1: 0.475.
#[test]
fn synchronised_loss_leaves_coupled_paths_a_third_to_a_half() {
    for (name, expected) in [("reno", 0.667), ("lia", 0.333), ("olia", 0.5), ("balia", 0.475)] {
        let share = share_of_two(name, Losses::Synchronised);
        assert!((share - expected).abs() < 0.03, "{name}: {share}");
    }
}
