//! How the file was recorded: one connection over one bottleneck, in the
//! simplest loop that will do, with a controller that notes what it is told.

use super::step::{self, Incident, Step};
use super::{MSS, init, preset};
use knee_cc::{Connection, Controller, Decision, Ecn, Event, Needs, Sample, Selection, State};
use knee_link::{Aqm, Buffer, Delay, Link, Loss, Policer, RateModel, Steps};
use knee_transport::{Ack, AckDetails, Config, Receiver, Segment, Sender, Transmit};
use knee_trials::Skipped;
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::sync::{Arc, Mutex};

/// The controller of the recording, and a note of each step.
#[derive(Clone, Debug)]
struct Noted {
    inner: Box<dyn Controller>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Noted {
    fn note(&self, incident: Incident, sample: Sample, connection: &Connection) {
        let connection = *connection;
        self.steps.lock().unwrap().push(Step { incident, sample, connection });
    }
}

impl Controller for Noted {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.note(Incident::Ack, *sample, connection);
        self.inner.on_ack(sample, connection)
    }
    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        self.note(Incident::Event(event), Sample::default(), connection);
        self.inner.on_event(event, connection)
    }
    fn decision(&self) -> Decision {
        self.inner.decision()
    }
    fn state(&self) -> State {
        self.inner.state()
    }
    fn needs(&self) -> Needs {
        self.inner.needs()
    }
}

enum Packet {
    Data(Segment),
    Ack(Ack, Option<AckDetails>),
}

impl knee_link::Packet for Packet {
    fn size(&self) -> u32 {
        match self {
            Packet::Data(segment) => u32::from(segment.len) + 52,
            Packet::Ack(..) => 52,
        }
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }
    fn mark(&mut self) {}
    fn flow_hash(&self) -> u64 {
        0
    }
}

fn config(rate: RateModel, buffer: u64, loss: Loss, down: Vec<(Time, Time)>) -> knee_link::Config {
    knee_link::Config {
        rate,
        delay: Delay { base: Steps(vec![(Time::ZERO, Time::from_millis(30))]), jitter: None },
        buffer: Buffer::Packets(buffer),
        aqm: Aqm::DropTail,
        loss,
        policer: None,
        down,
    }
}

fn made(config: knee_link::Config) -> Link<Packet> {
    Link::new(config, ChaCha8Rng::seed_from_u64(1))
}

fn link(rate: RateModel, buffer: u64, loss: Loss, down: Vec<(Time, Time)>) -> Link<Packet> {
    made(config(rate, buffer, loss, down))
}

struct Loop {
    sender: Sender,
    receiver: Receiver,
    forward: Link<Packet>,
    back: Link<Packet>,
    pacing: Time,
}

impl Loop {
    fn run_until(&mut self, end: Time) {
        self.transmit(Time::ZERO.max(self.pacing));
        loop {
            let links = self.forward.next_time().min(self.back.next_time());
            let timers = self.sender.timer().min(self.receiver.timer());
            let now = links.min(timers).min(self.pacing);
            if now > end {
                return;
            }
            self.step(now);
        }
    }

    fn step(&mut self, now: Time) {
        if let Some(Packet::Data(segment)) = self.forward.poll(now)
            && self.receiver.on_segment(now, &segment, Ecn::NotCapable).ack_now
        {
            self.acknowledge(now);
        }
        if self.receiver.timer() <= now {
            self.acknowledge(now);
        }
        if let Some(Packet::Ack(ack, details)) = self.back.poll(now) {
            self.sender.on_ack(now, &ack, details.as_ref());
        }
        if self.sender.timer() <= now {
            self.sender.on_timer(now);
        }
        self.transmit(now);
    }

    fn acknowledge(&mut self, now: Time) {
        let mut details = AckDetails::default();
        let (ack, detailed) = self.receiver.make_ack(&mut details);
        let _ = self.back.send(now, Packet::Ack(ack, detailed.then_some(details)));
    }

    fn transmit(&mut self, now: Time) {
        self.pacing = loop {
            match self.sender.poll_transmit(now) {
                Transmit::Segment(segment) => {
                    // What the link drops, it counts.
                    let _ = self.forward.send(now, Packet::Data(segment));
                }
                Transmit::At(time) => break time,
                Transmit::Nothing => break Time::MAX,
            }
        };
    }
}

/// A connection over `forward` whose controller is what `selection` says, and
/// the steps that it will have noted.
fn connection(selection: &Selection, forward: Link<Packet>) -> (Loop, Arc<Mutex<Vec<Step>>>) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let inner = knee_cc::build(selection, init()).unwrap();
    let settings = Config::default();
    let run = Loop {
        sender: Sender::new(&settings, Box::new(Noted { inner, steps: steps.clone() })),
        receiver: Receiver::new(&settings),
        forward,
        back: link(RateModel::Unlimited, 1, Loss::None, Vec::new()),
        pacing: Time::ZERO,
    };
    (run, steps)
}

fn megabit(tenths: u64) -> Rate {
    Rate::from_bits_per_second(tenths * 100_000)
}

/// Losses from the start, an outage of 0.6 s at 3 s, a pause of the
/// application, and PROBE_RTT, which comes 10 s after the last minimum. Writes
/// the file again: only when the recording itself is to change.
pub fn record() -> Result<(), Skipped> {
    let outage = vec![(Time::from_millis(3_000), Time::from_millis(3_600))];
    let forward = link(RateModel::Constant(megabit(100)), 200, Loss::Independent(0.002), outage);
    let (mut run, steps) = connection(&preset(&[]), forward);
    // What 10 Mbit/s carry in 1.5 s, then nothing until the next write.
    run.sender.write(1250 * MSS);
    run.run_until(Time::from_millis(2_200));
    run.pacing = Time::from_millis(2_200);
    run.sender.write(u64::MAX / 2);
    run.run_until(Time::from_millis(13_000));
    let text = step::write(&steps.lock().unwrap());
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bbr-steps.csv"), text).unwrap();
    Ok(())
}

/// A link of 60 ms and 1 MB of buffer that falls from 20 to 1.5 Mbit/s at
/// 12 s, and a minute at the new rate.
pub fn slower_link(selection: &Selection) -> Vec<Step> {
    let rates = vec![(Time::ZERO, megabit(200)), (Time::from_secs(12), megabit(15))];
    let forward = link(RateModel::Steps(Steps(rates)), 667, Loss::None, Vec::new());
    endless(selection, forward, Time::from_secs(72))
}

/// 10 Mbit/s and 60 ms with a buffer of eight packets, which every probe
/// overflows, over two PROBE_RTT.
pub fn shallow(selection: &Selection) -> Vec<Step> {
    let forward = link(RateModel::Constant(megabit(100)), 8, Loss::None, Vec::new());
    endless(selection, forward, Time::from_secs(25))
}

/// A policer of 10 Mbit/s and 100 packets on a link of 100 Mbit/s.
pub fn policed(selection: &Selection) -> Vec<Step> {
    let policer = Some(Policer { rate: megabit(100), burst: 150_000 });
    let config = config(RateModel::Constant(megabit(1000)), 200, Loss::None, Vec::new());
    let forward = made(knee_link::Config { policer, ..config });
    endless(selection, forward, Time::from_secs(12))
}

/// The steps of a sender that always has data.
fn endless(selection: &Selection, forward: Link<Packet>, end: Time) -> Vec<Step> {
    let (mut run, steps) = connection(selection, forward);
    run.sender.write(u64::MAX / 2);
    run.run_until(end);
    drop(run);
    Arc::into_inner(steps).unwrap().into_inner().unwrap()
}
