//! A device queue below an AQM: how long entering packets wait behind it.

use crate::common::{Offer, constant, plain, run};
use knee_link::{Aqm, Codel, Config, Delay, Device, FqCodel};
use knee_units::Time;

const NEVER: Codel =
    Codel { target: Time::from_secs(3600), interval: Time::from_secs(3600), ecn: false };

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

/// Fair queueing above a device that holds packets, without propagation delay.
fn fair(device: Option<Device>) -> Config {
    let aqm = Aqm::FqCodel(FqCodel { codel: NEVER, flows: 1024, quantum: 1514 });
    let delay = Delay::steady(constant(Time::ZERO));
    Config { aqm, device, delay, ..plain() }
}

/// Returns the arrival time of a second flow's packet. It enters at 3 ms, while packets of the
/// first flow, 1.2 ms each, are waiting; the third of them is in transmission until 3.6 ms.
fn arrival_of_another(device: Option<Device>) -> Time {
    let mut offers = vec![Offer { at: us(0), size: 1500, flow: 1 }; 100];
    offers.push(Offer { at: us(3_000), size: 1500, flow: 2 });
    run(fair(device), &offers).delivered_at(100).expect("delivered")
}

/// The packet of the sparse flow overtakes those waiting above the device, but not those in it:
/// the one in transmission and n - 1 others.
#[test]
fn a_sparse_flow_waits_behind_the_ring() {
    assert_eq!(arrival_of_another(None), us(4_800));
    for n in [1, 2, 5, 50] {
        let at = arrival_of_another(Some(Device::Packets(n)));
        assert_eq!(at, us(3_600 + 1_200 * n), "a ring of {n}");
    }
}

/// Byte queue limits hand over packets while the device holds less than the
/// limit: 1500 B allow one packet, 1501 B two.
#[test]
fn a_limit_in_bytes_is_exceeded_by_less_than_a_packet() {
    for (limit, packets) in [(1, 1), (1_500, 1), (1_501, 2), (3_000, 2), (30_000, 20)] {
        let at = arrival_of_another(Some(Device::Bytes(limit)));
        assert_eq!(at, us(3_600 + 1_200 * packets), "{limit} B");
    }
}

/// CoDel sees only the delay above the device: if all waiting packets (35 at most) fit into a ring
/// of 50, it never drops, although the last one waits 40 ms.
#[test]
fn codel_is_blind_for_the_ring() {
    let codel = Codel { target: us(5_000), interval: us(10_000), ecn: false };
    let offers: Vec<Offer> =
        (0..200).map(|n| Offer { at: us(1_000 * n), size: 1500, flow: 0 }).collect();
    let dropped = |device| {
        let config = Config { aqm: Aqm::Codel(codel), device, ..plain() };
        let log = run(config, &offers);
        (0..200).filter(|n| log.delivered_at(*n).is_none()).count()
    };
    assert!(dropped(None) > 0);
    assert_eq!(dropped(Some(Device::Packets(50))), 0);
}

#[test]
#[should_panic(expected = "below an AQM that decides late")]
fn a_device_needs_an_aqm_above_it() {
    run(Config { device: Some(Device::Packets(3)), ..plain() }, &[]);
}
