//! BBR with `probe_loss_gain`: upward probes that lost packets cut the pacing rate.
use crate::pipe::seen::{several, with};
use crate::pipe::{MSS, Path};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

/// A connection driven by hand: an ACK for ten of 40 packets in flight every 10
/// ms, one packet per millisecond, a minimum RTT of 40 ms.
struct ByHand {
    bbr: Box<dyn knee_cc::Controller>,
    connection: knee_cc::Connection,
}

const PACKETS: u64 = 10;
const IN_FLIGHT: u64 = 40 * MSS;

impl ByHand {
    /// In PROBE_BW, in the phase after `phase`.
    fn after(phase: &str, selection: &Selection) -> ByHand {
        let mut bbr = build(selection, crate::pipe::init(1)).unwrap();
        let rtt = Time::from_millis(40);
        let connection = knee_cc::Connection {
            mss: MSS as u32,
            mtu: crate::pipe::MTU as u32,
            srtt: rtt,
            min_rtt: rtt,
            in_flight: IN_FLIGHT,
            ..Default::default()
        };
        bbr.on_event(knee_cc::Event::Established, &connection);
        let mut by_hand = ByHand { bbr, connection };
        by_hand.until(phase);
        while by_hand.phase() == phase {
            by_hand.ack(70 * MSS, 0, PACKETS);
        }
        by_hand
    }

    fn phase(&self) -> &'static str {
        self.bbr.state().phase
    }

    /// Ends phases by the amount in flight: 70 packets exceed the target of a probe.
    fn until(&mut self, phase: &str) {
        for _ in 0..2000 {
            if self.phase() == phase {
                return;
            }
            self.ack(if self.phase() == "probe_bw_up" { 70 * MSS } else { IN_FLIGHT }, 0, PACKETS);
        }
        panic!("{phase} never comes");
    }

    fn ack(&mut self, in_flight: u64, lost: u64, packets: u64) {
        let c = &mut self.connection;
        c.now += Time::from_millis(10);
        let prior_delivered = c.delivered.saturating_sub(IN_FLIGHT);
        c.delivered += packets * MSS;
        c.lost += lost * MSS;
        let sample = knee_cc::Sample {
            delivered: packets * MSS,
            prior_delivered,
            interval: Time::from_millis(10),
            rtt: Some(Time::from_millis(40)),
            newly_acked: packets * MSS,
            newly_acked_segments: packets as u32,
            newly_lost: lost * MSS,
            prior_in_flight: in_flight,
            ..Default::default()
        };
        self.bbr.on_ack(&sample, c);
    }

    /// Returns the pacing rate in packets per millisecond, before the 1 % margin.
    fn pace(&self) -> f64 {
        let rate = self.bbr.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
        rate / 8.0 / (MSS as f64 * 1000.0) / 0.99
    }

    #[track_caller]
    fn paces(&self, phase: &str, expected: f64) {
        assert_eq!(self.phase(), phase);
        assert!((self.pace() / expected - 1.0).abs() < 0.003, "{}, not {expected}", self.pace());
    }
}

fn cutting() -> Selection {
    with("probe_loss_gain", Value::Number(0.7))
}

/// At the start of a probe.
fn at_a_probe(selection: &Selection) -> ByHand {
    let mut by_hand = ByHand::after("probe_bw_up", selection);
    by_hand.until("probe_bw_up");
    by_hand.paces("probe_bw_up", 1.25);
    by_hand
}

/// Losses of a probe cut the rate by the factor, once however many there are,
/// and the next probe starts from the cut rate. Probes without losses raise it
/// by their gain, up to the estimate.
#[test]
fn a_probe_that_lost_cuts_the_rate_once_and_others_raise_it() {
    let mut by_hand = at_a_probe(&cutting());
    for _ in 0..4 {
        by_hand.ack(IN_FLIGHT, 0, PACKETS);
        by_hand.paces("probe_bw_up", 1.25);
    }
    by_hand.ack(60 * MSS, 2, PACKETS); // sent in the probe, which ends with it
    by_hand.paces("probe_bw_down", 0.75 * 0.7);
    by_hand.ack(60 * MSS, 2, PACKETS);
    by_hand.paces("probe_bw_down", 0.75 * 0.7);
    by_hand.ack(IN_FLIGHT, 0, PACKETS);
    by_hand.paces("probe_bw_cruise", 0.7);
    for rate in [0.7, 0.7 * 1.25, 1.0] {
        by_hand.paces("probe_bw_cruise", rate);
        by_hand.until("probe_bw_up");
        by_hand.paces("probe_bw_up", 1.25 * rate);
        // A min_rtt, whatever is in flight.
        let began = by_hand.connection.now;
        by_hand.until("probe_bw_down");
        let lasted = by_hand.connection.now - began;
        assert_eq!(lasted, Time::from_millis(50));
        by_hand.until("probe_bw_cruise");
    }
    // Cut twice: the second cut applies to the rate from which the probe started.
    for rate in [0.7, 0.7 * 0.7] {
        by_hand.until("probe_bw_up");
        for lost in [0, 0, 0, 0, 2] {
            by_hand.ack(60 * MSS, lost, PACKETS);
        }
        by_hand.paces("probe_bw_down", 0.75 * rate);
    }
}

