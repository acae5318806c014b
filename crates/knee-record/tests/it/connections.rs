//! The table of connections: one schema for every ground, rows written as they arrive, and run
//! directories of versions that only had transfers.

use knee_record::{
    ConnectionRecord, Connections, FlowSummary, Manifest, Meter, Recording, Records, SampleSink,
    Summary, read_run,
};
use knee_scenario::{Embedded, Scenario, Source};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A run of the previous version, with the summary that it wrote itself.
#[test]
fn a_run_with_transfers_alone_is_read() {
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/with-transfers");
    let run = read_run(&older).unwrap();
    assert_eq!(run.manifest.schemas["transfers.parquet"], "knee-transfers/1");
    // The number of rows and the first row, as read by pyarrow.
    assert_eq!((run.records.transfers.len(), run.records.connections.len()), (40, 40));
    let (transfer, row) = (&run.records.transfers[0], &run.records.connections[0]);
    assert_eq!((transfer.start_ns, transfer.size_bytes), (400_517_362, 28_006));
    assert_eq!((row.completion_ns, row.end_ns), (Some(132_484_800), 533_002_162));
    assert_eq!((row.acked_bytes, row.busy_ns, row.timeouts), (None, None, None));

    let source = Source { name: "scenario.toml", loader: &Embedded(&[]) };
    let scenario = knee_scenario::parse(&run.scenario, &source, &[]).unwrap();
    let again = Summary::new(&scenario, "sim", &run.records.with_rates(&scenario));
    assert!(again.flows[0].transfers.as_ref().is_some_and(|classes| classes[0].finished > 0));
    // Its smallest and largest size classes were finer; the other classes agree.
    let same = |summary: &Summary| -> Vec<_> {
        let classes = summary.flows[0].transfers.clone().unwrap().into_iter();
        let names = ["all", "100 kB to 1 MB", "1 to 3 MB", "3 to 30 MB"];
        classes.filter(|class| names.contains(&class.name.as_str())).collect()
    };
    assert_eq!(same(&again), same(&run.summary));
    let counted = |summary: &Summary| -> usize {
        let classes = summary.flows[0].transfers.as_ref().unwrap().iter().skip(1);
        classes.map(|class| class.finished + class.cut_off).sum()
    };
    assert_eq!(counted(&again), counted(&run.summary));
    let but_for_classes = |summary: &Summary| -> Vec<_> {
        let flows = summary.flows.iter().cloned();
        flows.map(|flow| FlowSummary { transfers: None, ..flow }).collect()
    };
    assert_eq!(but_for_classes(&again), but_for_classes(&run.summary));
}

fn write(dir: &Path, ground: &str, rows: impl Iterator<Item = ConnectionRecord>) -> PathBuf {
    let scenario = Scenario { resolved: "seed = 1\n".to_string(), ..Scenario::default() };
    let mut recording = Recording::begin(dir, &scenario).unwrap();
    let mut kept = Connections::default();
    for row in rows {
        recording.connection(&row).unwrap();
        kept.push(&row);
    }
    let Connections { rows: connections, transfers } = kept;
    let records = Records { connections, transfers, epoch_unix_ns: 17, ..Records::default() };
    let summary = Summary::new(&scenario, ground, &Records::default());
    let manifest = Manifest::new(&summary, &records, vec![], &[], &Meter::start().stop());
    recording.finish(&manifest, &scenario, &records, &summary).unwrap();
    dir.join("connections.parquet")
}

fn transfer(number: u64) -> ConnectionRecord {
    ConnectionRecord {
        connection: number,
        flow: Some(0),
        workload: "mix".into(),
        start_ns: Some(number),
        end_ns: number + 5,
        completion_ns: Some(5),
        size_bytes: Some(1000),
        ..ConnectionRecord::default()
    }
}

/// The file has every row; memory has 65,536 of them, and what measures need of every transfer.
#[test]
fn rows_beyond_a_bound_are_in_the_file_alone() {
    const ROWS: u64 = 70_000;
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "sim", (0..ROWS).map(transfer));
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), ROWS as i64);
    // A row group needs the memory of some ten thousand rows at most.
    assert!(reader.metadata().row_groups().iter().all(|group| group.num_rows() <= 1 << 14));
    let records = read_run(folder.path()).unwrap().records;
    assert_eq!((records.connections.len(), records.transfers.len()), (65_536, ROWS as usize));
    assert_eq!(u64::from(records.transfers[ROWS as usize - 1].number), ROWS - 1);
}

/// A row of the simulator, which fills columns that a live host leaves null, and a row of a live
/// host, which does the opposite, have the same schema.
#[test]
fn grounds_share_a_schema() {
    let folder = tempfile::tempdir().unwrap();
    let live = ConnectionRecord {
        connection: 1 << 62,
        end_ns: 9,
        prefix: "2001:db8::/48".into(),
        local_port: Some(443),
        app_limited: Some(false),
        block: Some(0),
        arm: "B".into(),
        weight: Some(100.0),
        ..ConnectionRecord::default()
    };
    let files = [
        write(&folder.path().join("sim"), "sim", std::iter::once(transfer(1))),
        write(&folder.path().join("live"), "live", std::iter::once(live.clone())),
    ];
    let [sim, other] = files
        .map(|file| ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap());
    assert_eq!(sim.schema().fields(), other.schema().fields());
    let note = |key: &str| {
        let pairs = other.metadata().file_metadata().key_value_metadata().unwrap();
        pairs.iter().find(|pair| pair.key == key).unwrap().value.clone().unwrap()
    };
    assert_eq!(note("knee.schema"), "knee-connections/1");
    assert_eq!((note("knee.ground"), note("knee.epoch_unix_ns")), ("live".into(), "17".into()));
    let records = read_run(&folder.path().join("live")).unwrap().records;
    assert_eq!((records.connections, records.transfers.len()), (vec![live], 0));
    assert_eq!(records.epoch_unix_ns, 17);
}
