//! Bundles that live for long, or whose peer or host does what it should not.

use bytes::{Bytes, BytesMut};
use knee_bundle::{Bundle, BundleSettings, Class, Event, Frame, Limits, StreamId};
use knee_multipath::sched::{Path, Selection, Status};
use knee_units::Time;

const LIMITS: Limits = Limits { window: 1 << 20, stream_window: 64 << 10, streams: 16 };

fn bundle(is_server: bool) -> Bundle {
    let settings = BundleSettings {
        is_server,
        datagram: 1200,
        limits: LIMITS,
        buffer: 1 << 20,
        reinjection: true,
        lateness: Time::from_millis(1),
    };
    let scheduler = knee_multipath::sched::build(&Selection::named("minrtt")).unwrap();
    let mut bundle = Bundle::new(settings, LIMITS, scheduler);
    bundle.on_path_up(0);
    bundle
}

fn path(status: Status) -> Path {
    let srtt = Time::from_millis(10);
    Path { status, ready: true, srtt, window: 1 << 30, ..Path::default() }
}

/// Sends everything that a bundle can send, and returns the datagrams.
fn sent(now: Time, from: &mut Bundle) -> Vec<Bytes> {
    let mut bytes = BytesMut::new();
    let view = [path(Status::Active)];
    let next =
        || from.poll_datagram(now, &view, &[1200], &mut bytes).map(|_| bytes.split().freeze());
    std::iter::from_fn(next).collect()
}

/// Delivers everything that a bundle can send, and returns the number of datagrams.
fn deliver(now: Time, from: &mut Bundle, to: &mut Bundle) -> usize {
    let all = sent(now, from);
    all.iter().for_each(|bytes| to.on_datagram(now, 0, bytes).unwrap());
    all.len()
}

/// Two ends that exchange what they have for a second.
fn settle(now: &mut Time, client: &mut Bundle, server: &mut Bundle) {
    for _ in 0..100 {
        *now += Time::from_millis(10);
        deliver(*now, client, server);
        deliver(*now, server, client);
    }
}

/// A stream that its reader gives up when all of it has come leaves its place to another one.
#[test]
fn streams_given_up_at_their_end_are_over() {
    let (mut now, mut client, mut server) = (Time::ZERO, bundle(false), bundle(true));
    for round in 0..3 * LIMITS.streams {
        let id = client.open(Class::Normal);
        let id = id.unwrap_or_else(|| panic!("no stream after {round}"));
        client.write(id, b"all that it wants to say");
        client.finish(id);
        settle(&mut now, &mut client, &mut server);
        assert_eq!(server.poll_event(), Some(Event::Opened(id)));
        server.finish(id);
        settle(&mut now, &mut client, &mut server);
        // The server has not read anything.
        server.stop(id, 1);
        settle(&mut now, &mut client, &mut server);
        assert!(!server.has(id));
        while server.poll_event().is_some() || client.poll_event().is_some() {}
        while client.read(id, 1 << 16).is_some() {}
    }
}

/// A path that is gone although the bundle was not told cannot be probed, and no timer asks for it.
#[test]
fn no_timer_asks_for_what_cannot_be_sent() {
    let (mut now, mut client) = (Time::ZERO, bundle(false));
    let id = client.open(Class::Normal).unwrap();
    client.write(id, b"GET");
    assert!(!sent(now, &mut client).is_empty());
    now += Time::from_secs(100);
    let gone = [path(Status::Down)];
    client.on_timer(now, &gone);
    assert_eq!(client.poll_datagram(now, &gone, &[1200], &mut BytesMut::new()), None);
    assert!(client.timer(&gone) > now);
}

/// A receiver of messages sends nothing but acknowledgements for many minutes. The path stays usable.
#[test]
fn a_path_that_carries_only_acknowledgements_stays_usable() {
    let (mut now, mut client, mut server) = (Time::ZERO, bundle(false), bundle(true));
    let mut acknowledgements = 0;
    while acknowledgements < 40_000 {
        now += Time::from_millis(10);
        (0..16).for_each(|_| server.send(0, Bytes::from_static(&[7; 100]), false));
        deliver(now, &mut server, &mut client);
        acknowledgements += deliver(now, &mut client, &mut server);
    }
    let id: StreamId = client.open(Class::Normal).unwrap();
    client.write(id, b"GET");
    settle(&mut now, &mut client, &mut server);
    let events: Vec<Event> = std::iter::from_fn(|| server.poll_event()).collect();
    assert!(events.contains(&Event::Opened(id)));
}

/// A peer that asks and never acknowledges is answered only so often: what is sent to it must be
/// remembered.
#[test]
fn a_peer_that_never_acknowledges_is_not_answered_for_ever() {
    let (mut now, mut server) = (Time::ZERO, bundle(true));
    let mut answers = 0;
    for number in 0..200_000_u32 {
        now += Time::from_micros(50);
        let mut bytes = (number as u16).to_be_bytes().to_vec();
        Frame::Ping.write(&mut bytes);
        server.on_datagram(now, 0, &bytes).unwrap();
        server.on_timer(now, &[path(Status::Active)]);
        answers += sent(now, &mut server).len();
    }
    assert!(answers < 40_000, "{answers} answers");
    let due = server.timer(&[path(Status::Active)]);
    assert!(due > now, "{due} is over at {now}");
}
