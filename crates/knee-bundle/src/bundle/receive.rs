//! Receiving.

use super::{Bundle, Content, Event, Limits, PathUse, SHARE, Violation};
use crate::control::Control;
use crate::frame::{Frame, HEADER, Malformed};
use crate::path::{Fate, NeverSent};
use crate::stream::{Inserted, Piece, ReceiveStream, Receiving, SendStream, StreamId, Streams};
use crate::varint::Reader;
use bytes::Bytes;
use knee_multipath::sched::PathSet;
use knee_units::Time;

/// Share of the shared window from which unread content leaves little for other streams.
const CROWDED: f64 = 0.75;

impl Bundle {
    /// Processes a datagram.
    ///
    /// # Errors
    /// The rule that it violates; the bundle must not be used after that.
    pub fn on_datagram(&mut self, now: Time, path: usize, bytes: &[u8]) -> Result<(), Violation> {
        self.now = now;
        let Some((low, rest)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Violation::Malformed(Malformed::Truncated));
        };
        let Some(number) = self.paths[path].arrivals.number(u16::from_be_bytes(*low)) else {
            return Ok(());
        };
        let mut reader = Reader::new(rest);
        let (mut asks, mut has_room) = (false, true);
        let mut acknowledged = PathSet::default();
        while let Some(frame) = Frame::read(&mut reader).map_err(Violation::Malformed)? {
            // Each costs as much as what it acknowledges, however small it is.
            if let Frame::Ack { path, .. } = frame {
                if acknowledged.contains(path) {
                    return Err(Violation::Malformed(Malformed::Impossible("a second ACK")));
                }
                acknowledged.insert(path);
            }
            asks |= !matches!(frame, Frame::Ack { .. } | Frame::AckAck { .. });
            has_room &= self.on_frame(now, path, frame)?;
        }
        if has_room {
            self.counters.received += 1;
            self.paths[path].arrivals.insert(now, number, asks);
        }
        Ok(())
    }

    /// Processes a frame. Returns false if there is no room for it.
    fn on_frame(&mut self, now: Time, path: usize, frame: Frame<'_>) -> Result<bool, Violation> {
        match frame {
            Frame::Ping => {
                self.paths[path].answers = true;
                self.paths[path].arrivals.hurry(now);
            }
            Frame::Ack { path, delay, ranges } => {
                let widely = self.reorders_widely(path);
                let state = &mut self.paths[path];
                let (fates, arrived_on) = (&mut self.fates, &mut self.arrived_on);
                let on_fate = |number, fate, content| {
                    if widely && fate != Fate::Lost {
                        arrived_on.push((path, number));
                    }
                    fates.push((fate, content));
                };
                let heard = state.sent.on_ack(now, &ranges, &mut state.rtt, delay, on_fate);
                heard.map_err(|NeverSent| Violation::NeverSent)?;
                if !self.fates.is_empty() && state.is_up {
                    let more = state.sent.in_flight() > 0;
                    self.on_heard(now, path, more);
                }
                self.on_fates(path);
            }
            Frame::AckAck { path, below } => self.paths[path].arrivals.settle(below),
            Frame::MaxData(end) => self.sending.on_credit(end),
            Frame::MaxStreamData { stream, round, end } => {
                if let Some(id) = self.known(stream)? {
                    self.sending.source_mut().change(id, |stream| stream.raise_limit(round, end));
                }
            }
            Frame::Recall { stream, round } => {
                if let Some(id) = self.known(stream)? {
                    self.sending.source_mut().change(id, |stream| stream.on_recall(round));
                    self.give_credit_back(id);
                }
            }
            Frame::Return { stream, round, end } => {
                if let Some(id) = self.known(stream)?
                    && self.receiving.change(id, |stream| stream.on_return(round, end))
                        == Some(false)
                {
                    return Err(Violation::Beyond(id));
                }
            }
            Frame::MaxStreams(count) => self.openable = self.openable.max(count),
            Frame::Reset { stream, code, size } => self.on_reset(stream, code, size)?,
            Frame::Stop { stream, code } => {
                if let Some(id) = self.known(stream)?
                    && self.reset(id, code)
                {
                    self.events.push_back(Event::Stopped { stream: id, code });
                }
            }
            Frame::Status { path, quiet, cost, overflows } => {
                self.paths[path].peer_use = PathUse { quiet, cost, overflows };
            }
            Frame::GoAway(_) => {
                if !self.peer_goes_away {
                    self.peer_goes_away = true;
                    self.events.push_back(Event::GoAway);
                }
            }
            Frame::Close { code, reason } => {
                if !self.is_closed {
                    self.is_closed = true;
                    self.events.push_back(Event::Closed { code, reason: reason.to_string() });
                }
            }
            Frame::Message { flow, number, bytes } => {
                if self.messages.is_new(number) {
                    let bytes = Bytes::copy_from_slice(bytes);
                    self.events.push_back(Event::Message { flow, bytes });
                }
            }
            Frame::Stream { stream, offset, fin, bytes } => {
                return self.on_stream(now, stream, offset, fin, bytes);
            }
        }
        Ok(true)
    }

    /// Returns the stream with this id, opening it if it is a new one of the peer; `None` if it is
    /// over.
    fn known(&mut self, value: u64) -> Result<Option<StreamId>, Violation> {
        let id = StreamId::read(value).ok_or(Violation::Stream(value))?;
        if self.receiving.get(id).is_some() {
            return Ok(Some(id));
        }
        // Only a client opens streams.
        if !self.settings.is_server || id.by_server() {
            let is_over = !id.by_server() && id.number() < self.opened;
            return if is_over { Ok(None) } else { Err(Violation::Stream(value)) };
        }
        if self.accepted.contains(id.number()) {
            return Ok(None);
        }
        if id.number() >= self.granted_streams {
            return Err(Violation::Stream(value));
        }
        self.accepted.insert(id.number()..id.number() + 1);
        self.insert(id);
        if self.goes_away.is_some() {
            // The peer opened it before it received the GOAWAY.
            self.reset(id, 0);
            self.stop(id, 0);
        } else {
            self.events.push_back(Event::Opened(id));
        }
        Ok(Some(id))
    }

    fn on_stream(
        &mut self,
        now: Time,
        value: u64,
        offset: u64,
        fin: bool,
        bytes: &[u8],
    ) -> Result<bool, Violation> {
        let Some(id) = self.known(value)? else { return Ok(true) };
        let of = |stream: &ReceiveStream| (stream.is_readable(), stream.consumed());
        let Some((was_readable, before)) = self.receiving.get(id).map(of) else { return Ok(true) };
        match self.receiving.add(now, id, offset, bytes, fin) {
            Some(Inserted::NoRoom) => return Ok(false),
            Some(Inserted::Violation) => return Err(Violation::Beyond(id)),
            Some(Inserted::Taken(risen)) => {
                self.highest += risen;
            }
            None => {}
        }
        let Some((is_readable, consumed)) = self.receiving.get(id).map(of) else { return Ok(true) };
        self.consumed += consumed - before;
        if is_readable && !was_readable {
            self.events.push_back(Event::Readable(id));
        }
        self.note_fullness();
        if self.highest > self.granted {
            return Err(Violation::Beyond(id));
        }
        self.grant();
        self.retire(id);
        Ok(true)
    }

    fn on_reset(&mut self, value: u64, code: u64, size: u64) -> Result<(), Violation> {
        let Some(id) = self.known(value)? else { return Ok(()) };
        let of = |stream: &ReceiveStream| (stream.is_done(), stream.consumed());
        let Some((was_done, before)) = self.receiving.get(id).map(of) else { return Ok(()) };
        let risen = self.receiving.change(id, |stream| stream.on_reset(size)).flatten();
        self.highest += risen.ok_or(Violation::Beyond(id))?;
        self.consumed += self.receiving.get(id).map_or(before, ReceiveStream::consumed) - before;
        if self.highest > self.granted {
            return Err(Violation::Beyond(id));
        }
        if !was_done {
            self.events.push_back(Event::Reset { stream: id, code });
        }
        self.grant();
        self.retire(id);
        Ok(())
    }

    /// Gives unused credit of a stream back if the peer asks for it and the stream is idle.
    fn give_credit_back(&mut self, id: StreamId) {
        let own = self.peer_stream_window;
        let gives = |stream: &mut SendStream| stream.give_credit_back(own);
        if self.sending.source_mut().change(id, gives) == Some(true) {
            self.controls.queue(Control::Return(id));
        }
    }

    /// Raises the peer's credit for all streams together. If the windows of streams leave a share,
    /// what the credits of single streams allow together never exceeds the window; this one is then
    /// an eighth of it higher, and raised by as much, so that it stops no sender that complies.
    /// Otherwise it is raised once the increase is a quarter of the window, or as much as is left
    /// of it: if readers pause and hold more than three quarters, a quarter would never be reached.
    pub(super) fn grant(&mut self) {
        let Limits { window, stream_window, .. } = self.settings.limits;
        let left = self.granted.saturating_sub(self.highest);
        let (slack, step) = match self.settings.limits.leaves_a_share() {
            true => (window / 8, window / 8),
            false => (0, left.max(stream_window / 4).min(window / 4)),
        };
        let end = self.consumed + window + slack;
        if end >= self.granted + step {
            self.granted = end;
            self.controls.queue(Control::MaxData);
        }
    }

    /// Raises the peer's credit for a stream that was read or is new, and asks for that of idle ones
    /// back if little is left.
    pub(super) fn grant_stream(&mut self, id: StreamId, is_new: bool) {
        if self.receiving.raise(id, is_new) {
            self.controls.queue(Control::MaxStreamData(id));
        }
        let rtts = self.paths.iter().filter(|state| state.is_up).map(|state| state.rtt.expected());
        for idle in self.receiving.recall(self.now, rtts.max().unwrap_or_default()) {
            self.controls.queue(Control::Recall(idle));
        }
    }

    /// Tells the application when content that nobody reads leaves little for other streams, once
    /// until it is half read.
    pub(super) fn note_fullness(&mut self) {
        let fullness = self.receiving.fullness();
        if fullness >= CROWDED && !self.is_crowded {
            self.is_crowded = true;
            let (streams, bytes) = (self.receiving.holding(), self.receiving.held());
            self.events.push_back(Event::Crowded { streams, bytes });
        }
        self.is_crowded &= fullness >= CROWDED / 2.0;
    }

    /// Forgets a stream that is finished in both directions.
    pub(super) fn retire(&mut self, id: StreamId) {
        let read = self.receiving.get(id).is_none_or(ReceiveStream::is_done);
        let sent = |id| self.sending.source().get(id).is_none_or(SendStream::is_done);
        if !read || !sent(id) || !self.receiving.remove(id) {
            return;
        }
        self.sending.source_mut().remove(id);
        self.controls.forget(id);
        self.messages.forget(id.value());
        self.refused.remove(&id);
        if self.settings.is_server {
            self.accepted_done += 1;
            let most = self.accepted_done + self.settings.limits.streams;
            if most >= self.granted_streams + (self.settings.limits.streams / 4).max(1) {
                self.granted_streams = most;
                self.controls.queue(Control::MaxStreams);
            }
        }
    }

    /// Processes the results in `fates`, for datagrams of a path, and leaves it empty.
    pub(super) fn on_fates(&mut self, path: usize) {
        if self.fates.is_empty() {
            return;
        }
        let mut fates = std::mem::take(&mut self.fates);
        for (fate, content) in fates.drain(..) {
            self.on_fate(path, fate, content);
        }
        self.fates = fates;
        self.wake_writers();
    }

    /// Processes what became of a datagram.
    fn on_fate(&mut self, path: usize, fate: Fate, content: Content) {
        match fate {
            Fate::Lost => self.counters.lost += 1,
            Fate::Late => self.counters.late += 1,
            Fate::Acknowledged => {}
        }
        match (fate, content) {
            (Fate::Lost, Content::Chunk(chunk, _)) => self.sending.on_lost(path, chunk),
            (Fate::Lost, Content::Part(chunk, _)) => {
                self.parts.retain(|(of, number, _)| (*of, *number) != (path, chunk));
                self.sending.on_lost(path, chunk);
            }
            (_, Content::Chunk(chunk, piece)) => {
                self.on_piece_delivered(piece);
                self.on_chunk_delivered(chunk);
            }
            (_, Content::Part(chunk, part)) => {
                self.on_piece_delivered(part);
                let is_whole = self.cut_up.get(&chunk).is_some_and(|whole| {
                    let stream = self.sending.source().get(whole.stream);
                    stream.is_none_or(|s| s.is_delivered(whole.offset, whole.len.into()))
                });
                if is_whole {
                    self.on_chunk_delivered(chunk);
                }
            }
            (Fate::Lost, Content::Control(number)) => {
                let (receiving, streams) = (&self.receiving, self.sending.source());
                self.controls.lost(number, |control| is_needed(control, receiving, streams));
            }
            (_, Content::Control(number)) => {
                for control in self.controls.delivered(number) {
                    self.on_told(control);
                }
            }
            (_, Content::Probe | Content::Message) => {}
        }
    }

    pub(super) fn on_chunk_delivered(&mut self, chunk: u64) {
        if self.cut_up.remove(&chunk).is_some() {
            self.parts.retain(|(_, number, _)| *number != chunk);
        }
        self.sending.on_delivered(chunk);
    }

    fn on_piece_delivered(&mut self, Piece { stream: id, offset, len }: Piece) {
        let streams = self.sending.source_mut();
        streams.change(id, |stream| stream.on_delivered(offset, len.into()));
        self.arrived.insert(id);
        self.give_credit_back(id);
        self.retire(id);
    }

    /// Wakes writers that waited and can write again: those of streams of which something arrived,
    /// and all of them once other streams have left them more room than at the last look. The room of
    /// one on whose stream nothing arrives is of no use to it.
    pub(super) fn wake_writers(&mut self) {
        if self.refused.is_empty() {
            self.arrived.clear();
            return;
        }
        let room = self.buffers.most(self.sending.source().beyond());
        let all = room >= self.room_seen.saturating_add(SHARE / 4);
        if all || room < self.room_seen {
            self.room_seen = room;
        }
        let arrived = std::mem::take(&mut self.arrived);
        let refused = if all {
            std::mem::take(&mut self.refused)
        } else {
            arrived.into_iter().filter(|id| self.refused.remove(id)).collect()
        };
        for id in refused {
            let held = self.sending.source().get(id).map(SendStream::held);
            if held.is_some_and(|held| held < self.buffer_of(id)) {
                self.events.push_back(Event::Writable(id));
            } else if held.is_some() {
                self.refused.insert(id);
            }
        }
    }

    /// Notes that the peer received a control frame.
    fn on_told(&mut self, control: Control) {
        match control {
            Control::Close => self.is_closed = true,
            Control::End(id) => {
                self.sending.source_mut().change(id, SendStream::on_fin_delivered);
                self.retire(id);
            }
            Control::Reset(id) => {
                self.sending.source_mut().change(id, SendStream::on_reset_delivered);
                self.retire(id);
            }
            _ => {}
        }
    }
}

/// Returns whether a control frame is still worth sending.
pub(super) fn is_needed(control: Control, receiving: &Receiving, streams: &Streams) -> bool {
    match control {
        Control::MaxStreamData(id) | Control::Stop(id) => receiving.get(id).is_some(),
        Control::Recall(id) => receiving.get(id).is_some_and(ReceiveStream::is_asked),
        Control::End(id) => streams.get(id).is_some_and(|stream| stream.reset_code().is_none()),
        Control::Reset(id) | Control::Return(id) => streams.get(id).is_some(),
        Control::Close
        | Control::GoAway
        | Control::MaxData
        | Control::MaxStreams
        | Control::Status(_) => true,
    }
}
