//! Execution of a run.

use crate::hosts::Hosts;
use crate::observe::{Observing, Played};
use crate::probe::{Prober, echo, echo_sockets, interval, probe_sockets};
use crate::routes::{link_names, links_and_routes};
use crate::self_check::Checked;
use crate::{Health, TestbedError};
use knee_emulator::realtime::{self, CpuTime};
use knee_emulator::{
    Capture, Clock, Emulation, Emulator, FlowTable, IpPacket, Observer, Outcome, Tun, Watcher,
    observe, timespec,
};
use knee_host::Namespace;
use knee_link::Link;
use knee_record::{
    BoundedRows, ClassSample, Control, Cost, LinkSample, Records, Row, RowReceiver, RowSender,
    SampleSink, row_queue,
};
use knee_scenario::Scenario;
use knee_units::Time;
use nix::poll::ppoll;
use nix::time::{ClockId, clock_gettime};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// Interval at which the run checks its [`Control`].
const CONTROL_PERIOD: Time = Time::from_millis(20);

/// Checks that the host permits network namespaces and TUN devices, which every run needs. Leaves
/// nothing behind.
///
/// # Errors
///
/// [`TestbedError::Host`], with advice.
pub fn check_host() -> Result<(), TestbedError> {
    Ok(Namespace::create()?.within(|| Tun::create("knee0").map(drop))?)
}

/// A scenario between the two hosts of a run.
#[derive(Clone, Copy, Debug)]
pub struct Testbed<'a> {
    /// The scenario: links, paths, duration and sampling interval.
    pub scenario: &'a Scenario,
    /// The hosts, created for the scenario's paths.
    pub hosts: &'a Hosts,
}

