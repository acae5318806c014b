//! What a server bears of others: connections that never join, and peers that break the rules.

use crate::world::{ID, Way, World, address, settings, way};
use knee_bundle::{Class, Limits};
use knee_quic::{Addresses, BundleId, ConnectionSettings, Host, HostSettings, KeyPair};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::collections::VecDeque;
use std::time::Instant;

const CLIENT: usize = 0;
const SERVER: usize = 1;
const STRANGER: usize = 2;
/// Delay between any two hosts.
const DELAY: Time = Time::from_millis(10);
/// Maximum number of a server's connections that have not joined.
const UNJOINED_MAX: usize = 512;
/// Time in which a connection must join.
const JOIN: Time = Time::from_secs(30);

/// Settings like those of `knee bond`.
fn bond(is_server: bool, paths: usize) -> HostSettings {
    let path = ConnectionSettings {
        packet: 1200,
        packet_max: None,
        keep_alive: (!is_server).then_some(Time::from_secs(10)),
        idle: Some(Time::from_secs(40)),
        more_number_spaces: true,
    };
    HostSettings {
        eager: false,
        linger: Time::from_secs(3),
        paths: vec![path; paths],
        ..settings(is_server, paths, "cubic", "minrtt", 1 << 16)
    }
}

/// A client, its server and a stranger, on a network without loss.
struct Square {
    now: Time,
    start: Instant,
    keys: [KeyPair; 3],
    hosts: [Host; 3],
    /// Packets with the time of arrival, the sender and the receiver.
    packets: VecDeque<(Time, usize, usize, Vec<u8>)>,
    told: Vec<String>,
    /// A host whose packets are lost.
    silent: Option<usize>,
    /// Whether the stranger receives Retry packets only.
    is_deaf: bool,
}

impl Square {
    fn new(client: HostSettings, server: HostSettings) -> Square {
        let start = Instant::now();
        let keys = [(); 3].map(|()| KeyPair::generate().unwrap());
        let stranger = HostSettings {
            paths: vec![ConnectionSettings::lasting(1200)],
            ..settings(false, 1, "cubic", "minrtt", 1 << 16)
        };
        let host = |end: usize, settings: HostSettings| {
            let peer = keys[if end == SERVER { CLIENT } else { SERVER }].public();
            let rng = ChaCha8Rng::seed_from_u64(end as u64);
            Host::new(settings, &keys[end], &[peer], start, &rng).unwrap()
        };
        let hosts = [host(CLIENT, client), host(SERVER, server), host(STRANGER, stranger)];
        let (packets, told) = (VecDeque::new(), Vec::new());
        Square { now: Time::ZERO, start, keys, hosts, packets, told, silent: None, is_deaf: true }
    }

    fn open(&mut self, end: usize, id: BundleId) {
        self.hosts[end].open(self.now, id, &[(0, address(SERVER, 0), 0)]).unwrap();
    }

    /// Runs until this time, and returns the events of the run.
    fn until(&mut self, until: Time) -> Vec<String> {
        let (before, mut still) = (self.told.len(), 0);
        while self.now < until {
            let mut at = until;
            for end in 0..3 {
                self.work(end);
                at = at.min(self.hosts[end].timer(self.now));
            }
            at = self.packets.front().map_or(at, |packet| at.min(packet.0));
            still = if at <= self.now { still + 1 } else { 0 };
            assert!(still < 100, "a timer stays in the past at {:?}: {:?}", self.now, self.told);
            self.now = self.now.max(at);
            self.deliver();
        }
        self.told[before..].to_vec()
    }

    fn work(&mut self, end: usize) {
        let (now, packets) = (self.now, &mut self.packets);
        self.hosts[end].work(now, |_, ends, bytes, packet| {
            let to = (0..3).find(|end| address(*end, 0) == ends.peer).unwrap();
            let parts = bytes.chunks(packet);
            packets.extend(parts.map(|part| (now + DELAY, end, to, part.to_vec())));
        });
        while let Some(event) = self.hosts[end].poll_event() {
            self.told.push(format!("{now:?} {end} {event:?}"));
        }
    }

    /// Of what is sent to a stranger that is deaf, it receives Retry packets only (RFC 9000,
    /// section 17.2.5): its address is real, and it never finishes a handshake.
    fn deliver(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.0 <= self.now) {
            let Some((_, from, to, bytes)) = self.packets.pop_front() else { return };
            let is_lost = self.is_deaf && to == STRANGER;
            if self.silent == Some(from) || is_lost && bytes[0] & 0xf0 != 0xf0 {
                continue;
            }
            self.hosts[to].on_packet(self.now, 0, Addresses::to(address(from, 0)), &bytes);
        }
    }

    /// Lets the stranger open as many connections as a server may have that have not joined.
    fn besiege(&mut self) {
        for number in 0..UNJOINED_MAX {
            let id = (number as u128).to_be_bytes();
            self.open(STRANGER, id);
        }
    }
}

fn count(told: &[String], end: usize, what: &str) -> usize {
    told.iter().filter(|line| line.contains(&format!(" {end} {what}"))).count()
}

