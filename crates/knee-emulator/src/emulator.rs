//! The emulator: links between TUN devices, in real time.
//!
//! One thread reads what the hosts send, splits super-packets, passes each packet through its
//! links, and writes what arrives, merged again. A packet's times on its way are computed by the
//! links, not read from the clock: it enters the second link when it was due to leave the first,
//! however late the thread is. The clock matters only at both ends.

use crate::arena::Arena;
use crate::clock::{Clock, timespec};
use crate::lateness::Lateness;
use crate::merge::{Output, Written};
use crate::observer::{Happened, Observer};
use crate::packet::{IpPacket, split};
use crate::routes::{Routes, Step};
use crate::tun::Tun;
use knee_host::HostError;
use knee_link::{Config, Link, RateModel};
use knee_units::Time;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use rand_chacha::ChaCha8Rng;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Minimum gap in the loop that counts as a stall: nothing that the loop does takes so long.
pub const STALL: Time = Time::from_millis(20);

/// Maximum number of super-packets read from one device before the others.
const BURST: usize = 64;
/// Longest sleep, which bounds the reaction to a stop request.
const SLEEP_MAX: Time = Time::from_millis(20);
/// Pause between two rounds on a fast link.
const PAUSE: Time = Time::from_micros(100);
/// Pause on a slow link, as a fraction of the time per packet. 0.4 cost BBR 1.4 % of 100 Mbit/s,
/// because packets came in uneven pairs.
const PAUSE_PACKETS: f64 = 0.3;
/// Time per packet below which a link is fast: hosts then send super-packets of several packets,
/// and clumps of that size do no harm. Measured at 350, 1000 and 2000 Mbit/s: the rate is exact,
/// and the CPU load is halved.
const PACKET_FAST: Time = Time::from_micros(50);
/// How long before something is due the thread wakes, as far as its credit allows, to poll clock
/// and devices: timers of a virtual machine are late by 50 µs at the median, and by up to a
/// millisecond one time in a hundred. With 50 µs instead, the delay of a quiet path is 0.03 to 0.08
/// ms longer.
const WATCH: Time = Time::from_millis(1);
/// Maximum share of a run that is spent polling. Under SCHED_FIFO a thread that takes more than
/// some 80 % of a core is stopped for 50 ms in each second, and the hosts need the processors too.
const WATCH_SHARE: f64 = 0.1;
/// Maximum polling time that is saved up in quiet times.
const WATCH_CREDIT_MAX: Time = Time::from_millis(2);
const PACKET_BYTES: u64 = 1500;

/// Plan of an emulation.
#[derive(Debug)]
pub struct Emulation {
    /// The links, each with its random stream.
    pub links: Vec<(Config, ChaCha8Rng)>,
    /// A route for each device.
    pub routes: Routes,
    /// Time between two samples.
    pub sample_interval: Time,
    /// When it ends, by the emulator's clock.
    pub duration: Time,
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How punctual it was.
    pub tally: Tally,
    /// The devices as passed in. Dropping them removes the devices, and with them the kernel's
    /// counters of drops at their queues.
    pub devices: Vec<Tun>,
}

/// Lateness and losses of a run of the emulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Lateness of packets leaving the emulator.
    pub lateness: Lateness,
    /// Gaps of [`STALL`] and more in the emulator's loop.
    pub stalls: u64,
    /// Total duration of these gaps.
    pub stalled: Time,
    /// Packets that entered the emulator.
    pub packets: u64,
    /// Packets that a host did not accept from the emulator.
    pub refused_packets: u64,
    /// Duration of the run, by its clock.
    pub duration: Time,
}

/// Receives the time of the sample and all links, in the order of the plan.
pub type Sample<'a> = dyn FnMut(Time, &mut [Link<IpPacket>]) + Send + 'a;

/// Carries packets between devices.
pub struct Emulator<'a> {
    clock: Clock,
    routes: Routes,
    sample_interval: Time,
    duration: Time,
    devices: Vec<Tun>,
    outputs: Vec<Output>,
    links: Vec<Link<IpPacket>>,
    /// The links just before each link, which it may ask to pause.
    before: Vec<Vec<usize>>,
    /// When each link is next due.
    next: Vec<Time>,
    arena: Arena,
    tally: Tally,
    sample: &'a mut Sample<'a>,
    next_sample: Time,
    pacing: Pacing,
    observer: Option<Observer>,
}

