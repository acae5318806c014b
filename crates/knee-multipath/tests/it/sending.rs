//! The sending end, without any transport below it: sources of data, losses,
//! release, credit and silence.

use knee_multipath::sched::{Decision, Path, Place, Scheduler, Selection, Status, View};
use knee_multipath::{Assignment, ByteCount, Release, Sending, Settings, SilenceRule, Source};
use knee_units::{Rate, Time};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

const MSS: u16 = 1000;

/// A piece of a stream: its index and first byte.
type Piece = (usize, u64);

/// Streams by urgency; the first one with data is sent first.
#[derive(Default)]
struct Streams {
    written: [u64; 2],
    cut: [u64; 2],
}

impl Source for Streams {
    type Piece = Piece;

    fn cut(&mut self, max: u16) -> Option<(Piece, u16)> {
        let stream = (0..2).find(|at| self.cut[*at] < self.written[*at])?;
        let offset = self.cut[stream];
        let len = (self.written[stream] - offset).min(u64::from(max));
        self.cut[stream] += len;
        Some(((stream, offset), len as u16))
    }

    fn waiting(&self) -> u64 {
        (0..2).map(|at| self.written[at] - self.cut[at]).sum()
    }
}

fn settings(release: Release) -> Settings {
    let window = 1 << 30;
    Settings { mss: MSS, window, reinjection: false, release, silence: SilenceRule::TCP }
}

fn connection<S: Source>(settings: Settings, source: S, paths: usize) -> Sending<S> {
    let scheduler = knee_multipath::sched::build(&Selection::named("minrtt")).unwrap();
    let mut sending = Sending::new(settings, source, scheduler);
    (0..paths).for_each(|path| sending.on_path_up(path));
    sending
}

/// A path with room and an RTT in milliseconds.
fn path(rtt: u64) -> Path {
    let srtt = Time::from_millis(rtt);
    Path { ready: true, srtt, min_rtt: srtt, window: 1 << 20, ..Path::default() }
}

fn bytes(written: u64) -> ByteCount {
    let mut source = ByteCount::default();
    source.write(written);
    source
}

/// Returns all assignments possible now.
fn drain<S: Source>(sending: &mut Sending<S>, paths: &[Path]) -> Vec<Assignment<S::Piece>> {
    std::iter::from_fn(|| sending.assign(Time::ZERO, paths)).collect()
}

fn chunks<P>(assignments: &[Assignment<P>]) -> Vec<(usize, u64)> {
    assignments.iter().map(|given| (given.path, given.chunk)).collect()
}

/// Data is cut when it is sent: a stream that becomes urgent is next, however
/// much of another waits.
#[test]
fn an_urgent_stream_goes_before_all_that_is_not_sent_yet() {
    let mut streams = Streams::default();
    streams.written[1] = 100_000;
    let mut sending = connection(settings(Release::OnDelivery), streams, 1);
    let paths = [path(10)];
    for sent in 0..3 {
        let given = sending.assign(Time::ZERO, &paths).unwrap();
        assert_eq!((given.piece, given.len), ((1, sent * 1000), 1000));
    }
    sending.source_mut().written[0] = 1200;
    let pieces: Vec<_> =
        (0..3).map(|_| sending.assign(Time::ZERO, &paths).unwrap()).map(|g| g.piece).collect();
    assert_eq!(pieces, [(0, 0), (0, 1000), (1, 3000)]);
}

/// Bytes are counted in the order of cutting, so that one credit covers all streams.
#[test]
fn credit_covers_the_bytes_of_all_streams() {
    let streams = Streams { written: [1500, 10_000], ..Streams::default() };
    let mut sending =
        connection(Settings { window: 3500, ..settings(Release::OnDelivery) }, streams, 1);
    let paths = [path(10)];
    let pieces = |given: Vec<Assignment<Piece>>| given.iter().map(|g| g.piece).collect::<Vec<_>>();
    assert_eq!(pieces(drain(&mut sending, &paths)), [(0, 0), (0, 1000), (1, 0), (1, 1000)]);
    sending.on_credit(4500);
    assert_eq!(pieces(drain(&mut sending, &paths)), [(1, 2000)]);
    sending.on_credit(2000);
    assert_eq!(pieces(drain(&mut sending, &paths)), [], "credit is never taken back");
}

