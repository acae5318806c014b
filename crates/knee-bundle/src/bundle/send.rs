//! Sending.

use super::{Bundle, Content, DATAGRAM_MIN, PathState, PathUse};
use crate::control::Control;
use crate::frame::{Frame, HEADER, stream_overhead};
use crate::path::ACK_DELAY;
use crate::stream::{Piece, ReceiveStream};
use bytes::BytesMut;
use knee_multipath::sched::{Path, PathSet, Status};
use knee_units::Time;

/// Room for an ACK: 32 ranges with numbers of four bytes.
const ACK_ROOM: usize = 300;
/// Maximum length of a control frame, except for the reason of a CLOSE, and of a message's header.
const CONTROL_ROOM: usize = 32;
/// Bytes that a path may have in flight when a message leaves whatever window and pacing say: fewer
/// than four packets, BBR's smallest window. Otherwise a call, which never fills its links, would
/// wait for a round trip after a loss.
const ALWAYS: u64 = 4 * 1200;

/// Returns the largest message that a path carries whose datagrams have at most `max` bytes.
pub fn message_max(max: u16) -> usize {
    usize::from(max).saturating_sub(HEADER + CONTROL_ROOM)
}

impl Bundle {
    /// Returns when [`on_timer`](Self::on_timer) and [`poll_datagram`](Self::poll_datagram) are due
    /// if nothing arrives before; [`Time::MAX`] means never.
    pub fn timer(&self, paths: &[Path]) -> Time {
        let mut at = self.sending.timer(paths);
        // A bundle that is closed repeats nothing.
        if !self.is_closing() {
            at = at.min(self.sending.overdue_at());
        }
        let anywhere = (0..paths.len()).any(|path| carries(path, paths, &self.paths));
        for (number, state) in self.paths.iter().enumerate() {
            if anywhere {
                at = at.min(state.arrivals.due());
            }
            if state.is_up {
                at = at.min(state.sent.loss_at());
                // Nothing can be sent on a path that is gone although nobody said so.
                if paths.get(number).is_some_and(|path| path.status != Status::Down) {
                    at = at.min(state.sent.probe_at(&state.rtt, ACK_DELAY));
                }
            }
        }
        at
    }

    fn is_closing(&self) -> bool {
        self.closing.is_some() || self.is_closed
    }

    /// Detects losses and silent paths.
    pub fn on_timer(&mut self, now: Time, paths: &[Path]) {
        self.now = now;
        for path in 0..self.paths.len() {
            let state = &mut self.paths[path];
            let fates = &mut self.fates;
            let on_fate = |_, fate, content| fates.push((fate, content));
            state.sent.on_loss_timer(now, &state.rtt, on_fate);
            self.on_fates(path);
        }
        let before = self.sending.counters().suspicions;
        self.sending.on_timer(now, paths);
        if self.sending.counters().suspicions > before {
            self.repeat_controls();
        }
    }

    /// Writes the next datagram, and returns its path; `None` until something changes or until
    /// [`timer`](Self::timer). A datagram on path `i` has at most `max[i]` bytes.
    ///
    /// # Panics
    /// If a path carries less than [`DATAGRAM_MIN`].
    pub fn poll_datagram(
        &mut self,
        now: Time,
        paths: &[Path],
        max: &[u16],
        into: &mut BytesMut,
    ) -> Option<usize> {
        assert!(max.iter().all(|max| *max >= DATAGRAM_MIN), "datagrams of {max:?} bytes");
        let mut asked = (0..paths.len()).filter(|path| carries(*path, paths, &self.paths));
        if let Some(path) = asked.find(|path| self.paths[*path].answers) {
            self.paths[path].answers = false;
            self.write_control(now, path, max[path], false, into);
            return Some(path);
        }
        let fastest = fastest(paths, &self.paths);
        if let Some(path) = fastest
            && (self.controls.is_due()
                || self.paths[..paths.len()].iter().any(|state| state.arrivals.due() <= now))
        {
            self.write_control(now, path, max[path], false, into);
            return Some(path);
        }
        for path in 0..paths.len() {
            let state = &mut self.paths[path];
            let silent = state.sent.probe_at(&state.rtt, ACK_DELAY) <= now;
            // Everything that it held was declared lost, so only a probe can find it alive.
            let forgotten = self.sending.is_suspect(path) && state.sent.in_flight() == 0;
            let due = state.greets || silent || forgotten;
            if state.is_up && due && paths[path].status != Status::Down {
                if silent {
                    state.sent.on_probe();
                    self.counters.probes += 1;
                }
                state.greets = false;
                self.write_control(now, path, max[path], true, into);
                return Some(path);
            }
        }
        if self.is_closing() {
            return None;
        }
        // Messages and streams take turns, so that neither starves the other.
        for is_message in [!self.message_was_last, self.message_was_last] {
            let path = if is_message {
                self.write_message(now, paths, fastest, max, into)
            } else {
                let part = self.write_part(now, paths, into);
                part.or_else(|| self.write_chunk(now, paths, max, into))
            };
            if path.is_some() {
                self.message_was_last = is_message;
                return path;
            }
        }
        None
    }

