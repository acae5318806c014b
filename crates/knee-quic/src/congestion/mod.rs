//! A controller of `knee-cc` under a QUIC connection.
//!
//! The QUIC library reports each packet: sent, acknowledged, lost. From that follow the samples and
//! events that TCP would give. Losses are [found here](detect): the library's own detection does not
//! adapt to paths that reorder, and does not report a packet that arrives after all, so it is
//! [set](crate::host) to be slower. Differences:
//!
//! * A packet has the bytes of its QUIC header and tag; those of IP and UDP are left out.
//! * The library reports what an ACK acknowledges before what it takes for lost. The sample waits
//!   until both are known.
//! * No packet is sent twice, so every RTT is unambiguous; it includes the peer's ACK delay, as on
//!   TCP. Nothing is ever in disorder.
//! * A probe timeout is not reported. Persistent congestion (RFC 9002, section 7.6) takes the place
//!   of TCP's retransmission timeout.
//! * The fate of packets whose handshake keys are gone, of lost probes of the MTU, and of packets
//!   from before an address changed is never reported: bytes in flight are corrected at each ACK.
//!
//! The library neither paces nor enforces its window: [`CongestionControl::may_send`] decides when
//! a packet may leave.

mod adaptor;
mod detect;
mod disorder;
mod number_spaces;
mod observed;
mod settle;
#[cfg(test)]
mod tests;

pub(crate) use self::number_spaces::NUMBER_SPACES_MAX;
pub use self::observed::Observed;

use self::adaptor::Adaptor;
use self::detect::Undo;
use self::disorder::Disorder;
use self::number_spaces::NumberSpaces;
use crate::recovery::Episode;
use crate::ring::{Ring, Taken};
use knee_bundle::{LossRule, PATHS_MAX};
use knee_cc::{
    Connection, Controller, Decision, Event, Init, Needs, Peer, RecoveryPeriod, Selection,
    SelectionError, Transmission,
};
use knee_multipath::CapacityMeter;
use knee_transport::{Pacer, RateSampler, Reduction, RttEstimator, Sampler, Sent};
use knee_units::Time;
use noq_proto::congestion;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Headers of IPv4 and UDP; over IPv6 packets are 20 bytes larger than controllers are told.
const AROUND: u32 = 28;
/// Interval of the timers of a host, which sends and reads together what became due since the last
/// one. Tokio's have a millisecond.
const TICK: Time = Time::from_millis(1);
/// Maximum lateness of the pacer's timer that is made up for: what was due meanwhile leaves at
/// once, as with the token bucket of other QUIC libraries. Otherwise a host that sends a burst of a
/// millisecond and wakes up a millisecond late reaches half of its rate, and a controller that
/// measures what it reaches asks for less and less.
const LATENESS_MAX: Time = Time::from_millis(10);
/// TCP's minimum timeout, which the RTT estimator needs.
const MIN_RTO: Time = Time::from_millis(200);

/// State that the controllers of a connection's paths share, by path.
#[derive(Clone, Debug, Default)]
pub struct Coupling(Arc<Mutex<[Peer; PATHS_MAX]>>);

impl Coupling {
    /// Forgets a path that is gone.
    pub fn leave(&self, path: usize) {
        lock(&self.0)[path] = Peer::default();
    }
}

/// Congestion control settings of a path.
#[derive(Clone, Debug)]
pub struct CongestionSettings {
    /// The controller.
    pub controller: Selection,
    /// End of recovery; if absent, as the controller asks.
    pub recovery: Option<RecoveryPeriod>,
    /// Whether to pace; if absent, as the controller asks.
    pub paced: Option<bool>,
    /// Packets of the initial window.
    pub initial_window: u32,
    /// Maximum burst, bytes.
    pub max_burst: u32,
}

/// What an ACK acknowledges, until it is known what it shows to be lost.
#[derive(Debug)]
struct Batch {
    at: Time,
    prior_in_flight: u64,
    newly_acked: u64,
    newly_acked_packets: u32,
    newest: Option<Sent>,
    /// Whether the whole ACK was reported.
    complete: bool,
}