/// A connection that never joins ends after a while, although the stranger at its other end repeats
/// itself before the timeout of a silent one; connections that have joined stay.
#[test]
fn a_connection_that_does_not_join_ends() {
    let mut square =
        Square::new(bond(false, 1), HostSettings { bundles_of_a_key: 2, ..bond(true, 1) });
    square.open(CLIENT, ID);
    square.until(Time::from_secs(1));
    square.besiege();
    let told = square.until(Time::from_secs(9));
    assert_eq!(count(&told, SERVER, "Lost"), 0, "{told:?}");
    square.silent = Some(STRANGER);
    let told = square.until(Time::from_secs(1) + JOIN + Time::from_secs(1));
    let ended = count(&told, SERVER, "Lost(None");
    square.open(CLIENT, [1; 16]);
    square.until(Time::from_secs(60));
    // One of thousands fails by itself, depending on the keys.
    assert!((UNJOINED_MAX - 2..=UNJOINED_MAX).contains(&ended), "{ended}");
    assert_eq!(count(&square.told, SERVER, "Joined"), 2);
    assert_eq!(count(&square.told, SERVER, "Lost(Some"), 0);
    assert_eq!(count(&square.told, CLIENT, "Lost"), 0);
}

/// A client joins while a stranger holds all connections that a server may have without a bundle.
#[test]
fn a_client_joins_beside_many_strangers() {
    let mut square = Square::new(bond(false, 1), bond(true, 1));
    square.besiege();
    square.until(Time::from_secs(2));
    square.open(CLIENT, ID);
    let told = square.until(Time::from_secs(3));
    assert_eq!(count(&told, CLIENT, "Joined"), 1);
    // Only as many had to go as came; none if a stranger's connection failed by itself, as one of
    // thousands does, depending on the keys.
    assert!(count(&told, SERVER, "Lost") <= 1, "{told:?}");
}

/// A client that the server knows has no more time: this one is refused, and vanishes.
#[test]
fn a_connection_that_is_refused_ends() {
    let mut square = Square::new(bond(false, 1), bond(true, 1));
    square.open(CLIENT, ID);
    square.until(Time::from_secs(1));
    square.open(CLIENT, [1; 16]);
    square.until(Time::from_millis(1035));
    square.silent = Some(CLIENT);
    let told = square.until(Time::from_secs(1) + JOIN);
    assert_eq!(count(&told, CLIENT, "Refused"), 1, "{told:?}");
    assert_eq!(count(&told, SERVER, "Lost"), 0, "{told:?}");
    let told = square.until(Time::from_secs(2) + JOIN);
    assert_eq!(count(&told, SERVER, "Lost(None, \"it did not join in time\")"), 1, "{told:?}");
}

/// Clients with a round trip of one second join in time, although one packet in five is lost.
#[test]
fn slow_clients_join_in_time() {
    let ways = [Way { loss: 0.2, ..way(10.0, 500, 640_000) }];
    let mut world = World::between(&ways, |is_server| HostSettings {
        bundles_of_a_key: usize::MAX,
        linger: Time::from_secs(1000),
        ..bond(is_server, 1)
    });
    // Not the one that the world opens.
    for number in 0..60_u8 {
        let id = [number, 0].repeat(8).try_into().unwrap();
        world.hosts[0].open(Time::ZERO, id, &[(0, address(1, 0), 0)]).unwrap();
    }
    let told = world.for_a_while(Time::from_secs(60));
    let joined: Vec<&String> = told.iter().filter(|line| line.contains(" 1 Joined")).collect();
    println!("the last of {}: {:?}", joined.len(), joined.last());
    assert_eq!(joined.len(), 61);
    assert!(!told.iter().any(|line| line.contains("Lost")), "{told:?}");
}

/// A server without timeouts, as on the ground `quic`, waits for a client whose path fails during
/// the handshake; one with a timeout, though of minutes, does not.
#[test]
fn a_server_without_timeouts_waits() {
    let down = vec![(Time::from_millis(15), Time::from_secs(60))];
    let ways = [Way { down, ..way(10.0, 10, 64_000) }];
    for (idle, waits) in [(None, true), (Some(Time::from_secs(300)), false)] {
        let mut world = World::between(&ways, |is_server| HostSettings {
            paths: vec![ConnectionSettings { idle, ..ConnectionSettings::lasting(1200) }],
            ..settings(is_server, 1, "cubic", "minrtt", 1 << 16)
        });
        let told = world.for_a_while(Time::from_secs(200));
        assert_eq!(told.iter().any(|line| line.contains(" 1 Joined")), waits, "{told:?}");
        assert_eq!(told.iter().any(|line| line.contains(" 1 Lost(None")), !waits, "{told:?}");
    }
}

