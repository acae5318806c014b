//! Compares the two implementations of the algorithm: a recorded file of rate samples and events
//! drives the controller of `knee-cc` and, in the kernel, the BPF program, and both must make the
//! same decisions.
//!
//! The file (`tests/data/bbr-steps.csv`) holds only input: the expected output is what `knee-cc`
//! decides today. [`recording`] recorded it from a connection of `knee-transport` over `knee-link`:
//! 10 Mbit/s, 60 ms, losses, an outage with a timeout, an application that pauses, PROBE_RTT.

pub mod bbr3;
pub mod copa;
pub mod recording;
mod step;

use knee_cc::{Controller, HeldBack, Init, Selection, Value};
use knee_host::bpf;
use knee_trials::{Pauses, Skipped, alone, tell};
use knee_units::Time;
use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use step::{Incident, Step};

const STEPS: &str = include_str!("../../../data/bbr-steps.csv");
const REPLAY: &[u8] = include_bytes!(env!("KNEE_BPF_BBR_REPLAY"));

const MSS: u64 = 1448;
const INITIAL_WINDOW: u64 = 10 * MSS;
const SEED: u64 = 7;

/// Of `bpf/bbr_replay.bpf.c`: steps per call, words of 64 bits in `struct step`, and which of them
/// hold the decision.
const BATCH: usize = 512;
const WORDS: usize = 21;
const WINDOW: usize = 19;
const RATE: usize = 20;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(SEED)
}

fn init() -> Init {
    Init { mss: MSS as u32, mtu: 1500, initial_window: INITIAL_WINDOW, rng: rng() }
}

type Change<'a> = (&'a str, Value);

/// Returns the program's preset, with changes.
fn preset(changes: &[Change]) -> Selection {
    let changed =
        |selection: Selection, (name, value): &Change| selection.with(*name, value.clone());
    changes.iter().fold(Selection::named("bbr-low-delay"), changed)
}

/// The loaded BPF program.
struct Replay(Object);

impl Replay {
    fn load(selection: &Selection) -> Replay {
        let object = bpf::opened(REPLAY, selection).unwrap().load();
        Replay(object.unwrap_or_else(|error| panic!("{error:#}")))
    }

    /// Returns the window in bytes and the pacing rate in bytes per second for each step.
    fn take(&self, steps: &[Step]) -> Vec<(u64, u64)> {
        steps.chunks(BATCH).flat_map(|batch| self.take_batch(batch)).collect()
    }

    fn take_batch(&self, batch: &[Step]) -> Vec<(u64, u64)> {
        let words = |step: &Step| step.words(rng().next_u64(), INITIAL_WINDOW);
        let words = batch.iter().flat_map(words);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(BATCH * WORDS * 8, 0);
        let map = self.0.maps().find(|map| map.name() == ".data.steps").unwrap();
        let key = 0_u32.to_ne_bytes();
        map.update(&key, &bytes, MapFlags::ANY).unwrap();
        let mut count = (batch.len() as u32).to_ne_bytes();
        let input = ProgramInput { context_in: Some(&mut count), ..ProgramInput::default() };
        self.0.progs_mut().next().unwrap().test_run(input).unwrap();
        let bytes = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let word = |bytes: &[u8], at: usize| {
            u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
        };
        let steps = bytes.chunks_exact(WORDS * 8).take(batch.len());
        steps.map(|bytes| (word(bytes, WINDOW), word(bytes, RATE))).collect()
    }
}

/// The controller of `knee-cc`, and the state of its sampler.
struct Simulated {
    controller: Box<dyn Controller>,
    held_back: HeldBack,
}

impl Simulated {
    fn new(selection: &Selection) -> Simulated {
        let controller = knee_cc::build(selection, init()).unwrap();
        Simulated { controller, held_back: HeldBack::default() }
    }
}

/// Returns the decision of `knee-cc` for the same step.
fn expected(simulated: &mut Simulated, step: &Step) -> (u64, u64) {
    let Simulated { controller, held_back } = simulated;
    let Step { incident, mut sample, mut connection } = step.clone();
    // The program itself does what the transport does for the controller.
    sample.app_limited |= held_back.covers(sample.prior_delivered);
    connection.app_limited |= held_back.covers(connection.delivered);
    let decision = match incident {
        Incident::Ack => {
            let decision = controller.on_ack(&sample, &connection);
            held_back.note(&decision, &connection);
            decision
        }
        Incident::Event(event) => controller.on_event(event, &connection),
        Incident::Loss(loss) => controller.on_loss(&loss, &connection),
    };
    (decision.window, decision.pacing_rate.map_or(0, |rate| rate.as_bits_per_second() / 8))
}

/// Returns the largest differences over the steps: of the window in bytes, and of the rate as a
/// fraction.
fn differences(selection: &Selection, steps: &[Step]) -> (u64, f64) {
    let replay = Replay::load(selection);
    let mut simulated = Simulated::new(selection);
    let (mut window, mut rate) = (0, 0.0_f64);
    for (line, (step, theirs)) in steps.iter().zip(replay.take(steps)).enumerate() {
        let ours = expected(&mut simulated, step);
        window = window.max(ours.0.abs_diff(theirs.0));
        rate = rate.max((theirs.1 as f64 / ours.1 as f64 - 1.0).abs());
        let same = window <= MSS && rate <= 0.01;
        assert!(same, "step {line}, {selection:?}: {theirs:?} instead of {ours:?} at {step:?}");
    }
    (window, rate)
}

