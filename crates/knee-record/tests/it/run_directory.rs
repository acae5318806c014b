//! A run directory is read back as written, and an incomplete one is refused with a reason.

use crate::common::{SECOND, flow, records, with_link};
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_schema::{Field, Schema};
use knee_record::{
    ClassSample, ConnectionRecord, Connections, ControllerSource, Cost, Error, FlowRecord,
    FlowSample, LinkSample, Manifest, Meter, ObjectRecord, PathRecord, Rates, Records, Summary,
    intern_phase, read_manifest, read_run, write_run,
};
use knee_scenario::{InputFile, Scenario};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// The example lacks rates, which are in no file.
fn example() -> Records {
    let records = records(&[flow("a", 0, |t| 1e6 * t), flow("b", 0, |t| 5e5 * t)]);
    let records = Records { rates: Rates::default(), ..records };
    with_link(records, |t| LinkSample { queue_bytes: t as u64, ..LinkSample::default() })
}

fn scenario() -> Scenario {
    Scenario {
        name: "Example".to_string(),
        seed: 7,
        resolved: "name = \"Example\"\n".to_string(),
        ..Scenario::default()
    }
}

fn save(dir: &Path, records: &Records) -> Result<(), Error> {
    let scenario = scenario();
    let summary = Summary::new(&scenario, "sim", records);
    let inputs: [(&str, &[u8]); 1] = [("example.toml", b"abc")];
    let usage = Meter::start().stop();
    let manifest = Manifest::new(&summary, records, vec!["knee".into()], &inputs, &usage);
    write_run(dir, &manifest, &scenario, records, &summary)
}

#[test]
fn a_run_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new/run");
    let records = example();
    save(&dir, &records).unwrap();
    let run = read_run(&dir).unwrap();
    assert_eq!(run.records, records);
    assert_eq!(run.scenario, scenario().resolved);
    assert_eq!(run.summary, Summary::new(&scenario(), "sim", &records));
    assert_eq!((run.manifest.seed, run.manifest.ground.as_str()), (7, "sim"));
    assert!(run.manifest.inputs["example.toml"].starts_with("ba7816bf"));
    let mut names: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    let expected = [
        "connections.parquet",
        "flows.parquet",
        "links.parquet",
        "manifest.json",
        "samples.parquet",
        "scenario.toml",
        "summary.json",
    ];
    assert_eq!(names, expected);
}

#[test]
fn files_that_the_scenario_names_stand_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = InputFile {
        name: "inputs/lte.down".to_string(),
        written: "../traces/lte.down".to_string(),
        bytes: b"1\n2\n".as_slice().into(),
        read_as: String::new(),
    };
    let scenario = Scenario { files: vec![trace], ..scenario() };
    let records = example();
    let summary = Summary::new(&scenario, "sim", &records);
    let manifest = Manifest::new(&summary, &records, vec![], &[], &Meter::start().stop());
    write_run(folder.path(), &manifest, &scenario, &records, &summary).unwrap();
    assert_eq!(fs::read(folder.path().join("inputs/lte.down")).unwrap(), b"1\n2\n");
}

/// Other tools rewrite a text column with a type of their own.
#[test]
fn text_comes_back_from_any_type_of_strings() {
    let folder = tempfile::tempdir().unwrap();
    let records = example();
    save(folder.path(), &records).unwrap();
    let path = folder.path().join("flows.parquet");
    let file = File::open(&path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let metadata = builder.metadata().file_metadata().key_value_metadata().cloned();
    let batch = builder.build().unwrap().next().unwrap().unwrap();
    let names = ["a", "b"];
    let gaps: Int8Array = vec![Some(1), Some(0)].into();
    let types: [ArrayRef; 5] = [
        Arc::new(StringArray::from_iter_values(names)),
        Arc::new(LargeStringArray::from_iter_values(names)),
        Arc::new(StringViewArray::from_iter_values(names)),
        Arc::new(DictionaryArray::new(gaps, Arc::new(StringArray::from(vec!["b", "a"])))),
        Arc::new(DictionaryArray::<UInt32Type>::from_iter(names)),
    ];
    let at = batch.schema().index_of("name").unwrap();
    for array in types {
        let mut columns = batch.columns().to_vec();
        let mut fields = batch.schema().fields().to_vec();
        fields[at] = Arc::new(Field::new("name", array.data_type().clone(), true));
        columns[at] = array;
        let schema = Arc::new(Schema::new(fields));
        let properties =
            WriterProperties::builder().set_key_value_metadata(metadata.as_ref().map(|pairs| {
                pairs.iter().filter(|pair| pair.key != "ARROW:schema").cloned().collect()
            }));
        let file = File::create(&path).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties.build())).unwrap();
        writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        writer.close().unwrap();
        assert_eq!(read_run(folder.path()).unwrap().records, records);
    }
}