/// Flow control is independent of acknowledgement: an acknowledgement opens no window, and credit
/// acknowledges nothing.
#[test]
fn an_acknowledgement_gives_no_credit() {
    let tight = Settings { window: 2000, ..settings(Release::Cumulative) };
    let mut sending = connection(tight, bytes(10_000), 1);
    let paths = [path(10)];
    assert_eq!(drain(&mut sending, &paths).len(), 2);
    sending.on_data_ack(2000);
    assert_eq!(drain(&mut sending, &paths).len(), 0);
    assert_eq!(sending.acknowledged(), 2000);
    sending.on_credit(5000);
    assert_eq!(drain(&mut sending, &paths).len(), 3);
    assert_eq!(sending.acknowledged(), 2000);
}

/// Delivered out of order: the data without a gap before it is released.
#[test]
fn on_delivery_the_stretch_without_a_gap_is_released() {
    let mut sending = connection(settings(Release::OnDelivery), bytes(4500), 1);
    assert_eq!(drain(&mut sending, &[path(10)]).len(), 5);
    let mut delivered = |chunk| {
        let first_time = sending.on_delivered(chunk).is_some();
        (first_time, sending.acknowledged(), sending.is_complete())
    };
    assert_eq!(delivered(1), (true, 0, false));
    assert_eq!(delivered(4), (true, 0, false));
    assert_eq!(delivered(1), (false, 0, false));
    assert_eq!(delivered(0), (true, 2000, false));
    assert_eq!(delivered(0), (false, 2000, false));
    assert_eq!(delivered(3), (true, 2000, false));
    assert_eq!(delivered(2), (true, 4500, true));
}

/// A peer that acknowledges all but one packet is sent no more after a while, and more once it
/// acknowledges that one.
#[test]
fn what_follows_an_undelivered_packet_is_limited() {
    let limit = 1 << 17;
    let window = 1 << 40;
    let settings = Settings { window, ..settings(Release::OnDelivery) };
    let mut sending = connection(settings, bytes(window), 1);
    let paths = [path(10)];
    assert_eq!(sending.assign(Time::ZERO, &paths).unwrap().chunk, 0);
    let mut count = 1;
    while let Some(given) = sending.assign(Time::ZERO, &paths) {
        assert!(sending.on_delivered(given.chunk).is_some());
        count += 1;
        assert!(count <= limit);
    }
    assert_eq!(count, limit);
    assert!(sending.on_delivered(0).is_some());
    assert_eq!(sending.acknowledged(), count * u64::from(MSS));
    assert_eq!(sending.assign(Time::ZERO, &paths).unwrap().chunk, limit);
}

/// A path's report is not the connection's: subflows deliver data that may
/// still be dropped above them (RFC 8684, section 3.3.5).
#[test]
fn cumulatively_only_the_data_ack_releases() {
    let mut sending = connection(settings(Release::Cumulative), bytes(3000), 1);
    assert_eq!(drain(&mut sending, &[path(10)]).len(), 3);
    for chunk in 0..3 {
        sending.on_delivered(chunk);
    }
    assert_eq!((sending.acknowledged(), sending.is_complete()), (0, false));
    sending.on_data_ack(2000);
    assert_eq!((sending.acknowledged(), sending.is_complete()), (2000, false));
    sending.on_data_ack(3000);
    assert!(sending.is_complete());
}

#[test]
fn what_a_path_lost_goes_next_on_the_best_path() {
    let mut sending = connection(settings(Release::OnDelivery), bytes(10_000), 2);
    let mut paths = [path(10), path(50)];
    for chunk in 0..3 {
        assert_eq!(sending.assign(Time::ZERO, &paths).unwrap().chunk, chunk);
    }
    sending.on_lost(0, 1);
    let again = sending.assign(Time::ZERO, &paths).unwrap();
    assert_eq!((again.path, again.chunk, again.offset), (0, 1, 1000), "the path that lost it too");
    sending.on_lost(0, 1);
    paths[0].ready = false;
    let again = sending.assign(Time::ZERO, &paths).unwrap();
    assert_eq!((again.path, again.chunk), (1, 1));
    assert_eq!(sending.counters().reinjected_bytes, 2000);
    assert_eq!(sending.assign(Time::ZERO, &paths).unwrap().chunk, 3, "then new data");
}

