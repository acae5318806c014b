//! The link, which every packet passes through.

use crate::aqm::{Aqm, ClassState};
use crate::capacity::Capacity;
use crate::config::{Buffer, Config, Delay, Loss, RateModel};
use crate::ends::Ends;
use crate::features::Features;
use crate::fifo::Fifo;
use crate::gate::Gate;
use crate::server::Server;
use crate::{Packet, check};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;

/// One direction of one hop, driven by its caller: the caller offers packets
/// with [`send`](Link::send), calls [`poll`](Link::poll) at
/// [`next_time`](Link::next_time), and never goes back in time.
///
/// A plain drop-tail link needs one event per packet: the departure is computed
/// on entry. CoDel and FQ-CoDel decide when a packet leaves the queue, which
/// requires a second one.
///
/// Randomness comes only from the link's own stream. Each packet draws, in this
/// order and as far as applicable: loss, AQM, jitter (on entry; with CoDel and
/// FQ-CoDel jitter is drawn when the packet leaves the queue).
pub struct Link<P> {
    core: Core<P>,
    extras: Extras<P>,
}

/// Extensions beyond a drop-tail queue, a rate and a constant delay.
enum Extras<P> {
    None,
    /// Loss or a policer only.
    Gate(Box<Gate>),
    /// Any features.
    Features(Box<Features<P>>),
    /// Anything.
    Ends(Box<Ends<P>>),
}

impl<P: Packet> Extras<P> {
    fn new(config: &Config, rng: ChaCha8Rng) -> Extras<P> {
        let gate = Gate::new(config, rng);
        if Ends::<P>::are_in(config) {
            return Extras::Ends(Box::new(Ends::new(config, Features::new(config, gate))));
        }
        if !has_plain_queue(config) {
            return Extras::Features(Box::new(Features::new(config, gate)));
        }
        match (&config.loss, config.policer) {
            (Loss::None, None) => Extras::None,
            _ => Extras::Gate(Box::new(gate)),
        }
    }
}

/// State that every link has.
pub(crate) struct Core<P> {
    pub fifo: Fifo<P>,
    pub server: Server,
    pub buffer: Buffer,
    /// Propagation delay, if it is constant.
    delay: Time,
    pub counters: Counters,
    /// `None` if unlimited.
    capacity: Option<Box<Capacity>>,
    /// Bytes transmitted of packets whose rest was lost as the link went down.
    pub cut_bytes: u64,
}

impl<P: Packet> Core<P> {
    /// Returns the bytes used of the capacity until `now`, for which the queue must be settled.
    pub fn used_bytes(&self, now: Time) -> u64 {
        let accepted = self.fifo.departed_bytes() + self.fifo.queued_bytes() + self.cut_bytes;
        let used = |capacity: &Capacity| capacity.used_bytes(now, accepted, &self.server);
        self.capacity.as_deref().map_or(0, used)
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Lost at random, periodically or by record.
    Loss,
    /// The link was down, or went down while the packet waited.
    Down,
    /// The policer had too few tokens.
    Policer,
    /// The buffer was full.
    Queue,
    /// Active queue management dropped it.
    Aqm,
    /// The circuit breaker had tripped.
    Breaker,
}

/// Packets counted since the start. Packets not dropped, lost or delivered are
/// inside the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Offered to the link, whatever their outcome.
    pub entered_packets: u64,
    /// Delivered at the far end.
    pub delivered_packets: u64,
    /// Dropped by policer, queue, AQM or circuit breaker.
    pub dropped_packets: u64,
    /// Lost at random, by record, or because the link was down.
    pub lost_packets: u64,
    /// Marked with Congestion Experienced.
    pub marked_packets: u64,
}

impl Counters {
    /// Counts a packet that was dropped or lost.
    pub(crate) fn count(&mut self, reason: DropReason) {
        match reason {
            DropReason::Loss | DropReason::Down => self.lost_packets += 1,
            DropReason::Policer | DropReason::Queue | DropReason::Aqm | DropReason::Breaker => {
                self.dropped_packets += 1;
            }
        }
    }
}

/// A link's queue at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// IP bytes waiting, the packet in transmission included.
    pub bytes: u64,
    /// Packets waiting, the packet in transmission included.
    pub packets: u64,
    /// Time that a packet entering now would wait before its first byte is
    /// sent; with FQ-CoDel, if it were served last; on a paused link, if the pause ended now.
    /// [`Time::MAX`] for ever.
    pub delay: Time,
    /// IP bytes that left the queue since the start.
    pub departed_bytes: u64,
    /// IP bytes used of `capacity_bytes`: those that left, and the transmitted
    /// part of the packet in transmission, even if its rest is lost later as the link goes down.
    /// Zero on a link without a rate.
    pub used_bytes: u64,
    /// IP bytes that the link's rate would have allowed since the start,
    /// while it was up. Zero on a link without a rate.
    pub capacity_bytes: u64,
}