/// Returns records with one row in each table that not every run has.
fn with_everything() -> Records {
    let path = PathRecord { name: "lte".to_string(), path: 1, backup: true, ..Default::default() };
    let object = ObjectRecord { name: "html".to_string(), ..Default::default() };
    Records {
        path_samples: [FlowSample { path: 1, time_ns: SECOND, ..Default::default() }]
            .into_iter()
            .collect(),
        classes: [ClassSample { class: 1, name: "classic", time_ns: SECOND, ..Default::default() }]
            .into_iter()
            .collect(),
        paths: vec![path],
        objects: vec![object],
        ..example()
    }
}

const NOT_ALWAYS: [&str; 4] =
    ["classes.parquet", "paths.parquet", "path-samples.parquet", "objects.parquet"];

/// A run without paths and objects that replaces a run with them leaves none of their files,
/// neither in the folder nor in the manifest.
#[test]
fn tables_without_rows_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &with_everything()).unwrap();
    let run = read_run(folder.path()).unwrap();
    assert_eq!(run.records, with_everything());
    for name in NOT_ALWAYS {
        assert!(folder.path().join(name).exists(), "{name}");
        assert!(run.manifest.schemas.contains_key(name), "{name}");
    }
    save(folder.path(), &example()).unwrap();
    let run = read_run(folder.path()).unwrap();
    assert_eq!(run.records, example());
    for name in NOT_ALWAYS {
        assert!(!folder.path().join(name).exists(), "{name}");
        assert!(!run.manifest.schemas.contains_key(name), "{name}");
    }
}

/// A run of the previous version, made with the release that wrote such runs.
#[test]
fn an_older_run_is_read() {
    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/version-1");
    let run = read_run(&older).unwrap();
    assert_eq!(run.manifest.schemas["flows.parquet"], "knee-flows/1");
    assert_eq!(run.summary.flows.len(), run.records.flows.len());
    let flow = &run.records.flows[0];
    assert!(flow.delivered_bytes > 0 && flow.cc == "bbr", "{flow:?}");
    assert_eq!((flow.scheduler.as_str(), flow.suspicions), ("", 0));
    assert!(run.records.samples.iter().all(|row| row.reassembly_bytes == 0));
}

/// All files except the manifest, which contains times.
#[test]
fn the_same_records_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    save(&first, &example()).unwrap();
    save(&second, &example()).unwrap();
    for name in
        ["flows.parquet", "connections.parquet", "samples.parquet", "links.parquet", "summary.json"]
    {
        let (one, other) = (fs::read(first.join(name)), fs::read(second.join(name)));
        assert_eq!(one.unwrap(), other.unwrap(), "{name}");
    }
}

#[test]
fn a_run_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &example()).unwrap();
    fs::write(folder.path().join("report.html"), "kept").unwrap();
    let shorter = Records { interrupted: true, end_ns: SECOND, ..example() };
    save(folder.path(), &shorter).unwrap();
    let run = read_run(folder.path()).unwrap();
    assert_eq!(run.records, shorter);
    assert!(run.manifest.interrupted);
    assert_eq!(run.summary.verdict.to_string(), "degraded");
    assert!(folder.path().join("report.html").exists());
}