#[derive(Debug)]
struct Inner {
    controller: Box<dyn Controller>,
    needs: Needs,
    start: Instant,
    mss: u32,
    initial_window: u64,
    max_burst: u32,
    paced: bool,
    ring: Ring,
    sampler: RateSampler,
    rtt: RttEstimator,
    capacity: CapacityMeter,
    pacer: Pacer,
    /// When the pacer's timer is due; [`Time::MAX`] if it is not set.
    pacer_due: Time,
    /// Time of the last call of that timer, and the time from which its packets count as sent.
    pacer_called: (Time, Time),
    quantum: u32,
    /// Packets that the pacer has counted; they have not all left yet.
    handed_over: u64,
    decision: Decision,
    reduction: Option<Reduction>,
    episode: Episode,
    established: bool,
    window_limited: bool,
    /// Order of the packet that begins the next round; `window_limited` holds until it is the oldest.
    usage_end: u32,
    in_flight: u64,
    /// Bytes sent that are no longer in flight, whether acknowledged or lost: lost data is sent
    /// again as new.
    settled: u64,
    counted: Observed,
    batch: Option<Batch>,
    losses: Vec<Sent>,
    rule: LossRule,
    /// When a packet that was overtaken is lost; [`Time::MAX`] if there is none.
    loss_at: Time,
    undo: Undo,
    spaces: NumberSpaces,
    /// Once the path reorders widely.
    disorder: Option<Box<Disorder>>,
    /// Of which the controller is made.
    selection: Selection,
    rng: ChaCha8Rng,
    /// Order of the packet that was sent first after the handshake.
    first_of_data: u64,
    /// Order of the packet after the first flight of data; the highest number before that flight was
    /// acknowledged.
    first_flight_end: u64,
    /// The controllers of the other paths, and the index among them.
    coupling: Option<(Coupling, usize)>,
    woken: Time,
    /// Time of the last call.
    now: Time,
}

/// Congestion control of a path; clones share its state.
#[derive(Clone, Debug)]
pub struct CongestionControl(Arc<Mutex<Inner>>);

/// Checks whether a controller works over QUIC. One that counts marks does not, because the library
/// reports one mark per ACK and no bytes.
///
/// # Errors
/// Why it does not work, or that it is unknown.
pub fn check_controller(controller: &Selection) -> Result<(), String> {
    let mss = 1200;
    let init = Init {
        mss,
        mtu: mss + AROUND,
        initial_window: u64::from(mss),
        rng: ChaCha8Rng::seed_from_u64(0),
    };
    let built = knee_cc::build(controller, init).map_err(|error| error.to_string())?;
    if built.needs().accurate_ecn {
        let name = &controller.name;
        return Err(format!("{name} counts marked bytes, which the QUIC library does not report"));
    }
    Ok(())
}