    /// Begins a datagram for a path.
    fn begin(&self, path: usize, into: &mut BytesMut) {
        into.clear();
        into.extend((self.paths[path].sent.next() as u16).to_be_bytes());
    }

    fn push(&mut self, now: Time, path: usize, bytes: usize, asks: bool, content: Content) {
        let number = self.paths[path].sent.push(now, bytes as u16, asks, content);
        self.asked = asks.then_some(number);
        if asks {
            self.sending.on_sent(now, path);
        }
        self.counters.sent += 1;
    }

    /// Writes ACKs of all paths and the control frames that are due, with a PING if `probe`.
    fn write_control(
        &mut self,
        now: Time,
        path: usize,
        max: u16,
        probe: bool,
        into: &mut BytesMut,
    ) {
        self.begin(path, into);
        let sent = &self.paths[path].sent;
        // What is in flight is acknowledged anyway.
        let probe = probe || sent.is_far_ahead() && sent.in_flight() == 0;
        let max = usize::from(max);
        for index in 0..self.paths.len() {
            let state = &mut self.paths[index];
            if into.len() + ACK_ROOM <= max
                && let Some(ack) = state.arrivals.ack(now, index)
            {
                ack.write(into);
                if let below @ 1.. = state.sent.settled() {
                    Frame::AckAck { path: index, below }.write(into);
                }
            }
        }
        if probe {
            Frame::Ping.write(into);
        }
        if !self.controls.is_due() {
            self.counters.acknowledgements += u64::from(!probe);
            self.push(now, path, into.len(), probe, Content::Probe);
            return;
        }
        let mut controls = std::mem::take(&mut self.controls);
        let number = controls.take(|control| {
            let room = match control {
                Control::Close => CONTROL_ROOM + crate::REASON_MAX,
                _ => CONTROL_ROOM,
            };
            let fits = into.len() + room <= max;
            if fits {
                self.write_one(control, into);
            }
            fits
        });
        self.controls = controls;
        self.push(now, path, into.len(), true, Content::Control(number));
    }

    fn write_one(&self, control: Control, into: &mut BytesMut) {
        let frame = match control {
            Control::Close => {
                let (code, reason) = self
                    .closing
                    .as_ref()
                    .map_or((0, ""), |(code, reason)| (*code, reason.as_str()));
                Frame::Close { code, reason }
            }
            Control::GoAway => Frame::GoAway(self.goes_away.unwrap_or(0)),
            Control::MaxData => Frame::MaxData(self.granted),
            Control::MaxStreams => Frame::MaxStreams(self.granted_streams),
            Control::Status(path) => {
                let PathUse { quiet, cost, overflows } = self.paths[path].own_use;
                Frame::Status { path, quiet, cost, overflows }
            }
            Control::MaxStreamData(id) => {
                let Some(stream) = self.receiving.get(id) else { return };
                let (round, end) = (stream.round(), stream.limit());
                Frame::MaxStreamData { stream: id.value(), round, end }
            }
            Control::Recall(id) => {
                // Due again because its datagram seemed lost, it may have been answered since. To
                // ask anew would make the peer give back what it was not asked for.
                let asked = self.receiving.get(id).filter(|stream| stream.is_asked());
                let Some(stream) = asked else { return };
                Frame::Recall { stream: id.value(), round: stream.round() }
            }
            Control::Return(id) => {
                let Some(stream) = self.sending.source().get(id) else { return };
                let (round, end) = stream.given_back();
                Frame::Return { stream: id.value(), round, end }
            }
            Control::End(id) => {
                let Some(stream) = self.sending.source().get(id) else { return };
                let offset = stream.written();
                Frame::Stream { stream: id.value(), offset, fin: true, bytes: &[] }
            }
            Control::Reset(id) => {
                let Some(stream) = self.sending.source().get(id) else { return };
                let code = stream.reset_code().unwrap_or(0);
                Frame::Reset { stream: id.value(), code, size: stream.given_end() }
            }
            Control::Stop(id) => {
                let code = self.receiving.get(id).and_then(ReceiveStream::stop_code);
                let Some(code) = code else { return };
                Frame::Stop { stream: id.value(), code }
            }
        };
        frame.write(into);
    }

