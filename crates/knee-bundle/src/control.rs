//! Frames that are repeated until the peer has received them: credit, ends, resets, status.
//!
//! Only the kind of a frame is queued; its content is read when it is written, so that a repetition
//! carries the current values.

use crate::stream::StreamId;
use std::collections::{BTreeMap, BTreeSet};

/// A control frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// The bundle is closed.
    Close,
    /// No more streams are accepted.
    GoAway,
    /// Credit of all streams together.
    MaxData,
    /// Number of streams that the peer may open.
    MaxStreams,
    /// How this end wants a path to be used.
    Status(usize),
    /// Credit of a stream is wanted back.
    Recall(StreamId),
    /// Credit of a stream is given back.
    Return(StreamId),
    /// Credit of a stream.
    MaxStreamData(StreamId),
    /// End of a stream whose last byte was given to a path before the end was known.
    End(StreamId),
    /// A stream is reset.
    Reset(StreamId),
    /// A stream is no longer read.
    Stop(StreamId),
}

/// Frames that are due, and those in flight.
#[derive(Clone, Debug, Default)]
pub struct Controls {
    due: BTreeSet<Control>,
    under_way: BTreeMap<u64, Vec<Control>>,
    next: u64,
}

impl Controls {
    /// Queues a frame.
    pub fn queue(&mut self, control: Control) {
        self.due.insert(control);
    }

    /// Removes a frame from the queue.
    pub fn withdraw(&mut self, control: Control) {
        self.due.remove(&control);
    }

    /// Returns whether a frame is due.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Removes the frames that are due, for as long as `write` accepts them. Returns the number of
    /// the datagram that carries them, for [`delivered`](Self::delivered) and [`lost`](Self::lost).
    pub fn take(&mut self, mut write: impl FnMut(Control) -> bool) -> u64 {
        let mut taken = Vec::new();
        while let Some(control) = self.due.first().copied() {
            if !write(control) {
                break;
            }
            self.due.remove(&control);
            taken.push(control);
        }
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, taken);
        number
    }

    /// Notes that a datagram was acknowledged, and returns its frames.
    pub fn delivered(&mut self, number: u64) -> Vec<Control> {
        self.under_way.remove(&number).unwrap_or_default()
    }

    /// Notes that a datagram was lost: its frames are due again if `needed`.
    pub fn lost(&mut self, number: u64, needed: impl Fn(Control) -> bool) {
        let told = self.under_way.remove(&number).unwrap_or_default();
        self.due.extend(told.into_iter().filter(|control| needed(*control)));
    }

    /// Makes the frames of a datagram due again if `needed`, although it may still arrive.
    pub fn repeat(&mut self, number: u64, needed: impl Fn(Control) -> bool) {
        let told = self.under_way.get(&number).into_iter().flatten();
        self.due.extend(told.copied().filter(|control| needed(*control)));
    }

    /// Forgets all frames of a stream that is gone.
    pub fn forget(&mut self, id: StreamId) {
        let of_stream = [
            Control::Recall(id),
            Control::Return(id),
            Control::MaxStreamData(id),
            Control::End(id),
            Control::Reset(id),
            Control::Stop(id),
        ];
        for control in of_stream {
            self.due.remove(&control);
        }
    }
}
