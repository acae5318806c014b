//! The wire format: what is written is read back, and no input does harm.

use knee_bundle::{
    AckRanges, Answer, Frame, Join, Malformed, Reader, VARINT_MAX, VERSION, expand, put_varint,
    stream_overhead, varint_len,
};
use knee_units::Time;
use proptest::prelude::*;

fn read_all(bytes: &[u8]) -> Result<Vec<Frame<'_>>, Malformed> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(|| Frame::read(&mut reader).transpose()).collect()
}

/// Samples of RFC 9000, appendix A.1.
#[test]
fn integers_of_variable_length_are_those_of_the_rfc() {
    let samples: [(&[u8], u64); 4] = [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
    ];
    for (bytes, value) in samples {
        assert_eq!(Reader::new(bytes).varint(), Some(value));
        let mut written = Vec::new();
        put_varint(&mut written, value);
        assert_eq!((written.as_slice(), varint_len(value)), (bytes, bytes.len()));
        assert_eq!(Reader::new(&bytes[..bytes.len() - 1]).varint(), None);
    }
    // The same value in an encoding longer than needed.
    assert_eq!(Reader::new(&[0x40, 0x25]).varint(), Some(37));
}

/// Example of RFC 9000, appendix A.3, and the first number.
#[test]
fn numbers_are_expanded_as_in_the_rfc() {
    assert_eq!(expand(0x9b32, Some(0xa82f_30ea)), 0xa82f_9b32);
    assert_eq!([expand(0, None), expand(3, None), expand(0, Some(0xffff))], [0, 3, 0x1_0000]);
}

/// An ACK of 3, 5 to 8 and 12, encoded by hand.
#[test]
fn an_ack_by_hand() {
    let ranges = AckRanges::new([(12, 12), (5, 8), (3, 3)]).unwrap();
    let mut bytes = Vec::new();
    Frame::Ack { path: 1, delay: Time::from_micros(40), ranges }.write(&mut bytes);
    assert_eq!(bytes, [2, 1, 40, 12, 2, 0, 2, 3, 0, 0]);
}

#[test]
fn what_a_peer_may_not_say_is_refused() {
    let refused: [&[u8]; 13] = [
        &[0x00],                                                       // no such frame
        &[0x18],                                                       // no such frame
        &[0x04],                                                       // no number
        &[0x02, 8, 0, 5, 0, 0],                                        // path 8
        &[0x02, 0, 0, 5, 0, 6],                                        // a range below zero
        &[0x02, 0, 0, 5, 1, 4, 0, 0],                                  // no room for a gap
        &[0x02, 0, 0, 5, 32],                                          // too many ranges
        &[0x09, 0, 4, 0],                                              // an unknown flag
        &[0x0b, 0, 2, 0xff, 0xfe],                                     // no text
        &[0x0b, 0, 3, b'a', b'\n', b'b'],                              // a line of its own
        &[0x0b, 0, 200],                                               // a long reason
        &[0x0c, 0, 5, 1, 2],                                           // shorter than its length
        &[0x14, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], // beyond 2^62
    ];
    for bytes in refused {
        assert!(read_all(bytes).is_err(), "{bytes:02x?}");
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..200_u64, 0..=VARINT_MAX, Just(VARINT_MAX)]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

/// A frame that owns its content.
#[expect(clippy::large_enum_variant, reason = "a handful of them, in a test")]
#[derive(Clone, Debug)]
enum Owned {
    Plain(Frame<'static>),
    Close(u64, String),
    Message(u64, Option<u64>, Vec<u8>),
    Stream(u64, u64, bool, Vec<u8>),
}

impl Owned {
    fn frame(&self) -> Frame<'_> {
        match self {
            Owned::Plain(frame) => *frame,
            Owned::Close(code, reason) => Frame::Close { code: *code, reason },
            Owned::Message(flow, number, bytes) => {
                Frame::Message { flow: *flow, number: *number, bytes }
            }
            Owned::Stream(stream, offset, fin, bytes) => {
                Frame::Stream { stream: *stream, offset: *offset, fin: *fin, bytes }
            }
        }
    }
}

/// Spans from gaps and lengths, descending from `largest` as far as they fit.
fn ranges(largest: u64, steps: &[(u64, u64)]) -> AckRanges {
    let mut spans = Vec::new();
    let mut next = Some(largest);
    for (length, gap) in steps {
        let Some(last) = next else { break };
        let first = last.saturating_sub(*length);
        spans.push((first, last));
        next = first.checked_sub(gap + 2);
    }
    AckRanges::new(spans).unwrap()
}

fn ack() -> impl Strategy<Value = Frame<'static>> {
    let steps = prop::collection::vec((0..1000_u64, 0..1000_u64), 1..40);
    (0..8_usize, 0..3_600_000_000_u64, number(), steps).prop_map(|(path, delay, largest, steps)| {
        let delay = Time::from_micros(delay);
        Frame::Ack { path, delay, ranges: ranges(largest, &steps) }
    })
}