/// Losses of a probe also count after it; those of other data change nothing.
#[test]
fn only_what_was_sent_in_a_probe_cuts_the_rate() {
    // The first ACKs of a probe cover data sent before it.
    let mut by_hand = at_a_probe(&cutting());
    by_hand.ack(IN_FLIGHT, 1, PACKETS);
    by_hand.until("probe_bw_down");
    by_hand.paces("probe_bw_down", 0.75);
    // 40 packets later the ACKs are for data sent at the end of the probe.
    for _ in 0..3 {
        by_hand.ack(60 * MSS, 0, PACKETS);
    }
    by_hand.paces("probe_bw_down", 0.75);
    by_hand.ack(60 * MSS, 1, PACKETS);
    assert!((by_hand.pace() / 0.7 - by_hand.bbr.state().pacing_gain.unwrap()).abs() < 0.003);
    // A loss long after the probe, in a cycle without other losses.
    let mut by_hand = at_a_probe(&cutting());
    by_hand.until("probe_bw_cruise");
    for _ in 0..8 {
        by_hand.ack(IN_FLIGHT, 0, PACKETS);
    }
    by_hand.ack(IN_FLIGHT, 3, PACKETS);
    by_hand.paces("probe_bw_cruise", 1.0);
    // The plain algorithm ignores losses of probes.
    let mut plain = at_a_probe(&Selection::named("bbr"));
    for lost in [0, 0, 0, 0, 2] {
        plain.ack(60 * MSS, lost, PACKETS);
    }
    plain.paces("probe_bw_down", 0.75);
}

/// With a short window the estimate falls to what the cut lets through; that
/// does not cause another cut.
#[test]
fn a_cut_does_not_repeat_itself() {
    let both = cutting().with("bandwidth_window", Value::Number(1.0));
    let mut by_hand = at_a_probe(&both);
    for lost in [0, 0, 0, 0, 2] {
        by_hand.ack(60 * MSS, lost, PACKETS);
    }
    by_hand.until("probe_bw_cruise");
    for _ in 0..16 {
        by_hand.ack(IN_FLIGHT, 0, 7);
    }
    by_hand.paces("probe_bw_cruise", 0.7);
    by_hand.until("probe_bw_up");
    by_hand.paces("probe_bw_up", 1.25 * 0.7);
}

/// If a probe overflows the buffer, the cut leaves the link partly unused;
/// otherwise nothing changes.
#[test]
fn the_cut_acts_where_probes_lose_and_nowhere_else() {
    let decisions = |selection: &Selection, path: Path| -> Vec<_> {
        several(selection, path, 1, 10).iter().map(|seen| seen.decision).collect()
    };
    let plain = Selection::named("bbr");
    let deep = Path::new(20_000_000, 40);
    assert_eq!(decisions(&cutting(), deep), decisions(&plain, deep));
    let shallow = Path { buffer: 5, ..deep };
    let share = |selection: &Selection| {
        let last = *several(selection, shallow, 1, 20).last().unwrap();
        (last.delivered as f64 / 20.0 / shallow.payload_rate(), last.lost as f64)
    };
    let ((full, lost), (cut, less)) = (share(&plain), share(&cutting()));
    assert!(lost > 0.0 && less < 0.9 * lost, "{less} of {lost}");
    // From 0.7 it takes two probes until the next loss.
    assert!(full > 0.9 && (0.7..0.95).contains(&cut), "{cut:.3}, {full:.3}");
}