#[test]
fn a_folder_that_is_no_run_is_told_from_a_broken_one() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert!(matches!(read_run(dir), Err(Error::NotARun { .. })));
    assert!(matches!(read_run(&dir.join("none")), Err(Error::NotARun { .. })));
    save(dir, &example()).unwrap();
    fs::remove_file(dir.join("links.parquet")).unwrap();
    let missing = read_run(dir).unwrap_err();
    assert!(matches!(&missing, Error::Missing { path } if path.ends_with("links.parquet")));
    fs::remove_file(dir.join("manifest.json")).unwrap();
    assert!(matches!(read_manifest(dir), Err(Error::Unfinished { .. })));
}

#[test]
fn another_version_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifest.json");
    fs::write(&path, "{\"schema\": \"knee-manifest/9\"}").unwrap();
    let error = read_run(folder.path()).unwrap_err().to_string();
    assert!(error.contains("knee-manifest/9") && error.contains("knee-manifest/1"), "{error}");
}

#[test]
fn a_table_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &example()).unwrap();
    fs::copy(folder.path().join("flows.parquet"), folder.path().join("samples.parquet")).unwrap();
    let error = read_run(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Schema { .. }), "{error}");
}

#[test]
fn damage_is_told_with_the_file() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &example()).unwrap();
    let path = folder.path().join("samples.parquet");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&path, bytes).unwrap();
    let error = read_run(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    assert!(error.to_string().contains("samples.parquet"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = save(&file.join("run"), &example()).unwrap_err();
    assert!(error.to_string().contains("file/run"), "{error}");
}

/// A directory in the way of a file cannot be removed. (A full disk is tested in
/// `knee/tests/host.rs`.)
#[test]
fn a_file_that_cannot_be_made_is_one_clear_error_and_leaves_no_run() {
    for name in ["samples.parquet", "flows.parquet", "summary.json", "manifest.json"] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(format!("{name}.part"))).unwrap();
        let error = save(folder.path(), &example()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert!(matches!(read_run(folder.path()), Err(Error::Unfinished { .. })));
    }
}

/// An existing entry under a temporary file name is not written to: it could be a link.
#[cfg(unix)]
#[test]
fn links_in_the_way_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, run) = (folder.path().join("victim"), folder.path().join("run"));
    fs::write(&victim, "precious").unwrap();
    fs::create_dir(&run).unwrap();
    for name in ["samples.parquet", "summary.json.part", "manifest.json.part"] {
        std::os::unix::fs::symlink(&victim, run.join(name)).unwrap();
    }
    fs::hard_link(&victim, run.join("links.parquet.part")).unwrap();
    save(&run, &example()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(read_run(&run).is_ok());
}

/// Counts up to the largest value that a column holds.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..1000u64, 0..=i64::MAX as u64]
}

prop_compose! {
    fn sample()(
        flow in 0..3u32, path in any::<u16>(), numbers in prop::collection::vec(count(), 16),
        phase in prop::sample::select(vec!["", "startup", "probe_bw_up"]),
        shrink in prop::option::of(count()),
    ) -> FlowSample {
        FlowSample {
            flow, path, time_ns: numbers[0], delivered_bytes: numbers[1], sent_bytes: numbers[2],
            retransmitted_bytes: numbers[3], sent_packets: numbers[4], lost_bytes: numbers[5],
            in_flight_bytes: numbers[6], window_bytes: numbers[7], pacing_rate_bps: numbers[8],
            rtt_ns: numbers[9], srtt_ns: numbers[10], bandwidth_estimate_bps: numbers[11],
            min_rtt_estimate_ns: numbers[12], slow_start_threshold_bytes: numbers[13],
            reassembly_bytes: numbers[14], path_rtt_ns: numbers[15], shrink_bytes: shrink, phase,
        }
    }
}

