//! Rows of the ground compared with those of an observer of the sending host, to which the kernel
//! reports the same connections when their sockets are destroyed.

use crate::host::scenario;
use knee_host::{HostError, Namespace};
use knee_kernel::{Control, run};
use knee_live::{Groups, LiveError, Observer, Reports, Settings};
use knee_record::{ConnectionRecord, read_connections};
use knee_trials::{Pauses, Skipped, turn};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Number of transfers; `KNEE_TRANSFERS` sets another.
const TRANSFERS: u64 = 100;
/// Mean time between two arrivals of each of the two mixes.
const INTERVAL_MS: u64 = 40;
/// Addresses of the sending and the receiving host on the first path (`knee_testbed::address`).
const SENDER: &str = "10.64.0.1:0";
const RECEIVER: &str = "10.64.0.2:0";

/// Opens the namespace of the sending host of the run in this process, once there is one.
#[expect(clippy::disallowed_methods, reason = "the run goes on as time passes")]
fn sender(is_over: &AtomicBool) -> Option<Namespace> {
    while !is_over.load(Ordering::Relaxed) {
        for file in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            let names_one = std::fs::read_link(file.path())
                .is_ok_and(|name| name.to_string_lossy().starts_with("net:["));
            // The file may be closed by now.
            let Some(namespace) = names_one.then(|| Namespace::open(&file.path()).ok()).flatten()
            else {
                continue;
            };
            // A namespace without any address yet permits both.
            let is_sender = || {
                let permits = |address| TcpListener::bind(address).is_ok();
                Ok::<_, HostError>(permits(SENDER) && !permits(RECEIVER))
            };
            if namespace.within(is_sender).unwrap_or(false) {
                return Some(namespace);
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

/// Observes the sending host until the run is over, and returns all rows.
fn observed(folder: &Path, is_over: &AtomicBool) -> Vec<ConnectionRecord> {
    let settings = Settings {
        reports: Reports::SockDiag,
        directory: folder.to_path_buf(),
        groups: Groups::default(),
        sample_one_of: 1,
        assignment: None,
        keep_addresses: false,
        bytes_max: u64::MAX,
    };
    let Some(namespace) = sender(is_over) else { return Vec::new() };
    let observed = namespace.within(|| -> Result<_, LiveError> {
        let mut observer = Observer::begin(settings)?;
        while !is_over.load(Ordering::Relaxed) {
            observer.step()?;
        }
        // Sockets are destroyed a little after they are closed.
        for _ in 0..5 {
            observer.step()?;
        }
        observer.finish()
    });
    let observed = observed.unwrap();
    assert_eq!(observed.lost, 0, "{observed:?}");
    let files = observed.written.files.iter();
    let files = files.filter(|file| file.to_string_lossy().contains("connections-"));
    files.flat_map(|file| read_connections(file).unwrap()).collect()
}

/// Payload acknowledged, sent and sent again, and the smallest RTT.
fn counts(row: &ConnectionRecord) -> [Option<u64>; 4] {
    [row.acked_bytes, row.sent_bytes, row.retransmitted_bytes, row.rtt_min_ns]
}

/// Two mixes over a lossy link with a short queue: each transfer that was completed has the same
/// counts in both.
#[expect(clippy::print_stdout, reason = "the command of CONTRIBUTING.md shows how many")]
pub fn an_observer_sees_the_same() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let wanted = std::env::var("KNEE_TRANSFERS").ok();
    let transfers = wanted.map_or(TRANSFERS, |number| number.parse().unwrap());
    // Twice as long as the arrivals take, so that nearly all end.
    let seconds = transfers * INTERVAL_MS / 1000 + 3;
    let mix = |cc: &str| {
        format!(
            "[[flow]]\nname = \"{cc}\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"{INTERVAL_MS} ms\", count = {}, \
             sizes = {{ median = \"20 kB\", sigma = 1.5, max = \"1 MB\" }} }} }}\n",
            transfers / 2
        )
    };
    let text = format!(
        "name = \"test\"\nduration = \"{seconds} s\"\n\
         [link.bottleneck]\nrate = \"40 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"0.5 BDP\"\n\
         loss = \"1 %\"\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"10 ms\"\n{}{}",
        mix("cubic"),
        mix("reno")
    );
    let folder = tempfile::tempdir().unwrap();
    let is_over = AtomicBool::new(false);
    // Whether the host is quiet does not matter: both count the same connections.
    let (records, rows) = thread::scope(|scope| {
        let observer = scope.spawn(|| observed(folder.path(), &is_over));
        let run = run(&scenario(&text), &Control::default());
        is_over.store(true, Ordering::Relaxed);
        let rows = observer.join().unwrap();
        (run.unwrap_or_else(|error| panic!("{error}")).0, rows)
    });
    let ports = |row: &ConnectionRecord| (row.local_port.unwrap(), row.remote_port.unwrap());
    let seen: BTreeMap<_, _> = rows.iter().map(|row| (ports(row), row)).collect();
    assert_eq!(seen.len(), rows.len(), "a port was used twice");
    let completed: Vec<_> =
        records.connections.iter().filter(|row| row.completion_ns.is_some()).collect();
    assert!(completed.len() as u64 * 10 >= transfers * 9, "{} of {transfers}", completed.len());
    let differing: Vec<String> = completed
        .iter()
        .filter(|row| seen.get(&ports(row)).map(|one| counts(one)) != Some(counts(row)))
        .map(|row| format!("{:?} {:?}", counts(row), seen.get(&ports(row)).map(|one| counts(one))))
        .collect();
    assert!(differing.is_empty(), "{} of {}: {differing:?}", differing.len(), completed.len());
    let again = completed.iter().filter(|row| row.retransmitted_bytes > Some(0)).count();
    assert!(again > 0, "nothing was lost");
    println!("{} transfers, {again} of them with retransmissions, are the same", completed.len());
    Ok(())
}