impl<'a> Emulator<'a> {
    /// Makes an emulator between these devices, each of which must have a route. `sample` is called
    /// at time zero and after each interval of the plan.
    ///
    /// # Panics
    ///
    /// If a link's configuration violates a requirement of [`Config`]. [`Emulator::run`] panics if
    /// a route names a link or a device that does not exist.
    pub fn new(
        plan: Emulation,
        devices: Vec<Tun>,
        clock: Clock,
        sample: &'a mut Sample<'a>,
    ) -> Emulator<'a> {
        let pacing = Pacing::new(plan.links.iter().map(|(config, _)| config));
        let links = plan.links.into_iter().map(|(config, rng)| Link::new(config, rng));
        let links: Vec<Link<IpPacket>> = links.collect();
        Emulator {
            clock,
            before: plan.routes.before(links.len()),
            routes: plan.routes,
            sample_interval: plan.sample_interval,
            duration: plan.duration,
            outputs: devices.iter().map(|_| Output::default()).collect(),
            devices,
            next: vec![Time::MAX; links.len()],
            links,
            arena: Arena::default(),
            tally: Tally::default(),
            sample,
            next_sample: Time::ZERO,
            pacing,
            observer: None,
        }
    }

    /// Tells this observer what happens to each packet. It must be of the same plan.
    #[must_use]
    pub fn observed(self, observer: Observer) -> Emulator<'a> {
        Emulator { observer: Some(observer), ..self }
    }

    /// Runs to the end of the plan, or until told to stop.
    ///
    /// # Errors
    ///
    /// If a device cannot be read or written any more.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Outcome, HostError> {
        self.carry(stop).map_err(|source| HostError::call("read or write a TUN device", source))?;
        self.tally.duration = self.clock.now();
        Ok(Outcome { tally: self.tally, devices: self.devices })
    }

    fn carry(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut ready = vec![true; self.devices.len()];
        let mut planned = self.clock.now();
        while planned < self.duration && !stop.load(Ordering::Relaxed) {
            let started = self.clock.now();
            self.note_stall(planned, started);
            for (device, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
                self.receive(device)?;
            }
            self.advance(self.clock.now())?;
            self.flush()?;
            if let Some(observer) = &mut self.observer {
                observer.hand_over(self.clock.now());
            }
            self.note_stall(started, self.clock.now());
            planned = self.wait(started, &mut ready)?;
        }
        self.sample_until(self.clock.now().min(self.duration));
        Ok(())
    }

    /// Counts a stall: nothing that the loop does takes so long, unless the thread is preempted.
    fn note_stall(&mut self, planned: Time, now: Time) {
        let gap = now.saturating_sub(planned);
        if gap >= STALL {
            self.tally.stalls += 1;
            self.tally.stalled += gap;
        }
    }

    /// Reads what a host has sent.
    fn receive(&mut self, device: usize) -> io::Result<()> {
        for _ in 0..BURST {
            let Some(len) = self.devices[device].read(self.arena.room())? else { break };
            let now = self.clock.now();
            self.advance(now)?;
            let place = self.arena.keep(len);
            let entry = self.routes.entries[device];
            let Some(mut packets) = split(&mut self.arena, place, len, entry) else { continue };
            let mut is_stamped = false;
            while let Some(packet) = packets.next(&mut self.arena) {
                self.tally.packets += 1;
                if self.observer.is_some() {
                    if !is_stamped {
                        Observer::stamp(&packet, now, &mut self.arena);
                        is_stamped = true;
                    }
                    self.tell(Happened::Entered(device), now, &packet);
                }
                self.forward(now, packet)?;
            }
        }
        Ok(())
    }

    /// Moves everything that is due by `now`, in order.
    fn advance(&mut self, now: Time) -> io::Result<()> {
        loop {
            let earliest = self.next.iter().enumerate().min_by_key(|(_, time)| **time);
            let Some((link, time)) = earliest.map(|(link, time)| (link, *time)) else { break };
            let reached = time.min(now);
            if self.next_sample <= reached {
                self.sample_until(reached);
            }
            if time > now {
                break;
            }
            if let Some(packet) = self.links[link].poll(time) {
                self.forward(time, packet)?;
            }
            self.settle(link);
        }
        Ok(())
    }

    /// Moves a packet to its next step.
    #[inline]
    fn forward(&mut self, at: Time, mut packet: IpPacket) -> io::Result<()> {
        let step = self.routes.steps[packet.hop as usize];
        packet.hop += 1;
        packet.due = at;
        match step {
            Step::Link(link) => {
                if let Err((reason, packet)) = self.links[link].send(at, packet) {
                    self.tell(Happened::Dropped(link, reason), at, &packet);
                    self.arena.release(packet.template.chunk, 1);
                }
                self.settle(link);
                Ok(())
            }
            Step::Device(device) => {
                self.tell(Happened::Left(device), at, &packet);
                self.write(device, packet)
            }
        }
    }

    /// Tells the observer, if there is one, what happened to a packet.
    #[inline]
    fn tell(&mut self, happened: Happened, at: Time, packet: &IpPacket) {
        if let Some(observer) = &mut self.observer {
            observer.tell(happened, at, packet, &self.arena);
        }
    }

    /// Discards what the link dropped, passes on what it asks of those before it, and asks when it
    /// is next due.
    #[inline]
    fn settle(&mut self, link: usize) {
        if self.links[link].has_news() {
            self.collect_news(link);
        }
        self.next[link] = self.links[link].next_time();
    }

    fn collect_news(&mut self, link: usize) {
        while let Some((at, reason, packet)) = self.links[link].take_dropped() {
            self.tell(Happened::Dropped(link, reason), at, &packet);
            self.arena.release(packet.template.chunk, 1);
        }
        while let Some((at, pause)) = self.links[link].take_request() {
            for place in 0..self.before[link].len() {
                let before = self.before[link][place];
                self.links[before].pause(at, pause);
                self.settle(before);
            }
        }
    }

    fn write(&mut self, device: usize, packet: IpPacket) -> io::Result<()> {
        let (clock, tally) = (self.clock, &mut self.tally);
        let mut report = |written: Written| note_written(tally, clock, written);
        self.outputs[device].push(packet, &mut self.arena, &self.devices[device], &mut report)
    }

    fn flush(&mut self) -> io::Result<()> {
        let (clock, tally) = (self.clock, &mut self.tally);
        let mut report = |written: Written| note_written(tally, clock, written);
        for (output, device) in self.outputs.iter_mut().zip(&self.devices) {
            output.flush(&mut self.arena, device, &mut report)?;
        }
        Ok(())
    }

    /// Sleeps until something is due. Returns the intended end of the sleep.
    fn wait(&mut self, started: Time, ready: &mut [bool]) -> io::Result<Time> {
        let now = self.clock.now();
        let rested = now.max(started + self.pacing.pause);
        if rested > now {
            // A signal only makes the pause shorter.
            interruptible(ppoll(&mut [], Some(timespec(rested - now)), None))?;
        }
        let now = self.clock.now();
        self.note_stall(rested, now);
        let event = self.next.iter().copied().min().unwrap_or(Time::MAX);
        let latest = self.next_sample.min(self.duration).min(now + SLEEP_MAX);
        let deadline = event.min(latest).max(now);
        let watched = if event <= latest { self.pacing.watch(now) } else { Time::ZERO };
        let mut woken = self.poll(deadline.saturating_sub(now + watched), ready)?;
        let awake = self.clock.now();
        while !woken && self.clock.now() < deadline {
            woken = self.poll(Time::ZERO, ready)?;
        }
        let now = self.clock.now();
        self.pacing.watched(now.saturating_sub(awake));
        Ok(now.min(deadline))
    }

    /// Waits up to `span` for traffic from the hosts. Returns whether there was any.
    fn poll(&self, span: Time, ready: &mut [bool]) -> io::Result<bool> {
        let mut polled: Vec<PollFd<'_>> =
            self.devices.iter().map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN)).collect();
        interruptible(ppoll(&mut polled, Some(timespec(span)), None))?;
        for (ready, polled) in ready.iter_mut().zip(&polled) {
            *ready = polled.any().unwrap_or(false);
        }
        Ok(ready.contains(&true))
    }

    /// Takes the samples that are due by `now`.
    fn sample_until(&mut self, now: Time) {
        while self.next_sample <= now {
            (self.sample)(self.next_sample, &mut self.links);
            self.next_sample += self.sample_interval;
        }
    }
}

