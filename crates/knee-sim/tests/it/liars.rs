//! Receivers that lie (RFC 9743, section 7.6): the effect of each lie, compared
//! with arithmetic.

use crate::common::{Dumbbell, MSS, PAYLOAD, Run};

/// 80 packets of 1500 bytes in 40 ms need 24 Mbit/s; the link has 100.
const RTT_MS: f64 = 40.0;
const WINDOW: u32 = 80;

fn fixed(receiver: &str) -> Dumbbell {
    let mut path = Dumbbell::new(100.0, RTT_MS).lasting(10.0, 1.0);
    path.flows = vec![(format!("{{ name = \"fixed\", window = \"{WINDOW} packets\" }}"), 1, 0.0)];
    path.transport(&format!("receiver = {receiver}"))
}

/// Returns the ACKs in the packet log, which must be valid.
fn acks(path: &Dumbbell) -> f64 {
    let mut log = Vec::new();
    knee_sim::run_logged(&path.scenario(), &knee_sim::Control::default(), &mut log).unwrap();
    let report = knee_verify::check(log.as_slice()).unwrap();
    assert!(report.is_sound(), "{:#?}", report.violations.first());
    report.acks_sent as f64
}

fn assert_near(value: f64, wanted: f64, part: f64, what: &str) {
    assert!((value / wanted - 1.0).abs() < part, "{what}: {value}, expected {wanted}");
}

/// An ACK for part of a segment does not acknowledge the segment: there are ten
/// times as many, and a sender that counts bytes (RFC 3465) is no faster.
#[test]
fn division_gives_nothing_to_who_counts_bytes() {
    assert_near(acks(&fixed("{ ack_division = 10 }")), 10.0 * acks(&fixed("{}")), 0.01, "ACKs");
    for controller in ["reno", "cubic", "bbr"] {
        let run = |receiver: &str| {
            let path = Dumbbell::new(20.0, RTT_MS).loss(0.001).flows(controller, 1);
            path.transport(&format!("receiver = {receiver}")).run()
        };
        let (honest, liar) = (run("{}"), run("{ ack_division = 10 }"));
        assert_near(liar.goodput(), honest.goodput(), 0.02, controller);
    }
}

/// The lost part of the data is missing, and nothing is retransmitted.
#[test]
fn what_is_concealed_is_never_repaired() {
    let loss = 0.05;
    let path = fixed("{ conceal_loss = true }").loss(loss);
    acks(&path);
    let run = path.run();
    // Each round trip delivers a window less its losses.
    let arriving = f64::from(WINDOW) * (1.0 - loss) * MSS * 8.0 / RTT_MS / 1e3;
    assert_near(run.goodput(), arriving, 0.02, "Mbit/s");
    assert_eq!(run.retransmitted(), 0.0);
}

/// Only the receive window stops a sender that never sees a loss: without a
/// configured window, one Linux buffer is sent per round trip, and no more.
#[test]
fn who_conceals_losses_has_a_buffer() {
    let (rtt_s, seconds) = (RTT_MS / 1e3, 2.0);
    let path = Dumbbell::new(20.0, RTT_MS).lasting(seconds, 0.0).flows("bbr", 1);
    let records = path.transport("receiver = { conceal_loss = true }").run().records;
    let sent = records.flows[0].sent_bytes as f64;
    let window = f64::from(6 << 20);
    assert!(sent < window * (seconds / rtt_s + 1.0), "{sent} B");
    assert!(sent > 20e6 / 8.0 * seconds * 10.0, "{sent} B");
}

/// Data claimed to have arrived is sent beyond the window: a window of 80
/// packets plus 20 claimed fill a round trip with 100.
#[test]
fn acks_before_arrival_shorten_the_round_trip() {
    let path = fixed("{ ack_ahead = 20 }");
    acks(&path);
    let run = path.run();
    let filled = f64::from(WINDOW + 20) * MSS * 8.0 / RTT_MS / 1e3;
    assert_near(run.goodput(), filled, 0.02, "Mbit/s");
    // No honest ACK arrives before the propagation delay in both directions.
    assert!(run.median_rtt() < 0.9 * RTT_MS, "{} ms", run.median_rtt());
}

/// A sender does not accept ACKs for segments that it never sent: more than its
/// window is claimed, and it continues, with timeouts.
#[test]
fn an_ack_of_the_future_counts_for_nothing() {
    let path = fixed("{ ack_ahead = 500 }");
    acks(&path);
    let run = path.run();
    assert!(run.goodput() > 1.0, "{}", run.goodput());
}

/// One packet in 500 is lost: an honest Reno follows its response function (Mathis
/// et al. 1997). If every reduction is undone, the window falls only during
/// recovery, so that the link is the limit, which carries twelve times as much.
#[test]
fn false_duplicates_undo_reductions() {
    let run = |receiver: &str| -> Run {
        let path = Dumbbell::new(50.0, 80.0).link("loss = { every = 500 }").flows("reno", 1);
        let path = path.transport(&format!("receiver = {receiver}"));
        acks(&path);
        path.run()
    };
    let mathis = MSS * 8.0 / 80e3 * (1.5 * 500.0_f64).sqrt();
    let honest = run("{}").goodput();
    assert_near(honest, mathis, 0.25, "an honest receiver's");
    let liar = run("{ false_duplicates = true }").goodput();
    assert!(liar > 0.7 * 50.0 * PAYLOAD, "{liar} against {honest}");
}
