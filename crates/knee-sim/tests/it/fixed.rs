//! A constant window compared with the arithmetic of a pipe with a buffer: 10
//! Mbit/s, 60 ms, one BDP of buffer.

use crate::common::{Dumbbell, MSS, PAYLOAD, Run};
use knee_scenario::Measure;

const MBIT: f64 = 10.0;
const RTT_MS: f64 = 60.0;
/// Transmission time of a packet of 1500 bytes.
const PACKET_MS: f64 = 1.2;
/// Packets in one BDP.
const BDP: f64 = 50.0;

fn run(packets: u32) -> Run {
    let mut path = Dumbbell::new(MBIT, RTT_MS).lasting(20.0, 5.0);
    path.flows = vec![(format!("{{ name = \"fixed\", window = \"{packets} packets\" }}"), 1, 0.0)];
    path.run()
}

/// Below one BDP, one window is sent per RTT: `w x mss / RTT`.
#[test]
fn below_one_bdp_the_rate_grows_and_the_rtt_is_flat() {
    for packets in [10, 20, 30, 40] {
        let run = run(packets);
        // The packets of a burst wait for each other.
        let (least, most) = (RTT_MS + PACKET_MS, RTT_MS + PACKET_MS * 4.0);
        let rtt = run.median_rtt();
        assert!((least - 0.01..most).contains(&rtt), "{packets}: {rtt} ms");
        let expected = f64::from(packets) * MSS * 8.0 / (RTT_MS + PACKET_MS) / 1e3;
        let ratio = run.goodput() / expected;
        assert!((0.96..1.002).contains(&ratio), "{packets}: {ratio}");
    }
}

/// Between one BDP and BDP plus buffer the rate is the link's, and the RTT is
/// the time that the link needs for the window: `w x 1500 B / rate`.
#[test]
fn up_to_the_buffer_the_rate_is_flat_and_the_rtt_grows() {
    for packets in [55, 60, 75, 90, 99] {
        let run = run(packets);
        let goodput = run.goodput() / (MBIT * PAYLOAD);
        assert!((0.99..1.001).contains(&goodput), "{packets}: {goodput}");
        // An ACK for two packets is on average half a packet late.
        let expected = f64::from(packets) * PACKET_MS;
        let ratio = run.median_rtt() / expected;
        assert!((0.96..1.03).contains(&ratio), "{packets}: {ratio}");
        assert_eq!(run.measure("bottleneck", Measure::Drops), 0.0, "{packets}");
    }
}

/// Beyond that, packets that do not fit are lost and retransmitted; the link
/// stays full until retransmissions are lost as well.
#[test]
fn beyond_the_buffer_packets_are_lost() {
    for packets in [110, 120, 150] {
        let run = run(packets);
        assert!(f64::from(packets) > 2.0 * BDP + 1.0);
        assert!(run.measure("bottleneck", Measure::Drops) > 0.0, "{packets}");
        assert!(run.retransmitted() > 0.0, "{packets}");
        let goodput = run.goodput() / (MBIT * PAYLOAD);
        assert!(goodput > 0.9, "{packets}: {goodput}");
    }
}
