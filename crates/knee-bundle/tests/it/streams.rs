//! Shares of classes and streams, credit, reset and stop.

use knee_bundle::{Class, Inserted, Pool, ReceiveStream, SendStream, StreamId, Streams};
use knee_multipath::Source;
use knee_units::Time;
use std::collections::BTreeMap;

/// A quantum and a piece: the maximum distance of two streams of a class in deficit round robin
/// (Shreedhar and Varghese, 1995, theorem 1).
const APART: u64 = 1500 + 1200;

#[test]
fn classes_share_as_their_weights_and_streams_equally() {
    let mut streams = Streams::default();
    streams.set_datagram(1200);
    let classes = [Class::Interactive, Class::Normal, Class::Bulk];
    let ids: Vec<StreamId> =
        (0..6).map(|number| StreamId::new(number, classes[number as usize % 3], true)).collect();
    for id in &ids {
        streams.insert(*id, SendStream::new(u64::MAX));
        streams.change(*id, |stream| stream.write(&vec![0; 2_000_000], u64::MAX));
    }
    let mut sent: BTreeMap<StreamId, u64> = BTreeMap::new();
    for _ in 0..2000 {
        if let Some((piece, len)) = streams.cut(1200) {
            *sent.entry(piece.stream).or_default() += u64::from(len);
        }
        for class in classes {
            let of_class = |id: &&StreamId| id.class() == class;
            let bytes = ids.iter().filter(of_class).map(|id| sent.get(id).copied().unwrap_or(0));
            let (least, most) = bytes.fold((u64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
            assert!(most - least <= APART, "{class:?}: {least} and {most}");
        }
    }
    let share = |class| -> f64 {
        let all: u64 = sent.values().sum();
        let own: u64 = sent.iter().filter(|(id, _)| id.class() == class).map(|(_, n)| n).sum();
        own as f64 / all as f64
    };
    for (class, weight) in [(Class::Interactive, 16.0), (Class::Normal, 4.0), (Class::Bulk, 1.0)] {
        let off = share(class) - weight / 21.0;
        assert!(off.abs() < 0.02, "{class:?}: {}", share(class));
    }
}

#[test]
fn credit_and_the_end_of_a_stream_are_binding() {
    let (mut stream, mut pool) = (ReceiveStream::new(10), Pool::default());
    assert_eq!(stream.insert(Time::ZERO, 5, &[1; 6], false, &mut pool), Inserted::Violation);
    assert_eq!(stream.insert(Time::ZERO, 2, &[1; 6], true, &mut pool), Inserted::Taken(8));
    // Beyond the end, and a different end.
    assert_eq!(stream.insert(Time::ZERO, 8, &[1], false, &mut pool), Inserted::Violation);
    assert_eq!(stream.insert(Time::ZERO, 2, &[1; 5], true, &mut pool), Inserted::Violation);
    assert_eq!((stream.read(10, &mut pool), stream.held()), (None, 6));
    assert_eq!(stream.insert(Time::ZERO, 0, &[2; 4], false, &mut pool), Inserted::Taken(0));
    // What is in order stays, whatever comes later (RFC 9000, section 2.2, forbids it to differ).
    assert_eq!(stream.insert(Time::ZERO, 0, &[3; 8], true, &mut pool), Inserted::Taken(0));
    assert_eq!(stream.read(10, &mut pool).as_deref(), Some(&[2, 2, 2, 2, 1, 1, 1, 1][..]));
    assert!(stream.is_done());
}

#[test]
fn a_reset_frees_what_is_held_and_counts_for_credit() {
    let mut sender = SendStream::new(100);
    assert_eq!(sender.write(&[0; 50], 100), 50);
    sender.cut(20);
    assert!(sender.reset(7) && !sender.reset(8));
    assert_eq!((sender.held(), sender.waiting(), sender.reset_code()), (0, 0, Some(7)));
    assert!(sender.bytes(0, 20).is_none() && sender.write(&[0], 100) == 0 && !sender.is_done());
    sender.on_reset_delivered();
    assert!(sender.is_done());

    // The end has arrived, but not everything before it, so a reset must still be sent.
    let mut sender = SendStream::new(100);
    sender.write(&[0; 20], 100);
    assert!(!sender.finish());
    sender.cut(20);
    sender.on_delivered(10, 10);
    assert!(sender.reset(7) && !sender.is_done());
    sender.on_reset_delivered();
    assert!(sender.is_done());

    let (mut receiver, mut pool) = (ReceiveStream::new(100), Pool::default());
    assert_eq!(receiver.insert(Time::ZERO, 5, &[0; 10], false, &mut pool), Inserted::Taken(15));
    assert_eq!((receiver.on_reset(14), receiver.on_reset(101)), (None, None));
    assert_eq!(receiver.on_reset(20), Some(5));
    assert_eq!((receiver.held(), receiver.consumed(), receiver.is_done()), (0, 20, true));
}

#[test]
fn a_stopped_stream_takes_what_comes_and_holds_nothing() {
    let (mut stream, mut pool) = (ReceiveStream::new(100), Pool::default());
    assert_eq!(stream.insert(Time::ZERO, 10, &[0; 10], false, &mut pool), Inserted::Taken(20));
    assert!(stream.stop(3) && !stream.stop(4));
    assert_eq!(stream.insert(Time::ZERO, 30, &[0; 10], true, &mut pool), Inserted::Taken(20));
    assert_eq!((stream.held(), stream.stop_code(), stream.is_done()), (0, Some(3), true));
}

/// Only what has not arrived holds the credit; a reader that pauses does not.
#[test]
fn a_stream_waits_for_credit_while_something_is_outstanding() {
    let mut streams = Streams::default();
    streams.set_datagram(1200);
    let id = StreamId::new(0, Class::Normal, false);
    streams.insert(id, SendStream::new(1_000));
    streams.change(id, |stream| stream.write(&[0; 1_500], 10_000));
    assert!(!streams.wait_for_credit(false));
    let (piece, _) = streams.cut(1_000).unwrap();
    assert!(streams.wait_for_credit(false));
    streams.change(id, |stream| stream.on_delivered(piece.offset, piece.len.into()));
    assert!(!streams.wait_for_credit(false));
    // More credit: the rest may leave.
    streams.change(id, |stream| stream.raise_limit(0, 1_200));
    streams.cut(100).unwrap();
    assert!(!streams.wait_for_credit(false) && streams.wait_for_credit(true));
}
