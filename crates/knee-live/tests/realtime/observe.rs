//! Connections over the real kernel, in a separate namespace: every end is reported or counted as
//! lost, and rows match what the endpoints know.

#![allow(clippy::disallowed_methods, reason = "the host is observed as time passes")]

use knee_host::{Namespace, Routing};
use knee_live::{Cell, Group, Groups, LiveError, Observed, Observer, Reports, Settings};
use knee_record::ConnectionRecord;
use knee_trials::{Pauses, Skipped, Trial, trials, turn};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

fn settings(directory: &Path) -> Settings {
    let groups = ["here=127.0.0.0/8", "six=::1/128"].map(|text| text.parse::<Group>().unwrap());
    Settings {
        reports: Reports::SockDiag,
        directory: directory.to_path_buf(),
        groups: Groups::new(groups.to_vec()).unwrap(),
        sample_one_of: 1,
        assignment: None,
        keep_addresses: false,
        bytes_max: 1 << 30,
    }
}

/// Observes a namespace with a loopback device during `work`.
fn observed<T: Send>(settings: Settings, work: impl FnOnce() -> T + Send) -> (T, Observed) {
    let namespace = Namespace::create().unwrap();
    namespace
        .within(|| -> Result<_, LiveError> {
            Routing::open()?.bring_up_loopback()?;
            let mut observer = Observer::begin(settings)?;
            let (done, ended) = channel::<()>();
            thread::scope(|scope| {
                let worker = scope.spawn(|| {
                    let result = work();
                    drop(done);
                    result
                });
                while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    observer.step()?;
                }
                let result = worker.join().unwrap();
                // Sockets destroyed after their descriptor are reported a little later.
                let end = Instant::now() + Duration::from_secs(1);
                while Instant::now() < end {
                    observer.step()?;
                }
                Ok((result, observer.finish()?))
            })
        })
        .unwrap()
}

/// Each connection sends its own number of bytes from the listening end; returns them by port of
/// the other end.
fn transfers(address: &str, sizes: &[usize]) -> BTreeMap<u16, u64> {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut sent = BTreeMap::new();
            for size in sizes {
                let (mut socket, from) = listener.accept().unwrap();
                let mut asked = [0; 10];
                socket.read_exact(&mut asked).unwrap();
                socket.write_all(&vec![7; *size]).unwrap();
                socket.shutdown(Shutdown::Write).unwrap();
                // Until the other end has closed, and so everything is acknowledged.
                assert_eq!(socket.read(&mut asked).unwrap(), 0);
                sent.insert(from.port(), *size as u64);
            }
            sent
        });
        for size in sizes {
            let mut socket = TcpStream::connect(to).unwrap();
            socket.write_all(b"0123456789").unwrap();
            let mut all = Vec::new();
            socket.read_to_end(&mut all).unwrap();
            assert_eq!(all.len(), *size);
        }
        server.join().unwrap()
    })
}

fn sizes(count: usize) -> Vec<usize> {
    (0..count).map(|number| 1 + number * 7919 % 200_000).collect()
}

/// Received payload: the kernel counts the other end's FIN as a byte.
fn received(row: &ConnectionRecord) -> u64 {
    row.received_bytes.unwrap() - 1
}

/// Every fourth receiver goes away before it has read everything, as one whose transfer has stalled
/// does: these are counted as unfinished, and no others.
fn connections_that_leave_data_undelivered_are_counted() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let ((), observed) = observed(settings(folder.path()), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for number in 0..80 {
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            far.set_nonblocking(true).unwrap();
            // Until no more fits into the buffers.
            let mut written = 0;
            while let Ok(part) = far.write(&[7; 65_536]) {
                written += part;
            }
            if number % 4 != 0 {
                drop(far);
                let mut all = Vec::new();
                near.read_to_end(&mut all).unwrap();
                assert_eq!(all.len(), written);
                continue;
            }
            // Data that was not read: the kernel resets the connection.
            drop(near);
            thread::sleep(Duration::from_millis(20));
        }
    });
    let unfinished: u64 = observed.cells.iter().filter_map(|(_, cell)| cell.unfinished).sum();
    assert_eq!(unfinished, 20, "{observed:?}");
    Ok(())
}