/// Reports of losses that are not losses: of data that has arrived, that another path
/// holds as well, that the path was never given.
#[test]
fn what_is_not_lost_to_the_connection_is_not_sent_again() {
    let scheduler =
        knee_multipath::sched::build(&Selection::named("opportunistic-redundant")).unwrap();
    let mut sending = Sending::new(settings(Release::OnDelivery), bytes(2000), scheduler);
    (0..2).for_each(|path| sending.on_path_up(path));
    let paths = [path(10), path(50)];
    let given = drain(&mut sending, &paths);
    assert_eq!(chunks(&given), [(0, 0), (1, 0), (0, 1), (1, 1)]);
    sending.on_lost(0, 0);
    assert_eq!(chunks(&drain(&mut sending, &paths)), [], "the other path holds it");
    sending.on_lost(0, 0);
    assert_eq!(chunks(&drain(&mut sending, &paths)), [], "told twice");
    sending.on_lost(1, 0);
    assert_eq!(chunks(&drain(&mut sending, &paths)), [(0, 0)], "now nobody does");
    sending.on_delivered(1);
    sending.on_lost(0, 1);
    sending.on_lost(1, 1);
    assert_eq!(chunks(&drain(&mut sending, &paths)), [], "it has arrived");
}

/// A window of three packets, the first of which was given to the slow path at
/// 1 s, the others to the fast one 95 ms later.
fn full_window(paths: &mut [Path; 2]) -> Sending<ByteCount> {
    let full = Settings { window: 3000, reinjection: true, ..settings(Release::Cumulative) };
    let mut sending = connection(full, bytes(10_000), 2);
    let mut given = Vec::new();
    for (at, fast) in [(1000, false), (1095, true), (1095, true)] {
        paths[0].ready = fast;
        given.extend(sending.assign(Time::from_millis(at), paths));
    }
    assert_eq!(chunks(&given), [(1, 0), (0, 1), (0, 2)]);
    sending
}

/// The shared window is full because of a packet on the slow path, and nothing
/// else is in flight. An answer is due after 100 ms, and may be late by a
/// delayed ACK of 40 ms and a clock tick of 1 ms: then the fast path, idle
/// until then, repeats the packet without an outside trigger.
#[test]
fn a_full_window_is_looked_at_again_when_a_packet_is_overdue() {
    let mut paths = [path(10), path(100)];
    let mut sending = full_window(&mut paths);
    let overdue = Time::from_millis(1141);
    for at in [Time::from_millis(1095), Time::from_millis(1120), overdue - Time::from_nanos(1)] {
        assert_eq!(sending.assign(at, &paths), None, "at {at}");
        assert_eq!(sending.overdue_at(), overdue);
    }
    let again = sending.assign(overdue, &paths).unwrap();
    assert_eq!((again.path, again.chunk), (0, 0));
    assert_eq!(sending.assign(overdue, &paths), None);
    assert_eq!(sending.overdue_at(), Time::MAX, "the fast path holds all");
}

/// A scheduler that plans the order: the next packet goes to the first path with room.
#[derive(Debug)]
struct Planned;

impl Scheduler for Planned {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let ready = view.paths.iter().position(|path| path.ready);
        let path = ready.filter(|_| view.has_new());
        path.map_or(Decision::Wait, |path| Decision::Send(path, Place::Head))
    }

    fn plans_order(&self) -> bool {
        true
    }
}

/// Packets given to a slow path of 100 ms at 1 s; the fast one, of 10 ms, has
/// room from then on.
fn planned(packets: u64, window: u64, paths: &mut [Path; 2]) -> Sending<ByteCount> {
    let settings = Settings { window, reinjection: true, ..settings(Release::Cumulative) };
    let mut sending = Sending::new(settings, bytes(packets * 1000), Box::new(Planned));
    (0..2).for_each(|path| sending.on_path_up(path));
    paths[0].ready = false;
    while sending.assign(Time::from_millis(1000), &*paths).is_some() {}
    paths[0].ready = true;
    sending
}

/// Everything is sent, and by the plan acknowledged at 1100 ms. A copy that
/// would arrive later is sent then and not before: it need not wait for the 41
/// ms by which an ACK may be late.
#[test]
fn what_contradicts_the_plan_is_repeated_when_it_is_due() {
    let mut paths = [path(10), path(100)];
    let mut sending = planned(2, 1 << 30, &mut paths);
    let due = Time::from_millis(1100);
    for at in [Time::from_millis(1090), due - Time::from_nanos(1)] {
        assert_eq!(sending.assign(at, &paths), None, "at {at}");
        assert_eq!(sending.overdue_at(), due);
    }
    for chunk in 0..2 {
        let again = sending.assign(due, &paths).unwrap();
        assert_eq!((again.path, again.chunk), (0, chunk));
    }
    assert_eq!(sending.assign(due, &paths), None);
    // A copy that takes longer than the possible lateness of an ACK is useless.
    let mut slower = [path(42), path(100)];
    let mut sending = planned(2, 1 << 30, &mut slower);
    assert_eq!(sending.assign(due, &slower), None);
}

