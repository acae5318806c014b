//! Damaged records cause an error that names the file, never a panic.

use crate::common::{flow, records, with_link};
use knee_record::{
    ClassSample, ConnectionRecord, Error, LinkSample, Manifest, Meter, ObjectRecord, PathRecord,
    Records, Summary, read_run, write_run,
};
use knee_scenario::Scenario;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::Once;

/// Installs the program's panic hook without its exit: a panic caught while reading a table is
/// silent, any other fails the test.
fn quiet_where_expected() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !knee_record::is_decoding() {
                before(info);
            }
        }));
    });
}

fn save(dir: &Path) {
    let records = records(&[flow("a", 0, |t| 1e6 * t), flow("b", 0, |t| 5e5 * t)]);
    let records = Records {
        paths: vec![PathRecord { name: "lte".to_string(), ..Default::default() }],
        path_samples: records.samples.clone(),
        classes: std::iter::repeat_n(ClassSample { name: "classic", ..Default::default() }, 3)
            .collect(),
        objects: vec![ObjectRecord { name: "html".to_string(), ..Default::default() }; 3],
        connections: vec![ConnectionRecord { size_bytes: Some(1000), ..Default::default() }; 3],
        ..with_link(records, |t| LinkSample { queue_bytes: t as u64, ..LinkSample::default() })
    };
    let scenario = Scenario { resolved: "seed = 1\n".to_string(), ..Scenario::default() };
    let summary = Summary::new(&scenario, "sim", &records);
    let manifest = Manifest::new(&summary, &records, vec![], &[], &Meter::start().stop());
    write_run(dir, &manifest, &scenario, &records, &summary).unwrap();
}

const TABLES: [&str; 8] = [
    "classes.parquet",
    "flows.parquet",
    "samples.parquet",
    "links.parquet",
    "paths.parquet",
    "path-samples.parquet",
    "objects.parquet",
    "connections.parquet",
];

/// Returns the number of cases: 200, or `KNEE_DAMAGE_CASES`.
fn cases() -> u32 {
    let given = std::env::var("KNEE_DAMAGE_CASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(200)
}

/// Asserts that an error names the damaged file. Damage can also go unnoticed, if one number became
/// another.
fn assert_told(dir: &Path, name: &str) -> bool {
    match read_run(dir) {
        Ok(_) => false,
        Err(Error::Malformed { path, .. } | Error::Schema { path, .. }) => {
            assert_eq!(path, dir.join(name));
            true
        }
        Err(other) => panic!("{name}: {other}"),
    }
}

#[test]
fn a_table_that_is_cut_off() {
    quiet_where_expected();
    let folder = tempfile::tempdir().unwrap();
    save(folder.path());
    for name in TABLES {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(assert_told(folder.path(), name), "{name}: {length} bytes");
        }
        fs::write(&path, whole).unwrap();
    }
    assert!(read_run(folder.path()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn a_table_with_other_bytes(
        table in 0..TABLES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        // Damage to the footer is mostly detected there; this confines it to the pages.
        in_pages in any::<bool>(),
    ) {
        quiet_where_expected();
        let folder = tempfile::tempdir().unwrap();
        save(folder.path());
        let path = folder.path().join(TABLES[table]);
        let mut bytes = fs::read(&path).unwrap();
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap());
        let pages = bytes.len() - 8 - footer as usize;
        for (place, byte) in changes {
            let place = place.index(if in_pages { pages } else { bytes.len() });
            bytes[place] ^= byte;
        }
        fs::write(&path, bytes).unwrap();
        assert_told(folder.path(), TABLES[table]);
    }
}

/// All files contain random bytes.
#[test]
fn noise() {
    quiet_where_expected();
    let folder = tempfile::tempdir().unwrap();
    save(folder.path());
    let noise: Vec<u8> =
        (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for name in TABLES.into_iter().chain(["manifest.json", "summary.json", "scenario.toml"]) {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        let framed = [b"PAR1", noise.as_slice(), &[200, 2, 0, 0], b"PAR1"].concat();
        for bytes in [noise.as_slice(), &framed, b""] {
            fs::write(&path, bytes).unwrap();
            assert!(
                assert_told(folder.path(), name) || (name == "scenario.toml" && bytes.is_empty())
            );
        }
        fs::write(&path, whole).unwrap();
    }
}