/// Treats a sleep that a signal interrupted as one that is over.
fn interruptible(slept: nix::Result<i32>) -> io::Result<()> {
    match slept {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn note_written(tally: &mut Tally, clock: Clock, written: Written) {
    tally.lateness.record(clock.now().saturating_sub(written.due), written.packets);
    if written.refused {
        tally.refused_packets += u64::from(written.packets);
    }
}

/// Divides the thread's time between sleeping and polling.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    /// Pause between two rounds, which saves CPU time.
    pause: Time,
    /// Polling time left, and the time up to which it was earned.
    credit: Time,
    earned_until: Time,
}

impl Pacing {
    fn new<'a>(links: impl Iterator<Item = &'a Config>) -> Pacing {
        let fastest = links.filter_map(|link| match &link.rate {
            RateModel::Constant(rate) => Some(*rate),
            RateModel::Steps(steps) => steps.0.iter().map(|(_, rate)| *rate).max(),
            RateModel::Unlimited | RateModel::Trace(_) => None,
        });
        let pause = fastest.max().map_or(Time::ZERO, |rate| {
            let packet = rate.time_for(PACKET_BYTES);
            if packet < PACKET_FAST { PAUSE } else { packet.scale(PAUSE_PACKETS).min(PAUSE) }
        });
        Pacing { pause, credit: WATCH_CREDIT_MAX, earned_until: Time::ZERO }
    }

    /// Returns how long before something is due the thread may begin to poll.
    fn watch(&mut self, now: Time) -> Time {
        let earned = now.saturating_sub(self.earned_until).scale(WATCH_SHARE);
        self.credit = (self.credit + earned).min(WATCH_CREDIT_MAX);
        self.earned_until = now;
        self.credit.min(WATCH)
    }

    /// Deducts polling time.
    fn watched(&mut self, span: Time) {
        self.credit = self.credit.saturating_sub(span);
    }
}
