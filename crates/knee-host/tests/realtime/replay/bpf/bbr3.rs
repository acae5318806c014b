//! BBRv3 in the kernel compared with the one of `knee-cc`: both are driven by the same recorded
//! connections, and must make the same decisions.
//!
//! The input is complete: each loss by itself, and what was in flight when it was sent. What a
//! stock kernel does not report is not part of the algorithm; the tests of the kernel ground cover
//! the consequences.

use super::copa::pair;
use super::recording;
use super::step::{Incident, RECOVERIES, Step};
use super::{BATCH, INITIAL_WINDOW, bpf_allowed, init, rng};
use knee_cc::{Event, HeldBack, Selection, Value};
use knee_host::bpf;
use knee_trials::{Pauses, Skipped, alone, tell};
use knee_units::Time;
use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use rand_core::Rng;

const REPLAY: &[u8] = include_bytes!(env!("KNEE_BPF_BBR3_REPLAY"));

/// Words of 64 bits in `struct step` of `bpf/bbr3_replay.bpf.c`; the decision is the last three.
const WORDS: usize = 26;
const DECISION: usize = 23;

/// Phases, in the order of `enum phase`.
const PHASES: [&str; 7] = [
    "startup",
    "drain",
    "probe_bw_down",
    "probe_bw_cruise",
    "probe_bw_refill",
    "probe_bw_up",
    "probe_rtt",
];