    /// Writes the first message whose path may take it, or a copy of a duplicated one on its next
    /// such path. Others wait: messages are subject to congestion control (RFC 9221, section 5.4).
    fn write_message(
        &mut self,
        now: Time,
        paths: &[Path],
        fastest: Option<usize>,
        max: &[u16],
        into: &mut BytesMut,
    ) -> Option<usize> {
        self.messages.get(0)?;
        let states = &self.paths;
        let set = |is_in: &dyn Fn(usize) -> bool| {
            let mut set = PathSet::default();
            let all = (0..paths.len()).filter(|path| carries(*path, paths, states));
            all.filter(|path| is_in(*path)).for_each(|path| set.insert(path));
            set
        };
        let carrying = set(&|_| true);
        let ready = set(&|path| paths[path].ready || paths[path].in_flight < ALWAYS);
        // A flow leaves its path once a better one works.
        let is_as_good = |path, best| rank(path, paths, states) <= rank(best, paths, states);
        let good = set(&|path| fastest.is_some_and(|best| is_as_good(path, best)));
        // A backup path does not carry duplicates.
        let active = paths.iter().any(|path| path.status == Status::Active);
        let wanted = if active { Status::Active } else { Status::Backup };
        let copied = set(&|path| paths[path].status == wanted);
        let mut at = 0;
        while let Some(waiting) = self.messages.get(at) {
            let (flow, number, len) = (waiting.flow, waiting.number, waiting.bytes.len());
            let path = match number {
                Some(_) => {
                    let all = if copied.is_empty() { carrying } else { copied };
                    let left = PathSet(waiting.left.get_or_insert(all).0 & carrying.0);
                    PathSet(left.0 & ready.0).first().or(left.first())
                }
                None => self.messages.path(flow, |path| good.contains(path), fastest),
            };
            let Some(path) = path else {
                self.messages.remove(at);
                continue;
            };
            if len > message_max(max[path]) {
                self.messages.give(at, path, false);
                continue;
            }
            if !ready.contains(path) {
                at += 1;
                continue;
            }
            let bytes = self.messages.get(at)?.bytes.clone();
            self.messages.give(at, path, true);
            self.begin(path, into);
            Frame::Message { flow, number, bytes: &bytes }.write(into);
            self.push(now, path, into.len(), true, Content::Message);
            return Some(path);
        }
        None
    }

    /// Writes the next part of a chunk that its path cannot carry whole.
    fn write_part(&mut self, now: Time, paths: &[Path], into: &mut BytesMut) -> Option<usize> {
        while let Some((path, chunk, part)) = self.parts.pop_front() {
            debug_assert!(path < paths.len());
            if let Some(part) = self.needed(part) {
                self.write_piece(path, part, into);
                self.push(now, path, into.len(), true, Content::Part(chunk, part));
                return Some(path);
            }
            let whole = self.cut_up.get(&chunk).copied();
            if whole.is_none_or(|whole| self.needed(whole).is_none()) {
                self.on_chunk_delivered(chunk);
            }
        }
        None
    }

    /// Returns what of a piece must be sent; `None` if it arrived or its stream is over.
    fn needed(&self, piece: Piece) -> Option<Piece> {
        let stream = self.sending.source().get(piece.stream)?;
        let (offset, len) = stream.needed(piece.offset, piece.len)?;
        Some(Piece { offset, len, ..piece })
    }