prop_compose! {
    fn link_sample()(link in 0..2u32, numbers in prop::collection::vec(count(), 11)) -> LinkSample {
        LinkSample {
            link, time_ns: numbers[0], queue_bytes: numbers[1], queue_packets: numbers[2],
            queue_delay_ns: numbers[3], departed_bytes: numbers[4], capacity_bytes: numbers[5],
            entered_packets: numbers[6], dropped_packets: numbers[7], lost_packets: numbers[8],
            marked_packets: numbers[9], used_bytes: numbers[10],
        }
    }
}

prop_compose! {
    fn class_sample()(
        link in 0..2u32, class in 0..2u16, numbers in prop::collection::vec(count(), 7),
    ) -> ClassSample {
        ClassSample {
            link, class, name: knee_link::CLASS_NAMES[usize::from(class)], time_ns: numbers[0],
            queue_bytes: numbers[1], queue_packets: numbers[2], queue_delay_ns: numbers[3],
            departed_bytes: numbers[4], dropped_packets: numbers[5], marked_packets: numbers[6],
        }
    }
}

prop_compose! {
    fn flow_record()(
        flow in any::<u32>(), index in any::<u32>(), texts in prop::collection::vec("[a-zé\"-]{0,8}", 4),
        numbers in prop::collection::vec(count(), 17),
        at_receiver in prop::collection::vec(prop::option::of(count()), 3), completion_ns in prop::option::of(count()),
        perfect_completion_ns in prop::option::of(count()),
        header_overhead in 1.0..2.0_f64,
    ) -> FlowRecord {
        FlowRecord {
            flow, index, name: texts[0].clone(), cc: texts[1].clone(), path: texts[2].clone(),
            start_ns: numbers[0], end_ns: numbers[1], size_bytes: numbers[2], completion_ns,
            delivered_bytes: numbers[3], delivered_packets: numbers[4], sent_bytes: numbers[5],
            retransmitted_bytes: numbers[6], rtt_min_ns: numbers[7], rtt_max_ns: numbers[8],
            base_rtt_ns: numbers[9], path_rate_bps: numbers[10], header_overhead,
            timeouts: numbers[11], recoveries: numbers[12], spurious_recoveries: numbers[13],
            marked_bytes: numbers[14], scheduler: texts[3].clone(), reinjected_bytes: numbers[15],
            duplicate_bytes: at_receiver[0], head_of_line_ns: at_receiver[1],
            reassembly_peak_bytes: at_receiver[2], suspicions: numbers[16], perfect_completion_ns,
        }
    }
}

prop_compose! {
    fn path_record()(
        flow in 0..3u32, path in any::<u16>(), name in "[a-z]{0,8}", backup in any::<bool>(),
        numbers in prop::collection::vec(count(), 10), finished_ns in prop::option::of(count()),
    ) -> PathRecord {
        PathRecord {
            flow, path, name, backup, sent_bytes: numbers[0], retransmitted_bytes: numbers[1],
            delivered_bytes: numbers[2], rtt_min_ns: numbers[3], rtt_max_ns: numbers[4],
            base_rtt_ns: numbers[5], one_way_delay_ns: numbers[6], rate_bps: numbers[7], finished_ns,
            timeouts: numbers[8], recoveries: numbers[9],
        }
    }
}

prop_compose! {
    fn object_record()(
        flow in 0..3u32, number in any::<u32>(), connection in any::<u32>(), name in "[a-z 0-9]{0,12}",
        numbers in prop::collection::vec(count(), 5), quality in prop::option::of(any::<u32>()),
        times in prop::collection::vec(prop::option::of(count()), 2),
    ) -> ObjectRecord {
        ObjectRecord {
            flow, number, name, connection, size_bytes: numbers[0], requested_ns: numbers[1],
            first_byte_ns: times[0], completed_ns: times[1], quality, bitrate_bps: numbers[2],
            buffer_ns: numbers[3], stalled_ns: numbers[4],
        }
    }
}

/// A number or none; zero is a valid number.
fn known() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![Just(0), count()])
}

