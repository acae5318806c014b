//! The ground "quic" from the command line, beside the simulator. These tests need
//! root and /dev/net/tun; where the host lacks one, they say so and count as ignored,
//! or fail when `KNEE_REQUIRE_ROOT_TESTS` is set, as in CI. `main` lists them.

use crate::common::{complaint, expect, folder_with, json};
use arrow_array::{Array, RecordBatch};
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;

/// Two links of 10 and 5 Mbit/s without loss.
const LINKS: &str = r#"
name = "Over QUIC"
duration = "12 s"
[link.a]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"
[link.b]
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"
[path.a]
forward = ["a"]
reverse_delay = "10 ms"
[path.b]
forward = ["b"]
reverse_delay = "10 ms"
"#;

/// Runs a flow on both grounds; returns the output folder.
fn on_both(flow: &str) -> tempfile::TempDir {
    let folder = folder_with("a.toml", &format!("{LINKS}[[flow]]\nname = \"f\"\n{flow}"));
    expect(folder.path(), "run a.toml --on sim,quic --out out", 0);
    folder
}

/// Completion time and retransmission ratio, on the simulator and over QUIC.
fn figures(out: &Path) -> [(f64, f64); 2] {
    ["sim", "quic"].map(|ground| {
        let summary = json(&out.join(ground).join("summary.json"));
        assert_eq!(summary["ground"], ground);
        let flow = &summary["flows"][0];
        let figure = |key: &str| flow[key].as_f64().unwrap_or_else(|| panic!("{key}: {flow}"));
        (figure("completion_us"), figure("retransmit_ratio"))
    })
}

/// Runs a flow on both grounds until completion times differ by at most a twentieth, and
/// retransmission ratios by at most `points`. A pause of the host delays a transfer, so one of
/// three runs must match.
fn alike_on_both(flow: &str, points: f64) -> tempfile::TempDir {
    let mut seen = Vec::new();
    for _ in 0..3 {
        let folder = on_both(flow);
        let [(sim, sim_again), (quic, quic_again)] = figures(&folder.path().join("out"));
        let off = (sim_again - quic_again).abs() * 100.0;
        if (sim / quic - 1.0).abs() < 0.05 && off < points {
            return folder;
        }
        seen.push([(sim, sim_again), (quic, quic_again)]);
    }
    panic!("completion in us and ratio of what was sent again: {seen:?}");
}

fn a_file_over_quic_takes_as_long_as_simulated() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    // At 10 Mbit/s HyStart's threshold of 4 ms is only a few packets, so the exit is random.
    let flow = "cc = \"reno\"\npath = \"a\"\nworkload = { file = \"4 MB\" }";
    let folder = alike_on_both(flow, 1.0);
    let fidelity = json(&folder.path().join("out/fidelity.json"));
    assert_eq!(fidelity["ground"], "quic");
    let goodput = &fidelity["measures"][0];
    assert_eq!((&goodput["measure"], &goodput["of"]), (&"goodput".into(), &"*".into()));
    // The emulator honours the link's rate.
    assert!(goodput["kernel"].as_f64().unwrap() < 10e6, "{goodput}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("The simulator against the ground quic"));
    Ok(())
}

/// More than one link alone, and as much as on the simulator.
fn two_links_over_quic_are_both_used() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let flow = "cc = \"bbr\"\npaths = [\"a\", \"b\"]\nscheduler = \"ecf\"\n\
                workload = { file = \"6 MB\" }";
    let folder = alike_on_both(flow, 3.0);
    let [_, (quic_us, _)] = figures(&folder.path().join("out"));
    assert!(6e6 * 8.0 / quic_us > 12.0, "{quic_us} us: one link carries 10 Mbit/s");
    // What has no sum over paths is null, as docs/connections.md says.
    for ground in ["sim", "quic"] {
        let rows = connections(&folder.path().join("out").join(ground));
        for name in ["srtt_ns", "rttvar_ns", "delivery_rate_bps", "window_bytes", "pacing_rate_bps"]
        {
            let column = rows.column_by_name(name).unwrap();
            assert_eq!((column.len(), column.null_count()), (1, 1), "{name} on {ground}");
        }
    }
    Ok(())
}

/// Reads the connections of a run.
fn connections(out: &Path) -> RecordBatch {
    let file = std::fs::File::open(out.join("connections.parquet")).unwrap();
    let rows = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    rows.map(Result::unwrap).next().unwrap()
}

/// Its objects use six connections, each with its own handshake.
fn a_page_over_quic_loads() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let page = "workload = { page = { http = \"1.1\", connections = 6 } }";
    let folder = on_both(&format!("cc = \"cubic\"\npath = \"a\"\nacks = \"quic\"\n{page}"));
    let loads = ["sim", "quic"].map(|ground| {
        let summary = json(&folder.path().join("out").join(ground).join("summary.json"));
        let delivered = summary["flows"][0]["delivered_bytes"].as_u64().unwrap();
        (delivered, summary["flows"][0]["page"]["load_us"].as_f64().unwrap())
    });
    assert_eq!(loads[0].0, loads[1].0, "the same page");
    assert!((0.6..1.7).contains(&(loads[1].1 / loads[0].1)), "{loads:?}");
    Ok(())
}

fn what_cannot_run_over_quic_is_refused() -> Result<(), Skipped> {
    let refused = [
        ("ecn = true", "remove it"),
        ("min_rto = \"1 s\"", "remove it"),
        ("mss = \"536 B\"", "at least 1228 B"),
        ("ack_every = 1", "but acks = \"quic\""),
        ("acks = \"quic\"\nquick_acks = 16", "but acks = \"quic\""),
        ("cc = \"dctcp\"", "choose one that does not"),
    ];
    for (line, advice) in refused {
        let cc = if line.starts_with("cc") { "" } else { "cc = \"cubic\"\n" };
        let flow = format!("{cc}{line}\npath = \"a\"\nworkload = {{ file = \"1 MB\" }}");
        let text = format!("{LINKS}[[flow]]\nname = \"f\"\n{flow}");
        let folder = folder_with("a.toml", &text);
        let said = complaint(folder.path(), "run a.toml --on quic --out out", 2);
        assert!(said.contains("flow \"f\"") && said.contains(advice), "{line}: {said}");
        assert!(!folder.path().join("out").exists());
    }
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        two_links_over_quic_are_both_used,
        what_cannot_run_over_quic_is_refused;
        nightly:
        a_page_over_quic_loads,
        a_file_over_quic_takes_as_long_as_simulated
    ]
}
