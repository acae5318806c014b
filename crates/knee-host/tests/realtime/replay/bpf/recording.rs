//! Recording: one connection over one bottleneck, with a controller that notes its input.

use super::step::{self, Incident, Step};
use super::{MSS, init, preset};
use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, Selection, State};
use knee_link::{Buffer, Loss, Policer, RateModel, Steps};
use knee_transport::Config;
use knee_trials::Skipped;
use knee_trials::bottleneck::Bottleneck;
use knee_units::{Rate, Time};
use std::sync::{Arc, Mutex};

/// One-way delay of the path.
const ONE_WAY: Time = Time::from_millis(30);

/// The controller of the recording, with a note of each step.
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
    fn on_loss(&mut self, loss: &knee_cc::Loss, connection: &Connection) -> Decision {
        self.note(Incident::Loss(*loss), Sample::default(), connection);
        self.inner.on_loss(loss, connection)
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

fn config(rate: RateModel, buffer: u64, loss: Loss, down: Vec<(Time, Time)>) -> knee_link::Config {
    knee_link::Config {
        rate,
        buffer: Buffer::Packets(buffer),
        loss,
        down,
        ..knee_link::Config::pure_delay(ONE_WAY)
    }
}

/// Makes a connection over `forward` with the selected controller, and the list of the steps that
/// it will have noted.
fn connection(
    selection: &Selection,
    forward: knee_link::Config,
) -> (Bottleneck, Arc<Mutex<Vec<Step>>>) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let inner = knee_cc::build(selection, init()).unwrap();
    let noted = Box::new(Noted { inner, steps: steps.clone() });
    let run = Bottleneck::new(&Config::default(), noted, forward, ONE_WAY);
    (run, steps)
}

fn megabit(tenths: u64) -> Rate {
    Rate::from_bits_per_second(tenths * 100_000)
}

/// Losses from the start, an outage of 0.6 s at 3 s, a pause of the application, and PROBE_RTT, 10
/// s after the last minimum: every event of the file occurs. `KNEE_WRITE_STEPS=1` rewrites the file,
/// only for when the recording itself is to change.
pub fn record() -> Result<(), Skipped> {
    let outage = vec![(Time::from_millis(3_000), Time::from_millis(3_600))];
    let forward = config(RateModel::Constant(megabit(100)), 200, Loss::Independent(0.002), outage);
    let (mut run, steps) = connection(&preset(&[]), forward);
    // What 10 Mbit/s carries in 1.5 s, then nothing until the next write.
    run.sender.write(1250 * MSS);
    run.run_until(Time::from_millis(2_200));
    run.pacing = Time::from_millis(2_200);
    run.sender.write(u64::MAX / 2);
    run.run_until(Time::from_millis(13_000));
    let steps = steps.lock().unwrap();
    for event in step::EVENTS {
        let is_it = |step: &Step| matches!(step.incident, Incident::Event(one) if one == event);
        assert!(steps.iter().any(is_it), "{event:?} never occurs");
    }
    if std::env::var_os("KNEE_WRITE_STEPS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bbr-steps.csv");
        std::fs::write(file, step::write(&steps)).unwrap();
    }
    Ok(())
}

/// A link of 60 ms with a buffer of 1 MB that falls from 20 to 1.5 Mbit/s at 12 s, and a minute at
/// the new rate.
pub fn slower_link(selection: &Selection) -> Vec<Step> {
    let rates = vec![(Time::ZERO, megabit(200)), (Time::from_secs(12), megabit(15))];
    let forward = config(RateModel::Steps(Steps(rates)), 667, Loss::None, Vec::new());
    endless(selection, forward, Time::from_secs(72))
}

/// 10 Mbit/s and 60 ms with a buffer of eight packets, which every probe
/// overflows, over two PROBE_RTT.
pub fn shallow(selection: &Selection) -> Vec<Step> {
    let forward = config(RateModel::Constant(megabit(100)), 8, Loss::None, Vec::new());
    endless(selection, forward, Time::from_secs(25))
}

/// A policer of 10 Mbit/s and 100 packets on a link of 100 Mbit/s.
pub fn policed(selection: &Selection) -> Vec<Step> {
    let policer = Some(Policer { rate: megabit(100), burst: 150_000 });
    let config = config(RateModel::Constant(megabit(1000)), 200, Loss::None, Vec::new());
    let forward = knee_link::Config { policer, ..config };
    endless(selection, forward, Time::from_secs(12))
}

/// Returns the steps of a sender that always has data.
fn endless(selection: &Selection, forward: knee_link::Config, end: Time) -> Vec<Step> {
    let (mut run, steps) = connection(selection, forward);
    run.sender.write(u64::MAX / 2);
    run.run_until(end);
    drop(run);
    Arc::into_inner(steps).unwrap().into_inner().unwrap()
}