/// Over IPv4 and IPv6.
fn every_row_is_right() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let (sent, observed) = observed(settings(folder.path()), || {
        [transfers("127.0.0.1", &sizes(200)), transfers("::1", &sizes(50))]
    });
    // Two ends of each, and the two listening sockets.
    assert_eq!(observed.reports, 502, "{observed:?}");
    assert_eq!((observed.without_connection, observed.lost), (2, 0));
    assert!(observed.is_valid());
    let file = observed
        .written
        .files
        .iter()
        .find(|file| file.file_name().unwrap().to_string_lossy().starts_with("connections-"));
    let rows = knee_record::read_connections(file.unwrap()).unwrap();
    assert_eq!(rows.len() as u64, observed.rows);
    // A host that pauses has the kernel probe for a loss, over loopback too.
    let again = rows.iter().filter(|row| row.retransmitted_bytes != Some(0)).count();
    assert!(again < rows.len() / 20, "{again} of {} rows with retransmissions", rows.len());
    let mut ends: BTreeMap<(&str, u16), u32> = BTreeMap::new();
    for row in &rows {
        let again = row.retransmitted_bytes.unwrap();
        assert!(row.rtt_min_ns.is_some() && row.weight == Some(1.0), "{row:?}");
        let (group, sent) = match &*row.prefix {
            "127.0.0.0/24" => ("here", &sent[0]),
            "::/48" => ("six", &sent[1]),
            other => panic!("{other}"),
        };
        assert_eq!(&*row.group, group);
        // The connecting end sent ten bytes and received the other end's data.
        let (local, remote) = (row.local_port.unwrap(), row.remote_port.unwrap());
        if let Some(size) = sent.get(&remote) {
            assert_eq!((row.acked_bytes, row.sent_bytes), (Some(*size), Some(*size + again)));
            assert_eq!(received(row), 10);
        } else {
            let size = sent[&local];
            assert_eq!((row.acked_bytes, received(row)), (Some(10), size));
        }
        let client = if sent.contains_key(&remote) { remote } else { local };
        *ends.entry((group, client)).or_default() += 1;
    }
    assert!(ends.len() == 250 && ends.values().all(|ends| *ends == 2), "{ends:?}");
    Ok(())
}

/// Aggregates cover all data sent, with or without a row.
fn aggregates_have_all() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let sampled = Settings { sample_one_of: 10, ..settings(folder.path()) };
    let (sent, observed) = observed(sampled, || transfers("127.0.0.1", &sizes(300)));
    let all: u64 = sent.values().sum();
    let sum = |get: fn(&Cell) -> u64| observed.cells.iter().map(|(_, cell)| get(cell)).sum::<u64>();
    assert_eq!(sum(|cell| cell.acked_bytes), all + 10 * 300);
    assert_eq!(sum(|cell| cell.connections), 600);
    assert!((20..120).contains(&observed.rows), "{}", observed.rows);
    // By size: below 100 kB, which includes the requests, and above.
    let below = sent.values().filter(|size| **size < 100_000).count() as u64;
    for (class, count) in [(0, below + 300), (1, 300 - below)] {
        let of_class = observed.cells.iter().filter(|(kind, _)| kind.class == Some(class));
        assert_eq!(of_class.map(|(_, cell)| cell.connections).sum::<u64>(), count);
    }
    Ok(())
}

/// The controller is known for a connection that is alive at a dump, and unknown for one that lives
/// between two dumps.
fn controllers_come_from_dumps() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    let default = knee_host::sysctl("net.ipv4.tcp_congestion_control").unwrap();
    let (_, observed) = observed(settings(folder.path()), || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _kept = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _other = listener.accept().unwrap();
        // Until the next dump, at most ten seconds later.
        thread::sleep(std::time::Duration::from_secs(11));
    });
    let named = |name: &str| {
        let cells = observed.cells.iter().filter(|(kind, _)| &*kind.controller == name);
        cells.map(|(_, cell)| cell.connections).sum::<u64>()
    };
    assert_eq!((named(&default), named("")), (2, 0), "{observed:?}");
    Ok(())
}

