//! Pages, videos and mixes over real sockets, compared with what the path permits.

use crate::host::sound_run;
use crate::{TEN_MEGABIT, text};
use knee_trials::Skipped;

/// RTT of the path without queue.
const RTT_NS: u64 = 60_000_000;

/// Each object arrives whole, and no earlier than a handshake and a request allow: one RTT for the
/// first one, half of one each for the SYN and the first byte, and its bytes at 10 Mbit/s.
pub fn a_page_arrives_object_by_object() -> Result<(), Skipped> {
    for http in ["http = \"1.1\", connections = 6", "http = \"multiplexed\""] {
        let flow = format!("cc = \"cubic\"\nworkload = {{ page = {{ {http} }} }}");
        let text = text("8 s", TEN_MEGABIT, &flow);
        let (records, _) = sound_run(&text)?;
        let (flow, objects) = (&records.flows[0], &records.objects);
        let bytes: u64 = objects.iter().map(|object| object.size_bytes).sum();
        assert_eq!(flow.delivered_bytes, bytes);
        for object in objects {
            let wire_ns = object.size_bytes * 800;
            let took = object.completed_ns.unwrap() - object.requested_ns;
            assert!(took >= RTT_NS + wire_ns, "{}: {took} ns", object.name);
        }
        let load = flow.completion_ns.unwrap();
        assert!(load >= 2 * RTT_NS + bytes * 800, "{load} ns for {bytes} bytes");
    }
    Ok(())
}

/// A hundred transfers of 30 kB: the handshake and two rounds of slow start (10 and 11 segments)
/// take at least three RTTs.
pub fn a_mix_is_made_of_transfers() -> Result<(), Skipped> {
    let mix = "mix = { arrival_interval = \"50 ms\", sizes = \"30 kB\" }";
    let flow = format!("cc = \"cubic\"\nworkload = {{ {mix} }}");
    let text = text("5 s", TEN_MEGABIT, &flow);
    let (records, _) = sound_run(&text)?;
    let transfers = &records.transfers;
    // Poisson distribution: four standard deviations.
    assert!((60..140).contains(&transfers.len()), "{}", transfers.len());
    let ended: Vec<_> = transfers.iter().filter(|row| row.completion_ns.is_some()).collect();
    assert!(ended.len() * 10 >= transfers.len() * 8, "{} ended", ended.len());
    for row in ended {
        assert_eq!((row.size_bytes, row.delivered_bytes), (30_000, 30_000));
        assert!(row.completion_ns.unwrap() >= 3 * RTT_NS, "{row:?}");
        assert!(row.rtt_min_ns >= RTT_NS, "{row:?}");
    }
    Ok(())
}

/// Ten answers of 30 kB, each at least a round trip for the request plus its bytes at 10 Mbit/s,
/// 100 ms apart, over one connection.
pub fn bursts_come_with_their_pauses() -> Result<(), Skipped> {
    let bursts = "bursts = { size = \"30 kB\", pause = \"100 ms\", count = 10 }";
    let flow = format!("cc = \"cubic\"\nworkload = {{ {bursts} }}");
    let (records, _) = sound_run(&text("6 s", TEN_MEGABIT, &flow))?;
    assert_eq!((records.objects.len(), records.connections.len()), (10, 1));
    assert_eq!(records.flows[0].delivered_bytes, 300_000);
    for row in &records.objects {
        let took = row.completed_ns.unwrap() - row.requested_ns;
        assert!(took >= RTT_NS + 30_000 * 800, "{}: {took} ns", row.name);
    }
    for two in records.objects.windows(2) {
        let pause = two[1].requested_ns - two[0].completed_ns.unwrap();
        assert!((100_000_000..200_000_000).contains(&pause), "{pause} ns");
    }
    Ok(())
}

/// A link of 10 Mbit/s carries a ladder that ends at 1 Mbit/s: playback waits only for its first
/// segment.
pub fn a_video_plays() -> Result<(), Skipped> {
    let dash = "dash = { ladder = [\"400 kbit/s\", \"1 Mbit/s\"], segment = \"1 s\" }";
    let flow = format!("cc = \"cubic\"\nworkload = {{ {dash} }}");
    let text = text("6 s", TEN_MEGABIT, &flow);
    let (records, _) = sound_run(&text)?;
    let arrived: Vec<_> =
        records.objects.iter().filter(|object| object.completed_ns.is_some()).collect();
    assert!(arrived.len() >= 6, "{} segments", arrived.len());
    assert!(arrived[0].stalled_ns >= 2 * RTT_NS, "{}", arrived[0].stalled_ns);
    assert!(arrived[1..].iter().all(|object| object.stalled_ns == 0));
    Ok(())
}