impl CongestionControl {
    /// Makes the congestion control of a path whose packets have `mss` bytes (UDP payload). `start`
    /// is time zero.
    ///
    /// # Errors
    /// The controller or a parameter is unknown.
    pub fn new(
        settings: &CongestionSettings,
        mss: u16,
        start: Instant,
        rng: ChaCha8Rng,
    ) -> Result<CongestionControl, SelectionError> {
        let mss = u32::from(mss);
        let initial_window = u64::from(settings.initial_window) * u64::from(mss);
        let init = Init { mss, mtu: mss + AROUND, initial_window, rng: rng.clone() };
        let controller = knee_cc::build(&settings.controller, init)?;
        let needs = controller.needs();
        let mut inner = Inner {
            needs,
            start,
            mss,
            initial_window,
            max_burst: settings.max_burst,
            paced: settings.paced.unwrap_or(needs.pacing),
            ring: Ring::default(),
            sampler: RateSampler::new(Sampler::default()),
            rtt: RttEstimator::new(MIN_RTO),
            capacity: CapacityMeter::ticking(TICK),
            pacer: Pacer::new(mss),
            pacer_due: Time::MAX,
            pacer_called: (Time::ZERO, Time::ZERO),
            quantum: 0,
            handed_over: 0,
            decision: controller.decision(),
            reduction: None,
            episode: Episode::new(settings.recovery.unwrap_or(needs.recovery_period)),
            established: false,
            window_limited: false,
            usage_end: 0,
            in_flight: 0,
            settled: 0,
            counted: Observed::default(),
            batch: None,
            losses: Vec::new(),
            rule: LossRule::default(),
            loss_at: Time::MAX,
            undo: Undo::default(),
            spaces: NumberSpaces::default(),
            disorder: None,
            selection: settings.controller.clone(),
            rng,
            first_of_data: 0,
            first_flight_end: u64::MAX,
            coupling: None,
            woken: Time::ZERO,
            now: Time::ZERO,
            controller,
        };
        inner.apply(inner.decision);
        Ok(CongestionControl(Arc::new(Mutex::new(inner))))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.0)
    }

    /// Couples this controller with those of the connection's other paths; its own has number `path`.
    pub fn couple(&self, coupling: &Coupling, path: usize) {
        let mut inner = self.inner();
        lock(&coupling.0)[path] = inner.controller.peer();
        inner.coupling = Some((coupling.clone(), path));
    }

    /// Notes that the handshake is complete, with its RTT.
    pub fn on_established(&self, now: Time, rtt: Time) {
        let mut inner = self.inner();
        inner.flush();
        inner.establish(now, rtt);
    }

    /// Returns it with the interface of the QUIC library, for a further packet number space.
    pub fn for_library(&self) -> Box<dyn congestion::Controller> {
        let space = self.inner().spaces.add();
        Box::new(Adaptor(self.clone(), space))
    }

    /// Returns the number of packet number spaces, and gives the turn to the next one.
    pub fn next_number_space(&self) -> usize {
        self.inner().spaces.next()
    }

    /// Returns whether another packet may leave now, if `waiting` bytes wait in the connection.
    pub fn may_send(&self, now: Time, waiting: u64) -> bool {
        self.inner().may_send(now, waiting)
    }

    /// Notes that a packet of `bytes` is about to leave, as part of `waiting` bytes, with a datagram of
    /// this number if that asks for an acknowledgement. Returns whether another one may.
    pub fn on_handed_over(
        &self,
        now: Time,
        bytes: u16,
        waiting: u64,
        datagram: Option<u64>,
    ) -> bool {
        let mut inner = self.inner();
        if inner.paced {
            if !inner.pacer.in_burst(now) && inner.pacer.is_due(now) {
                let (called, from) = inner.pacer_called;
                let from = if called == now { from } else { now };
                let quantum = inner.quantum;
                inner.pacer.begin_burst_from(now, from, quantum);
            }
            let before = inner.handed_over;
            inner.handed_over += 1;
            inner.pacer.on_sent(bytes, before);
        }
        if let Some(number) = datagram {
            inner.on_datagram_sent(now, bytes, number);
        }
        inner.may_send(now, waiting)
    }

    /// Notes that the peer's address changed: the library reports nothing any more of what was sent
    /// before.
    pub fn on_address_changed(&self) {
        let mut inner = self.inner();
        inner.flush();
        inner.ring.clear();
        (inner.in_flight, inner.loss_at) = (inner.datagrams_in_flight(), Time::MAX);
    }

    /// Notes that the path reorders widely: from now on packets are known by the bundle's datagrams, and
    /// the controller sees the mean RTT.
    pub fn follow_datagrams(&self) {
        self.inner().follow_datagrams();
    }

    /// Notes that the bundle's peer acknowledged these datagrams.
    pub fn on_datagrams_arrived(&self, now: Time, numbers: &[u64]) {
        self.inner().on_datagrams_arrived(now, numbers);
    }

    /// Returns the number of packets acknowledged so far, and whether more are in flight.
    pub fn delivered(&self) -> (u64, bool) {
        let mut inner = self.inner();
        inner.flush();
        (inner.counted.delivered_packets, inner.in_flight > 0)
    }

    /// Notes that the application sent nothing although there is room, so that samples up to here
    /// underestimate the path.
    pub fn on_application_limited(&self, waiting: u64) {
        let mut inner = self.inner();
        let in_flight = inner.in_flight + inner.uncounted(waiting);
        inner.sampler.mark_app_limited(in_flight);
        let fits = inner.fits(waiting);
        inner.note_window_use(!fits);
    }

    /// Returns when pacing allows the next packet, or the controller must be woken.
    pub fn timer(&self, now: Time) -> Time {
        let mut inner = self.inner();
        // One that is late stays due until it is called.
        if inner.pacer_due > now {
            let is_set = inner.paced && inner.fits(0) && inner.pacer.next() > now;
            inner.pacer_due = if is_set { inner.pacer.next() } else { Time::MAX };
        }
        inner.pacer_due.min(inner.wake_at()).min(inner.loss_at)
    }

    /// Detects losses, wakes the controller if it is due, and notes how late the pacer's timer is.
    pub fn on_timer(&self, now: Time) {
        let mut inner = self.inner();
        if inner.loss_at <= now {
            inner.flush();
            inner.settle(now, None, false);
        }
        if inner.pacer_due <= now {
            let due = std::mem::replace(&mut inner.pacer_due, Time::MAX);
            inner.pacer_called = (now, due.max(now.saturating_sub(LATENESS_MAX)));
        }
        if inner.wake_at() <= now {
            inner.woken = now;
            let connection = inner.connection(now);
            let decision = inner.controller.on_wake(&connection);
            inner.apply(decision);
        }
    }

    /// Halves the window, because the path holds up another one.
    pub fn penalise(&self, now: Time) {
        let mut inner = self.inner();
        inner.flush();
        inner.tell(now, Event::Penalised);
    }

    /// Returns why the controller cannot continue, or `None` if it can.
    pub fn failure(&self) -> Option<String> {
        let inner = self.inner();
        if inner.needs.may_fail { inner.controller.failure() } else { None }
    }

    /// Returns counters and current state.
    pub fn observe(&self) -> Observed {
        let mut inner = self.inner();
        inner.flush();
        Observed {
            delivered: inner.sampler.delivered,
            in_flight: inner.in_flight,
            window: inner.window(),
            decision: inner.decision,
            rtt: inner.rtt.latest(),
            srtt: inner.rtt.smoothed(),
            rtt_variation: inner.rtt.deviation(),
            min_rtt: inner.rtt.minimum(),
            rtt_range: inner.rtt.range(),
            rate: inner.sampler.rate(),
            capacity: inner.capacity.capacity(),
            state: inner.controller.state(),
            ..inner.counted
        }
    }

    /// Returns whether the path is paced.
    pub fn is_paced(&self) -> bool {
        self.inner().paced
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic has ended the run already.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn may_send(&mut self, now: Time, waiting: u64) -> bool {
        self.flush();
        let fits = self.fits(waiting);
        self.note_window_use(!fits);
        fits && (!self.paced || self.pacer.in_burst(now) || self.pacer.is_due(now))
    }

    fn time(&self, at: Instant) -> Time {
        Time::from_nanos(at.saturating_duration_since(self.start).as_nanos() as u64)
    }

    /// Returns the order of the packet that leaves next.
    fn next(&self) -> u32 {
        self.counted.sent_packets as u32
    }

    /// Returns the order of a packet that was sent, counted from the first.
    fn order(&self, sent: &Sent) -> u64 {
        let next = self.counted.sent_packets;
        next - u64::from((next as u32).wrapping_sub(sent.order))
    }

    /// Records for one round whether the window was the limit (`tcp_cwnd_validate`).
    fn note_window_use(&mut self, limited: bool) {
        let next = self.next();
        let oldest = self.oldest_sent().map_or(next, |sent| sent.order);
        if limited || oldest.wrapping_sub(self.usage_end) as i32 >= 0 {
            self.window_limited = limited;
            self.usage_end = self.next();
        }
    }

    /// Returns whether a packet fits into the window beside those that wait in the library.
    fn fits(&self, waiting: u64) -> bool {
        self.in_flight + self.uncounted(waiting) + u64::from(self.mss) <= self.window()
    }

    /// Returns how many of the bytes that wait in the library do not count as in flight yet.
    fn uncounted(&self, waiting: u64) -> u64 {
        if self.disorder.is_some() { 0 } else { waiting }
    }

    /// Returns the window in force: a packet at least, as a TCP sender's (RFC 5681, section 3.1).
    fn window(&self) -> u64 {
        let decided = self.reduction.map_or(self.decision.window, |reduction| reduction.window);
        decided.max(self.mss.into())
    }

    fn wake_at(&self) -> Time {
        if !self.needs.wakes {
            return Time::MAX;
        }
        let at = self.controller.wake_at();
        if at <= self.woken { Time::MAX } else { at }
    }

    fn connection(&mut self, now: Time) -> Connection {
        // The library may correct the bytes in flight upwards.
        self.settled = self.settled.max(self.counted.sent.saturating_sub(self.in_flight));
        Connection {
            now,
            mss: self.mss,
            mtu: self.mss + AROUND,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered,
            lost: self.counted.lost,
            acknowledged: self.settled,
            sent: self.counted.sent,
            srtt: self.rtt.smoothed(),
            min_rtt: self.shown_rtt().minimum(),
            reordering: 0,
            recovery: self.episode.state(),
            window_limited: self.window_limited,
            app_limited: self.sampler.app_limited(),
            paced: self.paced,
            next_departure: if self.paced { self.pacer.next().max(now) } else { now },
        }
    }

    fn apply(&mut self, decision: Decision) {
        if self.paced {
            self.pacer.set_rate(decision.pacing_rate);
        }
        let burst = decision.send_quantum.min(u64::from(self.max_burst));
        self.quantum = (burst / u64::from(self.mss)).max(1) as u32;
        self.decision = decision;
    }

    fn tell(&mut self, now: Time, event: Event) {
        let connection = self.connection(now);
        let decision = self.controller.on_event(event, &connection);
        self.apply(decision);
    }

    fn establish(&mut self, now: Time, rtt: Time) {
        self.established = true;
        self.first_of_data = self.counted.sent_packets;
        if self.rtt.smoothed() == Time::ZERO {
            self.rtt.update(rtt, 0, self.next());
            self.rtt.update_minimum(now, rtt);
        }
        self.tell(now, Event::Established);
    }

    fn on_sent(&mut self, now: Time, bytes: u16, number: u64) {
        let sent = self.note_sent(now, bytes);
        self.ring.insert(number, sent, u32::from(bytes) > self.mss);
    }

    /// Notes that a packet leaves.
    fn note_sent(&mut self, now: Time, bytes: u16) -> Sent {
        self.now = now;
        self.flush();
        let nothing_outstanding = self.in_flight == 0;
        if nothing_outstanding && self.established && self.sampler.delivered > 0 {
            self.tell(now, Event::SentAfterIdle);
        }
        let mut sent = Sent {
            len: bytes,
            order: self.next(),
            lost: self.counted.lost as u32,
            ..Sent::default()
        };
        self.sampler.on_sent(now, nothing_outstanding, &mut sent);
        self.in_flight += u64::from(bytes);
        sent.in_flight = u32::try_from(self.in_flight).unwrap_or(u32::MAX);
        self.counted.sent += u64::from(bytes);
        self.counted.sent_packets += 1;
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(bytes.into());
        }
        if self.needs.sends && self.established {
            let transmission = Transmission { bytes: bytes.into(), retransmission: false };
            let connection = self.connection(now);
            let decision = self.controller.on_sent(&transmission, &connection);
            self.apply(decision);
        }
        sent
    }

    fn on_acknowledged(&mut self, now: Time, sent_at: Time, number: u64) {
        self.now = now;
        if self.batch.as_ref().is_some_and(|batch| batch.complete) {
            self.flush();
        }
        if let Some(taken) = self.ring.take(number, Some(sent_at)) {
            self.note_delivery(now, taken);
        }
    }

    /// Adds a packet that arrived to the ACK that acknowledges it.
    fn note_delivery(&mut self, now: Time, taken: Taken) {
        self.measure(now, &taken);
        self.note_arrival(now, &taken);
        let Taken { sent, lost, .. } = taken;
        let prior_in_flight = self.in_flight;
        let batch = self.batch.get_or_insert(Batch {
            at: now,
            prior_in_flight,
            newly_acked: 0,
            newly_acked_packets: 0,
            newest: None,
            complete: false,
        });
        batch.newly_acked += u64::from(sent.len);
        batch.newly_acked_packets += 1;
        let is_newer = |newest: Sent| sent.order.wrapping_sub(newest.order) as i32 > 0;
        if batch.newest.is_none_or(is_newer) {
            batch.newest = Some(sent);
        }
        self.sampler.delivered += u64::from(sent.len);
        self.counted.delivered_packets += 1;
        if lost.is_none() {
            self.in_flight = self.in_flight.saturating_sub(sent.len.into());
        }
    }

    fn on_lost(&mut self, now: Time, number: u64) {
        if self.batch.as_ref().is_some_and(|batch| batch.at != now) {
            self.flush();
        }
        let Some(Taken { sent, lost: None, .. }) = self.ring.take(number, None) else { return };
        self.in_flight = self.in_flight.saturating_sub(sent.len.into());
        self.losses.push(sent);
    }
}
