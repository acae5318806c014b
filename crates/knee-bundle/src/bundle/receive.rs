//! Receiving.

use super::{Bundle, Content, Event, Limits, PathUse, Violation};
use crate::control::Control;
use crate::frame::{Frame, HEADER, Malformed};
use crate::path::{Fate, NeverSent};
use crate::stream::{Inserted, Piece, Pool, ReceiveStream, SendStream, StreamId, Streams};
use crate::varint::Reader;
use bytes::Bytes;
use knee_sched::PathSet;
use knee_units::Time;
use std::collections::BTreeMap;

impl Bundle {
    /// Processes a datagram.
    ///
    /// # Errors
    /// The rule that it violates; the bundle must not be used after that.
    pub fn on_datagram(&mut self, now: Time, path: usize, bytes: &[u8]) -> Result<(), Violation> {
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
                let state = &mut self.paths[path];
                let fates = &mut self.fates;
                let tell = |_, fate, content| fates.push((fate, content));
                let heard = state.sent.on_ack(now, &ranges, &mut state.rtt, delay, tell);
                heard.map_err(|NeverSent| Violation::NeverSent)?;
                if !self.fates.is_empty() && state.is_up {
                    let more = state.sent.in_flight() > 0;
                    self.on_heard(now, path, more);
                }
                self.on_fates(path);
            }
            Frame::AckAck { path, below } => self.paths[path].arrivals.settle(below),
            Frame::MaxData(end) => self.sending.on_credit(end),
            Frame::MaxStreamData { stream, end } => {
                if let Some(id) = self.known(stream)? {
                    self.sending.source_mut().change(id, |stream| stream.raise_limit(end));
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
                if self.messages.is_new(flow, number) {
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
        if self.receiving.contains_key(&id) {
            return Ok(Some(id));
        }
        if id.by_server() == self.settings.is_server {
            return if id.number() < self.opened {
                Ok(None)
            } else {
                Err(Violation::Stream(value))
            };
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
        let Some(stream) = self.receiving.get_mut(&id) else { return Ok(true) };
        let (was_readable, before) = (stream.is_readable(), stream.consumed());
        match stream.insert(now, offset, bytes, fin, &mut self.pool) {
            Inserted::NoRoom => return Ok(false),
            Inserted::Violation => return Err(Violation::Beyond(id)),
            Inserted::Taken(risen) => {
                self.highest += risen;
                stream.note_arrival(self.highest);
            }
        }
        self.consumed += stream.consumed() - before;
        if stream.is_readable() && !was_readable {
            self.events.push_back(Event::Readable(id));
        }
        if self.highest > self.granted {
            return Err(Violation::Beyond(id));
        }
        self.grant();
        self.retire(id);
        Ok(true)
    }

    fn on_reset(&mut self, value: u64, code: u64, size: u64) -> Result<(), Violation> {
        let Some(id) = self.known(value)? else { return Ok(()) };
        let Some(stream) = self.receiving.get_mut(&id) else { return Ok(()) };
        let (was_done, before) = (stream.is_done(), stream.consumed());
        let risen = stream.on_reset(size).ok_or(Violation::Beyond(id))?;
        self.highest += risen;
        self.consumed += stream.consumed() - before;
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

    /// Raises the peer's credit once the increase is a quarter of the window, or as much as is left
    /// of it: if readers pause and hold more than three quarters, a quarter would never be reached.
    pub(super) fn grant(&mut self) {
        let Limits { window, stream_window, .. } = self.settings.limits;
        let end = self.consumed + window;
        let left = self.granted.saturating_sub(self.highest);
        if end >= self.granted + left.max(stream_window / 4).min(window / 4) {
            self.granted = end;
            self.controls.tell(Control::MaxData);
        }
    }

    /// Raises the peer's credit for a stream that was read.
    ///
    /// Credit cannot be taken back, and a reader may pause at any time, so no stream may have so
    /// much that two of them fill the window of all. As in switches that share their memory
    /// (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
    /// 1998), a stream may hold twice what is left: one alone has half of the window, two have 3/10
    /// each, and however many pause, the next one finds room. A quarter is kept for what every
    /// stream has from the start, which is not counted. Nor is unused credit of idle streams: most
    /// connections stay open without data. If they all come back and pause, the window fills.
    pub(super) fn grant_stream(&mut self, id: StreamId) {
        let Limits { window, stream_window, .. } = self.settings.limits;
        let shared = window - window / 4;
        let credit = |left: u64| (stream_window + left / 3 * 2).min(window);
        // The sum below is not worth its time if even all that may be left would change nothing.
        if !self.receiving.get(&id).is_some_and(|stream| stream.is_worth_raising(credit(shared))) {
            return;
        }
        let active_from = self.highest.saturating_sub(window);
        let others = self.receiving.iter().filter(|(other, _)| **other != id);
        let taken = others
            .map(|(_, stream)| stream.reserved(active_from).saturating_sub(stream_window))
            .sum();
        let credit = credit(shared.saturating_sub(taken));
        if let Some(stream) = self.receiving.get_mut(&id)
            && stream.raise_limit(credit)
        {
            self.controls.tell(Control::MaxStreamData(id));
        }
    }

    /// Forgets a stream that is finished in both directions.
    pub(super) fn retire(&mut self, id: StreamId) {
        let read = self.receiving.get(&id).is_none_or(ReceiveStream::is_done);
        let sent = |id| self.sending.source().get(id).is_none_or(SendStream::is_done);
        if !read || !sent(id) || self.receiving.remove(&id).is_none() {
            return;
        }
        if self.receiving.is_empty() {
            self.pool = Pool::default();
        }
        self.sending.source_mut().remove(id);
        self.controls.forget(id);
        self.messages.forget(id.value());
        self.refused.remove(&id);
        if id.by_server() != self.settings.is_server {
            self.accepted_done += 1;
            let most = self.accepted_done + self.settings.limits.streams;
            if most >= self.granted_streams + (self.settings.limits.streams / 4).max(1) {
                self.granted_streams = most;
                self.controls.tell(Control::MaxStreams);
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
        self.retire(id);
    }

    /// Wakes writers that waited and can write again: room that one stream freed may be used by
    /// another.
    pub(super) fn wake_writers(&mut self) {
        if self.refused.is_empty() {
            return;
        }
        let refused = std::mem::take(&mut self.refused);
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
pub(super) fn is_needed(
    control: Control,
    receiving: &BTreeMap<StreamId, ReceiveStream>,
    streams: &Streams,
) -> bool {
    match control {
        Control::MaxStreamData(id) | Control::Stop(id) => receiving.contains_key(&id),
        Control::End(id) => streams.get(id).is_some_and(|stream| stream.reset_code().is_none()),
        Control::Reset(id) => streams.get(id).is_some(),
        Control::Close
        | Control::GoAway
        | Control::MaxData
        | Control::MaxStreams
        | Control::Status(_) => true,
    }
}
