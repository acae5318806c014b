//! Reads `knee export qlog` with the qlog crate of quiche, and compares it with the records of the
//! run. `KNEE` names the program.

use qlog::events::quic::{AckedRanges, QuicFrame};
use qlog::events::{EventData, quic::PacketType};
use qlog::{Qlog, VantagePointType};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
duration = "8 s"
seed = 3

[link.wifi]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"
loss = "0.5 %"

[link.lte]
rate = "5 Mbit/s"
delay = "40 ms"
buffer = "2 BDP"

[path.wifi]
forward = ["wifi"]
reverse_delay = "10 ms"

[path.lte]
forward = ["lte"]
reverse_delay = "40 ms"

[[flow]]
name = "bulk"
cc = "cubic"
path = "wifi"
count = 2

[[flow]]
name = "both"
cc = "bbr"
paths = ["wifi", "lte"]
workload = { file = "1 MB" }
"#;

fn knee(at: &Path, line: &str) -> Output {
    let program = std::env::var("KNEE").expect("KNEE names the program");
    Command::new(program).current_dir(at).args(line.split(' ')).output().expect("it starts")
}

fn expect(at: &Path, line: &str) -> Vec<u8> {
    let output = knee(at, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Totals of a trace.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    packets: u64,
    bytes: u64,
    lost: u64,
    again: u64,
    acknowledged: usize,
    windows: usize,
}

fn counts(trace: &qlog::Trace) -> Counts {
    assert_eq!(trace.vantage_point.ty, VantagePointType::Server);
    let mut counts = Counts::default();
    let (mut offsets, mut sent, mut acknowledged) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut before = 0.0;
    for event in &trace.events {
        assert!(event.time >= before, "{} after {before}", event.time);
        before = event.time;
        match &event.data {
            EventData::PacketSent(packet) => {
                assert!(sent.insert(packet.header.packet_number.unwrap()), "sent twice");
                for frame in packet.frames.iter().flatten() {
                    if let QuicFrame::Stream { offset, length, .. } = frame {
                        counts.packets += 1;
                        counts.bytes += length;
                        counts.again += u64::from(!offsets.insert(*offset));
                        assert_eq!(packet.header.packet_type, PacketType::OneRtt);
                    }
                }
            }
            EventData::PacketReceived(packet) => {
                for frame in packet.frames.iter().flatten() {
                    let QuicFrame::Ack { acked_ranges, .. } = frame else { continue };
                    let ranges: Vec<(u64, u64)> = match acked_ranges.as_ref().unwrap() {
                        AckedRanges::Double(ranges) => ranges.clone(),
                        AckedRanges::Single(ranges) => {
                            ranges.iter().map(|range| (range[0], range[range.len() - 1])).collect()
                        }
                    };
                    for number in ranges.into_iter().flat_map(|(first, last)| first..=last) {
                        assert!(sent.contains(&number), "{number} was acknowledged, not sent");
                        assert!(acknowledged.insert(number), "{number} is acknowledged twice");
                    }
                }
            }
            EventData::PacketLost(packet) => {
                let number = packet.header.as_ref().unwrap().packet_number.unwrap();
                assert!(sent.contains(&number));
                counts.lost += 1;
            }
            EventData::MetricsUpdated(metrics) => {
                counts.windows += usize::from(metrics.congestion_window.is_some());
                if let (Some(latest), Some(min)) = (metrics.latest_rtt, metrics.min_rtt) {
                    // No path here has an RTT below 20 ms.
                    assert!(min >= 20.0 && latest >= min && latest < 2000.0, "{metrics:?}");
                }
            }
            _ => {}
        }
    }
    counts.acknowledged = acknowledged.len();
    counts
}

#[test]
fn the_counts_are_those_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("a.toml"), SCENARIO).unwrap();
    expect(at, "run a.toml --no-alternatives --packet-log --out run");
    let summary = std::fs::read(at.join("run/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    for (name, index, traces) in [("bulk[0]", 0, 1), ("bulk[1]", 1, 1), ("both", 2, 2)] {
        let text = expect(at, &format!("export qlog run --flow {name}"));
        let log: Qlog = serde_json::from_slice(&text).unwrap();
        assert_eq!((log.qlog_version.as_str(), log.traces.len()), ("0.3", traces), "{name}");
        let all: Vec<Counts> = log.traces.iter().map(counts).collect();
        let sum = |of: fn(&Counts) -> u64| all.iter().map(of).sum::<u64>();
        let flow = &summary["flows"][index];
        assert_eq!(Some(sum(|c| c.bytes)), flow["sent_bytes"].as_u64(), "{name}");
        assert!(sum(|c| c.packets) > 300, "{all:?}");
        let ratio = flow["retransmit_ratio"].as_f64().unwrap();
        if traces == 1 {
            // All segments except the last have the same size.
            let again = sum(|c| c.again) as f64 / sum(|c| c.packets) as f64;
            assert!((again - ratio).abs() < 0.01 * ratio.max(0.01), "{name} {again} {ratio}");
        }
        for counts in &all {
            assert!(counts.windows > 10 && counts.lost <= counts.again, "{counts:?}");
            assert!(counts.acknowledged as u64 <= counts.packets + 1, "{counts:?}");
            assert!(counts.acknowledged as f64 > 0.9 * counts.packets as f64, "{counts:?}");
        }
    }
    let lost = serde_json::from_slice::<Qlog>(&expect(at, "export qlog run --flow bulk")).unwrap();
    assert!(counts(&lost.traces[0]).lost > 3);
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("a.toml"), SCENARIO).unwrap();
    expect(at, "run a.toml --no-alternatives --out run");
    let said = |line: &str| {
        let output = knee(at, line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said("export qlog run --flow bulk").contains("--packet-log"));
    assert!(said("export qlog run --flow bulc[1]").contains("did you mean \"bulk[1]\""));
    std::fs::write(at.join("run/packets.csv"), "# knee-packet-log/1\n").unwrap();
    assert!(said("export qlog run --flow bulk").contains("line 1"));
    assert!(said("export qlog run --flow bulk --out x.qlog").contains("line 1"));
    assert!(!at.join("x.qlog").exists());
}