impl<P: Packet> Link<P> {
    /// Creates an empty link at time zero.
    ///
    /// # Panics
    ///
    /// If the configuration violates a condition stated by [`Config`], such as
    /// that steps begin at time zero.
    pub fn new(config: Config, rng: ChaCha8Rng) -> Link<P> {
        check::assert_possible(&config);
        let unlimited = config.rate == RateModel::Unlimited;
        let core = Core {
            fifo: Fifo::new(),
            server: Server::new(&config.rate),
            buffer: if unlimited { Buffer::Unlimited } else { config.buffer },
            delay: config.delay.base.0[0].1,
            counters: Counters::default(),
            capacity: Capacity::new(&config.rate, &config.down).map(Box::new),
            cut_bytes: 0,
        };
        let extras = Extras::new(&config, rng);
        Link { core, extras }
    }

    /// Offers a packet. It is returned with the reason if it is dropped on entry.
    ///
    /// # Errors
    ///
    /// The packet and why it was dropped; it has already been counted.
    #[inline(always)]
    pub fn send(&mut self, now: Time, packet: P) -> Result<(), (DropReason, P)> {
        let core = &mut self.core;
        core.counters.entered_packets += 1;
        let size = packet.size();
        match &mut self.extras {
            Extras::None => {}
            Extras::Gate(gate) => {
                if let Some(reason) = gate.refuses(now, size, packet.sender()) {
                    core.counters.count(reason);
                    return Err((reason, packet));
                }
            }
            Extras::Features(features) => return features.send(core, now, packet),
            Extras::Ends(ends) => return ends.send(core, now, packet),
        }
        if !core.fifo.has_room(now, size, core.buffer) {
            core.counters.dropped_packets += 1;
            return Err((DropReason::Queue, packet));
        }
        let departure = core.server.serve(now, size);
        core.fifo.push(departure, departure.saturating_add(core.delay), packet);
        Ok(())
    }

    /// Offers packets of `size` bytes that enter one after another, as many of
    /// `count` as are certain to be accepted, and returns how many that is; the
    /// next one must be [sent](Link::send) separately. `packet` returns each
    /// one by its index.
    #[inline(always)]
    pub fn send_run(&mut self, now: Time, size: u32, count: u32, packet: impl Fn(u32) -> P) -> u32 {
        if !matches!(self.extras, Extras::None) {
            return 0;
        }
        let Core { fifo, server, buffer, delay, counters, .. } = &mut self.core;
        let count = fifo.certain_room(size, *buffer, count);
        counters.entered_packets += u64::from(count);
        let entry =
            |departure: Time, place| (departure, departure.saturating_add(*delay), packet(place));
        match server {
            // The packets after the first find the server busy.
            Server::Rate(server) => fifo.push_run(size, count, |place| {
                let departure =
                    if place == 0 { server.serve(now, size) } else { server.serve_next(size) };
                entry(departure, place)
            }),
            _ => fifo.push_run(size, count, |place| entry(server.serve(now, size), place)),
        }
        count
    }

    /// Returns the next time at which [`poll`](Link::poll) has something to do;
    /// [`Time::MAX`] if nothing inside will ever move. Sending a packet may
    /// make it earlier.
    #[inline]
    pub fn next_time(&self) -> Time {
        match &self.extras {
            Extras::Features(features) => features.next_time(&self.core),
            Extras::Ends(ends) => ends.features.next_time(&self.core),
            _ => self.core.fifo.next_arrival(),
        }
    }