fn any_frame() -> impl Strategy<Value = Owned> {
    let plain = prop_oneof![
        Just(Frame::Ping),
        ack(),
        (0..8_usize, number()).prop_map(|(path, below)| Frame::AckAck { path, below }),
        number().prop_map(Frame::MaxData),
        (number(), number(), number()).prop_map(|(stream, round, end)| Frame::MaxStreamData {
            stream,
            round,
            end
        }),
        (number(), number()).prop_map(|(stream, round)| Frame::Recall { stream, round }),
        (number(), number(), number()).prop_map(|(stream, round, end)| Frame::Return {
            stream,
            round,
            end
        }),
        number().prop_map(Frame::MaxStreams),
        (number(), number(), number()).prop_map(|(stream, code, size)| Frame::Reset {
            stream,
            code,
            size
        }),
        (number(), number()).prop_map(|(stream, code)| Frame::Stop { stream, code }),
        (0..8_usize, any::<(bool, u8, bool)>()).prop_map(|(path, (quiet, cost, overflows))| {
            Frame::Status { path, quiet, cost, overflows }
        }),
        number().prop_map(Frame::GoAway),
    ];
    prop_oneof![
        10 => plain.prop_map(Owned::Plain),
        1 => (number(), "[a-zä ]{0,60}").prop_map(|(code, reason)| Owned::Close(code, reason)),
        2 => (number(), prop::option::of(number()), content())
            .prop_map(|(flow, number, bytes)| Owned::Message(flow, number, bytes)),
        2 => (number(), 0..VARINT_MAX - 40, any::<bool>(), content())
            .prop_map(|(id, offset, fin, bytes)| Owned::Stream(id, offset, fin, bytes)),
    ]
}

proptest! {
    /// Any sequence of frames, the last one with or without a length.
    #[test]
    fn what_is_written_is_read(
        frames in prop::collection::vec(any_frame(), 1..12),
        short in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        let (last, before) = frames.split_last().unwrap();
        before.iter().for_each(|frame| frame.frame().write(&mut bytes));
        let begin = bytes.len();
        if short { last.frame().write_last(&mut bytes) } else { last.frame().write(&mut bytes) }
        if let (true, Owned::Stream(stream, offset, _, content)) = (short, last) {
            prop_assert_eq!(bytes.len() - begin, stream_overhead(*stream, *offset) + content.len());
        }
        let read = read_all(&bytes).unwrap();
        let written: Vec<Frame<'_>> = frames.iter().map(Owned::frame).collect();
        prop_assert_eq!(read, written);
    }

    /// Any input is refused, or means the same when written again.
    #[test]
    fn whatever_is_read_can_be_written(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(frames) = read_all(&bytes) {
            let mut again = Vec::new();
            frames.iter().for_each(|frame| frame.write(&mut again));
            prop_assert_eq!(read_all(&again), Ok(frames));
        }
    }

    /// A datagram cut off anywhere is refused or has fewer frames, never different ones.
    #[test]
    fn what_is_cut_off_is_no_other_frame(
        frames in prop::collection::vec(any_frame(), 1..5),
        part in 0.0..1.0_f64,
    ) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.frame().write(&mut bytes));
        let cut = &bytes[..(bytes.len() as f64 * part) as usize];
        let mut reader = Reader::new(cut);
        for frame in &frames {
            match Frame::read(&mut reader) {
                Ok(Some(read)) => prop_assert_eq!(read, frame.frame()),
                Ok(None) | Err(_) => break,
            }
        }
    }

    /// The nearest of all numbers with these low bits is found, within half of 2^16.
    #[test]
    fn numbers_near_the_expected_one_are_found(largest in 0..1_u64 << 40, ahead in -32_767..32_768_i64) {
        let number = (largest + 1).saturating_add_signed(ahead);
        prop_assert_eq!(expand(number as u16, Some(largest)), number);
    }

    #[test]
    fn a_join_and_its_answer_are_read_as_written(
        bundle in any::<[u8; 16]>(),
        (cost, quiet, overflows, resumes) in any::<(u8, bool, bool, bool)>(),
        label in "[a-z0-9]{0,32}",
        path in 0..8_usize,
        numbers in (0..86_400_u64, number(), number(), number()),
        cut in 0..60_usize,
    ) {
        let label_too = label.clone();
        let join =
            Join { version: VERSION, bundle, path, cost, quiet, overflows, resumes, label: label_too };
        let mut bytes = Vec::new();
        join.write(&mut bytes);
        prop_assert_eq!(Join::read(&bytes), Ok(Some(join)));
        prop_assert!(cut >= bytes.len() || Join::read(&bytes[..cut]) == Ok(None));
        let (linger, streams, window, stream_window) = numbers;
        let linger = Time::from_secs(linger);
        for answer in [
            Answer::Joined { path, linger, streams, window, stream_window },
            Answer::Refused { code: cost, reason: label },
        ] {
            let mut bytes = Vec::new();
            answer.write(&mut bytes);
            prop_assert_eq!(Answer::read(&bytes), Ok(Some(answer)));
        }
    }

    #[test]
    fn no_bytes_do_harm_before_the_join(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(Some(join)) = Join::read(&bytes) {
            prop_assert!(join.version != VERSION || join.label.len() <= 32);
        }
        let _ = Answer::read(&bytes);
    }
}

/// A peer of another version is recognized as such, whatever else it sends.
#[test]
fn a_join_of_another_version_is_read_as_far_as_its_version() {
    assert_eq!(Join::read(&[3, 9, 1, 2]).unwrap().unwrap().version, 9);
}

/// Labels and reasons of the peer stand in lines of a log, which they must not break.
#[test]
fn texts_with_control_characters_are_refused() {
    for text in ["eth0\nlaptop is up.", "eth0\r", "eth0\u{1b}[2J", "eth0\u{85}"] {
        let mut bytes = Vec::new();
        let (bundle, label) = ([0; 16], text.to_owned());
        let flags = (false, false, false);
        let (quiet, overflows, resumes) = flags;
        let (version, path, cost) = (VERSION, 0, 0);
        Join { version, bundle, path, cost, quiet, overflows, resumes, label }.write(&mut bytes);
        assert!(Join::read(&bytes).is_err(), "{text:?}");
        let mut bytes = Vec::new();
        Answer::Refused { code: 1, reason: text.to_owned() }.write(&mut bytes);
        assert!(Answer::read(&bytes).is_err(), "{text:?}");
    }
}