impl Testbed<'_> {
    /// Runs the scenario to its end, or until `control` requests a stop.
    ///
    /// `applications` runs on a separate thread, with the clock of the run, the flag that ends it
    /// and the queue for rows of flows, paths and connections. It returns at the end of the
    /// scenario, or soon after the flag is set, and the run ends with it. It returns records with
    /// flows, paths and objects; everything else is added here.
    ///
    /// This thread passes rows on to `samples` during the run; the records hold as many as measures
    /// need.
    ///
    /// With `observing`, an observer in the emulator lists the flows of the run by their five-tuple,
    /// whatever sent them.
    ///
    /// # Errors
    ///
    /// Errors of `applications`; [`TestbedError::Host`] if the host lacks a resource;
    /// [`TestbedError::Samples`] if a row cannot be stored, which ends the run;
    /// [`TestbedError::Panicked`] if a thread of the run panicked.
    pub fn play<E: From<TestbedError> + Send>(
        &self,
        checked: Checked,
        control: &Control,
        samples: &mut dyn SampleSink,
        observing: Option<Observing>,
        applications: impl FnOnce(Clock, &AtomicBool, RowSender) -> Result<Records, E> + Send,
    ) -> Result<Played, E> {
        let stop = AtomicBool::new(false);
        let cpu = CpuTime::read();
        let (near, far) = match checked.probed {
            true => self.probe_sockets()?,
            false => Default::default(),
        };
        let clock = Clock::start();
        let epoch_unix_ns = unix_time_ns();
        let plan = self.emulation();
        let mut kept = BoundedRows::new(samples);
        let (sender, rows) = row_queue();
        let (observer, watcher) = observing
            .map(|observing| self.observe(&plan, observing, epoch_unix_ns, &sender))
            .transpose()?
            .unzip();
        let ((emulated, observed), applied, probes) = thread::scope(|scope| {
            let watcher = watcher.map(|watcher| scope.spawn(|| watcher.run()));
            let (of_links, devices) = (sender.clone(), checked.devices);
            let emulator =
                scope.spawn(|| self.emulate((plan, observer), devices, clock, of_links, &stop));
            let applications = scope.spawn(|| applications(clock, &stop, sender));
            let echo = scope.spawn(|| {
                realtime::prepare(realtime::PROBE);
                echo(&far, &stop)
            });
            let prober = scope.spawn(|| {
                realtime::prepare(realtime::PROBE);
                let mut intervals = self.probe_intervals();
                intervals.truncate(near.len());
                let prober = Prober::new(near, intervals, clock);
                prober.run(self.scenario.duration, &stop)
            });
            let stored = supervise(&applications, clock, (control, &stop), (&rows, &mut kept));
            stop.store(true, Ordering::Relaxed);
            joined(echo)?;
            let applied = joined(applications)?;
            let emulated = joined(emulator)?;
            // Once the emulator has ended, the watcher reads what is left.
            let observed = watcher.map(ScopedJoinHandle::join).transpose();
            let observed = observed.map_err(|_| TestbedError::Panicked)?;
            stored.map_err(TestbedError::from)?;
            Ok::<_, E>(((emulated, observed), applied, joined(prober)?))
        })?;
        rows.pass_on(&mut kept).map_err(TestbedError::from)?;
        let Emulated { mut health, devices } = emulated;
        health.self_check = checked.paths;
        health.probes = probes;
        health.stolen = CpuTime::read().stolen_since(cpu);
        // The counters vanish with the devices.
        health.tun_dropped_packets = self.hosts.dropped_packets().map_err(TestbedError::from)?;
        drop(devices);
        let end = health.emulator.duration.min(self.scenario.duration);
        let cost = Cost {
            events: health.emulator.packets,
            data_packets: applied.flows.iter().map(|flow| flow.delivered_packets).sum(),
        };
        let records = kept.into_records(Records {
            link_names: self.scenario.links.iter().map(|link| link.name.clone()).collect(),
            end_ns: end.as_nanos(),
            interrupted: control.stop.load(Ordering::Relaxed) && end < self.scenario.duration,
            cost,
            epoch_unix_ns,
            ..applied
        });
        Ok(Played { records: records.with_rates(self.scenario), health, observed })
    }

    /// The links of the scenario, and how long they carry.
    fn emulation(&self) -> Emulation {
        let (links, routes) = links_and_routes(self.scenario);
        Emulation {
            links,
            routes,
            sample_interval: self.scenario.sample_interval,
            duration: self.scenario.duration,
        }
    }

    fn observe(
        &self,
        plan: &Emulation,
        observing: Observing,
        epoch_unix_ns: u64,
        rows: &RowSender,
    ) -> Result<(Observer, Watcher), TestbedError> {
        let paths = self.scenario.paths.iter();
        let ends = paths.flat_map(|path| ["sender", "receiver"].map(|end| (path, end)));
        let devices: Vec<String> = ends.map(|(path, end)| format!("{end} {}", path.name)).collect();
        let links = link_names(self.scenario);
        let begin = |file| Capture::create(file, &devices, &links, epoch_unix_ns);
        let capture = observing.capture.map(begin).transpose();
        let capture = capture.map_err(|source| TestbedError::call("write the capture", source))?;
        let (observer, watcher) = observe(plan, capture);
        let Some(mut sample) = observing.sample else { return Ok((observer, watcher)) };
        let rows = rows.clone();
        let take = move |now: Time, flows: &FlowTable| sample(now, flows, &rows);
        Ok((observer, watcher.sampled(self.scenario.sample_interval, Box::new(take))))
    }

    /// Creates the sockets of all probes, the sender's and the receiver's.
    fn probe_sockets(&self) -> Result<(Vec<UdpSocket>, Vec<UdpSocket>), TestbedError> {
        let paths = self.hosts.paths().len();
        let far = self.hosts.receiver.within(|| echo_sockets(paths))?;
        let near = self.hosts.sender.within(|| probe_sockets(paths))?;
        Ok((near, far))
    }

    fn probe_intervals(&self) -> Vec<Time> {
        let paths = 0..self.hosts.paths().len();
        paths.map(|path| interval(self.scenario.path_rate(path))).collect()
    }

    fn emulate(
        &self,
        (plan, observer): (Emulation, Option<Observer>),
        devices: Vec<Tun>,
        clock: Clock,
        rows: RowSender,
        stop: &AtomicBool,
    ) -> Result<Emulated, TestbedError> {
        let warning = realtime::prepare(realtime::EMULATOR);
        // Only the scenario's links, which come first.
        let sampled = self.scenario.links.len();
        let mut sample = |now: Time, emulated: &mut [Link<IpPacket>]| {
            for (index, link) in emulated[..sampled].iter_mut().enumerate() {
                rows.send(Row::Link(LinkSample::of(link, index, now)));
                ClassSample::of(link, index, now).for_each(|row| rows.send(Row::Class(row)));
            }
        };
        let emulator = Emulator::new(plan, devices, clock, &mut sample);
        let emulator = match observer {
            Some(observer) => emulator.observed(observer),
            None => emulator,
        };
        let outcome = emulator.run(stop);
        // Even after an error the other threads must not wait for packets.
        stop.store(true, Ordering::Relaxed);
        let Outcome { tally, devices } = outcome?;
        let duration = tally.duration.as_secs_f64().max(1e-9);
        let health = Health {
            emulator: tally,
            cpu: realtime::thread_cpu_s() / duration,
            warnings: warning.into_iter().collect(),
            ..Health::default()
        };
        Ok(Emulated { health, devices })
    }
}

/// Nanoseconds since 1970 (UTC); 0 if the host does not know.
fn unix_time_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME);
    now.map_or(0, |now| now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Results of the emulator.
struct Emulated {
    health: Health,
    devices: Vec<Tun>,
}

/// Passes stop requests into the run, and its current time and its rows out of it. A row that cannot
/// be stored ends the run.
fn supervise<T>(
    applications: &ScopedJoinHandle<'_, T>,
    clock: Clock,
    (control, stop): (&Control, &AtomicBool),
    (rows, kept): (&RowReceiver, &mut BoundedRows<'_>),
) -> Result<(), knee_record::Error> {
    while !applications.is_finished() {
        if control.stop.load(Ordering::Relaxed) {
            stop.store(true, Ordering::Relaxed);
        }
        control.now_ns.store(clock.now().as_nanos(), Ordering::Relaxed);
        rows.pass_on(kept)?;
        // Interrupted or not, the loop checks again.
        let _ = ppoll(&mut [], Some(timespec(CONTROL_PERIOD)), None);
    }
    Ok(())
}

fn joined<T, E: From<TestbedError>>(thread: ScopedJoinHandle<'_, Result<T, E>>) -> Result<T, E> {
    thread.join().map_err(|_| TestbedError::Panicked)?
}
