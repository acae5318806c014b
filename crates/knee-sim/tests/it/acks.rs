//! ACKs with QUIC's rules over a whole run: their number, and the cost of having fewer.

use crate::common::{Dumbbell, MSS, PAYLOAD};

/// 80 packets of 1500 bytes in 40 ms need 24 Mbit/s; the link has 100.
const RTT_MS: f64 = 40.0;
const WINDOW: u32 = 80;
const SECONDS: f64 = 10.0;

/// Returns the ACKs, and Mbit/s delivered, with a fixed window.
fn run(transport: &str) -> (f64, f64) {
    let mut path = Dumbbell::new(100.0, RTT_MS).lasting(SECONDS, 1.0);
    path.flows = vec![(format!("{{ name = \"fixed\", window = \"{WINDOW} packets\" }}"), 1, 0.0)];
    for line in ["acks = \"quic\"", transport] {
        path = path.transport(line);
    }
    let mut log = Vec::new();
    let scenario = path.scenario();
    knee_sim::run_logged(&scenario, &knee_sim::Control::default(), &mut log).unwrap();
    let text = String::from_utf8(log).unwrap();
    let acks = text.lines().filter(|line| line.contains(",ack_send,")).count();
    (acks as f64, path.run().goodput())
}

fn packets(goodput: f64) -> f64 {
    goodput * 1e6 * SECONDS / 8.0 / MSS
}

/// The packets that arrive, divided by the packets per ACK.
#[test]
fn the_number_of_acks_is_what_the_policy_says() {
    let (_, full) = run("ack_every = 2");
    for every in [2, 4, 10, 20] {
        let (acks, goodput) = run(&format!("ack_every = {every}"));
        let ratio = acks * f64::from(every) / packets(goodput);
        assert!((0.97..1.03).contains(&ratio), "every {every}: {ratio}");
        assert!(goodput > 0.85 * full, "every {every}: {goodput} of {full} Mbit/s");
    }
    let (acks, goodput) = run("ack_every = 1000\nack_bytes = \"28960 B\"");
    let ratio = acks * 20.0 / packets(goodput);
    assert!((0.97..1.03).contains(&ratio), "20 segments in bytes: {ratio}");
}

/// The requested number per round; a round is the RTT plus the time that
/// packets wait for each other. The request loses up to an eighth by rounding.
#[test]
fn the_sender_gets_the_acks_it_asks_for() {
    for per_round in [2, 4, 8] {
        let (acks, goodput) = run(&format!("ack_frequency = {{ per_round = {per_round} }}"));
        let rounds = packets(goodput) / f64::from(WINDOW);
        let each = acks / rounds;
        let asked = f64::from(per_round);
        assert!((0.95 * asked..1.2 * asked).contains(&each), "{each} a round, asked for {asked}");
    }
}

/// draft-ietf-quic-ack-frequency, section 8: a sender should request at least
/// one ACK per round. BBR, which is paced, fills the link with four.
#[test]
fn bbr_needs_few_acks() {
    let run = |transport: &str| {
        let path = Dumbbell::new(50.0, RTT_MS).lasting(20.0, 5.0).flows("bbr", 1);
        path.transport("acks = \"quic\"").transport(transport).run().goodput() / (50.0 * PAYLOAD)
    };
    let (often, seldom) = (run("ack_every = 2"), run("ack_frequency = { per_round = 4 }"));
    assert!(often > 0.95, "{often}");
    assert!(seldom > 0.9, "{seldom}");
}