/// Opens a namespace with a loopback device; `Skipped` if it may not have BPF programs.
#[cfg(feature = "bpf")]
fn with_programs(work: impl FnOnce() + Send) -> Result<(), Skipped> {
    if let Some(lack) = knee_host::bpf::lack() {
        return Err(Skipped::lack(lack));
    }
    if knee_host::cgroup_root().is_none() {
        return Err(Skipped::lack("no control groups of version 2"));
    }
    let namespace = Namespace::create().unwrap();
    let done = namespace.within(|| -> Result<(), LiveError> {
        Routing::open()?.bring_up_loopback()?;
        work();
        Ok(())
    });
    done.unwrap();
    Ok(())
}

/// The rows of an observer by cookie.
#[cfg(feature = "bpf")]
fn rows_of(observed: &Observed) -> BTreeMap<u64, ConnectionRecord> {
    let files = observed.written.files.iter();
    let files = files.filter(|file| file.to_string_lossy().contains("connections-"));
    let rows = files.flat_map(|file| knee_record::read_connections(file).unwrap());
    rows.map(|row| (row.connection, row)).collect()
}

/// Every figure of the programs' reports is that of the kernel's own report of the same socket.
/// Beside them they have the controller and the start, also of a connection that was open before,
/// as far as the kernel permits.
#[cfg(feature = "bpf")]
fn programs_report_what_the_kernel_does() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let default = knee_host::sysctl("net.ipv4.tcp_congestion_control").unwrap();
    with_programs(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let before = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let other = listener.accept().unwrap().0;
        let mut kernel = Observer::begin(settings(folders[0].path())).unwrap();
        let reports = Reports::Programs;
        let mut programs =
            Observer::begin(Settings { reports, ..settings(folders[1].path()) }).unwrap();
        // Begins the files, from which starts count.
        kernel.step().unwrap();
        programs.step().unwrap();
        drop((before, other));
        let sent = [transfers("127.0.0.1", &sizes(200)), transfers("::1", &sizes(50))];
        assert_eq!((sent[0].len(), sent[1].len()), (200, 50));
        for _ in 0..5 {
            kernel.step().unwrap();
            programs.step().unwrap();
        }
        let (kernel, programs) = (kernel.finish().unwrap(), programs.finish().unwrap());
        assert_eq!((kernel.lost, programs.lost), (0, 0));
        let (theirs, ours) = (rows_of(&kernel), rows_of(&programs));
        assert_eq!((theirs.len(), programs.unreported + ours.len() as u64), (502, 502));
        let mut unseen = 0;
        for (cookie, row) in &ours {
            let known = ConnectionRecord {
                start_ns: None,
                end_ns: theirs[cookie].end_ns,
                cc: theirs[cookie].cc.clone(),
                ..row.clone()
            };
            assert_eq!(known, theirs[cookie]);
            assert_eq!(&*row.cc, default);
            match row.start_ns {
                Some(start) => assert!(start <= row.end_ns, "{row:?}"),
                None => unseen += 1,
            }
        }
        // Both ends of the connection from before.
        assert_eq!(unseen + programs.unreported, 2);
    })
}

/// While nothing is read, more connections end than the buffer holds: reports read and those
/// counted as lost are all.
#[cfg(feature = "bpf")]
fn programs_count_what_is_lost() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let folder = tempfile::tempdir().unwrap();
    with_programs(|| {
        let reports = Reports::Programs;
        let mut programs =
            Observer::begin(Settings { reports, ..settings(folder.path()) }).unwrap();
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The buffer of 16 MiB holds fewer than 48,000 reports.
        let connections = 26_000;
        for number in 0..connections {
            let to = std::net::Ipv4Addr::new(127, 0, 1, 1 + (number % 200) as u8);
            let client = TcpStream::connect((to, port)).unwrap();
            drop((listener.accept().unwrap(), client));
        }
        for _ in 0..5 {
            programs.step().unwrap();
        }
        let observed = programs.finish().unwrap();
        assert_eq!(observed.reports + observed.lost, 2 * connections);
        assert!(observed.lost > 0 && !observed.is_valid(), "{observed:?}");
    })
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    let all = trials![
        every_row_is_right,
        aggregates_have_all,
        connections_that_leave_data_undelivered_are_counted;
        nightly: controllers_come_from_dumps
    ];
    #[cfg(feature = "bpf")]
    let all = all
        .into_iter()
        .chain(trials![programs_report_what_the_kernel_does, programs_count_what_is_lost])
        .collect();
    all
}