    fn write_chunk(
        &mut self,
        now: Time,
        paths: &[Path],
        max: &[u16],
        into: &mut BytesMut,
    ) -> Option<usize> {
        let carried = (0..paths.len()).filter(|path| paths[*path].is_usable());
        if let Some(least) = carried.map(|path| max[path]).min() {
            self.sending.source_mut().set_datagram(least);
        }
        let mut view = std::mem::take(&mut self.view);
        view.clear();
        view.extend_from_slice(paths);
        for (path, state) in view.iter_mut().zip(&self.paths) {
            path.ready &= !state.sent.is_too_far_ahead();
        }
        self.overflow.look(now, self.sending.unsent() > 0, &self.paths, &mut view);
        let path = self.write_chunk_over(now, &view, max, into);
        self.view = view;
        path
    }

    fn write_chunk_over(
        &mut self,
        now: Time,
        paths: &[Path],
        max: &[u16],
        into: &mut BytesMut,
    ) -> Option<usize> {
        loop {
            let given = self.sending.assign(now, paths)?;
            let (path, chunk, piece) = (given.path, given.chunk, given.piece);
            let Some(needed) = self.needed(piece) else {
                self.on_chunk_delivered(chunk);
                continue;
            };
            let end = piece.offset + u64::from(piece.len);
            self.sending.source_mut().change(piece.stream, |stream| stream.on_given(end));
            let id = piece.stream.value();
            let room = |offset| {
                usize::from(max[path]).saturating_sub(HEADER + stream_overhead(id, offset)).max(1)
            };
            if needed == piece && usize::from(piece.len) <= room(piece.offset) {
                self.write_piece(path, piece, into);
                self.push(now, path, into.len(), true, Content::Chunk(chunk, piece));
                return Some(path);
            }
            let room = room(piece.offset + u64::from(piece.len));
            self.cut_up.insert(chunk, piece);
            self.cut(path, chunk, needed, room as u16);
            if let Some(path) = self.write_part(now, paths, into) {
                return Some(path);
            }
        }
    }

    /// Cuts a chunk into parts of at most `room` bytes.
    fn cut(&mut self, path: usize, chunk: u64, piece: Piece, room: u16) {
        let mut done = 0;
        while done < piece.len {
            let len = room.min(piece.len - done);
            let part = Piece { offset: piece.offset + u64::from(done), len, ..piece };
            self.parts.push_back((path, chunk, part));
            done += len;
        }
    }

    /// Writes a piece of a stream.
    fn write_piece(&self, path: usize, piece: Piece, into: &mut BytesMut) {
        self.begin(path, into);
        let Some(stream) = self.sending.source().get(piece.stream) else { return };
        let fin = stream.ends_at(piece.offset + u64::from(piece.len));
        let (id, offset) = (piece.stream.value(), piece.offset);
        Frame::Stream { stream: id, offset, fin, bytes: &[] }.write_last(into);
        let parts = stream.bytes(piece.offset, piece.len.into());
        parts.into_iter().flatten().for_each(|part| into.extend_from_slice(part));
    }
}

/// Returns whether a path carries acknowledgements, control frames and messages: it is there, and the
/// peer can on_fate the next number from others. One that never acknowledges is only probed.
fn carries(path: usize, paths: &[Path], states: &[PathState]) -> bool {
    paths[path].status != Status::Down && !states[path].sent.is_too_far_ahead()
}

/// Returns the usable path with the lowest RTT; a backup or quiet path only without others, and a
/// silent one rather than none, because it may be silent only in the other direction.
fn fastest(paths: &[Path], states: &[PathState]) -> Option<usize> {
    let there = (0..paths.len()).filter(|path| carries(*path, paths, states));
    there.min_by_key(|path| (rank(*path, paths, states), paths[*path].srtt))
}

/// Orders paths by how much they should be used: unusable, quiet and backup ones come last.
fn rank(path: usize, paths: &[Path], states: &[PathState]) -> (bool, bool, bool) {
    let view = &paths[path];
    (!view.is_usable(), states[path].both().quiet, view.status == Status::Backup)
}