/// A full window is part of the plan. Of its three packets the first, for which
/// all wait, is repeated at once, and the others when they are due.
#[test]
fn a_planned_full_window_repeats_the_first_packet() {
    let mut paths = [path(10), path(100)];
    let mut sending = planned(9, 3000, &mut paths);
    let again = sending.assign(Time::from_millis(1020), &paths).unwrap();
    assert_eq!((again.path, again.chunk), (0, 0));
    assert_eq!(sending.assign(Time::from_millis(1020), &paths), None);
    let due = Time::from_millis(1100);
    assert_eq!(sending.overdue_at(), due);
    assert_eq!(sending.assign(due, &paths).unwrap().chunk, 1);
}

/// Neither a path without room nor one that is no quicker would repeat it.
#[test]
fn nobody_looks_again_where_nothing_would_be_repeated() {
    for (ready, rtt) in [(false, 10), (true, 100)] {
        let mut paths = [path(10), path(100)];
        let mut sending = full_window(&mut paths);
        paths[0] = Path { ready, ..path(rtt) };
        paths[1].ready = false;
        assert_eq!(sending.assign(Time::from_millis(1100), &paths), None);
        assert_eq!(sending.overdue_at(), Time::MAX, "ready {ready}, {rtt} ms");
    }
}

/// Ten packets on a path of 5 ms, of which nothing else was known: it carries
/// one per 8 ms, and delivers the k-th at 8 k ms. After 15 ms another path, of
/// 20 ms, has room. It repeats those that it delivers sooner, at 35 ms, and
/// leaves the others.
#[test]
fn what_waits_on_a_path_that_turned_out_slow_is_repeated() {
    let mut sending = connection(
        Settings { reinjection: true, ..settings(Release::Cumulative) },
        bytes(10_000),
        2,
    );
    let mut paths = [path(5), path(20)];
    paths[1].ready = false;
    for packet in 0..10 {
        paths[0].in_flight = packet * 1000;
        assert_eq!(sending.assign(Time::ZERO, &paths).unwrap().path, 0);
    }
    paths[0] = Path { in_flight: 10_000, ready: false, ..paths[0] };
    paths[1].ready = true;
    let now = Time::from_millis(15);
    assert_eq!(sending.assign(now, &paths), None, "for all that is known it has arrived");
    paths[0].capacity = Some(Rate::from_bits_per_second(1_000_000));
    let again: Vec<_> = std::iter::from_fn(|| sending.assign(now, &paths)).collect();
    assert_eq!(chunks(&again), [(1, 4), (1, 5), (1, 6), (1, 7), (1, 8), (1, 9)]);
}

/// A packet on a path of 500 ms is repeated on one of 200 ms, which leaves (or loses it). What
/// counts then is when the first path delivers it, so one of 10 ms repeats it again.
#[test]
fn a_packet_whose_last_path_is_gone_is_repeated_like_any_other() {
    for leaves in [true, false] {
        let settings = Settings { reinjection: true, ..settings(Release::Cumulative) };
        let mut sending = connection(settings, bytes(1000), 3);
        let mut paths = [path(500), path(200), path(10)];
        let mut given = Vec::new();
        for ready in 0..3 {
            (0..3).for_each(|index| paths[index].ready = index == ready);
            if ready == 2 && leaves {
                sending.on_path_down(1);
                paths[1] = Path::default();
            } else if ready == 2 {
                sending.on_lost(1, 0);
                paths[1] = path(5);
                paths[1].ready = false;
            }
            given.extend(sending.assign(Time::from_millis(1000 + ready as u64 * 20), &paths));
        }
        assert_eq!(chunks(&given), [(0, 0), (1, 0), (2, 0)], "leaves: {leaves}");
    }
}

