//! Planted drops: a sending host, a router and a receiver in namespaces of their own, and what the
//! observer of the sending host says about them.

#![allow(clippy::disallowed_methods, reason = "the host is observed as time passes")]

use knee_host::{Namespace, Routing, set_sysctl};
use knee_live::{Groups, LiveError, Look, Lost, OpenObserver, OpenSettings, Place};
use knee_record::read_columns;
use knee_trials::{Pauses, Skipped, Trial, tell, trials, turn};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const RECEIVER: &str = "10.9.2.1:5201";
const INTERVAL: Duration = Duration::from_millis(150);

pub fn run(line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs commands in a namespace.
pub fn within(namespace: &Namespace, lines: &[&str]) {
    let done = namespace.within(|| -> Result<(), LiveError> {
        lines.iter().for_each(|line| run(line));
        Ok(())
    });
    done.unwrap();
}

/// A sender and a receiver with a router between them.
struct World {
    sender: Namespace,
    router: Namespace,
    receiver: Namespace,
}

impl World {
    /// `offload` allows packets in the queues of its hosts that are segmented later; without it a
    /// queue drops what it counts.
    fn new(offload: bool) -> World {
        let segments = if offload { "" } else { "gso_max_segs 1" };
        let [sender, router, receiver] = [(); 3].map(|()| Namespace::create().unwrap());
        let done = router.within(|| -> Result<(), LiveError> {
            Routing::open()?.bring_up_loopback()?;
            set_sysctl("net.ipv4.ip_forward", "1")?;
            let here = fs::read_link("/proc/thread-self").unwrap();
            let here = format!("/proc/{}/ns/net", here.display());
            for (host, number, peer) in [(&sender, 1, "left"), (&receiver, 2, "right")] {
                host.within(|| -> Result<(), LiveError> {
                    Routing::open()?.bring_up_loopback()?;
                    run(&format!(
                        "ip link add eth0 {segments} type veth peer name {peer} netns {here}"
                    ));
                    run(&format!("ip addr add 10.9.{number}.1/24 dev eth0"));
                    run("ip link set eth0 up");
                    run(&format!("ip route add default via 10.9.{number}.2"));
                    Ok(())
                })?;
                run(&format!("ip addr add 10.9.{number}.2/24 dev {peer}"));
                run(&format!("ip link set {peer} up"));
            }
            Ok(())
        });
        done.unwrap();
        World { sender, router, receiver }
    }
}

/// Four connections send as much as they can while `interval` is called until it says that it is
/// enough; returns the last interval.
fn sending(
    world: &World,
    folder: &Path,
    mut interval: impl FnMut(&Look) -> bool + Send,
) -> (Arc<Look>, Vec<std::path::PathBuf>) {
    let listener = world
        .receiver
        .within(|| -> Result<_, LiveError> { Ok(TcpListener::bind(RECEIVER).unwrap()) });
    let listener = listener.unwrap();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for socket in listener.incoming().take(4) {
                let mut socket = socket.unwrap();
                scope.spawn(move || {
                    let mut bytes = vec![0; 1 << 16];
                    while socket.read(&mut bytes).is_ok_and(|len| len > 0) {}
                });
            }
        });
        let done = world.sender.within(|| -> Result<_, LiveError> {
            let settings = OpenSettings {
                directory: folder.to_path_buf(),
                groups: Groups::default(),
                keep_addresses: false,
                bytes_max: 1 << 30,
            };
            let mut observer = OpenObserver::begin(settings)?;
            let sockets: Vec<TcpStream> =
                (0..4).map(|_| TcpStream::connect(RECEIVER).unwrap()).collect();
            for socket in &sockets {
                socket.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
                let (mut socket, ended) = (socket.try_clone().unwrap(), &ended);
                scope.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        // What does not fit is not written.
                        let _ = socket.write(&[7; 1 << 14]);
                    }
                });
            }
            let last = loop {
                thread::sleep(INTERVAL);
                let look = observer.look()?;
                if interval(&look) {
                    break look;
                }
            };
            ended.store(true, Ordering::Relaxed);
            let files = observer.finish()?.files;
            // The connections end with it.
            let close = |socket: &TcpStream| socket.shutdown(std::net::Shutdown::Both);
            sockets.iter().for_each(|socket| drop(close(socket)));
            Ok((last, files))
        });
        done.unwrap()
    })
}

/// What is said after eight intervals.
fn said(world: &World, mut each: impl FnMut() + Send) -> Lost {
    let folder = tempfile::tempdir().unwrap();
    let mut intervals = 0;
    let (last, _) = sending(world, folder.path(), |_| {
        each();
        intervals += 1;
        intervals == 8
    });
    tell(&last.lost.sentence());
    last.lost.clone()
}

/// Whether the queueing discipline of that kind is the only place.
fn is_qdisc(lost: &Lost, kind: &str) -> bool {
    let eth0 = Place::Qdisc("eth0".to_string(), kind.to_string());
    let is_only = lost.places.iter().all(|(place, _)| *place == eth0);
    is_only && !lost.places.is_empty() && lost.network_packets == 0
}

