//! A sender as one path of a multipath connection: the connection decides which
//! new data it carries, and when.

use super::{Handshake, Sender, Transmit};
use crate::wire::Segment;
use knee_cc::{Event, Peer};
use knee_units::{Rate, Time};

/// Answer to [`Sender::room`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A full segment may be sent now.
    Now,
    /// Pacing delays it until this time.
    At(Time),
    /// Not before an acknowledgement arrives.
    Full,
}

impl Sender {
    /// Returns what is sent before new data: the handshake, a probe, lost segments.
    #[inline]
    pub fn poll_urgent(&mut self, now: Time) -> Transmit {
        if self.handshake != Handshake::Done {
            return self.poll_handshake(now);
        }
        if self.lost.is_empty() && !self.probe_due {
            return Transmit::Nothing;
        }
        self.poll_again(now)
    }

    /// Whether something may have to be sent before new data.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        self.handshake != Handshake::Done || self.probe_due || !self.lost.is_empty()
    }

    /// Whether a new full segment may be sent. If so, a burst begins now;
    /// earlier results are no longer valid.
    #[inline(always)]
    pub fn room(&mut self, now: Time) -> Room {
        if self.handshake != Handshake::Done || !self.lost.is_empty() {
            return Room::Full;
        }
        if self.board.in_flight() + u64::from(self.mss) > self.window() {
            self.note_window_use(true);
            return Room::Full;
        }
        if !self.pacer.admit(now, self.quantum) {
            self.note_window_use(false);
            return Room::At(self.pacer.next());
        }
        Room::Now
    }

    /// Sends `len` bytes of new data, at most a full segment, for which there
    /// must be [room](Self::room) at this very time. The last segment of the
    /// connection's data is marked as pushed, as by a single-path sender.
    #[inline]
    pub fn send(&mut self, now: Time, len: u16, is_last: bool) -> Segment {
        debug_assert!(self.pacer.in_burst(now), "there was room at another time");
        self.written += u64::from(len);
        let in_flight = self.board.in_flight();
        let mss = u64::from(self.mss);
        let follows = in_flight + u64::from(len) + mss <= self.window();
        let push = is_last || self.pacer.ends_burst(1, follows);
        self.send_new(now, u64::from(len), in_flight, push)
    }

    /// Called when there is room but the connection has nothing for this path:
    /// samples up to this point underestimate the path. If the connection is
    /// `blocked`, they do not: a full receive window does not mean an idle
    /// application (`tcp_rate_check_app_limited`).
    pub fn note_idle(&mut self, blocked: bool) {
        let in_flight = self.board.in_flight();
        if blocked {
            self.note_window_use(in_flight + u64::from(self.mss) > self.window());
        } else {
            self.out_of_data(in_flight);
        }
    }

    /// Slows this path down because it holds up the others.
    pub fn penalise(&mut self, now: Time) {
        self.tell(now, Event::Penalised);
    }

    /// Whether the controller is coupled with those of the other paths.
    #[inline]
    pub fn is_coupled(&self) -> bool {
        self.needs.coupled
    }

    /// Returns what the controller shows to those of the other paths.
    pub fn peer(&self) -> Peer {
        let established = self.handshake == Handshake::Done;
        let srtt = if established { self.rtt.smoothed() } else { Time::ZERO };
        Peer { srtt, ..self.controller.peer() }
    }

    /// Passes the controller all controllers of the connection.
    pub fn on_peers(&mut self, peers: &[Peer], own: usize) {
        self.controller.on_peers(peers, own);
    }

    /// Returns the next segment to be acknowledged cumulatively (SND.UNA), in segments.
    #[inline]
    pub fn first(&self) -> u32 {
        self.board.first()
    }

    /// Whether data is outstanding, in any state.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.board.is_empty()
    }

    /// Returns the delivery rate of the last sample, payload; `None` before the first.
    pub fn delivery_rate(&self) -> Option<Rate> {
        self.sampler.rate()
    }

    /// Returns the send time of the segment that was acknowledged last.
    #[inline]
    pub fn last_acked_sent_at(&self) -> Time {
        self.sampler.first_sent_at()
    }

    /// Whether the window doubles in each round trip: slow start, or BBR's startup.
    pub fn doubles(&self) -> bool {
        matches!(self.controller.state().phase, "slow_start" | "startup")
    }

    /// Returns the timeouts since the last acknowledgement that made progress.
    pub fn timeouts_in_a_row(&self) -> u32 {
        self.timeouts_in_a_row
    }
}
