//! What the observer in the emulator sees of the kernel's connections, compared with what the kernel
//! and the links count themselves.

use crate::host::scenario;
use knee_kernel::{Control, FiveTuple, Observing, Played, run_observed};
use knee_record::LinkSample;
use knee_trials::{Pauses, Skipped, turn};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader};
use std::fs::File;
use std::path::Path;

/// One flow for each controller over a path of two links, of which the second has more room than it
/// needs. Each flow ends before the run does.
fn text(link: &str, rtt_ms: u64, controllers: &[&str], size: &str) -> String {
    let flow = |cc: &&str| {
        format!("[[flow]]\nname = \"{cc}\"\ncc = \"{cc}\"\nworkload = {{ file = \"{size}\" }}\n")
    };
    let flows: String = controllers.iter().map(flow).collect();
    format!(
        "name = \"test\"\nduration = \"8 s\"\n\
         [link.first]\n{link}\ndelay = \"{} ms\"\n\
         [link.second]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nbuffer = \"1 MB\"\n\
         [path.main]\nforward = [\"first\", \"second\"]\nreverse_delay = \"{} ms\"\n{flows}",
        rtt_ms / 2 - 1,
        rtt_ms / 2
    )
}

/// The observer agrees with `tcpi_bytes_retrans` of each connection and with the links' counters,
/// exactly; and what it says about bytes, packets and delays is possible.
fn agrees(text: &str) {
    let run = run_observed(&scenario(text), &Control::default(), Some(Observing::default()));
    let Played { records, observed, .. } = run.unwrap_or_else(|error| panic!("{error}"));
    let seen = observed.unwrap();
    assert_eq!(seen.missed_events, 0);
    let mut retransmitted = 0;
    for row in &records.connections {
        assert!(row.completion_ns.is_some(), "{text}: a file did not end: {row:?}");
        let ports = (row.local_port.unwrap(), row.remote_port.unwrap());
        let is_it = |five: &FiveTuple| {
            five.is_tcp() && (five.source.port(), five.destination.port()) == ports
        };
        let (five, flow) = seen.flows.iter().find(|(five, _)| is_it(five)).unwrap();
        assert_eq!(flow.retransmitted_bytes, row.retransmitted_bytes, "{text}: {row:?}");
        assert_eq!(Some(flow.payload_bytes), row.sent_bytes, "{text}: {row:?}");
        retransmitted += row.retransmitted_bytes.unwrap();
        // Nothing is in a link any more.
        let (entered, left, dropped) = (flow.entered, flow.left, flow.dropped);
        assert_eq!(entered.packets, left.packets + dropped.packets, "{flow:?}");
        assert_eq!(entered.bytes, left.bytes + dropped.bytes, "{flow:?}");
        let back = seen.flows.get(&five.reversed()).unwrap();
        assert_eq!((back.payload_bytes, back.retransmitted_bytes), (0, Some(0)));
        // The way back has no queue.
        assert!(back.queueing.at(1.0).unwrap().as_nanos() == 0, "{back:?}");
    }
    assert!(retransmitted > 0, "{text}: nothing was lost");
    let end = records.links.iter().map(|row| row.time_ns).max().unwrap();
    let last: Vec<LinkSample> = records.links.iter().filter(|row| row.time_ns == end).collect();
    for row in last {
        let counted = (row.dropped_packets, row.lost_packets);
        assert_eq!(seen.flows.dropped_packets(row.link as usize), counted, "{text}: {row:?}");
    }
}

/// Three controllers over a short queue with random loss.
pub fn the_observer_agrees_with_kernel_and_links() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let link = "rate = \"20 Mbit/s\"\nbuffer = \"0.5 BDP\"\nloss = \"0.5 %\"";
    agrees(&text(link, 40, &["cubic", "reno", "bbr"], "3 MB"));
    Ok(())
}

/// Packets of each interface of a capture, with the time of the first and the last, nanoseconds
/// since 1970; read by another implementation.
fn captured(path: &Path) -> (Vec<u64>, u64, u64) {
    let mut reader = PcapNGReader::new(1 << 20, File::open(path).unwrap()).unwrap();
    let (mut packets, mut first, mut last) = (Vec::new(), u64::MAX, 0);
    loop {
        let (used, block) = match reader.next() {
            Ok(read) => read,
            Err(PcapError::Eof) => return (packets, first, last),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().unwrap();
                continue;
            }
            Err(error) => panic!("{error:?}"),
        };
        match block {
            PcapBlockOwned::NG(Block::InterfaceDescription(_)) => packets.push(0),
            PcapBlockOwned::NG(Block::EnhancedPacket(one)) => {
                assert_eq!(one.origlen as usize, one.packet_data().len());
                packets[one.if_id as usize] += 1;
                let time = u64::from(one.ts_high) << 32 | u64::from(one.ts_low);
                (first, last) = (first.min(time), last.max(time));
            }
            _ => {}
        }
        reader.consume(used);
    }
}

/// A capture has each packet that entered, left or was dropped, at the interface where that
/// happened.
pub fn a_capture_has_every_packet() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcapng");
    let observing =
        Observing { capture: Some(File::create(&path).unwrap()), ..Observing::default() };
    let link = "rate = \"20 Mbit/s\"\nbuffer = \"0.5 BDP\"\nloss = \"0.5 %\"";
    let text = text(link, 20, &["cubic"], "1 MB").replace("8 s", "3 s");
    let run = run_observed(&scenario(&text), &Control::default(), Some(observing));
    let Played { records, observed, .. } = run.unwrap_or_else(|error| panic!("{error}"));
    let seen = observed.unwrap();
    assert!(seen.capture_error.is_none() && seen.missed_events == 0, "{seen:?}");
    let sum = |device: usize, count: fn(&knee_emulator::Flow) -> u64| -> u64 {
        let flows = seen.flows.iter().filter(|(_, flow)| flow.device == device);
        flows.map(|(_, flow)| count(flow)).sum()
    };
    let devices = [0, 1].map(|device| {
        sum(device, |flow| flow.entered.packets) + sum(1 - device, |flow| flow.left.packets)
    });
    let dropped = [0, 1, 2].map(|link| {
        let (dropped, lost) = seen.flows.dropped_packets(link);
        dropped + lost
    });
    let (packets, first, last) = captured(&path);
    assert_eq!(packets, [&devices[..], &dropped].concat());
    assert!(dropped[0] > 0 && devices[0] > 1000, "{packets:?}");
    let (epoch, end) = (records.epoch_unix_ns, records.epoch_unix_ns + records.end_ns);
    assert!(epoch <= first && first < last && last <= end + 100_000_000, "{epoch} {first} {last}");
    Ok(())
}

/// 24 cells: three controllers, four kinds of link, two RTTs.
pub fn the_observer_agrees_in_24_cells() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let links = [
        "rate = \"20 Mbit/s\"\nbuffer = \"0.2 BDP\"",
        "rate = \"20 Mbit/s\"\nbuffer = \"1 BDP\"\nloss = \"1 %\"",
        "rate = \"20 Mbit/s\"\nbuffer = \"4 BDP\"\naqm = \"codel\"\nloss = \"0.2 %\"",
        "rate = \"20 Mbit/s\"\nbuffer = \"1 BDP\"\nloss = \"0.2 %\"\n\
         jitter = { amount = \"4 ms\", reorder = true }",
    ];
    for cc in ["cubic", "reno", "bbr"] {
        for link in links {
            for rtt_ms in [20, 80] {
                agrees(&text(link, rtt_ms, &[cc], "1 MB"));
            }
        }
    }
    Ok(())
}