prop_compose! {
    fn connection_record()(
        connection in count(), flow in prop::option::of(0..3u32), end_ns in count(),
        texts in prop::collection::vec("[a-z0-9:/.]{0,8}", 4),
        workload in prop::sample::select(vec!["", "bulk", "mix"]),
        known in prop::collection::vec(known(), 27), app_limited in any::<Option<bool>>(),
        ports in any::<[Option<u16>; 2]>(), weight in prop::option::of(-1e9..1e9),
        source in prop::sample::select(vec![
            ControllerSource::Scenario, ControllerSource::Policy, ControllerSource::Unknown,
        ]),
    ) -> ConnectionRecord {
        ConnectionRecord {
            connection, flow, workload: workload.into(), start_ns: known[0], end_ns,
            completion_ns: known[1], size_bytes: known[2], delivered_bytes: known[3],
            acked_bytes: known[4], received_bytes: known[5], sent_bytes: known[6],
            retransmitted_bytes: known[7], sent_packets: known[8],
            retransmitted_packets: known[9], delivered_packets: known[10],
            marked_packets: known[11], rtt_min_ns: known[12], srtt_ns: known[13],
            rttvar_ns: known[14], delivery_rate_bps: known[15], app_limited,
            window_bytes: known[16], slow_start_threshold_bytes: known[17],
            pacing_rate_bps: known[18], busy_ns: known[19], receive_limited_ns: known[20],
            send_buffer_limited_ns: known[21], timeouts: known[22], dsacks: known[23],
            reorderings: known[24], mss_bytes: known[25], cc: texts[0].as_str().into(),
            cc_source: source, prefix: texts[1].as_str().into(), local_port: ports[0],
            remote_port: ports[1], group: texts[2].as_str().into(), block: known[26],
            arm: texts[3].as_str().into(), weight,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_records_come_back(
        flows in prop::collection::vec(flow_record(), 0..5),
        samples in prop::collection::vec(sample(), 0..40),
        links in prop::collection::vec(link_sample(), 0..40),
        paths in prop::collection::vec(path_record(), 0..5),
        path_samples in prop::collection::vec(sample(), 0..10),
        classes in prop::collection::vec(class_sample(), 0..10),
        objects in prop::collection::vec(object_record(), 0..10),
        connections in prop::collection::vec(connection_record(), 0..10),
        end_ns in any::<u64>(), interrupted in any::<bool>(), events in any::<u64>(),
        epoch_unix_ns in any::<u64>(),
    ) {
        let mut kept = Connections::default();
        connections.iter().for_each(|row| kept.push(row));
        let Connections { rows: connections, transfers } = kept;
        let (samples, path_samples) = (samples.into_iter().collect(), path_samples.into_iter().collect());
        let (links, classes) = (links.into_iter().collect(), classes.into_iter().collect());
        let records = Records {
            flows, samples, links, classes, link_names: vec!["up".to_string(), "down".to_string()], paths,
            path_samples, objects, connections, transfers, epoch_unix_ns, end_ns, interrupted, cost: Cost { events, data_packets: 3 },
            rates: Rates::default(),
        };
        let folder = tempfile::tempdir().unwrap();
        // The summary does not matter here, and random counters overflow.
        let summary = Summary::new(&scenario(), "sim", &Records::default());
        let manifest = Manifest::new(&summary, &records, vec![], &[], &Meter::start().stop());
        write_run(folder.path(), &manifest, &scenario(), &records, &summary).unwrap();
        prop_assert_eq!(read_run(folder.path()).unwrap().records, records);
    }
}

/// Several batches, so that their dictionaries differ; each flow has no more rows than stay in
/// memory.
#[test]
fn a_long_table_comes_back() {
    let mut records = example();
    let names: Vec<_> = (0..40).map(|n| intern_phase(&format!("phase_{n}")).unwrap()).collect();
    records.samples = (0..200_000)
        .map(|row| FlowSample {
            flow: (row % 4) as u32,
            time_ns: row / 4,
            phase: names[(row / 7_000) as usize],
            ..FlowSample::default()
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), &records).unwrap();
    assert!(read_run(folder.path()).unwrap().records == records);
}
