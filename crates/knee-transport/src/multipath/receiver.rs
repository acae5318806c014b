//! The receiving end over TCP subflows.

use super::mapping::Mapping;
use super::{DataAck, shared_window};
use crate::config::Config;
use crate::receiver::Receiver;
use crate::wire::{Ack, AckDetails, Segment};
use knee_multipath::sched::{PATHS_MAX, PathSet};
use knee_multipath::{Reassembly, SharedWindow};
use knee_units::{Ecn, Time};

/// Result of an arrival on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultipathArrival {
    /// Payload bytes handed to the application, in order over all paths.
    pub delivered_bytes: u64,
    /// Segments that the subflow delivered in its order.
    pub subflow_segments: u32,
    /// Their payload bytes.
    pub subflow_bytes: u64,
    /// Whether an ACK of the subflow is due now.
    pub ack_now: bool,
    /// When a delayed ACK of the subflow is due; [`Time::MAX`] if none is.
    pub timer: Time,
    /// Other subflows on which an ACK is due now because the shared window has opened.
    pub window_updates: PathSet,
}

/// The receiving end of a subflow.
#[derive(Clone, Debug)]
struct Incoming {
    receiver: Receiver,
    /// The mapping of the segment that it delivered last.
    mapping: Mapping,
}

impl Incoming {
    /// Returns the data of a segment that `find` knows the mapping of.
    #[inline(always)]
    fn data<'m>(
        &mut self,
        segment: u32,
        find: impl Fn(u32) -> Option<&'m Mapping>,
    ) -> Option<(u64, u16)> {
        let known = self.mapping.data(segment);
        if known.is_some() {
            return known;
        }
        self.mapping = *find(segment)?;
        self.mapping.data(segment)
    }
}

/// The receiving end of a connection over several TCP subflows.
#[derive(Clone, Debug)]
pub struct MultipathReceiver {
    config: Config,
    subflows: [Option<Box<Incoming>>; PATHS_MAX],
    reassembly: Reassembly,
    window: SharedWindow,
    /// End of the window in the last ACK on any subflow.
    announced: u64,
    /// Next byte expected from which on the window has opened enough to be announced at once:
    /// it has then grown by at least half of the buffer since it was last announced, as when
    /// data arrives that everything in the buffer has waited for. It is announced on every
    /// subflow, because the one that the data arrived on may be the slowest
    /// (`mptcp_cleanup_rbuf`; half of the buffer is the `Fr` of RFC 9293, section 3.8.6.2.2).
    opens_at: u64,
}

impl MultipathReceiver {
    /// Creates a receiver that has received nothing.
    pub fn new(config: &Config) -> MultipathReceiver {
        let window = shared_window(config.receive_window);
        MultipathReceiver {
            config: *config,
            subflows: [const { None }; PATHS_MAX],
            reassembly: Reassembly::default(),
            announced: window.bytes(),
            opens_at: window.bytes() / 2,
            window,
        }
    }

    /// Starts a subflow on a path; data held by an earlier one is discarded.
    pub fn on_path_up(&mut self, path: usize) {
        let receiver = Receiver::new(&self.config);
        let mapping = Mapping::default();
        self.subflows[path] = Some(Box::new(Incoming { receiver, mapping }));
    }

    /// Removes the subflow on a path.
    pub fn on_path_down(&mut self, path: usize) {
        self.subflows[path] = None;
    }

    /// Processes a segment that arrived on a path. `mapping` returns the mapping of a
    /// segment of the subflow. `rtt` is that of the slowest path.
    #[inline]
    pub fn on_segment<'m>(
        &mut self,
        now: Time,
        path: usize,
        segment: &Segment,
        ecn: Ecn,
        rtt: impl FnOnce() -> Time,
        mapping: impl Fn(u32) -> Option<&'m Mapping>,
    ) -> MultipathArrival {
        let Some(subflow) = &mut self.subflows[path] else { return MultipathArrival::default() };
        let arrival = subflow.receiver.on_segment(now, segment, ecn);
        let (next, timer) = (subflow.receiver.next(), subflow.receiver.timer());
        let delivered_bytes = if arrival.delivered_segments == 1 {
            take(&mut self.reassembly, now, subflow.data(next.wrapping_sub(1), mapping))
        } else {
            let count = arrival.delivered_segments;
            take_all(&mut self.reassembly, now, subflow, count, mapping)
        };
        let mut opened = false;
        if delivered_bytes > 0 {
            if self.window.is_tuned() {
                // The application reads immediately.
                self.window.on_read(now, self.reassembly.next(), rtt());
                let bytes = self.window.bytes();
                self.opens_at = (self.announced + bytes / 2).saturating_sub(bytes);
            }
            opened = self.reassembly.next() >= self.opens_at;
        }
        MultipathArrival {
            delivered_bytes,
            subflow_segments: arrival.delivered_segments,
            subflow_bytes: arrival.delivered_bytes,
            ack_now: arrival.ack_now || opened,
            timer,
            window_updates: if opened { self.others_in_use(path) } else { PathSet::default() },
        }
    }

    /// Returns the other subflows that have carried data.
    #[cold]
    fn others_in_use(&self, path: usize) -> PathSet {
        let mut others = PathSet::default();
        for (index, subflow) in self.subflows.iter().enumerate() {
            if index != path
                && subflow.as_ref().is_some_and(|it| it.receiver.delivered_segments() > 0)
            {
                others.insert(index);
            }
        }
        others
    }

    /// Returns the next ACK of a subflow, and whether it has details. It is
    /// sent together with [`data_ack`](Self::data_ack).
    #[inline]
    pub fn make_ack(&mut self, path: usize, details: &mut AckDetails) -> Option<(Ack, bool)> {
        let DataAck { next, window_end } = self.data_ack();
        self.announced = window_end;
        self.opens_at = next + self.window.bytes() / 2;
        self.subflows[path].as_mut().map(|subflow| subflow.receiver.make_ack(details))
    }

    /// Returns the acknowledgement of the connection's data, sent with every ACK.
    #[inline]
    pub fn data_ack(&self) -> DataAck {
        let next = self.reassembly.next();
        DataAck { next, window_end: next.saturating_add(self.window.bytes()) }
    }

    /// Returns when a delayed ACK of a subflow is due; [`Time::MAX`] if none is.
    #[inline]
    pub fn timer(&self, path: usize) -> Time {
        self.subflows[path].as_ref().map_or(Time::MAX, |subflow| subflow.receiver.timer())
    }

    /// Returns the subflow of a path, if there is one.
    pub fn subflow(&self, path: usize) -> Option<&Receiver> {
        self.subflows[path].as_ref().map(|subflow| &subflow.receiver)
    }

    /// Returns the reassembly buffer of the connection.
    pub fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }
}

/// Takes the data of a segment; returns the bytes that this hands to the application.
#[inline(always)]
fn take(reassembly: &mut Reassembly, now: Time, data: Option<(u64, u16)>) -> u64 {
    let Some((offset, len)) = data else { return 0 };
    reassembly.insert(now, offset, u64::from(len)).delivered
}

/// Takes the data of the last `count` segments that a subflow delivered.
#[inline(never)]
fn take_all<'m>(
    reassembly: &mut Reassembly,
    now: Time,
    subflow: &mut Incoming,
    count: u32,
    mapping: impl Fn(u32) -> Option<&'m Mapping>,
) -> u64 {
    let next = subflow.receiver.next();
    let segments = (1..=count).rev().map(|back| next.wrapping_sub(back));
    segments.map(|segment| take(reassembly, now, subflow.data(segment, &mapping))).sum()
}
