//! The emulator: links between TUN devices, under the real clock.
//!
//! One thread reads what the hosts send, takes super-packets apart, passes
//! each packet through its links, and writes what arrives, put together
//! again. A packet's times on its way are computed by the links, not taken
//! from the clock: it enters the second link when it was to leave the first,
//! however late the thread comes to it. The clock counts at both ends alone.

use crate::arena::Arena;
use crate::clock::{Clock, timespec};
use crate::lateness::Lateness;
use crate::merge::{Output, Written};
use crate::packet::{IpPacket, split};
use crate::routes::{Routes, Step};
use crate::tun::Tun;
use knee_host::HostError;
use knee_link::{Config, Link, RateModel};
use knee_units::Time;
use nix::poll::{PollFd, PollFlags, ppoll};
use rand_chacha::ChaCha8Rng;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// From here on a gap in the loop is a stall: nothing that the loop does takes
/// so long.
pub const STALL: Time = Time::from_millis(20);

/// Super-packets read from one device before others have their turn.
const BURST: usize = 64;
/// The longest sleep: how soon a request to stop is seen.
const SLEEP_MAX: Time = Time::from_millis(20);
/// The pause between two rounds on a fast link.
const PAUSE: Time = Time::from_micros(100);
/// On a slow one: its share of the time that a packet needs. 0.4 cost BBR
/// 1.4 % of 100 Mbit/s, because packets came in uneven pairs.
const PAUSE_PACKETS: f64 = 0.3;
/// A link is fast when a packet needs less: hosts then send super-packets of
/// several packets, and clumps of that size do no harm. Measured at 350,
/// 1000 and 2000 Mbit/s: the rate is exact, and the CPU has half to do.
const PACKET_FAST: Time = Time::from_micros(50);
/// The thread wakes so much before something is due, as far as its credit
/// goes, and watches clock and devices: timers of a virtual machine are late
/// by 50 µs at the median and by up to a millisecond one time in a hundred.
/// With 50 µs instead, the delay of a quiet path is 0.03 to 0.08 ms longer.
const WATCH: Time = Time::from_millis(1);
/// At most this share of a run is spent so. Under SCHED_FIFO a thread that
/// takes more than some 80 % of a core is stopped for 50 ms in each second,
/// and the hosts need the processors too.
const WATCH_SHARE: f64 = 0.1;
/// What a quiet time saves up for watching.
const WATCH_CREDIT_MAX: Time = Time::from_millis(2);
const PACKET_BYTES: u64 = 1500;

/// What the emulator is to do.
#[derive(Debug)]
pub struct Emulation {
    /// The links, each with the stream of its chance.
    pub links: Vec<(Config, ChaCha8Rng)>,
    /// A route for each device.
    pub routes: Routes,
    /// Time between two samples.
    pub sample_interval: Time,
    /// When it ends, by its clock.
    pub duration: Time,
}

/// What is left of a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it went.
    pub tally: Tally,
    /// The devices, as they were given; they vanish with these values, and the
    /// kernel's counters of what their queues dropped with them.
    pub devices: Vec<Tun>,
}

/// How a run of the emulator went: what it was late by and what it lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// How long after their time packets left the emulator.
    pub lateness: Lateness,
    /// Gaps of [`STALL`] and more in the emulator's loop.
    pub stalls: u64,
    /// How long they lasted together.
    pub stalled: Time,
    /// Packets that entered the emulator.
    pub packets: u64,
    /// Packets that a host would not take from the emulator.
    pub refused_packets: u64,
    /// How long the run lasted, by its clock.
    pub duration: Time,
}

/// Is given all links, in the order of the plan, and the time of the sample.
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
    /// When each link has something to do.
    next: Vec<Time>,
    arena: Arena,
    tally: Tally,
    sample: &'a mut Sample<'a>,
    next_sample: Time,
    pacing: Pacing,
}

impl<'a> Emulator<'a> {
    /// Between these devices, each of which must have a route. `sample` is
    /// called for time zero and after each interval of the plan.
    ///
    /// # Panics
    ///
    /// If a link's configuration breaks a promise that [`Config`] states;
    /// [`Emulator::run`], if a route names a link or a device that is not there.
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
        }
    }

    /// Runs until the end of the plan or until told to stop.
    ///
    /// # Errors
    ///
    /// When a device cannot be read or written any more.
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
            self.note_stall(started, self.clock.now());
            planned = self.wait(started, &mut ready)?;
        }
        self.sample_until(self.clock.now().min(self.duration));
        Ok(())
    }

    /// Nothing that the loop does takes so long, unless the thread is kept
    /// from running.
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
            while let Some(packet) = packets.next(&mut self.arena) {
                self.tally.packets += 1;
                self.forward(now, packet)?;
            }
        }
        Ok(())
    }

    /// Moves everything that was to move by `now`, in order.
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

    /// Lets a packet take its next step.
    #[inline]
    fn forward(&mut self, at: Time, mut packet: IpPacket) -> io::Result<()> {
        let step = self.routes.steps[packet.hop as usize];
        packet.hop += 1;
        packet.due = at;
        match step {
            Step::Link(link) => {
                if let Err((_, packet)) = self.links[link].send(at, packet) {
                    self.arena.release(packet.template.chunk, 1);
                }
                self.settle(link);
                Ok(())
            }
            Step::Device(device) => self.write(device, packet),
        }
    }

    /// Takes what the link dropped and asks when it wants to be polled.
    #[inline]
    fn settle(&mut self, link: usize) {
        while let Some((_, _, packet)) = self.links[link].take_dropped() {
            self.arena.release(packet.template.chunk, 1);
        }
        self.next[link] = self.links[link].next_time();
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

    /// Sleeps until something is to do; tells until when it meant to sleep.
    fn wait(&mut self, started: Time, ready: &mut [bool]) -> io::Result<Time> {
        let now = self.clock.now();
        let rested = now.max(started + self.pacing.pause);
        if rested > now {
            ppoll(&mut [], Some(timespec(rested - now)), None)?;
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

    /// Waits for what hosts send, at most so long; tells whether anything
    /// came.
    fn poll(&self, span: Time, ready: &mut [bool]) -> io::Result<bool> {
        let mut polled: Vec<PollFd<'_>> =
            self.devices.iter().map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN)).collect();
        match ppoll(&mut polled, Some(timespec(span)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
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

fn note_written(tally: &mut Tally, clock: Clock, written: Written) {
    tally.lateness.record(clock.now().saturating_sub(written.due), written.packets);
    if written.refused {
        tally.refused_packets += u64::from(written.packets);
    }
}

/// How the thread divides its time between sleep and watch.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    /// Between two rounds: it saves CPU.
    pause: Time,
    /// Watching that is left, and up to when it was earned.
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

    /// How long before something is due the thread may begin to watch.
    fn watch(&mut self, now: Time) -> Time {
        let earned = now.saturating_sub(self.earned_until).scale(WATCH_SHARE);
        self.credit = (self.credit + earned).min(WATCH_CREDIT_MAX);
        self.earned_until = now;
        self.credit.min(WATCH)
    }

    /// Takes off what was used of it.
    fn watched(&mut self, span: Time) {
        self.credit = self.credit.saturating_sub(span);
    }
}