/// Checks whether the kernel accepts BPF programs from this process.
fn bpf_allowed() -> Result<(), Skipped> {
    bpf::lack().map_or(Ok(()), |lack| Err(Skipped::lack(lack)))
}

/// Returns the parameters that the preset does not change: the two targets, and each part that can
/// be turned off.
fn others() -> [(&'static str, Value); 8] {
    [
        ("bandwidth_window", Value::Number(1.0)),
        ("bandwidth_window", Value::Number(2.0)),
        ("probe_loss_gain", Value::Number(0.7)),
        ("detect_policers", Value::Switch(false)),
        ("allow_for_aggregation", Value::Switch(false)),
        ("allow_for_bursts", Value::Switch(false)),
        ("probe_rtt", Value::Switch(false)),
        ("probe_rtt_gain", Value::Number(0.5)),
    ]
}

/// Window within one packet and rate within 1 % at every step; with all changes, with none (BBR as
/// published), with each alone missing, and with each of the other parameters changed.
pub fn kernel_and_simulator_decide_the_same() -> Result<(), Skipped> {
    bpf_allowed()?;
    // It needs no real time itself, but would disturb tests that do.
    let _alone = alone(Pauses::Any);
    let none = [
        ("drain_to_target", Value::Switch(false)),
        ("probe_up_exit_early", Value::Switch(false)),
        ("probe_rtt_exit_early", Value::Switch(false)),
        ("shrink_window", Value::Switch(false)),
        ("keep_bw_over_probe_rtt", Value::Switch(false)),
        ("max_cruise", Value::Text("off".to_owned())),
        ("probe_gains", Value::Numbers(vec![1.25, 0.75])),
        ("window_gain", Value::Number(2.0)),
    ];
    let mut sets: Vec<&[Change]> = vec![&[], &none];
    sets.extend(none.chunks(1));
    let others = others();
    sets.extend(others.chunks(1));
    let steps = step::read(STEPS);
    for changes in sets {
        let (window, rate) = differences(&preset(changes), &steps);
        tell(&format!("window {window} B, rate {:.4} % with {changes:?}", rate * 100.0));
    }
    Ok(())
}

/// Ten rounds last longer than the ten seconds to the next PROBE_RTT: both forget the old rate, at
/// the same step, and a minute later both have the new estimate.
pub fn both_follow_a_slower_link() -> Result<(), Skipped> {
    bpf_allowed()?;
    let _alone = alone(Pauses::Any);
    let keeping = Selection::named("bbr").with("keep_bw_over_probe_rtt", Value::Switch(true));
    for selection in [keeping, preset(&[])] {
        let steps = recording::slower_link(&selection);
        let (window, rate) = differences(&selection, &steps);
        let pace = Replay::load(&selection).take(&steps).last().unwrap().1 as f64;
        tell(&format!("window {window} B, rate {:.4} %, pace {pace} B/s", rate * 100.0));
        // Payload rate of 1.5 Mbit/s, at a gain from 3/4 to 5/4.
        let new = 1.5e6 / 8.0 * 1448.0 / 1500.0;
        assert!((0.7..1.3).contains(&(pace / new)), "{pace} B/s, the link has {new}");
    }
    Ok(())
}

/// Plain BBR with each of the other parameters changed, where each of them matters: at a buffer
/// that probes overflow, and at a policer.
pub fn both_decide_the_same_where_it_matters() -> Result<(), Skipped> {
    bpf_allowed()?;
    let _alone = alone(Pauses::Any);
    for (name, value) in others() {
        let plain = Selection::named("bbr");
        let changed = plain.clone().with(name, value.clone());
        let mut differ = false;
        for path in [recording::shallow, recording::policed] {
            let steps = path(&changed);
            let (window, rate) = differences(&changed, &steps);
            tell(&format!("window {window} B, rate {:.4} % with {name} {value:?}", rate * 100.0));
            let decisions = |selection| {
                let mut simulated = Simulated::new(selection);
                steps.iter().map(|step| expected(&mut simulated, step)).collect::<Vec<_>>()
            };
            differ |= decisions(&plain) != decisions(&changed);
        }
        assert!(differ, "{name} {value:?} changes nothing");
    }
    Ok(())
}

/// The file exercises everything that the comparison claims to cover.
pub fn the_file_visits_every_phase() -> Result<(), Skipped> {
    let mut simulated = Simulated::new(&preset(&[]));
    let steps = step::read(STEPS);
    let mut phases: Vec<&str> = Vec::new();
    for step in &steps {
        expected(&mut simulated, step);
        let phase = simulated.controller.state().phase;
        if !phases.contains(&phase) {
            phases.push(phase);
        }
    }
    for phase in
        ["startup", "drain", "probe_bw_up", "probe_bw_down", "probe_bw_cruise", "probe_rtt"]
    {
        assert!(phases.contains(&phase), "{phase} is not in {phases:?}");
    }
    assert!(steps.iter().any(|step| step.sample.newly_lost > 0));
    assert!(steps.iter().any(|step| step.sample.app_limited));
    assert!(steps.iter().any(|step| step.sample.interval == Time::ZERO));
    for code in 0..step::EVENTS.len() {
        let event = step::EVENTS[code];
        assert!(steps.iter().any(|step| step.incident == Incident::Event(event)), "{event:?}");
    }
    Ok(())
}