/// A bundle whose client breaks its rules is over, and counts no longer as one of the client's key.
#[test]
fn a_broken_bundle_is_over() {
    // The client writes beyond the server's limits, because it supposes that they are its own.
    let client = HostSettings { eager: true, ..settings(false, 1, "cubic", "minrtt", 1 << 20) };
    let mut square = Square::new(client, bond(true, 1));
    square.open(CLIENT, ID);
    square.until(Time::from_millis(500));
    assert_eq!(count(&square.told, SERVER, "Joined"), 1);
    let bundle = square.hosts[CLIENT].bundle(&ID).unwrap();
    let stream = bundle.open(Class::Normal).unwrap();
    assert!(bundle.write(stream, &[0; 1 << 19]) > 1 << 17);
    let told = square.until(Time::from_secs(30));
    assert_eq!(count(&told, SERVER, "Broken"), 1, "{told:?}");
    // It was restarted.
    let rng = ChaCha8Rng::seed_from_u64(3);
    let peer = square.keys[SERVER].public();
    square.hosts[CLIENT] =
        Host::new(bond(false, 1), &square.keys[CLIENT], &[peer], square.start, &rng).unwrap();
    square.open(CLIENT, [1; 16]);
    let again = square.until(Time::from_secs(31));
    assert_eq!(count(&told, SERVER, "Ended"), 1);
    assert_eq!(count(&again, CLIENT, "Joined"), 1, "{again:?}");
    assert_eq!(square.hosts[SERVER].bundles().count(), 1);
}

/// A bundle that is being closed waits for nothing but its end: no timer of it stays in the past.
#[test]
fn a_bundle_that_is_being_closed_has_no_timers() {
    let mut square = Square::new(bond(false, 1), bond(true, 1));
    square.open(CLIENT, ID);
    square.until(Time::from_millis(500));
    let bundle = square.hosts[CLIENT].bundle(&ID).unwrap();
    let stream = bundle.open(Class::Normal).unwrap();
    bundle.write(stream, &[7; 1 << 14]);
    square.until(Time::from_millis(505));
    let now = square.now;
    square.silent = Some(SERVER);
    square.hosts[CLIENT].close(now, &ID);
    square.until(Time::from_secs(5));
    assert_eq!(square.hosts[CLIENT].bundles().count(), 0);
}

/// A connection that is still shaking hands when its bundle is closed does not begin it anew.
#[test]
fn what_is_closed_does_not_join_later() {
    let mut square = Square::new(bond(false, 1), bond(true, 1));
    square.silent = Some(CLIENT);
    square.open(CLIENT, ID);
    square.until(Time::from_millis(500));
    let now = square.now;
    square.hosts[CLIENT].close(now, &ID);
    square.silent = None;
    let told = square.until(Time::from_secs(30));
    assert_eq!(count(&told, SERVER, "Joined"), 0, "{told:?}");
    assert_eq!(square.hosts[SERVER].bundles().count(), 0);
}

/// A client refuses a server that announces larger windows than its own: whoever runs the server
/// could fill the client's memory.
#[test]
fn a_client_refuses_larger_windows_than_its_own() {
    let server = HostSettings {
        limits: Limits { window: 1 << 40, stream_window: 1 << 30, streams: 1 << 20 },
        ..bond(true, 1)
    };
    let mut square = Square::new(bond(false, 1), server);
    square.open(CLIENT, ID);
    let told = square.until(Time::from_secs(5));
    assert_eq!(
        (count(&told, CLIENT, "Joined"), count(&told, CLIENT, "Refused")),
        (0, 1),
        "{told:?}"
    );
    assert!(told.iter().any(|line| line.contains("accepts at most 65536")), "{told:?}");
}

/// Of two clients one is accepted no more: its connections end at once and do not return, while those
/// of the other go on. A client whose key is added joins without a restart.
#[test]
fn keys_are_revoked_without_cutting_others() {
    let mut square = Square::new(bond(false, 1), bond(true, 1));
    let keys: Vec<_> = square.keys.iter().map(KeyPair::public).collect();
    let now = square.now;
    // The stranger is a client now, which receives everything.
    let server = &square.keys[SERVER];
    square.hosts[SERVER].set_keys(now, server, &[keys[CLIENT], keys[STRANGER]]).unwrap();
    square.hosts[STRANGER] = Host::new(
        bond(false, 1),
        &square.keys[STRANGER],
        &[keys[SERVER]],
        square.start,
        &ChaCha8Rng::seed_from_u64(4),
    )
    .unwrap();
    square.is_deaf = false;
    square.open(CLIENT, ID);
    square.open(STRANGER, [1; 16]);
    let told = square.until(Time::from_secs(2));
    assert_eq!(count(&told, SERVER, "Joined"), 2, "{told:?}");
    let now = square.now;
    let server = &square.keys[SERVER];
    square.hosts[SERVER].set_keys(now, server, &[keys[STRANGER]]).unwrap();
    let told = square.until(Time::from_secs(3));
    assert_eq!((count(&told, SERVER, "Ended"), count(&told, CLIENT, "Ended")), (1, 1), "{told:?}");
    square.open(CLIENT, [2; 16]);
    let told = square.until(Time::from_secs(60));
    assert_eq!((count(&told, CLIENT, "Joined"), count(&told, SERVER, "Joined")), (0, 0));
    assert_eq!(
        (count(&square.told, STRANGER, "Lost"), count(&square.told, STRANGER, "Ended")),
        (0, 0)
    );
    assert_eq!(square.hosts[SERVER].bundles().count(), 1);
}