/// Window, rate and phase.
type Decided = (u64, u64, &'static str);

/// Rounds to whole microseconds.
fn as_told(mut step: Step) -> Step {
    let whole = |time: Time| Time::from_micros(time.as_micros());
    step.sample.rtt = step.sample.rtt.map(whole);
    step.sample.interval = whole(step.sample.interval);
    step.connection.srtt = whole(step.connection.srtt);
    step.connection.min_rtt = whole(step.connection.min_rtt);
    step
}

/// `struct step`.
fn words(step: &Step) -> [u64; WORDS] {
    let (sample, connection) = (&step.sample, &step.connection);
    let kind = match step.incident {
        Incident::Event(Event::Established) => 0,
        Incident::Ack => 1,
        Incident::Event(Event::SentAfterIdle) => 2,
        Incident::Event(Event::RecoveryStart | Event::CongestionEcho) => 3,
        Incident::Event(Event::Timeout) => 4,
        Incident::Event(Event::SpuriousRecovery) => 5,
        Incident::Event(Event::RecoveryEnd) => 6,
        Incident::Loss(_) => 7,
        Incident::Event(Event::Penalised) => panic!("over one path nothing is penalised"),
    };
    let loss = if let Incident::Loss(loss) = step.incident { loss } else { Default::default() };
    let recovery = RECOVERIES.iter().position(|known| *known == connection.recovery).unwrap();
    [
        kind,
        rng().next_u64(),
        INITIAL_WINDOW,
        sample.delivered,
        sample.prior_delivered,
        sample.interval.as_micros(),
        sample.rtt.map_or(u64::MAX, |rtt| rtt.as_micros()),
        sample.newly_acked,
        sample.in_flight_at_send,
        sample.lost_since_send,
        pair(sample.app_limited.into(), sample.ack_delayed.into()),
        loss.bytes,
        loss.in_flight_at_send,
        loss.delivered_at_send,
        loss.lost_at_send,
        loss.app_limited.into(),
        connection.now.as_nanos(),
        connection.in_flight,
        connection.delivered,
        connection.lost,
        pair(connection.mss, connection.srtt.as_micros() as u32),
        pair(connection.min_rtt.as_micros() as u32, recovery as u32),
        pair(connection.app_limited.into(), connection.window_limited.into()),
        0,
        0,
        0,
    ]
}

fn replay(object: &Object, steps: &[Step]) -> Vec<Decided> {
    let batch = |batch: &[Step]| {
        let mut bytes: Vec<u8> =
            batch.iter().flat_map(words).flat_map(|word| word.to_ne_bytes()).collect();
        bytes.resize(BATCH * WORDS * 8, 0);
        let map = object.maps().find(|map| map.name() == ".data.steps").unwrap();
        let key = 0_u32.to_ne_bytes();
        map.update(&key, &bytes, MapFlags::ANY).unwrap();
        let mut count = (batch.len() as u32).to_ne_bytes();
        let input = ProgramInput { context_in: Some(&mut count), ..ProgramInput::default() };
        object.progs_mut().next().unwrap().test_run(input).unwrap();
        let bytes = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
        let decided = |bytes: &[u8]| {
            let word = |at: usize| {
                let at = 8 * (DECISION + at);
                u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
            };
            (word(0), word(1), PHASES[word(2) as usize])
        };
        bytes.chunks_exact(WORDS * 8).take(batch.len()).map(decided).collect::<Vec<_>>()
    };
    steps.chunks(BATCH).flat_map(batch).collect()
}

/// Returns the decisions of `knee-cc`. The program itself does what the transport does for the
/// controller: it remembers what was held back in PROBE_RTT.
fn expected(selection: &Selection, steps: &[Step]) -> Vec<Decided> {
    let mut controller = knee_cc::build(selection, init()).unwrap();
    let mut held_back = HeldBack::default();
    let mut decide = |step: &Step| {
        let (mut sample, mut connection) = (step.sample, step.connection);
        sample.app_limited |= held_back.covers(sample.prior_delivered);
        connection.app_limited |= held_back.covers(connection.delivered);
        let decision = match step.incident {
            Incident::Ack => {
                let decision = controller.on_ack(&sample, &connection);
                held_back.note(&decision, &connection);
                decision
            }
            Incident::Event(event) => controller.on_event(event, &connection),
            Incident::Loss(mut loss) => {
                loss.app_limited |= held_back.covers(loss.delivered_at_send);
                controller.on_loss(&loss, &connection)
            }
        };
        let rate = decision.pacing_rate.unwrap().as_bytes_per_second();
        (decision.window, rate, controller.state().phase)
    };
    steps.iter().map(&mut decide).collect()
}

/// Window, rate and phase are the same at every step, over every recording, with the defaults, with
/// Linux's constants, and with each parameter changed; and each phase is visited.
pub fn bbr3_decides_the_same() -> Result<(), Skipped> {
    bpf_allowed()?;
    let _alone = alone(Pauses::Any);
    let plain = Selection::named("bbr3");
    let with = |name: &str, value| plain.clone().with(name, value);
    // min_rtt expires as PROBE_RTT begins.
    let expiring = |from: &str| {
        let second = Value::Text("1 s".to_owned());
        let filtered = with("probe_rtt_interval", second.clone()).with("min_rtt_filter", second);
        filtered.with("probe_rtt_window_from", Value::Text(from.to_owned()))
    };
    let selections = [
        plain.clone(),
        Selection::named("bbr3-linux"),
        Selection::named("bbr3-loss-v2"),
        with("loss_threshold", Value::Text("5 %".to_owned())),
        with("beta", Value::Number(0.5)),
        with("headroom", Value::Text("30 %".to_owned())),
        with("offload_quanta", Value::Number(1.0)),
        with("probe_rtt", Value::Switch(false)),
        expiring("before"),
        expiring("after"),
        with("startup_loss", Value::Text("conserve".to_owned())),
        with("startup_loss", Value::Text("at-once".to_owned())),
        with("startup_window_gain", Value::Number(1.5)),
    ];
    let mut visited: Vec<&str> = Vec::new();
    for selection in &selections {
        let object = bpf::opened(REPLAY, selection).unwrap().load();
        let object = object.unwrap_or_else(|error| panic!("{error:#}"));
        for path in [recording::slower_link, recording::shallow, recording::policed] {
            let steps: Vec<Step> = path(selection).into_iter().map(as_told).collect();
            let ours = expected(selection, &steps);
            let theirs = replay(&object, &steps);
            for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                let step = &steps[at];
                assert_eq!(theirs, ours, "step {at} of {}, {selection:?}: {step:?}", steps.len());
            }
            visited.extend(ours.iter().map(|decided| decided.2));
            visited.sort_unstable();
            visited.dedup();
            tell(&format!("{} steps the same of {selection:?}", steps.len()));
        }
    }
    assert_eq!(visited.len(), PHASES.len(), "{visited:?}");
    Ok(())
}
