//! Frames that are repeated until the peer has them: credit, ends, resets, status.
//!
//! What is due is kept by its kind and read when it is written, so that a repetition
//! tells what is true then.

use crate::stream::StreamId;
use std::collections::{BTreeMap, BTreeSet};

/// What the peer is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// The bundle is over.
    Close,
    /// No more streams are taken.
    GoAway,
    /// Credit of all streams together.
    MaxData,
    /// How many streams the peer may have opened.
    MaxStreams,
    /// What this end thinks of a path.
    Status(usize),
    /// Credit of a stream.
    MaxStreamData(StreamId),
    /// Where a stream ends, whose last byte was given to a path before that was known.
    End(StreamId),
    /// A stream is over at once.
    Reset(StreamId),
    /// Nobody wants more of a stream.
    Stop(StreamId),
}

/// What is due, and what is under way.
#[derive(Clone, Debug, Default)]
pub struct Controls {
    due: BTreeSet<Control>,
    under_way: BTreeMap<u64, Vec<Control>>,
    next: u64,
}

impl Controls {
    /// The peer is to be told this.
    pub fn tell(&mut self, control: Control) {
        self.due.insert(control);
    }

    /// The peer need not be told this any more.
    pub fn withdraw(&mut self, control: Control) {
        self.due.remove(&control);
    }

    /// Whether something is due.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Takes out what is due as far as `write` writes it; returns the number of the
    /// datagram that has it, for [`delivered`](Self::delivered) and
    /// [`lost`](Self::lost).
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

    /// A datagram arrived: what it told.
    pub fn delivered(&mut self, number: u64) -> Vec<Control> {
        self.under_way.remove(&number).unwrap_or_default()
    }

    /// A datagram is lost: what it told is due again, as far as `needed`.
    pub fn lost(&mut self, number: u64, needed: impl Fn(Control) -> bool) {
        let told = self.under_way.remove(&number).unwrap_or_default();
        self.due.extend(told.into_iter().filter(|control| needed(*control)));
    }

    /// A stream is gone: nothing of it is due any more.
    pub fn forget(&mut self, id: StreamId) {
        for control in
            [Control::MaxStreamData(id), Control::End(id), Control::Reset(id), Control::Stop(id)]
        {
            self.due.remove(&control);
        }
    }
}