/// A receiver that delays an ACK by half a second is not late before that, nor is its path
/// silent.
#[test]
fn an_ack_may_be_as_late_as_the_receiver_delays_it() {
    let silence = SilenceRule { ack_delay: Time::from_millis(500), ..SilenceRule::TCP };
    let full =
        Settings { silence, window: 1000, reinjection: true, ..settings(Release::Cumulative) };
    let mut sending = connection(full, bytes(10_000), 2);
    let mut paths = [path(10), path(100)];
    paths[0].ready = false;
    assert_eq!(sending.assign(Time::from_millis(1000), &paths).unwrap().path, 1);
    paths[0].ready = true;
    let overdue = Time::from_millis(1000 + 100 + 501);
    assert_eq!(sending.assign(Time::from_millis(1200), &paths), None);
    assert_eq!(sending.overdue_at(), overdue);
    assert_eq!(sending.assign(overdue, &paths).unwrap().path, 0);
}

/// 1.5 (20 + 4 * 1 + 40) ms for TCP; 2 (20 + 10 + 4) ms with a custom rule
/// whose floor is above four variations.
#[test]
fn the_rule_says_when_a_path_is_silent() {
    let own = SilenceRule {
        ack_delay: Time::from_millis(4),
        floor: Time::from_millis(10),
        timeouts_halves: 4,
    };
    for (silence, expected) in [(SilenceRule::TCP, 96), (own, 68)] {
        let with_rule = Settings { silence, ..settings(Release::OnDelivery) };
        let mut sending = connection(with_rule, bytes(1000), 2);
        let rtt_variation = Time::from_millis(1);
        let mut paths = [Path { rtt_variation, ..path(20) }, path(500)];
        assert_eq!(sending.assign(Time::from_secs(1), &paths).unwrap().path, 0);
        paths[0].in_flight = 1000;
        let due = Time::from_secs(1) + Time::from_millis(expected);
        assert_eq!(sending.timer(&paths), due);
        sending.on_timer(due - Time::from_nanos(1), &paths);
        assert!(!sending.is_suspect(0), "not before");
        sending.on_timer(due, &paths);
        assert!(sending.is_suspect(0));
        paths[0].status = Status::Suspect;
        let rescued = sending.assign(due, &paths).unwrap();
        assert_eq!((rescued.path, rescued.chunk), (1, 0));
        sending.on_heard(due, 0, false);
        assert!(!sending.is_suspect(0));
    }
}

proptest! {
    /// Three paths lose, delay and reorder packets, appear and disappear; each
    /// reports its losses. Every piece arrives, and is reported to its source
    /// once, in any order.
    #[test]
    fn every_piece_is_delivered_and_told_once(seed in any::<u64>(), loss in 0u32..60) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let streams = Streams { written: [30_500, 60_200], ..Streams::default() };
        let mut sending = connection(settings(Release::OnDelivery), streams, 3);
        let mut paths = [path(10), path(20), path(40)];
        let mut underway: Vec<(usize, u64)> = Vec::new();
        let mut told: BTreeMap<Piece, u32> = BTreeMap::new();
        let mut lengths: BTreeMap<Piece, u64> = BTreeMap::new();
        for step in 0..20_000 {
            if sending.is_complete() {
                break;
            }
            for path in &mut paths[1..] {
                path.ready = !rng.next_u32().is_multiple_of(4);
            }
            if rng.next_u32().is_multiple_of(50) {
                let gone = 1 + (rng.next_u32() % 2) as usize;
                underway.retain(|(path, _)| *path != gone);
                sending.on_path_down(gone);
                sending.on_path_up(gone);
            }
            if underway.len() < 20
                && let Some(given) = sending.assign(Time::from_millis(step), &paths)
            {
                let known = lengths.insert(given.piece, u64::from(given.len));
                prop_assert!(known.is_none_or(|len| len == u64::from(given.len)));
                underway.push((given.path, given.chunk));
            }
            if !underway.is_empty() && rng.next_u32().is_multiple_of(2) {
                let any = rng.next_u32() as usize % underway.len();
                let (path, chunk) = underway.swap_remove(any);
                if rng.next_u32() % 100 < loss {
                    sending.on_lost(path, chunk);
                } else if let Some(piece) = sending.on_delivered(chunk) {
                    *told.entry(piece).or_default() += 1;
                }
            }
        }
        prop_assert!(sending.is_complete());
        prop_assert_eq!(sending.acknowledged(), 90_700);
        prop_assert_eq!(lengths.values().sum::<u64>(), 90_700);
        prop_assert!(told.values().all(|times| *times == 1));
        prop_assert_eq!(told.len(), lengths.len());
    }
}