    /// Delivers the next packet that has arrived at the far end by `now`.
    /// Returns `None` if there is none, though a packet may have left the
    /// queue. Several can arrive at once: call it until
    /// [`next_time`](Link::next_time) is later than `now`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<P> {
        let packet = match &mut self.extras {
            Extras::Features(features) => features.poll(&mut self.core, now),
            Extras::Ends(ends) => ends.poll(&mut self.core, now),
            _ => self.core.fifo.pop_arrived(now),
        };
        self.core.counters.delivered_packets += u64::from(packet.is_some());
        packet
    }

    /// Returns the packet that [`poll`](Link::poll) would deliver, leaving it
    /// in place until it is [removed](Link::remove_arrived). If `None`, `poll`
    /// must be called.
    #[inline(always)]
    pub fn arrived(&self, now: Time) -> Option<&P> {
        match &self.extras {
            Extras::Features(_) | Extras::Ends(_) => None,
            _ => self.core.fifo.first_arrived(now),
        }
    }

    /// Returns the packet that is delivered `behind` places after the next, if
    /// that is certain, without reading its memory.
    #[inline]
    pub fn upcoming(&self, behind: usize) -> &Option<P> {
        match &self.extras {
            Extras::Features(_) | Extras::Ends(_) => &None,
            _ => self.core.fifo.upcoming(behind),
        }
    }

    /// Returns a packet dropped after entry, with the time and the reason: by
    /// CoDel, by an overflow of FQ-CoDel, because the link went down. It has
    /// already been counted. Call this until it returns `None` after each
    /// [`send`](Link::send) and [`poll`](Link::poll).
    #[inline]
    pub fn take_dropped(&mut self) -> Option<(Time, DropReason, P)> {
        match &mut self.extras {
            Extras::Features(features) => features.take_dropped(),
            Extras::Ends(ends) => ends.features.take_dropped(),
            _ => None,
        }
    }

    /// Whether [`take_dropped`](Link::take_dropped) or [`take_request`](Link::take_request) would
    /// return something.
    #[inline]
    pub fn has_news(&self) -> bool {
        let features = match &self.extras {
            Extras::Features(features) => features,
            Extras::Ends(ends) => &ends.features,
            _ => return false,
        };
        features.has_dropped() || features.has_request()
    }

    /// Returns what the link asks of those before it since its queue has filled or emptied: when, and
    /// whether to pause (true) or to go on. Call this like [`take_dropped`](Link::take_dropped), and
    /// pass it on with [`pause`](Link::pause).
    #[inline]
    pub fn take_request(&mut self) -> Option<(Time, bool)> {
        match &mut self.extras {
            Extras::Features(features) => features.take_request(),
            Extras::Ends(ends) => ends.features.take_request(),
            _ => None,
        }
    }

    /// Lets the link pause or go on, as a link behind it asked now: once the request has taken the
    /// link's propagation delay back, no transmission begins until the end of the pause has arrived
    /// in the same way. One that could begin at just that moment still does. A link that is not
    /// [`pausable`](Config::pausable) ignores it. [`next_time`](Link::next_time) may become earlier.
    pub fn pause(&mut self, now: Time, pause: bool) {
        match &mut self.extras {
            Extras::Features(features) => features.pause(&mut self.core, now, pause),
            Extras::Ends(ends) => ends.features.pause(&mut self.core, now, pause),
            _ => {}
        }
    }

    /// Returns the packets counted since the start.
    pub fn counters(&self) -> Counters {
        self.core.counters
    }

    /// Returns the current state of the queue.
    pub fn queue(&mut self, now: Time) -> QueueState {
        let core = &mut self.core;
        let (held_bytes, held_packets) = match &mut self.extras {
            Extras::Features(features) => features.held(core, now),
            Extras::Ends(ends) => ends.held(core, now),
            _ => (0, 0),
        };
        core.fifo.settle(now);
        let start = core.server.start_behind(now, held_bytes);
        let whole_bytes = |capacity: &Capacity| capacity.whole_bytes(Time::ZERO, now);
        QueueState {
            bytes: core.fifo.queued_bytes() + held_bytes,
            packets: core.fifo.queued_packets() as u64 + held_packets,
            delay: if start == Time::MAX { start } else { start.saturating_sub(now) },
            departed_bytes: core.fifo.departed_bytes(),
            used_bytes: core.used_bytes(now),
            capacity_bytes: core.capacity.as_deref().map_or(0, whole_bytes),
        }
    }
}

impl<P: Packet> Link<P> {
    /// Returns the current state of each class of traffic in the queue; empty
    /// if there is only one.
    pub fn classes(&mut self, now: Time) -> Vec<ClassState> {
        match &mut self.extras {
            Extras::Features(features) => features.classes(&mut self.core, now),
            Extras::Ends(ends) => ends.classes(&mut self.core, now),
            _ => Vec::new(),
        }
    }
}

impl<P: Packet + Copy> Link<P> {
    /// Counts the packet as delivered that [`arrived`](Link::arrived) has just
    /// returned, and returns the value of [`next_time`](Link::next_time).
    #[inline(always)]
    pub fn remove_arrived(&mut self) -> Time {
        self.core.counters.delivered_packets += 1;
        self.core.fifo.skip_first()
    }
}

/// Whether there is only a drop-tail queue, a rate and a constant delay after the gate.
fn has_plain_queue(config: &Config) -> bool {
    let Delay { base, jitter, .. } = &config.delay;
    let drop_tail = config.aqm == Aqm::DropTail || config.rate == RateModel::Unlimited;
    let always = config.down.is_empty() && config.hold.is_empty();
    let pauses = config.pausable || config.pause.is_some();
    drop_tail && always && !pauses && jitter.is_none() && base.0.len() == 1
}