/// The sender's own queue: a shaper that drops a part of a burst, which TCP retransmits then; or a
/// short queue below a shaper, which is the place then, and tells TCP at once of what it drops.
fn drops_of_a_queue_are_named() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let world = World::new(true);
    let root = "tc qdisc replace dev eth0 root handle 1: tbf rate 20mbit burst 10k limit";
    within(&world.sender, &[&format!("{root} 12k")]);
    let lost = said(&world, || ());
    assert!(is_qdisc(&lost, "tbf") && lost.retransmitted_packets > 0, "{lost:?}");
    let pfifo = "tc qdisc add dev eth0 parent 1:1 pfifo limit 4";
    within(&world.sender, &["tc qdisc del dev eth0 root", &format!("{root} 200k"), pfifo]);
    let lost = said(&world, || ());
    assert!(is_qdisc(&lost, "pfifo"), "{lost:?}");
    Ok(())
}

/// A router's queue drops, of which the sending host knows nothing. Then it drops nothing.
fn drops_of_the_network_are_named() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let world = World::new(false);
    let queue = |limit: &str| {
        let root = "tc qdisc replace dev right root tbf rate 20mbit burst 10k limit";
        within(&world.router, &[&format!("{root} {limit}")]);
    };
    queue("20k");
    let lost = said(&world, || ());
    assert!(lost.places.is_empty() && lost.network_packets > 0, "{lost:?}");
    assert!(lost.sentence().contains("in the network: "), "{}", lost.sentence());
    queue("40m");
    let lost = said(&world, || ());
    assert!(lost.places.is_empty() && lost.network_packets == 0, "{lost:?}");
    assert!(lost.sentence().starts_with("Nothing was lost "), "{}", lost.sentence());
    Ok(())
}

/// A veth drops what is larger than its peer takes: for 20 ms of each interval that is any full
/// packet. TCP is told so at once. A queue of the router drops too, later: then both are named.
fn drops_of_an_interface_are_named() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let world = World::new(false);
    let root = "tc qdisc replace dev right root tbf rate 50mbit burst 10k limit";
    within(&world.router, &[&format!("{root} 40m")]);
    let refuse = || {
        within(&world.router, &["ip link set left mtu 1000"]);
        thread::sleep(Duration::from_millis(20));
        within(&world.router, &["ip link set left mtu 1500"]);
    };
    let is_interface = |lost: &Lost| {
        let dropped = Place::Interface("eth0".to_string(), "tx_dropped".to_string());
        lost.places.len() == 1 && lost.places[0].0 == dropped
    };
    let lost = said(&world, refuse);
    assert!(is_interface(&lost) && lost.network_packets == 0, "{lost:?}");
    within(&world.router, &[&format!("{root} 12k")]);
    let lost = said(&world, refuse);
    assert!(is_interface(&lost) && lost.network_packets > 0, "{lost:?}");
    let sentence = lost.sentence();
    assert!(sentence.contains("eth0 (tx_dropped)") && sentence.contains("at least"), "{sentence}");
    Ok(())
}

/// The rows of a file add up to what the kernel's totals say, for each connection, and those of the
/// host's counters have the queue that drops.
fn rows_add_up() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let world = World::new(false);
    let tbf = "tc qdisc replace dev eth0 root tbf rate 20mbit burst 10k limit 12k";
    within(&world.sender, &[tbf]);
    let folder = tempfile::tempdir().unwrap();
    let (mut intervals, mut drops) = (0, 0);
    let (last, files) = sending(&world, folder.path(), |look| {
        let qdiscs = look.host.interfaces.iter().flat_map(|one| &one.qdiscs);
        drops += qdiscs.map(|qdisc| qdisc.drops).sum::<u64>();
        intervals += 1;
        intervals == 5
    });
    let number = knee_columns::Kind::Integer { nullable: false };
    let names = ["connection", "interval_sent_bytes", "sent_bytes", "interval_retransmitted_bytes"];
    let columns = names.map(|name| (name, number));
    let mut sums = std::collections::BTreeMap::<i64, [i64; 3]>::new();
    read_columns(&files[0], knee_live::OPEN_SCHEMA, &columns, &[], |rows, cells| {
        let column = |at: usize| match &cells[at] {
            knee_columns::Cells::Integers(values, _) => values,
            other => panic!("{other:?}"),
        };
        for row in 0..rows {
            let sum = sums.entry(column(0)[row]).or_default();
            sum[0] += column(1)[row];
            sum[1] = column(2)[row];
            sum[2] += column(3)[row];
        }
    })
    .unwrap();
    assert_eq!(sums.len(), 4);
    for one in &last.connections {
        let [sent, total, again] = sums[&one.cookie.cast_signed()].map(i64::cast_unsigned);
        assert_eq!([sent, total], [one.info.sent_bytes; 2]);
        assert_eq!(again, one.info.retransmitted_bytes);
    }
    let columns = [("change", number), ("counter", knee_columns::Kind::Text)];
    let mut counted = 0;
    read_columns(&files[1], knee_live::COUNTERS_SCHEMA, &columns, &[], |_, cells| {
        let names = cells[1].written();
        for (change, name) in cells[0].written().iter().zip(names) {
            counted += if name == "drops" { change.parse::<u64>().unwrap() } else { 0 };
        }
    })
    .unwrap();
    assert!(counted == drops && drops > 0, "{counted} of {drops}");
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        drops_of_the_network_are_named;
        nightly:
        drops_of_a_queue_are_named,
        drops_of_an_interface_are_named,
        rows_add_up
    ]
}
