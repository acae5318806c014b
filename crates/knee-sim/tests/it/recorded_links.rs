//! Two links at once, with rates that vary like recorded ones, compared with
//! the better one alone. The recordings are generated here.

use knee_record::{RunView, Window, measure};
use knee_scenario::{Embedded, Measure, Source, parse};
use knee_sim::Control;
use knee_units::Time;
use knee_units::random::below;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Returns a minute in Mahimahi's format. Every 200 ms the rate changes at
/// random between a quarter and twice its mean; packets leave in bursts every
/// `grain` ms, as with a cellular scheduler.
fn recording(packets_per_second: u64, grain: u64, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut text, mut quarters, mut credit) = (String::new(), 4, 0);
    for ms in 1..=60_000_u64 {
        if ms.is_multiple_of(200) {
            quarters = 1 + below(&mut rng, 8);
        }
        credit += packets_per_second * quarters;
        if ms.is_multiple_of(grain) {
            let leaving = credit / 4000;
            credit -= leaving * 4000;
            text += &format!("{ms}\n").repeat(leaving as usize);
        }
    }
    text + "60000\n"
}

struct Outcome {
    both: f64,
    better: f64,
    bound: f64,
}

fn outcome(recordings: &[String; 2], bytes: u64, seed: u64) -> Outcome {
    let files = [("a", recordings[0].as_bytes()), ("b", recordings[1].as_bytes())];
    let run = |flow: &str| {
        let mut text = format!("duration = \"600 s\"\nseed = {seed}\n");
        for name in ["a", "b"] {
            text += &format!(
                "[link.{name}]\nrate = {{ trace = \"{name}\", offset = \"random\" }}\n\
                 delay = \"20 ms\"\nbuffer = \"100 packets\"\n\
                 [path.{name}]\nforward = [\"{name}\"]\nreverse_delay = \"20 ms\"\n"
            );
        }
        text += &format!(
            "[[flow]]\nname = \"flow\"\n{flow}\ncc = \"cubic\"\n\
             workload = {{ file = \"{bytes} B\" }}\n"
        );
        let source = Source { name: "test.toml", loader: &Embedded(&files) };
        let scenario = parse(&text, &source, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let records = knee_sim::run(&scenario, &Control::default()).unwrap();
        let took = records.flows[0].completion_ns.unwrap() as f64 / 1e9;
        let view = RunView::new(&records, Time::ZERO);
        let over = measure(&view, &Measure::CompletionOverBound, "flow", Window::default());
        (took, took / over.unwrap_or(1.0))
    };
    let (both, bound) = run("paths = [\"a\", \"b\"]\nscheduler = \"just-in-time\"");
    let better = run("path = \"a\"").0.min(run("path = \"b\"").0);
    Outcome { both, better, bound }
}

/// The median is never more than 5 % worse than the better link, for any second
/// link. Of the gain that the bound T* allows, at least half is reached if the
/// other link is half or twice as fast, and a quarter if it is much slower.
#[test]
fn two_recorded_links_are_better_than_one() {
    // 6, 3 and 1 Mbit/s.
    let [fast, middle, slow] = [(500, 1, 1), (250, 10, 2), (83, 20, 3)]
        .map(|(rate, grain, seed)| recording(rate, grain, seed));
    for (name, least, pair) in [
        ("6 and 3", 0.5, [fast.clone(), middle.clone()]),
        ("3 and 6", 0.5, [middle.clone(), fast.clone()]),
        ("6 and 1", 0.25, [fast, slow.clone()]),
        ("3 and 1", 0.25, [middle, slow]),
    ] {
        let (mut gained, mut possible) = (0.0, 0.0);
        for bytes in [1_000_000, 5_000_000] {
            let draws: Vec<Outcome> = (1..=15).map(|seed| outcome(&pair, bytes, seed)).collect();
            let mut over: Vec<f64> = draws.iter().map(|draw| draw.both / draw.better).collect();
            over.sort_by(f64::total_cmp);
            let median = over[over.len() / 2];
            assert!(median <= 1.05, "{name} Mbit/s, {bytes} B: {median:.3} of the better link");
            gained += draws.iter().map(|draw| draw.better - draw.both).sum::<f64>();
            possible += draws.iter().map(|draw| draw.better - draw.bound).sum::<f64>();
        }
        assert!(gained >= least * possible, "{name} Mbit/s: {:.2} gained", gained / possible);
    }
}
